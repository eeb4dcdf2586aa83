/* The error bound by depth. */
#include "bounds/bounds.h"

#include <math.h>

#include "base/dtype.h"

/* The depth of the constant rule: L = 32, l = 0. */
enum { CONSTANT_DEPTH = 33 };

/* In float32 and float64 the order of accumulation makes the noise, not the rounding of what is
 * stored: good float32 pairs reach 6.5 eps, bfloat16 ones 3.7. */
static double default_k(enum gradcmp_dtype dtype) {
    return dtype == GRADCMP_DTYPE_FLOAT32 || dtype == GRADCMP_DTYPE_FLOAT64 ? 32.0 : 4.0;
}

void gcmp_bound_init(struct gradcmp_bound *bound, const struct gradcmp_options *options) {
    bound->constant = options->compat_megatron != 0;
    enum gradcmp_dtype dtype = bound->dtype;
    if (bound->constant && bound->dtype_source != GRADCMP_DTYPE_FROM_OPTION) {
        dtype = GRADCMP_DTYPE_BFLOAT16;
    }
    double k = bound->constant ? 4.0 : default_k(dtype);
    bound->k = options->k != 0.0 ? options->k : k;
    bound->C = options->C != 0.0 ? options->C : 1.03;
    bound->cap = options->max_bound != 0.0 ? options->max_bound : 0.25;
    bound->eps = gcmp_dtype_eps(dtype);
    bound->fit = NULL;
}

double gcmp_noise_unit(const struct gradcmp_bound *bound) {
    return default_k(bound->dtype) / default_k(GRADCMP_DTYPE_BFLOAT16) * bound->eps;
}

double gcmp_bound_at(const struct gradcmp_bound *bound, int64_t layer) {
    double depth = CONSTANT_DEPTH;
    if (!bound->constant) {
        depth = fmax((double)bound->layers + 1.0 - (double)layer, 0.0);
    }
    return fmin(bound->k * pow(bound->C, depth) * bound->eps, bound->cap);
}
