/* One rank's folder of a legacy Megatron checkpoint: weights and optimizer. */
#ifndef GCMP_FORMATS_MEGATRON_LEGACY_RANK_H
#define GCMP_FORMATS_MEGATRON_LEGACY_RANK_H

#include "formats/rank_files.h"
#include "formats/rank_tensors.h"

struct gcmp_legacy_rank {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_rank_arrays *arrays;
    const struct gcmp_rank_file *file; /* whose name is the folder's */
    size_t first_weight, end_weight;   /* its weights among the catalogue's stored tensors */
};

/* Coordinates of a rank's chunk (-1: of all), in the catalogue's arena; NULL without memory. */
const struct gradcmp_coords *gcmp_legacy_coords(const struct gcmp_legacy_rank *rank, int32_t chunk);

/* Add the states of an optimizer that each rank keeps for itself (not distributed), from the root
 * of model_optim_rng.pt; the rank's weights must have been added. Numbers become names by the
 * groups' order and shapes. Without such states, nothing. Errors: CORRUPT; UNSUPPORTED where a
 * number could mean several weights; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_legacy_add_states(const struct gcmp_legacy_rank *rank,
                                                            struct gcmp_rank_reader *reader,
                                                            struct gradcmp_error *error);

/* Add the flat buffers of distrib_optim.pt, where the rank's folder has that file. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_legacy_add_buffers(const struct gcmp_legacy_rank *rank,
                                                             struct gradcmp_error *error);

#endif
