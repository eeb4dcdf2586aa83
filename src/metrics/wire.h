/* The wire format of Protocol Buffers, read through a bounded cursor: fields one after another,
 * without recursion; what is in a field is the caller's to read. */
#ifndef GCMP_METRICS_WIRE_H
#define GCMP_METRICS_WIRE_H

#include "base/cursor.h"

enum gcmp_wire_type {
    GCMP_WIRE_VARINT = 0,
    GCMP_WIRE_FIXED64 = 1,
    GCMP_WIRE_BYTES = 2,
    GCMP_WIRE_FIXED32 = 5
};

struct gcmp_wire_field {
    uint32_t number;
    enum gcmp_wire_type type;
    uint64_t integer;          /* VARINT, FIXED32, FIXED64: the value or its bits */
    struct gcmp_cursor inside; /* BYTES */
};

/* Read the next field. Return false at the end of the bytes, and where they are no field:
 * *is_broken tells which. */
bool gcmp_wire_next(struct gcmp_cursor *cursor, struct gcmp_wire_field *out, bool *is_broken);

/* Read a base-128 varint of at most 64 bits. */
bool gcmp_wire_varint(struct gcmp_cursor *cursor, uint64_t *out);

/* The real number that the bits of a binary32 (the lower half), or a binary64, stand for. */
double gcmp_wire_float(uint64_t bits);
double gcmp_wire_double(uint64_t bits);

#endif
