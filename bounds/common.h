/* A factor common to all parameters: clipping, a wrong gradient norm, a mean for a sum.
 *
 * The factor c is the median of alpha over the parameters, each kind with one vote
 * (bounds/kind.h). It is claimed only when all of these hold:
 *
 *   1. |c - 1| > max(0.4 units, 5 sigma / sqrt(N)), the unit of bounds/scale.h, sigma the spread of
 * alpha / c (1.4826 times the median deviation) and N the effective number of votes (Kish: square
 * of the sum over sum of squares). A median of N values is known to 1.25 sigma / sqrt(N), so this
 * is four deviations; what all parameters inherit from the loss they have in common, and does not
 *      average out: the first term.
 *   2. At least half of the parameters pass once c is divided out, by bound and scale test.
 *   3. So do at least half of the votes.
 *   4. At most a twentieth of the votes is against: parameters that pass as they are and do not
 *      once c is divided out. What agrees is right. A reduction done twice in the backward pass of
 *      the output layer doubles all that is below it, which is most of the model, but not the
 *      output layer: that is an onset, not a common factor.
 *   5. There are at least two parameters.
 *
 * What is left is derived from the sums, sum (b - c a)^2 = D - 2 (c - 1) P + (c - 1)^2 A, in the
 * form that cancels least (gcmp_rest_of); where that is too coarse for the bound, src/rest.c
 * measures it.
 *
 * On the good pairs of bounds/scale.h the median is within 0.28 eps of 1. A common 0.5 % is 0.64
 * eps of bfloat16; with half an eps in rule 1 and eight sigma the study (tests/study) missed it in
 * an eighth of the draws, with these in none. */
#ifndef GCMP_BOUNDS_COMMON_H
#define GCMP_BOUNDS_COMMON_H

#include "bounds/trial.h"

/* Return the median, or the factor that the rests were measured with, where that is as near to it
 * as matters. Uses trial->samples. */
double gcmp_usual_factor(const struct gcmp_trial *trial);

/* Return trial->usual as the common factor, or NaN where none can be claimed. Uses trial->samples.
 */
double gcmp_common_factor(const struct gcmp_trial *trial);

#endif
