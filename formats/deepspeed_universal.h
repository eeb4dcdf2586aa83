/* Universal checkpoints of DeepSpeed: a folder for each parameter, a file for each of its states.
 */
#ifndef GCMP_FORMATS_DEEPSPEED_UNIVERSAL_H
#define GCMP_FORMATS_DEEPSPEED_UNIVERSAL_H

#include "formats/deepspeed_model.h"

/* True where the folder `zero` of a universal checkpoint is there. */
bool gcmp_ds_is_universal(struct gcmp_dir *dir);

/* Add the states of all parameters to the set. `model` gives the shapes of parameters that are
 * stored flat. Errors: CORRUPT for a parameter of the model without a folder, and for a flat tensor
 * of another length than its shape; UNSUPPORTED for a flat tensor without a shape; those of
 * gcmp_torch_open_any. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_read_universal(struct gcmp_pt_set *set,
                                                            const struct gcmp_ds_model *model,
                                                            struct gradcmp_error *error);

#endif
