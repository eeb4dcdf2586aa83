/* The figures of a parameter, on values that can be worked out by hand. */
#include "pair_maker.h"

#include <float.h>

#include "bounds/figures.h"

static struct gradcmp_parameter_report figures_of(const double *a, const double *b, size_t elems) {
    struct gradcmp_parameter_report parameter = {
        .name = "w", .in_a = true, .in_b = true, .shapes_agree = true};
    maker_count(&parameter, a, b, elems);
    gcmp_figures_fill(&parameter);
    return parameter;
}

static void test_figures__by_hand(void **state) {
    (void)state;
    const double a[] = {3, 4, 0, 0}, b[] = {6, 8, 0, 5}; /* twice a, and 5 across */
    struct gradcmp_parameter_report p = figures_of(a, b, 4);
    assert_near(p.norm_a, 5, 1e-15);
    assert_near(p.norm_b, sqrt(125.0), 1e-14);
    assert_near(p.rel, sqrt(50.0) / 5, 1e-15);
    assert_near(p.alpha, 2, 1e-15);
    assert_near(p.rho, 1, 1e-15);
    assert_near(p.cosine, 50 / (5 * sqrt(125.0)), 1e-15);
}

static void test_figures__equal_sides(void **state) {
    (void)state;
    const double a[] = {0.1, -0.7, 1e-30};
    struct gradcmp_parameter_report p = figures_of(a, a, 3);
    assert_true(p.rel == 0 && p.alpha == 1 && p.rho == 0 && p.cosine == 1);
}

static void test_figures__pure_factor_leaves_no_more_than_rounding(void **state) {
    (void)state;
    for (int step = 1; step < 400; step++) { /* D/A - (P/A)^2 is below 0 for some of them */
        double a[] = {0.1, 0.7, -0.3}, b[3];
        for (size_t i = 0; i < 3; i++) {
            b[i] = a[i] * (1 + step / 100.0);
        }
        struct gradcmp_parameter_report p = figures_of(a, b, 3);
        assert_true(p.rho >= 0 && p.rho <= 0x1p-25 * p.rel);
    }
}

static void test_figures__zero_baseline(void **state) {
    (void)state;
    const double zero[] = {0, -0.0}, b[] = {0, 1e-20};
    struct gradcmp_parameter_report p = figures_of(zero, zero, 2);
    assert_true(p.rel == 0 && isnan(p.alpha) && isnan(p.rho) && isnan(p.cosine));
    assert_true(p.norm_a == 0 && p.norm_b == 0 && gcmp_is_all_zero(&p) && !gcmp_has_alpha(&p));
    p = figures_of(zero, b, 2);
    assert_true(isinf(p.rel) && p.rel > 0 && isnan(p.alpha) && isnan(p.cosine));
    assert_false(gcmp_is_all_zero(&p));
}

static void test_figures__zero_candidate(void **state) {
    (void)state;
    const double a[] = {3, 4}, zero[] = {0, 0};
    struct gradcmp_parameter_report p = figures_of(a, zero, 2);
    assert_true(p.rel == 1 && p.alpha == 0 && p.rho == 0 && isnan(p.cosine) && p.norm_b == 0);
    assert_true(gcmp_has_alpha(&p));
}

static void test_figures__what_is_not_finite_is_left_out(void **state) {
    (void)state;
    const double a[] = {3, NAN, 4}, b[] = {3, 1, (double)INFINITY};
    struct gradcmp_parameter_report p = figures_of(a, b, 3);
    assert_true(p.rel == 0 && p.norm_a == 3 && p.norm_b == 3);
    assert_int_equal(gcmp_finite_elems(&p), 1);
    assert_false(gcmp_has_alpha(&p));
    const double nan_a[] = {NAN}, nan_b[] = {NAN};
    p = figures_of(nan_a, nan_b, 1);
    assert_true(p.rel == 0 && isnan(p.alpha) && !gcmp_is_all_zero(&p));
}

static void test_figures__no_elements(void **state) {
    (void)state;
    struct gradcmp_parameter_report p = figures_of(NULL, NULL, 0);
    assert_true(p.rel == 0 && isnan(p.alpha) && p.norm_a == 0 && gcmp_is_all_zero(&p));
}

static void test_figures__one_side_alone_has_its_norm_only(void **state) {
    (void)state;
    const double a[] = {3, 4};
    struct gradcmp_parameter_report p = {.name = "w", .in_a = true};
    maker_count(&p, a, a, 2);
    gcmp_figures_fill(&p);
    assert_true(p.norm_a == 5 && isnan(p.norm_b) && isnan(p.rel) && isnan(p.cosine));
    p.in_a = false;
    p.in_b = true;
    gcmp_figures_fill(&p);
    assert_true(isnan(p.norm_a) && p.norm_b == 5);
    p.tally = (struct gradcmp_tally){0}; /* not read at all */
    gcmp_figures_fill(&p);
    assert_true(isnan(p.norm_a) && isnan(p.norm_b));
}

static void test_figures__other_shape_has_no_figures(void **state) {
    (void)state;
    struct gradcmp_parameter_report p = {.name = "w", .in_a = true, .in_b = true};
    gcmp_figures_fill(&p);
    assert_true(isnan(p.norm_a) && isnan(p.norm_b) && isnan(p.rel) && isnan(p.alpha));
}

static void test_figures__scaled_reading_gives_true_norms(void **state) {
    (void)state;
    const double a[] = {3, 4}, b[] = {6, 8};
    struct gradcmp_parameter_report p = figures_of(a, b, 2);
    p.scale_a_log2 = p.scale_b_log2 = -700; /* values of about 2^702 */
    gcmp_figures_fill(&p);
    assert_true(p.norm_a == ldexp(5, 700) && p.norm_b == ldexp(10, 700));
    assert_true(p.rel == 1 && p.alpha == 2);
    p.scale_a_log2 = p.scale_b_log2 = 1000;
    gcmp_figures_fill(&p);
    assert_true(p.norm_a == ldexp(5, -1000));
}

static void test_figures__sums_out_of_range_pass_only_when_equal(void **state) {
    (void)state;
    const double big[] = {1e200, 1e-200}, other[] = {1e200, 2e-200};
    struct gradcmp_parameter_report p = figures_of(big, other, 2);
    assert_true(isinf(p.rel)); /* D is finite, A is not: D/A = 0 would have said "equal" */
    p = figures_of(big, big, 2);
    assert_true(p.rel == 0);
    const double small[] = {1e-200}, twice[] = {2e-200};
    p = figures_of(small, twice, 1);
    assert_true(isinf(p.rel) && !gcmp_is_all_zero(&p));
    const double one[] = {1}, huge[] = {1e200}; /* D alone overflows: alpha is not known */
    p = figures_of(one, huge, 1);
    assert_true(isinf(p.rel) && isnan(p.alpha));
}

static void test_rest__factor_one_is_the_raw_figures(void **state) {
    (void)state;
    const double a[] = {3, 4, 0}, b[] = {3.1, 4.2, 0.3};
    struct gradcmp_parameter_report p = figures_of(a, b, 3);
    struct gcmp_rest rest = gcmp_rest_of(&p, 1.0);
    assert_true(rest.rel == p.rel && rest.alpha == p.alpha && rest.rho == p.rho);
}

/* What is left must be what dividing the values leaves. */
static void check_rest(double factor, double tolerance) {
    double a[64], b[64], divided[64];
    uint32_t seed = 7;
    for (size_t i = 0; i < 64; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = (double)(int32_t)seed / 0x1p31;
        seed = seed * 1664525u + 1013904223u;
        b[i] = factor * (a[i] + 1e-3 * (double)(int32_t)seed / 0x1p31);
        divided[i] = b[i] / factor;
    }
    struct gradcmp_parameter_report raw = figures_of(a, b, 64);
    struct gradcmp_parameter_report expected = figures_of(a, divided, 64);
    struct gcmp_rest rest = gcmp_rest_of(&raw, factor);
    assert_near(rest.rel, expected.rel, tolerance);
    assert_near(rest.alpha, expected.alpha, tolerance);
    assert_near(rest.rho, expected.rho, tolerance);
    assert_near(rest.cosine, expected.cosine, tolerance);
}

static void test_rest__is_what_dividing_the_values_leaves(void **state) {
    (void)state;
    check_rest(2.0, 1e-11);
    check_rest(0.5, 1e-11);
    check_rest(0.49, 1e-11);
    check_rest(-1.0, 1e-11);
    check_rest(1000.0, 1e-11);
    check_rest(1.0 / 1024, 1e-8); /* from D alone it would be off by 1e-5 */
}

static void test_rest__without_alpha_is_raw(void **state) {
    (void)state;
    const double zero[] = {0}, b[] = {1};
    struct gradcmp_parameter_report p = figures_of(zero, b, 1);
    struct gcmp_rest rest = gcmp_rest_of(&p, 2.0);
    assert_true(isinf(rest.rel) && isnan(rest.alpha));
}

static void test_square_sum__spans_the_whole_range(void **state) {
    (void)state;
    struct gcmp_square_sum total = {0};
    assert_true(gcmp_square_root(&total) == 0);
    gcmp_square_add(&total, 9, 0);
    gcmp_square_add(&total, 16, 0);
    assert_true(gcmp_square_root(&total) == 5);
    gcmp_square_add(&total, 144, 600); /* 12 * 2^-600: vanishes beside 5 */
    assert_true(gcmp_square_root(&total) == 5);
    gcmp_square_add(&total, 0.25, -800); /* 2^799: all else vanishes */
    assert_true(gcmp_square_root(&total) == ldexp(1, 799));
    gcmp_square_add(&total, 0.75, -800);
    assert_true(gcmp_square_root(&total) == ldexp(1, 800));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures__by_hand),
        cmocka_unit_test(test_figures__equal_sides),
        cmocka_unit_test(test_figures__pure_factor_leaves_no_more_than_rounding),
        cmocka_unit_test(test_figures__zero_baseline),
        cmocka_unit_test(test_figures__zero_candidate),
        cmocka_unit_test(test_figures__what_is_not_finite_is_left_out),
        cmocka_unit_test(test_figures__no_elements),
        cmocka_unit_test(test_figures__one_side_alone_has_its_norm_only),
        cmocka_unit_test(test_figures__other_shape_has_no_figures),
        cmocka_unit_test(test_figures__scaled_reading_gives_true_norms),
        cmocka_unit_test(test_figures__sums_out_of_range_pass_only_when_equal),
        cmocka_unit_test(test_rest__factor_one_is_the_raw_figures),
        cmocka_unit_test(test_rest__is_what_dividing_the_values_leaves),
        cmocka_unit_test(test_rest__without_alpha_is_raw),
        cmocka_unit_test(test_square_sum__spans_the_whole_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
