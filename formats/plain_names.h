/* Parameters and states by the names that tensors have in files which say nothing else of them:
 * safetensors, HDF5, zarr. */
#ifndef GCMP_FORMATS_PLAIN_NAMES_H
#define GCMP_FORMATS_PLAIN_NAMES_H

#include "base/error.h"
#include "formats/dcp_keys.h"

/* Take a name apart as gcmp_dcp_parse_key does, and also "exp_avg.<name>", "<name>.exp_avg",
 * "optimizer.exp_avg.<name>" and gradients ("grad.<name>", "<name>.grad"). '/' separates words like
 * '.', and becomes '.' in the parameter's name. False without memory. */
bool gcmp_plain_parse_name(struct gcmp_arena *arena, const char *name, enum gcmp_dcp_style style,
                           struct gcmp_dcp_key *out);

/* Set name, state and layout of every stored tensor of the catalogue by its key. types[i] (NULL
 * allowed, also as a whole) tells what the elements of stored tensor i are, for one whose dtype is
 * NONE: as a state of the optimizer it is UNSUPPORTED, else it is listed only. Other errors: those
 * of gcmp_dcp_assign_names. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_plain_assign_names(struct gradcmp_catalogue *catalogue,
                                                             enum gcmp_dcp_style style,
                                                             const char *const *types,
                                                             struct gradcmp_error *error);

#endif
