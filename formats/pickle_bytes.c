/* Bytes in a pickle: a node of bytes, or one of the calls by which older protocols write them. */
#include <string.h>

#include "base/error.h"
#include "formats/pickle.h"

/* Protocols 0 to 2 have no bytes: Python 3 writes _codecs.encode(text, "latin1") and, for b"",
 * bytes(); a bytearray is bytearray(text, "latin-1") there and bytearray(bytes) from 3 on. */
static bool is_latin1(const struct gcmp_node *node) {
    const char *name = gcmp_node_text(node);
    return name != NULL && (strcmp(name, "latin1") == 0 || strcmp(name, "latin-1") == 0);
}

static bool is_bytes_class(const struct gcmp_node *node) {
    static const char *const modules[] = {"builtins", "__builtin__"};
    for (size_t i = 0; i < 2; i++) {
        if (gcmp_node_is_call(node, modules[i], "bytes") ||
            gcmp_node_is_call(node, modules[i], "bytearray")) {
            return true;
        }
    }
    return false;
}

static bool is_kind(const struct gcmp_node *node, enum gcmp_node_kind kind) {
    return node != NULL && node->kind == kind;
}

/* Find what holds the bytes of a node: a BYTES node, a TEXT node whose characters are the bytes, or
 * NULL, with *empty set for a call without arguments. A bytearray may hold an encode call. */
static const struct gcmp_node *find_holder(const struct gcmp_node *node, bool *empty) {
    *empty = false;
    for (int depth = 0; depth < 2 && node != NULL; depth++) {
        bool class_call = is_bytes_class(node);
        if (is_kind(node, GCMP_NODE_BYTES)) {
            return node;
        }
        if (!class_call && !gcmp_node_is_call(node, "_codecs", "encode")) {
            return NULL;
        }
        const struct gcmp_node *first = gcmp_node_arg(node, 0);
        if (is_kind(first, GCMP_NODE_TEXT) && is_latin1(gcmp_node_arg(node, 1))) {
            return first;
        }
        *empty = class_call && first == NULL;
        node = class_call ? first : NULL;
    }
    return is_kind(node, GCMP_NODE_BYTES) ? node : NULL;
}

bool gcmp_node_is_bytes(const struct gcmp_node *node) {
    bool empty;
    return find_holder(node, &empty) != NULL || empty;
}

/* Write the characters of a valid UTF-8 text as bytes; false where one is over 255. */
static bool encode_latin1(const struct gcmp_node *text, unsigned char *to, size_t *written) {
    const unsigned char *from = (const unsigned char *)text->as.text.bytes;
    size_t used = 0;
    for (size_t i = 0; i < text->as.text.length_bytes; i++) {
        if (from[i] < 0x80) {
            to[used++] = from[i];
        } else if (from[i] <= 0xc3) { /* C2 and C3 lead the two bytes of 128 to 255 */
            to[used++] = (unsigned char)((from[i] & 3) << 6 | (from[i + 1] & 0x3f));
            i++;
        } else {
            return false;
        }
    }
    *written = used;
    return true;
}

enum gradcmp_status gcmp_node_bytes(const struct gcmp_node *node, struct gcmp_arena *arena,
                                    const unsigned char **bytes, size_t *length_bytes,
                                    struct gradcmp_error *error) {
    bool empty;
    const struct gcmp_node *holder = find_holder(node, &empty);
    if (holder == NULL && !empty) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "pickle: expected bytes, found %s",
                  gcmp_node_kind_name(node));
    }
    if (holder == NULL || holder->kind == GCMP_NODE_BYTES) {
        *bytes = holder == NULL ? (const unsigned char *)"" : (const void *)holder->as.text.bytes;
        *length_bytes = holder == NULL ? 0 : holder->as.text.length_bytes;
        return GRADCMP_OK;
    }
    unsigned char *copy = gcmp_arena_alloc(arena, holder->as.text.length_bytes + 1, 1);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (!encode_latin1(holder, copy, length_bytes)) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "pickle: bytes as a text with a character over 255");
    }
    *bytes = copy;
    return GRADCMP_OK;
}
