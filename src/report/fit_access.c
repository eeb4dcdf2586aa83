/* What callers read from a fit. */
#include "gradcmp/sys/fit.h"

int gradcmp_fit_exit_status(const struct gradcmp_fit *fit) {
    bool is_bad = false, differs = false;
    for (size_t i = 0; i < fit->pair_count; i++) {
        enum gradcmp_fit_standing standing = fit->pairs[i].standing;
        if (standing == GRADCMP_FIT_ERROR) {
            return 2;
        }
        is_bad = is_bad || standing == GRADCMP_FIT_BAD;
        differs = differs || standing != GRADCMP_FIT_IDENTICAL;
    }
    return is_bad ? 1 : differs ? 0 : 2;
}

const struct gradcmp_error *gradcmp_fit_error(const struct gradcmp_fit *fit, size_t index) {
    bool failed = index < fit->pair_count && fit->pairs[index].standing == GRADCMP_FIT_ERROR;
    return failed ? &fit->errors[index] : NULL;
}
