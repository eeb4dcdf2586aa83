/* distrib_optim.pt: what DistributedOptimizer.get_parameter_state_dp_zero gathers on data-parallel
 * rank 0 (megatron/core/optimizer/distrib_optimizer.py):
 *   {"buckets_coalesced": True, <buffer>: {(parameter type, gradient type): {"param": flat tensor,
 *    "exp_avg": ..., "exp_avg_sq": ..., "numel_unpadded": n}}}
 * of a chained optimizer a list of such dicts, None for those whose rank 0 is elsewhere. Before
 * 2024-02 there was a list of tensors, one a bucket, in place of each tensor. */
#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"
#include "formats/megatron_legacy_rank.h"

/* One file under way. */
struct buffers {
    const struct gcmp_legacy_rank *rank;
    struct gcmp_rank_reader reader;
    const struct gradcmp_coords *coords;
    int64_t chained; /* index in the list; -1: no list */
    int64_t buffer;
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
    stored->shape = gcmp_catalogue_dims(buffers->rank->catalogue, 1, shape);
    if (stored->shape == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    stored->pieces[0].extent = stored->shape;
    return GRADCMP_OK;
}

/* Add one flat tensor; bucket -1: all buckets of the buffer in one. */
static enum gradcmp_status add_flat(struct buffers *buffers, const char *state, int64_t bucket,
                                    const struct gcmp_node *node, struct gradcmp_stored **out,
                                    struct gradcmp_error *error) {
    struct gcmp_arena *arena = buffers->rank->catalogue->arena;
    char chained[40] = "", part[40] = "";
    if (buffers->chained >= 0) {
        snprintf(chained, sizeof chained, "chained_%lld.", (long long)buffers->chained);
    }
    if (bucket >= 0) {
        snprintf(part, sizeof part, ".bucket_idx_%lld", (long long)bucket);
    }
    struct gcmp_rank_tensor tensor = {.coords = buffers->coords,
                                      .layout = GRADCMP_LAYOUT_LOCAL_BUFFER};
    tensor.name =
        gcmp_arena_format(arena, "%sgbuf_idx_%lld%s", chained, (long long)buffers->buffer, part);
    tensor.state = gcmp_arena_dup(arena, strcmp(state, "param") == 0 ? "fp32_param" : state);
    if (tensor.name == NULL || tensor.state == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    tensor.key = gcmp_arena_format(arena, "%s/distrib_optim.pt: %s.%s", buffers->rank->file->name,
                                   tensor.name, state);
    if (tensor.key == NULL) {
        GCMP_FAIL_MEMORY(error);
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

static enum gradcmp_status add_all(struct buffers *buffers, struct gradcmp_error *error) {
    const struct gcmp_node *root = buffers->reader.torch.root;
    buffers->coords = gcmp_legacy_coords(buffers->rank, -1);
    if (buffers->coords == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
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
    struct buffers buffers = {.rank = rank};
    enum gradcmp_status status =
        gcmp_rank_reader_open(&buffers.reader, rank->catalogue, rank->arrays, path, error);
    if (status == GRADCMP_OK) {
        status = add_all(&buffers, error);
    }
    gcmp_rank_reader_close(&buffers.reader);
    rank->catalogue->layout_name = "distrib_optim.pt";
    return status;
}
