/* Layers: onset, jump, and the size of a layer's gradients. */
#include "pair_maker.h"

#include "bounds/figures.h"
#include "bounds/layer.h"

/* A pair with one parameter a layer, of the given verdict and ratio. */
static void put_judged(struct maker *maker, int64_t layer, enum gradcmp_verdict verdict,
                       double ratio) {
    struct gradcmp_parameter_report *parameter = maker_put(maker, "w", layer, 1, 0);
    parameter->verdict = verdict;
    parameter->ratio = ratio;
    parameter->alpha = 1.03;
    parameter->alpha_tolerance = 0.015;
}

static int64_t jump_of(struct maker *maker) {
    struct gradcmp_error error = {0};
    int64_t layer = -2;
    maker->pair.common_factor = NAN;
    assert_int_equal(gcmp_layer_jump(&maker->pair, &layer, &maker->arena, &error), GRADCMP_OK);
    return layer;
}

static void test_onset__highest_layer_of_what_is_wrong(void **state) {
    (void)state;
    static const enum gradcmp_verdict counting[] = {GRADCMP_VERDICT_FAIL, GRADCMP_VERDICT_SCALE,
                                                    GRADCMP_VERDICT_NONFINITE,
                                                    GRADCMP_VERDICT_CONFLICT};
    for (size_t i = 0; i < 4; i++) {
        struct maker maker;
        maker_start(&maker);
        put_judged(&maker, 1, GRADCMP_VERDICT_FAIL, 9);
        put_judged(&maker, 3, counting[i], 2);
        put_judged(&maker, 4, GRADCMP_VERDICT_UNJUDGED, 50);
        put_judged(&maker, 5, GRADCMP_VERDICT_MISSING, NAN);
        put_judged(&maker, 5, GRADCMP_VERDICT_SHAPE, NAN);
        put_judged(&maker, 5, GRADCMP_VERDICT_EXTRA, NAN);
        put_judged(&maker, 5, GRADCMP_VERDICT_PASS, 0.99);
        assert_int_equal(gcmp_layer_onset(maker.parameters, maker.pair.parameter_count), 3);
        maker_end(&maker);
    }
}

static void test_onset__none(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    assert_int_equal(gcmp_layer_onset(maker.parameters, 0), -1);
    put_judged(&maker, 0, GRADCMP_VERDICT_PASS, 0.5);
    assert_int_equal(gcmp_layer_onset(maker.parameters, 1), -1);
    assert_int_equal(jump_of(&maker), -1);
    put_judged(&maker, 0, GRADCMP_VERDICT_FAIL, 2);
    assert_int_equal(gcmp_layer_onset(maker.parameters, 2), 0);
    assert_int_equal(jump_of(&maker), 0);
    maker_end(&maker);
}

/* An error of the forward pass: a little over the bound above the fault, far over it at the fault.
 */
static void test_jump__is_below_the_onset_where_the_fault_is(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    put_judged(&maker, 2, GRADCMP_VERDICT_FAIL, 1.4);
    put_judged(&maker, 4, GRADCMP_VERDICT_FAIL, 2.9);
    put_judged(&maker, 4, GRADCMP_VERDICT_FAIL, 1.1);
    put_judged(&maker, 8, GRADCMP_VERDICT_FAIL, 1.5);
    put_judged(&maker, 9, GRADCMP_VERDICT_PASS, 0.001); /* noise: 0.001 to 1.5 is no jump of 1500 */
    assert_int_equal(gcmp_layer_onset(maker.parameters, maker.pair.parameter_count), 8);
    assert_int_equal(jump_of(&maker), 4);
    maker_end(&maker);
}

static void test_jump__against_the_next_layer_that_there_is(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    put_judged(&maker, INT64_MAX, GRADCMP_VERDICT_FAIL, 10);
    put_judged(&maker, 7, GRADCMP_VERDICT_FAIL, 90);
    put_judged(&maker, -5, GRADCMP_VERDICT_FAIL, 100);
    assert_int_equal(jump_of(&maker), INT64_MAX); /* 10 against 1, then 9, then 1.1 */
    put_judged(&maker, INT64_MAX, GRADCMP_VERDICT_PASS, 0.1);
    maker.parameters[1].ratio = 110;
    assert_int_equal(jump_of(&maker), 7);
    maker_end(&maker);
}

static void test_jump__scale_counts_by_its_tolerance(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    put_judged(&maker, 3, GRADCMP_VERDICT_SCALE, 0.8); /* 0.03 against 0.015 */
    put_judged(&maker, 1, GRADCMP_VERDICT_FAIL, 3.9);
    assert_int_equal(jump_of(&maker), 3);
    maker.parameters[1].ratio = 4.1;
    assert_int_equal(jump_of(&maker), 1);
    maker_end(&maker);
}

static void test_jump__scale_is_what_the_common_factor_leaves(void **state) {
    (void)state;
    struct maker maker;
    struct gradcmp_error error = {0};
    int64_t layer;
    maker_start(&maker);
    put_judged(&maker, 3, GRADCMP_VERDICT_SCALE, 0.8);
    maker.parameters[0].alpha = 2.06; /* 0.03 off 2 */
    put_judged(&maker, 1, GRADCMP_VERDICT_FAIL, 4.1);
    maker.pair.common_factor = 2.0;
    assert_int_equal(gcmp_layer_jump(&maker.pair, &layer, &maker.arena, &error), GRADCMP_OK);
    assert_int_equal(layer, 1);
    maker_end(&maker);
}

static void test_jump__a_fail_inside_a_wide_bound_has_no_end(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    put_judged(&maker, 3, GRADCMP_VERDICT_FAIL, 0.5); /* all zero, say */
    put_judged(&maker, 1, GRADCMP_VERDICT_FAIL, 1e9);
    assert_int_equal(jump_of(&maker), 3);
    maker_end(&maker);
}

static void test_jump__nonfinite_and_conflict_have_no_end(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    put_judged(&maker, 4, GRADCMP_VERDICT_FAIL, 1e9);
    put_judged(&maker, 2, GRADCMP_VERDICT_NONFINITE, 0.1);
    put_judged(&maker, 1, GRADCMP_VERDICT_CONFLICT, 0.1);
    put_judged(&maker, 0, GRADCMP_VERDICT_FAIL, 5);
    assert_int_equal(jump_of(&maker), 2);
    maker_end(&maker);
}

static void test_rms__is_of_the_layers_baseline(void **state) {
    (void)state;
    struct maker maker;
    struct gradcmp_error error = {0};
    double rms[6];
    maker_start(&maker);
    maker_set(maker_add(&maker, "a", 1), (struct wanted){300, 2, 1, 0});
    maker_set(maker_add(&maker, "b", 1), (struct wanted){100, 0, 1, 0});
    maker_set(maker_add(&maker, "c", 2), (struct wanted){10, 5, 3, 1});
    maker_set(maker_add(&maker, "d", 1), (struct wanted){1000, 9, 1, 0});
    maker.parameters[3].in_b = false; /* not compared, not counted */
    maker_add(&maker, "e", 3);        /* no elements */
    maker_set(maker_add(&maker, "f", 1000), (struct wanted){4, 1, 1, 0});
    maker.parameters[5].scale_a_log2 = -900;
    assert_int_equal(gcmp_layer_rms(maker.parameters, 6, rms, &maker.arena, &error), GRADCMP_OK);
    assert_near(rms[0], sqrt(300 * 4 / 400.0), 1e-12);
    assert_true(rms[1] == rms[0] && rms[3] == rms[0]);
    assert_near(rms[2], 5, 1e-12);
    assert_true(isnan(rms[4]));
    assert_true(rms[5] == ldexp(1, 900));
    maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onset__highest_layer_of_what_is_wrong),
        cmocka_unit_test(test_onset__none),
        cmocka_unit_test(test_jump__is_below_the_onset_where_the_fault_is),
        cmocka_unit_test(test_jump__against_the_next_layer_that_there_is),
        cmocka_unit_test(test_jump__scale_counts_by_its_tolerance),
        cmocka_unit_test(test_jump__scale_is_what_the_common_factor_leaves),
        cmocka_unit_test(test_jump__a_fail_inside_a_wide_bound_has_no_end),
        cmocka_unit_test(test_jump__nonfinite_and_conflict_have_no_end),
        cmocka_unit_test(test_rms__is_of_the_layers_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
