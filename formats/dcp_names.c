/* Decides names by looking at all keys of a checkpoint. */
#include "formats/dcp_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/map.h"
#include "formats/dcp_roles.h"
#include "formats/dcp_writers.h"
#include "formats/optimizer_ids.h"
#include "formats/quantised.h"

/* One integer id of the optimizer's state. */
struct id {
    const char *name;
    size_t number;
    size_t stored; /* a tensor of it that has the parameter's shape; SIZE_MAX: none seen */
    size_t model;  /* index into the weights, once it is known */
};

struct naming {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_dcp_key *keys;
    struct gcmp_map optimizer_names; /* names that the optimizer has a state of */
    struct gcmp_map model_names;     /* name -> index into models */
    size_t *models;                  /* stored tensors that are weights, in the file's order */
    size_t model_count;
    struct id *ids;
    size_t id_count;
    struct gcmp_map id_index; /* id as text -> index into ids */
    bool is_scattered;        /* several ranks were first writers of weights */
    struct gradcmp_error *error;
};

static bool is_model(const struct gcmp_dcp_key *key) {
    return key->kind == GCMP_DCP_BARE || key->kind == GCMP_DCP_MODEL;
}

static enum gradcmp_status add_name(struct naming *naming, struct gcmp_map *map, const char *name,
                                    size_t value) {
    if (gcmp_map_add(map, name, strlen(name), value, NULL) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    return GRADCMP_OK;
}

static bool has_name(const struct gcmp_map *map, const char *name) {
    size_t ignored;
    return gcmp_map_find(map, name, strlen(name), &ignored);
}

/* Objects and counters are listed only; what is left of kind BARE or MODEL is a weight. */
static enum gradcmp_status sort_out(struct naming *naming) {
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        struct gcmp_dcp_key *key = &naming->keys[i];
        enum gradcmp_dtype dtype = naming->catalogue->stored[i].dtype;
        if (is_model(key) && !gcmp_dtype_is_float(dtype)) {
            key->kind = GCMP_DCP_OTHER;
            key->name = naming->catalogue->stored[i].key;
            key->state = NULL;
        }
        if (dtype == GRADCMP_DTYPE_NONE) {
            key->state = NULL;
        } else if (key->kind == GCMP_DCP_STATE) {
            GCMP_TRY(add_name(naming, &naming->optimizer_names, key->name, i));
        }
    }
    return GRADCMP_OK;
}

/* Where a weight is called "model.x", the optimizer tells whether the name is "x" (a model saved
 * under the key "model") or "model.x" (a module called so); without an optimizer it is "x". */
static void strip_model(struct naming *naming) {
    static const char prefix[] = "model.";
    size_t keep = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
            struct gcmp_dcp_key *key = &naming->keys[i];
            if (key->kind != GCMP_DCP_BARE || strncmp(key->name, prefix, sizeof prefix - 1) != 0) {
                continue;
            }
            const char *rest = key->name + sizeof prefix - 1;
            bool full_known = has_name(&naming->optimizer_names, key->name);
            bool rest_known = has_name(&naming->optimizer_names, rest);
            if (pass == 0) {
                keep += full_known && !rest_known;
            } else if (rest_known || (!full_known && keep == 0)) {
                key->name = rest;
            }
        }
    }
}

static enum gradcmp_status collect_models(struct naming *naming) {
    size_t count = naming->catalogue->stored_count;
    naming->models = calloc(count == 0 ? 1 : count, sizeof *naming->models);
    if (naming->models == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    for (size_t i = 0; i < count; i++) {
        if (is_model(&naming->keys[i])) {
            GCMP_TRY(
                add_name(naming, &naming->model_names, naming->keys[i].name, naming->model_count));
            naming->models[naming->model_count++] = i;
        }
    }
    return GRADCMP_OK;
}

/* An id is a state's name that is a number, as it is printed, and that no weight bears. */
static bool is_id(const struct naming *naming, const struct gcmp_dcp_key *key) {
    size_t digits = strspn(key->name, "0123456789");
    return key->kind == GCMP_DCP_STATE && key->state != NULL && digits > 0 && digits <= 9 &&
           key->name[digits] == '\0' && (digits == 1 || key->name[0] != '0') &&
           !has_name(&naming->model_names, key->name);
}

static enum gradcmp_status collect_ids(struct naming *naming) {
    size_t count = naming->catalogue->stored_count;
    naming->ids = calloc(count == 0 ? 1 : count, sizeof *naming->ids);
    if (naming->ids == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_dcp_key *key = &naming->keys[i];
        if (!is_id(naming, key)) {
            continue;
        }
        size_t index;
        enum gcmp_map_result result =
            gcmp_map_add(&naming->id_index, key->name, strlen(key->name), naming->id_count, &index);
        if (result == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(naming->error);
        }
        if (result == GCMP_MAP_ADDED) {
            naming->ids[naming->id_count++] =
                (struct id){key->name, strtoul(key->name, NULL, 10), SIZE_MAX, SIZE_MAX};
        }
        if (strcmp(key->state, "step") != 0) {
            naming->ids[index].stored = i;
        }
    }
    return GRADCMP_OK;
}

/* Number of groups of parameters: keys "...param_groups.<i>.<option>". */
static size_t count_groups(const struct naming *naming) {
    static const char mark[] = "param_groups.";
    size_t groups = 0;
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        const char *at = strstr(naming->catalogue->stored[i].key, mark);
        const char *digits = at == NULL ? "" : at + sizeof mark - 1;
        size_t count = strspn(digits, "0123456789");
        if (count > 0 && count < 9 && digits[count] == '.') {
            size_t group = strtoul(digits, NULL, 10) + 1;
            groups = group > groups ? group : groups;
        }
    }
    return groups;
}

static int compare_ids(const void *a, const void *b) {
    const struct id *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Whether there is a weight for each number. */
static bool has_all_weights(const struct naming *naming) {
    return naming->ids[naming->id_count - 1].number < naming->model_count;
}

/* Weights of one writer stand in the order of the model, which is what numbers of one group count;
 * but not if there is a number for more weights than these. Without param_groups there may be
 * several. */
static void fill_weights(struct naming *naming, struct gcmp_ids *ids,
                         struct gcmp_ids_weight *weights) {
    ids->is_ordered = count_groups(naming) == 1 && has_all_weights(naming);
    ids->weights = weights;
    ids->weight_count = naming->model_count;
    for (size_t i = 0; i < naming->model_count; i++) {
        const struct gradcmp_stored *stored = &naming->catalogue->stored[naming->models[i]];
        weights[i] = (struct gcmp_ids_weight){naming->keys[naming->models[i]].name, stored->shape,
                                              stored->ndim,
                                              gcmp_dcp_first_writer(naming->catalogue, stored)};
        naming->is_scattered = naming->is_scattered || weights[i].sequence != weights[0].sequence;
    }
}

static enum gradcmp_status fill_entries(const struct naming *naming, struct gcmp_ids *ids,
                                        size_t *numbers) {
    ids->entry_count = naming->id_count;
    ids->numbers = numbers;
    for (size_t i = 0; i < naming->id_count; i++) {
        const struct id *id = &naming->ids[i];
        numbers[i] = id->number;
        if (id->stored == SIZE_MAX) {
            GCMP_FAIL(naming->error, GRADCMP_ERROR_UNSUPPORTED,
                      "the optimizer numbers its parameters, and number %zu has no state of its "
                      "parameter's shape",
                      id->number);
        }
        const struct gradcmp_stored *stored = &naming->catalogue->stored[id->stored];
        ids->entries[i] = (struct gcmp_ids_entry){.shape = stored->shape, .ndim = stored->ndim};
    }
    return GRADCMP_OK;
}

/* Give the ids, which are in ascending order, their weights. */
static enum gradcmp_status solve_ids(struct naming *naming) {
    struct gcmp_ids ids = {.entries = calloc(naming->id_count, sizeof *ids.entries)};
    struct gcmp_ids_weight *weights = calloc(naming->model_count + 1, sizeof *weights);
    size_t *numbers = calloc(naming->id_count, sizeof *numbers);
    enum gradcmp_status status = GRADCMP_OK;
    if (ids.entries == NULL || weights == NULL || numbers == NULL) {
        status = gcmp_error_set(naming->error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                "out of memory");
        goto out;
    }
    fill_weights(naming, &ids, weights);
    GCMP_TRY_OUT(fill_entries(naming, &ids, numbers));
    GCMP_TRY_OUT(gcmp_ids_solve(&ids, naming->error));
    for (size_t i = 0; i < naming->id_count; i++) {
        naming->ids[i].model = ids.entries[i].weight;
    }
out:
    free(ids.entries);
    free(weights);
    free(numbers);
    return status;
}

/* Index the ids anew, in ascending order. */
static enum gradcmp_status sort_ids(struct naming *naming) {
    qsort(naming->ids, naming->id_count, sizeof *naming->ids, compare_ids);
    gcmp_map_free(&naming->id_index);
    naming->id_index = (struct gcmp_map)GCMP_MAP_INIT;
    for (size_t i = 0; i < naming->id_count; i++) {
        GCMP_TRY(add_name(naming, &naming->id_index, naming->ids[i].name, i));
    }
    return GRADCMP_OK;
}

/* The numbers stand for themselves. */
static enum gradcmp_status keep_numbers(const struct naming *naming) {
    struct gradcmp_catalogue *catalogue = naming->catalogue;
    size_t count = naming->ids[naming->id_count - 1].number + 1;
    uint32_t *groups = gcmp_arena_alloc(catalogue->arena, count, sizeof *groups);
    if (groups == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    memset(groups, 0, count * sizeof *groups);
    catalogue->number_groups = groups;
    catalogue->number_count = count;
    return gcmp_catalogue_note(catalogue, naming->error,
                               "the optimizer numbers its %zu parameters, and the order of the "
                               "weights, which would name them, is not known: several ranks wrote "
                               "them",
                               naming->id_count);
}

static enum gradcmp_status assign_ids(struct naming *naming) {
    if (naming->catalogue->number_groups != NULL) {
        return GRADCMP_OK; /* known to be numbers, which the other side may name */
    }
    GCMP_TRY(collect_ids(naming));
    if (naming->id_count == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(sort_ids(naming));
    enum gradcmp_status status = solve_ids(naming);
    if (status == GRADCMP_ERROR_UNSUPPORTED && naming->is_scattered && count_groups(naming) == 1 &&
        has_all_weights(naming)) {
        /* The order cannot be seen: the numbers keep their meaning, and another checkpoint may name
         * them. */
        if (naming->error != NULL) {
            *naming->error = (struct gradcmp_error){0};
        }
        return keep_numbers(naming);
    }
    GCMP_TRY(status);
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        struct gcmp_dcp_key *key = &naming->keys[i];
        size_t index;
        if (is_id(naming, key) &&
            gcmp_map_find(&naming->id_index, key->name, strlen(key->name), &index)) {
            key->name = naming->keys[naming->models[naming->ids[index].model]].name;
        }
    }
    return GRADCMP_OK;
}

/* Megatron says the layout in common.pt since core 0.14; before, the keys tell. */
static void name_layout(struct gradcmp_catalogue *catalogue, const struct gcmp_dcp_key *keys) {
    const char *named = NULL;
    for (size_t i = 0; i < catalogue->stored_count && catalogue->layout_name == NULL; i++) {
        if (keys[i].kind == GCMP_DCP_BUCKET) {
            bool gathered = strstr(catalogue->stored[i].key, ".param_state/shard_") != NULL;
            catalogue->layout_name = keys[i].state != NULL ? "dp_reshardable"
                                     : gathered            ? "dp_zero_gather_scatter"
                                                           : NULL;
        } else if (catalogue->stored[i].model_shape != NULL) {
            named = "fully_sharded_model_space";
        }
    }
    if (catalogue->layout_name == NULL) {
        catalogue->layout_name = named;
    }
}

static void write_names(struct naming *naming) {
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        struct gradcmp_stored *stored = &naming->catalogue->stored[i];
        stored->name = naming->keys[i].name;
        stored->state = naming->keys[i].state;
        stored->layout =
            naming->keys[i].kind == GCMP_DCP_BUCKET ? GRADCMP_LAYOUT_BUCKET : GRADCMP_LAYOUT_MODEL;
    }
}

enum gradcmp_status gcmp_dcp_assign_names(struct gradcmp_catalogue *catalogue,
                                          struct gcmp_dcp_key *keys, struct gradcmp_error *error) {
    struct naming naming = {.catalogue = catalogue, .keys = keys, .error = error};
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_dcp_settle_roles(catalogue, keys, error));
    GCMP_TRY_OUT(sort_out(&naming));
    strip_model(&naming);
    GCMP_TRY_OUT(collect_models(&naming));
    GCMP_TRY_OUT(assign_ids(&naming));
    name_layout(catalogue, keys);
    write_names(&naming);
    status = gcmp_note_quantised(catalogue, error);
out:
    gcmp_map_free(&naming.optimizer_names);
    gcmp_map_free(&naming.model_names);
    gcmp_map_free(&naming.id_index);
    free(naming.models);
    free(naming.ids);
    return status;
}
