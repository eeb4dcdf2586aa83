/* A slab as the engine walks it: a box of a parameter's elements, each at a computed element of a
 * record. Pure arithmetic; every number from a file is checked here. */
#ifndef GCMP_ENGINE_BOX_H
#define GCMP_ENGINE_BOX_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/records.h"
#include "gradcmp/sys/parameter.h"

/* Elements of a box are numbered in row-major order, which is their order in the parameter too.
 * Axes of extent 1 are dropped and axes that can be walked as one are joined. */
struct gcmp_box {
    unsigned ndim;
    uint64_t extent[GRADCMP_MAX_NDIM];
    uint64_t step[GRADCMP_MAX_NDIM];  /* elements of the parameter per index */
    int64_t stride[GRADCMP_MAX_NDIM]; /* elements of the record (of the source, if indirect) */
    uint64_t inner[GRADCMP_MAX_NDIM]; /* elements of the box per index */
    uint64_t first;                   /* parameter's row-major index of the box's first element */
    int64_t origin;                   /* record (source) element of the box's first element */
    uint64_t elems;
    bool contiguous; /* element r of the box lies at origin + r */
    bool indirect;   /* each source element has to be taken apart by the item's shape */
};

/* Describe the box of a slab without its source: extent, step, first and elems. False when it does
 * not lie inside of the parameter. */
bool gcmp_box_place(const struct gradcmp_parameter *parameter, const struct gradcmp_slab *slab,
                    struct gcmp_box *box);

/* Complete a placed box by where its elements lie. False when it reaches outside of the record. */
bool gcmp_box_bind(const struct gradcmp_parameter *parameter, const struct gradcmp_slab *slab,
                   const struct gcmp_record *record, struct gcmp_box *box);

/* Parameter's row-major index of the box's last element. The box is placed and not empty. */
uint64_t gcmp_box_last(const struct gcmp_box *box);

/* Count the box's elements that come before element `index` of the parameter. */
uint64_t gcmp_box_rank(const struct gcmp_box *box, uint64_t index);

/* Record element of source element `s` of an indirect record, or false outside of the item. */
bool gcmp_record_element(const struct gcmp_record *record, uint64_t s, int64_t *element);

/* Part of a box: a run of its elements that is a box itself. */
struct gcmp_part {
    uint64_t extent[GRADCMP_MAX_NDIM];
    uint64_t first; /* of the parameter */
    int64_t origin;
};

/* Cut the largest part that begins at element `rank` of the box and ends at or before `end`; return
 * its number of elements. A run needs at most 2 * ndim parts. */
uint64_t gcmp_box_cut(const struct gcmp_box *box, uint64_t rank, uint64_t end,
                      struct gcmp_part *part);

#endif
