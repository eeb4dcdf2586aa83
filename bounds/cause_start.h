/* Did both sides start from the same weights? Adam's first step is undone to tell. */
#ifndef GCMP_BOUNDS_CAUSE_START_H
#define GCMP_BOUNDS_CAUSE_START_H

#include <stdbool.h>
#include <stddef.h>

enum gcmp_starts {
    GCMP_STARTS_UNKNOWN, /* weights, step or learning rate are not stored */
    GCMP_STARTS_AGREE,
    GCMP_STARTS_DIFFER
};

/* How a side made its first step. */
struct gcmp_adam {
    double lr, weight_decay, eps, beta1, beta2;
};

/* The same elements of one parameter on one side, after the first step. */
struct gcmp_stepped {
    const double *weight;
    const double *exp_avg, *exp_avg_sq; /* both, or both NULL */
    struct gcmp_adam adam;
};

/* The weight before AdamW's first step (decoupled decay; moments started at zero):
 *
 *     w0 = (w1 + lr m' / (sqrt(v') + eps)) / (1 - lr wd),  m' = m / (1 - beta1), v' likewise
 *
 * Without moments the weight itself. */
double gcmp_start_of(const struct gcmp_stepped *side, size_t index);

/* Compared elements of parameters. */
struct gcmp_start_count {
    size_t elems, differing;
    double d2, a2; /* sums of squares: of the starts' differences, of the baseline's starts */
};

/* Count the elements whose starts differ. An element differs when both its undone start and its
 * weight after the step do: the one by more than 16 roundings of the stored type (`eps`), the other
 * by more than both steps together can explain, 1.1 (lr_a + lr_b) beside the roundings. So moments
 * that are not what the step was made from (a fault put into a file, another optimizer) make no
 * different start. */
void gcmp_start_compare(const struct gcmp_stepped *a, const struct gcmp_stepped *b, size_t count,
                        double eps, struct gcmp_start_count *out);

/* What one parameter's count says: DIFFER where more than a tenth of its elements do, AGREE where
 * not more than a hundredth. */
enum gcmp_starts gcmp_start_conclude(const struct gcmp_start_count *count);

#endif
