/* The error bound by depth, and the verdicts of parameters and pairs. Knows nothing of files. */
#ifndef GCMP_BOUNDS_BOUNDS_H
#define GCMP_BOUNDS_BOUNDS_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"

/* Fill a bound's k, C and cap from the options (0 there: the default for its dtype), its eps from
 * its dtype, and the constant rule from compat_megatron. */
void gcmp_bound_init(struct gradcmp_bound *bound, const struct gradcmp_options *options);

/* bound(l) = min(k C^(L+1-l) eps, cap). Source: TTrace, arXiv 2506.09280, theorem 5.3. */
double gcmp_bound_at(const struct gradcmp_bound *bound, int64_t layer);

/* Judge all parameters of a pair and the pair itself: reads the first part of each parameter report
 * and pair->bound, fills the rest. Texts live in `arena`. Errors: MEMORY only. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_judge_pair(struct gradcmp_pair_report *pair,
                                                     const struct gradcmp_options *options,
                                                     struct gcmp_arena *arena,
                                                     struct gradcmp_error *error);

#endif
