/* What torch's optimizers say of themselves in a distributed checkpoint. */
#ifndef GCMP_FORMATS_DCP_GROUPS_H
#define GCMP_FORMATS_DCP_GROUPS_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* Read the options of groups of parameters ("...param_groups.<group or parameter>.betas" and the
 * like) and the counters of steps, and record them as settings under Megatron's names: adam_beta1,
 * adam_beta2, optimizer.step, lr. Betas and steps that differ within the optimizer are noted, and
 * each moment is told its own (stored->adam), as far as the keys say which parameter they are of.
 * Sources must have been placed. An item that is damaged or of a form that is not known is noted.
 * Errors: IO, MEMORY; those of items that list the parameters of a group. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_read_groups(struct gradcmp_catalogue *catalogue,
                                                          struct gradcmp_error *error);

#endif
