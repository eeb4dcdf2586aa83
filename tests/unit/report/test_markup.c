/* The writer of XML and HTML, the command to repeat a report, and heat maps as pictures. */
#include "report/capture.h"

#include <math.h>
#include <zlib.h>

#include "report/heat.h"
#include "report/html_page.h"
#include "report/markdown.h"
#include "report/markup.h"
#include "report/repeat.h"

static void expect_text(struct gcmp_text *text, const char *expected) {
    assert_false(text->failed);
    assert_string_equal(text->bytes, expected);
    gcmp_text_free(text);
}

static void test_markup__text_and_attributes_are_escaped(void **state) {
    (void)state;
    struct gcmp_out out = {.text = GCMP_TEXT_INIT};
    struct gcmp_markup markup = {.out = &out};
    gcmp_markup_open(&markup, "a", "href", "x\"y'<&>", "title", NULL, "id", "", NULL);
    gcmp_markup_text(&markup, "</a><script>&amp;");
    gcmp_markup_element(&markup, "b", "1\n2\x01\xff\xe2\x80\xae\xef\xbf\xbe\xef\xbf\xbf", NULL);
    gcmp_markup_empty(&markup, "img", "alt", "\"", NULL);
    gcmp_markup_close(&markup);
    assert_int_equal(markup.depth, 0);
    expect_text(&out.text,
                "<a href=\"x&quot;y&#39;&lt;&amp;&gt;\" id=\"\">&lt;/a&gt;&lt;script&gt;&amp;amp;"
                "<b>1\\x0a2\\x01\\xff\\xe2\\x80\\xae\\xef\\xbf\\xbe\\xef\\xbf\\xbf</b><img "
                "alt=\"&quot;\"/></a>");
}

static void test_markdown__marks_are_written_as_references(void **state) {
    (void)state;
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_markdown_code(&text, "a|b`*_[x](y) @me #1 <i>\n");
    expect_text(&text, "<code>a&#124;b&#96;&#42;&#95;&#91;x&#93;&#40;y&#41; &#64;me &#35;1 "
                       "&#60;i&#62;&#92;x0a</code>");
}

static void test_repeat__words_are_quoted_for_a_shell(void **state) {
    (void)state;
    static const char *const words[][2] = {
        {"plain/a-b_c.d=1", "plain/a-b_c.d=1"}, {"", "''"},
        {"two words", "'two words'"},           {"it's", "'it'\\''s'"},
        {"$(x)`y`*?~;&|", "'$(x)`y`*?~;&|'"},   {"\xc3\xa9", "'\xc3\xa9'"},
        {"a\nb'\xff", "$'a\\012b\\047\\377'"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct gcmp_text text = GCMP_TEXT_INIT;
        gcmp_repeat_word(&text, words[i][0]);
        expect_text(&text, words[i][1]);
    }
}

static void test_repeat__reals_keep_all_their_digits(void **state) {
    (void)state;
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gcmp_text text = GCMP_TEXT_INIT;
    options.k = 1.0 / 3.0;
    options.C = 1.05;
    options.match = "a b";
    options.strict = 1;
    options.threads = 7; /* the result does not depend on it */
    gcmp_repeat_options(&text, &options);
    expect_text(&text, "--match 'a b' --k 0.3333333333333333 --C 1.05 --strict");
}

static void test_repeat__paths_like_options_stand_behind_dashes(void **state) {
    (void)state;
    struct gradcmp_pair_report pair = {.path = "-b"};
    struct gradcmp_report report = {
        .baseline_path = "a", .pairs = &pair, .pair_count = 1, .options = GRADCMP_OPTIONS_INIT};
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_repeat_compare(&text, &report);
    expect_text(&text, "gradcmp compare -- a -b");
}

static void test_heat__steps_double_from_the_bound(void **state) {
    (void)state;
    const struct {
        double cell;
        unsigned step;
    } cases[] = {{0.0, 0},   {0.25, 7},  {0.2500001, 8}, {0.5, 8},    {0.51, 9},
                 {0.125, 6}, {0.126, 7}, {1e-300, 1},    {1e300, 14}, {INFINITY, 14},
                 {NAN, 15},  {16.0, 13}, {16.1, 14},     {32.0, 14}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(gcmp_heat_step(cases[i].cell, 0.25), cases[i].step);
    }
    assert_int_equal(gcmp_heat_step(1.0, NAN), 14); /* a difference without a bound is never pale */
}

static size_t decode_base64(const char *text, unsigned char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = 0;
    for (; *text != '\0'; text += 4) {
        unsigned long group = 0;
        for (int i = 0; i < 4; i++) {
            const char *at = text[i] == '=' ? digits : strchr(digits, text[i]);
            assert_non_null(at);
            group = group << 6 | (unsigned long)(at - digits);
        }
        for (int i = 0; i < 3 && (i == 0 || text[i + 1] != '='); i++) {
            out[length++] = (unsigned char)(group >> (16 - 8 * i));
        }
    }
    return length;
}

static unsigned long read_u32be(const unsigned char *at) {
    return (unsigned long)at[0] << 24 | (unsigned long)at[1] << 16 | (unsigned long)at[2] << 8 |
           at[3];
}

/* Walk the chunks as a reader of PNG does, and compare the pixels. */
static void expect_png(const unsigned char *steps, unsigned rows, unsigned columns) {
    static unsigned char png[16384], raw[8192];
    static const char prefix[] = "data:image/png;base64,";
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_heat_add_png(&text, steps, rows, columns);
    assert_memory_equal(text.bytes, prefix, strlen(prefix));
    size_t length = decode_base64(text.bytes + strlen(prefix), png), at = 8, seen = 0;
    assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
    unsigned line = (columns + 1) / 2 + 1;
    while (at < length) {
        unsigned long size = read_u32be(png + at);
        const unsigned char *type = png + at + 4, *data = type + 4;
        assert_int_equal(crc32(0, type, (uInt)(size + 4)), read_u32be(data + size));
        if (memcmp(type, "IHDR", 4) == 0) {
            assert_int_equal(read_u32be(data), columns);
            assert_int_equal(read_u32be(data + 4), rows);
            assert_memory_equal(data + 8, "\4\3\0\0\0", 5);
        } else if (memcmp(type, "IDAT", 4) == 0) {
            uLongf got = sizeof raw;
            assert_int_equal(uncompress(raw, &got, data, size), Z_OK);
            assert_int_equal(got, (size_t)rows * line);
        }
        at += 12 + size;
        seen++;
    }
    assert_int_equal(at, length);
    assert_int_equal(seen, 4);
    for (unsigned i = 0; i < rows * columns; i++) {
        unsigned row = i / columns, column = i % columns;
        unsigned byte = raw[row * line + 1 + column / 2];
        assert_int_equal(column % 2 == 0 ? byte >> 4 : byte & 15, steps[i]);
    }
    gcmp_text_free(&text);
}

static void test_heat__pictures_are_read_back(void **state) {
    (void)state;
    static unsigned char steps[64 * 64];
    for (size_t i = 0; i < sizeof steps; i++) {
        steps[i] = (unsigned char)(i * 7 % 16);
    }
    static const unsigned sizes[][2] = {{1, 1}, {1, 2},   {1, 64}, {64, 1},
                                        {3, 5}, {64, 63}, {64, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        expect_png(steps, sizes[i][0], sizes[i][1]);
    }
}

static void test_base64__known_values(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct gcmp_text text = GCMP_TEXT_INIT;
        gcmp_text_add(&text, "");
        gcmp_base64_add(&text, (const unsigned char *)pairs[i][0], strlen(pairs[i][0]));
        expect_text(&text, pairs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markup__text_and_attributes_are_escaped),
        cmocka_unit_test(test_markdown__marks_are_written_as_references),
        cmocka_unit_test(test_repeat__words_are_quoted_for_a_shell),
        cmocka_unit_test(test_repeat__reals_keep_all_their_digits),
        cmocka_unit_test(test_repeat__paths_like_options_stand_behind_dashes),
        cmocka_unit_test(test_heat__steps_double_from_the_bound),
        cmocka_unit_test(test_heat__pictures_are_read_back),
        cmocka_unit_test(test_base64__known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
