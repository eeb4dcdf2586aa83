/* Names of experts: every expert-parallel rank counts its own from 0. */
#ifndef GCMP_FORMATS_DEEPSPEED_EXPERTS_H
#define GCMP_FORMATS_DEEPSPEED_EXPERTS_H

#include "formats/deepspeed_wholes.h"

/* True where all of the parameters belong to experts of DeepSpeed's MoE layer. */
bool gcmp_ds_has_experts(const struct gcmp_ds_param *params, size_t count);

/* Write the parameters under the names that they have over all ranks: expert k of a layer with n
 * experts a rank is number rank * n + k. Errors: UNSUPPORTED for a parameter that is no expert's;
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_ds_name_experts(struct gcmp_arena *arena, const struct gcmp_ds_param *params, size_t count,
                     size_t rank, struct gcmp_ds_param *out, struct gradcmp_error *error);

#endif
