/* Stored tensors in the making, to which ranks' flat parts are added one by one. */
#ifndef GCMP_FORMATS_DEEPSPEED_WHOLES_H
#define GCMP_FORMATS_DEEPSPEED_WHOLES_H

#include "base/map.h"
#include "formats/deepspeed_rank.h"

/* A flat range of a parameter's row-major elements, and where it lies in a rank's file. */
struct gcmp_ds_range {
    uint64_t from, elem_count; /* in the parameter */
    const struct gcmp_ds_flat *flat;
    uint64_t flat_from; /* first element in the flat tensor */
    int32_t dp, pp;     /* of the rank; pp -1: there is one stage */
};

/* A parameter as the model's files state it. */
struct gcmp_ds_param {
    const char *name;
    const uint64_t *shape; /* ndim entries */
    unsigned ndim;
    uint64_t elem_count;
};

struct gcmp_ds_whole;

struct gcmp_ds_wholes {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_map by_name; /* "state name" -> number */
    struct gcmp_ds_whole **numbered;
    size_t count, capacity;
    struct gcmp_map sources;
};

/* Add a range of a parameter's state; the first one starts its stored tensor. Errors: CORRUPT where
 * the parameter has another shape or type elsewhere; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_add_range(struct gcmp_ds_wholes *wholes,
                                                       const struct gcmp_ds_param *param,
                                                       const char *state,
                                                       const struct gcmp_ds_range *range,
                                                       struct gradcmp_error *error);

/* Append all to the catalogue, as grids of one fragment each: shape [1, .., 1, elements] of the
 * model's shape. Errors: LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_store_wholes(struct gcmp_ds_wholes *wholes,
                                                          struct gradcmp_error *error);

void gcmp_ds_free_wholes(struct gcmp_ds_wholes *wholes);

#endif
