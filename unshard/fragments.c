/* Grids of fragments, and flat slices of row-major boxes cut into boxes. */
#include "unshard/fragments.h"

#include "base/checked.h"
#include "unshard/dims.h"

static enum gradcmp_status fail_shapes(const struct gcmp_grid *grid, const char *what,
                                       enum gradcmp_status code, struct gradcmp_error *error) {
    char stored[GCMP_DIMS_BYTES], model[GCMP_DIMS_BYTES];
    GCMP_FAIL(error, code, "%s: stored shape %s %s the model's shape %s", grid->stored->key,
              gcmp_dims_text(stored, grid->stored->ndim, grid->stored->shape), what,
              gcmp_dims_text(model, grid->ndim, grid->shape));
}

/* Take the model's shape as stated, else as the model's tensor has it, else as stored. */
static enum gradcmp_status choose_shape(const struct gradcmp_stored *model, struct gcmp_grid *grid,
                                        struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = grid->stored;
    grid->shape = stored->shape;
    grid->ndim = stored->ndim;
    if (model != NULL) {
        grid->shape = model->shape;
        grid->ndim = model->ndim;
    }
    if (stored->model_shape != NULL) {
        if (model != NULL &&
            !gcmp_dims_equal(model->ndim, model->shape, stored->model_ndim, stored->model_shape)) {
            char stated[GCMP_DIMS_BYTES], found[GCMP_DIMS_BYTES];
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                      "%s: stated model shape %s, but the model's tensor %s has %s", stored->key,
                      gcmp_dims_text(stated, stored->model_ndim, stored->model_shape), model->key,
                      gcmp_dims_text(found, model->ndim, model->shape));
        }
        grid->shape = stored->model_shape;
        grid->ndim = stored->model_ndim;
    }
    return GRADCMP_OK;
}

/* The local shape from the grid's cells: x = X / g. False where they do not fit. */
static bool derive_fragment(struct gcmp_grid *grid) {
    const struct gradcmp_stored *stored = grid->stored;
    grid->fragment.ndim = grid->ndim;
    for (unsigned d = 0; d < grid->ndim; d++) {
        uint64_t cells = grid->lead == 0 ? 1 : stored->shape[d];
        if (cells == 0 ? grid->shape[d] != 0 : grid->shape[d] % cells != 0) {
            return false;
        }
        grid->fragment.local[d] = cells == 0 ? 0 : grid->shape[d] / cells;
    }
    return gcmp_flat_init(&grid->fragment) == stored->shape[stored->ndim - 1];
}

enum gradcmp_status gcmp_grid_make(const struct gradcmp_stored *stored,
                                   const struct gradcmp_stored *model, struct gcmp_grid *grid,
                                   struct gradcmp_error *error) {
    *grid = (struct gcmp_grid){.stored = stored};
    GCMP_TRY(choose_shape(model, grid, error));
    uint64_t stored_elems, model_elems;
    if (!gcmp_product(stored->shape, stored->ndim, &stored_elems) ||
        !gcmp_product(grid->shape, grid->ndim, &model_elems)) {
        return fail_shapes(grid, "with 2^63 elements or more, or as many in", GRADCMP_ERROR_CORRUPT,
                           error);
    }
    if (gcmp_dims_equal(stored->ndim, stored->shape, grid->ndim, grid->shape)) {
        return GRADCMP_OK;
    }
    bool has_cells = stored->ndim == grid->ndim + 1;
    if (!has_cells && !(stored->ndim == 1 && stored_elems == model_elems)) {
        return fail_shapes(
            grid, "is neither a box nor fragments of",
            stored_elems == model_elems ? GRADCMP_ERROR_UNSUPPORTED : GRADCMP_ERROR_CORRUPT, error);
    }
    grid->is_flat = true;
    grid->lead = has_cells ? grid->ndim : 0;
    if (!derive_fragment(grid)) {
        return fail_shapes(grid, "does not divide", GRADCMP_ERROR_CORRUPT, error);
    }
    return GRADCMP_OK;
}

bool gcmp_advance(int64_t *index, uint64_t steps, int64_t stride) {
    int64_t way;
    return steps <= INT64_MAX && !__builtin_mul_overflow((int64_t)steps, stride, &way) &&
           !__builtin_add_overflow(*index, way, index);
}

static enum gradcmp_status fail_strides(const struct gcmp_grid *grid, struct gradcmp_error *error) {
    GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: strides of a piece leave the range of 64 bits",
              grid->stored->key);
}

static enum gradcmp_status check_inside(const struct gradcmp_stored *stored,
                                        const struct gradcmp_piece *piece,
                                        struct gradcmp_error *error) {
    for (unsigned d = 0; d < stored->ndim; d++) {
        uint64_t end;
        if (!gcmp_add_u64(piece->start[d], piece->extent[d], &end) || end > stored->shape[d]) {
            char start[GCMP_DIMS_BYTES], extent[GCMP_DIMS_BYTES], shape[GCMP_DIMS_BYTES];
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                      "%s: a piece of shape %s at %s is not inside of %s", stored->key,
                      gcmp_dims_text(extent, stored->ndim, piece->extent),
                      gcmp_dims_text(start, stored->ndim, piece->start),
                      gcmp_dims_text(shape, stored->ndim, stored->shape));
        }
    }
    return GRADCMP_OK;
}

/* Fill `stride` of the piece's axes; without any stated they are row-major. */
static void piece_strides(const struct gradcmp_piece *piece, unsigned ndim, int64_t *stride) {
    int64_t step = 1;
    for (unsigned d = ndim; d-- > 0;) {
        stride[d] = piece->stride != NULL ? piece->stride[d] : step;
        step *= (int64_t)piece->extent[d]; /* not empty and inside: below 2^63 */
    }
}

/* A walk over the fragments that a piece touches. */
struct walk {
    const struct gcmp_grid *grid;
    const struct gradcmp_piece *piece;
    int64_t stride[GRADCMP_MAX_NDIM]; /* of the piece */
    int64_t offset_elems;             /* of the piece's first element */
    uint64_t cell[GRADCMP_MAX_NDIM];
    gcmp_box_fn emit;
    void *user;
};

/* True where consecutive fragments are consecutive elements, so that one box holds all. */
static bool is_merged(const struct gcmp_grid *grid, unsigned axis) {
    return axis < grid->lead && grid->fragment.local[axis] == 1;
}

/* Turn a box of the walk's fragment, whose first element is flat element `from`, into one of the
 * model's tensor. */
static bool place_box(const struct walk *walk, uint64_t from, struct gcmp_box *box) {
    const struct gcmp_grid *grid = walk->grid;
    unsigned flat_axis = grid->stored->ndim - 1u;
    box->offset_elems = walk->offset_elems;
    bool ok = gcmp_advance(&box->offset_elems, from - walk->piece->start[flat_axis],
                           walk->stride[flat_axis]);
    for (unsigned d = 0; d < grid->ndim && ok; d++) {
        box->start[d] += walk->cell[d] * grid->fragment.local[d];
        if (is_merged(grid, d)) {
            box->extent[d] = walk->piece->extent[d];
            box->stride[d] = walk->stride[d];
            continue;
        }
        box->stride[d] = 0;
        ok = gcmp_advance(&box->stride[d], grid->fragment.inner[d], walk->stride[flat_axis]) &&
             (grid->lead == 0 ||
              gcmp_advance(&box->offset_elems, walk->cell[d] - walk->piece->start[d],
                           walk->stride[d]));
    }
    return ok;
}

/* Cut the flat slice of one fragment into boxes. */
static enum gradcmp_status cut_slice(const struct walk *walk, struct gradcmp_error *error) {
    const struct gcmp_grid *grid = walk->grid;
    unsigned flat_axis = grid->stored->ndim - 1u;
    uint64_t from = walk->piece->start[flat_axis], to = from + walk->piece->extent[flat_axis];
    struct gcmp_box box; /* its arrays are filled as far as they are used */
    box.source = walk->piece->source;
    box.coords = walk->piece->coords;
    while (from < to) {
        uint64_t elems = gcmp_flat_box(&grid->fragment, from, to, box.start, box.extent);
        if (!place_box(walk, from, &box)) {
            return fail_strides(grid, error);
        }
        GCMP_TRY(walk->emit(walk->user, &box, error));
        from += elems;
    }
    return GRADCMP_OK;
}

/* Go to the next fragment of the piece; false after the last. */
static bool next_cell(struct walk *walk) {
    for (unsigned d = walk->grid->lead; d-- > 0;) {
        if (is_merged(walk->grid, d)) {
            continue;
        }
        if (++walk->cell[d] < walk->piece->start[d] + walk->piece->extent[d]) {
            return true;
        }
        walk->cell[d] = walk->piece->start[d];
    }
    return false;
}

static enum gradcmp_status flat_boxes(struct walk *walk, struct gradcmp_error *error) {
    for (unsigned d = 0; d < walk->grid->ndim; d++) {
        walk->cell[d] = d < walk->grid->lead ? walk->piece->start[d] : 0;
    }
    do { /* as many as the piece says: `emit` bounds them */
        GCMP_TRY(cut_slice(walk, error));
    } while (next_cell(walk));
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_grid_boxes(const struct gcmp_grid *grid, const struct gradcmp_piece *piece,
                                    gcmp_box_fn emit, void *user, struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = grid->stored;
    GCMP_TRY(check_inside(stored, piece, error));
    for (unsigned d = 0; d < stored->ndim; d++) {
        if (piece->extent[d] == 0) {
            return GRADCMP_OK;
        }
    }
    struct walk walk = {.grid = grid,
                        .piece = piece,
                        .emit = emit,
                        .user = user,
                        .offset_elems = piece->stride != NULL ? piece->offset_elems : 0};
    piece_strides(piece, stored->ndim, walk.stride);
    if (grid->is_flat) {
        return flat_boxes(&walk, error);
    }
    struct gcmp_box box;
    box.source = piece->source;
    box.coords = piece->coords;
    box.offset_elems = walk.offset_elems;
    for (unsigned d = 0; d < grid->ndim; d++) {
        box.start[d] = piece->start[d];
        box.extent[d] = piece->extent[d];
        box.stride[d] = walk.stride[d];
    }
    return emit(user, &box, error);
}
