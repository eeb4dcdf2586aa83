/* Counts the elements that slabs hold, for the fuzz targets that check layouts. */
#ifndef GCMP_FUZZ_COUNT_SLAB_H
#define GCMP_FUZZ_COUNT_SLAB_H

#include "gradcmp/sys/parameter.h"

#include "demand.h"

/* Count the elements of one slab of a copy; `seen` has an item for each element of the parameter.
 */
static inline void count_slab(const struct gradcmp_parameter *parameter,
                              const struct gradcmp_slab *slab, unsigned char *seen) {
    uint64_t index[GRADCMP_MAX_NDIM] = {0};
    bool more = true;
    while (more) {
        uint64_t at = 0;
        for (unsigned d = 0; d < parameter->ndim; d++) {
            demand(slab->start[d] + index[d] < parameter->shape[d], "a slab lies inside");
            at = at * parameter->shape[d] + slab->start[d] + index[d];
        }
        demand(seen[at]++ == 0, "a copy holds an element once");
        more = false;
        for (unsigned d = parameter->ndim; d-- > 0 && !more;) {
            more = ++index[d] < slab->extent[d];
            index[d] = more ? index[d] : 0;
        }
    }
}

#endif
