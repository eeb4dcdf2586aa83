/* Names for the numbers of an optimizer of which only the shapes and the groups are known. */
#ifndef GCMP_NUMBER_NAMES_H
#define GCMP_NUMBER_NAMES_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* The number that a stored name is; SIZE_MAX for other names. */
size_t gcmp_number_of(const struct gradcmp_catalogue *numbered, const char *name);

/* Name the numbers of `numbered` by the weights of `weights` (of this checkpoint, or of another of
 * the same model) for the reader of a report: what is compared are numbers, whatever they are
 * called. Where a group holds all weights of a shape, they are in the order embeddings, layers,
 * head; of several in one layer the name says their common part and the number:
 * "model.layers.1.mlp.number_12". *names has one entry a number, NULL where nothing is told, and
 * lives in the arena of `numbered`; NULL where no number gets a name. Errors: LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_number_names(const struct gradcmp_catalogue *weights,
                                                       const struct gradcmp_catalogue *numbered,
                                                       const char *state, const char *const **names,
                                                       struct gradcmp_error *error);

/* Give the states of the numbers these names (NULL: none). */
void gcmp_take_number_names(struct gradcmp_catalogue *numbered, const char *const *names);

#endif
