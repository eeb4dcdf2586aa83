/* By halves, so that what was freed before can hold what comes. */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pages.h"

bool gcmp_grow(void *array, size_t count, size_t *capacity, size_t item_bytes) {
    enum { LEAST_ITEMS = 4 }; /* many arrays stay small */
    if (count < *capacity) {
        return true;
    }
    size_t bigger = *capacity < LEAST_ITEMS ? LEAST_ITEMS : *capacity + *capacity / 2, bytes;
    if (bigger <= *capacity || !gcmp_mul_size(bigger, item_bytes, &bytes)) {
        return false;
    }
    void *old;
    memcpy(&old, array, sizeof old);
    void *moved = realloc(old, bytes);
    if (moved == NULL) {
        return false;
    }
    gcmp_ask_for_huge_pages(moved, bytes);
    memcpy(array, &moved, sizeof moved);
    *capacity = bigger;
    return true;
}
