/* What coverage.c and irregular.c share: one proof under way. */
#ifndef GCMP_UNSHARD_COVER_PROOF_H
#define GCMP_UNSHARD_COVER_PROOF_H

#include "unshard/coverage.h"
#include "unshard/dims.h"

/* One slab in the order that the proof looks at. */
struct gcmp_cover_order {
    uint64_t key;
    uint32_t slab, copy;
};

struct gcmp_region {
    uint64_t start[GRADCMP_MAX_NDIM], end[GRADCMP_MAX_NDIM];
};

/* Slabs order[first .. end), all within the region, which `copies` others fill already. */
struct gcmp_cover_part {
    size_t first, end;
    uint32_t copies;
};

/* A cut of the region along `axis`, whose parts are looked at one after another. */
struct gcmp_cover_frame {
    struct gcmp_cover_part part; /* sorted along axis */
    size_t at;                   /* first slab of the parts to come */
    uint64_t from, to;           /* the region on that axis */
    uint64_t reached;            /* end of the parts before */
    unsigned axis;
};

/* Cuts within cuts; deeper ones than any writer makes are handled as irregular. */
enum { GCMP_COVER_DEPTH = 64 };

struct gcmp_proof {
    struct gradcmp_parameter *parameter;
    struct gcmp_cover_order *order;
    struct gcmp_region region;     /* now looked at */
    struct gcmp_region first_leaf; /* covered by `copies` */
    uint32_t copies;               /* 0: no element looked at yet */
    unsigned depth;
    uint64_t work, work_limit;   /* slabs sorted */
    uint64_t pairs, pairs_limit; /* slabs compared with slabs */
    struct gcmp_cover_frame frames[GCMP_COVER_DEPTH];
};

static inline struct gradcmp_slab *gcmp_cover_slab(const struct gcmp_proof *proof, size_t index) {
    return &proof->parameter->slabs[proof->order[index].slab];
}

/* Sort a part by the slabs' starts along an axis. */
void gcmp_cover_sort(struct gcmp_proof *proof, struct gcmp_cover_part part, unsigned axis);

/* Row-major index of a slab's first element; below 2^63, as it lies inside of the shape. */
uint64_t gcmp_cover_first(const struct gradcmp_parameter *parameter,
                          const struct gradcmp_slab *slab);

/* Sort a part by the slabs' first elements. */
void gcmp_cover_sort_first(struct gcmp_proof *proof, struct gcmp_cover_part part);

/* The region was found to be covered `copies` times: compare with the others. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_cover_leaf(struct gcmp_proof *proof, uint32_t copies,
                                                     struct gradcmp_error *error);

/* Prove a part by comparing slabs with slabs, whatever its layout. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_cover_scattered(struct gcmp_proof *proof,
                                                          struct gcmp_cover_part part,
                                                          struct gradcmp_error *error);

/* Prove a part that no straight cut separates: intervals along one axis, or as scattered. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_cover_irregular(struct gcmp_proof *proof,
                                                          struct gcmp_cover_part part,
                                                          struct gradcmp_error *error);

GRADCMP_MUST_USE enum gradcmp_status gcmp_cover_fail_hole(const struct gcmp_proof *proof,
                                                          const struct gcmp_region *region,
                                                          struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_cover_fail_overlap(const struct gcmp_proof *proof,
                                                             const struct gcmp_region *region,
                                                             struct gradcmp_error *error);

#endif
