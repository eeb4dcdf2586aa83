/* Conversion of stored elements to binary32, one at a time: hashing is slower by far. */
#include "kernels/convert.h"

#include <string.h>

#include "base/dtype.h"
#include "kernels/lanes.h"

static uint64_t load_bits(const unsigned char *from, unsigned width) {
    uint64_t wide = 0;
    uint32_t word;
    uint16_t half;
    switch (width) {
    case 8:
        memcpy(&wide, from, 8);
        return wide;
    case 4:
        memcpy(&word, from, 4);
        return word;
    case 2:
        memcpy(&half, from, 2);
        return half;
    default:
        return *from;
    }
}

void gcmp_convert_float32(const void *from, enum gradcmp_dtype dtype, size_t elems, float *to) {
    unsigned width = gcmp_dtype_bytes(dtype);
    struct gcmp_float_format format = gcmp_float_format(dtype);
    const unsigned char *bytes = from;
    for (size_t i = 0; i < elems; i++) {
        uint64_t bits = gcmp_lane_widen(format, load_bits(bytes + i * width, width));
        to[i] = (float)gcmp_lane_from_bits(bits);
    }
}
