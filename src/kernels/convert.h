/* Conversion of stored elements to binary32. */
#ifndef GCMP_KERNELS_CONVERT_H
#define GCMP_KERNELS_CONVERT_H

#include <stddef.h>

#include "gradcmp/gradcmp.h"

/* Convert `elems` elements of a floating type in native byte order, aligned or not, to binary32,
 * rounding to nearest even; NaNs keep sign and the top of the payload. */
void gcmp_convert_float32(const void *from, enum gradcmp_dtype dtype, size_t elems, float *to);

/* Convert `elems` elements of a floating type to float64 times 2^scale_log2, rounded once. The
 * elements may be the last ones of the memory that `to` points at. */
void gcmp_scale_float64(const void *from, enum gradcmp_dtype dtype, size_t elems, int scale_log2,
                        double *to);

/* Round values in place to a floating type, to nearest even. */
void gcmp_round_float64(double *values, size_t elems, enum gradcmp_dtype dtype);

#endif
