/* Which parameter lies where in which bucket: found by trying orders of registration, and proved by
 * the sizes and edges of the buckets. */
#ifndef GCMP_UNSHARD_BUCKET_FIT_H
#define GCMP_UNSHARD_BUCKET_FIT_H

#include "unshard/bucket_set.h"
#include "unshard/registration.h"

/* How a parameter's weight is cut over the ranks of a tensor-parallel group. */
struct gcmp_cut_weight {
    uint32_t ranks; /* 1: whole on each */
    uint32_t parts; /* boxes that each rank holds, one behind the other (2: a gated weight) */
};

/* A parameter, or a rank's shard of it, in a bucket. */
struct gcmp_placed {
    uint64_t start;     /* element of the bucket */
    uint32_t parameter; /* index in the model */
    uint32_t bucket;    /* index in the set */
    uint32_t rank;      /* of the tensor-parallel group */
    uint32_t stage;     /* of the pipeline */
    uint32_t repeat;    /* 1: the embedding once more, as a tied output layer */
};

struct gcmp_fit {
    const struct gradcmp_catalogue *catalogue;
    const struct gradcmp_model *weights; /* state "param" */
    const struct gcmp_bucket_set *set;
    struct gcmp_cut_weight *cuts;  /* one a parameter */
    struct gcmp_registered *order; /* room for all parameters */
    struct gcmp_placed *placed;    /* sorted by parameter, repeat, rank */
    size_t placed_count, placed_capacity;
    const char *where; /* key of the first bucket that did not fit, for a message; may be NULL */
};

/* Place all parameters. UNSUPPORTED where no order of registration fits the buckets, or several
 * that differ do. On failure and after use: gcmp_fit_free. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_fit_make(const struct gradcmp_catalogue *catalogue, const struct gradcmp_model *weights,
              const struct gcmp_bucket_set *set, struct gcmp_fit *fit, struct gradcmp_error *error);
void gcmp_fit_free(struct gcmp_fit *fit);

#endif
