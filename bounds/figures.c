/* The figures of a parameter, from its sums. */
#include "bounds/figures.h"

#include <math.h>

bool gcmp_is_comparable(const struct gradcmp_parameter_report *parameter) {
    return parameter->in_a && parameter->in_b && parameter->shapes_agree;
}

bool gcmp_has_alpha(const struct gradcmp_parameter_report *parameter) {
    return gcmp_is_comparable(parameter) && !parameter->copies_conflict &&
           parameter->tally.nonfinite_any == 0 && isfinite(parameter->alpha);
}

bool gcmp_is_all_zero(const struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    return tally->nonfinite_any == 0 && tally->max_a == 0.0 && tally->max_b == 0.0;
}

uint64_t gcmp_finite_elems(const struct gradcmp_parameter_report *parameter) {
    return parameter->tally.elems - parameter->tally.nonfinite_any;
}

/* The sum of squares can be divided by. */
static bool is_divisor(double sum) {
    return isfinite(sum) && sum > 0.0;
}

static double norm_of(double sum, double scale_log2) {
    struct gcmp_square_sum total = {0};
    gcmp_square_add(&total, sum, scale_log2);
    return gcmp_square_root(&total);
}

/* b2 is of values that were read times 2^this beside those of a2. */
static int scale_of_b(const struct gradcmp_parameter_report *parameter) {
    return (int)(parameter->scale_b_log2 - parameter->scale_a_log2);
}

/* The figures of a pair of sides with a baseline that is not zero. */
static void fill_ratios(struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    double x = tally->d2 / tally->a2, y = tally->ad / tally->a2;
    parameter->rel = sqrt(x);
    parameter->alpha = 1.0 + y;
    parameter->rho = sqrt(fmax(0.0, x - y * y));
    if (is_divisor(tally->b2)) {
        double cosine = (tally->a2 + tally->ad) / sqrt(tally->a2) / sqrt(tally->b2);
        parameter->cosine = fmax(-1.0, fmin(1.0, cosine));
    }
}

/* The same where the sums of one side are of values times another power of two: of sides so far
 * apart that rel^2 may be beyond binary64. */
static void fill_far_ratios(struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    int shift = (int)(parameter->scale_a_log2 - gradcmp_difference_log2(parameter));
    double rel = ldexp(sqrt(tally->d2 / tally->a2), shift);
    double y = ldexp(tally->ad / tally->a2, 2 * shift), along = fmin(fabs(y), rel);
    parameter->rel = rel;
    parameter->alpha = 1.0 + y;
    parameter->rho = sqrt(rel - along) * sqrt(rel + along);
    if (is_divisor(tally->b2)) {
        double cosine =
            ldexp(parameter->alpha * (sqrt(tally->a2) / sqrt(tally->b2)), scale_of_b(parameter));
        parameter->cosine = fmax(-1.0, fmin(1.0, cosine));
    }
}

void gcmp_figures_fill(struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    parameter->rel = parameter->alpha = parameter->rho = parameter->cosine = NAN;
    parameter->norm_a = parameter->norm_b = NAN;
    bool counted = gcmp_is_comparable(parameter) || tally->elems > 0;
    if (parameter->in_a && counted) {
        parameter->norm_a = norm_of(tally->a2, parameter->scale_a_log2);
    }
    if (parameter->in_b && counted) {
        parameter->norm_b = norm_of(tally->b2, parameter->scale_b_log2);
    }
    if (!gcmp_is_comparable(parameter)) {
        return;
    }
    if (is_divisor(tally->a2) && isfinite(tally->d2)) { /* then so is P: P^2 <= A D */
        (scale_of_b(parameter) == 0 ? fill_ratios : fill_far_ratios)(parameter);
    } else {
        parameter->rel = tally->max_d == 0.0 ? 0.0 : (double)INFINITY;
    }
}

/* rho^2, from B where the candidate is the smaller side. */
static double residual_sq(const struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    if (fabs(parameter->alpha) < 0.5 && isfinite(tally->b2)) {
        double alpha = parameter->alpha;
        return fmax(0.0, ldexp(tally->b2 / tally->a2, -2 * scale_of_b(parameter)) - alpha * alpha);
    }
    return parameter->rho * parameter->rho;
}

double gcmp_factor_of(const struct gradcmp_parameter_report *parameter) {
    double factor = parameter->rest.factor;
    return factor == 0.0 ? parameter->alpha
                         : factor * (1.0 + parameter->rest.ad / parameter->tally.a2);
}

/* What is left of the sums of b / rest.factor once a further factor is divided out. */
static struct gcmp_rest measured_rest(const struct gradcmp_parameter_report *parameter,
                                      double factor) {
    double x = parameter->rest.d2 / parameter->tally.a2;
    double y = parameter->rest.ad / parameter->tally.a2, off = 1.0 + y - factor;
    double rho_sq = fmax(0.0, x - y * y);
    struct gcmp_rest rest = {sqrt(x), 1.0 + y, sqrt(rho_sq), parameter->cosine};
    if (factor != 1.0) {
        rest.rel = sqrt(rho_sq + off * off) / fabs(factor);
        rest.alpha /= factor;
        rest.rho /= fabs(factor);
    }
    return rest;
}

struct gcmp_rest gcmp_rest_of(const struct gradcmp_parameter_report *parameter, double factor) {
    struct gcmp_rest rest = {parameter->rel, parameter->alpha, parameter->rho, parameter->cosine};
    if (factor == 1.0 || !isfinite(parameter->alpha)) {
        return rest;
    }
    if (parameter->rest.factor != 0.0) {
        rest = measured_rest(parameter, factor / parameter->rest.factor);
    } else {
        double residual = residual_sq(parameter), off = parameter->alpha - factor;
        rest.rel = sqrt(residual + off * off) / fabs(factor);
        rest.alpha = parameter->alpha / factor;
        rest.rho = sqrt(residual) / fabs(factor);
    }
    rest.cosine = copysign(1.0, factor) * parameter->cosine;
    return rest;
}

double gcmp_rest_resolution(double factor) {
    return 0x1p-26 / sqrt(fmin(1.0, fabs(factor)));
}

void gcmp_square_add(struct gcmp_square_sum *total, double sum, double scale_log2) {
    int scale = (int)scale_log2;
    if (!total->started) {
        *total = (struct gcmp_square_sum){sum, scale, true};
    } else if (scale >= total->scale_log2) {
        total->sum += ldexp(sum, 2 * (total->scale_log2 - scale));
    } else {
        total->sum = ldexp(total->sum, 2 * (scale - total->scale_log2)) + sum;
        total->scale_log2 = scale;
    }
}

double gcmp_square_root(const struct gcmp_square_sum *total) {
    return ldexp(sqrt(total->sum), -total->scale_log2);
}
