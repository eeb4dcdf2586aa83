/* Loads `.metadata` of torch 2.0 to 2.15 and of Megatron-Core, which adds attributes to it. The
 * classes are those of torch/distributed/checkpoint/metadata.py and filesystem.py.
 *
 * Limits: MAX_METADATA_BYTES; memory and work in proportion to the file. */
#include "formats/dcp_index.h"

#include <stdlib.h>
#include <string.h>

#define MAX_METADATA_BYTES ((uint64_t)INT32_MAX) /* the pickle interpreter's limit */

/* Attributes of one object; real ones have at most eight. Looking one up is a linear search. */
enum { MAX_ATTRIBUTES = 64 };

const struct gcmp_node *gcmp_dcp_attribute(const struct gcmp_node *object, const char *name) {
    bool usable = object != NULL && object->kind == GCMP_NODE_CALL &&
                  object->as.call.state != NULL && object->as.call.state->kind == GCMP_NODE_DICT &&
                  gcmp_node_count(object->as.call.state) <= MAX_ATTRIBUTES;
    return usable ? gcmp_node_get(object->as.call.state, name) : NULL;
}

const char *gcmp_dcp_class_name(const struct gcmp_node *node) {
    const char *name = gcmp_node_global(node);
    return name == NULL ? gcmp_node_kind_name(node) : name;
}

/* A key of the metadata: any text without NUL. */
static const char *key_text(const struct gcmp_node *node, size_t *bytes) {
    const char *text = node != NULL && node->kind == GCMP_NODE_TEXT ? gcmp_node_text(node) : NULL;
    *bytes = text == NULL ? 0 : node->as.text.length_bytes;
    return text;
}

/* Say why a key could not be added to a map. */
static enum gradcmp_status fail_add(const struct gcmp_dcp_index *index,
                                    const struct gcmp_node *node, enum gcmp_map_result result,
                                    const char *where, struct gradcmp_error *error) {
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_DCP_FAIL_NODE(index, node, error, GRADCMP_ERROR_CORRUPT, "the same key twice in %s",
                       where);
}

/* Interpret the file. The bytes are freed before the indexes are made: nodes hold copies. */
static enum gradcmp_status load_pickle(struct gcmp_dir *dir, const char *name,
                                       struct gcmp_dcp_index *index, struct gcmp_node **root,
                                       struct gradcmp_error *error) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    GCMP_TRY(gcmp_dir_slurp(dir, name, MAX_METADATA_BYTES, &bytes, &count, error));
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, count, 0);
    enum gradcmp_status status = gcmp_pickle_load(&cursor, &index->arena, index->path, root, error);
    uint64_t end = gcmp_cursor_offset(&cursor);
    free(bytes);
    if (status == GRADCMP_OK && end != count) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, index->path, end,
                     "expected the end of the file behind the metadata, found %llu more bytes",
                     (unsigned long long)(count - end));
    }
    index->bytes = count;
    return status;
}

static enum gradcmp_status check_class(const struct gcmp_dcp_index *index,
                                       const struct gcmp_node *root, struct gradcmp_error *error) {
    if (!gcmp_node_is_call(root, GCMP_DCP_METADATA_MODULE, "Metadata") &&
        !gcmp_node_is_call(root, "megatron.core.dist_checkpointing.strategies.torch",
                           "MCoreMetadata")) {
        GCMP_DCP_FAIL_NODE(index, root, error, GRADCMP_ERROR_CORRUPT,
                           "expected torch's Metadata object, found %.200s",
                           gcmp_dcp_class_name(root));
    }
    return GRADCMP_OK;
}

static bool alloc_arrays(struct gcmp_dcp_index *index, size_t count) {
    index->entry_counts = gcmp_arena_alloc(&index->arena, count, sizeof *index->entry_counts);
    index->paths = gcmp_arena_alloc(&index->arena, count, sizeof *index->paths);
    index->model_sizes = gcmp_arena_alloc(&index->arena, count, sizeof *index->model_sizes);
    return index->entry_counts != NULL && index->paths != NULL && index->model_sizes != NULL;
}

/* Index the keys of state_dict_metadata and make the arrays that go with it. */
static enum gradcmp_status index_tensors(struct gcmp_dcp_index *index,
                                         struct gradcmp_error *error) {
    size_t count = gcmp_node_count(index->tensors);
    if (!alloc_arrays(index, count)) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *key = NULL, *value;
        size_t bytes;
        bool pair = gcmp_node_pair(index->tensors, i, &key, &value);
        const char *text = pair ? key_text(key, &bytes) : NULL;
        if (text == NULL) {
            GCMP_DCP_FAIL_NODE(index, key, error, GRADCMP_ERROR_CORRUPT,
                               "expected a text without NUL as a key of state_dict_metadata, "
                               "found %s",
                               gcmp_node_kind_name(key));
        }
        enum gcmp_map_result result = gcmp_map_add(&index->tensor_index, text, bytes, i, NULL);
        if (result != GCMP_MAP_ADDED) {
            return fail_add(index, key, result, "state_dict_metadata", error);
        }
    }
    return GRADCMP_OK;
}

/* The key of a chunk in entry_index: number of its tensor, then offsets. Returns its bytes. */
static size_t make_chunk_key(uint64_t *key, size_t tensor, unsigned ndim, const uint64_t *offsets) {
    key[0] = tensor;
    memcpy(key + 1, offsets, ndim * sizeof *key);
    return (ndim + 1) * sizeof *key;
}

/* Read a MetadataIndex: the number of its tensor, and the offsets (absent for byte objects). Where
 * the tensor is not listed, *bytes is 0: a checkpoint from which tensors were taken away
 * keeps their entries. */
static enum gradcmp_status read_key(const struct gcmp_dcp_index *index,
                                    const struct gcmp_node *node, uint64_t *key, size_t *bytes,
                                    struct gradcmp_error *error) {
    uint64_t offsets[GRADCMP_MAX_NDIM];
    unsigned ndim = 0;
    size_t text_bytes, tensor;
    const struct gcmp_node *offset = gcmp_dcp_attribute(node, "offset");
    const char *text = key_text(gcmp_dcp_attribute(node, "fqn"), &text_bytes);
    if (text == NULL) {
        GCMP_DCP_FAIL_NODE(index, node, error, GRADCMP_ERROR_CORRUPT,
                           "expected a MetadataIndex as a key of storage_data, found %.200s",
                           gcmp_dcp_class_name(node));
    }
    if (!gcmp_map_find(&index->tensor_index, text, text_bytes, &tensor)) {
        *bytes = 0;
        return GRADCMP_OK;
    }
    if (offset != NULL && offset->kind != GCMP_NODE_NONE &&
        !gcmp_node_sizes(offset, offsets, GRADCMP_MAX_NDIM, &ndim)) {
        GCMP_DCP_FAIL_NODE(index, node, error, GRADCMP_ERROR_CORRUPT,
                           "\"%.200s\": the offset of an entry of storage_data is no list of sizes",
                           text);
    }
    *bytes = make_chunk_key(key, tensor, ndim, offsets);
    return GRADCMP_OK;
}

/* Index one pair MetadataIndex -> _StorageInfo. */
static enum gradcmp_status index_entry(struct gcmp_dcp_index *index, size_t number,
                                       const struct gcmp_node *node, const struct gcmp_node *info,
                                       struct gradcmp_error *error) {
    uint64_t key[GRADCMP_MAX_NDIM + 1];
    size_t bytes = 0;
    GCMP_TRY(read_key(index, node, key, &bytes, error));
    if (bytes == 0) {
        return GRADCMP_OK;
    }
    void *copy = gcmp_arena_alloc(&index->arena, bytes, 1);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(copy, key, bytes);
    enum gcmp_map_result result = gcmp_map_add(&index->entry_index, copy, bytes, number, NULL);
    if (result != GCMP_MAP_ADDED) {
        return fail_add(index, node, result, "storage_data", error);
    }
    index->entries[number] = (struct gcmp_dcp_entry){info, false};
    index->entry_counts[key[0]]++;
    return GRADCMP_OK;
}

static enum gradcmp_status index_storage(struct gcmp_dcp_index *index,
                                         const struct gcmp_node *storage,
                                         struct gradcmp_error *error) {
    size_t count = gcmp_node_count(storage);
    index->entries = gcmp_arena_alloc(&index->arena, count, sizeof *index->entries);
    if (index->entries == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *key = NULL, *info = NULL;
        (void)gcmp_node_pair(storage, i, &key, &info); /* a dict has as many as it counts */
        GCMP_TRY(index_entry(index, i, key, info, error));
    }
    return GRADCMP_OK;
}

/* Spread a dict {key: value} over an array that goes with state_dict_metadata. With `field`, the
 * values are dicts and that field of theirs is taken. */
static void spread(const struct gcmp_dcp_index *index, const struct gcmp_node *dict,
                   const char *field, const struct gcmp_node **out) {
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key, *value;
        size_t bytes, tensor;
        const char *text = gcmp_node_pair(dict, i, &key, &value) ? key_text(key, &bytes) : NULL;
        if (text == NULL || !gcmp_map_find(&index->tensor_index, text, bytes, &tensor)) {
            continue;
        }
        if (field == NULL) {
            out[tensor] = value;
        } else if (gcmp_node_count(value) <= MAX_ATTRIBUTES) {
            out[tensor] = gcmp_node_get(value, field);
        }
    }
}

/* Find the two dicts that every version has. */
static enum gradcmp_status find_dicts(struct gcmp_dcp_index *index, const struct gcmp_node *root,
                                      const struct gcmp_node **storage,
                                      struct gradcmp_error *error) {
    static const char *const names[] = {"state_dict_metadata", "storage_data"};
    const struct gcmp_node *found[2];
    for (int i = 0; i < 2; i++) {
        found[i] = gcmp_dcp_attribute(root, names[i]);
        if (found[i] == NULL || found[i]->kind != GCMP_NODE_DICT) {
            GCMP_DCP_FAIL_NODE(index, root, error, GRADCMP_ERROR_CORRUPT,
                               "expected a dict %s in the Metadata object, found %s", names[i],
                               gcmp_node_kind_name(found[i]));
        }
    }
    index->tensors = found[0];
    *storage = found[1];
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dcp_index_load(struct gcmp_dir *dir, const char *name,
                                        struct gcmp_dcp_index *out, struct gradcmp_error *error) {
    *out = (struct gcmp_dcp_index){.arena = GCMP_ARENA_INIT};
    out->path = gcmp_arena_format(&out->arena, "%s/%s", gcmp_dir_path(dir), name);
    if (out->path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_node *root = NULL;
    const struct gcmp_node *storage = NULL;
    GCMP_TRY(load_pickle(dir, name, out, &root, error));
    GCMP_TRY(check_class(out, root, error));
    GCMP_TRY(find_dicts(out, root, &storage, error));
    GCMP_TRY(index_tensors(out, error));
    GCMP_TRY(index_storage(out, storage, error));
    const struct gcmp_node *mcore = gcmp_dcp_attribute(root, "mcore_data");
    out->megatron = mcore != NULL;
    spread(out, mcore, "nd_reformulated_orig_global_shape", out->model_sizes);
    spread(out, gcmp_dcp_attribute(root, "planner_data"), NULL, out->paths);
    return GRADCMP_OK;
}

void gcmp_dcp_index_free(struct gcmp_dcp_index *index) {
    gcmp_map_free(&index->tensor_index);
    gcmp_map_free(&index->entry_index);
    gcmp_arena_free(&index->arena);
}

struct gcmp_dcp_entry *gcmp_dcp_index_find(const struct gcmp_dcp_index *index, size_t tensor,
                                           unsigned ndim, const uint64_t *offsets) {
    uint64_t key[GRADCMP_MAX_NDIM + 1];
    size_t bytes = make_chunk_key(key, tensor, ndim, offsets), number;
    return gcmp_map_find(&index->entry_index, key, bytes, &number) ? &index->entries[number] : NULL;
}
