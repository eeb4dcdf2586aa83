/* Decides names by looking at all keys of a checkpoint. */
#include "formats/dcp_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/map.h"
#include "formats/dcp_numbers.h"
#include "formats/dcp_roles.h"
#include "formats/quantised.h"
#include "formats/torch_save_set.h"

struct naming {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_dcp_key *keys;
    struct gcmp_map optimizer_names; /* names that the optimizer has a state of */
    struct gcmp_map model_names;     /* name -> index into models */
    size_t *models;                  /* stored tensors that are weights, in the file's order */
    size_t model_count;
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

/* True for a state that keeps less than a number for each of its parameter's, as Adafactor's rows
 * and columns do. What must be of its shape (moments, masters), or is a flat form of it, is not. */
static bool is_of_other_shape(const struct naming *naming, size_t index) {
    const struct gradcmp_stored *stored = &naming->catalogue->stored[index];
    const struct gcmp_dcp_key *key = &naming->keys[index];
    uint64_t elems, weight_elems;
    size_t at;
    if (key->kind != GCMP_DCP_STATE || key->state == NULL || strcmp(key->state, "step") == 0 ||
        gcmp_pt_is_shaped(key->state) || stored->model_shape != NULL ||
        !gcmp_map_find(&naming->model_names, key->name, strlen(key->name), &at)) {
        return false;
    }
    const struct gradcmp_stored *weight = &naming->catalogue->stored[naming->models[at]];
    bool is_flat = stored->ndim == 1 && gcmp_product(stored->shape, 1, &elems) &&
                   gcmp_product(weight->shape, weight->ndim, &weight_elems) &&
                   elems == weight_elems;
    return !is_flat && !gcmp_dims_equal(stored->ndim, stored->shape, weight->ndim, weight->shape);
}

/* Make them listed only, as in files of torch.save. */
static enum gradcmp_status leave_other_shapes(struct naming *naming) {
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        struct gcmp_dcp_key *key = &naming->keys[i];
        if (is_of_other_shape(naming, i)) {
            first = count++ == 0 ? key->text : first;
            key->state = NULL; /* the name stays: what is kept of the parameter is not lost */
        }
    }
    return count == 0 ? GRADCMP_OK
                      : gcmp_catalogue_note(naming->catalogue, naming->error,
                                            "%zu tensors are listed, not read: %.120s "
                                            "(of another shape than its parameter)%s",
                                            count, first, count > 1 ? " ..." : "");
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
    GCMP_TRY_OUT(gcmp_dcp_name_numbers(
        catalogue, keys,
        &(struct gcmp_dcp_weights){naming.models, naming.model_count, &naming.model_names}, error));
    GCMP_TRY_OUT(leave_other_shapes(&naming));
    name_layout(catalogue, keys);
    write_names(&naming);
    status = gcmp_note_quantised(catalogue, error);
out:
    gcmp_map_free(&naming.optimizer_names);
    gcmp_map_free(&naming.model_names);
    free(naming.models);
    return status;
}
