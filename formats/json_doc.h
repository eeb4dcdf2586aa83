/* JSON texts of a checkpoint (headers, indexes, array metadata), parsed strictly and within bounds.
 */
#ifndef GCMP_FORMATS_JSON_DOC_H
#define GCMP_FORMATS_JSON_DOC_H

#include "base/dir.h"
#include "base/json_text.h"

/* A whole file with one JSON value, kept with its text for messages. */
struct gcmp_json_file {
    struct gcmp_json_text text;
    json_t *root;
    unsigned char *bytes; /* owned, with path in the same way */
    char *path;
};

/* Read a file of at most `limit` bytes as a text; root is left NULL. Close it in any case. Errors:
 * those of gcmp_dir_slurp. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_read(struct gcmp_dir *dir, const char *name,
                                                    uint64_t limit, struct gcmp_json_file *out,
                                                    struct gradcmp_error *error);

/* Read and parse such a file. Errors: as above, and those of gcmp_json_parse. */
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
