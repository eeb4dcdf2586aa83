/* Proof that the slabs of a parameter cover each of its elements, as often as there are copies. */
#ifndef GCMP_UNSHARD_COVERAGE_H
#define GCMP_UNSHARD_COVERAGE_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/parameter.h"

/* Memory that one proof after another uses; zero-initialise it. */
struct gcmp_cover_room {
    struct gcmp_cover_order *order;
    size_t capacity;
};
void gcmp_cover_room_free(struct gcmp_cover_room *room);

/* Prove that parameter->slabs cover shape: each element once, or each the same number of times in
 * a way that falls into as many whole copies. Slabs must lie inside of the shape and hold at least
 * one element. On success every slab's `copy` is set, copy_count is the number of copies (1 where
 * there are no elements), and the slabs are sorted by copy, then by their first element.
 *
 * A hole is CORRUPT and the message names the range; so is an overlap that is no set of whole
 * copies. Layouts so irregular that the proof would take more than some seconds are LIMIT. Others:
 * MEMORY. Time is O(n log n) wherever straight cuts through the whole parameter, and through the
 * parts that they leave, separate the slabs; all known writers' layouts are of that kind. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_cover(struct gradcmp_parameter *parameter,
                                                struct gcmp_cover_room *room,
                                                struct gradcmp_error *error);

#endif
