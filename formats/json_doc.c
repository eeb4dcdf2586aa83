/* Opens JSON files of a checkpoint, and tells what is in them. */
#include "formats/json_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum gradcmp_status gcmp_json_read(struct gcmp_dir *dir, const char *name, uint64_t limit,
                                   struct gcmp_json_file *out, struct gradcmp_error *error) {
    *out = (struct gcmp_json_file){0};
    GCMP_TRY(gcmp_dir_slurp(dir, name, limit, &out->bytes, &out->text.count, error));
    if (asprintf(&out->path, "%s/%s", gcmp_dir_path(dir), name) < 0) {
        out->path = NULL; /* its content is undefined after a failure */
        GCMP_FAIL_MEMORY(error);
    }
    out->text.bytes = (const char *)out->bytes;
    out->text.path = out->path;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_json_open(struct gcmp_dir *dir, const char *name, uint64_t limit,
                                   struct gcmp_json_file *out, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_json_read(dir, name, limit, out, error));
    return gcmp_json_parse(&out->text, &out->root, error);
}

void gcmp_json_close(struct gcmp_json_file *file) {
    json_decref(file->root);
    free(file->bytes);
    free(file->path);
    *file = (struct gcmp_json_file){0};
}

uint64_t gcmp_json_place(const struct gcmp_json_text *text, const char *name) {
    size_t bytes = strlen(name);
    const char *from = text->bytes, *end = text->bytes + text->count;
    for (;;) {
        const char *found = memmem(from, (size_t)(end - from), name, bytes);
        if (found == NULL) {
            return text->base_bytes;
        }
        const char *behind = found + bytes;
        if (found > text->bytes && found[-1] == '"' && behind < end && *behind == '"') {
            return text->base_bytes + (uint64_t)(found - 1 - text->bytes);
        }
        from = found + 1;
    }
}

bool gcmp_json_size(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

bool gcmp_json_sizes(const json_t *value, uint64_t *out, unsigned limit, unsigned *count) {
    if (!json_is_array(value) || json_array_size(value) > limit) {
        return false;
    }
    *count = (unsigned)json_array_size(value);
    for (unsigned i = 0; i < *count; i++) {
        if (!gcmp_json_size(json_array_get(value, i), &out[i])) {
            return false;
        }
    }
    return true;
}

const char *gcmp_json_sizes_fault(const json_t *value) {
    uint64_t ignored;
    if (!json_is_array(value)) {
        return gcmp_json_kind(value);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!gcmp_json_size(json_array_get(value, i), &ignored)) {
            return gcmp_json_kind(json_array_get(value, i));
        }
    }
    return "another number of them";
}

const char *gcmp_json_kind(const json_t *value) {
    if (value == NULL) {
        return "nothing";
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
        return json_integer_value(value) < 0 ? "a negative integer" : "an integer";
    case JSON_REAL:
        return "a number with a fraction or an exponent";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    default:
        return "null";
    }
}
