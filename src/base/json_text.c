/* Bounds what a JSON text may cost before it is given to the parser, which has no such bounds.
 *
 * Limits: MAX_DEPTH levels; MAX_STRING_BYTES; MAX_COST, where an object costs OBJECT_COST, a
 * member's name NAME_COST and any other value 1 (parsed, an object takes some 400 bytes of memory,
 * a name 100, another value 50: 1 Mi are 50 MiB). */
#include "base/json_text.h"

#include "base/json_load.h"
#include "base/json_scan.h"

enum {
    MAX_DEPTH = 64,
    MAX_STRING_BYTES = 24 << 20,
    MAX_COST = 1 << 20,
    OBJECT_COST = 8,
    NAME_COST = 2
};

/* What a scan of the text found. */
struct scan {
    size_t at, string_at;
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
        scan->string_at = scan->at;
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
    case ':':
        scan->cost += NAME_COST;
        break;
    case ']':
    case '}':
        scan->depth -= scan->depth > 0;
        break;
    default:
        break;
    }
}

static enum gradcmp_status check_limits(const struct gcmp_json_text *text, const struct scan *scan,
                                        struct gradcmp_error *error) {
    uint64_t at = text->base_bytes + scan->at;
    if (text->bytes[scan->at] == '\0') {
        /* jansson reads over one behind a number. */
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, at, "json: NUL byte");
    }
    if (scan->depth > MAX_DEPTH) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, at, "json: more than %d levels",
                     MAX_DEPTH);
    }
    if (scan->cost > MAX_COST) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, at,
                     "json: more values than are read (%d, an object counting as %d, a name as %d)",
                     MAX_COST, OBJECT_COST, NAME_COST);
    }
    if (scan->in_string && scan->at - scan->string_at > MAX_STRING_BYTES) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, text->base_bytes + scan->string_at,
                     "json: a string of more than %d MiB", MAX_STRING_BYTES >> 20);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_json_scan(const struct gcmp_json_text *text, size_t from, unsigned depth,
                                   bool whole, struct gradcmp_error *error) {
    struct scan scan = {.at = from, .depth = depth};
    for (; scan.at < text->count; scan.at++) {
        char byte = text->bytes[scan.at];
        if (!scan.in_string) {
            scan_mark(&scan, byte);
        } else if (byte == '\\' && scan.at + 1 < text->count) {
            scan.at++; /* whatever it escapes is not the end of the string */
        } else if (byte == '"') {
            scan.in_string = false;
        }
        GCMP_TRY(check_limits(text, &scan, error));
        if (!whole && !scan.in_string && scan.depth == depth) {
            break; /* behind the one value, or at what belongs to none */
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_json_check_cost(const struct gcmp_json_text *text,
                                         struct gradcmp_error *error) {
    return gcmp_json_scan(text, 0, 0, true, error);
}

enum gradcmp_status gcmp_json_fail(const struct gcmp_json_text *text, uint64_t at,
                                   const json_error_t *fault, struct gradcmp_error *error) {
    if (gcmp_json_lacked_memory(fault)) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, text->base_bytes + at, "json: %.200s",
                 fault->text);
}

enum gradcmp_status gcmp_json_parse(const struct gcmp_json_text *text, json_t **root,
                                    struct gradcmp_error *error) {
    *root = NULL;
    GCMP_TRY(gcmp_json_check_cost(text, error));
    json_error_t fault;
    *root = gcmp_json_load(text->bytes, text->count, JSON_REJECT_DUPLICATES, &fault);
    return *root != NULL ? GRADCMP_OK
                         : gcmp_json_fail(text, fault.position < 0 ? 0 : (uint64_t)fault.position,
                                          &fault, error);
}
