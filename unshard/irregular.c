/* Coverage where no straight cut separates the slabs: copies that are cut at different rows of one
 * axis, copies that are cut along different axes, and layouts that only damage or malice make. */
#include <stdlib.h>

#include "unshard/cover_proof.h"

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The axes on which some slab is narrower than the region: their number, and the last of them. */
static unsigned active_axes(const struct gcmp_proof *proof, struct gcmp_cover_part part,
                            unsigned *last) {
    unsigned active = 0;
    for (unsigned d = 0; d < proof->parameter->ndim; d++) {
        uint64_t width = proof->region.end[d] - proof->region.start[d];
        size_t i = part.first;
        while (i < part.end && gcmp_cover_slab(proof, i)->extent[d] == width) {
            i++;
        }
        if (i < part.end) {
            active++;
            *last = d;
        }
    }
    return active;
}

static enum gradcmp_status count_pairs(struct gcmp_proof *proof, uint64_t pairs,
                                       struct gradcmp_error *error) {
    proof->pairs += pairs;
    if (proof->pairs > proof->pairs_limit) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT,
                  "%s: %zu pieces in a layout too irregular to prove that they cover all elements",
                  proof->parameter->name, proof->parameter->slab_count);
    }
    return GRADCMP_OK;
}

/* Where each copy of the region has come to, along one axis. */
struct chains {
    uint64_t *reached;
    uint32_t count;
    unsigned axis;
};

/* Give the slab order[index] to the copy that ends where it starts. */
static enum gradcmp_status extend_chain(struct gcmp_proof *proof, struct chains *chains,
                                        uint32_t copies, size_t index,
                                        struct gradcmp_error *error) {
    struct gradcmp_slab *slab = gcmp_cover_slab(proof, index);
    uint64_t start = slab->start[chains->axis], end = start + slab->extent[chains->axis];
    uint32_t chain = 0;
    if (start == proof->region.start[chains->axis]) {
        chain = chains->count++;
    } else {
        uint64_t overlap_end = start;
        while (chain < chains->count && chains->reached[chain] != start) {
            overlap_end = most(overlap_end, chains->reached[chain++]);
        }
        GCMP_TRY(count_pairs(proof, chain, error));
        if (chain == chains->count) {
            struct gcmp_region overlap = proof->region;
            overlap.start[chains->axis] = start;
            overlap.end[chains->axis] = least(overlap_end, end);
            return gcmp_cover_fail_overlap(proof, &overlap, error);
        }
    }
    chains->reached[chain] = end;
    slab->copy = copies + chain;
    return GRADCMP_OK;
}

/* Slabs that are cut along one axis only, at rows that differ between copies. Where every element
 * is covered equally often, as many slabs begin at a row as end there, so copies can be chained. */
static enum gradcmp_status chain_intervals(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                           struct chains *chains, struct gradcmp_error *error) {
    gcmp_cover_sort(proof, part, chains->axis);
    for (size_t i = part.first; i < part.end; i++) {
        GCMP_TRY(extend_chain(proof, chains, part.copies, i, error));
    }
    for (uint32_t chain = 0; chain < chains->count; chain++) {
        if (chains->reached[chain] != proof->region.end[chains->axis]) {
            struct gcmp_region overlap = proof->region;
            overlap.end[chains->axis] = chains->reached[chain];
            return gcmp_cover_fail_overlap(proof, &overlap, error);
        }
    }
    return gcmp_cover_leaf(proof, part.copies + chains->count, error);
}

static enum gradcmp_status cover_intervals(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                           unsigned axis, struct gradcmp_error *error) {
    struct chains chains = {.axis = axis};
    chains.reached = calloc(part.end - part.first, sizeof *chains.reached);
    if (chains.reached == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = chain_intervals(proof, part, &chains, error);
    free(chains.reached);
    return status;
}

/* Elements of a slab within a region; *common is their box. */
static uint64_t clip(const struct gcmp_proof *proof, const struct gradcmp_slab *slab,
                     const struct gcmp_region *region, struct gcmp_region *common) {
    uint64_t elems = 1;
    for (unsigned d = 0; d < proof->parameter->ndim; d++) {
        common->start[d] = most(slab->start[d], region->start[d]);
        common->end[d] = least(slab->start[d] + slab->extent[d], region->end[d]);
        elems =
            common->end[d] <= common->start[d] ? 0 : elems * (common->end[d] - common->start[d]);
    }
    return elems;
}

static struct gcmp_region slab_region(const struct gcmp_proof *proof,
                                      const struct gradcmp_slab *slab) {
    struct gcmp_region region = {0};
    for (unsigned d = 0; d < proof->parameter->ndim; d++) {
        region.start[d] = slab->start[d];
        region.end[d] = slab->start[d] + slab->extent[d];
    }
    return region;
}

static uint64_t region_elems(const struct gcmp_proof *proof, const struct gcmp_region *region) {
    uint64_t elems = 1;
    for (unsigned d = 0; d < proof->parameter->ndim; d++) {
        elems *= region->end[d] - region->start[d];
    }
    return elems;
}

/* Elements of the region that disjoint slabs cover. */
static uint64_t covered_elems(const struct gcmp_proof *proof, struct gcmp_cover_part part,
                              const struct gcmp_region *region) {
    struct gcmp_region common;
    uint64_t elems = 0;
    for (size_t i = part.first; i < part.end; i++) {
        elems += clip(proof, gcmp_cover_slab(proof, i), region, &common);
    }
    return elems;
}

/* Disjoint slabs leave a hole: halve the region towards it until nothing in it is covered. */
static enum gradcmp_status find_hole(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                     struct gradcmp_error *error) {
    struct gcmp_region region = proof->region;
    while (covered_elems(proof, part, &region) > 0) {
        unsigned widest = 0;
        for (unsigned d = 1; d < proof->parameter->ndim; d++) {
            if (region.end[d] - region.start[d] > region.end[widest] - region.start[widest]) {
                widest = d;
            }
        }
        struct gcmp_region half = region;
        half.end[widest] -= (region.end[widest] - region.start[widest]) / 2;
        if (covered_elems(proof, part, &half) < region_elems(proof, &half)) {
            region = half;
        } else {
            region.start[widest] = half.end[widest];
        }
    }
    return gcmp_cover_fail_hole(proof, &region, error);
}

static bool is_disjoint(const struct gcmp_proof *proof, const struct gradcmp_slab *a,
                        const struct gradcmp_slab *b) {
    for (unsigned d = 0; d < proof->parameter->ndim; d++) {
        if (a->start[d] + a->extent[d] <= b->start[d] ||
            b->start[d] + b->extent[d] <= a->start[d]) {
            return true;
        }
    }
    return false;
}

/* Find an active slab that overlaps order[index], dropping those that end before it on axis 0: as
 * slabs come in the order of their starts, they are behind all to come. The active ones are a list
 * through order[].copy: index + 1 of the next, 0 at the end, from *link. Returns index + 1, or 0.
 */
static uint32_t find_overlap(struct gcmp_proof *proof, uint32_t *link, size_t index) {
    const struct gradcmp_slab *slab = gcmp_cover_slab(proof, index);
    while (*link != 0) {
        const struct gradcmp_slab *other = gcmp_cover_slab(proof, *link - 1);
        proof->pairs++;
        if (other->start[0] + other->extent[0] <= slab->start[0]) {
            *link = proof->order[*link - 1].copy;
        } else if (is_disjoint(proof, other, slab)) {
            link = &proof->order[*link - 1].copy;
        } else {
            return *link;
        }
    }
    return 0;
}

/* Move slabs that overlap none chosen before to the front of the part, in order, as one copy;
 * *chosen is the end of them. With an overlap, *overlap is the first one found. */
static enum gradcmp_status choose_disjoint(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                           size_t *chosen, struct gcmp_region *overlap,
                                           struct gradcmp_error *error) {
    uint32_t active = 0;
    bool has_overlap = false;
    *chosen = part.first;
    for (size_t i = part.first; i < part.end; i++) {
        uint32_t other = find_overlap(proof, &active, i);
        GCMP_TRY(count_pairs(proof, 1, error));
        if (other == 0) {
            struct gcmp_cover_order order = proof->order[i];
            proof->order[i] = proof->order[*chosen];
            order.copy = active;
            proof->order[(*chosen)++] = order;
            active = (uint32_t)*chosen;
        } else if (!has_overlap) {
            struct gcmp_region mine = slab_region(proof, gcmp_cover_slab(proof, i));
            clip(proof, gcmp_cover_slab(proof, other - 1), &mine, overlap);
            has_overlap = true;
        }
    }
    return GRADCMP_OK;
}

/* Take disjoint slabs, copy after copy, in the order of their first elements: whatever begins at
 * the first element not yet covered is the only kind that can cover it. */
enum gradcmp_status gcmp_cover_scattered(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                         struct gradcmp_error *error) {
    uint64_t elems = region_elems(proof, &proof->region);
    while (part.first < part.end) {
        gcmp_cover_sort_first(proof, part);
        size_t chosen;
        struct gcmp_region overlap = slab_region(proof, gcmp_cover_slab(proof, part.first));
        GCMP_TRY(choose_disjoint(proof, part, &chosen, &overlap, error));
        struct gcmp_cover_part copy = {part.first, chosen, part.copies};
        if (covered_elems(proof, copy, &proof->region) != elems) {
            return part.copies == 0 && chosen == part.end
                       ? find_hole(proof, copy, error)
                       : gcmp_cover_fail_overlap(proof, &overlap, error);
        }
        for (; part.first < chosen; part.first++) {
            gcmp_cover_slab(proof, part.first)->copy = part.copies;
        }
        part.copies++;
    }
    return gcmp_cover_leaf(proof, part.copies, error);
}

enum gradcmp_status gcmp_cover_irregular(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                         struct gradcmp_error *error) {
    unsigned axis = 0;
    if (active_axes(proof, part, &axis) == 1) {
        return cover_intervals(proof, part, axis, error);
    }
    return gcmp_cover_scattered(proof, part, error);
}
