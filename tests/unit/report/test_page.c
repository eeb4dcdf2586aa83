/* Printable names, wrapped lines, figures, and the words of verdicts. */
#include "report/capture.h"

#include <math.h>

#include "gradcmp/gradcmp.h"
#include "report/names.h"
#include "report/page.h"

static void expect_printable(const char *name, bool utf8, const char *expected) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, "");
    gcmp_printable_add(&text, name, utf8);
    assert_string_equal(text.bytes, expected);
    gcmp_text_free(&text);
}

static void test_printable__text_that_steers_a_terminal_is_spelled_out(void **state) {
    (void)state;
    expect_printable("plain.name_0 [x]", true, "plain.name_0 [x]");
    expect_printable("a\033[31m\n\r\t\177", true, "a\\x1b[31m\\x0a\\x0d\\x09\\x7f");
    expect_printable("\xc2\x9b", true, "\\xc2\\x9b");          /* C1: CSI */
    expect_printable("\xe2\x80\xae", true, "\\xe2\\x80\\xae"); /* right-to-left override */
    expect_printable("\xe2\x81\xa6", true, "\\xe2\\x81\\xa6"); /* isolate */
    expect_printable("\xe2\x80\x8b", true, "\\xe2\\x80\\x8b"); /* zero width */
    expect_printable("\xe2\x80\xa8", true, "\\xe2\\x80\\xa8"); /* line separator */
    expect_printable("\xff", true, "\\xff");
    expect_printable("caf\xc3\xa9", true, "caf\xc3\xa9");
    expect_printable("caf\xc3\xa9", false, "caf\\xc3\\xa9");
}

static void test_printable__columns_count_characters(void **state) {
    (void)state;
    assert_int_equal(gcmp_printable_columns(""), 0);
    assert_int_equal(gcmp_printable_columns("caf\xc3\xa9"), 4);
    assert_string_equal(gcmp_printable_tail("caf\xc3\xa9s", 2), "\xc3\xa9s");
    assert_string_equal(gcmp_printable_tail("caf\xc3\xa9s", 1), "s");
    assert_string_equal(gcmp_printable_tail("caf", 9), "caf");
    assert_string_equal(gcmp_printable_tail("caf", 0), "");
}

static void test_page__long_lines_break_at_spaces(void **state) {
    (void)state;
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gcmp_page page = {.width = 20};
    gcmp_out_begin(&page.out, capture_write, &capture);
    gcmp_page_add(&page, "label ");
    gcmp_page_wrap(&page, 6, 6, "one two three four aWordLongerThanALine  x");
    gcmp_page_wrap(&page, 0, 0, "");
    gcmp_page_name_in(&page, "abcdefghij", 8);
    gcmp_page_add(&page, "|");
    gcmp_page_name_in(&page, "abc", 8);
    gcmp_page_add(&page, "|\n");
    struct gradcmp_error error;
    assert_int_equal(gcmp_out_end(&page.out, &error), GRADCMP_OK);
    assert_string_equal(captured(&capture), "label one two three\n"
                                            "      four\n"
                                            "      aWordLongerThanALine\n"
                                            "      x\n"
                                            "\n"
                                            "...fghij|abc     |\n");
    gcmp_text_free(&capture.text);
}

static void test_page__figures(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *three, *four;
    } cases[] = {
        {0.0, "0.00", "0.000"},          {1.0, "1.00", "1.000"},         {128.0, "128", "128.0"},
        {14.44, "14.4", "14.44"},        {999.4, "999", "999.4"},        {999.6, "1000", "1000"},
        {54321.0, "54321", "54321"},     {1e6, "1.00e+06", "1.000e+06"}, {-2.5, "-2.50", "-2.500"},
        {1e-9, "1.00e-09", "1.000e-09"}, {INFINITY, "inf", "inf"},       {NAN, "-", "-"}};
    char out[GCMP_FIGURE_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(gcmp_figure(out, cases[i].value), cases[i].three);
        assert_string_equal(gcmp_figure_error(out, cases[i].value), cases[i].four);
    }
    assert_string_equal(gcmp_figure_setting(out, 0.95), "0.95");
    assert_string_equal(gcmp_figure_factor(out, 1.0), "1.0000");
    assert_string_equal(gcmp_figure_factor(out, -0.0171), "-0.0171");
    assert_string_equal(gcmp_figure_factor(out, 0.0), "0.0000");
    assert_string_equal(gcmp_figure_factor(out, 0.0002), "0.0002000");
    assert_string_equal(gcmp_figure_factor(out, 65536.0), "65536");
    assert_string_equal(gcmp_figure_factor(out, NAN), "-");
}

static void test_page__counts_and_bytes(void **state) {
    (void)state;
    char out[GCMP_FIGURE_BYTES];
    assert_string_equal(gcmp_figure_count(out, 0), "0");
    assert_string_equal(gcmp_figure_count(out, 999), "999");
    assert_string_equal(gcmp_figure_count(out, 1000), "1,000");
    assert_string_equal(gcmp_figure_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(gcmp_figure_bytes(out, 1023), "1023 bytes");
    assert_string_equal(gcmp_figure_bytes(out, 1024), "1.0 KiB");
    assert_string_equal(gcmp_figure_bytes(out, 1048575), "1.0 MiB"); /* never "1024.0 KiB" */
    assert_string_equal(gcmp_figure_bytes(out, UINT64_MAX), "16.0 EiB");
}

static void test_names__every_word(void **state) {
    (void)state;
    static const char *const verdicts[] = {"unknown",  "shape",     "missing",  "extra",
                                           "conflict", "nonfinite", "unjudged", "fail",
                                           "scale",    "pass",      "unknown"};
    for (int i = 0; i <= 10; i++) {
        assert_string_equal(gradcmp_verdict_name((enum gradcmp_verdict)i), verdicts[i]);
    }
    static const char *const outcomes[] = {"consistent", "inconsistent", "undecided",
                                           "vacuous",    "error",        "unknown"};
    for (int i = 0; i <= 5; i++) {
        assert_string_equal(gradcmp_outcome_name((enum gradcmp_outcome)i), outcomes[i]);
    }
    assert_string_equal(gradcmp_verdict_name((enum gradcmp_verdict) - 1), "unknown");
    assert_null(gcmp_dtype_source_key((enum gradcmp_dtype_source)0));
    assert_string_equal(gcmp_dtype_source_key(GRADCMP_DTYPE_FROM_ARGS), "args");
    assert_string_equal(gcmp_dtype_source_key(GRADCMP_DTYPE_ASSUMED_STATE), "assumed_state");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", GRADCMP_VERSION_MAJOR, GRADCMP_VERSION_MINOR,
             GRADCMP_VERSION_PATCH);
    assert_string_equal(gradcmp_version(), version);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable__text_that_steers_a_terminal_is_spelled_out),
        cmocka_unit_test(test_printable__columns_count_characters),
        cmocka_unit_test(test_page__long_lines_break_at_spaces),
        cmocka_unit_test(test_page__figures),
        cmocka_unit_test(test_page__counts_and_bytes),
        cmocka_unit_test(test_names__every_word),
    };
    return cmocka_run_group_tests_name("report/page", tests, NULL, NULL);
}
