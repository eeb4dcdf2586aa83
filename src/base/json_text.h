/* JSON texts of strangers, parsed strictly by jansson and within bounds: as one document, or member
 * by member. */
#ifndef GCMP_BASE_JSON_TEXT_H
#define GCMP_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

/* A text in memory. */
struct gcmp_json_text {
    const char *bytes;
    size_t count;
    const char *path;    /* of the file, for messages */
    uint64_t base_bytes; /* offset of bytes[0] in the file */
};

/* Tell whether a text costs less than what is set aside for one document (some 50 MiB), before it
 * is given to jansson, which has no such bounds. Nothing else is checked. Errors: LIMIT for deep
 * nesting, for more values, and for a string of more than 24 MiB; CORRUPT for a NUL. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_check_cost(const struct gcmp_json_text *text,
                                                          struct gradcmp_error *error);

/* Parse one JSON value: UTF-8, no member twice, no NUL in a name, nothing but white space behind.
 * On success *root is owned by the caller (json_decref). Errors: CORRUPT at the byte where the text
 * stops making sense; LIMIT as above. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_parse(const struct gcmp_json_text *text,
                                                     json_t **root, struct gradcmp_error *error);

/* Names that were met: where each stands in the text, by its hash. */
struct gcmp_json_names {
    struct gcmp_json_name {
        uint32_t place; /* of its quote; 0: none, since a brace stands there at least */
        uint32_t hash;
    } * slots;
    size_t capacity, count;
    uint64_t seed;
};

/* An object or array of which one part is in memory at a time. Every part is as in a document: the
 * same texts are refused, in the same words. */
struct gcmp_json_parts {
    const struct gcmp_json_text *text;
    const char *name; /* of the member at hand, until the next step; NULL in an array */
    uint64_t place;   /* of that name's quote in the file */
    size_t at;        /* next byte to read */
    uint32_t limit;   /* parts that are read */
    uint32_t count;   /* parts so far */
    bool is_object;
    json_t *held; /* what `name` lives in */
    struct gcmp_json_names names;
};

/* True where the first value from byte `at` on is an object (or an array, for '['). */
bool gcmp_json_begins(const struct gcmp_json_text *text, size_t at, char bracket);

/* Begin with the object or array at byte `at`, which gcmp_json_begins saw; at most `limit` parts
 * are read. Close it in any case. Errors: LIMIT for a text of 4 GiB. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_parts_open(struct gcmp_json_parts *parts,
                                                          const struct gcmp_json_text *text,
                                                          size_t at, uint32_t limit,
                                                          struct gradcmp_error *error);
void gcmp_json_parts_close(struct gcmp_json_parts *parts);

/* Go to the next part; *found is false behind the last. Its value must be read next: by
 * gcmp_json_parts_value, or as parts of its own from parts->at on, which is then set behind it.
 * Errors: CORRUPT, LIMIT, as of gcmp_json_parse, and LIMIT for more parts than are read. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_parts_next(struct gcmp_json_parts *parts,
                                                          bool *found, struct gradcmp_error *error);

/* Parse the value of the part at hand; the caller owns it (json_decref). Errors: as above. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_json_parts_value(struct gcmp_json_parts *parts, json_t **value, struct gradcmp_error *error);

/* Check that only white space follows behind the outermost object or array. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_parts_end(const struct gcmp_json_parts *parts,
                                                         struct gradcmp_error *error);

#endif
