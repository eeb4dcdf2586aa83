/* What a thread does with a unit: gather, tally, fold. */
#include "engine/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/dtype.h"
#include "kernels/convert.h"

unsigned char *gcmp_buffer_make(size_t bytes) {
    return aligned_alloc(GCMP_DIRECT_BYTES, bytes);
}

bool gcmp_worker_make(struct gcmp_worker *worker, struct gcmp_run *run) {
    worker->run = run;
    worker->staging.bytes = gcmp_buffer_make(run->buffer_bytes);
    worker->staging.capacity_bytes = run->buffer_bytes;
    if (worker->staging.bytes == NULL) {
        return false;
    }
    if (run->ring_way != NULL) {
        return gcmp_ahead_make(worker);
    }
    gcmp_lane_make(worker);
    if (worker->lane.handle == NULL) {
        worker->a = gcmp_buffer_make(run->buffer_bytes);
        worker->b = gcmp_buffer_make(run->buffer_bytes);
    }
    if (run->has_formers) {
        worker->former = calloc(GCMP_FORMER_ELEMS, sizeof *worker->former);
    }
    return worker->a != NULL && worker->b != NULL && (worker->former != NULL || !run->has_formers);
}

void gcmp_worker_free(struct gcmp_worker *worker) {
    if (worker->ahead != NULL) {
        gcmp_ahead_free(worker); /* a and b are its */
    } else if (worker->lane.handle == NULL) {
        free(worker->a);
        free(worker->b);
    }
    gcmp_lane_free(worker);
    free(worker->staging.bytes);
    free(worker->former);
}

void gcmp_worker_finish(struct gcmp_worker *worker) {
    if (worker->lane.handle != NULL) {
        gcmp_lane_finish(worker);
    }
}

bool gcmp_worker_is_live(const struct gcmp_worker *worker, const struct gcmp_unit *unit,
                         size_t side) {
    struct gcmp_place place = {unit->task->index, unit->first};
    return !gcmp_faults_block(&worker->run->faults, gcmp_job_side(unit->task->job, side)->owner,
                              place);
}

/* --- waiting --- */

/* One unit in this many is timed. */
enum { TIMED_UNITS = 8 };

/* Time that passed for a thread, time that it ran, and how often it gave its processor up. */
struct times {
    int64_t passed_ns, ran_ns;
    long waits;
};

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct times times_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    struct times now = {clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID),
                        usage.ru_nvcsw};
    return now;
}

/* Tell whether a quarter of the time since `start` was spent waiting. A thread whose processor was
 * taken away waits too, but did not give it up. */
static bool has_waited(const struct times *start) {
    struct times now = times_now();
    int64_t passed = now.passed_ns - start->passed_ns, ran = now.ran_ns - start->ran_ns;
    return now.waits > start->waits && passed - ran > passed / 4;
}

/* Gather; say so where that means waiting. */
static enum gradcmp_status timed_gather(const struct gcmp_worker *worker,
                                        const struct gcmp_want *want, struct gradcmp_error *error) {
    if (!worker->timed) {
        return gcmp_gather(want, error);
    }
    struct times start = times_now();
    enum gradcmp_status status = gcmp_gather(want, error);
    if (has_waited(&start)) {
        gcmp_run_say_reads_block(worker->run);
    }
    return status;
}

/* --- gathering and tallying --- */

/* Take what is of the former parameter out of a unit's values, a part at a time. */
static enum gradcmp_status subtract_former(const struct gcmp_worker *worker,
                                           const struct gcmp_unit *unit, size_t side,
                                           double *values, struct gradcmp_error *error) {
    const struct gcmp_former_plan *former = &unit->task->formers[side];
    const struct gradcmp_parameter *now = gcmp_job_side(unit->task->job, side)->parameter;
    enum gradcmp_dtype dtype = (enum gradcmp_dtype)former->side.parameter->dtype;
    unsigned narrow = gcmp_dtype_bytes(dtype);
    double beta = now->former->beta;
    for (uint64_t done = 0; done < unit->elems; done += GCMP_FORMER_ELEMS) {
        uint64_t left = unit->elems - done;
        size_t elems = left < GCMP_FORMER_ELEMS ? (size_t)left : GCMP_FORMER_ELEMS;
        unsigned char *at =
            (unsigned char *)worker->former + elems * (sizeof *worker->former - narrow);
        struct gcmp_want want = {&former->plan, unit->first + done, elems, at, &worker->staging};
        GCMP_TRY(timed_gather(worker, &want, error));
        gcmp_scale_float64(at, dtype, elems, 0, worker->former);
        for (size_t i = 0; i < elems; i++) {
            values[done + i] = fma(-beta, worker->former[i], values[done + i]) / (1.0 - beta);
        }
    }
    return GRADCMP_OK;
}

/* Make a side's values float64 in place: narrow ones stand at the buffer's end. */
static enum gradcmp_status compute(const struct gcmp_worker *worker, const struct gcmp_unit *unit,
                                   size_t side, unsigned char *out, struct gradcmp_error *error) {
    const struct gcmp_job *job = unit->task->job;
    const struct gcmp_side_plan *plan = &unit->task->plans[side];
    bool has_former = plan->side->parameter->former != NULL;
    size_t elems = (size_t)unit->elems;
    double *values = (double *)(void *)out;
    gcmp_scale_float64(out + elems * (sizeof *values - plan->elem_bytes),
                       (enum gradcmp_dtype)plan->side->parameter->dtype, elems,
                       has_former ? 0 : job->scale_log2, values);
    if (has_former) {
        GCMP_TRY(subtract_former(worker, unit, side, values, error));
        gcmp_scale_float64(values, GRADCMP_DTYPE_FLOAT64, elems, job->scale_log2, values);
    }
    for (size_t i = 0; plan->side->divisor != 0.0 && i < elems; i++) {
        values[i] /= plan->side->divisor;
    }
    if (plan->side->rounding != GRADCMP_DTYPE_NONE) {
        gcmp_round_float64(values, elems, plan->side->rounding);
    }
    return GRADCMP_OK;
}

/* Values that are computed become float64: narrower ones are gathered at the buffer's end and
 * widened from there. */
struct gcmp_want gcmp_worker_want(const struct gcmp_unit *unit, size_t side, unsigned char *out,
                                  const struct gcmp_staging *staging) {
    const struct gcmp_side_plan *plan = &unit->task->plans[side];
    unsigned wide = gcmp_job_elem_bytes(unit->task->job, side);
    unsigned char *at = out + (size_t)unit->elems * (wide - plan->elem_bytes);
    return (struct gcmp_want){plan, unit->first, (size_t)unit->elems, at, staging};
}

bool gcmp_worker_end_gather(const struct gcmp_worker *worker, const struct gcmp_unit *unit,
                            size_t side, unsigned char *out, const struct gcmp_gathered *gathered) {
    const struct gcmp_task *task = unit->task;
    const struct gcmp_side_plan *plan = &task->plans[side];
    struct gcmp_fault fault = {.place = {task->index, unit->first},
                               .side = side,
                               .elems = unit->elems,
                               .error = gathered->error};
    enum gradcmp_status status = gathered->status;
    if (status == GRADCMP_OK && gcmp_job_computes(task->job, side)) {
        fault.side = SIZE_MAX; /* of the former: told as it is */
        status = compute(worker, unit, side, out, &fault.error);
    }
    if (status == GRADCMP_ERROR_MEMORY) {
        gcmp_run_stop(worker->run, &fault.error);
    } else if (status != GRADCMP_OK) {
        gcmp_faults_add(&worker->run->faults, plan->side->owner, &fault);
    }
    return status == GRADCMP_OK;
}

/* Gather a side of a unit; a fault is recorded. */
static bool gather(const struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                   unsigned char *out) {
    struct gcmp_want want = gcmp_worker_want(unit, side, out, &worker->staging);
    struct gcmp_gathered gathered;
    memset(&gathered.error, 0, sizeof gathered.error);
    gathered.status = timed_gather(worker, &want, &gathered.error);
    return gcmp_worker_end_gather(worker, unit, side, out, &gathered);
}

void gcmp_worker_fold(const struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                      const struct gradcmp_tally *root) {
    struct gcmp_task *task = unit->task;
    size_t index = side == 0 ? 0 : side - 1;
    pthread_mutex_lock(&task->lock);
    bool ok = gcmp_fold_add(&task->folds[index], unit->index, root, &task->job->tallies[index]);
    pthread_mutex_unlock(&task->lock);
    if (!ok) {
        struct gradcmp_error error;
        gcmp_error_set(&error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        gcmp_run_stop(worker->run, &error);
    }
}

static bool is_tallied(const struct gcmp_job *job, size_t side) {
    return job->face == NULL && gcmp_dtype_is_float(gcmp_job_dtype(job, 0)) &&
           gcmp_dtype_is_float(gcmp_job_dtype(job, side));
}

void gcmp_worker_tally(const struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                       const unsigned char *other) {
    const struct gcmp_job *job = unit->task->job;
    struct gradcmp_tally root;
    memset(&root, 0, sizeof root);
    if (is_tallied(job, side)) {
        gcmp_run_begin_tally(worker->run);
        gcmp_tally_span(worker->run->kernel, worker->a, gcmp_job_dtype(job, 0), other,
                        gcmp_job_dtype(job, side), unit->elems, &root);
        gcmp_run_end_tally(worker->run);
        gcmp_tally_shift(&root, unit->first);
    } else {
        root.elems = unit->elems;
    }
    if (job->face != NULL && side > 0) {
        struct gcmp_facing facing = {side - 1, unit->first, (size_t)unit->elems, worker->a, other};
        gcmp_run_begin_tally(worker->run);
        job->face(job->face_user, &facing);
        gcmp_run_end_tally(worker->run);
    }
    gcmp_worker_fold(worker, unit, side, &root);
}

/* The same where the lane, if there is one, may do it. */
static void tally_or_start(struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                           const unsigned char *other) {
    if (worker->lane.handle != NULL && is_tallied(unit->task->job, side)) {
        gcmp_lane_start(worker, side);
    } else {
        gcmp_worker_tally(worker, unit, side, other);
    }
}

/* Hand a unit to the job's sink when its turn has come, unless an earlier one failed. */
static void deliver(const struct gcmp_worker *worker, const struct gcmp_unit *unit, bool gathered) {
    const struct gcmp_job *job = unit->task->job;
    gcmp_run_await_turn(worker->run, unit);
    if (gathered && gcmp_worker_is_live(worker, unit, 0) &&
        job->sink(job->sink_user, worker->a, (size_t)unit->elems * gcmp_job_elem_bytes(job, 0)) !=
            0) {
        struct gradcmp_error error;
        gcmp_error_set(&error, GRADCMP_ERROR_CANCELLED, NULL, GRADCMP_NO_OFFSET, "stopped");
        gcmp_run_stop(worker->run, &error);
    }
    gcmp_run_end_turn(worker->run);
}

/* Hand one side of a unit over; false where it stops the run. */
static bool hand_over(const struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                      const unsigned char *elems) {
    const struct gcmp_job *job = unit->task->job;
    if (job->sides(job->sink_user, side, unit->first, elems, (size_t)unit->elems) == 0) {
        return true;
    }
    struct gradcmp_error error;
    gcmp_error_set(&error, GRADCMP_ERROR_CANCELLED, NULL, GRADCMP_NO_OFFSET, "stopped");
    gcmp_run_stop(worker->run, &error);
    return false;
}

/* Gather all sides of a unit, in its turn hand them over one by one, and tally them. The first two
 * are read before the turn comes, so that threads wait for each other's reading only where there
 * are more. A run of which a side cannot be read is not handed over: its tallies are not used
 * either. */
static void process_sides(const struct gcmp_worker *worker, const struct gcmp_unit *unit) {
    const struct gcmp_job *job = unit->task->job;
    bool good = gcmp_worker_is_live(worker, unit, 0) && gather(worker, unit, 0, worker->a);
    if (good && job->b_count > 0) {
        good = gcmp_worker_is_live(worker, unit, 1) && gather(worker, unit, 1, worker->b);
    }
    gcmp_run_await_turn(worker->run, unit);
    good = good && hand_over(worker, unit, 0, worker->a);
    for (size_t side = 1; good && side <= job->b_count; side++) {
        good = side == 1 ||
               (gcmp_worker_is_live(worker, unit, side) && gather(worker, unit, side, worker->b));
        if (good) {
            gcmp_worker_tally(worker, unit, side, worker->b);
            good = hand_over(worker, unit, side, worker->b);
        }
    }
    gcmp_run_end_turn(worker->run);
}

bool gcmp_worker_is_wanted(const struct gcmp_worker *worker, const struct gcmp_unit *unit) {
    const struct gcmp_job *job = unit->task->job;
    bool wanted = job->b_count == 0 || job->sink != NULL;
    for (size_t side = 1; side <= job->b_count && !wanted; side++) {
        wanted = gcmp_worker_is_live(worker, unit, side);
    }
    return wanted;
}

/* Gather and tally a unit. */
static void process(struct gcmp_worker *worker, const struct gcmp_unit *unit) {
    const struct gcmp_job *job = unit->task->job;
    if (job->sides != NULL) {
        gcmp_worker_finish(worker); /* its buffers are used */
        process_sides(worker, unit);
        gcmp_run_done(worker->run, unit);
        return;
    }
    worker->timed = worker->units++ % TIMED_UNITS == 0;
    bool wanted = gcmp_worker_is_wanted(worker, unit);
    bool has_lane = worker->lane.handle != NULL;
    if (has_lane) {
        gcmp_lane_next_a(worker, unit);
    }
    bool gathered =
        wanted && gcmp_worker_is_live(worker, unit, 0) && gather(worker, unit, 0, worker->a);
    if (job->sink != NULL) {
        deliver(worker, unit, gathered);
    }
    if (gathered && job->b_count == 0) {
        if (has_lane) {
            gcmp_lane_next_b(worker); /* where the result goes */
        }
        tally_or_start(worker, unit, 0, worker->a);
    }
    for (size_t side = 1; side <= job->b_count && gathered; side++) {
        if (has_lane) {
            gcmp_lane_next_b(worker);
        }
        if (gcmp_worker_is_live(worker, unit, side) && gather(worker, unit, side, worker->b)) {
            tally_or_start(worker, unit, side, worker->b);
        }
    }
    if (has_lane) {
        gcmp_lane_end_unit(worker);
    } else {
        gcmp_run_done(worker->run, unit);
    }
}

bool gcmp_worker_step(struct gcmp_worker *worker) {
    struct gcmp_unit unit;
    if (worker->ahead != NULL) {
        return gcmp_ahead_step(worker);
    }
    if (!gcmp_run_take(worker->run, &unit)) {
        return false;
    }
    process(worker, &unit);
    return true;
}

/* --- faults --- */

/* Read the blocks of a faulty unit one by one up to the first one that fails. A fault that does not
 * come back (a disk that thought better of it) stays as it was. */
static void refine(const struct gcmp_worker *worker, const struct gcmp_side_plan *plan,
                   struct gcmp_fault *fault) {
    uint64_t end = fault->place.elem + fault->elems;
    uint64_t step = plan->elem_bytes <= 8 ? GRADCMP_BLOCK_ELEMS : GRADCMP_BLOCK_ELEMS / 2;
    for (uint64_t first = fault->place.elem; first < end; first += step) {
        uint64_t left = end - first;
        struct gcmp_want want = {plan, first, (size_t)(left < step ? left : step), worker->a,
                                 &worker->staging};
        struct gradcmp_error error;
        memset(&error, 0, sizeof error);
        enum gradcmp_status status = gcmp_gather(&want, &error);
        if (status != GRADCMP_OK) {
            if (status != GRADCMP_ERROR_MEMORY) {
                fault->error = error;
            }
            return;
        }
    }
}

void gcmp_worker_refine_faults(struct gcmp_worker *worker) {
    struct gcmp_run *run = worker->run;
    for (size_t owner = 0; owner < run->faults.owner_count; owner++) {
        struct gcmp_fault *fault = &run->faults.by_owner[owner];
        if (!fault->set || fault->side == SIZE_MAX) {
            continue;
        }
        const struct gcmp_job *job = &run->jobs[fault->place.job];
        const struct gcmp_side *side = gcmp_job_side(job, fault->side);
        struct gcmp_side_plan plan;
        if (gcmp_side_plan_make(&plan, side, job->elems, gcmp_run_records(run, side->catalogue),
                                NULL) == GRADCMP_OK) {
            refine(worker, &plan, fault);
        }
        gcmp_side_plan_free(&plan);
    }
}
