/* What a call that is shared by ranks asks of them: that all look at the same checkpoints. */
#ifndef GCMP_RANKS_H
#define GCMP_RANKS_H

#include "engine/digest.h"
#include "engine/ranks.h"
#include "gradcmp/sys/catalogue.h"

/* How this rank sees the checkpoints of a call. */
struct gcmp_view {
    struct gcmp_digest whole;   /* metadata, and the sizes of all files */
    struct gcmp_digest sample;  /* a few bytes of some files */
    bool has_sample;            /* all of them could be read */
    struct gradcmp_error first; /* of the first checkpoint that could not be opened */
};

void gcmp_view_begin(struct gcmp_view *view);
/* Add a checkpoint, or the error that it gave. */
void gcmp_view_add(struct gcmp_view *view, const struct gradcmp_catalogue *catalogue);
void gcmp_view_add_error(struct gcmp_view *view, const struct gradcmp_error *error);

/* End the view and meet the other ranks: fails on all of them (IO) where they do not see the same.
 * What they meet for may then not go on. Without ranks nothing is done. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_view_agree(struct gcmp_view *view,
                                                     const struct gradcmp_options *options,
                                                     struct gradcmp_error *error);

/* True where another rank's process tells what was found. */
static inline bool gcmp_is_helper(const struct gradcmp_options *options) {
    return options->ranks != NULL && options->ranks->index > 0;
}

#endif
