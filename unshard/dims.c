/* Shapes and boxes as words. */
#include "unshard/dims.h"

#include <inttypes.h>
#include <stdio.h>

const char *gcmp_dims_text(char text[GCMP_DIMS_BYTES], unsigned ndim, const uint64_t *dims) {
    size_t at = 0;
    text[at++] = '[';
    for (unsigned d = 0; d < ndim; d++) {
        at += (size_t)snprintf(text + at, GCMP_DIMS_BYTES - at, "%s%" PRIu64, d == 0 ? "" : ", ",
                               dims[d]);
    }
    text[at++] = ']';
    text[at] = '\0';
    return text;
}

const char *gcmp_box_text(char text[GCMP_DIMS_BYTES], unsigned ndim, const uint64_t *shape,
                          const uint64_t *start, const uint64_t *extent) {
    size_t at = 0;
    for (unsigned d = 0; d < ndim; d++) {
        if (start[d] != 0 || extent[d] != shape[d]) {
            at += (size_t)snprintf(text + at, GCMP_DIMS_BYTES - at,
                                   "%s[%" PRIu64 ", %" PRIu64 ") of axis %u",
                                   at == 0 ? "rows " : ", ", start[d], start[d] + extent[d], d);
        }
    }
    if (at == 0) {
        snprintf(text, GCMP_DIMS_BYTES, "all elements");
    }
    return text;
}
