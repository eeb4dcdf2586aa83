/* Bounds what a JSON text may cost before it is given to the parser, which has no such bounds.
 *
 * Limits: MAX_DEPTH levels; MAX_COST, where an object costs OBJECT_COST and any other value 1 (an
 * object takes some 400 bytes of memory when it is parsed, another value some 50: 4 Mi are 200 MiB,
 * which is a file of 250 thousand tensors, or an index of two million). */
#include "formats/json_doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_fault.h"

enum { MAX_DEPTH = 64, MAX_COST = 1 << 22, OBJECT_COST = 8 };

/* What a scan of the text found. */
struct scan {
    size_t at;
    unsigned depth;
    uint64_t cost;
    bool in_string;
};

/* Take note of a byte outside of strings: every value but the first comes behind one of [ { : ,
 * so that these count values, a few too many at most. */
static void scan_mark(struct scan *scan, char byte) {
    switch (byte) {
    case '"':
        scan->in_string = true;
        break;
    case '{':
        scan->cost += OBJECT_COST;
        scan->depth++;
        break;
    case '[':
        scan->cost++;
        scan->depth++;
        break;
    case ',':
        scan->cost++;
        break;
    case ']':
    case '}':
        scan->depth -= scan->depth > 0;
        break;
    default:
        break;
    }
}

static enum gradcmp_status check_cost(const struct gcmp_json_text *text,
                                      struct gradcmp_error *error) {
    struct scan scan = {0};
    for (; scan.at < text->count; scan.at++) {
        char byte = text->bytes[scan.at];
        if (!scan.in_string) {
            scan_mark(&scan, byte);
        } else if (byte == '\\') {
            scan.at++; /* whatever it escapes is not the end of the string */
        } else if (byte == '"') {
            scan.in_string = false;
        }
        if (scan.depth > MAX_DEPTH) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, text->base_bytes + scan.at,
                         "json: more than %d levels", MAX_DEPTH);
        }
        if (scan.cost > MAX_COST) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, text->base_bytes + scan.at,
                         "json: more values than are read (%d, an object counting as %d)", MAX_COST,
                         OBJECT_COST);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_json_parse(const struct gcmp_json_text *text, json_t **root,
                                    struct gradcmp_error *error) {
    *root = NULL;
    GCMP_TRY(check_cost(text, error));
    json_error_t fault;
    *root = gcmp_json_load(text->bytes, text->count, &fault);
    if (*root != NULL) {
        return GRADCMP_OK;
    }
    if (gcmp_json_lacked_memory(&fault)) {
        GCMP_FAIL_MEMORY(error);
    }
    uint64_t at = fault.position < 0 ? 0 : (uint64_t)fault.position;
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, text->base_bytes + at, "json: %.200s",
                 fault.text);
}

enum gradcmp_status gcmp_json_open(struct gcmp_dir *dir, const char *name, uint64_t limit,
                                   struct gcmp_json_file *out, struct gradcmp_error *error) {
    *out = (struct gcmp_json_file){0};
    GCMP_TRY(gcmp_dir_slurp(dir, name, limit, &out->bytes, &out->text.count, error));
    if (asprintf(&out->path, "%s/%s", gcmp_dir_path(dir), name) < 0) {
        out->path = NULL; /* its content is undefined after a failure */
        GCMP_FAIL_MEMORY(error);
    }
    out->text.bytes = (const char *)out->bytes;
    out->text.path = out->path;
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
