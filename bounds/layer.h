/* Layers of a pair: their gradients' size, and where errors start and jump. */
#ifndef GCMP_BOUNDS_LAYER_H
#define GCMP_BOUNDS_LAYER_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"

/* Fill rms[count]: of each parameter, the root mean square of the baseline's gradients over its
 * layer (comparable parameters, finite elements); NaN where there are none. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_layer_rms(const struct gradcmp_parameter_report *parameters, size_t count, double *rms,
               struct gcmp_arena *scratch, struct gradcmp_error *error);

/* Return the highest l of a parameter with verdict fail, scale, nonfinite or conflict; -1: none. */
int64_t gcmp_layer_onset(const struct gradcmp_parameter_report *parameters, size_t count);

/* Store in *layer the l at which errors grow most against the next layer nearer to the loss that
 * has parameters, -1 where nothing is wrong anywhere. A layer's error is the largest of its
 * parameters: the ratio to the bound; under `scale` |alpha - 1| over its tolerance where that is
 * larger; without end under nonfinite and
 * conflict, and under a fail that no bound moves. All that is inside counts as 1, so that noise
 * does not jump, and so does what is above the highest layer. Of equal jumps the one nearest to the
 * loss. Reads pair->common_factor. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_layer_jump(const struct gradcmp_pair_report *pair,
                                                     int64_t *layer, struct gcmp_arena *scratch,
                                                     struct gradcmp_error *error);

#endif
