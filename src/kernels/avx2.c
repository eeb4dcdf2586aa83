/* Operations of the vector frame in AVX2, FMA and F16C.
 *
 * Instructions of the arithmetic for a float32 pair, counted for 8 elements: the scan has 14 (2
 * and, 2 max, 2 min, 2 for equality, 2 sign, max, min, subtract, max), the sums 18 (4 conversions,
 * 2 subtract, 8 multiply-add, 2 and, 2 max). Loads and the loop's own instructions are not counted.
 */
#include "kernels/instruction_sets.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "kernels/vector.h"

#define AVX2          __attribute__((target("avx2,fma,f16c")))
#define SCALAR_TARGET AVX2
#include "kernels/scalar_add.h"

AVX2 static inline __m256i load(const unsigned char *at) {
    return _mm256_loadu_si256((const __m256i *)at);
}

/* AVX2 has no comparison of unsigned 64-bit elements: the top bits are flipped. */
AVX2 static inline __m256i larger_u64(__m256i x, __m256i y) {
    const __m256i top = _mm256_set1_epi64x(INT64_MIN);
    __m256i less = _mm256_cmpgt_epi64(_mm256_xor_si256(y, top), _mm256_xor_si256(x, top));
    return _mm256_blendv_epi8(x, y, less);
}

/* Of elements below 2^63. */
AVX2 static inline __m256i larger_i64(__m256i x, __m256i y) {
    return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(y, x));
}

AVX2 static inline __m256i smaller_i64(__m256i x, __m256i y) {
    return _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
}

/* Join the elements of a vector: halves, quarters and so on, down to one element. */
#define DEFINE_REDUCE(NAME, BITS, JOIN)                                                            \
    AVX2 static inline uint64_t NAME##BITS(__m256i v) {                                            \
        v = JOIN(v, _mm256_permute4x64_epi64(v, 0x4e));                                            \
        v = JOIN(v, _mm256_bsrli_epi128(v, 8));                                                    \
        v = BITS <= 32 ? JOIN(v, _mm256_bsrli_epi128(v, 4)) : v;                                   \
        v = BITS <= 16 ? JOIN(v, _mm256_bsrli_epi128(v, 2)) : v;                                   \
        v = BITS <= 8 ? JOIN(v, _mm256_bsrli_epi128(v, 1)) : v;                                    \
        return (uint##BITS##_t)_mm256_extract_epi64(v, 0);                                         \
    }

DEFINE_REDUCE(largest, 8, _mm256_max_epu8)
DEFINE_REDUCE(largest, 16, _mm256_max_epu16)
DEFINE_REDUCE(largest, 32, _mm256_max_epu32)
DEFINE_REDUCE(largest, 64, larger_u64)
DEFINE_REDUCE(smallest, 8, _mm256_min_epu8)
DEFINE_REDUCE(smallest, 16, _mm256_min_epu16)
DEFINE_REDUCE(smallest, 32, _mm256_min_epu32)
DEFINE_REDUCE(smallest, 64, smaller_i64)
DEFINE_REDUCE(total, 16, _mm256_add_epi16)
DEFINE_REDUCE(total, 32, _mm256_add_epi32)
DEFINE_REDUCE(total, 64, _mm256_add_epi64)

/* The total of a run may pass 8 bits, that of an element may not. */
AVX2 static inline uint64_t total8(__m256i v) {
    return total64(_mm256_sad_epu8(v, _mm256_setzero_si256()));
}

/* The scan of elements of 8, 16 or 32 bits. sign(p, x) is the magnitude with the sign of x, and 0
 * for either zero: a number's place on the line of all numbers. Counters hold as many rounds as a
 * run has. */
#define DEFINE_SCAN(BITS)                                                                          \
    AVX2 static void scan##BITS(const void *a, const void *b, size_t n, struct gcmp_scan *out) {   \
        const unsigned char *at_a = a, *at_b = b;                                                  \
        const __m256i mask = _mm256_set1_epi##BITS((int##BITS##_t)INT##BITS##_MAX);                \
        __m256i max_a = _mm256_setzero_si256(), max_b = max_a, equal = max_a, ulps = max_a;        \
        __m256i min_a = mask, min_b = mask;                                                        \
        for (size_t i = 0; i < n * (BITS / 8); i += 32) {                                          \
            __m256i x = load(at_a + i), y = load(at_b + i);                                        \
            __m256i p = _mm256_and_si256(x, mask), q = _mm256_and_si256(y, mask);                  \
            max_a = _mm256_max_epu##BITS(max_a, p);                                                \
            max_b = _mm256_max_epu##BITS(max_b, q);                                                \
            min_a = _mm256_min_epu##BITS(min_a, p);                                                \
            min_b = _mm256_min_epu##BITS(min_b, q);                                                \
            equal = _mm256_sub_epi##BITS(equal, _mm256_cmpeq_epi##BITS(x, y));                     \
            p = _mm256_sign_epi##BITS(p, x);                                                       \
            q = _mm256_sign_epi##BITS(q, y);                                                       \
            ulps = _mm256_max_epu##BITS(ulps, _mm256_sub_epi##BITS(_mm256_max_epi##BITS(p, q),     \
                                                                   _mm256_min_epi##BITS(p, q)));   \
        }                                                                                          \
        out->max_a = largest##BITS(max_a);                                                         \
        out->max_b = largest##BITS(max_b);                                                         \
        out->min_a = smallest##BITS(min_a);                                                        \
        out->min_b = smallest##BITS(min_b);                                                        \
        out->equal = total##BITS(equal);                                                           \
        out->max_ulp = largest##BITS(ulps);                                                        \
    }                                                                                              \
    AVX2 static void extent##BITS(const void *a, size_t n, struct gcmp_extent *out) {              \
        const unsigned char *at_a = a;                                                             \
        const __m256i mask = _mm256_set1_epi##BITS((int##BITS##_t)INT##BITS##_MAX);                \
        __m256i max = _mm256_setzero_si256(), min = mask;                                          \
        for (size_t i = 0; i < n * (BITS / 8); i += 32) {                                          \
            __m256i p = _mm256_and_si256(load(at_a + i), mask);                                    \
            max = _mm256_max_epu##BITS(max, p);                                                    \
            min = _mm256_min_epu##BITS(min, p);                                                    \
        }                                                                                          \
        out->max = largest##BITS(max);                                                             \
        out->min = smallest##BITS(min);                                                            \
    }                                                                                              \
    AVX2 static uint64_t zeros##BITS(const void *a, size_t n) {                                    \
        const unsigned char *at_a = a;                                                             \
        const __m256i mask = _mm256_set1_epi##BITS((int##BITS##_t)INT##BITS##_MAX);                \
        __m256i zeros = _mm256_setzero_si256();                                                    \
        for (size_t i = 0; i < n * (BITS / 8); i += 32) {                                          \
            __m256i x = load(at_a + i);                                                            \
            x = _mm256_cmpeq_epi##BITS(_mm256_and_si256(x, mask), _mm256_setzero_si256());         \
            zeros = _mm256_sub_epi##BITS(zeros, x);                                                \
        }                                                                                          \
        return total##BITS(zeros);                                                                 \
    }

DEFINE_SCAN(8)
DEFINE_SCAN(16)
DEFINE_SCAN(32)

/* x with its sign's magnitude as a two's complement: (p ^ s) - s negates where s is all ones. */
AVX2 static __m256i place_i64(__m256i x, __m256i magnitude) {
    __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), x);
    return _mm256_sub_epi64(_mm256_xor_si256(magnitude, sign), sign);
}

AVX2 static __m256i distance_i64(__m256i p, __m256i q) {
    __m256i less = _mm256_cmpgt_epi64(q, p);
    __m256i difference = _mm256_sub_epi64(p, q);
    return _mm256_sub_epi64(_mm256_xor_si256(difference, less), less);
}

AVX2 static void scan64(const void *a, const void *b, size_t n, struct gcmp_scan *out) {
    const unsigned char *at_a = a, *at_b = b;
    const __m256i mask = _mm256_set1_epi64x(INT64_MAX);
    __m256i max_a = _mm256_setzero_si256(), max_b = max_a, equal = max_a, ulps = max_a;
    __m256i min_a = mask, min_b = mask;
    for (size_t i = 0; i < n * 8; i += 32) {
        __m256i x = load(at_a + i), y = load(at_b + i);
        __m256i p = _mm256_and_si256(x, mask), q = _mm256_and_si256(y, mask);
        max_a = larger_i64(max_a, p);
        max_b = larger_i64(max_b, q);
        min_a = smaller_i64(min_a, p);
        min_b = smaller_i64(min_b, q);
        equal = _mm256_sub_epi64(equal, _mm256_cmpeq_epi64(x, y));
        ulps = larger_u64(ulps, distance_i64(place_i64(x, p), place_i64(y, q)));
    }
    out->max_a = largest64(max_a);
    out->max_b = largest64(max_b);
    out->min_a = smallest64(min_a);
    out->min_b = smallest64(min_b);
    out->equal = total64(equal);
    out->max_ulp = largest64(ulps);
}

AVX2 static void extent64(const void *a, size_t n, struct gcmp_extent *out) {
    const unsigned char *at_a = a;
    const __m256i mask = _mm256_set1_epi64x(INT64_MAX);
    __m256i max = _mm256_setzero_si256(), min = mask;
    for (size_t i = 0; i < n * 8; i += 32) {
        __m256i p = _mm256_and_si256(load(at_a + i), mask);
        max = larger_i64(max, p);
        min = smaller_i64(min, p);
    }
    out->max = largest64(max);
    out->min = smallest64(min);
}

AVX2 static uint64_t zeros64(const void *a, size_t n) {
    const unsigned char *at_a = a;
    __m256i zeros = _mm256_setzero_si256();
    for (size_t i = 0; i < n * 8; i += 32) {
        __m256i x = load(at_a + i);
        x = _mm256_and_si256(x, _mm256_set1_epi64x(INT64_MAX));
        zeros = _mm256_sub_epi64(zeros, _mm256_cmpeq_epi64(x, _mm256_setzero_si256()));
    }
    return total64(zeros);
}

/* --- conversions --- */

AVX2 static void widen_float16(const void *in, size_t n, void *out) {
    const uint16_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        _mm256_store_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    }
}

AVX2 static void widen_bfloat16(const void *in, size_t n, void *out) {
    const uint16_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < n; i += 8) {
        __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(from + i)));
        _mm256_store_si256((__m256i *)(to + i), _mm256_slli_epi32(x, 16));
    }
}

/* e5m2 is the upper half of a float16. */
AVX2 static void widen_e5m2(const void *in, size_t n, void *out) {
    const uint8_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        __m128i x = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(from + i)));
        _mm256_store_ps(to + i, _mm256_cvtph_ps(_mm_slli_epi16(x, 8)));
    }
}

/* e4m3fn moved to a float16's place is 2^8 too small, its bias being 7 instead of 15. */
AVX2 static void widen_e4m3fn(const void *in, size_t n, void *out) {
    const uint8_t *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 8) {
        __m128i x = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(from + i)));
        __m128i magnitude = _mm_slli_epi16(_mm_and_si128(x, _mm_set1_epi16(0x7f)), 7);
        __m128i sign = _mm_slli_epi16(_mm_and_si128(x, _mm_set1_epi16(0x80)), 8);
        __m256 value = _mm256_cvtph_ps(_mm_or_si128(magnitude, sign));
        _mm256_store_ps(to + i, _mm256_mul_ps(value, _mm256_set1_ps(0x1p8f)));
    }
}

AVX2 static void float64_to_float32(const void *in, size_t n, void *out) {
    const double *from = in;
    float *to = out;
    for (size_t i = 0; i < n; i += 4) {
        _mm_store_ps(to + i, _mm256_cvtpd_ps(_mm256_loadu_pd(from + i)));
    }
}

AVX2 static void float64_to_odd32(const void *in, size_t n, void *out) {
    const double *from = in;
    float *to = out;
    const __m256d sign = _mm256_set1_pd(-0.0);
    for (size_t i = 0; i < n; i += 4) {
        __m256d x = _mm256_loadu_pd(from + i);
        __m128 nearest = _mm256_cvtpd_ps(x);
        __m256d back = _mm256_cvtps_pd(nearest);
        __m256d past =
            _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, x), _CMP_GT_OQ);
        __m256d inexact = _mm256_cmp_pd(back, x, _CMP_NEQ_UQ);
        /* Each mask of 64 bits to one of 32: the even halves. */
        __m128 past32 = _mm_shuffle_ps(_mm_castpd_ps(_mm256_castpd256_pd128(past)),
                                       _mm_castpd_ps(_mm256_extractf128_pd(past, 1)), 0x88);
        __m128 inexact32 = _mm_shuffle_ps(_mm_castpd_ps(_mm256_castpd256_pd128(inexact)),
                                          _mm_castpd_ps(_mm256_extractf128_pd(inexact, 1)), 0x88);
        __m128i bits = _mm_add_epi32(_mm_castps_si128(nearest), _mm_castps_si128(past32));
        bits = _mm_or_si128(bits, _mm_srli_epi32(_mm_castps_si128(inexact32), 31));
        _mm_store_si128((__m128i *)(to + i), bits);
    }
}

AVX2 static void narrow_float16(const void *in, size_t n, void *out) {
    const float *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i += 8) {
        __m128i x = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_store_si128((__m128i *)(to + i), x);
    }
}

/* Drop `shift` bits of each unsigned element, to nearest, ties to even: add just under a half, and
 * one more where the last kept bit is set. */
AVX2 static __m256i shift_round(__m256i x, int shift) {
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(x, shift), _mm256_set1_epi32(1));
    __m256i half = _mm256_set1_epi32((1 << (shift - 1)) - 1);
    return _mm256_srli_epi32(_mm256_add_epi32(x, _mm256_add_epi32(half, last)), shift);
}

AVX2 static void narrow_bfloat16(const void *in, size_t n, void *out) {
    const uint32_t *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i += 16) {
        __m256i low = shift_round(_mm256_loadu_si256((const __m256i *)(from + i)), 16);
        __m256i high = shift_round(_mm256_loadu_si256((const __m256i *)(from + i + 8)), 16);
        __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
        _mm256_store_si256((__m256i *)(to + i), both);
    }
}

/* A float8 type as seen from float32. */
struct float8 {
    int shift;    /* 23 less its bits of fraction */
    int rebias;   /* what to take from the exponent and fraction after the shift */
    float normal; /* its smallest normal number */
    float magic;  /* adding it rounds to the step of the subnormal numbers */
    int special;  /* least magnitude that is not finite */
};

static const struct float8 e4m3fn = {20, (127 - 7) << 3, 0x1p-6f, 0x1p14f, 0x7f};
static const struct float8 e5m2 = {21, (127 - 15) << 2, 0x1p-14f, 0x1p7f, 0x7c};

/* Round eight elements; each result is in the low byte of 32 bits. */
AVX2 static __m256i round_float8(__m256i x, const struct float8 *type) {
    const __m256i mask = _mm256_set1_epi32(INT32_MAX);
    __m256i magnitude = _mm256_and_si256(x, mask);
    __m256i normal =
        _mm256_sub_epi32(shift_round(magnitude, type->shift), _mm256_set1_epi32(type->rebias));
    normal = _mm256_min_epi32(normal, _mm256_set1_epi32(type->special));
    __m256 magic = _mm256_set1_ps(type->magic);
    __m256i tiny = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(magnitude), magic));
    tiny = _mm256_sub_epi32(tiny, _mm256_castps_si256(magic));
    __m256 is_tiny =
        _mm256_cmp_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(type->normal), _CMP_LT_OQ);
    __m256i rounded = _mm256_blendv_epi8(normal, tiny, _mm256_castps_si256(is_tiny));
    __m256i sign = _mm256_srli_epi32(_mm256_andnot_si256(mask, x), 24);
    return _mm256_or_si256(rounded, sign);
}

AVX2 static void narrow_float8(const void *in, size_t n, void *out, const struct float8 *type) {
    const uint32_t *from = in;
    uint8_t *to = out;
    const __m256i low_bytes =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    for (size_t i = 0; i < n; i += 8) {
        __m256i x = round_float8(_mm256_loadu_si256((const __m256i *)(from + i)), type);
        x = _mm256_shuffle_epi8(x, low_bytes);
        uint32_t halves[2] = {(uint32_t)_mm256_extract_epi32(x, 0),
                              (uint32_t)_mm256_extract_epi32(x, 4)};
        memcpy(to + i, halves, sizeof halves);
    }
}

AVX2 static void narrow_e4m3fn(const void *in, size_t n, void *out) {
    narrow_float8(in, n, out, &e4m3fn);
}

AVX2 static void narrow_e5m2(const void *in, size_t n, void *out) {
    narrow_float8(in, n, out, &e5m2);
}

/* --- sums --- */

/* The sums of four lanes. */
struct sums4 {
    __m256d d2, ad, a2, b2, max_d;
};

AVX2 static inline __m256d load_float32(const float *at) {
    return _mm256_cvtps_pd(_mm_loadu_ps(at));
}

AVX2 static inline __m256d load_float64(const double *at) {
    return _mm256_loadu_pd(at);
}

AVX2 static inline void add4(struct sums4 *sums, __m256d a, __m256d b) {
    __m256d d = _mm256_sub_pd(b, a);
    sums->d2 = _mm256_fmadd_pd(d, d, sums->d2);
    sums->ad = _mm256_fmadd_pd(a, d, sums->ad);
    sums->a2 = _mm256_fmadd_pd(a, a, sums->a2);
    sums->b2 = _mm256_fmadd_pd(b, b, sums->b2);
    sums->max_d = _mm256_max_pd(sums->max_d, _mm256_andnot_pd(_mm256_set1_pd(-0.0), d));
}

AVX2 static inline struct sums4 load_sums4(const struct gcmp_lane_sums *sums, size_t lane) {
    struct sums4 out = {_mm256_loadu_pd(sums->d2 + lane), _mm256_loadu_pd(sums->ad + lane),
                        _mm256_loadu_pd(sums->a2 + lane), _mm256_loadu_pd(sums->b2 + lane),
                        _mm256_setzero_pd()};
    return out;
}

AVX2 static inline void store_sums4(struct gcmp_lane_sums *sums, size_t lane,
                                    const struct sums4 *in, double *max_d) {
    _mm256_storeu_pd(sums->d2 + lane, in->d2);
    _mm256_storeu_pd(sums->ad + lane, in->ad);
    _mm256_storeu_pd(sums->a2 + lane, in->a2);
    _mm256_storeu_pd(sums->b2 + lane, in->b2);
    _mm256_storeu_pd(max_d + lane, in->max_d);
}

AVX2 static double largest_lane(const double max_d[GRADCMP_LANES]) {
    __m256d best = _mm256_loadu_pd(max_d);
    for (size_t j = 4; j < GRADCMP_LANES; j += 4) {
        best = _mm256_max_pd(best, _mm256_loadu_pd(max_d + j));
    }
    __m128d half = _mm_max_pd(_mm256_castpd256_pd128(best), _mm256_extractf128_pd(best, 1));
    return _mm_cvtsd_f64(_mm_max_sd(half, _mm_unpackhi_pd(half, half)));
}

/* Eight lanes at a time: their eight sums and two maxima stay in registers over the run, and eight
 * chains of multiply-adds are what two units of four steps' latency need. */
#define DEFINE_SUMS(NAME, TYPE_A, LOAD_A, TYPE_B, LOAD_B)                                          \
    AVX2 static double NAME(const void *a, const void *b, size_t n, struct gcmp_lane_sums *sums,   \
                            double max_d[GRADCMP_LANES]) {                                         \
        const TYPE_A *at_a = a;                                                                    \
        const TYPE_B *at_b = b;                                                                    \
        for (size_t lane = 0; lane < GRADCMP_LANES; lane += 8) {                                   \
            struct sums4 low = load_sums4(sums, lane), high = load_sums4(sums, lane + 4);          \
            for (size_t i = lane; i < n; i += GRADCMP_LANES) {                                     \
                add4(&low, LOAD_A(at_a + i), LOAD_B(at_b + i));                                    \
                add4(&high, LOAD_A(at_a + i + 4), LOAD_B(at_b + i + 4));                           \
            }                                                                                      \
            store_sums4(sums, lane, &low, max_d);                                                  \
            store_sums4(sums, lane + 4, &high, max_d);                                             \
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

const struct gcmp_kernel gcmp_kernel_avx2 = {"avx2", tally};

bool gcmp_cpu_has_avx2(void) {
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

#endif
