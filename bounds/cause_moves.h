/* Hypotheses as data: which box of the baseline would lie where in the candidate. */
#ifndef GCMP_BOUNDS_CAUSE_MOVES_H
#define GCMP_BOUNDS_CAUSE_MOVES_H

#include "bounds/cause.h"

/* A shape and the axis that a hypothesis is about. */
struct gcmp_axis {
    const uint64_t *shape;
    unsigned ndim, axis;
};

/* How the rows of a fused query, key and value weight are counted. */
struct gcmp_qkv {
    uint64_t heads, groups, head_dim; /* of the whole model */
    uint64_t ranks;                   /* blocks that are regrouped each by itself; groups divides */
    bool to_kinds; /* the baseline has [q.. k v] per group, the candidate all q, all k, all v; else
                      the other way round */
};

/* Each returns false where there is no memory; the moves live in `arena`, the shape is the axis'.
 */

/* Block j of the candidate, of `count` equal ones along the axis, is block map[j] of the baseline.
 */
GRADCMP_MUST_USE bool gcmp_moves_blocks(const struct gcmp_axis *axis, size_t count,
                                        const size_t *map, struct gcmp_arena *arena,
                                        struct gradcmp_moves *out);
/* In each of `count` equal blocks along the axis, row i of the candidate is row (i - shift) of the
 * baseline, around its end. 0 < shift < rows of a block. */
GRADCMP_MUST_USE bool gcmp_moves_roll(const struct gcmp_axis *axis, size_t count, uint64_t shift,
                                      struct gcmp_arena *arena, struct gradcmp_moves *out);
/* The rows of axis 0 regrouped. gcmp_qkv_fits() must hold. */
GRADCMP_MUST_USE bool gcmp_moves_qkv(const struct gcmp_axis *axis, const struct gcmp_qkv *qkv,
                                     struct gcmp_arena *arena, struct gradcmp_moves *out);
/* True where axis 0 has just the rows of such a weight or bias, and the ranks divide its groups. */
bool gcmp_qkv_fits(const struct gcmp_axis *axis, const struct gcmp_qkv *qkv);

/* A flat shift of a two-axis shape: in each block of `block_rows` rows (the last may be shorter),
 * flattened, element i of the candidate is element i + offset of the baseline, where there is one.
 * Two boxes a block tell it: part 0 holds what stays in its row, part 1 what comes from the next.
 * Fills the moves of both sides to one new shape; false where there is no memory; count 0 where the
 * part is empty. |offset| is under the elements of a block. */
struct gcmp_flat_shift {
    uint64_t block_rows;
    int64_t offset;
    unsigned part; /* 0 or 1 */
};
GRADCMP_MUST_USE bool gcmp_moves_flat(const uint64_t *shape, const struct gcmp_flat_shift *shift,
                                      struct gcmp_arena *arena, struct gradcmp_moves *a,
                                      struct gradcmp_moves *b);

/* Sample lines along the axis: a parameter of the axis' own shape but for the largest other axis,
 * of which `stripes` even parts are kept, so that at most about `budget` elements are left. The
 * extents along other axes are whole where they fit. *kept_elems tells how many are left. */
GRADCMP_MUST_USE bool gcmp_moves_sample(const struct gcmp_axis *axis, uint64_t budget,
                                        struct gcmp_arena *arena, struct gradcmp_moves *out);

#endif
