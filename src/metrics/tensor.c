/* Scalars in TensorProto. Sources: tensor.proto, tensor_shape.proto and types.proto of TensorFlow.
 */
#include "metrics/tensor.h"

#include <math.h>
#include <string.h>

#include "metrics/wire.h"

enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4 };
enum { FIRST_ELEMENTS = 5, LAST_ELEMENTS = 17 }; /* of any type */
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3, DIM_SIZE = 1 };
enum { DT_STRING = 7, DT_RESOURCE = 20, DT_VARIANT = 21 };

enum number { BINARY32, BINARY64, BINARY16, BFLOAT16, SIGNED, UNSIGNED };

/* A type, the field that holds its elements (as fixed bytes or varints), and its bytes. */
struct type {
    uint8_t dtype, field, fixed_bytes, bytes;
    enum number number;
};

static const struct type types[] = {
    {1, 5, 4, 4, BINARY32},   {2, 6, 8, 8, BINARY64},   {3, 7, 0, 4, SIGNED},
    {4, 7, 0, 1, UNSIGNED},   {5, 7, 0, 2, SIGNED},     {6, 7, 0, 1, SIGNED},
    {9, 10, 0, 8, SIGNED},    {10, 11, 0, 1, UNSIGNED}, /* bool */
    {14, 13, 0, 2, BFLOAT16}, {17, 7, 0, 2, UNSIGNED},  {19, 13, 0, 2, BINARY16},
    {22, 16, 0, 4, UNSIGNED}, {23, 17, 0, 8, UNSIGNED}};

static const struct type *find_type(uint64_t dtype) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].dtype == dtype) {
            return &types[i];
        }
    }
    return NULL;
}

/* What a tensor says of itself. */
struct head {
    uint64_t dtype;
    bool has_shape, is_scalar; /* one element by its shape, or no shape */
    struct gcmp_cursor content;
};

static bool read_dim(struct gcmp_cursor dim, uint64_t *size) {
    struct gcmp_wire_field field;
    bool is_broken;
    *size = 0;
    while (gcmp_wire_next(&dim, &field, &is_broken)) {
        if (field.number == DIM_SIZE && field.type == GCMP_WIRE_VARINT) {
            *size = field.integer;
        }
    }
    return !is_broken;
}

static bool read_shape(struct gcmp_cursor shape, struct head *head) {
    struct gcmp_wire_field field;
    bool is_broken;
    head->has_shape = true;
    while (gcmp_wire_next(&shape, &field, &is_broken)) {
        uint64_t size = 1;
        if (field.number == SHAPE_DIM && field.type == GCMP_WIRE_BYTES &&
            !read_dim(field.inside, &size)) {
            return false;
        }
        bool is_unknown = field.number == SHAPE_UNKNOWN_RANK && field.integer != 0;
        head->is_scalar = head->is_scalar && size == 1 && !is_unknown;
    }
    return !is_broken;
}

static bool read_head(struct gcmp_cursor tensor, struct head *head) {
    struct gcmp_wire_field field;
    bool is_broken;
    *head = (struct head){.is_scalar = true};
    while (gcmp_wire_next(&tensor, &field, &is_broken)) {
        if (field.number == TENSOR_DTYPE && field.type == GCMP_WIRE_VARINT) {
            head->dtype = field.integer;
        } else if (field.number == TENSOR_SHAPE && field.type == GCMP_WIRE_BYTES) {
            if (!read_shape(field.inside, head)) {
                return false;
            }
        } else if (field.number == TENSOR_CONTENT && field.type == GCMP_WIRE_BYTES) {
            head->content = field.inside;
        }
    }
    return !is_broken;
}

/* Count the elements in the type's own field, packed or one a field, the last one in *bits. False
 * where the bytes do not divide, or there are elements of another type. */
static bool read_elements(struct gcmp_cursor tensor, const struct type *type, size_t *count,
                          uint64_t *bits) {
    struct gcmp_wire_field field;
    bool is_broken;
    *count = 0;
    while (gcmp_wire_next(&tensor, &field, &is_broken)) {
        if (field.number != type->field) {
            if (field.number >= FIRST_ELEMENTS && field.number <= LAST_ELEMENTS) {
                return false; /* elements of another type */
            }
            continue;
        }
        if (field.type != GCMP_WIRE_BYTES) {
            *bits = field.integer;
            (*count)++;
        }
        while (gcmp_cursor_left(&field.inside) > 0) {
            if (!(type->fixed_bytes > 0 ? gcmp_read_le(&field.inside, type->fixed_bytes, bits)
                                        : gcmp_wire_varint(&field.inside, bits))) {
                return false;
            }
            (*count)++;
        }
    }
    return !is_broken;
}

static double from_binary16(uint32_t bits) {
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double size = exponent == 31  ? (fraction == 0 ? (double)INFINITY : (double)NAN)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

/* A whole number of the type's bytes; false where binary64 does not hold it. */
static bool from_whole(const struct type *type, uint64_t bits, double *value) {
    unsigned above = 64 - 8 * (unsigned)type->bytes;
    uint64_t own = bits << above >> above;
    bool is_negative = type->number == SIGNED && (own >> (8 * type->bytes - 1) & 1) != 0;
    uint64_t magnitude = is_negative ? (~own + 1) << above >> above : own;
    unsigned zeros = magnitude == 0 ? 0 : (unsigned)__builtin_ctzll(magnitude);
    *value = is_negative ? -(double)magnitude : (double)magnitude;
    return magnitude >> zeros < (uint64_t)1 << 53;
}

static enum gcmp_tensor_kind to_point(const struct type *type, uint64_t bits,
                                      struct gcmp_metric_point *point) {
    point->type = type->number == BINARY32 || type->number == BINARY16 || type->number == BFLOAT16
                      ? GCMP_METRIC_FLOAT32
                      : GCMP_METRIC_FLOAT64;
    switch (type->number) {
    case BINARY32:
        point->value = gcmp_wire_float((uint32_t)bits);
        break;
    case BINARY64:
        point->value = gcmp_wire_double(bits);
        break;
    case BINARY16:
        point->value = from_binary16((uint32_t)bits & 0xffff);
        break;
    case BFLOAT16:
        point->value = gcmp_wire_float((uint32_t)bits << 16);
        break;
    default:
        if (!from_whole(type, bits, &point->value)) {
            return GCMP_TENSOR_TOO_LARGE;
        }
    }
    return GCMP_TENSOR_SCALAR;
}

enum gcmp_tensor_kind gcmp_tensor_read(struct gcmp_cursor tensor, struct gcmp_metric_point *point,
                                       uint64_t *dtype) {
    struct head head;
    size_t count = 0;
    uint64_t bits = 0;
    if (!read_head(tensor, &head)) {
        return GCMP_TENSOR_BROKEN;
    }
    *dtype = head.dtype;
    const struct type *type = find_type(head.dtype);
    if (!head.is_scalar || head.dtype == DT_STRING || head.dtype == DT_RESOURCE ||
        head.dtype == DT_VARIANT) {
        return GCMP_TENSOR_OTHER;
    }
    if (type == NULL) {
        return GCMP_TENSOR_UNKNOWN_TYPE;
    }
    size_t content_bytes = gcmp_cursor_left(&head.content);
    if (content_bytes > 0) {
        count = content_bytes / type->bytes;
        if (content_bytes % type->bytes != 0 || !gcmp_read_le(&head.content, type->bytes, &bits)) {
            return GCMP_TENSOR_BROKEN;
        }
    } else if (!read_elements(tensor, type, &count, &bits)) {
        return GCMP_TENSOR_BROKEN;
    }
    if (count == 0 && head.has_shape) {
        count = 1; /* trailing zeros need not be written */
        bits = 0;
    }
    return count == 1                     ? to_point(type, bits, point)
           : count == 0 || head.has_shape ? GCMP_TENSOR_BROKEN
                                          : GCMP_TENSOR_OTHER;
}
