/* Finds weights and optimizers in the object that a file of torch.save holds. Frameworks call them
 * as they like, so what counts is form: an optimizer is a dict of "state" and "param_groups", the
 * state of one parameter a dict with "exp_avg" or the like; weights are a dict of tensors.
 *
 * Limits: MAX_DEPTH dicts or lists around a dict of tensors, unless it is in a model;
 * MOST_DEPTH around anything that is looked for; MAX_OPTIMIZERS;
 * MAX_NAME_BYTES of a name and of a path; as many entries as the pickle has bytes (see
 * gcmp_pt_visit), LIST_STEP items of a list that are no dicts counting as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "base/text.h"
#include "formats/dcp_keys.h"
#include "formats/torch_save_models.h"

enum {
    MAX_DEPTH = 4,
    MOST_DEPTH = 256,
    LIST_STEP = 16,
    MAX_NAME_BYTES = 2048,
    MAX_OPTIMIZERS = 1 << 14,
    MAX_STATES = 64,       /* of one parameter */
    MOST_PASSED = 1 << 16, /* tensors of no dict that are counted */
    LEAST_BARREN = 16      /* entries of a dict or list that is remembered to hold nothing */
};

/* Looking for them. */
struct search {
    struct gcmp_pt_place *place;
    struct gcmp_text path; /* of what is looked at */
    /* By address: dicts below MAX_DEPTH, for objects may hold each other (-> 0), and what holds
     * nothing from some depth on, for many may hold it (-> 1 + depth). */
    struct gcmp_map seen;
    const struct gcmp_node *above[MOST_DEPTH + 1]; /* what it is in, by depth */
    struct gcmp_pt_where where;                    /* what the words of the path tell */
    struct gcmp_pt_dict *dicts;
    size_t count, capacity; /* of dicts */
    size_t passed;          /* tensors that were passed over */
};

/* What stands in a dict, or in a list. */
struct entry {
    const struct gcmp_node *key; /* NULL: in a list */
    const char *word;            /* the key, or the place in the list, as text */
    const struct gcmp_node *value;
    const char *above; /* the word that the dict stands under; "" in a list */
};

#define PLACE_FAIL(place, code, node, ...)                                                         \
    GCMP_FAIL_AT((place)->error, (code),                                                           \
                 gcmp_dir_file_path((place)->torch->dir, (place)->torch->file),                    \
                 (place)->torch->pickle->offset_bytes + gcmp_node_at(node), "torch: " __VA_ARGS__)

static struct gcmp_arena *arena_of(const struct gcmp_pt_place *place) {
    return place->set->catalogue->arena;
}

enum gradcmp_status gcmp_pt_visit(struct gcmp_pt_place *place, const struct gcmp_node *node,
                                  size_t bytes) {
    enum { BYTES_PER_VISIT = 16 };
    uint64_t visits = 1 + bytes / BYTES_PER_VISIT;
    if (place->visits_left < visits) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, node,
                   "more entries than a pickle of %llu bytes can hold",
                   (unsigned long long)place->torch->pickle->length_bytes);
    }
    place->visits_left -= visits;
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

static enum gradcmp_status check_word(const struct gcmp_pt_place *place, const char *word) {
    if (strlen(word) > MAX_NAME_BYTES) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, place->torch->root,
                   "a name of %zu bytes, at most %d are read", strlen(word), MAX_NAME_BYTES);
    }
    return GRADCMP_OK;
}

/* Join a path and a word with a dot, in the arena. */
static enum gradcmp_status join_path(struct gcmp_pt_place *place, const char *path,
                                     const char *word, const char **out) {
    GCMP_TRY(check_word(place, word));
    GCMP_TRY(gcmp_pt_visit(place, place->torch->root,
                           GCMP_PT_TENSOR_BYTES + strlen(path) + strlen(word)));
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

static bool is_among(const char *const *words, size_t count, const char *word) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
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
    bool is_array = word != NULL && gcmp_torch_is_array(value); /* some save gradients so */
    if (!gcmp_pt_is_tensor(value) && !is_array) {
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
        GCMP_TRY(gcmp_pt_visit(place, dict, 0));
        if (gcmp_node_pair(dict, i, &key, &value)) {
            GCMP_TRY(walk_entry(place, key, value, path, about));
        }
    }
    return GRADCMP_OK;
}

/* --- looking for them --- */

/* True for the tensors that an optimizer keeps of one parameter. What is under a number, or a word
 * that is no name of a parameter, must show it more clearly: others keep averages as well. */
static bool is_parameter_state(const struct entry *entry) {
    const struct gcmp_node *node = entry->value;
    if (!is_dict(node) || gcmp_node_count(node) > MAX_STATES) {
        return false;
    }
    bool has_first = gcmp_pt_is_tensor(gcmp_node_get(node, "exp_avg"));
    bool has_second = gcmp_pt_is_tensor(gcmp_node_get(node, "exp_avg_sq"));
    bool has_momentum = gcmp_pt_is_tensor(gcmp_node_get(node, "momentum_buffer"));
    const char *name = gcmp_node_text(entry->key);
    bool is_clear =
        (name != NULL && strchr(name, '.') != NULL) || strcmp(entry->above, "state") == 0;
    return (has_first && has_second) || (is_clear && (has_first || has_second || has_momentum));
}

/* True for the name of a tensor in a flattened optimizer. */
static bool is_flattened(const char *name) {
    static const char *const words[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step",
                                        "momentum_buffer"};
    const char *dot = strrchr(name, '.');
    return strncmp(name, "state.", 6) == 0 || strncmp(name, "param_groups.", 13) == 0 ||
           (dot != NULL && is_among(words, sizeof words / sizeof *words, dot + 1));
}

/* True where all tensors of a dict have such names, and there is one. */
static bool tells_states(const struct gcmp_node *dict) {
    bool found = false;
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key, *value;
        if (gcmp_node_pair(dict, i, &key, &value) && gcmp_pt_is_tensor(value)) {
            const char *name = gcmp_node_text(key);
            if (name == NULL || !is_flattened(name)) {
                return false;
            }
            found = true;
        }
    }
    return found;
}

/* The path as a text of the catalogue. */
static enum gradcmp_status keep_path(const struct search *search, const char **out) {
    const struct gcmp_pt_place *place = search->place;
    if (search->path.length_bytes > MAX_NAME_BYTES) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, place->torch->root,
                   "a path of %zu bytes, at most %d are read", search->path.length_bytes,
                   MAX_NAME_BYTES);
    }
    *out =
        search->path.length_bytes == 0 ? "" : gcmp_arena_dup(arena_of(place), search->path.bytes);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_optimizer(struct search *search, const struct gcmp_node *node) {
    struct gcmp_pt_place *place = search->place;
    const char *path;
    if (place->set->optimizer_count == MAX_OPTIMIZERS) {
        PLACE_FAIL(place, GRADCMP_ERROR_LIMIT, node, "more than %d optimizers", MAX_OPTIMIZERS);
    }
    GCMP_TRY(keep_path(search, &path));
    return gcmp_pt_walk_optimizer(place, node, path);
}

static enum gradcmp_status add_dict(struct search *search, const struct gcmp_node *node,
                                    const char *word, bool has_states) {
    const char *path;
    GCMP_TRY(gcmp_pt_visit(search->place, node, search->path.length_bytes));
    GCMP_TRY(keep_path(search, &path));
    if (!gcmp_grow(&search->dicts, search->count, &search->capacity, sizeof *search->dicts)) {
        GCMP_FAIL_MEMORY(search->place->error);
    }
    if (gcmp_dcp_is_model(word) && search->where.root_bytes == 0) {
        search->where.root_bytes = search->path.length_bytes;
    }
    search->dicts[search->count++] = (struct gcmp_pt_dict){
        .node = node,
        .path = path,
        .word = path + strlen(path) - strlen(word),
        .where = search->where,
        .has_states = has_states,
    };
    return GRADCMP_OK;
}

static enum gradcmp_status add_seen(struct search *search, const struct gcmp_node *node,
                                    size_t value, bool *is_new) {
    const struct gcmp_node **key = gcmp_arena_alloc(arena_of(search->place), 1, sizeof *key);
    if (key == NULL) {
        GCMP_FAIL_MEMORY(search->place->error);
    }
    *key = node;
    enum gcmp_map_result result = gcmp_map_add(&search->seen, key, sizeof *key, value, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(search->place->error);
    }
    *is_new = result == GCMP_MAP_ADDED;
    return GRADCMP_OK;
}

/* An object is not looked at in itself, and far down each is looked at once; *is_new is false where
 * it was. */
static enum gradcmp_status mark_seen(struct search *search, const struct gcmp_node *node,
                                     unsigned depth, bool *is_new) {
    *is_new = true;
    for (unsigned i = 0; i < depth; i++) {
        *is_new = *is_new && search->above[i] != node;
    }
    if (depth <= MAX_DEPTH || !*is_new) {
        return GRADCMP_OK;
    }
    return add_seen(search, node, 0, is_new);
}

/* Count a tensor that is passed over where it stands: in a list, or far down. Nothing is refused
 * for that. */
static enum gradcmp_status pass_over(struct search *search, const struct gcmp_node *tensor) {
    struct gradcmp_catalogue *catalogue = search->place->set->catalogue;
    struct gradcmp_error error = {0};
    struct gradcmp_extent view;
    uint64_t elems = 0;
    if (search->passed == MOST_PASSED) { /* many references may be to one tensor */
        catalogue->unclaimed_is_least = true;
        return GRADCMP_OK;
    }
    search->passed++;
    enum gradcmp_status status = gcmp_torch_tensor(search->place->torch, tensor, &view, &error);
    if (status == GRADCMP_OK && (!gcmp_dtype_is_float((enum gradcmp_dtype)view.dtype) ||
                                 (gcmp_product(view.shape, view.ndim, &elems) && elems <= 1))) {
        return GRADCMP_OK;
    }
    catalogue->passed_elems = gcmp_add_saturated(catalogue->passed_elems, elems);
    if (catalogue->unclaimed_count++ == 0) {
        return keep_path(search, &catalogue->unclaimed_first);
    }
    return GRADCMP_OK;
}

/* The tensors of a list in a list. */
static enum gradcmp_status pass_over_list(struct search *search, const struct gcmp_node *list) {
    size_t count = gcmp_node_count(list), cost = 1 + count / LIST_STEP;
    if (MOST_PASSED - search->passed < cost) {
        search->place->set->catalogue->unclaimed_is_least = true;
        return GRADCMP_OK;
    }
    search->passed += cost;
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *item = gcmp_node_item(list, i);
        if (gcmp_pt_is_tensor(item)) {
            GCMP_TRY(pass_over(search, item));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status pass_over_dict(struct search *search, const struct gcmp_node *dict) {
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key, *value;
        if (gcmp_node_pair(dict, i, &key, &value) && gcmp_pt_is_tensor(value)) {
            GCMP_TRY(pass_over(search, value));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status look_into(struct search *search, const struct gcmp_node *node,
                                     const char *word, unsigned depth);

static enum gradcmp_status look_below(struct search *search, const struct entry *entry,
                                      unsigned depth) {
    size_t length = search->path.length_bytes;
    struct gcmp_pt_where where = search->where;
    GCMP_TRY(check_word(search->place, entry->word));
    gcmp_text_addf(&search->path, "%s%s", length == 0 ? "" : ".", entry->word);
    if (search->path.failed) {
        GCMP_FAIL_MEMORY(search->place->error);
    }
    gcmp_pt_enter(&search->where, entry->word, search->path.length_bytes);
    enum gradcmp_status status;
    if (is_parameter_state(entry) && !is_optimizer(entry->value)) {
        const char *path;
        status = keep_path(search, &path);
        status = status == GRADCMP_OK
                     ? gcmp_pt_walk_state(search->place, entry->key, entry->value, path)
                     : status;
    } else {
        status = look_into(search, entry->value, entry->word, depth);
    }
    search->path.bytes[length] = '\0';
    search->path.length_bytes = length;
    search->where = where;
    return status;
}

static enum gradcmp_status look_into_list(struct search *search, const struct gcmp_node *list,
                                          unsigned depth) {
    size_t count = gcmp_node_count(list);
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *item = gcmp_node_item(list, i);
        char number[24];
        if (is_dict(item) || i % LIST_STEP == 0) { /* a list of numbers may be held often */
            GCMP_TRY(gcmp_pt_visit(search->place, list, 0));
        }
        if (gcmp_pt_is_tensor(item)) {
            GCMP_TRY(pass_over(search, item));
        } else if (is_list(item)) {
            GCMP_TRY(pass_over_list(search, item));
        }
        if (is_dict(item)) {
            snprintf(number, sizeof number, "%zu", i);
            const struct entry entry = {.word = number, .value = item, .above = ""};
            GCMP_TRY(look_below(search, &entry, depth + 1));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status look_into_dict(struct search *search, const struct gcmp_node *dict,
                                          const char *name, unsigned depth) {
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key = NULL, *value = NULL;
        char number[24];
        const char *word;
        GCMP_TRY(gcmp_pt_visit(search->place, dict, 0));
        if (gcmp_node_pair(dict, i, &key, &value) && (is_dict(value) || is_list(value)) &&
            (word = key_text(key, number, sizeof number)) != NULL) {
            const struct entry entry = {key, word, value, name};
            GCMP_TRY(look_below(search, &entry, depth + 1));
        }
    }
    return GRADCMP_OK;
}

/* Read optimizers at once; gather dicts of tensors. */
static enum gradcmp_status look_at(struct search *search, const struct gcmp_node *node,
                                   const char *word, unsigned depth) {
    if (is_list(node)) {
        return depth > MOST_DEPTH ? GRADCMP_OK : look_into_list(search, node, depth - 1);
    }
    if (depth > MOST_DEPTH) {
        if (!has_tensor(node) && !is_optimizer(node)) {
            return GRADCMP_OK;
        }
        PLACE_FAIL(search->place, GRADCMP_ERROR_LIMIT, node, "more than %d dicts around tensors",
                   MOST_DEPTH);
    }
    bool is_new;
    search->above[depth] = node;
    GCMP_TRY(mark_seen(search, node, depth, &is_new));
    if (!is_new) {
        return GRADCMP_OK;
    }
    if (is_optimizer(node)) {
        return add_optimizer(search, node);
    }
    bool has_states = !gcmp_dcp_is_model(word) && tells_states(node);
    bool has_any = has_tensor(node);
    bool is_found = depth <= MAX_DEPTH || gcmp_dcp_is_model(word) || search->where.root_bytes > 0;
    if (has_states || (has_any && is_found)) {
        GCMP_TRY(add_dict(search, node, word, has_states));
    } else if (has_any) {
        GCMP_TRY(pass_over_dict(search, node));
    }
    return look_into_dict(search, node, word, depth);
}

static size_t count_found(const struct search *search) {
    return search->count + search->place->set->tensor_count + search->place->set->optimizer_count;
}

/* Look at a dict or a list, unless it is known to hold nothing. */
static enum gradcmp_status look_into(struct search *search, const struct gcmp_node *node,
                                     const char *word, unsigned depth) {
    size_t before = count_found(search), from = 0;
    bool is_large = depth <= MAX_DEPTH && gcmp_node_count(node) >= LEAST_BARREN, is_new;
    if (is_large && gcmp_map_find(&search->seen, &node, sizeof node, &from) && from > 0 &&
        from <= 1 + depth) {
        return GRADCMP_OK;
    }
    GCMP_TRY(look_at(search, node, word, depth));
    return is_large && count_found(search) == before ? add_seen(search, node, 1 + depth, &is_new)
                                                     : GRADCMP_OK;
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
    if (is_deepspeed_part(root)) {
        GCMP_FAIL_AT(place->error, GRADCMP_ERROR_UNSUPPORTED,
                     gcmp_dir_file_path(place->torch->dir, place->torch->file), GRADCMP_NO_OFFSET,
                     "one rank's part of a DeepSpeed checkpoint: name the folder that holds them "
                     "all, under the names that DeepSpeed gave them");
    }
    if (gcmp_pt_is_tensor(root)) {
        return walk_single(place);
    }
    struct search search = {.place = place, .path = GCMP_TEXT_INIT, .seen = GCMP_MAP_INIT};
    enum gradcmp_status status = GRADCMP_OK;
    if (is_dict(root)) {
        status = look_into(&search, root, "", 0);
    } else if (is_list(root)) {
        status = look_into_list(&search, root, 0);
    }
    status = status == GRADCMP_OK ? gcmp_pt_walk_dicts(place, search.dicts, search.count) : status;
    free(search.dicts);
    gcmp_text_free(&search.path);
    gcmp_map_free(&search.seen);
    return status;
}
