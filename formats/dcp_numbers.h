/* Names for the numbers that stand for parameters in optimizers saved as they are. */
#ifndef GCMP_FORMATS_DCP_NUMBERS_H
#define GCMP_FORMATS_DCP_NUMBERS_H

#include "base/map.h"
#include "formats/dcp_keys.h"

/* The weights of a checkpoint: `stored` has their indexes, in the file's order; model_names their
 * names. */
struct gcmp_dcp_weights {
    const size_t *stored;
    size_t count;
    const struct gcmp_map *names;
};

/* Name the states whose keys say a number, by the names that groups list, else by groups, order and
 * shapes (optimizer_ids.h). Where that leaves it open, numbers of optimizers that list their
 * parameters, or that several ranks wrote, stand for themselves (catalogue->number_groups). Changes
 * keys. Errors: UNSUPPORTED; those of gcmp_dcp_read_lists. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_name_numbers(struct gradcmp_catalogue *catalogue,
                                                           struct gcmp_dcp_key *keys,
                                                           const struct gcmp_dcp_weights *weights,
                                                           struct gradcmp_error *error);

#endif
