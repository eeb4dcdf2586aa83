/* Puts the tensors of a torch.save checkpoint together: pieces of one tensor from several ranks,
 * sources. */
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "formats/mixed_betas.h"
#include "formats/torch_save_set.h"

/* A stored tensor in the making. */
struct whole {
    size_t first;  /* of its tensors */
    size_t pieces; /* with elements */
    size_t stored; /* index into the catalogue */
    bool is_listed_only;
    bool is_unread_state; /* listed only, though its state is compared */
};

/* The bytes of this are the key of a source. */
struct source_key {
    uint64_t offset_bytes, length_bytes, file;
};

struct join {
    struct gcmp_pt_set *set;
    struct whole *wholes;
    size_t whole_count;
    size_t *whole_of;        /* of each tensor */
    struct gcmp_map by_name; /* "state name" -> whole */
    struct gcmp_map shapes;  /* name of a parameter -> tensor that shows its shape */
    struct gcmp_map sources; /* source_key -> source */
    size_t unread_count;
    const char *unread_key, *unread_why; /* the first of them */
    struct gradcmp_error *error;
};

static struct gcmp_arena *arena_of(const struct join *join) {
    return join->set->catalogue->arena;
}

#define TENSOR_FAIL(join, tensor, code, ...)                                                       \
    GCMP_FAIL_AT((join)->error, (code),                                                            \
                 gcmp_dir_file_path((join)->set->catalogue->dir, (tensor)->file),                  \
                 GRADCMP_NO_OFFSET, "torch: " __VA_ARGS__)

/* --- what is listed only --- */

/* Remember which tensor shows the shape of each parameter: a weight, else a state that has it. */
static enum gradcmp_status note_shapes(struct join *join) {
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < join->set->tensor_count; i++) {
            const struct gcmp_pt_tensor *tensor = &join->set->tensors[i];
            bool shows = pass == 0
                             ? tensor->kind == GCMP_PT_WEIGHT
                             : tensor->kind == GCMP_PT_STATE && gcmp_pt_is_shaped(tensor->state);
            if (shows && tensor->unread == NULL &&
                gcmp_map_add(&join->shapes, tensor->name, strlen(tensor->name), i, NULL) ==
                    GCMP_MAP_NO_MEMORY) {
                GCMP_FAIL_MEMORY(join->error);
            }
        }
    }
    return GRADCMP_OK;
}

static const char *say_type(const struct gcmp_pt_tensor *tensor) {
    return tensor->unread != NULL ? tensor->unread
                                  : gradcmp_dtype_name((enum gradcmp_dtype)tensor->view.dtype);
}

static void note_unread(struct join *join, const struct gcmp_pt_tensor *tensor) {
    if (join->unread_count++ == 0) {
        join->unread_key = tensor->key;
        join->unread_why = say_type(tensor);
    }
}

/* Decide whether a tensor takes part. A state that cannot be read is kept as that: who compares it
 * refuses it. */
static enum gradcmp_status check_tensor(struct join *join, const struct gcmp_pt_tensor *tensor,
                                        struct whole *whole) {
    size_t index;
    bool is_read = tensor->unread == NULL, is_steppable = gcmp_pt_is_steppable(tensor);
    bool is_state = tensor->kind == GCMP_PT_STATE && strcmp(tensor->state, "step") != 0;
    bool is_shaped = is_state && gcmp_pt_is_shaped(tensor->state);
    whole->is_listed_only =
        tensor->kind == GCMP_PT_OTHER || !(is_shaped ? is_steppable : gcmp_pt_is_float(tensor));
    if (!is_state) {
        if (!is_read) {
            note_unread(join, tensor);
        }
        return GRADCMP_OK;
    }
    bool is_known = gcmp_map_find(&join->shapes, tensor->name, strlen(tensor->name), &index);
    if (!whole->is_listed_only && is_known &&
        !gcmp_pt_same_shape(tensor, &join->set->tensors[index])) {
        if (is_shaped) {
            TENSOR_FAIL(join, tensor, GRADCMP_ERROR_CORRUPT,
                        "\"%.160s\" is not of the shape of its parameter \"%.160s\"", tensor->key,
                        join->set->tensors[index].key);
        }
        whole->is_listed_only = true;
    }
    whole->is_unread_state = is_shaped && whole->is_listed_only;
    if (whole->is_listed_only) {
        note_unread(join, tensor);
    }
    return GRADCMP_OK;
}

/* --- wholes --- */

static bool has_elements(const struct gcmp_pt_tensor *tensor) {
    uint64_t elems = 0;
    return tensor->unread == NULL && gcmp_product(tensor->view.shape, tensor->view.ndim, &elems) &&
           elems > 0;
}

/* Another tensor of the same name and state: the piece of another rank, or a contradiction. */
static enum gradcmp_status check_piece(const struct join *join, const struct gcmp_pt_tensor *first,
                                       const struct gcmp_pt_tensor *tensor) {
    const char *other = gcmp_dir_file_name(join->set->catalogue->dir, first->file);
    bool is_piece = tensor->start != NULL && first->start != NULL && tensor->file == first->file;
    if (!is_piece && tensor->file == first->file) {
        TENSOR_FAIL(
            join, tensor, GRADCMP_ERROR_UNSUPPORTED,
            "the %.40s of \"%.160s\" is stored more than once, as \"%.160s\" and as "
            "\"%.160s\": save models whose parameters have the same names in files of their "
            "own",
            tensor->state, first->name, first->key, tensor->key);
    }
    if (!is_piece && (tensor->rank < 0 || first->rank < 0)) {
        TENSOR_FAIL(join, tensor, GRADCMP_ERROR_UNSUPPORTED,
                    "\"%.160s\": the %.40s of this parameter is also in %.200s; name one file",
                    tensor->key, tensor->state, other);
    }
    if (!gcmp_pt_same_shape(first, tensor) || (first->unread == NULL) != (tensor->unread == NULL) ||
        (first->unread == NULL && first->view.dtype != tensor->view.dtype)) {
        TENSOR_FAIL(join, tensor, GRADCMP_ERROR_CORRUPT,
                    "\"%.160s\" is of another shape or type than in %.200s", tensor->key, other);
    }
    if (!gcmp_same_adam(first->adam, tensor->adam)) {
        TENSOR_FAIL(join, tensor, GRADCMP_ERROR_CORRUPT,
                    "\"%.160s\" was averaged over other steps, or with other betas, than in %.200s",
                    tensor->key, other);
    }
    return GRADCMP_OK;
}

/* What is only listed may be in several files under one name: states of random generators. */
static bool stands_alone(const struct gcmp_pt_tensor *tensor) {
    return tensor->kind == GCMP_PT_OTHER ||
           (tensor->kind == GCMP_PT_WEIGHT && tensor->unread == NULL && !gcmp_pt_is_float(tensor) &&
            tensor->rank < 0 && tensor->start == NULL);
}

/* Find the whole of a tensor, or start it. Ranks' copies of a step count are one. */
static enum gradcmp_status find_whole(struct join *join, size_t index) {
    const struct gcmp_pt_tensor *tensor = &join->set->tensors[index];
    size_t *whole = &join->whole_of[index];
    *whole = join->whole_count;
    if (!stands_alone(tensor)) {
        const char *key = gcmp_arena_format(arena_of(join), "%s %s", tensor->state, tensor->name);
        if (key == NULL || gcmp_map_add(&join->by_name, key, strlen(key), join->whole_count,
                                        whole) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(join->error);
        }
    }
    if (*whole < join->whole_count) {
        GCMP_TRY(check_piece(join, &join->set->tensors[join->wholes[*whole].first], tensor));
    } else {
        join->wholes[join->whole_count++] = (struct whole){.first = index};
        GCMP_TRY(check_tensor(join, tensor, &join->wholes[*whole]));
    }
    bool is_repeated = tensor->state != NULL && strcmp(tensor->state, "step") == 0 &&
                       join->wholes[*whole].pieces > 0;
    join->wholes[*whole].pieces += has_elements(tensor) && !is_repeated;
    return GRADCMP_OK;
}

static enum gradcmp_status add_stored(struct join *join, struct whole *whole) {
    const struct gcmp_pt_tensor *tensor = &join->set->tensors[whole->first];
    struct gradcmp_stored *stored;
    whole->stored = join->set->catalogue->stored_count;
    GCMP_TRY(gcmp_catalogue_add_stored(join->set->catalogue, tensor->key, tensor->ndim,
                                       tensor->shape, whole->pieces, &stored, join->error));
    stored->piece_count = 0; /* counts up to whole->pieces */
    stored->name = tensor->name != NULL ? tensor->name : tensor->key;
    stored->state = whole->is_listed_only ? NULL : tensor->state;
    stored->unread_state = whole->is_unread_state ? tensor->state : NULL;
    stored->unread_why = whole->is_unread_state ? say_type(tensor) : NULL;
    stored->adam = tensor->adam;
    stored->dtype = tensor->unread != NULL ? (uint8_t)GRADCMP_DTYPE_NONE : tensor->view.dtype;
    return GRADCMP_OK;
}

/* --- pieces --- */

/* Several tensors may be views of one record: a source each would check its sum as often. */
static enum gradcmp_status find_source(struct join *join, const struct gcmp_pt_tensor *tensor,
                                       struct gradcmp_source *source, uint32_t *index) {
    struct source_key *key = gcmp_arena_alloc(arena_of(join), 1, sizeof *key);
    size_t known;
    if (key == NULL) {
        GCMP_FAIL_MEMORY(join->error);
    }
    *key = (struct source_key){tensor->view.offset_bytes, tensor->view.length_bytes, tensor->file};
    enum gcmp_map_result result =
        gcmp_map_add(&join->sources, key, sizeof *key, join->set->catalogue->source_count, &known);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(join->error);
    }
    *index = (uint32_t)known;
    if (result == GCMP_MAP_PRESENT) {
        return GRADCMP_OK;
    }
    source->offset_bytes = tensor->view.offset_bytes;
    source->length_bytes = tensor->view.length_bytes;
    source->file = tensor->file;
    source->crc32 = tensor->view.crc32;
    source->big_endian = tensor->view.big_endian;
    source->kind = GRADCMP_SOURCE_RANGE;
    return gcmp_catalogue_add_source(join->set->catalogue, source, index, join->error);
}

static enum gradcmp_status describe_piece(const struct join *join,
                                          const struct gcmp_pt_tensor *tensor,
                                          struct gradcmp_piece *piece) {
    struct gcmp_arena *arena = arena_of(join);
    unsigned ndim = tensor->ndim;
    uint64_t *start = tensor->start, *extent = gcmp_arena_alloc(arena, ndim, sizeof *extent);
    int64_t *stride = gcmp_arena_alloc(arena, ndim, sizeof *stride);
    if (start == NULL) {
        start = gcmp_arena_alloc(arena, ndim, sizeof *start); /* zeroed */
    }
    if (start == NULL || extent == NULL || stride == NULL) {
        GCMP_FAIL_MEMORY(join->error);
    }
    for (unsigned d = 0; d < ndim; d++) {
        extent[d] = tensor->view.shape[d];
        stride[d] = tensor->view.stride[d];
    }
    piece->start = start;
    piece->extent = extent;
    piece->stride = stride;
    piece->offset_elems = tensor->view.offset_elems;
    if (tensor->rank >= 0) {
        struct gradcmp_coords *coords = gcmp_arena_alloc(arena, 1, sizeof *coords);
        if (coords == NULL) {
            GCMP_FAIL_MEMORY(join->error);
        }
        *coords = (struct gradcmp_coords){-1, -1, -1, -1, -1, -1};
        *(tensor->is_of_stage ? &coords->pp : &coords->dp) = tensor->rank;
        piece->coords = coords;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_piece(struct join *join, size_t index) {
    const struct gcmp_pt_tensor *tensor = &join->set->tensors[index];
    const struct whole *whole = &join->wholes[join->whole_of[index]];
    struct gradcmp_stored *stored = &join->set->catalogue->stored[whole->stored];
    if (!has_elements(tensor) || stored->piece_count == whole->pieces) {
        return GRADCMP_OK;
    }
    struct gradcmp_piece *piece = &stored->pieces[stored->piece_count];
    struct gradcmp_source source = {.stored = (uint32_t)whole->stored,
                                    .piece = (uint32_t)stored->piece_count};
    GCMP_TRY(describe_piece(join, tensor, piece));
    GCMP_TRY(find_source(join, tensor, &source, &piece->source));
    stored->piece_count++;
    return GRADCMP_OK;
}

static enum gradcmp_status say_unread(const struct join *join) {
    if (join->unread_count == 0) {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_note(join->set->catalogue, join->error,
                               "%zu tensors are listed, not read: %.120s (%.160s)%s",
                               join->unread_count, join->unread_key, join->unread_why,
                               join->unread_count > 1 ? " ..." : "");
}

/* Refuse what holds states, and nothing that is read. */
static enum gradcmp_status check_any_read(const struct join *join) {
    const struct whole *unread = NULL;
    for (size_t i = 0; i < join->whole_count; i++) {
        if (!join->wholes[i].is_listed_only) {
            return GRADCMP_OK;
        }
        unread = unread == NULL && join->wholes[i].is_unread_state ? &join->wholes[i] : unread;
    }
    if (unread == NULL) {
        return GRADCMP_OK;
    }
    const struct gcmp_pt_tensor *tensor = &join->set->tensors[unread->first];
    TENSOR_FAIL(join, tensor, GRADCMP_ERROR_UNSUPPORTED,
                "\"%.160s\": expected a tensor of real numbers for the state %.40s, found %.200s",
                tensor->key, tensor->state, say_type(tensor));
}

static enum gradcmp_status make(struct join *join) {
    size_t count = join->set->tensor_count;
    GCMP_TRY(gcmp_pt_part_stages(join->set, join->error));
    GCMP_TRY(gcmp_pt_name_numbers(join->set, join->error));
    GCMP_TRY(note_shapes(join));
    if (count >= UINT32_MAX) {
        GCMP_FAIL(join->error, GRADCMP_ERROR_LIMIT, "more than %u tensors", UINT32_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(find_whole(join, i));
    }
    GCMP_TRY(check_any_read(join));
    for (size_t i = 0; i < join->whole_count; i++) {
        GCMP_TRY(add_stored(join, &join->wholes[i]));
    }
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(add_piece(join, i));
    }
    GCMP_TRY(gcmp_settle_adam(join->set->catalogue, join->error));
    return say_unread(join);
}

enum gradcmp_status gcmp_pt_join(struct gcmp_pt_set *set, struct gradcmp_error *error) {
    struct join join = {.set = set,
                        .by_name = GCMP_MAP_INIT,
                        .shapes = GCMP_MAP_INIT,
                        .sources = GCMP_MAP_INIT,
                        .error = error};
    join.wholes = calloc(set->tensor_count + 1, sizeof *join.wholes);
    join.whole_of = calloc(set->tensor_count + 1, sizeof *join.whole_of);
    enum gradcmp_status status =
        join.wholes == NULL || join.whole_of == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : make(&join);
    gcmp_map_free(&join.by_name);
    gcmp_map_free(&join.shapes);
    gcmp_map_free(&join.sources);
    free(join.wholes);
    free(join.whole_of);
    return status;
}
