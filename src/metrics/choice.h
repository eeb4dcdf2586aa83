/* Which series of a side are compared. */
#ifndef GCMP_METRICS_CHOICE_H
#define GCMP_METRICS_CHOICE_H

#include "metrics/series.h"

/* Keep the series whose names match (or do not); the others' names go to source->left_out. Without
 * a pattern all are kept. Errors: USAGE for a wrong expression, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_metric_choose(struct gcmp_metric_source *source,
                                                        const char *pattern, bool is_wanted,
                                                        struct gradcmp_error *error);

/* Leave out the folders below a run that the other run lacks, with a note: writers name some by the
 * time. Damage of the other ones is then the source's. */
void gcmp_metric_drop_lone_parts(struct gcmp_metric_source *source,
                                 const struct gcmp_metric_source *other);

#endif
