/* The emulated CUDA runtime, and the plug-in on top of it in one shared object. */
#include "cuda_runtime.h"

#include <deque>
#include <functional>
#include <mutex>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "../../gpu/cuda.cu"

struct emulated_stream {
    std::deque<std::function<void()>> queue;
    unsigned long taken, given; /* operations worked off, queued */
};
struct emulated_event {
    emulated_stream *stream; /* NULL: never recorded */
    unsigned long after;     /* so many operations of the stream */
};

static std::mutex device_lock; /* one operation at a time */
static long calls_until_failure = -1;

/* The n-th call from now (0: the next) and all later ones fail; -1: none does. */
extern "C" __attribute__((visibility("default"))) void emulated_cuda_fail_at(long n) {
    std::lock_guard<std::mutex> hold(device_lock);
    calls_until_failure = n;
}

/* The outcome of a call. Lock held. */
static cudaError_t outcome(void) {
    if (calls_until_failure == 0) {
        return cudaErrorUnknown;
    }
    calls_until_failure -= calls_until_failure > 0;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code) {
    return code == cudaErrorMemoryAllocation ? "out of memory"
           : code == cudaErrorInvalidDevice  ? "invalid device ordinal"
                                             : "unknown error";
}

static bool is_device(const char *kind) {
    const char *chosen = getenv("EMULATED_CUDA");
    return chosen != NULL && strcmp(chosen, kind) == 0;
}

cudaError_t cudaGetDeviceCount(int *count) {
    std::lock_guard<std::mutex> hold(device_lock);
    *count = is_device("none") ? 0 : 1;
    return outcome();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
    std::lock_guard<std::mutex> hold(device_lock);
    (void)device;
    strcpy(out->name, "emulated device");
    out->major = 0;
    out->minor = 1;
    return outcome();
}

/* A memory of 2 kB/s, or 2 TB/s. */
cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attribute, int device) {
    (void)device;
    int khz = is_device("slow") ? 1000000000 : 1;
    *out = attribute == cudaDevAttrMemoryClockRate ? khz : 8;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    std::lock_guard<std::mutex> hold(device_lock);
    return device == 0 ? outcome() : cudaErrorInvalidDevice;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    std::lock_guard<std::mutex> hold(device_lock);
    cudaError_t code = outcome();
    *out = code == cudaSuccess ? malloc(bytes) : NULL;
    if (*out != NULL) {
        memset(*out, 0xa5, bytes); /* what was never copied is no zero */
    }
    return code != cudaSuccess || *out != NULL ? code : cudaErrorMemoryAllocation;
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
    return cudaMalloc(out, bytes);
}

cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory) {
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, int flags) {
    std::lock_guard<std::mutex> hold(device_lock);
    (void)flags;
    cudaError_t code = outcome();
    *out = code == cudaSuccess ? new emulated_stream() : NULL;
    return code;
}

/* Work a stream off up to its n-th operation. Lock held. */
static void work_off(emulated_stream *stream, unsigned long n) {
    while (stream->taken < n && !stream->queue.empty()) {
        std::function<void()> operation = stream->queue.front();
        stream->queue.pop_front();
        stream->taken++;
        operation();
    }
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    std::lock_guard<std::mutex> hold(device_lock);
    work_off(stream, stream->given);
    return outcome();
}

static cudaError_t enqueue(cudaStream_t stream, const std::function<void()> &operation) {
    cudaError_t code = outcome();
    if (code == cudaSuccess) {
        stream->queue.push_back(operation);
        stream->given++;
    }
    return code;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, int flags) {
    std::lock_guard<std::mutex> hold(device_lock);
    (void)flags;
    cudaError_t code = outcome();
    *out = code == cudaSuccess ? new emulated_event() : NULL;
    return code;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    std::lock_guard<std::mutex> hold(device_lock);
    event->stream = stream;
    event->after = stream->given;
    return outcome();
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    (void)from;
    (void)to;
    *milliseconds = 1;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, int flags) {
    std::lock_guard<std::mutex> hold(device_lock);
    (void)flags;
    emulated_event at = *event; /* as recorded by now */
    return enqueue(stream, [at] {
        if (at.stream != NULL) {
            work_off(at.stream, at.after);
        }
    });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                            cudaStream_t stream) {
    std::lock_guard<std::mutex> hold(device_lock);
    bool is_wrong = kind == cudaMemcpyDeviceToHost && is_device("wrong");
    return enqueue(stream, [=] {
        memcpy(to, from, bytes);
        if (is_wrong) {
            *(unsigned char *)to ^= 1;
        }
    });
}

/* --- threads of a group --- */

struct emulated_thread {
    unsigned index, group;
    pthread_barrier_t *warp;
    void (*kernel)(struct gcmp_gpu_args);
    const struct gcmp_gpu_args *args;
};
static thread_local const emulated_thread *current;

unsigned emulated_thread_index(void) {
    return current->index;
}

unsigned emulated_group_index(void) {
    return current->group;
}

void emulated_sync_warp(void) {
    pthread_barrier_wait(current->warp);
}

static void *run_thread(void *user) {
    current = (const emulated_thread *)user;
    current->kernel(*current->args);
    return NULL;
}

static void run_group(emulated_thread like, unsigned threads) {
    enum { MOST_THREADS = 1024, WARP = 32 };
    static emulated_thread each[MOST_THREADS];
    static pthread_t handles[MOST_THREADS];
    static pthread_barrier_t warps[MOST_THREADS / WARP];
    for (unsigned i = 0; i < threads; i += WARP) {
        pthread_barrier_init(&warps[i / WARP], NULL, WARP);
    }
    for (unsigned i = 0; i < threads; i++) {
        each[i] = like;
        each[i].index = i;
        each[i].warp = &warps[i / WARP];
        if (pthread_create(&handles[i], NULL, run_thread, &each[i]) != 0) {
            abort();
        }
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
    }
    for (unsigned i = 0; i < threads; i += WARP) {
        pthread_barrier_destroy(&warps[i / WARP]);
    }
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 groups, dim3 threads, void **arguments,
                             size_t shared_bytes, cudaStream_t stream) {
    std::lock_guard<std::mutex> hold(device_lock);
    (void)shared_bytes;
    struct gcmp_gpu_args args = *(const struct gcmp_gpu_args *)arguments[0];
    return enqueue(stream, [=] {
        emulated_thread like = {0, 0, NULL, NULL, &args};
        memcpy(&like.kernel, &kernel, sizeof like.kernel);
        for (like.group = 0; like.group < groups.x; like.group++) {
            run_group(like, threads.x);
        }
    });
}
