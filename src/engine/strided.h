/* Reading runs of a box into place, whatever its strides. */
#ifndef GCMP_ENGINE_STRIDED_H
#define GCMP_ENGINE_STRIDED_H

#include "engine/box.h"
#include "engine/gather.h"

/* A box, and where its elements go. */
struct gcmp_destination {
    struct gcmp_record *record; /* held */
    const struct gcmp_box *box;
    const struct gcmp_staging *staging;
    unsigned char *out; /* of element `first` of the parameter */
    uint64_t first;
    unsigned elem_bytes;
    unsigned swap_bytes; /* bytes to be reversed together; 0 where the byte order is native */
};

/* Read elements [rank, end) of the box, which are no more than staging holds. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_read_run(const struct gcmp_destination *to, uint64_t rank,
                                                   uint64_t end, struct gradcmp_error *error);

#endif
