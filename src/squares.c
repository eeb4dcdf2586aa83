/* Averages of squares (second moments), which have no element below 0. */
#include "squares.h"

#include <string.h>

#include "base/dtype.h"
#include "kernels/convert.h"

enum { CONVERT_ELEMS = 1024 };

bool gcmp_is_of_squares(const struct gradcmp_parameter *parameter) {
    return (strcmp(parameter->state, "exp_avg_sq") == 0 ||
            strcmp(parameter->state, "max_exp_avg_sq") == 0) &&
           gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype) > 1;
}

int gcmp_squares_sink(void *user, const void *elems, size_t bytes) {
    struct gcmp_squares *squares = user;
    unsigned width = gcmp_dtype_bytes(squares->dtype);
    const unsigned char *from = elems;
    float values[CONVERT_ELEMS];
    for (size_t left = bytes / width; left > 0;) {
        size_t count = left < CONVERT_ELEMS ? left : CONVERT_ELEMS;
        unsigned negatives = 0;
        if (squares->dtype == GRADCMP_DTYPE_FLOAT32) { /* converting is slow */
            memcpy(values, from, count * sizeof values[0]);
        } else {
            gcmp_convert_float32(from, squares->dtype, count, values);
        }
        for (size_t i = 0; i < count; i++) {
            negatives += values[i] < 0.0F;
        }
        squares->negatives += negatives;
        from += count * width;
        left -= count;
    }
    return 0;
}

enum gradcmp_status gcmp_judge_squares(const struct gcmp_finding_sink *sink,
                                       const struct gcmp_job *job,
                                       const struct gcmp_squares *squares,
                                       struct gradcmp_error *error) {
    struct gradcmp_finding *finding;
    if (squares->negatives == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_finding_add(sink, "negative", job->a.parameter, &finding, error));
    gcmp_finding_figure(finding, "elements", (double)job->elems);
    gcmp_finding_figure(finding, "negative", (double)squares->negatives);
    return gcmp_finding_say(sink, finding, error,
                            "%llu of %llu elements are below 0, which no average of squares is",
                            (unsigned long long)squares->negatives, (unsigned long long)job->elems);
}
