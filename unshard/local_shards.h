/* What the files local_*.c share: ranks' shards of one state. */
#ifndef GCMP_UNSHARD_LOCAL_SHARDS_H
#define GCMP_UNSHARD_LOCAL_SHARDS_H

#include "unshard/local.h"

/* One rank's shard of one parameter. Arrays have ndim entries. */
struct gcmp_shard {
    const char *key;  /* as stored, for messages */
    const char *name; /* as stored */
    const uint64_t *shape;
    int64_t stride[GRADCMP_MAX_NDIM]; /* source elements per step */
    int64_t offset_elems;             /* source element of the first */
    uint32_t source;
    uint8_t ndim, dtype;
    const struct gradcmp_coords *coords;
    struct gcmp_name local; /* the name's structure */
    const char *text;       /* name with global numbers of layer and expert */
    size_t order;           /* in the catalogue */
};

struct gcmp_shards {
    struct gcmp_shard *list; /* malloced */
    size_t count, capacity;
};

enum gcmp_split { GCMP_SPLIT_NONE, GCMP_SPLIT_ROWS, GCMP_SPLIT_COLUMNS };

/* A parameter: its shards, and how tensor-parallel ranks share it. */
struct gcmp_local_parameter {
    const struct gcmp_shard *shards; /* sorted by chunk, stage, ranks */
    size_t count;
    uint32_t ranks; /* of its tensor-parallel group */
    enum gcmp_split split;
    bool is_gated; /* each rank's rows are two halves, of the gate and of the other */
};

/* Sizes of one catalogue's groups of ranks, from coordinates. */
struct gcmp_local_sizes {
    uint32_t tp, etp, ep;
    uint64_t experts; /* of a layer; 0: none */
};

/* Append room for one more shard and return it, zeroed but for its order; NULL without memory. */
struct gcmp_shard *gcmp_shards_add(struct gcmp_shards *shards);

/* Append the shard that a LOCAL tensor is. CORRUPT where it has no coordinates or is no whole
 * piece; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_shards_add_stored(struct gcmp_shards *shards,
                                                            const struct gradcmp_stored *stored,
                                                            struct gradcmp_error *error);

/* Cut the flat buffers of a state into shards (local_buffers.c). */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_local_cut_buffers(const struct gradcmp_catalogue *catalogue, const char *state,
                       struct gcmp_arena *arena, struct gcmp_shards *shards,
                       struct gradcmp_error *error);

/* Give every shard its global name, and fill sizes->experts (local_names.c). Texts live in `arena`.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_local_name(const struct gradcmp_catalogue *catalogue,
                                                     struct gcmp_shards *shards,
                                                     struct gcmp_local_sizes *sizes,
                                                     struct gcmp_arena *arena,
                                                     struct gradcmp_error *error);

/* Decide how each parameter is split (local_split.c). Parameters are sorted by name; each has
 * shards of one shape, and `ranks` set. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_local_split(const struct gradcmp_catalogue *catalogue,
                                                      const struct gcmp_local_sizes *sizes,
                                                      struct gcmp_local_parameter *parameters,
                                                      size_t count, struct gradcmp_error *error);

#endif
