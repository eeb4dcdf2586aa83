/* Causes that concern every gradient: nothing is to be learned from single layers then. */
#ifndef GCMP_BOUNDS_CAUSE_GLOBAL_H
#define GCMP_BOUNDS_CAUSE_GLOBAL_H

#include "base/arena.h"
#include "base/error.h"
#include "bounds/cause.h"
#include "bounds/cause_start.h"

/* What is known beside the figures. */
struct gcmp_global_facts {
    enum gcmp_starts starts;
    uint64_t microbatches; /* of a data-parallel rank in one step, of the candidate; 0: not known */
    uint64_t dp;           /* of the candidate; 0: not known */
};

/* The cause that concerns every gradient, or NONE. Looked for only where nearly all parameters (19
 * of 20 of those that have an alpha and 16 elements, and as many of those nearest to the loss) fail
 * without a cause of their own.
 *
 * different_start: the starts differ. Then nothing else is asked.
 *
 * last_microbatch: b = g_N / N where a = (g_1 + ... + g_N) / N. With microbatches that are draws of
 * one distribution, <a, b> = |a|^2 / N in expectation, whatever part of the gradients they have in
 * common: alpha is 1/N in every parameter; |b| is at most |a| / sqrt(N), and the cosine at least
 * 1 / sqrt(N). Claimed where alpha over all elements is within 0.3 of 1/N, relatively (one
 * draw is not the mean of many), and so its median over parameters, half of the norms or more are
 * under 1.25 / sqrt(N) and the median cosine is over 0.75 / sqrt(N). Not where N = dp: a share lost
 * to data-parallel ranks would look the same.
 * (Where b was not divided, alpha is 1 as with any noise: nothing is claimed.)
 *
 * different_data: the starts agree; the median cosine is under 0.3 and nine in ten are under 0.9;
 * the median of norm ratios is within a factor of 3 of 1. (Of 22 kinds of faults put into training,
 * none had a median cosine under 0.96; of other data, none over 0.11.) */
enum gcmp_cause_kind gcmp_cause_global(const struct gradcmp_pair_report *pair,
                                       const struct gcmp_global_facts *facts,
                                       struct gcmp_arena *scratch, double *figure);

#endif
