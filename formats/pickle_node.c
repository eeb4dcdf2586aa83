/* Looking into the nodes that the pickle interpreter made. Every function looks at a fixed depth,
 * so nodes that hold themselves are harmless here. */
#include "formats/pickle.h"

#include <string.h>

uint64_t gcmp_node_at(const struct gcmp_node *node) {
    return node == NULL ? 0 : node->at;
}

const char *gcmp_node_kind_name(const struct gcmp_node *node) {
    static const char *const names[] = {
        [GCMP_NODE_NONE] = "None",
        [GCMP_NODE_BOOL] = "a bool",
        [GCMP_NODE_INT] = "an integer",
        [GCMP_NODE_BIGINT] = "an integer",
        [GCMP_NODE_FLOAT] = "a float",
        [GCMP_NODE_TEXT] = "a text",
        [GCMP_NODE_BYTES] = "bytes",
        [GCMP_NODE_TUPLE] = "a tuple",
        [GCMP_NODE_LIST] = "a list",
        [GCMP_NODE_DICT] = "a dict",
        [GCMP_NODE_SET] = "a set",
        [GCMP_NODE_GLOBAL] = "a global",
        [GCMP_NODE_CALL] = "an object",
        [GCMP_NODE_PERSID] = "a persistent id",
        [GCMP_NODE_RECYCLED] = "something recycled",
    };
    return node == NULL ? "nothing" : names[node->kind];
}

bool gcmp_node_is_global(const struct gcmp_node *node, const char *module, const char *name) {
    if (node == NULL || node->kind != GCMP_NODE_GLOBAL) {
        return false;
    }
    size_t module_bytes = strlen(module), name_bytes = strlen(name);
    const char *text = node->as.text.bytes;
    return node->as.text.length_bytes == module_bytes + 1 + name_bytes &&
           memcmp(text, module, module_bytes) == 0 && text[module_bytes] == ' ' &&
           memcmp(text + module_bytes + 1, name, name_bytes) == 0;
}

const struct gcmp_node *gcmp_node_arg(const struct gcmp_node *node, size_t index) {
    return node != NULL && node->kind == GCMP_NODE_CALL ? gcmp_node_item(node->as.call.args, index)
                                                        : NULL;
}

/* What a CALL calls: the callee, or the class that a helper of copyreg makes an object of. */
static const struct gcmp_node *called(const struct gcmp_node *node) {
    if (node == NULL || node->kind != GCMP_NODE_CALL) {
        return NULL;
    }
    const struct gcmp_node *callee = node->as.call.callee;
    if (callee->kind != GCMP_NODE_GLOBAL || strncmp(callee->as.text.bytes, "copy", 4) != 0) {
        return callee;
    }
    if (gcmp_node_is_global(callee, "copy_reg", "_reconstructor") ||
        gcmp_node_is_global(callee, "copyreg", "_reconstructor") ||
        gcmp_node_is_global(callee, "copy_reg", "__newobj__") ||
        gcmp_node_is_global(callee, "copyreg", "__newobj__")) {
        return gcmp_node_arg(node, 0);
    }
    return callee;
}

bool gcmp_node_is_call(const struct gcmp_node *node, const char *module, const char *name) {
    return gcmp_node_is_global(called(node), module, name);
}

const char *gcmp_node_global(const struct gcmp_node *node) {
    const struct gcmp_node *global = called(node);
    global = global == NULL ? node : global;
    return global != NULL && global->kind == GCMP_NODE_GLOBAL ? global->as.text.bytes : NULL;
}

static bool is_pair(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_TUPLE || node->kind == GCMP_NODE_LIST) &&
           node->as.list.count == 2;
}

/* The first argument of a call of a dict class, where it holds pairs; else NULL. */
static const struct gcmp_node *pairs_in_args(const struct gcmp_node *node) {
    if (!gcmp_node_is_call(node, "collections", "OrderedDict") &&
        !gcmp_node_is_call(node, "collections", "Counter") &&
        !gcmp_node_is_call(node, "builtins", "dict") &&
        !gcmp_node_is_call(node, "__builtin__", "dict")) {
        return NULL;
    }
    const struct gcmp_node *first = gcmp_node_arg(node, 0);
    bool holds =
        first != NULL && (first->kind == GCMP_NODE_DICT ||
                          (first->kind == GCMP_NODE_LIST && is_pair(gcmp_node_item(first, 0))));
    return holds ? first : NULL;
}

/* What was set on or appended to a node: itself, or a CALL's contents; NULL where it holds none. */
static const struct gcmp_node *contents_of(const struct gcmp_node *node) {
    if (node != NULL && node->kind == GCMP_NODE_CALL) {
        node = node->as.call.contents;
    }
    bool holds = node != NULL && (node->kind == GCMP_NODE_TUPLE || node->kind == GCMP_NODE_LIST ||
                                  node->kind == GCMP_NODE_DICT || node->kind == GCMP_NODE_SET);
    return holds ? node : NULL;
}

static size_t count_in(const struct gcmp_node *list) {
    if (list == NULL) {
        return 0;
    }
    return list->kind == GCMP_NODE_DICT ? list->as.list.count / 2 : list->as.list.count;
}

size_t gcmp_node_count(const struct gcmp_node *node) {
    return count_in(contents_of(node)) + count_in(pairs_in_args(node));
}

const struct gcmp_node *gcmp_node_item(const struct gcmp_node *node, size_t index) {
    const struct gcmp_node *list = contents_of(node);
    if (list == NULL || list->kind == GCMP_NODE_DICT || index >= list->as.list.count) {
        return NULL;
    }
    return list->as.list.items[index];
}

/* Pair of a DICT, or of a list of pairs. */
static bool pair_in(const struct gcmp_node *list, size_t index, const struct gcmp_node **key,
                    const struct gcmp_node **value) {
    struct gcmp_node *const *pair;
    if (list->kind == GCMP_NODE_DICT) {
        pair = list->as.list.items + 2 * index;
    } else if (is_pair(list->as.list.items[index])) {
        pair = list->as.list.items[index]->as.list.items;
    } else {
        return false;
    }
    *key = pair[0];
    *value = pair[1];
    return true;
}

bool gcmp_node_pair(const struct gcmp_node *node, size_t index, const struct gcmp_node **key,
                    const struct gcmp_node **value) {
    const struct gcmp_node *first = pairs_in_args(node), *contents = contents_of(node);
    size_t first_count = count_in(first);
    if (index < first_count) {
        return pair_in(first, index, key, value);
    }
    index -= first_count;
    return contents != NULL && contents->kind == GCMP_NODE_DICT && index < count_in(contents) &&
           pair_in(contents, index, key, value);
}

/* The last value of a key in a DICT or a list of pairs; NULL where there is none. */
static const struct gcmp_node *find_key(const struct gcmp_node *list, const char *name) {
    size_t name_bytes = strlen(name);
    for (size_t i = count_in(list); i-- > 0;) {
        const struct gcmp_node *key, *value;
        if (pair_in(list, i, &key, &value) &&
            (key->kind == GCMP_NODE_TEXT || key->kind == GCMP_NODE_BYTES) &&
            key->as.text.length_bytes == name_bytes &&
            memcmp(key->as.text.bytes, name, name_bytes) == 0) {
            return value;
        }
    }
    return NULL;
}

/* copyreg makes the state a dict, or (dict or None, slots). */
const struct gcmp_node *gcmp_node_state_get(const struct gcmp_node *state, const char *name) {
    const struct gcmp_node *found = NULL;
    if (state != NULL && state->kind == GCMP_NODE_DICT) {
        found = find_key(state, name);
    } else if (state != NULL && state->kind == GCMP_NODE_TUPLE && state->as.list.count == 2) {
        for (size_t i = 2; i-- > 0 && found == NULL;) {
            const struct gcmp_node *part = state->as.list.items[i];
            found = part->kind == GCMP_NODE_DICT ? find_key(part, name) : NULL;
        }
    }
    return found;
}

const struct gcmp_node *gcmp_node_get(const struct gcmp_node *node, const char *key) {
    const struct gcmp_node *contents = contents_of(node), *found = NULL;
    if (contents != NULL && contents->kind == GCMP_NODE_DICT) {
        found = find_key(contents, key);
    }
    if (found == NULL) {
        found = find_key(pairs_in_args(node), key);
    }
    if (found == NULL && node != NULL && node->kind == GCMP_NODE_CALL) {
        found = gcmp_node_state_get(node->as.call.state, key);
    }
    return found;
}

const char *gcmp_node_text(const struct gcmp_node *node) {
    bool text = node != NULL && (node->kind == GCMP_NODE_TEXT || node->kind == GCMP_NODE_BYTES) &&
                memchr(node->as.text.bytes, '\0', node->as.text.length_bytes) == NULL;
    return text ? node->as.text.bytes : NULL;
}

bool gcmp_node_int(const struct gcmp_node *node, int64_t *out) {
    bool integer = node != NULL && (node->kind == GCMP_NODE_INT || node->kind == GCMP_NODE_BOOL);
    if (integer) {
        *out = node->as.integer;
    }
    return integer;
}

bool gcmp_node_number(const struct gcmp_node *node, double *out) {
    if (node != NULL && node->kind == GCMP_NODE_FLOAT) {
        *out = node->as.number;
        return true;
    }
    if (node != NULL && node->kind == GCMP_NODE_INT) {
        *out = (double)node->as.integer;
        return true;
    }
    return false;
}

bool gcmp_node_sizes(const struct gcmp_node *node, uint64_t *sizes, unsigned limit,
                     unsigned *count) {
    const struct gcmp_node *callee = called(node);
    static const char size[] = "torch Size";
    if (callee != NULL && callee->kind == GCMP_NODE_GLOBAL &&
        callee->as.text.length_bytes == sizeof size - 1 &&
        memcmp(callee->as.text.bytes, size, sizeof size - 1) == 0) { /* millions of them */
        const struct gcmp_node *args = node->as.call.args, *first = gcmp_node_arg(node, 0);
        node = first == NULL ? args : first; /* torch.Size() has no argument */
    }
    if (node == NULL || (node->kind != GCMP_NODE_TUPLE && node->kind != GCMP_NODE_LIST) ||
        node->as.list.count > limit) {
        return false;
    }
    for (size_t i = 0; i < node->as.list.count; i++) {
        const struct gcmp_node *item = node->as.list.items[i];
        if (item == NULL || item->kind != GCMP_NODE_INT || item->as.integer < 0) {
            return false;
        }
        sizes[i] = (uint64_t)item->as.integer;
    }
    *count = (unsigned)node->as.list.count;
    return true;
}
