/* Arguments and environments in JSON and YAML documents. Both parsers bound how deeply sections
 * lie in each other. */
#include <float.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml_doc.h"
#include "base/json_load.h"
#include "base/json_text.h"
#include "base/text.h"
#include "lint/text.h"

/* The sections that are open, each with a dot behind it: "model.optimizer.". */
struct section {
    char path[1024];
    size_t length_bytes;
};

/* Open a section within; *outer_bytes takes what closes it again. */
static enum gradcmp_status open_section(struct section *section, const char *key,
                                        const struct gcmp_lint_source *source, size_t *outer_bytes,
                                        struct gradcmp_error *error) {
    size_t room = sizeof section->path - section->length_bytes;
    char *at = section->path + section->length_bytes;
    *outer_bytes = section->length_bytes;
    int count = snprintf(at, room, "%s.", key + strspn(key, "-"));
    if (count < 0 || (size_t)count >= room) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, source->path, GRADCMP_NO_OFFSET,
                     "names of sections within each other come to more than %zu bytes",
                     sizeof section->path - 1);
    }
    section->length_bytes += (size_t)count;
    return GRADCMP_OK;
}

static void close_section(struct section *section, size_t outer_bytes) {
    section->length_bytes = outer_bytes;
    section->path[outer_bytes] = '\0';
}

/* Set an argument under its path, too, where several sections have its name. */
static enum gradcmp_status set_by_path(struct gcmp_lint_source *source,
                                       const struct gcmp_lint_setting *setting,
                                       struct gradcmp_error *error) {
    struct gcmp_lint_setting own = *setting;
    own.kind = GCMP_LINT_ARG;
    own.name = own.path;
    own.is_by_path = true;
    own.is_repeated = false;
    own.times = 1;
    return gcmp_lint_set(source, &own, error);
}

/* Sections are flat here: the last that has a name counts. Where several have it, each is kept
 * under its path as well, so that a pair is compared in all of them. */
static enum gradcmp_status set_argument(struct gcmp_lint_source *source,
                                        const struct section *section, const char *key,
                                        struct gcmp_lint_setting setting,
                                        struct gradcmp_error *error) {
    const char *name = gcmp_lint_argument_name(source->arena, key);
    setting.path =
        name == NULL ? NULL : gcmp_arena_format(source->arena, "\1%s%s", section->path, name);
    if (setting.path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    setting.section_bytes = strlen(setting.path) - strlen(name);
    const struct gcmp_lint_setting *found = gcmp_lint_find(source, GCMP_LINT_ARG, name);
    if (found == NULL || found->is_by_path || name[0] == '\0') {
        return gcmp_lint_set_argument(source, key, setting, error);
    }
    if (!found->is_repeated) {
        struct gcmp_lint_setting earlier = *found;
        GCMP_TRY(set_by_path(source, &earlier, error));
    }
    setting.is_repeated = true;
    GCMP_TRY(gcmp_lint_set_argument(source, key, setting, error));
    return set_by_path(source, gcmp_lint_find(source, GCMP_LINT_ARG, name), error);
}

/* Where the last key was found. */
struct json_place {
    const char *at;
    uint64_t line;
    unsigned misses;
};

struct json_reader {
    const char *bytes;
    struct gcmp_lint_source *source;
    struct gradcmp_error *error;
    struct json_place *place;
    struct section *section;
};

/* jansson keeps no lines: the next place where the key stands in quotes, since keys are looked at
 * in the order of the text; else the first. 0: it is not found as it is (written with escapes), or
 * too many were not. */
static uint64_t line_of(const struct json_reader *reader, const char *key) {
    enum { MAX_MISSES = 100 };
    struct json_place *place = reader->place;
    char quoted[256];
    if (snprintf(quoted, sizeof quoted, "\"%s\"", key) >= (int)sizeof quoted ||
        place->misses == MAX_MISSES) {
        return 0;
    }
    const char *found = strstr(place->at, quoted);
    if (found == NULL) {
        place->at = reader->bytes;
        place->line = 1;
        found = strstr(place->at, quoted);
    }
    if (found == NULL) {
        place->misses++;
        return 0;
    }
    for (; place->at < found; place->at++) {
        place->line += *place->at == '\n';
    }
    return place->line;
}

/* The text of a value: the string itself, else as JSON writes it, with the fewest digits that give
 * its numbers back; NULL for null. The caller frees
 * *made. */
static const char *scalar_text(const json_t *value, char **made) {
    *made = NULL;
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_null(value)) {
        return NULL;
    }
    for (size_t digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        free(*made);
        *made = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS |
                                      (size_t)JSON_REAL_PRECISION(digits));
        json_t *back = *made == NULL ? NULL : json_loads(*made, JSON_DECODE_ANY, NULL);
        bool is_whole = json_equal(back, value);
        json_decref(back);
        if (is_whole) {
            break;
        }
    }
    return *made;
}

static enum gradcmp_status set_json(const struct json_reader *reader, enum gcmp_lint_kind kind,
                                    const char *key, const json_t *value) {
    char *made;
    struct gcmp_lint_setting setting = {.kind = kind, .name = key, .line = line_of(reader, key)};
    setting.text = scalar_text(value, &made);
    if (setting.text == NULL && !json_is_null(value)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    setting.is_switch = json_is_boolean(value);
    enum gradcmp_status status =
        kind == GCMP_LINT_ENV
            ? gcmp_lint_set(reader->source, &setting, reader->error)
            : set_argument(reader->source, reader->section, key, setting, reader->error);
    free(made);
    return status;
}

static enum gradcmp_status read_json_env(const struct json_reader *reader, json_t *object) {
    const char *key;
    json_t *value;
    reader->source->has_env = true;
    json_object_foreach(object, key, value) {
        if (json_is_object(value) || json_is_array(value)) {
            GCMP_FAIL_AT(reader->error, GRADCMP_ERROR_CORRUPT, reader->source->path,
                         GRADCMP_NO_OFFSET,
                         "line %llu: the value of the environment variable \"%.100s\" is no text",
                         (unsigned long long)line_of(reader, key), key);
        }
        GCMP_TRY(set_json(reader, GCMP_LINT_ENV, key, value));
    }
    return GRADCMP_OK;
}

static bool is_env_name(const char *key) {
    static const char *const names[] = {"ENV_VARS", "env_vars", "env", "environment", "environ"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(key, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_args_name(const char *key) {
    return strcmp(key, "MODEL_ARGS") == 0 || strcmp(key, "model_args") == 0 ||
           strcmp(key, "args") == 0 || strcmp(key, "arguments") == 0;
}

/* True where an object is an environment itself: all values are texts, and names in capitals. */
static bool is_environment(json_t *document) {
    const char *key;
    json_t *value;
    json_object_foreach(document, key, value) {
        if (!json_is_string(value) || strpbrk(key, "abcdefghijklmnopqrstuvwxyz-") != NULL) {
            return false;
        }
    }
    return json_object_size(document) > 0;
}

/* What {"value": X} wraps, with a "desc" beside it, in config.json of Weights & Biases; else the
 * value itself. */
static json_t *unwrap_json(json_t *value) {
    json_t *wrapped = json_object_get(value, "value");
    bool has_only = wrapped != NULL &&
                    (json_object_size(value) == 1 ||
                     (json_object_size(value) == 2 && json_object_get(value, "desc") != NULL));
    return has_only ? wrapped : value;
}

/* Arguments, flat or in sections; a section's values count under their own names. */
static enum gradcmp_status read_json_args(const struct json_reader *reader, json_t *object,
                                          int depth) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        value = unwrap_json(value);
        if (json_is_object(value) && is_env_name(key) && (depth == 0 || is_environment(value))) {
            GCMP_TRY(read_json_env(reader, value));
        } else if (json_is_object(value)) {
            reader->source->has_args = reader->source->has_args || is_args_name(key);
            size_t outer_bytes;
            GCMP_TRY(
                open_section(reader->section, key, reader->source, &outer_bytes, reader->error));
            GCMP_TRY(read_json_args(reader, value, depth + 1));
            close_section(reader->section, outer_bytes);
        } else {
            reader->source->has_args = true;
            GCMP_TRY(set_json(reader, GCMP_LINT_ARG, key, value));
        }
    }
    return GRADCMP_OK;
}

/* Python writes NaN, Infinity and -Infinity, which JSON has not: as texts they are read. Returns
 * false without memory. */
static bool quote_words(const char *bytes, size_t length_bytes, struct gcmp_text *out) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    bool is_text = false;
    size_t from = 0;
    for (size_t i = 0; i < length_bytes; i++) {
        is_text = is_text != (bytes[i] == '"');
        i += is_text && bytes[i] == '\\';
        for (size_t k = 0; k < sizeof words / sizeof *words && !is_text; k++) {
            size_t count = strlen(words[k]);
            if (count <= length_bytes - i && memcmp(bytes + i, words[k], count) == 0) {
                gcmp_text_add_bytes(out, bytes + from, i - from);
                gcmp_text_addf(out, "\"%s\"", words[k]);
                from = i + count;
                i = from - 1;
                break;
            }
        }
    }
    gcmp_text_add_bytes(out, bytes + from, length_bytes - from);
    return !out->failed;
}

static enum gradcmp_status read_json(const char *bytes, size_t length_bytes,
                                     struct gcmp_lint_source *source, struct gradcmp_error *error) {
    json_error_t trouble;
    GCMP_TRY(gcmp_json_check_cost(&(struct gcmp_json_text){bytes, length_bytes, source->path, 0},
                                  error));
    json_t *document = gcmp_json_load(bytes, length_bytes, JSON_REJECT_DUPLICATES, &trouble);
    if (document == NULL && gcmp_json_lacked_memory(&trouble)) {
        GCMP_FAIL_MEMORY(error);
    }
    if (document == NULL) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, source->path,
                     (uint64_t)(trouble.position > 0 ? trouble.position : 0),
                     "line %d, column %d: %.200s", trouble.line, trouble.column, trouble.text);
    }
    struct json_place place = {bytes, 1, 0};
    struct section section = {0};
    struct json_reader reader = {bytes, source, error, &place, &section};
    enum gradcmp_status status = is_environment(document) ? read_json_env(&reader, document)
                                                          : read_json_args(&reader, document, 0);
    json_decref(document);
    return status;
}

enum gradcmp_status gcmp_lint_read_json(const char *bytes, size_t length_bytes,
                                        struct gcmp_lint_source *source,
                                        struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    source->form = GCMP_LINT_JSON;
    enum gradcmp_status status =
        quote_words(bytes, length_bytes, &text)
            ? read_json(text.bytes, text.length_bytes, source, error)
            : gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    gcmp_text_free(&text);
    GCMP_TRY(status);
    if (!source->has_args && !source->has_env) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, source->path, GRADCMP_NO_OFFSET,
                     "a JSON object without any setting");
    }
    return GRADCMP_OK;
}

/* --- YAML --- */

/* True for a plain scalar that JSON writes without quotes. */
static bool is_bare(const struct gcmp_yaml *scalar) {
    double real;
    bool truth;
    return gcmp_yaml_is_null(scalar) || gcmp_yaml_bool(scalar, &truth) ||
           gcmp_yaml_real(scalar, &real);
}

/* A text as JSON writes it. */
static void add_quoted(struct gcmp_text *text, const char *value) {
    gcmp_text_add(text, "\"");
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            gcmp_text_add(text, "\\");
        }
        if ((unsigned char)*at < ' ') {
            gcmp_text_addf(text, "\\u%04x", (unsigned)*at);
        } else {
            gcmp_text_add_bytes(text, at, 1);
        }
    }
    gcmp_text_add(text, "\"");
}

static void add_scalar(struct gcmp_text *text, const struct gcmp_yaml *scalar) {
    bool truth;
    if (gcmp_yaml_is_null(scalar)) {
        gcmp_text_add(text, "null");
    } else if (gcmp_yaml_bool(scalar, &truth)) {
        gcmp_text_add(text, truth ? "true" : "false");
    } else if (is_bare(scalar)) {
        gcmp_text_add(text, scalar->text);
    } else {
        add_quoted(text, scalar->text);
    }
}

/* A mapping's pair, for sorting. */
struct pair {
    const char *key;
    const struct gcmp_yaml *value;
};

static int order_pairs(const void *a, const void *b) {
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static void add_yaml(struct gcmp_text *text, const struct gcmp_yaml *node);

/* Write a mapping in the order of its keys. */
static void add_mapping(struct gcmp_text *text, const struct gcmp_yaml *mapping) {
    struct pair *pairs = calloc(mapping->count + 1, sizeof *pairs);
    if (pairs == NULL) {
        text->failed = true;
        return;
    }
    for (size_t i = 0; i < mapping->count; i++) {
        pairs[i] = (struct pair){mapping->keys[i]->text, mapping->items[i]};
    }
    qsort(pairs, mapping->count, sizeof *pairs, order_pairs);
    gcmp_text_add(text, "{");
    for (size_t i = 0; i < mapping->count; i++) {
        gcmp_text_add(text, i == 0 ? "" : ",");
        add_quoted(text, pairs[i].key);
        gcmp_text_add(text, ":");
        add_yaml(text, pairs[i].value);
    }
    gcmp_text_add(text, "}");
    free(pairs);
}

/* Write a list or mapping as JSON does without blanks. The parser bounds its depth. */
static void add_yaml(struct gcmp_text *text, const struct gcmp_yaml *node) {
    if (node->kind == GCMP_YAML_SCALAR) {
        add_scalar(text, node);
        return;
    }
    if (node->kind == GCMP_YAML_MAPPING) {
        add_mapping(text, node);
        return;
    }
    gcmp_text_add(text, "[");
    for (size_t i = 0; i < node->count; i++) {
        gcmp_text_add(text, i == 0 ? "" : ",");
        add_yaml(text, node->items[i]);
    }
    gcmp_text_add(text, "]");
}

static const char *yaml_text(struct gcmp_arena *arena, const struct gcmp_yaml *node) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    add_yaml(&text, node);
    const char *own = text.failed ? NULL : gcmp_arena_dup(arena, text.bytes);
    gcmp_text_free(&text);
    return own;
}

/* `section` NULL: a variable of the environment. */
static enum gradcmp_status set_yaml(struct gcmp_lint_source *source, const struct section *section,
                                    const struct gcmp_yaml *key, const struct gcmp_yaml *value,
                                    struct gradcmp_error *error) {
    bool truth = false;
    enum gcmp_lint_kind kind = section == NULL ? GCMP_LINT_ENV : GCMP_LINT_ARG;
    struct gcmp_lint_setting setting = {.kind = kind, .name = key->text, .line = key->line};
    if (value->kind != GCMP_YAML_SCALAR) {
        setting.text = yaml_text(source->arena, value);
        setting.line = value->line;
        if (setting.text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    } else if (kind == GCMP_LINT_ARG && gcmp_yaml_bool(value, &truth)) {
        setting.is_switch = true;
        setting.text = truth ? "true" : "false";
    } else {
        setting.text = gcmp_yaml_is_null(value) ? NULL : value->text;
    }
    if (kind == GCMP_LINT_ENV) {
        setting.text = setting.text == NULL ? "" : setting.text;
        return gcmp_lint_set(source, &setting, error);
    }
    return set_argument(source, section, key->text, setting, error);
}

static enum gradcmp_status read_yaml_env(struct gcmp_lint_source *source,
                                         const struct gcmp_yaml *mapping,
                                         struct gradcmp_error *error) {
    source->has_env = true;
    for (size_t i = 0; i < mapping->count; i++) {
        if (mapping->items[i]->kind != GCMP_YAML_SCALAR) {
            GCMP_YAML_FAIL(error, source->path, mapping->keys[i],
                           "the value of the environment variable \"%.100s\" is no text",
                           mapping->keys[i]->text);
        }
        GCMP_TRY(set_yaml(source, NULL, mapping->keys[i], mapping->items[i], error));
    }
    return GRADCMP_OK;
}

/* True where a mapping deeper down is an environment: all values are scalars, and names in
 * capitals. */
static bool is_yaml_environment(const struct gcmp_yaml *mapping) {
    for (size_t i = 0; i < mapping->count; i++) {
        if (mapping->items[i]->kind != GCMP_YAML_SCALAR ||
            strpbrk(mapping->keys[i]->text, "abcdefghijklmnopqrstuvwxyz-") != NULL) {
            return false;
        }
    }
    return mapping->count > 0;
}

/* As unwrap_json, of config.yaml. */
static const struct gcmp_yaml *unwrap(const struct gcmp_yaml *node) {
    const struct gcmp_yaml *value = gcmp_yaml_get(node, "value");
    bool has_only = value != NULL &&
                    (node->count == 1 || (node->count == 2 && gcmp_yaml_get(node, "desc") != NULL));
    return has_only ? value : node;
}

static enum gradcmp_status read_yaml_args(struct gcmp_lint_source *source, struct section *section,
                                          const struct gcmp_yaml *mapping,
                                          struct gradcmp_error *error) {
    for (size_t i = 0; i < mapping->count; i++) {
        const struct gcmp_yaml *value = unwrap(mapping->items[i]);
        if (value->kind == GCMP_YAML_MAPPING && mapping->keys[i]->text[0] != '-') {
            bool is_env = is_env_name(mapping->keys[i]->text) && is_yaml_environment(value);
            size_t outer_bytes;
            GCMP_TRY(open_section(section, mapping->keys[i]->text, source, &outer_bytes, error));
            GCMP_TRY(is_env ? read_yaml_env(source, value, error)
                            : read_yaml_args(source, section, value, error));
            close_section(section, outer_bytes);
            continue;
        }
        source->has_args = true;
        GCMP_TRY(set_yaml(source, section, mapping->keys[i], value, error));
    }
    return GRADCMP_OK;
}

static bool is_section(const struct gcmp_yaml *value) {
    return value->kind == GCMP_YAML_MAPPING || gcmp_yaml_is_null(value);
}

/* Read the environment at the top of a document. */
static enum gradcmp_status read_yaml_top_env(struct gcmp_lint_source *source,
                                             const struct gcmp_yaml *document,
                                             struct gradcmp_error *error) {
    for (size_t i = 0; i < document->count; i++) {
        const struct gcmp_yaml *value = document->items[i];
        if (is_env_name(document->keys[i]->text) && is_section(value)) {
            source->has_env = true;
            if (!gcmp_yaml_is_null(value)) {
                GCMP_TRY(read_yaml_env(source, value, error));
            }
        }
    }
    return GRADCMP_OK;
}

/* Keep what stands beside the sections of a test's model_config.yaml (anchors, the kind of test),
 * and note the first such section. */
static enum gradcmp_status keep_unread(struct gcmp_lint_source *source,
                                       const struct gcmp_yaml *document,
                                       struct gradcmp_error *error) {
    const char *other = NULL;
    struct gcmp_text text = GCMP_TEXT_INIT;
    for (size_t i = 0; i < document->count; i++) {
        const struct gcmp_yaml *value = document->items[i];
        const char *key = document->keys[i]->text;
        if ((!is_args_name(key) && !is_env_name(key)) || !is_section(value)) {
            other = other == NULL && value->kind == GCMP_YAML_MAPPING ? key : other;
            gcmp_text_addf(&text, "%s: ", key);
            add_yaml(&text, value);
            gcmp_text_add(&text, "\n");
        }
    }
    source->unread = text.bytes == NULL ? NULL : gcmp_arena_dup(source->arena, text.bytes);
    bool has_failed = text.failed || (text.bytes != NULL && source->unread == NULL);
    gcmp_text_free(&text);
    if (has_failed) {
        GCMP_FAIL_MEMORY(error);
    }
    if (other != NULL) {
        gcmp_lint_note(source,
                       "%s: the section \"%.100s\" is not looked at, beside one that says to "
                       "hold the arguments",
                       source->path, other);
    }
    return GRADCMP_OK;
}

/* The arguments of a test's model_config.yaml. *found where the document has them. */
static enum gradcmp_status read_yaml_sections(struct gcmp_lint_source *source,
                                              const struct gcmp_yaml *document, bool *found,
                                              struct gradcmp_error *error) {
    for (size_t i = 0; i < document->count; i++) {
        struct section section = {0};
        const struct gcmp_yaml *value = document->items[i];
        if (is_args_name(document->keys[i]->text) && is_section(value)) {
            *found = source->has_args = true;
            if (!gcmp_yaml_is_null(value)) {
                GCMP_TRY(read_yaml_args(source, &section, value, error));
            }
        }
    }
    return *found ? keep_unread(source, document, error) : GRADCMP_OK;
}

/* Everything but an environment at the top is arguments. */
static enum gradcmp_status read_yaml_rest(struct gcmp_lint_source *source,
                                          const struct gcmp_yaml *document,
                                          struct gradcmp_error *error) {
    struct section section = {0};
    struct gcmp_yaml rest = {.kind = GCMP_YAML_MAPPING, .line = document->line};
    rest.items = gcmp_arena_alloc(source->arena, document->count, sizeof *rest.items);
    rest.keys = gcmp_arena_alloc(source->arena, document->count, sizeof *rest.keys);
    if (rest.items == NULL || rest.keys == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < document->count; i++) {
        if (!is_env_name(document->keys[i]->text) || !is_section(document->items[i])) {
            rest.items[rest.count] = document->items[i];
            rest.keys[rest.count++] = document->keys[i];
        }
    }
    return read_yaml_args(source, &section, &rest, error);
}

enum gradcmp_status gcmp_lint_read_yaml(const char *bytes, size_t length_bytes,
                                        struct gcmp_lint_source *source,
                                        struct gradcmp_error *error) {
    struct gcmp_yaml *document = NULL;
    bool found = false;
    source->form = GCMP_LINT_YAML;
    GCMP_TRY(gcmp_yaml_parse(source->arena, source->path, bytes, length_bytes, &document, error));
    if (document == NULL || document->kind != GCMP_YAML_MAPPING || document->count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, source->path, GRADCMP_NO_OFFSET,
                     "expected a mapping of settings");
    }
    GCMP_TRY(read_yaml_top_env(source, document, error));
    GCMP_TRY(read_yaml_sections(source, document, &found, error));
    if (!found) {
        const struct gcmp_yaml *training = gcmp_yaml_get(document, "training");
        source->is_mindspeed_mm =
            training != NULL && gcmp_yaml_get(training, "use_deter_comp") != NULL;
        GCMP_TRY(read_yaml_rest(source, document, error));
    }
    if (!source->has_args && !source->has_env) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, source->path, GRADCMP_NO_OFFSET,
                     "a mapping without any setting");
    }
    return GRADCMP_OK;
}
