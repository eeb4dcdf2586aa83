/* What Adam's betas make of a gradient: at step 1, exp_avg is (1 - beta1) g and exp_avg_sq is
 * (1 - beta2) g^2, so that sides of different betas differ by a known factor that is no fault. */
#ifndef GCMP_BETAS_H
#define GCMP_BETAS_H

#include "comparison.h"

/* The optimizer's own step where it is stored, else the iteration; NaN where neither is. */
double gcmp_step_of(const struct gradcmp_catalogue *catalogue);

/* The beta that a state is an average with; NaN where it is none, or it is not stored. */
double gcmp_beta_of(const struct gradcmp_catalogue *catalogue, const char *state);

/* Note where a beta that the checkpoint states is none. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_betas(struct gradcmp_catalogue *catalogue,
                                                     struct gradcmp_error *error);

/* For each pair whose sides are the gradient times different known factors (1 with beta 0 and where
 * it was recovered, 1 - beta at step 1), bring the candidate's tallies to the baseline's; say so,
 * and say where a later step or a state without signs limits what the comparison shows. A pair of
 * which one side alone was recovered and the other is an average over steps fails. Call between
 * measuring and judging. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_apply_betas(struct gcmp_comparison *comparison,
                                                      struct gradcmp_error *error);

#endif
