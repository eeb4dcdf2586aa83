/* What Adam's betas make of a gradient. */
#include "betas.h"

#include <math.h>
#include <string.h>

#include "base/catalogue.h"
#include "rest.h"

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

/* A beta that the checkpoint states, for all parameters or for one, and that is none. */
static bool find_unusable(const struct gradcmp_catalogue *catalogue, bool is_first, double *beta) {
    const struct gradcmp_setting *setting =
        gcmp_catalogue_setting(catalogue, is_first ? "adam_beta1" : "adam_beta2");
    if (setting != NULL &&
        (setting->kind == GRADCMP_SETTING_FLOAT || setting->kind == GRADCMP_SETTING_INT)) {
        *beta = setting_number(catalogue, setting->name);
        if (!is_usable(*beta)) {
            return true;
        }
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_adam *adam = catalogue->stored[i].adam;
        *beta = adam == NULL ? (double)NAN : is_first ? adam->beta1 : adam->beta2;
        if (!isnan(*beta) && !is_usable(*beta)) { /* NaN: not known */
            return true;
        }
    }
    return false;
}

enum gradcmp_status gcmp_note_betas(struct gradcmp_catalogue *catalogue,
                                    struct gradcmp_error *error) {
    double beta;
    for (int i = 1; i <= 2; i++) {
        if (find_unusable(catalogue, i == 1, &beta)) {
            GCMP_TRY(gcmp_catalogue_note(catalogue, error,
                                         "beta%d of the optimizer is %.15g, expected 0 or more and "
                                         "less than 1: what its average is of the gradient is not "
                                         "known",
                                         i, beta));
        }
    }
    return GRADCMP_OK;
}

/* Make of sums over (a, b) those over (a, b / f): with d' = b / f - a,
 *   f^2 sum d'^2 = sum (d + (1 - f) a)^2 = D + 2 (1 - f) P + (1 - f)^2 A. */
static void divide_candidate(struct gradcmp_parameter_report *report, double factor) {
    struct gradcmp_tally *tally = &report->tally;
    double scale_log2 = gradcmp_difference_log2(report) - report->scale_a_log2;
    double a2 = ldexp(tally->a2, 2 * (int)scale_log2), rest = 1.0 - factor;
    double d2 = tally->d2 + 2.0 * rest * tally->ad + rest * rest * a2;
    tally->d2 = fmax(0.0, d2) / (factor * factor);
    tally->ad = (tally->ad + rest * a2) / factor;
    tally->b2 /= factor * factor;
}

static enum gradcmp_status apply_factor(struct gcmp_comparison *comparison, size_t index,
                                        double factor, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *report = &pair->parameters[i];
        if (report->in_a && report->in_b && report->shapes_agree) {
            divide_candidate(report, factor);
        }
    }
    pair->state_factor = factor;
    GCMP_TRY(gcmp_measure_divided(comparison, index, error));
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

/* What a beta and a step make of a gradient. */
static struct share make_share(double beta, double step) {
    struct share share = {.beta = beta, .step = step, .factor = (double)NAN};
    if (is_usable(beta) && (step == 1.0 || beta == 0.0)) {
        share.factor = 1.0 - beta;
    }
    share.is_average = beta > 0.0 && step > 1.0;
    return share;
}

static struct share share_of(const struct gcmp_comparison *comparison,
                             const struct gcmp_participant *side) {
    const struct gradcmp_catalogue *catalogue = &side->checkpoint->catalogue;
    struct share share =
        make_share(gcmp_beta_of(catalogue, comparison->report->state), gcmp_step_of(catalogue));
    if (side->is_recovered) {
        share.factor = 1.0;
        share.is_average = false;
    }
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

/* A text of what differs among the parameters of a side; NULL where nothing does. */
static const char *mixed_of(const struct gcmp_participant *side, const char *name) {
    const struct gradcmp_setting *setting =
        gcmp_catalogue_setting(&side->checkpoint->catalogue, name);
    return setting != NULL && setting->kind == GRADCMP_SETTING_TEXT ? setting->text : NULL;
}

/* Refuse where the averages of one side's groups are no one multiple of the other's, and nothing
 * tells which parameters are which: two sides whose groups have the same betas and steps are taken
 * to have the same groups. True where the pair has failed. */
static bool fail_mixed(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                       const char *what, const char *name) {
    const struct gcmp_participant *a = &comparison->baseline;
    const struct gcmp_participant *b = &comparison->candidates[pair - comparison->report->pairs];
    const char *mixed_a = mixed_of(a, name), *mixed_b = mixed_of(b, name);
    bool is_recovered = a->is_recovered || b->is_recovered;
    bool are_alike = mixed_a != NULL && mixed_b != NULL && strcmp(mixed_a, mixed_b) == 0 &&
                     strstr(mixed_a, "...") == NULL;
    if ((mixed_a == NULL && mixed_b == NULL) || (are_alike && !is_recovered)) {
        return false;
    }
    struct gradcmp_error error = {0};
    gcmp_error_set(&error, GRADCMP_ERROR_UNSUPPORTED, pair->path, GRADCMP_NO_OFFSET,
                   "groups of parameters have %s of their own (baseline: %.80s; candidate: %.80s): "
                   "expected the same of all, or the same groups on both sides, to compare %s; "
                   "train both alike, or compare main_grad (--state)",
                   what, mixed_a == NULL ? "one" : mixed_a, mixed_b == NULL ? "one" : mixed_b,
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

/* What of the gradient both sides hold, of one parameter or of all. */
struct parts {
    struct share a, b;
};

/* Refuse averages of different steps, where no iteration of the runs told of it before. True where
 * the pair has failed. */
static bool fail_steps(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                       const struct parts *shares) {
    double a = shares->a.step, b = shares->b.step;
    if (comparison->options->allow_iterations || isnan(a) || isnan(b) || (a >= b && a <= b) ||
        !(shares->a.is_average || shares->b.is_average)) {
        return false;
    }
    struct gradcmp_error error = {0};
    gcmp_error_set(&error, GRADCMP_ERROR_USAGE, pair->path, GRADCMP_NO_OFFSET,
                   "step %.15g of the optimizer, the baseline is at step %.15g "
                   "(--allow-iterations)",
                   b, a);
    gcmp_pair_fail(pair, &error);
    return true;
}

/* --- parameters that were averaged each in its own way --- */

static struct share own_share(const struct gcmp_comparison *comparison,
                              const struct gradcmp_adam *adam, struct share of_all) {
    bool is_first = strcmp(comparison->report->state, "exp_avg") == 0;
    return adam == NULL ? of_all : make_share(is_first ? adam->beta1 : adam->beta2, adam->step);
}

static bool same_or_unknown(double a, double b) {
    return isnan(a) ? isnan(b) : a >= b && a <= b;
}

/* True where the two sides hold the same multiple, or average, of the gradient but for a factor. */
static bool are_comparable(const struct parts *parts) {
    return (!isnan(parts->a.factor) && !isnan(parts->b.factor)) ||
           (same_or_unknown(parts->a.beta, parts->b.beta) &&
            same_or_unknown(parts->a.step, parts->b.step));
}

static double ratio_of(const struct parts *parts) {
    return isnan(parts->a.factor) || isnan(parts->b.factor) ? 1.0
                                                            : parts->b.factor / parts->a.factor;
}

static void fail_parameter(const struct gcmp_comparison *comparison,
                           struct gradcmp_pair_report *pair, const char *name,
                           const struct parts *parts) {
    struct gradcmp_error error = {0};
    gcmp_error_set(
        &error, GRADCMP_ERROR_UNSUPPORTED, pair->path, GRADCMP_NO_OFFSET,
        "%.160s: %s is at step %.15g with beta %.15g in the baseline, at step %.15g with "
        "beta %.15g in the candidate: expected the same step and beta, or step 1 on both "
        "sides (--exclude leaves a parameter out)",
        name, comparison->report->state, parts->a.step, parts->a.beta, parts->b.step,
        parts->b.beta);
    gcmp_pair_fail(pair, &error);
}

static void fail_factor(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                        const char *name, double own, double ratio) {
    struct gradcmp_error error = {0};
    gcmp_error_set(&error, GRADCMP_ERROR_UNSUPPORTED, pair->path, GRADCMP_NO_OFFSET,
                   "%.160s: by its betas the candidate's %s is %.6g times the baseline's, and %.6g "
                   "times for other parameters: expected one factor for all (train both sides with "
                   "the same betas; --exclude leaves a parameter out)",
                   name, comparison->report->state, own, ratio);
    gcmp_pair_fail(pair, &error);
}

/* Compare parameter by parameter what both sides hold, and take the factor that all have in
 * *shares. False where the pair has failed. */
static bool judge_own(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                      const struct gcmp_pairing *pairing, struct parts *shares) {
    struct parts of_all = *shares;
    double ratio = (double)NAN;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gcmp_paired *sides = &pairing->sides[i];
        if (sides->a == NULL || sides->b == NULL) {
            continue;
        }
        struct parts parts = {own_share(comparison, sides->a->adam, of_all.a),
                              own_share(comparison, sides->b->adam, of_all.b)};
        double own = ratio_of(&parts);
        bool is_one = isnan(ratio) || fabs(own - ratio) <= 1e-12 * ratio;
        bool may_differ =
            comparison->options->allow_iterations && same_or_unknown(parts.a.beta, parts.b.beta);
        if (!are_comparable(&parts) && !may_differ) {
            fail_parameter(comparison, pair, pair->parameters[i].name, &parts);
            return false;
        }
        if (!is_one) {
            fail_factor(comparison, pair, pair->parameters[i].name, own, ratio);
            return false;
        }
        bool was_average = shares->a.is_average || shares->b.is_average;
        if (isnan(ratio) || (!was_average && parts.a.is_average)) {
            *shares = parts; /* of the first, or of the first average, which is noted */
        }
        ratio = isnan(ratio) ? own : ratio;
    }
    return true;
}

/* True where the sides' moments were averaged in ways that can be compared, as far as is known. */
static bool judge_mixed(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                        const struct gcmp_pairing *pairing, struct parts *shares) {
    bool is_own = false;
    if (strncmp(comparison->report->state, "exp_avg", 7) != 0) {
        return true;
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gcmp_paired *sides = &pairing->sides[i];
        is_own = is_own || (sides->a != NULL && sides->b != NULL &&
                            (sides->a->adam != NULL || sides->b->adam != NULL));
    }
    const struct gcmp_participant *b = &comparison->candidates[pair - comparison->report->pairs];
    if (is_own && !comparison->baseline.is_recovered && !b->is_recovered) {
        return judge_own(comparison, pair, pairing, shares);
    }
    return !fail_mixed(comparison, pair, "betas", "optimizer.mixed_betas") &&
           !fail_mixed(comparison, pair, "steps", "optimizer.mixed_steps");
}

/* Adam's, RMSprop's and Adagrad's. */
static bool is_of_squares(const char *state) {
    return strcmp(state, "exp_avg_sq") == 0 || strcmp(state, "max_exp_avg_sq") == 0 ||
           strcmp(state, "square_avg") == 0 || strcmp(state, "sum") == 0;
}

/* Weight decay that is part of the gradient, for the optimizer, hides errors beside it. */
static enum gradcmp_status note_decay(struct gcmp_comparison *comparison,
                                      struct gradcmp_pair_report *pair, double a, double b,
                                      struct gradcmp_error *error) {
    const char *state = comparison->report->state;
    double most = fmax(isnan(a) ? 0.0 : a, isnan(b) ? 0.0 : b);
    if (!(most > 0.0) ||
        (strncmp(state, "exp_avg", 7) != 0 && strcmp(state, "momentum_buffer") != 0)) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(comparison, pair, error,
                          "the optimizer adds %g times the weight to the gradient (weight decay "
                          "that is not decoupled): %s holds the sum, in which an error of a small "
                          "gradient is not seen; train with weight decay 0, or with AdamW",
                          most, state);
}

static enum gradcmp_status apply_to_pair(struct gcmp_comparison *comparison, size_t index,
                                         struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    const struct gcmp_participant *side_a = &comparison->baseline;
    const struct gcmp_participant *side_b = &comparison->candidates[index];
    struct parts shares = {share_of(comparison, side_a), share_of(comparison, side_b)};
    struct share *a = &shares.a, *b = &shares.b;
    bool is_recovered = side_a->is_recovered || side_b->is_recovered;
    if (!judge_mixed(comparison, pair, &comparison->pairings[index], &shares) ||
        (!is_recovered && fail_steps(comparison, pair, &shares))) {
        return GRADCMP_OK;
    }
    bool differ =
        is_usable(a->beta) && is_usable(b->beta) && (a->beta < b->beta || a->beta > b->beta);
    if (side_a->is_recovered != side_b->is_recovered && (a->is_average || b->is_average)) {
        fail_half(comparison, pair, a->is_average ? a : b, b->is_average);
        return GRADCMP_OK;
    }
    if (is_recovered) {
        GCMP_TRY(note_recovered(comparison, pair, a, b, error));
    }
    if (a->factor < b->factor || a->factor > b->factor) {
        GCMP_TRY(apply_factor(comparison, index, b->factor / a->factor, error));
    } else if (differ && (isnan(a->factor) || isnan(b->factor))) {
        GCMP_TRY(
            gcmp_pair_note(comparison, pair, error,
                           "the sides average over steps with different betas (%g and %g), and "
                           "are not known to be at step 1: %s is not the same quantity on both",
                           a->beta, b->beta, comparison->report->state));
    }
    if (a->is_average || b->is_average) {
        GCMP_TRY(note_average(comparison, pair, a, b, error));
    }
    GCMP_TRY(note_decay(
        comparison, pair, setting_number(&side_a->checkpoint->catalogue, "optimizer.added_decay"),
        setting_number(&side_b->checkpoint->catalogue, "optimizer.added_decay"), error));
    if (is_of_squares(comparison->report->state)) {
        GCMP_TRY(gcmp_pair_note(comparison, pair, error,
                                "%s holds squares: only magnitudes are judged (wrong signs "
                                "cannot be seen), and eps counts twice",
                                comparison->report->state));
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
