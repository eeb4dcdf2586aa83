/* How the failing parameters of a pair lie: next to the onset, over the layers, in one class. */
#ifndef GCMP_BOUNDS_ONSET_H
#define GCMP_BOUNDS_ONSET_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"

/* Fill pair->spread from verdicts and figures; classes[i] is the class of parameter i.
 *
 * growth: the error of a layer is sqrt(sum D / sum A) over its parameters that have figures (a
 * common factor divided out), taken from the onset down over the layers in which something fails.
 * Its logarithm is fitted by the median of the slopes between all
 * pairs of layers (Theil and Sen), which up to a quarter of the layers cannot move far: growth = 2
 * means that each layer further from the loss is twice as far off. NaN with fewer than three
 * layers, or where a layer's error is zero or not finite. The embeddings (l = 0) are left out:
 * their gradients are sums of another kind.
 *
 * only_class: every failing parameter is of one class (not OTHER), and in the layers where they
 * fail, parameters of other classes pass. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_onset_describe(struct gradcmp_pair_report *pair,
                                                         const enum gradcmp_class *classes,
                                                         struct gcmp_arena *scratch,
                                                         struct gradcmp_error *error);

#endif
