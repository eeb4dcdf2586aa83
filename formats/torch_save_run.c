/* What a trainer says of its run, beside the weights or in a file of its own: transformers'
 * training_args.bin, the args, config or cfg of torch.save's objects. */
#include <string.h>

#include "base/catalogue.h"
#include "formats/torch_save_set.h"

enum gradcmp_status gcmp_pt_set_number(struct gradcmp_catalogue *catalogue, const char *name,
                                       const struct gcmp_node *value, struct gradcmp_error *error) {
    struct gradcmp_setting setting = {.name = name};
    if (value != NULL && value->kind == GCMP_NODE_INT && gcmp_node_int(value, &setting.integer)) {
        setting.kind = GRADCMP_SETTING_INT;
    } else if (gcmp_node_number(value, &setting.number)) {
        setting.kind = GRADCMP_SETTING_FLOAT;
    } else {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_set(catalogue, &setting, error);
}

static bool is_set(const struct gcmp_node *arguments, const char *name) {
    const struct gcmp_node *flag = gcmp_node_get(arguments, name);
    return flag != NULL && flag->kind == GCMP_NODE_BOOL && flag->as.integer != 0;
}

/* The 16-bit type that a word such as "bf16-mixed", "16-mixed" or torch.float16 means; NONE of
 * other words: whether float32 was computed in float32 they do not tell. */
static enum gradcmp_dtype narrow_type(const struct gcmp_node *word) {
    static const char *const bfloats[] = {"bf16",       "bfloat16",  "torch.bfloat16",
                                          "bf16-mixed", "bf16-true", "torch bfloat16"};
    static const char *const floats[] = {"fp16",    "float16", "torch.float16", "16-mixed",
                                         "16-true", "16",      "torch float16"};
    bool is_type = word != NULL && word->kind == GCMP_NODE_GLOBAL;
    const char *text = is_type ? word->as.text.bytes : gcmp_node_text(word);
    for (size_t i = 0; text != NULL && i < sizeof bfloats / sizeof *bfloats; i++) {
        if (strcmp(text, bfloats[i]) == 0) {
            return GRADCMP_DTYPE_BFLOAT16;
        }
    }
    for (size_t i = 0; text != NULL && i < sizeof floats / sizeof *floats; i++) {
        if (strcmp(text, floats[i]) == 0) {
            return GRADCMP_DTYPE_FLOAT16;
        }
    }
    return GRADCMP_DTYPE_NONE;
}

static bool is_on_gpu(const struct gcmp_node *arguments) {
    const char *device = gcmp_node_text(gcmp_node_get(arguments, "device"));
    return device != NULL && strncmp(device, "cuda", 4) == 0;
}

/* The narrow type that the arguments say was computed in; NONE where they say none, or two. Of
 * defaults that only count where something is on (timm's amp_dtype, nanoGPT's dtype), that must be
 * said to be. */
static enum gradcmp_dtype find_compute(const struct gcmp_node *arguments) {
    const struct {
        const char *word;
        bool counts;
    } words[] = {{"mixed_precision", true},
                 {"precision", true},
                 {"amp_dtype", is_set(arguments, "amp") || is_set(arguments, "use_amp")},
                 {"dtype", is_on_gpu(arguments)}};
    bool bf16 = is_set(arguments, "bf16"), fp16 = is_set(arguments, "fp16");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        enum gradcmp_dtype dtype = words[i].counts
                                       ? narrow_type(gcmp_node_get(arguments, words[i].word))
                                       : GRADCMP_DTYPE_NONE;
        bf16 = bf16 || dtype == GRADCMP_DTYPE_BFLOAT16;
        fp16 = fp16 || dtype == GRADCMP_DTYPE_FLOAT16;
    }
    return bf16 == fp16 ? GRADCMP_DTYPE_NONE
           : bf16       ? GRADCMP_DTYPE_BFLOAT16
                        : GRADCMP_DTYPE_FLOAT16;
}

static enum gradcmp_status take_arguments(struct gradcmp_catalogue *catalogue,
                                          const struct gcmp_node *arguments,
                                          struct gradcmp_error *error) {
    static const char *const names[][2] = {{"seed", "seed"},
                                           {"clip_grad", "clip_grad"},
                                           {"max_grad_norm", "clip_grad"},
                                           {"grad_clip", "clip_grad"},
                                           {"micro_batch_size", "micro_batch_size"},
                                           {"per_device_train_batch_size", "micro_batch_size"},
                                           {"global_batch_size", "global_batch_size"}};
    if (gcmp_node_get(arguments, "transformers_version") != NULL) {
        return GRADCMP_OK; /* of a model, as it was published */
    }
    if (catalogue->compute == GRADCMP_DTYPE_NONE) {
        catalogue->compute = find_compute(arguments);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (gcmp_catalogue_setting(catalogue, names[i][1]) == NULL) {
            GCMP_TRY(gcmp_pt_set_number(catalogue, names[i][1],
                                        gcmp_node_get(arguments, names[i][0]), error));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pt_read_run(struct gradcmp_catalogue *catalogue,
                                     const struct gcmp_node *root, struct gradcmp_error *error) {
    static const char *const keys[] = {"args", "config", "cfg"};
    if (root == NULL || (root->kind != GCMP_NODE_DICT && root->kind != GCMP_NODE_CALL)) {
        return GRADCMP_OK;
    }
    if (gcmp_node_get(root, "per_device_train_batch_size") != NULL) {
        return take_arguments(catalogue, root, error); /* training_args.bin */
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct gcmp_node *arguments = gcmp_node_get(root, keys[i]);
        if (arguments != NULL) {
            GCMP_TRY(take_arguments(catalogue, arguments, error));
            GCMP_TRY(take_arguments(catalogue, gcmp_node_get(arguments, "common"), error));
        }
    }
    return GRADCMP_OK;
}
