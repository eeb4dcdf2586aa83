/* Two stretches of elements, pattern by pattern: how many differ, where the first is, and what the
 * differences look like. */
#ifndef GCMP_BITS_DIFFERENCE_H
#define GCMP_BITS_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "gradcmp/sys/parameter.h"

enum { GCMP_BITS_MAX_ELEM_BYTES = 16 };

/* Zeroed memory with ndim, shape and elem_bytes set is the difference of nothing. Stretches may
 * come in any order; sums of parts are the same whichever way they were cut. There is one for each
 * tensor of a checkpoint: what is made in an arena ends behind its ndim axes, and is never
 * copied. */
struct gcmp_bits_difference {
    uint64_t elems;     /* compared */
    uint64_t different; /* elements */
    uint64_t bits;      /* that differ, in all of them */
    uint64_t first;     /* row-major index of the first */
    unsigned char a[GCMP_BITS_MAX_ELEM_BYTES], b[GCMP_BITS_MAX_ELEM_BYTES]; /* the first */
    const uint64_t *shape;
    unsigned ndim, elem_bytes;
    struct {
        uint64_t low, high;
    } box[GRADCMP_MAX_NDIM]; /* around all, inclusive */
};

/* Make the difference of nothing; shape is borrowed. NULL without memory. */
struct gcmp_bits_difference *gcmp_bits_difference_make(struct gcmp_arena *arena, unsigned ndim,
                                                       const uint64_t *shape, unsigned elem_bytes);

/* Compare elements [first, first + elems) of a row-major tensor. */
void gcmp_bits_compare(struct gcmp_bits_difference *difference, uint64_t first, size_t elems,
                       const void *a, const void *b);

/* Add what another part of the same tensor's elements gave. */
void gcmp_bits_merge(struct gcmp_bits_difference *into, const struct gcmp_bits_difference *part);

/* Distance of two elements in units in the last place: of floating types in the order of their
 * values, where -0 and 0 are one apart from nothing (0), of integers their difference. False where
 * there is none: NaN, complex numbers, or one that does not fit 64 bits. */
bool gcmp_bits_ulp(enum gradcmp_dtype dtype, const unsigned char *a, const unsigned char *b,
                   uint64_t *ulp);

/* Write "0x3b534cb4": the element as an unsigned number. `out` has room for 2 + 2 * 16 + 1. */
void gcmp_bits_hex(const unsigned char *element, unsigned elem_bytes, char *out);

/* What the differences look like: "one flipped bit", "one element", "one shard" (all of them lie in
 * one slab of one side, which has several), "all" (every element), or "scattered". */
const char *gcmp_bits_look(const struct gcmp_bits_difference *difference,
                           const struct gradcmp_parameter *a, const struct gradcmp_parameter *b);

#endif
