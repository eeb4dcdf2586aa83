/* Averages of squares (second moments), which have no element below 0. */
#ifndef GCMP_SQUARES_H
#define GCMP_SQUARES_H

#include <stdbool.h>

#include "engine/engine.h"
#include "finding.h"

/* What is counted of one tensor. */
struct gcmp_squares {
    enum gradcmp_dtype dtype;
    uint64_t negatives;
};

/* True for a second moment in a type in which its elements are numbers, and no codes. */
bool gcmp_is_of_squares(const struct gradcmp_parameter *parameter);

/* A job's sink, whose user is a struct gcmp_squares with its dtype set: counts elements below 0. */
int gcmp_squares_sink(void *user, const void *elems, size_t bytes);

/* Make a finding of elements below 0 of a job's side a. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_judge_squares(const struct gcmp_finding_sink *sink,
                                                        const struct gcmp_job *job,
                                                        const struct gcmp_squares *squares,
                                                        struct gradcmp_error *error);

#endif
