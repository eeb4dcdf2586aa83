/* Joins tensors of several safetensors files by name. */
#include "formats/safetensors_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/grow.h"
#include "base/map.h"
#include "formats/extracted.h"
#include "formats/plain_names.h"

/* A tensor of the checkpoint, whose pieces may lie in several files. */
struct whole {
    const struct gcmp_st_tensor *first;
    uint32_t first_file;
    uint64_t shape[GRADCMP_MAX_NDIM];
    size_t piece_count; /* pieces with elements */
    size_t stored;      /* index into the catalogue */
    size_t filled;      /* pieces put there */
};

struct joiner {
    struct gradcmp_catalogue *catalogue;
    const struct gcmp_st_set *set;
    struct whole *wholes;
    size_t count;
    struct gcmp_map by_name; /* name -> index into wholes */
    const char **types;      /* of each stored tensor */
    struct gradcmp_error *error;
};

void gcmp_st_set_close(struct gcmp_st_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        gcmp_st_close(&set->images[i]);
    }
    free(set->images);
    *set = (struct gcmp_st_set){0};
}

enum gradcmp_status gcmp_st_set_add(struct gradcmp_catalogue *catalogue, struct gcmp_st_set *set,
                                    const char *name, struct gradcmp_error *error) {
    uint32_t file;
    if (!gcmp_grow(&set->images, set->count, &set->capacity, sizeof *set->images)) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_dir_add(catalogue->dir, name, strlen(name), &file, error));
    set->count++;
    return gcmp_st_open(catalogue->dir, file, 0, gcmp_dir_file_bytes(catalogue->dir, file),
                        catalogue->arena, &set->images[set->count - 1], error);
}

static bool is_empty(const struct gcmp_st_tensor *tensor) {
    return tensor->length_bytes == 0;
}

/* Fail for a tensor that does not go with another piece of the same name. */
static enum gradcmp_status fail_piece(const struct joiner *joiner, uint32_t file,
                                      const struct gcmp_st_tensor *tensor,
                                      const struct whole *whole, const char *what) {
    struct gcmp_dir *dir = joiner->catalogue->dir;
    GCMP_FAIL_AT(joiner->error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(dir, file),
                 tensor->offset_bytes, "safetensors: \"%.160s\": %s in %.200s", tensor->name, what,
                 gcmp_dir_file_name(dir, whole->first_file));
}

/* Add a tensor as a piece of the whole; the whole grows to hold it. */
static enum gradcmp_status extend_whole(const struct joiner *joiner, uint32_t file,
                                        const struct gcmp_st_tensor *tensor, struct whole *whole) {
    if (tensor != whole->first) {
        if (tensor->start == NULL || whole->first->start == NULL) {
            return fail_piece(joiner, file, tensor, whole, "also");
        }
        if (tensor->ndim != whole->first->ndim || tensor->type != whole->first->type) {
            return fail_piece(joiner, file, tensor, whole, "another type or number of axes than");
        }
    }
    for (unsigned d = 0; d < tensor->ndim; d++) {
        uint64_t end = tensor->shape[d] + (tensor->start == NULL ? 0 : tensor->start[d]);
        whole->shape[d] = end > whole->shape[d] ? end : whole->shape[d];
    }
    whole->piece_count += !is_empty(tensor);
    return GRADCMP_OK;
}

static enum gradcmp_status collect(struct joiner *joiner) {
    for (size_t i = 0; i < joiner->set->count; i++) {
        const struct gcmp_st_image *image = &joiner->set->images[i];
        for (size_t j = 0; j < image->count; j++) {
            const struct gcmp_st_tensor *tensor = &image->tensors[j];
            size_t index = joiner->count;
            enum gcmp_map_result result = gcmp_map_add(&joiner->by_name, tensor->name,
                                                       strlen(tensor->name), joiner->count, &index);
            if (result == GCMP_MAP_NO_MEMORY) {
                GCMP_FAIL_MEMORY(joiner->error);
            }
            if (result == GCMP_MAP_ADDED) {
                joiner->wholes[joiner->count++] =
                    (struct whole){.first = tensor, .first_file = image->file};
            }
            GCMP_TRY(extend_whole(joiner, image->file, tensor, &joiner->wholes[index]));
        }
    }
    return GRADCMP_OK;
}

/* Offsets from two files may make a tensor larger than anything. */
static enum gradcmp_status check_size(const struct joiner *joiner, const struct whole *whole) {
    uint64_t elems, bytes;
    if (gcmp_product(whole->shape, whole->first->ndim, &elems) && gcmp_mul_u64(elems, 16, &bytes) &&
        bytes <= INT64_MAX) {
        return GRADCMP_OK;
    }
    GCMP_FAIL_AT(joiner->error, GRADCMP_ERROR_CORRUPT,
                 gcmp_dir_file_path(joiner->catalogue->dir, whole->first_file),
                 whole->first->offset_bytes,
                 "safetensors: \"%.160s\": the shards' offsets make a tensor of more than 2^59 "
                 "elements",
                 whole->first->name);
}

static enum gradcmp_status add_wholes(struct joiner *joiner) {
    joiner->types = calloc(joiner->count + 1, sizeof *joiner->types);
    if (joiner->types == NULL) {
        GCMP_FAIL_MEMORY(joiner->error);
    }
    for (size_t i = 0; i < joiner->count; i++) {
        struct whole *whole = &joiner->wholes[i];
        struct gradcmp_stored *stored;
        GCMP_TRY(check_size(joiner, whole));
        whole->stored = joiner->catalogue->stored_count;
        GCMP_TRY(gcmp_catalogue_add_stored(joiner->catalogue, whole->first->name,
                                           whole->first->ndim, whole->shape, whole->piece_count,
                                           &stored, joiner->error));
        stored->dtype = (uint8_t)whole->first->dtype;
        stored->type = stored->dtype == GRADCMP_DTYPE_NONE ? whole->first->type : NULL;
        joiner->types[whole->stored] = whole->first->type;
    }
    return GRADCMP_OK;
}

/* Put a tensor's bytes into the catalogue. `zeros` is the start of what is no shard. */
static enum gradcmp_status add_piece(struct joiner *joiner, uint32_t file,
                                     const struct gcmp_st_tensor *tensor, const uint64_t *zeros) {
    size_t index = 0;
    (void)gcmp_map_find(&joiner->by_name, tensor->name, strlen(tensor->name), &index);
    struct whole *whole = &joiner->wholes[index];
    struct gradcmp_piece *piece = &joiner->catalogue->stored[whole->stored].pieces[whole->filled];
    struct gradcmp_source source = {.offset_bytes = tensor->offset_bytes,
                                    .length_bytes = tensor->length_bytes,
                                    .file = file,
                                    .stored = (uint32_t)whole->stored,
                                    .piece = (uint32_t)whole->filled,
                                    .kind = GRADCMP_SOURCE_RANGE};
    piece->start = tensor->start == NULL ? zeros : tensor->start;
    piece->extent = tensor->shape;
    whole->filled++;
    return gcmp_catalogue_add_source(joiner->catalogue, &source, &piece->source, joiner->error);
}

static enum gradcmp_status add_pieces(struct joiner *joiner) {
    const uint64_t *zeros =
        gcmp_arena_alloc(joiner->catalogue->arena, GRADCMP_MAX_NDIM, sizeof *zeros);
    if (zeros == NULL) {
        GCMP_FAIL_MEMORY(joiner->error);
    }
    for (size_t i = 0; i < joiner->set->count; i++) {
        const struct gcmp_st_image *image = &joiner->set->images[i];
        for (size_t j = 0; j < image->count; j++) {
            const struct gcmp_st_tensor *tensor = &image->tensors[j];
            if (!is_empty(tensor)) {
                GCMP_TRY(add_piece(joiner, image->file, tensor, zeros));
            }
        }
    }
    return GRADCMP_OK;
}

/* Shards say where they begin, and nothing says where the last one ends: without it, the whole
 * looks smaller. */
static enum gradcmp_status say_inferred(const struct joiner *joiner) {
    struct gradcmp_setting setting = {
        .name = "safetensors.inferred_sizes", .kind = GRADCMP_SETTING_BOOL, .integer = 1};
    for (size_t i = 0; i < joiner->count; i++) {
        if (joiner->wholes[i].first->start != NULL) {
            return gcmp_catalogue_set(joiner->catalogue, &setting, joiner->error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status join(struct joiner *joiner) {
    size_t total = 0;
    for (size_t i = 0; i < joiner->set->count; i++) {
        total += joiner->set->images[i].count;
    }
    if (total >= UINT32_MAX) {
        GCMP_FAIL(joiner->error, GRADCMP_ERROR_LIMIT, "more than %u tensors", UINT32_MAX);
    }
    joiner->wholes = calloc(total + 1, sizeof *joiner->wholes);
    if (joiner->wholes == NULL) {
        GCMP_FAIL_MEMORY(joiner->error);
    }
    GCMP_TRY(collect(joiner));
    GCMP_TRY(add_wholes(joiner));
    GCMP_TRY(add_pieces(joiner));
    GCMP_TRY(say_inferred(joiner));
    return gcmp_plain_assign_names(joiner->catalogue, gcmp_extracted_style(joiner->catalogue),
                                   joiner->types, joiner->error);
}

enum gradcmp_status gcmp_st_join(struct gradcmp_catalogue *catalogue, const struct gcmp_st_set *set,
                                 struct gradcmp_error *error) {
    struct joiner joiner = {
        .catalogue = catalogue, .set = set, .by_name = GCMP_MAP_INIT, .error = error};
    enum gradcmp_status status = join(&joiner);
    gcmp_map_free(&joiner.by_name);
    free(joiner.wholes);
    free(joiner.types);
    return status;
}
