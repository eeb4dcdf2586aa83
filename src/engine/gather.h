/* Gathering: the elements of a run of a parameter, from all slabs that hold some of them, into one
 * buffer in row-major order and native byte order. */
#ifndef GCMP_ENGINE_GATHER_H
#define GCMP_ENGINE_GATHER_H

#include "engine/engine.h"
#include "engine/records.h"

/* Which elements of a parameter a slab can hold. */
struct gcmp_reach {
    uint64_t first;      /* its first element */
    uint64_t end_so_far; /* largest end (last element + 1) of this slab and all before it */
};

/* One side of a job, looked at once. */
struct gcmp_side_plan {
    const struct gcmp_side *side;
    struct gcmp_records *records;
    unsigned elem_bytes;
    size_t first_slab, slab_count; /* of the side's copy */
    struct gcmp_reach *reaches;    /* slab_count entries; owned */
    uint64_t depth;                /* slabs that hold elements of the same stretch, on average */
};

/* Look at a side's slabs. Status: CORRUPT where a slab lies outside of its parameter; MEMORY. The
 * plan is freed with gcmp_side_plan_free in either case. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_side_plan_make(struct gcmp_side_plan *plan, const struct gcmp_side *side, uint64_t elems,
                    struct gcmp_records *records, struct gradcmp_error *error);
void gcmp_side_plan_free(struct gcmp_side_plan *plan);

/* Call `visit` with the source of each slab of the side's copy that may hold elements of the run:
 * the same ones whenever it is called. */
void gcmp_side_each_source(const struct gcmp_side *side, uint64_t elems,
                           void (*visit)(void *user, uint32_t source), void *user);

/* Where bytes wait on their way to their place. */
struct gcmp_staging {
    unsigned char *bytes;
    size_t capacity_bytes;
};

/* Elements that are wanted of a side, and their place. */
struct gcmp_want {
    const struct gcmp_side_plan *plan;
    uint64_t first; /* of the side's run */
    size_t elems;
    unsigned char *out;
    const struct gcmp_staging *staging; /* at least as large as what is wanted */
};

/* Gather elements into want->out. Status: CORRUPT, IO, UNSUPPORTED, MEMORY and what resolve()
 * returns; of several faults the one of the first slab. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_gather(const struct gcmp_want *want,
                                                 struct gradcmp_error *error);

#endif
