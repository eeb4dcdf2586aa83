/* What the nodes of a pickle are to Python, and what they hold. */
#include "bits/parts.h"

#include <string.h>

/* --- which nodes are what --- */

static bool is_class_call(const struct gcmp_node *node, const char *const *classes) {
    for (size_t i = 0; classes[i] != NULL; i += 2) {
        if (gcmp_node_is_call(node, classes[i], classes[i + 1])) {
            return true;
        }
    }
    return false;
}

bool gcmp_bits_is_dict(const struct gcmp_node *node) {
    static const char *const classes[] = {"collections", "OrderedDict", "collections", "Counter",
                                          "collections", "defaultdict", "builtins",    "dict",
                                          "__builtin__", "dict",        NULL};
    return node->kind == GCMP_NODE_DICT || is_class_call(node, classes);
}

const struct gcmp_node *gcmp_bits_set_of(const struct gcmp_node *node) {
    static const char *const classes[] = {"builtins",    "set",       "__builtin__",
                                          "set",         "builtins",  "frozenset",
                                          "__builtin__", "frozenset", NULL};
    if (node->kind == GCMP_NODE_SET) {
        return node;
    }
    const struct gcmp_node *first = is_class_call(node, classes) ? gcmp_node_arg(node, 0) : NULL;
    return first != NULL && (first->kind == GCMP_NODE_LIST || first->kind == GCMP_NODE_TUPLE)
               ? first
               : NULL;
}

const struct gcmp_node *gcmp_bits_without_size(const struct gcmp_node *node) {
    if (gcmp_node_is_call(node, "torch", "Size")) {
        const struct gcmp_node *first = gcmp_node_arg(node, 0);
        return first != NULL ? first : node->as.call.args;
    }
    return node;
}

bool gcmp_bits_is_storage(const struct gcmp_node *node) {
    const char *tag = node->kind == GCMP_NODE_PERSID
                          ? gcmp_node_text(gcmp_node_item(node->as.call.callee, 0))
                          : NULL;
    return tag != NULL && strcmp(tag, "storage") == 0;
}

/* --- parts of containers --- */

/* copyreg's helpers name the class in their first argument. */
static bool names_class_first(const struct gcmp_node *call) {
    static const char *const helpers[] = {"copyreg",    "__newobj__",     "copy_reg",
                                          "__newobj__", "copyreg",        "_reconstructor",
                                          "copy_reg",   "_reconstructor", NULL};
    const struct gcmp_node *callee = call->as.call.callee;
    for (size_t i = 0; helpers[i] != NULL; i += 2) {
        if (gcmp_node_is_global(callee, helpers[i], helpers[i + 1])) {
            return true;
        }
    }
    return false;
}

const struct gcmp_node *gcmp_bits_class_of(const struct gcmp_node *call) {
    return names_class_first(call) ? gcmp_node_arg(call, 0) : call->as.call.callee;
}

/* Arguments that are no class, and not what copyreg adds (object, None). */
static size_t first_arg(const struct gcmp_node *call) {
    if (!names_class_first(call)) {
        return 0;
    }
    const struct gcmp_node *base = gcmp_node_arg(call, 1), *value = gcmp_node_arg(call, 2);
    bool is_plain_object = base != NULL && base->kind == GCMP_NODE_GLOBAL && value != NULL &&
                           value->kind == GCMP_NODE_NONE;
    return is_plain_object ? 3 : 1;
}

/* Attributes of an object lie in dicts: the state, or both halves of (dict, slots). */
static const struct gcmp_node *attributes(const struct gcmp_node *state, size_t half) {
    if (state != NULL && state->kind == GCMP_NODE_DICT) {
        return half == 0 ? state : NULL;
    }
    if (state == NULL || state->kind != GCMP_NODE_TUPLE || state->as.list.count != 2) {
        return NULL;
    }
    const struct gcmp_node *first = state->as.list.items[0], *second = state->as.list.items[1];
    bool is_pair = (first->kind == GCMP_NODE_DICT || first->kind == GCMP_NODE_NONE) &&
                   second->kind == GCMP_NODE_DICT;
    const struct gcmp_node *wanted = half == 0 ? first : second;
    return is_pair && half < 2 && wanted->kind == GCMP_NODE_DICT ? wanted : NULL;
}

static bool pair_part(const struct gcmp_node *dict, size_t *index, struct gcmp_bits_part *part) {
    size_t count = gcmp_node_count(dict);
    if (*index < count) {
        return gcmp_node_pair(dict, *index, &part->key, &part->value);
    }
    *index -= count;
    return false;
}

/* Part `index` of an object: arguments, attributes, what was set on it or appended. */
static bool object_part(const struct gcmp_node *call, size_t index, struct gcmp_bits_part *part) {
    size_t skipped = first_arg(call), args = gcmp_node_count(call->as.call.args);
    args = args > skipped ? args - skipped : 0;
    if (index < args) {
        *part = (struct gcmp_bits_part){
            .name = "#%zu", .number = index, .value = gcmp_node_arg(call, index + skipped)};
        return true;
    }
    index -= args;
    const struct gcmp_node *state = call->as.call.state, *contents = call->as.call.contents;
    const struct gcmp_node *halves[] = {attributes(state, 0), attributes(state, 1)};
    for (size_t half = 0; half < 2; half++) {
        if (halves[half] != NULL && pair_part(halves[half], &index, part)) {
            return true;
        }
    }
    if (state != NULL && halves[0] == NULL && halves[1] == NULL && index-- == 0) {
        *part = (struct gcmp_bits_part){.name = "<state>", .number = 0, .value = state};
        return true;
    }
    if (contents == NULL) {
        return false;
    }
    if (contents->kind == GCMP_NODE_DICT) {
        part->is_item = halves[0] != NULL || halves[1] != NULL;
        return pair_part(contents, &index, part);
    }
    *part = (struct gcmp_bits_part){
        .name = "%zu", .number = index, .value = gcmp_node_item(contents, index)};
    return part->value != NULL;
}

bool gcmp_bits_part_of(const struct gcmp_node *node, size_t index, struct gcmp_bits_part *part) {
    *part = (struct gcmp_bits_part){0};
    if (gcmp_bits_is_dict(node)) {
        return gcmp_node_pair(node, index, &part->key, &part->value);
    }
    if (node->kind == GCMP_NODE_PERSID) {
        *part = (struct gcmp_bits_part){
            .name = "<persistent id>", .number = 0, .value = node->as.call.callee};
        return index == 0;
    }
    if (node->kind == GCMP_NODE_CALL) {
        return object_part(node, index, part);
    }
    *part = (struct gcmp_bits_part){
        .name = "%zu", .number = index, .value = gcmp_node_item(node, index)};
    return part->value != NULL;
}
