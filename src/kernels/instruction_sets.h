/* The kernels of this build, and whether the processor runs them. */
#ifndef GCMP_KERNELS_INSTRUCTION_SETS_H
#define GCMP_KERNELS_INSTRUCTION_SETS_H

#include <stdbool.h>

#include "kernels/kernels.h"

#if defined(__x86_64__)
extern const struct gcmp_kernel gcmp_kernel_avx2, gcmp_kernel_avx512;
bool gcmp_cpu_has_avx2(void);
bool gcmp_cpu_has_avx512(void);
#elif defined(__aarch64__)
extern const struct gcmp_kernel gcmp_kernel_neon;
#endif

#endif
