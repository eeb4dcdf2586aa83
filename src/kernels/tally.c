/* The tree of blocks: folding subtrees, and tallying a whole array on one thread. */
#include "kernels/kernels.h"

#include "base/dtype.h"
#include "kernels/lanes.h"

/* 2^64 elements have fewer than 2^51 blocks. */
enum { MAX_LEVELS = 52 };

void gcmp_tally_fold(struct gradcmp_tally *left, const struct gradcmp_tally *right) {
    gcmp_lane_fold(left, right);
}

void gcmp_tally_shift(struct gradcmp_tally *tally, uint64_t elems) {
    if (tally->max_d > 0) {
        tally->max_d_index += elems;
    }
}

/* A binary counter of subtrees: pending[l] is the root over 2^l blocks that waits for its right
 * sibling, where bit l of the number of blocks so far is set. */
static void add_block(struct gradcmp_tally pending[MAX_LEVELS], uint64_t block_index,
                      struct gradcmp_tally *tally) {
    unsigned level = 0;
    for (; (block_index >> level & 1) != 0; level++) {
        gcmp_tally_fold(&pending[level], tally);
        *tally = pending[level];
    }
    pending[level] = *tally;
}

/* An odd last subtree moves up unchanged until it is a right sibling. */
static void fold_pending(struct gradcmp_tally pending[MAX_LEVELS], uint64_t block_count,
                         struct gradcmp_tally *out) {
    bool have = false;
    for (unsigned level = 0; level < MAX_LEVELS; level++) {
        if ((block_count >> level & 1) != 0) {
            if (have) {
                gcmp_tally_fold(&pending[level], out);
            }
            *out = pending[level];
            have = true;
        }
    }
}

void gcmp_tally_span(const struct gcmp_kernel *kernel, const void *a, enum gradcmp_dtype dtype_a,
                     const void *b, enum gradcmp_dtype dtype_b, uint64_t elems,
                     struct gradcmp_tally *out) {
    struct gradcmp_tally pending[MAX_LEVELS], tally;
    const unsigned char *at_a = a, *at_b = b;
    uint64_t block_count = 0;
    memset(out, 0, sizeof *out);
    for (uint64_t first = 0; first < elems; first += GRADCMP_BLOCK_ELEMS, block_count++) {
        uint64_t left = elems - first;
        size_t count = left < GRADCMP_BLOCK_ELEMS ? (size_t)left : GRADCMP_BLOCK_ELEMS;
        kernel->tally(at_a, dtype_a, at_b, dtype_b, count, &tally);
        gcmp_tally_shift(&tally, first);
        add_block(pending, block_count, &tally);
        at_a += count * gcmp_dtype_bytes(dtype_a);
        at_b += count * gcmp_dtype_bytes(dtype_b);
    }
    fold_pending(pending, block_count, out);
}

void gcmp_tally_join(const struct gradcmp_tally *blocks, uint64_t elems,
                     struct gradcmp_tally *out) {
    struct gradcmp_tally pending[MAX_LEVELS];
    uint64_t block_count = 0;
    memset(out, 0, sizeof *out);
    for (uint64_t first = 0; first < elems; block_count++) {
        struct gradcmp_tally tally = blocks[block_count];
        gcmp_tally_shift(&tally, first);
        add_block(pending, block_count, &tally);
        uint64_t left = elems - first;
        first += left < GRADCMP_BLOCK_ELEMS ? left : GRADCMP_BLOCK_ELEMS;
    }
    fold_pending(pending, block_count, out);
}
