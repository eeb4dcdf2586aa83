/* Runs jobs on several threads. */
#include "engine/engine.h"

#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/run.h"

enum {
    DEFAULT_BUFFER_BYTES = 48 * 1024 * 1024,
    MOST_THREADS = 1024,
    MOST_READERS = 16,                            /* beyond those that tally */
    BUFFERS = 3,                                  /* of a thread: a, b, staging */
    LEAST_BUFFER_BYTES = 8 * GRADCMP_BLOCK_ELEMS, /* a block of the widest type that is tallied */
    PROGRESS_NS = 50 * 1000 * 1000,
    /* Bytes of one side of a unit: with both sides, in a second-level cache of 1 MiB. */
    UNIT_BYTES = 256 * 1024,
    /* With an accelerator: two buffers of each side, and staging. They are to be large, since each
     * copy and each launch costs microseconds. */
    LANE_BUFFERS = 5,
    LEAST_LANE_BYTES = 1024 * 1024,
    LEAST_RING_BYTES = 32 * 1024 * 1024, /* of all jobs: less is read before a ring is set up */
    /* Of all jobs, for each further thread: starting one takes as long as tallying a part of it. */
    THREAD_BYTES = 4 * 1024 * 1024,
    PATIENCE_MS = 800 /* after an interrupt, with other ranks */
};

/* Sums are made to nearest and without flushing to zero, whatever the caller's thread is set to. */
static void set_arithmetic(void) {
    fesetenv(FE_DFL_ENV);
}

/* --- threads --- */

static void *work(void *user) {
    struct gcmp_worker *worker = user;
    struct gcmp_run *run = worker->run;
    set_arithmetic();
    while (gcmp_worker_step(worker)) {
    }
    gcmp_worker_finish(worker);
    pthread_mutex_lock(&run->lock);
    run->workers--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Heed what other ranks tell, and tell those above where the baseline cannot be read: what they
 * read comes behind that. */
static void heed_ranks(struct gcmp_run *run) {
    struct gradcmp_error error;
    gcmp_ranks_listen(run->ranks);
    if (run->ranks->is_stopped) {
        gcmp_error_set(&error, GRADCMP_ERROR_CANCELLED, NULL, GRADCMP_NO_OFFSET,
                       "another rank ended");
        gcmp_run_stop(run, &error);
    }
    bool is_first = run->ranks->index + 1 == run->ranks->count || run->has_told_baseline;
    if (!is_first &&
        gcmp_faults_block(&run->faults, 0, (struct gcmp_place){SIZE_MAX, UINT64_MAX})) {
        run->has_told_baseline = true;
        gcmp_ranks_tell(run->ranks, GCMP_WORD_BASELINE);
    }
    pthread_mutex_lock(&run->lock);
    run->is_superseded = run->ranks->is_superseded;
    pthread_mutex_unlock(&run->lock);
}

/* Tell the caller how far the run is; stop it where that is asked for. */
static void report_progress(struct gcmp_run *run) {
    if (run->ranks != NULL) {
        heed_ranks(run);
    }
    if (run->progress == NULL) {
        return;
    }
    pthread_mutex_lock(&run->lock);
    uint64_t done = run->bytes_done;
    pthread_mutex_unlock(&run->lock);
    if (run->progress(run->progress_user, done, run->bytes_total) != 0) {
        struct gradcmp_error error;
        gcmp_error_set(&error, GRADCMP_ERROR_CANCELLED, NULL, GRADCMP_NO_OFFSET, "cancelled");
        gcmp_run_stop(run, &error);
    }
}

static void report_if_due(struct gcmp_run *run, uint64_t *next_ns) {
    if (run->progress == NULL && run->ranks == NULL) {
        return;
    }
    uint64_t now = now_ns();
    if (now >= *next_ns) {
        *next_ns = now + PROGRESS_NS;
        report_progress(run);
    }
}

/* The threads of a run; the first worker is the calling thread's. */
struct crew {
    struct gcmp_run *run;
    struct gcmp_worker *workers; /* `room` entries */
    pthread_t *threads;
    unsigned count, room;
};

/* Start one more thread; false where it cannot be had: fewer are slower, not wrong. */
static bool add_thread(struct crew *crew) {
    struct gcmp_run *run = crew->run;
    struct gcmp_worker *worker = &crew->workers[crew->count];
    pthread_mutex_lock(&run->lock);
    run->workers++;
    pthread_mutex_unlock(&run->lock);
    if (gcmp_worker_make(worker, run) &&
        pthread_create(&crew->threads[crew->count], NULL, work, worker) == 0) {
        crew->count++;
        return true;
    }
    gcmp_worker_free(worker);
    pthread_mutex_lock(&run->lock);
    run->workers--;
    pthread_mutex_unlock(&run->lock);
    return false;
}

/* Where reads block, one more thread reads ahead while others wait or tally. */
static void add_reader_if_due(struct crew *crew) {
    if (gcmp_run_reads_block(crew->run) && crew->count < crew->room && !add_thread(crew)) {
        crew->room = crew->count;
    }
}

/* Wait for the other threads. */
static void await_others(struct crew *crew, uint64_t *next_ns) {
    struct gcmp_run *run = crew->run;
    pthread_mutex_lock(&run->lock);
    while (run->workers > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&run->changed, &run->lock, &until) == ETIMEDOUT) {
            pthread_mutex_unlock(&run->lock);
            report_if_due(run, next_ns);
            pthread_mutex_lock(&run->lock);
        }
    }
    pthread_mutex_unlock(&run->lock);
}

/* Work on the calling thread, which alone calls back and starts others. */
static void lead(struct crew *crew) {
    uint64_t next_ns = 0;
    report_if_due(crew->run, &next_ns);
    while (crew->count < crew->run->threads && add_thread(crew)) {
    }
    while (gcmp_worker_step(&crew->workers[0])) {
        report_if_due(crew->run, &next_ns);
        add_reader_if_due(crew);
    }
    gcmp_worker_finish(&crew->workers[0]);
    await_others(crew, &next_ns);
}

/* --- the run --- */

/* Tell whether the jobs are of the kind that is read ahead through rings: those that hand elements
 * over in turns, or compute some from others, wait for more than reads. */
static bool may_use_rings(const struct gcmp_run *run) {
    bool may = run->accelerator == NULL && run->pages == NULL && !run->has_formers;
    for (size_t i = 0; i < run->job_count && may; i++) {
        may = !gcmp_job_has_turns(&run->jobs[i]);
    }
    return may;
}

/* Tell whether rings are wanted: by themselves they are taken for direct reads, of which there are
 * enough. Through the page cache, threads that read forward in each file are faster on files that
 * are not in memory, since the kernel reads ahead for them, and as fast on files that are. */
static bool wants_rings(const struct gcmp_run *run, const struct gcmp_engine_options *options) {
    return options->reads == GRADCMP_READS_URING ||
           (options->reads == GRADCMP_READS_AUTO && run->direct &&
            run->bytes_total >= LEAST_RING_BYTES);
}

/* Choose a way of reading ahead that this system allows. */
static const struct gcmp_ring_way *choose_way(const struct gcmp_run *run,
                                              const struct gcmp_engine_options *options) {
    const struct gcmp_ring_way *way =
        options->ring_way != NULL ? options->ring_way : gcmp_ring_uring();
    struct gcmp_ring *probe = way != NULL && wants_rings(run, options) && may_use_rings(run)
                                  ? gcmp_ahead_open_ring(way)
                                  : NULL;
    if (probe == NULL) {
        return NULL;
    }
    way->close(probe);
    return way;
}

static uint64_t total_bytes(const struct gcmp_engine_options *options) {
    return options->buffer_bytes == 0 ? DEFAULT_BUFFER_BYTES : options->buffer_bytes;
}

/* Threads that the caller asks for, or else as many as processors, and no more than pay off. */
static unsigned wanted_threads(const struct gcmp_run *run,
                               const struct gcmp_engine_options *options) {
    uint64_t useful = 1 + run->bytes_total / THREAD_BYTES;
    if (options->threads != 0) {
        return options->threads;
    }
    unsigned cpus = useful == 1 ? 1 : gcmp_engine_default_threads();
    cpus = cpus < useful ? cpus : (unsigned)useful;
    return cpus < 1 ? 1 : cpus;
}

/* Choose threads: no more than there is work for, or than `buffers` of the least size each allow.
 * Returns how many there may be at most. */
static unsigned choose_threads(struct gcmp_run *run, const struct gcmp_engine_options *options,
                               uint64_t buffers, uint64_t least_bytes) {
    unsigned threads = wanted_threads(run, options);
    uint64_t units = run->job_count + run->bytes_total / LEAST_BUFFER_BYTES;
    uint64_t most = total_bytes(options) / (buffers * least_bytes);
    most = most < units ? most : units;
    most = most < 1 ? 1 : most;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    run->threads = threads < most ? threads : (unsigned)most;
    return most < MOST_THREADS + MOST_READERS ? (unsigned)most : MOST_THREADS + MOST_READERS;
}

/* Choose the size of each of a thread's buffers, where there are `buffers` in all; none is larger
 * than what there is to read, since memory for a small run must not take longer than the run. */
static void size_buffers(struct gcmp_run *run, const struct gcmp_engine_options *options,
                         uint64_t buffers) {
    uint64_t each = total_bytes(options) / buffers / LEAST_BUFFER_BYTES * LEAST_BUFFER_BYTES;
    uint64_t useful = (run->bytes_total / LEAST_BUFFER_BYTES + 1) * LEAST_BUFFER_BYTES;
    each = run->accelerator == NULL && !run->direct && useful < each ? useful : each;
    run->buffer_bytes = each < LEAST_BUFFER_BYTES ? LEAST_BUFFER_BYTES : (size_t)each;
    run->unit_bytes = run->accelerator != NULL ? run->buffer_bytes : UNIT_BYTES;
    /* Direct reads are rounded up on their way through staging. */
    run->most_unit_bytes = run->direct ? run->buffer_bytes / 2 : run->buffer_bytes;
    run->most_unit_bytes =
        run->most_unit_bytes < LEAST_BUFFER_BYTES ? LEAST_BUFFER_BYTES : run->most_unit_bytes;
}

/* Buffers of a thread that reads ahead: two of each slot, and staging. */
static uint64_t ahead_buffers(unsigned slots) {
    return 2 * (uint64_t)slots + 1;
}

/* Size a run whose threads read ahead: as many slots as leave buffers that hold a unit. False where
 * the bound of all buffers allows none. */
static bool size_ahead_run(struct gcmp_run *run, const struct gcmp_engine_options *options) {
    if (total_bytes(options) < ahead_buffers(GCMP_LEAST_SLOTS) * LEAST_BUFFER_BYTES) {
        return false;
    }
    choose_threads(run, options, ahead_buffers(GCMP_LEAST_SLOTS), LEAST_BUFFER_BYTES);
    run->readers = 0;
    uint64_t unit = run->direct ? 2 * UNIT_BYTES : UNIT_BYTES;
    run->slots = GCMP_MOST_SLOTS;
    while (run->slots > GCMP_LEAST_SLOTS &&
           total_bytes(options) / run->threads / ahead_buffers(run->slots) < unit) {
        run->slots--;
    }
    size_buffers(run, options, run->threads * ahead_buffers(run->slots));
    return true;
}

/* Choose threads and the size of their buffers. Fewer threads where the buffers' bound says so,
 * readers first. */
static void size_run(struct gcmp_run *run, const struct gcmp_engine_options *options) {
    run->ring_way = choose_way(run, options);
    if (run->ring_way != NULL && size_ahead_run(run, options)) {
        return;
    }
    run->ring_way = NULL;
    uint64_t buffers = run->accelerator != NULL ? LANE_BUFFERS : BUFFERS;
    uint64_t least = run->accelerator != NULL ? LEAST_LANE_BYTES : LEAST_BUFFER_BYTES;
    unsigned most = choose_threads(run, options, buffers, least);
    bool is_little = options->threads == 0 && run->bytes_total < THREAD_BYTES;
    unsigned readers = is_little                     ? 0
                       : run->threads < MOST_READERS ? run->threads + 2
                                                     : MOST_READERS;
    run->readers = readers < most - run->threads ? readers : most - run->threads;
    size_buffers(run, options, (run->threads + run->readers) * buffers);
}

static enum gradcmp_status run_threads(struct gcmp_run *run, struct gradcmp_error *error) {
    struct crew crew = {.run = run, .room = run->threads + run->readers};
    crew.workers = calloc(crew.room, sizeof *crew.workers);
    crew.threads = calloc(crew.room, sizeof *crew.threads);
    enum gradcmp_status status = GRADCMP_OK;
    if (crew.workers == NULL || crew.threads == NULL ||
        !gcmp_worker_make(&crew.workers[crew.count++], run)) {
        status = gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                "out of memory for buffers");
    } else {
        lead(&crew);
        for (unsigned i = 1; i < crew.count; i++) {
            pthread_join(crew.threads[i], NULL);
        }
        gcmp_worker_refine_faults(&crew.workers[0]);
    }
    for (unsigned i = 0; i < crew.count; i++) {
        gcmp_worker_free(&crew.workers[i]);
    }
    free(crew.workers);
    free(crew.threads);
    return status;
}

/* Find a checkpoint whose file system refuses to be read past the page cache; NULL: none is known.
 */
static const struct gcmp_dir *find_refusal(const struct gcmp_run *run) {
    for (size_t i = 0; i < run->table_count; i++) {
        struct gcmp_dir *dir = run->catalogues[i]->dir;
        if (gcmp_dir_direct(dir) == GCMP_DIR_REFUSED) {
            return dir;
        }
    }
    return NULL;
}

/* Run the threads; tell of a refusal where none was known before. */
static enum gradcmp_status run_and_tell(struct gcmp_run *run,
                                        const struct gcmp_engine_options *options,
                                        struct gradcmp_error *error) {
    bool was_known = find_refusal(run) != NULL;
    enum gradcmp_status status = run_threads(run, error);
    const struct gcmp_dir *refused = was_known ? NULL : find_refusal(run);
    if (refused != NULL && options->warn != NULL) {
        char line[600];
        snprintf(line, sizeof line,
                 "%.400s: the file system refuses direct reads; went on through the page cache",
                 gcmp_dir_path(refused));
        options->warn(options->warn_user, line);
    }
    return status;
}

/* Bring the shares of all ranks together. */
static enum gradcmp_status join_ranks(struct gcmp_run *run, struct gradcmp_error *error) {
    struct gcmp_ranks_waiting waiting = {.progress = run->progress,
                                         .user = run->progress_user,
                                         .done = run->bytes_done,
                                         .total = run->bytes_total,
                                         .patience_ms = PATIENCE_MS};
    return gcmp_share_exchange(run, &waiting, error);
}

/* Turn what the threads left behind into the call's result. */
static enum gradcmp_status conclude(struct gcmp_run *run, struct gradcmp_error *errors,
                                    struct gradcmp_error *error) {
    if (!run->stop) {
        report_progress(run);
    }
    if (run->stop) {
        if (error != NULL) {
            *error = run->fatal;
        }
        return run->fatal.code;
    }
    if (run->ranks != NULL) {
        GCMP_TRY(join_ranks(run, error));
    }
    if (run->faults.owner_count == 0) {
        return GRADCMP_OK;
    }
    for (size_t owner = 0; owner < run->faults.owner_count; owner++) {
        if (run->faults.by_owner[owner].set) {
            errors[owner] = run->faults.by_owner[owner].error;
        }
    }
    if (errors[0].code != GRADCMP_OK && error != NULL) {
        *error = errors[0];
    }
    return errors[0].code;
}

struct gcmp_engine_options gcmp_engine_options_of(const struct gradcmp_options *options) {
    return (struct gcmp_engine_options){.threads = options->threads,
                                        .buffer_bytes = options->buffer_bytes,
                                        .verify = options->verify,
                                        .progress = options->progress,
                                        .progress_user = options->progress_user,
                                        .reads = options->reads,
                                        .direct = options->direct,
                                        .warn = options->warn,
                                        .warn_user = options->warn_user};
}

enum gradcmp_status gcmp_engine_run(struct gcmp_job *jobs, size_t job_count,
                                    const struct gcmp_engine_options *options,
                                    struct gradcmp_error *errors, size_t owner_count,
                                    struct gradcmp_error *error) {
    fenv_t caller;
    struct gcmp_run run = {.jobs = jobs,
                           .job_count = job_count,
                           .pages = options->pages,
                           .direct = options->direct != 0,
                           .ranks = options->ranks,
                           .accelerator = options->accelerator,
                           .accelerator_error = options->accelerator_error};
    memset(errors, 0, owner_count * sizeof *errors);
    fegetenv(&caller);
    set_arithmetic();
    enum gradcmp_status status = gcmp_run_make(&run, options, owner_count, error);
    if (status == GRADCMP_OK) {
        size_run(&run, options);
        status = run_and_tell(&run, options, error);
    }
    if (status == GRADCMP_OK) {
        status = conclude(&run, errors, error);
    }
    gcmp_run_free(&run);
    fesetenv(&caller);
    return status;
}
