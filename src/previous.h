/* Gradients recovered from an average over steps: with m_t = beta m_(t-1) + (1 - beta) g and the
 * checkpoint of the step before, g = (m_t - beta m_(t-1)) / (1 - beta) (Adam's exp_avg; exp_avg_sq
 * gives g^2 alike). */
#ifndef GCMP_PREVIOUS_H
#define GCMP_PREVIOUS_H

#include "comparison.h"

/* Open the checkpoints that --previous-a and --previous-b name and give every parameter of the
 * state that is compared its former one, so that whoever reads it reads the gradient. Call when the
 * models were made and before they are paired; a side whose beta is 0 stays as it is. UNSUPPORTED
 * or USAGE where the state is no such average, beta or steps are not known, steps do not follow one
 * another, or a parameter is not the same in both. A fault of the candidate's is its pair's. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_previous_link(struct gcmp_comparison *comparison,
                                                        struct gradcmp_error *error);

/* Refuse (UNSUPPORTED) a pair whose bound is finer than what the rounding of the stored averages
 * leaves of the gradient. Call when the pair's bound is known. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_previous_check(const struct gcmp_comparison *comparison,
                                                         const struct gcmp_participant *candidate,
                                                         const struct gradcmp_bound *bound,
                                                         struct gradcmp_error *error);

#endif
