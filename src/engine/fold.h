/* Folds the roots of a job's units into one tally, in the fixed tree, in whatever order they come.
 */
#ifndef GCMP_ENGINE_FOLD_H
#define GCMP_ENGINE_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "gradcmp/sys/tally.h"

/* The root of a subtree that waits for its sibling. */
struct gcmp_fold_node {
    unsigned level;
    uint64_t index; /* of the subtrees of its level */
    struct gradcmp_tally tally;
};

/* Units are handed out in order, so that with t of them under way the finished ones are at most
 * t + 1 stretches, and t + 1 times twice the tree's height nodes wait at most. */
struct gcmp_fold {
    uint64_t unit_count;
    struct gcmp_fold_node *nodes; /* owned; zeroed at the start */
    size_t node_count, node_capacity;
};

/* Add the root of unit `index`. Once all units were added, *root receives the tally of the job.
 * False without memory. */
bool gcmp_fold_add(struct gcmp_fold *fold, uint64_t index, const struct gradcmp_tally *tally,
                   struct gradcmp_tally *root);
/* Add the root of a larger subtree in place of its units, such as a node that waits in another fold
 * of the same tree. */
bool gcmp_fold_add_node(struct gcmp_fold *fold, const struct gcmp_fold_node *subtree,
                        struct gradcmp_tally *root);
void gcmp_fold_free(struct gcmp_fold *fold);

#endif
