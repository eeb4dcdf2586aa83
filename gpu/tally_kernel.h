/* The kernels: one warp tallies one block of GRADCMP_BLOCK_ELEMS elements, thread j of it being
 * lane j of the specification (kernels/lanes.h). Their source is compiled by nvcc, and by a C++
 * compiler for the emulation that tests run; the few words of CUDA in it are the macros below.
 *
 * Work of an element of two float32 sides, counted in SASS of sm_90: about 60 instructions, 4 of
 * them fused multiply-adds in binary64. At 8 bytes an element a card of 4.8 TB/s asks for 0.6e12
 * elements a second, which is where its 132 * 128 integer lanes end too: the kernel is meant to be
 * near both limits, and tests/gpu/check.sh measures which one it meets. */
#ifndef GCMP_GPU_TALLY_KERNEL_H
#define GCMP_GPU_TALLY_KERNEL_H

#include "kernels/lanes.h"

#if defined(__CUDACC__)
#define GCMP_GPU_KERNEL    static __global__ void __launch_bounds__(GCMP_GPU_THREADS)
#define GCMP_GPU_SHARED    __shared__
#define GCMP_GPU_THREAD    threadIdx.x
#define GCMP_GPU_GROUP     blockIdx.x
#define GCMP_GPU_SYNC_WARP __syncwarp()
#endif /* else <cuda_runtime.h> is the emulation's, and defines them */

enum { GCMP_GPU_WARPS = 4, GCMP_GPU_THREADS = GCMP_GPU_WARPS * GRADCMP_LANES };

/* Device memory; out has one entry a block. */
struct gcmp_gpu_args {
    const void *a, *b;
    uint64_t elems;
    struct gradcmp_tally *out;
};

/* Element i, whole; buffers are aligned for it. */
GCMP_LANE_FN uint64_t gcmp_gpu_load(const void *from, unsigned elem_bytes, uint64_t i) {
    switch (elem_bytes) {
    case 8:
        return ((const uint64_t *)from)[i];
    case 4:
        return ((const uint32_t *)from)[i];
    case 2:
        return ((const uint16_t *)from)[i];
    default:
        return ((const uint8_t *)from)[i];
    }
}

/* The types are constants where this is inlined. */
GCMP_LANE_FN void gcmp_gpu_tally(struct gcmp_gpu_args args, enum gradcmp_dtype dtype_a,
                                 enum gradcmp_dtype dtype_b) {
    GCMP_GPU_SHARED struct gradcmp_tally lanes[GCMP_GPU_WARPS][GRADCMP_LANES];
    const struct gcmp_lane_pair pair = gcmp_lane_pair(dtype_a, dtype_b);
    const unsigned bytes_a = (1 + pair.a.exponent_bits + pair.a.fraction_bits) / 8;
    const unsigned bytes_b = (1 + pair.b.exponent_bits + pair.b.fraction_bits) / 8;
    const unsigned warp = GCMP_GPU_THREAD / GRADCMP_LANES, j = GCMP_GPU_THREAD % GRADCMP_LANES;
    const uint64_t block = (uint64_t)GCMP_GPU_GROUP * GCMP_GPU_WARPS + warp;
    const uint64_t first = block * GRADCMP_BLOCK_ELEMS;
    if (first >= args.elems) {
        return; /* the whole warp: `first` is the same for its lanes */
    }
    const uint64_t left = args.elems - first;
    const unsigned count =
        (unsigned)(left < GRADCMP_BLOCK_ELEMS ? left : (uint64_t)GRADCMP_BLOCK_ELEMS);
    struct gradcmp_tally lane;
    memset(&lane, 0, sizeof lane);
#if defined(__CUDACC__)
#pragma unroll 4
#endif
    for (unsigned i = j; i < count; i += GRADCMP_LANES) {
        gcmp_lane_add(&lane, pair, gcmp_gpu_load(args.a, bytes_a, first + i),
                      gcmp_gpu_load(args.b, bytes_b, first + i), i);
    }
    lanes[warp][j] = lane;
    GCMP_GPU_SYNC_WARP;
    for (unsigned step = GRADCMP_LANES / 2; step > 0; step /= 2) {
        if (j < step) {
            gcmp_lane_fold(&lanes[warp][j], &lanes[warp][j + step]);
        }
        GCMP_GPU_SYNC_WARP;
    }
    if (j == 0) {
        args.out[block] = lanes[warp][0];
    }
}

#define GCMP_GPU_DEFINE(A, B)                                                                      \
    GCMP_GPU_KERNEL gcmp_gpu_tally_##A##_##B(struct gcmp_gpu_args args) {                          \
        gcmp_gpu_tally(args, GRADCMP_DTYPE_##A, GRADCMP_DTYPE_##B);                                \
    }
/* F(A, B) for every pair of floating types. */
#define GCMP_GPU_PAIRS_OF(F, A)                                                                    \
    F(A, FLOAT64)                                                                                  \
    F(A, FLOAT32) F(A, FLOAT16) F(A, BFLOAT16) F(A, FLOAT8_E4M3FN) F(A, FLOAT8_E5M2)
#define GCMP_GPU_PAIRS(F)                                                                          \
    GCMP_GPU_PAIRS_OF(F, FLOAT64)                                                                  \
    GCMP_GPU_PAIRS_OF(F, FLOAT32)                                                                  \
    GCMP_GPU_PAIRS_OF(F, FLOAT16)                                                                  \
    GCMP_GPU_PAIRS_OF(F, BFLOAT16)                                                                 \
    GCMP_GPU_PAIRS_OF(F, FLOAT8_E4M3FN)                                                            \
    GCMP_GPU_PAIRS_OF(F, FLOAT8_E5M2)

GCMP_GPU_PAIRS(GCMP_GPU_DEFINE)

#endif
