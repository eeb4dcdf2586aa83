/* From the pieces of a stored tensor to boxes of the model's tensor.
 *
 * Megatron before core 0.14 stores the optimizer state of a parameter with model shape [X, Y, Z]
 * and local shape [x, y, z] as [X/x, Y/y, Z/z, x*y*z]: the grid of fragments, then the flat local
 * shard, of which a data-parallel rank may hold a slice (FORMATS of the distributed checkpoint;
 * megatron-core 2024-06, "nd_reformulated_orig_global_shape"). Both shapes together give grid and
 * local shape, whatever the layer is called. */
#ifndef GCMP_UNSHARD_FRAGMENTS_H
#define GCMP_UNSHARD_FRAGMENTS_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"
#include "unshard/flat.h"

/* How a stored tensor maps to the model's. */
struct gcmp_grid {
    const struct gradcmp_stored *stored;
    const uint64_t *shape; /* of the model's tensor, ndim entries; belongs to the catalogue */
    unsigned ndim;
    bool is_flat;              /* fragments; else the pieces are boxes already */
    unsigned lead;             /* axes of the grid in the stored tensor: ndim, or 0 */
    struct gcmp_flat fragment; /* flat only */
};

/* A box of the model's tensor: the element at index i is source element offset_elems + sum_d
 * (i[d] - start[d]) * stride[d]. */
struct gcmp_box {
    uint64_t start[GRADCMP_MAX_NDIM], extent[GRADCMP_MAX_NDIM];
    int64_t stride[GRADCMP_MAX_NDIM];
    int64_t offset_elems;
    uint32_t source;
    const struct gradcmp_coords *coords;
};

/* Receives boxes; a failure stops and is passed on. It must bound how many it takes: a piece of few
 * bytes of metadata may claim to span any number of fragments. */
typedef enum gradcmp_status (*gcmp_box_fn)(void *user, const struct gcmp_box *box,
                                           struct gradcmp_error *error);

/* Decide from the shapes. `model` is the model's tensor of the same name, or NULL. A tensor whose
 * shape fits neither its stated model shape nor that tensor is CORRUPT (or UNSUPPORTED, where the
 * elements are as many), with both shapes in the message. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_grid_make(const struct gradcmp_stored *stored,
                                                    const struct gradcmp_stored *model,
                                                    struct gcmp_grid *grid,
                                                    struct gradcmp_error *error);

/* Give `emit` the boxes of one piece, none for an empty piece. At most 2*ndim-1 boxes a fragment.
 * A piece outside of its tensor is CORRUPT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_grid_boxes(const struct gcmp_grid *grid,
                                                     const struct gradcmp_piece *piece,
                                                     gcmp_box_fn emit, void *user,
                                                     struct gradcmp_error *error);

/* Add steps * stride to a source index; false where that leaves the range of int64. */
bool gcmp_advance(int64_t *index, uint64_t steps, int64_t stride);

#endif
