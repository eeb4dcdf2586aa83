/* Reads the helper's stream. The helper may have been taken over by the file that it reads, so that
 * nothing it writes is believed: lengths, sizes and numbers are checked as if they came from the
 * file. */
#include "formats/hdf5_stream.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"

enum { MAX_TEXT_BYTES = 64 << 10, MAX_MESSAGE_BYTES = 480 };

enum gradcmp_status gcmp_h5_stream_fail(const struct gcmp_h5_stream *stream) {
    GCMP_FAIL_AT(stream->error, GRADCMP_ERROR_CORRUPT, stream->path, GRADCMP_NO_OFFSET,
                 "hdf5: the helper stopped in the middle of this file: it is damaged");
}

/* Fail for one dataset. */
#define FAIL_DATASET(stream, dataset, code, ...)                                                   \
    GCMP_FAIL_AT((stream)->error, (code), (stream)->path, GRADCMP_NO_OFFSET, "hdf5: " __VA_ARGS__)

/* Read a text of at most `limit` bytes into the arena. */
static enum gradcmp_status read_text(struct gcmp_h5_stream *stream, size_t limit,
                                     const char **text) {
    uint32_t count;
    const unsigned char *bytes;
    if (!gcmp_read_u32le(&stream->cursor, &count) || count > limit ||
        !gcmp_read_bytes(&stream->cursor, count, &bytes) || memchr(bytes, 0, count) != NULL) {
        return gcmp_h5_stream_fail(stream);
    }
    *text = gcmp_arena_text(stream->arena, (const char *)bytes, count);
    if (*text == NULL) {
        GCMP_FAIL_MEMORY(stream->error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_h5_stream_begin(struct gcmp_h5_stream *stream) {
    const unsigned char *magic;
    if (!gcmp_read_bytes(&stream->cursor, sizeof GCMP_H5_MAGIC - 1, &magic) ||
        memcmp(magic, GCMP_H5_MAGIC, sizeof GCMP_H5_MAGIC - 1) != 0) {
        GCMP_FAIL_AT(stream->error, GRADCMP_ERROR_IO, stream->path, GRADCMP_NO_OFFSET,
                     "hdf5: the helper program is of another version, or cannot run here");
    }
    return GRADCMP_OK;
}

/* Return what the helper says went wrong. */
static enum gradcmp_status read_error(struct gcmp_h5_stream *stream) {
    uint8_t code;
    uint64_t offset;
    const char *message;
    if (!gcmp_read_u8(&stream->cursor, &code) || !gcmp_read_u64le(&stream->cursor, &offset)) {
        return gcmp_h5_stream_fail(stream);
    }
    GCMP_TRY(read_text(stream, MAX_MESSAGE_BYTES, &message));
    switch (code) {
    case GRADCMP_ERROR_IO:
    case GRADCMP_ERROR_CORRUPT:
    case GRADCMP_ERROR_UNSUPPORTED:
    case GRADCMP_ERROR_LIMIT:
    case GRADCMP_ERROR_MEMORY:
        GCMP_FAIL_AT(stream->error, (enum gradcmp_status)code, stream->path, offset, "hdf5: %s",
                     message);
    default:
        return gcmp_h5_stream_fail(stream);
    }
}

enum gradcmp_status gcmp_h5_read_tag(struct gcmp_h5_stream *stream, enum gcmp_h5_tag *tag) {
    uint8_t byte;
    if (!gcmp_read_u8(&stream->cursor, &byte)) {
        return gcmp_h5_stream_fail(stream);
    }
    if (byte == GCMP_H5_ERROR) {
        return read_error(stream);
    }
    *tag = (enum gcmp_h5_tag)byte;
    return GRADCMP_OK;
}

/* --- datasets --- */

/* A type as the stream has it. */
struct type {
    uint8_t class, big_endian, is_signed;
    uint32_t size_bytes, precision, exponent_bits, mantissa_bits;
    uint64_t exponent_bias;
    const char *description, *mark;
};

static enum gradcmp_dtype float_of(const struct type *type) {
    static const struct {
        uint32_t size_bytes, exponent_bits, mantissa_bits;
        uint64_t exponent_bias;
        enum gradcmp_dtype dtype;
    } floats[] = {{8, 11, 52, 1023, GRADCMP_DTYPE_FLOAT64},
                  {4, 8, 23, 127, GRADCMP_DTYPE_FLOAT32},
                  {2, 5, 10, 15, GRADCMP_DTYPE_FLOAT16},
                  {2, 8, 7, 127, GRADCMP_DTYPE_BFLOAT16},
                  {1, 5, 2, 15, GRADCMP_DTYPE_FLOAT8_E5M2}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        if (floats[i].size_bytes == type->size_bytes &&
            floats[i].exponent_bits == type->exponent_bits &&
            floats[i].mantissa_bits == type->mantissa_bits &&
            floats[i].exponent_bias == type->exponent_bias) {
            return floats[i].dtype;
        }
    }
    return GRADCMP_DTYPE_NONE;
}

static enum gradcmp_dtype integer_of(const struct type *type) {
    bool sign = type->is_signed != 0;
    switch (type->size_bytes) {
    case 8:
        return sign ? GRADCMP_DTYPE_INT64 : GRADCMP_DTYPE_UINT64;
    case 4:
        return sign ? GRADCMP_DTYPE_INT32 : GRADCMP_DTYPE_UINT32;
    case 2:
        return sign ? GRADCMP_DTYPE_INT16 : GRADCMP_DTYPE_UINT16;
    case 1:
        return sign ? GRADCMP_DTYPE_INT8 : GRADCMP_DTYPE_UINT8;
    default:
        return GRADCMP_DTYPE_NONE;
    }
}

/* Writers without a type for bfloat16 or float8 store their bits in integers of the same size, and
 * say so in an attribute "dtype". */
static enum gradcmp_dtype dtype_of(const struct type *type) {
    if (type->class == GCMP_H5_FLOAT) {
        return float_of(type);
    }
    if (type->class == GCMP_H5_BOOL && type->size_bytes == 1) {
        return GRADCMP_DTYPE_BOOL;
    }
    if (type->class != GCMP_H5_INTEGER) {
        return GRADCMP_DTYPE_NONE;
    }
    const char *mark = strncmp(type->mark, "torch.", 6) == 0 ? type->mark + 6 : type->mark;
    enum gradcmp_dtype marked = gcmp_dtype_find(mark);
    bool hidden = gcmp_dtype_is_float(marked) && gcmp_dtype_bytes(marked) == type->size_bytes;
    return hidden ? marked : integer_of(type);
}

static enum gradcmp_status read_type(struct gcmp_h5_stream *stream,
                                     struct gcmp_h5_dataset *dataset) {
    struct type type;
    struct gcmp_cursor *cursor = &stream->cursor;
    if (!gcmp_read_u8(cursor, &type.class) || !gcmp_read_u8(cursor, &type.big_endian) ||
        !gcmp_read_u8(cursor, &type.is_signed) || !gcmp_read_u32le(cursor, &type.size_bytes) ||
        !gcmp_read_u32le(cursor, &type.precision) ||
        !gcmp_read_u32le(cursor, &type.exponent_bits) ||
        !gcmp_read_u32le(cursor, &type.mantissa_bits) ||
        !gcmp_read_u64le(cursor, &type.exponent_bias)) {
        return gcmp_h5_stream_fail(stream);
    }
    GCMP_TRY(read_text(stream, MAX_MESSAGE_BYTES, &type.description));
    GCMP_TRY(read_text(stream, MAX_MESSAGE_BYTES, &type.mark));
    dataset->type = type.description;
    dataset->dtype = dtype_of(&type);
    dataset->big_endian = type.big_endian != 0;
    return GRADCMP_OK;
}

/* Read `ndim` numbers into the arena. */
static enum gradcmp_status read_sizes(struct gcmp_h5_stream *stream, unsigned ndim,
                                      const uint64_t **sizes) {
    uint64_t *copy = gcmp_arena_alloc(stream->arena, ndim, sizeof *copy);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(stream->error);
    }
    for (unsigned d = 0; d < ndim; d++) {
        if (!gcmp_read_u64le(&stream->cursor, &copy[d])) {
            return gcmp_h5_stream_fail(stream);
        }
    }
    *sizes = copy;
    return GRADCMP_OK;
}

static enum gradcmp_status check_sizes(const struct gcmp_h5_stream *stream,
                                       const struct gcmp_h5_dataset *dataset) {
    uint64_t elems, bytes, elem_bytes = gcmp_dtype_bytes(dataset->dtype);
    if (!gcmp_product(dataset->sizes, dataset->ndim, &elems) ||
        !gcmp_mul_u64(elems, elem_bytes == 0 ? 1 : elem_bytes, &bytes) || bytes > INT64_MAX) {
        FAIL_DATASET(stream, dataset, GRADCMP_ERROR_CORRUPT,
                     "\"%.200s\": a dataset of more than 2^63 bytes", dataset->path);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_filter(struct gcmp_h5_stream *stream,
                                       const struct gcmp_h5_dataset *dataset,
                                       struct gcmp_h5_filter *filter) {
    uint8_t values;
    if (!gcmp_read_u32le(&stream->cursor, &filter->id) || !gcmp_read_u8(&stream->cursor, &values) ||
        values > GCMP_H5_MAX_VALUES) {
        return gcmp_h5_stream_fail(stream);
    }
    /* A shuffle without a size shuffles whole elements. */
    filter->values[0] = gcmp_dtype_bytes(dataset->dtype);
    for (unsigned i = 0; i < values; i++) {
        if (!gcmp_read_u32le(&stream->cursor, &filter->values[i])) {
            return gcmp_h5_stream_fail(stream);
        }
    }
    if (!gcmp_h5_knows_filter(filter->id)) {
        FAIL_DATASET(stream, dataset, GRADCMP_ERROR_UNSUPPORTED,
                     "\"%.200s\": filter %u is not read (deflate, shuffle, fletcher32, zstd and "
                     "blosc are)",
                     dataset->path, filter->id);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_chunks(struct gcmp_h5_stream *stream,
                                       struct gcmp_h5_dataset *dataset, uint64_t *chunks) {
    uint8_t filters;
    GCMP_TRY(read_sizes(stream, dataset->ndim, &dataset->chunk));
    if (!gcmp_read_u8(&stream->cursor, &filters) || filters > GCMP_H5_MAX_FILTERS) {
        return gcmp_h5_stream_fail(stream);
    }
    dataset->filter_count = filters;
    for (unsigned i = 0; i < filters; i++) {
        GCMP_TRY(read_filter(stream, dataset, &dataset->filters[i]));
    }
    if (!gcmp_read_u64le(&stream->cursor, chunks)) {
        return gcmp_h5_stream_fail(stream);
    }
    uint64_t elems;
    if (!gcmp_product(dataset->chunk, dataset->ndim, &elems) || elems == 0 ||
        !gcmp_mul_u64(elems, gcmp_dtype_bytes(dataset->dtype), &dataset->chunk_bytes) ||
        dataset->chunk_bytes > INT64_MAX) {
        FAIL_DATASET(stream, dataset, GRADCMP_ERROR_CORRUPT,
                     "\"%.200s\": chunks without elements, or of more than 2^63 bytes",
                     dataset->path);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_compact(struct gcmp_h5_stream *stream,
                                        struct gcmp_h5_dataset *dataset) {
    uint32_t count;
    const unsigned char *bytes;
    if (!gcmp_read_u32le(&stream->cursor, &count) || count > MAX_TEXT_BYTES ||
        !gcmp_read_bytes(&stream->cursor, count, &bytes)) {
        return gcmp_h5_stream_fail(stream);
    }
    char *copy = gcmp_arena_text(stream->arena, (const char *)bytes, count);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(stream->error);
    }
    dataset->compact = (unsigned char *)copy;
    dataset->compact_bytes = count;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_h5_read_dataset(struct gcmp_h5_stream *stream,
                                         struct gcmp_h5_dataset *dataset, uint64_t *chunks) {
    uint8_t ndim, layout;
    *chunks = 0;
    GCMP_TRY(read_text(stream, GCMP_H5_MAX_PATH, &dataset->path));
    GCMP_TRY(read_type(stream, dataset));
    if (!gcmp_read_u8(&stream->cursor, &ndim)) {
        return gcmp_h5_stream_fail(stream);
    }
    if (ndim > GRADCMP_MAX_NDIM) {
        FAIL_DATASET(stream, dataset, GRADCMP_ERROR_LIMIT,
                     "\"%.200s\": %u axes, at most %d are read", dataset->path, ndim,
                     GRADCMP_MAX_NDIM);
    }
    dataset->ndim = ndim;
    GCMP_TRY(read_sizes(stream, ndim, &dataset->sizes));
    if (!gcmp_read_u8(&stream->cursor, &layout)) {
        return gcmp_h5_stream_fail(stream);
    }
    dataset->layout = layout;
    GCMP_TRY(check_sizes(stream, dataset));
    switch (layout) {
    case GCMP_H5_NO_DATA:
        return GRADCMP_OK;
    case GCMP_H5_CONTIGUOUS:
        return gcmp_read_u64le(&stream->cursor, &dataset->offset_bytes)
                   ? GRADCMP_OK
                   : gcmp_h5_stream_fail(stream);
    case GCMP_H5_COMPACT:
        return read_compact(stream, dataset);
    case GCMP_H5_CHUNKED:
        return read_chunks(stream, dataset, chunks);
    default:
        return gcmp_h5_stream_fail(stream);
    }
}

enum gradcmp_status gcmp_h5_read_chunk(struct gcmp_h5_stream *stream, struct gcmp_h5_chunk *chunk) {
    if (!gcmp_read_u64le(&stream->cursor, &chunk->offset_bytes) ||
        !gcmp_read_u64le(&stream->cursor, &chunk->length_bytes) ||
        !gcmp_read_u32le(&stream->cursor, &chunk->skipped)) {
        return gcmp_h5_stream_fail(stream);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_h5_read_link(struct gcmp_h5_stream *stream, const char **path,
                                      const char **target) {
    GCMP_TRY(read_text(stream, GCMP_H5_MAX_PATH, path));
    return read_text(stream, GCMP_H5_MAX_PATH, target);
}

enum gradcmp_status gcmp_h5_read_number(struct gcmp_h5_stream *stream, const char **name,
                                        uint64_t *value) {
    GCMP_TRY(read_text(stream, MAX_MESSAGE_BYTES, name));
    return gcmp_read_u64le(&stream->cursor, value) ? GRADCMP_OK : gcmp_h5_stream_fail(stream);
}

enum gradcmp_status gcmp_h5_read_layer(struct gcmp_h5_stream *stream, uint32_t *layer) {
    return gcmp_read_u32le(&stream->cursor, layer) && *layer <= GCMP_H5_MAX_LAYER
               ? GRADCMP_OK
               : gcmp_h5_stream_fail(stream);
}

enum gradcmp_status gcmp_h5_read_attribute(struct gcmp_h5_stream *stream, const char **name,
                                           const char **text) {
    GCMP_TRY(read_text(stream, GCMP_H5_MAX_PATH, name));
    return read_text(stream, GCMP_H5_MAX_TEXT, text);
}
