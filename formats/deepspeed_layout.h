/* Where the parameters lie in the flat parts that ZeRO leaves with each rank. */
#ifndef GCMP_FORMATS_DEEPSPEED_LAYOUT_H
#define GCMP_FORMATS_DEEPSPEED_LAYOUT_H

#include "formats/deepspeed_model.h"

/* Ranks' files of one model-parallel rank, sorted by data-parallel rank, all there. */
struct gcmp_ds_ranks {
    struct gcmp_ds_rank *items;
    size_t count;
};

/* Add every state of every parameter to `wholes`, once the layout is proved: lengths must add up,
 * and what the ranks' own maps say must agree. Errors: CORRUPT where they do not, with the group;
 * UNSUPPORTED for groups that are shared in an unknown way; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_lay_out(struct gcmp_ds_wholes *wholes,
                                                     const struct gcmp_ds_model *model,
                                                     const struct gcmp_ds_ranks *ranks,
                                                     struct gradcmp_error *error);

#endif
