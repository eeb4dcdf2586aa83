/* Rounding noise, drawn from seeds. */
#include "study/noise.h"

#include <math.h>

/* Splitmix64: passes BigCrush, needs no warming up, and is four lines. */
static uint64_t next_bits(struct study_rng *rng) {
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct study_rng study_seed(uint64_t number, uint64_t stream) {
    struct study_rng rng = {number * UINT64_C(0xd1342543de82ef95) + stream, NAN};
    (void)next_bits(&rng);
    return rng;
}

double study_uniform(struct study_rng *rng) {
    return (double)(next_bits(rng) >> 11) * 0x1p-53;
}

/* Box and Muller. */
double study_normal(struct study_rng *rng) {
    if (!isnan(rng->spare)) {
        double value = rng->spare;
        rng->spare = NAN;
        return value;
    }
    double radius = sqrt(-2.0 * log(1.0 - study_uniform(rng)));
    double angle = 6.283185307179586 * study_uniform(rng);
    rng->spare = radius * sin(angle);
    return radius * cos(angle);
}

/* Half of the error's energy is independent from element to element, half is one factor a row: the
 * gradient of a weight is a sum over few tokens, so its errors have few directions. */
void study_add_noise(const struct study_tensor *tensor, double size, struct study_rng *rng,
                     double *b) {
    double squares = 0.0, share = size * exp(0.2 * study_normal(rng)) * sqrt(0.5);
    for (size_t i = 0; i < tensor->elems; i++) {
        squares += tensor->values[i] * tensor->values[i];
    }
    double rms = sqrt(squares / (double)tensor->elems);
    size_t columns = tensor->elems / tensor->rows;
    for (size_t row = 0; row < tensor->rows; row++) {
        double factor = share * study_normal(rng);
        for (size_t column = 0; column < columns; column++) {
            size_t i = row * columns + column;
            b[i] = tensor->values[i] * (1.0 + factor) + share * rms * study_normal(rng);
        }
    }
}
