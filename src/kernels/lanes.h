/* One element, one lane: the code that all kernels agree on, for the CPU and, compiled by nvcc, for
 * a GPU.
 *
 * A lane is a struct gradcmp_tally. gcmp_lane_add() adds one pair of elements to it;
 * gcmp_lane_fold() joins two lanes, or two subtrees of blocks. Nothing here calls anything but
 * itself and fma. */
#ifndef GCMP_KERNELS_LANES_H
#define GCMP_KERNELS_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gradcmp/gradcmp.h"
#include "gradcmp/sys/tally.h"

/* The operations whose rounding is part of the specification: to nearest, once, never joined with
 * others. */
#if defined(__CUDACC__)
#define GCMP_LANE_FN           static __device__ __forceinline__
#define GCMP_LANE_FMA(x, y, z) __fma_rn((x), (y), (z))
#define GCMP_LANE_SUB(x, y)    __dsub_rn((x), (y))
#define GCMP_LANE_ADD(x, y)    __dadd_rn((x), (y))
#define GCMP_LANE_MUL(x, y)    __dmul_rn((x), (y))
#else
#define GCMP_LANE_FN           static inline __attribute__((always_inline))
#define GCMP_LANE_FMA(x, y, z) fma((x), (y), (z))
#define GCMP_LANE_SUB(x, y)    ((x) - (y))
#define GCMP_LANE_ADD(x, y)    ((x) + (y))
#define GCMP_LANE_MUL(x, y)    ((x) * (y))
#endif

/* How a type lays out sign, exponent and fraction (in this order, from the top bit). */
struct gcmp_float_format {
    unsigned exponent_bits, fraction_bits;
    bool
        has_infinity; /* false (e4m3fn): only magnitude bits that are all ones are special, a NaN */
};

GCMP_LANE_FN struct gcmp_float_format gcmp_float_format(enum gradcmp_dtype dtype) {
    struct gcmp_float_format float64 = {11, 52, true}, float32 = {8, 23, true},
                             float16 = {5, 10, true}, bfloat16 = {8, 7, true},
                             e4m3fn = {4, 3, false}, e5m2 = {5, 2, true};
    switch (dtype) {
    case GRADCMP_DTYPE_FLOAT32:
        return float32;
    case GRADCMP_DTYPE_FLOAT16:
        return float16;
    case GRADCMP_DTYPE_BFLOAT16:
        return bfloat16;
    case GRADCMP_DTYPE_FLOAT8_E4M3FN:
        return e4m3fn;
    case GRADCMP_DTYPE_FLOAT8_E5M2:
        return e5m2;
    default:
        return float64;
    }
}

/* Bits without the sign. */
GCMP_LANE_FN uint64_t gcmp_lane_magnitude(struct gcmp_float_format format, uint64_t bits) {
    return bits & (((uint64_t)1 << (format.exponent_bits + format.fraction_bits)) - 1);
}

/* Least magnitude that is not a finite number. */
GCMP_LANE_FN uint64_t gcmp_lane_special(struct gcmp_float_format format) {
    uint64_t infinity = (((uint64_t)1 << format.exponent_bits) - 1) << format.fraction_bits;
    return format.has_infinity ? infinity : infinity | (((uint64_t)1 << format.fraction_bits) - 1);
}

GCMP_LANE_FN bool gcmp_lane_finite(struct gcmp_float_format format, uint64_t bits) {
    return gcmp_lane_magnitude(format, bits) < gcmp_lane_special(format);
}

GCMP_LANE_FN double gcmp_lane_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

GCMP_LANE_FN uint64_t gcmp_lane_to_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* 2^exponent, a normal number of binary64. */
GCMP_LANE_FN double gcmp_lane_power(int exponent) {
    return gcmp_lane_from_bits((uint64_t)(exponent + 1023) << 52);
}

/* Widen to the bits of a binary64: exact; NaNs keep sign and payload (the e4m3fn one becomes a
 * quiet NaN). */
GCMP_LANE_FN uint64_t gcmp_lane_widen(struct gcmp_float_format format, uint64_t bits) {
    unsigned width = format.exponent_bits + format.fraction_bits;
    uint64_t magnitude = gcmp_lane_magnitude(format, bits);
    uint64_t sign = (bits >> width & 1) << 63;
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    uint64_t exponent = magnitude >> format.fraction_bits;
    uint64_t fraction = magnitude & (((uint64_t)1 << format.fraction_bits) - 1);
    if (format.fraction_bits == 52) {
        return bits;
    }
    if (magnitude >= gcmp_lane_special(format)) {
        return sign | (uint64_t)0x7ff << 52 | fraction << (52 - format.fraction_bits);
    }
    if (exponent == 0) {
        double unit = gcmp_lane_power(1 - bias - (int)format.fraction_bits);
        return sign | gcmp_lane_to_bits(GCMP_LANE_MUL((double)fraction, unit));
    }
    return sign | (exponent - (uint64_t)bias + 1023) << 52 |
           fraction << (52 - format.fraction_bits);
}

/* Narrow a NaN of binary64: the sign and the top of the payload stay; a payload that would vanish
 * becomes the quiet bit. */
GCMP_LANE_FN uint64_t gcmp_lane_narrow_nan(struct gcmp_float_format format, uint64_t bits) {
    uint64_t fraction = (bits & (((uint64_t)1 << 52) - 1)) >> (52 - format.fraction_bits);
    if (fraction == 0) {
        fraction = (uint64_t)1 << (format.fraction_bits - 1);
    }
    return gcmp_lane_special(format) | fraction;
}

/* Shift right by 1 <= shift <= 63, rounding to nearest, ties to even. */
GCMP_LANE_FN uint64_t gcmp_lane_shift_round(uint64_t value, unsigned shift) {
    uint64_t kept = value >> shift;
    uint64_t rest = value & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
    return kept + (uint64_t)(rest > half || (rest == half && (kept & 1) != 0));
}

/* Round the binary64 of these bits to `format`, nearest, ties to even. Past the largest finite
 * number: infinity, or NaN where there is none. */
GCMP_LANE_FN uint64_t gcmp_lane_narrow(struct gcmp_float_format format, uint64_t bits) {
    if (format.fraction_bits == 52) {
        return bits;
    }
    uint64_t sign = (bits >> 63) << (format.exponent_bits + format.fraction_bits);
    uint64_t magnitude = bits & ~((uint64_t)1 << 63);
    if (magnitude > (uint64_t)0x7ff << 52) {
        return sign | gcmp_lane_narrow_nan(format, bits);
    }
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    int exponent = (int)(magnitude >> 52) - 1023 + bias; /* as stored in `format`, if normal */
    int shift = 52 - (int)format.fraction_bits + (exponent < 1 ? 1 - exponent : 0);
    if (shift > 54 || magnitude >> 52 == 0) {
        return sign; /* under half of the smallest number (binary64's subnormals all are) */
    }
    uint64_t significand = (magnitude & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    uint64_t rounded = gcmp_lane_shift_round(significand, (unsigned)shift);
    if (exponent > 1) { /* the significand's leading 1 counts as the last step of the exponent */
        rounded += (uint64_t)(exponent - 1) << format.fraction_bits;
    }
    uint64_t special = gcmp_lane_special(format);
    return sign | (rounded < special ? rounded : special);
}

/* Steps between two numbers on the line of all numbers of `format`, -0 and +0 being one. */
GCMP_LANE_FN uint64_t gcmp_lane_ulps(struct gcmp_float_format format, uint64_t x, uint64_t y) {
    uint64_t p = gcmp_lane_magnitude(format, x), q = gcmp_lane_magnitude(format, y);
    if (((x ^ y) >> (format.exponent_bits + format.fraction_bits) & 1) != 0) {
        return p + q;
    }
    return p > q ? p - q : q - p;
}

GCMP_LANE_FN double gcmp_lane_larger(double x, double y) {
    return y > x ? y : x;
}

/* The types of a pair; made once a block with gcmp_lane_pair(). */
struct gcmp_lane_pair {
    struct gcmp_float_format a, b, coarse; /* coarse: the one of lower precision */
    bool a_is_finer, b_is_finer;
};

/* No two types have the same precision, so that the coarser one is always defined. */
GCMP_LANE_FN struct gcmp_lane_pair gcmp_lane_pair(enum gradcmp_dtype a, enum gradcmp_dtype b) {
    struct gcmp_lane_pair pair;
    pair.a = gcmp_float_format(a);
    pair.b = gcmp_float_format(b);
    pair.a_is_finer = pair.a.fraction_bits > pair.b.fraction_bits;
    pair.b_is_finer = pair.b.fraction_bits > pair.a.fraction_bits;
    pair.coarse = pair.a_is_finer ? pair.b : pair.a;
    return pair;
}

/* Add two finite elements (bits of binary64): the sums, and the largest |d| with its first index.
 */
GCMP_LANE_FN void gcmp_lane_add_values(struct gradcmp_tally *lane, double a, double b,
                                       uint64_t index) {
    double d = GCMP_LANE_SUB(b, a);
    lane->d2 = GCMP_LANE_FMA(d, d, lane->d2);
    lane->ad = GCMP_LANE_FMA(a, d, lane->ad);
    lane->a2 = GCMP_LANE_FMA(a, a, lane->a2);
    lane->b2 = GCMP_LANE_FMA(b, b, lane->b2);
    lane->max_a = gcmp_lane_larger(lane->max_a, fabs(a));
    lane->max_b = gcmp_lane_larger(lane->max_b, fabs(b));
    if (fabs(d) > lane->max_d) {
        lane->max_d = fabs(d);
        lane->max_d_index = index;
    }
}

/* Add the elements of bits `a` and `b`, each in its own type; their index is over all earlier ones
 * of this lane. */
GCMP_LANE_FN void gcmp_lane_add(struct gradcmp_tally *lane, struct gcmp_lane_pair pair, uint64_t a,
                                uint64_t b, uint64_t index) {
    uint64_t wide_a = gcmp_lane_widen(pair.a, a), wide_b = gcmp_lane_widen(pair.b, b);
    uint64_t coarse_a = pair.a_is_finer ? gcmp_lane_narrow(pair.coarse, wide_a) : a;
    uint64_t coarse_b = pair.b_is_finer ? gcmp_lane_narrow(pair.coarse, wide_b) : b;
    bool finite_a = gcmp_lane_finite(pair.a, a), finite_b = gcmp_lane_finite(pair.b, b);
    lane->elems++;
    lane->zeros_a += gcmp_lane_magnitude(pair.a, a) == 0;
    lane->zeros_b += gcmp_lane_magnitude(pair.b, b) == 0;
    lane->equal_bits += coarse_a == coarse_b;
    lane->nonfinite_a += !finite_a;
    lane->nonfinite_b += !finite_b;
    if (!finite_a || !finite_b) {
        lane->nonfinite_any++;
        return;
    }
    uint64_t ulps = gcmp_lane_ulps(pair.coarse, coarse_a, coarse_b);
    lane->max_ulp = ulps > lane->max_ulp ? ulps : lane->max_ulp;
    gcmp_lane_add_values(lane, gcmp_lane_from_bits(wide_a), gcmp_lane_from_bits(wide_b), index);
}

/* Fold `right` into `left`: every sum is left + right, the lowest index wins among equal |d|. */
GCMP_LANE_FN void gcmp_lane_fold(struct gradcmp_tally *left, const struct gradcmp_tally *right) {
    left->d2 = GCMP_LANE_ADD(left->d2, right->d2);
    left->ad = GCMP_LANE_ADD(left->ad, right->ad);
    left->a2 = GCMP_LANE_ADD(left->a2, right->a2);
    left->b2 = GCMP_LANE_ADD(left->b2, right->b2);
    if (right->max_d > left->max_d ||
        (right->max_d == left->max_d && right->max_d_index < left->max_d_index)) {
        left->max_d = right->max_d;
        left->max_d_index = right->max_d_index;
    }
    left->max_a = gcmp_lane_larger(left->max_a, right->max_a);
    left->max_b = gcmp_lane_larger(left->max_b, right->max_b);
    left->elems += right->elems;
    left->zeros_a += right->zeros_a;
    left->zeros_b += right->zeros_b;
    left->nonfinite_a += right->nonfinite_a;
    left->nonfinite_b += right->nonfinite_b;
    left->nonfinite_any += right->nonfinite_any;
    left->equal_bits += right->equal_bits;
    left->max_ulp = right->max_ulp > left->max_ulp ? right->max_ulp : left->max_ulp;
}

#endif
