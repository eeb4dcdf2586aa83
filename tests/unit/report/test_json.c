/* The streaming JSON writer, read back with jansson as an independent judge. */
#include "report/capture.h"

#include <locale.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "report/json.h"

struct writer {
    struct capture capture;
    struct gcmp_out out;
    struct gcmp_emitter json;
};

static void start(struct writer *writer) {
    memset(writer, 0, sizeof *writer);
    gcmp_out_begin(&writer->out, capture_write, &writer->capture);
    writer->json.out = &writer->out;
}

static json_t *finish(struct writer *writer) {
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_out_end(&writer->out, &error), GRADCMP_OK);
    json_error_t trouble;
    json_t *document = json_loads(captured(&writer->capture), JSON_REJECT_DUPLICATES, &trouble);
    if (document == NULL) {
        fail_msg("%s at %d: %s", trouble.text, trouble.position, captured(&writer->capture));
    }
    return document;
}

static void finish_free(struct writer *writer, json_t *document) {
    json_decref(document);
    gcmp_text_free(&writer->capture.text);
}

/* What would move a terminal's text about is escaped, and nothing else is. */
static void test_json__marks_and_controls_are_escaped(void **state) {
    (void)state;
    struct writer writer;
    start(&writer);
    gcmp_emit_open_array(&writer.json, NULL, true);
    gcmp_emit_text(&writer.json, NULL, "\xc2\x9b\xe2\x80\xae\xef\xbf\xbe\xf0\x9f\xbf\xbf\xc3\xa9");
    gcmp_emit_close(&writer.json);
    json_t *document = finish(&writer);
    assert_non_null(
        strstr(captured(&writer.capture), "\"\\u009b\\u202e\\ufffe\\ud83f\\udfff\xc3\xa9\""));
    finish_free(&writer, document);
}

static void test_json__strings_come_back_unchanged(void **state) {
    (void)state;
    static const char *const strings[] = {
        "",
        "decoder.layers.0.weight",
        "quote \" backslash \\ slash /",
        "line\nbreak\ttab\r\b\f\001\037\177",
        "\xc2\x9b\xe2\x80\xae\xef\xbf\xbf\xf0\x9f\xbf\xbe\xef\xb7\x90",
        "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"};
    struct writer writer;
    start(&writer);
    gcmp_emit_open_array(&writer.json, NULL, true);
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        gcmp_emit_text(&writer.json, NULL, strings[i]);
    }
    gcmp_emit_close(&writer.json);
    json_t *document = finish(&writer);
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        assert_string_equal(json_string_value(json_array_get(document, i)), strings[i]);
    }
    finish_free(&writer, document);
}

static void test_json__broken_utf8_is_spelled_out(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"a\xff"
         "b",
         "a\\xffb"},                                  /* no lead byte */
        {"\x80", "\\x80"},                            /* a lone continuation */
        {"\xc3", "\\xc3"},                            /* cut short */
        {"\xe2\x82", "\\xe2\\x82"},                   /* cut short */
        {"\xc0\xaf", "\\xc0\\xaf"},                   /* overlong */
        {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},          /* overlong */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* past U+10FFFF */
        {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct writer writer;
        start(&writer);
        gcmp_emit_open_object(&writer.json, NULL, false);
        gcmp_emit_text(&writer.json, cases[i].bytes, cases[i].bytes);
        gcmp_emit_close(&writer.json);
        json_t *document = finish(&writer);
        json_t *value = json_object_get(document, cases[i].expected);
        assert_non_null(value);
        assert_string_equal(json_string_value(value), cases[i].expected);
        finish_free(&writer, document);
    }
}

static void test_json__numbers_are_exact(void **state) {
    (void)state;
    static const double reals[] = {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308,
                                   4.0, -2.5e-9,   0x1p-7, 2.2250738585e-308};
    struct writer writer;
    start(&writer);
    gcmp_emit_open_object(&writer.json, NULL, true);
    gcmp_emit_open_array(&writer.json, "reals", false);
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        gcmp_emit_real(&writer.json, NULL, reals[i]);
    }
    gcmp_emit_close(&writer.json);
    gcmp_emit_integer(&writer.json, "least", INT64_MIN);
    gcmp_emit_count(&writer.json, "odd", 9007199254740993u);
    gcmp_emit_count(&writer.json, "most", UINT64_MAX);
    gcmp_emit_close(&writer.json);
    assert_non_null(strstr(writer.out.text.bytes, "\"most\": 18446744073709551615\n"));
    struct gradcmp_error error;
    assert_int_equal(gcmp_out_end(&writer.out, &error), GRADCMP_OK);
    json_t *document = json_loads(captured(&writer.capture), 0, NULL);
    assert_null(document); /* jansson refuses an integer beyond its range rather than round it */
    char *most = strstr(writer.capture.text.bytes, "18446744073709551615");
    memcpy(most, "1                   ", 20);
    document = json_loads(captured(&writer.capture), 0, NULL);
    assert_non_null(document);
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        double read = json_number_value(json_array_get(json_object_get(document, "reals"), i));
        assert_memory_equal(&read, &reals[i], sizeof read);
    }
    assert_int_equal(json_integer_value(json_object_get(document, "least")), INT64_MIN);
    assert_int_equal(json_integer_value(json_object_get(document, "odd")), 9007199254740993);
    finish_free(&writer, document);
}

static void test_json__what_is_not_finite_is_a_string_or_null(void **state) {
    (void)state;
    struct writer writer;
    start(&writer);
    gcmp_emit_open_array(&writer.json, NULL, false);
    gcmp_emit_real(&writer.json, NULL, INFINITY);
    gcmp_emit_real(&writer.json, NULL, -INFINITY);
    gcmp_emit_real(&writer.json, NULL, NAN);
    gcmp_emit_figure(&writer.json, NULL, INFINITY);
    gcmp_emit_figure(&writer.json, NULL, NAN);
    gcmp_emit_figure(&writer.json, NULL, 0.5);
    gcmp_emit_known(&writer.json, NULL, 0);
    gcmp_emit_known(&writer.json, NULL, 3);
    gcmp_emit_text(&writer.json, NULL, NULL);
    gcmp_emit_close(&writer.json);
    json_t *document = finish(&writer);
    assert_string_equal(captured(&writer.capture),
                        "[\"inf\", \"-inf\", \"nan\", \"inf\", null, 0.5, null, 3, null]\n");
    finish_free(&writer, document);
}

static void test_json__blocks_are_lines_and_the_rest_is_not(void **state) {
    (void)state;
    struct writer writer;
    start(&writer);
    gcmp_emit_open_object(&writer.json, NULL, true);
    gcmp_emit_open_object(&writer.json, "empty", true);
    gcmp_emit_close(&writer.json);
    gcmp_emit_open_array(&writer.json, "items", true);
    gcmp_emit_open_object(&writer.json, NULL, false);
    gcmp_emit_bool(&writer.json, "yes", true);
    gcmp_emit_open_array(&writer.json, "inner", true); /* inside a line: no block */
    gcmp_emit_bool(&writer.json, NULL, false);
    gcmp_emit_close(&writer.json);
    gcmp_emit_close(&writer.json);
    gcmp_emit_null(&writer.json, NULL);
    gcmp_emit_close(&writer.json);
    gcmp_emit_sizes(&writer.json, "shape", (const uint64_t[]){2, 3}, 2);
    gcmp_emit_close(&writer.json);
    json_t *document = finish(&writer);
    assert_string_equal(captured(&writer.capture), "{\n"
                                                   "  \"empty\": {},\n"
                                                   "  \"items\": [\n"
                                                   "    {\"yes\": true, \"inner\": [false]},\n"
                                                   "    null\n"
                                                   "  ],\n"
                                                   "  \"shape\": [2, 3]\n"
                                                   "}\n");
    finish_free(&writer, document);
}

/* Find a locale with a decimal comma, or make one where the C library's sources are installed. */
static locale_t comma_locale(const char *folder) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    locale_t found = (locale_t)0;
    for (size_t i = 0; found == (locale_t)0 && i < sizeof names / sizeof names[0]; i++) {
        found = newlocale(LC_ALL_MASK, names[i], (locale_t)0);
    }
    if (found == (locale_t)0) {
        char command[256];
        snprintf(command, sizeof command,
                 "localedef --no-archive -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
        setenv("LOCPATH", folder, 1);
        found = system(command) == 0 ? newlocale(LC_ALL_MASK, names[0], (locale_t)0) : found;
    }
    return found;
}

static void remove_folder(const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

enum { CHILD_DONE = 0, CHILD_NO_LOCALE = 77 };

static void write_under_comma(locale_t comma) {
    locale_t before = uselocale(comma);
    char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5"); /* else this test proves nothing */
    struct writer writer;
    start(&writer);
    gcmp_emit_real(&writer.json, NULL, 0.5);
    struct gradcmp_error error;
    assert_int_equal(gcmp_out_end(&writer.out, &error), GRADCMP_OK);
    assert_ptr_equal(uselocale((locale_t)0), comma);
    uselocale(before);
    freelocale(comma);
    assert_string_equal(captured(&writer.capture), "0.5");
    gcmp_text_free(&writer.capture.text);
}

/* A locale with a decimal comma must change neither the document nor the caller's thread. In a
 * process of its own, because the C library keeps what it reads of LOCPATH. */
static void test_json__decimal_point_in_every_locale(void **state) {
    (void)state;
    char folder[] = "/tmp/gradcmp_locale_XXXXXX";
    assert_non_null(mkdtemp(folder));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        locale_t comma = comma_locale(folder);
        if (comma == (locale_t)0) {
            _exit(CHILD_NO_LOCALE);
        }
        write_under_comma(comma);
        _exit(CHILD_DONE);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    remove_folder(folder);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHILD_NO_LOCALE) {
        print_message("no locale with a decimal comma can be had\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), CHILD_DONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json__marks_and_controls_are_escaped),
        cmocka_unit_test(test_json__strings_come_back_unchanged),
        cmocka_unit_test(test_json__broken_utf8_is_spelled_out),
        cmocka_unit_test(test_json__numbers_are_exact),
        cmocka_unit_test(test_json__what_is_not_finite_is_a_string_or_null),
        cmocka_unit_test(test_json__blocks_are_lines_and_the_rest_is_not),
        cmocka_unit_test(test_json__decimal_point_in_every_locale),
    };
    return cmocka_run_group_tests_name("report/json", tests, NULL, NULL);
}
