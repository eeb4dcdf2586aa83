/* Stored tensors of a catalogue, as items. */
#ifndef GCMP_BITS_STORED_H
#define GCMP_BITS_STORED_H

#include "base/map.h"
#include "bits/side.h"

/* What is to be listed. */
struct gcmp_bits_listing {
    const struct gradcmp_catalogue *catalogue; /* lives as long as the side */
    const struct gcmp_map *walked;             /* names of files whose objects are items already */
    const char *prefix;                        /* of all paths, in the side's arena; "" for none */
};

/* Add every stored tensor of the catalogue to the side's items, but for those of the files that
 * were walked: tensors of known types as such, others by their bytes, a distributed checkpoint's
 * objects by what they hold. Whatever cannot be compared is named in a note. Errors: CORRUPT, IO,
 * LIMIT, MEMORY, UNSUPPORTED. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_bits_add_catalogue(struct gcmp_bits_side *side, const struct gcmp_bits_listing *listing,
                        struct gradcmp_error *error);

#endif
