/* Did both sides of a pair start from the same weights? */
#ifndef GCMP_DIAGNOSE_START_H
#define GCMP_DIAGNOSE_START_H

#include "bounds/cause_start.h"
#include "comparison.h"

/* What was found of the starts. */
struct gcmp_start_finding {
    enum gcmp_starts starts;
    size_t looked_at, differing; /* parameters */
    double rel;                  /* of the differing ones, the difference of the starts */
};

/* Read samples of the weights (the fp32 masters where both sides have them) and moments of both
 * sides and undo the first step. UNKNOWN where a side is not at step 1, or where weights or the
 * learning rate are not stored. Weights that cannot be read tell nothing. Errors: MEMORY,
 * CANCELLED, a baseline that cannot be read any more. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_diagnose_start(struct gcmp_comparison *comparison,
                                                         size_t pair,
                                                         struct gcmp_start_finding *out,
                                                         struct gradcmp_error *error);

#endif
