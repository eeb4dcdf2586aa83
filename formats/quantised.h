/* Weights that are stored as codes with scales beside them. */
#ifndef GCMP_FORMATS_QUANTISED_H
#define GCMP_FORMATS_QUANTISED_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* Find a weight's codes among the stored tensors: by its key, its type and a tensor of scales that
 * belongs to it. *key is the first's key, owned by the catalogue; NULL where there is none. Errors:
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_find_quantised(const struct gradcmp_catalogue *catalogue,
                                                         const char **key,
                                                         struct gradcmp_error *error);

/* Note it in the catalogue where there is such a weight. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_quantised(struct gradcmp_catalogue *catalogue,
                                                         struct gradcmp_error *error);

#endif
