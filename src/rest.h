/* Reads parameters again to see what a factor leaves of them, where sums of squares are too coarse
 * to tell: exact multiples in float64, small factors in float32. */
#ifndef GCMP_REST_H
#define GCMP_REST_H

#include "comparison.h"

/* Judge pair `index` (gcmp_judge_pair), and where the factor that most of its parameters have
 * leaves less than the sums can show, measure what it leaves and judge again. Errors: MEMORY; as
 * gcmp_engine_run. A candidate that cannot be read any more becomes an error of its pair. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_judge_closely(struct gcmp_comparison *comparison,
                                                        size_t index, struct gradcmp_error *error);

/* Have the sums of pair `index` be over the candidate divided by state_factor, where those that
 * were made of the sums before it was divided out are too coarse for the bound. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_measure_divided(struct gcmp_comparison *comparison, size_t index, struct gradcmp_error *error);

/* Measure what its own factor leaves of each failing parameter of which the sums cannot show it. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_measure_own_rests(struct gcmp_comparison *comparison,
                                                            size_t index,
                                                            struct gradcmp_error *error);

#endif
