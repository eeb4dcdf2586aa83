/* Tests of the bounds of expressions in files of rules and on the command line. */
#include "temp_tools.h"

#include "base/expression.h"

static void test_expression__those_of_rules_are_fine(void **state) {
    static const char *const patterns[] = {
        "decoder\\.layers\\.([0-9]+)\\.self_attention\\.linear_qkv\\.weight",
        "(.*)layers(.*)",
        "[]^]+[[:digit:]]{1,3}(a|b)*\\\\(c{2})?",
        "((((((((((a))))))))))+",
        "a{100}{10}",
        "",
        "(", /* the C library says what is wrong with it */
        "[",
        "a{",
    };
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (gcmp_expression_fault(patterns[i]) != NULL) {
            fail_msg("%s: %s", patterns[i], gcmp_expression_fault(patterns[i]));
        }
    }
}

static void test_expression__what_grows_is_refused(void **state) {
    static const char *const patterns[] = {
        "((a{1,255}){1,255}){1,255}",
        "a++++++++++++++++++++",
        "((((((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+",
        "(a|b|c|d){9999}",
        "a{0,30000}",
        "a{1,255}{1,255}",
        "(a?){3000}",
        "((a{1,50}){1,40})?{1,255}",
        "(a{1,500})*{1,500}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const char *fault = gcmp_expression_fault(patterns[i]);
        assert_non_null(fault);
        assert_non_null(strstr(fault, "2500 states"));
    }
}

static void test_expression__other_bounds(void **state) {
    char deep[80], long_one[9000];
    (void)state;
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    memset(long_one, 'a', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    assert_non_null(strstr(gcmp_expression_fault(deep), "nested too deeply"));
    assert_non_null(strstr(gcmp_expression_fault(long_one), "8192 bytes"));
    assert_non_null(strstr(gcmp_expression_fault("(a*)*\\1"), "refers back"));
    assert_null(gcmp_expression_fault("a\\\\1"));
}

static void test_expression__begins_with_what_is_certain(void **state) {
    static const char *const cases[][2] = {
        {"layers\\.12\\.weight", "layers.12.weight"},
        {"layers\\.([0-9]+|x)\\.w", "layers."},
        {"a|ab", ""},
        {"(a|b)c", ""},
        {"ab[]|]c", "ab"},
        {"a\\|b", "a|b"},
        {"ab*c", "a"},
        {"ab?", "a"},
        {"a\\.{2}", "a"},
        {"a\\wb", "a"},
        {"^ab", ""},
        {"ab$", "ab"},
        {"*a", ""},
        {"\xc3\xa9?x", ""},
        {"a\xc3\xa9", "a"},
        {"a\\", "a"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char prefix[64];
        gcmp_expression_prefix(cases[i][0], prefix);
        assert_string_equal(prefix, cases[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expression__those_of_rules_are_fine),
        cmocka_unit_test(test_expression__what_grows_is_refused),
        cmocka_unit_test(test_expression__other_bounds),
        cmocka_unit_test(test_expression__begins_with_what_is_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
