/* The plug-in's own source for check.cpp: compiled by nvcc for a card, or, with
 * GCMP_CHECK_EMULATED, on the emulated runtime. */
#if defined(GCMP_CHECK_EMULATED)
#include "emulation.cpp"
#else
#include "../../gpu/cuda.cu"
#endif

#include "check_device.h"

cudaError_t check_launch_kernel(const struct check_launch *launch, cudaStream_t stream) {
    struct gcmp_gpu_args args = {launch->a, launch->b, launch->elems, launch->out};
    size_t groups = (block_count(args.elems) + GCMP_GPU_WARPS - 1) / GCMP_GPU_WARPS;
    void *parameters[] = {&args};
    return cudaLaunchKernel(kernels[launch->dtype_a][launch->dtype_b], dim3((unsigned)groups),
                            dim3(GCMP_GPU_THREADS), parameters, 0, stream);
}
