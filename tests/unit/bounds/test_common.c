/* The common factor: when it is claimed, when not, and what is judged then. */
#include "pair_maker.h"

static void fill_scaled(struct maker *maker, double factor) {
    maker_start(maker);
    maker_fill_model(maker, 0.001, 0.01);
    for (size_t i = 0; i < maker->pair.parameter_count; i++) {
        maker_scale(&maker->parameters[i], factor);
    }
}

static void check_claimed(double factor, double tolerance) {
    struct maker maker;
    fill_scaled(&maker, factor);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_near(maker.pair.common_factor, factor, tolerance);
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_PASS], maker.pair.parameter_count);
    assert_int_equal(maker.pair.onset_layer, -1);
    assert_int_equal(maker.pair.jump_layer, -1);
    const struct gradcmp_parameter_report *p = maker_find(&maker, "output");
    assert_near(p->alpha, factor, 1e-12 + 0.002 * fabs(factor)); /* raw, as is rel */
    assert_near(p->rel, hypot(factor - 1, 0.01 * factor), 1e-9);
    assert_near(p->rel_common, 0.01, 0.002);
    assert_near(p->ratio, p->rel_common / p->bound, 1e-12);
    maker_end(&maker);
}

static void test_common__factor_on_all_is_claimed_and_divided_out(void **state) {
    (void)state;
    check_claimed(2.0, 0.01);
    check_claimed(0.5, 0.01);
    check_claimed(1.0 / 1024, 0.01);
    check_claimed(65536.0, 500);
    check_claimed(-1.0, 0.01);
    check_claimed(1.15, 0.01);
}

static void test_common__small_factor_on_all_is_claimed_beyond_its_tolerance(void **state) {
    (void)state;
    check_claimed(1.01, 1e-3);
    check_claimed(1.005, 1e-3);
    check_claimed(0.995, 1e-3);
    struct maker maker;
    fill_scaled(&maker, 1.003); /* under 0.4 eps = 0.0031 */
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_CONSISTENT);
    assert_true(isnan(maker.pair.common_factor));
    assert_true(isnan(maker.parameters[0].rel_common));
    maker_end(&maker);
}

static void test_common__spread_of_alpha_widens_its_tolerance(void **state) {
    (void)state;
    /* sigma 0.0119, 9 kinds, effective votes 11.2: tolerance 0.0284 */
    struct maker maker;
    for (int wide = 0; wide < 2; wide++) {
        maker_start(&maker);
        maker_fill_model(&maker, wide ? 0.008 : 0.001, 0.01);
        for (size_t i = 0; i < maker.pair.parameter_count; i++) {
            maker_scale(&maker.parameters[i], 1.006);
        }
        assert_int_equal(maker_judge(&maker),
                         wide ? GRADCMP_OUTCOME_CONSISTENT : GRADCMP_OUTCOME_INCONSISTENT);
        assert_true(isnan(maker.pair.common_factor) == wide);
        maker_end(&maker);
    }
}

static void test_common__float32_sees_a_factor_of_1e5(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker.pair.bound.dtype = GRADCMP_DTYPE_FLOAT32;
    maker_fill_model(&maker, 0.5 * EPS_FP32, 3 * EPS_FP32);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker_scale(&maker.parameters[i], 1 + 1e-5);
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_near(maker.pair.common_factor, 1 + 1e-5, 1e-7);
    maker_end(&maker);
}

/* One layer doubled, then everything clipped by what that makes of the norm. */
static void test_common__clipping_leaves_a_doubled_layer_its_onset(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker_fill_model(&maker, 0.001, 0.01);
    double squares = 0, doubled = 0;
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        struct gradcmp_parameter_report *p = &maker.parameters[i];
        squares += p->tally.a2;
        doubled += p->layer == 2 ? 4 * p->tally.a2 : p->tally.a2;
    }
    double clip = sqrt(squares / doubled);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        struct gradcmp_parameter_report *p = &maker.parameters[i];
        maker_scale(p, p->layer == 2 ? 2 * clip : clip);
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_near(maker.pair.common_factor, clip, 0.005);
    assert_int_equal(maker.pair.onset_layer, 2);
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_FAIL], 6);
    const struct gradcmp_parameter_report *p = maker_find(&maker, "layers.1.mlp.fc1");
    assert_near(p->rel_common, 1.0, 0.03);
    maker_end(&maker);
}

/* Nearly all parameters are experts; a factor on them alone is theirs. */
static void test_common__factor_on_the_experts_alone_is_not_common(void **state) {
    (void)state;
    static const double factors[] = {1.02, 2.0, 0.25};
    for (size_t f = 0; f < 3; f++) {
        struct maker maker;
        char name[64];
        maker_start(&maker);
        for (int expert = 0; expert < 64; expert++) {
            snprintf(name, sizeof name, "layers.%d.experts.%d.fc", expert % 4, expert);
            maker_scale(maker_put(&maker, name, expert % 4 + 1, 1, 0.01), factors[f]);
        }
        maker_put(&maker, "embedding", 0, 1, 0.01);
        maker_put(&maker, "layers.0.qkv", 1, 1, 0.01);
        maker_put(&maker, "output", LAYERS + 1, 1, 0.01);
        assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
        assert_true(isnan(maker.pair.common_factor));
        assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_PASS], 3);
        assert_int_equal(maker.pair.onset_layer, 4);
        maker_end(&maker);
    }
}

/* What agrees is right: a factor on all below the head has an onset. */
static void test_common__factor_below_the_head_is_not_common(void **state) {
    (void)state;
    struct maker maker;
    fill_scaled(&maker, 1.0);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        if (maker.parameters[i].layer <= LAYERS) {
            maker_scale(&maker.parameters[i], 2.0);
        }
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_true(isnan(maker.pair.common_factor));
    assert_int_equal(maker.pair.onset_layer, LAYERS);
    assert_int_equal(maker_find(&maker, "output")->verdict, GRADCMP_VERDICT_PASS);
    maker_end(&maker);
}

/* One vote in twenty may be against: one parameter of one layer that happens to agree. */
static void test_common__one_that_agrees_does_not_stop_the_claim(void **state) {
    (void)state;
    struct maker maker;
    fill_scaled(&maker, 2.0);
    maker_scale(maker_find(&maker, "layers.2.mlp.fc2"), 0.5); /* 1/4 vote of 9 */
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_near(maker.pair.common_factor, 2.0, 0.01);
    assert_int_equal(maker.pair.onset_layer, 3);
    maker_scale(maker_find(&maker, "layers.1.mlp.fc2"), 0.5); /* 1/2 vote */
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_true(isnan(maker.pair.common_factor));
    maker_end(&maker);
}

static void test_common__needs_half_of_the_parameters(void **state) {
    (void)state;
    /* Distinct kinds; half (then fewer) doubled, the others off in ways of their own. */
    for (int doubled = 5; doubled >= 4; doubled--) {
        struct maker maker;
        char name[16];
        maker_start(&maker);
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof name, "%c", 'a' + i);
            double other = i % 2 ? 3.0 + i : 1.2 + 0.05 * i;
            maker_put(&maker, name, 1, i < doubled ? 2.0 : other, 0.01);
        }
        assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
        assert_true(isnan(maker.pair.common_factor) == (doubled < 5));
        maker_end(&maker);
    }
}

static void test_common__needs_half_of_the_parameters_and_of_the_votes(void **state) {
    (void)state;
    /* Ten layers of one kind and three kinds of their own: the ones doubled, the others too but
     * for a residual as large as they are. */
    for (int layers_doubled = 0; layers_doubled < 2; layers_doubled++) {
        struct maker maker;
        char name[16];
        maker_start(&maker);
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof name, "layers.%d", i);
            maker_put(&maker, name, 1, 2.0, layers_doubled ? 0.01 : 2.0);
        }
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "%c", 'a' + i);
            maker_put(&maker, name, 1, 2.0, layers_doubled ? 2.0 : 0.01);
        }
        assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
        assert_true(isnan(maker.pair.common_factor));
        maker_end(&maker);
    }
}

static void test_common__one_parameter_has_nothing_in_common(void **state) {
    (void)state;
    struct maker maker;
    maker_start(&maker);
    maker_put(&maker, "a", 1, 2.0, 0.01);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_true(isnan(maker.pair.common_factor));
    assert_int_equal(maker.pair.onset_layer, 1);
    maker_put(&maker, "b", 2, 2.0, 0.01);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_near(maker.pair.common_factor, 2.0, 1e-9);
    maker_end(&maker);
}

static void test_common__zero_is_no_factor(void **state) {
    (void)state;
    struct maker maker;
    fill_scaled(&maker, 0.0);
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_true(isnan(maker.pair.common_factor));
    assert_int_equal(maker.pair.verdict_counts[GRADCMP_VERDICT_FAIL], maker.pair.parameter_count);
    maker_end(&maker);
}

static void test_common__unlike_gradients_have_none(void **state) {
    (void)state;
    struct maker maker; /* another data set: alpha 0.3, residual 0.9 */
    maker_start(&maker);
    maker_fill_model(&maker, 0.001, 0.9);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker_set(&maker.parameters[i], (struct wanted){4096, 1, 0.3, 0.9});
    }
    assert_int_equal(maker_judge(&maker), GRADCMP_OUTCOME_INCONSISTENT);
    assert_true(isnan(maker.pair.common_factor));
    maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_common__factor_on_all_is_claimed_and_divided_out),
        cmocka_unit_test(test_common__small_factor_on_all_is_claimed_beyond_its_tolerance),
        cmocka_unit_test(test_common__spread_of_alpha_widens_its_tolerance),
        cmocka_unit_test(test_common__float32_sees_a_factor_of_1e5),
        cmocka_unit_test(test_common__clipping_leaves_a_doubled_layer_its_onset),
        cmocka_unit_test(test_common__factor_on_the_experts_alone_is_not_common),
        cmocka_unit_test(test_common__factor_below_the_head_is_not_common),
        cmocka_unit_test(test_common__one_that_agrees_does_not_stop_the_claim),
        cmocka_unit_test(test_common__needs_half_of_the_parameters),
        cmocka_unit_test(test_common__needs_half_of_the_parameters_and_of_the_votes),
        cmocka_unit_test(test_common__one_parameter_has_nothing_in_common),
        cmocka_unit_test(test_common__zero_is_no_factor),
        cmocka_unit_test(test_common__unlike_gradients_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
