/* Checked size arithmetic: every product or sum of sizes that come from a file goes through here.
 */
#ifndef GCMP_BASE_CHECKED_H
#define GCMP_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Store a * b (a + b) in *out and return true, or return false on overflow. */
static inline bool gcmp_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool gcmp_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool gcmp_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool gcmp_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/* A count of what cannot be counted further stays at the greatest. */
static inline uint64_t gcmp_add_saturated(uint64_t a, uint64_t b) {
    uint64_t sum;
    return gcmp_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

/* Store the product of ndim extents in *out; an empty product is 1. False on overflow past 2^63-1.
 */
static inline bool gcmp_product(const uint64_t *extents, unsigned ndim, uint64_t *out) {
    uint64_t product = 1;
    bool zero = false;
    for (unsigned d = 0; d < ndim; d++) {
        if (extents[d] == 0) {
            zero = true;
        } else if (!gcmp_mul_u64(product, extents[d], &product) || product > INT64_MAX) {
            return false;
        }
    }
    *out = zero ? 0 : product;
    return true;
}

/* An order of shapes, for sorting: by the number of axes, then by extents from the first on. */
static inline int gcmp_order_shapes(const uint64_t *a, unsigned ndim_a, const uint64_t *b,
                                    unsigned ndim_b) {
    if (ndim_a != ndim_b) {
        return ndim_a < ndim_b ? -1 : 1;
    }
    for (unsigned d = 0; d < ndim_a; d++) {
        if (a[d] != b[d]) {
            return a[d] < b[d] ? -1 : 1;
        }
    }
    return 0;
}

/* True for two shapes of as many axes with the same extents. */
static inline bool gcmp_dims_equal(unsigned ndim_a, const uint64_t *a, unsigned ndim_b,
                                   const uint64_t *b) {
    return gcmp_order_shapes(a, ndim_a, b, ndim_b) == 0;
}

#endif
