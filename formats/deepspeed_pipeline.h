/* Names of a PipelineModule's parameters: "N.rest" of module N, and "tied_modules.KEY.rest" of a
 * module that stands in several places. */
#ifndef GCMP_FORMATS_DEEPSPEED_PIPELINE_H
#define GCMP_FORMATS_DEEPSPEED_PIPELINE_H

#include "formats/deepspeed_model.h"

/* Give a tied module's weights, which are in the file of one of its places, the names that
 * param_shapes has, where rest and shape leave one meaning. Without ZeRO nothing has those names,
 * and the place's stays. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_name_tied(struct gcmp_pt_set *set,
                                                       const struct gcmp_ds_model *models,
                                                       size_t count, struct gradcmp_error *error);

/* Without ZeRO each stage numbers its parameters, copies of tied ones first, and the files of the
 * modules hold one copy. Where the stages together number more than there are weights, name the
 * numbers: those of the stages, one behind another, are the weights in order, but for copies in
 * front of the last stage's, each of the one weight in the first stage that has its shape. Where
 * that does not fit, numbers stay, with a note. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_name_copies(struct gcmp_pt_set *set,
                                                         struct gradcmp_error *error);

/* State the layer of each tensor where all names are a PipelineModule's: tied modules are the
 * embedding, modules come in order, the last one is the head; without tied ones the first is the
 * embedding. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_state_layers(struct gradcmp_catalogue *catalogue,
                                                          struct gradcmp_error *error);

#endif
