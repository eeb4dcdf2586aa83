/* Rates of the kernels on data in the second-level cache, for each pair of types and instruction
 * set, beside a plain C loop that takes the same figures of float32 pairs in the same lanes.
 *
 * Compile this file with -O3 -march=native, so that the plain loop gets what the compiler can give.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "bench_tools.h"
#include "kernels/kernels.h"
#include "kernels/lanes.h"

enum { BLOCKS = 2, ELEMS = BLOCKS * GRADCMP_BLOCK_ELEMS, TYPES = 6, REPEATS = 20 };

static unsigned char data[2][TYPES][8 * ELEMS];

/* Gradients around 1e-3, and the same with noise of half a percent. */
static void fill(void) {
    uint64_t random = 1;
    for (size_t i = 0; i < ELEMS; i++) {
        double value = (double)(int64_t)next_random(&random) * 0x1p-63 * 1e-3;
        double noise = 1 + (double)(int64_t)next_random(&random) * 0x1p-63 * 5e-3;
        for (unsigned t = 0; t < TYPES; t++) {
            struct gcmp_float_format format = gcmp_float_format((enum gradcmp_dtype)(1 + t));
            unsigned bytes = gcmp_dtype_bytes((enum gradcmp_dtype)(1 + t));
            uint64_t a = gcmp_lane_narrow(format, gcmp_lane_to_bits(value));
            uint64_t b = gcmp_lane_narrow(format, gcmp_lane_to_bits(value * noise));
            memcpy(data[0][t] + i * bytes, &a, bytes); /* little-endian */
            memcpy(data[1][t] + i * bytes, &b, bytes);
        }
    }
}

/* What a programmer writes down: one loop over 32 lanes. */
static void plain_tally(const float *a, const float *b, size_t elems, struct gradcmp_tally *out) {
    double d2[32] = {0}, ad[32] = {0}, a2[32] = {0}, b2[32] = {0}, max_d[32] = {0};
    float max_a[32] = {0}, max_b[32] = {0};
    uint32_t zeros_a[32] = {0}, zeros_b[32] = {0}, equal[32] = {0}, ulps[32] = {0};
    uint32_t nonfinite[32] = {0}, index[32] = {0};
    for (uint32_t i = 0; i < elems; i += 32) {
        for (uint32_t j = 0; j < 32; j++) {
            float x = a[i + j], y = b[i + j];
            uint32_t p, q;
            memcpy(&p, &x, 4);
            memcpy(&q, &y, 4);
            uint32_t m = p & 0x7fffffff, n = q & 0x7fffffff;
            uint32_t steps = ((p ^ q) >> 31) != 0 ? m + n : m > n ? m - n : n - m;
            double d = (double)y - (double)x, size = fabs(d);
            nonfinite[j] += m >= 0x7f800000 || n >= 0x7f800000;
            zeros_a[j] += m == 0;
            zeros_b[j] += n == 0;
            equal[j] += p == q;
            ulps[j] = steps > ulps[j] ? steps : ulps[j];
            max_a[j] = fabsf(x) > max_a[j] ? fabsf(x) : max_a[j];
            max_b[j] = fabsf(y) > max_b[j] ? fabsf(y) : max_b[j];
            index[j] = size > max_d[j] ? i + j : index[j];
            max_d[j] = size > max_d[j] ? size : max_d[j];
            d2[j] = fma(d, d, d2[j]);
            ad[j] = fma((double)x, d, ad[j]);
            a2[j] = fma((double)x, (double)x, a2[j]);
            b2[j] = fma((double)y, (double)y, b2[j]);
        }
    }
    memset(out, 0, sizeof *out);
    for (size_t step = 16; step > 0; step /= 2) {
        for (size_t j = 0; j < step; j++) {
            d2[j] += d2[j + step];
            ad[j] += ad[j + step];
            a2[j] += a2[j + step];
            b2[j] += b2[j + step];
        }
    }
    out->d2 = d2[0];
    out->ad = ad[0];
    out->a2 = a2[0];
    out->b2 = b2[0];
    for (size_t j = 0; j < 32; j++) {
        bool further = max_d[j] > out->max_d;
        out->max_d_index = further ? index[j] : out->max_d_index;
        out->max_d = further ? max_d[j] : out->max_d;
        out->max_a = max_a[j] > out->max_a ? max_a[j] : out->max_a;
        out->max_b = max_b[j] > out->max_b ? max_b[j] : out->max_b;
        out->zeros_a += zeros_a[j];
        out->zeros_b += zeros_b[j];
        out->equal_bits += equal[j];
        out->max_ulp = ulps[j] > out->max_ulp ? ulps[j] : out->max_ulp;
        out->nonfinite_any += nonfinite[j];
    }
}

/* Seconds of one cycle of the processor: a chain of additions takes one each. */
static double time_cycle(void) {
#if defined(__x86_64__)
    enum { CHAIN = 1 << 16 };
    double best = INFINITY;
    for (unsigned repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t sum = 0;
        double start = now_s();
        for (unsigned i = 0; i < CHAIN; i += 16) {
            __asm__ volatile(".rept 16\n\tadd $3, %0\n\t.endr" : "+r"(sum));
        }
        double seconds = (now_s() - start) / CHAIN;
        best = seconds < best ? seconds : best;
    }
    return best;
#else
    return NAN; /* there is no AVX2 either */
#endif
}

/* Seconds that the arithmetic of the AVX2 kernel takes for ELEMS float32 pairs, by the count in
 * avx2.c (14 and 18 instructions for 8 elements) at four a cycle: as many vector pipes as
 * processors with these instructions have at most. */
static double arithmetic_limit(void) {
    return (14 + 18) / 4.0 / 8.0 * ELEMS * time_cycle();
}

/* One thing that is timed: a kernel on a pair of types, or the plain loop (kernel NULL). */
struct subject {
    const struct gcmp_kernel *kernel;
    unsigned type_a, type_b;
    double seconds[ROUNDS];
};

static void time_once(struct subject *subject, unsigned round) {
    unsigned bytes_a = gcmp_dtype_bytes((enum gradcmp_dtype)(1 + subject->type_a));
    unsigned bytes_b = gcmp_dtype_bytes((enum gradcmp_dtype)(1 + subject->type_b));
    double best = INFINITY;
    struct gradcmp_tally tally;
    for (unsigned repeat = 0; repeat < REPEATS; repeat++) { /* the least disturbed of many */
        double start = now_s();
        for (size_t block = 0; block < BLOCKS; block++) {
            size_t first = block * GRADCMP_BLOCK_ELEMS;
            const unsigned char *a = data[0][subject->type_a] + first * bytes_a;
            const unsigned char *b = data[1][subject->type_b] + first * bytes_b;
            if (subject->kernel == NULL) {
                plain_tally((const float *)(const void *)a, (const float *)(const void *)b,
                            GRADCMP_BLOCK_ELEMS, &tally);
            } else {
                subject->kernel->tally(a, (enum gradcmp_dtype)(1 + subject->type_a), b,
                                       (enum gradcmp_dtype)(1 + subject->type_b),
                                       GRADCMP_BLOCK_ELEMS, &tally);
            }
            __asm__ volatile("" : : "r"(&tally) : "memory");
        }
        double seconds = now_s() - start;
        best = seconds < best ? seconds : best;
    }
    subject->seconds[round] = best;
}

static void print_rate(struct subject *subject) {
    unsigned bytes = gcmp_dtype_bytes((enum gradcmp_dtype)(1 + subject->type_a)) +
                     gcmp_dtype_bytes((enum gradcmp_dtype)(1 + subject->type_b));
    double seconds = median(subject->seconds, ROUNDS);
    printf("%-8s %-14s %-14s %7.2f GB/s  %6.3f ns/element\n",
           subject->kernel == NULL ? "plain C" : subject->kernel->name,
           gradcmp_dtype_name((enum gradcmp_dtype)(1 + subject->type_a)),
           gradcmp_dtype_name((enum gradcmp_dtype)(1 + subject->type_b)),
           (double)bytes * ELEMS / seconds * 1e-9, seconds / ELEMS * 1e9);
}

/* What the AVX2 kernel reaches of its arithmetic, and beside the plain loop: medians of the ratios
 * of each round. */
static void print_ratios(const struct subject *subjects, size_t count, const double *arithmetic) {
    for (size_t i = 1; i < count; i++) {
        const struct subject *subject = &subjects[i];
        double of_limit[ROUNDS], of_plain[ROUNDS];
        if (strcmp(subject->kernel->name, "avx2") != 0 || subject->type_a != 1 ||
            subject->type_b != 1) {
            continue;
        }
        for (unsigned round = 0; round < ROUNDS; round++) {
            of_limit[round] = arithmetic[round] / subject->seconds[round];
            of_plain[round] = subjects[0].seconds[round] / subject->seconds[round];
        }
        printf("avx2, float32: %.2f of its arithmetic, %.1f times the plain loop\n",
               median(of_limit, ROUNDS), median(of_plain, ROUNDS));
    }
}

int main(void) {
    static struct subject subjects[1 + 8 * TYPES * TYPES];
    size_t count = 0;
    fill();
    subjects[count++] = (struct subject){NULL, 1, 1, {0}};
    for (const struct gcmp_kernel *const *kernel = gcmp_kernels(); *kernel != NULL; kernel++) {
        for (unsigned a = 0; a < TYPES; a++) {
            for (unsigned b = 0; b < TYPES; b++) {
                subjects[count++] = (struct subject){*kernel, a, b, {0}};
            }
        }
    }
    double arithmetic[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) {
            time_once(&subjects[i], round);
        }
        arithmetic[round] = arithmetic_limit();
    }
    print_ratios(subjects, count, arithmetic);
    for (size_t i = 0; i < count; i++) {
        print_rate(&subjects[i]);
    }
    return 0;
}
