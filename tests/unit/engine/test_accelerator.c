/* The CUDA plug-in's own source on the emulated device, under the engine: the same bits as on the
 * processor, for all types and jobs; every call of the runtime may fail. */
#include <dlfcn.h>

#include "engine/engine_tools.h"

enum { SIDES = 4, ELEMS = 3 * GRADCMP_BLOCK_ELEMS + 777 };

static void (*fail_at)(long n);

static void open_device(struct gcmp_accelerator *accelerator) {
    struct gradcmp_error error = {0};
    enum gradcmp_status status =
        gcmp_accelerator_open(accelerator, GCMP_TEST_EMULATED_CUDA, -1, &error);
    if (status != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    void *symbol = dlsym(accelerator->library, "emulated_cuda_fail_at");
    assert_non_null(symbol);
    memcpy(&fail_at, &symbol, sizeof fail_at);
}

/* A baseline and three candidates of any types, any bits, and a job that tallies the baseline
 * alone. */
struct stage {
    struct world *world;
    struct tensor tensors[SIDES];
    struct gcmp_side others[SIDES - 1];
    struct gradcmp_tally found[SIDES];
    struct gcmp_job jobs[2];
};

static void stage_make(struct stage *stage, char *temp, const enum gradcmp_dtype *dtypes,
                       enum fill fill) {
    memset(stage, 0, sizeof *stage);
    stage->world = world_make(temp, "stage", 7);
    for (size_t i = 0; i < SIDES; i++) {
        uint64_t shape[1] = {ELEMS}, parts[1] = {1 + i};
        stage->tensors[i] = tensor_make(dtypes[i], 1, shape);
        fill_elems(stage->tensors[i].elems, dtypes[i], ELEMS, fill, 11 + i);
        store_grid(stage->world, &stage->tensors[i], parts, STORE_PLAIN, 0);
    }
    world_open(stage->world);
    for (size_t i = 1; i < SIDES; i++) {
        stage->others[i - 1] = side_of(stage->world, &stage->tensors[i], 0);
    }
    struct gcmp_side a = side_of(stage->world, &stage->tensors[0], 0);
    stage->jobs[0] = (struct gcmp_job){.a = a, .elems = ELEMS, .tallies = stage->found};
    stage->jobs[1] = (struct gcmp_job){.a = a,
                                       .b = stage->others,
                                       .b_count = SIDES - 1,
                                       .elems = ELEMS,
                                       .tallies = stage->found + 1};
}

static void stage_free(struct stage *stage) {
    for (size_t i = 0; i < SIDES; i++) {
        free(stage->tensors[i].elems);
    }
    world_free(stage->world);
}

static void assert_stage_is_right(const struct stage *stage) {
    for (size_t i = 0; i < SIDES; i++) {
        struct gradcmp_tally expected =
            span_of(&stage->tensors[0], 0, &stage->tensors[i], 0, ELEMS);
        assert_same_tally(&stage->found[i], &expected);
    }
}

static enum gradcmp_status run(struct stage *stage, const struct gcmp_engine_options *options,
                               struct gradcmp_error *error) {
    struct gradcmp_error errors[1];
    return gcmp_engine_run(stage->jobs, 2, options, errors, 1, error);
}

static void test_accelerator__gives_the_same_bits_for_all_types(void **state) {
    struct gcmp_accelerator accelerator;
    open_device(&accelerator);
    for (size_t i = 0; i < FLOAT_TYPES; i += RACES_ARE_SOUGHT ? 4 : 1) {
        enum gradcmp_dtype dtypes[SIDES] = {float_types[i], float_types[(i + 1) % FLOAT_TYPES],
                                            float_types[(i + 3) % FLOAT_TYPES], float_types[i]};
        enum fill fill = i % 2 == 0 ? FILL_ANY_BITS : FILL_SPRINKLED;
        struct stage stage;
        struct gradcmp_error error = {0};
        stage_make(&stage, *state, dtypes, fill);
        /* Buffers of a block or of several. */
        struct gcmp_engine_options options = {.threads = 1 + (unsigned)i % 3,
                                              .buffer_bytes = i % 2 == 0 ? 1 : 48 << 20,
                                              .accelerator = &accelerator};
        assert_int_equal(run(&stage, &options, &error), GRADCMP_OK);
        assert_stage_is_right(&stage);
        stage_free(&stage);
    }
    gcmp_accelerator_close(&accelerator);
}

static void test_accelerator__scaled_values_are_float64(void **state) {
    static const enum gradcmp_dtype dtypes[SIDES] = {GRADCMP_DTYPE_FLOAT32, GRADCMP_DTYPE_BFLOAT16,
                                                     GRADCMP_DTYPE_FLOAT64, GRADCMP_DTYPE_FLOAT16};
    struct gcmp_accelerator accelerator;
    struct stage stage;
    struct gradcmp_tally here[SIDES];
    struct gradcmp_error error = {0};
    open_device(&accelerator);
    stage_make(&stage, *state, dtypes, FILL_GRADIENTS);
    stage.jobs[0].scale_log2 = stage.jobs[1].scale_log2 = -40;
    struct gcmp_engine_options options = {.threads = 2};
    assert_int_equal(run(&stage, &options, &error), GRADCMP_OK);
    memcpy(here, stage.found, sizeof here);
    options.accelerator = &accelerator;
    assert_int_equal(run(&stage, &options, &error), GRADCMP_OK);
    for (size_t i = 0; i < SIDES; i++) {
        assert_same_tally(&stage.found[i], &here[i]);
    }
    stage_free(&stage);
    gcmp_accelerator_close(&accelerator);
}

/* Whatever fails, the run goes on with the right figures and says what failed; where the caller
 * wants no such thing, it ends in that error. */
static void test_accelerator__each_call_may_fail(void **state) {
    static const enum gradcmp_dtype dtypes[SIDES] = {GRADCMP_DTYPE_FLOAT32, GRADCMP_DTYPE_FLOAT32,
                                                     GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FLOAT32};
    struct gcmp_accelerator accelerator;
    struct stage stage;
    open_device(&accelerator);
    stage_make(&stage, *state, dtypes, FILL_GRADIENTS);
    long n = 0;
    for (bool failed = true; failed; n += FAULT_STEP) {
        struct gradcmp_error error = {0}, lost = {0};
        struct gcmp_engine_options options = {.threads = 1 + (unsigned)n % 2,
                                              .buffer_bytes = 1,
                                              .accelerator = &accelerator,
                                              .accelerator_error = &lost};
        memset(stage.found, 0, sizeof stage.found);
        fail_at(n);
        assert_int_equal(run(&stage, &options, &error), GRADCMP_OK);
        assert_stage_is_right(&stage);
        failed = lost.code != GRADCMP_OK;
        assert_true(!failed || lost.code == GRADCMP_ERROR_DEVICE);
        options.accelerator_error = NULL;
        fail_at(n);
        enum gradcmp_status status = run(&stage, &options, &error);
        if (options.threads == 1) { /* else the order of calls differs from run to run */
            assert_int_equal(status, failed ? GRADCMP_ERROR_DEVICE : GRADCMP_OK);
        }
        assert_true(status == GRADCMP_OK || strncmp(error.message, "cuda: ", 6) == 0);
    }
    assert_true(n > 40);
    fail_at(-1);
    stage_free(&stage);
    gcmp_accelerator_close(&accelerator);
}

static void test_accelerator__what_cannot_be_opened_is_told(void **state) {
    (void)state;
    struct gcmp_accelerator accelerator;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_accelerator_open(&accelerator, "/nowhere/plugin.so", -1, &error),
                     GRADCMP_ERROR_DEVICE);
    assert_string_equal(error.path, "/nowhere/plugin.so");
    assert_int_equal(gcmp_accelerator_open(&accelerator, GCMP_TEST_EMULATED_CUDA, 1, &error),
                     GRADCMP_ERROR_DEVICE);
    assert_string_equal(error.message, "cuda: open device: invalid device ordinal");
    assert_null(accelerator.device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_accelerator__gives_the_same_bits_for_all_types, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_accelerator__scaled_values_are_float64, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_accelerator__each_call_may_fail, setup, teardown),
        cmocka_unit_test(test_accelerator__what_cannot_be_opened_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
