/* The weighted median. */
#include "bounds/median.h"

#include <math.h>
#include <stdlib.h>

/* Weights like 1/3 do not add up exactly; halves that differ by less than this share are equal. */
#define TIE_SHARE 1e-9

static int compare_samples(const void *left, const void *right) {
    double a = ((const struct gcmp_sample *)left)->value;
    double b = ((const struct gcmp_sample *)right)->value;
    return (a > b) - (a < b);
}

double gcmp_median(struct gcmp_sample *samples, size_t count, double usual) {
    if (count == 0) {
        return usual;
    }
    qsort(samples, count, sizeof *samples, compare_samples);
    double half = 0.0, seen = 0.0;
    for (size_t i = 0; i < count; i++) {
        half += samples[i].weight / 2;
    }
    size_t low = 0;
    while (low + 1 < count && seen + samples[low].weight < half * (1 - TIE_SHARE)) {
        seen += samples[low++].weight;
    }
    seen += samples[low].weight;
    size_t high = low + 1 < count && seen <= half * (1 + TIE_SHARE) ? low + 1 : low;
    double below = samples[low].value, above = samples[high].value;
    return fabs(above - usual) < fabs(below - usual) ? above : below;
}
