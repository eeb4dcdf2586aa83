/* The order of registration. */
#include "unshard/registration.h"

#include <stdlib.h>
#include <string.h>

/* Modules of a transformer layer, in the order in which they are made. A name is of the last entry
 * whose words it has behind the layer's index; so longer entries follow their prefixes. */
enum layer_module { UNKNOWN_MODULE = 1000 };
static const struct {
    const char *words;
    unsigned rank;
} LAYER_MODULES[] = {
    {"input_layernorm.", 1},
    {"self_attention.", 19},
    {"self_attention.linear_proj.", 10},
    {"self_attention.linear_q_proj.", 11},
    {"self_attention.linear_q_down_proj.", 12},
    {"self_attention.linear_q_up_proj.", 13},
    {"self_attention.linear_kv_down_proj.", 14},
    {"self_attention.linear_kv_up_proj.", 15},
    {"self_attention.linear_qkv.", 16},
    {"self_attention.q_layernorm.", 17},
    {"self_attention.k_layernorm.", 18},
    {"self_attention.kv_layernorm.", 18},
    {"pre_cross_attn_layernorm.", 20},
    {"cross_attention.", 29},
    {"cross_attention.linear_proj.", 21},
    {"cross_attention.linear_q.", 22},
    {"cross_attention.linear_kv.", 23},
    {"pre_mlp_layernorm.", 30},
    {"mlp.", 39},
    {"mlp.linear_fc1.", 31},
    {"mlp.linear_fc2.", 32},
    {"mlp.router.", 33},
    {"mlp.experts.", 34},
    {"mlp.shared_experts.", 38},
    {"mlp.shared_experts.linear_fc1.", 35},
    {"mlp.shared_experts.linear_fc2.", 36},
};

/* Parts of the model around its layers. */
static const struct {
    const char *words;
    unsigned rank;
} MODEL_MODULES[] = {
    {"embedding.word_embeddings.", 1},
    {"embedding.position_embeddings.", 2},
    {"embedding.tokentype_embeddings.", 3},
    {"decoder.final_layernorm.", 10},
    {"mtp.", 11},
    {"output_layer.", 12},
};

static bool starts_with(const char *text, const char *words) {
    return strncmp(text, words, strlen(words)) == 0;
}

/* Rank of the tensor within its module: a fused norm, then weight, then bias. */
static unsigned tensor_rank(const char *name) {
    static const char *const order[] = {"layer_norm_weight", "layer_norm_bias", "weight", "bias"};
    const char *dot = strrchr(name, '.');
    const char *last = dot == NULL ? name : dot + 1;
    unsigned rank = 0;
    while (rank < 4 && strcmp(last, order[rank]) != 0) {
        rank++;
    }
    return rank;
}

/* The number behind `words` in a name, -1 without; *behind is what follows the number's dot. */
static int64_t number_behind(const char *name, const char *words, const char **behind) {
    const char *found = strstr(name, words);
    *behind = name;
    if (found == NULL) {
        return -1;
    }
    char *end;
    const char *digits = found + strlen(words);
    long long number = strtoll(digits, &end, 10);
    if (end == digits || *end != '.' || number < 0) {
        return -1;
    }
    *behind = end + 1;
    return number;
}

static void find_in_layer(const char *tail, struct gcmp_modules modules,
                          struct gcmp_registered *out) {
    out->module = UNKNOWN_MODULE;
    for (size_t i = 0; i < sizeof LAYER_MODULES / sizeof LAYER_MODULES[0]; i++) {
        if (starts_with(tail, LAYER_MODULES[i].words)) {
            out->module = LAYER_MODULES[i].rank;
        }
    }
    if (!modules.norms_are_fused && starts_with(tail, "self_attention.linear_qkv.layer_norm_")) {
        out->module = 1; /* input_layernorm under the name of the fused one */
    }
    const char *matrix;
    out->expert = number_behind(tail, "experts.experts.", &matrix);
    if (out->expert >= 0) {
        out->matrix = starts_with(matrix, "linear_fc1.") ? 1 : 2;
    }
}

static void find_around(const char *name, struct gcmp_registered *out) {
    out->module = UNKNOWN_MODULE;
    for (size_t i = 0; i < sizeof MODEL_MODULES / sizeof MODEL_MODULES[0]; i++) {
        if (starts_with(name, MODEL_MODULES[i].words)) {
            out->module = MODEL_MODULES[i].rank;
        }
    }
    out->layer = starts_with(name, "embedding.") ? -1 : INT64_MAX;
}

static int compare(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int compare_grouped(const void *left, const void *right) {
    const struct gcmp_registered *a = left, *b = right;
    int order = a->layer < b->layer ? -1 : a->layer > b->layer;
    order = order != 0 ? order : compare(a->module, b->module);
    order = order != 0 ? order : compare(a->matrix, b->matrix);
    order = order != 0 ? order : compare(a->tensor, b->tensor);
    order = order != 0 ? order : a->expert < b->expert ? -1 : a->expert > b->expert;
    return order != 0 ? order : compare(a->index, b->index);
}

static int compare_sequential(const void *left, const void *right) {
    const struct gcmp_registered *a = left, *b = right;
    int order = a->layer < b->layer ? -1 : a->layer > b->layer;
    order = order != 0 ? order : compare(a->module, b->module);
    order = order != 0 ? order : a->expert < b->expert ? -1 : a->expert > b->expert;
    return order != 0 ? order : compare_grouped(left, right);
}

void gcmp_registration_order(const struct gradcmp_model *model, struct gcmp_modules modules,
                             struct gcmp_registered *list) {
    for (size_t i = 0; i < model->count; i++) {
        const char *name = model->parameters[i].name, *tail;
        list[i] = (struct gcmp_registered){.parameter = &model->parameters[i], .index = i};
        list[i].expert = -1;
        list[i].tensor = tensor_rank(name);
        list[i].layer = number_behind(name, "decoder.layers.", &tail);
        if (list[i].layer >= 0) {
            find_in_layer(tail, modules, &list[i]);
        } else {
            find_around(name, &list[i]);
        }
    }
    qsort(list, model->count, sizeof *list,
          modules.experts_are_grouped ? compare_grouped : compare_sequential);
}
