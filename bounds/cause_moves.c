/* Hypotheses as lists of moves. */
#include "bounds/cause_moves.h"

#include <string.h>

enum { STRIPES = 16 };

/* A run of rows along the axis. */
struct run {
    uint64_t from, to, rows;
};

static bool start_moves(const struct gcmp_axis *axis, size_t capacity, struct gcmp_arena *arena,
                        struct gradcmp_moves *out) {
    *out = (struct gradcmp_moves){.shape = axis->shape};
    out->items = gcmp_arena_alloc(arena, capacity, sizeof *out->items);
    return out->items != NULL;
}

/* Add a run, whole along all other axes of `shape`. */
static bool add_run(const struct gcmp_axis *axis, struct run run, struct gcmp_arena *arena,
                    struct gradcmp_moves *out) {
    uint64_t *dims = gcmp_arena_alloc(arena, 3 * (size_t)axis->ndim, sizeof *dims);
    if (dims == NULL) {
        return false;
    }
    uint64_t *from = dims, *to = dims + axis->ndim, *extent = dims + 2 * axis->ndim;
    memcpy(extent, axis->shape, axis->ndim * sizeof *extent);
    from[axis->axis] = run.from;
    to[axis->axis] = run.to;
    extent[axis->axis] = run.rows;
    out->items[out->count++] = (struct gradcmp_move){from, to, extent};
    return true;
}

bool gcmp_moves_blocks(const struct gcmp_axis *axis, size_t count, const size_t *map,
                       struct gcmp_arena *arena, struct gradcmp_moves *out) {
    uint64_t rows = axis->shape[axis->axis] / count;
    bool good = start_moves(axis, count, arena, out);
    for (size_t j = 0; good && j < count; j++) {
        good = add_run(axis, (struct run){map[j] * rows, j * rows, rows}, arena, out);
    }
    return good;
}

bool gcmp_moves_roll(const struct gcmp_axis *axis, size_t count, uint64_t shift,
                     struct gcmp_arena *arena, struct gradcmp_moves *out) {
    uint64_t rows = axis->shape[axis->axis] / count;
    bool good = start_moves(axis, 2 * count, arena, out);
    for (size_t j = 0; good && j < count; j++) {
        uint64_t base = j * rows;
        good = add_run(axis, (struct run){base, base + shift, rows - shift}, arena, out) &&
               add_run(axis, (struct run){base + rows - shift, base, shift}, arena, out);
    }
    return good;
}

bool gcmp_qkv_fits(const struct gcmp_axis *axis, const struct gcmp_qkv *qkv) {
    enum { MOST = 1 << 20 }; /* far beyond any model; keeps the products small */
    bool sane = qkv->heads > 0 && qkv->groups > 0 && qkv->head_dim > 0 && qkv->ranks > 0 &&
                qkv->heads <= MOST && qkv->groups <= qkv->heads && qkv->head_dim <= MOST;
    return sane && axis->ndim > 0 && qkv->heads % qkv->groups == 0 &&
           qkv->groups % qkv->ranks == 0 &&
           axis->shape[0] == (qkv->heads + 2 * qkv->groups) * qkv->head_dim;
}

/* One group's queries, key or value, in either order. */
static bool add_group_run(const struct gcmp_axis *axis, bool to_kinds, struct run run,
                          struct gcmp_arena *arena, struct gradcmp_moves *out) {
    if (!to_kinds) {
        run = (struct run){run.to, run.from, run.rows};
    }
    return add_run(axis, run, arena, out);
}

bool gcmp_moves_qkv(const struct gcmp_axis *axis, const struct gcmp_qkv *qkv,
                    struct gcmp_arena *arena, struct gradcmp_moves *out) {
    const struct gcmp_axis rows = {axis->shape, axis->ndim, 0};
    uint64_t dim = qkv->head_dim, queries = qkv->heads / qkv->groups * dim;
    uint64_t group_rows = queries + 2 * dim, groups = qkv->groups / qkv->ranks;
    bool good = start_moves(axis, (size_t)(3 * qkv->groups), arena, out);
    for (uint64_t r = 0; good && r < qkv->ranks; r++) {
        uint64_t base = r * groups * group_rows, keys = base + groups * queries;
        for (uint64_t g = 0; good && g < groups; g++) {
            uint64_t from = base + g * group_rows, key = from + queries;
            good =
                add_group_run(&rows, qkv->to_kinds, (struct run){from, base + g * queries, queries},
                              arena, out) &&
                add_group_run(&rows, qkv->to_kinds, (struct run){key, keys + g * dim, dim}, arena,
                              out) &&
                add_group_run(&rows, qkv->to_kinds,
                              (struct run){key + dim, keys + (groups + g) * dim, dim}, arena, out);
        }
    }
    return good;
}

/* Elements of a shape, without the axis `skip`; saturates far above any budget. */
static uint64_t elems_beside(const uint64_t *shape, unsigned ndim, unsigned skip) {
    uint64_t elems = 1;
    for (unsigned d = 0; d < ndim; d++) {
        if (d != skip) {
            elems = shape[d] == 0 || elems <= UINT32_MAX / shape[d] ? elems * shape[d] : UINT32_MAX;
        }
    }
    return elems;
}

/* Shorten the axes beside the sampled one, the longest first, until they fit. */
static void shorten(uint64_t *kept, const struct gcmp_axis *axis, uint64_t beside) {
    while (elems_beside(kept, axis->ndim, axis->axis) > beside) {
        unsigned longest = axis->axis == 0 ? axis->ndim - 1 : 0;
        for (unsigned d = 0; d < axis->ndim; d++) {
            if (d != axis->axis && kept[d] > kept[longest]) {
                longest = d;
            }
        }
        if (kept[longest] <= 1) {
            return;
        }
        kept[longest] = (kept[longest] + 1) / 2;
    }
}

/* The axis whose kept part is cut into stripes: the one that was shortened most. */
static unsigned striped_axis(const uint64_t *kept, const struct gcmp_axis *axis) {
    unsigned striped = axis->axis == 0 ? axis->ndim - 1 : 0;
    for (unsigned d = 0; d < axis->ndim; d++) {
        if (d != axis->axis && axis->shape[d] - kept[d] > axis->shape[striped] - kept[striped]) {
            striped = d;
        }
    }
    return striped;
}

bool gcmp_moves_sample(const struct gcmp_axis *axis, uint64_t budget, struct gcmp_arena *arena,
                       struct gradcmp_moves *out) {
    enum { LEAST_LINES = 4 };
    uint64_t rows = axis->shape[axis->axis];
    uint64_t *kept = gcmp_arena_alloc(arena, axis->ndim, sizeof *kept);
    if (kept == NULL || !start_moves(axis, STRIPES, arena, out)) {
        return false;
    }
    memcpy(kept, axis->shape, axis->ndim * sizeof *kept);
    out->shape = kept;
    if (axis->ndim > 1) {
        uint64_t lines = rows == 0 ? budget : budget / rows;
        shorten(kept, axis, lines < LEAST_LINES ? LEAST_LINES : lines);
    }
    const struct gcmp_axis whole = {kept, axis->ndim, striped_axis(kept, axis)};
    uint64_t length = axis->shape[whole.axis], parts = kept[whole.axis];
    uint64_t stripes = axis->ndim == 1 || parts == length ? 1 : parts < STRIPES ? parts : STRIPES;
    bool good = true;
    for (uint64_t s = 0, to = 0; good && s < stripes; s++) {
        uint64_t part = parts * (s + 1) / stripes - parts * s / stripes;
        uint64_t from = stripes == 1 ? (length - part) / 2 : (length - part) * s / (stripes - 1);
        good = add_run(&whole, (struct run){from, to, part}, arena, out);
        to += part;
    }
    return good;
}

static bool add_box(struct gcmp_arena *arena, struct gradcmp_moves *out, const uint64_t *from,
                    uint64_t to_row, const uint64_t *extent) {
    uint64_t *dims = gcmp_arena_alloc(arena, 6, sizeof *dims);
    if (dims == NULL) {
        return false;
    }
    memcpy(dims, from, 2 * sizeof *dims);
    dims[2] = to_row;
    memcpy(dims + 4, extent, 2 * sizeof *dims);
    out->items[out->count++] = (struct gradcmp_move){dims, dims + 2, dims + 4};
    return true;
}

bool gcmp_moves_flat(const uint64_t *shape, const struct gcmp_flat_shift *shift,
                     struct gcmp_arena *arena, struct gradcmp_moves *a, struct gradcmp_moves *b) {
    uint64_t columns = shape[1];
    uint64_t distance = shift->offset < 0 ? (uint64_t)-shift->offset : (uint64_t)shift->offset;
    uint64_t skipped = distance / columns + shift->part, over = distance % columns;
    /* The side that is read further on, and the other one. */
    struct gradcmp_moves *far = shift->offset > 0 ? a : b, *near = shift->offset > 0 ? b : a;
    uint64_t blocks = (shape[0] + shift->block_rows - 1) / shift->block_rows, rows = 0;
    uint64_t *made = gcmp_arena_alloc(arena, 2, sizeof *made);
    *a = *b = (struct gradcmp_moves){.shape = made};
    far->items = gcmp_arena_alloc(arena, blocks, sizeof *far->items);
    near->items = gcmp_arena_alloc(arena, blocks, sizeof *near->items);
    bool good = made != NULL && far->items != NULL && near->items != NULL;
    uint64_t width = shift->part == 0 ? columns - over : over;
    for (uint64_t j = 0; good && width > 0 && j < blocks; j++) {
        uint64_t first = j * shift->block_rows, left = shape[0] - first;
        uint64_t block = left < shift->block_rows ? left : shift->block_rows;
        if (block <= skipped) {
            continue;
        }
        const uint64_t extent[2] = {block - skipped, width};
        const uint64_t from_far[2] = {first + skipped, shift->part == 0 ? over : 0};
        const uint64_t from_near[2] = {first, shift->part == 0 ? 0 : columns - over};
        good = add_box(arena, far, from_far, rows, extent) &&
               add_box(arena, near, from_near, rows, extent);
        rows += extent[0];
    }
    if (good) {
        made[0] = rows;
        made[1] = width;
    }
    return good;
}
