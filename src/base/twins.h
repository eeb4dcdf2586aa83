/* Tensors of a file that are one, under two names: of one place, rank, type and shape.
 */
#ifndef GCMP_BASE_TWINS_H
#define GCMP_BASE_TWINS_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* Where a tensor lies in a file. Without padding: its bytes are a map's key. */
struct gcmp_place {
    uint64_t file, first_byte, elems;
};

/* Find the place of a tensor; false where it lies in several places, or is decoded first. */
bool gcmp_stored_place(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_stored *stored, struct gcmp_place *place);

/* What a stored tensor is the same as, itself included: indices in the catalogue. */
struct gcmp_twin {
    size_t first; /* of them; modules register a parameter where it first stands */
    size_t name;  /* the one whose name an optimizer's state of it bears */
};

/* Find the twins among the weights [first, end) of a catalogue, which all others are alone. *twins
 * has an entry for each of them, the first one's at 0; malloced. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_twins_find(const struct gradcmp_catalogue *catalogue,
                                                     size_t first, size_t end,
                                                     struct gcmp_twin **twins,
                                                     struct gradcmp_error *error);

#endif
