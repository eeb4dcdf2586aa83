/* What callers of the library read from a report. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "gradcmp/sys/result.h"
#include "report/facts.h"

size_t gradcmp_report_candidate_count(const struct gradcmp_report *report) {
    return report->pair_count;
}

enum gradcmp_outcome gradcmp_report_outcome(const struct gradcmp_report *report, size_t candidate) {
    return candidate < report->pair_count ? report->pairs[candidate].outcome
                                          : GRADCMP_OUTCOME_ERROR;
}

const struct gradcmp_error *gradcmp_report_error(const struct gradcmp_report *report,
                                                 size_t candidate) {
    bool failed =
        candidate < report->pair_count && report->pairs[candidate].outcome == GRADCMP_OUTCOME_ERROR;
    return failed ? &report->pairs[candidate].error : NULL;
}

const char *gradcmp_report_path(const struct gradcmp_report *report, size_t candidate) {
    return candidate < report->pair_count ? report->pairs[candidate].path : NULL;
}

const char *gradcmp_report_doubt(const struct gradcmp_report *report, size_t candidate) {
    enum gradcmp_outcome outcome = gradcmp_report_outcome(report, candidate);
    if (outcome != GRADCMP_OUTCOME_UNDECIDED && outcome != GRADCMP_OUTCOME_VACUOUS) {
        return NULL;
    }
    const char *reason = report->pairs[candidate].undecided_reason;
    return reason == NULL ? "no reason was given" : reason;
}

size_t gradcmp_report_parameter_count(const struct gradcmp_report *report, size_t candidate) {
    return candidate < report->pair_count ? report->pairs[candidate].parameter_count : 0;
}

void gradcmp_report_parameter(const struct gradcmp_report *report, size_t candidate, size_t index,
                              struct gradcmp_parameter_result *out) {
    memset(out, 0, sizeof *out);
    if (index >= gradcmp_report_parameter_count(report, candidate)) {
        return;
    }
    const struct gradcmp_pair_report *pair = &report->pairs[candidate];
    const struct gradcmp_parameter_report *parameter = &pair->parameters[index];
    bool measured = parameter->in_a && parameter->in_b && parameter->shapes_agree;
    out->name = parameter->name;
    out->layer = parameter->layer;
    out->verdict = parameter->verdict;
    out->ndim = parameter->in_a ? parameter->ndim_a : parameter->ndim_b;
    out->shape = parameter->in_a ? parameter->shape_a : parameter->shape_b;
    out->rel = parameter->rel;
    out->rel_common = parameter->rel_common;
    out->bound = parameter->bound;
    out->ratio = parameter->ratio;
    out->eps_multiple = parameter->ratio * parameter->bound / pair->bound.eps;
    out->alpha = parameter->alpha;
    out->alpha_tolerance = parameter->alpha_tolerance;
    out->rho = parameter->rho;
    out->cosine = parameter->cosine;
    out->norm_a = parameter->norm_a;
    out->norm_b = parameter->norm_b;
    out->max_abs =
        measured ? parameter->tally.max_d * exp2(-gradcmp_difference_log2(parameter)) : (double)NAN;
}

int64_t gradcmp_report_onset(const struct gradcmp_report *report, size_t candidate) {
    return candidate < report->pair_count ? report->pairs[candidate].onset_layer : -1;
}

int gradcmp_report_exit_status(const struct gradcmp_report *report) {
    int status = report->unfinished > 0 ? 2 : 0;
    for (size_t i = 0; i < report->pair_count; i++) {
        int own = gcmp_outcome_status(report->pairs[i].outcome);
        status = own > status ? own : status;
    }
    return status;
}
