/* The CUDA plug-in: devices, lanes with pinned buffers and two streams, launches. */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/tally_kernel.h"
#include "gradcmp/sys/backend.h"

enum { SLOTS = GRADCMP_BACKEND_SLOTS };

struct gradcmp_backend_device {
    int index;
    char name[300];
};

struct gradcmp_backend_lane {
    struct gradcmp_backend_device *device;
    size_t buffer_bytes;
    void *host[2][SLOTS], *resident[2][SLOTS]; /* by side and slot */
    struct gradcmp_tally *host_blocks[SLOTS], *resident_blocks[SLOTS];
    cudaStream_t streams[SLOTS]; /* by slot_b */
    cudaEvent_t a_ready[SLOTS];  /* by slot_a: its copy has arrived */
};

static const void *const kernels[GRADCMP_DTYPE_FLOAT8_E5M2 + 1][GRADCMP_DTYPE_FLOAT8_E5M2 + 1] = {
    /* none */ {NULL},
#define KERNEL(A, B) (const void *)gcmp_gpu_tally_##A##_##B,
#define ROW(A)       {NULL, GCMP_GPU_PAIRS_OF(KERNEL, A)},
    ROW(FLOAT64) ROW(FLOAT32) ROW(FLOAT16) ROW(BFLOAT16) ROW(FLOAT8_E4M3FN) ROW(FLOAT8_E5M2)};

static enum gradcmp_status fail(struct gradcmp_error *error, const char *what, cudaError_t code) {
    if (error != NULL) {
        memset(error, 0, sizeof *error);
        error->code = GRADCMP_ERROR_DEVICE;
        error->offset_bytes = GRADCMP_NO_OFFSET;
        snprintf(error->message, sizeof error->message, "cuda: %s: %s", what,
                 cudaGetErrorString(code));
    }
    return GRADCMP_ERROR_DEVICE;
}

/* Return from the function where a call fails and nothing is owned. */
#define TRY_CUDA(what, call)                                                                       \
    do {                                                                                           \
        cudaError_t code_ = (call);                                                                \
        if (code_ != cudaSuccess) {                                                                \
            return fail(error, (what), code_);                                                     \
        }                                                                                          \
    } while (0)

static enum gradcmp_status fail_memory(struct gradcmp_error *error) {
    return fail(error, "host memory", cudaErrorMemoryAllocation);
}

static enum gradcmp_status device_open(int index, struct gradcmp_backend_device **out,
                                       struct gradcmp_error *error) {
    int count = 0;
    *out = NULL;
    TRY_CUDA("count devices", cudaGetDeviceCount(&count));
    if (count == 0 || index >= count) {
        return fail(error, "open device", cudaErrorInvalidDevice);
    }
    struct cudaDeviceProp properties;
    int chosen = index < 0 ? 0 : index;
    TRY_CUDA("open device", cudaSetDevice(chosen));
    TRY_CUDA("open device", cudaGetDeviceProperties(&properties, chosen));
    struct gradcmp_backend_device *device =
        (struct gradcmp_backend_device *)calloc(1, sizeof *device);
    if (device == NULL) {
        return fail_memory(error);
    }
    device->index = chosen;
    snprintf(device->name, sizeof device->name, "%s, sm_%d%d", properties.name, properties.major,
             properties.minor);
    *out = device;
    return GRADCMP_OK;
}

static void device_close(struct gradcmp_backend_device *device) {
    free(device);
}

static const char *device_describe(const struct gradcmp_backend_device *device) {
    return device->name;
}

static size_t block_count(uint64_t elems) {
    return (size_t)(elems / GRADCMP_BLOCK_ELEMS + (elems % GRADCMP_BLOCK_ELEMS != 0));
}

/* Everything of a lane that belongs to one slot. What was made is freed by lane_close. */
static enum gradcmp_status make_slot(struct gradcmp_backend_lane *lane, unsigned slot,
                                     struct gradcmp_error *error) {
    size_t tallies_bytes = block_count(lane->buffer_bytes) * sizeof(struct gradcmp_tally);
    for (unsigned side = 0; side < 2; side++) {
        TRY_CUDA("pinned memory", cudaMallocHost(&lane->host[side][slot], lane->buffer_bytes));
        TRY_CUDA("device memory", cudaMalloc(&lane->resident[side][slot], lane->buffer_bytes));
    }
    TRY_CUDA("pinned memory", cudaMallocHost((void **)&lane->host_blocks[slot], tallies_bytes));
    TRY_CUDA("device memory", cudaMalloc((void **)&lane->resident_blocks[slot], tallies_bytes));
    TRY_CUDA("stream", cudaStreamCreateWithFlags(&lane->streams[slot], cudaStreamNonBlocking));
    TRY_CUDA("event", cudaEventCreateWithFlags(&lane->a_ready[slot], cudaEventDisableTiming));
    return GRADCMP_OK;
}

static void lane_close(struct gradcmp_backend_lane *lane) {
    if (lane == NULL) {
        return;
    }
    (void)cudaSetDevice(lane->device->index);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (lane->streams[slot] != NULL) {
            (void)cudaStreamSynchronize(lane->streams[slot]);
            (void)cudaStreamDestroy(lane->streams[slot]);
        }
        if (lane->a_ready[slot] != NULL) {
            (void)cudaEventDestroy(lane->a_ready[slot]);
        }
        for (unsigned side = 0; side < 2; side++) {
            (void)cudaFreeHost(lane->host[side][slot]);
            (void)cudaFree(lane->resident[side][slot]);
        }
        (void)cudaFreeHost(lane->host_blocks[slot]);
        (void)cudaFree(lane->resident_blocks[slot]);
    }
    free(lane);
}

static enum gradcmp_status lane_open(struct gradcmp_backend_device *device, size_t buffer_bytes,
                                     struct gradcmp_backend_lane **out,
                                     struct gradcmp_error *error) {
    *out = NULL;
    struct gradcmp_backend_lane *lane = (struct gradcmp_backend_lane *)calloc(1, sizeof *lane);
    if (lane == NULL) {
        return fail_memory(error);
    }
    lane->device = device;
    lane->buffer_bytes = buffer_bytes;
    cudaError_t code = cudaSetDevice(device->index);
    enum gradcmp_status status =
        code == cudaSuccess ? GRADCMP_OK : fail(error, "open device", code);
    for (unsigned slot = 0; slot < SLOTS && status == GRADCMP_OK; slot++) {
        status = make_slot(lane, slot, error);
    }
    if (status != GRADCMP_OK) {
        lane_close(lane);
        return status;
    }
    *out = lane;
    return GRADCMP_OK;
}

static void *lane_buffer(const struct gradcmp_backend_lane *lane, unsigned side, unsigned slot) {
    return lane->host[side][slot];
}

static size_t elem_bytes(enum gradcmp_dtype dtype) {
    static const unsigned char sizes[] = {0, 8, 4, 2, 2, 1, 1}; /* in the order of the types */
    return sizes[dtype];
}

/* Bring a's elements to the device in this tally's stream, or wait for another stream's copy. */
static enum gradcmp_status bring_a(struct gradcmp_backend_lane *lane,
                                   const struct gradcmp_backend_work *work,
                                   struct gradcmp_error *error) {
    cudaStream_t stream = lane->streams[work->slot_b];
    cudaEvent_t ready = lane->a_ready[work->slot_a];
    if (!work->a_is_new) {
        TRY_CUDA("wait", cudaStreamWaitEvent(stream, ready, 0));
        return GRADCMP_OK;
    }
    TRY_CUDA("copy", cudaMemcpyAsync(lane->resident[0][work->slot_a], lane->host[0][work->slot_a],
                                     (size_t)work->elems * elem_bytes(work->dtype_a),
                                     cudaMemcpyHostToDevice, stream));
    TRY_CUDA("event", cudaEventRecord(ready, stream));
    return GRADCMP_OK;
}

static enum gradcmp_status lane_start(struct gradcmp_backend_lane *lane,
                                      const struct gradcmp_backend_work *work,
                                      struct gradcmp_error *error) {
    cudaStream_t stream = lane->streams[work->slot_b];
    TRY_CUDA("open device", cudaSetDevice(lane->device->index));
    enum gradcmp_status status = bring_a(lane, work, error);
    if (status != GRADCMP_OK) {
        return status;
    }
    enum gradcmp_dtype dtype_b = work->alone ? work->dtype_a : work->dtype_b;
    if (!work->alone) {
        TRY_CUDA("copy",
                 cudaMemcpyAsync(lane->resident[1][work->slot_b], lane->host[1][work->slot_b],
                                 (size_t)work->elems * elem_bytes(dtype_b), cudaMemcpyHostToDevice,
                                 stream));
    }
    struct gcmp_gpu_args args = {
        lane->resident[0][work->slot_a],
        lane->resident[work->alone ? 0 : 1][work->alone ? work->slot_a : work->slot_b], work->elems,
        lane->resident_blocks[work->slot_b]};
    size_t blocks = block_count(work->elems);
    void *parameters[] = {&args};
    TRY_CUDA("launch",
             cudaLaunchKernel(kernels[work->dtype_a][dtype_b],
                              dim3((unsigned)((blocks + GCMP_GPU_WARPS - 1) / GCMP_GPU_WARPS)),
                              dim3(GCMP_GPU_THREADS), parameters, 0, stream));
    TRY_CUDA("copy", cudaMemcpyAsync(lane->host_blocks[work->slot_b], args.out,
                                     blocks * sizeof(struct gradcmp_tally), cudaMemcpyDeviceToHost,
                                     stream));
    return GRADCMP_OK;
}

static enum gradcmp_status lane_wait(struct gradcmp_backend_lane *lane, unsigned slot_b,
                                     const struct gradcmp_tally **blocks,
                                     struct gradcmp_error *error) {
    TRY_CUDA("wait", cudaStreamSynchronize(lane->streams[slot_b]));
    *blocks = lane->host_blocks[slot_b];
    return GRADCMP_OK;
}

extern "C" __attribute__((visibility("default"))) const struct gradcmp_backend *
gradcmp_backend_table(void) {
    static const struct gradcmp_backend table = {GRADCMP_BACKEND_VERSION,
                                                 "cuda",
                                                 device_open,
                                                 device_close,
                                                 device_describe,
                                                 lane_open,
                                                 lane_close,
                                                 lane_buffer,
                                                 lane_start,
                                                 lane_wait};
    return &table;
}
