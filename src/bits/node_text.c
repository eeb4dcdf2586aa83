/* Nodes as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits/parts.h"
#include "bits/walk.h"

/* Keys and members of sets are numbers, texts and tuples of these. What is shared is written each
 * time, so the length has a limit too. */
enum { MAX_DEPTH = 12, MAX_TEXT_BYTES = 16 << 20 };

const char *gcmp_bits_class_name(struct gcmp_arena *arena, const struct gcmp_node *global) {
    static const struct {
        const char *old, *new;
    } modules[] = {
        {"__builtin__ ", "builtins "}, {"copy_reg ", "copyreg "}, {"numpy.core.", "numpy._core."}};
    const char *name = gcmp_node_global(global);
    char *out = NULL;
    for (size_t i = 0; name != NULL && i < sizeof modules / sizeof modules[0] && out == NULL; i++) {
        size_t bytes = strlen(modules[i].old);
        if (strncmp(name, modules[i].old, bytes) == 0) {
            out = gcmp_arena_format(arena, "%s%s", modules[i].new, name + bytes);
        }
    }
    out = out == NULL ? gcmp_arena_dup(arena, name == NULL ? "unknown" : name) : out;
    char *space = out == NULL ? NULL : strchr(out, ' ');
    if (space != NULL) {
        *space = '.';
    }
    return out;
}

static bool add_text(struct gcmp_text *text, const struct gcmp_node *node, int depth);

static int compare_texts(const void *left, const void *right) {
    const struct gcmp_text *a = left, *b = right;
    size_t least = a->length_bytes < b->length_bytes ? a->length_bytes : b->length_bytes;
    int order = least == 0 ? 0 : memcmp(a->bytes, b->bytes, least);
    return order != 0 ? order
                      : (a->length_bytes > b->length_bytes) - (a->length_bytes < b->length_bytes);
}

/* Members of a set have no order: sorted by their text. */
static bool add_sorted(struct gcmp_text *text, const struct gcmp_node *set, int depth) {
    size_t count = gcmp_node_count(set);
    struct gcmp_text *members = calloc(count + 1, sizeof *members);
    bool ok = members != NULL;
    text->failed = text->failed || members == NULL;
    size_t total = 0;
    for (size_t i = 0; ok && i < count; i++) {
        ok = add_text(&members[i], gcmp_node_item(set, i), depth - 1) && !members[i].failed;
        text->failed = text->failed || members[i].failed;
        total += members[i].length_bytes;
        ok = ok && total <= MAX_TEXT_BYTES;
    }
    if (ok) {
        qsort(members, count, sizeof *members, compare_texts);
    }
    gcmp_text_add(text, "{");
    for (size_t i = 0; i < count && members != NULL; i++) {
        if (ok) {
            gcmp_text_add(text, i == 0 ? "" : ", ");
            gcmp_text_add_bytes(text, members[i].bytes, members[i].length_bytes);
        }
        gcmp_text_free(&members[i]);
    }
    gcmp_text_add(text, "}");
    free(members);
    return ok;
}

static bool add_sequence(struct gcmp_text *text, const struct gcmp_node *node, int depth) {
    bool is_tuple = node->kind == GCMP_NODE_TUPLE;
    bool ok = true;
    gcmp_text_add(text, is_tuple ? "(" : "[");
    for (size_t i = 0; ok && i < node->as.list.count; i++) {
        gcmp_text_add(text, i == 0 ? "" : ", ");
        ok = add_text(text, node->as.list.items[i], depth - 1);
    }
    gcmp_text_add(text, is_tuple ? ")" : "]");
    return ok;
}

static bool add_call(struct gcmp_text *text, const struct gcmp_node *node, int depth) {
    bool ok = add_text(text, node->as.call.callee, depth - 1);
    const struct gcmp_node *parts[] = {node->as.call.args, node->as.call.state,
                                       node->as.call.contents};
    for (size_t i = 0; i < 3 && ok; i++) {
        gcmp_text_add(text, i == 0 ? "" : ";");
        ok = parts[i] == NULL || add_text(text, parts[i], depth - 1);
    }
    return ok;
}

static void add_quoted(struct gcmp_text *text, const struct gcmp_node *node) {
    gcmp_text_add(text, node->kind == GCMP_NODE_TEXT    ? "'"
                        : node->kind == GCMP_NODE_BYTES ? "b'"
                                                        : "long'");
    for (size_t i = 0; i < node->as.text.length_bytes; i++) {
        char c = node->as.text.bytes[i];
        gcmp_text_add_bytes(text, c == '\'' || c == '\\' ? "\\" : "", c == '\'' || c == '\\');
        gcmp_text_add_bytes(text, &c, 1);
    }
    gcmp_text_add(text, "'");
}

static bool add_text(struct gcmp_text *text, const struct gcmp_node *node, int depth) {
    if (depth == 0 || node == NULL || text->length_bytes > MAX_TEXT_BYTES) {
        return false;
    }
    if (gcmp_bits_set_of(node) != NULL) {
        return add_sorted(text, gcmp_bits_set_of(node), depth);
    }
    switch (node->kind) {
    case GCMP_NODE_NONE:
        gcmp_text_add(text, "None");
        return true;
    case GCMP_NODE_BOOL:
        gcmp_text_add(text, node->as.integer != 0 ? "True" : "False");
        return true;
    case GCMP_NODE_INT:
        gcmp_text_addf(text, "%lld", (long long)node->as.integer);
        return true;
    case GCMP_NODE_FLOAT:
        gcmp_text_addf(text, "%a", node->as.number);
        return true;
    case GCMP_NODE_TEXT:
    case GCMP_NODE_BYTES:
    case GCMP_NODE_BIGINT:
        add_quoted(text, node);
        return true;
    case GCMP_NODE_GLOBAL:
        gcmp_text_add(text, node->as.text.bytes);
        return true;
    case GCMP_NODE_TUPLE:
    case GCMP_NODE_LIST:
    case GCMP_NODE_DICT:
        return add_sequence(text, node, depth);
    case GCMP_NODE_SET:
        return add_sorted(text, node, depth);
    case GCMP_NODE_CALL:
        return add_call(text, node, depth);
    case GCMP_NODE_PERSID:
        return add_text(text, node->as.call.callee, depth - 1);
    case GCMP_NODE_RECYCLED:
        return false;
    }
    return false;
}

bool gcmp_bits_node_text(struct gcmp_text *text, const struct gcmp_node *node) {
    return add_text(text, node, MAX_DEPTH) && !text->failed;
}

/* --- keys --- */

/* What a key that is no text, or a part that has no key, may read as. */
static bool reads_as_another(const char *text) {
    static const char *const words[] = {"None", "True", "False", "inf", "-inf", "nan", "-nan"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    const char *number = text + (text[0] == '-');
    return text[0] == '\0' || strchr("#<([{", text[0]) != NULL || strncmp(number, "0x", 2) == 0 ||
           number[strspn(number, "0123456789")] == '\0';
}

static bool is_plain(const struct gcmp_node *key) {
    const char *text = gcmp_node_text(key);
    if (key->kind != GCMP_NODE_TEXT || text == NULL || reads_as_another(text)) {
        return false;
    }
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == 0x7F || strchr("/'\\", byte) != NULL) {
            return false;
        }
    }
    return true;
}

bool gcmp_bits_key_text(struct gcmp_text *text, const struct gcmp_node *key) {
    if (is_plain(key)) {
        gcmp_text_add_bytes(text, key->as.text.bytes, key->as.text.length_bytes);
        return !text->failed;
    }
    bool is_object = key->kind == GCMP_NODE_GLOBAL || key->kind == GCMP_NODE_CALL ||
                     key->kind == GCMP_NODE_PERSID;
    struct gcmp_text whole = GCMP_TEXT_INIT;
    bool ok = gcmp_bits_node_text(&whole, key);
    gcmp_text_add(text, is_object ? "<" : "");
    for (size_t i = 0; ok && i < whole.length_bytes; i++) {
        bool is_nul = whole.bytes[i] == '\0';
        gcmp_text_add_bytes(text, is_nul ? "\\0" : whole.bytes + i, is_nul ? 2 : 1);
    }
    gcmp_text_add(text, is_object ? ">" : "");
    text->failed = text->failed || whole.failed;
    gcmp_text_free(&whole);
    return ok && !text->failed;
}
