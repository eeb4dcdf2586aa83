/* Opening a checkpoint through one format's table, putting its tensors together element by element,
 * and comparing them with what the writer had in memory. Slow and plain on purpose: it shares no
 * code with unshard/ and the engine. */
#ifndef GCMP_SAMPLE_TOOLS_H
#define GCMP_SAMPLE_TOOLS_H

#include "temp_tools.h"

#include <endian.h>
#include <fcntl.h>
#include <nettle/sha2.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "gradcmp/sys/format.h"

struct opened {
    struct gcmp_arena arena;
    struct gcmp_dir *dir;
    struct gradcmp_catalogue catalogue;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

static inline struct opened *open_format(const struct gradcmp_format *format, const char *path) {
    struct opened *opened = calloc(1, sizeof *opened);
    assert_int_equal(gcmp_dir_open(path, &opened->dir, NULL), GRADCMP_OK);
    opened->catalogue.arena = &opened->arena;
    opened->catalogue.dir = opened->dir;
    opened->catalogue.format = format;
    opened->catalogue.iteration = -1;
    opened->status = format->open(&opened->catalogue, &opened->error);
    return opened;
}

static inline void close_format(struct opened *opened) {
    gcmp_catalogue_free(&opened->catalogue);
    gcmp_arena_free(&opened->arena);
    gcmp_dir_close(opened->dir);
    free(opened);
}

/* Open, or fail with the message. */
static inline struct opened *open_good(const struct gradcmp_format *format, const char *path) {
    struct opened *opened = open_format(format, path);
    if (opened->status != GRADCMP_OK) {
        fail_msg("%s: %s: %s", path, opened->error.path, opened->error.message);
    }
    return opened;
}

/* Messages that end with "*" in a test are compared up to there. */
static inline bool is_message(const char *found, const char *expected) {
    size_t length = strlen(expected);
    return length > 0 && expected[length - 1] == '*' ? strncmp(found, expected, length - 1) == 0
                                                     : strcmp(found, expected) == 0;
}

/* A byte of the file that is not compared. */
#define ANY_OFFSET (GRADCMP_NO_OFFSET - 1)

/* The checkpoint is refused: code, byte (GRADCMP_NO_OFFSET: none), the end of the path at fault,
 * the message. */
static inline void check_refused_open(const struct gradcmp_format *format, const char *path,
                                      enum gradcmp_status code, uint64_t offset,
                                      const char *path_end, const char *message) {
    struct opened *opened = open_format(format, path);
    const struct gradcmp_error *error = &opened->error;
    size_t length = strlen(error->path), end = strlen(path_end);
    if (opened->status != code || error->code != code || !is_message(error->message, message)) {
        fail_msg("%s: expected %d \"%s\", found %d \"%s\"", path, (int)code, message,
                 (int)opened->status, error->message);
    }
    if (offset != ANY_OFFSET && error->offset_bytes != offset) {
        fail_msg("%s: expected byte %llu, found %llu", path, (unsigned long long)offset,
                 (unsigned long long)error->offset_bytes);
    }
    if (length < end || strcmp(error->path + length - end, path_end) != 0) {
        fail_msg("expected a path with the end \"%s\", found \"%s\"", path_end, error->path);
    }
    close_format(opened);
}

static inline const struct gradcmp_stored *find_stored(const struct opened *opened,
                                                       const char *name, const char *state) {
    for (size_t i = 0; i < opened->catalogue.stored_count; i++) {
        const struct gradcmp_stored *stored = &opened->catalogue.stored[i];
        if (stored->state != NULL && strcmp(stored->name, name) == 0 &&
            strcmp(stored->state, state) == 0) {
            return stored;
        }
    }
    return NULL;
}

/* A source's bytes and how its elements lie in them. */
struct looked_up {
    unsigned char *bytes;
    struct gradcmp_extent extent;
};

/* Describe a range as an extent of `piece`, whose own stride then applies to its elements. */
static inline void extent_of_range(const struct gradcmp_source *source, unsigned dtype,
                                   struct gradcmp_extent *extent) {
    extent->offset_bytes = source->offset_bytes;
    extent->length_bytes = source->length_bytes;
    extent->big_endian = source->big_endian;
    extent->dtype = (uint8_t)dtype;
    extent->ndim = 1;
    extent->shape[0] = source->length_bytes / gcmp_dtype_bytes((enum gradcmp_dtype)dtype);
    extent->stride[0] = 1;
}

static inline enum gradcmp_status look_up(const struct opened *opened,
                                          const struct gradcmp_stored *stored,
                                          const struct gradcmp_piece *piece,
                                          struct looked_up *found, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = &opened->catalogue;
    const struct gradcmp_source *source = &catalogue->sources[piece->source];
    struct gradcmp_extent *extent = &found->extent;
    memset(found, 0, sizeof *found);
    if (source->kind == GRADCMP_SOURCE_RANGE) {
        extent_of_range(source, stored->dtype, extent);
    } else {
        enum gradcmp_status status =
            catalogue->format->resolve(catalogue, piece->source, extent, error);
        if (status != GRADCMP_OK) {
            return status;
        }
        assert_int_equal(extent->dtype, stored->dtype);
        assert_int_equal(extent->ndim, stored->ndim);
        assert_memory_equal(extent->shape, piece->extent, 8 * stored->ndim);
        assert_null(piece->stride);
    }
    found->bytes = malloc(extent->length_bytes + 1);
    if (extent->decoded != NULL) {
        memcpy(found->bytes, (unsigned char *)extent->decoded + extent->offset_bytes,
               extent->length_bytes);
        free(extent->decoded);
    } else if (extent->decoded_in_file) {
        assert_int_equal(pread(extent->decoded_fd, found->bytes, extent->length_bytes,
                               (off_t)extent->offset_bytes),
                         extent->length_bytes);
        close(extent->decoded_fd);
    } else {
        assert_int_equal(gcmp_dir_read(catalogue->dir, source->file, extent->offset_bytes,
                                       found->bytes, extent->length_bytes, error),
                         GRADCMP_OK);
    }
    return GRADCMP_OK;
}

/* Record element of the piece's element with the given index inside of the piece. */
static inline uint64_t record_element(const struct gradcmp_piece *piece, unsigned ndim,
                                      const struct looked_up *found, bool item,
                                      const uint64_t *index) {
    int64_t element = item ? found->extent.offset_elems : piece->stride ? piece->offset_elems : 0;
    int64_t row = 1;
    for (unsigned d = ndim; d-- > 0;) {
        int64_t stride = item ? found->extent.stride[d] : piece->stride ? piece->stride[d] : row;
        element += (int64_t)index[d] * stride;
        row *= (int64_t)piece->extent[d];
    }
    return (uint64_t)element;
}

/* One element as binary32, from any floating type that samples have. */
static inline float element_as_float(const unsigned char *bytes, unsigned dtype, bool big_endian) {
    unsigned count = gcmp_dtype_bytes((enum gradcmp_dtype)dtype);
    uint64_t bits = 0;
    for (unsigned i = 0; i < count; i++) {
        bits |= (uint64_t)bytes[big_endian ? count - 1 - i : i] << (8 * i);
    }
    if (dtype == GRADCMP_DTYPE_FLOAT64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return (float)value;
    }
    uint32_t word = dtype == GRADCMP_DTYPE_BFLOAT16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    assert_true(dtype == GRADCMP_DTYPE_BFLOAT16 || dtype == GRADCMP_DTYPE_FLOAT32);
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Put a piece's elements into the whole tensor; `covered` counts them. */
static inline void place_piece(const struct gradcmp_stored *stored,
                               const struct gradcmp_piece *piece, const struct looked_up *found,
                               bool item, float *whole, uint64_t *covered) {
    uint64_t index[GRADCMP_MAX_NDIM] = {0}, count = 1;
    unsigned bytes = gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype);
    for (unsigned d = 0; d < stored->ndim; d++) {
        count *= piece->extent[d];
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t rest = i, at = 0;
        for (unsigned d = stored->ndim; d-- > 0;) {
            index[d] = rest % piece->extent[d];
            rest /= piece->extent[d];
        }
        for (unsigned d = 0; d < stored->ndim; d++) {
            assert_true(piece->start[d] + index[d] < stored->shape[d]);
            at = at * stored->shape[d] + piece->start[d] + index[d];
        }
        uint64_t element = record_element(piece, stored->ndim, found, item, index);
        assert_true((element + 1) * bytes <= found->extent.length_bytes);
        whole[at] = element_as_float(found->bytes + element * bytes, stored->dtype,
                                     found->extent.big_endian != 0);
    }
    *covered += count;
}

/* Put a stored tensor together as binary32; malloced, *count elements. NULL with *error where a
 * source cannot be resolved. */
static inline float *gather_stored(const struct opened *opened, const struct gradcmp_stored *stored,
                                   uint64_t *count, struct gradcmp_error *error) {
    uint64_t covered = 0;
    *count = 1;
    for (unsigned d = 0; d < stored->ndim; d++) {
        *count *= stored->shape[d];
    }
    float *whole = calloc(*count + 1, sizeof *whole);
    for (size_t i = 0; i < stored->piece_count; i++) {
        const struct gradcmp_piece *piece = &stored->pieces[i];
        const struct gradcmp_source *source = &opened->catalogue.sources[piece->source];
        struct looked_up found;
        assert_ptr_equal(&opened->catalogue.stored[source->stored], stored);
        assert_int_equal(source->piece, i);
        if (look_up(opened, stored, piece, &found, error) != GRADCMP_OK) {
            free(whole);
            return NULL;
        }
        place_piece(stored, piece, &found, source->kind == GRADCMP_SOURCE_ITEM, whole, &covered);
        free(found.bytes);
    }
    assert_int_equal(covered, *count);
    return whole;
}

/* Write a number as files do, whatever the machine's order of bytes. */
static inline void store_little(float value, uint8_t bytes[4]) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = htole32(bits);
    memcpy(bytes, &bits, sizeof bits);
}

static inline void hash_floats(const float *values, uint64_t count, char *hex) {
    uint8_t digest[SHA256_DIGEST_SIZE], bytes[4];
    struct sha256_ctx context;
    sha256_init(&context);
    for (uint64_t i = 0; i < count; i++) {
        store_little(values[i], bytes);
        sha256_update(&context, sizeof bytes, bytes);
    }
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        sprintf(hex + 2 * i, "%02x", digest[i]);
    }
}

/* Compare every line of a truth file, "name 2x3 sha256" (a scalar has "-"), with the checkpoint's
 * tensors of exp_avg; the checkpoint must hold no others. */
static inline void check_sample(const struct gradcmp_format *format, const char *path,
                                const char *truth) {
    struct opened *opened = open_good(format, path);
    FILE *file = fopen(truth, "r");
    char name[256], shape[64], hash[80];
    size_t lines = 0, tensors = 0;
    assert_non_null(file);
    while (fscanf(file, "%255s %63s %79s", name, shape, hash) == 3) {
        const struct gradcmp_stored *stored = find_stored(opened, name, "exp_avg");
        char found_shape[64] = "", found_hash[80];
        uint64_t count;
        if (stored == NULL) {
            fail_msg("%s: no exp_avg of %s", path, name);
        }
        for (unsigned d = 0; d < stored->ndim; d++) {
            sprintf(found_shape + strlen(found_shape), "%s%llu", d == 0 ? "" : "x",
                    (unsigned long long)stored->shape[d]);
        }
        assert_string_equal(found_shape, strcmp(shape, "-") == 0 ? "" : shape);
        float *values = gather_stored(opened, stored, &count, &opened->error);
        if (values == NULL) {
            fail_msg("%s: %s: %s", path, name, opened->error.message);
        }
        hash_floats(values, count, found_hash);
        assert_string_equal(found_hash, hash);
        free(values);
        lines++;
    }
    fclose(file);
    for (size_t i = 0; i < opened->catalogue.stored_count; i++) {
        const char *state = opened->catalogue.stored[i].state;
        tensors += state != NULL && strcmp(state, "exp_avg") == 0;
    }
    assert_true(lines > 0);
    assert_int_equal(tensors, lines);
    close_format(opened);
}

#endif
