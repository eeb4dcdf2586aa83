/* Values that are computed from two steps: (x - beta former) / (1 - beta), in float64. */
#include <math.h>

#include "engine/engine_tools.h"
#include "kernels/convert.h"

enum { ROWS = 300, COLUMNS = 170 };

/* Averages of two steps in different types, cut in different ways; what they are made of; and the
 * other side of the comparison. */
struct stage {
    struct world *world;
    struct tensor now, before, other, expected;
    struct gradcmp_former former;
    struct gradcmp_tally found;
    struct gcmp_side b;
    struct gcmp_job job;
};

static void fill(struct tensor *tensor, uint64_t random) {
    for (uint64_t i = 0; i < tensor->parameter.elem_count * tensor->elem_bytes; i++) {
        tensor->elems[i] = (unsigned char)(next_random(&random) & 0x3f);
    }
}

static double value_of(const struct tensor *tensor, uint64_t i) {
    double value;
    gcmp_scale_float64(tensor->elems + i * tensor->elem_bytes,
                       (enum gradcmp_dtype)tensor->parameter.dtype, 1, 0, &value);
    return value;
}

static void expect(struct stage *stage, double beta) {
    for (uint64_t i = 0; i < stage->now.parameter.elem_count; i++) {
        double value =
            fma(-beta, value_of(&stage->before, i), value_of(&stage->now, i)) / (1 - beta);
        memcpy(stage->expected.elems + i * sizeof value, &value, sizeof value);
    }
}

static struct stage *stage_make(char *temp, double beta) {
    struct stage *stage = calloc(1, sizeof *stage);
    const uint64_t shape[2] = {ROWS, COLUMNS};
    stage->world = world_make(temp, "stage", 1);
    stage->now = tensor_make(GRADCMP_DTYPE_FLOAT32, 2, shape);
    stage->before = tensor_make(GRADCMP_DTYPE_BFLOAT16, 2, shape);
    stage->other = tensor_make(GRADCMP_DTYPE_FLOAT32, 2, shape);
    stage->expected = tensor_make(GRADCMP_DTYPE_FLOAT64, 2, shape);
    fill(&stage->now, 1);
    fill(&stage->before, 2);
    fill(&stage->other, 3);
    store_grid(stage->world, &stage->now, (const uint64_t[]){2, 3}, STORE_PLAIN, 0);
    store_grid(stage->world, &stage->before, (const uint64_t[]){3, 1}, STORE_BIG, 0);
    store_grid(stage->world, &stage->other, (const uint64_t[]){1, 2}, STORE_DECODED, 0);
    world_open(stage->world);
    stage->former =
        (struct gradcmp_former){&stage->before.parameter, &stage->world->catalogue, beta};
    stage->now.parameter.former = &stage->former;
    expect(stage, beta);
    stage->b = side_of(stage->world, &stage->other, 0);
    stage->job = (struct gcmp_job){.a = side_of(stage->world, &stage->now, 0),
                                   .b = &stage->b,
                                   .b_count = 1,
                                   .elems = stage->now.parameter.elem_count,
                                   .tallies = &stage->found};
    return stage;
}

static void stage_free(struct stage *stage) {
    free(stage->now.elems);
    free(stage->before.elems);
    free(stage->other.elems);
    free(stage->expected.elems);
    world_free(stage->world);
    free(stage);
}

static enum gradcmp_status run(struct stage *stage, const struct gcmp_engine_options *options,
                               struct gradcmp_error *error) {
    struct gradcmp_error errors[1];
    return gcmp_engine_run(&stage->job, 1, options, errors, 1, error);
}

/* The same figures on any number of threads and with any buffers, on either side. */
static void test_former__is_taken_out_in_float64(void **state) {
    static const struct gcmp_engine_options ways[] = {
        {.threads = 1}, {.threads = 3, .buffer_bytes = 1 << 20}, {.threads = 2, .buffer_bytes = 1}};
    for (size_t i = 0; i < 6; i++) {
        struct stage *stage = stage_make(*state, i % 2 == 0 ? 0.9 : 0.75);
        struct gradcmp_error error = {0};
        struct gradcmp_tally expected =
            span_of(&stage->expected, 0, &stage->other, 0, stage->job.elems);
        assert_int_equal(run(stage, &ways[i / 2], &error), GRADCMP_OK);
        assert_same_tally(&stage->found, &expected);
        struct gcmp_side a = stage->job.a;
        stage->job.a = stage->b;
        stage->b = a;
        expected = span_of(&stage->other, 0, &stage->expected, 0, stage->job.elems);
        assert_int_equal(run(stage, &ways[i / 2], &error), GRADCMP_OK);
        assert_same_tally(&stage->found, &expected);
        stage_free(stage);
    }
}

/* Keeps what comes. */
struct kept {
    unsigned char *bytes;
    size_t length_bytes;
};

static int keep(void *user, const void *elems, size_t bytes) {
    struct kept *kept = user;
    memcpy(kept->bytes + kept->length_bytes, elems, bytes);
    kept->length_bytes += bytes;
    return 0;
}

static void test_former__a_sink_gets_scaled_float64(void **state) {
    struct stage *stage = stage_make(*state, 0.5);
    struct gcmp_engine_options options = {.threads = 2};
    struct gradcmp_error error = {0};
    size_t bytes = stage->job.elems * sizeof(double);
    struct kept kept = {malloc(bytes), 0};
    assert_non_null(kept.bytes);
    stage->job.sink = keep;
    stage->job.sink_user = &kept;
    stage->job.scale_log2 = 3;
    assert_int_equal(run(stage, &options, &error), GRADCMP_OK);
    assert_int_equal(kept.length_bytes, bytes);
    for (uint64_t i = 0; i < stage->job.elems; i++) {
        double found, wanted;
        memcpy(&found, kept.bytes + i * sizeof found, sizeof found);
        memcpy(&wanted, stage->expected.elems + i * sizeof wanted, sizeof wanted);
        assert_memory_equal(&found, &(double){8 * wanted}, sizeof found);
    }
    free(kept.bytes);
    stage_free(stage);
}

/* A hole in the former is an error of its owner, never zeros. */
static void test_former__a_hole_is_a_fault(void **state) {
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct stage *stage = stage_make(*state, 0.9);
        struct gcmp_engine_options options = {.threads = threads};
        struct gradcmp_error error = {0};
        stage->before.parameter.slab_count--;
        assert_int_equal(run(stage, &options, &error), GRADCMP_ERROR_CORRUPT);
        assert_non_null(strstr(error.message, "are stored"));
        stage_free(stage);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_former__is_taken_out_in_float64),
        TEMP_TEST(test_former__a_sink_gets_scaled_float64),
        TEMP_TEST(test_former__a_hole_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
