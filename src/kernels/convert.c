/* Conversion of stored elements, one at a time: hashing is slower by far, scaling is rare. */
#include "kernels/convert.h"

#include "base/dtype.h"
#include "kernels/scalar.h"

void gcmp_convert_float32(const void *from, enum gradcmp_dtype dtype, size_t elems, float *to) {
    unsigned width = gcmp_dtype_bytes(dtype);
    struct gcmp_float_format format = gcmp_float_format(dtype);
    for (size_t i = 0; i < elems; i++) {
        uint64_t bits = gcmp_lane_widen(format, gcmp_load_bits(from, width, i));
        to[i] = (float)gcmp_lane_from_bits(bits);
    }
}

void gcmp_scale_float64(const void *from, enum gradcmp_dtype dtype, size_t elems, int scale_log2,
                        double *to) {
    unsigned width = gcmp_dtype_bytes(dtype);
    struct gcmp_float_format format = gcmp_float_format(dtype);
    for (size_t i = 0; i < elems; i++) {
        uint64_t bits = gcmp_lane_widen(format, gcmp_load_bits(from, width, i));
        to[i] = ldexp(gcmp_lane_from_bits(bits), scale_log2);
    }
}

void gcmp_round_float64(double *values, size_t elems, enum gradcmp_dtype dtype) {
    struct gcmp_float_format format = gcmp_float_format(dtype);
    for (size_t i = 0; i < elems; i++) {
        uint64_t narrow = gcmp_lane_narrow(format, gcmp_lane_to_bits(values[i]));
        values[i] = gcmp_lane_from_bits(gcmp_lane_widen(format, narrow));
    }
}
