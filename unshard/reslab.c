/* Parameters made of other parameters by slabs alone. */
#include "unshard/reslab.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/grow.h"

/* A slab with where it begins in row-major order, for sorting. */
struct placed {
    struct gradcmp_slab slab;
    uint64_t first;
};

/* What is under way: slabs are collected, then sorted. */
struct reslab {
    const struct gradcmp_parameter *from;
    struct gradcmp_parameter *made;
    struct gcmp_arena *arena;
    struct placed *placed;
    size_t count, capacity;
};

static int compare_placed(const void *left, const void *right) {
    const struct placed *a = left, *b = right;
    if (a->slab.copy != b->slab.copy) {
        return a->slab.copy < b->slab.copy ? -1 : 1;
    }
    return (a->first > b->first) - (a->first < b->first);
}

static uint64_t first_elem(const struct gradcmp_parameter *parameter, const uint64_t *start) {
    uint64_t first = 0;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        first = first * parameter->shape[d] + start[d];
    }
    return first;
}

static enum gradcmp_status add_slab(struct reslab *work, const struct gradcmp_slab *slab,
                                    struct gradcmp_error *error) {
    if (work->count == GCMP_RESLAB_MAX) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s: cut into more than %d slabs", work->from->name,
                  GCMP_RESLAB_MAX);
    }
    if (!gcmp_grow(&work->placed, work->count, &work->capacity, sizeof *work->placed)) {
        GCMP_FAIL_MEMORY(error);
    }
    work->placed[work->count++] = (struct placed){*slab, first_elem(work->made, slab->start)};
    return GRADCMP_OK;
}

/* The part of a slab that a move takes, at its new place. */
static enum gradcmp_status move_slab(struct reslab *work, const struct gradcmp_slab *slab,
                                     const struct gradcmp_move *move, struct gradcmp_error *error) {
    unsigned ndim = work->from->ndim;
    uint64_t low[GRADCMP_MAX_NDIM], high[GRADCMP_MAX_NDIM];
    for (unsigned d = 0; d < ndim; d++) {
        uint64_t slab_end = slab->start[d] + slab->extent[d];
        uint64_t move_end = move->from[d] + move->extent[d];
        low[d] = slab->start[d] > move->from[d] ? slab->start[d] : move->from[d];
        high[d] = slab_end < move_end ? slab_end : move_end;
        if (low[d] >= high[d]) {
            return GRADCMP_OK;
        }
    }
    uint64_t *start = gcmp_arena_alloc(work->arena, ndim, sizeof *start);
    uint64_t *extent = gcmp_arena_alloc(work->arena, ndim, sizeof *extent);
    if (start == NULL || extent == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_slab part = *slab;
    part.start = start;
    part.extent = extent;
    for (unsigned d = 0; d < ndim; d++) {
        start[d] = low[d] - move->from[d] + move->to[d];
        extent[d] = high[d] - low[d];
        /* Inside the source, as the slab itself is: its coverage was proved. */
        part.offset_elems += (int64_t)(low[d] - slab->start[d]) * slab->stride[d];
    }
    return add_slab(work, &part, error);
}

static bool fits(uint64_t start, uint64_t extent, uint64_t size) {
    return start <= size && extent <= size - start;
}

/* Boxes lie in their shapes; *total grows by their elements, to more than `elems` at most once. */
static enum gradcmp_status check_moves(const struct gcmp_reslab_part *part, const uint64_t *shape,
                                       uint64_t elems, uint64_t *total,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter *from = part->from;
    for (size_t i = 0; i < part->count && *total <= elems; i++) {
        const struct gradcmp_move *move = &part->moves[i];
        uint64_t box = 1;
        for (unsigned d = 0; d < from->ndim; d++) {
            if (!fits(move->from[d], move->extent[d], from->shape[d]) ||
                !fits(move->to[d], move->extent[d], shape[d])) {
                GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "%s: a box outside of its shape", from->name);
            }
            box *= move->extent[d]; /* at most the elements of either shape */
        }
        *total += box;
    }
    return GRADCMP_OK;
}

/* Sort what was collected and hand it to the new parameter. */
static enum gradcmp_status finish(struct reslab *work, struct gradcmp_error *error) {
    struct gradcmp_slab *slabs = gcmp_arena_alloc(work->arena, work->count, sizeof *slabs);
    if (slabs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (work->count > 1) {
        qsort(work->placed, work->count, sizeof *work->placed, compare_placed);
    }
    for (size_t i = 0; i < work->count; i++) {
        slabs[i] = work->placed[i].slab;
    }
    work->made->slabs = slabs;
    work->made->slab_count = work->count;
    return GRADCMP_OK;
}

static enum gradcmp_status begin(struct reslab *work, const struct gradcmp_parameter *from,
                                 const uint64_t *shape, struct gcmp_arena *arena,
                                 struct gradcmp_error *error) {
    *work = (struct reslab){.from = from, .arena = arena};
    work->made = gcmp_arena_alloc(arena, 1, sizeof *work->made);
    uint64_t *kept = gcmp_arena_alloc(arena, from->ndim, sizeof *kept);
    if (work->made == NULL || kept == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *work->made = *from;
    for (unsigned d = 0; d < from->ndim; d++) {
        kept[d] = shape[d];
    }
    work->made->shape = kept;
    if (!gcmp_product(kept, from->ndim, &work->made->elem_count)) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s: too many elements", from->name);
    }
    return GRADCMP_OK;
}

/* Move the slabs of one part, as the copies that it has or has to stand in for. */
static enum gradcmp_status move_part(struct reslab *work, const struct gcmp_reslab_part *part,
                                     struct gradcmp_error *error) {
    const struct gradcmp_parameter *from = part->from;
    work->from = from;
    for (size_t s = 0; s < from->slab_count; s++) {
        struct gradcmp_slab slab = from->slabs[s];
        uint32_t stand_ins = slab.copy == 0 ? work->made->copy_count - from->copy_count : 0;
        for (uint32_t c = 0; c <= stand_ins; c++) {
            slab.copy = c == 0 ? slab.copy : from->copy_count + c - 1;
            for (size_t m = 0; m < part->count; m++) {
                GCMP_TRY(move_slab(work, &slab, &part->moves[m], error));
            }
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status check_parts(const struct gcmp_reslab_part *parts, size_t part_count,
                                       struct gradcmp_parameter *made,
                                       struct gradcmp_error *error) {
    uint64_t total = 0;
    for (size_t i = 0; i < part_count; i++) {
        const struct gradcmp_parameter *from = parts[i].from;
        if (from->ndim != made->ndim || from->dtype != made->dtype) {
            GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "%s: %s with %u axes, %s is %s with %u",
                      from->name, gradcmp_dtype_name((enum gradcmp_dtype)from->dtype), from->ndim,
                      made->name, gradcmp_dtype_name((enum gradcmp_dtype)made->dtype), made->ndim);
        }
        GCMP_TRY(check_moves(&parts[i], made->shape, made->elem_count, &total, error));
        made->copy_count =
            from->copy_count > made->copy_count ? from->copy_count : made->copy_count;
        made->overlap = made->overlap || from->overlap;
        made->replicated = made->replicated && from->replicated;
    }
    if (total != made->elem_count) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "%s: moves that do not fill the shape once",
                  made->name);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_reslab_join(const struct gcmp_reslab_part *parts, size_t part_count,
                                     const uint64_t *shape, struct gcmp_arena *arena,
                                     struct gradcmp_parameter **out, struct gradcmp_error *error) {
    struct reslab work;
    GCMP_TRY(begin(&work, parts[0].from, shape, arena, error));
    GCMP_TRY(check_parts(parts, part_count, work.made, error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < part_count; i++) {
        GCMP_TRY_OUT(move_part(&work, &parts[i], error));
    }
    status = finish(&work, error);
    *out = work.made;
out:
    free(work.placed);
    return status;
}

/* Give a parameter made from one with a former the former made alike. */
static enum gradcmp_status keep_former(const struct gradcmp_former *former,
                                       const struct gradcmp_parameter *alike,
                                       struct gcmp_arena *arena, struct gradcmp_parameter *made,
                                       struct gradcmp_error *error) {
    struct gradcmp_former *kept = gcmp_arena_alloc(arena, 1, sizeof *kept);
    if (kept == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *kept = *former;
    kept->parameter = alike;
    made->former = kept;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_reslab_moves(const struct gradcmp_parameter *from,
                                      const struct gradcmp_moves *moves, struct gcmp_arena *arena,
                                      struct gradcmp_parameter **out, struct gradcmp_error *error) {
    struct gcmp_reslab_part part = {from, moves->items, moves->count};
    GCMP_TRY(gcmp_reslab_join(&part, 1, moves->shape, arena, out, error));
    if (from->former == NULL) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *alike;
    part.from = from->former->parameter;
    GCMP_TRY(gcmp_reslab_join(&part, 1, moves->shape, arena, &alike, error));
    return keep_former(from->former, alike, arena, *out, error);
}

enum gradcmp_status gcmp_reslab_box(const struct gradcmp_parameter *from, const uint64_t *start,
                                    const uint64_t *extent, struct gcmp_arena *arena,
                                    struct gradcmp_parameter **out, struct gradcmp_error *error) {
    static const uint64_t origin[GRADCMP_MAX_NDIM] = {0};
    struct gradcmp_move move = {.from = start, .to = origin, .extent = extent};
    struct gradcmp_moves moves = {.shape = extent, .items = &move, .count = 1};
    return gcmp_reslab_moves(from, &moves, arena, out, error);
}

static enum gradcmp_status turn_slab(struct reslab *work, const struct gradcmp_slab *slab,
                                     struct gradcmp_error *error) {
    uint64_t *box = gcmp_arena_alloc(work->arena, 4, sizeof *box);
    int64_t *stride = gcmp_arena_alloc(work->arena, 2, sizeof *stride);
    if (box == NULL || stride == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned d = 0; d < 2; d++) {
        box[d] = slab->start[1 - d];
        box[2 + d] = slab->extent[1 - d];
        stride[d] = slab->stride[1 - d];
    }
    struct gradcmp_slab turned = *slab;
    turned.start = box;
    turned.extent = box + 2;
    turned.stride = stride;
    return add_slab(work, &turned, error);
}

static enum gradcmp_status transpose(const struct gradcmp_parameter *from, struct gcmp_arena *arena,
                                     struct gradcmp_parameter **out, struct gradcmp_error *error) {
    if (from->ndim != 2) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "%s: %u axes, 2 can be exchanged", from->name,
                  from->ndim);
    }
    const uint64_t turned[2] = {from->shape[1], from->shape[0]};
    struct reslab work;
    GCMP_TRY(begin(&work, from, turned, arena, error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t s = 0; s < from->slab_count; s++) {
        GCMP_TRY_OUT(turn_slab(&work, &from->slabs[s], error));
    }
    status = finish(&work, error);
    *out = work.made;
out:
    free(work.placed);
    return status;
}

enum gradcmp_status gcmp_reslab_transpose(const struct gradcmp_parameter *from,
                                          struct gcmp_arena *arena, struct gradcmp_parameter **out,
                                          struct gradcmp_error *error) {
    GCMP_TRY(transpose(from, arena, out, error));
    (*out)->vocab_rows = 0; /* its words, if any, are columns now */
    if (from->former == NULL) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *alike;
    GCMP_TRY(transpose(from->former->parameter, arena, &alike, error));
    return keep_former(from->former, alike, arena, *out, error);
}
