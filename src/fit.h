/* A fit in use: read for a comparison, refused where it does not apply. */
#ifndef GCMP_FIT_H
#define GCMP_FIT_H

#include "comparison.h"

/* Tell a model by its parameters: SHA-256 of their names in order, each ended by a newline. */
void gcmp_fit_digest(const struct gradcmp_model *model, char out[65]);

/* Read the file of report->options.fit, if there is one, into report->fit. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_load(struct gradcmp_report *report,
                                                   struct gradcmp_error *error);

/* Let pair->bound judge by the fit, once the pair's parameters are known. A fit of another type,
 * state or number of layers is USAGE; one of a model with other parameters (then without its
 * floors), of fewer parameters, or looser than the theory, is a note. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_use(struct gcmp_comparison *comparison,
                                                  struct gradcmp_pair_report *pair,
                                                  struct gradcmp_error *error);

/* Note how many parameters of a judged pair were judged by their floor, and where that let more
 * pass than the theory. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_note_floors(struct gcmp_comparison *comparison,
                                                          struct gradcmp_pair_report *pair,
                                                          struct gradcmp_error *error);

#endif
