/* Operations of the vector frame in NEON (AArch64). */
#include "kernels/instruction_sets.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/vector.h"

#define SCALAR_TARGET
#include "kernels/scalar_add.h"

/* The scan of elements of 8, 16 or 32 bits. (p ^ s) - s, where s is all ones for negative numbers,
 * gives each number its place on the line of all numbers, the same for both zeros. The absolute
 * difference of two places is exact as an unsigned number. Counters hold as many rounds as a run
 * has. */
#define DEFINE_SCAN(BITS, COUNT, TOTAL)                                                            \
    static void scan##BITS(const void *a, const void *b, size_t n, struct gcmp_scan *out) {        \
        const uint##BITS##_t *at_a = a, *at_b = b;                                                 \
        const uint##BITS##x##COUNT##_t mask = vdupq_n_u##BITS(INT##BITS##_MAX);                    \
        uint##BITS##x##COUNT##_t max_a = vdupq_n_u##BITS(0), max_b = max_a, equal = max_a;         \
        uint##BITS##x##COUNT##_t ulps = max_a, min_a = mask, min_b = mask;                         \
        for (size_t i = 0; i < n; i += COUNT) {                                                    \
            uint##BITS##x##COUNT##_t x = vld1q_u##BITS(at_a + i), y = vld1q_u##BITS(at_b + i);     \
            uint##BITS##x##COUNT##_t p = vandq_u##BITS(x, mask), q = vandq_u##BITS(y, mask);       \
            max_a = vmaxq_u##BITS(max_a, p);                                                       \
            max_b = vmaxq_u##BITS(max_b, q);                                                       \
            min_a = vminq_u##BITS(min_a, p);                                                       \
            min_b = vminq_u##BITS(min_b, q);                                                       \
            equal = vsubq_u##BITS(equal, vceqq_u##BITS(x, y));                                     \
            int##BITS##x##COUNT##_t s =                                                            \
                vshrq_n_s##BITS(vreinterpretq_s##BITS##_u##BITS(x), BITS - 1);                     \
            int##BITS##x##COUNT##_t t =                                                            \
                vshrq_n_s##BITS(vreinterpretq_s##BITS##_u##BITS(y), BITS - 1);                     \
            s = vsubq_s##BITS(veorq_s##BITS(vreinterpretq_s##BITS##_u##BITS(p), s), s);            \
            t = vsubq_s##BITS(veorq_s##BITS(vreinterpretq_s##BITS##_u##BITS(q), t), t);            \
            ulps = vmaxq_u##BITS(ulps, vreinterpretq_u##BITS##_s##BITS(vabdq_s##BITS(s, t)));      \
        }                                                                                          \
        out->max_a = vmaxvq_u##BITS(max_a);                                                        \
        out->max_b = vmaxvq_u##BITS(max_b);                                                        \
        out->min_a = vminvq_u##BITS(min_a);                                                        \
        out->min_b = vminvq_u##BITS(min_b);                                                        \
        out->equal = TOTAL(equal);                                                                 \
        out->max_ulp = vmaxvq_u##BITS(ulps);                                                       \
    }                                                                                              \
    static void extent##BITS(const void *a, size_t n, struct gcmp_extent *out) {                   \
        const uint##BITS##_t *at_a = a;                                                            \
        const uint##BITS##x##COUNT##_t mask = vdupq_n_u##BITS(INT##BITS##_MAX);                    \
        uint##BITS##x##COUNT##_t max = vdupq_n_u##BITS(0), min = mask;                             \
        for (size_t i = 0; i < n; i += COUNT) {                                                    \
            uint##BITS##x##COUNT##_t p = vandq_u##BITS(vld1q_u##BITS(at_a + i), mask);             \
            max = vmaxq_u##BITS(max, p);                                                           \
            min = vminq_u##BITS(min, p);                                                           \
        }                                                                                          \
        out->max = vmaxvq_u##BITS(max);                                                            \
        out->min = vminvq_u##BITS(min);                                                            \
    }                                                                                              \
    static uint64_t zeros##BITS(const void *a, size_t n) {                                         \
        const uint##BITS##_t *at_a = a;                                                            \
        const uint##BITS##x##COUNT##_t mask = vdupq_n_u##BITS(INT##BITS##_MAX);                    \
        uint##BITS##x##COUNT##_t zeros = vdupq_n_u##BITS(0);                                       \
        for (size_t i = 0; i < n; i += COUNT) {                                                    \
            uint##BITS##x##COUNT##_t x = vandq_u##BITS(vld1q_u##BITS(at_a + i), mask);             \
            zeros = vsubq_u##BITS(zeros, vceqzq_u##BITS(x));                                       \
        }                                                                                          \
        return TOTAL(zeros);                                                                       \
    }

DEFINE_SCAN(8, 16, vaddlvq_u8)
DEFINE_SCAN(16, 8, vaddlvq_u16)
DEFINE_SCAN(32, 4, vaddlvq_u32)

static inline uint64x2_t larger(uint64x2_t x, uint64x2_t y) {
    return vbslq_u64(vcgtq_u64(x, y), x, y);
}

static inline uint64x2_t smaller(uint64x2_t x, uint64x2_t y) {
    return vbslq_u64(vcgtq_u64(x, y), y, x);
}

static inline uint64_t largest(uint64x2_t v) {
    uint64_t x = vgetq_lane_u64(v, 0), y = vgetq_lane_u64(v, 1);
    return x > y ? x : y;
}

static inline uint64_t smallest(uint64x2_t v) {
    uint64_t x = vgetq_lane_u64(v, 0), y = vgetq_lane_u64(v, 1);
    return x < y ? x : y;
}

static inline int64x2_t place(uint64x2_t x, uint64x2_t magnitude) {
    int64x2_t sign = vshrq_n_s64(vreinterpretq_s64_u64(x), 63);
    return vsubq_s64(veorq_s64(vreinterpretq_s64_u64(magnitude), sign), sign);
}

static inline uint64x2_t distance(int64x2_t p, int64x2_t q) {
    int64x2_t less = vreinterpretq_s64_u64(vcgtq_s64(q, p));
    int64x2_t difference = vsubq_s64(p, q);
    return vreinterpretq_u64_s64(vsubq_s64(veorq_s64(difference, less), less));
}

static void scan64(const void *a, const void *b, size_t n, struct gcmp_scan *out) {
    const uint64_t *at_a = a, *at_b = b;
    const uint64x2_t mask = vdupq_n_u64(INT64_MAX);
    uint64x2_t max_a = vdupq_n_u64(0), max_b = max_a, equal = max_a, ulps = max_a;
    uint64x2_t min_a = mask, min_b = mask;
    for (size_t i = 0; i < n; i += 2) {
        uint64x2_t x = vld1q_u64(at_a + i), y = vld1q_u64(at_b + i);
        uint64x2_t p = vandq_u64(x, mask), q = vandq_u64(y, mask);
        max_a = larger(max_a, p);
        max_b = larger(max_b, q);
        min_a = smaller(min_a, p);
        min_b = smaller(min_b, q);
        equal = vsubq_u64(equal, vceqq_u64(x, y));
        ulps = larger(ulps, distance(place(x, p), place(y, q)));
    }
    out->max_a = largest(max_a);
    out->max_b = largest(max_b);
    out->min_a = smallest(min_a);
    out->min_b = smallest(min_b);
    out->equal = vaddvq_u64(equal);
    out->max_ulp = largest(ulps);
}

static void extent64(const void *a, size_t n, struct gcmp_extent *out) {
    const uint64_t *at_a = a;
    const uint64x2_t mask = vdupq_n_u64(INT64_MAX);
    uint64x2_t max = vdupq_n_u64(0), min = mask;
    for (size_t i = 0; i < n; i += 2) {
        uint64x2_t p = vandq_u64(vld1q_u64(at_a + i), mask);
        max = larger(max, p);
        min = smaller(min, p);
    }
    out->max = largest(max);
    out->min = smallest(min);
}

static uint64_t zeros64(const void *a, size_t n) {
    const uint64_t *at_a = a;
    uint64x2_t zeros = vdupq_n_u64(0);
    for (size_t i = 0; i < n; i += 2) {
        uint64x2_t x = vandq_u64(vld1q_u64(at_a + i), vdupq_n_u64(INT64_MAX));
        zeros = vsubq_u64(zeros, vceqzq_u64(x));
    }
    return vaddvq_u64(zeros);
}

/* --- conversions --- */

static void widen_float16(const void *in, size_t n, void *out) {
    const uint16_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 4) {
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
    }
}

static void widen_bfloat16(const void *in, size_t n, void *out) {
    const uint16_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < n; i += 4) {
        vst1q_u32(to + i, vshll_n_u16(vld1_u16(from + i), 16));
    }
}

static inline void store_wide_float16(float *to, uint16x8_t x, float scale) {
    float32x4_t low = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(x)));
    float32x4_t high = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(x)));
    vst1q_f32(to, vmulq_n_f32(low, scale));
    vst1q_f32(to + 4, vmulq_n_f32(high, scale));
}

/* e5m2 is the upper half of a float16. */
static void widen_e5m2(const void *in, size_t n, void *out) {
    const uint8_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        store_wide_float16(to + i, vshll_n_u8(vld1_u8(from + i), 8), 1.0f);
    }
}

/* e4m3fn moved to a float16's place is 2^8 too small, its bias being 7 instead of 15. */
static void widen_e4m3fn(const void *in, size_t n, void *out) {
    const uint8_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        uint8x8_t x = vld1_u8(from + i);
        uint16x8_t magnitude = vshll_n_u8(vand_u8(x, vdup_n_u8(0x7f)), 7);
        uint16x8_t sign = vshll_n_u8(vand_u8(x, vdup_n_u8(0x80)), 8);
        store_wide_float16(to + i, vorrq_u16(magnitude, sign), 0x1p8f);
    }
}

static void float64_to_float32(const void *in, size_t n, void *out) {
    const double *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 2) {
        vst1_f32(to + i, vcvt_f32_f64(vld1q_f64(from + i)));
    }
}

static void float64_to_odd32(const void *in, size_t n, void *out) {
    const double *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 2) {
        vst1_f32(to + i, vcvtx_f32_f64(vld1q_f64(from + i)));
    }
}

static void narrow_float16(const void *in, size_t n, void *out) {
    const float *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i += 4) {
        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
    }
}

/* Drop `shift` bits of each element, to nearest, ties to even: add just under a half, and one more
 * where the last kept bit is set. */
static inline uint32x4_t shift_round(uint32x4_t x, int shift) {
    int32x4_t right = vdupq_n_s32(-shift);
    uint32x4_t last = vandq_u32(vshlq_u32(x, right), vdupq_n_u32(1));
    uint32x4_t half = vdupq_n_u32((1u << (shift - 1)) - 1);
    return vshlq_u32(vaddq_u32(x, vaddq_u32(half, last)), right);
}

static void narrow_bfloat16(const void *in, size_t n, void *out) {
    const uint32_t *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i += 4) {
        vst1_u16(to + i, vmovn_u32(shift_round(vld1q_u32(from + i), 16)));
    }
}

/* A float8 type as seen from float32. */
struct float8 {
    int shift;        /* 23 less its bits of fraction */
    uint32_t rebias;  /* what to take from the exponent and fraction after the shift */
    float normal;     /* its smallest normal number */
    float magic;      /* adding it rounds to the step of the subnormal numbers */
    uint32_t special; /* least magnitude that is not finite */
};

static const struct float8 e4m3fn = {20, (127 - 7) << 3, 0x1p-6f, 0x1p14f, 0x7f};
static const struct float8 e5m2 = {21, (127 - 15) << 2, 0x1p-14f, 0x1p7f, 0x7c};

/* Round four elements; each result is in the low byte of 32 bits. */
static inline uint32x4_t round_float8(uint32x4_t x, const struct float8 *type) {
    uint32x4_t magnitude = vandq_u32(x, vdupq_n_u32(INT32_MAX));
    float32x4_t value = vreinterpretq_f32_u32(magnitude), magic = vdupq_n_f32(type->magic);
    uint32x4_t normal = vsubq_u32(shift_round(magnitude, type->shift), vdupq_n_u32(type->rebias));
    normal = vminq_u32(normal, vdupq_n_u32(type->special));
    uint32x4_t tiny = vreinterpretq_u32_f32(vaddq_f32(value, magic));
    tiny = vsubq_u32(tiny, vreinterpretq_u32_f32(magic));
    uint32x4_t rounded = vbslq_u32(vcltq_f32(value, vdupq_n_f32(type->normal)), tiny, normal);
    uint32x4_t sign = vandq_u32(vshrq_n_u32(x, 24), vdupq_n_u32(0x80));
    return vorrq_u32(rounded, sign);
}

static void narrow_float8(const void *in, size_t n, void *out, const struct float8 *type) {
    const uint32_t *from = in;
    uint8_t *to = out;
    for (size_t i = 0; i < n; i += 8) {
        uint16x4_t low = vmovn_u32(round_float8(vld1q_u32(from + i), type));
        uint16x4_t high = vmovn_u32(round_float8(vld1q_u32(from + i + 4), type));
        vst1_u8(to + i, vmovn_u16(vcombine_u16(low, high)));
    }
}

static void narrow_e4m3fn(const void *in, size_t n, void *out) {
    narrow_float8(in, n, out, &e4m3fn);
}

static void narrow_e5m2(const void *in, size_t n, void *out) {
    narrow_float8(in, n, out, &e5m2);
}

/* --- sums --- */

/* The sums of two lanes. */
struct sums2 {
    float64x2_t d2, ad, a2, b2, max_d;
};

static inline float64x2_t load_float32(const float *at) {
    return vcvt_f64_f32(vld1_f32(at));
}

static inline float64x2_t load_float64(const double *at) {
    return vld1q_f64(at);
}

static inline void add2(struct sums2 *sums, float64x2_t a, float64x2_t b) {
    float64x2_t d = vsubq_f64(b, a);
    sums->d2 = vfmaq_f64(sums->d2, d, d);
    sums->ad = vfmaq_f64(sums->ad, a, d);
    sums->a2 = vfmaq_f64(sums->a2, a, a);
    sums->b2 = vfmaq_f64(sums->b2, b, b);
    sums->max_d = vmaxq_f64(sums->max_d, vabsq_f64(d));
}

static inline struct sums2 load_sums2(const struct gcmp_lane_sums *sums, size_t lane) {
    struct sums2 out = {vld1q_f64(sums->d2 + lane), vld1q_f64(sums->ad + lane),
                        vld1q_f64(sums->a2 + lane), vld1q_f64(sums->b2 + lane), vdupq_n_f64(0.0)};
    return out;
}

static inline void store_sums2(struct gcmp_lane_sums *sums, size_t lane, const struct sums2 *in,
                               double *max_d) {
    vst1q_f64(sums->d2 + lane, in->d2);
    vst1q_f64(sums->ad + lane, in->ad);
    vst1q_f64(sums->a2 + lane, in->a2);
    vst1q_f64(sums->b2 + lane, in->b2);
    vst1q_f64(max_d + lane, in->max_d);
}

static double largest_lane(const double max_d[GRADCMP_LANES]) {
    float64x2_t best = vld1q_f64(max_d);
    for (size_t j = 2; j < GRADCMP_LANES; j += 2) {
        best = vmaxq_f64(best, vld1q_f64(max_d + j));
    }
    return vmaxvq_f64(best);
}

/* Eight lanes at a time: 20 of the 32 registers hold their sums and maxima over the run. */
#define DEFINE_SUMS(NAME, TYPE_A, LOAD_A, TYPE_B, LOAD_B)                                          \
    static double NAME(const void *a, const void *b, size_t n, struct gcmp_lane_sums *sums,        \
                       double max_d[GRADCMP_LANES]) {                                              \
        const TYPE_A *at_a = a;                                                                    \
        const TYPE_B *at_b = b;                                                                    \
        for (size_t lane = 0; lane < GRADCMP_LANES; lane += 8) {                                   \
            struct sums2 s0 = load_sums2(sums, lane), s2 = load_sums2(sums, lane + 2);             \
            struct sums2 s4 = load_sums2(sums, lane + 4), s6 = load_sums2(sums, lane + 6);         \
            for (size_t i = lane; i < n; i += GRADCMP_LANES) {                                     \
                add2(&s0, LOAD_A(at_a + i), LOAD_B(at_b + i));                                     \
                add2(&s2, LOAD_A(at_a + i + 2), LOAD_B(at_b + i + 2));                             \
                add2(&s4, LOAD_A(at_a + i + 4), LOAD_B(at_b + i + 4));                             \
                add2(&s6, LOAD_A(at_a + i + 6), LOAD_B(at_b + i + 6));                             \
            }                                                                                      \
            store_sums2(sums, lane, &s0, max_d);                                                   \
            store_sums2(sums, lane + 2, &s2, max_d);                                               \
            store_sums2(sums, lane + 4, &s4, max_d);                                               \
            store_sums2(sums, lane + 6, &s6, max_d);                                               \
        }                                                                                          \
        return largest_lane(max_d);                                                                \
    }

DEFINE_SUMS(sums_32_32, float, load_float32, float, load_float32)
DEFINE_SUMS(sums_32_64, float, load_float32, double, load_float64)
DEFINE_SUMS(sums_64_32, double, load_float64, float, load_float32)
DEFINE_SUMS(sums_64_64, double, load_float64, double, load_float64)

static const struct gcmp_vector_ops ops = {
    .scalar_add = scalar_add,
    .scan = {scan8, scan16, scan32, scan64},
    .extent = {extent8, extent16, extent32, extent64},
    .zeros = {zeros8, zeros16, zeros32, zeros64},
    .widen = {[GRADCMP_DTYPE_FLOAT16] = widen_float16,
              [GRADCMP_DTYPE_BFLOAT16] = widen_bfloat16,
              [GRADCMP_DTYPE_FLOAT8_E4M3FN] = widen_e4m3fn,
              [GRADCMP_DTYPE_FLOAT8_E5M2] = widen_e5m2},
    .float64_to_float32 = float64_to_float32,
    .float64_to_odd32 = float64_to_odd32,
    .narrow = {[GRADCMP_DTYPE_FLOAT16] = narrow_float16,
               [GRADCMP_DTYPE_BFLOAT16] = narrow_bfloat16,
               [GRADCMP_DTYPE_FLOAT8_E4M3FN] = narrow_e4m3fn,
               [GRADCMP_DTYPE_FLOAT8_E5M2] = narrow_e5m2},
    .sums = {{sums_32_32, sums_32_64}, {sums_64_32, sums_64_64}},
};

static void tally(const void *a, enum gradcmp_dtype dtype_a, const void *b,
                  enum gradcmp_dtype dtype_b, size_t elems, struct gradcmp_tally *out) {
    struct gcmp_block block = {a, b, dtype_a, dtype_b, elems};
    gcmp_vector_tally(&ops, &block, out);
}

const struct gcmp_kernel gcmp_kernel_neon = {"neon", tally};

#endif
