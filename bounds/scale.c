/* The scale test. */
#include "bounds/scale.h"

#include <math.h>

#include "bounds/bounds.h"

enum { FEW_ELEMS = 16 };
#define UNIT_STEPS    2.0
#define NOISE_FACTOR  12.0
#define SPREAD_SIGMAS 3.0

/* The standard deviation of normal values over their median deviation. */
#define SIGMA_OF_MAD 1.4826

/* Collect a figure of all parameters that are inside their bounds. */
static size_t collect(const struct gcmp_trial *trial, double factor, bool rho) {
    size_t count = 0;
    for (size_t i = 0; i < trial->count; i++) {
        const struct gradcmp_parameter_report *parameter = &trial->parameters[i];
        if (!gcmp_has_alpha(parameter)) {
            continue;
        }
        struct gcmp_rest rest = gcmp_rest_of(parameter, factor);
        if (rest.rel <= gcmp_trial_bound(trial, i)) {
            trial->samples[count++] =
                (struct gcmp_sample){rho ? rest.rho : rest.alpha, trial->votes[i]};
        }
    }
    return count;
}

struct gcmp_spread gcmp_spread_of(const struct gcmp_trial *trial, double factor) {
    struct gcmp_spread spread = {.factor = factor};
    size_t count = collect(trial, factor, true);
    spread.rho = gcmp_median(trial->samples, count, 0.0);
    count = collect(trial, factor, false);
    double centre = gcmp_median(trial->samples, count, 1.0);
    for (size_t i = 0; i < count; i++) {
        trial->samples[i].value = fabs(trial->samples[i].value - centre);
    }
    spread.sigma = SIGMA_OF_MAD * gcmp_median(trial->samples, count, 0.0);
    return spread;
}

double gcmp_alpha_tolerance(const struct gcmp_trial *trial, const struct gcmp_spread *spread,
                            const struct gradcmp_parameter_report *parameter,
                            const struct gcmp_rest *rest) {
    if (!isfinite(rest->alpha)) {
        return NAN;
    }
    uint64_t elems = gcmp_finite_elems(parameter);
    double rho = elems < FEW_ELEMS ? fmax(rest->rho, spread->rho) : rest->rho;
    double noise = NOISE_FACTOR * rho / sqrt((double)elems);
    return fmax(UNIT_STEPS * gcmp_noise_unit(trial->bound),
                fmax(noise, SPREAD_SIGMAS * spread->sigma));
}
