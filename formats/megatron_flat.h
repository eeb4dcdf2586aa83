/* Flat buffers of optimizer state that Megatron gathered on one rank. */
#ifndef GCMP_FORMATS_MEGATRON_FLAT_H
#define GCMP_FORMATS_MEGATRON_FLAT_H

#include "formats/megatron_legacy_rank.h"

/* Add the buffers in a distributed checkpoint's objects (layout dp_zero_gather_scatter) as buckets
 * whose keys lack "bucket_idx_<n>"; names were assigned already. Without such objects, nothing.
 * Errors: those of gcmp_torch_open; CORRUPT; UNSUPPORTED where an object is compressed, or from
 * before 2024-02. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_megatron_add_gathered(struct gradcmp_catalogue *catalogue,
                                                                struct gradcmp_error *error);

#endif
