/* A second reading of parameters, the candidate divided by a factor. */
#include "rest.h"

#include <math.h>
#include <stdlib.h>

#include "bounds/bounds.h"
#include "bounds/cause.h"
#include "bounds/figures.h"
#include "diagnose_probes.h"

enum { MOST_ROUNDS = 2 };        /* the first factor is as coarse as the sums that it is from */
#define FINE_ENOUGH   (1.0 / 64) /* of the bound */
#define LEAST_CLAIMED 0.4        /* units; bounds/common.h claims no smaller factor */

/* The least that has to be told from nothing. */
static double finest(const struct gradcmp_pair_report *pair) {
    return FINE_ENOUGH * gcmp_bound_at(&pair->bound, (int64_t)pair->bound.layers + 1);
}

/* The sums cannot show whether what a factor leaves is inside the bound. */
static bool is_coarse(const struct gradcmp_pair_report *pair, double factor) {
    return isfinite(factor) && factor != 0.0 && factor != 1.0 &&
           gcmp_rest_resolution(factor) > finest(pair);
}

/* The factor may be all that is wrong with it, as far as the sums can show. */
static bool may_be_multiple(const struct gradcmp_parameter_report *report, double factor) {
    double rest = gcmp_rest_of(report, factor).rel;
    return rest <= 4.0 * fmax(report->bound, gcmp_rest_resolution(factor));
}

/* What was read with other powers of two has no factor like others. */
static bool may_have_rest(const struct gradcmp_parameter_report *report) {
    return gcmp_has_alpha(report) && report->scale_a_log2 == 0.0 && report->scale_b_log2 == 0.0;
}

/* One reading of those parameters that have a factor (not 0). */
struct reading {
    struct gcmp_job *jobs;
    struct gcmp_side *sides;
    struct gradcmp_tally *tallies;
    size_t *indices;
    size_t count;
};

static void add_job(struct reading *reading, const struct gcmp_comparison *comparison, size_t pair,
                    size_t index, double factor) {
    const struct gradcmp_pair_report *report = &comparison->report->pairs[pair];
    const struct gcmp_paired *sides = &comparison->pairings[pair].sides[index];
    struct gcmp_side *b = &reading->sides[reading->count];
    *b = (struct gcmp_side){.catalogue = report->catalogue,
                            .parameter = sides->b,
                            .owner = (uint32_t)pair + 1,
                            .divisor = factor * report->state_factor};
    reading->jobs[reading->count] =
        (struct gcmp_job){.a = {.catalogue = comparison->report->baseline, .parameter = sides->a},
                          .b = b,
                          .b_count = 1,
                          .elems = report->parameters[index].compared_elems,
                          .tallies = &reading->tallies[reading->count]};
    reading->indices[reading->count++] = index;
}

static enum gradcmp_status measure(struct reading *reading, struct gcmp_comparison *comparison,
                                   size_t pair, const double *factors,
                                   struct gradcmp_error *error) {
    struct gradcmp_pair_report *report = &comparison->report->pairs[pair];
    for (size_t i = 0; i < report->parameter_count; i++) {
        if (factors[i] != 0.0) {
            add_job(reading, comparison, pair, i, factors[i]);
        }
    }
    GCMP_TRY(gcmp_probes_engine(reading->jobs, reading->count, comparison, error));
    for (size_t j = 0; j < reading->count && gcmp_pair_is_open(report); j++) {
        struct gradcmp_parameter_report *parameter = &report->parameters[reading->indices[j]];
        parameter->rest.factor = factors[reading->indices[j]];
        parameter->rest.d2 = reading->tallies[j].d2;
        parameter->rest.ad = reading->tallies[j].ad;
    }
    return GRADCMP_OK;
}

/* Measure with a factor for each parameter; 0: not this one. */
static enum gradcmp_status measure_rests(struct gcmp_comparison *comparison, size_t pair,
                                         const double *factors, struct gradcmp_error *error) {
    size_t count = comparison->report->pairs[pair].parameter_count;
    struct reading reading = {.jobs = calloc(count + 1, sizeof *reading.jobs),
                              .sides = calloc(count + 1, sizeof *reading.sides),
                              .tallies = calloc(count + 1, sizeof *reading.tallies),
                              .indices = calloc(count + 1, sizeof *reading.indices)};
    bool lacks_memory = reading.jobs == NULL || reading.sides == NULL || reading.tallies == NULL ||
                        reading.indices == NULL;
    enum gradcmp_status status = lacks_memory ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                               GRADCMP_NO_OFFSET, "out of memory")
                                              : measure(&reading, comparison, pair, factors, error);
    free(reading.jobs);
    free(reading.sides);
    free(reading.tallies);
    free(reading.indices);
    return status;
}

/* The same factor for all; false where the last reading was with it, or where it is not what most
 * have in common. */
static bool spread_factor(const struct gradcmp_pair_report *pair, double factor, double *factors) {
    size_t tried = 0, fitting = 0;
    bool is_new = false;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        factors[i] = may_have_rest(report) ? factor : 0.0;
        is_new = is_new || factors[i] != report->rest.factor;
        tried += factors[i] != 0.0;
        fitting += factors[i] != 0.0 && may_be_multiple(report, factor);
    }
    return is_new && 2 * fitting >= tried;
}

enum gradcmp_status gcmp_judge_closely(struct gcmp_comparison *comparison, size_t index,
                                       struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    struct gradcmp_pair_report *pair = &report->pairs[index];
    enum gradcmp_status status = gcmp_judge_pair(pair, &report->options, report->arena, error);
    double *factors = calloc(pair->parameter_count + 1, sizeof *factors);
    if (factors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (int round = 0; round < MOST_ROUNDS && status == GRADCMP_OK; round++) {
        double factor = pair->usual_factor;
        bool is_off = fabs(factor - 1.0) > LEAST_CLAIMED * gcmp_noise_unit(&pair->bound);
        if (!is_off || !is_coarse(pair, factor) || !spread_factor(pair, factor, factors)) {
            break;
        }
        GCMP_TRY_OUT(measure_rests(comparison, index, factors, error));
        if (gcmp_pair_is_open(pair)) {
            status = gcmp_judge_pair(pair, &report->options, report->arena, error);
        }
    }
out:
    free(factors);
    return status;
}

/* D / f^2 of a candidate that was divided by f is a difference of sums as large as (1 - f)^2 A,
 * each known to 2^-52 or so. */
static double divided_resolution(double factor) {
    return 0x1p-25 * fmax(1.0, fabs(1.0 - factor)) / fabs(factor);
}

/* Take over what was measured as if it had been measured so from the start. */
static void take_divided(struct gradcmp_pair_report *pair) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *report = &pair->parameters[i];
        if (report->rest.factor != 0.0 && isfinite(report->rest.d2)) {
            report->tally.d2 = report->rest.d2;
            report->tally.ad = report->rest.ad;
        }
        report->rest.factor = 0.0;
    }
}

enum gradcmp_status gcmp_measure_divided(struct gcmp_comparison *comparison, size_t index,
                                         struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    if (divided_resolution(pair->state_factor) <= finest(pair)) {
        return GRADCMP_OK;
    }
    double *factors = calloc(pair->parameter_count + 1, sizeof *factors);
    if (factors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        bool is_measured = gcmp_is_comparable(report) && report->scale_a_log2 == 0.0 &&
                           report->scale_b_log2 == 0.0;
        factors[i] = is_measured ? 1.0 : 0.0;
    }
    enum gradcmp_status status = measure_rests(comparison, index, factors, error);
    free(factors);
    if (status == GRADCMP_OK && gcmp_pair_is_open(pair)) {
        take_divided(pair);
    }
    return status;
}

enum gradcmp_status gcmp_measure_own_rests(struct gcmp_comparison *comparison, size_t index,
                                           struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    double *factors = calloc(pair->parameter_count + 1, sizeof *factors);
    bool has_some = false;
    enum gradcmp_status status = GRADCMP_OK;
    if (factors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        double factor = gcmp_factor_of(report);
        if (gcmp_cause_is_wanted(report->verdict) && may_have_rest(report) &&
            is_coarse(pair, factor) && factor != report->rest.factor &&
            may_be_multiple(report, factor)) {
            factors[i] = factor;
            has_some = true;
        }
    }
    if (has_some) {
        status = measure_rests(comparison, index, factors, error);
    }
    free(factors);
    return status;
}
