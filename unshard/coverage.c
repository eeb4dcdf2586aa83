/* Proves coverage by straight cuts: slabs are sorted along an axis, the region is cut wherever no
 * slab crosses, and each part is looked at in the same way, until one slab fills its part. What no
 * cut separates goes to irregular.c. */
#include "unshard/coverage.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "unshard/cover_proof.h"
#include "unshard/dims.h"

static int compare_keys(const void *left, const void *right) {
    const struct gcmp_cover_order *a = left, *b = right;
    return a->key < b->key ? -1 : a->key > b->key;
}

static int compare_copies(const void *left, const void *right) {
    const struct gcmp_cover_order *a = left, *b = right;
    return a->copy != b->copy ? (a->copy < b->copy ? -1 : 1) : compare_keys(left, right);
}

typedef int (*compare_fn)(const void *left, const void *right);

/* Writers list pieces in order, more often than not, and most parts are small. */
static void sort_order(struct gcmp_cover_order *order, size_t count, compare_fn compare) {
    enum { SMALL = 12 };
    for (size_t i = 1; i < count; i++) {
        if (compare(&order[i - 1], &order[i]) <= 0) {
            continue;
        }
        if (count > SMALL) {
            qsort(order, count, sizeof *order, compare);
            return;
        }
        struct gcmp_cover_order moved = order[i];
        size_t at = i;
        for (; at > 0 && compare(&order[at - 1], &moved) > 0; at--) {
            order[at] = order[at - 1];
        }
        order[at] = moved;
    }
}

void gcmp_cover_sort(struct gcmp_proof *proof, struct gcmp_cover_part part, unsigned axis) {
    for (size_t i = part.first; i < part.end; i++) {
        proof->order[i].key = gcmp_cover_slab(proof, i)->start[axis];
    }
    proof->work += part.end - part.first;
    sort_order(proof->order + part.first, part.end - part.first, compare_keys);
}

uint64_t gcmp_cover_first(const struct gradcmp_parameter *parameter,
                          const struct gradcmp_slab *slab) {
    uint64_t index = 0;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        index = index * parameter->shape[d] + slab->start[d];
    }
    return index;
}

void gcmp_cover_sort_first(struct gcmp_proof *proof, struct gcmp_cover_part part) {
    for (size_t i = part.first; i < part.end; i++) {
        proof->order[i].key = gcmp_cover_first(proof->parameter, gcmp_cover_slab(proof, i));
    }
    sort_order(proof->order + part.first, part.end - part.first, compare_keys);
}

static const char *region_text(const struct gcmp_proof *proof, const struct gcmp_region *region,
                               char text[GCMP_DIMS_BYTES]) {
    uint64_t extent[GRADCMP_MAX_NDIM];
    unsigned ndim = proof->parameter->ndim;
    for (unsigned d = 0; d < ndim; d++) {
        extent[d] = region->end[d] - region->start[d];
    }
    return gcmp_box_text(text, ndim, proof->parameter->shape, region->start, extent);
}

enum gradcmp_status gcmp_cover_fail_hole(const struct gcmp_proof *proof,
                                         const struct gcmp_region *region,
                                         struct gradcmp_error *error) {
    char text[GCMP_DIMS_BYTES];
    GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: %s are in no shard", proof->parameter->name,
              region_text(proof, region, text));
}

enum gradcmp_status gcmp_cover_fail_overlap(const struct gcmp_proof *proof,
                                            const struct gcmp_region *region,
                                            struct gradcmp_error *error) {
    char text[GCMP_DIMS_BYTES];
    GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
              "%s: %s are in more than one shard, and the shards are no whole copies",
              proof->parameter->name, region_text(proof, region, text));
}

enum gradcmp_status gcmp_cover_leaf(struct gcmp_proof *proof, uint32_t copies,
                                    struct gradcmp_error *error) {
    if (copies == 0) {
        return gcmp_cover_fail_hole(proof, &proof->region, error);
    }
    if (proof->copies == 0) {
        proof->copies = copies;
        proof->first_leaf = proof->region;
        return GRADCMP_OK;
    }
    bool more = copies > proof->copies;
    return copies == proof->copies
               ? GRADCMP_OK
               : gcmp_cover_fail_overlap(proof, more ? &proof->region : &proof->first_leaf, error);
}

/* True where a slab fills the region. */
static bool is_whole(const struct gcmp_proof *proof, const struct gradcmp_slab *slab) {
    for (unsigned d = 0; d < proof->parameter->ndim; d++) {
        if (slab->start[d] != proof->region.start[d] ||
            slab->start[d] + slab->extent[d] != proof->region.end[d]) {
            return false;
        }
    }
    return true;
}

/* Make each slab that fills the region a copy of its own, and take it out of the part. */
static void take_whole(struct gcmp_proof *proof, struct gcmp_cover_part *part) {
    for (size_t i = part->first; i < part->end; i++) {
        if (is_whole(proof, gcmp_cover_slab(proof, i))) {
            struct gcmp_cover_order whole = proof->order[i];
            proof->order[i] = proof->order[part->first];
            proof->order[part->first++] = whole;
            proof->parameter->slabs[whole.slab].copy = part->copies++;
        }
    }
}

static uint64_t slab_end(const struct gcmp_proof *proof, size_t index, unsigned axis) {
    const struct gradcmp_slab *slab = gcmp_cover_slab(proof, index);
    return slab->start[axis] + slab->extent[axis];
}

/* Step over the slabs of a sorted part from `from` that no cut across `axis` separates; *reach is
 * where they end. */
static size_t group_end(const struct gcmp_proof *proof, size_t from, size_t end, unsigned axis,
                        uint64_t *reach) {
    *reach = slab_end(proof, from, axis);
    size_t at = from + 1;
    for (; at < end && proof->order[at].key < *reach; at++) {
        uint64_t slab_reach = slab_end(proof, at, axis);
        *reach = slab_reach > *reach ? slab_reach : *reach;
    }
    return at;
}

/* Sort the part along an axis and tell whether the region can be cut there, by a line that no slab
 * crosses or along a gap. */
static bool can_cut(struct gcmp_proof *proof, struct gcmp_cover_part part, unsigned axis) {
    uint64_t reach;
    gcmp_cover_sort(proof, part, axis);
    return group_end(proof, part.first, part.end, axis, &reach) < part.end ||
           proof->order[part.first].key > proof->region.start[axis] ||
           reach < proof->region.end[axis];
}

/* Look at the slabs of the region: done, cut further (a new frame), or irregular. */
static enum gradcmp_status enter(struct gcmp_proof *proof, struct gcmp_cover_part part,
                                 struct gradcmp_error *error) {
    take_whole(proof, &part);
    if (part.first == part.end) {
        return gcmp_cover_leaf(proof, part.copies, error);
    }
    if (proof->depth == GCMP_COVER_DEPTH || proof->work > proof->work_limit) {
        return gcmp_cover_scattered(proof, part, error);
    }
    for (unsigned axis = 0; axis < proof->parameter->ndim; axis++) {
        if (can_cut(proof, part, axis)) {
            struct gcmp_cover_frame *frame = &proof->frames[proof->depth++];
            frame->part = part;
            frame->axis = axis;
            frame->at = part.first;
            frame->from = proof->region.start[axis];
            frame->to = proof->region.end[axis];
            frame->reached = frame->from;
            return GRADCMP_OK;
        }
    }
    return gcmp_cover_irregular(proof, part, error);
}

/* Look at the next part of the innermost frame, or leave it after the last. */
static enum gradcmp_status step(struct gcmp_proof *proof, struct gradcmp_error *error) {
    struct gcmp_cover_frame *frame = &proof->frames[proof->depth - 1];
    struct gcmp_cover_part part = {frame->at, frame->at, frame->part.copies};
    uint64_t next = frame->at < frame->part.end ? proof->order[frame->at].key : frame->to;
    if (frame->reached == frame->to) {
        proof->region.start[frame->axis] = frame->from;
        proof->region.end[frame->axis] = frame->to;
        proof->depth--;
        return GRADCMP_OK;
    }
    proof->region.start[frame->axis] = frame->reached;
    if (next == frame->reached) {
        part.end = group_end(proof, frame->at, frame->part.end, frame->axis, &frame->reached);
    } else {
        frame->reached = next; /* a gap */
    }
    proof->region.end[frame->axis] = frame->reached;
    frame->at = part.end;
    return enter(proof, part, error);
}

/* Sort the slabs themselves by copy, then by first element. */
static void sort_slabs(struct gcmp_proof *proof) {
    struct gradcmp_parameter *parameter = proof->parameter;
    for (size_t i = 0; i < parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &parameter->slabs[i];
        uint64_t first = gcmp_cover_first(parameter, slab);
        proof->order[i] = (struct gcmp_cover_order){first, (uint32_t)i, slab->copy};
    }
    sort_order(proof->order, parameter->slab_count, compare_copies);
    for (size_t i = 0; i < parameter->slab_count; i++) { /* follow each cycle once */
        struct gradcmp_slab first = parameter->slabs[i];
        size_t to = i;
        while (proof->order[to].slab != i) {
            size_t from = proof->order[to].slab;
            parameter->slabs[to] = parameter->slabs[from];
            proof->order[to].slab = (uint32_t)to;
            to = from;
        }
        parameter->slabs[to] = first;
        proof->order[to].slab = (uint32_t)to;
    }
}

static enum gradcmp_status prove(struct gcmp_proof *proof, struct gradcmp_error *error) {
    struct gradcmp_parameter *parameter = proof->parameter;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        proof->region.end[d] = parameter->shape[d];
    }
    for (size_t i = 0; i < parameter->slab_count; i++) {
        proof->order[i].slab = (uint32_t)i;
    }
    struct gcmp_cover_part all = {0, parameter->slab_count, 0};
    GCMP_TRY(enter(proof, all, error));
    while (proof->depth > 0) {
        GCMP_TRY(step(proof, error));
    }
    parameter->copy_count = proof->copies;
    sort_slabs(proof);
    return GRADCMP_OK;
}

static bool make_room(struct gcmp_cover_room *room, size_t count) {
    if (count <= room->capacity) {
        return true;
    }
    size_t bytes;
    void *moved =
        gcmp_mul_size(count, sizeof *room->order, &bytes) ? realloc(room->order, bytes) : NULL;
    if (moved != NULL) {
        room->order = moved;
        room->capacity = count;
    }
    return moved != NULL;
}

/* True in the most common case: one slab, which is the parameter. */
static bool is_one_box(const struct gradcmp_parameter *parameter) {
    if (parameter->slab_count != 1) {
        return false;
    }
    parameter->slabs[0].copy = 0;
    unsigned d = 0; /* a slab lies inside: with the shape's extent it starts at 0 */
    while (d < parameter->ndim && parameter->slabs[0].extent[d] == parameter->shape[d]) {
        d++;
    }
    return d == parameter->ndim;
}

enum gradcmp_status gcmp_cover(struct gradcmp_parameter *parameter, struct gcmp_cover_room *room,
                               struct gradcmp_error *error) {
    enum { SORTS_PER_SLAB = 64, LEAST_WORK = 1 << 20, PAIRS_LIMIT = 1 << 23 };
    if (parameter->elem_count == 0 || is_one_box(parameter)) {
        parameter->copy_count = 1;
        return GRADCMP_OK;
    }
    if (parameter->slab_count > UINT32_MAX) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s: more than %u pieces", parameter->name,
                  UINT32_MAX);
    }
    if (!make_room(room, parameter->slab_count)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_proof proof = {.parameter = parameter, .order = room->order};
    proof.work_limit = SORTS_PER_SLAB * (uint64_t)parameter->slab_count + LEAST_WORK;
    proof.pairs_limit = PAIRS_LIMIT;
    return prove(&proof, error);
}

void gcmp_cover_room_free(struct gcmp_cover_room *room) {
    free(room->order);
    *room = (struct gcmp_cover_room){NULL, 0};
}
