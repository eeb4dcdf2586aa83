/* The weighted median: the middle of values that do not all count the same. */
#ifndef GCMP_BOUNDS_MEDIAN_H
#define GCMP_BOUNDS_MEDIAN_H

#include <stddef.h>

struct gcmp_sample {
    double value, weight; /* value finite, weight over 0 */
};

/* Return the value with half of the weight on either side; reorders the samples. Where two values
 * share the middle, the one nearer to `usual` wins, so that a fault in one half does not become the
 * norm. Without samples: `usual`. */
double gcmp_median(struct gcmp_sample *samples, size_t count, double usual);

#endif
