/* What extracted files say of the run.
 *
 * Limits: MAX_LAYER; MAX_NUMBERS parameters with numbers for names; those of json_text.c. */
#include "formats/extracted.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dir.h"
#include "base/dtype.h"
#include "base/json_text.h"
#include "base/map.h"

enum { MAX_LAYER = 1 << 24, MAX_NUMBERS = 1 << 24 };

static const char WRITER[] = "gradcmp";

enum gcmp_dcp_style gcmp_extracted_style(const struct gradcmp_catalogue *catalogue) {
    return catalogue->writer == WRITER ? GCMP_DCP_MEGATRON : GCMP_DCP_TORCH;
}

bool gcmp_is_extracted(const struct gradcmp_catalogue *catalogue) {
    return catalogue->writer == WRITER;
}

bool gcmp_extracted_parse_key(struct gcmp_arena *arena, const char *key, struct gcmp_dcp_key *out) {
    static const char prefix[] = "optimizer.state.";
    char *text = gcmp_arena_dup(arena, key);
    if (text == NULL) {
        return false;
    }
    for (char *at = strchr(text, '/'); at != NULL; at = strchr(at, '/')) {
        *at = '.';
    }
    *out =
        (struct gcmp_dcp_key){.kind = GCMP_DCP_MODEL, .text = text, .name = text, .state = "param"};
    const char *state = text + sizeof prefix - 1;
    if (strncmp(text, prefix, sizeof prefix - 1) == 0 && strchr(state, '.') != NULL) {
        size_t bytes = strcspn(state, ".");
        out->kind = GCMP_DCP_STATE;
        out->name = state + bytes + 1;
        out->state = gcmp_arena_text(arena, state, bytes);
    }
    return out->state != NULL;
}

static enum gradcmp_status fail_text(const struct gradcmp_catalogue *catalogue, const char *name,
                                     const char *expected, struct gradcmp_error *error) {
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(catalogue->dir), GRADCMP_NO_OFFSET,
                 "\"%.60s\" in the file's metadata: expected %s", name, expected);
}

/* A decimal number of at most 18 digits. */
static bool read_count(const char *text, uint64_t *out) {
    size_t digits = strspn(text, "0123456789");
    bool good = digits > 0 && digits <= 18 && text[digits] == '\0';
    *out = good ? strtoull(text, NULL, 10) : 0;
    return good;
}

static enum gradcmp_status take_compute(struct gradcmp_catalogue *catalogue, const char *text,
                                        struct gradcmp_error *error) {
    enum gradcmp_dtype dtype = gcmp_dtype_find(text);
    if (!gcmp_dtype_is_float(dtype)) {
        return fail_text(catalogue, GCMP_EXTRACTED_COMPUTE, "a floating-point type", error);
    }
    catalogue->compute = dtype;
    return GRADCMP_OK;
}

/* --- numbers for names --- */

static enum gradcmp_status take_groups(struct gradcmp_catalogue *catalogue, const json_t *list,
                                       struct gradcmp_error *error) {
    size_t count = json_is_array(list) ? json_array_size(list) : MAX_NUMBERS + 1;
    if (count > MAX_NUMBERS) {
        return fail_text(catalogue, GCMP_EXTRACTED_NUMBERS, "a list of groups", error);
    }
    uint32_t *groups = gcmp_arena_alloc(catalogue->arena, count, sizeof *groups);
    if (groups == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t group = json_is_integer(item) ? json_integer_value(item) : -1;
        if (group < 0 || group > MAX_NUMBERS) {
            return fail_text(catalogue, GCMP_EXTRACTED_NUMBERS, "a list of groups", error);
        }
        groups[i] = (uint32_t)group;
    }
    catalogue->number_groups = groups;
    catalogue->number_count = count;
    return GRADCMP_OK;
}

/* --- settings --- */

static bool to_setting(const char *name, const json_t *value, struct gradcmp_setting *out) {
    *out = (struct gradcmp_setting){.name = name};
    switch (json_typeof(value)) {
    case JSON_NULL:
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        out->kind = GRADCMP_SETTING_BOOL;
        out->integer = json_is_true(value);
        return true;
    case JSON_INTEGER:
        out->kind = GRADCMP_SETTING_INT;
        out->integer = json_integer_value(value);
        return true;
    case JSON_REAL:
        out->kind = GRADCMP_SETTING_FLOAT;
        out->number = json_real_value(value);
        return true;
    case JSON_STRING:
        out->kind = GRADCMP_SETTING_TEXT;
        out->text = json_string_value(value);
        return true;
    default:
        return false;
    }
}

static enum gradcmp_status take_settings(struct gradcmp_catalogue *catalogue, const json_t *object,
                                         struct gradcmp_error *error) {
    const char *name;
    const json_t *value;
    if (!json_is_object(object)) {
        return fail_text(catalogue, GCMP_EXTRACTED_SETTINGS, "an object", error);
    }
    /* jansson takes no const here, and changes nothing. */
    for (void *at = json_object_iter((json_t *)(uintptr_t)object); at != NULL;
         at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
        struct gradcmp_setting setting;
        name = gcmp_arena_dup(catalogue->arena, json_object_iter_key(at));
        value = json_object_iter_value(at);
        if (name == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        if (!to_setting(name, value, &setting)) {
            return fail_text(catalogue, GCMP_EXTRACTED_SETTINGS, "plain values", error);
        }
        GCMP_TRY(gcmp_catalogue_set(catalogue, &setting, error));
    }
    return GRADCMP_OK;
}

/* Read a text as JSON and take it. */
static enum gradcmp_status take_json(
    struct gradcmp_catalogue *catalogue, const char *name, const char *text,
    enum gradcmp_status (*take)(struct gradcmp_catalogue *, const json_t *, struct gradcmp_error *),
    struct gradcmp_error *error) {
    struct gcmp_json_text json = {text, strlen(text), NULL, 0};
    json_t *root;
    enum gradcmp_status status = gcmp_json_parse(&json, &root, error);
    if (status == GRADCMP_ERROR_CORRUPT) {
        return fail_text(catalogue, name, "JSON", error);
    }
    GCMP_TRY(status);
    status = take(catalogue, root, error);
    json_decref(root);
    return status;
}

/* --- layers of tensors --- */

struct layers {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_map by_key; /* tensor -> index */
    struct gradcmp_error *error;
};

static enum gradcmp_status fail_layers(const struct layers *layers, const char *expected) {
    return fail_text(layers->catalogue, GCMP_EXTRACTED_TENSOR_LAYERS, expected, layers->error);
}

static enum gradcmp_status reword(const struct layers *layers, enum gradcmp_status status) {
    return status == GRADCMP_ERROR_CORRUPT ? fail_layers(layers, "JSON") : status;
}

static enum gradcmp_status take_layer(const struct layers *layers, const char *name,
                                      const json_t *value) {
    size_t index;
    json_int_t layer = json_is_integer(value) ? json_integer_value(value) : -1;
    if (!gcmp_map_find(&layers->by_key, name, strlen(name), &index)) {
        return GRADCMP_OK;
    }
    if (layer < 0 || layer > MAX_LAYER) {
        return fail_layers(layers, "layers from 0 on");
    }
    layers->catalogue->stored[index].stated_layer = (uint32_t)layer + 1;
    return GRADCMP_OK;
}

static enum gradcmp_status walk_layers(const struct layers *layers,
                                       struct gcmp_json_parts *entries) {
    for (;;) {
        bool found;
        json_t *value;
        GCMP_TRY(reword(layers, gcmp_json_parts_next(entries, &found, layers->error)));
        if (!found) {
            return reword(layers, gcmp_json_parts_end(entries, layers->error));
        }
        GCMP_TRY(reword(layers, gcmp_json_parts_value(entries, &value, layers->error)));
        enum gradcmp_status status = take_layer(layers, entries->name, value);
        json_decref(value);
        GCMP_TRY(status);
    }
}

static enum gradcmp_status take_layers(struct layers *layers, const struct gcmp_json_text *text) {
    const struct gradcmp_catalogue *catalogue = layers->catalogue;
    struct gcmp_json_parts entries;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const char *key = catalogue->stored[i].key;
        if (gcmp_map_add(&layers->by_key, key, strlen(key), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(layers->error);
        }
    }
    enum gradcmp_status status = gcmp_json_parts_open(&entries, text, 0, UINT32_MAX, layers->error);
    if (status == GRADCMP_OK) {
        status = walk_layers(layers, &entries);
    }
    gcmp_json_parts_close(&entries);
    return status;
}

/* Entry by entry: there is one for each tensor of the file. */
enum gradcmp_status gcmp_extracted_take_layers(struct gradcmp_catalogue *catalogue,
                                               const char *text, struct gradcmp_error *error) {
    struct layers layers = {catalogue, GCMP_MAP_INIT, error};
    struct gcmp_json_text json = {text, strlen(text), NULL, 0};
    if (!gcmp_json_begins(&json, 0, '{')) {
        return fail_layers(&layers, "an object");
    }
    enum gradcmp_status status = take_layers(&layers, &json);
    gcmp_map_free(&layers.by_key);
    return status;
}

/* The counts among the texts; true where `name` is one. */
static bool take_count(struct gradcmp_catalogue *catalogue, const char *name, uint64_t value) {
    if (strcmp(name, GCMP_EXTRACTED_ITERATION) == 0) {
        catalogue->iteration = (int64_t)value;
    } else if (strcmp(name, GCMP_EXTRACTED_COUNTED) == 0) {
        catalogue->iteration = (int64_t)value;
        catalogue->iteration_is_count = true;
    } else if (strcmp(name, GCMP_EXTRACTED_LAYERS) == 0) {
        catalogue->layers = value;
    } else if (strcmp(name, GCMP_EXTRACTED_VOCAB) == 0) {
        catalogue->vocab = value;
    } else if (strcmp(name, GCMP_EXTRACTED_PADDED_VOCAB) == 0) {
        catalogue->padded_vocab = value;
    } else if (strcmp(name, GCMP_EXTRACTED_EXPERTS) == 0) {
        catalogue->experts = value;
    } else if (strcmp(name, GCMP_EXTRACTED_DUMP) == 0) {
        catalogue->is_dump = value != 0;
    } else {
        return false;
    }
    return true;
}

enum gradcmp_status gcmp_extracted_take(struct gradcmp_catalogue *catalogue, const char *name,
                                        const char *text, struct gradcmp_error *error) {
    uint64_t value;
    bool is_number = read_count(text, &value);
    if (take_count(catalogue, name, value)) {
        return is_number ? GRADCMP_OK : fail_text(catalogue, name, "a whole number", error);
    }
    if (strcmp(name, GCMP_EXTRACTED_VERSION) == 0) {
        catalogue->writer = WRITER;
    } else if (strcmp(name, GCMP_EXTRACTED_COMPUTE) == 0) {
        return take_compute(catalogue, text, error);
    } else if (strcmp(name, GCMP_EXTRACTED_NUMBERS) == 0) {
        return take_json(catalogue, name, text, take_groups, error);
    } else if (strcmp(name, GCMP_EXTRACTED_SETTINGS) == 0) {
        return take_json(catalogue, name, text, take_settings, error);
    }
    return GRADCMP_OK;
}
