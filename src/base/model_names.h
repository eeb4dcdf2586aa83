/* What readers and unsharding both know of names of a model's tensors. */
#ifndef GCMP_BASE_MODEL_NAMES_H
#define GCMP_BASE_MODEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* True for Megatron's buffers: tensors of a state dict that are no parameters, so that no optimizer
 * has a state of them (moe/router.py, rotary_pos_embedding.py). */
static inline bool gcmp_name_is_buffer(const char *name) {
    static const char *const ends[] = {".expert_bias", ".local_tokens_per_expert", ".inv_freq"};
    size_t name_bytes = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t bytes = strlen(ends[i]);
        if (name_bytes > bytes && strcmp(name + name_bytes - bytes, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* True for what torch's batch norms keep beside their parameters (nn/modules/batchnorm.py); no
 * optimizer has a state of it. */
static inline bool gcmp_name_is_norm_buffer(const char *name) {
    static const char *const words[] = {"running_mean", "running_var", "num_batches_tracked"};
    const char *dot = strrchr(name, '.'), *word = dot == NULL ? name : dot + 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* Megatron's T5 keeps modules of its modules under names of its own as well (models/T5/t5_model.py:
 * position_embeddings, output_layer). Its state dict has both names of a parameter, its optimizer
 * the model's own. Returns that one; NULL for other names. */
static inline const char *gcmp_name_of_own(const char *name) {
    static const char *const names[][2] = {{"embedding.", "position_embeddings.weight"},
                                           {"lm_head.", "output_layer.bias"},
                                           {"lm_head.", "output_layer.weight"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes = strlen(names[i][0]);
        if (strncmp(name, names[i][0], bytes) == 0 && strcmp(name + bytes, names[i][1]) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

/* Names of the parameters of DeepSpeed's PipelineModule (runtime/pipe/module.py): "N.rest" of
 * module N, and "tied_modules.KEY.rest" of one that stands in several places. */
enum { GCMP_MODULE_DIGITS = 7 };

/* The rest of the name of a numbered module's parameter; NULL for other names. */
static inline const char *gcmp_rest_of_module(const char *name) {
    size_t digits = strspn(name, "0123456789");
    bool is_module = digits > 0 && digits <= GCMP_MODULE_DIGITS && name[digits] == '.';
    return is_module && name[digits + 1] != '\0' ? name + digits + 1 : NULL;
}

/* The rest of the name of a tied module's parameter; NULL for other names. */
static inline const char *gcmp_rest_of_tied(const char *name) {
    static const char prefix[] = "tied_modules.";
    bool is_tied = strncmp(name, prefix, sizeof prefix - 1) == 0;
    const char *dot = is_tied ? strchr(name + sizeof prefix - 1, '.') : NULL;
    return dot != NULL && dot[1] != '\0' ? dot + 1 : NULL;
}

#endif
