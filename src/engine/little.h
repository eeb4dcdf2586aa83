/* Elements in the byte order of files. */
#ifndef GCMP_ENGINE_LITTLE_H
#define GCMP_ENGINE_LITTLE_H

#include <stddef.h>

#include "gradcmp/gradcmp.h"

/* Give elements that are in the host's byte order to `take` in little-endian order, in one piece or
 * several; what `take` returns first that is not 0 is returned. */
int gcmp_give_little(const void *elems, size_t length_bytes, enum gradcmp_dtype dtype,
                     int (*take)(void *user, const void *bytes, size_t count), void *user);

#endif
