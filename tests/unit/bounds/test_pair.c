/* The verdict of a pair: counts, norms, outcomes. */
#include "pair_maker.h"

static void fill_good(struct maker *maker) {
    maker_start(maker);
    maker_fill_model(maker, 0.001, 0.01);
}

static void test_pair__good_is_consistent(void **state) {
    (void)state;
    struct maker maker;
    fill_good(&maker);
    struct gradcmp_parameter_report *worst = maker_find(&maker, "layers.2.mlp.norm");
    maker_set(worst, (struct wanted){4096, 1, 1, 0.02});
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_PASS], 27);
    assert_int_equal(maker.pair.compared_elems, 27 * 4096);
    assert_int_equal(maker.pair.unjudged_elems, 0);
    assert_int_equal(maker.pair.onset_layer, -1);
    assert_int_equal(maker.pair.jump_layer, -1);
    assert_true(isnan(maker.pair.common_factor));
    assert_ptr_equal(&maker.parameters[maker.pair.worst], worst);
    assert_null(maker.pair.undecided_reason);
    assert_near(maker.pair.norm_a, sqrt(27 * 4096.0), 1e-9);
    maker_end(&maker);
}

static void test_pair__judging_again_gives_the_same(void **state) {
    (void)state;
    struct maker maker;
    fill_good(&maker);
    maker_scale(maker_find(&maker, "layers.2.mlp.norm"), 1.5);
    (void)maker_judge(&maker);
    struct gradcmp_parameter_report first[MAX_PARAMETERS];
    memcpy(first, maker.parameters, sizeof first);
    size_t fails = maker.pair.verdict_counts[GRADCMP_VERDICT_FAIL];
    (void)maker_judge(&maker);
    assert_memory_equal(first, maker.parameters, sizeof first);
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_FAIL], fails);
    maker_end(&maker);
}

static void test_pair__each_finding_makes_it_inconsistent(void **state) {
    (void)state;
    for (int fault = 0; fault < 7; fault++) {
        struct maker maker;
        fill_good(&maker);
        struct gradcmp_parameter_report *p = maker_find(&maker, "layers.1.mlp.fc1");
        bool at_layer = fault >= 3;
        p->in_b = fault != 0;
        p->in_a = fault != 1;
        p->shapes_agree = fault != 2;
        p->copies_conflict = fault == 3;
        p->tally.nonfinite_any = p->tally.nonfinite_b = fault == 4 ? 1 : 0;
        maker_scale(p, fault == 5 ? 1.5 : fault == 6 ? 1.025 : 1.0);
        assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
        assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_PASS], 26);
        assert_int_equal(maker.pair.onset_layer, at_layer ? 2 : -1);
        assert_int_equal(maker.pair.jump_layer, at_layer ? 2 : -1);
        assert_int_equal(maker.pair.compared_elems, at_layer ? 27 * 4096 : 26 * 4096);
        maker_end(&maker);
    }
}

static void test_pair__worst_is_among_what_has_a_ratio(void **state) {
    (void)state;
    struct maker maker;
    fill_good(&maker);
    struct gradcmp_parameter_report *conflict = maker_find(&maker, "output");
    struct gradcmp_parameter_report *fail = maker_find(&maker, "layers.0.mlp.fc1");
    conflict->copies_conflict = true;
    maker_scale(fail, 1.2);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_ptr_equal(&maker.parameters[maker.pair.worst], fail);
    maker_scale(conflict, 100);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_ptr_equal(&maker.parameters[maker.pair.worst], conflict);
    conflict->shapes_agree = false;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_ptr_equal(&maker.parameters[maker.pair.worst], fail);
    maker_end(&maker);
}

static void test_pair__norms_are_of_all_that_is_known(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    const double a[] = {3, 0}, b[] = {3, 4}, alone[] = {12};
    maker_count(maker_add(&maker, "both", 1), a, b, 2);
    struct gradcmp_parameter_report *missing = maker_add(&maker, "missing", 1);
    missing->in_b = false;
    struct gradcmp_parameter_report *extra = maker_add(&maker, "extra", 1);
    maker_count(extra, alone, alone, 1);
    extra->in_a = false;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_true(maker.pair.norm_a == 3 && maker.pair.norm_b == 13);
    maker_end(&maker);
}

static void test_pair__nothing_in_common_is_vacuous(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_VACUOUS);
    assert_true(maker.pair.worst == SIZE_MAX);
    assert_true(maker.pair.norm_a == 0);
    maker_put(&maker, "a", 1, 1, 0)->in_a = false;
    maker_put(&maker, "b", 1, 1, 0)->in_b = false;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_VACUOUS);
    assert_string_equal(maker.pair.undecided_reason, "no parameter is on both sides");
    maker_put(&maker, "c", 1, 1, 0);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_null(maker.pair.undecided_reason);
    maker_end(&maker);
}

static void put_zeros(struct maker *maker, const char *name, uint64_t elems) {
    struct gradcmp_parameter_report *parameter = maker_add(maker, name, 1);
    parameter->tally.elems = parameter->compared_elems = elems;
}

static void test_pair__only_zeros_is_vacuous_also_when_strict(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    put_zeros(&maker, "w", 10);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_VACUOUS);
    assert_string_equal(maker.pair.undecided_reason,
                        "no parameter with a non-zero gradient was judged");
    maker.options.strict = 1;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_VACUOUS);
    maker_end(&maker);
}

static void test_pair__a_tenth_unjudged_from_both_sides(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker_set(maker_add(&maker, "v", 1), (struct wanted){900, 1, 1, 0});
    put_zeros(&maker, "w", 100);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    assert_int_equal(maker.pair.unjudged_elems, 100);
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_UNJUDGED], 1);
    put_zeros(&maker, "x", 1);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_VACUOUS);
    assert_string_equal(maker.pair.undecided_reason, "101 of 1001 elements could not be judged");
    maker_scale(&maker.parameters[0], 1.5); /* what is wrong stays wrong */
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    maker_end(&maker);
}

static void test_pair__strict_fails_what_is_unjudged(void **state) {
    (void)state;
    struct maker maker;
    fill_good(&maker);
    maker.options.strict = 1;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    put_zeros(&maker, "empty", 0); /* nothing in it to judge */
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    put_zeros(&maker, "w", 1);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    maker.options.strict = 0;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    maker_end(&maker);
}

static void test_pair__element_counts_saturate(void **state) {
    (void)state;
    struct maker maker;
    fill_good(&maker);
    for (int i = 0; i < 3; i++) {
        maker.parameters[i].compared_elems = UINT64_MAX / 2;
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    assert_true(maker.pair.compared_elems == UINT64_MAX);
    maker_end(&maker);
}

/* A float32 state whose compute type is not known, with noise of relative size `rho`. */
static enum gradcmp_outcome judge_assumed(struct maker *maker, enum gradcmp_dtype dtype,
                                          double rho) {
    maker_start(maker);
    maker->pair.bound.dtype = dtype;
    maker->pair.bound.dtype_source = GRADCMP_DTYPE_ASSUMED_STATE;
    maker_fill_model(maker, rho / 20, rho);
    return maker_judge(maker);
}

static void test_undecided__bf16_noise_under_an_assumed_float32(void **state) {
    (void)state;
    struct maker maker;
    assert_int_equal(judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 0.02), GRADCMP_OUTCOME_UNDECIDED);
    assert_non_null(strstr(maker.pair.undecided_reason, "say `--dtype bf16`"));
    assert_non_null(strstr(maker.pair.undecided_reason, "agree in bfloat16"));
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_FAIL], 27); /* as assumed */
    assert_near(maker.parameters[0].bound, 32 * pow(1.03, 4) * EPS_FP32, 1e-12);
    maker_end(&maker);
    assert_int_equal(judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 0.002),
                     GRADCMP_OUTCOME_UNDECIDED);
    assert_non_null(strstr(maker.pair.undecided_reason, "agree in TF32 or bfloat16"));
    maker_end(&maker);
}

static void test_undecided__only_when_a_coarser_type_would_pass(void **state) {
    (void)state;
    struct maker maker;
    assert_int_equal(judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 2 * EPS_FP32),
                     GRADCMP_OUTCOME_CONSISTENT);
    maker_end(&maker);
    assert_int_equal(judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 0.06), /* over bf16's too */
                     GRADCMP_OUTCOME_INCONSISTENT);
    assert_null(maker.pair.undecided_reason);
    maker_end(&maker);
}

static void test_undecided__not_when_the_type_is_known(void **state) {
    (void)state;
    for (int source = GRADCMP_DTYPE_FROM_OPTION; source <= GRADCMP_DTYPE_ASSUMED_DUMP; source++) {
        struct maker maker;
        maker_start(&maker);
        maker.pair.bound.dtype = GRADCMP_DTYPE_FLOAT32;
        maker.pair.bound.dtype_source = (enum gradcmp_dtype_source)source;
        maker_fill_model(&maker, 0.001, 0.02);
        assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
        maker_end(&maker);
    }
}

static void test_undecided__not_when_something_else_is_wrong(void **state) {
    (void)state;
    struct maker maker;
    (void)judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 0.02);
    maker_find(&maker, "output")->in_b = false;
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    maker_end(&maker);
    (void)judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 0.02);
    maker_scale(maker_find(&maker, "output"), 2);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    maker_end(&maker);
}

static void test_undecided__common_factor_of_coarse_noise(void **state) {
    (void)state;
    struct maker maker; /* 1.0005 on all: a factor in float32, nothing in bfloat16 */
    (void)judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 2 * EPS_FP32);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker_scale(&maker.parameters[i], 1.0005);
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_UNDECIDED);
    assert_near(maker.pair.common_factor, 1.0005, 1e-6);
    maker_end(&maker);
}

static void test_undecided__float64_state_of_a_float32_run(void **state) {
    (void)state;
    struct maker maker;
    assert_int_equal(judge_assumed(&maker, GRADCMP_DTYPE_FLOAT64, 3 * EPS_FP32),
                     GRADCMP_OUTCOME_UNDECIDED);
    assert_non_null(strstr(maker.pair.undecided_reason, "say `--dtype fp32`"));
    maker_end(&maker);
}

static void test_pair__no_memory_for_a_reason_is_an_error(void **state) {
    (void)state;
    struct maker maker;
    struct gradcmp_error error = {0};
    (void)judge_assumed(&maker, GRADCMP_DTYPE_FLOAT32, 0.02);
    maker_end(&maker);
    maker.arena.limit_bytes = 16;
    assert_int_equal(gcmp_judge_pair(&maker.pair, &maker.options, &maker.arena, &error),
                     GRADCMP_ERROR_MEMORY);
    assert_int_equal(error.code, GRADCMP_ERROR_MEMORY);
    maker_start(&maker);
    maker_set(maker_add(&maker, "v", 1), (struct wanted){80, 1, 1, 0});
    put_zeros(&maker, "w", 20);
    gcmp_bound_init(&maker.pair.bound, &maker.options);
    maker.arena.limit_bytes = 16;
    assert_int_equal(gcmp_judge_pair(&maker.pair, &maker.options, &maker.arena, &error),
                     GRADCMP_ERROR_MEMORY);
    maker_end(&maker);
}

static void test_pair__megatron_constant_passes_a_layer_scaled_within_it(void **state) {
    (void)state;
    for (int constant = 0; constant < 2; constant++) {
        struct maker maker;
        fill_good(&maker);
        maker.options.compat_megatron = constant;
        maker_set(maker_find(&maker, "layers.1.mlp.fc1"), (struct wanted){4096, 1, 1, 0.07});
        assert_int_equal(maker_judge(&maker),
                         constant ? GRADCMP_OUTCOME_CONSISTENT : GRADCMP_OUTCOME_INCONSISTENT);
        maker_end(&maker);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair__good_is_consistent),
        cmocka_unit_test(test_pair__judging_again_gives_the_same),
        cmocka_unit_test(test_pair__each_finding_makes_it_inconsistent),
        cmocka_unit_test(test_pair__worst_is_among_what_has_a_ratio),
        cmocka_unit_test(test_pair__norms_are_of_all_that_is_known),
        cmocka_unit_test(test_pair__nothing_in_common_is_vacuous),
        cmocka_unit_test(test_pair__only_zeros_is_vacuous_also_when_strict),
        cmocka_unit_test(test_pair__a_tenth_unjudged_from_both_sides),
        cmocka_unit_test(test_pair__strict_fails_what_is_unjudged),
        cmocka_unit_test(test_pair__element_counts_saturate),
        cmocka_unit_test(test_undecided__bf16_noise_under_an_assumed_float32),
        cmocka_unit_test(test_undecided__only_when_a_coarser_type_would_pass),
        cmocka_unit_test(test_undecided__not_when_the_type_is_known),
        cmocka_unit_test(test_undecided__not_when_something_else_is_wrong),
        cmocka_unit_test(test_undecided__common_factor_of_coarse_noise),
        cmocka_unit_test(test_undecided__float64_state_of_a_float32_run),
        cmocka_unit_test(test_pair__no_memory_for_a_reason_is_an_error),
        cmocka_unit_test(test_pair__megatron_constant_passes_a_layer_scaled_within_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
