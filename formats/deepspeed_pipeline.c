/* Source: deepspeed/runtime/pipe/module.py (_build, save_state_dict, ckpt_layer_path). */
#include "formats/deepspeed_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/model_names.h"

/* More modules than unsharding reads layers have no layers stated; of more copies none is named. */
enum { MAX_LAYERS = 65536, MAX_COPIES = 64 };

/* --- tied modules --- */

/* What tied modules and places have under one rest of a name. */
struct rest {
    const struct gcmp_ds_param *param; /* of a tied module */
    size_t weight;                     /* of a place */
    size_t tied_count, weight_count;
};

struct tying {
    struct gcmp_pt_set *set;
    struct gcmp_map names; /* of all parameters */
    struct gcmp_map index; /* rest -> rests */
    struct rest *rests;
    struct gradcmp_error *error;
};

static enum gradcmp_status find_rest(struct tying *tying, const char *text, struct rest **rest) {
    size_t index;
    if (gcmp_map_add(&tying->index, text, strlen(text), tying->index.count, &index) ==
        GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(tying->error);
    }
    *rest = &tying->rests[index];
    return GRADCMP_OK;
}

static enum gradcmp_status note_param(struct tying *tying, const struct gcmp_ds_param *param) {
    const char *text = gcmp_rest_of_tied(param->name);
    struct rest *rest;
    enum gcmp_map_result result =
        gcmp_map_add(&tying->names, param->name, strlen(param->name), 0, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(tying->error);
    }
    if (text != NULL && result == GCMP_MAP_ADDED) { /* other stages have copies */
        GCMP_TRY(find_rest(tying, text, &rest));
        rest->param = param;
        rest->tied_count++;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status note_weight(struct tying *tying, size_t index) {
    const struct gcmp_pt_tensor *tensor = &tying->set->tensors[index];
    struct rest *rest;
    size_t ignored;
    if (tensor->kind != GCMP_PT_WEIGHT ||
        gcmp_map_find(&tying->names, tensor->name, strlen(tensor->name), &ignored)) {
        return GRADCMP_OK;
    }
    const char *text = gcmp_rest_of_module(tensor->name);
    if (text != NULL) {
        GCMP_TRY(find_rest(tying, text, &rest));
        rest->weight = index;
        rest->weight_count++;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status tie(struct tying *tying, const struct gcmp_ds_model *models,
                               size_t count) {
    for (size_t m = 0; m < count; m++) {
        for (size_t i = 0; i < models[m].param_count; i++) {
            GCMP_TRY(note_param(tying, &models[m].params[i]));
        }
    }
    for (size_t i = 0; i < tying->set->tensor_count; i++) {
        GCMP_TRY(note_weight(tying, i));
    }
    for (size_t i = 0; i < tying->index.count; i++) {
        const struct rest *rest = &tying->rests[i];
        bool is_clear = rest->tied_count == 1 && rest->weight_count == 1;
        struct gcmp_pt_tensor *weight = is_clear ? &tying->set->tensors[rest->weight] : NULL;
        if (weight != NULL &&
            gcmp_dims_equal(weight->ndim, weight->shape, rest->param->ndim, rest->param->shape)) {
            weight->name = rest->param->name;
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ds_name_tied(struct gcmp_pt_set *set, const struct gcmp_ds_model *models,
                                      size_t count, struct gradcmp_error *error) {
    struct tying tying = {
        .set = set, .names = GCMP_MAP_INIT, .index = GCMP_MAP_INIT, .error = error};
    size_t most = set->tensor_count + 1;
    for (size_t m = 0; m < count; m++) {
        most += models[m].param_count;
    }
    tying.rests = calloc(most, sizeof *tying.rests);
    if (tying.rests == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = tie(&tying, models, count);
    gcmp_map_free(&tying.names);
    gcmp_map_free(&tying.index);
    free(tying.rests);
    return status;
}

/* --- copies without names --- */

/* The numbers of all stages, and the weights that they count. */
struct copies {
    struct gcmp_pt_set *set;
    const struct gcmp_pt_tensor **weights; /* in the order of the modules */
    const struct gcmp_pt_tensor **states;  /* one of each number that shows its shape, or NULL */
    size_t *meanings;                      /* of each number, among the weights */
    size_t weight_count;
    size_t first_end, last_at; /* where the first stage's numbers end, the last one's begin */
    size_t copy_count;
};

static void collect_copies(struct copies *copies) {
    struct gcmp_pt_set *set = copies->set;
    for (size_t i = 0; i < set->tensor_count; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        if (tensor->kind == GCMP_PT_WEIGHT && gcmp_pt_is_float(tensor)) {
            copies->weights[copies->weight_count++] = tensor;
        } else if (gcmp_pt_is_numbered(tensor) && gcmp_pt_is_shaped(tensor->state)) {
            copies->states[tensor->entry] = tensor;
        }
    }
    while (copies->first_end < set->entry_count &&
           set->entries[copies->first_end].optimizer == set->entries[0].optimizer) {
        copies->first_end++;
    }
    copies->last_at = set->entry_count;
    while (copies->last_at > 0 && set->entries[copies->last_at - 1].optimizer ==
                                      set->entries[set->entry_count - 1].optimizer) {
        copies->last_at--;
    }
    copies->copy_count =
        set->entry_count > copies->weight_count ? set->entry_count - copies->weight_count : 0;
}

/* The one weight of the first stage that has a copy's shape; SIZE_MAX: none, or several. */
static size_t find_original(const struct copies *copies, const struct gcmp_pt_tensor *copy) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < copies->first_end; i++) {
        if (gcmp_pt_same_shape(copies->weights[i], copy)) {
            if (found != SIZE_MAX) {
                return SIZE_MAX;
            }
            found = i;
        }
    }
    return found;
}

/* True for a weight that one of the first `count` copies means. */
static bool is_copied(const struct copies *copies, size_t count, size_t weight) {
    for (size_t i = 0; i < count; i++) {
        if (copies->meanings[copies->last_at + i] == weight) {
            return true;
        }
    }
    return false;
}

/* Find what every number means; false where shapes or groups do not fit. */
static bool solve_copies(const struct copies *copies) {
    const struct gcmp_pt_set *set = copies->set;
    size_t next = 0;
    if (copies->copy_count > MAX_COPIES || copies->first_end > copies->weight_count ||
        copies->last_at < copies->first_end ||
        set->entry_count - copies->last_at < copies->copy_count) {
        return false;
    }
    for (size_t i = 0; i < set->entry_count; i++) {
        bool is_copy = i >= copies->last_at && i - copies->last_at < copies->copy_count;
        const struct gcmp_pt_tensor *state = copies->states[i];
        if (state == NULL || set->entries[i].group != 0 || set->entries[i].name != NULL) {
            return false;
        }
        size_t meaning = is_copy ? find_original(copies, state) : next;
        if (meaning >= copies->weight_count ||
            (is_copy && is_copied(copies, i - copies->last_at, meaning)) ||
            !gcmp_pt_same_shape(copies->weights[meaning], state)) {
            return false;
        }
        copies->meanings[i] = meaning;
        next += !is_copy;
    }
    return next == copies->weight_count;
}

static void name_copies(struct copies *copies) {
    struct gcmp_pt_set *set = copies->set;
    for (size_t i = 0; i < set->entry_count; i++) {
        set->entries[i].name = copies->weights[copies->meanings[i]]->name;
    }
    for (size_t i = 0; i < set->tensor_count; i++) {
        struct gcmp_pt_tensor *tensor = &set->tensors[i];
        if (gcmp_pt_is_numbered(tensor) &&
            is_copied(copies, copies->copy_count, copies->meanings[tensor->entry])) {
            tensor->rank = tensor->entry < copies->first_end
                               ? 0
                               : (int32_t)set->entries[set->entry_count - 1].optimizer;
            tensor->is_of_stage = true;
        }
    }
}

enum gradcmp_status gcmp_ds_name_copies(struct gcmp_pt_set *set, struct gradcmp_error *error) {
    struct copies copies = {.set = set};
    enum gradcmp_status status = GRADCMP_OK;
    copies.weights = calloc(set->tensor_count + 1, sizeof *copies.weights);
    copies.states = calloc(set->entry_count + 1, sizeof *copies.states);
    copies.meanings = calloc(set->entry_count + 1, sizeof *copies.meanings);
    if (copies.weights == NULL || copies.states == NULL || copies.meanings == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    collect_copies(&copies);
    if (copies.copy_count > 0 && solve_copies(&copies)) {
        name_copies(&copies);
    } else if (copies.copy_count > 0) {
        status = gcmp_catalogue_note(
            set->catalogue, error,
            "without ZeRO the stages of this pipeline number %zu parameters, and there are %zu "
            "weights: each stage numbers its copy of a tied one, and which that is the files do "
            "not tell; ZeRO stage 1 stores names",
            set->entry_count, copies.weight_count);
    }
out:
    free(copies.weights);
    free(copies.states);
    free(copies.meanings);
    return status;
}

/* --- layers --- */

static bool is_parameter(const struct gradcmp_stored *stored) {
    return stored->state != NULL && strcmp(stored->state, "step") != 0;
}

/* Collect the numbers of all modules; false where a name is no PipelineModule's. */
static bool collect_modules(const struct gradcmp_catalogue *catalogue, uint32_t *modules,
                            size_t *count, bool *has_tied) {
    *count = 0;
    *has_tied = false;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (!is_parameter(stored)) {
            continue;
        }
        if (gcmp_rest_of_module(stored->name) != NULL) {
            modules[(*count)++] = (uint32_t)strtoul(stored->name, NULL, 10);
        } else if (gcmp_rest_of_tied(stored->name) != NULL) {
            *has_tied = true;
        } else {
            return false;
        }
    }
    return *count > 0;
}

static int compare_modules(const void *left, const void *right) {
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Sort the numbers and leave one of each. */
static size_t sort_modules(uint32_t *modules, size_t count) {
    size_t kept = 1;
    qsort(modules, count, sizeof *modules, compare_modules);
    for (size_t i = 1; i < count; i++) {
        if (modules[i] != modules[kept - 1]) {
            modules[kept++] = modules[i];
        }
    }
    return kept;
}

static void state_layers(struct gradcmp_catalogue *catalogue, const uint32_t *modules, size_t count,
                         bool has_tied) {
    size_t places = count + has_tied; /* the embedding and the head are two of them */
    if (places < 2 || places > MAX_LAYERS) {
        return;
    }
    catalogue->layers = places - 2;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        struct gradcmp_stored *stored = &catalogue->stored[i];
        uint32_t number, layer = 0;
        if (!is_parameter(stored)) {
            continue;
        }
        if (gcmp_rest_of_module(stored->name) != NULL) {
            number = (uint32_t)strtoul(stored->name, NULL, 10);
            const uint32_t *found =
                bsearch(&number, modules, count, sizeof *modules, compare_modules);
            layer = (uint32_t)(found - modules) + has_tied;
        }
        stored->stated_layer = 1 + layer;
    }
}

enum gradcmp_status gcmp_ds_state_layers(struct gradcmp_catalogue *catalogue,
                                         struct gradcmp_error *error) {
    uint32_t *modules = calloc(catalogue->stored_count + 1, sizeof *modules);
    size_t count;
    bool has_tied;
    if (modules == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (collect_modules(catalogue, modules, &count, &has_tied)) {
        count = sort_modules(modules, count);
        state_layers(catalogue, modules, count, has_tied);
    }
    free(modules);
    return GRADCMP_OK;
}
