/* Different starts. */
#include "bounds/cause_start.h"

#include <math.h>

#define ROUNDINGS    16.0
#define STEP_SLACK   1.1 /* a step is at most lr where the moments are those of one gradient */
#define SHARE_DIFFER 0.10
#define SHARE_AGREE  0.01

double gcmp_start_of(const struct gcmp_stepped *side, size_t index) {
    const struct gcmp_adam *adam = &side->adam;
    double step = 0.0;
    if (side->exp_avg != NULL) {
        double m = side->exp_avg[index] / (1.0 - adam->beta1);
        double v = fmax(side->exp_avg_sq[index], 0.0) / (1.0 - adam->beta2);
        double below = sqrt(v) + adam->eps;
        step = below > 0.0 ? adam->lr * m / below : 0.0;
    }
    return (side->weight[index] + step) / (1.0 - adam->lr * adam->weight_decay);
}

void gcmp_start_compare(const struct gcmp_stepped *a, const struct gcmp_stepped *b, size_t count,
                        double eps, struct gcmp_start_count *out) {
    double steps = STEP_SLACK * (a->adam.lr + b->adam.lr);
    for (size_t i = 0; i < count; i++) {
        double start_a = gcmp_start_of(a, i), start_b = gcmp_start_of(b, i);
        double after = fabs(a->weight[i] - b->weight[i]);
        if (!isfinite(start_a) || !isfinite(start_b)) {
            continue;
        }
        double rounding = ROUNDINGS * eps * fmax(fabs(start_a), fabs(start_b));
        double off = fabs(start_a - start_b);
        out->elems++;
        out->differing += off > rounding && after > steps + rounding;
        out->d2 += off * off;
        out->a2 += start_a * start_a;
    }
}

enum gcmp_starts gcmp_start_conclude(const struct gcmp_start_count *count) {
    double share = (double)count->differing / (double)(count->elems + (count->elems == 0));
    if (count->elems == 0 || (share > SHARE_AGREE && share <= SHARE_DIFFER)) {
        return GCMP_STARTS_UNKNOWN;
    }
    return share > SHARE_DIFFER ? GCMP_STARTS_DIFFER : GCMP_STARTS_AGREE;
}
