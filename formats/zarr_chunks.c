/* Finds chunks by their names, and decodes them. */
#include "formats/zarr_chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/cursor.h"
#include "base/dtype.h"

enum { CHECKSUM_BYTES = 4, MAX_NAME_BYTES = 4096, MAX_LISTED = 1 << 20 };

/* An array while its chunks are added. */
struct adder {
    struct gradcmp_catalogue *catalogue;
    const char *folder;
    const struct gcmp_zarr_array *array;
    size_t stored;
    int64_t *stride;                  /* of a chunk that is stored as it is; shared by all pieces */
    uint64_t index[GRADCMP_MAX_NDIM]; /* of the chunk in the grid */
    struct gradcmp_error *error;
};

static bool is_encoded(const struct gcmp_zarr_array *array) {
    return array->codec != GCMP_CODEC_NONE || array->shuffled_bytes > 0 || array->crc32c;
}

/* Elements of a chunk between neighbours on each axis. */
static void chunk_strides(const struct gcmp_zarr_array *array, int64_t *stride) {
    int64_t step = 1;
    for (unsigned i = array->ndim; i-- > 0;) {
        stride[array->axes[i]] = step;
        step *= (int64_t)array->chunk[array->axes[i]];
    }
}

static uint64_t grid_size(const struct gcmp_zarr_array *array, unsigned axis) {
    return array->shape[axis] / array->chunk[axis] + (array->shape[axis] % array->chunk[axis] != 0);
}

/* Write the name of the chunk's file below the checkpoint. */
static enum gradcmp_status chunk_name(const struct adder *adder, char *name, size_t capacity) {
    const struct gcmp_zarr_array *array = adder->array;
    const char *separator = array->separator == '/' ? "/" : ".";
    size_t length =
        (size_t)snprintf(name, capacity, "%s%s%s", adder->folder,
                         adder->folder[0] == '\0' ? "" : "/", array->names_with_c ? "c" : "");
    for (unsigned d = 0; d < array->ndim && length < capacity; d++) {
        const char *between = d == 0 && !array->names_with_c ? "" : separator;
        length += (size_t)snprintf(name + length, capacity - length, "%s%llu", between,
                                   (unsigned long long)adder->index[d]);
    }
    if (array->ndim == 0 && !array->names_with_c && length < capacity) {
        length += (size_t)snprintf(name + length, capacity - length, "0");
    }
    if (length >= capacity) {
        GCMP_FAIL_AT(adder->error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(adder->catalogue->dir),
                     GRADCMP_NO_OFFSET, "zarr: name of a chunk in \"%.200s\" is too long",
                     adder->folder);
    }
    return GRADCMP_OK;
}

/* Register the chunk's file. */
static enum gradcmp_status find_chunk(const struct adder *adder, uint32_t *file) {
    char name[MAX_NAME_BYTES], path[sizeof adder->error->path];
    struct gcmp_dir *dir = adder->catalogue->dir;
    GCMP_TRY(chunk_name(adder, name, sizeof name));
    enum gradcmp_status status = gcmp_dir_add(dir, name, strlen(name), file, adder->error);
    if (status == GRADCMP_ERROR_IO && gcmp_dir_kind(dir, name) == GCMP_DIR_ABSENT) {
        snprintf(path, sizeof path, "%.500s/%.500s", gcmp_dir_path(dir), name);
        GCMP_FAIL_AT(adder->error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                     "zarr: missing chunk (its fill value is not taken for data)");
    }
    return status;
}

/* A chunk that is stored as it is has exactly the bytes of its elements. */
static enum gradcmp_status check_length(const struct adder *adder, uint32_t file) {
    struct gcmp_dir *dir = adder->catalogue->dir;
    uint64_t found = gcmp_dir_file_bytes(dir, file), expected = adder->array->chunk_bytes;
    if (found != expected && !is_encoded(adder->array)) {
        GCMP_FAIL_AT(adder->error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(dir, file),
                     found < expected ? found : expected,
                     "zarr: chunk of %llu bytes, expected %llu", (unsigned long long)found,
                     (unsigned long long)expected);
    }
    return GRADCMP_OK;
}

/* Set the box of the chunk: all of it, or what of it lies inside of the array. */
static enum gradcmp_status place_chunk(const struct adder *adder, struct gradcmp_piece *piece) {
    const struct gcmp_zarr_array *array = adder->array;
    uint64_t *box = gcmp_arena_alloc(adder->catalogue->arena, 2 * (size_t)array->ndim, sizeof *box);
    if (box == NULL) {
        GCMP_FAIL_MEMORY(adder->error);
    }
    for (unsigned d = 0; d < array->ndim; d++) {
        uint64_t start = adder->index[d] * array->chunk[d], left = array->shape[d] - start;
        box[d] = start;
        box[array->ndim + d] = left < array->chunk[d] ? left : array->chunk[d];
    }
    piece->start = box;
    piece->extent = box + array->ndim;
    piece->stride = is_encoded(array) ? NULL : adder->stride;
    return GRADCMP_OK;
}

/* Go on to the next chunk of the grid; false after the last. */
static bool next_chunk(struct adder *adder) {
    for (unsigned d = adder->array->ndim; d-- > 0;) {
        if (++adder->index[d] < grid_size(adder->array, d)) {
            return true;
        }
        adder->index[d] = 0;
    }
    return false;
}

static bool has_elements(const struct gcmp_zarr_array *array) {
    for (unsigned d = 0; d < array->ndim; d++) {
        if (array->shape[d] == 0) {
            return false;
        }
    }
    return true;
}

/* Look for every chunk's file. The first that is missing ends the search, so that the work follows
 * the files that are there and not what the shape claims. */
static enum gradcmp_status find_chunks(struct adder *adder, size_t *count) {
    *count = 0;
    if (!has_elements(adder->array)) {
        return GRADCMP_OK;
    }
    do {
        uint32_t file;
        GCMP_TRY(find_chunk(adder, &file));
        GCMP_TRY(check_length(adder, file));
        ++*count;
    } while (next_chunk(adder));
    return GRADCMP_OK;
}

/* --- what lies there besides --- */

/* Take one index of a chunk's name off the front, and what separates it from the next. False where
 * it is none of the grid's, or written otherwise than zarr does. */
static bool take_index(const struct gcmp_zarr_array *array, unsigned axis, const char **name) {
    size_t digits = strspn(*name, "0123456789");
    bool is_number = digits > 0 && digits < 19 && (digits == 1 || (*name)[0] != '0');
    if (!is_number || strtoull(*name, NULL, 10) >= grid_size(array, axis)) {
        return false;
    }
    *name += digits;
    if (**name == '.' && array->separator == '.' && axis + 1 < array->ndim) {
        ++*name;
        return true;
    }
    return **name == '\0' && (array->separator == '/' || axis + 1 == array->ndim);
}

/* True for a name in the array's folder (in its folder "c", with `in_c`) that the grid has. */
static bool is_of_grid(const struct gcmp_zarr_array *array, const char *name, bool in_c) {
    bool has_prefix = array->names_with_c && !in_c;
    if (has_prefix && strcmp(name, "c") == 0) {
        return array->ndim == 0 || array->separator == '/';
    }
    if (has_prefix && (array->separator == '/' || strncmp(name, "c.", 2) != 0)) {
        return false;
    }
    name += has_prefix ? 2 : 0;
    if (array->ndim == 0) {
        return !has_prefix && strcmp(name, "0") == 0;
    }
    unsigned indices = array->separator == '/' ? 1 : array->ndim;
    for (unsigned d = 0; d < indices; d++) {
        if (!take_index(array, d, &name)) {
            return false;
        }
    }
    return true;
}

static bool is_chunk_like(const char *name) {
    const char *index = strncmp(name, "c.", 2) == 0 ? name + 2 : name;
    return strcmp(name, "c") == 0 ||
           (index[0] >= '0' && index[0] <= '9' && index[strspn(index, "0123456789.")] == '\0');
}

/* Tell of files that look like chunks and are none of the grid's: of a larger array, or of another
 * separator. Of chunks in folders of folders the outermost are looked at. */
static enum gradcmp_status note_strays(const struct adder *adder, const char *folder, bool in_c) {
    struct gradcmp_catalogue *catalogue = adder->catalogue;
    struct gradcmp_error own = {0};
    char **names, first[160] = "";
    size_t count, strays = 0;
    enum gradcmp_status status =
        gcmp_dir_list(catalogue->dir, folder, MAX_LISTED, &names, &count, &own);
    if (status != GRADCMP_OK) { /* all chunks were found: nothing is needed from the list */
        return status == GRADCMP_ERROR_MEMORY
                   ? gcmp_error_set(adder->error, status, NULL, GRADCMP_NO_OFFSET, "out of memory")
                   : GRADCMP_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_chunk_like(names[i]) && !is_of_grid(adder->array, names[i], in_c) && strays++ == 0) {
            snprintf(first, sizeof first, "%.150s", names[i]);
        }
    }
    gcmp_dir_free_names(names, count);
    return strays == 0 ? GRADCMP_OK
                       : gcmp_catalogue_note(catalogue, adder->error,
                                             "%.200s: %zu names look like chunks and are none of "
                                             "the array, such as \"%s\": they were not read",
                                             folder[0] == '\0' ? "." : folder, strays, first);
}

static enum gradcmp_status look_for_strays(const struct adder *adder) {
    char folder[MAX_NAME_BYTES];
    GCMP_TRY(note_strays(adder, adder->folder, false));
    int length = snprintf(folder, sizeof folder, "%s%sc", adder->folder,
                          adder->folder[0] == '\0' ? "" : "/");
    bool has_c = adder->array->names_with_c && adder->array->separator == '/' &&
                 adder->array->ndim > 0 && length > 0 && (size_t)length < sizeof folder;
    return has_c && gcmp_dir_has_dir(adder->catalogue->dir, folder)
               ? note_strays(adder, folder, true)
               : GRADCMP_OK;
}

/* Add the chunk at the adder's index, which was found, as a piece. */
static enum gradcmp_status add_chunk(struct adder *adder, size_t number) {
    struct gradcmp_piece *piece = &adder->catalogue->stored[adder->stored].pieces[number];
    struct gradcmp_source source = {.stored = (uint32_t)adder->stored, .piece = (uint32_t)number};
    GCMP_TRY(find_chunk(adder, &source.file));
    GCMP_TRY(place_chunk(adder, piece));
    source.length_bytes = gcmp_dir_file_bytes(adder->catalogue->dir, source.file);
    source.kind = is_encoded(adder->array) ? GRADCMP_SOURCE_ITEM : GRADCMP_SOURCE_RANGE;
    source.big_endian = adder->array->big_endian;
    return gcmp_catalogue_add_source(adder->catalogue, &source, &piece->source, adder->error);
}

enum gradcmp_status gcmp_zarr_add_array(struct gradcmp_catalogue *catalogue, const char *folder,
                                        const char *key, const struct gcmp_zarr_array *array,
                                        struct gradcmp_error *error) {
    struct adder adder = {.catalogue = catalogue, .folder = folder, .array = array, .error = error};
    bool listed_only = array->dtype == GRADCMP_DTYPE_NONE;
    size_t count = 0;
    struct gradcmp_stored *stored;
    if (!listed_only) {
        GCMP_TRY(find_chunks(&adder, &count));
        GCMP_TRY(look_for_strays(&adder));
    }
    adder.stored = catalogue->stored_count;
    adder.stride = gcmp_arena_alloc(catalogue->arena, array->ndim, sizeof *adder.stride);
    if (adder.stride == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_catalogue_add_stored(catalogue, key, array->ndim, array->shape, count, &stored,
                                       error));
    stored->dtype = (uint8_t)array->dtype;
    if (!listed_only) {
        chunk_strides(array, adder.stride);
    }
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(add_chunk(&adder, i));
        (void)next_chunk(&adder);
    }
    return GRADCMP_OK;
}

/* --- decoding --- */

/* CRC-32C (Castagnoli), reflected, as iSCSI has it (RFC 3720, B.4). */
static uint32_t crc32c(uint32_t crc, const unsigned char *bytes, size_t count) {
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

/* Take the checksum off the end of a chunk and compare it. */
static enum gradcmp_status check_crc32c(struct gcmp_bytes *bytes, struct gradcmp_error *error) {
    unsigned char stored[CHECKSUM_BYTES];
    uint32_t expected = 0, found = 0;
    struct gcmp_feed feed;
    if (bytes->length_bytes < CHECKSUM_BYTES) {
        GCMP_BYTES_FAIL(bytes, bytes->length_bytes, error, GRADCMP_ERROR_CORRUPT,
                        "zarr: chunk of %llu bytes, expected a checksum of 4",
                        (unsigned long long)bytes->length_bytes);
    }
    bytes->length_bytes -= CHECKSUM_BYTES;
    GCMP_TRY(gcmp_bytes_read(bytes, bytes->length_bytes, stored, sizeof stored, error));
    struct gcmp_cursor cursor = gcmp_cursor_make(stored, sizeof stored, 0);
    (void)gcmp_read_u32le(&cursor, &expected);
    enum gradcmp_status status = gcmp_feed_open(&feed, bytes, error);
    while (status == GRADCMP_OK && gcmp_feed_at(&feed) < bytes->length_bytes) {
        status = gcmp_feed_fill(&feed, error);
        if (status == GRADCMP_OK) {
            found = crc32c(found, feed.buffer, feed.have);
            feed.used = feed.have;
        }
    }
    gcmp_feed_free(&feed);
    GCMP_TRY(status);
    if (found != expected) {
        GCMP_BYTES_FAIL(bytes, 0, error, GRADCMP_ERROR_CORRUPT,
                        "zarr: checksum: expected %08x, found %08x", expected, found);
    }
    return GRADCMP_OK;
}

/* Undo what was done to a chunk, the last step first. */
static enum gradcmp_status undo_codecs(const struct gcmp_zarr_array *array,
                                       const struct gcmp_bytes *chunk, struct gcmp_bytes *out,
                                       struct gradcmp_error *error) {
    struct gcmp_bytes encoded = *chunk, decoded;
    if (array->crc32c) {
        GCMP_TRY(check_crc32c(&encoded, error));
    }
    GCMP_TRY(gcmp_decode(&encoded, array->codec, array->chunk_bytes, array->chunk_bytes, &decoded,
                         error));
    if (array->shuffled_bytes == 0) {
        *out = decoded;
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gcmp_unshuffle(&decoded, array->shuffled_bytes, out, error);
    gcmp_bytes_free(&decoded);
    return status;
}

enum gradcmp_status gcmp_zarr_decode(const struct gcmp_zarr_array *array,
                                     const struct gradcmp_catalogue *catalogue, uint32_t source,
                                     struct gradcmp_extent *out, struct gradcmp_error *error) {
    const struct gradcmp_source *from = &catalogue->sources[source];
    const struct gradcmp_piece *piece = &catalogue->stored[from->stored].pieces[from->piece];
    struct gcmp_bytes chunk = gcmp_bytes_of_file(catalogue->dir, from->file, 0, from->length_bytes);
    struct gcmp_bytes decoded;
    GCMP_TRY(undo_codecs(array, &chunk, &decoded, error));
    gcmp_bytes_give(&decoded, out);
    out->dtype = (uint8_t)array->dtype;
    out->big_endian = array->big_endian;
    out->ndim = (uint8_t)array->ndim;
    memcpy(out->shape, piece->extent, array->ndim * sizeof *out->shape);
    chunk_strides(array, out->stride);
    return GRADCMP_OK;
}
