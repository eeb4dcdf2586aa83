/* Optimizers that keep another state than Adam's of some parameters. */
#ifndef GCMP_STAND_INS_H
#define GCMP_STAND_INS_H

#include "base/map.h"
#include "comparison.h"

/* Where exp_avg is compared by default, take the momentum_buffer of parameters that have no exp_avg
 * beside others that have one (Muon's or SGD's, beside AdamW's; after one step a multiple of the
 * gradient, too) in its place, and note it. Where any state but weights is compared, note
 * whether the optimizer keeps others only of some parameters: nothing is compared of these. To be
 * called before models are made. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_stand_in(struct gcmp_comparison *comparison,
                                                   struct gradcmp_error *error);

/* Find a state beside an exp_avg that shows it to be an average of updates, which are divided by
 * their size, and not of gradients: Adafactor's, CAME's and LaProp's. *key is its key, or NULL.
 * Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_find_averaged_update(const struct gradcmp_catalogue *catalogue, const char **key,
                          struct gradcmp_error *error);

/* Add a name, which is borrowed, to a set; *is_new is false where it was there. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_add_name(struct gcmp_map *names, const char *name,
                                                   bool *is_new, struct gradcmp_error *error);

/* True for the word of a state that some optimizers keep and others do not. */
bool gcmp_is_optimizer_state(const char *state);

#endif
