/* Reads an object or array part by part. jansson reads every name and value, and words every fault;
 * only the brackets, colons and commas around them are read here. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

#include "base/checked.h"
#include "base/json_load.h"
#include "base/json_scan.h"

static size_t skip_space(const struct gcmp_json_text *text, size_t at) {
    while (at < text->count && text->bytes[at] != '\0' &&
           strchr(" \t\n\r", text->bytes[at]) != NULL) {
        at++;
    }
    return at;
}

static bool is_at(const struct gcmp_json_parts *parts, char byte) {
    return parts->at < parts->text->count && parts->text->bytes[parts->at] == byte;
}

/* Parse the value at the place reached and go behind it; NULL for a fault. */
static json_t *load_part(struct gcmp_json_parts *parts, size_t flags, json_error_t *fault) {
    const struct gcmp_json_text *text = parts->text;
    json_t *value = gcmp_json_load(
        text->bytes + parts->at, text->count - parts->at,
        flags | JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, fault);
    parts->at += fault->position < 0 ? 0 : (size_t)fault->position;
    return value;
}

/* Have jansson say what is wrong with the byte reached, where it stands behind `before`. */
static enum gradcmp_status fail_behind(const struct gcmp_json_parts *parts, const char *before,
                                       struct gradcmp_error *error) {
    enum { LOOK_BYTES = 1 << 16 }; /* more than any token that it quotes */
    const struct gcmp_json_text *text = parts->text;
    size_t left = text->count - parts->at, length = strlen(before);
    size_t count = left < LOOK_BYTES ? left : LOOK_BYTES;
    char *bytes = malloc(length + count);
    if (bytes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(bytes, before, length); /* NOLINT(bugprone-not-null-terminated-result): counted */
    memcpy(bytes + length, text->bytes + parts->at, count);
    json_error_t fault;
    json_t *value = gcmp_json_load(bytes, length + count, JSON_REJECT_DUPLICATES, &fault);
    free(bytes);
    size_t read = fault.position < 0 ? 0 : (size_t)fault.position;
    if (value != NULL) {
        json_decref(value);
        snprintf(fault.text, sizeof fault.text, "unexpected token");
    }
    return gcmp_json_fail(text, parts->at + (read > length ? read - length : 0), &fault, error);
}

/* Fail for the name that ends at the byte reached, as jansson does: it quotes short ones. */
static enum gradcmp_status fail_name(const struct gcmp_json_parts *parts, size_t from,
                                     const char *what, struct gradcmp_error *error) {
    enum { QUOTED_BYTES = 20 };
    const struct gcmp_json_text *text = parts->text;
    size_t length = parts->at - from;
    bool quoted = length <= QUOTED_BYTES;
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, text->base_bytes + parts->at,
                 "json: %s%s%.*s%s", what, quoted ? " near '" : "", quoted ? (int)length : 0,
                 text->bytes + from, quoted ? "'" : "");
}

/* --- names that were met --- */

/* Compare the name at hand with the one at `place`. Errors: MEMORY. */
static enum gradcmp_status is_same_name(const struct gcmp_json_parts *parts, uint32_t place,
                                        bool *same, struct gradcmp_error *error) {
    const struct gcmp_json_text *text = parts->text;
    size_t length = json_string_length(parts->held);
    json_error_t fault;
    json_t *other = gcmp_json_load(text->bytes + place, text->count - place,
                                   JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &fault);
    if (other == NULL) { /* it was read before */
        GCMP_FAIL_MEMORY(error);
    }
    *same = json_string_length(other) == length &&
            memcmp(json_string_value(other), parts->name, length) == 0;
    json_decref(other);
    return GRADCMP_OK;
}

static void put_name(struct gcmp_json_names *names, struct gcmp_json_name name) {
    size_t mask = names->capacity - 1, at = name.hash & mask;
    while (names->slots[at].place != 0) {
        at = (at + 1) & mask;
    }
    names->slots[at] = name;
}

static bool grow_names(struct gcmp_json_names *names) {
    struct gcmp_json_names bigger = {.capacity = 16, .count = names->count, .seed = names->seed};
    if (names->capacity == 0 && getrandom(&bigger.seed, sizeof bigger.seed, GRND_NONBLOCK) < 0) {
        bigger.seed = (uint64_t)(uintptr_t)names; /* early boot: the address has to do */
    }
    if (names->capacity != 0 && !gcmp_mul_size(names->capacity, 2, &bigger.capacity)) {
        return false;
    }
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < names->capacity; i++) {
        if (names->slots[i].place != 0) {
            put_name(&bigger, names->slots[i]);
        }
    }
    free(names->slots);
    *names = bigger;
    return true;
}

/* Take note of the name at `place`; fail where it was met before. */
static enum gradcmp_status add_name(struct gcmp_json_parts *parts, size_t place,
                                    struct gradcmp_error *error) {
    struct gcmp_json_names *names = &parts->names;
    if (3 * (names->count + 1) > 2 * names->capacity && !grow_names(names)) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t length = json_string_length(parts->held), mask = names->capacity - 1;
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(parts->name, length, names->seed);
    for (size_t at = hash & mask; names->slots[at].place != 0; at = (at + 1) & mask) {
        const struct gcmp_json_name *other = &names->slots[at];
        bool same = false;
        if (other->hash == hash) {
            GCMP_TRY(is_same_name(parts, other->place, &same, error));
        }
        if (same) {
            return fail_name(parts, place, "duplicate object key", error);
        }
    }
    put_name(names, (struct gcmp_json_name){(uint32_t)place, hash});
    names->count++;
    return GRADCMP_OK;
}

/* --- parts --- */

bool gcmp_json_begins(const struct gcmp_json_text *text, size_t at, char bracket) {
    at = skip_space(text, at);
    return at < text->count && text->bytes[at] == bracket;
}

enum gradcmp_status gcmp_json_parts_open(struct gcmp_json_parts *parts,
                                         const struct gcmp_json_text *text, size_t at,
                                         uint32_t limit, struct gradcmp_error *error) {
    *parts = (struct gcmp_json_parts){
        .text = text, .at = skip_space(text, at), .limit = limit, .is_object = true};
    if (text->count > UINT32_MAX) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, text->base_bytes,
                     "json: more than 4 GiB");
    }
    parts->is_object = !is_at(parts, '[');
    parts->at++;
    return GRADCMP_OK;
}

void gcmp_json_parts_close(struct gcmp_json_parts *parts) {
    json_decref(parts->held);
    free(parts->names.slots);
    parts->held = NULL;
    parts->names = (struct gcmp_json_names){0};
}

static enum gradcmp_status read_name(struct gcmp_json_parts *parts, struct gradcmp_error *error) {
    const struct gcmp_json_text *text = parts->text;
    json_error_t fault;
    size_t from = parts->at;
    if (!is_at(parts, '"')) {
        return fail_behind(parts, parts->count == 0 ? "{" : "{\"\":[],", error);
    }
    GCMP_TRY(gcmp_json_scan(text, from, 0, false, error));
    json_decref(parts->held);
    parts->held = load_part(parts, JSON_ALLOW_NUL, &fault);
    if (parts->held == NULL) {
        return gcmp_json_fail(text, parts->at, &fault, error);
    }
    parts->name = json_string_value(parts->held);
    parts->place = text->base_bytes + from;
    if (strlen(parts->name) != json_string_length(parts->held)) {
        return fail_name(parts, from, "NUL byte in object key not supported", error);
    }
    GCMP_TRY(add_name(parts, from, error));
    parts->at = skip_space(text, parts->at);
    if (!is_at(parts, ':')) {
        return fail_behind(parts, "{\"\"", error);
    }
    parts->at++;
    return GRADCMP_OK;
}

/* Go over what stands between two parts; *found is false behind the last. */
static enum gradcmp_status go_between(struct gcmp_json_parts *parts, bool *found,
                                      struct gradcmp_error *error) {
    parts->at = skip_space(parts->text, parts->at);
    *found = !is_at(parts, parts->is_object ? '}' : ']');
    if (!*found) {
        parts->at++;
        return GRADCMP_OK;
    }
    if (parts->count > 0) {
        if (!is_at(parts, ',')) {
            return fail_behind(parts, parts->is_object ? "{\"\":[]" : "[[]", error);
        }
        parts->at = skip_space(parts->text, parts->at + 1);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_json_parts_next(struct gcmp_json_parts *parts, bool *found,
                                         struct gradcmp_error *error) {
    const struct gcmp_json_text *text = parts->text;
    GCMP_TRY(go_between(parts, found, error));
    if (!parts->is_object && parts->at == text->count && *found) {
        return fail_behind(parts, parts->count == 0 ? "[" : "[[],", error);
    }
    if (*found && parts->count == parts->limit) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, text->path, text->base_bytes + parts->at,
                     "json: more than %u %s in one %s", parts->limit,
                     parts->is_object ? "members" : "values",
                     parts->is_object ? "object" : "array");
    }
    if (*found && parts->is_object) {
        GCMP_TRY(read_name(parts, error));
    }
    parts->count += *found;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_json_parts_value(struct gcmp_json_parts *parts, json_t **value,
                                          struct gradcmp_error *error) {
    json_error_t fault;
    *value = NULL;
    parts->at = skip_space(parts->text, parts->at);
    GCMP_TRY(gcmp_json_scan(parts->text, parts->at, 1, false, error));
    *value = load_part(parts, 0, &fault);
    return *value != NULL ? GRADCMP_OK : gcmp_json_fail(parts->text, parts->at, &fault, error);
}

enum gradcmp_status gcmp_json_parts_end(const struct gcmp_json_parts *parts,
                                        struct gradcmp_error *error) {
    struct gcmp_json_parts rest = *parts;
    rest.at = skip_space(parts->text, parts->at);
    return rest.at == parts->text->count ? GRADCMP_OK : fail_behind(&rest, "{}", error);
}
