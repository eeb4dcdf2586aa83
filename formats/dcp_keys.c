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

/* Top-level names that hold no weights. */
static const char *const other_roots[] = {
    "optimizer",  "optim",     "param_groups", "rng_state",           "train_state",
    "dataloader", "scheduler", "lr_scheduler", "opt_param_scheduler", "sampler",
    "scaler",     "args",      NULL,
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool is_known_state(const char *text, size_t bytes) {
    return gcmp_find_word(text, bytes, known_states) != NULL;
}

bool gcmp_dcp_is_clear_state(const char *text, size_t bytes) {
    return gcmp_find_word(text, bytes, clear_states) != NULL;
}

bool gcmp_dcp_is_model(const char *word) {
    return gcmp_find_word(word, strlen(word), models) != NULL;
}

/* How surely a word means a state. */
static int rank_state(const char *text, size_t bytes) {
    return gcmp_dcp_is_clear_state(text, bytes) ? 2 : is_known_state(text, bytes) ? 1 : 0;
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

/* The part of an optimizer's key behind "state."; NULL where the key is another. */
static const char *skip_to_state(const char *key) {
    static const char *const prefixes[] = {"optimizer.state.", "optim.state.", "state."};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        const char *rest = skip_prefix(key, prefixes[i]);
        if (rest != NULL) {
            return rest;
        }
    }
    return NULL;
}

static bool is_other(const char *key) {
    size_t root = strcspn(key, "./");
    return gcmp_find_word(key, root, other_roots) != NULL || strstr(key, "/shard_") != NULL ||
           strstr(key, "._extra_state") != NULL;
}

/* A bucket's key ends with its state; the objects that describe buckets have none. */
static bool parse_bucket(struct gcmp_arena *arena, const char *text, struct gcmp_dcp_key *out) {
    const char *dot = strrchr(text, '.');
    out->kind = GCMP_DCP_BUCKET;
    if (dot != NULL && is_known_state(dot + 1, strlen(dot + 1))) {
        out->state = state_name(arena, dot + 1, strlen(dot + 1));
        return out->state != NULL;
    }
    return true;
}

static bool parse_text(struct gcmp_arena *arena, const char *key, enum gcmp_dcp_style style,
                       struct gcmp_dcp_key *out) {
    const char *text = skip_chained(key);
    const char *state = skip_to_state(text);
    if (state != NULL) {
        return parse_state(arena, state, style, out);
    }
    if (skip_prefix(text, "optimizer.distributed.") != NULL) {
        return parse_bucket(arena, text, out);
    }
    if (!is_other(text)) {
        out->kind = GCMP_DCP_BARE;
        out->state = "param";
    }
    return true;
}

static bool is_text(const struct gcmp_node *node, const char *text) {
    const char *found = gcmp_node_text(node);
    return found != NULL && strcmp(found, text) == 0;
}

/* The name in a path: a text, or an integer id as text. NULL for others and without memory. */
static const char *name_in_path(struct gcmp_arena *arena, const struct gcmp_node *node) {
    int64_t id;
    return gcmp_node_int(node, &id) ? gcmp_arena_format(arena, "%lld", (long long)id)
                                    : gcmp_node_text(node);
}

/* True for a path [..., "state", <name or id>, <state>], and for ["optim", <name>, <state>]: an
 * optimizer's "state" alone. ["state", "model", <weight>] is none: the state of a trainer. */
static bool is_state_path(const struct gcmp_node *path, size_t count) {
    int64_t id;
    const struct gcmp_node *name = count < 3 ? NULL : gcmp_node_item(path, count - 2);
    const struct gcmp_node *above = count < 3 ? NULL : gcmp_node_item(path, count - 3);
    const char *leaf = count < 3 ? NULL : gcmp_node_text(gcmp_node_item(path, count - 1));
    const char *text = gcmp_node_text(name);
    if (leaf == NULL || (text == NULL && !gcmp_node_int(name, &id)) ||
        (text != NULL && gcmp_dcp_is_model(text) && !is_known_state(leaf, strlen(leaf)))) {
        return false;
    }
    bool is_alone = is_text(above, "optim") || is_text(above, "optimizer");
    return is_text(above, "state") || (is_alone && gcmp_dcp_is_clear_state(leaf, strlen(leaf)));
}

/* Use the writer's path: its parts are never cut at the wrong dot. */
static bool parse_path(struct gcmp_arena *arena, const struct gcmp_node *path,
                       enum gcmp_dcp_style style, struct gcmp_dcp_key *out) {
    size_t count = gcmp_node_count(path);
    const char *leaf = gcmp_node_text(gcmp_node_item(path, count - 1));
    if (is_state_path(path, count)) {
        const char *name = name_in_path(arena, gcmp_node_item(path, count - 2));
        return name != NULL && set_state(arena, name, strlen(name), leaf, strlen(leaf), out);
    }
    if (leaf == NULL) {
        return true;
    }
    if (skip_to_state(leaf) != NULL || count == 1) {
        bool ok = parse_text(arena, leaf, style, out);
        if (out->kind == GCMP_DCP_BARE) {
            out->kind = GCMP_DCP_MODEL; /* the writer had it under this whole name */
        }
        return ok;
    }
    const char *above = gcmp_node_text(gcmp_node_item(path, count - 2));
    if (above != NULL && gcmp_dcp_is_model(above)) {
        out->kind = GCMP_DCP_MODEL;
        out->name = gcmp_arena_dup(arena, leaf);
        out->state = "param";
    }
    return out->name != NULL;
}

bool gcmp_dcp_parse_key(struct gcmp_arena *arena, const char *key, const struct gcmp_node *path,
                        enum gcmp_dcp_style style, struct gcmp_dcp_key *out) {
    *out = (struct gcmp_dcp_key){GCMP_DCP_OTHER, key, NULL};
    bool usable = path != NULL && path->kind == GCMP_NODE_TUPLE && gcmp_node_count(path) > 0;
    return usable ? parse_path(arena, path, style, out) : parse_text(arena, key, style, out);
}
