/* Reads safetensors headers as strictly as the format's own reader (safetensors/src/tensor.rs,
 * version 0.8, its limits and its rule that tensors tile the buffer), and more: names that occur
 * twice are refused.
 *
 * Limits: MAX_HEADER_BYTES; MAX_ENTRIES; GRADCMP_MAX_NDIM axes; those of json_text.c. */
#include "formats/safetensors_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/grow.h"
#include "base/map.h"
#include "formats/json_doc.h"
#include "gradcmp/sys/catalogue.h"

enum { MAX_HEADER_BYTES = 100000000, MAX_ENTRIES = 300000, LENGTH_BYTES = 8 };

static const char METADATA[] = "__metadata__";

struct type {
    const char *name;
    unsigned bits;
    enum gradcmp_dtype dtype;
};

static const struct type types[] = {
    {"F64", 64, GRADCMP_DTYPE_FLOAT64},
    {"F32", 32, GRADCMP_DTYPE_FLOAT32},
    {"F16", 16, GRADCMP_DTYPE_FLOAT16},
    {"BF16", 16, GRADCMP_DTYPE_BFLOAT16},
    {"F8_E4M3", 8, GRADCMP_DTYPE_FLOAT8_E4M3FN},
    {"F8_E5M2", 8, GRADCMP_DTYPE_FLOAT8_E5M2},
    {"I64", 64, GRADCMP_DTYPE_INT64},
    {"I32", 32, GRADCMP_DTYPE_INT32},
    {"I16", 16, GRADCMP_DTYPE_INT16},
    {"I8", 8, GRADCMP_DTYPE_INT8},
    {"U64", 64, GRADCMP_DTYPE_UINT64},
    {"U32", 32, GRADCMP_DTYPE_UINT32},
    {"U16", 16, GRADCMP_DTYPE_UINT16},
    {"U8", 8, GRADCMP_DTYPE_UINT8},
    {"BOOL", 8, GRADCMP_DTYPE_BOOL},
    {"C64", 64, GRADCMP_DTYPE_COMPLEX64},
    /* Types of the format that have no counterpart here: listed only. */
    {"F8_E8M0", 8, GRADCMP_DTYPE_NONE},
    {"F8_E4M3FNUZ", 8, GRADCMP_DTYPE_NONE},
    {"F8_E5M2FNUZ", 8, GRADCMP_DTYPE_NONE},
    {"F6_E2M3", 6, GRADCMP_DTYPE_NONE},
    {"F6_E3M2", 6, GRADCMP_DTYPE_NONE},
    {"F4", 4, GRADCMP_DTYPE_NONE},
};

/* An image while its header is read. */
struct header {
    struct gcmp_dir *dir;
    struct gcmp_arena *arena;
    struct gcmp_st_image *image;
    struct gcmp_json_text text;
    uint64_t data_bytes;           /* offset in the file of the first byte behind the header */
    uint64_t data_length;          /* bytes from there to the end of the image */
    struct gcmp_st_tensor *tensor; /* the one being read */
    uint64_t place;                /* of its name in the file */
    struct gradcmp_error *error;
};

/* Fail at the tensor's name in the header; the message begins with the name. */
#define FAIL_TENSOR(header, code, format, ...)                                                     \
    return gcmp_failure(gcmp_error_set((header)->error, (code), (header)->text.path,               \
                                       (header)->place, "safetensors: \"%.160s\": " format,        \
                                       (header)->tensor->name, __VA_ARGS__))

static const struct type *find_type(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

static enum gradcmp_status read_type(struct header *header, const json_t *entry,
                                     const struct type **type) {
    const json_t *value = json_object_get(entry, "dtype");
    const char *name = json_string_value(value);
    if (name == NULL) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT, "expected a text as dtype, found %s",
                    gcmp_json_kind(value));
    }
    *type = find_type(name);
    if (*type == NULL) {
        FAIL_TENSOR(header, GRADCMP_ERROR_UNSUPPORTED, "dtype \"%.40s\" is not known", name);
    }
    header->tensor->dtype = (*type)->dtype;
    header->tensor->type = (*type)->name;
    return GRADCMP_OK;
}

static enum gradcmp_status read_shape(struct header *header, const json_t *entry) {
    const json_t *value = json_object_get(entry, "shape");
    struct gcmp_st_tensor *tensor = header->tensor;
    if (json_array_size(value) > GRADCMP_MAX_NDIM) {
        FAIL_TENSOR(header, GRADCMP_ERROR_LIMIT, "%zu axes, at most %d are read",
                    json_array_size(value), GRADCMP_MAX_NDIM);
    }
    uint64_t *shape = gcmp_arena_alloc(header->arena, json_array_size(value), sizeof *shape);
    if (shape == NULL) {
        GCMP_FAIL_MEMORY(header->error);
    }
    tensor->shape = shape;
    if (!gcmp_json_sizes(value, shape, GRADCMP_MAX_NDIM, &tensor->ndim)) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT,
                    "expected integers of 0 or more as shape, found %s",
                    gcmp_json_sizes_fault(value));
    }
    return GRADCMP_OK;
}

/* Read data_offsets, which count from the end of the header, and compare them with the shape. */
static enum gradcmp_status read_range(struct header *header, const json_t *entry, unsigned bits) {
    const json_t *value = json_object_get(entry, "data_offsets");
    struct gcmp_st_tensor *tensor = header->tensor;
    uint64_t range[2], elems, needed;
    unsigned count = 0;
    if (!gcmp_json_sizes(value, range, 2, &count) || count != 2) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT,
                    "expected two integers of 0 or more as data_offsets, found %s",
                    gcmp_json_sizes_fault(value));
    }
    if (range[0] <= range[1] && range[1] > header->data_length) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT,
                    "data_offsets %llu to %llu, and only %llu bytes follow the header: the file is "
                    "cut off, or damaged",
                    (unsigned long long)range[0], (unsigned long long)range[1],
                    (unsigned long long)header->data_length);
    }
    if (range[0] > range[1]) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT,
                    "data_offsets %llu to %llu, expected a range of the %llu bytes behind the "
                    "header",
                    (unsigned long long)range[0], (unsigned long long)range[1],
                    (unsigned long long)header->data_length);
    }
    if (!gcmp_product(tensor->shape, tensor->ndim, &elems) || !gcmp_mul_u64(elems, bits, &needed)) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT, "%s", "a tensor of more than 2^64 bits");
    }
    if (needed % 8 != 0 || needed / 8 != range[1] - range[0]) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT,
                    "shape and dtype need %llu bits, data_offsets give %llu bytes",
                    (unsigned long long)needed, (unsigned long long)(range[1] - range[0]));
    }
    tensor->offset_bytes = header->data_bytes + range[0];
    tensor->length_bytes = range[1] - range[0];
    return GRADCMP_OK;
}

static enum gradcmp_status read_tensor(struct header *header, const char *name,
                                       const json_t *entry) {
    const struct type *type;
    if (!gcmp_grow(&header->image->tensors, header->image->count, &header->image->capacity,
                   sizeof *header->image->tensors)) {
        GCMP_FAIL_MEMORY(header->error);
    }
    struct gcmp_st_tensor *tensor = &header->image->tensors[header->image->count];
    *tensor = (struct gcmp_st_tensor){.name = name};
    header->tensor = tensor;
    if (!json_is_object(entry)) {
        FAIL_TENSOR(header, GRADCMP_ERROR_CORRUPT, "expected an object, found %s",
                    gcmp_json_kind(entry));
    }
    GCMP_TRY(read_type(header, entry, &type));
    GCMP_TRY(read_shape(header, entry));
    GCMP_TRY(read_range(header, entry, type->bits));
    tensor->name = gcmp_arena_dup(header->arena, name);
    if (tensor->name == NULL) {
        GCMP_FAIL_MEMORY(header->error);
    }
    header->image->count++;
    return GRADCMP_OK;
}

/* The metadata holds texts only. */
static enum gradcmp_status take_metadata(struct header *header, json_t *metadata) {
    const char *name;
    json_t *value;
    if (!json_is_object(metadata)) {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path, header->place,
                     "safetensors: expected an object as %s, found %s", METADATA,
                     gcmp_json_kind(metadata));
    }
    json_object_foreach(metadata, name, value) {
        if (!json_is_string(value)) {
            GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path, header->place,
                         "safetensors: expected a text as %s \"%.100s\", found %s", METADATA, name,
                         gcmp_json_kind(value));
        }
    }
    header->image->metadata = json_incref(metadata);
    return GRADCMP_OK;
}

static enum gradcmp_status read_entry(struct header *header, struct gcmp_json_parts *entries) {
    json_t *entry;
    GCMP_TRY(gcmp_json_parts_value(entries, &entry, header->error));
    header->place = entries->place;
    enum gradcmp_status status = strcmp(entries->name, METADATA) == 0
                                     ? take_metadata(header, entry)
                                     : read_tensor(header, entries->name, entry);
    json_decref(entry);
    return status;
}

/* Entry by entry: as one document, a header would take twenty times its size. */
static enum gradcmp_status read_entries(struct header *header) {
    struct gcmp_json_parts entries;
    bool found = true;
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_json_parts_open(&entries, &header->text, 0, MAX_ENTRIES, header->error));
    for (;;) {
        GCMP_TRY_OUT(gcmp_json_parts_next(&entries, &found, header->error));
        if (!found) {
            break;
        }
        GCMP_TRY_OUT(read_entry(header, &entries));
    }
    status = gcmp_json_parts_end(&entries, header->error);
out:
    gcmp_json_parts_close(&entries);
    return status;
}

static int compare_places(const void *left, const void *right) {
    const struct gcmp_st_tensor *a = *(const struct gcmp_st_tensor *const *)left;
    const struct gcmp_st_tensor *b = *(const struct gcmp_st_tensor *const *)right;
    if (a->offset_bytes != b->offset_bytes) {
        return a->offset_bytes < b->offset_bytes ? -1 : 1;
    }
    return a->length_bytes < b->length_bytes ? -1 : a->length_bytes > b->length_bytes;
}

/* Every byte behind the header belongs to one tensor. */
static enum gradcmp_status check_tiles(struct header *header,
                                       const struct gcmp_st_tensor *const *sorted) {
    uint64_t at = header->data_bytes, end = header->data_bytes + header->data_length;
    for (size_t i = 0; i < header->image->count; i++) {
        uint64_t next = sorted[i]->offset_bytes;
        if (next != at) {
            GCMP_FAIL_AT(
                header->error, GRADCMP_ERROR_CORRUPT, header->text.path, next < at ? next : at,
                "safetensors: \"%.160s\" %s %llu bytes", sorted[i]->name,
                next < at ? "shares its bytes with another tensor:" : "begins behind a hole of",
                (unsigned long long)(next < at ? at - next : next - at));
        }
        at += sorted[i]->length_bytes;
    }
    if (at != end) {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path, at,
                     "safetensors: %llu bytes belong to no tensor", (unsigned long long)(end - at));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status check_places(struct header *header) {
    size_t count = header->image->count;
    const struct gcmp_st_tensor **sorted = calloc(count + 1, sizeof *sorted);
    if (sorted == NULL) {
        GCMP_FAIL_MEMORY(header->error);
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &header->image->tensors[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_places);
    enum gradcmp_status status = check_tiles(header, sorted);
    free(sorted);
    return status;
}

/* Read the length of the header and check it against the image. */
static enum gradcmp_status read_length(struct header *header, uint64_t offset, uint64_t length,
                                       uint64_t *header_bytes) {
    unsigned char bytes[LENGTH_BYTES];
    if (length < LENGTH_BYTES) {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path, offset + length,
                     "safetensors: expected the 8 bytes of the header's length, found %llu",
                     (unsigned long long)length);
    }
    GCMP_TRY(gcmp_dir_read(header->dir, header->image->file, offset, bytes, sizeof bytes,
                           header->error));
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, sizeof bytes, offset);
    (void)gcmp_read_u64le(&cursor, header_bytes);
    if (*header_bytes > MAX_HEADER_BYTES) {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_LIMIT, header->text.path, offset,
                     "safetensors: a header of %llu bytes, at most %d are read",
                     (unsigned long long)*header_bytes, MAX_HEADER_BYTES);
    }
    if (*header_bytes > length - LENGTH_BYTES) {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path, offset,
                     "safetensors: a header of %llu bytes, and only %llu follow its length: the "
                     "file is cut off, or damaged",
                     (unsigned long long)*header_bytes,
                     (unsigned long long)(length - LENGTH_BYTES));
    }
    if (*header_bytes < 2) {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path, offset,
                     "safetensors: a header of %llu bytes, expected 2 to %llu",
                     (unsigned long long)*header_bytes,
                     (unsigned long long)(length - LENGTH_BYTES));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_header(struct header *header) {
    if (header->text.bytes[0] != '{') {
        GCMP_FAIL_AT(header->error, GRADCMP_ERROR_CORRUPT, header->text.path,
                     header->text.base_bytes, "safetensors: expected '{', found another byte");
    }
    GCMP_TRY(read_entries(header));
    return check_places(header);
}

enum gradcmp_status gcmp_st_open(struct gcmp_dir *dir, uint32_t file, uint64_t offset,
                                 uint64_t length, struct gcmp_arena *arena,
                                 struct gcmp_st_image *out, struct gradcmp_error *error) {
    *out = (struct gcmp_st_image){.file = file};
    struct header header = {.dir = dir, .arena = arena, .image = out, .error = error};
    uint64_t header_bytes;
    header.text.path = gcmp_dir_file_path(dir, file);
    GCMP_TRY(read_length(&header, offset, length, &header_bytes));
    char *bytes = malloc((size_t)header_bytes);
    if (bytes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    header.text.bytes = bytes;
    header.text.count = (size_t)header_bytes;
    header.text.base_bytes = offset + LENGTH_BYTES;
    header.data_bytes = offset + LENGTH_BYTES + header_bytes;
    header.data_length = length - LENGTH_BYTES - header_bytes;
    enum gradcmp_status status =
        gcmp_dir_read(dir, file, offset + LENGTH_BYTES, bytes, header.text.count, error);
    if (status == GRADCMP_OK) {
        status = read_header(&header);
    }
    free(bytes);
    return status;
}

void gcmp_st_close(struct gcmp_st_image *image) {
    json_decref(image->metadata);
    free(image->tensors);
    image->metadata = NULL;
    image->tensors = NULL;
    image->count = image->capacity = 0;
}

const char *gcmp_st_metadata(const struct gcmp_st_image *image, const char *name) {
    return json_string_value(json_object_get(image->metadata, name));
}

/* Read one tensor's offsets from its entry of the sharding info; NULL: it has none. */
static enum gradcmp_status read_start(const char *path, const json_t *entry,
                                      struct gcmp_st_tensor *tensor, struct gcmp_arena *arena,
                                      struct gradcmp_error *error) {
    const json_t *value = json_object_get(entry, "saved_offsets");
    uint64_t offsets[GRADCMP_MAX_NDIM];
    unsigned count = 0;
    if (!gcmp_json_sizes(value, offsets, GRADCMP_MAX_NDIM, &count) || count != tensor->ndim) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, tensor->offset_bytes,
                     "safetensors: \"%.160s\": expected %u offsets in DCP_SHARDING_INFO, found %s",
                     tensor->name, tensor->ndim, gcmp_json_sizes_fault(value));
    }
    uint64_t *start = gcmp_arena_alloc(arena, count, sizeof *start);
    if (start == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned d = 0; d < count; d++) {
        uint64_t end;
        if (!gcmp_add_u64(offsets[d], tensor->shape[d], &end) || end > INT64_MAX) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, tensor->offset_bytes,
                         "safetensors: \"%.160s\": offset %llu in DCP_SHARDING_INFO is too large",
                         tensor->name, (unsigned long long)offsets[d]);
        }
        start[d] = offsets[d];
    }
    tensor->start = start;
    return GRADCMP_OK;
}

/* The sharding info while it is read. */
struct sharding {
    struct gcmp_st_image *image;
    const char *path;
    struct gcmp_arena *arena;
    struct gcmp_map by_name; /* name -> index of the tensor */
    struct gradcmp_error *error;
};

/* The text's own offsets say nothing of the file. */
static enum gradcmp_status reword(const struct sharding *sharding, enum gradcmp_status status) {
    if (status == GRADCMP_ERROR_CORRUPT) {
        GCMP_FAIL_AT(sharding->error, status, sharding->path, LENGTH_BYTES,
                     "safetensors: DCP_SHARDING_INFO is not JSON");
    }
    return status;
}

static enum gradcmp_status place_entries(struct sharding *sharding,
                                         struct gcmp_json_parts *entries) {
    struct gcmp_st_image *image = sharding->image;
    for (;;) {
        bool found;
        json_t *entry;
        size_t index;
        GCMP_TRY(reword(sharding, gcmp_json_parts_next(entries, &found, sharding->error)));
        if (!found) {
            return reword(sharding, gcmp_json_parts_end(entries, sharding->error));
        }
        GCMP_TRY(reword(sharding, gcmp_json_parts_value(entries, &entry, sharding->error)));
        enum gradcmp_status status = GRADCMP_OK;
        if (gcmp_map_find(&sharding->by_name, entries->name, strlen(entries->name), &index)) {
            status = read_start(sharding->path, entry, &image->tensors[index], sharding->arena,
                                sharding->error);
        }
        json_decref(entry);
        GCMP_TRY(status);
    }
}

/* Every tensor has its place, or there is none for all. */
static enum gradcmp_status check_all_placed(const struct sharding *sharding) {
    struct gcmp_st_image *image = sharding->image;
    for (size_t i = 0; i < image->count; i++) {
        if (image->tensors[i].start == NULL) {
            return read_start(sharding->path, NULL, &image->tensors[i], sharding->arena,
                              sharding->error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_sharding(struct sharding *sharding,
                                         const struct gcmp_json_text *text) {
    struct gcmp_st_image *image = sharding->image;
    struct gcmp_json_parts entries;
    for (size_t i = 0; i < image->count; i++) {
        const char *name = image->tensors[i].name;
        if (gcmp_map_add(&sharding->by_name, name, strlen(name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(sharding->error);
        }
    }
    enum gradcmp_status status =
        gcmp_json_parts_open(&entries, text, 0, MAX_ENTRIES, sharding->error);
    if (status == GRADCMP_OK) {
        status = place_entries(sharding, &entries);
    }
    gcmp_json_parts_close(&entries);
    GCMP_TRY(status);
    return check_all_placed(sharding);
}

enum gradcmp_status gcmp_st_read_sharding(struct gcmp_dir *dir, struct gcmp_st_image *image,
                                          struct gcmp_arena *arena, bool *found,
                                          struct gradcmp_error *error) {
    const char *text = gcmp_st_metadata(image, "DCP_SHARDING_INFO");
    struct sharding sharding = {.image = image,
                                .path = gcmp_dir_file_path(dir, image->file),
                                .arena = arena,
                                .by_name = GCMP_MAP_INIT,
                                .error = error};
    *found = text != NULL;
    if (text == NULL) {
        return GRADCMP_OK;
    }
    /* A text inside of a text: its bytes have no offsets of their own in the file. */
    struct gcmp_json_text inner = {text, strlen(text), sharding.path, LENGTH_BYTES};
    if (!gcmp_json_begins(&inner, 0, '{')) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, sharding.path, LENGTH_BYTES,
                     "safetensors: DCP_SHARDING_INFO is not JSON, or not an object");
    }
    enum gradcmp_status status = read_sharding(&sharding, &inner);
    gcmp_map_free(&sharding.by_name);
    return status;
}
