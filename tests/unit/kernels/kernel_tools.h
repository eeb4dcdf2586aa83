/* What the kernel tests share: arrays of chosen kinds of values, and memory between guard pages. */
#ifndef GCMP_KERNEL_TOOLS_H
#define GCMP_KERNEL_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "kernels/kernels.h"
#include "kernels/scalar.h"

static const enum gradcmp_dtype float_types[] = {
    GRADCMP_DTYPE_FLOAT64,  GRADCMP_DTYPE_FLOAT32,       GRADCMP_DTYPE_FLOAT16,
    GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FLOAT8_E4M3FN, GRADCMP_DTYPE_FLOAT8_E5M2};
enum { FLOAT_TYPES = sizeof float_types / sizeof float_types[0] };

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline void store_bits(void *elems, unsigned elem_bytes, size_t index, uint64_t bits) {
    unsigned char *at = (unsigned char *)elems + index * elem_bytes;
    uint32_t bits32 = (uint32_t)bits;
    uint16_t bits16 = (uint16_t)bits;
    uint8_t bits8 = (uint8_t)bits;
    switch (elem_bytes) {
    case 1:
        memcpy(at, &bits8, 1);
        break;
    case 2:
        memcpy(at, &bits16, 2);
        break;
    case 4:
        memcpy(at, &bits32, 4);
        break;
    default:
        memcpy(at, &bits, 8);
        break;
    }
}

/* Kinds of values. */
enum fill {
    FILL_ANY_BITS,  /* every pattern, NaNs and infinities of all payloads among them */
    FILL_FINITE,    /* every finite pattern, subnormals as often as others */
    FILL_GRADIENTS, /* normal-looking values around 1e-3, some zeros of either sign */
    FILL_SPRINKLED, /* gradients, and one special value in 97 */
    FILL_EXTREMES,  /* largest, smallest, subnormal, zero, of both signs */
    FILL_TIES,      /* half way between two numbers of some type, or one step beside it */
    FILL_KINDS
};

static inline uint64_t random_gradient(uint64_t *state) {
    uint64_t r = next_random(state);
    if (r % 31 == 0) {
        return r << 63; /* +0 or -0 */
    }
    double value = (double)(int64_t)r * 0x1p-63 * gcmp_lane_power(-(int)(r % 13) - 4);
    return gcmp_lane_to_bits(value);
}

static inline uint64_t random_tie(struct gcmp_float_format format, uint64_t *state) {
    struct gcmp_float_format target =
        gcmp_float_format(float_types[1 + next_random(state) % (FLOAT_TYPES - 1)]);
    uint64_t low = next_random(state) % (gcmp_lane_special(target) - 1);
    double x = gcmp_lane_from_bits(gcmp_lane_widen(target, low));
    double y = gcmp_lane_from_bits(gcmp_lane_widen(target, low + 1));
    uint64_t magnitude = gcmp_lane_narrow(format, gcmp_lane_to_bits(x + (y - x) / 2));
    uint64_t r = next_random(state);
    magnitude += r % 3;
    magnitude -= magnitude > 0;
    return magnitude < gcmp_lane_special(format)
               ? magnitude | (r >> 63) << (format.exponent_bits + format.fraction_bits)
               : low & 1;
}

static inline uint64_t random_bits(enum fill fill, struct gcmp_float_format format,
                                   uint64_t *state) {
    uint64_t r = next_random(state);
    uint64_t sign = (uint64_t)1 << (format.exponent_bits + format.fraction_bits);
    uint64_t special = gcmp_lane_special(format);
    switch (fill) {
    case FILL_ANY_BITS:
        return r & (2 * sign - 1);
    case FILL_FINITE:
        return (r & sign) | (next_random(state) % special);
    case FILL_EXTREMES: {
        uint64_t choice[] = {0, 1, special - 1, special - 2, (uint64_t)1 << format.fraction_bits};
        return (r & sign) | choice[next_random(state) % 5];
    }
    case FILL_TIES:
        return random_tie(format, state);
    case FILL_SPRINKLED:
        if (r % 97 == 0) {
            return random_bits(FILL_ANY_BITS, format, state) | special;
        }
        break;
    default:
        break;
    }
    return gcmp_lane_narrow(format, random_gradient(state));
}

static inline void fill_elems(void *elems, enum gradcmp_dtype dtype, size_t count, enum fill fill,
                              uint64_t seed) {
    struct gcmp_float_format format = gcmp_float_format(dtype);
    for (size_t i = 0; i < count; i++) {
        store_bits(elems, gcmp_dtype_bytes(dtype), i, random_bits(fill, format, &seed));
    }
}

/* Memory of which both neighbours fault when they are touched. */
struct guarded {
    unsigned char *map;
    size_t map_bytes;
    unsigned char *first, *end;
};

static inline struct guarded guarded_make(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inner = (bytes + page - 1) / page * page;
    struct guarded guarded;
    guarded.map_bytes = inner + 2 * page;
    guarded.map = mmap(NULL, guarded.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(guarded.map != MAP_FAILED);
    guarded.first = guarded.map + page;
    guarded.end = guarded.first + inner;
    assert_int_equal(mprotect(guarded.first, inner, PROT_READ | PROT_WRITE), 0);
    return guarded;
}

static inline void guarded_free(struct guarded *guarded) {
    munmap(guarded->map, guarded->map_bytes);
}

#define assert_same_tally(x, y)                                                                    \
    do {                                                                                           \
        if (memcmp((x), (y), sizeof(struct gradcmp_tally)) != 0) {                                 \
            print_tally(x);                                                                        \
            print_tally(y);                                                                        \
            fail_msg("the tallies differ");                                                        \
        }                                                                                          \
    } while (0)

static inline void print_tally(const struct gradcmp_tally *t) {
    print_message("d2 %a ad %a a2 %a b2 %a max_d %a at %llu max %a %a elems %llu zeros %llu %llu "
                  "nonfinite %llu %llu %llu equal %llu ulp %llu\n",
                  t->d2, t->ad, t->a2, t->b2, t->max_d, (unsigned long long)t->max_d_index,
                  t->max_a, t->max_b, (unsigned long long)t->elems, (unsigned long long)t->zeros_a,
                  (unsigned long long)t->zeros_b, (unsigned long long)t->nonfinite_a,
                  (unsigned long long)t->nonfinite_b, (unsigned long long)t->nonfinite_any,
                  (unsigned long long)t->equal_bits, (unsigned long long)t->max_ulp);
}

#endif
