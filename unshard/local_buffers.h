/* Where a rank's weights lie in its flat buffers. */
#ifndef GCMP_UNSHARD_LOCAL_BUFFERS_H
#define GCMP_UNSHARD_LOCAL_BUFFERS_H

#include "unshard/local_shards.h"

/* A weight that has its place in a buffer. */
struct gcmp_flat_weight {
    const struct gradcmp_stored *stored;
    uint64_t elems;
    uint64_t start; /* out: element of the part */
    size_t part;    /* out: index into the buffer's parts */
    bool is_shared; /* the embedding, or the output layer tied to it on another stage */
    bool is_expert;
    size_t order; /* in the catalogue */
};

/* One flat buffer: its weights in the order of registration, and its parts in order (one, or one a
 * bucket). */
struct gcmp_flat_buffer {
    struct gcmp_flat_weight *weights;
    size_t weight_count;
    const struct gradcmp_stored *const *parts;
    size_t part_count;
    uint64_t bucket_elems; /* that the run's arguments state; 0: one bucket */
};

/* Find the places of all weights. UNSUPPORTED where no rule makes them as long as the buffer is, or
 * several that differ do. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flat_buffer_fit(struct gcmp_flat_buffer *buffer,
                                                          struct gradcmp_error *error);

#endif
