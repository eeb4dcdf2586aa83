/* Reads Megatron's arguments (an argparse.Namespace) and what its optimizer says of itself. Names
 * of arguments: megatron/training/arguments.py; of content_metadata:
 * megatron/training/checkpointing.py.
 *
 * Limits: MAX_SETTINGS; MAX_LIST_BYTES of one value that is no scalar, MAX_LISTS_BYTES of all;
 * MAX_OPTIMIZERS chained optimizers of MAX_GROUPS groups are looked at. */
#include "formats/megatron_args.h"

#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "formats/mixed_betas.h"
#include "formats/torch_file.h"
#include "formats/value_text.h"

/* Real runs have about 900 arguments. */
enum { MAX_SETTINGS = 4096, MAX_OPTIMIZERS = 64, MAX_GROUPS = 256, MAX_VALUE_BYTES = 256 };
enum { MAX_LIST_BYTES = 1 << 16, MAX_LISTS_BYTES = 1 << 22 };

/* The last word of "module name": a class or a type by its own name. */
static const char *short_name(const struct gcmp_node *global) {
    const char *space = strrchr(global->as.text.bytes, ' ');
    return space == NULL ? global->as.text.bytes : space + 1;
}

/* An object of one plain argument, as enums and paths are pickled: "AttnBackend(4)". */
static bool describe_object(const struct gcmp_node *node, char *buffer, size_t capacity) {
    const struct gcmp_node *callee = node->as.call.callee, *arg = gcmp_node_arg(node, 0);
    int64_t integer;
    if (callee->kind != GCMP_NODE_GLOBAL || gcmp_node_count(node->as.call.args) != 1) {
        return false;
    }
    if (gcmp_node_text(arg) != NULL) {
        snprintf(buffer, capacity, "%s(%s)", short_name(callee), gcmp_node_text(arg));
        return true;
    }
    if (gcmp_node_int(arg, &integer)) {
        snprintf(buffer, capacity, "%s(%lld)", short_name(callee), (long long)integer);
        return true;
    }
    return false;
}

/* Turn a scalar into a setting; false where the value is something else. Text may point to
 * `buffer` of MAX_VALUE_BYTES. */
static bool make_setting(const struct gcmp_node *value, char *buffer, struct gradcmp_setting *out) {
    switch (value->kind) {
    case GCMP_NODE_NONE:
        out->kind = GRADCMP_SETTING_NONE;
        return true;
    case GCMP_NODE_BOOL:
    case GCMP_NODE_INT:
        out->kind = value->kind == GCMP_NODE_INT ? GRADCMP_SETTING_INT : GRADCMP_SETTING_BOOL;
        return gcmp_node_int(value, &out->integer);
    case GCMP_NODE_FLOAT:
        out->kind = GRADCMP_SETTING_FLOAT;
        return gcmp_node_number(value, &out->number);
    case GCMP_NODE_TEXT:
    case GCMP_NODE_BYTES:
        out->kind = GRADCMP_SETTING_TEXT;
        out->text = gcmp_node_text(value);
        return out->text != NULL;
    case GCMP_NODE_GLOBAL:
        out->kind = GRADCMP_SETTING_TEXT;
        out->text = short_name(value);
        return true;
    case GCMP_NODE_CALL:
        out->kind = GRADCMP_SETTING_TEXT;
        out->text = buffer;
        return describe_object(value, buffer, MAX_VALUE_BYTES);
    default:
        return false;
    }
}

/* Record a scalar under prefix + name; other values are passed over. */
static enum gradcmp_status set_scalar(struct gradcmp_catalogue *catalogue, const char *prefix,
                                      const char *name, const struct gcmp_node *value,
                                      struct gradcmp_error *error) {
    char full[MAX_VALUE_BYTES], buffer[MAX_VALUE_BYTES];
    struct gradcmp_setting setting = {.name = full};
    if (value == NULL || name == NULL || strlen(prefix) + strlen(name) >= sizeof full ||
        !make_setting(value, buffer, &setting)) {
        return GRADCMP_OK;
    }
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return gcmp_catalogue_set(catalogue, &setting, error);
}

/* Record what is no scalar as one text; *left bytes are left for such. */
static enum gradcmp_status set_list(struct gradcmp_catalogue *catalogue, const char *prefix,
                                    const char *name, const struct gcmp_node *value, size_t *left,
                                    struct gradcmp_error *error) {
    char full[MAX_VALUE_BYTES], buffer[MAX_VALUE_BYTES];
    struct gradcmp_setting setting = {.name = full, .kind = GRADCMP_SETTING_TEXT}, scalar = {0};
    struct gcmp_text text = GCMP_TEXT_INIT;
    int length = snprintf(full, sizeof full, "%s%s", prefix, name == NULL ? "" : name);
    if (name == NULL || length >= (int)sizeof full || make_setting(value, buffer, &scalar)) {
        return GRADCMP_OK;
    }
    gcmp_value_text(&text, value, *left < MAX_LIST_BYTES ? *left : MAX_LIST_BYTES);
    *left -= text.length_bytes < *left ? text.length_bytes : *left;
    setting.text = text.bytes;
    enum gradcmp_status status = text.failed ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                              GRADCMP_NO_OFFSET, "out of memory")
                                             : gcmp_catalogue_set(catalogue, &setting, error);
    gcmp_text_free(&text);
    return status;
}

/* Record every value of a dict. */
static enum gradcmp_status set_all(struct gradcmp_catalogue *catalogue, const char *prefix,
                                   const struct gcmp_node *dict, struct gradcmp_error *error) {
    size_t count = gcmp_node_count(dict), left = MAX_LISTS_BYTES;
    for (size_t i = 0; i < count && catalogue->setting_count < MAX_SETTINGS; i++) {
        const struct gcmp_node *key, *value;
        if (gcmp_node_pair(dict, i, &key, &value)) {
            const char *name = gcmp_node_text(key);
            GCMP_TRY(set_scalar(catalogue, prefix, name, value, error));
            GCMP_TRY(set_list(catalogue, prefix, name, value, &left, error));
        }
    }
    struct gradcmp_setting rest = {
        .name = "further arguments", .kind = GRADCMP_SETTING_TEXT, .text = GCMP_VALUE_NOT_READ};
    return catalogue->setting_count < MAX_SETTINGS ? GRADCMP_OK
                                                   : gcmp_catalogue_set(catalogue, &rest, error);
}

/* The groups of an optimizer: Megatron wraps the one that has them in others. */
static const struct gcmp_node *find_groups(const struct gcmp_node *optimizer) {
    const struct gcmp_node *groups = gcmp_node_get(optimizer, "param_groups");
    if (groups == NULL) {
        groups = gcmp_node_get(gcmp_node_get(optimizer, "optimizer"), "param_groups");
    }
    return groups != NULL && groups->kind == GCMP_NODE_LIST ? groups : NULL;
}

/* What the groups say; the first of each stands for them where they agree. */
struct options {
    struct gcmp_seen betas, steps;
};

static void look_at_group(const struct gcmp_node *group, struct options *options) {
    const struct gcmp_node *pair = gcmp_node_get(group, "betas");
    double first, second, step;
    if (gcmp_node_count(pair) == 2 && gcmp_node_number(gcmp_node_item(pair, 0), &first) &&
        gcmp_node_number(gcmp_node_item(pair, 1), &second)) {
        gcmp_see_stated(&options->betas, first, second);
    }
    const struct gcmp_node *params = gcmp_node_get(group, "params");
    if ((params == NULL || gcmp_node_count(params) > 0) &&
        gcmp_node_number(gcmp_node_get(group, "step"), &step)) {
        gcmp_see(&options->steps, step, 0.0); /* an empty group takes no steps */
    }
}

/* Record what the first group says, and collect the betas of all. */
static enum gradcmp_status read_groups(struct gradcmp_catalogue *catalogue,
                                       const struct gcmp_node *groups, struct options *options,
                                       struct gradcmp_error *error) {
    static const char *const names[] = {"lr", "weight_decay", "eps", "step"};
    for (size_t i = 0; i < gcmp_node_count(groups) && i < MAX_GROUPS; i++) {
        const struct gcmp_node *group = gcmp_node_item(groups, i);
        look_at_group(group, options);
        for (size_t k = 0; i == 0 && k < sizeof names / sizeof *names; k++) {
            GCMP_TRY(set_scalar(catalogue, "optimizer.", names[k], gcmp_node_get(group, names[k]),
                                error));
        }
    }
    return GRADCMP_OK;
}

/* One optimizer, or several chained under the keys 0, 1, ... */
static enum gradcmp_status read_optimizers(struct gradcmp_catalogue *catalogue,
                                           const struct gcmp_node *optimizer,
                                           struct options *options, struct gradcmp_error *error) {
    const struct gcmp_node *groups = find_groups(optimizer);
    if (groups != NULL) {
        return read_groups(catalogue, groups, options, error);
    }
    for (size_t i = 0; i < gcmp_node_count(optimizer) && i < MAX_OPTIMIZERS; i++) {
        const struct gcmp_node *key, *value;
        int64_t number;
        if (gcmp_node_pair(optimizer, i, &key, &value) && gcmp_node_int(key, &number)) {
            GCMP_TRY(read_groups(catalogue, find_groups(value), options, error));
        }
    }
    return GRADCMP_OK;
}

/* Record one beta; note it where the arguments say another. */
static enum gradcmp_status set_beta(struct gradcmp_catalogue *catalogue,
                                    const struct gcmp_node *args, const char *name, double value,
                                    struct gradcmp_error *error) {
    double said;
    struct gradcmp_setting setting = {.name = name, .kind = GRADCMP_SETTING_FLOAT, .number = value};
    GCMP_TRY(gcmp_catalogue_set(catalogue, &setting, error));
    if (gcmp_node_number(gcmp_node_get(args, name), &said) && (said < value || said > value)) {
        return gcmp_catalogue_note(catalogue, error,
                                   "the arguments say %s = %g, the optimizer was saved with %g",
                                   name, said, value);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_optimizer(struct gradcmp_catalogue *catalogue,
                                          const struct gcmp_node *root,
                                          const struct gcmp_node *args,
                                          struct gradcmp_error *error) {
    struct options options = {.betas = {.count = 0}};
    GCMP_TRY(read_optimizers(catalogue, gcmp_node_get(root, "optimizer"), &options, error));
    const double *betas = gcmp_seen_first(&options.betas);
    if (betas != NULL) {
        GCMP_TRY(set_beta(catalogue, args, "adam_beta1", betas[0], error));
        GCMP_TRY(set_beta(catalogue, args, "adam_beta2", betas[1], error));
    }
    GCMP_TRY(gcmp_set_mixed_betas(catalogue, &options.betas, error));
    return gcmp_set_mixed_steps(catalogue, &options.steps, error);
}

/* A positive integer setting, or 0. */
static uint64_t positive(const struct gradcmp_catalogue *catalogue, const char *name) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(catalogue, name);
    bool usable = setting != NULL && setting->kind == GRADCMP_SETTING_INT && setting->integer > 0;
    return usable ? (uint64_t)setting->integer : 0;
}

static bool is_true(const struct gradcmp_catalogue *catalogue, const char *name) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(catalogue, name);
    return setting != NULL && setting->kind == GRADCMP_SETTING_BOOL && setting->integer != 0;
}

static void set_parallel(struct gradcmp_catalogue *catalogue) {
    struct gradcmp_parallel *parallel = &catalogue->parallel;
    const struct {
        const char *name;
        uint32_t *to;
    } degrees[] = {
        {"tensor_model_parallel_size", &parallel->tp},
        {"pipeline_model_parallel_size", &parallel->pp},
        {"virtual_pipeline_model_parallel_size", &parallel->vp},
        {"data_parallel_size", &parallel->dp},
        {"context_parallel_size", &parallel->cp},
        {"expert_model_parallel_size", &parallel->ep},
        {"expert_tensor_parallel_size", &parallel->etp},
        {"world_size", &parallel->world},
    };
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        uint64_t degree = positive(catalogue, degrees[i].name);
        if (*degrees[i].to == 0 && degree <= UINT32_MAX) {
            *degrees[i].to = (uint32_t)degree;
        }
    }
}

/* The type of the run's arithmetic. With neither flag, it is the type of the parameters. */
static enum gradcmp_dtype find_compute(const struct gradcmp_catalogue *catalogue) {
    if (is_true(catalogue, "bf16")) {
        return GRADCMP_DTYPE_BFLOAT16;
    }
    if (is_true(catalogue, "fp16")) {
        return GRADCMP_DTYPE_FLOAT16;
    }
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(catalogue, "params_dtype");
    return setting != NULL && setting->kind == GRADCMP_SETTING_TEXT ? gcmp_dtype_find(setting->text)
                                                                    : GRADCMP_DTYPE_NONE;
}

static void set_model(struct gradcmp_catalogue *catalogue) {
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {
        {"num_layers", &catalogue->layers},
        {"vocab_size", &catalogue->vocab},
        {"padded_vocab_size", &catalogue->padded_vocab},
        {"num_experts", &catalogue->experts},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (*numbers[i].to == 0) {
            *numbers[i].to = positive(catalogue, numbers[i].name);
        }
    }
    if (catalogue->compute == GRADCMP_DTYPE_NONE) {
        catalogue->compute = find_compute(catalogue);
    }
}

static void set_iteration(struct gradcmp_catalogue *catalogue, const struct gcmp_node *root,
                          const struct gcmp_node *args) {
    int64_t iteration;
    if (catalogue->iteration < 0 && (gcmp_node_int(gcmp_node_get(root, "iteration"), &iteration) ||
                                     gcmp_node_int(gcmp_node_get(args, "iteration"), &iteration))) {
        catalogue->iteration = iteration < 0 ? -1 : iteration;
    }
}

/* The dict of a namespace, or of a dict itself. */
static const struct gcmp_node *dict_of(const struct gcmp_node *args) {
    return args != NULL && args->kind == GCMP_NODE_CALL ? args->as.call.state : args;
}

enum gradcmp_status gcmp_megatron_read_args(struct gradcmp_catalogue *catalogue,
                                            const struct gcmp_node *args,
                                            struct gradcmp_error *error) {
    const struct gcmp_node *dict = dict_of(args);
    GCMP_TRY(set_all(catalogue, "", dict, error));
    set_parallel(catalogue);
    set_model(catalogue);
    set_iteration(catalogue, NULL, dict);
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_megatron_read_run(struct gradcmp_catalogue *catalogue,
                                           const struct gcmp_node *root,
                                           struct gradcmp_error *error) {
    const struct gcmp_node *args = gcmp_node_get(root, "args");
    const struct gcmp_node *dict = dict_of(args);
    const struct gcmp_node *content = gcmp_node_get(root, "content_metadata");
    const struct gcmp_node *type = gcmp_node_get(content, "distrib_optim_sharding_type");
    GCMP_TRY(read_optimizer(catalogue, root, dict, error));
    GCMP_TRY(set_all(catalogue, "", dict, error));
    GCMP_TRY(set_all(catalogue, "content_metadata.", content, error));
    if (catalogue->layout_name == NULL && gcmp_node_text(type) != NULL) {
        catalogue->layout_name = gcmp_arena_dup(catalogue->arena, gcmp_node_text(type));
        if (catalogue->layout_name == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    set_parallel(catalogue);
    set_model(catalogue);
    set_iteration(catalogue, root, dict);
    return GRADCMP_OK;
}

/* Nothing of the file stays: settings hold copies. */
static enum gradcmp_status read_file(struct gradcmp_catalogue *catalogue, uint32_t file,
                                     struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gcmp_torch_file torch;
    uint64_t bytes = gcmp_dir_file_bytes(catalogue->dir, file);
    GCMP_TRY(gcmp_torch_open(catalogue->dir, file, 0, bytes, arena, &torch, error));
    if (torch.root->kind != GCMP_NODE_DICT && torch.root->kind != GCMP_NODE_CALL) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(catalogue->dir, file),
                     torch.pickle->offset_bytes, "expected a dict in common.pt, found %s",
                     gcmp_node_kind_name(torch.root));
    }
    return gcmp_megatron_read_run(catalogue, torch.root, error);
}

enum gradcmp_status gcmp_megatron_read_common(struct gradcmp_catalogue *catalogue, bool *found,
                                              struct gradcmp_error *error) {
    static const char name[] = "common.pt";
    uint32_t file;
    *found = gcmp_dir_kind(catalogue->dir, name) != GCMP_DIR_ABSENT;
    if (!*found) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_dir_add(catalogue->dir, name, sizeof name - 1, &file, error));
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    enum gradcmp_status status = read_file(catalogue, file, &arena, error);
    gcmp_arena_free(&arena);
    return status;
}
