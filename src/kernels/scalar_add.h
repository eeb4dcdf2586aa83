/* The scalar loop, compiled into each file that includes this: once for any processor (scalar.c),
 * and once in each instruction set, where a fused multiply-add is an instruction instead of a call.
 * Define SCALAR_TARGET first: the function attribute of the instruction set, or nothing. */
#ifndef GCMP_KERNELS_SCALAR_ADD_H
#define GCMP_KERNELS_SCALAR_ADD_H

#include "kernels/scalar.h"

/* The loop itself. It is compiled once for each pair of types, so that what it knows of them is
 * constant. */
static inline __attribute__((always_inline)) void
add_pair(struct gradcmp_tally lanes[GRADCMP_LANES], const struct gcmp_block *block, size_t first,
         size_t end, struct gcmp_lane_pair pair) {
    unsigned bytes_a = (1 + pair.a.exponent_bits + pair.a.fraction_bits) / 8;
    unsigned bytes_b = (1 + pair.b.exponent_bits + pair.b.fraction_bits) / 8;
    for (size_t i = first; i < end; i++) {
        gcmp_lane_add(&lanes[i % GRADCMP_LANES], pair, gcmp_load_bits(block->a, bytes_a, i),
                      gcmp_load_bits(block->b, bytes_b, i), i);
    }
}

#define CASE_B(A, B)                                                                               \
    case B:                                                                                        \
        add_pair(lanes, block, first, end, gcmp_lane_pair(A, B));                                  \
        break;

#define DEFINE_ADD(NAME, A)                                                                        \
    SCALAR_TARGET static void NAME(struct gradcmp_tally lanes[GRADCMP_LANES],                      \
                                   const struct gcmp_block *block, size_t first, size_t end) {     \
        switch (block->dtype_b) {                                                                  \
            CASE_B(A, GRADCMP_DTYPE_FLOAT64)                                                       \
            CASE_B(A, GRADCMP_DTYPE_FLOAT32)                                                       \
            CASE_B(A, GRADCMP_DTYPE_FLOAT16)                                                       \
            CASE_B(A, GRADCMP_DTYPE_BFLOAT16)                                                      \
            CASE_B(A, GRADCMP_DTYPE_FLOAT8_E4M3FN)                                                 \
            CASE_B(A, GRADCMP_DTYPE_FLOAT8_E5M2)                                                   \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    }

DEFINE_ADD(add_float64, GRADCMP_DTYPE_FLOAT64)
DEFINE_ADD(add_float32, GRADCMP_DTYPE_FLOAT32)
DEFINE_ADD(add_float16, GRADCMP_DTYPE_FLOAT16)
DEFINE_ADD(add_bfloat16, GRADCMP_DTYPE_BFLOAT16)
DEFINE_ADD(add_e4m3fn, GRADCMP_DTYPE_FLOAT8_E4M3FN)
DEFINE_ADD(add_e5m2, GRADCMP_DTYPE_FLOAT8_E5M2)

/* Add elements [first, end) of a block to its lanes; first is a multiple of GRADCMP_LANES. */
static void scalar_add(struct gradcmp_tally lanes[GRADCMP_LANES], const struct gcmp_block *block,
                       size_t first, size_t end) {
    static void (*const add[])(struct gradcmp_tally[GRADCMP_LANES], const struct gcmp_block *,
                               size_t, size_t) = {
        [GRADCMP_DTYPE_FLOAT64] = add_float64,      [GRADCMP_DTYPE_FLOAT32] = add_float32,
        [GRADCMP_DTYPE_FLOAT16] = add_float16,      [GRADCMP_DTYPE_BFLOAT16] = add_bfloat16,
        [GRADCMP_DTYPE_FLOAT8_E4M3FN] = add_e4m3fn, [GRADCMP_DTYPE_FLOAT8_E5M2] = add_e5m2};
    add[block->dtype_a](lanes, block, first, end);
}

#endif
