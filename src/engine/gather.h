/* Gathering: the elements of a run of a parameter, from all slabs that hold some of them, into one
 * buffer in row-major order and native byte order. */
#ifndef GCMP_ENGINE_GATHER_H
#define GCMP_ENGINE_GATHER_H

#include "engine/engine.h"
#include "engine/file_read.h"
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

/* --- the same with reads under way --- */

/* Pieces of a load that are read ahead; what a unit has beyond is read at its end. */
enum { GCMP_LOAD_PIECES = 32 };

/* What a slab gives to a load. */
struct gcmp_load_piece {
    size_t slab;                /* of the side's plan */
    struct gcmp_record *record; /* held; NULL: the slab is gathered at the end */
    struct gcmp_record_bytes bytes;
    struct gcmp_file_read read;
};

/* Gathering that was started and is to be ended. */
struct gcmp_load {
    struct gcmp_want want; /* its staging is the load's alone */
    struct gcmp_load_piece pieces[GCMP_LOAD_PIECES];
    size_t piece_count;
    size_t next_slab; /* slabs from here on are gathered at the end */
    size_t staged_bytes;
};

/* A way of reading, and one thread's ring of it. NULL: nothing is under way, ever. */
struct gcmp_under_way {
    const struct gcmp_ring_way *way;
    struct gcmp_ring *ring;
};

/* Start to gather load->want. What goes wrong is told at the end. */
void gcmp_load_start(struct gcmp_load *load, const struct gcmp_under_way *under_way);
/* Tell whether all that was started is there. */
bool gcmp_load_is_here(const struct gcmp_load *load, const struct gcmp_under_way *under_way);
/* Wait for the reads, gather what is left (through `staging`), and check as gcmp_gather does. With
 * `is_wanted` false it only waits. Nothing is under way or held afterwards. Status: as gcmp_gather.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_load_end(struct gcmp_load *load,
                                                   const struct gcmp_under_way *under_way,
                                                   const struct gcmp_staging *staging,
                                                   bool is_wanted, struct gradcmp_error *error);

#endif
