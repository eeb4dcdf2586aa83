/* What Megatron says of a run: its arguments, its optimizer's settings, its parallel layout. */
#ifndef GCMP_FORMATS_MEGATRON_ARGS_H
#define GCMP_FORMATS_MEGATRON_ARGS_H

#include "base/error.h"
#include "formats/pickle.h"
#include "gradcmp/sys/catalogue.h"

/* Take the run's settings from the dict that Megatron saves as common.pt, or as a rank's
 * model_optim_rng.pt: args, iteration, optimizer.param_groups, content_metadata; each may be
 * absent. Scalars become settings under Megatron's argument names, content_metadata's with that
 * prefix, the optimizer's own with the prefix "optimizer."; its betas are adam_beta1 and
 * adam_beta2, with a note where the arguments differ. Fills parallel, layers, vocab, experts,
 * iteration, compute and layout_name, where they are not known yet. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_megatron_read_run(struct gradcmp_catalogue *catalogue,
                                                            const struct gcmp_node *root,
                                                            struct gradcmp_error *error);

/* The same from the arguments alone. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_megatron_read_args(struct gradcmp_catalogue *catalogue,
                                                             const struct gcmp_node *args,
                                                             struct gradcmp_error *error);

/* The same from common.pt in the catalogue's directory; *found tells whether there is one. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_megatron_read_common(struct gradcmp_catalogue *catalogue,
                                                               bool *found,
                                                               struct gradcmp_error *error);

#endif
