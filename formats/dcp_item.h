/* One item of a distributed checkpoint: a torch.save archive, as it is or compressed. */
#ifndef GCMP_FORMATS_DCP_ITEM_H
#define GCMP_FORMATS_DCP_ITEM_H

#include "formats/decoded.h"
#include "formats/torch_file.h"

/* The encoding of a source (struct gradcmp_source) in this format. */
enum gcmp_dcp_encoding { GCMP_DCP_PLAIN = 0, GCMP_DCP_ZSTD };

/* Find the encoding by a transform's descriptor ("stream.zstd/1"); false for others. */
bool gcmp_dcp_find_encoding(const char *descriptor, enum gcmp_dcp_encoding *encoding);

struct gcmp_dcp_item {
    struct gcmp_torch_file torch;
    struct gcmp_bytes decoded; /* of a compressed item: the archive */
    struct gcmp_dir *unpacked; /* of a compressed item: its one file is the archive */
};

/* Open the item of a source. Its archive may take max_bytes once decompressed, and no more. The
 * item must be closed in any case. Errors: those of gcmp_torch_open and of decode.h; those in a
 * decompressed archive at the item's first byte. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_dcp_open_item(const struct gradcmp_catalogue *catalogue, const struct gradcmp_source *source,
                   uint64_t max_bytes, struct gcmp_arena *arena, struct gcmp_dcp_item *item,
                   struct gradcmp_error *error);
void gcmp_dcp_close_item(struct gcmp_dcp_item *item);

/* Describe the item's tensor (gcmp_torch_tensor). */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_item_tensor(const struct gradcmp_catalogue *catalogue,
                                                          const struct gradcmp_source *source,
                                                          const struct gcmp_dcp_item *item,
                                                          struct gradcmp_extent *out,
                                                          struct gradcmp_error *error);

/* Let the extent of its tensor take over what was decompressed, if anything was. */
void gcmp_dcp_item_give(struct gcmp_dcp_item *item, struct gradcmp_extent *extent);

/* The most that the archive of a piece's tensor may take: its elements, and the archive around. */
uint64_t gcmp_dcp_item_limit(const struct gradcmp_stored *stored,
                             const struct gradcmp_piece *piece);

#endif
