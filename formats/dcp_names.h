/* Names of parameters where one key alone does not tell: what needs all keys of a checkpoint. */
#ifndef GCMP_FORMATS_DCP_NAMES_H
#define GCMP_FORMATS_DCP_NAMES_H

#include "base/error.h"
#include "formats/dcp_keys.h"

/* Set name, state and layout of every stored tensor, when keys[i] is what catalogue->stored[i]'s
 * key says. Decides whether "model." belongs to a weight's name, which parameter an integer id of
 * the optimizer means, and what the layout is called where the checkpoint did not say. Changes
 * keys. Errors: UNSUPPORTED where an id could mean several parameters; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_assign_names(struct gradcmp_catalogue *catalogue,
                                                           struct gcmp_dcp_key *keys,
                                                           struct gradcmp_error *error);

#endif
