/* The scalar kernel, and the part of it that the vector kernels use for what they leave out. */
#ifndef GCMP_KERNELS_SCALAR_H
#define GCMP_KERNELS_SCALAR_H

#include <stddef.h>

#include "kernels/lanes.h"

/* Return the bits of element `index` of an array of elements of 1, 2, 4 or 8 bytes, native byte
 * order, any alignment. */
static inline uint64_t gcmp_load_bits(const void *elems, unsigned elem_bytes, size_t index) {
    const unsigned char *at = (const unsigned char *)elems + index * elem_bytes;
    uint64_t bits64;
    uint32_t bits32;
    uint16_t bits16;
    switch (elem_bytes) {
    case 1:
        return *at;
    case 2:
        memcpy(&bits16, at, sizeof bits16);
        return bits16;
    case 4:
        memcpy(&bits32, at, sizeof bits32);
        return bits32;
    default:
        memcpy(&bits64, at, sizeof bits64);
        return bits64;
    }
}

/* Both sides of a block. */
struct gcmp_block {
    const void *a, *b;
    enum gradcmp_dtype dtype_a, dtype_b;
    size_t elems;
};

/* Fold the lanes j + 16, 8, 4, 2, 1 into *out; the lanes are used up. */
void gcmp_scalar_fold_lanes(struct gradcmp_tally lanes[GRADCMP_LANES], struct gradcmp_tally *out);

void gcmp_scalar_tally(const void *a, enum gradcmp_dtype dtype_a, const void *b,
                       enum gradcmp_dtype dtype_b, size_t elems, struct gradcmp_tally *out);

#endif
