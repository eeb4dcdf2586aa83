/* What the names of metrics say. */
#ifndef GCMP_METRICS_NAMES_H
#define GCMP_METRICS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Spell a name as the others do: lower case, one space for each dash, underscore or space. */
void gcmp_metric_normalise(const char *name, char *out, size_t out_bytes);

/* True for what a machine measures of itself, and so differs between equal runs. */
bool gcmp_metric_is_time(const char *name);
/* True for times of an iteration, which Megatron's checks compare by medians. */
bool gcmp_metric_is_iteration_time(const char *name);

/* True for metrics whose step is a count of samples: the same values once more. */
bool gcmp_metric_by_samples(const char *name);

/* The relative tolerance that Megatron's checks give a metric. */
double gcmp_metric_default_rtol(const char *name);

#endif
