/* Reads datatype and attribute messages. */
#include "h5helper/newer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GLOBAL_HEAP_HEAD_BYTES = 16, HEAP_OBJECT_HEAD_BYTES = 16, MAX_HEAP_BYTES = 1 << 24 };

static bool read_integer(struct gcmp_cursor *cursor, uint32_t bits_field, struct type *type) {
    uint16_t offset, precision;
    if (!gcmp_read_u16le(cursor, &offset) || !gcmp_read_u16le(cursor, &precision)) {
        return false;
    }
    snprintf(type->description, sizeof type->description, "integers of %u bits", precision);
    type->big_endian = (bits_field & 1) != 0;
    type->is_signed = (bits_field & 8) != 0;
    bool padded = offset != 0 || precision != 8 * type->size_bytes;
    type->class = padded ? GCMP_H5_OTHER : GCMP_H5_INTEGER;
    return true;
}

static bool read_float(struct gcmp_cursor *cursor, uint32_t bits_field, struct type *type) {
    uint16_t offset, precision;
    uint8_t exponent_at, exponent_bits, mantissa_at, mantissa_bits;
    uint32_t bias, sign_at = bits_field >> 8 & 0xff;
    if (!gcmp_read_u16le(cursor, &offset) || !gcmp_read_u16le(cursor, &precision) ||
        !gcmp_read_u8(cursor, &exponent_at) || !gcmp_read_u8(cursor, &exponent_bits) ||
        !gcmp_read_u8(cursor, &mantissa_at) || !gcmp_read_u8(cursor, &mantissa_bits) ||
        !gcmp_read_u32le(cursor, &bias)) {
        return false;
    }
    snprintf(type->description, sizeof type->description, "floating-point numbers of %u bits",
             precision);
    bool known_order = (bits_field & 0x40) == 0; /* else VAX */
    bool side_by_side = mantissa_at == 0 && exponent_at == mantissa_bits &&
                        sign_at == (uint32_t)exponent_at + exponent_bits &&
                        sign_at + 1 == precision;
    bool hidden_bit = (bits_field >> 4 & 3) == 2;
    if (offset == 0 && precision == 8 * type->size_bytes && known_order && side_by_side &&
        hidden_bit) {
        type->class = GCMP_H5_FLOAT;
        type->big_endian = (bits_field & 1) != 0;
        type->precision = precision;
        type->exponent_bits = exponent_bits;
        type->mantissa_bits = mantissa_bits;
        type->exponent_bias = bias;
    }
    return true;
}

/* h5py's truth values: FALSE and TRUE in one byte. Names are not padded since version 3. */
static void read_enum(struct gcmp_cursor *cursor, uint32_t bits_field, unsigned version,
                      struct type *type) {
    static const char members[] = "FALSE\0TRUE"; /* and the NUL behind the last */
    const unsigned char *head, *names, *values;
    if ((bits_field & 0xffff) == 2 && version >= 3 && type->size_bytes == 1 &&
        gcmp_read_bytes(cursor, 12, &head) && (head[0] & 15) == H5T_INTEGER &&
        gcmp_read_bytes(cursor, sizeof members, &names) &&
        memcmp(names, members, sizeof members) == 0 && gcmp_read_bytes(cursor, 2, &values) &&
        values[0] == 0 && values[1] == 1) {
        type->class = GCMP_H5_BOOL;
        snprintf(type->description, sizeof type->description, "truth values");
    }
}

bool newer_read_type(struct gcmp_cursor *cursor, struct type *type) {
    uint64_t head, bits_field, size;
    if (!gcmp_read_le(cursor, 1, &head) || !gcmp_read_le(cursor, 3, &bits_field) ||
        !gcmp_read_le(cursor, 4, &size)) {
        return false;
    }
    type->class = GCMP_H5_OTHER;
    type->size_bytes = (uint32_t)size;
    snprintf(type->description, sizeof type->description, "%s", type_class_name((int)(head & 15)));
    switch (head & 15) {
    case H5T_INTEGER:
        return read_integer(cursor, (uint32_t)bits_field, type);
    case H5T_FLOAT:
        return read_float(cursor, (uint32_t)bits_field, type);
    case H5T_ENUM:
        read_enum(cursor, (uint32_t)bits_field, (unsigned)(head >> 4), type);
        return true;
    default:
        return true;
    }
}

/* --- attributes --- */

static void set_mark(struct object *object, const unsigned char *text, size_t count) {
    if (count < MAX_MARK_BYTES) {
        memcpy(object->dataset.type.mark, text, count);
        object->dataset.type.mark[count] = '\0';
    }
}

/* Find object `index` of a global heap and take it as the mark. */
static void find_heap_object(struct object *object, struct gcmp_cursor *heap, uint32_t index,
                             uint32_t length) {
    uint16_t number, references;
    uint64_t bytes;
    const unsigned char *data;
    while (gcmp_cursor_left(heap) >= HEAP_OBJECT_HEAD_BYTES) {
        if (!gcmp_read_u16le(heap, &number) || !gcmp_read_u16le(heap, &references) ||
            !gcmp_skip(heap, 4) || !gcmp_read_u64le(heap, &bytes) || number == 0 ||
            !gcmp_read_bytes(heap, bytes, &data)) {
            return;
        }
        if (number == index) {
            set_mark(object, data, length < bytes ? length : (size_t)bytes);
            return;
        }
        (void)gcmp_skip(heap, (8 - bytes % 8) % 8);
    }
}

/* A text of varying length lies in a global heap: its length, the heap's address, a number. */
static bool read_heap_text(struct object *object, struct gcmp_cursor *cursor) {
    unsigned char head[GLOBAL_HEAP_HEAD_BYTES];
    uint32_t length, index;
    uint64_t address, bytes = 0;
    if (!gcmp_read_u32le(cursor, &length) || !gcmp_read_u64le(cursor, &address) ||
        !gcmp_read_u32le(cursor, &index) || address > driver_file_bytes()) {
        return false;
    }
    address += object->base_bytes;
    struct gcmp_cursor size = gcmp_cursor_make(head + 8, 8, 0);
    if (!driver_read_at(address, head, sizeof head) || memcmp(head, "GCOL", 4) != 0 ||
        !gcmp_read_u64le(&size, &bytes) || bytes < sizeof head || bytes > MAX_HEAP_BYTES) {
        return false;
    }
    unsigned char *heap_bytes = malloc((size_t)bytes);
    bool good = heap_bytes != NULL && driver_read_at(address, heap_bytes, (size_t)bytes);
    if (good) {
        struct gcmp_cursor heap =
            gcmp_cursor_make(heap_bytes + sizeof head, (size_t)bytes - sizeof head, 0);
        find_heap_object(object, &heap, index, length);
    }
    free(heap_bytes);
    return good;
}

bool newer_read_attribute(struct object *object, struct gcmp_cursor *cursor) {
    uint8_t version, flags, charset;
    uint16_t name_bytes, type_bytes, space_bytes;
    const unsigned char *name, *type, *space;
    if (!gcmp_read_u8(cursor, &version) || version != 3 || !gcmp_read_u8(cursor, &flags) ||
        !gcmp_read_u16le(cursor, &name_bytes) || !gcmp_read_u16le(cursor, &type_bytes) ||
        !gcmp_read_u16le(cursor, &space_bytes) || !gcmp_read_u8(cursor, &charset) ||
        !gcmp_read_bytes(cursor, name_bytes, &name) ||
        !gcmp_read_bytes(cursor, type_bytes, &type) ||
        !gcmp_read_bytes(cursor, space_bytes, &space)) {
        return false;
    }
    bool scalar = space_bytes >= 4 && space[1] == 0;
    if (name_bytes != sizeof "dtype" || memcmp(name, "dtype", sizeof "dtype") != 0 || !scalar ||
        flags != 0 || type_bytes < 8) {
        return true;
    }
    uint64_t size;
    struct gcmp_cursor size_field = gcmp_cursor_make(type + 4, 4, 0);
    if ((type[0] & 15) == H5T_VLEN && (type[1] & 15) == 1) {
        return read_heap_text(object, cursor);
    }
    if ((type[0] & 15) == H5T_STRING && gcmp_read_le(&size_field, 4, &size) &&
        gcmp_read_bytes(cursor, size, &name)) {
        set_mark(object, name, strnlen((const char *)name, (size_t)size));
    }
    return true;
}
