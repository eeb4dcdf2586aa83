/* Slices of a row-major box. */
#include "unshard/flat.h"

uint64_t gcmp_flat_init(struct gcmp_flat *flat) {
    uint64_t elems = 1;
    for (unsigned d = flat->ndim; d-- > 0;) {
        flat->inner[d] = elems;
        elems *= flat->local[d];
    }
    return elems;
}

/* Outermost axis along which whole steps from element `from` fit before `to`. */
static unsigned widest_axis(const struct gcmp_flat *flat, uint64_t from, uint64_t to) {
    unsigned axis = 0;
    while (from % flat->inner[axis] != 0 || flat->inner[axis] > to - from) {
        axis++; /* ends: the last axis steps by 1 */
    }
    return axis;
}

uint64_t gcmp_flat_box(const struct gcmp_flat *flat, uint64_t from, uint64_t to, uint64_t *start,
                       uint64_t *extent) {
    if (flat->ndim == 0) {
        return 1;
    }
    unsigned axis = widest_axis(flat, from, to);
    uint64_t rest = from, steps = (to - from) / flat->inner[axis];
    for (unsigned d = 0; d < flat->ndim; d++) {
        start[d] = rest / flat->inner[d];
        rest -= start[d] * flat->inner[d];
        extent[d] = d < axis ? 1 : flat->local[d];
    }
    uint64_t left = flat->local[axis] - start[axis];
    extent[axis] = steps < left ? steps : left;
    return extent[axis] * flat->inner[axis];
}
