/* The weighted median. */
#include "pair_maker.h"

#include "bounds/median.h"

static double median_of(const double *values, const double *weights, size_t count, double usual) {
    struct gcmp_sample samples[16];
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        samples[i] = (struct gcmp_sample){values[i], weights == NULL ? 1.0 : weights[i]};
    }
    return gcmp_median(samples, count, usual);
}

static void test_median__none_is_the_usual(void **state) {
    (void)state;
    assert_true(gcmp_median(NULL, 0, 1.0) == 1.0);
}

static void test_median__odd_count_is_the_middle(void **state) {
    (void)state;
    const double values[] = {5, -1, 3, 2, 100};
    assert_true(median_of(values, NULL, 1, 0) == 5);
    assert_true(median_of(values, NULL, 3, 0) == 3);
    assert_true(median_of(values, NULL, 5, 0) == 3);
}

static void test_median__even_count_is_the_middle_nearer_to_usual(void **state) {
    (void)state;
    const double above[] = {1.0, 1.02, 1.0, 1.02}, below[] = {0.98, 1.0, 0.98, 1.0};
    assert_true(median_of(above, NULL, 4, 1.0) == 1.0);
    assert_true(median_of(below, NULL, 4, 1.0) == 1.0);
    assert_true(median_of(above, NULL, 4, 2.0) == 1.02);
}

static void test_median__weights_count_not_values(void **state) {
    (void)state;
    const double values[] = {1, 2, 3}, heavy[] = {1, 1, 5};
    assert_true(median_of(values, heavy, 3, 0) == 3);
    const double light[] = {1, 1, 1.9};
    assert_true(median_of(values, light, 3, 0) == 2);
}

static void test_median__thirds_that_tie_are_a_tie(void **state) {
    (void)state;
    /* Three thirds against one vote: 1/3 + 1/3 + 1/3 need not be 1. */
    const double values[] = {2, 2, 2, 1}, weights[] = {1.0 / 3, 1.0 / 3, 1.0 / 3, 1};
    assert_true(median_of(values, weights, 4, 0.0) == 1);
    assert_true(median_of(values, weights, 4, 9.0) == 2);
    double tenths[11], tenth_shares[11]; /* ten times 0.1 is less than 1 */
    for (size_t i = 0; i < 10; i++) {
        tenths[i] = 1;
        tenth_shares[i] = 0.1;
    }
    tenths[10] = 2;
    tenth_shares[10] = 1;
    assert_true(median_of(tenths, tenth_shares, 11, 0.0) == 1);
    assert_true(median_of(tenths, tenth_shares, 11, 9.0) == 2);
    const double sevenths[] = {2, 2, 2, 2, 2, 2, 2, 1};
    double shares[8];
    for (size_t i = 0; i < 7; i++) {
        shares[i] = 1.0 / 7;
    }
    shares[7] = 1;
    assert_true(median_of(sevenths, shares, 8, 0.0) == 1);
    assert_true(median_of(sevenths, shares, 8, 9.0) == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median__none_is_the_usual),
        cmocka_unit_test(test_median__odd_count_is_the_middle),
        cmocka_unit_test(test_median__even_count_is_the_middle_nearer_to_usual),
        cmocka_unit_test(test_median__weights_count_not_values),
        cmocka_unit_test(test_median__thirds_that_tie_are_a_tie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
