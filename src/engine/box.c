/* Boxes: from a slab's shape and strides to runs of a record. */
#include "engine/box.h"

#include "base/checked.h"
#include "base/dtype.h"

bool gcmp_box_place(const struct gradcmp_parameter *parameter, const struct gradcmp_slab *slab,
                    struct gcmp_box *box) {
    uint64_t step = 1;
    box->ndim = parameter->ndim;
    box->first = 0;
    if (!gcmp_product(slab->extent, parameter->ndim, &box->elems)) {
        return false;
    }
    for (unsigned d = parameter->ndim; d-- > 0;) {
        uint64_t end, offset;
        if (!gcmp_add_u64(slab->start[d], slab->extent[d], &end) || end > parameter->shape[d] ||
            !gcmp_mul_u64(slab->start[d], step, &offset) ||
            !gcmp_add_u64(box->first, offset, &box->first)) {
            return false;
        }
        box->extent[d] = slab->extent[d];
        box->step[d] = step;
        if (!gcmp_mul_u64(step, parameter->shape[d], &step)) {
            return false;
        }
    }
    return true;
}

uint64_t gcmp_box_last(const struct gcmp_box *box) {
    uint64_t last = box->first;
    for (unsigned d = 0; d < box->ndim; d++) {
        last += (box->extent[d] - 1) * box->step[d];
    }
    return last;
}

/* Take source element `s` apart by the item's shape; false outside of the item. */
static bool item_index(const struct gcmp_record *record, uint64_t s,
                       uint64_t index[GRADCMP_MAX_NDIM]) {
    for (unsigned k = record->ndim; k-- > 0;) {
        index[k] = s % record->shape[k];
        s /= record->shape[k];
    }
    return s == 0;
}

bool gcmp_record_element(const struct gcmp_record *record, uint64_t s, int64_t *element) {
    uint64_t index[GRADCMP_MAX_NDIM];
    if (!item_index(record, s, index)) {
        return false;
    }
    *element = record->offset_elems; /* the item's reach was checked when it was resolved */
    for (unsigned k = 0; k < record->ndim; k++) {
        *element += (int64_t)index[k] * record->stride[k];
    }
    return true;
}

/* Find an axis of the item along which a step of `stride` source elements goes `times` times
 * without a carry; room[k] is how far indices on axis k can still go. */
static bool match_axis(const struct gcmp_record *record, uint64_t room[GRADCMP_MAX_NDIM],
                       uint64_t times, int64_t *stride) {
    if (*stride == 0) {
        return true;
    }
    uint64_t row = 1, rows[GRADCMP_MAX_NDIM] = {0};
    for (unsigned k = record->ndim; k-- > 0;) {
        rows[k] = row;
        row *= record->shape[k];
    }
    for (unsigned k = 0; k < record->ndim && stride[0] > 0; k++) {
        uint64_t indices = (uint64_t)*stride / rows[k], distance;
        if ((uint64_t)*stride % rows[k] == 0 && gcmp_mul_u64(indices, times, &distance) &&
            distance <= room[k]) {
            room[k] -= distance;
            *stride = (int64_t)indices * record->stride[k];
            return true;
        }
    }
    return false;
}

/* Express the strides of a box in record elements, where each follows an axis of the item. */
static bool compose(const struct gcmp_record *record, const struct gradcmp_slab *slab,
                    struct gcmp_box *box) {
    uint64_t index[GRADCMP_MAX_NDIM], room[GRADCMP_MAX_NDIM];
    int64_t stride[GRADCMP_MAX_NDIM];
    if (slab->offset_elems < 0 || !item_index(record, (uint64_t)slab->offset_elems, index)) {
        return false;
    }
    for (unsigned k = 0; k < record->ndim; k++) {
        room[k] = record->shape[k] - 1 - index[k];
    }
    for (unsigned d = 0; d < box->ndim; d++) {
        stride[d] = box->extent[d] > 1 ? slab->stride[d] : 0;
        if (!match_axis(record, room, box->extent[d] - 1, &stride[d])) {
            return false;
        }
    }
    for (unsigned d = 0; d < box->ndim; d++) {
        box->stride[d] = stride[d];
    }
    return gcmp_record_element(record, (uint64_t)slab->offset_elems, &box->origin);
}

/* Tell whether all elements of the box lie in [0, limit). */
static bool reach_is_inside(const struct gcmp_box *box, uint64_t limit) {
    int64_t low = box->origin;
    int64_t high = low;
    for (unsigned d = 0; d < box->ndim; d++) {
        int64_t reach;
        if (box->extent[d] - 1 > INT64_MAX ||
            __builtin_mul_overflow((int64_t)(box->extent[d] - 1), box->stride[d], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return false;
        }
    }
    return low >= 0 && (uint64_t)high < limit;
}

/* Drop axes of one index; join an axis with the one inside of it where both are walked as one, in
 * the parameter and in the record. */
static void simplify(struct gcmp_box *box) {
    unsigned kept = 0;
    for (unsigned d = 0; d < box->ndim; d++) {
        if (box->extent[d] == 1) {
            continue;
        }
        unsigned outer = kept == 0 ? 0 : kept - 1;
        int64_t whole;
        if (kept > 0 && box->step[outer] == box->extent[d] * box->step[d] &&
            !__builtin_mul_overflow((int64_t)box->extent[d], box->stride[d], &whole) &&
            box->stride[outer] == whole) {
            box->extent[outer] *= box->extent[d];
        } else {
            outer = kept++;
            box->extent[outer] = box->extent[d];
        }
        box->step[outer] = box->step[d];
        box->stride[outer] = box->stride[d];
    }
    box->ndim = kept;
}

bool gcmp_box_bind(const struct gradcmp_parameter *parameter, const struct gradcmp_slab *slab,
                   const struct gcmp_record *record, struct gcmp_box *box) {
    uint64_t limit = record->length_bytes / gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype);
    box->indirect = record->ndim > 0 && !compose(record, slab, box);
    if (record->ndim == 0 || box->indirect) {
        if (__builtin_add_overflow(slab->offset_elems, box->indirect ? 0 : record->offset_elems,
                                   &box->origin)) {
            return false;
        }
        for (unsigned d = 0; d < box->ndim; d++) {
            box->stride[d] = slab->stride[d];
        }
    }
    if (box->indirect && !gcmp_product(record->shape, record->ndim, &limit)) {
        return false;
    }
    if (!reach_is_inside(box, limit)) {
        return false;
    }
    simplify(box);
    uint64_t inner = 1;
    box->contiguous = !box->indirect;
    for (unsigned d = box->ndim; d-- > 0;) {
        box->inner[d] = inner;
        box->contiguous = box->contiguous && box->stride[d] == (int64_t)inner;
        inner *= box->extent[d];
    }
    return true;
}

uint64_t gcmp_box_rank(const struct gcmp_box *box, uint64_t index) {
    if (index <= box->first) {
        return 0;
    }
    uint64_t left = index - box->first, rank = 0;
    for (unsigned d = 0; d < box->ndim; d++) {
        uint64_t whole = left / box->step[d];
        if (whole >= box->extent[d]) {
            return rank + box->extent[d] * box->inner[d];
        }
        rank += whole * box->inner[d];
        left -= whole * box->step[d];
    }
    return left > 0 ? rank + 1 : rank;
}

uint64_t gcmp_box_cut(const struct gcmp_box *box, uint64_t rank, uint64_t end,
                      struct gcmp_part *part) {
    uint64_t index[GRADCMP_MAX_NDIM], left = rank;
    part->first = box->first;
    part->origin = box->origin;
    for (unsigned d = 0; d < box->ndim; d++) {
        index[d] = left / box->inner[d];
        left %= box->inner[d];
        part->first += index[d] * box->step[d];
        part->origin += (int64_t)index[d] * box->stride[d];
        part->extent[d] = 1;
    }
    if (box->ndim == 0) {
        return 1;
    }
    /* The outermost axis along which whole steps begin here and fit. */
    unsigned axis = 0;
    while (rank % box->inner[axis] != 0 || box->inner[axis] > end - rank) {
        axis++;
    }
    /* The innermost axis steps by one element, so the loop has ended at an axis. */
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    uint64_t fit = (end - rank) / box->inner[axis], room = box->extent[axis] - index[axis];
    part->extent[axis] = fit < room ? fit : room;
    uint64_t elems = part->extent[axis] * box->inner[axis];
    for (unsigned d = axis + 1; d < box->ndim; d++) {
        part->extent[d] = box->extent[d];
    }
    return elems;
}
