/* The metadata of a torch distributed checkpoint: which tensors there are, how they are cut into
 * chunks, and where each chunk's item lies. */
#ifndef GCMP_FORMATS_DCP_METADATA_H
#define GCMP_FORMATS_DCP_METADATA_H

#include "base/error.h"
#include "gradcmp/sys/format.h"

/* Read the metadata files `names` (one, or one of each rank, whose chunk lists are united) and add
 * what they list to the catalogue: tensors with a piece and an ITEM source for each chunk that is
 * not empty, other objects with state NULL. Names, states and layouts are set. *megatron tells
 * whether Megatron-Core wrote the checkpoint, as far as is known; it is set where the metadata
 * shows it. Errors: IO; CORRUPT and UNSUPPORTED at the metadata's byte, or at the end of a shard
 * that is too short; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_read_metadata(struct gradcmp_catalogue *catalogue,
                                                            char *const *names, size_t count,
                                                            bool *megatron,
                                                            struct gradcmp_error *error);

#endif
