/* Which keys of a checkpoint are weights and which are states, where one key does not tell. */
#ifndef GCMP_FORMATS_DCP_ROLES_H
#define GCMP_FORMATS_DCP_ROLES_H

#include "base/error.h"
#include "formats/dcp_keys.h"

/* Settle the doubts of keys, where keys[i] is what catalogue->stored[i]'s key says:
 *   - "state.<name>.<word>" is a state only beside others that are one, or param_groups;
 *   - below "sampler", "optimizer" and the like, tensors are weights of a module of that name,
 * which has some of several numbers (of an optimizer's name, some called weight or bias). Errors:
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_settle_roles(struct gradcmp_catalogue *catalogue,
                                                           struct gcmp_dcp_key *keys,
                                                           struct gradcmp_error *error);

#endif
