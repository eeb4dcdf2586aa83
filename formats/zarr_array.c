/* Reads metadata of zarr version 2, and what both versions have in common. Source: the zarr
 * specification, version 2; numcodecs for the names of compressors; Megatron-Core 0.4 to 0.15
 * (dist_checkpointing/strategies/zarr.py) for the type "bfloat16".
 *
 * Limits: GRADCMP_MAX_NDIM axes; MAX_ENCODED_BYTES of a chunk that is compressed. */
#include "formats/zarr_array.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"

/* What the compressors themselves can hold. */
#define MAX_ENCODED_BYTES ((uint64_t)1 << 31)

struct numpy_type {
    const char *text; /* behind the byte order */
    enum gradcmp_dtype dtype;
};

static const struct numpy_type numpy_types[] = {
    {"f8", GRADCMP_DTYPE_FLOAT64},   {"f4", GRADCMP_DTYPE_FLOAT32},
    {"f2", GRADCMP_DTYPE_FLOAT16},   {"i8", GRADCMP_DTYPE_INT64},
    {"i4", GRADCMP_DTYPE_INT32},     {"i2", GRADCMP_DTYPE_INT16},
    {"i1", GRADCMP_DTYPE_INT8},      {"u8", GRADCMP_DTYPE_UINT64},
    {"u4", GRADCMP_DTYPE_UINT32},    {"u2", GRADCMP_DTYPE_UINT16},
    {"u1", GRADCMP_DTYPE_UINT8},     {"b1", GRADCMP_DTYPE_BOOL},
    {"c8", GRADCMP_DTYPE_COMPLEX64}, {"c16", GRADCMP_DTYPE_COMPLEX128},
};

bool gcmp_zarr_codec(const char *name, enum gcmp_codec *codec) {
    static const struct {
        const char *name;
        enum gcmp_codec codec;
    } codecs[] = {{"gzip", GCMP_CODEC_GZIP},
                  {"zlib", GCMP_CODEC_ZLIB},
                  {"zstd", GCMP_CODEC_ZSTD},
                  {"blosc", GCMP_CODEC_BLOSC}};
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        if (strcmp(codecs[i].name, name) == 0) {
            *codec = codecs[i].codec;
            return true;
        }
    }
    return false;
}

enum gradcmp_status gcmp_zarr_read_sizes(const struct gcmp_json_file *file, const json_t *owner,
                                         const char *name, uint64_t *sizes, unsigned *count,
                                         struct gradcmp_error *error) {
    const json_t *value = json_object_get(owner, name);
    if (json_array_size(value) > GRADCMP_MAX_NDIM) {
        GCMP_JSON_FAIL(file, name, error, GRADCMP_ERROR_LIMIT,
                       "zarr: %zu axes in %s, at most %d are read", json_array_size(value), name,
                       GRADCMP_MAX_NDIM);
    }
    if (!gcmp_json_sizes(value, sizes, GRADCMP_MAX_NDIM, count)) {
        GCMP_JSON_FAIL(file, name, error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected integers of 0 or more as %s, found %s", name,
                       gcmp_json_sizes_fault(value));
    }
    return GRADCMP_OK;
}

/* Multiply out the bytes of a chunk and of the whole array. */
static enum gradcmp_status check_bytes(const struct gcmp_json_file *file,
                                       struct gcmp_zarr_array *array, struct gradcmp_error *error) {
    uint64_t elems, bytes, elem_bytes = gcmp_dtype_bytes(array->dtype);
    if (!gcmp_product(array->shape, array->ndim, &elems) ||
        !gcmp_mul_u64(elems, elem_bytes == 0 ? 1 : elem_bytes, &bytes) || bytes > INT64_MAX) {
        GCMP_JSON_FAIL(file, "shape", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: an array of more than 2^63 bytes");
    }
    if (!gcmp_product(array->chunk, array->ndim, &elems) ||
        !gcmp_mul_u64(elems, elem_bytes, &array->chunk_bytes) ||
        array->chunk_bytes > INT64_MAX / 2) {
        GCMP_JSON_FAIL(file, "chunks", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: chunks of more than 2^62 bytes");
    }
    bool encoded = array->codec != GCMP_CODEC_NONE || array->crc32c;
    if (encoded && array->chunk_bytes > MAX_ENCODED_BYTES) {
        GCMP_JSON_FAIL(file, "chunks", error, GRADCMP_ERROR_LIMIT,
                       "zarr: compressed chunks of %llu bytes, at most %llu are read",
                       (unsigned long long)array->chunk_bytes,
                       (unsigned long long)MAX_ENCODED_BYTES);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_zarr_check_sizes(const struct gcmp_json_file *file,
                                          struct gcmp_zarr_array *array, unsigned chunk_ndim,
                                          struct gradcmp_error *error) {
    if (chunk_ndim != array->ndim) {
        GCMP_JSON_FAIL(file, "chunks", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: chunks of %u axes in an array of %u", chunk_ndim, array->ndim);
    }
    for (unsigned d = 0; d < array->ndim; d++) {
        if (array->chunk[d] == 0) {
            GCMP_JSON_FAIL(file, "chunks", error, GRADCMP_ERROR_CORRUPT,
                           "zarr: chunks without elements: size 0 on axis %u", d);
        }
    }
    return check_bytes(file, array, error);
}

/* Take numpy's type apart: a byte order and a kind. What is not listed above (texts, objects,
 * records) leaves an array that is listed only. */
static enum gradcmp_status read_type(const struct gcmp_json_file *file,
                                     struct gcmp_zarr_array *array, struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "dtype");
    const char *text = json_string_value(value);
    if (text == NULL && !json_is_array(value)) {
        GCMP_JSON_FAIL(file, "dtype", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected a text as dtype, found %s", gcmp_json_kind(value));
    }
    snprintf(array->type, sizeof array->type, "%s", text == NULL ? "records" : text);
    if (text != NULL && strcmp(text, "bfloat16") == 0) {
        array->dtype = GRADCMP_DTYPE_BFLOAT16;
        return GRADCMP_OK;
    }
    if (text == NULL || (text[0] != '<' && text[0] != '>' && text[0] != '|')) {
        return GRADCMP_OK;
    }
    for (size_t i = 0; i < sizeof numpy_types / sizeof *numpy_types; i++) {
        if (strcmp(numpy_types[i].text, text + 1) == 0) {
            array->dtype = numpy_types[i].dtype;
            array->big_endian = text[0] == '>';
        }
    }
    if (text[0] == '|' && gcmp_dtype_bytes(array->dtype) > 1) {
        GCMP_JSON_FAIL(file, "dtype", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: dtype \"%.40s\" states no byte order", text);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_compressor(const struct gcmp_json_file *file,
                                           struct gcmp_zarr_array *array,
                                           struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "compressor");
    if (json_is_null(value)) {
        return GRADCMP_OK;
    }
    const char *id = json_string_value(json_object_get(value, "id"));
    if (id == NULL) {
        GCMP_JSON_FAIL(file, "compressor", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected an object with an id as compressor, found %s",
                       gcmp_json_kind(value));
    }
    if (!gcmp_zarr_codec(id, &array->codec)) {
        GCMP_JSON_FAIL(file, "compressor", error, GRADCMP_ERROR_UNSUPPORTED,
                       "zarr: compressor \"%.60s\" is not read (gzip, zlib, zstd and blosc are)",
                       id);
    }
    return GRADCMP_OK;
}

/* Of filters, byte shuffling is undone. */
static enum gradcmp_status read_filters(const struct gcmp_json_file *file,
                                        struct gcmp_zarr_array *array,
                                        struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "filters");
    if (json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0)) {
        return GRADCMP_OK;
    }
    const json_t *filter = json_array_get(value, 0);
    const char *id = json_string_value(json_object_get(filter, "id"));
    uint64_t bytes = 4; /* what numcodecs takes where nothing is said */
    const json_t *size = json_object_get(filter, "elementsize");
    if (json_array_size(value) != 1 || id == NULL || strcmp(id, "shuffle") != 0 ||
        (size != NULL && !gcmp_json_size(size, &bytes)) || bytes == 0 || bytes > 64) {
        GCMP_JSON_FAIL(file, "filters", error, GRADCMP_ERROR_UNSUPPORTED,
                       "zarr: filter \"%.60s\" is not read", id == NULL ? "?" : id);
    }
    array->shuffled_bytes = (size_t)bytes;
    return GRADCMP_OK;
}

static enum gradcmp_status read_order(const struct gcmp_json_file *file,
                                      struct gcmp_zarr_array *array, struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "order");
    const char *order = json_string_value(value);
    if (order == NULL || (strcmp(order, "C") != 0 && strcmp(order, "F") != 0)) {
        GCMP_JSON_FAIL(file, "order", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected \"C\" or \"F\" as order, found %s", gcmp_json_kind(value));
    }
    for (unsigned d = 0; d < array->ndim; d++) {
        array->axes[d] = order[0] == 'C' ? d : array->ndim - 1 - d;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_separator(const struct gcmp_json_file *file,
                                          struct gcmp_zarr_array *array,
                                          struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "dimension_separator");
    const char *separator = value == NULL ? "." : json_string_value(value);
    if (separator == NULL || (strcmp(separator, ".") != 0 && strcmp(separator, "/") != 0)) {
        GCMP_JSON_FAIL(file, "dimension_separator", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected \".\" or \"/\" as dimension_separator, found \"%.60s\"",
                       separator == NULL ? gcmp_json_kind(value) : separator);
    }
    array->separator = separator[0];
    return GRADCMP_OK;
}

/* What decides how bytes become elements must be stated, as the specification has it: a key that is
 * lost, or damaged, is no default. */
static enum gradcmp_status check_stated(const struct gcmp_json_file *file,
                                        struct gradcmp_error *error) {
    static const char *const keys[] = {"compressor", "filters", "order"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (json_object_get(file->root, keys[i]) == NULL) {
            GCMP_JSON_FAIL(file, "zarr_format", error, GRADCMP_ERROR_CORRUPT,
                           "zarr: no %s, which an array of version 2 must state", keys[i]);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_zarr_read_v2(const struct gcmp_json_file *file,
                                      struct gcmp_zarr_array *out, struct gradcmp_error *error) {
    const json_t *version = json_object_get(file->root, "zarr_format");
    unsigned chunk_ndim = 0;
    *out = (struct gcmp_zarr_array){.separator = '.'};
    if (!json_is_integer(version) || json_integer_value(version) != 2) {
        GCMP_JSON_FAIL(file, "zarr_format", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected 2 as zarr_format, found %s", gcmp_json_kind(version));
    }
    GCMP_TRY(gcmp_zarr_read_sizes(file, file->root, "shape", out->shape, &out->ndim, error));
    GCMP_TRY(gcmp_zarr_read_sizes(file, file->root, "chunks", out->chunk, &chunk_ndim, error));
    GCMP_TRY(read_type(file, out, error));
    if (out->dtype == GRADCMP_DTYPE_NONE) {
        return GRADCMP_OK;
    }
    GCMP_TRY(check_stated(file, error));
    GCMP_TRY(read_compressor(file, out, error));
    GCMP_TRY(read_filters(file, out, error));
    GCMP_TRY(read_order(file, out, error));
    GCMP_TRY(read_separator(file, out, error));
    return gcmp_zarr_check_sizes(file, out, chunk_ndim, error);
}
