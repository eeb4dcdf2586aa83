/* What went wrong on each side, so that the same fault is reported on any number of threads. */
#ifndef GCMP_ENGINE_FAULTS_H
#define GCMP_ENGINE_FAULTS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

/* A place in a run: jobs in order, elements of a job in order. */
struct gcmp_place {
    size_t job;
    uint64_t elem;
};

/* The first fault of one owner. */
struct gcmp_fault {
    bool set;
    struct gcmp_place place;
    uint64_t tie;   /* orders faults of one place that concern no element; else 0 */
    size_t side;    /* of the job: 0 is a, 1 + i is b[i]; SIZE_MAX: no side's elements */
    uint64_t elems; /* the fault lies in [place.elem, place.elem + elems) */
    struct gradcmp_error error;
};

struct gcmp_faults {
    pthread_mutex_t lock;
    struct gcmp_fault *by_owner; /* owned */
    size_t owner_count;
};

/* False without memory. */
bool gcmp_faults_make(struct gcmp_faults *faults, size_t owner_count);
void gcmp_faults_free(struct gcmp_faults *faults);

/* Record a fault unless the owner has an earlier one. */
void gcmp_faults_add(struct gcmp_faults *faults, size_t owner, const struct gcmp_fault *fault);

/* Tell whether an owner has a fault at `place` or before: what comes after it need not be read. All
 * that comes before it is still read, so that the first fault is found. */
bool gcmp_faults_block(struct gcmp_faults *faults, size_t owner, struct gcmp_place place);

#endif
