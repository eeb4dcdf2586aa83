/* Loading pickles that a test writes byte by byte, and showing nodes as text. */
#ifndef GCMP_PICKLE_TOOLS_H
#define GCMP_PICKLE_TOOLS_H

#include "temp_tools.h"

#include "base/text.h"
#include "formats/pickle.h"

enum { PICKLE_BASE = 5000 }; /* the pickle's first byte in its file, for offsets in errors */

/* A string literal with NULs inside, as bytes and their number. */
#define BYTES(literal) (literal), sizeof(literal) - 1

struct loaded {
    struct gcmp_arena arena;
    struct gcmp_cursor cursor;
    unsigned char *bytes;
    struct gcmp_node *root;
    enum gradcmp_status status;
    struct gradcmp_error error;
};

/* The bytes are copied to a block of exactly their size, so that a checker sees a read past them.
 */
static inline struct loaded load(const char *bytes, size_t count) {
    struct loaded out = {.arena = GCMP_ARENA_INIT};
    out.bytes = malloc(count == 0 ? 1 : count);
    memcpy(out.bytes, bytes, count);
    out.cursor = gcmp_cursor_make(out.bytes, count, PICKLE_BASE);
    out.status = gcmp_pickle_load(&out.cursor, &out.arena, "some/file", &out.root, &out.error);
    return out;
}

static inline void unload(struct loaded *loaded) {
    gcmp_arena_free(&loaded->arena);
    free(loaded->bytes);
}

static inline void show_bytes(struct gcmp_text *to, const struct gcmp_node *node) {
    for (size_t i = 0; i < node->as.text.length_bytes; i++) {
        unsigned char byte = (unsigned char)node->as.text.bytes[i];
        gcmp_text_addf(to, byte < 0x20 || byte > 0x7e ? "\\x%02x" : "%c", byte);
    }
}

/* Recursion is bounded by `depth`, since nodes may hold themselves. */
static inline void show_into(struct gcmp_text *to, const struct gcmp_node *node, int depth);

static inline void show_items(struct gcmp_text *to, const struct gcmp_node *node, int depth) {
    static const char *const open[] = {[GCMP_NODE_TUPLE] = "(",
                                       [GCMP_NODE_LIST] = "[",
                                       [GCMP_NODE_DICT] = "{",
                                       [GCMP_NODE_SET] = "<"};
    static const char *const close[] = {[GCMP_NODE_TUPLE] = ")",
                                        [GCMP_NODE_LIST] = "]",
                                        [GCMP_NODE_DICT] = "}",
                                        [GCMP_NODE_SET] = ">"};
    gcmp_text_add(to, open[node->kind]);
    for (size_t i = 0; i < node->as.list.count; i++) {
        bool is_value = node->kind == GCMP_NODE_DICT && i % 2 == 1;
        gcmp_text_add(to, i == 0 ? "" : is_value ? ":" : ",");
        show_into(to, node->as.list.items[i], depth - 1);
    }
    gcmp_text_add(to, close[node->kind]);
}

static inline void show_call(struct gcmp_text *to, const struct gcmp_node *node, int depth) {
    show_into(to, node->as.call.callee, depth - 1);
    show_into(to, node->as.call.args, depth - 1);
    if (node->as.call.state != NULL) {
        gcmp_text_add(to, " state ");
        show_into(to, node->as.call.state, depth - 1);
    }
    if (node->as.call.contents != NULL) {
        gcmp_text_add(to, " holds ");
        show_into(to, node->as.call.contents, depth - 1);
    }
}

static inline void show_into(struct gcmp_text *to, const struct gcmp_node *node, int depth) {
    if (depth == 0) {
        gcmp_text_add(to, "...");
        return;
    }
    switch (node->kind) {
    case GCMP_NODE_NONE:
        gcmp_text_add(to, "None");
        break;
    case GCMP_NODE_BOOL:
        gcmp_text_add(to, node->as.integer ? "True" : "False");
        break;
    case GCMP_NODE_INT:
        gcmp_text_addf(to, "%lld", (long long)node->as.integer);
        break;
    case GCMP_NODE_FLOAT:
        gcmp_text_addf(to, "%.17gf", node->as.number);
        break;
    case GCMP_NODE_BIGINT:
    case GCMP_NODE_TEXT:
    case GCMP_NODE_BYTES:
    case GCMP_NODE_GLOBAL: {
        const char *quote = node->kind == GCMP_NODE_TEXT ? "'" : "|";
        gcmp_text_add(to, node->kind == GCMP_NODE_BYTES    ? "b"
                          : node->kind == GCMP_NODE_BIGINT ? "big"
                                                           : "");
        gcmp_text_add(to, quote);
        show_bytes(to, node);
        gcmp_text_add(to, quote);
        break;
    }
    case GCMP_NODE_RECYCLED:
        gcmp_text_add(to, "?");
        break;
    case GCMP_NODE_PERSID:
        gcmp_text_add(to, "#");
        show_into(to, node->as.call.callee, depth - 1);
        break;
    case GCMP_NODE_CALL:
        show_call(to, node, depth);
        break;
    default:
        show_items(to, node, depth);
    }
}

/* Load, expect success with nothing left over, and compare what comes out. */
static inline void check_shows(const char *bytes, size_t count, const char *expected) {
    struct loaded loaded = load(bytes, count);
    if (loaded.status != GRADCMP_OK) {
        fail_msg("%s: %s at byte %llu", expected, loaded.error.message,
                 (unsigned long long)loaded.error.offset_bytes);
    }
    assert_int_equal(loaded.cursor.at_bytes, count);
    struct gcmp_text text = GCMP_TEXT_INIT;
    show_into(&text, loaded.root, 12);
    assert_string_equal(text.bytes, expected);
    gcmp_text_free(&text);
    unload(&loaded);
}

/* Load and expect a failure of that code at that byte of the pickle, with that message. */
static inline void check_fails(const char *bytes, size_t count, enum gradcmp_status code, size_t at,
                               const char *message) {
    struct loaded loaded = load(bytes, count);
    if (loaded.status != code || strcmp(loaded.error.message, message) != 0) {
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)code, message, (int)loaded.status,
                 loaded.error.message);
    }
    assert_int_equal(loaded.error.code, code);
    assert_int_equal(loaded.error.offset_bytes, PICKLE_BASE + at);
    assert_string_equal(loaded.error.path, "some/file");
    assert_null(loaded.root);
    assert_int_equal(loaded.cursor.at_bytes, 0);
    unload(&loaded);
}

#endif
