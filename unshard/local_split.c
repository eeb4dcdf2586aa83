/* Decides how tensor-parallel ranks share each parameter, from shapes; see local_chain.c for the
 * matrices of layers. */
#include <stdlib.h>
#include <string.h>

#include "unshard/local_modules.h"

/* Find a parameter by its global name. */
static struct gcmp_local_parameter *find(const struct gcmp_local_modules *modules,
                                         const char *text) {
    size_t low = 0, high = modules->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(gcmp_local_text(&modules->parameters[middle]), text);
        if (order == 0) {
            return &modules->parameters[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

/* The weight that a bias belongs to: "X.weight" of "X.bias"; NULL where the state has none of it.
 */
static const struct gcmp_local_parameter *weight_of(const struct gcmp_local_modules *modules,
                                                    const char *bias) {
    char text[2 * GCMP_MAX_NAME_BYTES + 256];
    size_t stem = (size_t)(gcmp_name_split(bias).leaf - bias);
    if (stem + sizeof "weight" > sizeof text) {
        return NULL;
    }
    memcpy(text, bias, stem);
    memcpy(text + stem, "weight", sizeof "weight");
    return find(modules, text);
}

/* A bias is split as the rows of its matrix are; that of a norm is whole. */
static enum gradcmp_status split_bias(const struct gcmp_local_modules *modules,
                                      struct gcmp_local_parameter *bias,
                                      struct gradcmp_error *error) {
    const struct gcmp_local_parameter *weight = weight_of(modules, gcmp_local_text(bias));
    if (weight == NULL && strstr(gcmp_local_text(bias), "norm") == NULL) {
        return gcmp_local_refuse(bias, "its matrix has no such state", error);
    }
    if (weight != NULL && weight->shards->ndim > 2) {
        return gcmp_local_refuse(bias, "its weight is no matrix", error);
    }
    if (weight == NULL || weight->split != GCMP_SPLIT_ROWS) {
        return GRADCMP_OK;
    }
    if (bias->shards->shape[0] != gcmp_local_rows(weight)) {
        return gcmp_local_refuse(bias, "its matrix has another number of rows", error);
    }
    bias->split = GCMP_SPLIT_ROWS;
    bias->is_gated = weight->is_gated;
    return GRADCMP_OK;
}

/* What attention keeps for each of its heads (learnable sinks) is split as these are. A rank may
 * have as many heads as there are experts, or one: only the number of heads tells that from what is
 * whole. */
static enum gradcmp_status split_of_heads(const struct gcmp_local_modules *modules,
                                          struct gcmp_local_parameter *vector,
                                          struct gradcmp_error *error) {
    uint64_t size = vector->shards->shape[0];
    uint64_t heads = gcmp_local_argument(modules, "num_attention_heads");
    if (heads != 0 && size == heads) {
        return GRADCMP_OK;
    }
    if (heads == 0 ? gcmp_local_is_gate(modules, size) : size * vector->ranks != heads) {
        return gcmp_local_refuse(vector, "the number of heads does not tell", error);
    }
    vector->split = GCMP_SPLIT_ROWS;
    return GRADCMP_OK;
}

/* Where a router or a gate may be, whose rows no rank shares out: a share of something else (the
 * heads of a state-space model, an expert's columns) may be as many as they are by chance. */
static bool is_of_gate(const struct gcmp_local_parameter *parameter) {
    static const char *const words[] = {"mlp", "router", "gate"};
    const char *text = gcmp_local_text(parameter);
    bool is_found = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        is_found = is_found || strstr(text, words[i]) != NULL;
    }
    return is_found && !parameter->shards->local.is_expert;
}

/* Other vectors of a layer: norms and what is as wide as the hidden size or counts experts are
 * whole on every rank. */
static enum gradcmp_status split_vector(const struct gcmp_local_modules *modules, size_t index,
                                        struct gradcmp_error *error) {
    struct gcmp_local_parameter *vector = &modules->parameters[index];
    const char *text = gcmp_local_text(vector);
    uint64_t size = vector->shards->shape[0];
    if (strcmp(gcmp_name_split(text).leaf, "bias") == 0) {
        return split_bias(modules, vector, error);
    }
    if (strstr(text, "norm") != NULL || size == modules->hidden[modules->family[index]]) {
        return GRADCMP_OK;
    }
    if (strstr(text, "attention") != NULL) {
        return split_of_heads(modules, vector, error);
    }
    return is_of_gate(vector) && gcmp_local_is_gate(modules, size)
               ? GRADCMP_OK
               : gcmp_local_refuse(vector, "it is no norm, no bias and nothing of the hidden size",
                                   error);
}

/* Parameters around the layers: tables of words are split by rows, other embeddings and norms are
 * whole on every rank. */
static enum gradcmp_status split_around(struct gcmp_local_parameter *parameter,
                                        struct gradcmp_error *error) {
    const struct gcmp_shard *shard = parameter->shards;
    if (shard->local.has_vocab_rows && (shard->ndim == 1 || shard->ndim == 2)) {
        bool is_score = shard->shape[0] == 1; /* a head of one output */
        parameter->split = is_score ? GCMP_SPLIT_NONE : GCMP_SPLIT_ROWS;
        return GRADCMP_OK;
    }
    if (shard->local.is_embedding || shard->ndim <= 1) {
        return GRADCMP_OK;
    }
    return gcmp_local_refuse(parameter, "it is no table of words, no embedding and no norm", error);
}

/* Parameters of layers that are no matrix of a module. */
static enum gradcmp_status split_other(const struct gcmp_local_modules *modules, size_t index,
                                       struct gradcmp_error *error) {
    struct gcmp_local_parameter *parameter = &modules->parameters[index];
    const struct gcmp_shard *shard = parameter->shards;
    if (shard->ndim == 0) {
        return GRADCMP_OK;
    }
    if (shard->ndim == 1) {
        return split_vector(modules, index, error);
    }
    if (shard->ndim == 2 && is_of_gate(parameter) && gcmp_local_is_gate(modules, shard->shape[0])) {
        return GRADCMP_OK;
    }
    return gcmp_local_refuse(parameter, "it is no matrix of a linear layer", error);
}

static bool is_matrix(const struct gcmp_local_parameter *parameter) {
    return parameter->shards->ndim == 2 &&
           strcmp(gcmp_name_split(gcmp_local_text(parameter)).leaf, "weight") == 0;
}

static enum gradcmp_status split_all(struct gcmp_local_modules *modules,
                                     struct gradcmp_error *error) {
    GCMP_TRY(gcmp_local_modules_make(modules, error));
    for (size_t i = 0; i < modules->module_count; i++) {
        GCMP_TRY(gcmp_local_chain(modules, &modules->list[i], error));
    }
    for (size_t i = 0; i < modules->count; i++) {
        struct gcmp_local_parameter *parameter = &modules->parameters[i];
        bool is_layers = modules->family[i] != UINT32_MAX;
        if (parameter->ranks == 1 || (is_layers && is_matrix(parameter))) {
            continue;
        }
        GCMP_TRY(is_layers ? split_other(modules, i, error) : split_around(parameter, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_local_split(const struct gradcmp_catalogue *catalogue,
                                     const struct gcmp_local_sizes *sizes,
                                     struct gcmp_local_parameter *parameters, size_t count,
                                     struct gradcmp_error *error) {
    struct gcmp_local_modules modules = {.catalogue = catalogue,
                                         .sizes = sizes,
                                         .parameters = parameters,
                                         .count = count,
                                         .by_parent = GCMP_MAP_INIT,
                                         .families = GCMP_MAP_INIT};
    enum gradcmp_status status = split_all(&modules, error);
    gcmp_local_modules_free(&modules);
    return status;
}
