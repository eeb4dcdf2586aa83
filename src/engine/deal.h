/* Which rank reads which elements: the jobs of a run, one behind the other, are dealt over the
 * ranks in stretches of as many bytes each. */
#ifndef GCMP_ENGINE_DEAL_H
#define GCMP_ENGINE_DEAL_H

#include "engine/engine.h"
#include "engine/faults.h"
#include "engine/ranks.h"

/* Zeroed: all is dealt to this rank. */
struct gcmp_deal {
    unsigned index, count;   /* of ranks; count 0: no ranks */
    uint64_t chunk_elems;    /* jobs are cut at multiples of it; units must not be larger */
    struct gcmp_place *cuts; /* count + 1: rank r's share begins at cuts[r]; owned */
};

/* Deal. The same on all ranks: it depends on the jobs and on the number of ranks alone. MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_deal_make(struct gcmp_deal *deal,
                                                    const struct gradcmp_ranks *ranks,
                                                    const struct gcmp_job *jobs, size_t job_count,
                                                    struct gradcmp_error *error);
void gcmp_deal_free(struct gcmp_deal *deal);

/* A stretch of a job's elements. */
struct gcmp_stretch {
    uint64_t first, end;
};
/* This rank's share of job `index`, which has `elems` elements. */
struct gcmp_stretch gcmp_deal_share(const struct gcmp_deal *deal, size_t index, uint64_t elems);

/* The rank that reads an element. */
unsigned gcmp_deal_rank(const struct gcmp_deal *deal, struct gcmp_place place);

#endif
