/* States of optimizers that each rank keeps for itself, in model_optim_rng.pt
 * (megatron/core/optimizer/optimizer.py): of a 16-bit run
 *   "optimizer": {"optimizer": {"state": {0: {"exp_avg": ...}, ...}, "param_groups": [{"params":
 *    [0, ...], ...}, ...]}, "fp32_from_fp16_params": [[master, ...], ...]},
 * of a 32-bit run the inner dict alone; of chained optimizers a list of such. Numbers count over
 * the groups, and a group holds its parameters in the order of the model.
 *
 * Limits: MAX_GROUPS groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/model_names.h"
#include "base/twins.h"
#include "formats/megatron_legacy_rank.h"
#include "formats/optimizer_ids.h"

enum { MAX_GROUPS = 4096 };

/* One number of the optimizer. */
struct number {
    const struct gcmp_node *states; /* its dict, or NULL */
    int64_t id;
    uint64_t shape[GRADCMP_MAX_NDIM];
};

/* One optimizer under way. */
struct states {
    const struct gcmp_legacy_rank *rank;
    struct gcmp_rank_reader *reader;
    const struct gcmp_node *outer, *inner; /* inner: the dict with "state" */
    bool is_chained;
    size_t *stored_of; /* stored tensor of each weight */
    struct gcmp_ids_weight *weights;
    struct gcmp_ids_entry *entries;
    struct number *numbers; /* one an entry */
    size_t weight_count, entry_count;
};

static bool is_tensor(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_CALL || node->kind == GCMP_NODE_PERSID);
}

/* The shape of a tensor, from its description. */
static enum gradcmp_status read_shape(const struct states *states, const struct gcmp_node *node,
                                      uint64_t shape[GRADCMP_MAX_NDIM], unsigned *ndim,
                                      struct gradcmp_error *error) {
    struct gradcmp_extent view = {0};
    struct gcmp_torch_array array = {0};
    bool is_array = gcmp_torch_array_args(node) != NULL;
    if (is_array) {
        GCMP_TRY(gcmp_torch_array(&states->reader->torch, node, &array, error));
    } else {
        GCMP_TRY(gcmp_torch_tensor(&states->reader->torch, node, &view, error));
    }
    *ndim = is_array ? array.ndim : view.ndim;
    memcpy(shape, is_array ? array.shape : view.shape, *ndim * sizeof *shape);
    return GRADCMP_OK;
}

/* True where a group of this optimizer says that its parameters are experts. */
static bool holds_experts(const struct states *states) {
    const struct gcmp_node *groups = gcmp_node_get(states->inner, "param_groups");
    for (size_t i = 0; i < gcmp_node_count(groups) && i < MAX_GROUPS; i++) {
        int64_t is_expert;
        if (gcmp_node_int(gcmp_node_get(gcmp_node_item(groups, i), "is_expert_parallel"),
                          &is_expert) &&
            is_expert != 0) {
            return true;
        }
    }
    return false;
}

/* The weights that this optimizer may be about, each once: of chained ones, one is of the experts.
 */
static enum gradcmp_status collect_weights(struct states *states, struct gradcmp_error *error) {
    const struct gcmp_legacy_rank *rank = states->rank;
    size_t room = rank->end_weight - rank->first_weight + 1;
    states->weights = calloc(room, sizeof *states->weights);
    states->stored_of = calloc(room, sizeof *states->stored_of);
    if (states->weights == NULL || states->stored_of == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    bool of_experts = holds_experts(states);
    struct gcmp_twin *twins;
    GCMP_TRY(gcmp_twins_find(rank->catalogue, rank->first_weight, rank->end_weight, &twins, error));
    for (size_t i = rank->first_weight; i < rank->end_weight; i++) {
        struct gcmp_twin twin = twins[i - rank->first_weight];
        const struct gradcmp_stored *stored = &rank->catalogue->stored[twin.name];
        bool is_expert = strstr(stored->name, ".experts.") != NULL;
        if (stored->state == NULL || gcmp_name_is_buffer(stored->name) || twin.first != i ||
            (states->is_chained && is_expert != of_experts)) {
            continue;
        }
        states->stored_of[states->weight_count] = twin.name;
        states->weights[states->weight_count++] =
            (struct gcmp_ids_weight){stored->name, stored->shape, stored->ndim, 0};
    }
    free(twins);
    return GRADCMP_OK;
}

/* Index the states by their numbers. */
static enum gradcmp_status map_states(const struct states *states, struct gcmp_map *map,
                                      struct gradcmp_error *error) {
    const struct gcmp_node *dict = gcmp_node_get(states->inner, "state"), *key, *value;
    for (size_t i = 0; gcmp_node_pair(dict, i, &key, &value); i++) {
        if (key->kind != GCMP_NODE_INT) {
            GCMP_RANK_FAIL(states->reader, key, error, GRADCMP_ERROR_UNSUPPORTED,
                           "expected a number as key of the optimizer's state, found %s",
                           gcmp_node_kind_name(key));
        }
        if (gcmp_map_add(map, &key->as.integer, sizeof key->as.integer, i, NULL) ==
            GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

/* Find the shape of a number's states: that of the first that is no scalar. */
static enum gradcmp_status find_shape(const struct states *states, struct number *number,
                                      struct gcmp_ids_entry *entry, struct gradcmp_error *error) {
    const struct gcmp_node *key, *value;
    for (size_t i = 0; gcmp_node_pair(number->states, i, &key, &value); i++) {
        unsigned ndim;
        const char *name = gcmp_node_text(key);
        if (name == NULL || strcmp(name, "step") == 0 || !is_tensor(value)) {
            continue;
        }
        GCMP_TRY(read_shape(states, value, number->shape, &ndim, error));
        if (ndim > 0) {
            entry->shape = number->shape;
            entry->ndim = ndim;
            return GRADCMP_OK;
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_entry(struct states *states, const struct gcmp_map *map,
                                     const struct gcmp_node *id, uint32_t group,
                                     struct gradcmp_error *error) {
    const struct gcmp_node *dict = gcmp_node_get(states->inner, "state"), *key, *value;
    struct number *number = &states->numbers[states->entry_count];
    struct gcmp_ids_entry *entry = &states->entries[states->entry_count++];
    size_t index;
    *entry = (struct gcmp_ids_entry){.group = group};
    if (!gcmp_node_int(id, &number->id)) {
        GCMP_RANK_FAIL(states->reader, id, error, GRADCMP_ERROR_UNSUPPORTED,
                       "expected numbers as the parameters of a group, found %s",
                       gcmp_node_kind_name(id));
    }
    if (!gcmp_map_find(map, &number->id, sizeof number->id, &index) ||
        !gcmp_node_pair(dict, index, &key, &value)) {
        return GRADCMP_OK; /* no gradient so far */
    }
    number->states = value;
    return find_shape(states, number, entry, error);
}

static enum gradcmp_status collect_entries(struct states *states, const struct gcmp_map *map,
                                           struct gradcmp_error *error) {
    const struct gcmp_node *groups = gcmp_node_get(states->inner, "param_groups");
    size_t count = 0, group_count = gcmp_node_count(groups);
    for (size_t g = 0; g < group_count; g++) {
        size_t more = gcmp_node_count(gcmp_node_get(gcmp_node_item(groups, g), "params"));
        count += more;
        if (g == MAX_GROUPS || more > GCMP_PICKLE_MAX_BYTES || count > GCMP_PICKLE_MAX_BYTES) {
            GCMP_RANK_FAIL(states->reader, groups, error, GRADCMP_ERROR_LIMIT,
                           "more than %d groups of parameters, or too many parameters", MAX_GROUPS);
        }
    }
    if (count > states->weight_count) {
        GCMP_RANK_FAIL(states->reader, groups, error, GRADCMP_ERROR_UNSUPPORTED,
                       "the optimizer numbers %zu parameters, but the rank holds %zu weights",
                       count, states->weight_count);
    }
    states->entries = calloc(count + 1, sizeof *states->entries);
    states->numbers = calloc(count + 1, sizeof *states->numbers);
    if (states->entries == NULL || states->numbers == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t g = 0; g < group_count; g++) {
        const struct gcmp_node *params = gcmp_node_get(gcmp_node_item(groups, g), "params");
        for (size_t i = 0; i < gcmp_node_count(params); i++) {
            GCMP_TRY(add_entry(states, map, gcmp_node_item(params, i), (uint32_t)g, error));
        }
    }
    return GRADCMP_OK;
}

/* Add a tensor as the state of a weight. One of another shape is the optimizer's own (a step, a
 * factor), where it is not a moment. */
static enum gradcmp_status add_tensor(const struct states *states, size_t weight, const char *state,
                                      const struct gcmp_node *node, const char *place,
                                      struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = states->rank->catalogue;
    const struct gradcmp_stored *of = &catalogue->stored[states->stored_of[weight]];
    uint64_t shape[GRADCMP_MAX_NDIM];
    unsigned ndim;
    GCMP_TRY(read_shape(states, node, shape, &ndim, error));
    bool is_alike = ndim == of->ndim && memcmp(shape, of->shape, ndim * sizeof *shape) == 0;
    if (!is_alike && strcmp(state, "exp_avg") != 0 && strcmp(state, "exp_avg_sq") != 0) {
        return GRADCMP_OK;
    }
    if (!is_alike) {
        GCMP_RANK_FAIL(states->reader, node, error, GRADCMP_ERROR_CORRUPT,
                       "%s.%s: another shape than %s has", place, state, of->key);
    }
    struct gcmp_rank_tensor tensor = {
        .name = of->name, .coords = of->pieces[0].coords, .layout = GRADCMP_LAYOUT_LOCAL};
    bool is_master = strcmp(state, "master_param") == 0;
    tensor.state = is_master ? "fp32_param" : gcmp_arena_dup(catalogue->arena, state);
    tensor.key =
        gcmp_arena_format(catalogue->arena, "%s: %s.%s", states->rank->file->name, place, state);
    if (tensor.state == NULL || tensor.key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_rank_reader_add(states->reader, &tensor, node, NULL, error);
}

static enum gradcmp_status add_numbers(const struct states *states, struct gradcmp_error *error) {
    for (size_t i = 0; i < states->entry_count; i++) {
        const struct number *number = &states->numbers[i];
        const struct gcmp_node *key, *value;
        char place[64];
        snprintf(place, sizeof place, "optimizer.state.%lld", (long long)number->id);
        for (size_t k = 0; gcmp_node_pair(number->states, k, &key, &value); k++) {
            const char *state = gcmp_node_text(key);
            if (state != NULL && strcmp(state, "step") != 0 && is_tensor(value) &&
                states->entries[i].weight != SIZE_MAX) {
                GCMP_TRY(add_tensor(states, states->entries[i].weight, state, value, place, error));
            }
        }
    }
    return GRADCMP_OK;
}

/* True where a weight has a master: one of the narrow types. */
static bool has_master(const struct states *states, size_t weight) {
    enum gradcmp_dtype dtype =
        (enum gradcmp_dtype)states->rank->catalogue->stored[states->stored_of[weight]].dtype;
    return gcmp_dtype_bytes(dtype) < 4;
}

/* Masters are listed by group, in its order, for the weights that have one. Where a number without
 * state leaves open which weights these are, the group's are passed over. */
static enum gradcmp_status add_masters(const struct states *states, struct gradcmp_error *error) {
    const struct gcmp_node *groups = gcmp_node_get(states->outer, "fp32_from_fp16_params");
    size_t at = 0;
    for (size_t g = 0; g < gcmp_node_count(groups) && g < MAX_GROUPS; g++) {
        const struct gcmp_node *masters = gcmp_node_item(groups, g);
        size_t used = 0;
        bool is_known = true;
        for (; at < states->entry_count && states->entries[at].group == g; at++) {
            size_t weight = states->entries[at].weight;
            is_known = is_known && weight != SIZE_MAX;
            const struct gcmp_node *master =
                is_known && has_master(states, weight) ? gcmp_node_item(masters, used++) : NULL;
            char place[64];
            snprintf(place, sizeof place, "optimizer.fp32_from_fp16_params.%zu", g);
            if (is_tensor(master)) {
                GCMP_TRY(add_tensor(states, weight, "master_param", master, place, error));
            }
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status solve(struct states *states, struct gradcmp_error *error) {
    struct gcmp_map map = GCMP_MAP_INIT;
    enum gradcmp_status status = map_states(states, &map, error);
    if (status == GRADCMP_OK) {
        status = collect_entries(states, &map, error);
    }
    gcmp_map_free(&map);
    GCMP_TRY(status);
    struct gcmp_ids ids = {.weights = states->weights,
                           .weight_count = states->weight_count,
                           .is_ordered = true,
                           .entries = states->entries,
                           .entry_count = states->entry_count};
    status = gcmp_ids_solve(&ids, error);
    gcmp_error_add_path(error,
                        gcmp_dir_file_path(states->reader->torch.dir, states->reader->torch.file));
    return status;
}

static enum gradcmp_status add_optimizer(struct states *states, struct gradcmp_error *error) {
    enum gradcmp_status status;
    GCMP_TRY_OUT(collect_weights(states, error));
    GCMP_TRY_OUT(solve(states, error));
    GCMP_TRY_OUT(add_numbers(states, error));
    status = add_masters(states, error);
out:
    free(states->weights);
    free(states->stored_of);
    free(states->entries);
    free(states->numbers);
    return status;
}

enum gradcmp_status gcmp_legacy_add_states(const struct gcmp_legacy_rank *rank,
                                           struct gcmp_rank_reader *reader,
                                           struct gradcmp_error *error) {
    const struct gcmp_node *root = gcmp_node_get(reader->torch.root, "optimizer");
    bool is_list = root != NULL && root->kind == GCMP_NODE_LIST;
    size_t count = is_list ? gcmp_node_count(root) : 1;
    for (size_t i = 0; i < count; i++) {
        struct states states = {.rank = rank, .reader = reader, .is_chained = is_list};
        states.outer = is_list ? gcmp_node_item(root, i) : root;
        states.inner = gcmp_node_get(states.outer, "optimizer");
        if (gcmp_node_get(states.inner, "state") == NULL) {
            states.inner = states.outer;
        }
        if (gcmp_node_get(states.inner, "state") == NULL) {
            continue; /* distributed: in distrib_optim.pt */
        }
        GCMP_TRY(add_optimizer(&states, error));
        rank->catalogue->layout_name = "optimizer of each rank";
    }
    return GRADCMP_OK;
}
