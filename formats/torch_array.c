/* Arrays inside of a pickle: their description, and later their bytes, straight from the file. The
 * text of an array can be large, and a pickle may hold thousands: so where each stands is noted
 * while the pickle is read, and its bytes are read when they are needed.
 *
 * Limits: GRADCMP_MAX_NDIM axes; a pickle has at most 2^31 bytes, so has an array. */
#include "formats/torch_array.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/dtype.h"
#include "formats/decoded.h"

/* What describes an array under way. */
struct reading {
    const struct gcmp_torch_file *torch;
    const struct gcmp_node *node;
    struct gradcmp_error *error;
    struct gcmp_torch_array *out;
};

#define ARRAY_FAIL(reading, code, ...)                                                             \
    return gcmp_error_set((reading)->error, (code),                                                \
                          gcmp_dir_file_path((reading)->torch->dir, (reading)->torch->file),       \
                          (reading)->torch->pickle->offset_bytes + (reading)->node->at,            \
                          "torch: " __VA_ARGS__)

/* The parts of an ndarray: what it is made of, wherever the pickle has it. */
struct parts {
    const struct gcmp_node *shape, *dtype, *is_fortran, *bytes;
};

/* _reconstruct(ndarray, (0,), b'b') with the state (version, shape, dtype, is_fortran, bytes). */
static bool find_parts(const struct gcmp_node *array, struct parts *out) {
    static const char *const modules[] = {"numpy._core.multiarray", "numpy.core.multiarray"};
    bool is_known = false;
    for (size_t i = 0; i < 2; i++) {
        is_known = is_known || gcmp_node_is_call(array, modules[i], "_reconstruct");
    }
    const struct gcmp_node *state = is_known ? array->as.call.state : NULL;
    if (state == NULL || state->kind != GCMP_NODE_TUPLE || gcmp_node_count(state) != 5) {
        return false;
    }
    out->shape = gcmp_node_item(state, 1);
    out->dtype = gcmp_node_item(state, 2);
    out->is_fortran = gcmp_node_item(state, 3);
    out->bytes = gcmp_node_item(state, 4);
    return true;
}

/* The element type and byte order of a numpy dtype("f4", ...) with the state (3, "<", ...). */
static enum gradcmp_status read_array_dtype(const struct reading *reading,
                                            const struct gcmp_node *node) {
    static const struct {
        const char *name;
        enum gradcmp_dtype dtype;
    } types[] = {
        {"f4", GRADCMP_DTYPE_FLOAT32}, {"f8", GRADCMP_DTYPE_FLOAT64}, {"f2", GRADCMP_DTYPE_FLOAT16},
        {"i8", GRADCMP_DTYPE_INT64},   {"i4", GRADCMP_DTYPE_INT32},   {"i2", GRADCMP_DTYPE_INT16},
        {"i1", GRADCMP_DTYPE_INT8},    {"u1", GRADCMP_DTYPE_UINT8},   {"b1", GRADCMP_DTYPE_BOOL}};
    const char *name =
        gcmp_node_is_call(node, "numpy", "dtype") ? gcmp_node_text(gcmp_node_arg(node, 0)) : NULL;
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            const char *order = gcmp_node_text(gcmp_node_item(node->as.call.state, 1));
            reading->out->array_dtype = (uint8_t)types[i].dtype;
            reading->out->big_endian = order != NULL && strcmp(order, ">") == 0;
            return GRADCMP_OK;
        }
    }
    ARRAY_FAIL(reading, GRADCMP_ERROR_UNSUPPORTED,
               "an array of the NumPy type \"%.64s\" is not read",
               name == NULL ? gcmp_node_kind_name(node) : name);
}

/* The dtype that the tensor had; of types that differ from the array's only bfloat16 is known. */
static enum gradcmp_status read_dtype(const struct reading *reading, const struct gcmp_node *node) {
    struct gcmp_torch_array *out = reading->out;
    enum gradcmp_dtype dtype = gcmp_torch_dtype(node);
    out->dtype = (uint8_t)dtype;
    if (dtype != (enum gradcmp_dtype)out->array_dtype &&
        !(dtype == GRADCMP_DTYPE_BFLOAT16 && out->array_dtype == GRADCMP_DTYPE_FLOAT32)) {
        const char *name = gcmp_node_global(node);
        ARRAY_FAIL(reading, GRADCMP_ERROR_UNSUPPORTED,
                   "an array of %s that stands for a tensor of \"%.64s\" is not read",
                   gradcmp_dtype_name((enum gradcmp_dtype)out->array_dtype),
                   name == NULL ? gcmp_node_kind_name(node) : name);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_shape(const struct reading *reading, const struct parts *parts) {
    struct gcmp_torch_array *out = reading->out;
    unsigned ndim;
    int64_t is_fortran = 0;
    if (gcmp_node_count(parts->shape) > GRADCMP_MAX_NDIM) {
        ARRAY_FAIL(reading, GRADCMP_ERROR_LIMIT, "an array of %zu axes, at most %d are read",
                   gcmp_node_count(parts->shape), GRADCMP_MAX_NDIM);
    }
    if (!gcmp_node_sizes(parts->shape, out->shape, GRADCMP_MAX_NDIM, &ndim) ||
        !gcmp_node_int(parts->is_fortran, &is_fortran)) {
        ARRAY_FAIL(reading, GRADCMP_ERROR_CORRUPT,
                   "expected shape and order of an array, found %s and %s",
                   gcmp_node_kind_name(parts->shape), gcmp_node_kind_name(parts->is_fortran));
    }
    out->ndim = (uint8_t)ndim;
    out->fortran = is_fortran != 0;
    return GRADCMP_OK;
}

static bool decoded_bytes(const struct gcmp_torch_array *array, uint64_t *bytes) {
    return gcmp_product(array->shape, array->ndim, bytes) &&
           gcmp_mul_u64(*bytes, gcmp_dtype_bytes((enum gradcmp_dtype)array->array_dtype), bytes);
}

/* Characters of a valid UTF-8 text. */
static uint64_t count_characters(const struct gcmp_node *text) {
    uint64_t count = 0;
    for (size_t i = 0; i < text->as.text.length_bytes; i++) {
        count += ((unsigned char)text->as.text.bytes[i] & 0xc0) != 0x80;
    }
    return count;
}

/* Bytes are a node of their own, or the characters of a text that _codecs.encode makes bytes of
 * (protocol 2). */
static enum gradcmp_status find_bytes(const struct reading *reading,
                                      const struct gcmp_node *bytes) {
    struct gcmp_torch_array *out = reading->out;
    const struct gcmp_node *text = gcmp_node_arg(bytes, 0);
    const char *encoding = gcmp_node_text(gcmp_node_arg(bytes, 1));
    uint64_t expected = 0, found = 0;
    if (bytes != NULL && bytes->kind == GCMP_NODE_BYTES) {
        text = bytes;
        found = text->as.text.length_bytes;
    } else if (gcmp_node_is_call(bytes, "_codecs", "encode") && text != NULL &&
               text->kind == GCMP_NODE_TEXT && encoding != NULL &&
               strcmp(encoding, "latin1") == 0) {
        found = count_characters(text);
    } else {
        ARRAY_FAIL(reading, GRADCMP_ERROR_UNSUPPORTED, "expected the bytes of an array, found %s",
                   gcmp_node_kind_name(bytes));
    }
    if (!decoded_bytes(out, &expected) || expected != found) {
        ARRAY_FAIL(reading, GRADCMP_ERROR_CORRUPT, "an array of %llu bytes, its shape says %llu",
                   (unsigned long long)found, (unsigned long long)expected);
    }
    out->offset_bytes = reading->torch->pickle->offset_bytes + text->at;
    out->length_bytes = text->as.text.length_bytes;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_torch_array(const struct gcmp_torch_file *torch,
                                     const struct gcmp_node *node, struct gcmp_torch_array *out,
                                     struct gradcmp_error *error) {
    const struct gcmp_node *args = gcmp_torch_array_args(node);
    struct reading reading = {torch, node, error, out};
    struct parts parts = {NULL, NULL, NULL, NULL};
    *out = (struct gcmp_torch_array){.ndim = 0};
    if (gcmp_node_count(args) != 4 || !find_parts(gcmp_node_item(args, 0), &parts)) {
        ARRAY_FAIL(&reading, GRADCMP_ERROR_UNSUPPORTED,
                   "expected (array, dtype, device, requires_grad) with a NumPy array, found %s",
                   gcmp_node_kind_name(gcmp_node_item(args, 0)));
    }
    GCMP_TRY(read_array_dtype(&reading, parts.dtype));
    GCMP_TRY(read_dtype(&reading, gcmp_node_item(args, 1)));
    GCMP_TRY(read_shape(&reading, &parts));
    return find_bytes(&reading, parts.bytes);
}

/* The opcodes that hold bytes or a text in UTF-8, and the bytes of their length field. */
static bool find_opcode(uint8_t opcode, unsigned *length_field, bool *is_text) {
    static const struct {
        uint8_t opcode, length_field;
        bool is_text;
    } opcodes[] = {{'X', 4, true},  {0x8c, 1, true},  {0x8d, 8, true}, {'B', 4, false},
                   {'C', 1, false}, {0x8e, 8, false}, {0x96, 8, false}};
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        if (opcodes[i].opcode == opcode) {
            *length_field = opcodes[i].length_field;
            *is_text = opcodes[i].is_text;
            return true;
        }
    }
    return false;
}

/* Where an array is read from. */
struct place {
    struct gcmp_dir *dir;
    uint32_t file;
    const struct gcmp_torch_array *array;
    struct gradcmp_error *error;
};

static enum gradcmp_status fail_place(const struct place *place, enum gradcmp_status code,
                                      const char *message) {
    GCMP_FAIL_AT(place->error, code, gcmp_dir_file_path(place->dir, place->file),
                 place->array->offset_bytes, "torch: %s", message);
}

/* Read opcode and length; *at is behind them. */
static enum gradcmp_status read_head(const struct place *place, bool *is_text, uint64_t *at) {
    unsigned char bytes[9];
    uint64_t end = gcmp_dir_file_bytes(place->dir, place->file), length;
    uint64_t left = end > place->array->offset_bytes ? end - place->array->offset_bytes : 0;
    size_t count = left < sizeof bytes ? (size_t)left : sizeof bytes;
    GCMP_TRY(gcmp_dir_read(place->dir, place->file, place->array->offset_bytes, bytes, count,
                           place->error));
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, count, place->array->offset_bytes);
    uint8_t opcode;
    unsigned length_field;
    if (!gcmp_read_u8(&cursor, &opcode) || !find_opcode(opcode, &length_field, is_text)) {
        return fail_place(place, GRADCMP_ERROR_UNSUPPORTED,
                          "an array in a pickle of protocol 0 or 1 is not read");
    }
    if (!gcmp_read_le(&cursor, length_field, &length) || length != place->array->length_bytes) {
        return fail_place(place, GRADCMP_ERROR_CORRUPT, "the file changed while it was read");
    }
    *at = gcmp_cursor_offset(&cursor);
    return GRADCMP_OK;
}

/* Decoding under way: bytes of the text in, bytes of elements out. */
struct decoding {
    const struct place *place;
    struct gcmp_writer writer;
    bool is_text;
    unsigned char lead;     /* first byte of a character of two; 0: none */
    unsigned char group[4]; /* of a float32 that is to become a bfloat16 */
    unsigned in_group;
    unsigned char made[4096];
    size_t made_count;
};

static bool narrows(const struct decoding *decoding) {
    return decoding->place->array->dtype != decoding->place->array->array_dtype;
}

/* Take one byte of the array; false where a float32 is no bfloat16. */
static bool take_byte(struct decoding *decoding, unsigned char byte) {
    if (!narrows(decoding)) {
        decoding->made[decoding->made_count++] = byte;
        return true;
    }
    decoding->group[decoding->in_group++] = byte;
    if (decoding->in_group < 4) {
        return true;
    }
    unsigned upper = decoding->place->array->big_endian ? 0 : 2, lower = 2 - upper;
    decoding->in_group = 0;
    decoding->made[decoding->made_count++] = decoding->group[upper];
    decoding->made[decoding->made_count++] = decoding->group[upper + 1];
    return decoding->group[lower] == 0 && decoding->group[lower + 1] == 0;
}

/* Turn UTF-8 into the bytes that its characters stand for; the first byte of a character over 127
 * and up to 255 is 0xc2 or 0xc3. Sets *byte where a character is complete; false for other texts.
 */
static bool take_character(struct decoding *decoding, unsigned char *byte, bool *is_complete) {
    *is_complete = true;
    if (!decoding->is_text) {
        return true;
    }
    if (decoding->lead != 0) {
        bool follows = (*byte & 0xc0) == 0x80;
        *byte = (unsigned char)((decoding->lead << 6) | (*byte & 0x3f));
        decoding->lead = 0;
        return follows;
    }
    if (*byte >= 0x80) {
        decoding->lead = *byte;
        *is_complete = false;
        return (*byte & 0xfe) == 0xc2;
    }
    return true;
}

static enum gradcmp_status decode_some(struct decoding *decoding, const unsigned char *bytes,
                                       size_t count, struct gradcmp_error *error) {
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = bytes[i];
        bool is_complete;
        if (!take_character(decoding, &byte, &is_complete)) {
            return fail_place(decoding->place, GRADCMP_ERROR_CORRUPT,
                              "the text of an array holds no bytes");
        }
        if (is_complete && !take_byte(decoding, byte)) {
            return fail_place(decoding->place, GRADCMP_ERROR_CORRUPT,
                              "an array that stands for bfloat16 holds a value that bfloat16 has "
                              "not");
        }
        if (decoding->made_count > sizeof decoding->made - 2) {
            GCMP_TRY(
                gcmp_writer_add(&decoding->writer, decoding->made, decoding->made_count, error));
            decoding->made_count = 0;
        }
    }
    return GRADCMP_OK;
}

/* Read the array's part of the file piece by piece. */
static enum gradcmp_status decode_all(struct decoding *decoding, const struct gcmp_bytes *source,
                                      uint64_t at, struct gradcmp_error *error) {
    unsigned char bytes[4096];
    uint64_t end = at + decoding->place->array->length_bytes;
    while (at < end) {
        size_t count = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        GCMP_TRY(gcmp_dir_read(source->dir, source->file, at, bytes, count, error));
        GCMP_TRY(decode_some(decoding, bytes, count, error));
        at += count;
    }
    if (decoding->lead != 0) {
        return fail_place(decoding->place, GRADCMP_ERROR_CORRUPT,
                          "the text of an array holds no bytes");
    }
    return gcmp_writer_add(&decoding->writer, decoding->made, decoding->made_count, error);
}

/* Describe the decoded elements: row-major, or the transpose of it. */
static void describe(const struct gcmp_torch_array *array, struct gradcmp_extent *out) {
    *out = (struct gradcmp_extent){
        .dtype = array->dtype, .big_endian = array->big_endian, .ndim = array->ndim};
    int64_t step = 1;
    for (unsigned i = 0; i < array->ndim; i++) {
        unsigned d = array->fortran ? i : array->ndim - 1 - i;
        out->shape[d] = array->shape[d];
        out->stride[d] = step;
        step *= array->shape[d] > 0 ? (int64_t)array->shape[d] : 1;
    }
}

enum gradcmp_status gcmp_torch_array_decode(struct gcmp_dir *dir, uint32_t file,
                                            const struct gcmp_torch_array *array,
                                            struct gradcmp_extent *out,
                                            struct gradcmp_error *error) {
    struct place place = {dir, file, array, error};
    struct gcmp_bytes source =
        gcmp_bytes_of_file(dir, file, array->offset_bytes, array->length_bytes);
    struct gcmp_bytes made;
    struct decoding decoding = {.place = &place};
    uint64_t at = 0, elems = 0;
    GCMP_TRY(read_head(&place, &decoding.is_text, &at));
    (void)gcmp_product(array->shape, array->ndim, &elems); /* it fits: the array was described */
    uint64_t bytes = elems * gcmp_dtype_bytes((enum gradcmp_dtype)array->dtype);
    enum gradcmp_status status = gcmp_writer_open(&decoding.writer, &source, bytes, error);
    if (status == GRADCMP_OK) {
        status = decode_all(&decoding, &source, at, error);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_writer_finish(&decoding.writer, bytes, &made, error);
    }
    if (status == GRADCMP_OK) {
        describe(array, out);
        gcmp_bytes_give(&made, out);
    }
    gcmp_writer_free(&decoding.writer);
    return status;
}
