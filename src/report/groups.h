/* Layers in groups, for a matrix of candidates by depth that fits a page. */
#ifndef GCMP_REPORT_GROUPS_H
#define GCMP_REPORT_GROUPS_H

#include "gradcmp/sys/result.h"

enum { GCMP_MAX_LAYER_GROUPS = 14 };

/* Layers `high` down to `low`. */
struct gcmp_layer_group {
    int64_t high, low;
    char label[64]; /* "head", "layers.31..28" (counted from 0, as names do), "embedding"; where
                       names count otherwise "decoder.layers.1" for one layer, "l 31..28" */
};

/* Divide the layers of all candidates, from the loss down: the head, at most twelve groups of as
 * many layers each, the embeddings; return how many there are. Groups without a parameter are left
 * out. */
size_t gcmp_layer_groups(const struct gradcmp_report *report,
                         struct gcmp_layer_group out[GCMP_MAX_LAYER_GROUPS]);

/* What a candidate has in one group. */
struct gcmp_group_cell {
    size_t count, bad, unjudged;
    const struct gradcmp_parameter_report *worst; /* NULL: no parameter */
};
struct gcmp_group_cell gcmp_group_cell(const struct gradcmp_pair_report *pair,
                                       const struct gcmp_layer_group *group);

#endif
