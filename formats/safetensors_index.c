/* Reads the index of a checkpoint in several safetensors files: {"weight_map": {tensor: file}}.
 *
 * Limits: MAX_INDEX_BYTES; those of json_doc.c. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "formats/json_doc.h"
#include "formats/safetensors_set.h"

enum { MAX_INDEX_BYTES = 100000000 };

struct index {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_st_set *set;
    struct gcmp_json_file file;
    const json_t *weights; /* tensor -> file */
    struct gradcmp_error *error;
};

#define FAIL_AT_NAME(index, name, code, ...)                                                       \
    GCMP_JSON_FAIL(&(index)->file, (name), (index)->error, (code),                                 \
                   "safetensors index: " __VA_ARGS__)

static enum gradcmp_status find_weights(struct index *index) {
    index->weights = json_object_get(index->file.root, "weight_map");
    if (!json_is_object(index->weights)) {
        FAIL_AT_NAME(index, "weight_map", GRADCMP_ERROR_CORRUPT,
                     "expected an object as weight_map, found %s", gcmp_json_kind(index->weights));
    }
    return GRADCMP_OK;
}

/* Check the file of one tensor and open it, unless it was named before. */
static enum gradcmp_status open_file(struct index *index, const char *tensor, const json_t *value,
                                     struct gcmp_map *seen) {
    const char *file = json_string_value(value);
    if (file == NULL) {
        FAIL_AT_NAME(index, tensor, GRADCMP_ERROR_CORRUPT,
                     "\"%.160s\": expected the name of a file, found %s", tensor,
                     gcmp_json_kind(value));
    }
    enum gcmp_map_result result = gcmp_map_add(seen, file, strlen(file), 0, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(index->error);
    }
    if (result == GCMP_MAP_PRESENT) {
        return GRADCMP_OK;
    }
    const char *fault = gcmp_dir_name_fault(file, strlen(file));
    if (fault != NULL) {
        FAIL_AT_NAME(index, tensor, GRADCMP_ERROR_CORRUPT, "file name \"%.200s\" %s", file, fault);
    }
    if (gcmp_dir_kind(index->catalogue->dir, file) == GCMP_DIR_ABSENT) {
        FAIL_AT_NAME(index, tensor, GRADCMP_ERROR_IO,
                     "file \"%.200s\" is named, but there is no such file", file);
    }
    return gcmp_st_set_add(index->catalogue, index->set, file, index->error);
}

static enum gradcmp_status open_files(struct index *index) {
    struct gcmp_map seen = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)index->weights, tensor, value) {
        status = open_file(index, tensor, value, &seen);
        if (status != GRADCMP_OK) {
            break;
        }
    }
    gcmp_map_free(&seen);
    return status;
}

/* Every tensor of the files must be listed, under the file that holds it. */
static enum gradcmp_status check_files(const struct index *index, struct gcmp_map *held) {
    const struct gcmp_dir *dir = index->catalogue->dir;
    for (size_t i = 0; i < index->set->count; i++) {
        const struct gcmp_st_image *image = &index->set->images[i];
        const char *file = gcmp_dir_file_name(dir, image->file);
        for (size_t j = 0; j < image->count; j++) {
            const struct gcmp_st_tensor *tensor = &image->tensors[j];
            const char *listed = json_string_value(json_object_get(index->weights, tensor->name));
            if (listed == NULL || strcmp(listed, file) != 0) {
                GCMP_FAIL_AT(
                    index->error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(dir, image->file),
                    tensor->offset_bytes,
                    "safetensors index: \"%.160s\" is in this file, but the index %s%.160s",
                    tensor->name, listed == NULL ? "does not list it" : "says it is in ",
                    listed == NULL ? "" : listed);
            }
            if (gcmp_map_add(held, tensor->name, strlen(tensor->name), 0, NULL) ==
                GCMP_MAP_NO_MEMORY) {
                GCMP_FAIL_MEMORY(index->error);
            }
        }
    }
    return GRADCMP_OK;
}

/* Every tensor that is listed must be in a file. */
static enum gradcmp_status check_list(const struct index *index, const struct gcmp_map *held) {
    const char *tensor;
    json_t *value;
    size_t ignored;
    json_object_foreach((json_t *)(uintptr_t)index->weights, tensor, value) {
        if (!gcmp_map_find(held, tensor, strlen(tensor), &ignored)) {
            FAIL_AT_NAME(index, tensor, GRADCMP_ERROR_CORRUPT,
                         "\"%.160s\" is not in %.200s, where the index says it is", tensor,
                         json_string_value(value));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_index(struct index *index) {
    GCMP_TRY(find_weights(index));
    GCMP_TRY(open_files(index));
    struct gcmp_map held = GCMP_MAP_INIT;
    enum gradcmp_status status = check_files(index, &held);
    if (status == GRADCMP_OK) {
        status = check_list(index, &held);
    }
    gcmp_map_free(&held);
    return status;
}

enum gradcmp_status gcmp_st_read_index(struct gradcmp_catalogue *catalogue, const char *name,
                                       struct gcmp_st_set *set, struct gradcmp_error *error) {
    struct index index = {.catalogue = catalogue, .set = set, .error = error};
    enum gradcmp_status status =
        gcmp_json_open(catalogue->dir, name, MAX_INDEX_BYTES, &index.file, error);
    if (status == GRADCMP_OK) {
        status = read_index(&index);
    }
    gcmp_json_close(&index.file);
    return status;
}
