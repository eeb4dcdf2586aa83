/* The bound by depth: defaults, cap, depth, the constant rule. */
#include "pair_maker.h"

static struct gradcmp_bound make_bound(enum gradcmp_dtype dtype, uint64_t layers,
                                       const struct gradcmp_options *options) {
    struct gradcmp_bound bound = {
        .dtype = dtype, .layers = layers, .dtype_source = GRADCMP_DTYPE_FROM_ARGS};
    gcmp_bound_init(&bound, options);
    return bound;
}

static const struct gradcmp_options defaults = GRADCMP_OPTIONS_INIT;

static void test_bound__default_k_follows_the_type(void **state) {
    (void)state;
    static const struct {
        enum gradcmp_dtype dtype;
        double k, eps;
    } rows[] = {
        {GRADCMP_DTYPE_BFLOAT16, 4, 0x1p-7},      {GRADCMP_DTYPE_FLOAT16, 4, 0x1p-10},
        {GRADCMP_DTYPE_FLOAT32, 32, 0x1p-23},     {GRADCMP_DTYPE_FLOAT64, 32, 0x1p-52},
        {GRADCMP_DTYPE_FLOAT8_E4M3FN, 4, 0x1p-7}, {GRADCMP_DTYPE_FLOAT8_E5M2, 4, 0x1p-7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gradcmp_bound bound = make_bound(rows[i].dtype, 8, &defaults);
        assert_true(bound.k == rows[i].k && bound.eps == rows[i].eps);
        assert_true(bound.C == 1.03 && bound.cap == 0.25 && !bound.constant);
        assert_int_equal(bound.layers, 8);
    }
}

static void test_bound__by_depth_as_in_the_design(void **state) {
    (void)state;
    struct gradcmp_bound bound = make_bound(GRADCMP_DTYPE_BFLOAT16, 32, &defaults);
    assert_near(gcmp_bound_at(&bound, 6), 0.0694, 5e-5); /* 4 * 1.03^27 * 2^-7 */
    assert_near(gcmp_bound_at(&bound, 33), 4 * 0x1p-7, 1e-18);
    assert_near(gcmp_bound_at(&bound, 32), 4 * 1.03 * 0x1p-7, 1e-17);
    assert_near(gcmp_bound_at(&bound, 0), 0.0829, 5e-5);
}

static void test_bound__past_the_head_is_the_head(void **state) {
    (void)state;
    struct gradcmp_bound bound = make_bound(GRADCMP_DTYPE_BFLOAT16, 4, &defaults);
    assert_true(gcmp_bound_at(&bound, 99) == gcmp_bound_at(&bound, 5));
}

static void test_bound__deep_model_is_capped(void **state) {
    (void)state;
    struct gradcmp_bound bound = make_bound(GRADCMP_DTYPE_BFLOAT16, 118, &defaults);
    assert_true(gcmp_bound_at(&bound, 0) == 0.25);
    bound.layers = UINT64_MAX;
    assert_true(gcmp_bound_at(&bound, 1) == 0.25);
    struct gradcmp_options loose = GRADCMP_OPTIONS_INIT;
    loose.max_bound = 2.0;
    bound = make_bound(GRADCMP_DTYPE_BFLOAT16, 118, &loose);
    assert_true(gcmp_bound_at(&bound, 0) > 1.0); /* why there is a cap: zeros would pass */
}

static void test_bound__options_win(void **state) {
    (void)state;
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    options.k = 2.5;
    options.C = 1.5;
    options.max_bound = 0.125;
    struct gradcmp_bound bound = make_bound(GRADCMP_DTYPE_FLOAT32, 1, &options);
    assert_near(gcmp_bound_at(&bound, 1), 2.5 * 1.5 * 0x1p-23, 1e-20);
    assert_true(bound.cap == 0.125);
}

static void test_bound__megatron_is_one_constant(void **state) {
    (void)state;
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    options.compat_megatron = 1;
    struct gradcmp_bound bound = make_bound(GRADCMP_DTYPE_BFLOAT16, 8, &options);
    assert_true(bound.constant);
    assert_near(gcmp_bound_at(&bound, 0), 0.0828855, 1e-7);
    assert_true(gcmp_bound_at(&bound, 0) == gcmp_bound_at(&bound, 9));
    bound = make_bound(GRADCMP_DTYPE_FLOAT32, 8, &options); /* the script takes bf16 always */
    assert_near(gcmp_bound_at(&bound, 3), 0.0828855, 1e-7);
    assert_true(gcmp_noise_unit(&bound) == 0x1p-7);
}

static void test_bound__megatron_with_a_dtype_said_takes_that(void **state) {
    (void)state;
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    options.compat_megatron = 1;
    struct gradcmp_bound bound = {
        .dtype = GRADCMP_DTYPE_FLOAT32, .dtype_source = GRADCMP_DTYPE_FROM_OPTION, .layers = 8};
    gcmp_bound_init(&bound, &options);
    assert_near(gcmp_bound_at(&bound, 3), 4 * pow(1.03, 33) * 0x1p-23, 1e-18);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound__default_k_follows_the_type),
        cmocka_unit_test(test_bound__by_depth_as_in_the_design),
        cmocka_unit_test(test_bound__past_the_head_is_the_head),
        cmocka_unit_test(test_bound__deep_model_is_capped),
        cmocka_unit_test(test_bound__options_win),
        cmocka_unit_test(test_bound__megatron_is_one_constant),
        cmocka_unit_test(test_bound__megatron_with_a_dtype_said_takes_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
