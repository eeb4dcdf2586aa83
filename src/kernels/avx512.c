/* Operations of the vector frame in AVX-512 (F, BW, DQ, VL). With 32 registers of 8 lanes, all 16
 * sums of a run stay in registers at once, and a float32 pair takes 11 instructions of arithmetic
 * for 8 elements in the sums and 14 for 16 elements in the scan. */
#include "kernels/instruction_sets.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/vector.h"

#define AVX512        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define SCALAR_TARGET AVX512
#include "kernels/scalar_add.h"

AVX512 static inline __m512i load(const unsigned char *at) {
    return _mm512_loadu_si512(at);
}

/* Join the elements of a vector: halves, quarters and so on, down to one element. */
#define DEFINE_REDUCE(NAME, BITS, JOIN)                                                            \
    AVX512 static inline uint64_t NAME##BITS(__m512i v) {                                          \
        v = JOIN(v, _mm512_shuffle_i64x2(v, v, 0x4e));                                             \
        v = JOIN(v, _mm512_shuffle_i64x2(v, v, 0xb1));                                             \
        v = JOIN(v, _mm512_bsrli_epi128(v, 8));                                                    \
        v = BITS <= 32 ? JOIN(v, _mm512_bsrli_epi128(v, 4)) : v;                                   \
        v = BITS <= 16 ? JOIN(v, _mm512_bsrli_epi128(v, 2)) : v;                                   \
        v = BITS <= 8 ? JOIN(v, _mm512_bsrli_epi128(v, 1)) : v;                                    \
        return (uint##BITS##_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(v));                       \
    }

DEFINE_REDUCE(largest, 8, _mm512_max_epu8)
DEFINE_REDUCE(largest, 16, _mm512_max_epu16)
DEFINE_REDUCE(largest, 32, _mm512_max_epu32)
DEFINE_REDUCE(largest, 64, _mm512_max_epu64)
DEFINE_REDUCE(smallest, 8, _mm512_min_epu8)
DEFINE_REDUCE(smallest, 16, _mm512_min_epu16)
DEFINE_REDUCE(smallest, 32, _mm512_min_epu32)
DEFINE_REDUCE(smallest, 64, _mm512_min_epu64)

/* The scan of elements of 8 to 64 bits. Negating the magnitudes of negative numbers gives each
 * number its place on the line of all numbers, the same for both zeros. */
#define DEFINE_SCAN(BITS)                                                                          \
    AVX512 static void scan##BITS(const void *a, const void *b, size_t n, struct gcmp_scan *out) { \
        const unsigned char *at_a = a, *at_b = b;                                                  \
        const __m512i mask = _mm512_set1_epi##BITS((int##BITS##_t)INT##BITS##_MAX);                \
        const __m512i zero = _mm512_setzero_si512();                                               \
        __m512i max_a = zero, max_b = zero, ulps = zero, min_a = mask, min_b = mask;               \
        uint64_t equal = 0;                                                                        \
        for (size_t i = 0; i < n * (BITS / 8); i += 64) {                                          \
            __m512i x = load(at_a + i), y = load(at_b + i);                                        \
            __m512i p = _mm512_and_si512(x, mask), q = _mm512_and_si512(y, mask);                  \
            max_a = _mm512_max_epu##BITS(max_a, p);                                                \
            max_b = _mm512_max_epu##BITS(max_b, q);                                                \
            min_a = _mm512_min_epu##BITS(min_a, p);                                                \
            min_b = _mm512_min_epu##BITS(min_b, q);                                                \
            equal += (uint64_t)__builtin_popcountll(_mm512_cmpeq_epi##BITS##_mask(x, y));          \
            p = _mm512_mask_sub_epi##BITS(p, _mm512_movepi##BITS##_mask(x), zero, p);              \
            q = _mm512_mask_sub_epi##BITS(q, _mm512_movepi##BITS##_mask(y), zero, q);              \
            ulps = _mm512_max_epu##BITS(ulps, _mm512_sub_epi##BITS(_mm512_max_epi##BITS(p, q),     \
                                                                   _mm512_min_epi##BITS(p, q)));   \
        }                                                                                          \
        out->max_a = largest##BITS(max_a);                                                         \
        out->max_b = largest##BITS(max_b);                                                         \
        out->min_a = smallest##BITS(min_a);                                                        \
        out->min_b = smallest##BITS(min_b);                                                        \
        out->equal = equal;                                                                        \
        out->max_ulp = largest##BITS(ulps);                                                        \
    }                                                                                              \
    AVX512 static void extent##BITS(const void *a, size_t n, struct gcmp_extent *out) {            \
        const unsigned char *at_a = a;                                                             \
        const __m512i mask = _mm512_set1_epi##BITS((int##BITS##_t)INT##BITS##_MAX);                \
        __m512i max = _mm512_setzero_si512(), min = mask;                                          \
        for (size_t i = 0; i < n * (BITS / 8); i += 64) {                                          \
            __m512i p = _mm512_and_si512(load(at_a + i), mask);                                    \
            max = _mm512_max_epu##BITS(max, p);                                                    \
            min = _mm512_min_epu##BITS(min, p);                                                    \
        }                                                                                          \
        out->max = largest##BITS(max);                                                             \
        out->min = smallest##BITS(min);                                                            \
    }                                                                                              \
    AVX512 static uint64_t zeros##BITS(const void *a, size_t n) {                                  \
        const unsigned char *at_a = a;                                                             \
        const __m512i mask = _mm512_set1_epi##BITS((int##BITS##_t)INT##BITS##_MAX);                \
        uint64_t zeros = 0;                                                                        \
        for (size_t i = 0; i < n * (BITS / 8); i += 64) {                                          \
            __mmask64 found = _mm512_testn_epi##BITS##_mask(load(at_a + i), mask);                 \
            zeros += (uint64_t)__builtin_popcountll(found);                                        \
        }                                                                                          \
        return zeros;                                                                              \
    }

DEFINE_SCAN(8)
DEFINE_SCAN(16)
DEFINE_SCAN(32)
DEFINE_SCAN(64)

/* --- conversions --- */

AVX512 static void widen_float16(const void *in, size_t n, void *out) {
    const uint16_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(from + i));
        _mm512_store_ps(to + i, _mm512_cvtph_ps(x));
    }
}

AVX512 static void widen_bfloat16(const void *in, size_t n, void *out) {
    const uint16_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(from + i));
        _mm512_store_si512(to + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
    }
}

/* e5m2 is the upper half of a float16. */
AVX512 static void widen_e5m2(const void *in, size_t n, void *out) {
    const uint8_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(from + i)));
        _mm512_store_ps(to + i, _mm512_cvtph_ps(_mm256_slli_epi16(x, 8)));
    }
}

/* e4m3fn moved to a float16's place is 2^8 too small, its bias being 7 instead of 15. */
AVX512 static void widen_e4m3fn(const void *in, size_t n, void *out) {
    const uint8_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(from + i)));
        __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x7f)), 7);
        __m256i sign = _mm256_slli_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x80)), 8);
        __m512 value = _mm512_cvtph_ps(_mm256_or_si256(magnitude, sign));
        _mm512_store_ps(to + i, _mm512_mul_ps(value, _mm512_set1_ps(0x1p8f)));
    }
}

AVX512 static void float64_to_float32(const void *in, size_t n, void *out) {
    const double *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        _mm256_store_ps(to + i, _mm512_cvtpd_ps(_mm512_loadu_pd(from + i)));
    }
}

AVX512 static void float64_to_odd32(const void *in, size_t n, void *out) {
    const double *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        __m512d x = _mm512_loadu_pd(from + i);
        __m256 toward_zero = _mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(toward_zero), x, _CMP_NEQ_UQ);
        __m256i bits = _mm256_castps_si256(toward_zero);
        bits = _mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1));
        _mm256_store_si256((__m256i *)(to + i), bits);
    }
}

AVX512 static void narrow_float16(const void *in, size_t n, void *out) {
    const float *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m256i x = _mm512_maskz_cvtps_ph((__mmask16)0xffff, _mm512_loadu_ps(from + i),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_store_si256((__m256i *)(to + i), x);
    }
}

/* Drop `shift` bits of each unsigned element, to nearest, ties to even: add just under a half, and
 * one more where the last kept bit is set. */
AVX512 static inline __m512i shift_round(__m512i x, unsigned shift) {
    __m512i last = _mm512_and_si512(_mm512_srli_epi32(x, shift), _mm512_set1_epi32(1));
    __m512i half = _mm512_set1_epi32((1 << (shift - 1)) - 1);
    return _mm512_srli_epi32(_mm512_add_epi32(x, _mm512_add_epi32(half, last)), shift);
}

AVX512 static void narrow_bfloat16(const void *in, size_t n, void *out) {
    const float *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m512i x = shift_round(_mm512_loadu_si512(from + i), 16);
        _mm256_store_si256((__m256i *)(to + i), _mm512_cvtepi32_epi16(x));
    }
}

/* A float8 type as seen from float32. */
struct float8 {
    unsigned shift; /* 23 less its bits of fraction */
    int rebias;     /* what to take from the exponent and fraction after the shift */
    float normal;   /* its smallest normal number */
    float magic;    /* adding it rounds to the step of the subnormal numbers */
    int special;    /* least magnitude that is not finite */
};

static const struct float8 e4m3fn = {20, (127 - 7) << 3, 0x1p-6f, 0x1p14f, 0x7f};
static const struct float8 e5m2 = {21, (127 - 15) << 2, 0x1p-14f, 0x1p7f, 0x7c};

/* Round 16 elements; each result is in the low byte of 32 bits. */
AVX512 static inline __m512i round_float8(__m512i x, const struct float8 *type) {
    const __m512i mask = _mm512_set1_epi32(INT32_MAX);
    __m512i magnitude = _mm512_and_si512(x, mask);
    __m512i normal =
        _mm512_sub_epi32(shift_round(magnitude, type->shift), _mm512_set1_epi32(type->rebias));
    normal = _mm512_min_epi32(normal, _mm512_set1_epi32(type->special));
    __m512 magic = _mm512_set1_ps(type->magic);
    __m512i tiny = _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(magnitude), magic));
    tiny = _mm512_sub_epi32(tiny, _mm512_castps_si512(magic));
    __mmask16 is_tiny = _mm512_cmp_ps_mask(_mm512_castsi512_ps(magnitude),
                                           _mm512_set1_ps(type->normal), _CMP_LT_OQ);
    __m512i rounded = _mm512_mask_mov_epi32(normal, is_tiny, tiny);
    __m512i sign = _mm512_srli_epi32(_mm512_andnot_si512(mask, x), 24);
    return _mm512_or_si512(rounded, sign);
}

AVX512 static inline void narrow_float8(const void *in, size_t n, void *out,
                                        const struct float8 *type) {
    const float *from = in;
    uint8_t *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m512i x = round_float8(_mm512_loadu_si512(from + i), type);
        _mm_store_si128((__m128i *)(to + i), _mm512_cvtepi32_epi8(x));
    }
}

AVX512 static void narrow_e4m3fn(const void *in, size_t n, void *out) {
    narrow_float8(in, n, out, &e4m3fn);
}

AVX512 static void narrow_e5m2(const void *in, size_t n, void *out) {
    narrow_float8(in, n, out, &e5m2);
}

/* --- sums --- */

/* The sums of eight lanes. */
struct sums8 {
    __m512d d2, ad, a2, b2, max_d;
};

AVX512 static inline __m512d load_float32(const float *at) {
    return _mm512_cvtps_pd(_mm256_loadu_ps(at));
}

AVX512 static inline __m512d load_float64(const double *at) {
    return _mm512_loadu_pd(at);
}

AVX512 static inline void add8(struct sums8 *sums, __m512d a, __m512d b) {
    __m512d d = _mm512_sub_pd(b, a);
    sums->d2 = _mm512_fmadd_pd(d, d, sums->d2);
    sums->ad = _mm512_fmadd_pd(a, d, sums->ad);
    sums->a2 = _mm512_fmadd_pd(a, a, sums->a2);
    sums->b2 = _mm512_fmadd_pd(b, b, sums->b2);
    sums->max_d = _mm512_max_pd(sums->max_d, _mm512_abs_pd(d));
}

AVX512 static inline struct sums8 load_sums8(const struct gcmp_lane_sums *sums, size_t lane) {
    struct sums8 out = {_mm512_loadu_pd(sums->d2 + lane), _mm512_loadu_pd(sums->ad + lane),
                        _mm512_loadu_pd(sums->a2 + lane), _mm512_loadu_pd(sums->b2 + lane),
                        _mm512_setzero_pd()};
    return out;
}

AVX512 static inline void store_sums8(struct gcmp_lane_sums *sums, size_t lane,
                                      const struct sums8 *in, double *max_d) {
    _mm512_storeu_pd(sums->d2 + lane, in->d2);
    _mm512_storeu_pd(sums->ad + lane, in->ad);
    _mm512_storeu_pd(sums->a2 + lane, in->a2);
    _mm512_storeu_pd(sums->b2 + lane, in->b2);
    _mm512_storeu_pd(max_d + lane, in->max_d);
}

#define DEFINE_SUMS(NAME, TYPE_A, LOAD_A, TYPE_B, LOAD_B)                                          \
    AVX512 static double NAME(const void *a, const void *b, size_t n, struct gcmp_lane_sums *sums, \
                              double max_d[GRADCMP_LANES]) {                                       \
        const TYPE_A *at_a = a;                                                                    \
        const TYPE_B *at_b = b;                                                                    \
        struct sums8 first = load_sums8(sums, 0), second = load_sums8(sums, 8);                    \
        struct sums8 third = load_sums8(sums, 16), fourth = load_sums8(sums, 24);                  \
        for (size_t i = 0; i < n; i += GRADCMP_LANES) {                                            \
            add8(&first, LOAD_A(at_a + i), LOAD_B(at_b + i));                                      \
            add8(&second, LOAD_A(at_a + i + 8), LOAD_B(at_b + i + 8));                             \
            add8(&third, LOAD_A(at_a + i + 16), LOAD_B(at_b + i + 16));                            \
            add8(&fourth, LOAD_A(at_a + i + 24), LOAD_B(at_b + i + 24));                           \
        }                                                                                          \
        store_sums8(sums, 0, &first, max_d);                                                       \
        store_sums8(sums, 8, &second, max_d);                                                      \
        store_sums8(sums, 16, &third, max_d);                                                      \
        store_sums8(sums, 24, &fourth, max_d);                                                     \
        return _mm512_reduce_max_pd(_mm512_max_pd(_mm512_max_pd(first.max_d, second.max_d),        \
                                                  _mm512_max_pd(third.max_d, fourth.max_d)));      \
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

const struct gcmp_kernel gcmp_kernel_avx512 = {"avx512", tally};

bool gcmp_cpu_has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif
