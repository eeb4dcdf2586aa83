/* What of the model a comparison of weights does not judge. */
#ifndef GCMP_LEFT_OUT_H
#define GCMP_LEFT_OUT_H

#include "comparison.h"

/* Where a state of an optimizer is compared, note the weights that have it on neither side. Where
 * weights are compared, note on each side the tensors that hold no real numbers (integers,
 * complex numbers) and that no state claims: a verdict says nothing of them. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_left_out(struct gcmp_comparison *comparison,
                                                        struct gradcmp_pair_report *pair,
                                                        struct gcmp_name_filter *filter,
                                                        struct gradcmp_error *error);

#endif
