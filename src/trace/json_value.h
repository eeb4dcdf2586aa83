/* One JSON text as a flat list of values: each record of a trace is read into one, which is used
 * again for the next. Our own, because hashes go up to 2^64 - 1, where jansson's integers end, and
 * because ten million records must not cost ten million trees. */
#ifndef GCMP_TRACE_JSON_VALUE_H
#define GCMP_TRACE_JSON_VALUE_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum {
    GCMP_JV_MAX_DEPTH = 64,
    GCMP_JV_MAX_VALUES = 1000000, /* of one text */
    GCMP_JV_ABSENT = 0            /* index where a value is not there: 0 is the whole text */
};

enum gcmp_jv_kind {
    GCMP_JV_NULL = 1,
    GCMP_JV_FALSE,
    GCMP_JV_TRUE,
    GCMP_JV_INTEGER, /* magnitude, is_negative */
    GCMP_JV_REAL,   /* text: as it was written, so not ended by NUL; finite unless NaN is allowed */
    GCMP_JV_STRING, /* text: decoded UTF-8 ended by NUL, without NUL inside */
    GCMP_JV_ARRAY,
    GCMP_JV_OBJECT
};

struct gcmp_jv {
    unsigned char kind; /* enum gcmp_jv_kind */
    bool is_negative;
    uint32_t next;  /* index behind this value and everything in it */
    uint32_t count; /* STRING, REAL: bytes; ARRAY: items; OBJECT: members, a key and a value each */
    union {
        const char *text;
        uint64_t magnitude;
    } of;
};

struct gcmp_jv_text {
    struct gcmp_jv *values;
    uint32_t count, capacity;
    bool allows_nan; /* NaN, Infinity and -Infinity are REAL: Python writes them */
    locale_t numeric;
    /* After a failure: what is wrong, and in which line of the text, from 0. */
    const char *fault;
    uint64_t fault_line;
    bool is_cut; /* the text ends too early */
};

/* Set up and release. False without memory. */
bool gcmp_jv_init(struct gcmp_jv_text *text, bool allows_nan);
void gcmp_jv_release(struct gcmp_jv_text *text);

/* Read `length` bytes, which are decoded in place. Refused:
 * what RFC 8259 does not allow, a key twice in one object, broken UTF-8, a string that holds NUL,
 * integers beyond 64 bits, reals beyond binary64, more depth or values than the limits above. */
bool gcmp_jv_parse(struct gcmp_jv_text *text, char *bytes, size_t length);

/* The value of a key, or GCMP_JV_ABSENT: no such key, or no object. */
uint32_t gcmp_jv_get(const struct gcmp_jv_text *text, uint32_t object, const char *key);
/* The same where keys are looked for one after another: `guess` is the index behind the value found
 * last, where the next key stands if both sides have one order, and `keys`, empty at first, is
 * filled where they have not; to be freed by the caller. */
uint32_t gcmp_jv_find(const struct gcmp_jv_text *text, uint32_t object, const struct gcmp_jv *key,
                      uint32_t guess, struct gcmp_map *keys);
/* The first item of an array, or key of an object; step with gcmp_jv_next, `count` times. */
static inline uint32_t gcmp_jv_first(uint32_t container) {
    return container + 1;
}
static inline uint32_t gcmp_jv_next(const struct gcmp_jv_text *text, uint32_t at) {
    return text->values[at].next;
}
static inline bool gcmp_jv_is(const struct gcmp_jv_text *text, uint32_t at,
                              enum gcmp_jv_kind kind) {
    return at != GCMP_JV_ABSENT && text->values[at].kind == kind;
}
/* A string, or NULL where it is none. */
const char *gcmp_jv_string(const struct gcmp_jv_text *text, uint32_t at);
/* An integer of 0 to 2^63 - 1; false where it is none (true is no integer). */
bool gcmp_jv_count(const struct gcmp_jv_text *text, uint32_t at, int64_t *out);
/* A finite or other number. */
double gcmp_jv_number(const struct gcmp_jv_text *text, uint32_t at);

/* Tell whether two values are the same data: members in any order, 1 equals 1.0, NaN equals NaN. */
bool gcmp_jv_equal(const struct gcmp_jv_text *a, uint32_t at_a, const struct gcmp_jv_text *b,
                   uint32_t at_b);

/* Where two values that are not equal first differ: writes a path such as `[0].digest`, and both
 * values in brief. `capacity` of each buffer in bytes. */
struct gcmp_jv_difference {
    char path[160], a[80], b[80];
};
void gcmp_jv_differ(const struct gcmp_jv_text *a, uint32_t at_a, const struct gcmp_jv_text *b,
                    uint32_t at_b, struct gcmp_jv_difference *out);

#endif
