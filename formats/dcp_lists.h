/* Which parameters each group of an optimizer lists in a distributed checkpoint: numbers, and names
 * where the optimizer was made from named parameters. */
#ifndef GCMP_FORMATS_DCP_LISTS_H
#define GCMP_FORMATS_DCP_LISTS_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* A parameter of a group. */
struct gcmp_dcp_param {
    size_t number;
    const char *name; /* NULL: none is listed */
};

struct gcmp_dcp_group {
    const char *path; /* of the optimizer: path_bytes at the front of a key; not ended by 0 */
    size_t path_bytes, number;
    size_t first, count; /* of its parameters */
    bool is_read;        /* false: the list holds something else, or cannot be read */
};

struct gcmp_dcp_lists {
    struct gcmp_dcp_group *groups; /* by path, then by number */
    size_t group_count, group_capacity;
    struct gcmp_dcp_param *params;
    size_t param_count, param_capacity;
};

/* Read the lists "<path>.param_groups.<group>.params" and "....param_names" of all optimizers.
 * `out` must be freed in any case; names are the catalogue's. Errors: IO, MEMORY; CORRUPT where a
 * group has other than one name for each parameter; LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_read_lists(struct gradcmp_catalogue *catalogue,
                                                         struct gcmp_dcp_lists *out,
                                                         struct gradcmp_error *error);
void gcmp_dcp_free_lists(struct gcmp_dcp_lists *lists);

#endif
