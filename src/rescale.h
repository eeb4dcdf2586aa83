/* When sums of squares of float64 values leave the range of binary64, and the scale of a second
 * reading that brings them back. */
#ifndef GCMP_RESCALE_H
#define GCMP_RESCALE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradcmp/gradcmp.h"
#include "gradcmp/sys/tally.h"

/* True where squares of float64 values left the range of binary64 although the values did not. Of
 * one side alone, give it as both. */
static inline bool gcmp_needs_rescaling(uint32_t dtype_a, uint32_t dtype_b,
                                        const struct gradcmp_tally *t) {
    bool wide = dtype_a == GRADCMP_DTYPE_FLOAT64 || dtype_b == GRADCMP_DTYPE_FLOAT64;
    bool overflow = !isfinite(t->a2) || !isfinite(t->b2) || !isfinite(t->ad) || !isfinite(t->d2);
    /* Below DBL_MIN / DBL_EPSILON a sum of squares has lost bits to underflow. */
    double least = DBL_MIN / DBL_EPSILON;
    bool underflow = (t->max_a > 0.0 && t->a2 < least) || (t->max_b > 0.0 && t->b2 < least);
    return wide && (overflow || underflow) && fmax(t->max_a, t->max_b) > 0.0;
}

/* The scale that brings the largest value of both sides to 1 to 2. */
static inline int gcmp_common_scale_log2(const struct gradcmp_tally *tally) {
    return -ilogb(fmax(tally->max_a, tally->max_b));
}

#endif
