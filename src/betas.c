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

double gcmp_step_of(const struct gradcmp_catalogue *catalogue) {
    double step = setting_number(catalogue, "optimizer.step");
    step = isnan(step) ? setting_number(catalogue, "step") : step;
    return isnan(step) && catalogue->iteration >= 0 ? (double)catalogue->iteration : step;
}

double gcmp_beta_of(const struct gradcmp_catalogue *catalogue, const char *state) {
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

/* What a side's state is of the gradient. */
struct share {
    double beta, step; /* NaN: not known */
    double factor;     /* the state is that times the gradient (or its square); NaN: not known */
    bool is_average;   /* over several steps, known to be */
};

static struct share share_of(const struct gcmp_comparison *comparison,
                             const struct gcmp_participant *side) {
    const struct gradcmp_catalogue *catalogue = &side->checkpoint->catalogue;
    struct share share = {.beta = gcmp_beta_of(catalogue, comparison->report->state),
                          .step = gcmp_step_of(catalogue),
                          .factor = (double)NAN};
    bool at_first = share.step == 1.0;
    if (side->is_recovered) {
        share.factor = 1.0;
    } else if (is_usable(share.beta) && (at_first || share.beta == 0.0)) {
        share.factor = 1.0 - share.beta;
    }
    share.is_average = !side->is_recovered && share.beta > 0.0 && share.step > 1.0;
    return share;
}

/* One side's gradient was recovered, the other is still an average: not the same quantity. */
static void fail_half(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                      const struct share *average, bool is_candidate) {
    struct gradcmp_error error = {0};
    gcmp_error_set(&error, GRADCMP_ERROR_USAGE, pair->path, GRADCMP_NO_OFFSET,
                   "the %s's %s at step %.15g is an average over steps with beta %g, and the other "
                   "side's gradient was recovered: give %s too",
                   is_candidate ? "candidate" : "baseline", comparison->report->state,
                   average->step, average->beta, is_candidate ? "--previous-b" : "--previous-a");
    gcmp_pair_fail(pair, &error);
}

static bool has_mixed_betas(const struct gcmp_participant *side) {
    return gcmp_catalogue_setting(&side->checkpoint->catalogue, "optimizer.mixed_betas") != NULL;
}

/* Refuse where the averages of one side's groups are no one multiple of the other's; two sides with
 * groups of their own betas are taken to have the same. True where the pair has failed. */
static bool fail_mixed(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                       const struct gcmp_participant *a, const struct gcmp_participant *b) {
    bool mixed_a = has_mixed_betas(a), mixed_b = has_mixed_betas(b);
    bool is_moment = strncmp(comparison->report->state, "exp_avg", 7) == 0;
    bool is_recovered = a->is_recovered || b->is_recovered;
    if (!is_moment || (mixed_a == mixed_b && !(mixed_a && is_recovered))) {
        return false;
    }
    struct gradcmp_error error = {0};
    gcmp_error_set(&error, GRADCMP_ERROR_UNSUPPORTED, pair->path, GRADCMP_NO_OFFSET,
                   "groups of parameters have betas of their own in the %s: expected one pair of "
                   "betas, or the same groups on both sides, to compare %s; train both with the "
                   "same betas, or compare main_grad (--state)",
                   mixed_a && mixed_b ? "two checkpoints"
                   : mixed_a          ? "baseline only"
                                      : "candidate only",
                   comparison->report->state);
    gcmp_pair_fail(pair, &error);
    return true;
}

static enum gradcmp_status note_average(struct gcmp_comparison *comparison,
                                        struct gradcmp_pair_report *pair, const struct share *a,
                                        const struct share *b, struct gradcmp_error *error) {
    double most = fmax(is_usable(a->beta) ? a->beta : 0.0, is_usable(b->beta) ? b->beta : 0.0);
    double step = fmax(a->step, b->step);
    return gcmp_pair_note(comparison, pair, error,
                          "at step %g with beta %g, %s is an average over the gradients of several "
                          "steps: an error of an earlier step, or of the parameters since, is in "
                          "it too (--previous-a and --previous-b with the checkpoints of step %g "
                          "recover the gradient)",
                          step, most, comparison->report->state, step - 1.0);
}

static enum gradcmp_status note_recovered(struct gcmp_comparison *comparison,
                                          struct gradcmp_pair_report *pair, const struct share *a,
                                          const struct share *b, struct gradcmp_error *error) {
    bool is_a = comparison->baseline.is_recovered;
    return gcmp_pair_note(comparison, pair, error,
                          "%s: the gradient of step %.15g was recovered from two steps, with beta "
                          "%g; bits and ulp are those of the recovered values",
                          comparison->report->state, is_a ? a->step : b->step,
                          is_a ? a->beta : b->beta);
}

static enum gradcmp_status apply_to_pair(struct gcmp_comparison *comparison, size_t index,
                                         struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    const struct gcmp_participant *side_a = &comparison->baseline;
    const struct gcmp_participant *side_b = &comparison->candidates[index];
    const char *state = comparison->report->state;
    if (fail_mixed(comparison, pair, side_a, side_b)) {
        return GRADCMP_OK;
    }
    struct share a = share_of(comparison, side_a), b = share_of(comparison, side_b);
    bool differ = is_usable(a.beta) && is_usable(b.beta) && (a.beta < b.beta || a.beta > b.beta);
    if (side_a->is_recovered != side_b->is_recovered && (a.is_average || b.is_average)) {
        fail_half(comparison, pair, a.is_average ? &a : &b, b.is_average);
        return GRADCMP_OK;
    }
    if (side_a->is_recovered || side_b->is_recovered) {
        GCMP_TRY(note_recovered(comparison, pair, &a, &b, error));
    }
    if (a.factor < b.factor || a.factor > b.factor) {
        GCMP_TRY(apply_factor(comparison, pair, b.factor / a.factor, error));
    } else if (differ && (isnan(a.factor) || isnan(b.factor))) {
        GCMP_TRY(
            gcmp_pair_note(comparison, pair, error,
                           "the sides average over steps with different betas (%g and %g), and "
                           "are not known to be at step 1: %s is not the same quantity on both",
                           a.beta, b.beta, state));
    }
    if (a.is_average || b.is_average) {
        GCMP_TRY(note_average(comparison, pair, &a, &b, error));
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
