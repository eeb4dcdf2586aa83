/* One trial of a pair under one bound. */
#include "bounds/trial.h"

#include <math.h>

#include "bounds/bounds.h"
#include "bounds/common.h"
#include "bounds/verdict.h"

double gcmp_trial_bound(const struct gcmp_trial *trial, size_t index) {
    double bound = gcmp_bound_at(trial->bound, trial->parameters[index].layer);
    double floor = trial->floors == NULL ? 0.0 : trial->floors[index];
    return fmin(fmax(bound, floor), trial->bound->cap);
}

static void fill_parameter(struct gcmp_trial *trial, const struct gcmp_spread *spread,
                           size_t index) {
    struct gradcmp_parameter_report *parameter = &trial->parameters[index];
    struct gcmp_rest rest = gcmp_rest_of(parameter, spread->factor);
    parameter->bound = gcmp_trial_bound(trial, index);
    parameter->rel_common = isnan(trial->common) ? NAN : rest.rel;
    parameter->ratio = rest.rel / parameter->bound;
    parameter->alpha_tolerance = gcmp_alpha_tolerance(trial, spread, parameter, &rest);
    parameter->verdict = gcmp_verdict_within(trial, spread, index);
}

void gcmp_trial_run(struct gcmp_trial *trial) {
    trial->usual = gcmp_usual_factor(trial);
    trial->common = gcmp_common_factor(trial);
    double factor = isnan(trial->common) ? 1.0 : trial->common;
    struct gcmp_spread spread = gcmp_spread_of(trial, factor);
    for (size_t i = 0; i < trial->count; i++) {
        fill_parameter(trial, &spread, i);
    }
}

size_t gcmp_trial_findings(const struct gcmp_trial *trial) {
    size_t findings = 0;
    for (size_t i = 0; i < trial->count; i++) {
        enum gradcmp_verdict verdict = trial->parameters[i].verdict;
        findings += verdict != GRADCMP_VERDICT_PASS && verdict != GRADCMP_VERDICT_UNJUDGED;
    }
    return findings;
}

bool gcmp_trial_is_inconsistent(const struct gcmp_trial *trial) {
    return gcmp_trial_findings(trial) > 0 || !isnan(trial->common);
}
