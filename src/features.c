/* gradcmp_feature: what this build can do, gathered from the tables of its parts. */
#include "gradcmp/sys/format.h"
#include "engine/accelerator.h"
#include "kernels/kernels.h"

const char *gradcmp_feature(size_t index, const char **kind) {
    const char *ignored = NULL;
    const char **told = kind == NULL ? &ignored : kind;
    *told = "format";
    for (const struct gradcmp_format *const *format = gcmp_formats(); *format != NULL; format++) {
        if (index-- == 0) {
            return (*format)->name;
        }
    }
    *told = "kernel";
    for (const struct gcmp_kernel *const *kernel = gcmp_kernels(); *kernel != NULL; kernel++) {
        if (index-- == 0) {
            return (*kernel)->name;
        }
    }
    *told = "device";
    if (index == 0) {
        return "cpu";
    }
    return index == 1 && gcmp_accelerator_is_installed() ? "cuda" : NULL;
}
