/* First faults of owners. */
#include "engine/faults.h"

#include <stdlib.h>

bool gcmp_faults_make(struct gcmp_faults *faults, size_t owner_count) {
    faults->owner_count = owner_count;
    faults->by_owner = calloc(owner_count + 1, sizeof *faults->by_owner);
    pthread_mutex_init(&faults->lock, NULL);
    return faults->by_owner != NULL;
}

void gcmp_faults_free(struct gcmp_faults *faults) {
    free(faults->by_owner);
    pthread_mutex_destroy(&faults->lock);
}

static bool is_before(struct gcmp_place x, struct gcmp_place y) {
    return x.job != y.job ? x.job < y.job : x.elem < y.elem;
}

static bool is_earlier(const struct gcmp_fault *x, const struct gcmp_fault *y) {
    return is_before(x->place, y->place) || (!is_before(y->place, x->place) && x->tie < y->tie);
}

void gcmp_faults_add(struct gcmp_faults *faults, size_t owner, const struct gcmp_fault *fault) {
    struct gcmp_fault *first = &faults->by_owner[owner];
    pthread_mutex_lock(&faults->lock);
    if (!first->set || is_earlier(fault, first)) {
        *first = *fault;
        first->set = true;
    }
    pthread_mutex_unlock(&faults->lock);
}

bool gcmp_faults_block(struct gcmp_faults *faults, size_t owner, struct gcmp_place place) {
    const struct gcmp_fault *first = &faults->by_owner[owner];
    pthread_mutex_lock(&faults->lock);
    bool block = first->set && !is_before(place, first->place);
    pthread_mutex_unlock(&faults->lock);
    return block;
}
