/* Reads and allocations that fail, each in its turn: every failure ends in an error or in the right
 * figures, nothing hangs and nothing leaks. The program's own pread, malloc and so on take the
 * place of the library's. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "engine/engine_tools.h"

/* --- injection --- */

/* What happens to the call that brings the countdown to 0; negative: nothing, ever. */
static atomic_long reads_left = -1;
static bool read_ends_early;

ssize_t pread(int fd, void *buffer, size_t count, off_t offset) {
    if (atomic_fetch_sub(&reads_left, 1) == 1) {
        errno = EIO;
        return read_ends_early ? 0 : -1;
    }
    return syscall(SYS_pread64, fd, buffer, count, offset);
}

ssize_t pread64(int fd, void *buffer, size_t count, off_t offset) {
    return pread(fd, buffer, count, offset);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

#if defined(__GLIBC__) && !defined(HAS_SANITIZER)
#define CAN_FAIL_ALLOCATIONS 1

static atomic_long allocations_left = -1, allocated;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static void *count_allocation(void *memory) {
    atomic_fetch_add(&allocated, memory != NULL);
    return memory;
}

static bool fails_now(void) {
    return atomic_load(&allocations_left) >= 0 && atomic_fetch_sub(&allocations_left, 1) == 1;
}

void *malloc(size_t bytes) {
    return fails_now() ? NULL : count_allocation(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes) {
    return fails_now() ? NULL : count_allocation(__libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes) {
    if (fails_now()) {
        return NULL;
    }
    void *moved = __libc_realloc(memory, bytes);
    atomic_fetch_add(&allocated, memory == NULL && moved != NULL);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails_now() ? NULL : count_allocation(__libc_memalign(alignment, bytes));
}

void free(void *memory) {
    atomic_fetch_sub(&allocated, memory != NULL);
    __libc_free(memory);
}
#endif

/* --- a comparison --- */

enum { JOBS = 3 };

struct pair {
    struct world *worlds[2];
    struct tensor tensors[2][JOBS];
    struct gcmp_side sides[JOBS];
    struct gradcmp_tally found[JOBS], expected[JOBS];
    struct gcmp_job jobs[JOBS];
    struct gradcmp_error errors[2], error;
};

static struct pair *pair_make(char *temp, enum storing way) {
    struct pair *pair = calloc(1, sizeof *pair);
    for (size_t c = 0; c < 2; c++) {
        pair->worlds[c] = world_make(temp, c == 0 ? "a" : "b", c);
        for (size_t j = 0; j < JOBS; j++) {
            uint64_t shape[2] = {90, 400 * (j + 1)}, parts[2] = {1 + c, 2};
            pair->tensors[c][j] = tensor_make(GRADCMP_DTYPE_FLOAT32, 2, shape);
            fill_elems(pair->tensors[c][j].elems, GRADCMP_DTYPE_FLOAT32, shape[0] * shape[1],
                       FILL_GRADIENTS, c * 10 + j);
            store_grid(pair->worlds[c], &pair->tensors[c][j], parts, way, 0);
        }
        if (way < STORE_DECODED) {
            world_set_checksums(pair->worlds[c]);
        }
        world_open(pair->worlds[c]);
    }
    for (size_t j = 0; j < JOBS; j++) {
        pair->sides[j] = side_of(pair->worlds[1], &pair->tensors[1][j], 1);
        pair->jobs[j] = (struct gcmp_job){.a = side_of(pair->worlds[0], &pair->tensors[0][j], 0),
                                          .b = &pair->sides[j],
                                          .b_count = 1,
                                          .elems = pair->tensors[0][j].parameter.elem_count,
                                          .tallies = &pair->found[j]};
        pair->expected[j] =
            span_of(&pair->tensors[0][j], 0, &pair->tensors[1][j], 0, pair->jobs[j].elems);
    }
    return pair;
}

static void pair_free(struct pair *pair) {
    for (size_t c = 0; c < 2; c++) {
        for (size_t j = 0; j < JOBS; j++) {
            free(pair->tensors[c][j].elems);
        }
        world_free(pair->worlds[c]);
    }
    free(pair);
}

static enum gradcmp_status pair_run(struct pair *pair, unsigned threads) {
    struct gcmp_engine_options options = {.threads = threads, .buffer_bytes = 1200000};
    memset(&pair->error, 0, sizeof pair->error);
    return gcmp_engine_run(pair->jobs, JOBS, &options, pair->errors, 2, &pair->error);
}

static void assert_pair_is_right(const struct pair *pair) {
    for (size_t j = 0; j < JOBS; j++) {
        assert_same_tally(&pair->found[j], &pair->expected[j]);
    }
}

/* Fail read after read until a run gets by without. The fault is gone when it is looked for again,
 * and must stay reported. */
static void check_reads(char *temp, enum storing way, unsigned threads, enum gradcmp_status code) {
    struct pair *pair = pair_make(temp, way);
    unsigned failed[2] = {0, 0};
    for (long n = 1;; n++) {
        atomic_store(&reads_left, n);
        enum gradcmp_status status = pair_run(pair, threads);
        if (atomic_exchange(&reads_left, -1) > 0) {
            assert_int_equal(status, GRADCMP_OK);
            assert_int_equal(pair->errors[1].code, GRADCMP_OK);
            break;
        }
        size_t owner = status == GRADCMP_OK ? 1 : 0;
        assert_int_equal(pair->errors[owner].code, code);
        assert_int_equal(pair->errors[1 - owner].code, GRADCMP_OK);
        assert_text_contains(pair->errors[owner].path, owner == 0 ? "/a" : "/b");
        failed[owner]++;
    }
    assert_pair_is_right(pair);
    assert_true(failed[0] >= JOBS && failed[1] >= JOBS);
    pair_free(pair);
}

static void test_injection__every_read_that_fails_is_reported(void **state) {
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        read_ends_early = false;
        check_reads(*state, STORE_PLAIN, threads, GRADCMP_ERROR_IO);
        check_reads(*state, STORE_PERMUTED, threads, GRADCMP_ERROR_IO);
        check_reads(*state, STORE_ITEM_ROWS, threads, GRADCMP_ERROR_IO);
        check_reads(*state, STORE_DECODED_FILE, threads, GRADCMP_ERROR_IO);
        read_ends_early = true;
        check_reads(*state, STORE_PLAIN, threads, GRADCMP_ERROR_CORRUPT);
        check_reads(*state, STORE_DECODED_FILE, threads, GRADCMP_ERROR_IO);
    }
}

static void test_injection__every_allocation_that_fails_is_survived(void **state) {
#if defined(CAN_FAIL_ALLOCATIONS)
    struct pair *pair = pair_make(*state, STORE_ITEM_VIEW);
    assert_int_equal(pair_run(pair, 3), GRADCMP_OK); /* what the C library keeps is there now */
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        unsigned failed = 0;
        for (long n = 1;; n++) {
            long before = atomic_load(&allocated);
            atomic_store(&allocations_left, n);
            enum gradcmp_status status = pair_run(pair, threads);
            bool was_reached = atomic_exchange(&allocations_left, -1) <= 0;
            assert_int_equal(atomic_load(&allocated), before);
            if (status == GRADCMP_OK) { /* a thread less, perhaps */
                assert_int_equal(pair->errors[1].code, GRADCMP_OK);
                assert_pair_is_right(pair);
            } else {
                assert_int_equal(status, GRADCMP_ERROR_MEMORY);
                assert_int_equal(pair->error.code, GRADCMP_ERROR_MEMORY);
                failed++;
            }
            if (!was_reached) {
                break;
            }
        }
        assert_true(failed > 20);
    }
    pair_free(pair);
#else
    (void)state;
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_injection__every_read_that_fails_is_reported),
        TEMP_TEST(test_injection__every_allocation_that_fails_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
