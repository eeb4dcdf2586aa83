/* Reads metadata of zarr version 3. Source: the zarr specification, version 3.0, and its list of
 * codecs. Codecs that are read: transpose, bytes, then one of gzip, zstd, blosc, then crc32c. */
#include <string.h>

#include "base/dtype.h"
#include "formats/zarr_array.h"

/* The stages of a list of codecs, in the only order in which they are read. */
enum stage { STAGE_TRANSPOSE, STAGE_BYTES, STAGE_COMPRESS, STAGE_CHECKSUM, STAGE_END };

struct codecs {
    const struct gcmp_json_file *file;
    struct gcmp_zarr_array *array;
    enum stage next; /* the first stage that may still come */
    struct gradcmp_error *error;
};

#define FAIL(codecs, name, code, ...)                                                              \
    GCMP_JSON_FAIL((codecs)->file, (name), (codecs)->error, (code), "zarr: " __VA_ARGS__)

/* The name of an extension point: a text, or an object with a name. */
static const char *name_of(const json_t *value) {
    return json_is_string(value) ? json_string_value(value)
                                 : json_string_value(json_object_get(value, "name"));
}

static const json_t *setting_of(const json_t *value, const char *name) {
    return json_object_get(json_object_get(value, "configuration"), name);
}

/* Members that are not known may be passed over only where they say so. */
static enum gradcmp_status check_members(const struct gcmp_json_file *file,
                                         struct gradcmp_error *error) {
    static const char *const known[] = {
        "zarr_format",    "node_type",  "shape",      "data_type",          "chunk_grid",
        "codecs",         "fill_value", "attributes", "chunk_key_encoding", "storage_transformers",
        "dimension_names"};
    const char *name;
    json_t *value;
    json_object_foreach(file->root, name, value) {
        bool found = json_is_false(json_object_get(value, "must_understand"));
        for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++) {
            found = strcmp(known[i], name) == 0;
        }
        if (!found) {
            GCMP_JSON_FAIL(file, name, error, GRADCMP_ERROR_UNSUPPORTED,
                           "zarr: member \"%.60s\" is not known", name);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_transpose(struct codecs *codecs, const json_t *codec) {
    const json_t *value = setting_of(codec, "order");
    struct gcmp_zarr_array *array = codecs->array;
    uint64_t order[GRADCMP_MAX_NDIM];
    unsigned count = 0, seen = 0;
    bool good = gcmp_json_sizes(value, order, GRADCMP_MAX_NDIM, &count) && count == array->ndim;
    for (unsigned d = 0; d < array->ndim && good; d++) {
        good = order[d] < array->ndim && (seen >> order[d] & 1) == 0;
        seen |= good ? 1u << order[d] : 0;
        array->axes[d] = good ? (unsigned)order[d] : 0;
    }
    if (!good) {
        FAIL(codecs, "order", GRADCMP_ERROR_CORRUPT,
             "expected each of %u axes once as order of transpose", array->ndim);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_bytes(struct codecs *codecs, const json_t *codec) {
    const json_t *value = setting_of(codec, "endian");
    const char *endian = json_string_value(value);
    if (endian == NULL && value == NULL && gcmp_dtype_bytes(codecs->array->dtype) == 1) {
        return GRADCMP_OK;
    }
    if (endian == NULL || (strcmp(endian, "little") != 0 && strcmp(endian, "big") != 0)) {
        FAIL(codecs, "endian", GRADCMP_ERROR_CORRUPT,
             "expected \"little\" or \"big\" as endian, found %s", gcmp_json_kind(value));
    }
    codecs->array->big_endian = endian[0] == 'b';
    return GRADCMP_OK;
}

/* Tell the stage of a codec by its name; STAGE_END for one that is not read. */
static enum stage stage_of(struct codecs *codecs, const char *name) {
    if (strcmp(name, "transpose") == 0) {
        return STAGE_TRANSPOSE;
    }
    if (strcmp(name, "bytes") == 0) {
        return STAGE_BYTES;
    }
    if (strcmp(name, "crc32c") == 0) {
        return STAGE_CHECKSUM;
    }
    bool known = strcmp(name, "zlib") != 0 && gcmp_zarr_codec(name, &codecs->array->codec);
    return known ? STAGE_COMPRESS : STAGE_END;
}

static enum gradcmp_status read_codec(struct codecs *codecs, const json_t *codec) {
    const char *name = name_of(codec);
    if (name == NULL) {
        FAIL(codecs, "codecs", GRADCMP_ERROR_CORRUPT, "expected a codec with a name, found %s",
             gcmp_json_kind(codec));
    }
    enum stage stage = stage_of(codecs, name);
    if (stage == STAGE_END) {
        FAIL(codecs, name, GRADCMP_ERROR_UNSUPPORTED,
             "codec \"%.60s\" is not read (transpose, bytes, gzip, zstd, blosc and crc32c are)",
             name);
    }
    if (stage < codecs->next || (stage > STAGE_BYTES && codecs->next <= STAGE_BYTES)) {
        FAIL(codecs, name, GRADCMP_ERROR_UNSUPPORTED, "codec \"%.60s\" is not read in this place",
             name);
    }
    codecs->next = stage + 1;
    codecs->array->crc32c = codecs->array->crc32c || stage == STAGE_CHECKSUM;
    return stage == STAGE_TRANSPOSE ? read_transpose(codecs, codec)
           : stage == STAGE_BYTES   ? read_bytes(codecs, codec)
                                    : GRADCMP_OK;
}

static enum gradcmp_status read_codecs(const struct gcmp_json_file *file,
                                       struct gcmp_zarr_array *array, struct gradcmp_error *error) {
    struct codecs codecs = {file, array, STAGE_TRANSPOSE, error};
    const json_t *list = json_object_get(file->root, "codecs");
    for (unsigned d = 0; d < array->ndim; d++) {
        array->axes[d] = d;
    }
    if (!json_is_array(list)) {
        FAIL(&codecs, "codecs", GRADCMP_ERROR_CORRUPT, "expected an array as codecs, found %s",
             gcmp_json_kind(list));
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        GCMP_TRY(read_codec(&codecs, json_array_get(list, i)));
    }
    if (codecs.next <= STAGE_BYTES) {
        FAIL(&codecs, "codecs", GRADCMP_ERROR_CORRUPT, "expected the codec \"bytes\", found none");
    }
    return GRADCMP_OK;
}

/* How indices become names: "default" (c/0/1) or "v2" (0.1). */
static enum gradcmp_status read_keys(const struct gcmp_json_file *file,
                                     struct gcmp_zarr_array *array, struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "chunk_key_encoding");
    const char *name = name_of(value);
    if (name == NULL || (strcmp(name, "default") != 0 && strcmp(name, "v2") != 0)) {
        GCMP_JSON_FAIL(
            file, "chunk_key_encoding", error, GRADCMP_ERROR_UNSUPPORTED,
            "zarr: expected \"default\" or \"v2\" as chunk_key_encoding, found \"%.60s\"",
            name == NULL ? gcmp_json_kind(value) : name);
    }
    array->names_with_c = name[0] == 'd';
    const json_t *setting = setting_of(value, "separator");
    const char *separator = setting != NULL       ? json_string_value(setting)
                            : array->names_with_c ? "/"
                                                  : ".";
    if (separator == NULL || (strcmp(separator, ".") != 0 && strcmp(separator, "/") != 0)) {
        GCMP_JSON_FAIL(file, "separator", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected \".\" or \"/\" as separator, found \"%.60s\"",
                       separator == NULL ? gcmp_json_kind(setting) : separator);
    }
    array->separator = separator[0];
    return GRADCMP_OK;
}

static enum gradcmp_status read_type(const struct gcmp_json_file *file,
                                     struct gcmp_zarr_array *array, struct gradcmp_error *error) {
    const json_t *value = json_object_get(file->root, "data_type");
    const char *name = name_of(value);
    if (name == NULL) {
        GCMP_JSON_FAIL(file, "data_type", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected a text as data_type, found %s", gcmp_json_kind(value));
    }
    snprintf(array->type, sizeof array->type, "%s", name);
    array->dtype = gcmp_dtype_find(name); /* zarr's names of numbers are torch's */
    return GRADCMP_OK;
}

static enum gradcmp_status read_grid(const struct gcmp_json_file *file,
                                     struct gcmp_zarr_array *array, unsigned *chunk_ndim,
                                     struct gradcmp_error *error) {
    const json_t *grid = json_object_get(file->root, "chunk_grid");
    const json_t *transformers = json_object_get(file->root, "storage_transformers");
    const char *name = name_of(grid);
    if (name == NULL || strcmp(name, "regular") != 0) {
        GCMP_JSON_FAIL(file, "chunk_grid", error, GRADCMP_ERROR_UNSUPPORTED,
                       "zarr: expected \"regular\" as chunk_grid, found \"%.60s\"",
                       name == NULL ? gcmp_json_kind(grid) : name);
    }
    if (transformers != NULL &&
        (!json_is_array(transformers) || json_array_size(transformers) > 0)) {
        GCMP_JSON_FAIL(file, "storage_transformers", error, GRADCMP_ERROR_UNSUPPORTED,
                       "zarr: storage_transformers are not read");
    }
    return gcmp_zarr_read_sizes(file, json_object_get(grid, "configuration"), "chunk_shape",
                                array->chunk, chunk_ndim, error);
}

/* Tell a group's file from an array's. */
static enum gradcmp_status read_node_type(const struct gcmp_json_file *file, bool *is_array,
                                          struct gradcmp_error *error) {
    const json_t *version = json_object_get(file->root, "zarr_format");
    const json_t *type = json_object_get(file->root, "node_type");
    if (!json_is_integer(version) || json_integer_value(version) != 3) {
        GCMP_JSON_FAIL(file, "zarr_format", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected 3 as zarr_format, found %s", gcmp_json_kind(version));
    }
    const char *text = json_string_value(type);
    *is_array = text != NULL && strcmp(text, "array") == 0;
    if (!*is_array && (text == NULL || strcmp(text, "group") != 0)) {
        GCMP_JSON_FAIL(file, "node_type", error, GRADCMP_ERROR_CORRUPT,
                       "zarr: expected \"array\" or \"group\" as node_type, found %s",
                       gcmp_json_kind(type));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_zarr_read_v3(const struct gcmp_json_file *file,
                                      struct gcmp_zarr_array *out, bool *is_array,
                                      struct gradcmp_error *error) {
    unsigned chunk_ndim = 0;
    *out = (struct gcmp_zarr_array){.separator = '/'};
    GCMP_TRY(read_node_type(file, is_array, error));
    if (!*is_array) {
        return GRADCMP_OK;
    }
    GCMP_TRY(check_members(file, error));
    GCMP_TRY(gcmp_zarr_read_sizes(file, file->root, "shape", out->shape, &out->ndim, error));
    GCMP_TRY(read_type(file, out, error));
    if (out->dtype == GRADCMP_DTYPE_NONE) {
        return GRADCMP_OK;
    }
    GCMP_TRY(read_grid(file, out, &chunk_ndim, error));
    GCMP_TRY(read_keys(file, out, error));
    GCMP_TRY(read_codecs(file, out, error));
    return gcmp_zarr_check_sizes(file, out, chunk_ndim, error);
}
