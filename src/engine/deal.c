/* Deals jobs over ranks. */
#include "engine/deal.h"

#include <stdlib.h>

#include "base/dtype.h"

/* Jobs are cut at multiples of a power of two of blocks: of so many that a rank has at least
 * CHUNKS_A_RANK of them, and of no more than MOST_CHUNK_BLOCKS. */
enum { CHUNKS_A_RANK = 16, MOST_CHUNK_BLOCKS = 64, WIDEST_BYTES = 8 };

__extension__ typedef unsigned __int128 wide;

static unsigned side_bytes(const struct gcmp_side *side) {
    const struct gradcmp_former *former = side->parameter->former;
    unsigned bytes = gcmp_dtype_bytes((enum gradcmp_dtype)side->parameter->dtype);
    return former == NULL ? bytes
                          : bytes + gcmp_dtype_bytes((enum gradcmp_dtype)former->parameter->dtype);
}

/* Bytes that are read for an element of a job, on all sides. */
static uint64_t elem_weight(const struct gcmp_job *job) {
    uint64_t weight = side_bytes(&job->a);
    for (size_t i = 0; i < job->b_count; i++) {
        weight += side_bytes(&job->b[i]);
    }
    return weight;
}

static uint64_t choose_chunk(wide total, unsigned ranks) {
    uint64_t blocks = 1;
    while (blocks < MOST_CHUNK_BLOCKS &&
           (wide)blocks * 2 * GRADCMP_BLOCK_ELEMS * WIDEST_BYTES * CHUNKS_A_RANK * ranks <= total) {
        blocks *= 2;
    }
    return blocks * GRADCMP_BLOCK_ELEMS;
}

/* Set all cuts: cut r lies where r shares of the whole are dealt, at or before the chunk there. */
static void cut(struct gcmp_deal *deal, const struct gcmp_job *jobs, size_t job_count, wide total) {
    unsigned next = 1;
    wide passed = 0;
    for (size_t j = 0; j < job_count; j++) {
        uint64_t weight = elem_weight(&jobs[j]);
        wide end = passed + (wide)weight * jobs[j].elems;
        while (next < deal->count && total / deal->count * next < end) {
            wide inside = total / deal->count * next - passed;
            uint64_t elem = (uint64_t)(inside / weight);
            deal->cuts[next++] = (struct gcmp_place){j, elem - elem % deal->chunk_elems};
        }
        passed = end;
    }
    while (next <= deal->count) {
        deal->cuts[next++] = (struct gcmp_place){job_count, 0};
    }
}

enum gradcmp_status gcmp_deal_make(struct gcmp_deal *deal, const struct gradcmp_ranks *ranks,
                                   const struct gcmp_job *jobs, size_t job_count,
                                   struct gradcmp_error *error) {
    wide total = 0;
    for (size_t j = 0; j < job_count; j++) {
        total += (wide)elem_weight(&jobs[j]) * jobs[j].elems;
    }
    deal->index = ranks->index;
    deal->count = ranks->count;
    deal->chunk_elems = choose_chunk(total, ranks->count);
    deal->cuts = calloc((size_t)ranks->count + 1, sizeof *deal->cuts);
    if (deal->cuts == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    cut(deal, jobs, job_count, total);
    return GRADCMP_OK;
}

void gcmp_deal_free(struct gcmp_deal *deal) {
    free(deal->cuts);
    *deal = (struct gcmp_deal){0};
}

struct gcmp_stretch gcmp_deal_share(const struct gcmp_deal *deal, size_t index, uint64_t elems) {
    struct gcmp_stretch share = {0, elems};
    if (deal->count == 0) {
        return share;
    }
    struct gcmp_place from = deal->cuts[deal->index], to = deal->cuts[deal->index + 1];
    if (index < from.job || index > to.job) {
        share.end = 0;
        return share;
    }
    share.first = index == from.job ? from.elem : 0;
    share.end = index == to.job ? to.elem : elems;
    return share;
}

unsigned gcmp_deal_rank(const struct gcmp_deal *deal, struct gcmp_place place) {
    unsigned low = 0, high = deal->count; /* cuts[low] is at or before the place, cuts[high] not */
    while (high - low > 1) {
        unsigned middle = low + (high - low) / 2;
        const struct gcmp_place *at = &deal->cuts[middle];
        bool is_behind = at->job != place.job ? at->job > place.job : at->elem > place.elem;
        *(is_behind ? &high : &low) = middle;
    }
    return low;
}
