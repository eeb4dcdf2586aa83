/* The verdicts of parameters: each rule from both sides of its edge, and their precedence. */
#include "pair_maker.h"

/* Judge a model in which layers.1.mlp.fc1 (l = 2) is what `change` makes of it. */
typedef void (*change_fn)(struct gradcmp_parameter_report *parameter);

static enum gradcmp_verdict verdict_of(change_fn change) {
    struct maker maker;
    maker_start(&maker);
    maker_fill_model(&maker, 0.001, 0.01);
    struct gradcmp_parameter_report *parameter = maker_find(&maker, "layers.1.mlp.fc1");
    change(parameter);
    (void)maker_judge(&maker);
    maker_end(&maker);
    return parameter->verdict;
}

static enum gradcmp_verdict verdict_with(const struct gradcmp_options *options,
                                         struct wanted wanted) {
    struct maker maker;
    maker_start(&maker);
    maker.options = *options;
    maker_fill_model(&maker, 0.001, 0.01);
    struct gradcmp_parameter_report *parameter = maker_find(&maker, "layers.1.mlp.fc1");
    maker_set(parameter, wanted);
    (void)maker_judge(&maker);
    maker_end(&maker);
    return parameter->verdict;
}

static const struct gradcmp_options defaults = GRADCMP_OPTIONS_INIT;

static void leave(struct gradcmp_parameter_report *parameter) {
    (void)parameter;
}

/* All faults at once, then one fewer each time: what is left decides. */
static void break_all(struct gradcmp_parameter_report *parameter) {
    maker_set(parameter, (struct wanted){4096, 1, 3, 0});
    parameter->tally.nonfinite_a = parameter->tally.nonfinite_any = 1;
    parameter->copies_conflict = true;
    parameter->shapes_agree = false;
}
static void break_shape_up(struct gradcmp_parameter_report *parameter) {
    break_all(parameter);
}
static void break_missing(struct gradcmp_parameter_report *parameter) {
    break_all(parameter);
    parameter->in_b = false;
}
static void break_extra(struct gradcmp_parameter_report *parameter) {
    break_all(parameter);
    parameter->in_a = false;
}
static void break_conflict_up(struct gradcmp_parameter_report *parameter) {
    break_all(parameter);
    parameter->shapes_agree = true;
}
static void break_nonfinite_up(struct gradcmp_parameter_report *parameter) {
    break_conflict_up(parameter);
    parameter->copies_conflict = false;
}
static void break_value(struct gradcmp_parameter_report *parameter) {
    maker_set(parameter, (struct wanted){4096, 1, 3, 0});
}

static void test_verdict__order(void **state) {
    (void)state;
    assert_int_equal(verdict_of(leave), GRADCMP_VERDICT_PASS);
    assert_int_equal(verdict_of(break_missing), GRADCMP_VERDICT_MISSING);
    assert_int_equal(verdict_of(break_extra), GRADCMP_VERDICT_EXTRA);
    assert_int_equal(verdict_of(break_shape_up), GRADCMP_VERDICT_SHAPE);
    assert_int_equal(verdict_of(break_conflict_up), GRADCMP_VERDICT_CONFLICT);
    assert_int_equal(verdict_of(break_nonfinite_up), GRADCMP_VERDICT_NONFINITE);
    assert_int_equal(verdict_of(break_value), GRADCMP_VERDICT_FAIL);
}

static void make_all_nan(struct gradcmp_parameter_report *parameter) {
    const double a[] = {NAN, NAN};
    maker_count(parameter, a, a, 2);
}
static void make_nan_beside_zeros(struct gradcmp_parameter_report *parameter) {
    const double a[] = {0, 0}, b[] = {0, NAN};
    maker_count(parameter, a, b, 2);
}

static void test_verdict__nan_on_both_sides_alike_is_nonfinite(void **state) {
    (void)state;
    assert_int_equal(verdict_of(make_all_nan), GRADCMP_VERDICT_NONFINITE);
    assert_int_equal(verdict_of(make_nan_beside_zeros), GRADCMP_VERDICT_NONFINITE);
}

static void make_zeros(struct gradcmp_parameter_report *parameter) {
    const double a[] = {0, -0.0, 0};
    maker_count(parameter, a, a, 3);
}
static void make_empty(struct gradcmp_parameter_report *parameter) {
    maker_count(parameter, NULL, NULL, 0);
}
static void make_zero_candidate(struct gradcmp_parameter_report *parameter) {
    const double a[] = {1e-30, 0}, b[] = {0, 0};
    maker_count(parameter, a, b, 2);
}
static void make_zero_baseline(struct gradcmp_parameter_report *parameter) {
    const double a[] = {0, 0}, b[] = {0, 1e-30};
    maker_count(parameter, a, b, 2);
}

static void test_verdict__zeros(void **state) {
    (void)state;
    assert_int_equal(verdict_of(make_zeros), GRADCMP_VERDICT_UNJUDGED);
    assert_int_equal(verdict_of(make_empty), GRADCMP_VERDICT_UNJUDGED);
    assert_int_equal(verdict_of(make_zero_candidate), GRADCMP_VERDICT_FAIL);
    assert_int_equal(verdict_of(make_zero_baseline), GRADCMP_VERDICT_FAIL);
}

static void test_verdict__bound_from_both_sides(void **state) {
    (void)state;
    double bound = 4 * pow(1.03, 3) * EPS_BF16; /* l = 2 of 4 */
    struct wanted at = {4096, 1, 1, bound * (1 - 1e-9)};
    assert_int_equal(verdict_with(&defaults, at), GRADCMP_VERDICT_PASS);
    at.rho = bound * (1 + 1e-9);
    assert_int_equal(verdict_with(&defaults, at), GRADCMP_VERDICT_FAIL);
}

static void test_verdict__zero_candidate_fails_whatever_the_bound(void **state) {
    (void)state;
    struct gradcmp_options loose = GRADCMP_OPTIONS_INIT;
    loose.k = 1e6;
    loose.max_bound = 1e6;
    assert_int_equal(verdict_with(&loose, (struct wanted){4096, 1, 0, 0}), GRADCMP_VERDICT_FAIL);
    loose.max_bound = (double)INFINITY;
    loose.k = (double)INFINITY;
    struct maker maker;
    maker_start(&maker);
    maker.options = loose;
    maker_fill_model(&maker, 0, 0.01);
    make_zero_baseline(&maker.parameters[3]);  /* rel = inf, inside an infinite bound */
    const double a[] = {1e200}, b[] = {2e200}; /* sums past the range: nothing is known */
    maker_count(&maker.parameters[4], a, b, 1);
    (void)maker_judge(&maker);
    assert_int_equal(maker.parameters[4].verdict, GRADCMP_VERDICT_FAIL);
    assert_int_equal(maker.parameters[3].verdict, GRADCMP_VERDICT_FAIL);
    maker_end(&maker);
}

static void test_verdict__cosine_under_09_fails_whatever_the_bound(void **state) {
    (void)state;
    struct gradcmp_options loose = GRADCMP_OPTIONS_INIT;
    loose.k = 1e6;
    loose.max_bound = 1e6;
    double rho = sqrt(1 / (0.9 * 0.9) - 1); /* alpha 1: cos = 1 / sqrt(1 + rho^2) */
    assert_int_equal(verdict_with(&loose, (struct wanted){4096, 1, 1, rho * 0.999}),
                     GRADCMP_VERDICT_PASS);
    assert_int_equal(verdict_with(&loose, (struct wanted){4096, 1, 1, rho * 1.001}),
                     GRADCMP_VERDICT_FAIL);
}

/* A layer in float32 whose other gradients are of size 1, and one small parameter in it. */
static struct gradcmp_parameter_report judge_small_in(enum gradcmp_dtype dtype,
                                                      struct wanted wanted) {
    struct maker maker;
    maker_start(&maker);
    maker.pair.bound.dtype = dtype;
    maker_fill_model(&maker, 0, 2 * EPS_FP32);
    struct gradcmp_parameter_report *parameter = maker_add(&maker, "layers.3.gate", LAYERS);
    maker_set(parameter, wanted);
    (void)maker_judge(&maker);
    maker_end(&maker);
    return *parameter;
}

static struct gradcmp_parameter_report judge_small(struct wanted wanted) {
    return judge_small_in(GRADCMP_DTYPE_FLOAT32, wanted);
}

static void test_unjudged__error_of_the_size_of_the_layers_rounding(void **state) {
    (void)state;
    /* The error may reach 32/4 eps C of the layer's root mean square, which is 1. */
    double edge = 8 * 1.03 * EPS_FP32;
    struct wanted small = {24, 1e-4, 1, 0.998 * edge / 1e-4};
    struct gradcmp_parameter_report p = judge_small(small);
    assert_true(p.ratio > 1);
    assert_int_equal(p.verdict, GRADCMP_VERDICT_UNJUDGED);
    small.rho = 1.002 * edge / 1e-4; /* the small parameter's own part of the layer is 1e-8 */
    assert_int_equal(judge_small(small).verdict, GRADCMP_VERDICT_FAIL);
}

static void test_unjudged__not_from_a_quarter_on(void **state) {
    (void)state;
    struct wanted small = {24, 1.2e-6, 1, 0.249};
    assert_int_equal(judge_small(small).verdict, GRADCMP_VERDICT_UNJUDGED);
    small.rho = 0.251;
    assert_int_equal(judge_small(small).verdict, GRADCMP_VERDICT_FAIL);
}

/* Noise on both sides: two draws that have nothing in common. */
static void test_unjudged__rounding_alone_whatever_it_looks_like(void **state) {
    (void)state;
    struct wanted noise = {24, 0.6 * EPS_FP32, 0.1, 1.1};
    assert_int_equal(judge_small(noise).verdict, GRADCMP_VERDICT_UNJUDGED);
    noise.rms = 1.8 * EPS_FP32; /* of the candidate: 1.1045 times that */
    assert_int_equal(judge_small(noise).verdict, GRADCMP_VERDICT_UNJUDGED);
    noise.rms = 1.83 * EPS_FP32;
    assert_int_equal(judge_small(noise).verdict, GRADCMP_VERDICT_FAIL);
    struct wanted lost = {24, 0.4 * EPS_FP32, 0.1, 0.5};
    assert_int_equal(judge_small(lost).verdict, GRADCMP_VERDICT_UNJUDGED);
    lost.rho = 0.48; /* under half of the baseline */
    assert_int_equal(judge_small(lost).verdict, GRADCMP_VERDICT_FAIL);
    struct wanted part = {24, 0.4 * EPS_FP32, 1.5, 0.26};
    assert_int_equal(judge_small(part).verdict, GRADCMP_VERDICT_UNJUDGED);
    part.rho = 0.24; /* mostly a factor */
    assert_int_equal(judge_small(part).verdict, GRADCMP_VERDICT_FAIL);
    struct wanted larger = {24, 0.4 * EPS_FP32, 0.0, 1.99};
    assert_int_equal(judge_small(larger).verdict, GRADCMP_VERDICT_UNJUDGED);
    larger.rho = 2.01;
    assert_int_equal(judge_small(larger).verdict, GRADCMP_VERDICT_FAIL);
    struct wanted turned = {24, 0.4 * EPS_FP32, -1.0, 0};
    assert_int_equal(judge_small(turned).verdict, GRADCMP_VERDICT_FAIL);
    struct wanted gone = {24, 0.4 * EPS_FP32, 0.0, 0};
    assert_int_equal(judge_small(gone).verdict, GRADCMP_VERDICT_FAIL);
}

static void test_unjudged__not_when_a_factor_fits(void **state) {
    (void)state;
    double bound = 32 * 1.03 * EPS_FP32;
    struct wanted scaled = {24, 1e-8, 1.1, 1.1 * bound * 0.99};
    assert_int_equal(judge_small(scaled).verdict, GRADCMP_VERDICT_FAIL);
    scaled.rho = 1.1 * bound * 1.01;
    assert_int_equal(judge_small(scaled).verdict, GRADCMP_VERDICT_UNJUDGED);
}

/* True gradients are as small as rounding of bfloat16 is. */
static void test_unjudged__not_by_the_rounding_of_narrow_types(void **state) {
    (void)state;
    struct wanted small = {24, 1.9 * EPS_FP32, 0.0, 0.8};
    assert_int_equal(judge_small_in(GRADCMP_DTYPE_BFLOAT16, small).verdict,
                     GRADCMP_VERDICT_UNJUDGED);
    small.rms = 2.1 * EPS_FP32;
    assert_int_equal(judge_small_in(GRADCMP_DTYPE_BFLOAT16, small).verdict, GRADCMP_VERDICT_FAIL);
    small = (struct wanted){24, 1.9 * EPS_FP32, 0.0, 2.5}; /* another size */
    assert_int_equal(judge_small_in(GRADCMP_DTYPE_BFLOAT16, small).verdict, GRADCMP_VERDICT_FAIL);
}

static void test_unjudged__few_elements_cannot_tell_a_factor(void **state) {
    (void)state;
    struct wanted scaled = {15, 1e-8, 1.1, 0};
    assert_int_equal(judge_small(scaled).verdict, GRADCMP_VERDICT_UNJUDGED);
    scaled.elems = 16;
    assert_int_equal(judge_small(scaled).verdict, GRADCMP_VERDICT_FAIL);
}

static void test_unjudged__sign_zero_and_double_of_small_ones_fail(void **state) {
    (void)state;
    static const double alphas[] = {-1, 0, 2, 0.5};
    for (size_t i = 0; i < 4; i++) {
        struct wanted wrong = {24, 1e-8, alphas[i], 0.1};
        assert_int_equal(judge_small(wrong).verdict, GRADCMP_VERDICT_FAIL);
        wrong.elems = 2;
        assert_int_equal(judge_small(wrong).verdict, GRADCMP_VERDICT_FAIL);
    }
}

static void test_unjudged__inside_the_bound_is_judged(void **state) {
    (void)state;
    struct wanted small = {24, 1e-8, 1, 10 * EPS_FP32};
    assert_int_equal(judge_small(small).verdict, GRADCMP_VERDICT_PASS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict__order),
        cmocka_unit_test(test_verdict__nan_on_both_sides_alike_is_nonfinite),
        cmocka_unit_test(test_verdict__zeros),
        cmocka_unit_test(test_verdict__bound_from_both_sides),
        cmocka_unit_test(test_verdict__zero_candidate_fails_whatever_the_bound),
        cmocka_unit_test(test_verdict__cosine_under_09_fails_whatever_the_bound),
        cmocka_unit_test(test_unjudged__error_of_the_size_of_the_layers_rounding),
        cmocka_unit_test(test_unjudged__not_from_a_quarter_on),
        cmocka_unit_test(test_unjudged__rounding_alone_whatever_it_looks_like),
        cmocka_unit_test(test_unjudged__not_by_the_rounding_of_narrow_types),
        cmocka_unit_test(test_unjudged__not_when_a_factor_fits),
        cmocka_unit_test(test_unjudged__few_elements_cannot_tell_a_factor),
        cmocka_unit_test(test_unjudged__sign_zero_and_double_of_small_ones_fail),
        cmocka_unit_test(test_unjudged__inside_the_bound_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
