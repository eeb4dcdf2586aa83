/* Reads the index of a checkpoint in several safetensors files: {"weight_map": {tensor: file}}. It
 * is read twice: for the files that it names, and, once these are open, against what is in them.
 *
 * Limits: MAX_INDEX_BYTES; MAX_MEMBERS; MAX_TENSORS; those of json_text.c. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "formats/json_doc.h"
#include "formats/safetensors_set.h"

enum { MAX_INDEX_BYTES = 100000000, MAX_MEMBERS = 1 << 16, MAX_TENSORS = 1 << 19 };

static const char WEIGHTS[] = "weight_map";

/* A tensor that is in a file. */
struct held {
    uint32_t image, tensor;
    uint32_t next; /* 1 + index of another one of the same name; 0: none */
    bool listed;
};

/* One entry of the weight map. */
struct entry {
    const char *tensor, *file;
    uint64_t place; /* of the tensor's name */
};

struct index {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_st_set *set;
    struct gcmp_json_file file;
    size_t weights_at;      /* where the object tensor -> file begins in the text */
    struct gcmp_map images; /* file -> index of its image */
    struct held *held;
    struct gcmp_map by_name; /* tensor -> index into held */
    struct entry absent;     /* the first that is in no file; tensor NULL: none so far */
    struct gradcmp_error *error;
};

typedef enum gradcmp_status (*take_fn)(struct index *index, const struct entry *entry);

#define FAIL_AT(index, place, code, ...)                                                           \
    GCMP_FAIL_AT((index)->error, (code), (index)->file.text.path, (place),                         \
                 "safetensors index: " __VA_ARGS__)

/* Give each entry of the weight map to `take`. */
static enum gradcmp_status walk_entries(struct index *index, struct gcmp_json_parts *entries,
                                        take_fn take) {
    for (;;) {
        bool found;
        json_t *value;
        GCMP_TRY(gcmp_json_parts_next(entries, &found, index->error));
        if (!found) {
            return GRADCMP_OK;
        }
        GCMP_TRY(gcmp_json_parts_value(entries, &value, index->error));
        struct entry entry = {entries->name, json_string_value(value), entries->place};
        enum gradcmp_status status =
            entry.file != NULL
                ? take(index, &entry)
                : gcmp_error_set(
                      index->error, GRADCMP_ERROR_CORRUPT, index->file.text.path, entry.place,
                      "safetensors index: \"%.160s\": expected the name of a file, found "
                      "%s",
                      entry.tensor, gcmp_json_kind(value));
        json_decref(value);
        GCMP_TRY(status);
    }
}

/* Walk the weight map that begins at byte *at, and set *at behind it. */
static enum gradcmp_status walk_weights(struct index *index, size_t *at, take_fn take) {
    struct gcmp_json_parts entries;
    enum gradcmp_status status =
        gcmp_json_parts_open(&entries, &index->file.text, *at, MAX_TENSORS, index->error);
    if (status == GRADCMP_OK) {
        status = walk_entries(index, &entries, take);
    }
    *at = entries.at;
    gcmp_json_parts_close(&entries);
    return status;
}

/* --- first: which files there are --- */

/* Check the file of one tensor and open it, unless it was named before. */
static enum gradcmp_status open_file(struct index *index, const struct entry *entry) {
    const char *file = entry->file;
    size_t bytes = strlen(file), ignored;
    if (gcmp_map_find(&index->images, file, bytes, &ignored)) {
        return GRADCMP_OK;
    }
    const char *fault = gcmp_dir_name_fault(file, bytes);
    if (fault != NULL) {
        FAIL_AT(index, entry->place, GRADCMP_ERROR_CORRUPT, "file name \"%.200s\" %s", file, fault);
    }
    if (gcmp_dir_kind(index->catalogue->dir, file) == GCMP_DIR_ABSENT) {
        FAIL_AT(index, entry->place, GRADCMP_ERROR_IO,
                "file \"%.200s\" is named, but there is no such file", file);
    }
    const char *name = gcmp_arena_dup(index->catalogue->arena, file);
    if (name == NULL ||
        gcmp_map_add(&index->images, name, bytes, index->set->count, NULL) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(index->error);
    }
    return gcmp_st_set_add(index->catalogue, index->set, file, index->error);
}

/* Read one member of the outermost object. */
static enum gradcmp_status read_member(struct index *index, struct gcmp_json_parts *members) {
    const struct gcmp_json_text *text = &index->file.text;
    bool is_weights = strcmp(members->name, WEIGHTS) == 0;
    json_t *value;
    if (is_weights && gcmp_json_begins(text, members->at, '{')) {
        index->weights_at = members->at;
        return walk_weights(index, &members->at, open_file);
    }
    GCMP_TRY(gcmp_json_parts_value(members, &value, index->error));
    const char *kind = gcmp_json_kind(value);
    json_decref(value);
    if (is_weights) {
        FAIL_AT(index, members->place, GRADCMP_ERROR_CORRUPT, "expected an object as %s, found %s",
                WEIGHTS, kind);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_members(struct index *index, struct gcmp_json_parts *members) {
    for (;;) {
        bool found;
        GCMP_TRY(gcmp_json_parts_next(members, &found, index->error));
        if (!found) {
            return gcmp_json_parts_end(members, index->error);
        }
        GCMP_TRY(read_member(index, members));
    }
}

static enum gradcmp_status open_files(struct index *index) {
    const struct gcmp_json_text *text = &index->file.text;
    if (gcmp_json_begins(text, 0, '{')) {
        struct gcmp_json_parts members;
        enum gradcmp_status status =
            gcmp_json_parts_open(&members, text, 0, MAX_MEMBERS, index->error);
        if (status == GRADCMP_OK) {
            status = read_members(index, &members);
        }
        gcmp_json_parts_close(&members);
        GCMP_TRY(status);
    } else {
        json_t *value; /* no object: it is JSON at least, or refused for that */
        GCMP_TRY(gcmp_json_parse(text, &value, index->error));
        json_decref(value);
    }
    if (index->weights_at == 0) {
        FAIL_AT(index, text->base_bytes, GRADCMP_ERROR_CORRUPT,
                "expected an object as %s, found nothing", WEIGHTS);
    }
    return GRADCMP_OK;
}

/* --- then: what is in them --- */

/* Fail for a tensor of a file under which the index does not list it; `listed` is where it does. */
static enum gradcmp_status fail_tensor(const struct index *index, const struct held *held,
                                       const char *listed) {
    const struct gcmp_st_image *image = &index->set->images[held->image];
    const struct gcmp_st_tensor *tensor = &image->tensors[held->tensor];
    GCMP_FAIL_AT(index->error, GRADCMP_ERROR_CORRUPT,
                 gcmp_dir_file_path(index->catalogue->dir, image->file), tensor->offset_bytes,
                 "safetensors index: \"%.160s\" is in this file, but the index %s%.160s",
                 tensor->name, listed == NULL ? "does not list it" : "says it is in ",
                 listed == NULL ? "" : listed);
}

static enum gradcmp_status keep_absent(struct index *index, const struct entry *entry) {
    struct gcmp_arena *arena = index->catalogue->arena;
    index->absent = (struct entry){gcmp_arena_dup(arena, entry->tensor),
                                   gcmp_arena_dup(arena, entry->file), entry->place};
    if (index->absent.tensor == NULL || index->absent.file == NULL) {
        GCMP_FAIL_MEMORY(index->error);
    }
    return GRADCMP_OK;
}

/* Check one entry against all tensors of its name. */
static enum gradcmp_status check_entry(struct index *index, const struct entry *entry) {
    size_t at, image = 0;
    (void)gcmp_map_find(&index->images, entry->file, strlen(entry->file), &image);
    if (!gcmp_map_find(&index->by_name, entry->tensor, strlen(entry->tensor), &at)) {
        return index->absent.tensor == NULL ? keep_absent(index, entry) : GRADCMP_OK;
    }
    for (size_t next = at + 1; next != 0; next = index->held[next - 1].next) {
        struct held *held = &index->held[next - 1];
        held->listed = true;
        if (held->image != image) {
            return fail_tensor(index, held, entry->file);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status list_held(struct index *index, size_t total) {
    index->held = calloc(total + 1, sizeof *index->held);
    if (index->held == NULL) {
        GCMP_FAIL_MEMORY(index->error);
    }
    size_t count = 0;
    for (size_t i = 0; i < index->set->count; i++) {
        const struct gcmp_st_image *image = &index->set->images[i];
        for (size_t j = 0; j < image->count; j++, count++) {
            const char *name = image->tensors[j].name;
            size_t first = count;
            if (gcmp_map_add(&index->by_name, name, strlen(name), count, &first) ==
                GCMP_MAP_NO_MEMORY) {
                GCMP_FAIL_MEMORY(index->error);
            }
            index->held[count] = (struct held){.image = (uint32_t)i, .tensor = (uint32_t)j};
            if (first != count) {
                index->held[count].next = index->held[first].next;
                index->held[first].next = (uint32_t)count + 1;
            }
        }
    }
    return GRADCMP_OK;
}

/* The index and the files must list the same tensors. */
static enum gradcmp_status check_files(struct index *index) {
    size_t total = 0, at = index->weights_at;
    for (size_t i = 0; i < index->set->count; i++) {
        total += index->set->images[i].count;
    }
    if (total > MAX_TENSORS) {
        FAIL_AT(index, index->file.text.base_bytes, GRADCMP_ERROR_LIMIT,
                "the files hold %zu tensors, at most %d are read", total, MAX_TENSORS);
    }
    GCMP_TRY(list_held(index, total));
    GCMP_TRY(walk_weights(index, &at, check_entry));
    for (size_t i = 0; i < total; i++) {
        if (!index->held[i].listed) {
            return fail_tensor(index, &index->held[i], NULL);
        }
    }
    if (index->absent.tensor != NULL) {
        FAIL_AT(index, index->absent.place, GRADCMP_ERROR_CORRUPT,
                "\"%.160s\" is not in %.200s, where the index says it is", index->absent.tensor,
                index->absent.file);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_st_read_index(struct gradcmp_catalogue *catalogue, const char *name,
                                       struct gcmp_st_set *set, struct gradcmp_error *error) {
    struct index index = {.catalogue = catalogue,
                          .set = set,
                          .images = GCMP_MAP_INIT,
                          .by_name = GCMP_MAP_INIT,
                          .error = error};
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_json_read(catalogue->dir, name, MAX_INDEX_BYTES, &index.file, error));
    GCMP_TRY_OUT(open_files(&index));
    status = check_files(&index);
out:
    gcmp_map_free(&index.images);
    gcmp_map_free(&index.by_name);
    free(index.held);
    gcmp_json_close(&index.file);
    return status;
}
