/* Flat buffers of optimizer state, as DistributedOptimizer.get_parameter_state_dp_zero gathers them
 * on data-parallel rank 0 (megatron/core/optimizer/distrib_optimizer.py):
 *   {"buckets_coalesced": True, <buffer>: {(parameter type, gradient type): {"param": flat tensor,
 *    "exp_avg": ..., "exp_avg_sq": ..., "numel_unpadded": n}}}
 * Before 2024-02 there was a list of tensors, one a bucket, in place of each tensor. Two homes:
 *   distrib_optim.pt of a rank's folder; of a chained optimizer a list of such dicts, None for
 * those whose rank 0 is elsewhere; the object
 * "[chained_<n>.]optimizer.distributed.dp_group_idx_<d>.param_state/shard_0_1" of a distributed
 * checkpoint (sharding type dp_zero_gather_scatter, until core 0.15): [dict]. */
#include "formats/megatron_flat.h"

#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"

/* One file or object under way. */
struct buffers {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_rank_reader reader;
    const char *home; /* what keys begin with: a file's name, or a group's key */
    bool is_object;   /* of a distributed checkpoint */
    const struct gradcmp_coords *coords;
    int64_t chained; /* index in the list; -1: no list */
    int64_t buffer;
    const struct gcmp_node *types; /* of the buffer's weights and gradients */
};

/* Cut off what pads the end. */
static enum gradcmp_status cut_padding(struct buffers *buffers, struct gradcmp_stored *stored,
                                       const struct gcmp_node *unpadded,
                                       struct gradcmp_error *error) {
    int64_t elems;
    if (!gcmp_node_int(unpadded, &elems)) {
        return GRADCMP_OK;
    }
    if (stored->ndim != 1 || elems < 0 || (uint64_t)elems > stored->shape[0]) {
        GCMP_RANK_FAIL(&buffers->reader, unpadded, error, GRADCMP_ERROR_CORRUPT,
                       "%s: numel_unpadded is %lld, but the buffer has %llu elements", stored->key,
                       (long long)elems,
                       (unsigned long long)(stored->ndim == 0 ? 1 : stored->shape[0]));
    }
    uint64_t shape[1] = {(uint64_t)elems};
    stored->shape = gcmp_catalogue_dims(buffers->catalogue, 1, shape);
    if (stored->shape == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    stored->pieces[0].extent = stored->shape;
    return GRADCMP_OK;
}

/* Name a buffer, or one bucket of it, among a rank's own. False without memory. */
static bool name_local(const struct buffers *buffers, int64_t bucket, const char *state,
                       struct gcmp_rank_tensor *tensor) {
    struct gcmp_arena *arena = buffers->catalogue->arena;
    char chained[40] = "", part[40] = "";
    if (buffers->chained >= 0) {
        snprintf(chained, sizeof chained, "chained_%lld.", (long long)buffers->chained);
    }
    if (bucket >= 0) {
        snprintf(part, sizeof part, ".bucket_idx_%lld", (long long)bucket);
    }
    tensor->layout = GRADCMP_LAYOUT_LOCAL_BUFFER;
    tensor->name =
        gcmp_arena_format(arena, "%sgbuf_idx_%lld%s", chained, (long long)buffers->buffer, part);
    tensor->key = tensor->name == NULL
                      ? NULL
                      : gcmp_arena_format(arena, "%s: %s.%s", buffers->home, tensor->name, state);
    return tensor->key != NULL;
}

/* Name a buffer as the buckets of a distributed checkpoint are named. False without memory. */
static bool name_shared(const struct buffers *buffers, const char *state,
                        struct gcmp_rank_tensor *tensor) {
    enum gradcmp_dtype weights = gcmp_torch_dtype(gcmp_node_item(buffers->types, 0));
    enum gradcmp_dtype gradients = gcmp_torch_dtype(gcmp_node_item(buffers->types, 1));
    tensor->layout = GRADCMP_LAYOUT_BUCKET;
    tensor->key = gcmp_arena_format(buffers->catalogue->arena,
                                    "%s.gbuf_idx_%lld.dtype_(torch.%s, torch.%s).%s", buffers->home,
                                    (long long)buffers->buffer, gradcmp_dtype_name(weights),
                                    gradcmp_dtype_name(gradients), state);
    tensor->name = tensor->key;
    return tensor->key != NULL;
}

/* Add one flat tensor; bucket -1: all buckets of the buffer in one. */
static enum gradcmp_status add_flat(struct buffers *buffers, const char *state, int64_t bucket,
                                    const struct gcmp_node *node, struct gradcmp_stored **out,
                                    struct gradcmp_error *error) {
    struct gcmp_rank_tensor tensor = {.coords = buffers->coords};
    tensor.state = gcmp_arena_dup(buffers->catalogue->arena,
                                  strcmp(state, "param") == 0 ? "fp32_param" : state);
    bool is_named = buffers->is_object ? name_shared(buffers, state, &tensor)
                                       : name_local(buffers, bucket, state, &tensor);
    if (tensor.state == NULL || !is_named) {
        GCMP_FAIL_MEMORY(error);
    }
    if (buffers->is_object && gcmp_torch_array_args(node) != NULL) {
        GCMP_RANK_FAIL(&buffers->reader, node, error, GRADCMP_ERROR_UNSUPPORTED,
                       "%s: elements inside of the pickle", tensor.key);
    }
    GCMP_TRY(gcmp_rank_reader_add(&buffers->reader, &tensor, node, out, error));
    if ((*out)->ndim != 1) {
        GCMP_RANK_FAIL(&buffers->reader, node, error, GRADCMP_ERROR_CORRUPT,
                       "%s: expected a flat tensor, found one of %u axes", (*out)->key,
                       (*out)->ndim);
    }
    return GRADCMP_OK;
}

/* Add the tensors of one state, or of one state's buckets. */
static enum gradcmp_status add_state(struct buffers *buffers, const char *state,
                                     const struct gcmp_node *value,
                                     const struct gcmp_node *unpadded,
                                     struct gradcmp_error *error) {
    struct gradcmp_stored *stored;
    if (value->kind == GCMP_NODE_LIST && buffers->is_object) {
        GCMP_RANK_FAIL(&buffers->reader, value, error, GRADCMP_ERROR_UNSUPPORTED,
                       "%s: buckets one by one, as before 2024-02, are not read here; save with "
                       "--dist-ckpt-optim-fully-reshardable",
                       buffers->home);
    }
    if (value->kind == GCMP_NODE_LIST) {
        for (size_t i = 0; i < gcmp_node_count(value); i++) {
            GCMP_TRY(
                add_flat(buffers, state, (int64_t)i, gcmp_node_item(value, i), &stored, error));
        }
        return GRADCMP_OK;
    }
    if (value->kind != GCMP_NODE_CALL && value->kind != GCMP_NODE_PERSID) {
        return GRADCMP_OK; /* numel_unpadded */
    }
    GCMP_TRY(add_flat(buffers, state, -1, value, &stored, error));
    return cut_padding(buffers, stored, unpadded, error);
}

/* The states of one buffer, which is of one type. */
static enum gradcmp_status add_buffer(struct buffers *buffers, const struct gcmp_node *types,
                                      struct gradcmp_error *error) {
    const struct gcmp_node *type, *states, *key, *value;
    if (gcmp_node_count(types) != 1 || !gcmp_node_pair(types, 0, &type, &states)) {
        GCMP_RANK_FAIL(&buffers->reader, types, error, GRADCMP_ERROR_UNSUPPORTED,
                       "expected one type of elements in buffer %lld, found %zu",
                       (long long)buffers->buffer, gcmp_node_count(types));
    }
    buffers->types = type;
    for (size_t i = 0; gcmp_node_pair(states, i, &key, &value); i++) {
        const char *state = gcmp_node_text(key);
        if (state != NULL && strcmp(state, "step") != 0) {
            GCMP_TRY(
                add_state(buffers, state, value, gcmp_node_get(states, "numel_unpadded"), error));
        }
    }
    return GRADCMP_OK;
}

/* The buffers of one optimizer: those under numbers. */
static enum gradcmp_status add_optimizer(struct buffers *buffers, const struct gcmp_node *dict,
                                         struct gradcmp_error *error) {
    const struct gcmp_node *key, *value;
    size_t found = 0;
    for (size_t i = 0; gcmp_node_pair(dict, i, &key, &value); i++) {
        if (key->kind == GCMP_NODE_INT && key->as.integer >= 0) {
            buffers->buffer = key->as.integer;
            GCMP_TRY(add_buffer(buffers, value, error));
            found++;
        }
    }
    if (found == 0) {
        GCMP_RANK_FAIL(&buffers->reader, dict, error, GRADCMP_ERROR_UNSUPPORTED,
                       "expected a dict of numbered buffers, found %s without",
                       gcmp_node_kind_name(dict));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_file(struct buffers *buffers, struct gradcmp_error *error) {
    const struct gcmp_node *root = buffers->reader.torch.root;
    buffers->chained = -1;
    if (root->kind != GCMP_NODE_LIST) {
        return add_optimizer(buffers, root, error);
    }
    for (size_t i = 0; i < gcmp_node_count(root); i++) {
        const struct gcmp_node *item = gcmp_node_item(root, i);
        buffers->chained = (int64_t)i;
        if (item->kind != GCMP_NODE_NONE) {
            GCMP_TRY(add_optimizer(buffers, item, error));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_legacy_add_buffers(const struct gcmp_legacy_rank *rank,
                                            struct gradcmp_error *error) {
    char path[300];
    struct gcmp_dir *dir = rank->catalogue->dir;
    snprintf(path, sizeof path, "%s/distrib_optim.pt", rank->file->name);
    if (gcmp_dir_kind(dir, path) == GCMP_DIR_ABSENT) {
        return GRADCMP_OK;
    }
    struct buffers buffers = {.catalogue = rank->catalogue, .home = path};
    buffers.coords = gcmp_legacy_coords(rank, -1);
    if (buffers.coords == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status =
        gcmp_rank_reader_open(&buffers.reader, rank->catalogue, rank->arrays, path, error);
    if (status == GRADCMP_OK) {
        status = add_file(&buffers, error);
    }
    gcmp_rank_reader_close(&buffers.reader);
    rank->catalogue->layout_name = "distrib_optim.pt";
    return status;
}

/* Where a group's key ends in that of its object; NULL for other objects. */
static const char *end_of_group(const struct gradcmp_stored *stored) {
    const char *end = strstr(stored->key, ".param_state/shard_");
    bool is_object = stored->dtype == (uint8_t)GRADCMP_DTYPE_NONE && stored->state == NULL;
    return is_object && strstr(stored->key, "optimizer.distributed.dp_group_idx_") != NULL ? end
                                                                                           : NULL;
}

/* The object is written as a list of one. */
static enum gradcmp_status add_object(struct buffers *buffers, struct gradcmp_error *error) {
    const struct gcmp_node *root = buffers->reader.torch.root;
    if (root->kind != GCMP_NODE_LIST || gcmp_node_count(root) != 1) {
        GCMP_RANK_FAIL(&buffers->reader, root, error, GRADCMP_ERROR_CORRUPT,
                       "%s: expected a list of one dict of buffers, found %s of %zu", buffers->home,
                       gcmp_node_kind_name(root), gcmp_node_count(root));
    }
    return add_optimizer(buffers, gcmp_node_item(root, 0), error);
}

static enum gradcmp_status read_object(struct gradcmp_catalogue *catalogue, size_t index,
                                       struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = &catalogue->stored[index];
    const char *end = end_of_group(stored);
    if (end == NULL || stored->piece_count == 0) {
        return GRADCMP_OK;
    }
    struct gradcmp_source source = catalogue->sources[stored->pieces[0].source];
    struct buffers buffers = {.catalogue = catalogue, .is_object = true};
    buffers.home = gcmp_arena_text(catalogue->arena, stored->key, (size_t)(end - stored->key));
    if (buffers.home == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (source.encoding != 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED,
                     gcmp_dir_file_path(catalogue->dir, source.file), source.offset_bytes,
                     "%s: compressed, which no writer is known to do", stored->key);
    }
    enum gradcmp_status status =
        gcmp_rank_reader_open_range(&buffers.reader, catalogue, &source, error);
    if (status == GRADCMP_OK) {
        status = add_object(&buffers, error);
    }
    gcmp_rank_reader_close(&buffers.reader);
    return status;
}

enum gradcmp_status gcmp_megatron_add_gathered(struct gradcmp_catalogue *catalogue,
                                               struct gradcmp_error *error) {
    size_t count = catalogue->stored_count; /* more are added */
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(read_object(catalogue, i, error));
    }
    return GRADCMP_OK;
}
