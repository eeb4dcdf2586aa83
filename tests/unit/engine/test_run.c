/* What a run does beside its sums: delivers, reports, stops, and leaves its caller's state alone.
 */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "engine/engine_tools.h"

/* A tensor of several units in several boxes, of any type. */
struct stage {
    struct world *world;
    struct tensor tensors[3];
    struct gradcmp_tally found[3];
    struct gcmp_job jobs[3];
};

/* All bits are of values under 2 in any floating type; tensor 0 of float64 has values whose squares
 * are subnormal. */
static void fill_tensor(struct tensor *tensor, size_t j) {
    uint64_t random = j, bytes = tensor->parameter.elem_count * tensor->elem_bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        tensor->elems[i] = (unsigned char)(next_random(&random) & 0x3f);
    }
    for (uint64_t i = 0; j == 0 && tensor->parameter.dtype == GRADCMP_DTYPE_FLOAT64 && i < bytes;
         i += 8) {
        double value = ldexp(1.0 + (double)(i % 1000), -540);
        memcpy(tensor->elems + i, &value, sizeof value);
    }
}

static struct stage *stage_make(char *temp, enum gradcmp_dtype dtype) {
    struct stage *stage = calloc(1, sizeof *stage);
    stage->world = world_make(temp, "stage", 1);
    for (size_t j = 0; j < 3; j++) {
        uint64_t shape[2] = {600, 150 + 40 * j}, parts[2] = {2, 3};
        stage->tensors[j] = tensor_make(dtype, 2, shape);
        fill_tensor(&stage->tensors[j], j);
        store_grid(stage->world, &stage->tensors[j], parts, STORE_PLAIN, 0);
    }
    world_open(stage->world);
    for (size_t j = 0; j < 3; j++) {
        stage->jobs[j] = (struct gcmp_job){.a = side_of(stage->world, &stage->tensors[j], 0),
                                           .elems = stage->tensors[j].parameter.elem_count,
                                           .tallies = &stage->found[j]};
    }
    return stage;
}

static void stage_free(struct stage *stage) {
    for (size_t j = 0; j < 3; j++) {
        free(stage->tensors[j].elems);
    }
    world_free(stage->world);
    free(stage);
}

static enum gradcmp_status stage_run(struct stage *stage,
                                     const struct gcmp_engine_options *options) {
    struct gradcmp_error errors[1], error;
    return gcmp_engine_run(stage->jobs, 3, options, errors, 1, &error);
}

static void assert_stage_is_right(const struct stage *stage) {
    for (size_t j = 0; j < 3; j++) {
        struct gradcmp_tally expected =
            span_of(&stage->tensors[j], 0, &stage->tensors[j], 0, stage->jobs[j].elems);
        assert_same_tally(&stage->found[j], &expected);
    }
}

/* --- sinks --- */

/* Bytes of all jobs in the order in which they came. */
struct collector {
    unsigned char *bytes;
    size_t length_bytes, stop_at;
};

static int collect(void *user, const void *elems, size_t bytes) {
    struct collector *collector = user;
    memcpy(collector->bytes + collector->length_bytes, elems, bytes);
    collector->length_bytes += bytes;
    return collector->length_bytes >= collector->stop_at;
}

static void check_delivery(char *temp, enum gradcmp_dtype dtype, unsigned threads) {
    struct stage *stage = stage_make(temp, dtype);
    struct collector collector = {calloc(1, 1 << 23), 0, SIZE_MAX};
    for (size_t j = 0; j < 3; j++) {
        stage->jobs[j].sink = collect;
        stage->jobs[j].sink_user = &collector;
    }
    struct gcmp_engine_options options = {.threads = threads, .buffer_bytes = 1600000};
    assert_int_equal(stage_run(stage, &options), GRADCMP_OK);
    const unsigned char *at = collector.bytes;
    for (size_t j = 0; j < 3; j++) {
        size_t bytes = stage->jobs[j].elems * stage->tensors[j].elem_bytes;
        assert_memory_equal(at, stage->tensors[j].elems, bytes);
        at += bytes;
        assert_int_equal(stage->found[j].elems, stage->jobs[j].elems);
    }
    assert_int_equal(collector.length_bytes, at - collector.bytes);
    free(collector.bytes);
    stage_free(stage);
}

static void test_sink__gets_all_jobs_in_order(void **state) {
    for (unsigned threads = 1; threads <= 4; threads++) {
        check_delivery(*state, GRADCMP_DTYPE_FLOAT32, threads);
        check_delivery(*state, GRADCMP_DTYPE_INT64, threads);
        check_delivery(*state, GRADCMP_DTYPE_BOOL, threads);
        check_delivery(*state, GRADCMP_DTYPE_COMPLEX128, threads);
    }
}

static void test_sink__can_stop_the_run(void **state) {
    struct stage *stage = stage_make(*state, GRADCMP_DTYPE_FLOAT32);
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct collector collector = {calloc(1, 1 << 23), 0, 300000};
        stage->jobs[1].sink = collect;
        stage->jobs[1].sink_user = &collector;
        struct gcmp_engine_options options = {.threads = threads, .buffer_bytes = 1};
        assert_int_equal(stage_run(stage, &options), GRADCMP_ERROR_CANCELLED);
        assert_memory_equal(collector.bytes, stage->tensors[1].elems, collector.length_bytes);
        assert_in_range(collector.length_bytes, 300000, 300000 + (1 << 17));
        free(collector.bytes);
    }
    stage_free(stage);
}

/* --- progress --- */

struct progress {
    uint64_t done, total;
    unsigned calls, stop_at;
    pthread_t thread;
};

static int note_progress(void *user, uint64_t done, uint64_t total) {
    struct progress *progress = user;
    assert_true(done >= progress->done && done <= total);
    assert_true(pthread_equal(pthread_self(), progress->thread));
    progress->done = done;
    progress->total = total;
    progress->calls++;
    return progress->calls == progress->stop_at;
}

static void test_progress__ends_with_all_bytes(void **state) {
    struct stage *stage = stage_make(*state, GRADCMP_DTYPE_FLOAT32);
    uint64_t bytes = 0;
    for (size_t j = 0; j < 3; j++) {
        bytes += stage->jobs[j].elems * sizeof(float);
    }
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct progress progress = {.thread = pthread_self()};
        struct gcmp_engine_options options = {
            .threads = threads, .progress = note_progress, .progress_user = &progress};
        assert_int_equal(stage_run(stage, &options), GRADCMP_OK);
        assert_true(progress.calls >= 2);
        assert_int_equal(progress.done, bytes);
        assert_int_equal(progress.total, bytes);
        assert_stage_is_right(stage);
    }
    stage_free(stage);
}

static void test_progress__can_cancel(void **state) {
    struct stage *stage = stage_make(*state, GRADCMP_DTYPE_FLOAT32);
    for (unsigned stop_at = 1; stop_at <= 2; stop_at++) {
        for (unsigned threads = 1; threads <= 4; threads++) {
            struct progress progress = {.thread = pthread_self(), .stop_at = stop_at};
            struct gcmp_engine_options options = {.threads = threads,
                                                  .buffer_bytes = 1,
                                                  .progress = note_progress,
                                                  .progress_user = &progress};
            assert_int_equal(stage_run(stage, &options), GRADCMP_ERROR_CANCELLED);
            assert_int_equal(progress.calls, stop_at);
        }
    }
    stage_free(stage);
}

/* --- reading ahead --- */

/* Count the threads that a run with one thread reads with. */
static size_t count_readers(char *temp, useconds_t resolve_takes_us) {
    struct world *world = world_make(temp, "slow", 1);
    uint64_t count = 40 * 16384, parts = 40;
    struct tensor tensor = tensor_make(GRADCMP_DTYPE_FLOAT64, 1, &count);
    fill_elems(tensor.elems, GRADCMP_DTYPE_FLOAT64, count, FILL_GRADIENTS, 1);
    store_grid(world, &tensor, &parts, STORE_ITEM, 0);
    world_open(world);
    world->resolve_takes_us = resolve_takes_us;
    struct gradcmp_tally found, expected = span_of(&tensor, 0, &tensor, 0, count);
    struct gradcmp_error errors[1], error;
    struct gcmp_job job = {.a = side_of(world, &tensor, 0), .elems = count, .tallies = &found};
    struct gcmp_engine_options options = {.threads = 1};
    assert_int_equal(gcmp_engine_run(&job, 1, &options, errors, 1, &error), GRADCMP_OK);
    assert_same_tally(&found, &expected);
    size_t readers = 0;
    for (size_t i = 0; i < parts; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++) {
            seen = seen || pthread_equal(world->resolvers[k], world->resolvers[i]);
        }
        readers += !seen;
    }
    free(tensor.elems);
    world_free(world);
    return readers;
}

static void test_readers__are_added_where_reads_block(void **state) {
    assert_true(count_readers(*state, 20000) > 1);
}

/* --- the caller's state --- */

static void test_arithmetic__does_not_depend_on_the_callers_mode(void **state) {
    struct stage *stage = stage_make(*state, GRADCMP_DTYPE_FLOAT64);
    struct gcmp_engine_options options = {.threads = 2};
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
    unsigned mode = _mm_getcsr();
#endif
    enum gradcmp_status status = stage_run(stage, &options);
    int rounding = fegetround();
#if defined(__x86_64__)
    unsigned mode_after = _mm_getcsr();
#endif
    fesetenv(FE_DFL_ENV);
    assert_int_equal(status, GRADCMP_OK);
    assert_int_equal(rounding, FE_UPWARD);
#if defined(__x86_64__)
    assert_int_equal(mode_after, mode);
#endif
    assert_stage_is_right(stage);
    stage_free(stage);
}

static void test_run__no_jobs_and_empty_jobs(void **state) {
    struct stage *stage = stage_make(*state, GRADCMP_DTYPE_FLOAT32);
    struct gcmp_engine_options options = {.threads = 3};
    struct gradcmp_error errors[1], error;
    struct gradcmp_tally none;
    memset(&none, 0, sizeof none);
    assert_int_equal(gcmp_engine_run(NULL, 0, &options, errors, 1, &error), GRADCMP_OK);
    memset(stage->found, 0xee, sizeof stage->found);
    stage->jobs[0].elems = 0;
    stage->jobs[2].elems = 0;
    assert_int_equal(stage_run(stage, &options), GRADCMP_OK);
    assert_same_tally(&stage->found[0], &none);
    assert_same_tally(&stage->found[2], &none);
    assert_int_equal(stage->found[1].elems, stage->jobs[1].elems);
    stage_free(stage);
}

static void test_default_threads__follow_the_affinity_mask(void **state) {
    (void)state;
    cpu_set_t before, one;
    unsigned all = gcmp_engine_default_threads();
    assert_true(all >= 1);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_true(all <= (unsigned)CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    unsigned with_one = gcmp_engine_default_threads();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(with_one, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_sink__gets_all_jobs_in_order),
        TEMP_TEST(test_sink__can_stop_the_run),
        TEMP_TEST(test_progress__ends_with_all_bytes),
        TEMP_TEST(test_progress__can_cancel),
        TEMP_TEST(test_readers__are_added_where_reads_block),
        TEMP_TEST(test_arithmetic__does_not_depend_on_the_callers_mode),
        TEMP_TEST(test_run__no_jobs_and_empty_jobs),
        cmocka_unit_test(test_default_threads__follow_the_affinity_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
