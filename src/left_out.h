/* What of the model a comparison of weights does not judge. */
#ifndef GCMP_LEFT_OUT_H
#define GCMP_LEFT_OUT_H

#include "comparison.h"
#include "pairing.h"

/* Tensors of a checkpoint that hold no real numbers (integers, complex numbers) and that no state
 * claims. */
struct gcmp_left_out {
    size_t count;
    const struct gradcmp_stored *first; /* of the catalogue; NULL: there is none */
};

/* Count those of a catalogue whose names a filter takes. */
struct gcmp_left_out gcmp_find_left_out(const struct gradcmp_catalogue *catalogue,
                                        struct gcmp_name_filter *filter);

enum { GCMP_LEFT_OUT_BYTES = 400 };

/* Write what is told of them: that they are not `done` ("judged", "listed"). */
void gcmp_tell_left_out(const struct gcmp_left_out *found, const char *done,
                        char out[GCMP_LEFT_OUT_BYTES]);

/* Where a state of an optimizer is compared, note the weights that have it on neither side. Where
 * weights are compared, note on each side the tensors that hold no real numbers (integers,
 * complex numbers) and that no state claims, and count in pair->beside and its elements what is not
 * read as a weight: a verdict says nothing of them. Errors: UNSUPPORTED where a side has the
 * compared state of a parameter in a form that is not read; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_left_out(struct gcmp_comparison *comparison,
                                                        struct gradcmp_pair_report *pair,
                                                        struct gcmp_name_filter *filter,
                                                        struct gradcmp_error *error);

#endif
