/* Chooses the kernel at run time. */
#include "kernels/instruction_sets.h"
#include "kernels/scalar.h"

#include <stdlib.h>

static const struct gcmp_kernel scalar = {"scalar", gcmp_scalar_tally};

/* Each instruction set of a processor includes the ones before it, so that what it runs is a prefix
 * of its family's list. */
#if defined(__x86_64__)
static const struct gcmp_kernel *const only_scalar[] = {&scalar, NULL};
static const struct gcmp_kernel *const up_to_avx2[] = {&scalar, &gcmp_kernel_avx2, NULL};
static const struct gcmp_kernel *const up_to_avx512[] = {&scalar, &gcmp_kernel_avx2,
                                                         &gcmp_kernel_avx512, NULL};

const struct gcmp_kernel *const *gcmp_kernels(void) {
    if (!gcmp_cpu_has_avx2()) {
        return only_scalar;
    }
    return gcmp_cpu_has_avx512() ? up_to_avx512 : up_to_avx2;
}
#elif defined(__aarch64__)
static const struct gcmp_kernel *const up_to_neon[] = {&scalar, &gcmp_kernel_neon, NULL};

const struct gcmp_kernel *const *gcmp_kernels(void) {
    return up_to_neon;
}
#else
static const struct gcmp_kernel *const only_scalar[] = {&scalar, NULL};

const struct gcmp_kernel *const *gcmp_kernels(void) {
    return only_scalar;
}
#endif

#if defined(GCMP_ARENA_MALLOC)
/* Tell whether a comma-separated list has the name. */
static bool list_has(const char *list, const char *name) {
    size_t length = strlen(name);
    while (list != NULL) {
        size_t part = strcspn(list, ",");
        if (part == length && memcmp(list, name, length) == 0) {
            return true;
        }
        list = list[part] == ',' ? list + part + 1 : NULL;
    }
    return false;
}

static bool is_disabled(const struct gcmp_kernel *kernel) {
    return list_has(getenv("GRADCMP_DISABLE_CPU"), kernel->name);
}
#else
static bool is_disabled(const struct gcmp_kernel *kernel) {
    (void)kernel;
    return false;
}
#endif

const struct gcmp_kernel *gcmp_kernel_choose(void) {
    const struct gcmp_kernel *best = &scalar;
    for (const struct gcmp_kernel *const *kernel = gcmp_kernels(); *kernel != NULL; kernel++) {
        if (!is_disabled(*kernel)) {
            best = *kernel;
        }
    }
    return best;
}
