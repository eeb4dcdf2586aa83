/* The grammar of keys. Who writes which:
 *
 *   torch, nested           model.<name>, optim.state.<name>.<state>,
 *                           optim.param_groups.<i>.<option>
 *   torch, flattened        state.<name>.<state>, also below "optimizer."; names at top level
 *   torch, raw              optimizer.state.<id>.<state>: integers in the order of the parameters
 *   Megatron, model space   [chained_<n>.]optimizer.state.<state>.<name>; names at top level
 *   Megatron, buckets       optimizer.distributed.dp_group_idx_<n>. ... .<state>
 *
 * Names hold dots and digits and may hold the words of states themselves. */
#include "formats/dcp_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/word.h"

/* States as optimizers name them. */
static const char *const known_states[] = {
    "exp_avg",      "exp_avg_sq", "max_exp_avg_sq", "step",         "momentum_buffer",
    "fp32_param",   "param",      "fp32",           "master_param", "square_avg",
    "acc_delta",    "sum",        "main_grad",      "grad_avg",     "exp_inf",
    "exp_avg_diff", NULL,
};

/* Those of them that nobody calls a module or a parameter. */
static const char *const clear_states[] = {
    "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "main_grad", "fp32_param", NULL};

/* Copies of the weights in the optimizer, whatever they are called. */
static const char *const master_states[] = {"fp32_param", "param", "fp32", "master_param", NULL};

/* What trainers call the dict of a model's weights. */
static const char *const models[] = {
    "model", "state_dict", "module", "model_state_dict", "model_state", "net", "network", NULL,
};

/* Those of the known states that name what a module holds as well. */
static const char *const weak_states[] = {"param", "fp32", "master_param", "sum", "grad_avg", NULL};

/* Names at top level, or of a dict, that hold no weights. */
static const char *const other_words[] = {
    "optimizer",  "optim",     "param_groups", "rng_state",           "train_state",
    "dataloader", "scheduler", "lr_scheduler", "opt_param_scheduler", "sampler",
    "scaler",     "args",      NULL,
};

/* Dicts beside weights, and the last parts of such words ("loss_history"). */
static const char *const beside_words[] = {
    "opt",
    "sched",
    "config",
    "cfg",
    "loops",
    "replay",
    "callbacks",
    "trainer_state",
    "training_state",
    "hyper_parameters",
    "rng_states",
    "scaler_state",
    NULL,
};
static const char *const beside_parts[] = {"rng",       "metric",     "metrics",
                                           "scheduler", "schedulers", "dataloader",
                                           "hparams",   "history",    NULL};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

bool gcmp_dcp_is_state(const char *text, size_t bytes) {
    return gcmp_find_word(text, bytes, known_states) != NULL;
}

bool gcmp_dcp_is_clear_state(const char *text, size_t bytes) {
    return gcmp_find_word(text, bytes, clear_states) != NULL;
}

static bool is_other_word(const char *word, size_t bytes) {
    return gcmp_find_word(word, bytes, other_words) != NULL;
}

/* "optimizer_0", "DecoupledAdamWOptimizer", ... */
static bool is_optimizer(const char *word, size_t bytes) {
    static const char stem[] = "ptim";
    for (size_t i = 1; i + sizeof stem - 1 <= bytes; i++) {
        if (memcmp(word + i, stem, sizeof stem - 1) == 0 && (word[i - 1] | ' ') == 'o') {
            return true;
        }
    }
    return false;
}

bool gcmp_dcp_is_average(const char *word, size_t bytes) {
    static const char *const words[] = {"ema", "swa", "averaged", "shadow", NULL};
    return gcmp_find_word(word, bytes, words) != NULL;
}

bool gcmp_dcp_is_extra_state(const char *word, size_t bytes) {
    static const char end[] = "_extra_state";
    size_t end_bytes = sizeof end - 1;
    return bytes >= end_bytes && memcmp(word + bytes - end_bytes, end, end_bytes) == 0;
}

bool gcmp_dcp_is_of_module(const char *name) {
    return strchr(name, '.') != NULL || strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0;
}

/* Where the last part of a word begins, behind the last "_". */
static size_t last_part(const char *word, size_t bytes) {
    while (bytes > 0 && word[bytes - 1] != '_') {
        bytes--;
    }
    return bytes;
}

bool gcmp_dcp_is_beside_weights(const char *word, size_t bytes) {
    size_t part = last_part(word, bytes);
    return is_other_word(word, bytes) || gcmp_find_word(word, bytes, beside_words) != NULL ||
           gcmp_find_word(word + part, bytes - part, beside_parts) != NULL ||
           is_optimizer(word, bytes) || gcmp_dcp_is_extra_state(word, bytes);
}

/* True for a word that ends as one of an optimizer: "gen_optim", "optimizer_0", "optim_state". */
static bool ends_as_optimizer(const char *word, size_t bytes) {
    static const char *const ends[] = {"state", "states", "dict", "group", "groups", NULL};
    size_t part = last_part(word, bytes), part_bytes = bytes - part;
    return is_optimizer(word, bytes) && (is_optimizer(word + part, part_bytes) || part_bytes < 2 ||
                                         strspn(word + part, "0123456789") >= part_bytes ||
                                         gcmp_find_word(word + part, part_bytes, ends) != NULL);
}

bool gcmp_dcp_may_be_module(const char *word, size_t bytes) {
    return !ends_as_optimizer(word, bytes) && !gcmp_dcp_is_extra_state(word, bytes) &&
           !gcmp_is_word(word, bytes, "param_groups");
}

bool gcmp_dcp_is_model(const char *word) {
    return gcmp_find_word(word, strlen(word), models) != NULL;
}

/* How surely a word means a state. */
static int rank_state(const char *text, size_t bytes) {
    return gcmp_dcp_is_clear_state(text, bytes) ? 2 : gcmp_dcp_is_state(text, bytes) ? 1 : 0;
}

/* The name under which a state is listed. NULL without memory. */
static const char *state_name(struct gcmp_arena *arena, const char *text, size_t bytes) {
    if (gcmp_find_word(text, bytes, master_states) != NULL) {
        return "fp32_param"; /* so that "param" is always the model's weight */
    }
    const char *known = gcmp_find_word(text, bytes, known_states);
    return known != NULL ? known : gcmp_arena_text(arena, text, bytes);
}

static bool set_state(struct gcmp_arena *arena, const char *name, size_t name_bytes,
                      const char *state, size_t state_bytes, struct gcmp_dcp_key *out) {
    out->kind = GCMP_DCP_STATE;
    out->name = gcmp_arena_text(arena, name, name_bytes);
    out->state = state_name(arena, state, state_bytes);
    return out->name != NULL && out->state != NULL;
}

/* Take "<name>.<state>" or "<state>.<name>" apart: by which end means a state more surely, else by
 * the style. A name may end with a dot; it is then no state. */
static bool parse_state(struct gcmp_arena *arena, const char *text, enum gcmp_dcp_style style,
                        struct gcmp_dcp_key *out) {
    const char *first_dot = strchr(text, '.'), *last_dot = strrchr(text, '.');
    if (first_dot == NULL || first_dot == text) {
        return true; /* no pair of name and state: listed only */
    }
    size_t first_bytes = (size_t)(first_dot - text), last_bytes = strlen(last_dot + 1);
    int first_rank = rank_state(text, first_bytes),
        last_rank = rank_state(last_dot + 1, last_bytes);
    bool state_first =
        first_rank != last_rank ? first_rank > last_rank : style == GCMP_DCP_MEGATRON;
    if (state_first) {
        return first_dot[1] == '\0' ||
               set_state(arena, first_dot + 1, strlen(first_dot + 1), text, first_bytes, out);
    }
    return last_bytes == 0 ||
           set_state(arena, text, (size_t)(last_dot - text), last_dot + 1, last_bytes, out);
}

/* Whether "<name>.<state>" or "<state>.<name>" shows by itself that it is of an optimizer. */
static bool shows_state(const char *text) {
    const char *last = strrchr(text, '.');
    return last != NULL && (gcmp_dcp_is_clear_state(text, strcspn(text, ".")) ||
                            (gcmp_dcp_is_state(last + 1, strlen(last + 1)) &&
                             gcmp_find_word(last + 1, strlen(last + 1), weak_states) == NULL));
}

/* Skip a prefix; NULL when the text does not start with it. */
static const char *skip_prefix(const char *text, const char *prefix) {
    size_t bytes = strlen(prefix);
    return strncmp(text, prefix, bytes) == 0 ? text + bytes : NULL;
}

/* Skip "chained_<n>.", which Megatron puts before the keys of each of several optimizers. */
static const char *skip_chained(const char *key) {
    const char *digits = skip_prefix(key, "chained_");
    size_t count = digits == NULL ? 0 : strspn(digits, "0123456789");
    return count > 0 && digits[count] == '.' ? digits + count + 1 : key;
}

/* The part of an optimizer's key behind "state."; NULL where the key is another. *is_clear tells
 * that an optimizer is named in front. */
static const char *skip_to_state(const char *key, bool *is_clear) {
    static const char *const prefixes[] = {"optimizer.state.", "optim.state.", "state."};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        const char *rest = skip_prefix(key, prefixes[i]);
        if (rest != NULL) {
            *is_clear = i + 1 < COUNT_OF(prefixes);
            return rest;
        }
    }
    return NULL;
}

/* What is listed only, by the form of its key. */
static bool is_listed_only(const char *key) {
    return strstr(key, "/shard_") != NULL || strstr(key, "._extra_state") != NULL;
}

/* A bucket's key ends with its state; the objects that describe buckets have none. */
static bool parse_bucket(struct gcmp_arena *arena, const char *text, struct gcmp_dcp_key *out) {
    const char *dot = strrchr(text, '.');
    out->kind = GCMP_DCP_BUCKET;
    if (dot != NULL && gcmp_dcp_is_state(dot + 1, strlen(dot + 1))) {
        out->state = state_name(arena, dot + 1, strlen(dot + 1));
        return out->state != NULL;
    }
    return true;
}

/* The bytes of a key in front of `part` of it, without a dot between. */
static size_t bytes_before(const char *key, const char *part) {
    return part <= key + 1 ? 0 : (size_t)(part - key) - 1;
}

/* Parse `text`, the end of `key`. */
static bool parse_text(struct gcmp_arena *arena, const char *key, const char *text,
                       enum gcmp_dcp_style style, struct gcmp_dcp_key *out) {
    bool is_clear = false;
    bool is_chained = skip_chained(text) != text;
    text = skip_chained(text);
    const char *state = skip_to_state(text, &is_clear);
    size_t root = strcspn(text, "./");
    if (state != NULL) {
        out->optimizer_bytes = bytes_before(key, state - strlen("state."));
        bool ok = parse_state(arena, state, style, out);
        out->is_doubtful = !is_clear && out->kind == GCMP_DCP_STATE && !shows_state(state);
        return ok;
    }
    if (skip_prefix(text, "optimizer.distributed.") != NULL) {
        return parse_bucket(arena, text, out);
    }
    if (is_other_word(text, root)) {
        out->is_doubtful = text[root] != '\0' && !is_listed_only(text) && !is_chained;
    } else if (!is_listed_only(text)) {
        out->kind = GCMP_DCP_BARE;
        out->state = "param";
    }
    return true;
}

/* --- paths of the writer --- */

/* A key with the writer's path to its value, of which it is made up. */
struct route {
    const char *key;
    const struct gcmp_node *path;
    size_t count;
};

/* The word at a place of the path; NULL for integers and others. */
static const char *word_at(const struct route *route, size_t place) {
    return place < route->count ? gcmp_node_text(gcmp_node_item(route->path, place)) : NULL;
}

/* The bytes that a part of the path takes in the key; 0 for what is neither text nor integer. */
static size_t part_bytes(const struct route *route, size_t place) {
    const struct gcmp_node *part = gcmp_node_item(route->path, place);
    const char *text = gcmp_node_text(part);
    char number[24];
    int64_t integer;
    if (text != NULL) {
        return strlen(text);
    }
    return gcmp_node_int(part, &integer)
               ? (size_t)snprintf(number, sizeof number, "%lld", (long long)integer)
               : 0;
}

/* The end of the key from a place of the path on; NULL for keys that are not their paths joined by
 * dots. */
static const char *part_from(const struct route *route, size_t place) {
    size_t left = strlen(route->key);
    for (size_t i = route->count; i-- > place;) {
        size_t bytes = part_bytes(route, i);
        if (bytes == 0 || bytes > left || (left > bytes && route->key[left - bytes - 1] != '.')) {
            return NULL;
        }
        left -= bytes;
        if (i > place) {
            if (left == 0) {
                return NULL;
            }
            left--;
        }
    }
    return route->key + left;
}

/* The name in a path: a text, or an integer id as text. NULL for others and without memory. */
static const char *name_in_path(struct gcmp_arena *arena, const struct gcmp_node *node) {
    int64_t id;
    return gcmp_node_int(node, &id) ? gcmp_arena_format(arena, "%lld", (long long)id)
                                    : gcmp_node_text(node);
}

static bool is_optimizer_word(const char *word) {
    return word != NULL && is_optimizer(word, strlen(word));
}

static bool is_below_optimizer(const struct route *route, size_t end) {
    for (size_t i = 0; i < end; i++) {
        if (is_optimizer_word(word_at(route, i))) {
            return true;
        }
    }
    return false;
}

/* True for a path [..., "state", <name or id>, <state>], and for ["optim", <name>, <state>]: an
 * optimizer's "state" alone. */
static bool is_state_path(const struct route *route) {
    int64_t id;
    const char *leaf = word_at(route, route->count - 1);
    if (route->count < 3 || leaf == NULL) {
        return false;
    }
    const char *above = word_at(route, route->count - 3);
    bool is_named = word_at(route, route->count - 2) != NULL ||
                    gcmp_node_int(gcmp_node_item(route->path, route->count - 2), &id);
    bool is_alone =
        above != NULL && (strcmp(above, "optim") == 0 || strcmp(above, "optimizer") == 0);
    return is_named && above != NULL &&
           (strcmp(above, "state") == 0 ||
            (is_alone && gcmp_dcp_is_clear_state(leaf, strlen(leaf))));
}

/* True for what is no weight in a model either, whose modules have any names. */
static bool is_never_weight(const char *word) {
    return strcmp(word, "param_groups") == 0 || gcmp_dcp_is_extra_state(word, strlen(word));
}

/* The name of a weight in the dict of a model, or in a dict in that: names are joined by dots. NULL
 * where the path tells of no model. */
static const char *weight_of(const struct route *route) {
    size_t last = route->count - 1;
    const char *above = route->count < 2 ? NULL : word_at(route, last - 1);
    const char *leaf = word_at(route, last);
    if (above != NULL && gcmp_dcp_is_model(above) && leaf != NULL) {
        return leaf;
    }
    for (size_t i = last; i-- > 0;) {
        const char *word = word_at(route, i);
        if (word != NULL && gcmp_dcp_is_model(word)) {
            bool is_in_list = leaf == NULL && i + 1 == last; /* a place alone is no name */
            return is_below_optimizer(route, i) ? NULL : part_from(route, i + !is_in_list);
        }
        if (word != NULL && is_never_weight(word)) {
            return NULL;
        }
    }
    return NULL;
}

/* Set the kind of what is in the dict of a model, or in no dict that tells of one. False without
 * memory. */
static bool set_weight(struct gcmp_arena *arena, const char *name, struct gcmp_dcp_key *out) {
    if (name != NULL) {
        out->kind = GCMP_DCP_MODEL;
        out->name = gcmp_arena_dup(arena, name);
        out->state = "param";
    }
    return out->name != NULL;
}

/* The writer had a value under a path of states: which, of which parameter. A dict that is called
 * "state" may be of a trainer, or of a module. */
static bool parse_state_path(struct gcmp_arena *arena, const struct route *route,
                             const char *weight, struct gcmp_dcp_key *out) {
    size_t last = route->count - 1;
    const char *leaf = word_at(route, last), *above = word_at(route, last - 2);
    const char *name = name_in_path(arena, gcmp_node_item(route->path, last - 1));
    const char *from = part_from(route, strcmp(above, "state") == 0 ? last - 2 : last - 1);
    out->optimizer_bytes = bytes_before(route->key, from);
    out->is_doubtful = !is_below_optimizer(route, last - 2 + (strcmp(above, "state") != 0)) &&
                       (!gcmp_dcp_is_state(leaf, strlen(leaf)) ||
                        gcmp_find_word(leaf, strlen(leaf), weak_states) != NULL);
    out->weight = weight == NULL ? NULL : gcmp_arena_dup(arena, weight);
    out->weight_kind = weight == NULL ? GCMP_DCP_OTHER : GCMP_DCP_MODEL;
    return name != NULL && (weight == NULL || out->weight != NULL) &&
           set_state(arena, name, strlen(name), leaf, strlen(leaf), out);
}

/* Parse the last part of the path, which takes the end `part` of the key. */
static bool parse_leaf(struct gcmp_arena *arena, const struct route *route, const char *part,
                       const char *weight, enum gcmp_dcp_style style, struct gcmp_dcp_key *out) {
    size_t last = route->count - 1;
    bool ok = parse_text(arena, route->key, part, style, out);
    if (out->kind == GCMP_DCP_BARE) {
        out->kind = GCMP_DCP_MODEL; /* the writer had it under this whole name */
    }
    out->is_doubtful = out->is_doubtful && !is_below_optimizer(route, last);
    if (last > 0) {
        out->weight = weight == NULL ? NULL : gcmp_arena_dup(arena, weight);
        ok = ok && (weight == NULL || out->weight != NULL);
    }
    out->weight_kind = out->weight != NULL ? GCMP_DCP_MODEL : GCMP_DCP_OTHER;
    return ok;
}

/* Use the writer's path: its parts are never cut at the wrong dot. */
static bool parse_path(struct gcmp_arena *arena, const struct route *route,
                       enum gcmp_dcp_style style, struct gcmp_dcp_key *out) {
    size_t last = route->count - 1;
    const char *leaf = word_at(route, last), *part = part_from(route, last);
    const char *weight = weight_of(route), *above = last == 0 ? NULL : word_at(route, last - 1);
    bool is_in_model = above != NULL && gcmp_dcp_is_model(above), is_state = is_state_path(route);
    bool is_clear;
    out->dict_bytes = bytes_before(route->key, part);
    if (is_in_model && leaf != NULL && (!is_state || !gcmp_dcp_is_state(leaf, strlen(leaf)))) {
        return set_weight(arena, weight, out);
    }
    if (leaf != NULL && (last == 0 || skip_to_state(leaf, &is_clear) != NULL)) {
        return parse_leaf(arena, route, part, weight, style, out);
    }
    return is_state ? parse_state_path(arena, route, weight, out) : set_weight(arena, weight, out);
}

bool gcmp_dcp_parse_key(struct gcmp_arena *arena, const char *key, const struct gcmp_node *path,
                        enum gcmp_dcp_style style, struct gcmp_dcp_key *out) {
    *out = (struct gcmp_dcp_key){.kind = GCMP_DCP_OTHER,
                                 .text = key,
                                 .name = key,
                                 .weight_kind = GCMP_DCP_BARE,
                                 .weight = key};
    bool usable = path != NULL && path->kind == GCMP_NODE_TUPLE && gcmp_node_count(path) > 0;
    const struct route route = {key, path, usable ? gcmp_node_count(path) : 0};
    /* A path that is not the key may be of any length, for many keys may share it. */
    return usable && part_from(&route, 0) == key ? parse_path(arena, &route, style, out)
                                                 : parse_text(arena, key, key, style, out);
}
