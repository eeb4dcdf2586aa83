/* Writes lists, dicts and objects of a pickle's data as one line. */
#include "formats/value_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

enum { MAX_DEPTH = 8 };

struct writer {
    struct gcmp_text *text;
    size_t most;
    bool is_cut; /* the mark was written, as the last */
};

static void add(struct writer *writer, const char *bytes, size_t count) {
    if (writer->is_cut) {
        return;
    }
    if (count > writer->most - writer->text->length_bytes) {
        gcmp_text_add(writer->text, GCMP_VALUE_NOT_READ);
        writer->is_cut = true;
        return;
    }
    gcmp_text_add_bytes(writer->text, bytes, count);
}

static void add_word(struct writer *writer, const char *word) {
    add(writer, word, strlen(word));
}

/* Hexadecimal digits: of an integer, which is kept from its lowest byte, from the highest. */
static void add_hex(struct writer *writer, const struct gcmp_node *node) {
    size_t count = node->as.text.length_bytes;
    add_word(writer, "0x");
    for (size_t i = 0; i < count && !writer->is_cut; i++) {
        char digits[3];
        size_t at = node->kind == GCMP_NODE_BIGINT ? count - 1 - i : i;
        snprintf(digits, sizeof digits, "%02x", (unsigned char)node->as.text.bytes[at]);
        add_word(writer, digits);
    }
}

static void add_scalar(struct writer *writer, const struct gcmp_node *node) {
    char digits[GCMP_REAL_BYTES];
    const char *text = gcmp_node_text(node);
    switch (node->kind) {
    case GCMP_NODE_NONE:
        add_word(writer, "null");
        break;
    case GCMP_NODE_BOOL:
        add_word(writer, node->as.integer != 0 ? "true" : "false");
        break;
    case GCMP_NODE_INT:
        snprintf(digits, sizeof digits, "%" PRId64, node->as.integer);
        add_word(writer, digits);
        break;
    case GCMP_NODE_FLOAT:
        gcmp_decimal_write(node->as.number, digits);
        add_word(writer, digits);
        break;
    case GCMP_NODE_GLOBAL:
        add_word(writer, node->as.text.bytes);
        break;
    case GCMP_NODE_TEXT:
    case GCMP_NODE_BYTES:
    case GCMP_NODE_BIGINT:
        if (node->kind == GCMP_NODE_BIGINT || text == NULL) {
            add_hex(writer, node);
        } else {
            add_word(writer, "\"");
            add_word(writer, text);
            add_word(writer, "\"");
        }
        break;
    default:
        add_word(writer, GCMP_VALUE_NOT_READ);
    }
}

static void add_node(struct writer *writer, const struct gcmp_node *node, int depth);

static void add_items(struct writer *writer, const struct gcmp_node *node, int depth) {
    bool is_dict = node->kind == GCMP_NODE_DICT;
    add_word(writer, is_dict ? "{" : "[");
    for (size_t i = 0; i < node->as.list.count && !writer->is_cut; i++) {
        add_word(writer, i == 0 ? "" : is_dict && i % 2 == 1 ? ":" : ",");
        add_node(writer, node->as.list.items[i], depth + 1);
    }
    add_word(writer, is_dict ? "}" : "]");
}

/* Name(arguments), then what was set and added. */
static void add_object(struct writer *writer, const struct gcmp_node *node, int depth) {
    const struct gcmp_node *parts[] = {node->as.call.callee, node->as.call.args,
                                       node->as.call.state, node->as.call.contents};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i] != NULL) {
            add_node(writer, parts[i], depth + 1);
        }
    }
}

/* Recursion ends at MAX_DEPTH. */
static void add_node(struct writer *writer, const struct gcmp_node *node, int depth) {
    switch (node->kind) {
    case GCMP_NODE_TUPLE:
    case GCMP_NODE_LIST:
    case GCMP_NODE_DICT:
    case GCMP_NODE_SET:
    case GCMP_NODE_CALL:
        if (depth == MAX_DEPTH) {
            add_word(writer, GCMP_VALUE_NOT_READ);
        } else if (node->kind == GCMP_NODE_CALL) {
            add_object(writer, node, depth);
        } else {
            add_items(writer, node, depth);
        }
        break;
    default:
        add_scalar(writer, node);
    }
}

void gcmp_value_text(struct gcmp_text *text, const struct gcmp_node *value, size_t most) {
    struct writer writer = {.text = text, .most = most};
    add_node(&writer, value, 0);
}
