/* gradcmp_config_...: a YAML file of options as a flat list of names and values. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/yaml_doc.h"

struct gradcmp_config {
    struct gcmp_arena arena; /* owns everything below */
    struct gradcmp_config_entry *entries;
    size_t count;
};

static enum gradcmp_status add(struct gradcmp_config *config, const char *path, const char *name,
                               const struct gcmp_yaml *value, struct gradcmp_error *error) {
    if (value->kind != GCMP_YAML_SCALAR) {
        GCMP_YAML_FAIL(error, path, value, "%s: expected a value or a list of values, found a %s",
                       name, value->kind == GCMP_YAML_MAPPING ? "mapping" : "list in a list");
    }
    struct gradcmp_config_entry *entry = &config->entries[config->count++];
    bool is_true;
    double real;
    *entry = (struct gradcmp_config_entry){name, value->text, GRADCMP_CONFIG_TEXT, 0, value->line};
    if (gcmp_yaml_is_null(value)) {
        entry->kind = GRADCMP_CONFIG_NULL;
        entry->value = "";
    } else if (gcmp_yaml_bool(value, &is_true)) {
        entry->kind = GRADCMP_CONFIG_BOOL;
        entry->value = is_true ? "true" : "false";
    } else if (gcmp_yaml_real(value, &real)) {
        entry->kind = GRADCMP_CONFIG_NUMBER;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status flatten(struct gradcmp_config *config, const char *path,
                                   const struct gcmp_yaml *root, struct gradcmp_error *error) {
    size_t count = 0;
    if (root->kind != GCMP_YAML_MAPPING) {
        GCMP_YAML_FAIL(error, path, root, "expected a mapping of options to values");
    }
    for (size_t i = 0; i < root->count; i++) {
        count += root->items[i]->kind == GCMP_YAML_SEQUENCE ? root->items[i]->count : 1;
    }
    config->entries = gcmp_arena_alloc(&config->arena, count + 1, sizeof *config->entries);
    if (config->entries == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < root->count; i++) {
        const struct gcmp_yaml *value = root->items[i];
        const char *name = root->keys[i]->text;
        if (value->kind != GCMP_YAML_SEQUENCE) {
            GCMP_TRY(add(config, path, name, value, error));
            continue;
        }
        for (size_t j = 0; j < value->count; j++) {
            GCMP_TRY(add(config, path, name, value->items[j], error));
            config->entries[config->count - 1].is_item = 1;
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_config_open(const char *path, struct gradcmp_config **out,
                                        struct gradcmp_error *error) {
    *out = NULL;
    struct gradcmp_config *config = calloc(1, sizeof *config);
    if (config == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_yaml *root = NULL;
    enum gradcmp_status status = gcmp_yaml_read(&config->arena, path, &root, error);
    if (status == GRADCMP_OK && root != NULL) {
        status = flatten(config, path, root, error);
    }
    if (status != GRADCMP_OK) {
        gradcmp_config_free(config);
        return status;
    }
    *out = config;
    return GRADCMP_OK;
}

void gradcmp_config_free(struct gradcmp_config *config) {
    if (config != NULL) {
        gcmp_arena_free(&config->arena);
        free(config);
    }
}

size_t gradcmp_config_count(const struct gradcmp_config *config) {
    return config->count;
}

void gradcmp_config_entry(const struct gradcmp_config *config, size_t index,
                          struct gradcmp_config_entry *out) {
    *out = (struct gradcmp_config_entry){0};
    if (index < config->count) {
        *out = config->entries[index];
    }
}
