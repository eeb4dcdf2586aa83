/* Opens items. A compressed one is decompressed whole, since a streamed archive has its directory
 * at its end: into memory, or where it is large into a file without a name. Source:
 * torch/distributed/checkpoint/_extension.py, torch 2.8 to 2.15 (descriptors, one frame an item).
 *
 * Limit: OVERHEAD_BYTES of an archive beyond the elements. */
#include "formats/dcp_item.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "formats/decode.h"

/* The pickle, the directory and alignment; torch takes some 2 KiB. */
enum { OVERHEAD_BYTES = 1 << 20 };

bool gcmp_dcp_find_encoding(const char *descriptor, enum gcmp_dcp_encoding *encoding) {
    *encoding = GCMP_DCP_ZSTD;
    return strcmp(descriptor, "stream.zstd/1") == 0 || strcmp(descriptor, "stream.zstd") == 0;
}

uint64_t gcmp_dcp_item_limit(const struct gradcmp_stored *stored,
                             const struct gradcmp_piece *piece) {
    uint64_t bytes;
    if (!gcmp_product(piece->extent, stored->ndim, &bytes) ||
        !gcmp_mul_u64(bytes, gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype), &bytes) ||
        bytes > INT64_MAX - OVERHEAD_BYTES) {
        return INT64_MAX;
    }
    return bytes + OVERHEAD_BYTES;
}

/* Make a descriptor of what was decoded into memory; -1 with errno. */
static int make_file(const struct gcmp_bytes *bytes) {
    int fd = memfd_create("gradcmp-item", MFD_CLOEXEC);
    for (size_t put = 0; fd >= 0 && put < bytes->length_bytes;) {
        ssize_t done = write(fd, bytes->memory + put, (size_t)bytes->length_bytes - put);
        if (done <= 0) {
            close(fd);
            return -1;
        }
        put += (size_t)done;
    }
    return fd;
}

/* Let the archive reader have what was decoded as a file of its own. */
static enum gradcmp_status wrap(const char *path, struct gcmp_dcp_item *item, uint32_t *file,
                                struct gradcmp_error *error) {
    int fd =
        item->decoded.kind == GCMP_BYTES_MEMORY ? make_file(&item->decoded) : dup(item->decoded.fd);
    if (fd < 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "no descriptor for a decompressed item is left");
    }
    GCMP_TRY(gcmp_dir_adopt(fd, path, &item->unpacked, error));
    const char *name = "";
    (void)gcmp_dir_is_file(item->unpacked, &name);
    return gcmp_dir_add(item->unpacked, name, strlen(name), file, error);
}

/* Offsets in a decompressed archive mean nothing to the user: tell the item's. */
static enum gradcmp_status tell_item(enum gradcmp_status status,
                                     const struct gradcmp_catalogue *catalogue,
                                     const struct gradcmp_source *source,
                                     struct gradcmp_error *error) {
    if (status == GRADCMP_OK || error == NULL) {
        return status;
    }
    struct gradcmp_error inner = *error;
    return gcmp_error_set(error, status, gcmp_dir_file_path(catalogue->dir, source->file),
                          source->offset_bytes, "decompressed item: %.440s", inner.message);
}

static enum gradcmp_status open_decoded(const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_source *source,
                                        struct gcmp_arena *arena, struct gcmp_dcp_item *item,
                                        struct gradcmp_error *error) {
    uint32_t file;
    GCMP_TRY(wrap(gcmp_dir_file_path(catalogue->dir, source->file), item, &file, error));
    return gcmp_torch_open(item->unpacked, file, 0, item->decoded.length_bytes, arena, &item->torch,
                           error);
}

enum gradcmp_status gcmp_dcp_open_item(const struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_source *source, uint64_t max_bytes,
                                       struct gcmp_arena *arena, struct gcmp_dcp_item *item,
                                       struct gradcmp_error *error) {
    *item = (struct gcmp_dcp_item){.decoded = {.fd = -1}};
    if (source->encoding == GCMP_DCP_PLAIN) {
        return gcmp_torch_open(catalogue->dir, source->file, source->offset_bytes,
                               source->length_bytes, arena, &item->torch, error);
    }
    struct gcmp_bytes frame = gcmp_bytes_of_file(catalogue->dir, source->file, source->offset_bytes,
                                                 source->length_bytes);
    GCMP_TRY(gcmp_decode(&frame, GCMP_CODEC_ZSTD, 1, max_bytes, &item->decoded, error));
    enum gradcmp_status status = open_decoded(catalogue, source, arena, item, error);
    return tell_item(status, catalogue, source, error);
}

void gcmp_dcp_close_item(struct gcmp_dcp_item *item) {
    gcmp_dir_close(item->unpacked);
    item->unpacked = NULL;
    gcmp_bytes_free(&item->decoded);
}

enum gradcmp_status gcmp_dcp_item_tensor(const struct gradcmp_catalogue *catalogue,
                                         const struct gradcmp_source *source,
                                         const struct gcmp_dcp_item *item,
                                         struct gradcmp_extent *out, struct gradcmp_error *error) {
    enum gradcmp_status status = gcmp_torch_tensor(&item->torch, item->torch.root, out, error);
    return source->encoding == GCMP_DCP_PLAIN ? status
                                              : tell_item(status, catalogue, source, error);
}

void gcmp_dcp_item_give(struct gcmp_dcp_item *item, struct gradcmp_extent *extent) {
    if (item->unpacked != NULL) {
        struct gradcmp_extent record = *extent; /* where in the archive the elements are */
        gcmp_bytes_give(&item->decoded, extent);
        extent->offset_bytes = record.offset_bytes;
        extent->length_bytes = record.length_bytes;
        extent->crc32 = record.crc32;
    }
}
