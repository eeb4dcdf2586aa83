/* The scalar kernel: the specification that every other kernel reproduces bit for bit.
 *
 * How good the sums are. Let u = 2^-53 and gamma(k) = k u / (1 - k u). An element passes through at
 * most 512 fused multiply-adds of its lane (16384 / 32), 5 folds of lanes and ceil(log2(blocks))
 * folds of blocks, each of which rounds once; a fused multiply-add does not round the product. With
 * h = 517 + ceil(log2(blocks)), in the absence of overflow and underflow,
 *
 *     |A^ - A| <= gamma(h) A,    |B^ - B| <= gamma(h) B
 *
 * (all terms are positive). d^ = d (1 + e), |e| <= u, so that
 *
 *     |D^ - D| <= gamma(h + 2) D,    |P^ - P| <= gamma(h + 1) sum |a d|
 *
 * (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2: the constant of a
 * summation tree is the height of the tree). For 10^13 elements h is 547 and gamma(h) 6.1e-14: a
 * plain loop over them would be bounded by 1.1e-3 only. Squares of float32 and of narrower types
 * neither overflow nor vanish in binary64 (2^-298 to 2^256); those of float64 may, and the caller
 * reads such a parameter again, scaled. */
#include "kernels/scalar.h"

#define SCALAR_TARGET
#include "kernels/scalar_add.h"

void gcmp_scalar_fold_lanes(struct gradcmp_tally lanes[GRADCMP_LANES], struct gradcmp_tally *out) {
    for (size_t step = GRADCMP_LANES / 2; step > 0; step /= 2) {
        for (size_t j = 0; j < step; j++) {
            gcmp_lane_fold(&lanes[j], &lanes[j + step]);
        }
    }
    *out = lanes[0];
}

void gcmp_scalar_tally(const void *a, enum gradcmp_dtype dtype_a, const void *b,
                       enum gradcmp_dtype dtype_b, size_t elems, struct gradcmp_tally *out) {
    struct gradcmp_tally lanes[GRADCMP_LANES];
    struct gcmp_block block = {a, b, dtype_a, dtype_b, elems};
    memset(lanes, 0, sizeof lanes);
    scalar_add(lanes, &block, 0, elems);
    gcmp_scalar_fold_lanes(lanes, out);
}
