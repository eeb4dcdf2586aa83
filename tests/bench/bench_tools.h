/* Timing for the benchmarks: medians of interleaved runs. */
#ifndef GCMP_BENCH_TOOLS_H
#define GCMP_BENCH_TOOLS_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7 };

static inline double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int order_doubles(const void *x, const void *y) {
    double p = *(const double *)x, q = *(const double *)y;
    return p < q ? -1 : p > q;
}

/* Median; sorts the values. */
static inline double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, order_doubles);
    return values[count / 2];
}

static inline double smallest(const double *values, size_t count) {
    double least = values[0];
    for (size_t i = 1; i < count; i++) {
        least = values[i] < least ? values[i] : least;
    }
    return least;
}

/* SplitMix64. */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
