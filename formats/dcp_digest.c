/* Takes the small objects of metadata while it is read. What it does not know, or would have to
 * complain of, it leaves: then the metadata is read again as a whole, and dcp_index.c and
 * dcp_metadata.c say what is wrong.
 *
 * Limit: an object for each LEAST_BYTES of the file, as in dcp_metadata.c; pickles may name one
 * object many times in few bytes. */
#include "formats/dcp_digest.h"

#include <string.h>

#include "base/grow.h"
#include "formats/dcp_item.h"

enum { LEAST_BYTES = 16 };

enum { OF_STORAGE, OF_CHUNKS };

struct digest {
    struct gcmp_dcp_index *index;
    struct gcmp_dcp_fields key_fields, info_fields, chunk_fields;
    bool no_memory;
};

/* Make room for one more item in a growing array; false without memory. */
static bool grow(struct digest *digest, void *array, size_t count, size_t *capacity,
                 size_t item_bytes) {
    digest->no_memory = digest->no_memory || !gcmp_grow(array, count, capacity, item_bytes);
    return !digest->no_memory;
}

static const uint64_t *keep(struct digest *digest, const uint64_t *sizes, unsigned ndim) {
    const uint64_t *kept = gcmp_dcp_keep_sizes(digest->index, sizes, ndim);
    digest->no_memory = digest->no_memory || kept == NULL;
    return kept;
}

static bool read_key(struct digest *digest, const struct gcmp_node *key,
                     struct gcmp_dcp_entry *entry) {
    uint64_t sizes[GRADCMP_MAX_NDIM];
    unsigned ndim;
    size_t bytes;
    gcmp_dcp_read_fields(&digest->key_fields, key);
    entry->fqn = digest->key_fields.values[GCMP_DCP_KEY_FQN];
    if (gcmp_dcp_key_text(entry->fqn, &bytes) == NULL ||
        !gcmp_dcp_read_offset(digest->key_fields.values[GCMP_DCP_KEY_OFFSET], sizes, &ndim)) {
        return false;
    }
    entry->key_at = key->at;
    entry->ndim = (uint8_t)ndim;
    entry->offsets = keep(digest, sizes, ndim);
    return entry->offsets != NULL;
}

static bool read_transforms(const struct gcmp_node *transforms, uint8_t *encoding) {
    *encoding = GCMP_DCP_PLAIN;
    if (transforms == NULL || transforms->kind == GCMP_NODE_NONE) {
        return true;
    }
    size_t count = gcmp_node_count(transforms);
    const char *first = gcmp_node_text(gcmp_node_item(transforms, 0));
    enum gcmp_dcp_encoding found = GCMP_DCP_PLAIN;
    bool known =
        transforms->kind == GCMP_NODE_LIST &&
        (count == 0 || (count == 1 && first != NULL && gcmp_dcp_find_encoding(first, &found)));
    *encoding = (uint8_t)found;
    return known;
}

static bool read_info(struct digest *digest, const struct gcmp_node *info,
                      struct gcmp_dcp_entry *entry) {
    int64_t offset, length;
    gcmp_dcp_read_fields(&digest->info_fields, info);
    const struct gcmp_node *const *values = digest->info_fields.values;
    const struct gcmp_node *path = values[GCMP_DCP_INFO_PATH];
    if (!gcmp_node_int(values[GCMP_DCP_INFO_OFFSET], &offset) || offset < 0 ||
        !gcmp_node_int(values[GCMP_DCP_INFO_LENGTH], &length) || length <= 0 || path == NULL ||
        path->kind != GCMP_NODE_TEXT) {
        return false;
    }
    entry->as.path = path;
    entry->offset_bytes = (uint64_t)offset;
    entry->length_bytes = (uint64_t)length;
    entry->info_at = info->at;
    entry->is_read = true;
    return read_transforms(values[GCMP_DCP_INFO_TRANSFORMS], &entry->encoding);
}

static bool take_pairs(struct digest *digest, const struct gcmp_node *storage,
                       struct gcmp_node *const *items, size_t count) {
    struct gcmp_dcp_index *index = digest->index;
    if (index->storage != NULL && index->storage != storage) {
        return false;
    }
    index->storage = storage;
    for (size_t i = 0; i < count; i += 2) {
        struct gcmp_dcp_entry entry = {0};
        if (index->entry_count >= index->bytes / LEAST_BYTES ||
            !grow(digest, &index->entries, index->entry_count, &index->entry_capacity,
                  sizeof entry) ||
            !read_key(digest, items[i], &entry) || !read_info(digest, items[i + 1], &entry)) {
            return false;
        }
        index->entries[index->entry_count++] = entry;
    }
    return true;
}

/* The sizes of a chunk: those of the one before where they are equal, as most are. */
static const uint64_t *keep_extent(struct digest *digest, const uint64_t *sizes, unsigned ndim) {
    const struct gcmp_dcp_index *index = digest->index;
    const struct gcmp_dcp_chunk *last =
        index->chunk_count == 0 ? NULL : &index->chunks[index->chunk_count - 1];
    if (last != NULL && last->size_ndim == ndim &&
        memcmp(last->sizes, sizes, ndim * sizeof *sizes) == 0) {
        return last->sizes;
    }
    return keep(digest, sizes, ndim);
}

static bool read_chunk(struct digest *digest, const struct gcmp_node *node,
                       struct gcmp_dcp_chunk *chunk) {
    uint64_t offsets[GRADCMP_MAX_NDIM], sizes[GRADCMP_MAX_NDIM];
    unsigned offset_ndim, size_ndim;
    gcmp_dcp_read_fields(&digest->chunk_fields, node);
    const struct gcmp_node *const *values = digest->chunk_fields.values;
    if (!gcmp_node_sizes(values[GCMP_DCP_CHUNK_OFFSETS], offsets, GRADCMP_MAX_NDIM, &offset_ndim) ||
        !gcmp_node_sizes(values[GCMP_DCP_CHUNK_SIZES], sizes, GRADCMP_MAX_NDIM, &size_ndim)) {
        return false;
    }
    chunk->at = node->at;
    chunk->offset_ndim = (uint8_t)offset_ndim;
    chunk->size_ndim = (uint8_t)size_ndim;
    chunk->offsets = keep(digest, offsets, offset_ndim);
    chunk->sizes = keep_extent(digest, sizes, size_ndim);
    return chunk->offsets != NULL && chunk->sizes != NULL;
}

/* The last list where it is this one, or a new one. */
static struct gcmp_dcp_chunk_list *find_list(struct digest *digest, const struct gcmp_node *list) {
    struct gcmp_dcp_index *index = digest->index;
    if (index->list_count == 0 || index->lists[index->list_count - 1].list != list) {
        if (!grow(digest, &index->lists, index->list_count, &index->list_capacity,
                  sizeof *index->lists)) {
            return NULL;
        }
        index->lists[index->list_count++] =
            (struct gcmp_dcp_chunk_list){list, index->chunk_count, 0};
    }
    return &index->lists[index->list_count - 1];
}

static bool take_chunks(struct digest *digest, const struct gcmp_node *list,
                        struct gcmp_node *const *items, size_t count) {
    struct gcmp_dcp_index *index = digest->index;
    struct gcmp_dcp_chunk_list *to = find_list(digest, list);
    for (size_t i = 0; to != NULL && i < count; i++) {
        struct gcmp_dcp_chunk chunk;
        if (index->chunk_count >= index->bytes / LEAST_BYTES ||
            !grow(digest, &index->chunks, index->chunk_count, &index->chunk_capacity,
                  sizeof chunk) ||
            !read_chunk(digest, items[i], &chunk)) {
            return false;
        }
        index->chunks[index->chunk_count++] = chunk;
        to->count++;
    }
    return to != NULL;
}

static bool take(void *user, unsigned which, const struct gcmp_node *container,
                 struct gcmp_node *const *items, size_t count) {
    return which == OF_STORAGE ? take_pairs(user, container, items, count)
                               : take_chunks(user, container, items, count);
}

enum gradcmp_status gcmp_dcp_digest(struct gcmp_cursor *cursor, struct gcmp_dcp_index *index,
                                    struct gcmp_node **root, struct gradcmp_error *error) {
    struct digest digest = {.index = index,
                            .key_fields = GCMP_DCP_KEY_FIELDS,
                            .info_fields = GCMP_DCP_INFO_FIELDS,
                            .chunk_fields = GCMP_DCP_CHUNK_FIELDS};
    const struct gcmp_pickle_digest how = {.of = {[OF_STORAGE] = {"storage_data", GCMP_NODE_DICT},
                                                  [OF_CHUNKS] = {"chunks", GCMP_NODE_LIST}},
                                           .take = take,
                                           .user = &digest};
    enum gradcmp_status status =
        gcmp_pickle_load_digested(cursor, &index->arena, index->path, &how, root, error);
    if (digest.no_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return status;
}
