/* The scale test: alpha's tolerance, its three terms, each from both sides. */
#include "pair_maker.h"

#include "bounds/scale.h"

/* Judge a model in which only layers.1.mlp.fc1 is set otherwise; return that parameter. */
static const struct gradcmp_parameter_report *judge_one(struct maker *maker, double waver,
                                                        double rho, struct wanted wanted) {
    maker_start(maker);
    maker_fill_model(maker, waver, rho);
    struct gradcmp_parameter_report *parameter = maker_find(maker, "layers.1.mlp.fc1");
    maker_set(parameter, wanted);
    (void)maker_judge(maker);
    maker_end(maker);
    return parameter;
}

static void test_scale__two_eps_is_the_least_tolerance(void **state) {
    (void)state;
    struct maker maker;
    const struct gradcmp_parameter_report *p =
        judge_one(&maker, 0, 0, (struct wanted){1000000, 1, 1 + 1.99 * EPS_BF16, 0.001});
    assert_near(p->alpha_tolerance, 2 * EPS_BF16, 1e-15);
    assert_int_equal(p->verdict, GRADCMP_VERDICT_PASS);
    p = judge_one(&maker, 0, 0, (struct wanted){1000000, 1, 1 + 2.01 * EPS_BF16, 0.001});
    assert_int_equal(p->verdict, GRADCMP_VERDICT_SCALE);
    assert_true(p->ratio < 1);
    p = judge_one(&maker, 0, 0, (struct wanted){1000000, 1, 1 - 2.01 * EPS_BF16, 0.001});
    assert_int_equal(p->verdict, GRADCMP_VERDICT_SCALE);
}

static void test_scale__noise_widens_the_tolerance_of_small_tensors(void **state) {
    (void)state;
    struct maker maker;
    const double tolerance = 12 * 0.015 / sqrt(64.0); /* 0.0225, over 2 eps */
    const struct gradcmp_parameter_report *p =
        judge_one(&maker, 0, 0.015, (struct wanted){64, 1, 1.0224, 0.015});
    assert_near(p->alpha_tolerance, tolerance, 1e-12);
    assert_int_equal(p->verdict, GRADCMP_VERDICT_PASS);
    p = judge_one(&maker, 0, 0.015, (struct wanted){64, 1, 1.0226, 0.015});
    assert_int_equal(p->verdict, GRADCMP_VERDICT_SCALE);
}

static void test_scale__spread_of_the_pair_widens_the_tolerance(void **state) {
    (void)state;
    /* alpha wavers by 0.008 in two of three parameters: sigma 0.0119, three of them 0.0356. */
    struct maker maker;
    const struct gradcmp_parameter_report *p =
        judge_one(&maker, 0.008, 0.01, (struct wanted){1000000, 1, 1.025, 0.01});
    assert_near(p->alpha_tolerance, 3 * 1.4826 * 0.008, 1e-12);
    assert_int_equal(p->verdict, GRADCMP_VERDICT_PASS);
    p = judge_one(&maker, 0.005, 0.01, (struct wanted){1000000, 1, 1.025, 0.01});
    assert_near(p->alpha_tolerance, 3 * 1.4826 * 0.005, 1e-12);
    assert_int_equal(p->verdict, GRADCMP_VERDICT_SCALE);
}

static void test_scale__failing_parameters_do_not_widen_the_spread(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker_fill_model(&maker, 0.0005, 0.005);
    for (size_t i = 0; i < 24;
         i++) { /* all layers but embedding and head broken, each its own way */
        if (maker.parameters[i].layer <= 3) {
            maker_scale(&maker.parameters[i], 1.2 + 0.05 * (double)i);
        }
    }
    maker_scale(maker_find(&maker, "layers.3.mlp.fc1"), 1.025);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_int_equal(maker_find(&maker, "layers.3.mlp.fc1")->verdict, GRADCMP_VERDICT_SCALE);
    assert_int_equal(maker.pair.onset_layer, 4);
    maker_end(&maker);
}

static void test_scale__few_elements_borrow_the_pairs_noise(void **state) {
    (void)state;
    /* Two elements whose difference lies along a: rho says nothing. */
    struct maker maker;
    const struct gradcmp_parameter_report *p =
        judge_one(&maker, 0, 0.012, (struct wanted){2, 1, 1.025, 1e-9});
    assert_near(p->alpha_tolerance, 12 * 0.012 / sqrt(2.0), 1e-9);
    assert_int_equal(p->verdict, GRADCMP_VERDICT_PASS);
    p = judge_one(&maker, 0, 0.012, (struct wanted){15, 1, 1.025, 1e-9});
    assert_int_equal(p->verdict, GRADCMP_VERDICT_PASS);
    p = judge_one(&maker, 0, 0.012, (struct wanted){16, 1, 1.025, 1e-9});
    assert_int_equal(p->verdict, GRADCMP_VERDICT_SCALE);
    p = judge_one(&maker, 0, 0.0, (struct wanted){2, 1, 1.025, 1e-9}); /* a pair without noise */
    assert_int_equal(p->verdict, GRADCMP_VERDICT_SCALE);
}

static void test_scale__half_of_the_pair_off_is_seen(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    char name[16];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "%c", 'a' + i);
        maker_put(&maker, name, 1, i % 2 == 0 ? 1.0 : 1.025, 0.01);
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_SCALE], 5);
    assert_true(isnan(maker.pair.common_factor));
    maker_end(&maker);
}

static void test_scale__one_parameter_alone_does_not_hide_itself(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker_put(&maker, "w", 1, 1.025, 0.005);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_int_equal(maker.parameters[0].verdict, GRADCMP_VERDICT_SCALE);
    maker_end(&maker);
}

static void test_scale__tolerance_is_nan_without_alpha(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker_fill_model(&maker, 0, 0.01);
    struct gradcmp_parameter_report *zero = maker_find(&maker, "output");
    zero->tally = (struct gradcmp_tally){.elems = 4096};
    (void)maker_judge(&maker);
    assert_true(isnan(zero->alpha_tolerance) && isnan(zero->alpha));
    maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale__two_eps_is_the_least_tolerance),
        cmocka_unit_test(test_scale__noise_widens_the_tolerance_of_small_tensors),
        cmocka_unit_test(test_scale__spread_of_the_pair_widens_the_tolerance),
        cmocka_unit_test(test_scale__failing_parameters_do_not_widen_the_spread),
        cmocka_unit_test(test_scale__few_elements_borrow_the_pairs_noise),
        cmocka_unit_test(test_scale__half_of_the_pair_off_is_seen),
        cmocka_unit_test(test_scale__one_parameter_alone_does_not_hide_itself),
        cmocka_unit_test(test_scale__tolerance_is_nan_without_alpha),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
