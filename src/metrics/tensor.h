/* The tensors of TensorBoard summaries: one number as a value. */
#ifndef GCMP_METRICS_TENSOR_H
#define GCMP_METRICS_TENSOR_H

#include "base/cursor.h"
#include "metrics/series.h"

enum gcmp_tensor_kind {
    GCMP_TENSOR_SCALAR = 1,
    GCMP_TENSOR_OTHER,        /* a text, a histogram: no single number */
    GCMP_TENSOR_BROKEN,       /* no TensorProto, or more or fewer bytes than its shape has */
    GCMP_TENSOR_UNKNOWN_TYPE, /* one number of a type that is not read */
    GCMP_TENSOR_TOO_LARGE     /* a whole number that binary64 does not hold */
};

/* Read a TensorProto. Of a SCALAR the value and its type are filled in; *dtype is what the tensor
 * says that it holds, by TensorFlow's numbers. */
enum gcmp_tensor_kind gcmp_tensor_read(struct gcmp_cursor tensor, struct gcmp_metric_point *point,
                                       uint64_t *dtype);

#endif
