/* One safetensors image: a file, or the part of a .distcp shard that is one. */
#ifndef GCMP_FORMATS_SAFETENSORS_IMAGE_H
#define GCMP_FORMATS_SAFETENSORS_IMAGE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/dir.h"
#include "base/error.h"

struct gcmp_st_tensor {
    const char *name;
    const uint64_t *shape; /* ndim entries */
    const uint64_t *start; /* where it begins in the tensor that it is a shard of; NULL: not said */
    uint64_t offset_bytes; /* of its first element in the file, which need not be aligned */
    uint64_t length_bytes;
    const char *type;         /* as the header spells it */
    enum gradcmp_dtype dtype; /* NONE: a type whose values are not read */
    unsigned ndim;
};

struct gcmp_st_image {
    uint32_t file;
    struct gcmp_st_tensor *tensors; /* in the header's order; owned */
    size_t count, capacity;
    json_t *metadata; /* "__metadata__": texts by name; NULL where there is none; owned */
};

/* Read the header of the image in [offset, offset + length) of a file. What is checked: a header of
 * at most 100 MB and 300,000 entries that begins with '{'; known types; byte ranges that fit shape
 * and type and tile the rest of the image, without a hole, an overlap or bytes behind the last.
 * What tensors point to lives in `arena`. The image must be closed in any case. Errors: CORRUPT,
 * UNSUPPORTED for a type that is not known, LIMIT, IO, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_st_open(struct gcmp_dir *dir, uint32_t file, uint64_t offset, uint64_t length,
             struct gcmp_arena *arena, struct gcmp_st_image *out, struct gradcmp_error *error);
void gcmp_st_close(struct gcmp_st_image *image);

/* A text of the metadata; NULL where there is none. */
const char *gcmp_st_metadata(const struct gcmp_st_image *image, const char *name);

/* Set `start` of every tensor from DCP_SHARDING_INFO, where torch's Hugging Face writer says which
 * part of the whole tensor each is; *found tells whether it is there. Errors: CORRUPT for a tensor
 * that it does not place, or not in as many axes; those of json_doc.h. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_st_read_sharding(struct gcmp_dir *dir,
                                                           struct gcmp_st_image *image,
                                                           struct gcmp_arena *arena, bool *found,
                                                           struct gradcmp_error *error);

#endif
