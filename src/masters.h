/* Which parameters should have a weight and a float32 master, and whether they have them. */
#ifndef GCMP_MASTERS_H
#define GCMP_MASTERS_H

#include "checkpoint.h"

/* The parameters of a state, or NULL where the checkpoint has none, or they were not made. */
const struct gradcmp_model *gcmp_model_of(const struct gradcmp_checkpoint *checkpoint,
                                          const char *state);

/* Find the weights that have lost their master: of a type narrower than float32, trained, and
 * without one, where others have one; and of a wider type where most weights of the type have one.
 * Trained is what the optimizer keeps another state of; where it keeps none at all, and most have
 * masters, those without have lost theirs. All states are made; free lost->items in any case, whose
 * texts are the checkpoint's. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_find_lost_masters(const struct gradcmp_checkpoint *checkpoint, struct gcmp_lost_states *lost,
                       struct gradcmp_error *error);

/* Find the parameters with moments, or a master, whose weight is gone where others have theirs. The
 * masters stand for the weights of a checkpoint without any. A tied output layer, and a weight that
 * is stored in another form, are not lost. As above otherwise. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_find_lost_weights(const struct gradcmp_checkpoint *checkpoint, struct gcmp_lost_states *lost,
                       struct gradcmp_error *error);

#endif
