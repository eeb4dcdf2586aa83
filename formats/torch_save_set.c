/* Tensors of a torch.save checkpoint as they are found.
 *
 * Limits: a view that repeats elements (expanded, overlapping) has at most MAX_REPEATED times as
 * many as its storage, beyond FREE_ELEMS: reading it takes as long as its shape says. */
#include "formats/torch_save_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "formats/safetensors_image.h"
#include "formats/torch_save_shard.h"

enum { MAX_REPEATED = 64, FREE_ELEMS = 1 << 24 };

#define PLACE_FAIL(place, code, node, ...)                                                         \
    GCMP_FAIL_AT((place)->error, (code),                                                           \
                 gcmp_dir_file_path((place)->torch->dir, (place)->torch->file),                    \
                 (place)->torch->pickle->offset_bytes + (node)->at, "torch: " __VA_ARGS__)

bool gcmp_pt_is_tensor(const struct gcmp_node *node) {
    return gcmp_torch_is_tensor(node) || gcmp_pt_is_sharded(node);
}

bool gcmp_pt_is_extra_state(const char *key) {
    return strstr(key, "._extra_state") != NULL;
}

bool gcmp_pt_is_shaped(const char *state) {
    static const char *const words[] = {"exp_avg",         "exp_avg_sq", "max_exp_avg_sq",
                                        "momentum_buffer", "fp32_param", "main_grad"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], state) == 0) {
            return true;
        }
    }
    return false;
}

bool gcmp_pt_is_float(const struct gcmp_pt_tensor *tensor) {
    return tensor->unread == NULL && gcmp_dtype_is_float((enum gradcmp_dtype)tensor->view.dtype);
}

bool gcmp_pt_is_steppable(const struct gcmp_pt_tensor *tensor) {
    bool is_complex = tensor->unread == NULL && (tensor->view.dtype == GRADCMP_DTYPE_COMPLEX64 ||
                                                 tensor->view.dtype == GRADCMP_DTYPE_COMPLEX128);
    return is_complex || gcmp_pt_is_float(tensor);
}

bool gcmp_pt_same_shape(const struct gcmp_pt_tensor *a, const struct gcmp_pt_tensor *b) {
    return gcmp_dims_equal(a->ndim, a->shape, b->ndim, b->shape);
}

bool gcmp_pt_is_numbered(const struct gcmp_pt_tensor *tensor) {
    return tensor->kind == GCMP_PT_STATE && tensor->entry != SIZE_MAX;
}

bool gcmp_pt_next_run(const struct gcmp_pt_set *set, struct gcmp_pt_run *run) {
    if (run->end >= set->tensor_count) {
        return false;
    }
    *run = (struct gcmp_pt_run){run->end, run->end + 1, set->tensors[run->end].rank};
    while (run->end < set->tensor_count && set->tensors[run->end].rank == run->rank) {
        run->end++;
    }
    return true;
}

static enum gradcmp_status append(struct gcmp_pt_set *set, const struct gcmp_pt_tensor *tensor,
                                  struct gradcmp_error *error) {
    if (!gcmp_grow(&set->tensors, set->tensor_count, &set->tensor_capacity, sizeof *set->tensors)) {
        GCMP_FAIL_MEMORY(error);
    }
    set->tensors[set->tensor_count++] = *tensor;
    return GRADCMP_OK;
}

static enum gradcmp_status check_repeats(const struct gcmp_pt_place *place,
                                         const struct gcmp_node *node,
                                         const struct gradcmp_extent *view) {
    uint64_t elems = 0;
    uint64_t stored = view->length_bytes / gcmp_dtype_bytes((enum gradcmp_dtype)view->dtype);
    (void)gcmp_product(view->shape, view->ndim, &elems); /* checked where the view was made */
    if (elems > FREE_ELEMS && elems / MAX_REPEATED > stored) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, node,
                   "an expanded view of %llu elements of a storage of %llu",
                   (unsigned long long)elems, (unsigned long long)stored);
    }
    return GRADCMP_OK;
}

/* Look at a plain tensor. One of a type that is not read is kept with the reason. */
static enum gradcmp_status view_tensor(const struct gcmp_pt_place *place,
                                       const struct gcmp_node *node,
                                       struct gcmp_pt_tensor *tensor) {
    struct gradcmp_error error = {0};
    enum gradcmp_status status = gcmp_torch_tensor(place->torch, node, &tensor->view, &error);
    if (status == GRADCMP_ERROR_UNSUPPORTED) {
        tensor->unread = gcmp_arena_dup(place->set->catalogue->arena, error.message);
        if (tensor->unread == NULL) {
            GCMP_FAIL_MEMORY(place->error);
        }
        return GRADCMP_OK;
    }
    if (status != GRADCMP_OK) {
        return gcmp_error_set(place->error, status, error.path, error.offset_bytes, "%s",
                              error.message);
    }
    return check_repeats(place, node, &tensor->view);
}

static enum gradcmp_status add_whole(const struct gcmp_pt_place *place,
                                     const struct gcmp_node *node, struct gcmp_pt_tensor tensor) {
    uint64_t stated[GRADCMP_MAX_NDIM];
    const uint64_t *shape = tensor.view.shape;
    if (gcmp_torch_is_array(node)) {
        tensor.unread = "a NumPy array";
    } else {
        GCMP_TRY(view_tensor(place, node, &tensor));
    }
    tensor.ndim = tensor.view.ndim;
    if (tensor.unread != NULL) {
        tensor.ndim = 0;
        shape = stated;
        if (!gcmp_torch_stated_shape(node, stated, &tensor.ndim)) {
            return append(place->set, &tensor, place->error);
        }
    }
    tensor.shape = gcmp_catalogue_dims(place->set->catalogue, tensor.ndim, shape);
    if (tensor.shape == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    return append(place->set, &tensor, place->error);
}

/* Remember which rank a file's sharded tensors say wrote it. */
static enum gradcmp_status note_writer(const struct gcmp_pt_place *place,
                                       const struct gcmp_node *node,
                                       const struct gcmp_pt_shard *shard) {
    struct gcmp_pt_set *set = place->set;
    uint32_t file = place->torch->file;
    if (place->rank < 0) {
        return GRADCMP_OK;
    }
    if (set->writer_count == 0 || set->writers[set->writer_count - 1].file != file) {
        if (!gcmp_grow(&set->writers, set->writer_count, &set->writer_capacity,
                       sizeof *set->writers)) {
            GCMP_FAIL_MEMORY(place->error);
        }
        set->writers[set->writer_count++] =
            (struct gcmp_pt_writer){.file = file, .rank = place->rank, .writer = -1};
    }
    struct gcmp_pt_writer *writer = &set->writers[set->writer_count - 1];
    if (shard->mesh_ranks > writer->mesh_ranks) {
        writer->mesh_ranks = shard->mesh_ranks;
        writer->writer = gcmp_pt_shard_writer(place->torch, node);
    }
    return GRADCMP_OK;
}

/* Add one piece; its tensor must have the shape that the piece was computed to have. */
static enum gradcmp_status add_piece(const struct gcmp_pt_place *place,
                                     const struct gcmp_node *node,
                                     const struct gcmp_pt_shard *shard,
                                     struct gcmp_pt_tensor tensor) {
    struct gradcmp_catalogue *catalogue = place->set->catalogue;
    uint64_t elems;
    GCMP_TRY(view_tensor(place, shard->local, &tensor));
    tensor.ndim = shard->ndim;
    tensor.shape = gcmp_catalogue_dims(catalogue, shard->ndim, shard->shape);
    tensor.start = gcmp_catalogue_dims(catalogue, shard->ndim, shard->start);
    if (tensor.shape == NULL || tensor.start == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    bool fits = tensor.view.ndim == shard->ndim &&
                memcmp(tensor.view.shape, shard->extent, shard->ndim * sizeof *shard->extent) == 0;
    bool is_empty = gcmp_product(shard->extent, shard->ndim, &elems) && elems == 0;
    bool is_stored_empty = gcmp_product(tensor.view.shape, tensor.view.ndim, &elems) && elems == 0;
    if (tensor.unread == NULL && !fits && !(is_empty && is_stored_empty)) {
        PLACE_FAIL(place, GRADCMP_ERROR_CORRUPT, node,
                   "%.160s: the local tensor of a sharded one is not of the shape that its "
                   "placement gives",
                   tensor.key);
    }
    if (shard->mesh_ranks > place->set->mesh_ranks) {
        place->set->mesh_ranks = shard->mesh_ranks;
    }
    GCMP_TRY(note_writer(place, node, shard));
    return append(place->set, &tensor, place->error);
}

enum gradcmp_status gcmp_pt_add_tensor(const struct gcmp_pt_place *place,
                                       const struct gcmp_node *node,
                                       const struct gcmp_pt_tensor *about) {
    struct gcmp_pt_tensor tensor = *about;
    struct gcmp_pt_shard shard;
    tensor.file = place->torch->file;
    tensor.rank = place->rank;
    if (gcmp_pt_is_dtensor(node)) {
        GCMP_TRY(gcmp_pt_read_dtensor(place->torch, node, &shard, place->error));
        return add_piece(place, node, &shard, tensor);
    }
    if (!gcmp_pt_is_sharded(node)) {
        return add_whole(place, node, tensor);
    }
    size_t count = gcmp_pt_sharded_count(node);
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(gcmp_pt_read_sharded(place->torch, node, i, &shard, place->error));
        GCMP_TRY(add_piece(place, node, &shard, tensor));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pt_add_range(struct gcmp_pt_set *set, uint32_t file,
                                      const struct gcmp_st_tensor *weight,
                                      struct gradcmp_error *error) {
    struct gcmp_arena *arena = set->catalogue->arena;
    struct gcmp_pt_tensor tensor = {.kind = GCMP_PT_WEIGHT,
                                    .state = "param",
                                    .entry = SIZE_MAX,
                                    .file = file,
                                    .rank = -1,
                                    .ndim = weight->ndim};
    int64_t step = 1;
    tensor.key = tensor.name = gcmp_arena_dup(arena, weight->name);
    tensor.shape = gcmp_catalogue_dims(set->catalogue, weight->ndim, weight->shape);
    tensor.unread = weight->dtype != GRADCMP_DTYPE_NONE
                        ? NULL
                        : gcmp_arena_format(arena, "type %s", weight->type);
    if (tensor.key == NULL || tensor.shape == NULL ||
        (weight->dtype == GRADCMP_DTYPE_NONE && tensor.unread == NULL)) {
        GCMP_FAIL_MEMORY(error);
    }
    tensor.view.offset_bytes = weight->offset_bytes;
    tensor.view.length_bytes = weight->length_bytes;
    tensor.view.dtype = (uint8_t)weight->dtype;
    tensor.view.ndim = (uint8_t)weight->ndim;
    for (unsigned d = weight->ndim; d-- > 0;) {
        tensor.view.shape[d] = weight->shape[d];
        tensor.view.stride[d] = step;
        step *= weight->shape[d] > 0 ? (int64_t)weight->shape[d] : 1;
    }
    return append(set, &tensor, error);
}

void gcmp_pt_free(struct gcmp_pt_set *set) {
    free(set->tensors);
    free(set->entries);
    free(set->optimizers);
    free(set->shared);
    free(set->writers);
    gcmp_map_free(&set->entry_index);
}
