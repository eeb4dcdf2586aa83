/* Which parameter each number of an optimizer's state means. torch's optimizers number their
 * parameters in the order of their groups; a file that holds the model's weights as well tells the
 * names. */
#ifndef GCMP_FORMATS_OPTIMIZER_IDS_H
#define GCMP_FORMATS_OPTIMIZER_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a refusal of numbers can advise. */
#define GCMP_IDS_WAY_OUT                                                                           \
    "; save with names (torch.distributed.checkpoint.state_dict, or an optimizer made "            \
    "from named_parameters())"

/* A weight that a number may mean. */
struct gcmp_ids_weight {
    const char *name;
    const uint64_t *shape; /* ndim entries */
    unsigned ndim;
    /* Weights of one sequence stand in the order of the model; how sequences alternate is not
     * known. */
    uint64_t sequence;
};

/* One number: the k-th parameter of the optimizer, counted over its groups. */
struct gcmp_ids_entry {
    const uint64_t *shape; /* of its state; NULL: it has none (no gradient so far) */
    unsigned ndim;
    uint32_t group;
    size_t weight; /* out: index into the weights; SIZE_MAX: it has no state, and needs no name */
};

struct gcmp_ids {
    const struct gcmp_ids_weight *weights;
    size_t weight_count;
    bool is_ordered; /* the weights of a sequence are in the order of the model's state dict */
    struct gcmp_ids_entry *entries; /* in the order of the groups, and within each in its order */
    size_t entry_count;
    const size_t *numbers; /* of the entries, for messages; NULL: 0, 1, 2, ... */
};

/* Find the weight of every number that has a state. What is taken for granted is that each group
 * holds its parameters in the order of the model. One solution must be possible, so (of weights in
 * one sequence):
 *   - as many numbers in one group as weights are those weights in order, where every shape fits;
 *   - fewer numbers in one group are a part of the weights in order, where only one part fits;
 *   - with several groups, the weights of one shape are those of the one group that has this shape,
 *     where they are as many;
 *   - without an order, only a shape that one weight and one number have tells.
 * With several sequences, the numbers of a shape are its weights in order, where they are as many
 * and all in one sequence, and no sequence is run against. Otherwise UNSUPPORTED, and the message
 * says what is ambiguous. Errors: MEMORY besides. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ids_solve(struct gcmp_ids *ids,
                                                    struct gradcmp_error *error);

/* True where every number that has a state has the shape of some weight: the numbers are of these
 * weights, even where it is not told which is which. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ids_fit(const struct gcmp_ids *ids, bool *fit,
                                                  struct gradcmp_error *error);

#endif
