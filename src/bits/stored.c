/* Lists what a format's catalogue holds: tensors by their elements, those of types that nobody
 * reads by their bytes, a distributed checkpoint's objects by what they hold.
 *
 * Limit: bytes of an object's archive that is compressed. */
#include "bits/stored.h"

#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "bits/walk.h"
#include "formats/dcp_item.h"
#include "unshard/coverage.h"

enum { MAX_OBJECT_BYTES = 64 << 20 };

struct lister {
    struct gcmp_bits_side *side;
    const struct gcmp_bits_listing *listing;
    struct gcmp_cover_room room;
    size_t unread_count; /* tensors whose bytes the format does not tell either */
    const char *unread_key;
    struct gradcmp_error *error;
};

/* --- tensors --- */

/* Slabs of a stored tensor's pieces, in its own axes. */
static enum gradcmp_status make_slabs(struct gcmp_bits_side *side,
                                      const struct gradcmp_stored *stored,
                                      struct gradcmp_parameter *parameter,
                                      struct gradcmp_error *error) {
    struct gradcmp_slab *slabs =
        gcmp_arena_alloc(&side->arena, stored->piece_count + 1, sizeof *slabs);
    if (slabs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < stored->piece_count; i++) {
        const struct gradcmp_piece *piece = &stored->pieces[i];
        int64_t *stride = gcmp_arena_alloc(&side->arena, stored->ndim + 1U, sizeof *stride);
        if (stride == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        int64_t step = 1;
        bool is_empty = false;
        for (unsigned d = stored->ndim; d-- > 0;) {
            stride[d] = piece->stride != NULL ? piece->stride[d] : step;
            step *= (int64_t)piece->extent[d];
            is_empty = is_empty || piece->extent[d] == 0;
        }
        if (!is_empty) {
            slabs[parameter->slab_count++] = (struct gradcmp_slab){
                .start = piece->start,
                .extent = piece->extent,
                .stride = stride,
                .offset_elems = piece->stride != NULL ? piece->offset_elems : 0,
                .source = piece->source,
                .coords = piece->coords};
        }
    }
    parameter->slabs = slabs;
    return GRADCMP_OK;
}

/* Where ranks' tensors have the same names, the file tells them apart. NULL without memory. */
static const char *path_of(struct lister *lister, const struct gradcmp_stored *stored) {
    const struct gradcmp_catalogue *catalogue = lister->listing->catalogue;
    struct gcmp_arena *arena = &lister->side->arena;
    bool is_local =
        stored->layout == GRADCMP_LAYOUT_LOCAL || stored->layout == GRADCMP_LAYOUT_LOCAL_BUFFER;
    if (!is_local || stored->piece_count == 0) {
        return lister->listing->prefix[0] == '\0'
                   ? stored->key
                   : gcmp_arena_format(arena, "%s/%s", lister->listing->prefix, stored->key);
    }
    uint32_t file = catalogue->sources[stored->pieces[0].source].file;
    return gcmp_arena_format(arena, "%s/%s", gcmp_dir_file_name(catalogue->dir, file), stored->key);
}

/* Add a tensor under a path; `type` is what its elements are called. */
static enum gradcmp_status add_tensor(struct lister *lister, const struct gradcmp_stored *stored,
                                      const char *path, const char *type) {
    struct gcmp_bits_side *side = lister->side;
    struct gradcmp_parameter *parameter = gcmp_arena_alloc(&side->arena, 1, sizeof *parameter);
    struct gcmp_bits_item item = {.kind = GCMP_BITS_TENSOR,
                                  .path = path,
                                  .type = type,
                                  .catalogue = lister->listing->catalogue,
                                  .parameter = parameter,
                                  .shape = stored->shape,
                                  .state = stored->state,
                                  .ndim = stored->ndim,
                                  .dtype = stored->dtype,
                                  .model_layout = stored->layout == GRADCMP_LAYOUT_MODEL,
                                  .is_flat = gcmp_bits_is_flat(lister->listing->catalogue, stored)};
    if (parameter == NULL || item.path == NULL) {
        GCMP_FAIL_MEMORY(lister->error);
    }
    *parameter = (struct gradcmp_parameter){.name = stored->key,
                                            .state = stored->state,
                                            .shape = stored->shape,
                                            .copy_count = 1,
                                            .ndim = stored->ndim,
                                            .dtype = stored->dtype};
    item.elem_bytes = (uint8_t)gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype);
    if (!gcmp_product(stored->shape, stored->ndim, &parameter->elem_count)) {
        GCMP_FAIL(lister->error, GRADCMP_ERROR_CORRUPT, "%s: 2^63 elements or more", stored->key);
    }
    GCMP_TRY(make_slabs(side, stored, parameter, lister->error));
    GCMP_TRY(gcmp_cover(parameter, &lister->room, lister->error));
    item.group = (uint8_t)gcmp_bits_group_of(item.path, item.state);
    item.by_rank = gcmp_bits_is_by_rank(item.path);
    return gcmp_bits_add(&side->items, &item, lister->error);
}

/* The path of one of several pieces. NULL without memory. */
static const char *path_of_piece(struct lister *lister, const struct gradcmp_stored *stored,
                                 size_t piece) {
    const char *path = path_of(lister, stored);
    return stored->piece_count == 1 || path == NULL
               ? path
               : gcmp_arena_format(&lister->side->arena, "%s/<piece>/%zu", path, piece);
}

/* A piece of a tensor of a type that is not read, as the bytes that it is. */
static enum gradcmp_status add_bytes(struct lister *lister, const struct gradcmp_stored *stored,
                                     size_t piece) {
    const struct gradcmp_source *source =
        &lister->listing->catalogue->sources[stored->pieces[piece].source];
    struct gcmp_arena *arena = &lister->side->arena;
    uint64_t *box = gcmp_arena_alloc(arena, 2, sizeof *box);
    struct gradcmp_piece *bytes = gcmp_arena_alloc(arena, 1, sizeof *bytes);
    struct gradcmp_stored *flat = gcmp_arena_alloc(arena, 1, sizeof *flat);
    struct gcmp_text type = GCMP_TEXT_INIT;
    if (box == NULL || bytes == NULL || flat == NULL) {
        GCMP_FAIL_MEMORY(lister->error);
    }
    gcmp_text_addf(&type, "%s", stored->type == NULL ? "bytes of a type not read" : stored->type);
    for (unsigned d = 0; d < stored->ndim; d++) {
        gcmp_text_addf(&type, "%s%llu", d == 0 ? " [" : ", ", (unsigned long long)stored->shape[d]);
    }
    gcmp_text_addf(&type, "%s, bytes", stored->ndim == 0 ? "" : "]");
    const char *label = type.failed ? NULL : gcmp_arena_dup(arena, type.bytes);
    gcmp_text_free(&type);
    if (label == NULL) {
        GCMP_FAIL_MEMORY(lister->error);
    }
    box[0] = 0;
    box[1] = source->length_bytes;
    *bytes = (struct gradcmp_piece){
        .start = &box[0], .extent = &box[1], .source = stored->pieces[piece].source};
    *flat = (struct gradcmp_stored){.key = stored->key,
                                    .name = stored->name,
                                    .shape = &box[1],
                                    .pieces = bytes,
                                    .piece_count = 1,
                                    .ndim = 1,
                                    .dtype = GRADCMP_DTYPE_UINT8};
    return add_tensor(lister, flat, path_of_piece(lister, stored, piece), label);
}

/* One item of a distributed checkpoint that is no tensor of a known type. */
static enum gradcmp_status add_object(struct lister *lister, const struct gradcmp_stored *stored,
                                      size_t piece) {
    struct gcmp_bits_side *side = lister->side;
    const struct gradcmp_catalogue *catalogue = lister->listing->catalogue;
    const struct gradcmp_source *source = &catalogue->sources[stored->pieces[piece].source];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_item item;
    enum gradcmp_status status =
        gcmp_dcp_open_item(catalogue, source, MAX_OBJECT_BYTES, &arena, &item, lister->error);
    if (status == GRADCMP_OK) {
        const char *prefix = path_of_piece(lister, stored, piece);
        struct gcmp_bits_archive archive = {.torch = &item.torch,
                                            .arena = &arena,
                                            .prefix = prefix == NULL ? "" : prefix,
                                            .passing = item.unpacked != NULL};
        side->extra.dir = item.unpacked != NULL ? item.unpacked : side->dir;
        status = gcmp_bits_walk(side, &archive, lister->error);
        side->extra.dir = side->dir;
    }
    gcmp_dcp_close_item(&item);
    gcmp_arena_free(&arena);
    return status;
}

/* --- catalogues --- */

/* True where every piece of a stored tensor lies in a file whose objects were walked: the walk
 * found it there. */
static bool was_walked(const struct lister *lister, const struct gradcmp_stored *stored) {
    const struct gradcmp_catalogue *catalogue = lister->listing->catalogue;
    const struct gcmp_map *walked = lister->listing->walked;
    if (stored->piece_count == 0) { /* a tensor without elements lies nowhere */
        return walked->count > 0 && strcmp(catalogue->format->name, "torch_dist") != 0;
    }
    for (size_t i = 0; i < stored->piece_count; i++) {
        uint32_t file = catalogue->sources[stored->pieces[i].source].file;
        const char *name = gcmp_dir_file_name(catalogue->dir, file);
        size_t ignored;
        if (!gcmp_map_find(walked, name, strlen(name), &ignored)) {
            return false;
        }
    }
    return true;
}

static enum gradcmp_status add_unread(struct lister *lister, const struct gradcmp_stored *stored) {
    bool is_item = strcmp(lister->listing->catalogue->format->name, "torch_dist") == 0;
    uint64_t elems = 0;
    if (stored->piece_count == 0 &&
        (!gcmp_product(stored->shape, stored->ndim, &elems) || elems > 0)) {
        lister->unread_key = lister->unread_count++ == 0 ? stored->key : lister->unread_key;
    }
    for (size_t k = 0; k < stored->piece_count; k++) {
        GCMP_TRY(is_item ? add_object(lister, stored, k) : add_bytes(lister, stored, k));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_all(struct lister *lister) {
    const struct gradcmp_catalogue *catalogue = lister->listing->catalogue;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (was_walked(lister, stored)) {
            continue;
        }
        GCMP_TRY(stored->dtype == GRADCMP_DTYPE_NONE
                     ? add_unread(lister, stored)
                     : add_tensor(lister, stored, path_of(lister, stored),
                                  gradcmp_dtype_name((enum gradcmp_dtype)stored->dtype)));
    }
    return lister->unread_count == 0
               ? GRADCMP_OK
               : gcmp_bits_note(lister->side, lister->error,
                                "not compared: %zu of what is stored, of types that are not read "
                                "(%.160s%s)",
                                lister->unread_count, lister->unread_key,
                                lister->unread_count > 1 ? ", ..." : "");
}

enum gradcmp_status gcmp_bits_add_catalogue(struct gcmp_bits_side *side,
                                            const struct gcmp_bits_listing *listing,
                                            struct gradcmp_error *error) {
    struct lister lister = {.side = side, .listing = listing, .error = error};
    enum gradcmp_status status = add_all(&lister);
    gcmp_cover_room_free(&lister.room);
    return status;
}
