/* Coarser types: would a pair whose compute type is only assumed pass under another one? */
#ifndef GCMP_BOUNDS_COARSER_H
#define GCMP_BOUNDS_COARSER_H

#include "base/arena.h"
#include "base/error.h"
#include "bounds/trial.h"

/* A type that a run may have computed in although its state is wider. */
struct gcmp_coarser {
    enum gradcmp_dtype dtype; /* whose k counts */
    double eps;
    const char *name;   /* for the reader */
    const char *option; /* what --dtype is to be told */
};

/* Store in *found the finest coarser type under which nothing of the pair is wrong, or NULL: always
 * NULL where the type is known, or narrower than float32, or the bound a constant. The trial, which
 * has run, stays as it is. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_coarser_find(const struct gcmp_trial *trial,
                                                       const struct gradcmp_options *options,
                                                       const struct gcmp_coarser **found,
                                                       struct gcmp_arena *scratch,
                                                       struct gradcmp_error *error);

#endif
