/* Parameters made of other parameters by slabs alone: a box of one, its parts in other places, its
 * transpose. */
#ifndef GCMP_UNSHARD_RESLAB_H
#define GCMP_UNSHARD_RESLAB_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/move.h"
#include "gradcmp/sys/parameter.h"

/* Most slabs of a parameter made here; more is LIMIT. */
enum { GCMP_RESLAB_MAX = 1 << 18 };

/* Make a parameter whose elements are those of `from`, moved. The moves fill the new shape, each
 * place once; `from` has axes. Everything new lives in `arena`; names, coordinates and sources stay
 * those of `from`, which must live as long. Errors: USAGE (a box outside of its shape, or moves
 * that do not add up to the new shape), LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_reslab_moves(const struct gradcmp_parameter *from,
                                                       const struct gradcmp_moves *moves,
                                                       struct gcmp_arena *arena,
                                                       struct gradcmp_parameter **out,
                                                       struct gradcmp_error *error);

/* A parameter and the places that its elements take in one made of several. */
struct gcmp_reslab_part {
    const struct gradcmp_parameter *from;
    struct gradcmp_move *moves; /* `to` counts in the new shape */
    size_t count;
};

/* The same of several parameters with as many axes and one type (at least one): their moves
 * together fill `shape`, each place once. Name, state, layer and flags are the first one's; where
 * one has more copies than another, the other's first stands in for those it lacks. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_reslab_join(const struct gcmp_reslab_part *parts,
                                                      size_t part_count, const uint64_t *shape,
                                                      struct gcmp_arena *arena,
                                                      struct gradcmp_parameter **out,
                                                      struct gradcmp_error *error);

/* The same as gcmp_reslab_moves for one box of `from`: start and extent have its ndim entries. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_reslab_box(const struct gradcmp_parameter *from,
                                                     const uint64_t *start, const uint64_t *extent,
                                                     struct gcmp_arena *arena,
                                                     struct gradcmp_parameter **out,
                                                     struct gradcmp_error *error);

/* Exchange the axes of a parameter that has two. USAGE for another number of them. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_reslab_transpose(const struct gradcmp_parameter *from,
                                                           struct gcmp_arena *arena,
                                                           struct gradcmp_parameter **out,
                                                           struct gradcmp_error *error);

#endif
