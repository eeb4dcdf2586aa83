/* Loads `.metadata` of torch 2.0 to 2.15 and of Megatron-Core, which adds attributes to it. The
 * classes are those of torch/distributed/checkpoint/metadata.py and filesystem.py.
 *
 * Limits: MAX_METADATA_BYTES, MAX_KEY_BYTES; memory and work in proportion to the file. */
#include "formats/dcp_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

#include "base/checked.h"
#include "formats/dcp_digest.h"

#define MAX_METADATA_BYTES ((uint64_t)INT32_MAX) /* the pickle interpreter's limit */

/* Attributes of one object; real ones have at most eight. Looking one up is a linear search. Bytes
 * of a key: a pickle writes a text once and may use it a million times. */
enum { MAX_ATTRIBUTES = 64, MAX_KEY_BYTES = 4096 };

/* Entries between asking for a slot and using it. */
enum { PREFETCH_DISTANCE = 12 };

/* The dict of an object's attributes, or NULL. */
static const struct gcmp_node *attributes_of(const struct gcmp_node *object) {
    const struct gcmp_node *state =
        object != NULL && object->kind == GCMP_NODE_CALL ? object->as.call.state : NULL;
    bool usable =
        state != NULL && state->kind == GCMP_NODE_DICT && gcmp_node_count(state) <= MAX_ATTRIBUTES;
    return usable ? state : NULL;
}

const struct gcmp_node *gcmp_dcp_attribute(const struct gcmp_node *object, const char *name) {
    return gcmp_node_get(attributes_of(object), name);
}

const char *gcmp_dcp_key_text(const struct gcmp_node *node, size_t *bytes) {
    bool usable =
        node != NULL && node->kind == GCMP_NODE_TEXT && node->as.text.length_bytes <= MAX_KEY_BYTES;
    *bytes = usable ? node->as.text.length_bytes : 0;
    return usable ? gcmp_node_text(node) : NULL;
}

/* Which field a key names; GCMP_DCP_MAX_FIELDS for none. */
static unsigned find_field(struct gcmp_dcp_fields *fields, const struct gcmp_node *key) {
    unsigned i;
    for (i = 0; i < GCMP_DCP_MAX_FIELDS; i++) {
        if (fields->seen[i] == key) {
            return i;
        }
    }
    size_t bytes;
    const char *text = gcmp_dcp_key_text(key, &bytes);
    for (i = 0; i < GCMP_DCP_MAX_FIELDS; i++) {
        if (fields->names[i] != NULL && text != NULL && strcmp(text, fields->names[i]) == 0) {
            fields->seen[i] = key;
            break;
        }
    }
    return i;
}

void gcmp_dcp_read_fields(struct gcmp_dcp_fields *fields, const struct gcmp_node *object) {
    const struct gcmp_node *state = attributes_of(object);
    memset(fields->values, 0, sizeof fields->values);
    for (size_t i = 0; state != NULL && i < state->as.list.count; i += 2) {
        unsigned field = find_field(fields, state->as.list.items[i]);
        if (field < GCMP_DCP_MAX_FIELDS) {
            fields->values[field] = state->as.list.items[i + 1];
        }
    }
}

const char *gcmp_dcp_class_name(const struct gcmp_node *node) {
    const char *name = gcmp_node_global(node);
    return name == NULL ? gcmp_node_kind_name(node) : name;
}

static enum gradcmp_status fail_twice(const struct gcmp_dcp_index *index, uint32_t at,
                                      const char *where, struct gradcmp_error *error) {
    GCMP_DCP_FAIL_AT(index, at, error, GRADCMP_ERROR_CORRUPT, "the same key twice in %s", where);
}

/* Interpret the file. The bytes are freed before the indexes are made: nodes hold copies. */
static enum gradcmp_status load_pickle(struct gcmp_dir *dir, const char *name, bool digest,
                                       struct gcmp_dcp_index *index, struct gcmp_node **root,
                                       struct gradcmp_error *error) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    GCMP_TRY(gcmp_dir_slurp(dir, name, MAX_METADATA_BYTES, &bytes, &count, error));
    index->bytes = count;
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, count, 0);
    enum gradcmp_status status =
        digest ? gcmp_dcp_digest(&cursor, index, root, error)
               : gcmp_pickle_load(&cursor, &index->arena, index->path, root, error);
    uint64_t end = gcmp_cursor_offset(&cursor);
    free(bytes);
    if (status == GRADCMP_OK && end != count) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, index->path, end,
                     "expected the end of the file behind the metadata, found %llu more bytes",
                     (unsigned long long)(count - end));
    }
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
    index->chunk_lists =
        gcmp_arena_alloc(&index->arena, count, sizeof(struct gcmp_dcp_chunk_list *));
    return index->entry_counts != NULL && index->paths != NULL && index->model_sizes != NULL &&
           index->chunk_lists != NULL;
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
        const char *text = pair ? gcmp_dcp_key_text(key, &bytes) : NULL;
        if (text == NULL) {
            GCMP_DCP_FAIL_NODE(index, key, error, GRADCMP_ERROR_CORRUPT,
                               "expected a text without NUL of at most %d bytes as a key of "
                               "state_dict_metadata, found %s",
                               MAX_KEY_BYTES, gcmp_node_kind_name(key));
        }
        enum gcmp_map_result result = gcmp_map_add(&index->tensor_index, text, bytes, i, NULL);
        if (result == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        if (result == GCMP_MAP_PRESENT) {
            return fail_twice(index, key->at, "state_dict_metadata", error);
        }
    }
    return GRADCMP_OK;
}

/* Give each tensor the chunks that were taken from its list. False where some belong to nothing, or
 * two tensors share a list. */
static bool match_lists(const struct gcmp_dcp_index *index) {
    size_t next = 0;
    for (size_t i = 0; i < gcmp_node_count(index->tensors); i++) {
        const struct gcmp_node *key, *value;
        (void)gcmp_node_pair(index->tensors, i, &key, &value); /* seen when indexed */
        const struct gcmp_node *list = gcmp_dcp_attribute(value, "chunks");
        if (gcmp_node_is_digested(list)) {
            if (next == index->list_count || index->lists[next].list != list) {
                return false;
            }
            index->chunk_lists[i] = &index->lists[next++];
        }
    }
    return next == index->list_count;
}

/* The hash table of entries: each tensor has a region of slots of its own, so that looking up its
 * chunks one after another stays in the processor's cache. */
struct gcmp_dcp_slot {
    uint32_t hash, entry; /* number of the entry plus one; 0 is a free slot */
};

/* Slots of a tensor of that many entries: a power of two, at most half full. */
static size_t region_slots(uint32_t entry_count) {
    size_t slots = 2;
    while (slots < 2 * (size_t)entry_count) {
        slots *= 2;
    }
    return slots;
}

static uint32_t hash_chunk(const struct gcmp_dcp_index *index, const uint64_t *chunk,
                           unsigned ndim) {
    return (uint32_t)XXH3_64bits_withSeed(chunk, (ndim + 1) * sizeof *chunk, index->seed);
}

bool gcmp_dcp_read_offset(const struct gcmp_node *offset, uint64_t *sizes, unsigned *ndim) {
    *ndim = 0;
    return offset == NULL || offset->kind == GCMP_NODE_NONE ||
           gcmp_node_sizes(offset, sizes, GRADCMP_MAX_NDIM, ndim);
}

uint64_t *gcmp_dcp_keep_sizes(struct gcmp_dcp_index *index, const uint64_t *sizes, unsigned ndim) {
    uint64_t *copy = gcmp_arena_alloc(&index->arena, ndim, sizeof *copy);
    if (copy != NULL && ndim > 0) {
        memcpy(copy, sizes, ndim * sizeof *copy);
    }
    return copy;
}

static bool is_chunk(const struct gcmp_dcp_entry *entry, const uint64_t *chunk, unsigned ndim) {
    return entry->tensor == chunk[0] && entry->ndim == ndim &&
           memcmp(entry->offsets, chunk + 1, ndim * sizeof *chunk) == 0;
}

/* The chunk of an entry: number of the tensor, then its offsets. */
static void chunk_of(const struct gcmp_dcp_entry *entry, uint64_t *chunk) {
    chunk[0] = entry->tensor;
    memcpy(chunk + 1, entry->offsets, entry->ndim * sizeof *chunk);
}

/* Find the slot of a chunk (number of the tensor, then its offsets), or the free one where it
 * belongs. */
static struct gcmp_dcp_slot *find_slot(const struct gcmp_dcp_index *index, const uint64_t *chunk,
                                       unsigned ndim, uint32_t hash) {
    struct gcmp_dcp_slot *region = index->regions[chunk[0]];
    size_t mask = region_slots(index->entry_counts[chunk[0]]) - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        if (region[at].entry == 0 ||
            (region[at].hash == hash &&
             is_chunk(&index->entries[region[at].entry - 1], chunk, ndim))) {
            return &region[at];
        }
    }
}

/* Read a MetadataIndex into an entry. Entries of tensors that are not listed are left out: a
 * checkpoint from which tensors were taken away keeps them. */
static enum gradcmp_status read_key(struct gcmp_dcp_index *index, struct gcmp_dcp_fields *fields,
                                    const struct gcmp_node *node, struct gcmp_dcp_entry *entry,
                                    struct gradcmp_error *error) {
    uint64_t offsets[GRADCMP_MAX_NDIM];
    unsigned ndim = 0;
    size_t bytes, tensor;
    gcmp_dcp_read_fields(fields, node);
    entry->key_at = node->at;
    entry->fqn = fields->values[GCMP_DCP_KEY_FQN];
    const char *text = gcmp_dcp_key_text(entry->fqn, &bytes);
    if (text == NULL) {
        GCMP_DCP_FAIL_NODE(index, node, error, GRADCMP_ERROR_CORRUPT,
                           "expected a MetadataIndex as a key of storage_data, found %.200s",
                           gcmp_dcp_class_name(node));
    }
    if (!gcmp_map_find(&index->tensor_index, text, bytes, &tensor)) {
        return GRADCMP_OK;
    }
    if (!gcmp_dcp_read_offset(fields->values[GCMP_DCP_KEY_OFFSET], offsets, &ndim)) {
        GCMP_DCP_FAIL_NODE(index, node, error, GRADCMP_ERROR_CORRUPT,
                           "\"%.200s\": the offset of an entry of storage_data is no list of sizes",
                           text);
    }
    entry->ndim = (uint8_t)ndim;
    entry->offsets = gcmp_dcp_keep_sizes(index, offsets, ndim);
    if (entry->offsets == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Make entries of the pairs MetadataIndex -> _StorageInfo. */
static enum gradcmp_status read_storage(struct gcmp_dcp_index *index,
                                        const struct gcmp_node *storage,
                                        struct gradcmp_error *error) {
    struct gcmp_dcp_fields fields = GCMP_DCP_KEY_FIELDS;
    size_t count = gcmp_node_count(storage); /* below 2^31, as the file's bytes are */
    index->entries = calloc(count == 0 ? 1 : count, sizeof *index->entries);
    if (index->entries == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    index->entry_count = count;
    for (size_t i = 0; i < count; i++) {
        struct gcmp_dcp_entry *entry = &index->entries[i];
        const struct gcmp_node *key = NULL;
        (void)gcmp_node_pair(storage, i, &key, &entry->as.info);
        GCMP_TRY(read_key(index, &fields, key, entry, error));
        entry->info_at = entry->as.info->at;
    }
    return GRADCMP_OK;
}

/* Find the tensors of all entries. Pickles write a text once, so neighbours have the same node. */
static void assign_entries(struct gcmp_dcp_index *index) {
    const struct gcmp_node *fqn = NULL;
    bool listed = false;
    size_t tensor = 0;
    for (size_t i = 0; i < index->entry_count; i++) {
        struct gcmp_dcp_entry *entry = &index->entries[i];
        if (entry->fqn != fqn) {
            fqn = entry->fqn;
            listed = gcmp_map_find(&index->tensor_index, fqn->as.text.bytes,
                                   fqn->as.text.length_bytes, &tensor);
        }
        if (listed) {
            uint64_t chunk[GRADCMP_MAX_NDIM + 1];
            entry->tensor = (uint32_t)tensor; /* below 2^31, as the file's bytes are */
            entry->listed = true;
            chunk_of(entry, chunk);
            entry->hash = hash_chunk(index, chunk, entry->ndim);
            index->entry_counts[tensor]++;
        }
    }
}

/* Give each tensor its region. */
static enum gradcmp_status make_regions(struct gcmp_dcp_index *index, struct gradcmp_error *error) {
    size_t count = gcmp_node_count(index->tensors), total = 0;
    for (size_t i = 0; i < count; i++) {
        total += region_slots(index->entry_counts[i]);
    }
    struct gcmp_dcp_slot *slots = gcmp_arena_alloc(&index->arena, total, sizeof *slots);
    index->regions = gcmp_arena_alloc(&index->arena, count, sizeof(struct gcmp_dcp_slot *));
    if (slots == NULL || index->regions == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        index->regions[i] = slots;
        slots += region_slots(index->entry_counts[i]);
    }
    return GRADCMP_OK;
}

/* Ask for the slot of an entry that will be needed soon. */
static void prefetch_slot(const struct gcmp_dcp_index *index, const struct gcmp_dcp_entry *entry) {
    if (entry->listed) {
        size_t mask = region_slots(index->entry_counts[entry->tensor]) - 1;
        __builtin_prefetch(&index->regions[entry->tensor][entry->hash & mask], 1);
    }
}

/* Put an entry into its slot; false where another one of the same chunk is there. */
static bool fill_slot(const struct gcmp_dcp_index *index, const struct gcmp_dcp_entry *entry) {
    uint64_t chunk[GRADCMP_MAX_NDIM + 1];
    chunk_of(entry, chunk);
    struct gcmp_dcp_slot *slot = find_slot(index, chunk, entry->ndim, entry->hash);
    if (slot->entry != 0) {
        return false;
    }
    *slot = (struct gcmp_dcp_slot){entry->hash, (uint32_t)(entry - index->entries) + 1};
    return true;
}

/* Put every entry into its slot. Ranks write in turn, so neighbours go to different regions. */
static enum gradcmp_status fill_slots(struct gcmp_dcp_index *index, struct gradcmp_error *error) {
    size_t count = index->entry_count;
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_dcp_entry *entry = &index->entries[i];
        if (count - i > PREFETCH_DISTANCE) {
            prefetch_slot(index, entry + PREFETCH_DISTANCE);
        }
        if (entry->listed && !fill_slot(index, entry)) {
            return fail_twice(index, entry->key_at, "storage_data", error);
        }
    }
    return GRADCMP_OK;
}

/* Index the entries by their chunks. The hash is seeded, so that a file cannot choose chunks that
 * collide. */
static enum gradcmp_status index_storage(struct gcmp_dcp_index *index,
                                         const struct gcmp_node *storage,
                                         struct gradcmp_error *error) {
    if (getrandom(&index->seed, sizeof index->seed, GRND_NONBLOCK) < 0) {
        index->seed = (uint64_t)(uintptr_t)index; /* early boot: the address has to do */
    }
    if (index->storage == NULL) {
        GCMP_TRY(read_storage(index, storage, error));
    }
    assign_entries(index);
    GCMP_TRY(make_regions(index, error));
    return fill_slots(index, error);
}

/* Spread a dict {key: value} over an array that goes with state_dict_metadata. With `field`, the
 * values are dicts and that field of theirs is taken. */
static void spread(const struct gcmp_dcp_index *index, const struct gcmp_node *dict,
                   const char *field, const struct gcmp_node **out) {
    for (size_t i = 0; i < gcmp_node_count(dict); i++) {
        const struct gcmp_node *key, *value;
        size_t bytes, tensor;
        const char *text =
            gcmp_node_pair(dict, i, &key, &value) ? gcmp_dcp_key_text(key, &bytes) : NULL;
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

/* Take one part of a path off the front of a key; false where the key goes on otherwise. */
static bool take_part(const struct gcmp_node *part, const char **key) {
    char digits[32] = "";
    int64_t number;
    size_t bytes;
    const char *text = gcmp_dcp_key_text(part, &bytes);
    if (text == NULL && gcmp_node_int(part, &number)) {
        bytes = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number);
        text = digits;
    }
    if (text == NULL || strncmp(*key, text, bytes) != 0) {
        return false;
    }
    *key += bytes;
    return true;
}

/* torch joins the parts of a path, texts and positions in lists, with dots and takes that for the
 * key (_nested_dict.py, flatten_state_dict). */
static bool is_path_of(const struct gcmp_node *path, const char *key) {
    size_t count = gcmp_node_count(path);
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 && *key++ != '.') || !take_part(gcmp_node_item(path, i), &key)) {
            return false;
        }
    }
    return count > 0 && *key == '\0';
}

/* Loaders take a tensor's data by its key, and names are made from its path: they must be one. */
static enum gradcmp_status check_paths(const struct gcmp_dcp_index *index,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < gcmp_node_count(index->tensors); i++) {
        const struct gcmp_node *path = index->paths[i], *key, *value;
        size_t bytes;
        if (path == NULL || path->kind != GCMP_NODE_TUPLE) {
            continue;
        }
        (void)gcmp_node_pair(index->tensors, i, &key, &value); /* seen when indexed */
        const char *text = gcmp_dcp_key_text(key, &bytes);
        if (!is_path_of(path, text)) {
            GCMP_DCP_FAIL_NODE(index, path, error, GRADCMP_ERROR_CORRUPT,
                               "planner_data has another path for \"%.200s\" than its key, by "
                               "which loaders take its data",
                               text);
        }
    }
    return GRADCMP_OK;
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

/* Values that are looked at, and how many nodes may wait in one. */
enum { MAX_VALUE_NODES = 4096, MAX_WAITING = 256 };

/* Where nodes below the one that is looked at wait. */
struct waiting {
    const struct gcmp_node *nodes[MAX_WAITING];
    size_t count;
};

/* Have the nodes that one holds wait; false where there are too many. */
static bool add_below(struct waiting *waiting, const struct gcmp_node *node) {
    if (node->kind == GCMP_NODE_CALL || node->kind == GCMP_NODE_PERSID) {
        const struct gcmp_node *const held[] = {node->as.call.callee, node->as.call.args,
                                                node->as.call.state, node->as.call.contents};
        for (size_t i = 0; i < 4 && waiting->count < MAX_WAITING; i++) {
            if (held[i] != NULL) {
                waiting->nodes[waiting->count++] = held[i];
            }
        }
        return waiting->count < MAX_WAITING;
    }
    bool holds = node->kind == GCMP_NODE_TUPLE || node->kind == GCMP_NODE_LIST ||
                 node->kind == GCMP_NODE_DICT || node->kind == GCMP_NODE_SET;
    size_t count = holds ? node->as.list.count : 0;
    if (count > MAX_WAITING - waiting->count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        waiting->nodes[waiting->count++] = node->as.list.items[i];
    }
    return true;
}

/* True where a value is small and nothing in it was recycled. */
static bool is_intact(const struct gcmp_node *value) {
    struct waiting waiting = {{value}, 1};
    for (int seen = 0; waiting.count > 0; seen++) {
        const struct gcmp_node *node = waiting.nodes[--waiting.count];
        if (node->kind == GCMP_NODE_RECYCLED || seen == MAX_VALUE_NODES ||
            !add_below(&waiting, node)) {
            return false;
        }
    }
    return true;
}

/* The same for all values of a dict that is used, or not there. */
static bool values_are_intact(const struct gcmp_node *dict) {
    const struct gcmp_node *key, *value;
    if (dict == NULL || dict->kind == GCMP_NODE_NONE) {
        return true;
    }
    bool intact = dict->kind == GCMP_NODE_DICT && !gcmp_node_is_digested(dict);
    for (size_t i = 0; intact && i < gcmp_node_count(dict); i++) {
        intact = gcmp_node_pair(dict, i, &key, &value) && is_intact(value);
    }
    return intact;
}

/* False where the pairs of the two dicts, or the chunks, were taken only in part. */
static bool is_whole(const struct gcmp_dcp_index *index, const struct gcmp_node *storage) {
    bool storage_taken =
        gcmp_node_is_digested(storage) ? index->storage == storage : index->storage == NULL;
    return storage_taken && match_lists(index);
}

/* True where all that is used of metadata was read with a digest as it would have been without. */
static bool is_read_well(const struct gcmp_dcp_index *index, const struct gcmp_node *root,
                         const struct gcmp_node *storage) {
    return is_whole(index, storage) && values_are_intact(index->tensors) &&
           values_are_intact(gcmp_dcp_attribute(root, "planner_data")) &&
           values_are_intact(gcmp_dcp_attribute(root, "mcore_data"));
}

static enum gradcmp_status load(struct gcmp_dir *dir, const char *name, bool digest,
                                struct gcmp_dcp_index *out, struct gradcmp_error *error) {
    *out = (struct gcmp_dcp_index){.arena = GCMP_ARENA_INIT};
    out->path = gcmp_arena_format(&out->arena, "%s/%s", gcmp_dir_path(dir), name);
    if (out->path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_node *root = NULL;
    const struct gcmp_node *storage = NULL;
    GCMP_TRY(load_pickle(dir, name, digest, out, &root, error));
    GCMP_TRY(check_class(out, root, error));
    GCMP_TRY(find_dicts(out, root, &storage, error));
    GCMP_TRY(index_tensors(out, error));
    if (digest && !is_read_well(out, root, storage)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, out->path, GRADCMP_NO_OFFSET,
                     "not to be read in batches"); /* seen by gcmp_dcp_index_load alone */
    }
    GCMP_TRY(index_storage(out, storage, error));
    const struct gcmp_node *mcore = gcmp_dcp_attribute(root, "mcore_data");
    out->megatron = mcore != NULL;
    spread(out, mcore, "nd_reformulated_orig_global_shape", out->model_sizes);
    spread(out, gcmp_dcp_attribute(root, "planner_data"), NULL, out->paths);
    return check_paths(out, error);
}

/* What is wrong with a file is for the plain reading to say. */
enum gradcmp_status gcmp_dcp_index_load(struct gcmp_dir *dir, const char *name,
                                        struct gcmp_dcp_index *out, struct gradcmp_error *error) {
    struct gradcmp_error attempt = {0};
    enum gradcmp_status status = load(dir, name, true, out, &attempt);
    if (status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_IO) {
        if (error != NULL) {
            *error = attempt;
        }
    } else if (status != GRADCMP_OK) {
        gcmp_dcp_index_free(out);
        status = load(dir, name, false, out, error);
    }
    return status;
}

void gcmp_dcp_index_free(struct gcmp_dcp_index *index) {
    gcmp_map_free(&index->tensor_index);
    free(index->entries);
    free(index->chunks);
    free(index->lists);
    gcmp_arena_free(&index->arena);
}

struct gcmp_dcp_entry *gcmp_dcp_index_find(const struct gcmp_dcp_index *index, size_t tensor,
                                           unsigned ndim, const uint64_t *offsets) {
    uint64_t chunk[GRADCMP_MAX_NDIM + 1];
    chunk[0] = tensor;
    memcpy(chunk + 1, offsets, ndim * sizeof *chunk);
    const struct gcmp_dcp_slot *slot =
        find_slot(index, chunk, ndim, hash_chunk(index, chunk, ndim));
    return slot->entry == 0 ? NULL : &index->entries[slot->entry - 1];
}
