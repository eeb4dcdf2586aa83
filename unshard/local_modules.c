/* Sorts parameters into modules, and finds hidden sizes. */
#include "unshard/local_modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "unshard/dims.h"

struct gcmp_name_parts gcmp_name_split(const char *text) {
    const char *leaf = strrchr(text, '.');
    if (leaf == NULL) {
        return (struct gcmp_name_parts){0, text, 0, text};
    }
    const char *module = leaf;
    while (module > text && module[-1] != '.') {
        module--;
    }
    size_t parent_bytes = module > text ? (size_t)(module - text) - 1 : 0;
    return (struct gcmp_name_parts){parent_bytes, module, (size_t)(leaf - module), leaf + 1};
}

/* How often a size stands in the shapes of a stack of layers. */
struct vote {
    struct vote_key { /* without padding: its bytes are a map's key */
        uint64_t family, size;
    } key;
    size_t matrices, vectors;
};

struct votes {
    struct gcmp_map by_key;
    struct vote *list;
    size_t count;
};

static enum gradcmp_status vote_for(struct votes *votes, uint32_t family, uint64_t size,
                                    bool is_vector, struct gradcmp_error *error) {
    struct vote *fresh = &votes->list[votes->count];
    size_t index;
    fresh->key = (struct vote_key){family, size};
    enum gcmp_map_result result =
        gcmp_map_add(&votes->by_key, &fresh->key, sizeof fresh->key, votes->count, &index);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    votes->count += result == GCMP_MAP_ADDED;
    votes->list[index].matrices += !is_vector;
    votes->list[index].vectors += is_vector;
    return GRADCMP_OK;
}

static enum gradcmp_status vote_all(const struct gcmp_local_modules *modules, struct votes *votes,
                                    struct gradcmp_error *error) {
    for (size_t i = 0; i < modules->count; i++) {
        const struct gcmp_shard *shard = modules->parameters[i].shards;
        uint32_t family = modules->family[i];
        if (family == UINT32_MAX || shard->ndim == 0 || shard->ndim > 2) {
            continue;
        }
        GCMP_TRY(vote_for(votes, family, shard->shape[0], shard->ndim == 1, error));
        if (shard->ndim == 2 && shard->shape[1] != shard->shape[0]) {
            GCMP_TRY(vote_for(votes, family, shard->shape[1], false, error));
        }
    }
    return GRADCMP_OK;
}

/* The hidden size is what most matrices of a stack have on one of their axes, and some vector (a
 * norm) has: every layer begins and ends with it. Two sizes that are as frequent leave it open. */
static void count_votes(const struct votes *votes, uint64_t *hidden, size_t *most) {
    for (size_t i = 0; i < votes->count; i++) {
        const struct vote *vote = &votes->list[i];
        size_t family = (size_t)vote->key.family;
        if (vote->vectors == 0 || vote->matrices < most[family] || vote->matrices == 0) {
            continue;
        }
        hidden[family] = vote->matrices > most[family] ? vote->key.size : 0;
        most[family] = vote->matrices;
    }
}

static enum gradcmp_status find_hidden(struct gcmp_local_modules *modules,
                                       struct gradcmp_error *error) {
    struct votes votes = {.by_key = GCMP_MAP_INIT};
    votes.list = calloc(2 * modules->count + 1, sizeof *votes.list);
    size_t *most = calloc(modules->families.count + 1, sizeof *most);
    modules->hidden = calloc(modules->families.count + 1, sizeof *modules->hidden);
    enum gradcmp_status status = GRADCMP_OK;
    if (votes.list == NULL || most == NULL || modules->hidden == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else {
        status = vote_all(modules, &votes, error);
        if (status == GRADCMP_OK) {
            count_votes(&votes, modules->hidden, most);
        }
    }
    gcmp_map_free(&votes.by_key);
    free(votes.list);
    free(most);
    return status;
}

static bool contains(const char *text, size_t bytes, const char *word) {
    size_t word_bytes = strlen(word);
    for (size_t i = 0; i + word_bytes <= bytes; i++) {
        if (memcmp(text + i, word, word_bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* A word of the parent's last component; shapes of attention and of a gated MLP may be the same. */
static bool is_attention(const char *text, size_t parent_bytes) {
    size_t from = parent_bytes;
    while (from > 0 && text[from - 1] != '.') {
        from--;
    }
    return contains(text + from, parent_bytes - from, "attention") ||
           contains(text + from, parent_bytes - from, "attn");
}

static enum gradcmp_status find_families(struct gcmp_local_modules *modules,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < modules->count; i++) {
        const struct gcmp_shard *shard = modules->parameters[i].shards;
        size_t family;
        modules->family[i] = UINT32_MAX;
        if (shard->local.layer < 0) {
            continue;
        }
        if (gcmp_map_add(&modules->families, shard->local.text, shard->local.layer_digits_at,
                         modules->families.count, &family) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        modules->family[i] = (uint32_t)family;
    }
    return GRADCMP_OK;
}

/* Add a matrix to its module, in front. */
static enum gradcmp_status add_matrix(struct gcmp_local_modules *modules, size_t index,
                                      struct gradcmp_error *error) {
    const struct gcmp_local_parameter *parameter = &modules->parameters[index];
    const char *text = gcmp_local_text(parameter);
    struct gcmp_name_parts parts = gcmp_name_split(text);
    size_t found;
    enum gcmp_map_result result =
        gcmp_map_add(&modules->by_parent, text, parts.parent_bytes, modules->module_count, &found);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_local_module *module = &modules->list[found];
    if (result == GCMP_MAP_ADDED) {
        modules->module_count++;
        module->first = SIZE_MAX;
        module->hidden = modules->hidden[modules->family[index]];
        module->is_attention = is_attention(text, parts.parent_bytes);
        module->ranks = parameter->ranks;
    }
    modules->next[index] = module->first;
    module->first = index;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_local_modules_make(struct gcmp_local_modules *modules,
                                            struct gradcmp_error *error) {
    size_t room = modules->count + 1;
    modules->next = calloc(room, sizeof *modules->next);
    modules->list = calloc(room, sizeof *modules->list);
    modules->family = calloc(room, sizeof *modules->family);
    if (modules->next == NULL || modules->list == NULL || modules->family == NULL ||
        modules->count >= UINT32_MAX) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(find_families(modules, error));
    GCMP_TRY(find_hidden(modules, error));
    for (size_t i = 0; i < modules->count; i++) {
        const struct gcmp_local_parameter *parameter = &modules->parameters[i];
        if (modules->family[i] != UINT32_MAX && parameter->shards->ndim == 2 &&
            strcmp(gcmp_name_split(gcmp_local_text(parameter)).leaf, "weight") == 0) {
            GCMP_TRY(add_matrix(modules, i, error));
        }
    }
    return GRADCMP_OK;
}

void gcmp_local_modules_free(struct gcmp_local_modules *modules) {
    free(modules->next);
    free(modules->list);
    free(modules->family);
    free(modules->hidden);
    gcmp_map_free(&modules->by_parent);
    gcmp_map_free(&modules->families);
}

uint64_t gcmp_local_argument(const struct gcmp_local_modules *modules, const char *name) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(modules->catalogue, name);
    bool is_usable = setting != NULL && setting->kind == GRADCMP_SETTING_INT &&
                     setting->integer > 0 &&
                     setting->integer < INT32_MAX; /* so that products stay below 2^63 */
    return is_usable ? (uint64_t)setting->integer : 0;
}

bool gcmp_local_is_gate(const struct gcmp_local_modules *modules, uint64_t rows) {
    uint64_t stated = modules->catalogue->experts;
    return rows == 1 || (modules->sizes->experts != 0 && rows == modules->sizes->experts) ||
           (stated != 0 && rows == stated);
}

enum gradcmp_status gcmp_local_refuse(const struct gcmp_local_parameter *parameter, const char *why,
                                      struct gradcmp_error *error) {
    const struct gcmp_shard *shard = parameter->shards;
    char shape[GCMP_DIMS_BYTES];
    GCMP_FAIL(
        error, GRADCMP_ERROR_UNSUPPORTED,
        "%s: shape %s on each of %u tensor-parallel ranks does not tell how it is split: %s; save "
        "with --ckpt-format torch_dist --dist-ckpt-optim-fully-reshardable",
        shard->key, gcmp_dims_text(shape, shard->ndim, shard->shape), parameter->ranks, why);
}
