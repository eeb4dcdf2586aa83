/* Opens one side: finds out by content what a path holds, and reads it. */
#ifndef GCMP_METRICS_SOURCE_H
#define GCMP_METRICS_SOURCE_H

#include "metrics/series.h"

/* Read everything at `path` into a zeroed source, and settle it. Damage that leaves something to
 * look at (a cut event file) is in source->damage; what cannot be read at all is a failure. The
 * source is the caller's to free in both cases. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_metric_open(const char *path, struct gcmp_arena *arena,
                                                      struct gcmp_metric_source *source,
                                                      struct gradcmp_error *error);

/* "TensorBoard events", "golden values", ... */
const char *gcmp_metric_kind_name(enum gcmp_metric_kind kind);

#endif
