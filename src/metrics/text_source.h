/* Series out of text in memory: golden values, training logs, CSV. */
#ifndef GCMP_METRICS_TEXT_SOURCE_H
#define GCMP_METRICS_TEXT_SOURCE_H

#include "metrics/series.h"

/* A text: `bytes` with one NUL behind its end. `path` is for messages. */
struct gcmp_metric_text {
    const char *path, *bytes;
    size_t length_bytes;
};

/* Read golden values: an object of metrics, each with its values by step, as a list with start_step
 * and step_interval, or plain. Errors: CORRUPT with "line N", UNSUPPORTED for other JSON. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_golden_read(const struct gcmp_metric_text *text,
                                                      struct gcmp_metric_source *source,
                                                      struct gradcmp_error *error);

/* True where a line of the text is an iteration line, whole or cut. */
bool gcmp_log_probe(const struct gcmp_metric_text *text);

/* Read the iteration lines of Megatron-LM and of what descends from it. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_log_read(const struct gcmp_metric_text *text,
                                                   struct gcmp_metric_source *source,
                                                   struct gradcmp_error *error);

/* True where the first line is a header of columns with one for the step. */
bool gcmp_csv_probe(const struct gcmp_metric_text *text);

/* Read comma, semicolon or tab separated values (RFC 4180): one column a metric, or the columns
 * metric, step and value. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_csv_read(const struct gcmp_metric_text *text,
                                                   struct gcmp_metric_source *source,
                                                   struct gradcmp_error *error);

#endif
