/* Arrays that grow. */
#ifndef GCMP_BASE_GROW_H
#define GCMP_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Make room for one more item in a malloced array: `array` is the address of its pointer, which may
 * be NULL, `count` the items in it, *capacity the items that it has room for. New items are
 * undefined. False without memory; then nothing has changed. */
GRADCMP_MUST_USE bool gcmp_grow(void *array, size_t count, size_t *capacity, size_t item_bytes);

#endif
