/* Compares the kernels of the CUDA plug-in with the processor's and measures them; check.sh builds
 * and runs this. check_device.cpp is the plug-in, for a card or on the emulated runtime, which
 * shows that all of this works but says nothing of rates.
 *
 *   check bits MIB               tallies MIB of odd values in all pairs of types on both
 *   check rates MIB              the kernels' rates on elements that lie on the device
 *   check make A B MIB           two files of gradients that differ by rounding, for the program
 *
 * Exit status: 0; 1 where tallies differ; 3 where a rate misses its aim; 77 without a device; 2 for
 * anything else. */
#include <cuda_runtime.h>

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "check_device.h"
#include "kernels/lanes.h"

extern "C" {
#include "base/dtype.h"
#include "kernels/kernels.h"
}

enum { TYPES = GRADCMP_DTYPE_FLOAT8_E5M2, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2 };
enum { EXIT_MISSED = 3, EXIT_NO_DEVICE = 77 };
#if defined(GCMP_CHECK_EMULATED)
enum { ROUNDS = 1 };
#else
enum { ROUNDS = 7 };
#endif
static const double aim = 0.85; /* of the card's peak */
static const char *const type_names[TYPES + 1] = {
    "none", "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"};

static void stop(const char *what, const char *why) {
    fprintf(stderr, "check: %s: %s\n", what, why);
    exit(EXIT_TROUBLE);
}

static void need(const char *what, cudaError_t code) {
    if (code != cudaSuccess) {
        stop(what, cudaGetErrorString(code));
    }
}

/* SplitMix64. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* --- the same bits --- */

static void put(unsigned char *at, enum gradcmp_dtype dtype, uint64_t bits) {
    memcpy(at, &bits,
           gcmp_dtype_bytes(dtype)); /* little-endian, as the devices and their hosts are */
}

/* Bits at which arithmetic goes wrong first: zeros, the ends of subnormal and normal numbers, what
 * is not finite, with payloads. */
static uint64_t odd_bits(enum gradcmp_dtype dtype, uint64_t random) {
    struct gcmp_float_format format = gcmp_float_format(dtype);
    uint64_t special = gcmp_lane_special(format), normal = (uint64_t)1 << format.fraction_bits;
    const uint64_t odd[] = {0,           1,           normal - 1,  normal,
                            special - 1, special,     special + 1, special | normal >> 1,
                            normal + 1,  special >> 1};
    uint64_t magnitude = odd[(random >> 8) % (sizeof odd / sizeof odd[0])];
    uint64_t sign = (random & 1) << (format.exponent_bits + format.fraction_bits);
    return gcmp_lane_magnitude(format, magnitude) | sign;
}

/* Fill both sides. Kind 0: any bits; 1: gradients, b being a with an error, and an odd value in
 * every few hundred; 2: odd values alone; 3: gradients that are all finite. */
static void fill(unsigned char *a, enum gradcmp_dtype dtype_a, unsigned char *b,
                 enum gradcmp_dtype dtype_b, size_t elems, unsigned kind, uint64_t seed) {
    for (size_t i = 0; i < elems; i++) {
        uint64_t x = next_random(&seed), y = next_random(&seed);
        bool is_odd = kind == 2 || (kind == 1 && x % 311 == 0);
        double value = (double)(int64_t)x * 0x1p-63 * 1e-3;
        double other = value * (1 + (double)(int64_t)y * 0x1p-63 * 5e-3);
        uint64_t bits_a = gcmp_lane_narrow(gcmp_float_format(dtype_a), gcmp_lane_to_bits(value));
        uint64_t bits_b = gcmp_lane_narrow(gcmp_float_format(dtype_b), gcmp_lane_to_bits(other));
        put(a + i * gcmp_dtype_bytes(dtype_a), dtype_a,
            kind == 0 ? x
            : is_odd  ? odd_bits(dtype_a, x >> 1)
                      : bits_a);
        put(b + i * gcmp_dtype_bytes(dtype_b), dtype_b,
            kind == 0                ? y
            : is_odd && (y & 2) != 0 ? odd_bits(dtype_b, y >> 2)
                                     : bits_b);
    }
}

/* A sum that is no number has a sign and a payload that depend on the device, and no meaning. */
static bool is_same_sum(double x, double y) {
    return (x != x && y != y) || memcmp(&x, &y, sizeof x) == 0;
}

static bool is_same(struct gradcmp_tally x, struct gradcmp_tally y) {
    bool same = is_same_sum(x.d2, y.d2) && is_same_sum(x.ad, y.ad) && is_same_sum(x.a2, y.a2) &&
                is_same_sum(x.b2, y.b2);
    x.d2 = x.ad = x.a2 = x.b2 = y.d2 = y.ad = y.a2 = y.b2 = 0;
    return same && memcmp(&x, &y, sizeof x) == 0;
}

struct bench {
    const struct gradcmp_backend *backend;
    struct gradcmp_backend_device *device;
    struct gradcmp_backend_lane *lane;
    size_t buffer_bytes;
};

/* Tally elements on the device; wrong blocks are counted. */
static size_t compare_span(const struct bench *bench, enum gradcmp_dtype dtype_a,
                           enum gradcmp_dtype dtype_b, size_t elems, bool alone) {
    struct gradcmp_error error;
    struct gradcmp_backend_work work;
    memset(&work, 0, sizeof work);
    work.a_is_new = 1;
    work.alone = alone;
    work.dtype_a = dtype_a;
    work.dtype_b = alone ? dtype_a : dtype_b;
    work.elems = elems;
    const struct gradcmp_tally *blocks = NULL;
    if (bench->backend->start(bench->lane, &work, &error) != GRADCMP_OK ||
        bench->backend->wait(bench->lane, 0, &blocks, &error) != GRADCMP_OK) {
        stop("device", error.message);
    }
    const struct gcmp_kernel *kernel = gcmp_kernel_choose();
    const unsigned char *a = (const unsigned char *)bench->backend->buffer(bench->lane, 0, 0);
    const unsigned char *b = (const unsigned char *)bench->backend->buffer(bench->lane, 1, 0);
    size_t wrong = 0;
    for (size_t first = 0; first < elems; first += GRADCMP_BLOCK_ELEMS) {
        size_t count = std::min(elems - first, (size_t)GRADCMP_BLOCK_ELEMS);
        const unsigned char *at_a = a + first * gcmp_dtype_bytes(dtype_a);
        const unsigned char *at_b = alone ? at_a : b + first * gcmp_dtype_bytes(dtype_b);
        struct gradcmp_tally expected;
        kernel->tally(at_a, dtype_a, at_b, work.dtype_b, count, &expected);
        wrong += !is_same(expected, blocks[first / GRADCMP_BLOCK_ELEMS]);
    }
    return wrong;
}

/* All kinds of values of a pair of types, of `bytes` in all, the last block not whole. */
static size_t compare_pair(const struct bench *bench, enum gradcmp_dtype dtype_a,
                           enum gradcmp_dtype dtype_b, size_t bytes, size_t *done) {
    enum { KINDS = 4 };
    unsigned char *a = (unsigned char *)bench->backend->buffer(bench->lane, 0, 0);
    unsigned char *b = (unsigned char *)bench->backend->buffer(bench->lane, 1, 0);
    size_t pair_bytes = gcmp_dtype_bytes(dtype_a) + gcmp_dtype_bytes(dtype_b), wrong = 0;
    size_t most = bench->buffer_bytes / sizeof(double) - 777;
    for (size_t left = bytes / pair_bytes / KINDS, part = 0; left > 0; part++) {
        size_t elems = left < most ? left : most;
        for (unsigned kind = 0; kind < KINDS; kind++) {
            fill(a, dtype_a, b, dtype_b, elems, kind, part * KINDS + kind);
            wrong += compare_span(bench, dtype_a, dtype_b, elems, false);
        }
        wrong += compare_span(bench, dtype_a, dtype_b, elems, true);
        *done += elems * pair_bytes * KINDS;
        left -= elems;
    }
    return wrong;
}

static int check_bits(struct bench *bench, size_t mib) {
    struct gradcmp_error error;
    size_t wrong = 0, done = 0, pairs = 0;
    bench->buffer_bytes = mib < 64 ? 16 * sizeof(double) * GRADCMP_BLOCK_ELEMS : 64 << 20;
    if (bench->backend->lane_open(bench->device, bench->buffer_bytes, &bench->lane, &error) !=
        GRADCMP_OK) {
        stop("device", error.message);
    }
    for (unsigned a = 1; a <= TYPES; a++) {
        for (unsigned b = 1; b <= TYPES; b++) {
            size_t found = compare_pair(bench, (enum gradcmp_dtype)a, (enum gradcmp_dtype)b,
                                        (mib << 20) / (TYPES * TYPES), &done);
            if (found > 0) {
                printf("bits of %s and %s: %zu blocks differ\n", type_names[a], type_names[b],
                       found);
            }
            wrong += found;
            pairs += found == 0;
        }
    }
    bench->backend->lane_close(bench->lane);
    printf("%-44s %8zu MiB  %zu of %d pairs\n", "same bits as the processor's", done >> 20, pairs,
           TYPES * TYPES);
    return wrong == 0 ? 0 : EXIT_DIFFERENT;
}

/* --- rates --- */

/* Bytes a second that the card's memory can give at most; 0 where the driver does not tell. */
static double peak_rate() {
    int device = 0, khz = 0, bits = 0;
    if (cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device) != cudaSuccess) {
        return 0;
    }
    return 2.0 * khz * 1e3 * bits / 8; /* two transfers a cycle */
}

/* Median seconds of a kernel on `elems` elements, the first launch left out. */
static double time_kernel(const struct check_launch &launch, cudaStream_t stream) {
    double seconds[ROUNDS];
    cudaEvent_t events[2];
    for (int i = 0; i < 2; i++) {
        need("event", cudaEventCreateWithFlags(&events[i], 0));
    }
    for (int round = -1; round < ROUNDS; round++) {
        float milliseconds = 0;
        need("event", cudaEventRecord(events[0], stream));
        need("launch", check_launch_kernel(&launch, stream));
        need("event", cudaEventRecord(events[1], stream));
        need("wait", cudaStreamSynchronize(stream));
        need("time", cudaEventElapsedTime(&milliseconds, events[0], events[1]));
        seconds[round < 0 ? 0 : round] = 1e-3 * milliseconds;
    }
    for (int i = 0; i < 2; i++) {
        need("event", cudaEventDestroy(events[i]));
    }
    std::sort(seconds, seconds + ROUNDS);
    return seconds[ROUNDS / 2];
}

/* Fill device memory with the same few MiB of gradients over and over. */
static void fill_device(void *to, size_t bytes, const std::vector<unsigned char> &from,
                        cudaStream_t stream) {
    for (size_t at = 0; at < bytes; at += from.size()) {
        size_t count = std::min(from.size(), bytes - at);
        need("copy", cudaMemcpyAsync((unsigned char *)to + at, from.data(), count,
                                     cudaMemcpyHostToDevice, stream));
    }
    need("wait", cudaStreamSynchronize(stream));
}

/* Measure a pair of types; true where the aim is reached or cannot be known. */
static bool measure_pair(enum gradcmp_dtype dtype_a, enum gradcmp_dtype dtype_b, void *const *sides,
                         struct gradcmp_tally *out, size_t side_bytes, double peak) {
    enum { SAMPLE_ELEMS = 1 << 20 };
    cudaStream_t stream;
    size_t width = std::max(gcmp_dtype_bytes(dtype_a), gcmp_dtype_bytes(dtype_b));
    const struct check_launch launch = {dtype_a, dtype_b, sides[0], sides[1], side_bytes / width,
                                        out};
    std::vector<unsigned char> a(SAMPLE_ELEMS * gcmp_dtype_bytes(dtype_a));
    std::vector<unsigned char> b(SAMPLE_ELEMS * gcmp_dtype_bytes(dtype_b));
    need("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fill(a.data(), dtype_a, b.data(), dtype_b, SAMPLE_ELEMS, 3, 1);
    fill_device(sides[0], launch.elems * gcmp_dtype_bytes(dtype_a), a, stream);
    fill_device(sides[1], launch.elems * gcmp_dtype_bytes(dtype_b), b, stream);
    double seconds = time_kernel(launch, stream);
    need("stream", cudaStreamDestroy(stream));
    double rate =
        (double)(launch.elems * (gcmp_dtype_bytes(dtype_a) + gcmp_dtype_bytes(dtype_b))) / seconds;
    bool is_reached = !(rate < aim * peak);
    char name[64];
    snprintf(name, sizeof name, "kernel, %s and %s", type_names[dtype_a], type_names[dtype_b]);
    if (peak > 0) {
        printf("%-44s %8.0f GB/s %.2f of %.0f; aim %.2f%s\n", name, rate * 1e-9, rate / peak,
               peak * 1e-9, aim, is_reached ? "" : ", missed");
    } else {
        printf("%-44s %8.0f GB/s the card does not tell its peak\n", name, rate * 1e-9);
    }
    return is_reached;
}

static int check_rates(size_t mib) {
    static const enum gradcmp_dtype pairs[][2] = {{GRADCMP_DTYPE_FLOAT32, GRADCMP_DTYPE_FLOAT32},
                                                  {GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FLOAT32},
                                                  {GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_BFLOAT16},
                                                  {GRADCMP_DTYPE_FLOAT64, GRADCMP_DTYPE_FLOAT64}};
    size_t side_bytes = mib << 20;
    void *sides[2] = {NULL, NULL};
    struct gradcmp_tally *out = NULL;
    for (int side = 0; side < 2; side++) {
        need("device memory", cudaMalloc(&sides[side], side_bytes));
    }
    size_t blocks = side_bytes / GRADCMP_BLOCK_ELEMS + 1; /* of the narrowest type */
    need("device memory", cudaMalloc((void **)&out, blocks * sizeof *out));
    double peak = peak_rate();
    bool all = true;
    for (const auto &pair : pairs) {
        bool is_reached = measure_pair(pair[0], pair[1], sides, out, side_bytes, peak);
        all = all && (is_reached || pair[0] != GRADCMP_DTYPE_FLOAT32); /* the aim is that pair's */
    }
    for (int side = 0; side < 2; side++) {
        need("device memory", cudaFree(sides[side]));
    }
    need("device memory", cudaFree(out));
    return all ? 0 : EXIT_MISSED;
}

/* --- a pair of files --- */

/* Write a safetensors file of one layer's gradient in pieces of a few MiB. */
static void make_file(const char *path, size_t rows, bool is_candidate) {
    enum { COLUMNS = 1024 };
    char header[512];
    size_t bytes = rows * COLUMNS * sizeof(float);
    int length = snprintf(header, sizeof header,
                          "{\"optimizer.state.exp_avg.decoder.layers.0.mlp.linear_fc1.weight\":"
                          "{\"dtype\":\"F32\",\"shape\":[%zu,%d],\"data_offsets\":[0,%zu]}}",
                          rows, COLUMNS, bytes);
    uint64_t header_bytes = (uint64_t)length, seed = 3;
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && fwrite(&header_bytes, sizeof header_bytes, 1, file) == 1 &&
              fwrite(header, header_bytes, 1, file) == 1;
    for (size_t row = 0; ok && row < rows; row++) {
        float values[2][COLUMNS];
        fill((unsigned char *)values[0], GRADCMP_DTYPE_FLOAT32, (unsigned char *)values[1],
             GRADCMP_DTYPE_FLOAT32, COLUMNS, 3, next_random(&seed));
        ok = fwrite(values[is_candidate], sizeof values[0], 1, file) == 1;
    }
    if (file == NULL || fclose(file) != 0 || !ok) {
        stop(path, "cannot be written");
    }
}

int main(int argc, char **argv) {
    size_t mib = argc > 2 ? strtoul(argv[argc - 1], NULL, 10) : 0;
    if (mib == 0 || mib > 1 << 20) {
        stop("usage", "check bits MIB | rates MIB | make A B MIB");
    }
    if (argc == 5 && strcmp(argv[1], "make") == 0) {
        make_file(argv[2], mib << 8, false);
        make_file(argv[3], mib << 8, true);
        return 0;
    }
    struct gradcmp_error error;
    struct bench bench = {gradcmp_backend_table(), NULL, NULL, 0};
    if (bench.backend->open(-1, &bench.device, &error) != GRADCMP_OK) {
        printf("no device: %s\n", error.message);
        return EXIT_NO_DEVICE;
    }
    int status = EXIT_TROUBLE;
    if (argc == 3 && strcmp(argv[1], "bits") == 0) {
        printf("device: %s\n", bench.backend->describe(bench.device));
        status = check_bits(&bench, mib);
    } else if (argc == 3 && strcmp(argv[1], "rates") == 0) {
        status = check_rates(mib);
    }
    bench.backend->close(bench.device);
    return status;
}
