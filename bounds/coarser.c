/* Coarser types that an assumed one may stand for. */
#include "bounds/coarser.h"

#include <string.h>

#include "bounds/bounds.h"

/* From fine to coarse. TensorFloat-32 (a significand of 11 bits) is how matrix products of float32
 * are computed on many devices unless it is forbidden; --dtype has no word for it. */
static const struct gcmp_coarser types[] = {
    {GRADCMP_DTYPE_FLOAT32, 0x1p-23, "float32", "fp32"},
    {GRADCMP_DTYPE_BFLOAT16, 0x1p-10, "TF32 or bfloat16", "bf16"},
    {GRADCMP_DTYPE_BFLOAT16, 0x1p-7, "bfloat16", "bf16"},
};

static bool is_assumed_wide(const struct gradcmp_bound *bound) {
    return bound->dtype_source == GRADCMP_DTYPE_ASSUMED_STATE &&
           (bound->dtype == GRADCMP_DTYPE_FLOAT32 || bound->dtype == GRADCMP_DTYPE_FLOAT64);
}

static bool passes_under(const struct gcmp_trial *trial, const struct gcmp_coarser *type,
                         const struct gradcmp_options *options) {
    struct gradcmp_bound bound = *trial->bound;
    bound.dtype = type->dtype;
    gcmp_bound_init(&bound, options);
    bound.eps = type->eps;
    struct gcmp_trial under = *trial;
    under.bound = &bound;
    under.floors = NULL; /* a fit is for the type that it was made in */
    gcmp_trial_run(&under);
    return !gcmp_trial_is_inconsistent(&under);
}

enum gradcmp_status gcmp_coarser_find(const struct gcmp_trial *trial,
                                      const struct gradcmp_options *options,
                                      const struct gcmp_coarser **found, struct gcmp_arena *scratch,
                                      struct gradcmp_error *error) {
    *found = NULL;
    if (!is_assumed_wide(trial->bound)) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter_report *copies =
        gcmp_arena_alloc(scratch, trial->count, sizeof *copies);
    if (copies == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(copies, trial->parameters, trial->count * sizeof *copies);
    for (size_t i = 0; i < sizeof types / sizeof *types && *found == NULL; i++) {
        struct gcmp_trial other = *trial;
        other.parameters = copies;
        if (types[i].eps > trial->bound->eps && passes_under(&other, &types[i], options)) {
            *found = &types[i];
        }
    }
    return GRADCMP_OK;
}
