/* The tree above the units. */
#include "engine/fold.h"

#include <stdlib.h>

#include "base/grow.h"
#include "kernels/kernels.h"

/* Find a waiting node; node_count where it is not there. */
static size_t find_node(const struct gcmp_fold *fold, unsigned level, uint64_t index) {
    size_t i = 0;
    while (i < fold->node_count &&
           (fold->nodes[i].level != level || fold->nodes[i].index != index)) {
        i++;
    }
    return i;
}

static bool keep_node(struct gcmp_fold *fold, const struct gcmp_fold_node *node) {
    if (!gcmp_grow(&fold->nodes, fold->node_count, &fold->node_capacity, sizeof *fold->nodes)) {
        return false;
    }
    fold->nodes[fold->node_count++] = *node;
    return true;
}

/* Fold a node with its waiting sibling, which is then free. */
static void fold_sibling(struct gcmp_fold *fold, size_t sibling, struct gcmp_fold_node *node) {
    struct gradcmp_tally *other = &fold->nodes[sibling].tally;
    if (node->index % 2 == 1) {
        gcmp_tally_fold(other, &node->tally);
        node->tally = *other;
    } else {
        gcmp_tally_fold(&node->tally, other);
    }
    fold->nodes[sibling] = fold->nodes[--fold->node_count];
}

/* Subtrees of the level above `count` of them. */
static uint64_t halve(uint64_t count) {
    return count / 2 + count % 2;
}

bool gcmp_fold_add_node(struct gcmp_fold *fold, const struct gcmp_fold_node *subtree,
                        struct gradcmp_tally *root) {
    struct gcmp_fold_node node = *subtree;
    uint64_t count = fold->unit_count;
    for (unsigned level = 0; level < node.level; level++) {
        count = halve(count);
    }
    for (; count > 1; count = halve(count)) {
        bool is_odd_last = node.index % 2 == 0 && node.index + 1 == count;
        if (!is_odd_last) {
            size_t sibling = find_node(fold, node.level, node.index ^ 1);
            if (sibling == fold->node_count) {
                return keep_node(fold, &node);
            }
            fold_sibling(fold, sibling, &node);
        }
        node.level++;
        node.index /= 2;
    }
    *root = node.tally;
    return true;
}

bool gcmp_fold_add(struct gcmp_fold *fold, uint64_t index, const struct gradcmp_tally *tally,
                   struct gradcmp_tally *root) {
    struct gcmp_fold_node node = {0, index, *tally};
    return gcmp_fold_add_node(fold, &node, root);
}

void gcmp_fold_free(struct gcmp_fold *fold) {
    free(fold->nodes);
    fold->nodes = NULL;
    fold->node_count = fold->node_capacity = 0;
}
