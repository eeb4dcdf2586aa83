/* Optimizers whose groups of parameters have betas of their own. */
#ifndef GCMP_FORMATS_MIXED_BETAS_H
#define GCMP_FORMATS_MIXED_BETAS_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* Note that betas differ among the parameters, and set "optimizer.mixed_betas" to true: no one
 * factor makes gradients of the averages. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_set_mixed_betas(struct gradcmp_catalogue *catalogue,
                                                          struct gradcmp_error *error);

#endif
