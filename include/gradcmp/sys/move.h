/* Moves: how the elements of a parameter are brought to other places. A hypothesis about a cause is
 * a list of them; no byte is copied to try it, only slabs are cut anew. */
#ifndef GRADCMP_SYS_MOVE_H
#define GRADCMP_SYS_MOVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A box of the old shape that goes to a place in the new one. Arrays have the parameter's ndim
 * entries. */
struct gradcmp_move {
    const uint64_t *from, *to, *extent;
};

/* Moves that together fill a new shape; every element of it comes from one of them. */
struct gradcmp_moves {
    const uint64_t *shape; /* the new one */
    struct gradcmp_move *items;
    size_t count;
};

#ifdef __cplusplus
}
#endif

#endif
