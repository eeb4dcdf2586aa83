/* Opcodes of pickle protocol 0 that hold texts with escapes: STRING and UNICODE. */
#include <string.h>

#include "formats/pickle_vm.h"

/* Value of up to `limit` digits of a base; the number of digits used is returned. */
static size_t read_digits(const char *text, size_t count, unsigned base, size_t limit,
                          uint32_t *value) {
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    *value = 0;
    while (used < count && used < limit) {
        char c = text[used];
        const char *found = memchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c, base);
        if (found == NULL) {
            break;
        }
        *value = *value * base + (uint32_t)(found - digits);
        used++;
    }
    return used;
}

/* Undo the escape behind a backslash as Python 2's string literals have it: set *out and return the
 * bytes used of `text`; 0 where it is no escape. */
static size_t unescape(const char *text, size_t count, unsigned *out) {
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    if (count == 0) {
        return 0;
    }
    uint32_t value;
    const char *found = memchr(names, text[0], sizeof names - 1);
    if (found != NULL) {
        *out = (unsigned char)values[found - names];
        return 1;
    }
    size_t octal = read_digits(text, count, 8, 3, &value);
    if (octal > 0) {
        *out = value & 0xff;
        return octal;
    }
    if (text[0] == 'x') {
        size_t hex = read_digits(text + 1, count - 1, 16, 2, &value);
        *out = value;
        return hex == 2 ? 3 : 0;
    }
    return 0;
}

/* Undo all escapes into `to`, which has room for `count` bytes; an unknown escape stays as it is,
 * as in Python. */
static bool unescape_all(const char *text, size_t count, char *to, size_t *written) {
    size_t used = 0;
    for (size_t at = 0; at < count;) {
        if (text[at] != '\\') {
            to[used++] = text[at++];
            continue;
        }
        unsigned byte;
        size_t step = unescape(text + at + 1, count - at - 1, &byte);
        if (step == 0 && (at + 1 == count || text[at + 1] == 'x')) {
            return false;
        }
        if (step == 0) {
            to[used++] = text[at++];
            to[used++] = text[at++];
            continue;
        }
        to[used++] = (char)byte;
        at += 1 + step;
    }
    *written = used;
    return true;
}

/* STRING: a line that holds a Python 2 string literal. */
enum gradcmp_status gcmp_pickle_op_string(struct gcmp_pickle_vm *vm) {
    const char *text;
    size_t count;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    if (count < 2 || (text[0] != '\'' && text[0] != '"') || text[count - 1] != text[0]) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected a quoted string");
    }
    /* Unescaping never makes a text longer: the node is made from the line and overwritten. */
    struct gcmp_node *node = gcmp_pickle_new_text(vm, GCMP_NODE_BYTES, text + 1, count - 2);
    if (node == NULL) {
        return gcmp_pickle_fail_memory(vm);
    }
    char *to = (char *)node->as.text.bytes;
    if (!unescape_all(text + 1, count - 2, to, &node->as.text.length_bytes)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "a string with a broken escape");
    }
    to[node->as.text.length_bytes] = '\0';
    return gcmp_pickle_push(vm, node);
}

static size_t put_utf8(uint32_t point, char *to) {
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t count = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = count; i-- > 1; point >>= 6) {
        to[i] = (char)(0x80 | (point & 0x3f));
    }
    to[0] = (char)(count == 1 ? point : leads[count] | point);
    return count;
}

/* Undo "raw-unicode-escape": bytes are Latin-1, \uXXXX and \UXXXXXXXX are code points, every other
 * backslash stands for itself together with what follows. At most 2 bytes for a byte. */
static bool unescape_unicode(const char *text, size_t count, char *to, size_t *written) {
    size_t used = 0;
    for (size_t at = 0; at < count;) {
        uint32_t point = (unsigned char)text[at++];
        if (point == '\\' && at < count && (text[at] == 'u' || text[at] == 'U')) {
            size_t digits = text[at] == 'u' ? 4 : 8;
            at++;
            if (read_digits(text + at, count - at, 16, digits, &point) != digits ||
                point > 0x10ffff) {
                return false;
            }
            at += digits;
        } else if (point == '\\' && at < count) {
            to[used++] = '\\';
            point = (unsigned char)text[at++];
        }
        used += put_utf8(point, to + used);
    }
    *written = used;
    return true;
}

/* UNICODE: a line in "raw-unicode-escape". */
enum gradcmp_status gcmp_pickle_op_unicode(struct gcmp_pickle_vm *vm) {
    const char *text;
    size_t count;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    struct gcmp_node *node = gcmp_pickle_new(vm, GCMP_NODE_TEXT);
    char *to = gcmp_pickle_alloc(vm, 2 * count + 1);
    if (node == NULL || to == NULL) {
        return gcmp_pickle_fail_memory(vm);
    }
    node->as.text.bytes = to;
    if (!unescape_unicode(text, count, to, &node->as.text.length_bytes)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "a text with a broken escape");
    }
    return gcmp_pickle_push(vm, node);
}
