/* Finds weights that are stored under two names. */
#include "base/twins.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/model_names.h"

bool gcmp_stored_place(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_stored *stored, struct gcmp_place *place) {
    if (stored->piece_count != 1) {
        return false;
    }
    const struct gradcmp_piece *piece = &stored->pieces[0];
    const struct gradcmp_source *source = &catalogue->sources[piece->source];
    uint64_t offset = piece->stride == NULL ? 0 : (uint64_t)piece->offset_elems;
    place->file = source->file;
    return source->kind == GRADCMP_SOURCE_RANGE &&
           gcmp_mul_u64(offset, gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype), &offset) &&
           gcmp_add_u64(source->offset_bytes, offset, &place->first_byte) &&
           gcmp_product(stored->shape, stored->ndim, &place->elems);
}

/* True for a weight of some elements, whose place is known. */
static bool find_place(const struct gradcmp_catalogue *catalogue, size_t index,
                       struct gcmp_place *place) {
    const struct gradcmp_stored *stored = &catalogue->stored[index];
    return stored->state != NULL && strcmp(stored->state, "param") == 0 &&
           gcmp_stored_place(catalogue, stored, place) && place->elems > 0;
}

/* True for equal bytes, or two NULL. */
static bool are_equal(const void *a, const void *b, size_t bytes) {
    return a == b || (a != NULL && b != NULL && memcmp(a, b, bytes) == 0);
}

/* Tensors of one place are one where they are of one rank, type and shape, without strides of their
 * own. */
static bool are_alike(const struct gradcmp_stored *a, const struct gradcmp_stored *b) {
    const struct gradcmp_piece *x = a->pieces, *y = b->pieces;
    return a->dtype == b->dtype && gcmp_dims_equal(a->ndim, a->shape, b->ndim, b->shape) &&
           are_equal(x->stride, y->stride, a->ndim * sizeof *x->stride) &&
           are_equal(x->coords, y->coords, sizeof *x->coords);
}

/* Join weight `index` to the first one of its place; twins[i] is of weight `begin` + i. */
static void join(const struct gradcmp_catalogue *catalogue, size_t begin, size_t index,
                 size_t first, struct gcmp_twin *twins) {
    const struct gradcmp_stored *stored = &catalogue->stored[index];
    if (index == first || !are_alike(&catalogue->stored[first], stored)) {
        return;
    }
    const char *own = gcmp_name_of_own(catalogue->stored[first].name);
    twins[index - begin].first = first;
    if (own != NULL && strcmp(own, stored->name) == 0) {
        twins[first - begin].name = index;
    }
}

enum gradcmp_status gcmp_twins_find(const struct gradcmp_catalogue *catalogue, size_t first,
                                    size_t end, struct gcmp_twin **twins,
                                    struct gradcmp_error *error) {
    size_t count = end - first;
    struct gcmp_map map = GCMP_MAP_INIT;
    struct gcmp_place *places = calloc(count + 1, sizeof *places);
    *twins = calloc(count + 1, sizeof **twins);
    bool has_memory = places != NULL && *twins != NULL;
    for (size_t i = 0; i < count && has_memory; i++) {
        size_t found = first + i;
        (*twins)[i] = (struct gcmp_twin){found, found};
        if (find_place(catalogue, first + i, &places[i])) {
            has_memory = gcmp_map_add(&map, &places[i], sizeof places[i], first + i, &found) !=
                         GCMP_MAP_NO_MEMORY;
            join(catalogue, first, first + i, found, *twins);
        }
    }
    for (size_t i = 0; i < count && has_memory; i++) { /* the name that the first one has found */
        (*twins)[i].name = (*twins)[(*twins)[i].first - first].name;
    }
    gcmp_map_free(&map);
    free(places);
    if (!has_memory) {
        free(*twins);
        *twins = NULL;
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}
