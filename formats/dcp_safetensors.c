/* Finds tensors in the safetensors images of shards. */
#include "formats/dcp_safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/dir.h"
#include "base/map.h"
#include "formats/safetensors_image.h"

/* The image of one shard. */
struct shard {
    struct gcmp_st_image image;
    struct gcmp_map by_name; /* name -> index of the tensor */
    uint64_t offset_bytes;   /* of the image in the file */
    bool is_open, has_starts;
};

struct placer {
    struct gradcmp_catalogue *catalogue;
    struct shard *shards; /* by file */
    uint32_t count;
    struct gradcmp_error *error;
};

static bool is_tensor(const struct gradcmp_catalogue *catalogue,
                      const struct gradcmp_source *source) {
    return catalogue->stored[source->stored].dtype != GRADCMP_DTYPE_NONE;
}

/* Tell by the first tensor's bytes: a small length, and an object. An archive begins with "PK". */
static enum gradcmp_status look_at_first(const struct gradcmp_catalogue *catalogue, bool *found,
                                         struct gradcmp_error *error) {
    const struct gradcmp_source *source = NULL;
    unsigned char bytes[9];
    uint64_t header;
    *found = false;
    for (size_t i = 0; i < catalogue->source_count && source == NULL; i++) {
        if (is_tensor(catalogue, &catalogue->sources[i])) {
            source = &catalogue->sources[i];
        }
    }
    if (source == NULL || source->encoding != 0 ||
        gcmp_dir_file_bytes(catalogue->dir, source->file) - source->offset_bytes < sizeof bytes) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_dir_read(catalogue->dir, source->file, source->offset_bytes, bytes, sizeof bytes,
                           error));
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, sizeof bytes, source->offset_bytes);
    *found = gcmp_read_u64le(&cursor, &header) && header < UINT32_MAX && bytes[8] == '{';
    return GRADCMP_OK;
}

/* Read the image of a source's shard, from where the source is said to lie to the file's end. */
static enum gradcmp_status open_shard(struct placer *placer, const struct gradcmp_source *source) {
    struct gcmp_dir *dir = placer->catalogue->dir;
    struct shard *shard = &placer->shards[source->file];
    uint64_t length = gcmp_dir_file_bytes(dir, source->file) - source->offset_bytes;
    shard->is_open = true;
    shard->offset_bytes = source->offset_bytes;
    GCMP_TRY(gcmp_st_open(dir, source->file, source->offset_bytes, length, placer->catalogue->arena,
                          &shard->image, placer->error));
    GCMP_TRY(gcmp_st_read_sharding(dir, &shard->image, placer->catalogue->arena, &shard->has_starts,
                                   placer->error));
    for (size_t i = 0; i < shard->image.count; i++) {
        const char *name = shard->image.tensors[i].name;
        if (gcmp_map_add(&shard->by_name, name, strlen(name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(placer->error);
        }
    }
    return GRADCMP_OK;
}

/* True where the tensor is what the metadata says of the piece. Two pieces of one tensor in a shard
 * bear one name: the writer kept the last, whose offsets are then not those of the first. */
static bool is_piece(const struct gradcmp_stored *stored, const struct gradcmp_piece *piece,
                     const struct gcmp_st_tensor *tensor) {
    size_t bytes = stored->ndim * sizeof *tensor->shape;
    return tensor->dtype == (enum gradcmp_dtype)stored->dtype && tensor->ndim == stored->ndim &&
           memcmp(tensor->shape, piece->extent, bytes) == 0 &&
           (tensor->start == NULL || memcmp(tensor->start, piece->start, bytes) == 0);
}

static enum gradcmp_status place(struct placer *placer, struct gradcmp_source *source) {
    const struct gradcmp_catalogue *catalogue = placer->catalogue;
    struct shard *shard = &placer->shards[source->file];
    const char *path = gcmp_dir_file_path(catalogue->dir, source->file);
    const struct gradcmp_stored *stored = &catalogue->stored[source->stored];
    size_t index;
    if (!shard->is_open) {
        GCMP_TRY(open_shard(placer, source));
    }
    if (source->offset_bytes != shard->offset_bytes) {
        GCMP_FAIL_AT(placer->error, GRADCMP_ERROR_CORRUPT, path, source->offset_bytes,
                     "\"%.160s\": expected the shard's one safetensors image, at byte %llu",
                     stored->key, (unsigned long long)shard->offset_bytes);
    }
    if (!gcmp_map_find(&shard->by_name, stored->key, strlen(stored->key), &index)) {
        GCMP_FAIL_AT(placer->error, GRADCMP_ERROR_CORRUPT, path, source->offset_bytes,
                     "\"%.160s\" is not in the shard's safetensors image", stored->key);
    }
    const struct gcmp_st_tensor *tensor = &shard->image.tensors[index];
    if (!is_piece(stored, &stored->pieces[source->piece], tensor) ||
        tensor->length_bytes != source->length_bytes) {
        GCMP_FAIL_AT(placer->error, GRADCMP_ERROR_CORRUPT, path, tensor->offset_bytes,
                     "\"%.160s\": type, sizes or offsets in the safetensors image are not those in "
                     "the metadata",
                     stored->key);
    }
    source->offset_bytes = tensor->offset_bytes;
    source->kind = GRADCMP_SOURCE_RANGE;
    return GRADCMP_OK;
}

static enum gradcmp_status place_all(struct placer *placer) {
    placer->count = gcmp_dir_file_count(placer->catalogue->dir);
    placer->shards = calloc(placer->count + 1u, sizeof *placer->shards);
    if (placer->shards == NULL) {
        GCMP_FAIL_MEMORY(placer->error);
    }
    for (size_t i = 0; i < placer->catalogue->source_count; i++) {
        struct gradcmp_source *source = &placer->catalogue->sources[i];
        if (is_tensor(placer->catalogue, source)) {
            GCMP_TRY(place(placer, source));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dcp_place_safetensors(struct gradcmp_catalogue *catalogue,
                                               struct gradcmp_error *error) {
    struct placer placer = {.catalogue = catalogue, .error = error};
    bool found;
    GCMP_TRY(look_at_first(catalogue, &found, error));
    if (!found) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = place_all(&placer);
    for (uint32_t i = 0; placer.shards != NULL && i < placer.count; i++) {
        gcmp_st_close(&placer.shards[i].image);
        gcmp_map_free(&placer.shards[i].by_name);
    }
    free(placer.shards);
    return status;
}
