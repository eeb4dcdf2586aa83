/* Where in a parameter the difference lies. */
#include "bounds/places.h"

#include <math.h>

static uint32_t cells_of(uint64_t length) {
    return length < GRADCMP_HEAT_CELLS ? (uint32_t)length : GRADCMP_HEAT_CELLS;
}

static uint64_t row_length(const struct gcmp_places *places) {
    return places->ndim == 0 ? 1 : places->shape[places->ndim - 1];
}

static uint64_t row_count(const struct gcmp_places *places) {
    uint64_t rows = 1;
    for (unsigned d = 0; d + 1 < places->ndim; d++) {
        rows *= places->shape[d];
    }
    return rows;
}

enum gradcmp_status gcmp_places_make(struct gcmp_places *places, unsigned ndim,
                                     const uint64_t *shape, size_t copies, struct gcmp_arena *arena,
                                     struct gradcmp_error *error) {
    *places = (struct gcmp_places){.ndim = ndim, .shape = shape, .factor = 1.0};
    places->rows = cells_of(row_count(places));
    places->columns = cells_of(row_length(places));
    places->copies = copies;
    size_t cells = (size_t)places->rows * places->columns, pairs = copies * copies;
    places->cell_d2 = gcmp_arena_alloc(arena, cells + 1, sizeof *places->cell_d2);
    places->cell_elems = gcmp_arena_alloc(arena, cells + 1, sizeof *places->cell_elems);
    places->products = gcmp_arena_alloc(arena, pairs + 1, sizeof *places->products);
    places->differ = gcmp_arena_alloc(arena, pairs + 1, sizeof *places->differ);
    if (places->cell_d2 == NULL || places->cell_elems == NULL || places->products == NULL ||
        places->differ == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Elements of one row: columns first .. first + count of row `row`. */
struct segment {
    uint64_t row, column;
    const double *a, *b;
    size_t count;
};

/* The first element of a cell: ceil(cell * length / cells), without leaving 64 bits. */
static uint64_t cell_start(uint32_t cell, uint64_t length, uint32_t cells) {
    uint64_t whole = length / cells, rest = length % cells;
    return cell * whole + (cell * rest + cells - 1) / cells;
}

static uint32_t cell_at(uint64_t i, uint64_t length, uint32_t cells) {
    uint32_t low = 0, high = cells - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (cell_start(middle, length, cells) <= i) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Add elements from .. to of a segment to one cell. */
static void add_to_cell(struct gcmp_places *places, size_t cell, const struct segment *at,
                        size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        double a = at->a[i], b = at->b[i];
        if (isfinite(a) && isfinite(b)) {
            double d = b / places->factor - a;
            places->cell_d2[cell] += d * d;
            places->cell_elems[cell] += 1.0;
            places->a2 += a * a;
            places->elems += 1.0;
        }
    }
}

static void add_to_grid(struct gcmp_places *places, const struct segment *at) {
    uint64_t length = row_length(places);
    size_t line = (size_t)cell_at(at->row, row_count(places), places->rows) * places->columns;
    uint32_t cell = cell_at(at->column, length, places->columns);
    for (size_t from = 0; from < at->count; cell++) {
        uint64_t end = cell_start(cell + 1, length, places->columns) - at->column;
        size_t to = end < at->count ? (size_t)end : at->count;
        add_to_cell(places, line + cell, at, from, to);
        from = to;
    }
}

static void tally_element(struct gradcmp_tally *tally, double a, double b) {
    tally->elems++;
    if (!isfinite(a) || !isfinite(b)) {
        tally->nonfinite_any++;
        return;
    }
    double d = b - a;
    tally->d2 += d * d;
    tally->ad += a * d;
    tally->a2 += a * a;
    tally->b2 += b * b;
    tally->max_d = fmax(tally->max_d, fabs(d));
}

/* True where the row of index[0 .. ndim - 1) crosses the box. */
static bool crosses(const struct gcmp_places *places, const struct gcmp_place_box *box,
                    const uint64_t *index) {
    for (unsigned d = 0; d + 1 < places->ndim; d++) {
        if (index[d] < box->start[d] || index[d] - box->start[d] >= box->extent[d]) {
            return false;
        }
    }
    return true;
}

static void add_to_box(const struct gcmp_places *places, struct gcmp_place_box *box,
                       const struct segment *at) {
    unsigned last = places->ndim - 1;
    uint64_t from = box->start[last], to = from + box->extent[last];
    uint64_t end = at->column + at->count;
    from = from > at->column ? from : at->column;
    to = to < end ? to : end;
    for (uint64_t column = from; column < to; column++) {
        size_t i = (size_t)(column - at->column);
        tally_element(&box->tally, at->a[i], at->b[i]);
    }
}

static void add_to_boxes(struct gcmp_places *places, size_t side, const struct segment *at) {
    uint64_t index[GRADCMP_MAX_NDIM] = {0}, rest = at->row;
    for (unsigned d = places->ndim - 1; d-- > 0;) {
        index[d] = rest % places->shape[d];
        rest /= places->shape[d];
    }
    for (size_t i = 0; i < places->box_count; i++) {
        struct gcmp_place_box *box = &places->boxes[i];
        if (box->side == side && crosses(places, box, index)) {
            add_to_box(places, box, at);
        }
    }
}

void gcmp_places_add(struct gcmp_places *places, size_t side, uint64_t first, const double *a,
                     const double *b, size_t count) {
    uint64_t length = row_length(places);
    for (size_t done = 0; done < count;) {
        struct segment at = {(first + done) / length, (first + done) % length, a + done, b + done,
                             0};
        uint64_t left = length - at.column;
        at.count = left < count - done ? (size_t)left : count - done;
        if (side == 1 && places->rows > 0) {
            add_to_grid(places, &at);
        }
        if (places->ndim > 0) {
            add_to_boxes(places, side, &at);
        }
        done += at.count;
    }
}

void gcmp_places_multiply(struct gcmp_places *places, size_t i, size_t j, const double *left,
                          const double *right, size_t count) {
    double sum = places->products[i * places->copies + j];
    bool differ = places->differ[i * places->copies + j];
    for (size_t e = 0; e < count; e++) {
        if (isfinite(left[e]) && isfinite(right[e])) {
            sum += left[e] * right[e];
        }
        differ = differ || left[e] < right[e] || left[e] > right[e];
    }
    places->products[i * places->copies + j] = sum;
    places->differ[i * places->copies + j] = differ;
}

enum gradcmp_status gcmp_places_heat(const struct gcmp_places *places, struct gcmp_arena *arena,
                                     struct gradcmp_heat *out, struct gradcmp_error *error) {
    *out = (struct gradcmp_heat){0, 0, NULL};
    size_t count = (size_t)places->rows * places->columns;
    if (!(places->a2 > 0.0) || !isfinite(places->a2) || count == 0) {
        return GRADCMP_OK;
    }
    double *cells = gcmp_arena_alloc(arena, count, sizeof *cells);
    if (cells == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    double mean = places->a2 / places->elems;
    for (size_t i = 0; i < count; i++) {
        double elems = places->cell_elems[i];
        cells[i] = elems > 0.0 ? sqrt(places->cell_d2[i] / elems / mean) : NAN;
    }
    *out = (struct gradcmp_heat){places->rows, places->columns, cells};
    return GRADCMP_OK;
}
