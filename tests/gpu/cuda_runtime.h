/* A small emulation of the CUDA runtime, so that the plug-in's own source runs where there is no
 * GPU. Streams are queues that are worked off only when somebody waits for them: what the host does
 * to a buffer too early shows. A group of threads is run on as many POSIX threads, its warps wait
 * at barriers; groups run one after another. Device memory is malloced, and not cleared. Times are
 * made up. EMULATED_CUDA in the environment changes the device, for check.sh: "none" (there is no
 * device), "wrong" (results come back with a wrong bit), "slow" (far from its peak). */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <stddef.h>

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidDevice = 101,
    cudaErrorUnknown = 999
};
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaDeviceAttr { cudaDevAttrMemoryClockRate = 36, cudaDevAttrGlobalMemoryBusWidth = 37 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
struct cudaDeviceProp {
    char name[256];
    int major, minor;
};
struct dim3 {
    unsigned x;
    explicit dim3(unsigned count) : x(count) {
    }
};

const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, int flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                            cudaStream_t stream);
cudaError_t cudaLaunchKernel(const void *kernel, dim3 groups, dim3 threads, void **arguments,
                             size_t shared_bytes, cudaStream_t stream);

/* What the kernels say in CUDA's words. */
unsigned emulated_thread_index(void);
unsigned emulated_group_index(void);
void emulated_sync_warp(void);
#define GCMP_GPU_KERNEL    static void
#define GCMP_GPU_SHARED    static
#define GCMP_GPU_THREAD    emulated_thread_index()
#define GCMP_GPU_GROUP     emulated_group_index()
#define GCMP_GPU_SYNC_WARP emulated_sync_warp()

#endif
