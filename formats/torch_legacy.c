/* Five pickles (magic number, version of the protocol, facts of the machine, the object, the keys
 * of its storages), then for each key the number of elements and the elements. Source:
 * torch/serialization.py (_legacy_save, _legacy_load), torch/csrc/generic/serialization.cpp:
 * numbers and elements are little-endian on every machine.
 *
 * Limits: MAX_HEADER_BYTES for each of the first three pickles, GCMP_PICKLE_MAX_BYTES for the
 * others. */
#include "formats/torch_legacy.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "formats/torch_legacy_skim.h"
#include "formats/torch_legacy_storages.h"

enum { MAX_HEADER_BYTES = 4096, PROTOCOL_VERSION = 1001 };

/* 0x1950a86a20f9469cfc6c, as the pickle holds it. */
static const unsigned char MAGIC[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

struct stream {
    struct gcmp_dir *dir;
    uint32_t file;
    uint64_t at; /* what was not read yet */
    struct gcmp_arena *arena;
    struct gradcmp_error *error;
};

#define STREAM_FAIL(stream, code, offset, ...)                                                     \
    GCMP_FAIL_AT((stream)->error, (code), gcmp_dir_file_path((stream)->dir, (stream)->file),       \
                 (offset), "torch: " __VA_ARGS__)

bool gcmp_legacy_probe(const unsigned char *bytes, size_t count) {
    if (count == 0 || bytes[0] != 0x80) { /* PROTO: torch writes protocol 2 and later */
        return false;
    }
    for (size_t i = 0; i + sizeof MAGIC <= count && i < GCMP_LEGACY_PROBE_BYTES; i++) {
        if (memcmp(bytes + i, MAGIC, sizeof MAGIC) == 0) {
            return true;
        }
    }
    return false;
}

/* Interpret the pickle that stands next; the nodes live in `arena`. */
static enum gradcmp_status next_pickle(struct stream *stream, uint64_t limit,
                                       struct gcmp_arena *arena, struct gcmp_node **root) {
    uint64_t length = 0;
    GCMP_TRY(
        gcmp_legacy_skim(stream->dir, stream->file, stream->at, limit, &length, stream->error));
    unsigned char *bytes = malloc(length == 0 ? 1 : (size_t)length);
    if (bytes == NULL) {
        GCMP_FAIL_MEMORY(stream->error);
    }
    enum gradcmp_status status =
        gcmp_dir_read(stream->dir, stream->file, stream->at, bytes, (size_t)length, stream->error);
    if (status == GRADCMP_OK) {
        struct gcmp_cursor cursor = gcmp_cursor_make(bytes, (size_t)length, stream->at);
        status = gcmp_pickle_load(&cursor, arena, gcmp_dir_file_path(stream->dir, stream->file),
                                  root, stream->error);
    }
    free(bytes);
    stream->at += length;
    return status;
}

/* The magic number, the version, and facts of the machine, which tell nothing of the elements. */
static enum gradcmp_status read_header(struct stream *stream, struct gcmp_arena *scratch) {
    struct gcmp_node *node = NULL;
    int64_t version = 0;
    GCMP_TRY(next_pickle(stream, MAX_HEADER_BYTES, scratch, &node));
    if (node->kind != GCMP_NODE_BIGINT || node->as.text.length_bytes != sizeof MAGIC ||
        memcmp(node->as.text.bytes, MAGIC, sizeof MAGIC) != 0) {
        STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, 0,
                    "expected the stream's magic number, found %s", gcmp_node_kind_name(node));
    }
    uint64_t at = stream->at;
    GCMP_TRY(next_pickle(stream, MAX_HEADER_BYTES, scratch, &node));
    if (!gcmp_node_int(node, &version) || version != PROTOCOL_VERSION) {
        STREAM_FAIL(stream, GRADCMP_ERROR_UNSUPPORTED, at,
                    "expected version %d of the stream, found %s %lld", PROTOCOL_VERSION,
                    gcmp_node_kind_name(node), (long long)version);
    }
    at = stream->at;
    GCMP_TRY(next_pickle(stream, MAX_HEADER_BYTES, scratch, &node));
    if (node->kind != GCMP_NODE_DICT) {
        STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, at,
                    "expected a dict of facts of the machine, found %s", gcmp_node_kind_name(node));
    }
    return GRADCMP_OK;
}

/* Read the number of elements in front of a storage and step over the storage. */
static enum gradcmp_status place_storage(struct stream *stream,
                                         struct gcmp_legacy_storage *storage) {
    unsigned char bytes[8];
    uint64_t count = 0, length = 0, end = gcmp_dir_file_bytes(stream->dir, stream->file);
    if (end - stream->at < sizeof bytes) {
        STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, end,
                    "truncated: the file ends before the size of storage \"%.100s\"", storage->key);
    }
    GCMP_TRY(
        gcmp_dir_read(stream->dir, stream->file, stream->at, bytes, sizeof bytes, stream->error));
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, sizeof bytes, stream->at);
    (void)gcmp_read_u64le(&cursor, &count);
    if (count != storage->elem_count) {
        STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, stream->at,
                    "storage \"%.100s\": expected %llu elements, as the object says, found %lld",
                    storage->key, (unsigned long long)storage->elem_count, (long long)count);
    }
    stream->at += sizeof bytes;
    if (!gcmp_mul_u64(count, storage->elem_bytes, &length) || length > end - stream->at) {
        STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, end,
                    "truncated: storage \"%.100s\" takes %llu elements of %u bytes from byte %llu, "
                    "the file has %llu",
                    storage->key, (unsigned long long)count, storage->elem_bytes,
                    (unsigned long long)stream->at, (unsigned long long)end);
    }
    storage->offset_bytes = stream->at;
    storage->is_placed = true;
    stream->at += length;
    return GRADCMP_OK;
}

/* Walk over the storages in the order of the list of keys. */
static enum gradcmp_status place_all(struct stream *stream, const struct gcmp_node *keys,
                                     uint64_t keys_at, struct gcmp_legacy_storages *storages) {
    if (keys->kind != GCMP_NODE_LIST || gcmp_node_count(keys) != storages->count) {
        STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, keys_at,
                    "expected a list of %zu keys of storages, found %s of %zu", storages->count,
                    gcmp_node_kind_name(keys), gcmp_node_count(keys));
    }
    for (size_t i = 0; i < storages->count; i++) {
        const char *key = gcmp_node_text(gcmp_node_item(keys, i));
        struct gcmp_legacy_storage *storage = gcmp_legacy_find_storage(storages, key);
        if (storage == NULL || storage->is_placed) {
            STREAM_FAIL(stream, GRADCMP_ERROR_CORRUPT, keys_at,
                        "key \"%.100s\" in the list of storages: %s", key == NULL ? "?" : key,
                        storage == NULL ? "the object has no such storage" : "listed twice");
        }
        GCMP_TRY(place_storage(stream, storage));
    }
    uint64_t end = gcmp_dir_file_bytes(stream->dir, stream->file);
    if (stream->at != end) {
        STREAM_FAIL(stream, GRADCMP_ERROR_UNSUPPORTED, stream->at,
                    "%llu bytes behind the last storage: of several objects in one file only the "
                    "first could be read",
                    (unsigned long long)(end - stream->at));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_pickle_record(const struct stream *stream, uint64_t object_at,
                                             uint64_t length, struct gcmp_torch_file *out) {
    struct gcmp_zip_record *record = gcmp_arena_alloc(stream->arena, 1, sizeof *record);
    if (record == NULL) {
        GCMP_FAIL_MEMORY(stream->error);
    }
    *record = (struct gcmp_zip_record){
        .name = "data.pkl", .offset_bytes = object_at, .length_bytes = length};
    out->pickle = record;
    return GRADCMP_OK;
}

/* What follows the header. */
static enum gradcmp_status read_object(struct stream *stream, struct gcmp_arena *scratch,
                                       struct gcmp_legacy_storages *storages,
                                       struct gcmp_torch_file *out) {
    struct gcmp_node *keys = NULL;
    uint64_t object_at = stream->at;
    GCMP_TRY(next_pickle(stream, GCMP_PICKLE_MAX_BYTES, stream->arena, &out->root));
    GCMP_TRY(add_pickle_record(stream, object_at, stream->at - object_at, out));
    GCMP_TRY(gcmp_legacy_collect(out, storages, stream->error));
    uint64_t keys_at = stream->at;
    GCMP_TRY(next_pickle(stream, GCMP_PICKLE_MAX_BYTES, scratch, &keys));
    GCMP_TRY(place_all(stream, keys, keys_at, storages));
    return gcmp_legacy_add_records(out, storages, stream->arena, stream->error);
}

enum gradcmp_status gcmp_legacy_open(struct gcmp_dir *dir, uint32_t file, struct gcmp_arena *arena,
                                     struct gcmp_torch_file *out, struct gradcmp_error *error) {
    struct stream stream = {.dir = dir, .file = file, .arena = arena, .error = error};
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_legacy_storages storages = {.by_key = GCMP_MAP_INIT};
    *out = (struct gcmp_torch_file){.dir = dir, .file = file};
    out->zip.dir = dir;
    out->zip.file = file;
    enum gradcmp_status status = read_header(&stream, &scratch);
    if (status == GRADCMP_OK) {
        status = read_object(&stream, &scratch, &storages, out);
    }
    gcmp_legacy_free_storages(&storages);
    gcmp_arena_free(&scratch);
    return status;
}
