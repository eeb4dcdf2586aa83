/* zero/<name>/<state>.pt holds {"param": whole tensor, "cat_dim": ...}, or, from stage 3, the
 * tensor alone and flat; step.pt a number. Source: deepspeed/checkpoint/ds_to_universal.py.
 *
 * Limits: MAX_PARAMS folders, MAX_STATES files in each. */
#include "formats/deepspeed_universal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "formats/torch_save_file.h"

enum { MAX_PARAMS = 1 << 20, MAX_STATES = 64, MAX_PATH_BYTES = 4096 };

static const char FOLDER[] = "zero";

struct universal {
    struct gcmp_pt_set *set;
    struct gcmp_map shapes; /* name -> index into the model's parameters */
    const struct gcmp_ds_model *model;
    struct gradcmp_error *error;
};

bool gcmp_ds_is_universal(struct gcmp_dir *dir) {
    return gcmp_dir_has_dir(dir, FOLDER);
}

static bool is_state_file(const char *name) {
    size_t bytes = strlen(name);
    return bytes > 3 && strcmp(name + bytes - 3, ".pt") == 0;
}

/* The word of a state's file: "exp_avg" of "exp_avg.pt"; NULL without memory. */
static const char *state_of_file(const struct universal *universal, const char *name) {
    struct gcmp_arena *arena = universal->set->catalogue->arena;
    char *word = gcmp_arena_text(arena, name, strlen(name) - 3);
    return word == NULL ? NULL : gcmp_pt_state_word(arena, word);
}

/* Give a flat tensor, the last of the set, the shape of its parameter. */
static enum gradcmp_status unflatten(const struct universal *universal) {
    struct gcmp_pt_tensor *tensor = &universal->set->tensors[universal->set->tensor_count - 1];
    size_t index;
    const char *path = gcmp_dir_file_path(universal->set->catalogue->dir, tensor->file);
    if (tensor->ndim != 1 || tensor->unread != NULL || tensor->view.stride[0] != 1) {
        return GRADCMP_OK;
    }
    if (!gcmp_map_find(&universal->shapes, tensor->name, strlen(tensor->name), &index)) {
        GCMP_FAIL_AT(universal->error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                     "deepspeed: a flat tensor of \"%.200s\", whose shape no model file states",
                     tensor->name);
    }
    const struct gcmp_ds_param *param = &universal->model->params[index];
    if (param->elem_count != tensor->shape[0]) {
        GCMP_FAIL_AT(universal->error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                     "deepspeed: a flat tensor of %llu elements, the parameter \"%.200s\" has %llu",
                     (unsigned long long)tensor->shape[0], tensor->name,
                     (unsigned long long)param->elem_count);
    }
    int64_t step = 1;
    tensor->ndim = param->ndim;
    tensor->shape = gcmp_catalogue_dims(universal->set->catalogue, param->ndim, param->shape);
    if (tensor->shape == NULL) {
        GCMP_FAIL_MEMORY(universal->error);
    }
    tensor->view.ndim = (uint8_t)param->ndim;
    for (unsigned d = param->ndim; d-- > 0;) {
        tensor->view.shape[d] = param->shape[d];
        tensor->view.stride[d] = step;
        step *= param->shape[d] > 0 ? (int64_t)param->shape[d] : 1;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_state(const struct universal *universal,
                                      const struct gcmp_torch_file *torch, const char *name,
                                      const char *word) {
    const struct gcmp_node *inner = gcmp_node_get(torch->root, "param");
    const struct gcmp_node *node = inner != NULL ? inner : torch->root;
    struct gcmp_pt_place place = {
        .set = universal->set, .torch = torch, .rank = -1, .error = universal->error};
    struct gcmp_pt_tensor about = {
        .kind = GCMP_PT_STATE, .name = name, .state = word, .entry = SIZE_MAX};
    if (!gcmp_pt_is_tensor(node)) {
        if (strcmp(word, "step") == 0) { /* a number: the model's file tells the iteration */
            return GRADCMP_OK;
        }
        GCMP_FAIL_AT(universal->error, GRADCMP_ERROR_CORRUPT,
                     gcmp_dir_file_path(torch->dir, torch->file), torch->pickle->offset_bytes,
                     "deepspeed: expected a tensor, or a dict with \"param\", found %s",
                     gcmp_node_kind_name(node));
    }
    about.key = gcmp_arena_format(universal->set->catalogue->arena, "%s.%s", name, word);
    if (about.key == NULL) {
        GCMP_FAIL_MEMORY(universal->error);
    }
    GCMP_TRY(gcmp_pt_add_tensor(&place, node, &about));
    return inner == NULL && strcmp(word, "step") != 0 ? unflatten(universal) : GRADCMP_OK;
}

static enum gradcmp_status read_file(const struct universal *universal, const char *folder,
                                     const char *file, const char *name) {
    char path[MAX_PATH_BYTES];
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    if (!is_state_file(file)) {
        return GRADCMP_OK;
    }
    const char *word = state_of_file(universal, file);
    if (word == NULL) {
        GCMP_FAIL_MEMORY(universal->error);
    }
    snprintf(path, sizeof path, "%s/%s", folder, file);
    enum gradcmp_status status = gcmp_torch_open_any(universal->set->catalogue->dir, path, &scratch,
                                                     &torch, universal->error);
    if (status == GRADCMP_OK) {
        status = take_state(universal, &torch, name, word);
    }
    gcmp_arena_free(&scratch);
    return status;
}

static enum gradcmp_status read_param(const struct universal *universal, const char *entry) {
    char folder[MAX_PATH_BYTES / 2];
    char **files;
    size_t count;
    struct gcmp_dir *dir = universal->set->catalogue->dir;
    if (strlen(entry) + sizeof FOLDER + 1 > sizeof folder) {
        GCMP_FAIL_AT(universal->error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "deepspeed: a name of %zu bytes", strlen(entry));
    }
    snprintf(folder, sizeof folder, "%s/%s", FOLDER, entry);
    if (!gcmp_dir_has_dir(dir, folder)) {
        return GRADCMP_OK;
    }
    const char *name = gcmp_arena_dup(universal->set->catalogue->arena, entry);
    if (name == NULL) {
        GCMP_FAIL_MEMORY(universal->error);
    }
    GCMP_TRY(gcmp_dir_list(dir, folder, MAX_STATES, &files, &count, universal->error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        status = read_file(universal, folder, files[i], name);
    }
    gcmp_dir_free_names(files, count);
    return status;
}

/* Every parameter of the model must have its folder. */
static enum gradcmp_status check_params(const struct universal *universal) {
    struct gcmp_dir *dir = universal->set->catalogue->dir;
    for (size_t i = 0; i < universal->model->param_count; i++) {
        char folder[MAX_PATH_BYTES];
        const char *name = universal->model->params[i].name;
        snprintf(folder, sizeof folder, "%s/%s", FOLDER, name);
        if (!gcmp_dir_has_dir(dir, folder)) {
            GCMP_FAIL_AT(universal->error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir),
                         GRADCMP_NO_OFFSET, "incomplete: no folder %.300s of a parameter", folder);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_settings(const struct universal *universal) {
    static const char name[] = "zero/optimizer_state.pt";
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    if (gcmp_dir_kind(universal->set->catalogue->dir, name) == GCMP_DIR_ABSENT) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gcmp_torch_open_any(universal->set->catalogue->dir, name, &scratch,
                                                     &torch, universal->error);
    if (status == GRADCMP_OK) {
        status = gcmp_pt_read_groups(universal->set->catalogue,
                                     gcmp_node_get(torch.root, "param_groups"), universal->error);
    }
    gcmp_arena_free(&scratch);
    return status;
}

static enum gradcmp_status read_all(struct universal *universal, char *const *names, size_t count) {
    for (size_t i = 0; i < universal->model->param_count; i++) {
        const char *name = universal->model->params[i].name;
        if (gcmp_map_add(&universal->shapes, name, strlen(name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(universal->error);
        }
    }
    GCMP_TRY(check_params(universal));
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(read_param(universal, names[i]));
    }
    return read_settings(universal);
}

enum gradcmp_status gcmp_ds_read_universal(struct gcmp_pt_set *set,
                                           const struct gcmp_ds_model *model,
                                           struct gradcmp_error *error) {
    struct universal universal = {
        .set = set, .shapes = GCMP_MAP_INIT, .model = model, .error = error};
    char **names;
    size_t count;
    GCMP_TRY(gcmp_dir_list(set->catalogue->dir, FOLDER, MAX_PARAMS, &names, &count, error));
    enum gradcmp_status status = read_all(&universal, names, count);
    gcmp_map_free(&universal.shapes);
    gcmp_dir_free_names(names, count);
    return status;
}
