/* Messages: one line of UTF-8 that steers no terminal, whatever a file put into it. */
#include "temp_tools.h"

#include "base/error.h"

static void expect_message(const char *name, const char *expected) {
    struct gradcmp_error error = {0};
    gcmp_error_fill(&error, GRADCMP_ERROR_CORRUPT, name, 7, "record \"%s\" is no record", name);
    char whole[600];
    snprintf(whole, sizeof whole, "record \"%s\" is no record", expected);
    assert_string_equal(error.message, whole);
    assert_string_equal(error.path, expected);
    assert_int_equal(error.offset_bytes, 7);
}

static void test_error__what_steers_a_terminal_is_spelled_out(void **state) {
    (void)state;
    expect_message("data/0", "data/0");
    expect_message("\xe4\xb8\xad\xc3\xbc\xf0\x9f\x98\x80", "\xe4\xb8\xad\xc3\xbc\xf0\x9f\x98\x80");
    expect_message("a\nb\033[2J\177", "a\\x0ab\\x1b[2J\\x7f");
    expect_message("\xc2\x9b"
                   "31m",
                   "\\xc2\\x9b31m"); /* CSI in one character, and below in one byte */
    expect_message("\x9b"
                   "31m",
                   "\\x9b31m");
    expect_message("\xff\xfe", "\\xff\\xfe");
    expect_message("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
    expect_message("\xe2\x80\xaegpj", "\\xe2\\x80\\xaegpj");
    expect_message("cut \xe4\xb8", "cut \\xe4\\xb8");
}

/* Fill a text with `count` copies of a character and a few more bytes behind it. */
static void repeat(char *text, const char *character, size_t count, const char *end) {
    text[0] = '\0';
    size_t bytes = strlen(character);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * bytes, character, bytes + 1);
    }
    memcpy(text + count * bytes, end, strlen(end) + 1);
}

static void test_error__a_long_name_does_not_hide_what_is_said_of_it(void **state) {
    static const char *const characters[] = {"x", "\xe4\xb8\xad", "\033", "\xff"};
    static char name[20000];
    (void)state;
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
        for (size_t count = 100; count < 6000; count += count < 200 ? 1 : 997) {
            struct gradcmp_error error;
            memset(&error, 'e', sizeof error);
            repeat(name, characters[i], count, "end");
            gcmp_error_fill(&error, GRADCMP_ERROR_CORRUPT, name, 0, "begins %s and is no name",
                            name);
            assert_memory_equal(error.message, "begins ", 7);
            assert_string_equal(error.message + strlen(error.message) - 18, "end and is no name");
            assert_string_equal(error.path + strlen(error.path) - 3, "end");
            assert_true(strlen(error.message) < sizeof error.message);
            assert_true(strlen(error.path) < sizeof error.path);
            assert_null(strpbrk(error.message, "\033\xff"));
            bool is_whole = count * 4 + 40 < sizeof error.message;
            assert_true(!is_whole || strstr(error.message, "...") == NULL);
        }
    }
}

static void test_error__the_longest_that_fits_is_whole(void **state) {
    char name[sizeof((struct gradcmp_error *)NULL)->message + 8];
    struct gradcmp_error error;
    (void)state;
    repeat(name, "x", sizeof error.message - 1, "");
    gcmp_error_fill(&error, GRADCMP_ERROR_CORRUPT, NULL, 0, "%s", name);
    assert_string_equal(error.message, name);
    assert_string_equal(error.path, "");
    repeat(name, "x", sizeof error.message, "");
    gcmp_error_fill(&error, GRADCMP_ERROR_CORRUPT, NULL, 0, "%s", name);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_non_null(strstr(error.message, "x...x"));
}

static void test_error__a_path_is_added_once(void **state) {
    struct gradcmp_error error = {0};
    (void)state;
    gcmp_error_fill(&error, GRADCMP_ERROR_CORRUPT, NULL, 0, "damaged");
    gcmp_error_add_path(&error, "a\tb");
    gcmp_error_add_path(&error, "c");
    assert_string_equal(error.path, "a\\x09b");
    gcmp_error_add_path(NULL, "c");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error__what_steers_a_terminal_is_spelled_out),
        cmocka_unit_test(test_error__a_long_name_does_not_hide_what_is_said_of_it),
        cmocka_unit_test(test_error__the_longest_that_fits_is_whole),
        cmocka_unit_test(test_error__a_path_is_added_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
