/* Reads `*_model_states.pt`. Sources: deepspeed/runtime/engine.py (_save_checkpoint,
 * _get_zero_param_shapes), runtime/pipe/module.py (save_state_dict), versions 0.3 to 0.19.
 *
 * Limits: MAX_NAME_BYTES of a name; as many entries as the pickle has bytes. */
#include "formats/deepspeed_model.h"

#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "formats/torch_save_file.h"

enum { MAX_NAME_BYTES = 2048 };

#define PLACE_FAIL(place, code, node, ...)                                                         \
    GCMP_FAIL_AT(                                                                                  \
        (place)->error, (code), gcmp_dir_file_path((place)->torch->dir, (place)->torch->file),     \
        (place)->torch->pickle->offset_bytes + gcmp_node_at(node), "deepspeed: " __VA_ARGS__)

static bool is_dict(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_DICT || node->kind == GCMP_NODE_CALL);
}

/* --- parameters --- */

static enum gradcmp_status read_param(const struct gcmp_pt_place *place,
                                      const struct gcmp_node *key, const struct gcmp_node *value,
                                      struct gcmp_ds_param *out) {
    struct gradcmp_catalogue *catalogue = place->set->catalogue;
    uint64_t sizes[GRADCMP_MAX_NDIM];
    const char *name = gcmp_node_text(key);
    if (name == NULL || strlen(name) > MAX_NAME_BYTES ||
        !gcmp_node_sizes(value, sizes, GRADCMP_MAX_NDIM, &out->ndim) ||
        !gcmp_product(sizes, out->ndim, &out->elem_count)) {
        PLACE_FAIL(
            place, GRADCMP_ERROR_CORRUPT, key,
            "param_shapes: expected names with sizes of at most %d axes and 2^63 - 1 elements",
            GRADCMP_MAX_NDIM);
    }
    out->name = gcmp_arena_dup(catalogue->arena, name);
    out->shape = gcmp_catalogue_dims(catalogue, out->ndim, sizes);
    if (out->name == NULL || out->shape == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_group(struct gcmp_pt_place *place, const struct gcmp_node *group,
                                      struct gcmp_ds_model *model) {
    for (size_t i = 0; i < gcmp_node_count(group); i++) {
        const struct gcmp_node *key = NULL, *value = NULL;
        if (!gcmp_node_pair(group, i, &key, &value)) {
            PLACE_FAIL(place, GRADCMP_ERROR_CORRUPT, group,
                       "param_shapes: expected a dict of names and sizes, found %s",
                       gcmp_node_kind_name(group));
        }
        GCMP_TRY(read_param(place, key, value, &model->params[model->param_count]));
        model->param_count++;
    }
    model->group_ends[model->group_count++] = model->param_count;
    return GRADCMP_OK;
}

/* "param_shapes": a list of {name: size}; before 0.4 one dict. */
static enum gradcmp_status read_shapes(struct gcmp_pt_place *place, struct gcmp_ds_model *model) {
    const struct gcmp_node *shapes = gcmp_node_get(place->torch->root, "param_shapes");
    struct gcmp_arena *arena = place->set->catalogue->arena;
    bool is_list =
        shapes != NULL && (shapes->kind == GCMP_NODE_LIST || shapes->kind == GCMP_NODE_TUPLE);
    size_t groups = is_list ? gcmp_node_count(shapes) : is_dict(shapes) ? 1 : 0, params = 0;
    for (size_t i = 0; i < groups; i++) {
        params += gcmp_node_count(is_list ? gcmp_node_item(shapes, i) : shapes);
    }
    if (params > place->visits_left) { /* one group may be in the list many times */
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, shapes, "more parameters than the pickle can hold");
    }
    model->params = gcmp_arena_alloc(arena, params, sizeof *model->params);
    model->group_ends = gcmp_arena_alloc(arena, groups, sizeof *model->group_ends);
    if (model->params == NULL || model->group_ends == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    for (size_t i = 0; i < groups; i++) {
        GCMP_TRY(read_group(place, is_list ? gcmp_node_item(shapes, i) : shapes, model));
    }
    return GRADCMP_OK;
}

/* --- the run --- */

static uint64_t read_count(const struct gcmp_node *node) {
    int64_t value;
    return gcmp_node_int(node, &value) && value > 0 ? (uint64_t)value : 0;
}

static bool is_enabled(const struct gcmp_node *config, const char *name) {
    int64_t value;
    return gcmp_node_int(gcmp_node_get(gcmp_node_get(config, name), "enabled"), &value) &&
           value != 0;
}

static enum gradcmp_status read_config(struct gradcmp_catalogue *catalogue,
                                       const struct gcmp_node *config,
                                       struct gradcmp_error *error) {
    if (!is_dict(config)) {
        return GRADCMP_OK;
    }
    if (is_enabled(config, "bf16") || is_enabled(config, "bfloat16")) {
        catalogue->compute = GRADCMP_DTYPE_BFLOAT16;
    } else if (is_enabled(config, "fp16")) {
        catalogue->compute = GRADCMP_DTYPE_FLOAT16;
    }
    const struct gcmp_node *zero = gcmp_node_get(config, "zero_optimization");
    GCMP_TRY(gcmp_pt_set_number(catalogue, "global_batch_size",
                                gcmp_node_get(config, "train_batch_size"), error));
    GCMP_TRY(gcmp_pt_set_number(catalogue, "clip_grad", gcmp_node_get(config, "gradient_clipping"),
                                error));
    GCMP_TRY(gcmp_pt_set_number(catalogue, "seed", gcmp_node_get(config, "seed"), error));
    return gcmp_pt_set_number(catalogue, "zero_stage", gcmp_node_get(zero, "stage"), error);
}

enum gradcmp_status gcmp_ds_check_step(const struct gradcmp_catalogue *catalogue,
                                       const struct gcmp_torch_file *torch,
                                       struct gradcmp_error *error) {
    const struct gcmp_node *node = gcmp_node_get(torch->root, "global_steps");
    int64_t steps;
    if (catalogue->iteration >= 0 && gcmp_node_int(node, &steps) && steps != catalogue->iteration) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(torch->dir, torch->file),
                     torch->pickle->offset_bytes + gcmp_node_at(node),
                     "deepspeed: global_steps is %lld, but %lld in the first model file: they are "
                     "of two saves",
                     (long long)steps, (long long)catalogue->iteration);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_run(const struct gcmp_pt_place *place,
                                    struct gcmp_ds_model *model) {
    const struct gcmp_node *root = place->torch->root;
    struct gradcmp_catalogue *catalogue = place->set->catalogue;
    const struct gcmp_node *degrees = gcmp_node_get(root, "checkpoint_parallel_dimensions");
    const struct gcmp_node *zero =
        gcmp_node_get(gcmp_node_get(root, "ds_config"), "zero_optimization");
    int64_t steps, shuffled;
    model->is_round_robin =
        gcmp_node_int(gcmp_node_get(zero, "round_robin_gradients"), &shuffled) && shuffled != 0;
    model->dp_ranks = read_count(gcmp_node_get(root, "dp_world_size"));
    model->mp_ranks = read_count(gcmp_node_get(root, "mp_world_size"));
    model->tp = read_count(gcmp_node_get(degrees, "tp_degree"));
    model->pp = read_count(gcmp_node_get(degrees, "pp_degree"));
    if (catalogue->iteration < 0 && gcmp_node_int(gcmp_node_get(root, "global_steps"), &steps)) {
        catalogue->iteration = steps < 0 ? -1 : steps;
    }
    GCMP_TRY(gcmp_ds_check_step(catalogue, place->torch, place->error));
    GCMP_TRY(gcmp_pt_set_number(catalogue, "consumed_train_samples",
                                gcmp_node_get(root, "global_samples"), place->error));
    return read_config(catalogue, gcmp_node_get(root, "ds_config"), place->error);
}

/* --- weights and an optimizer without ZeRO --- */

/* Buffers are in the module's dict like weights; their names are listed. */
static enum gradcmp_status set_buffers_apart(struct gcmp_pt_place *place, size_t first) {
    const struct gcmp_node *names = gcmp_node_get(place->torch->root, "buffer_names");
    struct gcmp_pt_set *set = place->set;
    struct gcmp_map map = GCMP_MAP_INIT;
    bool has_memory = true;
    for (size_t i = 0; i < gcmp_node_count(names) && has_memory; i++) {
        const char *name = gcmp_node_text(gcmp_node_item(names, i));
        has_memory =
            name == NULL || gcmp_map_add(&map, name, strlen(name), 0, NULL) != GCMP_MAP_NO_MEMORY;
    }
    for (size_t i = first; i < set->tensor_count && has_memory; i++) {
        size_t ignored;
        const char *name = set->tensors[i].name;
        if (name != NULL && gcmp_map_find(&map, name, strlen(name), &ignored)) {
            set->tensors[i].kind = GCMP_PT_OTHER;
        }
    }
    gcmp_map_free(&map);
    if (!has_memory) {
        GCMP_FAIL_MEMORY(place->error);
    }
    return GRADCMP_OK;
}

/* torch's own optimizer, or what DeepSpeed's wrappers for half precision keep of it. */
static const struct gcmp_node *find_optimizer(const struct gcmp_node *root, const char **path) {
    static const char *const wrappers[] = {"optimizer_state_dict", "base_optimizer_state"};
    const struct gcmp_node *node = gcmp_node_get(root, "optimizer");
    *path = "optimizer";
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers && is_dict(node); i++) {
        const struct gcmp_node *inner = gcmp_node_get(node, wrappers[i]);
        node = inner != NULL ? inner : node;
    }
    return is_dict(node) ? node : NULL;
}

static enum gradcmp_status read_optimizer(struct gcmp_pt_place *place,
                                          struct gcmp_ds_model *model) {
    const char *path;
    const struct gcmp_node *optimizer = find_optimizer(place->torch->root, &path);
    if (optimizer == NULL) {
        return GRADCMP_OK;
    }
    if (!is_dict(gcmp_node_get(optimizer, "state")) ||
        gcmp_node_get(optimizer, "param_groups") == NULL) {
        PLACE_FAIL(place, GRADCMP_ERROR_UNSUPPORTED, optimizer,
                   "an optimizer without ZeRO that is not in torch's form is not read");
    }
    model->has_optimizer = true;
    return gcmp_pt_walk_optimizer(place, optimizer, path);
}

static enum gradcmp_status read_contents(struct gcmp_pt_place *place,
                                         const struct gcmp_ds_file *file,
                                         struct gcmp_ds_model *model) {
    const struct gcmp_node *module = gcmp_node_get(place->torch->root, "module");
    size_t first = place->set->tensor_count;
    if (!is_dict(place->torch->root)) {
        PLACE_FAIL(place, GRADCMP_ERROR_CORRUPT, place->torch->root,
                   "expected a dict of the model's state, found %s",
                   gcmp_node_kind_name(place->torch->root));
    }
    GCMP_TRY(read_run(place, model));
    GCMP_TRY(read_shapes(place, model));
    if (file->is_partitioned) { /* weights are in the optimizer's parts alone */
        return GRADCMP_OK;
    }
    if (is_dict(module)) {
        GCMP_TRY(gcmp_pt_walk_tensors(place, module, "module", GCMP_PT_WEIGHT, "param"));
        GCMP_TRY(set_buffers_apart(place, first));
    }
    return read_optimizer(place, model);
}

enum gradcmp_status gcmp_ds_read_model(struct gcmp_pt_set *set, const struct gcmp_ds_file *file,
                                       struct gcmp_ds_model *out, struct gradcmp_error *error) {
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    *out = (struct gcmp_ds_model){.mp = file->mp, .stage = -1};
    enum gradcmp_status status =
        gcmp_torch_open_any(set->catalogue->dir, file->name, &scratch, &torch, error);
    if (status == GRADCMP_OK) {
        struct gcmp_pt_place place = {.set = set,
                                      .torch = &torch,
                                      .rank = -1,
                                      .visits_left = torch.pickle->length_bytes + 64,
                                      .error = error};
        out->file = torch.file;
        status = read_contents(&place, file, out);
    }
    gcmp_arena_free(&scratch);
    return status;
}

/* Put a layer's number in front of the names, as the parameters of a PipelineModule have it. */
static enum gradcmp_status prefix_names(struct gcmp_pt_set *set, size_t first, uint32_t layer,
                                        struct gradcmp_error *error) {
    for (size_t i = first; i < set->tensor_count; i++) {
        struct gcmp_pt_tensor *tensor = &set->tensors[i];
        tensor->name = gcmp_arena_format(set->catalogue->arena, "%u.%s", layer, tensor->name);
        if (tensor->name == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        tensor->key = tensor->name;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ds_read_weights(struct gcmp_pt_set *set, const struct gcmp_ds_file *file,
                                         struct gradcmp_error *error) {
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    size_t first = set->tensor_count;
    enum gradcmp_status status =
        gcmp_torch_open_any(set->catalogue->dir, file->name, &scratch, &torch, error);
    if (status == GRADCMP_OK) {
        struct gcmp_pt_place place = {.set = set,
                                      .torch = &torch,
                                      .rank = -1,
                                      .visits_left = torch.pickle->length_bytes + 64,
                                      .error = error};
        status = gcmp_pt_walk_tensors(&place, torch.root, "", GCMP_PT_WEIGHT, "param");
    }
    if (status == GRADCMP_OK && file->kind == GCMP_DS_LAYER) {
        status = prefix_names(set, first, file->layer, error);
    }
    gcmp_arena_free(&scratch);
    return status;
}
