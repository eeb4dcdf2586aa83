/* The order of registration. */
#include "unshard/registration.h"

#include <stdlib.h>
#include <string.h>

#include "base/word.h"

/* Modules in the order in which their parents make them: one list is in order for all parents. */
static const char *const MODULES[] = {
    /* of a model of vision and language, of the language model, of its embedding */
    "language_model", "vision_model", "vision_projection", "embedding", "word_embeddings",
    /* of a vision tower (and position_embeddings of the embedding) */
    "embedder", "ln_pre", "ln_post", "conv1", "position_embeddings", "tokentype_embeddings",
    "encoder", "decoder", "mtp", "lm_head", "output_layer", "binary_head", "pooler",
    /* of a block; of multi-token prediction, whose final_layernorm is the last as well */
    "layers", "enorm", "hnorm", "eh_proj", "transformer_layer", "final_layernorm", "final_norm",
    /* of a layer */
    "input_layernorm", "self_attention", "pre_cross_attn_layernorm", "cross_attention",
    "pre_mlp_layernorm", "mlp",
    /* of attention */
    "core_attention", "linear_proj", "linear_q", "linear_kv", "linear_q_proj", "linear_q_down_proj",
    "linear_q_up_proj", "linear_kv_down_proj", "linear_kv_up_proj", "linear_qkv", "q_layernorm",
    "k_layernorm", "kv_layernorm",
    /* of state-space layers and mixers */
    "mixer", "in_proj", "conv1d", "norm", "out_norm", "out_proj",
    /* of an MLP (a norm under the name of linear_fc1 is before the router) */
    "linear_fc1", "linear_fc2", "router", "experts", "shared_experts",
    /* of heads */
    "dense", "layer_norm"};

/* A module's own parameters, in their order. */
static const char *const TENSORS[] = {
    "layer_norm_weight", "layer_norm_bias", "weight",      "bias",
    "dt_bias",           "A_log",           "D",           "softmax_offset",
    "gate_weight",       "mask_token",      "class_token", "position_embeddings"};

/* Parts of one tensor that are stored each for itself, in their order. */
static const char *const PARTS[] = {"query", "key", "value", "z",    "x",
                                    "B",     "C",   "dt",    "beta", "alpha"};

enum { MODULE_COUNT = sizeof MODULES / sizeof MODULES[0] };
enum { TENSOR_COUNT = sizeof TENSORS / sizeof TENSORS[0] };
enum { PART_COUNT = sizeof PARTS / sizeof PARTS[0] };

/* Entries of a path: own tensors before modules; at each, those that are known first. Numbers are
 * of layers and experts, and never stand beside words. */
#define TENSOR_UNKNOWN UINT32_C(0x1000000)
#define PATH_MODULE    UINT32_C(0x40000000)
#define MODULE_UNKNOWN UINT32_C(0x80000000)

static bool is_module(uint32_t entry) {
    return entry >= PATH_MODULE;
}

static bool is_unknown(uint32_t entry) {
    return entry >= (is_module(entry) ? MODULE_UNKNOWN : TENSOR_UNKNOWN);
}

/* One component of a name. */
struct word {
    const char *at;
    size_t bytes;
};

struct words {
    struct word list[GCMP_REGISTERED_DEPTH];
    size_t count;
};

static bool is_word(struct word word, const char *text) {
    return gcmp_is_word(word.at, word.bytes, text);
}

/* Index of a word in a list; `unknown` and more where it has none, by its letters. */
static uint32_t find_word(struct word word, const char *const *list, uint32_t count,
                          uint32_t unknown) {
    for (uint32_t i = 0; i < count; i++) {
        if (is_word(word, list[i])) {
            return i;
        }
    }
    uint32_t hash = 0;
    for (size_t i = 0; i < word.bytes; i++) {
        hash = 31 * hash + (unsigned char)word.at[i];
    }
    uint32_t first = word.bytes > 0 ? (unsigned char)word.at[0] : 0;
    uint32_t second = word.bytes > 1 ? (unsigned char)word.at[1] : 0;
    return unknown + (first << 16) + (second << 8) + (hash >> 4) % 256;
}

static uint32_t tensor_entry(struct word word) {
    return find_word(word, TENSORS, TENSOR_COUNT, TENSOR_UNKNOWN);
}

static uint32_t module_entry(struct word word) {
    return PATH_MODULE + find_word(word, MODULES, MODULE_COUNT, MODULE_UNKNOWN - PATH_MODULE);
}

static bool is_number(struct word word, uint32_t *number) {
    *number = 0;
    for (size_t i = 0; i < word.bytes; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') {
            return false;
        }
        *number = *number > INT32_MAX / 16 ? *number : 10 * *number + (uint32_t)(word.at[i] - '0');
    }
    return word.bytes > 0;
}

/* Components beyond the limit stay in the last one, which then is not known. */
static struct words split(const char *name) {
    struct words words = {.count = 0};
    while (words.count + 1 < GCMP_REGISTERED_DEPTH && strchr(name, '.') != NULL) {
        size_t bytes = strcspn(name, ".");
        words.list[words.count++] = (struct word){name, bytes};
        name += bytes + 1;
    }
    words.list[words.count++] = (struct word){name, strlen(name)};
    return words;
}

static void add(struct gcmp_registered *entry, uint32_t value) {
    entry->path[entry->depth++] = value;
}

static bool is_part_of(const struct words *words) {
    const struct word *last = &words->list[words->count - 1];
    return words->count > 1 && (is_word(last[-1], "weight") || is_word(last[-1], "bias"));
}

/* Add the last component, or of a tensor in parts the last two. */
static void add_tensor(const struct words *words, struct gcmp_registered *entry) {
    const struct word *last = &words->list[words->count - 1];
    if (!is_part_of(words)) {
        add(entry, tensor_entry(*last));
        return;
    }
    entry->whole_bytes = (uint16_t)(last->at - 1 - words->list[0].at);
    add(entry, tensor_entry(last[-1]));
    uint32_t part = find_word(*last, PARTS, PART_COUNT, TENSOR_UNKNOWN);
    add(entry, part < PART_COUNT ? PART_COUNT - part : part);
}

/* input_layernorm under the name of the fused one. */
static bool is_norm_before(const struct words *words, size_t i) {
    return i + 3 == words->count && is_word(words->list[i], "self_attention") &&
           is_word(words->list[i + 1], "linear_qkv") && words->list[i + 2].bytes > 11 &&
           memcmp(words->list[i + 2].at, "layer_norm_", 11) == 0;
}

static bool is_expert_number(const struct words *words, size_t i) {
    return i >= 2 && is_word(words->list[i - 1], "experts") &&
           is_word(words->list[i - 2], "experts");
}

/* Add a component that is no tensor. The first number is that of a layer, which no stage cuts. */
static void add_module(struct word word, struct gcmp_registered *entry) {
    uint32_t number;
    bool is_numbered = is_number(word, &number);
    add(entry, is_numbered ? PATH_MODULE + number : module_entry(word));
    if (entry->unit_depth == 0 && (is_numbered || is_word(word, "embedding"))) {
        entry->unit_depth = entry->depth;
    }
}

/* Make the path of one name. */
static void describe(const char *name, struct gcmp_modules modules, struct gcmp_registered *entry) {
    static const struct word norm = {"input_layernorm", 15};
    struct words words = split(name);
    bool is_part = is_part_of(&words), is_norm = false;
    for (size_t i = 0; i + (is_part ? 2 : 1) < words.count && !is_norm; i++) {
        uint32_t number;
        if (is_expert_number(&words, i) && is_number(words.list[i], &number)) {
            entry->expert = number;
            if (modules.experts_are_grouped) {
                continue;
            }
        }
        is_norm = !modules.norms_are_fused && is_norm_before(&words, i);
        add_module(is_norm ? norm : words.list[i], entry);
    }
    entry->unit_depth = entry->unit_depth == 0 ? entry->depth : entry->unit_depth;
    add_tensor(&words, entry);
    if (entry->expert >= 0 && modules.experts_are_grouped) {
        add(entry, PATH_MODULE + (uint32_t)entry->expert);
    }
}

/* Index of the first entry in which two paths differ. */
static size_t differ_at(const struct gcmp_registered *a, const struct gcmp_registered *b) {
    size_t i = 0;
    while (i < a->depth && i < b->depth && a->path[i] == b->path[i]) {
        i++;
    }
    return i;
}

static int compare(const void *left, const void *right) {
    const struct gcmp_registered *a = left, *b = right;
    size_t i = differ_at(a, b);
    if (i < a->depth && i < b->depth) {
        return a->path[i] < b->path[i] ? -1 : 1;
    }
    if (a->depth != b->depth) {
        return a->depth < b->depth ? -1 : 1;
    }
    int order = strcmp(a->parameter->name, b->parameter->name);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

/* Nothing but the name has put one entry before the other, or a module of no known place. A
 * module's own tensors are before its modules, whatever they are called. */
static bool is_guess(const struct gcmp_registered *a, const struct gcmp_registered *b) {
    size_t i = differ_at(a, b);
    if (i == a->depth || i == b->depth) {
        return true;
    }
    bool are_alike = is_module(a->path[i]) == is_module(b->path[i]);
    return are_alike && (is_unknown(a->path[i]) || is_unknown(b->path[i]));
}

/* "X" where the name is "X<words>", and nothing or a module stands before them. */
static bool ends_with(const char *name, const char *words, size_t *bytes) {
    size_t all = strlen(name), tail = strlen(words);
    *bytes = all - tail;
    return all >= tail && strcmp(name + all - tail, words) == 0 &&
           (all == tail || name[all - tail - 1] == '.');
}

/* Where no output layer is stored, it is tied to the embedding. */
static size_t add_output(const struct gradcmp_model *model, struct gcmp_modules modules,
                         struct gcmp_registered *list) {
    static const char words[] = "embedding.word_embeddings.weight",
                      output[] = "output_layer.weight";
    size_t bytes, prefix = 0;
    const struct gcmp_registered *embedding = NULL;
    for (size_t i = 0; i < model->count; i++) {
        if (ends_with(model->parameters[i].name, output, &bytes)) {
            return model->count;
        }
        if (embedding == NULL && ends_with(model->parameters[i].name, words, &bytes)) {
            embedding = &list[i];
            prefix = bytes;
        }
    }
    char name[256];
    if (embedding == NULL || prefix + sizeof output > sizeof name) {
        return model->count;
    }
    memcpy(name, embedding->parameter->name, prefix);
    memcpy(name + prefix, output, sizeof output);
    struct gcmp_registered *entry = &list[model->count];
    *entry = (struct gcmp_registered){.parameter = embedding->parameter,
                                      .index = embedding->index,
                                      .expert = -1,
                                      .is_output = true};
    describe(name, modules, entry);
    return model->count + 1;
}

size_t gcmp_registration_order(const struct gradcmp_model *model, struct gcmp_modules modules,
                               struct gcmp_registered *list, const char **unknown) {
    for (size_t i = 0; i < model->count; i++) {
        list[i] =
            (struct gcmp_registered){.parameter = &model->parameters[i], .index = i, .expert = -1};
        describe(model->parameters[i].name, modules, &list[i]);
    }
    size_t count = add_output(model, modules, list);
    qsort(list, count, sizeof *list, compare);
    *unknown = NULL;
    for (size_t i = 1; i < count && *unknown == NULL; i++) {
        *unknown = is_guess(&list[i - 1], &list[i]) ? list[i].parameter->name : NULL;
    }
    return count;
}

bool gcmp_registered_apart(const struct gcmp_registered *a, const struct gcmp_registered *b) {
    return a->unit_depth != b->unit_depth || differ_at(a, b) < a->unit_depth;
}

bool gcmp_registered_together(const struct gcmp_registered *a, const struct gcmp_registered *b) {
    return a->whole_bytes != 0 && a->whole_bytes == b->whole_bytes &&
           strncmp(a->parameter->name, b->parameter->name, a->whole_bytes) == 0;
}

bool gcmp_registered_embedding(const struct gcmp_registered *entry) {
    return !entry->is_output && strncmp(entry->parameter->name, "embedding.", 10) == 0;
}
