/* Turns the metadata of a checkpoint into its catalogue. TensorProperties and its enum moved to
 * another module after torch 2.0, so they are not looked at by name.
 *
 * Limits: GRADCMP_MAX_NDIM axes; as many chunks as the metadata has bytes (in a pickle, a list that
 * many tensors share costs nothing). */
#include "formats/dcp_metadata.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "formats/dcp_index.h"
#include "formats/dcp_item.h"
#include "formats/dcp_names.h"
#include "formats/torch_file.h"

/* Entries name their file by a node that they share: a direct-mapped cache of a power of two. */
enum { SHARD_CACHE = 256 };

/* A metadata file while it is turned into stored tensors. */
struct metadata {
    struct gcmp_dcp_index index;
    uint64_t chunks_left; /* budget of chunks to look at */
};

struct reader {
    struct gradcmp_catalogue *catalogue;
    struct metadata *files;
    size_t file_count;
    enum gcmp_dcp_style style;
    struct gcmp_map stored_index; /* key -> index of the stored tensor; with several files */
    struct gcmp_dcp_key *keys;    /* of each stored tensor */
    size_t key_capacity;
    struct gcmp_dcp_fields chunk_fields, info_fields;
    struct {
        const struct gcmp_node *path;
        uint32_t file;
    } shards[SHARD_CACHE]; /* files that were looked up lately */
    size_t unread_count;   /* tensors of a type or layout that is not known */
    char unread[300];      /* the first of them */
    struct gradcmp_error *error;
};

/* One tensor, or byte object, of one metadata file. */
struct tensor {
    struct metadata *file;
    size_t number; /* of its pair in the file */
    const char *key;
    const struct gcmp_node *node, *chunks;
    uint64_t shape[GRADCMP_MAX_NDIM];
    unsigned ndim;
    enum gradcmp_dtype dtype;
    uint32_t stored; /* index into the catalogue */
};

/* Fail at a byte of the metadata; the message begins with the tensor's key. */
#define FAIL_TENSOR(reader, tensor, at, code, ...)                                                 \
    return gcmp_failure(fail_tensor((reader), (tensor), (at), (code), __VA_ARGS__))

static enum gradcmp_status fail_tensor(const struct reader *reader, const struct tensor *tensor,
                                       uint32_t at, enum gradcmp_status code, const char *format,
                                       ...) __attribute__((format(printf, 5, 6)));

static enum gradcmp_status fail_tensor(const struct reader *reader, const struct tensor *tensor,
                                       uint32_t at, enum gradcmp_status code, const char *format,
                                       ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    GCMP_DCP_FAIL_AT(&tensor->file->index, at, reader->error, code, "\"%.160s\": %s", tensor->key,
                     text);
}

/* Say what is wrong with a torch.Size of `owner` that gcmp_node_sizes does not take. */
static enum gradcmp_status fail_sizes(struct reader *reader, const struct tensor *tensor,
                                      uint32_t owner, const char *name,
                                      const struct gcmp_node *node) {
    const struct gcmp_node *tuple =
        node != NULL && node->kind == GCMP_NODE_CALL ? gcmp_node_arg(node, 0) : node;
    size_t count = gcmp_node_count(tuple);
    if (count > GRADCMP_MAX_NDIM) {
        FAIL_TENSOR(reader, tensor, owner, GRADCMP_ERROR_LIMIT,
                    "%zu axes in %s, at most %d are read", count, name, GRADCMP_MAX_NDIM);
    }
    int64_t integer;
    for (size_t i = 0; i < count; i++) {
        if (gcmp_node_int(gcmp_node_item(tuple, i), &integer) && integer < 0) {
            FAIL_TENSOR(reader, tensor, owner, GRADCMP_ERROR_CORRUPT,
                        "expected integers of 0 or more in %s, found %lld", name,
                        (long long)integer);
        }
    }
    FAIL_TENSOR(reader, tensor, owner, GRADCMP_ERROR_CORRUPT, "expected integers in %s, found %s",
                name, gcmp_node_kind_name(count == 0 ? tuple : gcmp_node_item(tuple, 0)));
}

/* TensorProperties has a tuple as its state: (dtype, layout, ...). An element type that is not
 * known, or a sparse layout, leaves a tensor that is listed only. */
static enum gradcmp_status read_properties(struct reader *reader, struct tensor *tensor) {
    const struct gcmp_node *properties = gcmp_dcp_attribute(tensor->node, "properties");
    const struct gcmp_node *state =
        properties != NULL && properties->kind == GCMP_NODE_CALL ? properties->as.call.state : NULL;
    const struct gcmp_node *dtype = gcmp_node_item(state, 0);
    if (dtype == NULL || dtype->kind != GCMP_NODE_GLOBAL) {
        FAIL_TENSOR(reader, tensor, tensor->node->at, GRADCMP_ERROR_CORRUPT,
                    "expected an element type in properties, found %s", gcmp_node_kind_name(dtype));
    }
    const char *layout = gcmp_node_text(gcmp_node_arg(gcmp_node_item(state, 1), 0));
    bool strided = layout == NULL || strcmp(layout, "torch.strided") == 0;
    tensor->dtype = strided ? gcmp_torch_dtype(dtype) : GRADCMP_DTYPE_NONE;
    if (tensor->dtype == GRADCMP_DTYPE_NONE && reader->unread_count++ == 0) {
        snprintf(reader->unread, sizeof reader->unread, "\"%.160s\" (%.60s%s)", tensor->key,
                 dtype->as.text.bytes, strided ? "" : ", not strided");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_tensor(struct reader *reader, struct tensor *tensor) {
    GCMP_TRY(read_properties(reader, tensor));
    const struct gcmp_node *size = gcmp_dcp_attribute(tensor->node, "size");
    if (!gcmp_node_sizes(size, tensor->shape, GRADCMP_MAX_NDIM, &tensor->ndim)) {
        return fail_sizes(reader, tensor, tensor->node->at, "size", size);
    }
    uint64_t elems, bytes;
    unsigned elem_bytes = gcmp_dtype_bytes(tensor->dtype);
    if (!gcmp_product(tensor->shape, tensor->ndim, &elems) ||
        !gcmp_mul_u64(elems, elem_bytes == 0 ? 1 : elem_bytes, &bytes) || bytes > INT64_MAX) {
        FAIL_TENSOR(reader, tensor, tensor->node->at, GRADCMP_ERROR_CORRUPT,
                    "a tensor of 2^63 bytes or more");
    }
    tensor->chunks = gcmp_dcp_attribute(tensor->node, "chunks");
    if (tensor->chunks == NULL || tensor->chunks->kind != GCMP_NODE_LIST) {
        FAIL_TENSOR(reader, tensor, tensor->node->at, GRADCMP_ERROR_CORRUPT,
                    "expected a list of chunks, found %s", gcmp_node_kind_name(tensor->chunks));
    }
    return GRADCMP_OK;
}

/* Items are torch.save archives as they are, unless a transform (torch's experimental compression)
 * is named in the entry. */
static enum gradcmp_status read_transforms(struct reader *reader, const struct tensor *tensor,
                                           uint32_t info, uint8_t *encoding) {
    const struct gcmp_node *transforms = reader->info_fields.values[GCMP_DCP_INFO_TRANSFORMS];
    if (transforms == NULL || transforms->kind == GCMP_NODE_NONE ||
        (transforms->kind == GCMP_NODE_LIST && gcmp_node_count(transforms) == 0)) {
        return GRADCMP_OK;
    }
    const char *first = gcmp_node_text(gcmp_node_item(transforms, 0));
    enum gcmp_dcp_encoding found;
    if (gcmp_node_count(transforms) > 1) {
        FAIL_TENSOR(reader, tensor, info, GRADCMP_ERROR_UNSUPPORTED,
                    "stored through %zu transforms, at most one is undone",
                    gcmp_node_count(transforms));
    }
    if (first == NULL || !gcmp_dcp_find_encoding(first, &found)) {
        FAIL_TENSOR(
            reader, tensor, info, GRADCMP_ERROR_UNSUPPORTED,
            "stored through the transform \"%.60s\", which this version does not undo (only "
            "stream.zstd/1)",
            first == NULL ? "?" : first);
    }
    *encoding = (uint8_t)found;
    return GRADCMP_OK;
}

/* Register the shard that an entry names; a name that lies is this metadata's fault. */
static enum gradcmp_status add_shard(struct reader *reader, const struct tensor *tensor,
                                     const struct gcmp_dcp_entry *entry, uint32_t *shard) {
    const struct gcmp_node *path = entry->as.path;
    uint32_t info = entry->info_at;
    if (path == NULL || path->kind != GCMP_NODE_TEXT) {
        FAIL_TENSOR(reader, tensor, info, GRADCMP_ERROR_CORRUPT,
                    "expected a text as relative_path, found %s", gcmp_node_kind_name(path));
    }
    const char *name = path->as.text.bytes;
    size_t bytes = path->as.text.length_bytes;
    const char *fault = gcmp_dir_name_fault(name, bytes);
    if (fault != NULL) {
        FAIL_TENSOR(reader, tensor, info, GRADCMP_ERROR_CORRUPT, "relative_path \"%.100s\" %s",
                    name, fault);
    }
    struct gcmp_dir *dir = reader->catalogue->dir;
    enum gradcmp_status status = gcmp_dir_add(dir, name, bytes, shard, reader->error);
    if (status == GRADCMP_ERROR_IO && gcmp_dir_kind(dir, name) == GCMP_DIR_ABSENT) {
        char full[sizeof reader->error->path];
        snprintf(full, sizeof full, "%s/%s", gcmp_dir_path(dir), name);
        GCMP_FAIL_AT(reader->error, GRADCMP_ERROR_IO, full, GRADCMP_NO_OFFSET,
                     "missing shard: the metadata names it, but there is no such file");
    }
    return status;
}

/* Find the shard of an entry that was read. */
static enum gradcmp_status find_shard(struct reader *reader, const struct tensor *tensor,
                                      const struct gcmp_dcp_entry *entry, uint32_t *shard) {
    const struct gcmp_node *path = entry->as.path;
    size_t at = (size_t)((uintptr_t)path / sizeof(void *)) % SHARD_CACHE;
    if (path == NULL || reader->shards[at].path != path) {
        GCMP_TRY(add_shard(reader, tensor, entry, &reader->shards[at].file));
        reader->shards[at].path = path;
    }
    *shard = reader->shards[at].file;
    return GRADCMP_OK;
}

/* Read the _StorageInfo of an entry, unless that was done. */
static enum gradcmp_status read_info(struct reader *reader, const struct tensor *tensor,
                                     struct gcmp_dcp_entry *entry) {
    if (entry->is_read) {
        return GRADCMP_OK;
    }
    int64_t offset, length;
    gcmp_dcp_read_fields(&reader->info_fields, entry->as.info);
    const struct gcmp_node *const *values = reader->info_fields.values;
    if (!gcmp_node_int(values[GCMP_DCP_INFO_OFFSET], &offset) || offset < 0 ||
        !gcmp_node_int(values[GCMP_DCP_INFO_LENGTH], &length) || length <= 0) {
        FAIL_TENSOR(reader, tensor, entry->info_at, GRADCMP_ERROR_CORRUPT,
                    "expected an integer offset of 0 or more and a length of 1 or more");
    }
    GCMP_TRY(read_transforms(reader, tensor, entry->info_at, &entry->encoding));
    entry->as.path = values[GCMP_DCP_INFO_PATH];
    entry->offset_bytes = (uint64_t)offset;
    entry->length_bytes = (uint64_t)length;
    entry->is_read = true;
    return GRADCMP_OK;
}

/* Read where an item lies and check that its shard holds it. */
static enum gradcmp_status read_entry(struct reader *reader, const struct tensor *tensor,
                                      struct gcmp_dcp_entry *entry, struct gradcmp_source *source) {
    GCMP_TRY(read_info(reader, tensor, entry));
    GCMP_TRY(find_shard(reader, tensor, entry, &source->file));
    uint64_t bytes = gcmp_dir_file_bytes(reader->catalogue->dir, source->file);
    if (entry->offset_bytes > bytes || entry->length_bytes > bytes - entry->offset_bytes) {
        GCMP_FAIL_AT(reader->error, GRADCMP_ERROR_CORRUPT,
                     gcmp_dir_file_path(reader->catalogue->dir, source->file), bytes,
                     "truncated: \"%.160s\" takes %llu bytes from byte %llu, the file has %llu",
                     tensor->key, (unsigned long long)entry->length_bytes,
                     (unsigned long long)entry->offset_bytes, (unsigned long long)bytes);
    }
    source->offset_bytes = entry->offset_bytes;
    source->length_bytes = entry->length_bytes;
    source->encoding = entry->encoding;
    source->kind = GRADCMP_SOURCE_ITEM;
    return GRADCMP_OK;
}

/* Append a piece with its source to the stored tensor. */
static enum gradcmp_status add_piece(struct reader *reader, const struct tensor *tensor,
                                     struct gradcmp_source *source, const uint64_t *start,
                                     const uint64_t *extent) {
    struct gradcmp_stored *stored = &reader->catalogue->stored[tensor->stored];
    struct gradcmp_piece *piece = &stored->pieces[stored->piece_count];
    source->stored = tensor->stored;
    source->piece = (uint32_t)stored->piece_count;
    GCMP_TRY(gcmp_catalogue_add_source(reader->catalogue, source, &piece->source, reader->error));
    piece->start = start;
    piece->extent = extent;
    stored->piece_count++;
    return GRADCMP_OK;
}

/* A chunk whose sizes are read: offsets and sizes of GRADCMP_MAX_NDIM at most. */
struct box {
    uint64_t offsets[GRADCMP_MAX_NDIM], sizes[GRADCMP_MAX_NDIM];
    unsigned offset_ndim, size_ndim;
    uint32_t at; /* byte of the metadata */
};

static enum gradcmp_status read_chunk_node(struct reader *reader, const struct tensor *tensor,
                                           const struct gcmp_node *chunk, struct box *box) {
    gcmp_dcp_read_fields(&reader->chunk_fields, chunk);
    const struct gcmp_node *offsets = reader->chunk_fields.values[GCMP_DCP_CHUNK_OFFSETS];
    const struct gcmp_node *sizes = reader->chunk_fields.values[GCMP_DCP_CHUNK_SIZES];
    box->at = chunk->at;
    if (!gcmp_node_sizes(offsets, box->offsets, GRADCMP_MAX_NDIM, &box->offset_ndim)) {
        return fail_sizes(reader, tensor, chunk->at, "offsets", offsets);
    }
    if (!gcmp_node_sizes(sizes, box->sizes, GRADCMP_MAX_NDIM, &box->size_ndim)) {
        return fail_sizes(reader, tensor, chunk->at, "sizes", sizes);
    }
    return GRADCMP_OK;
}

static size_t count_chunks(const struct tensor *tensor) {
    const struct gcmp_dcp_chunk_list *list = tensor->file->index.chunk_lists[tensor->number];
    return list != NULL ? list->count : gcmp_node_count(tensor->chunks);
}

/* Read a chunk, from its node or where its sizes were taken from that. */
static enum gradcmp_status read_chunk(struct reader *reader, const struct tensor *tensor,
                                      size_t number, struct box *box) {
    const struct gcmp_dcp_index *index = &tensor->file->index;
    const struct gcmp_dcp_chunk_list *list = index->chunk_lists[tensor->number];
    if (list == NULL) {
        return read_chunk_node(reader, tensor, gcmp_node_item(tensor->chunks, number), box);
    }
    const struct gcmp_dcp_chunk *chunk = &index->chunks[list->first + number];
    memcpy(box->offsets, chunk->offsets, chunk->offset_ndim * sizeof *box->offsets);
    memcpy(box->sizes, chunk->sizes, chunk->size_ndim * sizeof *box->sizes);
    box->offset_ndim = chunk->offset_ndim;
    box->size_ndim = chunk->size_ndim;
    box->at = chunk->at;
    return GRADCMP_OK;
}

/* Check a chunk against its tensor; *empty tells that it has no elements. */
static enum gradcmp_status check_box(const struct reader *reader, const struct tensor *tensor,
                                     const struct box *box, bool *empty) {
    if (box->offset_ndim != tensor->ndim || box->size_ndim != tensor->ndim) {
        FAIL_TENSOR(reader, tensor, box->at, GRADCMP_ERROR_CORRUPT,
                    "a chunk of %u offsets and %u sizes in a tensor of %u axes", box->offset_ndim,
                    box->size_ndim, tensor->ndim);
    }
    *empty = false;
    for (unsigned d = 0; d < tensor->ndim; d++) {
        if (box->offsets[d] > tensor->shape[d] ||
            box->sizes[d] > tensor->shape[d] - box->offsets[d]) {
            FAIL_TENSOR(reader, tensor, box->at, GRADCMP_ERROR_CORRUPT,
                        "a chunk of %llu from %llu on axis %u, which has %llu",
                        (unsigned long long)box->sizes[d], (unsigned long long)box->offsets[d], d,
                        (unsigned long long)tensor->shape[d]);
        }
        *empty = *empty || box->sizes[d] == 0;
    }
    return GRADCMP_OK;
}

/* The extent of a new piece: that of the one before where they are equal, as most are. */
static const uint64_t *keep_extent(const struct reader *reader, const struct tensor *tensor,
                                   const uint64_t *extent) {
    const struct gradcmp_stored *stored = &reader->catalogue->stored[tensor->stored];
    size_t bytes = tensor->ndim * sizeof *extent;
    if (stored->piece_count > 0 &&
        memcmp(stored->pieces[stored->piece_count - 1].extent, extent, bytes) == 0) {
        return stored->pieces[stored->piece_count - 1].extent;
    }
    return gcmp_catalogue_dims(reader->catalogue, tensor->ndim, extent);
}

/* Add one chunk of a tensor. Empty chunks have no bytes (several ranks may list one at the same
 * offset, and one entry of them survives), and one chunk listed twice is the same bytes. `starts`
 * has room for as many as the tensor has entries, and each piece uses up one entry. */
static enum gradcmp_status add_chunk(struct reader *reader, const struct tensor *tensor,
                                     size_t number, uint64_t **starts) {
    struct box box;
    bool empty = false;
    GCMP_TRY(read_chunk(reader, tensor, number, &box));
    GCMP_TRY(check_box(reader, tensor, &box, &empty));
    if (empty) {
        return GRADCMP_OK;
    }
    struct gcmp_dcp_entry *entry =
        gcmp_dcp_index_find(&tensor->file->index, tensor->number, tensor->ndim, box.offsets);
    if (entry == NULL) {
        FAIL_TENSOR(reader, tensor, box.at, GRADCMP_ERROR_CORRUPT,
                    "storage_data has no entry for a chunk");
    }
    if (entry->used) {
        return GRADCMP_OK;
    }
    struct gradcmp_source source = {0};
    GCMP_TRY(read_entry(reader, tensor, entry, &source));
    const uint64_t *extent = keep_extent(reader, tensor, box.sizes);
    if (extent == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    memcpy(*starts, box.offsets, tensor->ndim * sizeof *box.offsets);
    GCMP_TRY(add_piece(reader, tensor, &source, *starts, extent));
    entry->used = true;
    *starts += tensor->ndim;
    return GRADCMP_OK;
}

static enum gradcmp_status add_chunks(struct reader *reader, const struct tensor *tensor) {
    struct metadata *file = tensor->file;
    size_t count = count_chunks(tensor);
    if (count > file->chunks_left) {
        FAIL_TENSOR(reader, tensor, tensor->node->at, GRADCMP_ERROR_LIMIT,
                    "more chunks than metadata of %llu bytes can hold",
                    (unsigned long long)file->index.bytes);
    }
    file->chunks_left -= count;
    uint64_t *starts =
        gcmp_arena_alloc(reader->catalogue->arena, file->index.entry_counts[tensor->number],
                         tensor->ndim * sizeof *starts);
    if (starts == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(add_chunk(reader, tensor, i, &starts));
    }
    return GRADCMP_OK;
}

/* Room for the pieces of a key in all files. */
static size_t count_entries(const struct reader *reader, const char *key) {
    size_t total = 0;
    for (size_t i = 0; i < reader->file_count; i++) {
        const struct gcmp_dcp_index *index = &reader->files[i].index;
        size_t number;
        if (gcmp_map_find(&index->tensor_index, key, strlen(key), &number)) {
            total += index->entry_counts[number];
        }
    }
    return total;
}

/* Make room for the parsed key of one more stored tensor. */
static enum gradcmp_status reserve_key(struct reader *reader) {
    if (!gcmp_grow(&reader->keys, reader->catalogue->stored_count, &reader->key_capacity,
                   sizeof *reader->keys)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    return GRADCMP_OK;
}

/* Megatron states the shape that a flattened tensor has in the model. */
static enum gradcmp_status set_model_shape(struct reader *reader, const struct tensor *tensor,
                                           struct gradcmp_stored *stored) {
    uint64_t sizes[GRADCMP_MAX_NDIM];
    unsigned ndim;
    if (!gcmp_node_sizes(tensor->file->index.model_sizes[tensor->number], sizes, GRADCMP_MAX_NDIM,
                         &ndim)) {
        return GRADCMP_OK;
    }
    stored->model_shape = gcmp_catalogue_dims(reader->catalogue, ndim, sizes);
    stored->model_ndim = (uint8_t)ndim;
    if (stored->model_shape == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    return GRADCMP_OK;
}

/* Start a stored tensor (or object), with room for its pieces but none yet. */
static enum gradcmp_status start_stored(struct reader *reader, struct tensor *tensor) {
    struct gradcmp_catalogue *catalogue = reader->catalogue;
    struct gradcmp_stored *stored = NULL;
    const char *key = gcmp_arena_dup(catalogue->arena, tensor->key);
    if (key == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    GCMP_TRY(reserve_key(reader));
    tensor->stored = (uint32_t)catalogue->stored_count;
    GCMP_TRY(gcmp_catalogue_add_stored(catalogue, key, tensor->ndim, tensor->shape,
                                       count_entries(reader, key), &stored, reader->error));
    stored->piece_count = 0;
    stored->dtype = (uint8_t)tensor->dtype;
    if (!gcmp_dcp_parse_key(catalogue->arena, key, tensor->file->index.paths[tensor->number],
                            reader->style, &reader->keys[tensor->stored])) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    return set_model_shape(reader, tensor, stored);
}

/* Find the stored tensor of a key that another rank's file listed already, or start it. */
static enum gradcmp_status find_stored(struct reader *reader, struct tensor *tensor) {
    size_t known, key_bytes = strlen(tensor->key);
    if (reader->file_count == 1) {
        return start_stored(reader, tensor);
    }
    if (!gcmp_map_find(&reader->stored_index, tensor->key, key_bytes, &known)) {
        GCMP_TRY(start_stored(reader, tensor));
        const char *key = reader->catalogue->stored[tensor->stored].key;
        if (gcmp_map_add(&reader->stored_index, key, key_bytes, tensor->stored, NULL) ==
            GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(reader->error);
        }
        return GRADCMP_OK;
    }
    const struct gradcmp_stored *stored = &reader->catalogue->stored[known];
    if (stored->ndim != tensor->ndim || stored->dtype != tensor->dtype ||
        memcmp(stored->shape, tensor->shape, tensor->ndim * sizeof *tensor->shape) != 0) {
        FAIL_TENSOR(reader, tensor, tensor->node->at, GRADCMP_ERROR_CORRUPT,
                    "another rank's metadata gives another size or type");
    }
    tensor->stored = (uint32_t)known;
    return GRADCMP_OK;
}

/* Byte objects have one item, found without an offset. One without bytes is not needed here. */
static enum gradcmp_status add_object(struct reader *reader, struct tensor *object) {
    GCMP_TRY(find_stored(reader, object));
    struct gcmp_dcp_entry *entry =
        gcmp_dcp_index_find(&object->file->index, object->number, 0, object->shape);
    if (entry == NULL) {
        return GRADCMP_OK;
    }
    struct gradcmp_source source = {0};
    GCMP_TRY(read_entry(reader, object, entry, &source));
    const uint64_t *none = reader->catalogue->stored[object->stored].shape;
    return add_piece(reader, object, &source, none, none);
}

static enum gradcmp_status add_pair(struct reader *reader, struct metadata *file, size_t number) {
    const struct gcmp_node *key = NULL, *value = NULL;
    (void)gcmp_node_pair(file->index.tensors, number, &key, &value); /* seen when indexed */
    struct tensor tensor = {
        .file = file, .number = number, .key = gcmp_node_text(key), .node = value};
    if (gcmp_node_is_call(value, GCMP_DCP_METADATA_MODULE, "BytesStorageMetadata")) {
        return add_object(reader, &tensor);
    }
    if (!gcmp_node_is_call(value, GCMP_DCP_METADATA_MODULE, "TensorStorageMetadata")) {
        FAIL_TENSOR(reader, &tensor, value->at, GRADCMP_ERROR_CORRUPT,
                    "expected TensorStorageMetadata or BytesStorageMetadata, found %.160s",
                    gcmp_dcp_class_name(value));
    }
    GCMP_TRY(read_tensor(reader, &tensor));
    GCMP_TRY(find_stored(reader, &tensor));
    return add_chunks(reader, &tensor);
}

static enum gradcmp_status add_file(struct reader *reader, struct metadata *file) {
    size_t count = gcmp_node_count(file->index.tensors);
    if (count >= UINT32_MAX - reader->catalogue->stored_count) {
        GCMP_FAIL(reader->error, GRADCMP_ERROR_LIMIT, "more than %u tensors", UINT32_MAX);
    }
    file->chunks_left = file->index.bytes;
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(add_pair(reader, file, i));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status note_unread(struct reader *reader) {
    if (reader->unread_count == 0) {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_note(
        reader->catalogue, reader->error, "%zu tensors are not read, for their type: %s%s",
        reader->unread_count, reader->unread, reader->unread_count > 1 ? " ..." : "");
}

static void free_reader(struct reader *reader) {
    for (size_t i = 0; i < reader->file_count; i++) {
        gcmp_dcp_index_free(&reader->files[i].index);
    }
    free(reader->files);
    free(reader->keys);
    gcmp_map_free(&reader->stored_index);
}

enum gradcmp_status gcmp_dcp_read_metadata(struct gradcmp_catalogue *catalogue, char *const *names,
                                           size_t count, bool *megatron,
                                           struct gradcmp_error *error) {
    struct reader reader = {
        .catalogue = catalogue,
        .file_count = count,
        .error = error,
        .chunk_fields = GCMP_DCP_CHUNK_FIELDS,
        .info_fields = GCMP_DCP_INFO_FIELDS,
    };
    enum gradcmp_status status = GRADCMP_OK;
    reader.files = calloc(count, sizeof *reader.files);
    if (reader.files == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY_OUT(gcmp_dcp_index_load(catalogue->dir, names[i], &reader.files[i].index, error));
        *megatron = *megatron || reader.files[i].index.megatron;
    }
    reader.style = *megatron ? GCMP_DCP_MEGATRON : GCMP_DCP_TORCH;
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY_OUT(add_file(&reader, &reader.files[i]));
    }
    GCMP_TRY_OUT(note_unread(&reader));
    status = gcmp_dcp_assign_names(catalogue, reader.keys, error);
out:
    free_reader(&reader);
    return status;
}
