/* Slices of a row-major box, cut into boxes. */
#ifndef GCMP_UNSHARD_FLAT_H
#define GCMP_UNSHARD_FLAT_H

#include "gradcmp/sys/catalogue.h"

/* A row-major box of `local` extents; `inner` are its strides. */
struct gcmp_flat {
    unsigned ndim;
    uint64_t local[GRADCMP_MAX_NDIM], inner[GRADCMP_MAX_NDIM];
};

/* Fill `inner` from ndim and local, whose product must be below 2^63; returns the product. */
uint64_t gcmp_flat_init(struct gcmp_flat *flat);

/* Describe the largest box that begins at element `from` and ends at or before `to`, with
 * from < to <= elements: its start and extent (ndim entries each). Returns its elements, which are
 * consecutive in the flat order, so that the next box begins behind them. A slice makes at most
 * 2*ndim-1 boxes. */
uint64_t gcmp_flat_box(const struct gcmp_flat *flat, uint64_t from, uint64_t to, uint64_t *start,
                       uint64_t *extent);

#endif
