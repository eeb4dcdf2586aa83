/* Runs jobs on several threads. */
#include "engine/engine.h"

#include <errno.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/run.h"

enum {
    DEFAULT_BUFFER_BYTES = 48 * 1024 * 1024,
    MOST_THREADS = 1024,
    BUFFERS = 3,                                  /* of a thread: a, b, staging */
    LEAST_BUFFER_BYTES = 8 * GRADCMP_BLOCK_ELEMS, /* a block of the widest type that is tallied */
    PROGRESS_NS = 50 * 1000 * 1000
};

/* Sums are made to nearest and without flushing to zero, whatever the caller's thread is set to. */
static void set_arithmetic(void) {
    fesetenv(FE_DFL_ENV);
}

/* --- threads --- */

static void *work(void *user) {
    struct gcmp_worker *worker = user;
    struct gcmp_run *run = worker->run;
    struct gcmp_unit unit;
    set_arithmetic();
    while (gcmp_run_take(run, &unit)) {
        gcmp_worker_process(worker, &unit);
    }
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

/* Tell the caller how far the run is; stop it where that is asked for. */
static void report_progress(struct gcmp_run *run) {
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
    uint64_t now = run->progress == NULL ? 0 : now_ns();
    if (run->progress != NULL && now >= *next_ns) {
        *next_ns = now + PROGRESS_NS;
        report_progress(run);
    }
}

/* Work on the calling thread, which alone calls back, then wait for the others. */
static void work_and_report(struct gcmp_worker *worker) {
    struct gcmp_run *run = worker->run;
    struct gcmp_unit unit;
    uint64_t next_ns = 0;
    report_if_due(run, &next_ns);
    while (gcmp_run_take(run, &unit)) {
        gcmp_worker_process(worker, &unit);
        report_if_due(run, &next_ns);
    }
    pthread_mutex_lock(&run->lock);
    while (run->workers > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&run->changed, &run->lock, &until) == ETIMEDOUT) {
            pthread_mutex_unlock(&run->lock);
            report_if_due(run, &next_ns);
            pthread_mutex_lock(&run->lock);
        }
    }
    pthread_mutex_unlock(&run->lock);
}

/* Start the other threads, as many as can be had: fewer are slower, not wrong. */
static unsigned start_threads(struct gcmp_run *run, pthread_t *threads, struct gcmp_worker *workers,
                              unsigned count) {
    unsigned started = 0;
    for (unsigned i = 0; i < count; i++) {
        struct gcmp_worker *worker = &workers[started];
        pthread_mutex_lock(&run->lock);
        run->workers++;
        pthread_mutex_unlock(&run->lock);
        if (gcmp_worker_make(worker, run) &&
            pthread_create(&threads[started], NULL, work, worker) == 0) {
            started++;
            continue;
        }
        gcmp_worker_free(worker);
        pthread_mutex_lock(&run->lock);
        run->workers--;
        pthread_mutex_unlock(&run->lock);
        break;
    }
    return started;
}

/* --- the run --- */

/* Choose threads and the size of their buffers. No more threads than there is work for; fewer where
 * the buffers' bound says so. */
static unsigned size_run(struct gcmp_run *run, const struct gcmp_engine_options *options) {
    unsigned threads = options->threads == 0 ? gcmp_engine_default_threads() : options->threads;
    uint64_t total = options->buffer_bytes == 0 ? DEFAULT_BUFFER_BYTES : options->buffer_bytes;
    uint64_t most = total / (BUFFERS * LEAST_BUFFER_BYTES);
    uint64_t units = run->job_count + run->bytes_total / LEAST_BUFFER_BYTES;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    threads = threads < most ? threads : (unsigned)most;
    threads = threads < units ? threads : (unsigned)units;
    threads = threads == 0 ? 1 : threads;
    uint64_t each = total / threads / BUFFERS / LEAST_BUFFER_BYTES * LEAST_BUFFER_BYTES;
    run->buffer_bytes = each < LEAST_BUFFER_BYTES ? LEAST_BUFFER_BYTES : (size_t)each;
    return threads;
}

/* Run with `count` threads, this one among them. */
static enum gradcmp_status run_threads(struct gcmp_run *run, unsigned count,
                                       struct gradcmp_error *error) {
    struct gcmp_worker *workers = calloc(count, sizeof *workers);
    pthread_t *threads = calloc(count, sizeof *threads);
    enum gradcmp_status status = GRADCMP_OK;
    if (workers == NULL || threads == NULL || !gcmp_worker_make(&workers[0], run)) {
        status = gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                "out of memory for buffers");
    } else {
        unsigned started = start_threads(run, threads, workers + 1, count - 1);
        work_and_report(&workers[0]);
        for (unsigned i = 0; i < started; i++) {
            pthread_join(threads[i], NULL);
            gcmp_worker_free(&workers[1 + i]);
        }
        gcmp_worker_refine_faults(&workers[0]);
    }
    if (workers != NULL) {
        gcmp_worker_free(&workers[0]);
    }
    free(workers);
    free(threads);
    return status;
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

enum gradcmp_status gcmp_engine_run(struct gcmp_job *jobs, size_t job_count,
                                    const struct gcmp_engine_options *options,
                                    struct gradcmp_error *errors, size_t owner_count,
                                    struct gradcmp_error *error) {
    fenv_t caller;
    struct gcmp_run run = {.jobs = jobs, .job_count = job_count};
    memset(errors, 0, owner_count * sizeof *errors);
    fegetenv(&caller);
    set_arithmetic();
    enum gradcmp_status status = gcmp_run_make(&run, options, owner_count, error);
    if (status == GRADCMP_OK) {
        status = run_threads(&run, size_run(&run, options), error);
    }
    if (status == GRADCMP_OK) {
        status = conclude(&run, errors, error);
    }
    gcmp_run_free(&run);
    fesetenv(&caller);
    return status;
}
