/* A flat range of a row-major tensor is no box of it. It is stored as a piece of [1, .., 1,
 * elements], the model's shape stated beside: unsharding cuts such pieces into boxes. */
#include "formats/deepspeed_wholes.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/grow.h"

struct piece {
    struct gcmp_ds_range range;
    struct gcmp_ds_flat flat; /* a copy: the rank's arrays do not stay */
    struct piece *next;
};

struct gcmp_ds_whole {
    struct gcmp_ds_param param;
    const char *state;
    uint8_t dtype;
    struct piece *first, *last;
    size_t piece_count;
};

/* The bytes of this are the key of a source. */
struct source_key {
    uint64_t offset_bytes, length_bytes, file;
};

static bool same_shape(const struct gcmp_ds_param *a, const struct gcmp_ds_param *b) {
    return gcmp_dims_equal(a->ndim, a->shape, b->ndim, b->shape);
}

/* Find the tensor of a name and state, or start it. NULL without memory. */
static struct gcmp_ds_whole *find(struct gcmp_ds_wholes *wholes, const struct gcmp_ds_param *param,
                                  const char *state, uint8_t dtype) {
    struct gcmp_arena *arena = wholes->catalogue->arena;
    const char *key = gcmp_arena_format(arena, "%s %s", state, param->name);
    size_t number = wholes->count;
    if (key == NULL ||
        !gcmp_grow(&wholes->numbered, wholes->count, &wholes->capacity, sizeof *wholes->numbered) ||
        gcmp_map_add(&wholes->by_name, key, strlen(key), number, &number) == GCMP_MAP_NO_MEMORY) {
        return NULL;
    }
    if (number < wholes->count) {
        return wholes->numbered[number];
    }
    struct gcmp_ds_whole *whole = gcmp_arena_alloc(arena, 1, sizeof *whole);
    if (whole == NULL) {
        return NULL;
    }
    *whole = (struct gcmp_ds_whole){.param = *param, .state = state, .dtype = dtype};
    wholes->numbered[wholes->count++] = whole;
    return whole;
}

enum gradcmp_status gcmp_ds_add_range(struct gcmp_ds_wholes *wholes,
                                      const struct gcmp_ds_param *param, const char *state,
                                      const struct gcmp_ds_range *range,
                                      struct gradcmp_error *error) {
    struct gcmp_ds_whole *whole = find(wholes, param, state, range->flat->view.dtype);
    struct piece *piece = gcmp_arena_alloc(wholes->catalogue->arena, 1, sizeof *piece);
    if (whole == NULL || piece == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (!same_shape(&whole->param, param) || whole->dtype != range->flat->view.dtype) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT,
                     gcmp_dir_file_path(wholes->catalogue->dir, range->flat->file),
                     GRADCMP_NO_OFFSET,
                     "deepspeed: %s of \"%.200s\" is of another shape or type than elsewhere",
                     state, param->name);
    }
    piece->range = *range;
    piece->flat = *range->flat;
    *(whole->last == NULL ? &whole->first : &whole->last->next) = piece;
    whole->last = piece;
    whole->piece_count++;
    return GRADCMP_OK;
}

static enum gradcmp_status find_source(struct gcmp_ds_wholes *wholes,
                                       const struct gcmp_ds_flat *flat, uint32_t stored,
                                       size_t piece, uint32_t *index, struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = wholes->catalogue;
    struct source_key *key = gcmp_arena_alloc(catalogue->arena, 1, sizeof *key);
    size_t known;
    if (key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *key = (struct source_key){flat->view.offset_bytes, flat->view.length_bytes, flat->file};
    enum gcmp_map_result result =
        gcmp_map_add(&wholes->sources, key, sizeof *key, catalogue->source_count, &known);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    *index = (uint32_t)known;
    if (result == GCMP_MAP_PRESENT) {
        return GRADCMP_OK;
    }
    struct gradcmp_source source = {.offset_bytes = flat->view.offset_bytes,
                                    .length_bytes = flat->view.length_bytes,
                                    .file = flat->file,
                                    .crc32 = flat->view.crc32,
                                    .big_endian = flat->view.big_endian,
                                    .stored = stored,
                                    .piece = (uint32_t)piece,
                                    .kind = GRADCMP_SOURCE_RANGE};
    return gcmp_catalogue_add_source(catalogue, &source, index, error);
}

/* Arrays of one piece, in one allocation: start, extent, stride of ndim + 1 axes. */
static enum gradcmp_status describe_piece(const struct gcmp_ds_wholes *wholes, unsigned ndim,
                                          const struct piece *piece, struct gradcmp_piece *out,
                                          struct gradcmp_error *error) {
    struct gcmp_arena *arena = wholes->catalogue->arena;
    uint64_t *dims = gcmp_arena_alloc(arena, 2 * (ndim + 1), sizeof *dims);
    int64_t *stride = gcmp_arena_alloc(arena, ndim + 1, sizeof *stride);
    struct gradcmp_coords *coords = gcmp_arena_alloc(arena, 1, sizeof *coords);
    if (dims == NULL || stride == NULL || coords == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    uint64_t *extent = dims + ndim + 1;
    for (unsigned d = 0; d < ndim; d++) {
        extent[d] = 1;
    }
    dims[ndim] = piece->range.from;
    extent[ndim] = piece->range.elem_count;
    stride[ndim] = 1;
    *coords = (struct gradcmp_coords){-1, piece->range.pp, -1, piece->range.dp, -1, -1};
    out->start = dims;
    out->extent = extent;
    out->stride = stride;
    out->offset_elems = piece->flat.view.offset_elems + (int64_t)piece->range.flat_from;
    out->coords = coords;
    return GRADCMP_OK;
}

static enum gradcmp_status store(struct gcmp_ds_wholes *wholes, const struct gcmp_ds_whole *whole,
                                 struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = wholes->catalogue;
    const struct gcmp_ds_param *param = &whole->param;
    uint64_t shape[GRADCMP_MAX_NDIM];
    if (param->ndim >= GRADCMP_MAX_NDIM) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "\"%.200s\": %u axes, at most %d are read",
                  param->name, param->ndim, GRADCMP_MAX_NDIM - 1);
    }
    for (unsigned d = 0; d < param->ndim; d++) {
        shape[d] = 1;
    }
    shape[param->ndim] = param->elem_count;
    const char *key = gcmp_arena_format(catalogue->arena, "%s.%s", whole->state, param->name);
    struct gradcmp_stored *stored;
    uint32_t number = (uint32_t)catalogue->stored_count;
    if (key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_catalogue_add_stored(catalogue, key, param->ndim + 1, shape, whole->piece_count,
                                       &stored, error));
    stored->name = param->name;
    stored->state = whole->state;
    stored->dtype = whole->dtype;
    stored->model_shape = param->shape;
    stored->model_ndim = (uint8_t)param->ndim;
    const struct piece *piece = whole->first;
    for (size_t i = 0; i < whole->piece_count; i++, piece = piece->next) {
        GCMP_TRY(describe_piece(wholes, param->ndim, piece, &stored->pieces[i], error));
        GCMP_TRY(find_source(wholes, &piece->flat, number, i, &stored->pieces[i].source, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ds_store_wholes(struct gcmp_ds_wholes *wholes,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < wholes->count; i++) {
        GCMP_TRY(store(wholes, wholes->numbered[i], error));
    }
    return GRADCMP_OK;
}

void gcmp_ds_free_wholes(struct gcmp_ds_wholes *wholes) {
    free(wholes->numbered);
    gcmp_map_free(&wholes->by_name);
    gcmp_map_free(&wholes->sources);
}
