/* What pairs that are given as good are. */
#include "bounds/fit_pairs.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

#define QUIET_SHARE    0.125 /* of the theory's k */
#define SAME_NOISE     1e-6  /* relative */
#define SUSPECT_FACTOR 4.0
#define LEAST_COSINE   0.9

double gcmp_fit_noise(const struct gradcmp_pair_report *pair, size_t parameter) {
    const struct gradcmp_parameter_report *report = &pair->parameters[parameter];
    bool judged = report->verdict >= GRADCMP_VERDICT_FAIL && isfinite(report->rel);
    return judged ? report->rel / pair->bound.eps : (double)NAN;
}

/* A cause that says more than that something is off. */
static bool is_claim(const struct gradcmp_cause *cause) {
    return cause->kind != NULL && strcmp(cause->kind, "unexplained") != 0 &&
           strcmp(cause->kind, "upstream") != 0;
}

/* Beyond the bound, and nothing but its size speaks against its being noise. */
static bool may_be_noise(const struct gradcmp_parameter_report *report, double cap) {
    for (size_t i = 0; i < report->cause_count; i++) {
        if (is_claim(&report->causes[i])) {
            return false;
        }
    }
    return report->rel < cap && report->cosine >= LEAST_COSINE;
}

/* No other fault than errors beyond the bound. */
static bool is_only_loose(const struct gradcmp_pair_report *pair) {
    if (pair->outcome != GRADCMP_OUTCOME_INCONSISTENT || !isnan(pair->common_factor) ||
        is_claim(&pair->cause)) {
        return false;
    }
    for (size_t p = 0; p < pair->parameter_count; p++) {
        enum gradcmp_verdict verdict = pair->parameters[p].verdict;
        bool fine = verdict == GRADCMP_VERDICT_PASS || verdict == GRADCMP_VERDICT_UNJUDGED ||
                    (verdict == GRADCMP_VERDICT_FAIL &&
                     may_be_noise(&pair->parameters[p], pair->bound.cap));
        if (!fine) {
            return false;
        }
    }
    return true;
}

/* Why an inconsistent pair is no good pair. */
static const char *describe_findings(const struct gradcmp_pair_report *pair,
                                     struct gcmp_arena *arena) {
    size_t bad = pair->parameter_count - pair->verdict_counts[GRADCMP_VERDICT_PASS] -
                 pair->verdict_counts[GRADCMP_VERDICT_UNJUDGED];
    if (!isnan(pair->common_factor)) {
        return gcmp_arena_format(arena, "all gradients are %.6g times the baseline's",
                                 pair->common_factor);
    }
    const char *cause = pair->cause.text != NULL ? pair->cause.text : "no cause found";
    const char *way_out =
        is_only_loose(pair) ? "; if this is noise all the same, --allow-loose takes it" : "";
    if (pair->onset_layer < 0) {
        return gcmp_arena_format(arena, "inconsistent in %zu of %zu parameters", bad,
                                 pair->parameter_count);
    }
    return gcmp_arena_format(arena,
                             "inconsistent in %zu of %zu parameters, from layer %lld on: %s%s", bad,
                             pair->parameter_count, (long long)pair->onset_layer, cause, way_out);
}

static bool has_parameters_of(const struct gradcmp_pair_report *pair,
                              const struct gradcmp_pair_report *first) {
    if (pair->parameter_count != first->parameter_count) {
        return false;
    }
    for (size_t p = 0; p < pair->parameter_count; p++) {
        if (strcmp(pair->parameters[p].name, first->parameters[p].name) != 0) {
            return false;
        }
    }
    return true;
}

/* The first pair that could be read; the first of all where none could. */
static const struct gradcmp_pair_report *first_read(const struct gcmp_fit_input *input) {
    for (size_t i = 0; i < input->pair_count; i++) {
        if (input->pairs[i].outcome != GRADCMP_OUTCOME_ERROR) {
            return &input->pairs[i];
        }
    }
    return &input->pairs[0];
}

/* Put into the row why the pair is not good, if it is not; false without memory. */
static bool find_fault(const struct gcmp_fit_input *input, size_t index, struct gcmp_arena *arena,
                       struct gradcmp_fit_pair *row) {
    const struct gradcmp_pair_report *pair = &input->pairs[index], *first = first_read(input);
    const char *text;
    if (pair->outcome == GRADCMP_OUTCOME_UNDECIDED || pair->outcome == GRADCMP_OUTCOME_VACUOUS) {
        text = gcmp_arena_dup(arena, pair->undecided_reason);
    } else if (pair->outcome == GRADCMP_OUTCOME_INCONSISTENT && input->allow_loose &&
               is_only_loose(pair)) {
        row->is_loose = true;
        text = gcmp_arena_dup(arena, "beyond the theory's bound; taken as --allow-loose says");
    } else if (pair->outcome == GRADCMP_OUTCOME_INCONSISTENT) {
        text = describe_findings(pair, arena);
    } else if (pair->bound.dtype != first->bound.dtype) {
        text = gcmp_arena_format(arena, "computed in %s, the first pair in %s: one fit for each",
                                 gradcmp_dtype_name(pair->bound.dtype),
                                 gradcmp_dtype_name(first->bound.dtype));
    } else if (pair->bound.layers != first->bound.layers || !has_parameters_of(pair, first)) {
        text = gcmp_arena_dup(arena, "other layers or parameters than the first pair");
    } else {
        return true;
    }
    row->standing = row->is_loose ? row->standing : GRADCMP_FIT_BAD;
    row->text = text;
    return text != NULL;
}

static bool has_same_noise(const struct gradcmp_pair_report *a,
                           const struct gradcmp_pair_report *b) {
    for (size_t p = 0; p < a->parameter_count; p++) {
        double x = a->parameters[p].rel, y = b->parameters[p].rel;
        if (x != y && !(fabs(x - y) <= SAME_NOISE * fmax(fabs(x), fabs(y))) &&
            !(isnan(x) && isnan(y))) {
            return false;
        }
    }
    return true;
}

static void find_worst(const struct gradcmp_pair_report *pair, struct gradcmp_fit_pair *row) {
    row->worst = NAN;
    for (size_t p = 0; p < pair->parameter_count; p++) {
        double depth =
            fmax((double)pair->bound.layers + 1.0 - (double)pair->parameters[p].layer, 0.0);
        double noise = gcmp_fit_noise(pair, p) / pow(pair->bound.C, depth);
        if (noise > row->worst || (isnan(row->worst) && !isnan(noise))) {
            row->worst = noise;
            row->worst_name = pair->parameters[p].name;
        }
    }
}

static bool is_identical(const struct gradcmp_pair_report *pair) {
    for (size_t p = 0; p < pair->parameter_count; p++) {
        if (pair->parameters[p].rel != 0.0) {
            return false;
        }
    }
    return true;
}

/* What a good pair adds, given those before it. */
static enum gradcmp_fit_standing rank_pair(const struct gcmp_fit_input *input, size_t index,
                                           const struct gradcmp_fit_pair *rows) {
    const struct gradcmp_pair_report *pair = &input->pairs[index];
    if (is_identical(pair)) {
        return GRADCMP_FIT_IDENTICAL;
    }
    if (!(rows[index].worst >= QUIET_SHARE * pair->bound.k)) {
        return GRADCMP_FIT_QUIET;
    }
    for (size_t i = 0; i < index; i++) {
        if (rows[i].standing == GRADCMP_FIT_COUNTS && has_same_noise(pair, &input->pairs[i])) {
            return GRADCMP_FIT_REPEAT;
        }
    }
    return GRADCMP_FIT_COUNTS;
}

/* The most that the other pairs with noise of their own show of a parameter; 0 without any. */
static double others_noise(const struct gcmp_fit_input *input, const struct gradcmp_fit_pair *rows,
                           size_t index, size_t parameter) {
    double most = 0.0;
    for (size_t i = 0; i < input->pair_count; i++) {
        if (i != index && rows[i].standing == GRADCMP_FIT_COUNTS) {
            most = fmax(most, gcmp_fit_noise(&input->pairs[i], parameter));
        }
    }
    return most;
}

static bool look_for_outlier(const struct gcmp_fit_input *input, size_t index,
                             struct gcmp_arena *arena, struct gradcmp_fit_pair *rows) {
    const struct gradcmp_pair_report *pair = &input->pairs[index];
    double most = SUSPECT_FACTOR;
    size_t where = SIZE_MAX;
    for (size_t p = 0; p < pair->parameter_count; p++) {
        double noise = gcmp_fit_noise(pair, p), others = others_noise(input, rows, index, p);
        if (noise > 1.0 && others > 0.0 && noise > most * others) {
            most = noise / others;
            where = p;
        }
    }
    if (where == SIZE_MAX) {
        return true;
    }
    rows[index].is_suspect = true;
    rows[index].text = gcmp_arena_format(
        arena, "%s is %.3g times as far off as in any other pair: is this pair good?",
        pair->parameters[where].name, most);
    return rows[index].text != NULL;
}

static void take_terms(const struct gradcmp_bound *bound, struct gradcmp_fit *fit) {
    fit->dtype = bound->dtype;
    fit->layer_count = bound->layers;
    fit->eps = bound->eps;
    fit->k = fit->theory_k = bound->k;
    fit->C = fit->theory_C = bound->C;
    fit->margin = NAN;
}

enum gradcmp_status gcmp_fit_sort_pairs(const struct gcmp_fit_input *input,
                                        struct gcmp_arena *arena, struct gradcmp_fit *fit,
                                        struct gradcmp_error *error) {
    struct gradcmp_fit_pair *rows = gcmp_arena_alloc(arena, input->pair_count, sizeof *rows);
    if (rows == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    fit->pairs = rows;
    fit->pair_count = input->pair_count;
    take_terms(&first_read(input)->bound, fit);
    for (size_t i = 0; i < input->pair_count; i++) {
        rows[i].path = input->pairs[i].path;
        rows[i].worst = NAN;
        if (input->pairs[i].outcome == GRADCMP_OUTCOME_ERROR) {
            rows[i].standing = GRADCMP_FIT_ERROR;
            rows[i].text = input->pairs[i].error.message;
            continue;
        }
        find_worst(&input->pairs[i], &rows[i]);
        if (!find_fault(input, i, arena, &rows[i])) {
            GCMP_FAIL_MEMORY(error);
        }
        if (rows[i].standing != GRADCMP_FIT_BAD) {
            rows[i].standing = rank_pair(input, i, rows);
        }
    }
    for (size_t i = 0; i < input->pair_count && !gcmp_fit_is_void(fit); i++) {
        if (rows[i].standing == GRADCMP_FIT_COUNTS && !look_for_outlier(input, i, arena, rows)) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}
