/* What a thread does with its lane of an accelerator: one unit's tallies run while the next one is
 * gathered. Whatever fails there is tallied here, from the same buffers. */
#include <string.h>

#include "engine/run.h"

/* The accelerator failed: the run goes on without it, or ends, as its caller said. */
static void fail(struct gcmp_worker *worker, const struct gradcmp_error *error) {
    struct gcmp_run *run = worker->run;
    worker->lane.failed = true;
    if (run->accelerator_error == NULL) {
        gcmp_run_stop(run, error);
        return;
    }
    pthread_mutex_lock(&run->lock);
    if (run->accelerator_error->code == GRADCMP_OK) {
        *run->accelerator_error = *error;
    }
    pthread_mutex_unlock(&run->lock);
}

static bool has_failed_elsewhere(struct gcmp_run *run) {
    pthread_mutex_lock(&run->lock);
    bool failed = run->accelerator_error != NULL && run->accelerator_error->code != GRADCMP_OK;
    pthread_mutex_unlock(&run->lock);
    return failed;
}

static unsigned char *buffer(const struct gcmp_worker *worker, unsigned side, unsigned slot) {
    return worker->run->accelerator->backend->buffer(worker->lane.handle, side, slot);
}

void gcmp_lane_make(struct gcmp_worker *worker) {
    const struct gcmp_accelerator *accelerator = worker->run->accelerator;
    struct gradcmp_error error;
    memset(&worker->lane, 0, sizeof worker->lane);
    memset(&error, 0, sizeof error);
    if (accelerator == NULL || has_failed_elsewhere(worker->run)) {
        return;
    }
    if (accelerator->backend->lane_open(accelerator->device, worker->run->buffer_bytes,
                                        &worker->lane.handle, &error) != GRADCMP_OK) {
        worker->lane.handle = NULL;
        fail(worker, &error);
        return;
    }
    worker->a = buffer(worker, 0, 0);
    worker->b = buffer(worker, 1, 0);
}

void gcmp_lane_free(struct gcmp_worker *worker) {
    if (worker->lane.handle != NULL) {
        worker->run->accelerator->backend->lane_close(worker->lane.handle);
    }
}

/* Tally on this thread what the lane did not. */
static void tally_here(const struct gcmp_worker *worker, const struct gradcmp_backend_work *work,
                       struct gradcmp_tally *root) {
    const unsigned char *a = buffer(worker, 0, work->slot_a);
    const unsigned char *b = work->alone ? a : buffer(worker, 1, work->slot_b);
    gcmp_run_begin_tally(worker->run);
    gcmp_tally_span(worker->run->kernel, a, work->dtype_a, b, work->dtype_b, work->elems, root);
    gcmp_run_end_tally(worker->run);
}

static void finish_flight(struct gcmp_worker *worker, const struct gcmp_flight *flight,
                          const struct gradcmp_tally *blocks) {
    const struct gcmp_unit *unit = &worker->lane.units[flight->work.slot_a].unit;
    struct gradcmp_tally root;
    if (blocks != NULL) {
        gcmp_tally_join(blocks, flight->work.elems, &root);
    } else {
        tally_here(worker, &flight->work, &root);
    }
    gcmp_tally_shift(&root, unit->first);
    gcmp_worker_fold(worker, unit, flight->side, &root);
}

/* Give a unit back once all of its tallies were started and have landed. */
static void close_unit(struct gcmp_worker *worker, unsigned slot_a) {
    struct gcmp_lane *lane = &worker->lane;
    bool is_flying = false;
    for (unsigned i = 0; i < GRADCMP_BACKEND_SLOTS; i++) {
        is_flying |= lane->flights[i].is_flying && lane->flights[i].work.slot_a == slot_a;
    }
    if (lane->units[slot_a].is_open && lane->units[slot_a].is_started && !is_flying) {
        lane->units[slot_a].is_open = false;
        gcmp_run_done(worker->run, &lane->units[slot_a].unit);
    }
}

/* Wait for the tally of a slot. */
static void land(struct gcmp_worker *worker, unsigned slot_b) {
    struct gcmp_flight *flight = &worker->lane.flights[slot_b];
    if (!flight->is_flying) {
        return;
    }
    const struct gradcmp_tally *blocks = NULL;
    struct gradcmp_error error;
    memset(&error, 0, sizeof error);
    if (worker->run->accelerator->backend->wait(worker->lane.handle, slot_b, &blocks, &error) !=
        GRADCMP_OK) {
        blocks = NULL;
        fail(worker, &error);
    }
    finish_flight(worker, flight, blocks);
    flight->is_flying = false;
    close_unit(worker, flight->work.slot_a);
}

void gcmp_lane_next_a(struct gcmp_worker *worker, const struct gcmp_unit *unit) {
    struct gcmp_lane *lane = &worker->lane;
    lane->slot_a = (lane->slot_a + 1) % GRADCMP_BACKEND_SLOTS;
    for (unsigned i = 0; i < GRADCMP_BACKEND_SLOTS; i++) {
        if (lane->flights[i].work.slot_a == lane->slot_a) {
            land(worker, i);
        }
    }
    lane->units[lane->slot_a].unit = *unit;
    lane->units[lane->slot_a].is_open = true;
    lane->units[lane->slot_a].is_started = false;
    lane->a_is_new = true;
    worker->a = buffer(worker, 0, lane->slot_a);
}

void gcmp_lane_next_b(struct gcmp_worker *worker) {
    struct gcmp_lane *lane = &worker->lane;
    lane->slot_b = (lane->slot_b + 1) % GRADCMP_BACKEND_SLOTS;
    land(worker, lane->slot_b);
    worker->b = buffer(worker, 1, lane->slot_b);
}

void gcmp_lane_start(struct gcmp_worker *worker, size_t side) {
    struct gcmp_lane *lane = &worker->lane;
    const struct gcmp_unit *unit = &lane->units[lane->slot_a].unit;
    struct gcmp_flight *flight = &lane->flights[lane->slot_b];
    *flight = (struct gcmp_flight){.side = side,
                                   .work = {.slot_a = lane->slot_a,
                                            .slot_b = lane->slot_b,
                                            .a_is_new = lane->a_is_new,
                                            .alone = side == 0,
                                            .dtype_a = gcmp_job_dtype(unit->task->job, 0),
                                            .dtype_b = gcmp_job_dtype(unit->task->job, side),
                                            .elems = unit->elems}};
    struct gradcmp_error error;
    memset(&error, 0, sizeof error);
    if (!lane->failed && worker->run->accelerator->backend->start(lane->handle, &flight->work,
                                                                  &error) != GRADCMP_OK) {
        fail(worker, &error);
    }
    if (lane->failed) {
        finish_flight(worker, flight, NULL);
        return;
    }
    flight->is_flying = true;
    lane->a_is_new = false;
}

void gcmp_lane_end_unit(struct gcmp_worker *worker) {
    worker->lane.units[worker->lane.slot_a].is_started = true;
    close_unit(worker, worker->lane.slot_a);
}

void gcmp_lane_finish(struct gcmp_worker *worker) {
    for (unsigned i = 0; i < GRADCMP_BACKEND_SLOTS; i++) {
        land(worker, i);
    }
}
