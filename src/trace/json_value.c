/* Reading one JSON text into a flat list of values. */
#include "trace/json_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "report/printable.h"
#include "trace/json_number.h"

enum { PAIRWISE_KEYS = 16 };

struct parser {
    struct gcmp_jv_text *text;
    char *bytes;
    size_t length, at;
    uint64_t line;
    uint32_t open[GCMP_JV_MAX_DEPTH]; /* containers not closed yet */
    unsigned depth;
};

bool gcmp_jv_init(struct gcmp_jv_text *text, bool allows_nan) {
    memset(text, 0, sizeof *text);
    text->allows_nan = allows_nan;
    text->numeric = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return text->numeric != (locale_t)0;
}

void gcmp_jv_release(struct gcmp_jv_text *text) {
    free(text->values);
    if (text->numeric != (locale_t)0) {
        freelocale(text->numeric);
    }
    memset(text, 0, sizeof *text);
}

static bool fail(struct parser *p, const char *fault) {
    p->text->fault = fault;
    p->text->fault_line = p->line;
    p->text->is_cut = p->at >= p->length;
    return false;
}

static void skip_space(struct parser *p) {
    for (; p->at < p->length; p->at++) {
        char c = p->bytes[p->at];
        if (c == '\n') {
            p->line++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

/* Add a value; NULL where there are too many, or no memory. */
static struct gcmp_jv *push(struct parser *p, enum gcmp_jv_kind kind) {
    struct gcmp_jv_text *text = p->text;
    if (text->count == text->capacity) {
        uint32_t capacity = text->capacity == 0 ? 256 : 2 * text->capacity;
        struct gcmp_jv *moved = text->count >= GCMP_JV_MAX_VALUES
                                    ? NULL
                                    : realloc(text->values, capacity * sizeof *moved);
        if (moved == NULL) {
            (void)fail(p, text->count >= GCMP_JV_MAX_VALUES
                              ? "more than 1,000,000 values in one record"
                              : "out of memory");
            return NULL;
        }
        text->values = moved;
        text->capacity = capacity;
    }
    struct gcmp_jv *value = &text->values[text->count++];
    memset(value, 0, sizeof *value);
    value->kind = (unsigned char)kind;
    value->next = text->count;
    return value;
}

/* ---- strings */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Read four hexadecimal digits. */
static bool take_hex(struct parser *p, unsigned *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int digit = p->at < p->length ? hex_digit(p->bytes[p->at]) : -1;
        if (digit < 0) {
            return fail(p, "a \\u escape without four hexadecimal digits");
        }
        *out = *out * 16 + (unsigned)digit;
    }
    return true;
}

static size_t encode(char *to, unsigned code) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Decode what follows "\u": six bytes or twelve become at most four. */
static bool take_unicode(struct parser *p, char **to) {
    unsigned code;
    unsigned low;
    if (!take_hex(p, &code)) {
        return false;
    }
    if (code == 0) {
        return fail(p, "a string that holds NUL");
    }
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || p->length - p->at < 6 || p->bytes[p->at] != '\\' ||
            p->bytes[p->at + 1] != 'u') {
            return fail(p, "half a surrogate pair in a string");
        }
        p->at += 2;
        if (!take_hex(p, &low)) {
            return false;
        }
        if (low < 0xdc00 || low >= 0xe000) {
            return fail(p, "half a surrogate pair in a string");
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *to += encode(*to, code);
    return true;
}

static bool take_escape(struct parser *p, char **to) {
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->length ? p->bytes[p->at] : '\0';
    p->at++;
    if (c == 'u') {
        return take_unicode(p, to);
    }
    const char *found = c == '\0' ? NULL : strchr(from, c);
    if (found == NULL) {
        return fail(p, "an unknown escape in a string");
    }
    *(*to)++ = into[found - from];
    return true;
}

/* Copy one character that is no escape. */
static bool take_character(struct parser *p, char **to) {
    unsigned char c = (unsigned char)p->bytes[p->at];
    size_t size = 1;
    if (c < 0x20) {
        return fail(p, c == 0 ? "a NUL byte" : "a control character in a string");
    }
    if (c >= 0x80) {
        size = gcmp_utf8_decode(p->bytes + p->at, p->length - p->at, NULL);
        if (size == 0) {
            return fail(p, "a byte that is not UTF-8");
        }
    }
    if (*to != p->bytes + p->at) { /* an escape before it made the text shorter */
        memmove(*to, p->bytes + p->at, size);
    }
    *to += size;
    p->at += size;
    return true;
}

static bool is_plain(char c) {
    return c >= 0x20 && c != '"' && c != '\\' && c < 0x7f;
}

/* Read a string; the cursor is at its opening quote. */
static bool take_string(struct parser *p) {
    struct gcmp_jv *value = push(p, GCMP_JV_STRING);
    if (value == NULL) {
        return false;
    }
    uint32_t index = p->text->count - 1;
    p->at++;
    char *start = p->bytes + p->at;
    while (p->at < p->length && is_plain(p->bytes[p->at])) {
        p->at++;
    }
    char *to = p->bytes + p->at;
    while (p->at < p->length && p->bytes[p->at] != '"') {
        bool is_escape = p->bytes[p->at] == '\\';
        p->at += is_escape;
        if (is_escape ? !take_escape(p, &to) : !take_character(p, &to)) {
            return false;
        }
    }
    if (p->at >= p->length) {
        return fail(p, "the text ends inside a string");
    }
    *to = '\0'; /* at the closing quote or before it */
    p->at++;
    p->text->values[index].of.text = start;
    p->text->values[index].count = (uint32_t)(to - start);
    return true;
}

/* ---- other values */

static bool take_word(struct parser *p, const char *word, enum gcmp_jv_kind kind) {
    size_t length = strlen(word);
    if (p->length - p->at < length || memcmp(p->bytes + p->at, word, length) != 0) {
        size_t left = p->length - p->at;
        if (left < length && memcmp(p->bytes + p->at, word, left) == 0) {
            p->at = p->length;
        }
        return fail(p, "expected a value");
    }
    struct gcmp_jv *value = push(p, kind);
    if (value == NULL) {
        return false;
    }
    value->of.text = p->bytes + p->at;
    value->count = (uint32_t)length;
    p->at += length;
    return true;
}

static bool take_number(struct parser *p) {
    struct gcmp_jv *value = push(p, GCMP_JV_INTEGER);
    if (value == NULL) {
        return false;
    }
    struct gcmp_number number;
    const char *fault =
        gcmp_number_scan(p->bytes + p->at, p->length - p->at, p->text->numeric, &number);
    if (fault != NULL) {
        p->at += number.length;
        return fail(p, fault);
    }
    value->is_negative = number.is_negative;
    if (number.is_real) {
        value->kind = GCMP_JV_REAL;
        value->of.text = p->bytes + p->at;
        value->count = (uint32_t)number.length;
    } else {
        value->of.magnitude = number.magnitude;
    }
    p->at += number.length;
    return true;
}

/* Read what needs no second look; false too for an opening bracket, which *opened tells. */
static bool take_value(struct parser *p, bool *opened) {
    char c = p->at < p->length ? p->bytes[p->at] : '\0';
    *opened = c == '{' || c == '[';
    if (*opened) {
        if (p->depth == GCMP_JV_MAX_DEPTH) {
            return fail(p, "nested more than 64 deep");
        }
        if (push(p, c == '{' ? GCMP_JV_OBJECT : GCMP_JV_ARRAY) == NULL) {
            return false;
        }
        p->open[p->depth++] = p->text->count - 1;
        p->at++;
        return true;
    }
    bool nan = p->text->allows_nan;
    switch (c) {
    case '"':
        return take_string(p);
    case 't':
        return take_word(p, "true", GCMP_JV_TRUE);
    case 'f':
        return take_word(p, "false", GCMP_JV_FALSE);
    case 'n':
        return take_word(p, "null", GCMP_JV_NULL);
    case 'N':
        return nan ? take_word(p, "NaN", GCMP_JV_REAL) : fail(p, "NaN is no JSON");
    case 'I':
        return nan ? take_word(p, "Infinity", GCMP_JV_REAL) : fail(p, "Infinity is no JSON");
    default:
        if (c == '-' && nan && p->length - p->at > 1 && p->bytes[p->at + 1] == 'I') {
            return take_word(p, "-Infinity", GCMP_JV_REAL);
        }
        return c == '-' || (c >= '0' && c <= '9') ? take_number(p) : fail(p, "expected a value");
    }
}

static bool is_same_key(const struct gcmp_jv *a, const struct gcmp_jv *b) {
    return a->count == b->count && memcmp(a->of.text, b->of.text, a->count) == 0;
}

/* True where a key stands twice among many. */
static bool has_twin_of_many(struct parser *p, const struct gcmp_jv *object) {
    struct gcmp_map keys = GCMP_MAP_INIT;
    bool twin = false;
    uint32_t at = (uint32_t)(object - p->text->values) + 1;
    for (uint32_t i = 0; i < object->count && !twin; i++) {
        const struct gcmp_jv *key = &p->text->values[at];
        twin = gcmp_map_add(&keys, key->of.text, key->count, i, NULL) != GCMP_MAP_ADDED;
        at = gcmp_jv_next(p->text, at + 1);
    }
    gcmp_map_free(&keys);
    return twin;
}

static bool has_twin(struct parser *p, const struct gcmp_jv *object) {
    const struct gcmp_jv *keys[PAIRWISE_KEYS];
    if (object->count > PAIRWISE_KEYS) {
        return has_twin_of_many(p, object);
    }
    uint32_t at = (uint32_t)(object - p->text->values) + 1;
    for (uint32_t i = 0; i < object->count; i++) {
        keys[i] = &p->text->values[at];
        for (uint32_t k = 0; k < i; k++) {
            if (is_same_key(keys[i], keys[k])) {
                return true;
            }
        }
        at = gcmp_jv_next(p->text, at + 1);
    }
    return false;
}

/* Close the innermost container; the cursor is behind its bracket. */
static bool close_container(struct parser *p) {
    struct gcmp_jv *container = &p->text->values[p->open[--p->depth]];
    container->next = p->text->count;
    if (container->kind == GCMP_JV_OBJECT && has_twin(p, container)) {
        return fail(p, "a key stands twice in one object");
    }
    return true;
}

static bool take_key(struct parser *p) {
    skip_space(p);
    if (p->at >= p->length || p->bytes[p->at] != '"') {
        return fail(p, "expected a key in quotes");
    }
    if (!take_string(p)) {
        return false;
    }
    skip_space(p);
    if (p->at >= p->length || p->bytes[p->at] != ':') {
        return fail(p, "expected a colon behind a key");
    }
    p->at++;
    return true;
}

/* Behind a value: go on to the next one, closing what ends here. *more: another value follows. */
static bool go_on(struct parser *p, bool just_opened, bool *more) {
    *more = false;
    while (p->depth > 0) {
        struct gcmp_jv *container = &p->text->values[p->open[p->depth - 1]];
        char closing = container->kind == GCMP_JV_OBJECT ? '}' : ']';
        skip_space(p);
        char c = p->at < p->length ? p->bytes[p->at] : '\0';
        if (c == closing) {
            p->at++;
            if (!close_container(p)) {
                return false;
            }
            just_opened = false;
            continue;
        }
        if (!just_opened) {
            if (c != ',') {
                return fail(p, container->kind == GCMP_JV_OBJECT ? "expected a comma or }"
                                                                 : "expected a comma or ]");
            }
            p->at++;
        }
        container->count++;
        *more = true;
        return closing == ']' || take_key(p);
    }
    return true;
}

bool gcmp_jv_parse(struct gcmp_jv_text *text, char *bytes, size_t length) {
    struct parser p = {.text = text, .bytes = bytes, .length = length};
    text->count = 0;
    text->is_cut = false;
    text->fault = NULL;
    bool opened = false;
    for (bool more = true; more;) {
        skip_space(&p);
        if (!take_value(&p, &opened) || !go_on(&p, opened, &more)) {
            return false;
        }
    }
    skip_space(&p);
    if (p.at < p.length) {
        return fail(&p, p.bytes[p.at] == '\0' ? "a NUL byte" : "something follows the value");
    }
    return true;
}
