/* What a thread does whose reads run ahead of its sums: it starts to gather sides of the units to
 * come, in order, and tallies them in that order as they arrive. */
#include <stdlib.h>
#include <string.h>

#include "engine/run.h"

/* Reads that one ring has room for; more are refused, and made when their turn comes. */
enum { RING_READS = 256 };
/* Loads in a row that were there at once before fewer are started ahead. */
enum { QUICK_LOADS = 32 };

/* A side of a unit under way, and its buffers. */
struct slot {
    struct gcmp_unit unit;
    size_t side;
    bool is_started; /* else the side is not to be read */
    unsigned char *elems;
    struct gcmp_staging staging;
    struct gcmp_load load;
};

struct gcmp_ahead {
    struct gcmp_under_way under_way;
    unsigned slot_count;
    unsigned queue[GCMP_MOST_SLOTS], queued; /* slots under way, the next one to be tallied first */
    unsigned free[GCMP_MOST_SLOTS], free_count;
    /* Loads that are started ahead: one where the page cache has everything, since what waits for
     * its turn leaves the processor's cache; as many as there are slots where reads take time. */
    unsigned depth, quick_loads;
    struct gcmp_unit unit; /* whose sides are being started */
    bool has_unit;
    size_t next_side;
    unsigned slot_a; /* of the unit that is being tallied */
    bool has_a;      /* its a was gathered */
    struct slot slots[GCMP_MOST_SLOTS];
};

struct gcmp_ring *gcmp_ahead_open_ring(const struct gcmp_ring_way *way) {
    return way->open(RING_READS);
}

bool gcmp_ahead_make(struct gcmp_worker *worker) {
    const struct gcmp_run *run = worker->run;
    struct gcmp_ahead *ahead = calloc(1, sizeof *ahead);
    worker->ahead = ahead;
    if (ahead == NULL) {
        return false;
    }
    ahead->under_way.way = run->ring_way;
    ahead->under_way.ring = gcmp_ahead_open_ring(run->ring_way);
    ahead->slot_count = run->slots;
    ahead->depth = run->direct ? run->slots : 1;
    bool ok = true;
    for (unsigned i = 0; i < run->slots; i++) {
        struct slot *slot = &ahead->slots[i];
        slot->elems = gcmp_buffer_make(run->buffer_bytes);
        slot->staging =
            (struct gcmp_staging){gcmp_buffer_make(run->buffer_bytes), run->buffer_bytes};
        ok = ok && slot->elems != NULL && slot->staging.bytes != NULL;
        ahead->free[ahead->free_count++] = i;
    }
    worker->a = ahead->slots[0].elems; /* for faults that are looked for once more */
    return ok;
}

void gcmp_ahead_free(struct gcmp_worker *worker) {
    struct gcmp_ahead *ahead = worker->ahead;
    for (unsigned i = 0; i < ahead->slot_count; i++) {
        free(ahead->slots[i].elems);
        free(ahead->slots[i].staging.bytes);
    }
    if (ahead->under_way.ring != NULL) {
        ahead->under_way.way->close(ahead->under_way.ring);
    }
    free(ahead);
    worker->ahead = NULL;
}

/* --- how far ahead --- */

/* A load was started: where they are there at once, fewer are needed. */
static void note_start(struct gcmp_ahead *ahead, const struct slot *slot) {
    bool is_quick = gcmp_load_is_here(&slot->load, &ahead->under_way);
    ahead->quick_loads = is_quick ? ahead->quick_loads + 1 : 0;
    if (ahead->quick_loads == QUICK_LOADS) {
        ahead->quick_loads = 0;
        ahead->depth = ahead->depth > 1 ? ahead->depth / 2 : 1;
    }
}

/* A load is needed: where it has to be waited for, more are to be under way. */
static void note_need(struct gcmp_ahead *ahead, const struct slot *slot) {
    if (!gcmp_load_is_here(&slot->load, &ahead->under_way)) {
        ahead->depth = 2 * ahead->depth < ahead->slot_count ? 2 * ahead->depth : ahead->slot_count;
    }
}

/* --- starting --- */

/* Start the next side of the unit at hand. */
static void start_side(struct gcmp_worker *worker) {
    struct gcmp_ahead *ahead = worker->ahead;
    unsigned index = ahead->free[--ahead->free_count];
    struct slot *slot = &ahead->slots[index];
    slot->unit = ahead->unit;
    slot->side = ahead->next_side++;
    ahead->has_unit = ahead->next_side <= slot->unit.task->job->b_count;
    ahead->queue[ahead->queued++] = index;
    slot->is_started = gcmp_worker_is_live(worker, &slot->unit, slot->side) &&
                       (slot->side > 0 || gcmp_worker_is_wanted(worker, &slot->unit));
    if (slot->is_started) {
        slot->load.want = gcmp_worker_want(&slot->unit, slot->side, slot->elems, &slot->staging);
        gcmp_load_start(&slot->load, &ahead->under_way);
        note_start(ahead, slot);
    }
}

static void fill(struct gcmp_worker *worker) {
    struct gcmp_ahead *ahead = worker->ahead;
    while (ahead->free_count > 0 && ahead->queued < ahead->depth) {
        if (!ahead->has_unit) {
            if (!gcmp_run_take(worker->run, &ahead->unit)) {
                return;
            }
            ahead->has_unit = true;
            ahead->next_side = 0;
        }
        start_side(worker);
    }
}

/* --- ending --- */

/* Wait for a side; true where its elements are in its buffer. A b is not needed without its a. */
static bool end_side(struct gcmp_worker *worker, struct slot *slot) {
    struct gcmp_ahead *ahead = worker->ahead;
    bool is_wanted = slot->side == 0 || ahead->has_a;
    struct gcmp_gathered gathered;
    if (!slot->is_started) {
        return false;
    }
    note_need(ahead, slot);
    memset(&gathered.error, 0, sizeof gathered.error);
    gathered.status =
        gcmp_load_end(&slot->load, &ahead->under_way, &worker->staging, is_wanted, &gathered.error);
    return is_wanted &&
           gcmp_worker_end_gather(worker, &slot->unit, slot->side, slot->elems, &gathered);
}

static unsigned take_oldest(struct gcmp_ahead *ahead) {
    unsigned index = ahead->queue[0];
    ahead->queued--;
    memmove(ahead->queue, ahead->queue + 1, ahead->queued * sizeof *ahead->queue);
    return index;
}

bool gcmp_ahead_step(struct gcmp_worker *worker) {
    struct gcmp_ahead *ahead = worker->ahead;
    fill(worker);
    if (ahead->queued == 0) {
        return false;
    }
    unsigned index = take_oldest(ahead);
    struct slot *slot = &ahead->slots[index];
    size_t last_side = slot->unit.task->job->b_count;
    bool is_good = end_side(worker, slot);
    if (slot->side == 0) {
        ahead->slot_a = index;
        ahead->has_a = is_good;
        worker->a = slot->elems;
    }
    if (is_good && (slot->side > 0 || last_side == 0)) {
        gcmp_worker_tally(worker, &slot->unit, slot->side, slot->elems);
    }
    if (slot->side > 0) {
        ahead->free[ahead->free_count++] = index;
    }
    if (slot->side == last_side) {
        ahead->free[ahead->free_count++] = ahead->slot_a;
        gcmp_run_done(worker->run, &slot->unit);
    }
    return true;
}
