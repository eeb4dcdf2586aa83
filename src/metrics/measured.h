/* Which metrics a machine measures of itself, by their names. */
#ifndef GCMP_METRICS_MEASURED_H
#define GCMP_METRICS_MEASURED_H

#include <stdbool.h>

/* True where a normalised name (lower case, spaces for dashes and underscores) says that the metric
 * is a time, a rate, an energy or a power, which differ between equal runs. In doubt false: what is
 * judged in vain is seen, what is not judged in vain passes in silence. */
bool gcmp_metric_is_measured(const char *name);

#endif
