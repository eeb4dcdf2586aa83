/* Rounding noise as it is seen on good pairs, drawn from seeds. */
#ifndef GCMP_STUDY_NOISE_H
#define GCMP_STUDY_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* How much the noise grows from one layer to the next, away from the loss. */
#define STUDY_GROWTH 1.005

struct study_rng {
    uint64_t state;
    double spare; /* second of two normal values; NaN: none */
};

struct study_tensor {
    char name[192];
    int64_t layer;
    size_t elems, rows; /* rows: extent of the first axis; divides elems */
    double *values;
};

struct study_rng study_seed(uint64_t number, uint64_t stream);
double study_uniform(struct study_rng *rng); /* in [0, 1) */
double study_normal(struct study_rng *rng);  /* mean 0, deviation 1 */

/* Fill b[elems] with the tensor's values and noise of about `size` times their norm. */
void study_add_noise(const struct study_tensor *tensor, double size, struct study_rng *rng,
                     double *b);

#endif
