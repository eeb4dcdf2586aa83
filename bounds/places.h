/* Where in a parameter the difference lies: sums over the cells of a grid and over boxes, and the
 * products of copies, taken while the elements pass by. */
#ifndef GCMP_BOUNDS_PLACES_H
#define GCMP_BOUNDS_PLACES_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"

enum {
    GCMP_PLACES_BOXES = 1024, /* more are not summed one by one */
    GCMP_PLACES_COPIES = 16
};

/* A box of the parameter, and the sums over it. */
struct gcmp_place_box {
    const uint64_t *start, *extent; /* ndim entries */
    size_t side;                    /* whose elements are set against the baseline's */
    struct gradcmp_tally tally;     /* d2, ad, a2, b2, max_d, elems, nonfinite_any alone */
};

/* What is summed up of one parameter. Elements come in row-major order and are added one after
 * another, so that no sum depends on how they were cut into runs. Elements that are not finite on a
 * side are left out. */
struct gcmp_places {
    unsigned ndim;
    const uint64_t *shape;
    double factor; /* common to the pair: the grid shows b / factor - a */
    struct gcmp_place_box *boxes;
    size_t box_count;
    uint32_t rows, columns;       /* of the grid; 0: none */
    double *cell_d2, *cell_elems; /* rows * columns */
    double a2, elems;             /* of the baseline, over what the grid counts */
    size_t copies;                /* candidate sides 1 .. copies are multiplied with each other */
    double *products;             /* copies * copies, j > i */
    bool *differ;                 /* likewise: some element of the two differs */
};

/* Set up the grid (and, with several copies, the products) of a parameter; ndim and shape, which
 * must live as long, are those of its logical form. ndim 0 is one cell. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_places_make(struct gcmp_places *places, unsigned ndim,
                                                      const uint64_t *shape, size_t copies,
                                                      struct gcmp_arena *arena,
                                                      struct gradcmp_error *error);

/* Add elements first .. first + count of the baseline (`a`) and of candidate side `side`. The grid
 * is of side 1. */
void gcmp_places_add(struct gcmp_places *places, size_t side, uint64_t first, const double *a,
                     const double *b, size_t count);

/* Add the same elements of copies i < j (numbered from 0). */
void gcmp_places_multiply(struct gcmp_places *places, size_t i, size_t j, const double *left,
                          const double *right, size_t count);

/* Make the map of the grid, in `arena`. Without a grid, or of a baseline that is all zero, its rows
 * are 0. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_places_heat(const struct gcmp_places *places,
                                                      struct gcmp_arena *arena,
                                                      struct gradcmp_heat *out,
                                                      struct gradcmp_error *error);

#endif
