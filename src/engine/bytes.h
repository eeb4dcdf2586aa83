/* Moving elements: byte order and strided copies. */
#ifndef GCMP_ENGINE_BYTES_H
#define GCMP_ENGINE_BYTES_H

#include <stddef.h>

/* Reverse the bytes of each group of `width` (2, 4 or 8) bytes in place. */
void gcmp_swap_bytes(void *bytes, size_t length_bytes, unsigned width);

/* A row of elements in memory; the step is counted in elements and may be 0 or negative. */
struct gcmp_row {
    unsigned char *at;
    ptrdiff_t step;
};

/* Copy `count` elements of `elem_bytes` (1, 2, 4, 8 or 16). The rows do not overlap. */
void gcmp_copy_row(struct gcmp_row to, const unsigned char *from, ptrdiff_t from_step, size_t count,
                   unsigned elem_bytes);

#endif
