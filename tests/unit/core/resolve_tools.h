/* Has items of a checkpoint found, as the engine would before it reads them. */
#ifndef GCMP_RESOLVE_TOOLS_H
#define GCMP_RESOLVE_TOOLS_H

#include <stdlib.h>
#include <unistd.h>

#include "checkpoint.h"

/* Resolve the first items of tensors, until *resolved of them are `most`; *bytes is added up. */
static inline enum gradcmp_status resolve_some(const struct gradcmp_checkpoint *checkpoint,
                                               size_t most, size_t *resolved, uint64_t *bytes,
                                               struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    for (uint32_t i = 0; i < catalogue->source_count && *resolved < most; i++) {
        const struct gradcmp_source *source = &catalogue->sources[i];
        struct gradcmp_extent extent = {0};
        if (source->kind != GRADCMP_SOURCE_ITEM ||
            catalogue->stored[source->stored].dtype == GRADCMP_DTYPE_NONE) {
            continue;
        }
        GCMP_TRY(catalogue->format->resolve(catalogue, i, &extent, error));
        free(extent.decoded);
        if (extent.decoded_in_file) {
            close(extent.decoded_fd);
        }
        ++*resolved;
        *bytes += extent.length_bytes;
    }
    return GRADCMP_OK;
}

#endif
