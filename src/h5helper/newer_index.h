/* The indexes of chunks as arrays of elements, which newer_arrays.c and newer_tree.c fill. */
#ifndef GRADCMP_H5HELPER_NEWER_INDEX_H
#define GRADCMP_H5HELPER_NEWER_INDEX_H

#include "h5helper/newer.h"

/* Where a chunk lies. */
struct element {
    uint64_t address; /* UINT64_MAX: nowhere */
    uint64_t length_bytes;
    uint32_t skipped;
};

struct elements {
    const struct object *object;
    struct element *at; /* by index; owned */
    uint64_t count;
    bool filtered;        /* elements in the file hold length and filters too */
    uint64_t chunk_bytes; /* of a chunk that is not filtered */
};

/* Bytes of an element in the file. */
size_t element_bytes(const struct elements *elements);
/* Read one element; false where there are no more bytes. */
bool read_element(const struct elements *elements, struct gcmp_cursor *cursor,
                  struct element *element);
/* Make `count` elements that are nowhere. Fails, and tells, where a file of this size cannot hold
 * as many. */
bool make_elements(struct elements *elements, uint64_t count);
/* Read elements [first, first + count) that lie behind each other, those beyond the end left out.
 */
bool read_run(struct elements *elements, struct gcmp_cursor *cursor, uint64_t first,
              uint64_t count);

/* Fill elements from an index. */
bool read_fixed_array(struct elements *elements);
bool read_extensible_array(struct elements *elements);
/* Here elements are numbered by the grid of the dataset, row-major. */
bool read_tree(struct elements *elements);

#endif
