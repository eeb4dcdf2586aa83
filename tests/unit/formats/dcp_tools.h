/* Opens distributed checkpoints for tests, from fixtures or from metadata written here. */
#ifndef GCMP_DCP_TOOLS_H
#define GCMP_DCP_TOOLS_H

#include "temp_tools.h"

#include "base/catalogue.h"
#include "formats/dcp.h"

/* An open checkpoint, or the failure to open it. */
struct dcp_case {
    struct gcmp_arena arena;
    struct gradcmp_catalogue catalogue;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

static inline struct dcp_case *dcp_open(const char *path) {
    struct dcp_case *dcp = calloc(1, sizeof *dcp);
    assert_int_equal(gcmp_dir_open(path, &dcp->catalogue.dir, &dcp->error), GRADCMP_OK);
    dcp->catalogue.arena = &dcp->arena;
    dcp->catalogue.iteration = -1;
    dcp->catalogue.format = &gcmp_format_torch_dist;
    dcp->status = gcmp_format_torch_dist.open(&dcp->catalogue, &dcp->error);
    return dcp;
}

static inline void dcp_close(struct dcp_case *dcp) {
    gcmp_catalogue_free(&dcp->catalogue);
    gcmp_dir_close(dcp->catalogue.dir);
    gcmp_arena_free(&dcp->arena);
    free(dcp);
}

/* Open one that must be good. */
static inline struct dcp_case *dcp_open_good(const char *path) {
    struct dcp_case *dcp = dcp_open(path);
    if (dcp->status != GRADCMP_OK) {
        fail_msg("%s: %s", dcp->error.path, dcp->error.message);
    }
    return dcp;
}

/* Find a stored tensor by its key; it must be there. */
static inline const struct gradcmp_stored *dcp_find(const struct dcp_case *dcp, const char *key) {
    for (size_t i = 0; i < dcp->catalogue.stored_count; i++) {
        if (strcmp(dcp->catalogue.stored[i].key, key) == 0) {
            return &dcp->catalogue.stored[i];
        }
    }
    fail_msg("no stored tensor \"%s\"", key);
    return NULL;
}

static inline void expect_key(const struct dcp_case *dcp, const char *key, const char *name,
                              const char *state) {
    const struct gradcmp_stored *stored = dcp_find(dcp, key);
    assert_string_equal(stored->name, name);
    if (state == NULL) {
        assert_null(stored->state);
    } else {
        assert_non_null(stored->state);
        assert_string_equal(stored->state, state);
    }
}

/* Resolve every source of a tensor of numbers; all must succeed. Returns how many there are. */
static inline size_t dcp_resolve_all(const struct dcp_case *dcp) {
    size_t count = 0;
    for (uint32_t i = 0; i < dcp->catalogue.source_count; i++) {
        const struct gradcmp_source *source = &dcp->catalogue.sources[i];
        const struct gradcmp_stored *stored = &dcp->catalogue.stored[source->stored];
        struct gradcmp_extent extent = {0};
        struct gradcmp_error error = {0};
        if (stored->dtype == GRADCMP_DTYPE_NONE) {
            continue;
        }
        if (gcmp_format_torch_dist.resolve(&dcp->catalogue, i, &extent, &error) != GRADCMP_OK) {
            fail_msg("%s: %s", error.path, error.message);
        }
        assert_true(extent.offset_bytes >= source->offset_bytes);
        assert_true(extent.offset_bytes + extent.length_bytes <=
                    source->offset_bytes + source->length_bytes);
        count++;
    }
    return count;
}

/* Copy the files of a folder, but not the folders in it. */
static inline void copy_files(const char *from, const char *to) {
    char command[2048];
    snprintf(command, sizeof command, "find '%s' -maxdepth 1 -type f -exec cp -t '%s' {} +", from,
             to);
    assert_int_equal(system(command), 0);
}

/* Make the shards that shards.txt in `temp` lists, of the right size and full of zeros. */
static inline void make_shards(const char *temp) {
    char *list = temp_path(temp, "shards.txt"), name[256];
    unsigned long long bytes;
    FILE *file = fopen(list, "r");
    assert_non_null(file);
    while (fscanf(file, "%255s %llu", name, &bytes) == 2) {
        temp_file(temp, name, "", 0);
        char *path = temp_path(temp, name);
        assert_int_equal(truncate(path, (off_t)bytes), 0);
        free(path);
    }
    fclose(file);
    free(list);
}

/* Metadata written by hand: pickle protocol 2. */
struct dcp_writer {
    unsigned char bytes[64 * 1024];
    size_t count;
};

static inline void w_bytes(struct dcp_writer *writer, const char *bytes, size_t count) {
    assert_true(writer->count + count <= sizeof writer->bytes);
    memcpy(writer->bytes + writer->count, bytes, count);
    writer->count += count;
}

static inline void w_raw(struct dcp_writer *writer, const char *text) {
    w_bytes(writer, text, strlen(text));
}

static inline void w_text(struct dcp_writer *writer, const char *text) {
    size_t count = strlen(text);
    char head[5] = {'X', (char)(count & 0xff), (char)(count >> 8 & 0xff), (char)(count >> 16), 0};
    w_bytes(writer, head, 5);
    w_raw(writer, text);
}

static inline void w_int(struct dcp_writer *writer, long long value) {
    char text[32];
    snprintf(text, sizeof text, "L%lldL\n", value);
    w_raw(writer, text);
}

/* Begin an object: its attributes follow as text and value; w_end closes it. */
static inline void w_object(struct dcp_writer *writer, const char *module, const char *name) {
    char text[256];
    snprintf(text, sizeof text, "c%s\n%s\n)\x81}(", module, name);
    w_raw(writer, text);
}

static inline void w_end(struct dcp_writer *writer) {
    w_raw(writer, "ub");
}

static const char W_METADATA[] = "torch.distributed.checkpoint.metadata";

static inline void w_size(struct dcp_writer *writer, unsigned ndim, const long long *sizes) {
    w_raw(writer, "ctorch\nSize\n(");
    for (unsigned d = 0; d < ndim; d++) {
        w_int(writer, sizes[d]);
    }
    w_raw(writer, "t\x85R");
}

/* The start of the metadata, up to the pairs of state_dict_metadata. */
static inline void w_begin(struct dcp_writer *writer) {
    writer->count = 0;
    w_raw(writer, "\x80\x02");
    w_object(writer, W_METADATA, "Metadata");
    w_text(writer, "state_dict_metadata");
    w_raw(writer, "}(");
}

/* A pair: key and a tensor whose chunks follow, up to w_tensor_end. */
static inline void w_tensor(struct dcp_writer *writer, const char *key, const char *dtype,
                            unsigned ndim, const long long *shape) {
    w_text(writer, key);
    w_object(writer, W_METADATA, "TensorStorageMetadata");
    w_text(writer, "properties");
    w_raw(writer, "ctorch.distributed._shard.sharded_tensor.metadata\nTensorProperties\n)\x81(");
    w_raw(writer, "ctorch\n");
    w_raw(writer, dtype);
    w_raw(writer, "\nctorch.serialization\n_get_layout\n");
    w_text(writer, "torch.strided");
    w_raw(writer, "\x85R\x89NNtb"); /* layout, requires_grad, enum, pin_memory */
    w_text(writer, "size");
    w_size(writer, ndim, shape);
    w_text(writer, "chunks");
    w_raw(writer, "](");
}

static inline void w_chunk(struct dcp_writer *writer, unsigned ndim, const long long *offsets,
                           const long long *sizes) {
    w_object(writer, W_METADATA, "ChunkStorageMetadata");
    w_text(writer, "offsets");
    w_size(writer, ndim, offsets);
    w_text(writer, "sizes");
    w_size(writer, ndim, sizes);
    w_end(writer);
}

static inline void w_tensor_end(struct dcp_writer *writer) {
    w_raw(writer, "e");
    w_end(writer);
}

/* Between the two dicts. */
static inline void w_storage(struct dcp_writer *writer) {
    w_raw(writer, "u");
    w_text(writer, "storage_data");
    w_raw(writer, "}(");
}

static inline void w_info(struct dcp_writer *writer, const char *path) {
    w_object(writer, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
    w_text(writer, "relative_path");
    w_text(writer, path);
    w_text(writer, "offset");
    w_int(writer, 0);
    w_text(writer, "length");
    w_int(writer, 100);
    w_end(writer);
}

static inline void w_entry(struct dcp_writer *writer, const char *key, unsigned ndim,
                           const long long *offsets, const char *path) {
    w_object(writer, W_METADATA, "MetadataIndex");
    w_text(writer, "fqn");
    w_text(writer, key);
    w_text(writer, "offset");
    w_size(writer, ndim, offsets);
    w_text(writer, "index");
    w_raw(writer, "N");
    w_end(writer);
    w_info(writer, path);
}

/* The end of the metadata: storage_data's pairs are over. Writes `.metadata` and a shard "shard" of
 * 100 bytes. */
static inline void w_finish(struct dcp_writer *writer, const char *temp) {
    char shard[100] = "";
    w_raw(writer, "uub.");
    temp_file(temp, ".metadata", writer->bytes, writer->count);
    temp_file(temp, "shard", shard, sizeof shard);
}

/* A whole tensor of one chunk with its entry is this much; only tensors without chunks need less.
 */
static inline void w_simple(struct dcp_writer *writer, const char *key, unsigned ndim,
                            const long long *shape) {
    static const long long zeros[64] = {0};
    w_tensor(writer, key, "float32", ndim, shape);
    w_chunk(writer, ndim, zeros, shape);
    w_tensor_end(writer);
}

#endif
