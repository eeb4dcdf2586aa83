/* Turns the helper's stream into a catalogue. */
#include "formats/hdf5_dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "base/map.h"
#include "formats/extracted.h"
#include "formats/hdf5_stream.h"
#include "formats/plain_names.h"

enum { MAX_LINKS_IN_A_ROW = 16, CHUNK_RECORD_BYTES = 1 + 8 + 8 + 4 };

/* A soft link, kept until all datasets are known. */
struct link {
    const char *path, *target;
};

struct reader {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_h5_stream stream;
    uint32_t file;
    uint64_t file_bytes;
    const struct gcmp_h5_dataset **datasets; /* by stored tensor */
    size_t capacity;
    struct gcmp_map by_path; /* path of a dataset -> stored tensor */
    struct link *links;
    size_t link_count, link_capacity;
    struct gcmp_map link_by_path;
    uint32_t *skipped; /* by source */
    size_t skipped_capacity;
    uint32_t stated_layer; /* of the dataset that comes next; 0: not stated */
    struct gradcmp_error *error;
};

#define FAIL(reader, code, offset, ...)                                                            \
    GCMP_FAIL_AT((reader)->error, (code), (reader)->stream.path, (offset), "hdf5: " __VA_ARGS__)

/* --- sources and pieces --- */

/* Append a source of the stored tensor's piece, with the filters that its chunk left out. */
static enum gradcmp_status add_source(struct reader *reader, const struct gradcmp_source *source,
                                      uint32_t skipped, uint32_t *index) {
    struct gradcmp_catalogue *catalogue = reader->catalogue;
    GCMP_TRY(gcmp_catalogue_add_source(catalogue, source, index, reader->error));
    if (!gcmp_grow(&reader->skipped, *index, &reader->skipped_capacity, sizeof *reader->skipped)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    reader->skipped[*index] = skipped;
    return GRADCMP_OK;
}

/* A range of the file that the helper named must lie inside of it. */
static enum gradcmp_status check_range(const struct reader *reader,
                                       const struct gcmp_h5_dataset *dataset, uint64_t offset,
                                       uint64_t length) {
    if (offset > reader->file_bytes || length > reader->file_bytes - offset) {
        FAIL(reader, GRADCMP_ERROR_CORRUPT, reader->file_bytes,
             "truncated: \"%.160s\" takes %llu bytes from byte %llu, the file has %llu",
             dataset->path, (unsigned long long)length, (unsigned long long)offset,
             (unsigned long long)reader->file_bytes);
    }
    return GRADCMP_OK;
}

/* Add the one piece of a dataset that is not chunked. */
static enum gradcmp_status add_whole(struct reader *reader, struct gradcmp_piece *piece,
                                     struct gradcmp_source *source) {
    const struct gcmp_h5_dataset *dataset = reader->datasets[source->stored];
    uint64_t bytes = gcmp_dtype_bytes(dataset->dtype);
    for (unsigned d = 0; d < dataset->ndim; d++) {
        bytes *= dataset->sizes[d];
    }
    source->length_bytes = bytes;
    if (dataset->layout == GCMP_H5_COMPACT) {
        if (dataset->compact_bytes != bytes) {
            return gcmp_h5_stream_fail(&reader->stream);
        }
        source->kind = GRADCMP_SOURCE_ITEM;
    } else {
        GCMP_TRY(check_range(reader, dataset, dataset->offset_bytes, bytes));
        source->offset_bytes = dataset->offset_bytes;
    }
    uint64_t *start = gcmp_arena_alloc(reader->catalogue->arena, dataset->ndim, sizeof *start);
    if (start == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    piece->start = start;
    piece->extent = dataset->sizes;
    return add_source(reader, source, 0, &piece->source);
}

static bool is_plain(const struct gcmp_h5_dataset *dataset, uint32_t skipped) {
    for (unsigned i = 0; i < dataset->filter_count; i++) {
        if ((skipped >> i & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* Set the box of the chunk that begins at `at`. One that is stored as it is has the strides of a
 * whole chunk, also where it reaches over an edge. */
static enum gradcmp_status place_chunk(struct reader *reader, const struct gcmp_h5_dataset *dataset,
                                       const uint64_t *at, bool plain,
                                       struct gradcmp_piece *piece) {
    unsigned ndim = dataset->ndim;
    uint64_t *box = gcmp_arena_alloc(reader->catalogue->arena, 2 * (size_t)ndim, sizeof *box);
    int64_t *stride =
        plain ? gcmp_arena_alloc(reader->catalogue->arena, ndim, sizeof *stride) : NULL;
    if (box == NULL || (plain && stride == NULL)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    int64_t step = 1;
    for (unsigned d = ndim; d-- > 0;) {
        uint64_t left = dataset->sizes[d] - at[d];
        box[d] = at[d];
        box[ndim + d] = left < dataset->chunk[d] ? left : dataset->chunk[d];
        if (plain) {
            stride[d] = step;
        }
        step *= (int64_t)dataset->chunk[d];
    }
    piece->start = box;
    piece->extent = box + ndim;
    piece->stride = stride;
    return GRADCMP_OK;
}

static enum gradcmp_status add_chunk(struct reader *reader, const uint64_t *at,
                                     struct gradcmp_piece *piece, struct gradcmp_source *source) {
    const struct gcmp_h5_dataset *dataset = reader->datasets[source->stored];
    struct gcmp_h5_chunk chunk;
    enum gcmp_h5_tag tag;
    GCMP_TRY(gcmp_h5_read_tag(&reader->stream, &tag));
    if (tag != GCMP_H5_CHUNK) {
        return gcmp_h5_stream_fail(&reader->stream);
    }
    GCMP_TRY(gcmp_h5_read_chunk(&reader->stream, &chunk));
    GCMP_TRY(check_range(reader, dataset, chunk.offset_bytes, chunk.length_bytes));
    bool plain = is_plain(dataset, chunk.skipped);
    if (plain && chunk.length_bytes != dataset->chunk_bytes) {
        FAIL(reader, GRADCMP_ERROR_CORRUPT, chunk.offset_bytes,
             "\"%.160s\": chunk of %llu bytes, expected %llu", dataset->path,
             (unsigned long long)chunk.length_bytes, (unsigned long long)dataset->chunk_bytes);
    }
    source->offset_bytes = chunk.offset_bytes;
    source->length_bytes = chunk.length_bytes;
    source->kind = plain ? GRADCMP_SOURCE_RANGE : GRADCMP_SOURCE_ITEM;
    GCMP_TRY(place_chunk(reader, dataset, at, plain, piece));
    return add_source(reader, source, chunk.skipped, &piece->source);
}

/* Go on to the next chunk of the grid; false after the last. */
static bool next_chunk(const struct gcmp_h5_dataset *dataset, uint64_t *at) {
    for (unsigned d = dataset->ndim; d-- > 0;) {
        if (dataset->sizes[d] - at[d] > dataset->chunk[d]) {
            at[d] += dataset->chunk[d];
            return true;
        }
        at[d] = 0;
    }
    return false;
}

/* The stream announced more chunks than it can hold: it ends early, with an error to tell why. */
static enum gradcmp_status end_early(struct reader *reader) {
    enum gcmp_h5_tag tag;
    GCMP_TRY(gcmp_h5_read_tag(&reader->stream, &tag));
    return gcmp_h5_stream_fail(&reader->stream);
}

/* Read a dataset's chunks. The grid may have more, where the stream ends early. */
static enum gradcmp_status add_chunks(struct reader *reader, size_t stored, uint64_t count) {
    uint64_t at[GRADCMP_MAX_NDIM] = {0};
    bool more = count > 0;
    for (uint64_t i = 0; i < count; i++) {
        struct gradcmp_source source = {.file = reader->file,
                                        .stored = (uint32_t)stored,
                                        .piece = (uint32_t)i,
                                        .big_endian = reader->datasets[stored]->big_endian};
        if (!more) {
            return gcmp_h5_stream_fail(&reader->stream);
        }
        GCMP_TRY(add_chunk(reader, at, &reader->catalogue->stored[stored].pieces[i], &source));
        more = next_chunk(reader->datasets[stored], at);
    }
    return more ? end_early(reader) : GRADCMP_OK;
}

/* --- records --- */

/* Append a stored tensor for a dataset, under `path`, with room for its pieces. */
static enum gradcmp_status add_stored(struct reader *reader, const char *path,
                                      const struct gcmp_h5_dataset *dataset, size_t pieces) {
    size_t index = reader->catalogue->stored_count;
    struct gradcmp_stored *stored;
    if (!gcmp_grow(&reader->datasets, index, &reader->capacity, sizeof *reader->datasets)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    if (index >= UINT32_MAX) {
        GCMP_FAIL(reader->error, GRADCMP_ERROR_LIMIT, "more than %u datasets", UINT32_MAX);
    }
    reader->datasets[index] = dataset;
    GCMP_TRY(gcmp_catalogue_add_stored(reader->catalogue, path, dataset->ndim, dataset->sizes,
                                       pieces, &stored, reader->error));
    stored->dtype = (uint8_t)dataset->dtype;
    switch (gcmp_map_add(&reader->by_path, path, strlen(path), index, NULL)) {
    case GCMP_MAP_ADDED:
        return GRADCMP_OK;
    case GCMP_MAP_PRESENT:
        FAIL(reader, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "\"%.200s\": listed twice", path);
    default:
        GCMP_FAIL_MEMORY(reader->error);
    }
}

/* Chunks of a dataset that is listed only are passed over. */
static enum gradcmp_status skip_chunks(struct reader *reader, uint64_t count) {
    struct gcmp_h5_chunk chunk;
    enum gcmp_h5_tag tag;
    for (uint64_t i = 0; i < count; i++) {
        GCMP_TRY(gcmp_h5_read_tag(&reader->stream, &tag));
        if (tag != GCMP_H5_CHUNK) {
            return gcmp_h5_stream_fail(&reader->stream);
        }
        GCMP_TRY(gcmp_h5_read_chunk(&reader->stream, &chunk));
    }
    return GRADCMP_OK;
}

/* A dataset of numbers gets its pieces; others are listed only. */
static enum gradcmp_status read_dataset(struct reader *reader) {
    struct gcmp_h5_dataset *dataset =
        gcmp_arena_alloc(reader->catalogue->arena, 1, sizeof *dataset);
    uint64_t chunks;
    if (dataset == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    GCMP_TRY(gcmp_h5_read_dataset(&reader->stream, dataset, &chunks));
    uint64_t most = gcmp_cursor_left(&reader->stream.cursor) / CHUNK_RECORD_BYTES;
    size_t stored = reader->catalogue->stored_count,
           count = (size_t)(chunks < most ? chunks : most);
    bool numbers = dataset->dtype != GRADCMP_DTYPE_NONE;
    bool chunked = dataset->layout == GCMP_H5_CHUNKED;
    bool whole = numbers && !chunked && dataset->layout != GCMP_H5_NO_DATA;
    GCMP_TRY(add_stored(reader, dataset->path, dataset, whole ? 1 : numbers ? count : 0));
    reader->catalogue->stored[stored].stated_layer = reader->stated_layer;
    reader->stated_layer = 0;
    if (chunked) {
        GCMP_TRY(numbers ? add_chunks(reader, stored, count) : skip_chunks(reader, count));
        return count == chunks ? GRADCMP_OK : end_early(reader);
    }
    struct gradcmp_source source = {
        .file = reader->file, .stored = (uint32_t)stored, .big_endian = dataset->big_endian};
    return whole ? add_whole(reader, &reader->catalogue->stored[stored].pieces[0], &source)
                 : GRADCMP_OK;
}

static enum gradcmp_status read_link(struct reader *reader) {
    if (!gcmp_grow(&reader->links, reader->link_count, &reader->link_capacity,
                   sizeof *reader->links)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    struct link *link = &reader->links[reader->link_count];
    GCMP_TRY(gcmp_h5_read_link(&reader->stream, &link->path, &link->target));
    if (gcmp_map_add(&reader->link_by_path, link->path, strlen(link->path), reader->link_count,
                     NULL) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    reader->link_count++;
    return GRADCMP_OK;
}

static enum gradcmp_status read_attribute(struct reader *reader) {
    const char *name, *text;
    GCMP_TRY(gcmp_h5_read_attribute(&reader->stream, &name, &text));
    return gcmp_extracted_take(reader->catalogue, name, text, reader->error);
}

static enum gradcmp_status read_number(struct reader *reader) {
    const char *name;
    uint64_t value;
    GCMP_TRY(gcmp_h5_read_number(&reader->stream, &name, &value));
    if (reader->catalogue->iteration < 0 && value <= INT64_MAX) {
        reader->catalogue->iteration = (int64_t)value;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_records(struct reader *reader) {
    GCMP_TRY(gcmp_h5_stream_begin(&reader->stream));
    for (;;) {
        enum gcmp_h5_tag tag;
        GCMP_TRY(gcmp_h5_read_tag(&reader->stream, &tag));
        switch (tag) {
        case GCMP_H5_DATASET:
            GCMP_TRY(read_dataset(reader));
            break;
        case GCMP_H5_LINK:
            GCMP_TRY(read_link(reader));
            break;
        case GCMP_H5_LAYER:
            GCMP_TRY(gcmp_h5_read_layer(&reader->stream, &reader->stated_layer));
            break;
        case GCMP_H5_TEXT:
            GCMP_TRY(read_attribute(reader));
            break;
        case GCMP_H5_NUMBER:
            GCMP_TRY(read_number(reader));
            break;
        case GCMP_H5_END:
            return GRADCMP_OK;
        default:
            return gcmp_h5_stream_fail(&reader->stream);
        }
    }
}

/* --- soft links --- */

/* Where a link leads: from the root, or from the group that holds it. Only plain paths; NULL where
 * it is none, or without memory. */
static const char *resolve_path(struct reader *reader, const struct link *link) {
    if (link->target[0] == '/') {
        return link->target + 1;
    }
    const char *slash = strrchr(link->path, '/');
    int folder = slash == NULL ? 0 : (int)(slash + 1 - link->path);
    return gcmp_arena_format(reader->catalogue->arena, "%.*s%s", folder, link->path, link->target);
}

/* Find the dataset behind a link, through other links if need be. */
static bool follow(struct reader *reader, const struct link *link, size_t *stored) {
    for (int steps = 0; steps < MAX_LINKS_IN_A_ROW; steps++) {
        const char *path = resolve_path(reader, link);
        size_t next;
        if (path == NULL) {
            return false;
        }
        if (gcmp_map_find(&reader->by_path, path, strlen(path), stored)) {
            return true;
        }
        if (!gcmp_map_find(&reader->link_by_path, path, strlen(path), &next)) {
            return false;
        }
        link = &reader->links[next];
    }
    return false;
}

/* List the dataset behind a link once more under the link's path, with sources of its own. */
static enum gradcmp_status add_alias(struct reader *reader, const struct link *link, size_t of) {
    const struct gradcmp_catalogue *catalogue = reader->catalogue;
    size_t pieces = catalogue->stored[of].piece_count, index = catalogue->stored_count;
    GCMP_TRY(add_stored(reader, link->path, reader->datasets[of], pieces));
    for (size_t i = 0; i < pieces; i++) {
        struct gradcmp_piece *piece = &catalogue->stored[index].pieces[i];
        *piece = catalogue->stored[of].pieces[i];
        struct gradcmp_source source = catalogue->sources[piece->source];
        uint32_t skipped = reader->skipped[piece->source];
        source.stored = (uint32_t)index;
        GCMP_TRY(add_source(reader, &source, skipped, &piece->source));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status follow_links(struct reader *reader) {
    for (size_t i = 0; i < reader->link_count; i++) {
        const struct link *link = &reader->links[i];
        size_t stored;
        if (!follow(reader, link, &stored)) {
            FAIL(reader, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET,
                 "\"%.160s\": a soft link to \"%.160s\", which is no dataset of this file",
                 link->path, link->target);
        }
        GCMP_TRY(add_alias(reader, link, stored));
    }
    return GRADCMP_OK;
}

/* --- all of it --- */

static enum gradcmp_status keep_data(struct reader *reader) {
    struct gradcmp_catalogue *catalogue = reader->catalogue;
    struct gcmp_h5_data *data = gcmp_arena_alloc(catalogue->arena, 1, sizeof *data);
    const struct gcmp_h5_dataset **datasets =
        gcmp_arena_alloc(catalogue->arena, catalogue->stored_count, sizeof *datasets);
    uint32_t *skipped =
        gcmp_arena_alloc(catalogue->arena, catalogue->source_count, sizeof *skipped);
    if (data == NULL || datasets == NULL || skipped == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        datasets[i] = reader->datasets[i];
    }
    if (catalogue->source_count > 0) {
        memcpy(skipped, reader->skipped, catalogue->source_count * sizeof *skipped);
    }
    *data = (struct gcmp_h5_data){datasets, skipped};
    catalogue->format_data = data;
    return GRADCMP_OK;
}

/* Datasets come in the order in which they were made. Where that is not by name, the writer went
 * through its model. */
static bool is_by_name(const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 1; i < catalogue->stored_count; i++) {
        if (strcmp(catalogue->stored[i - 1].key, catalogue->stored[i].key) > 0) {
            return false;
        }
    }
    return true;
}

static enum gradcmp_status read_all(struct reader *reader) {
    GCMP_TRY(read_records(reader));
    bool is_sorted = is_by_name(reader->catalogue);
    GCMP_TRY(follow_links(reader));
    GCMP_TRY(keep_data(reader));
    size_t count = reader->catalogue->stored_count;
    const char **types = gcmp_arena_alloc(reader->catalogue->arena, count, sizeof *types);
    if (types == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    for (size_t i = 0; i < count; i++) {
        types[i] = reader->datasets[i]->type;
    }
    enum gcmp_dcp_style style = gcmp_extracted_style(reader->catalogue);
    bool is_ours = style == GCMP_DCP_MEGATRON; /* extracted files are sorted by state and name */
    reader->catalogue->is_ordered = !is_sorted && !is_ours;
    return gcmp_plain_assign_names(reader->catalogue, style, types, reader->error);
}

enum gradcmp_status gcmp_h5_read_stream(struct gradcmp_catalogue *catalogue, uint32_t file,
                                        const unsigned char *bytes, size_t count,
                                        struct gradcmp_error *error) {
    struct reader reader = {.catalogue = catalogue,
                            .stream = {gcmp_cursor_make(bytes, count, 0), catalogue->arena,
                                       gcmp_dir_file_path(catalogue->dir, file), error},
                            .file = file,
                            .file_bytes = gcmp_dir_file_bytes(catalogue->dir, file),
                            .by_path = GCMP_MAP_INIT,
                            .link_by_path = GCMP_MAP_INIT,
                            .error = error};
    enum gradcmp_status status = read_all(&reader);
    gcmp_map_free(&reader.by_path);
    gcmp_map_free(&reader.link_by_path);
    free(reader.datasets);
    free(reader.links);
    free(reader.skipped);
    return status;
}
