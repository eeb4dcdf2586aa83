/* Shapes and boxes as words for messages. */
#ifndef GCMP_UNSHARD_DIMS_H
#define GCMP_UNSHARD_DIMS_H

#include <stdbool.h>

#include "gradcmp/sys/catalogue.h"

/* Room for a shape or a box of any size. */
enum { GCMP_DIMS_BYTES = 1024 };

/* Write "[8, 80, 32]" and return `text`. */
const char *gcmp_dims_text(char text[GCMP_DIMS_BYTES], unsigned ndim, const uint64_t *dims);

/* Write the axes on which a box is narrower than `shape`: "rows [20, 40) of axis 0, [0, 4) of axis
 * 1"; "all elements" where there is none. */
const char *gcmp_box_text(char text[GCMP_DIMS_BYTES], unsigned ndim, const uint64_t *shape,
                          const uint64_t *start, const uint64_t *extent);

#endif
