/* The files of a DeepSpeed checkpoint that hold the model: shapes in the order of the optimizer's
 * flat groups, weights, what the run says of itself. */
#ifndef GCMP_FORMATS_DEEPSPEED_MODEL_H
#define GCMP_FORMATS_DEEPSPEED_MODEL_H

#include "formats/deepspeed_files.h"
#include "formats/deepspeed_wholes.h"
#include "formats/torch_save_set.h"

/* Parameters of one model-parallel rank by group; of stage 3, by sub-group. */
struct gcmp_ds_model {
    uint32_t file, mp;
    int32_t stage;                /* of a pipeline, where there are several; else -1 */
    struct gcmp_ds_param *params; /* of all groups, one behind another */
    size_t param_count;
    size_t *group_ends; /* where each group's parameters end */
    size_t group_count;
    uint64_t dp_ranks;   /* data-parallel ranks; 0: not stated */
    uint64_t mp_ranks;   /* model-parallel ranks, one mp_rank each; 0: not stated */
    uint64_t tp, pp;     /* degrees; 0: not stated */
    bool has_optimizer;  /* without ZeRO the optimizer is in this file */
    bool is_round_robin; /* round_robin_gradients: parameters are shuffled in the groups */
};

/* Read one model file. Weights (stages 0 to 2) and an optimizer without ZeRO go into the set,
 * settings into the catalogue. Arrays live in the catalogue's arena. Errors: CORRUPT for what is
 * not of its form; those of gcmp_torch_open_any and gcmp_pt_walk_tensors. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_read_model(struct gcmp_pt_set *set,
                                                        const struct gcmp_ds_file *file,
                                                        struct gcmp_ds_model *out,
                                                        struct gradcmp_error *error);

/* Check that a rank's model file is of the step that the first one stated; CORRUPT else. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_check_step(const struct gradcmp_catalogue *catalogue,
                                                        const struct gcmp_torch_file *torch,
                                                        struct gradcmp_error *error);

/* Read a file of weights alone: a pipeline's layer, whose names begin with its number, or an
 * expert.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_read_weights(struct gcmp_pt_set *set,
                                                          const struct gcmp_ds_file *file,
                                                          struct gradcmp_error *error);

#endif
