/* Tensors of a checkpoint that are neither weights nor an optimizer's. */
#ifndef GCMP_UNCLAIMED_H
#define GCMP_UNCLAIMED_H

#include "gradcmp/sys/catalogue.h"

/* True for a tensor that counts so; *elems is how many elements it has. Counters and learning
 * rates, which are single numbers, do not. */
bool gcmp_is_unclaimed(const struct gradcmp_stored *stored, uint64_t *elems);

/* Note in the catalogue how many tensors of several real numbers belong to no model and to no state
 * of an optimizer: nothing but `bits` looks at them. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_unclaimed(struct gradcmp_catalogue *catalogue,
                                                         struct gradcmp_error *error);

#endif
