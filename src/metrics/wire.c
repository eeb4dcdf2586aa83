/* The wire format of Protocol Buffers. */
#include "metrics/wire.h"

#include <string.h>

bool gcmp_wire_varint(struct gcmp_cursor *cursor, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (!gcmp_read_u8(cursor, &byte)) {
            return false;
        }
        if (shift == 63 && byte > 1) {
            return false; /* past 64 bits */
        }
        value |= (uint64_t)(byte & 127) << shift;
        if ((byte & 128) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_value(struct gcmp_cursor *cursor, unsigned type, struct gcmp_wire_field *out) {
    uint64_t length;
    const unsigned char *bytes;
    switch (type) {
    case GCMP_WIRE_VARINT:
        return gcmp_wire_varint(cursor, &out->integer);
    case GCMP_WIRE_FIXED64:
        return gcmp_read_le(cursor, 8, &out->integer);
    case GCMP_WIRE_FIXED32:
        return gcmp_read_le(cursor, 4, &out->integer);
    case GCMP_WIRE_BYTES:
        if (!gcmp_wire_varint(cursor, &length)) {
            return false;
        }
        uint64_t offset_bytes = gcmp_cursor_offset(cursor);
        if (!gcmp_read_bytes(cursor, length, &bytes)) {
            return false;
        }
        out->inside = gcmp_cursor_make(bytes, (size_t)length, offset_bytes);
        return true;
    default: /* groups, which nobody writes any more, and 6 and 7, which do not exist */
        return false;
    }
}

bool gcmp_wire_next(struct gcmp_cursor *cursor, struct gcmp_wire_field *out, bool *is_broken) {
    uint64_t key;
    *is_broken = false;
    if (gcmp_cursor_left(cursor) == 0) {
        return false;
    }
    *is_broken = true;
    *out = (struct gcmp_wire_field){0};
    if (!gcmp_wire_varint(cursor, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff ||
        !read_value(cursor, (unsigned)(key & 7), out)) {
        return false;
    }
    out->number = (uint32_t)(key >> 3);
    out->type = (enum gcmp_wire_type)(key & 7);
    *is_broken = false;
    return true;
}

double gcmp_wire_float(uint64_t bits) {
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof value);
    return (double)value;
}

double gcmp_wire_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
