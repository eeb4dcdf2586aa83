/* Names that only one of two sides has for a tied module or weight. */
#ifndef GCMP_TIED_NAMES_H
#define GCMP_TIED_NAMES_H

#include "comparison.h"

/* DeepSpeed without ZeRO names a tied weight by the module's place in the pipeline ("0.rest"), ZeRO
 * by the key that ties it ("tied_modules.KEY.rest"). Give a candidate the baseline's name where
 * rest and shape leave one meaning, with a note. So, too, where a state has one name of a tied
 * weight on each side, and a side's file has the weight under both at one place: modules that are
 * made in another order. To be called before models are made. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_meet_tied_names(struct gcmp_comparison *comparison,
                                                          struct gradcmp_error *error);

#endif
