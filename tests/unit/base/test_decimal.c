/* Decimal texts, and whether their nearest binary64 gives them back. */
#include "../temp_tools.h"

#include <stdlib.h>

#include "base/decimal.h"

static struct gcmp_decimal decimal_of(const char *text) {
    struct gcmp_decimal decimal;
    assert_true(gcmp_decimal_read(text, strlen(text), &decimal));
    return decimal;
}

static void test_decimal__spellings_of_one_number_are_the_same(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"1.0", "1"},       {"0.0010", "1e-3"},  {"100", "1E+2"},     {"-12.50", "-1.25e1"},
        {"0", "-0.000e99"}, {"00012.3", "12.3"}, {".5", "0.5000e+00"}};
    static const char *const other[][2] = {{"1", "-1"}, {"1", "10"}, {"1.01", "1.1"}, {"1", "0"}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct gcmp_decimal a = decimal_of(same[i][0]), b = decimal_of(same[i][1]);
        assert_true(gcmp_decimal_same(&a, &b));
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct gcmp_decimal a = decimal_of(other[i][0]), b = decimal_of(other[i][1]);
        assert_false(gcmp_decimal_same(&a, &b));
    }
}

static void test_decimal__what_a_program_prints_of_a_double_is_held(void **state) {
    (void)state;
    static const double values[] = {0,           1,      0.1,     1.0 / 3, 0x1p-1074,
                                    0x1.8p-1060, 0x1p53, 0x1p200, 1e-310,  1e308,
                                    2.5e-5,      1e22,   1e23,    0.3,     123456.789};
    static const char *const forms[] = {"%.17g", "%.16e", "%.20f", "%.30g", "%.6e", "%.3g"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
            char text[400];
            snprintf(text, sizeof text, forms[k], values[i]);
            struct gcmp_decimal decimal = decimal_of(text);
            if (!gcmp_decimal_is_held(&decimal, strtod(text, NULL))) {
                fail_msg("not held: %s", text);
            }
        }
    }
}

static void test_decimal__what_binary64_merges_is_not_held(void **state) {
    (void)state;
    static const char *const bad[] = {"9007199254740993.0",
                                      "9007199254740993e0",
                                      "0.12345678901234567899",
                                      "1e-400",
                                      "2e-400",
                                      "0.3333333333333333333333",
                                      "1e99999999999",
                                      "1.23456789012345e-320"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gcmp_decimal decimal = decimal_of(bad[i]);
        if (gcmp_decimal_is_held(&decimal, strtod(bad[i], NULL))) {
            fail_msg("held: %s", bad[i]);
        }
    }
}

static void test_decimal__digits_tell_a_factor_from_one(void **state) {
    (void)state;
    char text[32];
    const struct {
        double factor;
        const char *text;
    } rows[] = {{2.0, "2"},
                {1.285, "1.285"},
                {1.0, "1"},
                {1.0002, "1.0002"},
                {0.99998, "0.99998"},
                {-1.00001, "-1.00001"},
                {1.0 + 1e-12, "1.000000000001"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "%.*g", gcmp_factor_digits(rows[i].factor), rows[i].factor);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal__spellings_of_one_number_are_the_same),
        cmocka_unit_test(test_decimal__digits_tell_a_factor_from_one),
        cmocka_unit_test(test_decimal__what_a_program_prints_of_a_double_is_held),
        cmocka_unit_test(test_decimal__what_binary64_merges_is_not_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
