/* The error bound by depth, and the verdicts of parameters and pairs. Knows nothing of files. */
#ifndef GCMP_BOUNDS_BOUNDS_H
#define GCMP_BOUNDS_BOUNDS_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"

/* Fill a bound's k, C and cap from the options (0 there: the default for its dtype), its eps from
 * its dtype, and the constant rule from compat_megatron. Reads bound->dtype and dtype_source, keeps
 * those and layers. No fit is applied yet (bounds/fit.h).
 *
 * The constant rule is that of the script it stands for: k = 4 and the eps of bfloat16 whatever the
 * run computed in, unless --dtype was said (dtype_source GRADCMP_DTYPE_FROM_OPTION). */
void gcmp_bound_init(struct gradcmp_bound *bound, const struct gradcmp_options *options);

/* bound(l) = min(k C^(L+1-l) eps, cap); an l past L+1 counts as L+1. Constant rule: l = 0 and
 * L = 32 on every layer, so min(k C^33 eps, cap): 4 * 1.03^33 * 2^-7 = 0.0829.
 * Source: TTrace, arXiv 2506.09280, theorem 5.3. */
double gcmp_bound_at(const struct gradcmp_bound *bound, int64_t layer);

/* The unit that tolerances of factors are in: eps, and 8 eps for float32 and float64, whose noise
 * is that of the order of accumulation (as in the default k; whatever k was chosen), but not where
 * the constant rule took the eps of bfloat16. */
double gcmp_noise_unit(const struct gradcmp_bound *bound);

/* Judge all parameters of a pair and the pair itself: reads the first part of each parameter report
 * and pair->bound, fills the rest of both, but not pair's path, catalogue, error, bytes and notes.
 * Texts live in `arena`. Errors: MEMORY only.
 *
 * The pair, the first that applies:
 *   vacuous       no parameter is on both sides
 *   undecided     the type is assumed (GRADCMP_DTYPE_ASSUMED_STATE, float32 or float64), parameters
 *                 fail or are off in scale, and under a coarser type the whole pair is consistent
 *   inconsistent  any parameter shape, missing, extra, conflict, nonfinite, fail or scale; or a
 *                 common factor
 *   vacuous       no parameter with a non-zero gradient was judged
 *   inconsistent  options->strict and elements unjudged
 *   vacuous       more than a tenth of the elements unjudged
 *   consistent
 * Vacuous without a common parameter comes before `missing`: two unrelated checkpoints are not a
 * wrong gradient. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_judge_pair(struct gradcmp_pair_report *pair,
                                                     const struct gradcmp_options *options,
                                                     struct gcmp_arena *arena,
                                                     struct gradcmp_error *error);

#endif
