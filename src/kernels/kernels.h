/* The fused sums over one block of elements, in the fixed order that all instruction sets share.
 *
 * In a block, lane j of 32 adds the elements i = j (mod 32) in ascending order, each with one fused
 * multiply-add; lanes are folded j + 16, 8, 4, 2, 1. Blocks are folded level by level in adjacent
 * pairs (2i, 2i+1); an odd last one moves up unchanged. Missing elements add +0.0. Round to
 * nearest. */
#ifndef GCMP_KERNELS_KERNELS_H
#define GCMP_KERNELS_KERNELS_H

#include "base/error.h"
#include "gradcmp/sys/tally.h"

/* Tally at most GRADCMP_BLOCK_ELEMS elements of native byte order, aligned or not. b == a (the same
 * pointer and type) is the tally of one side alone. max_d_index counts from the block's start. */
typedef void (*gcmp_tally_fn)(const void *a, enum gradcmp_dtype dtype_a, const void *b,
                              enum gradcmp_dtype dtype_b, size_t elems, struct gradcmp_tally *out);

struct gcmp_kernel {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */
    gcmp_tally_fn tally;
};

/* The best kernel that this processor runs; GRADCMP_DISABLE_CPU (test builds) names those not to
 * use. */
const struct gcmp_kernel *gcmp_kernel_choose(void);
/* All kernels of this build that the processor runs, NULL-terminated, scalar first; for tests. */
const struct gcmp_kernel *const *gcmp_kernels(void);

/* Fold `right` into `left`, adjacent subtrees of the fixed order. right->max_d_index is already
 * counted from the same origin as left's. */
void gcmp_tally_fold(struct gradcmp_tally *left, const struct gradcmp_tally *right);

/* Count the index of the largest |d| from an origin that lies `elems` elements earlier. Where |d|
 * is 0 throughout, the index is 0 whatever the origin. */
void gcmp_tally_shift(struct gradcmp_tally *tally, uint64_t elems);

/* Fold the tallies of the blocks of `elems` elements, each with its index counted from its own
 * start, into that of all of them. */
void gcmp_tally_join(const struct gradcmp_tally *blocks, uint64_t elems, struct gradcmp_tally *out);

/* Tally `elems` elements from memory (any number): blocks and their tree, on the calling thread. */
void gcmp_tally_span(const struct gcmp_kernel *kernel, const void *a, enum gradcmp_dtype dtype_a,
                     const void *b, enum gradcmp_dtype dtype_b, uint64_t elems,
                     struct gradcmp_tally *out);

#endif
