/* Names for a checkpoint that only numbers its parameters, from the other side of a comparison. */
#ifndef GCMP_NUMBERING_H
#define GCMP_NUMBERING_H

#include "comparison.h"

/* Where one side holds an optimizer that numbers its parameters (catalogue.number_groups) and the
 * other side knows names in the model's order, take those; the same rules hold as within one file
 * (formats/optimizer_ids.h), and the pair notes it. Two sides of numbers are compared by number,
 * where their groups are alike. A pair that this does not settle fails, with the reason. To be
 * called before models are made. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_name_numbers(struct gcmp_comparison *comparison,
                                                       struct gradcmp_error *error);

/* Where the parameters of `numbered` have numbers and those of `named` names, give them these.
 * UNSUPPORTED where that is not certain, or both have numbers that do not count the same. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_name_by(const struct gradcmp_catalogue *named,
                                                  struct gradcmp_catalogue *numbered,
                                                  const char *state, struct gradcmp_error *error);

#endif
