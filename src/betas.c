/* What Adam's betas make of a gradient. */
#include "betas.h"

#include <math.h>
#include <string.h>

#include "base/catalogue.h"

/* The value of a number among the settings; NaN where there is none. */
static double setting_number(const struct gradcmp_catalogue *catalogue, const char *name) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(catalogue, name);
    if (setting != NULL && setting->kind == GRADCMP_SETTING_FLOAT) {
        return setting->number;
    }
    if (setting != NULL && setting->kind == GRADCMP_SETTING_INT) {
        return (double)setting->integer;
    }
    return (double)NAN;
}

/* The optimizer's own step where it is stored, else the iteration; NaN where neither is. */
static double step_of(const struct gradcmp_catalogue *catalogue) {
    double step = setting_number(catalogue, "optimizer.step");
    step = isnan(step) ? setting_number(catalogue, "step") : step;
    return isnan(step) && catalogue->iteration >= 0 ? (double)catalogue->iteration : step;
}

/* The beta that the state is an average with; NaN where the state is none or it is not stored. */
static double beta_of(const struct gradcmp_catalogue *catalogue, const char *state) {
    bool first = strcmp(state, "exp_avg") == 0;
    if (!first && strcmp(state, "exp_avg_sq") != 0) {
        return (double)NAN;
    }
    return setting_number(catalogue, first ? "adam_beta1" : "adam_beta2");
}

static bool is_usable(double beta) {
    return beta >= 0.0 && beta < 1.0;
}

/* Make of sums over (a, b) those over (a, b / f): with d' = b / f - a,
 *   f^2 sum d'^2 = sum (d + (1 - f) a)^2 = D + 2 (1 - f) P + (1 - f)^2 A. */
static void divide_candidate(struct gradcmp_tally *tally, double factor) {
    double a2 = tally->a2, rest = 1.0 - factor;
    double d2 = tally->d2 + 2.0 * rest * tally->ad + rest * rest * a2;
    tally->d2 = fmax(0.0, d2) / (factor * factor);
    tally->ad = (tally->ad + rest * a2) / factor;
    tally->b2 /= factor * factor;
}

static enum gradcmp_status apply_factor(struct gcmp_comparison *comparison,
                                        struct gradcmp_pair_report *pair, double factor,
                                        struct gradcmp_error *error) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *report = &pair->parameters[i];
        if (report->in_a && report->in_b && report->shapes_agree) {
            divide_candidate(&report->tally, factor);
        }
    }
    pair->state_factor = factor;
    return gcmp_pair_note(comparison, pair, error,
                          "the sides trained with different betas; at step 1 that makes %s of the "
                          "candidate %.6g times the baseline's, which is divided out",
                          comparison->report->state, factor);
}

static enum gradcmp_status apply_to_pair(struct gcmp_comparison *comparison, size_t index,
                                         struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    const struct gradcmp_catalogue *a = comparison->report->baseline, *b = pair->catalogue;
    const char *state = comparison->report->state;
    double beta_a = beta_of(a, state), beta_b = beta_of(b, state);
    bool at_first = step_of(a) == 1.0 && step_of(b) == 1.0;
    bool differ = is_usable(beta_a) && is_usable(beta_b) && (beta_a < beta_b || beta_a > beta_b);
    if (differ && at_first) {
        GCMP_TRY(apply_factor(comparison, pair, (1.0 - beta_b) / (1.0 - beta_a), error));
    } else if (differ) {
        GCMP_TRY(
            gcmp_pair_note(comparison, pair, error,
                           "the sides average over steps with different betas (%g and %g), and "
                           "are not known to be at step 1: %s is not the same quantity on both",
                           beta_a, beta_b, state));
    }
    double most = fmax(is_usable(beta_a) ? beta_a : 0.0, is_usable(beta_b) ? beta_b : 0.0);
    double step = fmax(step_of(a), step_of(b));
    if (most > 0.0 && step > 1.0) {
        GCMP_TRY(gcmp_pair_note(comparison, pair, error,
                                "at step %g with beta %g, %s is an average over the gradients of "
                                "several steps: an error of an earlier step, or of the parameters "
                                "since, is in it too",
                                step, most, state));
    }
    if (strcmp(state, "exp_avg_sq") == 0) {
        GCMP_TRY(gcmp_pair_note(comparison, pair, error,
                                "exp_avg_sq holds squares: only magnitudes are judged (wrong signs "
                                "cannot be seen), and eps counts twice"));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_apply_betas(struct gcmp_comparison *comparison,
                                     struct gradcmp_error *error) {
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        if (gcmp_pair_is_open(&comparison->report->pairs[i])) {
            GCMP_TRY(apply_to_pair(comparison, i, error));
        }
    }
    return GRADCMP_OK;
}
