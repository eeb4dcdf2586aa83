/* Causes that concern every gradient. */
#include "bounds/cause_global.h"

#include <math.h>

#include "bounds/figures.h"
#include "bounds/median.h"

enum { FEW_ELEMS = 16, FEWEST_PARAMETERS = 4 };

#define MOST_FAILING    0.95
#define ALPHA_SLACK     0.30 /* of the factor over all elements */
#define MEDIAN_SLACK    0.30 /* of the median of alphas */
#define NORM_SLACK      1.25
#define COSINE_SLACK    0.75
#define DECORRELATED    0.3
#define UNLIKE          0.9
#define MOST_UNLIKE     0.9
#define MOST_NORM_RATIO 3.0

static bool counts(const struct gradcmp_parameter_report *parameter) {
    return gcmp_has_alpha(parameter) && gcmp_finite_elems(parameter) >= FEW_ELEMS &&
           isfinite(parameter->cosine);
}

static bool is_open(const struct gradcmp_parameter_report *parameter) {
    return parameter->verdict == GRADCMP_VERDICT_FAIL && parameter->cause_count == 0;
}

/* True where nearly all parameters fail without a cause, from `layer` up. */
static bool all_fail(const struct gradcmp_pair_report *pair, int64_t layer) {
    size_t all = 0, failing = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (counts(parameter) && parameter->layer >= layer) {
            all++;
            failing += is_open(parameter);
        }
    }
    return all > 0 && (double)failing >= MOST_FAILING * (double)all;
}

static int64_t highest_layer(const struct gradcmp_pair_report *pair) {
    int64_t highest = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (counts(parameter) && parameter->layer > highest) {
            highest = parameter->layer;
        }
    }
    return highest;
}

/* What the parameters that count have in common. */
struct picture {
    size_t count, unlike, short_ones; /* cosine under UNLIKE; norm within what a share may have */
    double alpha, median_alpha, median_cosine, median_norm;
};

enum figure { ALPHA, COSINE, NORM };

static double figure_of(const struct gradcmp_parameter_report *parameter, enum figure figure) {
    return figure == ALPHA    ? parameter->alpha
           : figure == COSINE ? parameter->cosine
                              : parameter->norm_b / parameter->norm_a;
}

static double median_of(const struct gradcmp_pair_report *pair, enum figure figure,
                        struct gcmp_sample *samples) {
    size_t count = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (counts(&pair->parameters[i])) {
            samples[count++] = (struct gcmp_sample){figure_of(&pair->parameters[i], figure), 1.0};
        }
    }
    return gcmp_median(samples, count, 0.0);
}

static struct picture take_picture(const struct gradcmp_pair_report *pair, double most_norm,
                                   struct gcmp_sample *samples) {
    struct picture picture = {0};
    double ad = 0.0, a2 = 0.0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (counts(parameter)) {
            picture.count++;
            picture.unlike += parameter->cosine < UNLIKE;
            picture.short_ones += figure_of(parameter, NORM) <= most_norm;
            ad += ldexp(parameter->tally.ad, -2 * (int)gradcmp_difference_log2(parameter));
            a2 += ldexp(parameter->tally.a2, -2 * (int)parameter->scale_a_log2);
        }
    }
    picture.alpha = 1.0 + ad / a2;
    picture.median_alpha = median_of(pair, ALPHA, samples);
    picture.median_cosine = median_of(pair, COSINE, samples);
    picture.median_norm = median_of(pair, NORM, samples);
    return picture;
}

static bool is_share(const struct picture *picture, double share) {
    double count = (double)picture->count;
    return fabs(picture->alpha / share - 1.0) <= ALPHA_SLACK &&
           fabs(picture->median_alpha / share - 1.0) <= MEDIAN_SLACK &&
           (double)picture->short_ones >= 0.5 * count &&
           picture->median_cosine >= COSINE_SLACK * sqrt(share);
}

static bool is_other_data(const struct picture *picture) {
    return picture->median_cosine < DECORRELATED &&
           (double)picture->unlike >= MOST_UNLIKE * (double)picture->count &&
           picture->median_norm < MOST_NORM_RATIO && picture->median_norm > 1.0 / MOST_NORM_RATIO;
}

enum gcmp_cause_kind gcmp_cause_global(const struct gradcmp_pair_report *pair,
                                       const struct gcmp_global_facts *facts,
                                       struct gcmp_arena *scratch, double *figure) {
    struct gcmp_sample *samples =
        gcmp_arena_alloc(scratch, pair->parameter_count + 1, sizeof *samples);
    *figure = NAN;
    if (samples == NULL || !isnan(pair->common_factor) || !all_fail(pair, INT64_MIN) ||
        !all_fail(pair, highest_layer(pair))) {
        return GCMP_CAUSE_NONE;
    }
    double share = facts->microbatches > 1 ? 1.0 / (double)facts->microbatches : NAN;
    struct picture picture = take_picture(pair, NORM_SLACK * sqrt(share), samples);
    if (picture.count < FEWEST_PARAMETERS) {
        return GCMP_CAUSE_NONE;
    }
    if (facts->starts == GCMP_STARTS_DIFFER) {
        return GCMP_CAUSE_DIFFERENT_START;
    }
    if (facts->microbatches > 1 && facts->microbatches != facts->dp && is_share(&picture, share)) {
        *figure = picture.alpha;
        return GCMP_CAUSE_LAST_MICROBATCH;
    }
    *figure = picture.median_cosine;
    return facts->starts == GCMP_STARTS_AGREE && is_other_data(&picture) ? GCMP_CAUSE_DIFFERENT_DATA
                                                                         : GCMP_CAUSE_NONE;
}
