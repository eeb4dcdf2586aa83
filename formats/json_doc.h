/* JSON texts of a checkpoint (headers, indexes, array metadata), parsed strictly and within bounds.
 */
#ifndef GCMP_FORMATS_JSON_DOC_H
#define GCMP_FORMATS_JSON_DOC_H

#include <jansson.h>

#include "base/dir.h"
#include "base/error.h"

/* A text in memory. */
struct gcmp_json_text {
    const char *bytes;
    size_t count;
    const char *path;    /* of the file, for messages */
    uint64_t base_bytes; /* offset of bytes[0] in the file */
};

/* Parse one JSON value: UTF-8, no member twice, no NUL in a name, nothing but white space behind.
 * On success *root is owned by the caller (json_decref). Errors: CORRUPT at the byte where the text
 * stops making sense; LIMIT for deep nesting and for more values than memory is set aside for. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_parse(const struct gcmp_json_text *text,
                                                     json_t **root, struct gradcmp_error *error);

/* A whole file with one JSON value, kept with its text for messages. */
struct gcmp_json_file {
    struct gcmp_json_text text;
    json_t *root;
    unsigned char *bytes; /* owned, with path in the same way */
    char *path;
};

/* Read a file of at most `limit` bytes; close it in any case. Errors as above, and IO. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_open(struct gcmp_dir *dir, const char *name,
                                                    uint64_t limit, struct gcmp_json_file *out,
                                                    struct gradcmp_error *error);
void gcmp_json_close(struct gcmp_json_file *file);

/* Fail at the place of a member of the file. */
#define GCMP_JSON_FAIL(file, name, error, code, ...)                                               \
    GCMP_FAIL_AT((error), (code), (file)->text.path, gcmp_json_place(&(file)->text, (name)),       \
                 __VA_ARGS__)

/* Where a member's name stands in the text, for messages (it searches): offset of its quote. The
 * text's first byte where it is not found as it is (it may be written with escapes). */
uint64_t gcmp_json_place(const struct gcmp_json_text *text, const char *name);

/* True where the value is an integer of 0 or more; 24e0 and 24.0 are not. */
bool gcmp_json_size(const json_t *value, uint64_t *out);

/* True where the value is an array of at most `limit` such integers. */
bool gcmp_json_sizes(const json_t *value, uint64_t *out, unsigned limit, unsigned *count);

/* What keeps a value from being such an array, for messages. */
const char *gcmp_json_sizes_fault(const json_t *value);

/* What the value is, for messages: "a text", "an array", "nothing" for NULL. */
const char *gcmp_json_kind(const json_t *value);

#endif
