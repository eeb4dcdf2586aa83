/* The buckets of one state, sorted into the buffers that they are cut from. */
#ifndef GCMP_UNSHARD_BUCKET_SET_H
#define GCMP_UNSHARD_BUCKET_SET_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* One flat tensor: parameters, and gaps between them. */
struct gcmp_bucket {
    const struct gradcmp_stored *stored;
    int64_t chain;            /* which of chained optimizers; -1: there is one */
    int64_t group;            /* data-parallel group: the ranks that hold the same parameters */
    int64_t chunk;            /* of the model (virtual pipeline), as "gbuf_idx" counts */
    int64_t index;            /* of the bucket in its buffer */
    bool is_gathered;         /* all buckets of its buffer in one, without what pads their ends */
    enum gradcmp_dtype dtype; /* of the weights whose state it holds; NONE: the key does not say */
    const struct gradcmp_piece **pieces; /* without empty ones, sorted by start */
    size_t piece_count;
};

/* Consecutive buckets of one optimizer, type, chunk and group, in order. */
struct gcmp_buffer {
    const struct gcmp_bucket *buckets;
    size_t count;
};

struct gcmp_bucket_set {
    struct gcmp_bucket *buckets; /* sorted by chain, dtype, chunk, group, index */
    struct gcmp_buffer *buffers;
    size_t bucket_count, buffer_count;
};

/* Collect the buckets of a state. A key that does not say where its bucket belongs is UNSUPPORTED;
 * a bucket that is missing or there twice, or pieces that do not fill it, are CORRUPT. On failure
 * and after use: gcmp_bucket_set_free. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bucket_set_read(const struct gradcmp_catalogue *catalogue,
                                                          const char *state,
                                                          struct gcmp_bucket_set *set,
                                                          struct gradcmp_error *error);
void gcmp_bucket_set_free(struct gcmp_bucket_set *set);

/* Index of the first piece that ends behind an element; piece_count where there is none. */
size_t gcmp_bucket_find(const struct gcmp_bucket *bucket, uint64_t elem);
/* True where a piece starts at an element, or the bucket ends there. */
bool gcmp_bucket_has_edge(const struct gcmp_bucket *bucket, uint64_t elem);

#endif
