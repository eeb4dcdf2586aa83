/* The ways in which a set of buckets can have been laid out: those that fit, and which one it is.
 */
#ifndef GCMP_UNSHARD_BUCKET_LAYOUTS_H
#define GCMP_UNSHARD_BUCKET_LAYOUTS_H

#include "unshard/bucket_fit.h"
#include "unshard/unshard.h"

/* Leave in fit->placed, sorted by parameter, repeat and rank, the layout of that number; of number
 * 0 the one that fits, or of several the one that the run's arguments do not deny. The fit was
 * started. UNSUPPORTED where none fits, or several that differ do. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_layout_find(struct gcmp_fit *fit, uint32_t number,
                                                      struct gradcmp_error *error);

/* Give the numbers of all layouts that fit and differ from each other, those first that the
 * arguments do not deny. The fit was started. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_layout_list(struct gcmp_fit *fit,
                                                      struct gcmp_bucket_layouts *out,
                                                      struct gradcmp_error *error);

#endif
