/* The error bound by depth. */
#include "bounds/bounds.h"

#include <math.h>

#include "base/dtype.h"

/* In float32 and float64 the order of accumulation makes the noise, not the rounding of what is
 * stored: good float32 pairs reach 6.5 eps, bfloat16 ones 3.7. */
static double default_k(enum gradcmp_dtype dtype) {
    return dtype == GRADCMP_DTYPE_FLOAT32 || dtype == GRADCMP_DTYPE_FLOAT64 ? 32.0 : 4.0;
}

/* The constant rule takes bfloat16's eps, whatever the runs computed in, unless they are said to.
 */
static bool is_borrowed(const struct gradcmp_bound *bound) {
    return bound->constant && bound->dtype_source != GRADCMP_DTYPE_FROM_OPTION;
}

void gcmp_bound_init(struct gradcmp_bound *bound, const struct gradcmp_options *options) {
    bound->constant = options->compat_megatron != 0;
    enum gradcmp_dtype dtype = is_borrowed(bound) ? GRADCMP_DTYPE_BFLOAT16 : bound->dtype;
    double k = bound->constant ? 4.0 : default_k(dtype);
    bound->k = options->k != 0.0 ? options->k : k;
    bound->C = options->C != 0.0 ? options->C : 1.03;
    bound->cap = options->max_bound != 0.0 ? options->max_bound : 0.25;
    bound->eps = gcmp_dtype_eps(dtype);
    bound->fit = NULL;
}

double gcmp_noise_unit(const struct gradcmp_bound *bound) {
    double least = default_k(GRADCMP_DTYPE_BFLOAT16);
    return (is_borrowed(bound) ? least : default_k(bound->dtype)) / least * bound->eps;
}

double gcmp_bound_at(const struct gradcmp_bound *bound, int64_t layer) {
    double depth = bound->constant ? GRADCMP_CONSTANT_LAYERS + 1.0
                                   : fmax((double)bound->layers + 1.0 - (double)layer, 0.0);
    return fmin(bound->k * pow(bound->C, depth) * bound->eps, bound->cap);
}
