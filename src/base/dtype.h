/* Facts of element types. */
#ifndef GCMP_BASE_DTYPE_H
#define GCMP_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "gradcmp/gradcmp.h"

/* Bytes of one element; 0 for GRADCMP_DTYPE_NONE. */
unsigned gcmp_dtype_bytes(enum gradcmp_dtype dtype);
/* True for the floating types that can be compared (float64 ... float8_e5m2). */
bool gcmp_dtype_is_float(enum gradcmp_dtype dtype);
/* Machine epsilon as DESIGN uses it: bf16 2^-7, fp16 2^-10, fp32 2^-23, fp64 2^-52, fp8 2^-7
 * (bf16's). */
double gcmp_dtype_eps(enum gradcmp_dtype dtype);
/* Stored precision: the bits of the significand, the hidden one included (bf16 8, e5m2 3). */
unsigned gcmp_dtype_precision(enum gradcmp_dtype dtype);
/* The number that an element's bits are, of float32, float64, int32 or int64; false for others. */
bool gcmp_dtype_number(enum gradcmp_dtype dtype, uint64_t bits, double *out);
/* Find a type by PyTorch's name ("float32") or a common short one ("bf16", "fp32"); NONE if
 * unknown. */
enum gradcmp_dtype gcmp_dtype_find(const char *name);

#endif
