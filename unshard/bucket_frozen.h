/* Which weights a buffer leaves out: those that are frozen have no state. */
#ifndef GCMP_UNSHARD_BUCKET_FROZEN_H
#define GCMP_UNSHARD_BUCKET_FROZEN_H

#include "unshard/bucket_set.h"

/* A weight that a buffer may hold: whole, or all parts of it together. */
struct gcmp_frozen_item {
    uint64_t elems; /* of the rank, not 0 */
    bool is_held;
};

enum gcmp_frozen { GCMP_FROZEN_NONE, GCMP_FROZEN_ONE, GCMP_FROZEN_SEVERAL, GCMP_FROZEN_NO_MEMORY };

/* Choose those of `items`, in the order in which a buffer has them, that fill its buckets, each at
 * the next multiple of `align` elements and between two edges. ONE: there is one choice, and items
 * say it; SEVERAL also where there is more to try than is tried. Buckets are not gathered. */
enum gcmp_frozen gcmp_frozen_choose(const struct gcmp_buffer *buffer, uint64_t align,
                                    struct gcmp_frozen_item *items, size_t count);

#endif
