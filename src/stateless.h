/* Weights of a model that have the compared state on neither side. */
#ifndef GCMP_STATELESS_H
#define GCMP_STATELESS_H

#include "comparison.h"

/* Count the weights that have the compared state on neither side, as far as the filter takes them,
 * in pair->stateless and its elements, and note them; note it, too, where the files do not tell
 * which these are. A side without weights is asked for what it holds in other states. To be called
 * when the sides' models are made. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_stateless(struct gcmp_comparison *comparison,
                                                         struct gradcmp_pair_report *pair,
                                                         struct gcmp_name_filter *filter,
                                                         struct gradcmp_error *error);

#endif
