/* Reads and allocations that fail, each in its turn, whichever way is read: every failure ends in
 * an error or in the right figures, nothing hangs and nothing leaks. The program's own pread,
 * malloc and so on take the place of the library's, and a ring of its own that of io_uring. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "engine/engine_tools.h"

/* --- injection --- */

/* What happens to the call that brings the countdown to 0; negative: nothing, ever. */
static atomic_long reads_left = -1;
static bool read_ends_early, only_rings_fail;

ssize_t pread(int fd, void *buffer, size_t count, off_t offset) {
    if (!only_rings_fail && atomic_fetch_sub(&reads_left, 1) == 1) {
        errno = EIO;
        return read_ends_early ? 0 : -1;
    }
    return syscall(SYS_pread64, fd, buffer, count, offset);
}

/* O_DIRECT is refused when a file is opened so. */
static atomic_bool direct_is_refused;

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(list, unsigned) : 0;
    va_end(list);
    if ((flags & O_DIRECT) != 0 && atomic_load(&direct_is_refused)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(list, unsigned) : 0;
    va_end(list);
    return open(path, flags, mode);
}

ssize_t pread64(int fd, void *buffer, size_t count, off_t offset) {
    return pread(fd, buffer, count, offset);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
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

/* --- a ring that does as it is told --- */

/* What becomes of reads in a ring. */
struct play {
    enum { AT_ONCE, IN_ORDER, BACKWARDS } order; /* in which they end */
    long code;               /* errno of the read that the countdown hits; 0: it is short */
    const char *cut_path;    /* not NULL: the countdown cuts this file instead */
    atomic_long starts_left; /* reads that are taken before one is not; negative: all are */
    bool never_opens;
    atomic_long open_rings, under_way, started;
};
static struct play play;

enum { FAKE_READS = 64 };

struct gcmp_ring {
    struct gcmp_ring_read *reads[FAKE_READS];
    unsigned count;
};

static struct gcmp_ring *fake_open(unsigned entries) {
    assert_true(entries > 0);
    struct gcmp_ring *ring = play.never_opens ? NULL : calloc(1, sizeof *ring);
    atomic_fetch_add(&play.open_rings, ring != NULL);
    return ring;
}

static void fake_end(struct gcmp_ring_read *read) {
    bool is_hit = atomic_fetch_sub(&reads_left, 1) == 1;
    if (is_hit && play.cut_path != NULL) {
        assert_int_equal(truncate(play.cut_path, (off_t)read->offset_bytes + 1), 0);
    }
    size_t count =
        is_hit && play.cut_path == NULL && play.code == 0 ? read->count / 2 : read->count;
    bool fails = is_hit && play.cut_path == NULL && play.code != 0;
    int64_t got = fails ? -play.code
                        : syscall(SYS_pread64, read->fd, read->buffer, count, read->offset_bytes);
    read->result = got == -1 && !fails ? -errno : got;
    read->is_done = true;
    atomic_fetch_sub(&play.under_way, 1);
}

static bool fake_start(struct gcmp_ring *ring, struct gcmp_ring_read *read) {
    if (ring->count == FAKE_READS ||
        (atomic_load(&play.starts_left) >= 0 && atomic_fetch_sub(&play.starts_left, 1) <= 0)) {
        return false;
    }
    read->is_done = false;
    memset(read->buffer, 0xee, read->count); /* nobody may count on what was there */
    atomic_fetch_add(&play.under_way, 1);
    atomic_fetch_add(&play.started, 1);
    if (play.order == AT_ONCE) {
        fake_end(read);
    } else {
        ring->reads[ring->count++] = read;
    }
    return true;
}

static void fake_reap(struct gcmp_ring *ring, bool block) {
    assert_true(!block || ring->count > 0);
    if (block && play.order == BACKWARDS) {
        fake_end(ring->reads[--ring->count]);
    } else if (block) {
        fake_end(ring->reads[0]);
        memmove(ring->reads, ring->reads + 1, --ring->count * sizeof *ring->reads);
    }
}

static void fake_close(struct gcmp_ring *ring) {
    assert_int_equal(ring->count, 0);
    atomic_fetch_sub(&play.open_rings, 1);
    free(ring);
}

static const struct gcmp_ring_way fake_way = {
    .open = fake_open, .start = fake_start, .reap = fake_reap, .close = fake_close};

/* --- a comparison --- */

/* How it is read. */
static struct gcmp_engine_options reading;
static unsigned warnings;

static void count_warning(void *user, const char *line) {
    (void)user;
    assert_text_contains(line, "direct reads");
    warnings++;
}

static void read_by(enum gradcmp_reads reads, const struct gcmp_ring_way *way, int direct) {
    reading = (struct gcmp_engine_options){.reads = reads,
                                           .ring_way = way,
                                           .direct = direct,
                                           .buffer_bytes = 3600000,
                                           .warn = count_warning};
    warnings = 0;
    play = (struct play){.starts_left = -1};
    read_ends_early = only_rings_fail = false;
}

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
    struct gcmp_engine_options options = reading;
    options.threads = threads;
    options.buffer_bytes = reading.buffer_bytes != 0 ? reading.buffer_bytes : 1200000;
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
    for (long n = 1;; n += FAULT_STEP) {
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
    assert_true(failed[0] * FAULT_STEP >= JOBS && failed[1] * FAULT_STEP >= JOBS);
    pair_free(pair);
}

static void test_injection__every_read_that_fails_is_reported(void **state) {
    read_by(GRADCMP_READS_THREADS, NULL, 0);
    reading.buffer_bytes = 1200000;
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

/* Everything comes out right, or the owner that is hit is told. */
static void test_injection__every_read_in_a_ring_that_fails_is_reported(void **state) {
    static const enum storing ways[] = {STORE_PLAIN, STORE_PERMUTED, STORE_ITEM_ROWS, STORE_BIG};
    for (unsigned order = AT_ONCE; order <= BACKWARDS; order++) {
        for (size_t i = 0; i < 4; i++) {
            read_by(GRADCMP_READS_URING, &fake_way, order == IN_ORDER);
            play.order = order;
            play.code = EIO;
            check_reads(*state, ways[i], i % 2 == 0 ? 1 : 3, GRADCMP_ERROR_IO);
            assert_true(atomic_load(&play.started) > 0 || ways[i] != STORE_PLAIN);
            assert_int_equal(atomic_load(&play.under_way), 0);
            assert_int_equal(atomic_load(&play.open_rings), 0);
        }
    }
}

/* What the kernel may answer although nothing is wrong with the file. */
static void test_injection__refusals_of_a_ring_cost_nothing(void **state) {
    static const long codes[] = {0, EINTR, EAGAIN, EINVAL, ECANCELED, EOPNOTSUPP, ENOMEM, EPERM};
    struct pair *pair = pair_make(*state, STORE_PLAIN);
    for (size_t c = 0; c < 8; c++) {
        for (long n = 1;; n += 3 * FAULT_STEP) {
            read_by(GRADCMP_READS_URING, &fake_way, c % 2 == 1);
            play.order = IN_ORDER;
            play.code = codes[c];
            only_rings_fail = true;
            atomic_store(&reads_left, n);
            assert_int_equal(pair_run(pair, 1 + (unsigned)(n % 3)), GRADCMP_OK);
            assert_int_equal(pair->errors[1].code, GRADCMP_OK);
            assert_pair_is_right(pair);
            if (atomic_exchange(&reads_left, -1) > 0) {
                break;
            }
        }
    }
    pair_free(pair);
}

static void test_injection__a_ring_may_take_no_more_at_any_time(void **state) {
    struct pair *pair = pair_make(*state, STORE_PLAIN);
    for (long n = 0;; n += FAULT_STEP) {
        read_by(GRADCMP_READS_URING, &fake_way, 0);
        play.order = IN_ORDER;
        atomic_store(&play.starts_left, n);
        assert_int_equal(pair_run(pair, 2), GRADCMP_OK);
        assert_int_equal(pair->errors[1].code, GRADCMP_OK);
        assert_pair_is_right(pair);
        if (atomic_load(&play.starts_left) > 0) {
            break;
        }
    }
    assert_true(atomic_load(&play.started) > 2 * JOBS);
    read_by(GRADCMP_READS_URING, &fake_way, 0);
    play.never_opens = true;
    assert_int_equal(pair_run(pair, 2), GRADCMP_OK);
    assert_pair_is_right(pair);
    pair_free(pair);
}

/* A file that is cut off while its reads are under way. */
static void test_injection__files_cut_while_they_are_read_are_corrupt(void **state) {
    for (long n = 1;; n += 2 * FAULT_STEP) {
        struct pair *pair = pair_make(*state, STORE_PLAIN);
        char path[1024];
        snprintf(path, sizeof path, "%s/b", (const char *)*state);
        read_by(GRADCMP_READS_URING, &fake_way, n % 4 == 1);
        play.order = IN_ORDER;
        play.cut_path = path;
        only_rings_fail = true;
        atomic_store(&reads_left, n);
        enum gradcmp_status status = pair_run(pair, 1);
        bool was_reached = atomic_exchange(&reads_left, -1) <= 0;
        assert_int_equal(status, GRADCMP_OK);
        if (was_reached && pair->errors[1].code != GRADCMP_OK) { /* else it was read already */
            assert_int_equal(pair->errors[1].code, GRADCMP_ERROR_CORRUPT);
            assert_text_contains(pair->errors[1].message, "truncated while being read");
        } else {
            assert_pair_is_right(pair);
        }
        assert_true(n > 3 || pair->errors[1].code != GRADCMP_OK);
        pair_free(pair);
        if (!was_reached) {
            break;
        }
    }
}

static int stop_at_once(void *user, uint64_t done, uint64_t total) {
    (void)total;
    return done >= *(const uint64_t *)user;
}

/* An interrupt while reads are under way: none is left behind. */
static void test_injection__an_interrupt_waits_for_what_is_under_way(void **state) {
    struct pair *pair = pair_make(*state, STORE_PLAIN);
    for (unsigned order = AT_ONCE; order <= BACKWARDS; order++) {
        uint64_t after = order * 100000;
        read_by(GRADCMP_READS_URING, &fake_way, 0);
        play.order = order;
        reading.progress = stop_at_once;
        reading.progress_user = &after;
        assert_int_equal(pair_run(pair, 2), GRADCMP_ERROR_CANCELLED);
        assert_int_equal(atomic_load(&play.under_way), 0);
        assert_int_equal(atomic_load(&play.open_rings), 0);
    }
    pair_free(pair);
}

/* Every way of storing, read in every way, gives the same. */
static void test_injection__all_ways_of_reading_give_the_same(void **state) {
    static const struct gcmp_ring_way *const rings[] = {&fake_way, NULL};
    for (enum storing way = STORE_PLAIN; way < STORE_WAYS; way++) {
        struct pair *pair = pair_make(*state, way);
        for (unsigned k = 0; k < 8; k++) {
            read_by(k < 2 ? GRADCMP_READS_THREADS : GRADCMP_READS_URING, rings[k % 2],
                    k / 2 % 2 == 1);
            play.order = BACKWARDS;
            reading.buffer_bytes = 400000 + 900000 * k;
            assert_int_equal(pair_run(pair, 1 + k % 3), GRADCMP_OK);
            assert_int_equal(pair->errors[1].code, GRADCMP_OK);
            assert_pair_is_right(pair);
        }
        pair_free(pair);
    }
}

static void test_direct__where_it_is_refused_one_line_tells(void **state) {
    temp_file(*state, "probe", "", 0);
    char *path = temp_path(*state, "probe");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECT);
    bool can_be_direct = fd >= 0; /* not every file system that tests run on can */
    close(fd);
    free(path);
    for (unsigned k = 0; k < 4; k++) {
        struct pair *pair = pair_make(*state, STORE_PLAIN);
        read_by(k % 2 == 0 ? GRADCMP_READS_THREADS : GRADCMP_READS_URING, &fake_way, 1);
        play.order = IN_ORDER;
        play.code = EINVAL; /* by a read, that is: opening went well */
        only_rings_fail = true;
        atomic_store(&direct_is_refused, k < 2);
        atomic_store(&reads_left, k == 3 ? 5 : -1);
        assert_int_equal(pair_run(pair, 2), GRADCMP_OK);
        assert_pair_is_right(pair);
        assert_int_equal(warnings, k != 2 || !can_be_direct);
        assert_int_equal(pair_run(pair, 2), GRADCMP_OK); /* it is known now */
        assert_int_equal(warnings, k != 2 || !can_be_direct);
        atomic_store(&direct_is_refused, false);
        atomic_store(&reads_left, -1);
        pair_free(pair);
    }
}

static void check_allocations(struct pair *pair) {
#if defined(CAN_FAIL_ALLOCATIONS)
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
#else
    (void)pair;
#endif
}

static void test_injection__every_allocation_that_fails_is_survived(void **state) {
#if defined(CAN_FAIL_ALLOCATIONS)
    for (unsigned k = 0; k < 3; k++) {
        struct pair *pair = pair_make(*state, k == 2 ? STORE_PLAIN : STORE_ITEM_VIEW);
        read_by(k == 0 ? GRADCMP_READS_THREADS : GRADCMP_READS_URING, &fake_way, k == 2);
        play.order = IN_ORDER;
        check_allocations(pair);
        pair_free(pair);
    }
#else
    (void)state;
    (void)check_allocations;
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_injection__every_read_that_fails_is_reported),
        TEMP_TEST(test_injection__every_read_in_a_ring_that_fails_is_reported),
        TEMP_TEST(test_injection__refusals_of_a_ring_cost_nothing),
        TEMP_TEST(test_injection__a_ring_may_take_no_more_at_any_time),
        TEMP_TEST(test_injection__files_cut_while_they_are_read_are_corrupt),
        TEMP_TEST(test_injection__an_interrupt_waits_for_what_is_under_way),
        TEMP_TEST(test_injection__all_ways_of_reading_give_the_same),
        TEMP_TEST(test_direct__where_it_is_refused_one_line_tells),
        TEMP_TEST(test_injection__every_allocation_that_fails_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
