/* The verdict of one parameter. */
#include "bounds/verdict.h"

#include <math.h>

#include "bounds/bounds.h"

#define MIN_COSINE    0.9
#define MAX_NOISE_REL 0.25
#define NOISE_SHARE   0.25

/* Of the two sides, where a measured floor or rounding hides a gradient. */
#define MAX_NORM_RATIO 2.0

/* No true gradient is as small beside its layer's as a few roundings of this arithmetic. */
#define WIDE_EPS  0x1p-23
#define FEW_TIMES 2.0

enum { FEW_ELEMS = 16 };

/* A verdict that needs no figures, or 0. */
static enum gradcmp_verdict judge_presence(const struct gradcmp_parameter_report *parameter) {
    if (!parameter->in_b) {
        return GRADCMP_VERDICT_MISSING;
    }
    if (!parameter->in_a) {
        return GRADCMP_VERDICT_EXTRA;
    }
    if (!parameter->shapes_agree) {
        return GRADCMP_VERDICT_SHAPE;
    }
    if (parameter->copies_conflict) {
        return GRADCMP_VERDICT_CONFLICT;
    }
    return parameter->tally.nonfinite_any > 0 ? GRADCMP_VERDICT_NONFINITE : (enum gradcmp_verdict)0;
}

/* A factor explains the difference: what it leaves is inside the bound. */
static bool factor_fits(const struct gradcmp_parameter_report *parameter,
                        const struct gcmp_rest *rest, double bound) {
    return gcmp_finite_elems(parameter) >= FEW_ELEMS && rest->alpha != 0.0 &&
           rest->rho / fabs(rest->alpha) <= bound;
}

static bool is_small_noise(const struct gcmp_trial *trial, size_t index,
                           const struct gcmp_rest *rest, double bound) {
    const struct gradcmp_parameter_report *parameter = &trial->parameters[index];
    if (!(rest->rel > bound && rest->rel < MAX_NOISE_REL) || factor_fits(parameter, rest, bound)) {
        return false;
    }
    double error_rms = rest->rel * parameter->norm_a / sqrt((double)gcmp_finite_elems(parameter));
    return error_rms <= NOISE_SHARE * bound * trial->layer_rms[index];
}

static bool is_of_one_size(const struct gradcmp_parameter_report *parameter) {
    double ratio = parameter->norm_b / parameter->norm_a;
    return ratio > 1.0 / MAX_NORM_RATIO && ratio < MAX_NORM_RATIO;
}

/* Both sides hold nothing but rounding of the layer's other gradients. What a factor left of such
 * noise (a sign, a half) is told from another draw of it by what is no multiple of the baseline. */
static bool is_rounding_alone(const struct gcmp_trial *trial, size_t index,
                              const struct gcmp_rest *rest, double bound) {
    const struct gradcmp_parameter_report *parameter = &trial->parameters[index];
    double largest =
        fmax(parameter->norm_a, parameter->norm_b) / sqrt((double)gcmp_finite_elems(parameter));
    return rest->rel > bound && is_of_one_size(parameter) &&
           largest <= FEW_TIMES * fmin(trial->bound->eps, WIDE_EPS) * trial->layer_rms[index] &&
           fabs(rest->alpha - 1.0) <= 2.0 * rest->rho;
}

/* The error is inside the floor that a fit measured, and the gradient itself is hardly above that
 * floor: nothing can be said of it. Not where it is gone, or another size, or off by a factor. */
static bool is_drowned(const struct gcmp_trial *trial, size_t index, const struct gcmp_rest *rest,
                       double bound) {
    const struct gradcmp_parameter_report *parameter = &trial->parameters[index];
    if (trial->floors == NULL || !(rest->rel > bound && rest->rel <= trial->floors[index])) {
        return false;
    }
    return is_of_one_size(parameter) && !factor_fits(parameter, rest, bound);
}

/* Beyond the bound, and yet nothing can be said of it. */
static bool is_noise(const struct gcmp_trial *trial, size_t index, const struct gcmp_rest *rest,
                     double bound) {
    return is_small_noise(trial, index, rest, bound) ||
           is_rounding_alone(trial, index, rest, bound) || is_drowned(trial, index, rest, bound);
}

/* The limits that no bound, however wide, moves. */
static bool is_unlike(const struct gradcmp_parameter_report *parameter,
                      const struct gcmp_rest *rest) {
    bool one_zero = (parameter->tally.max_a == 0.0) != (parameter->tally.max_b == 0.0);
    return one_zero || isinf(rest->rel) || rest->cosine < MIN_COSINE;
}

enum gradcmp_verdict gcmp_verdict_within(const struct gcmp_trial *trial,
                                         const struct gcmp_spread *spread, size_t index) {
    const struct gradcmp_parameter_report *parameter = &trial->parameters[index];
    enum gradcmp_verdict presence = judge_presence(parameter);
    if (presence != 0) {
        return presence;
    }
    struct gcmp_rest rest = gcmp_rest_of(parameter, spread->factor);
    double bound = gcmp_trial_bound(trial, index);
    if (gcmp_is_all_zero(parameter) ||
        (!parameter->has_order && is_noise(trial, index, &rest, bound))) {
        return GRADCMP_VERDICT_UNJUDGED;
    }
    if (!(rest.rel <= bound) || is_unlike(parameter, &rest)) {
        return GRADCMP_VERDICT_FAIL;
    }
    double tolerance = gcmp_alpha_tolerance(trial, spread, parameter, &rest);
    return fabs(rest.alpha - 1.0) > tolerance ? GRADCMP_VERDICT_SCALE : GRADCMP_VERDICT_PASS;
}
