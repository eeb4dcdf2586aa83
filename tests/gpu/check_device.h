/* What check.cpp asks of the plug-in beside its interface. */
#ifndef GRADCMP_CHECK_DEVICE_H
#define GRADCMP_CHECK_DEVICE_H

#include <cuda_runtime.h>

#include "gradcmp/sys/backend.h"

/* One launch, on elements that lie on the device. */
struct check_launch {
    enum gradcmp_dtype dtype_a, dtype_b;
    const void *a, *b;
    uint64_t elems;
    struct gradcmp_tally *out; /* one for each block */
};

cudaError_t check_launch_kernel(const struct check_launch *launch, cudaStream_t stream);

extern "C" const struct gradcmp_backend *gradcmp_backend_table(void);

#endif
