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

/* Where a box is one piece of its record (box->contiguous): say what has to be read for elements
 * [rank, end): straight into place where they lie one after another in the parameter too, else to
 * `staging`. */
void gcmp_piece_want(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                     unsigned char *staging, struct gcmp_record_bytes *read);
/* Bring what was read into place, and add it to the record's checksum. read->bytes may lie
 * elsewhere than was said, but not overlap read->buffer without being the same. */
void gcmp_piece_put(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                    struct gcmp_record_bytes *read);

/* Read elements [rank, end) of the box, which are no more than staging holds. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_read_run(const struct gcmp_destination *to, uint64_t rank,
                                                   uint64_t end, struct gradcmp_error *error);

#endif
