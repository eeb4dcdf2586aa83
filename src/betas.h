/* What Adam's betas make of a gradient: at step 1, exp_avg is (1 - beta1) g and exp_avg_sq is
 * (1 - beta2) g^2, so that sides of different betas differ by a known factor that is no fault. */
#ifndef GCMP_BETAS_H
#define GCMP_BETAS_H

#include "comparison.h"

/* For each pair whose sides have different betas at step 1, bring the candidate's tallies to the
 * baseline's betas; say so, and say where a later step or a state without signs limits what the
 * comparison shows. Call between measuring and judging. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_apply_betas(struct gcmp_comparison *comparison,
                                                      struct gradcmp_error *error);

#endif
