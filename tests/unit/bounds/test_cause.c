/* What a parameter's own sums show, the rule of a claim, shards and copies. */
#include "bounds/cause.h"

#include "bounds/cause_shards.h"
#include "pair_maker.h"

static struct maker maker;
static const struct gcmp_cause_noise no_noise = {1.0, NAN, EPS_BF16, EPS_BF16};

/* The cause of one parameter in a model that is right but for it. */
static struct gradcmp_cause derive(struct gradcmp_parameter_report *parameter) {
    struct gradcmp_cause cause;
    struct gradcmp_error error = {0};
    maker_judge(&maker);
    assert_int_equal(gcmp_cause_derive(parameter, &no_noise, &maker.arena, &cause, &error),
                     GRADCMP_OK);
    return cause;
}

static struct gradcmp_parameter_report *start(double alpha, double rho) {
    maker_start(&maker);
    maker_fill_model(&maker, 0.002, 0.01);
    struct gradcmp_parameter_report *parameter = maker_find(&maker, "layers.1.mlp.fc1");
    maker_set(parameter, (struct wanted){4096, 1.0, alpha, rho});
    return parameter;
}

static void expect_scale(double alpha, double rho, const char *kind, double factor) {
    struct gradcmp_cause cause = derive(start(alpha, rho));
    if (kind == NULL) {
        assert_null(cause.kind);
    } else {
        assert_non_null(cause.kind);
        assert_string_equal(cause.kind, kind);
        assert_near(cause.factor, factor, 1e-12);
        assert_true(cause.residual < 0.04);
    }
    maker_end(&maker);
}

static void test_derive__factors(void **state) {
    (void)state;
    expect_scale(2.003, 0.02, "scale", 2.0);
    expect_scale(0.4995, 0.005, "scale", 0.5);
    expect_scale(0.3331, 0.005, "scale", 1.0 / 3.0);
    expect_scale(-1.002, 0.01, "sign", -1.0);
    expect_scale(-2.0, 0.02, "scale", -2.0);
    expect_scale(1.15, 0.015, "scale", 1.15);
    expect_scale(1.02, 0.005, "scale", 1.02); /* inside the bound: verdict scale */
}

static void test_derive__no_factor_where_noise_is_left(void **state) {
    (void)state;
    expect_scale(2.0, 0.2, NULL, 0.0);    /* what it leaves is outside the bound */
    expect_scale(1.03, 0.031, NULL, 0.0); /* it leaves most of what there was */
    expect_scale(0.05, 1.0, NULL, 0.0);
    expect_scale(1.001, 0.01, NULL, 0.0); /* passes */
}

/* What is added to a gradient changes alpha and leaves more than the others' noise. */
static void test_derive__something_added_is_no_factor(void **state) {
    (void)state;
    for (int added = 0; added < 2; added++) {
        struct gcmp_sample samples[MAX_PARAMETERS];
        struct gradcmp_cause cause;
        struct gradcmp_error error = {0};
        maker_start(&maker);
        maker_fill_model(&maker, 0.002, 0.005);
        struct gradcmp_parameter_report *parameter = maker_find(&maker, "layers.1.mlp.fc1");
        maker_set(parameter, (struct wanted){4096, 1.0, 1.02, added ? 0.024 : 0.005});
        parameter->tally.elems = 1 << 20; /* alpha is known well enough for verdict scale */
        maker_judge(&maker);
        assert_int_equal(parameter->verdict, GRADCMP_VERDICT_SCALE);
        struct gcmp_cause_noise noise = gcmp_cause_noise_of(&maker.pair, samples);
        assert_true(noise.rho > 0.004 && noise.rho < 0.006);
        assert_int_equal(gcmp_cause_derive(parameter, &noise, &maker.arena, &cause, &error),
                         GRADCMP_OK);
        assert_true(added ? cause.kind == NULL : cause.kind != NULL);
        maker_end(&maker);
    }
}

static void test_derive__a_factor_beside_the_common_one(void **state) {
    (void)state;
    maker_start(&maker);
    maker_fill_model(&maker, 0.002, 0.01);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker_set(&maker.parameters[i], (struct wanted){4096, 1.0, 0.9, 0.004});
    }
    struct gradcmp_parameter_report *parameter = maker_find(&maker, "layers.1.mlp.fc1");
    maker_set(parameter, (struct wanted){4096, 1.0, 1.8, 0.008});
    maker_judge(&maker);
    const struct gcmp_cause_noise noise = {maker.pair.common_factor, NAN, EPS_BF16, EPS_BF16};
    struct gradcmp_cause cause;
    struct gradcmp_error error = {0};
    assert_near(noise.common, 0.9, 1e-6);
    assert_int_equal(gcmp_cause_derive(parameter, &noise, &maker.arena, &cause, &error),
                     GRADCMP_OK);
    assert_near(cause.factor, 2.0, 1e-12);
    assert_string_equal(cause.text, "twice the baseline, beside the common factor");
    maker_end(&maker);
}

static void test_derive__few_elements_prove_no_factor(void **state) {
    (void)state;
    struct gradcmp_parameter_report *parameter = start(1.0, 0.0);
    maker_set(parameter, (struct wanted){8, 1.0, 2.0, 0.001});
    assert_null(derive(parameter).kind);
    maker_end(&maker);
}

static void test_derive__zero_on_one_side(void **state) {
    (void)state;
    struct gradcmp_cause cause = derive(start(0.0, 0.0));
    assert_string_equal(cause.kind, "zero");
    assert_string_equal(cause.text, "all zero in the candidate alone");
    assert_true(cause.residual == 0.0);
    maker_end(&maker);
}

static void test_derive__nonfinite(void **state) {
    (void)state;
    struct gradcmp_parameter_report *parameter = start(1.0, 0.01);
    parameter->tally.nonfinite_b = parameter->tally.nonfinite_any = 3;
    struct gradcmp_cause cause = derive(parameter);
    assert_string_equal(cause.kind, "nonfinite");
    assert_non_null(strstr(cause.text, "in 3 of 4096 elements of the candidate"));
    maker_end(&maker);
}

static void test_derive__cast(void **state) {
    (void)state;
    struct gradcmp_parameter_report *parameter = start(1.0, 0.05);
    parameter->dtype_a = GRADCMP_DTYPE_FLOAT32;
    parameter->dtype_b = GRADCMP_DTYPE_BFLOAT16;
    parameter->tally.equal_bits = parameter->tally.elems;
    struct gradcmp_cause cause = derive(parameter);
    assert_string_equal(cause.kind, "cast");
    assert_string_equal(cause.text, "the candidate is the other side rounded to bfloat16");
    parameter->tally.equal_bits--;
    cause = derive(parameter);
    assert_null(cause.kind);
    maker_end(&maker);
}

static void test_holds__both_edges(void **state) {
    (void)state;
    assert_true(gcmp_cause_holds(0.03, 0.03, 1.0));
    assert_false(gcmp_cause_holds(0.031, 0.03, 1.0));
    assert_false(gcmp_cause_holds(0.025, 0.03, 0.1));
    assert_true(gcmp_cause_holds(0.024, 0.03, 0.1));
    assert_false(gcmp_cause_holds(NAN, 0.03, 1.0));
}

static void test_snap__only_what_is_near(void **state) {
    (void)state;
    assert_true(gcmp_cause_snap(1.99, 0.01) == 2.0);
    assert_true(gcmp_cause_snap(1.99, 0.001) == 1.99);
    assert_true(gcmp_cause_snap(-0.3331, 0.01) == -1.0 / 3.0);
    assert_true(gcmp_cause_snap(1.005, 0.01) == 1.005); /* never to 1: that explains nothing */
    assert_true(gcmp_cause_snap(1.4, 0.1) == 1.3333333333333333);
}

static void test_names__there_and_back(void **state) {
    (void)state;
    for (int kind = GCMP_CAUSE_COMMON_SCALE; kind <= GCMP_CAUSE_UNEXPLAINED; kind++) {
        assert_int_equal(gcmp_cause_find(gcmp_cause_name((enum gcmp_cause_kind)kind)), kind);
    }
    assert_int_equal(gcmp_cause_find(NULL), GCMP_CAUSE_NONE);
    assert_int_equal(gcmp_cause_find("weather"), GCMP_CAUSE_NONE);
}

/* A shard of 100 elements of size 1 with that relative difference. */
static struct gradcmp_tally shard(double rel) {
    return (struct gradcmp_tally){.d2 = 100.0 * rel * rel,
                                  .a2 = 100.0,
                                  .b2 = 100.0 * (1.0 + rel * rel),
                                  .max_a = 1.0,
                                  .max_b = 1.0,
                                  .max_d = rel,
                                  .elems = 100};
}

static void test_one_shard__one_writer_is_to_blame(void **state) {
    (void)state;
    struct gradcmp_tally tallies[] = {shard(0.01), shard(1.0), shard(0.01), shard(0.8)};
    const uint64_t writers[] = {0, 1, 0, 1}, three[] = {0, 1, 0, 2};
    struct gcmp_shard_set set = {tallies, writers, 4, 0.03, 0.64, 1.0};
    uint64_t writer;
    double residual;
    assert_true(gcmp_cause_one_shard(&set, &writer, &residual));
    assert_int_equal(writer, 1);
    assert_near(residual, 0.01, 1e-12);
    set.writers = three; /* two are to blame */
    assert_false(gcmp_cause_one_shard(&set, &writer, &residual));
}

static void test_one_shard__none_where_all_are_bad_or_hardly_any(void **state) {
    (void)state;
    struct gradcmp_tally bad[] = {shard(0.9), shard(1.0)}, near[] = {shard(0.02), shard(0.05)};
    const uint64_t writers[] = {0, 1}, same[] = {0, 0};
    struct gcmp_shard_set set = {bad, writers, 2, 0.03, 0.95, 1.0};
    uint64_t writer;
    double residual;
    assert_false(gcmp_cause_one_shard(&set, &writer, &residual));
    set.tallies = near;
    set.before = 0.038;
    assert_false(gcmp_cause_one_shard(&set, &writer, &residual));
    struct gradcmp_tally mild[] = {shard(0.01), shard(0.1)}; /* 3.3 times the bound */
    set.tallies = mild;
    set.before = 0.07;
    assert_false(gcmp_cause_one_shard(&set, &writer, &residual));
    struct gradcmp_tally good[] = {shard(0.01), shard(1.0)};
    set = (struct gcmp_shard_set){good, same, 2, 0.03, 0.7, 1.0};
    assert_false(gcmp_cause_one_shard(&set, &writer, &residual));
}

static void test_copy_sum__copies_that_add_up(void **state) {
    (void)state;
    /* c0 + c1 = a with a = (3, 4), c0 = (1, 5), c1 = (2, -1) */
    const double inner[] = {26, -3, 0, 5}, with_a[] = {23, 2};
    struct gcmp_copy_sums sums = {inner, with_a, 2, 25};
    assert_near(gcmp_cause_copy_sum(&sums, 1.0), 0.0, 1e-7);
    const double other[] = {26, 0, 0, 5}; /* another angle between them */
    sums.inner = other;
    assert_near(gcmp_cause_copy_sum(&sums, 1.0), sqrt(6.0 / 25.0), 1e-12);
    sums.a2 = 0.0;
    assert_true(isnan(gcmp_cause_copy_sum(&sums, 1.0)));
    /* (c0 + c1) / 2 = a with a = (3, 4), c0 = (1, 5), c1 = (5, 3) */
    const double apart[] = {26, 20, 0, 34}, with_mean[] = {23, 27};
    sums = (struct gcmp_copy_sums){apart, with_mean, 2, 25};
    assert_near(gcmp_cause_copy_sum(&sums, 0.5), 0.0, 1e-7);
    assert_near(gcmp_cause_copy_sum(&sums, 1.0), 1.0, 1e-7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derive__factors),
        cmocka_unit_test(test_derive__no_factor_where_noise_is_left),
        cmocka_unit_test(test_derive__something_added_is_no_factor),
        cmocka_unit_test(test_derive__a_factor_beside_the_common_one),
        cmocka_unit_test(test_derive__few_elements_prove_no_factor),
        cmocka_unit_test(test_derive__zero_on_one_side),
        cmocka_unit_test(test_derive__nonfinite),
        cmocka_unit_test(test_derive__cast),
        cmocka_unit_test(test_holds__both_edges),
        cmocka_unit_test(test_snap__only_what_is_near),
        cmocka_unit_test(test_names__there_and_back),
        cmocka_unit_test(test_one_shard__one_writer_is_to_blame),
        cmocka_unit_test(test_one_shard__none_where_all_are_bad_or_hardly_any),
        cmocka_unit_test(test_copy_sum__copies_that_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
