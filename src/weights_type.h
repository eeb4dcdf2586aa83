/* The type that a checkpoint's weights are stored in, which decides the bound. */
#ifndef GCMP_WEIGHTS_TYPE_H
#define GCMP_WEIGHTS_TYPE_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* The type of most elements of a catalogue's weights; NONE where there are none. */
enum gradcmp_dtype gcmp_weights_dtype(const struct gradcmp_catalogue *catalogue);

/* Look at the smallest weight of that type, whether its elements are what the catalogue says: there
 * are formats whose metadata lie apart from them. Errors: CORRUPT, and what reading gives; MEMORY.
 */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_prove_weights_dtype(const struct gradcmp_catalogue *catalogue, enum gradcmp_dtype dtype,
                         struct gradcmp_error *error);

#endif
