/* Where the piece of a tensor that one rank holds lies in the whole: DTensor (FSDP2, tensor
 * parallelism) and ShardedTensor (FSDP1), as torch.save pickles them. */
#ifndef GCMP_FORMATS_TORCH_SAVE_SHARD_H
#define GCMP_FORMATS_TORCH_SAVE_SHARD_H

#include "formats/torch_file.h"

/* A piece of a tensor. */
struct gcmp_pt_shard {
    const struct gcmp_node *local;    /* the plain tensor of the piece */
    uint64_t shape[GRADCMP_MAX_NDIM]; /* of the whole */
    uint64_t start[GRADCMP_MAX_NDIM], extent[GRADCMP_MAX_NDIM];
    unsigned ndim;
    uint64_t mesh_ranks; /* ranks that share the tensor; 0: not known */
};

/* True for a DTensor, in Parameter wrappers or not. */
bool gcmp_pt_is_dtensor(const struct gcmp_node *node);

/* Compute the piece of a DTensor from its mesh, placements and the writer's coordinates. The piece
 * is checked to be of the local tensor's shape by whoever reads that. Errors: UNSUPPORTED for
 * placements that give no box (partial sums, splits that are not known) and for meshes that are not
 * understood, with what it is; CORRUPT for a placement that contradicts the shape. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_read_dtensor(const struct gcmp_torch_file *torch,
                                                          const struct gcmp_node *node,
                                                          struct gcmp_pt_shard *out,
                                                          struct gradcmp_error *error);

/* True for a ShardedTensor. */
bool gcmp_pt_is_sharded(const struct gcmp_node *node);

/* Number of pieces of a ShardedTensor in this file, and one of them. Errors: CORRUPT. */
size_t gcmp_pt_sharded_count(const struct gcmp_node *node);
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_read_sharded(const struct gcmp_torch_file *torch,
                                                          const struct gcmp_node *node,
                                                          size_t index, struct gcmp_pt_shard *out,
                                                          struct gradcmp_error *error);

/* The rank that a DTensor or ShardedTensor says wrote it, of those that share it; -1: it does not.
 */
int64_t gcmp_pt_shard_writer(const struct gcmp_torch_file *torch, const struct gcmp_node *node);

#endif
