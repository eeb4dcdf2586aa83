/* Finds weights and optimizers in the object that a file of torch.save holds. Frameworks call them
 * as they like, so what counts is form: an optimizer is a dict of "state" and "param_groups";
 * weights are a dict of tensors.
 *
 * Limits: MAX_DEPTH dicts or lists around what is looked for; MAX_DICTS dicts of tensors;
 * MAX_NAME_BYTES of a name; as many entries as the pickle has bytes, LIST_STEP items of a list that
 * are no dicts counting as one. */
#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"
#include "formats/dcp_keys.h"
#include "formats/plain_names.h"
#include "formats/torch_save_set.h"

enum { MAX_DEPTH = 4, LIST_STEP = 16, MAX_NAME_BYTES = 2048, MAX_DICTS = 64 };

/* A dict of tensors that may be a model's. */
struct candidate {
    const struct gcmp_node *dict;
    const char *path, *word; /* word: the last of the path */
};

struct candidates {
    struct candidate items[MAX_DICTS];
    size_t count;
};

#define PLACE_FAIL(place, code, node, ...)                                                         \
    GCMP_FAIL_AT((place)->error, (code),                                                           \
                 gcmp_dir_file_path((place)->torch->dir, (place)->torch->file),                    \
                 (place)->torch->pickle->offset_bytes + gcmp_node_at(node), "torch: " __VA_ARGS__)

static struct gcmp_arena *arena_of(const struct gcmp_pt_place *place) {
    return place->set->catalogue->arena;
}

/* Take note of looking at one entry: a dict may be in the object many times. */
static enum gradcmp_status visit(struct gcmp_pt_place *place, const struct gcmp_node *node) {
    if (place->visits_left == 0) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, node,
                   "more entries than a pickle of %llu bytes can hold",
                   (unsigned long long)place->torch->pickle->length_bytes);
    }
    place->visits_left--;
    return GRADCMP_OK;
}

/* The text of a key, or an integer in decimal; NULL for other keys (and a text with a NUL). */
static const char *key_text(const struct gcmp_node *key, char *number, size_t capacity) {
    int64_t integer;
    if (gcmp_node_int(key, &integer)) {
        snprintf(number, capacity, "%lld", (long long)integer);
        return number;
    }
    return gcmp_node_text(key);
}

/* Join a path and a word with a dot, in the arena. */
static enum gradcmp_status join_path(const struct gcmp_pt_place *place, const char *path,
                                     const char *word, const char **out) {
    if (strlen(word) > MAX_NAME_BYTES) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, place->torch->root,
                   "a name of %zu bytes, at most %d are read", strlen(word), MAX_NAME_BYTES);
    }
    *out = path[0] == '\0' ? gcmp_arena_dup(arena_of(place), word)
                           : gcmp_arena_format(arena_of(place), "%s.%s", path, word);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    return GRADCMP_OK;
}

static bool is_dict(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_DICT ||
                            (node->kind == GCMP_NODE_CALL && !gcmp_pt_is_tensor(node)));
}

static bool is_list(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_LIST || node->kind == GCMP_NODE_TUPLE);
}

static bool is_optimizer(const struct gcmp_node *node) {
    return is_dict(node) && is_dict(gcmp_node_get(node, "state")) &&
           is_list(gcmp_node_get(node, "param_groups"));
}

static bool has_tensor(const struct gcmp_node *node) {
    for (size_t i = 0; i < gcmp_node_count(node); i++) {
        const struct gcmp_node *key, *value;
        if (gcmp_node_pair(node, i, &key, &value) && gcmp_pt_is_tensor(value)) {
            return true;
        }
    }
    return false;
}

/* --- dicts of tensors --- */

static enum gradcmp_status walk_entry(struct gcmp_pt_place *place, const struct gcmp_node *key,
                                      const struct gcmp_node *value, const char *path,
                                      struct gcmp_pt_tensor about) {
    char number[24];
    const char *word = key_text(key, number, sizeof number);
    if (!gcmp_pt_is_tensor(value)) {
        return GRADCMP_OK;
    }
    if (word == NULL) {
        PLACE_FAIL(place, GRADCMP_ERROR_CORRUPT, key, "expected a name of a tensor, found %s",
                   gcmp_node_kind_name(key));
    }
    GCMP_TRY(join_path(place, path, word, &about.key));
    if (about.kind != GCMP_PT_OTHER) {
        about.name = about.key + (path[0] == '\0' ? 0 : strlen(path) + 1);
    }
    return gcmp_pt_add_tensor(place, value, &about);
}

enum gradcmp_status gcmp_pt_walk_tensors(struct gcmp_pt_place *place, const struct gcmp_node *dict,
                                         const char *path, enum gcmp_pt_kind kind,
                                         const char *state) {
    struct gcmp_pt_tensor about = {.kind = kind, .state = state, .entry = SIZE_MAX};
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key = NULL, *value = NULL;
        GCMP_TRY(visit(place, dict));
        if (gcmp_node_pair(dict, i, &key, &value)) {
            GCMP_TRY(walk_entry(place, key, value, path, about));
        }
    }
    return GRADCMP_OK;
}

/* --- looking for them --- */

static enum gradcmp_status look_into(struct gcmp_pt_place *place, const struct gcmp_node *node,
                                     const char *path, struct candidates *candidates,
                                     unsigned depth);

static enum gradcmp_status look_into_list(struct gcmp_pt_place *place, const struct gcmp_node *list,
                                          const char *path, struct candidates *candidates,
                                          unsigned depth) {
    size_t count = gcmp_node_count(list);
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *item = gcmp_node_item(list, i);
        char number[24];
        const char *below;
        if (is_dict(item) || i % LIST_STEP == 0) { /* a list of numbers may be held often */
            GCMP_TRY(visit(place, list));
        }
        if (is_dict(item)) {
            snprintf(number, sizeof number, "%zu", i);
            GCMP_TRY(join_path(place, path, number, &below));
            GCMP_TRY(look_into(place, item, below, candidates, depth + 1));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status look_into_dict(struct gcmp_pt_place *place, const struct gcmp_node *dict,
                                          const char *path, struct candidates *candidates,
                                          unsigned depth) {
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key = NULL, *value = NULL;
        char number[24];
        const char *below, *word;
        GCMP_TRY(visit(place, dict));
        if (!gcmp_node_pair(dict, i, &key, &value) || !(is_dict(value) || is_list(value)) ||
            (word = key_text(key, number, sizeof number)) == NULL) {
            continue;
        }
        GCMP_TRY(join_path(place, path, word, &below));
        GCMP_TRY(is_dict(value) ? look_into(place, value, below, candidates, depth + 1)
                                : look_into_list(place, value, below, candidates, depth));
    }
    return GRADCMP_OK;
}

/* Read optimizers at once; gather dicts of tensors. */
static enum gradcmp_status look_into(struct gcmp_pt_place *place, const struct gcmp_node *node,
                                     const char *path, struct candidates *candidates,
                                     unsigned depth) {
    if (depth > MAX_DEPTH) {
        return GRADCMP_OK;
    }
    if (is_optimizer(node)) {
        return gcmp_pt_walk_optimizer(place, node, path);
    }
    if (has_tensor(node)) {
        if (candidates->count == MAX_DICTS) {
            PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, node, "more than %d dicts of tensors",
                       MAX_DICTS);
        }
        const char *dot = strrchr(path, '.');
        candidates->items[candidates->count++] =
            (struct candidate){node, path, dot == NULL ? path : dot + 1};
    }
    return look_into_dict(place, node, path, candidates, depth);
}

/* --- which are weights --- */

static bool is_among(const char *const *words, size_t count, const char *word) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* States that whole dicts of tensors are called after; NULL for other words. */
static const char *state_of_word(const char *word) {
    static const char *const gradients[] = {"grad",      "grads",     "gradient",
                                            "gradients", "main_grad", "main_grads"};
    static const char *const states[] = {"exp_avg", "exp_avg_sq", "momentum_buffer"};
    if (is_among(gradients, sizeof gradients / sizeof *gradients, word)) {
        return "main_grad";
    }
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(states[i], word) == 0) {
            return states[i];
        }
    }
    return NULL;
}

/* How many dicts are called a model; the first of them. */
static size_t count_models(const struct candidates *candidates) {
    size_t count = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        count += gcmp_dcp_is_model(candidates->items[i].word);
    }
    return count;
}

/* Names in a bare dict may tell a state ("exp_avg.<name>", "grad.<name>"). */
static enum gradcmp_status name_bare(const struct gcmp_pt_place *place, size_t first) {
    static const char *const clear[] = {"exp_avg",   "exp_avg_sq", "max_exp_avg_sq",
                                        "main_grad", "fp32_param", "momentum_buffer"};
    for (size_t i = first; i < place->set->tensor_count; i++) {
        struct gcmp_pt_tensor *tensor = &place->set->tensors[i];
        struct gcmp_dcp_key key;
        if (!gcmp_plain_parse_name(arena_of(place), tensor->key, GCMP_DCP_TORCH, &key)) {
            GCMP_FAIL_MEMORY(place->error);
        }
        if (key.kind == GCMP_DCP_STATE && key.state != NULL &&
            is_among(clear, sizeof clear / sizeof *clear, key.state)) {
            tensor->kind = GCMP_PT_STATE;
            tensor->name = key.name;
            tensor->state = key.state;
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status walk_candidate(struct gcmp_pt_place *place,
                                          const struct candidate *candidate, bool is_model,
                                          bool is_alone) {
    const char *state = state_of_word(candidate->word);
    size_t first = place->set->tensor_count;
    if (state != NULL) {
        return gcmp_pt_walk_tensors(place, candidate->dict, candidate->path, GCMP_PT_STATE, state);
    }
    GCMP_TRY(gcmp_pt_walk_tensors(place, candidate->dict, candidate->path,
                                  is_model ? GCMP_PT_WEIGHT : GCMP_PT_OTHER, "param"));
    for (size_t i = first; i < place->set->tensor_count && is_model && !is_alone; i++) {
        place->set->tensors[i].name = place->set->tensors[i].key;
    }
    if (is_model && !is_alone) {
        place->set->is_ordered = false; /* dicts stand in the order of the file, not the model's */
    }
    bool is_bare = is_model && candidate->path[0] == '\0';
    return is_bare ? name_bare(place, first) : GRADCMP_OK;
}

/* Dicts called a model are weights; without any, all are (a bare state dict, a generator and a
 * discriminator) but the entries beside others at the top. Of several, names begin with the path.
 */
static enum gradcmp_status walk_candidates(struct gcmp_pt_place *place,
                                           const struct candidates *candidates) {
    size_t models = count_models(candidates), states = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        states += state_of_word(candidates->items[i].word) != NULL;
    }
    size_t others = candidates->count - states;
    for (size_t i = 0; i < candidates->count; i++) {
        const struct candidate *candidate = &candidates->items[i];
        bool is_top = candidate->path[0] == '\0';
        bool is_model = models > 0 ? gcmp_dcp_is_model(candidate->word) : others == 1 || !is_top;
        size_t alike = models > 0 ? models : others;
        GCMP_TRY(walk_candidate(place, candidate, is_model, alike == 1));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status walk_single(struct gcmp_pt_place *place) {
    const char *name = gcmp_dir_file_name(place->torch->dir, place->torch->file);
    const char *slash = strrchr(name, '/'), *stem = slash == NULL ? name : slash + 1;
    const char *dot = strrchr(stem, '.');
    size_t bytes = dot == NULL || dot == stem ? strlen(stem) : (size_t)(dot - stem);
    const char *copy = gcmp_arena_text(arena_of(place), stem, bytes);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    struct gcmp_pt_tensor about = {
        .kind = GCMP_PT_WEIGHT, .key = copy, .name = copy, .state = "param", .entry = SIZE_MAX};
    return gcmp_pt_add_tensor(place, place->torch->root, &about);
}

/* One rank's flat part of a DeepSpeed optimizer, which is no state of a parameter. */
static bool is_deepspeed_part(const struct gcmp_node *root) {
    return is_dict(root) && gcmp_node_get(root, "optimizer_state_dict") != NULL &&
           (gcmp_node_get(root, "ds_config") != NULL || gcmp_node_get(root, "ds_version") != NULL);
}

enum gradcmp_status gcmp_pt_walk(struct gcmp_pt_place *place) {
    const struct gcmp_node *root = place->torch->root;
    struct candidates candidates;
    candidates.count = 0;
    if (is_deepspeed_part(root)) {
        GCMP_FAIL_AT(place->error, GRADCMP_ERROR_UNSUPPORTED,
                     gcmp_dir_file_path(place->torch->dir, place->torch->file), GRADCMP_NO_OFFSET,
                     "one rank's part of a DeepSpeed checkpoint: name the folder that holds them "
                     "all, under the names that DeepSpeed gave them");
    }
    if (gcmp_pt_is_tensor(root)) {
        return walk_single(place);
    }
    if (is_dict(root)) {
        GCMP_TRY(look_into(place, root, "", &candidates, 0));
    } else if (is_list(root)) {
        GCMP_TRY(look_into_list(place, root, "", &candidates, 0));
    }
    return walk_candidates(place, &candidates);
}
