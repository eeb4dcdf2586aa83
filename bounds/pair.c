/* The verdict of a pair: its parameters tried under the bound, counted and summed up. */
#include "bounds/bounds.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "bounds/coarser.h"
#include "bounds/figures.h"
#include "bounds/fit.h"
#include "bounds/kind.h"
#include "bounds/layer.h"
#include "bounds/trial.h"

/* The work on one pair. */
struct judge {
    struct gradcmp_pair_report *pair;
    const struct gradcmp_options *options;
    struct gcmp_arena *arena;  /* of the report */
    struct gcmp_arena scratch; /* until the pair is judged */
    struct gcmp_trial trial;
};

static enum gradcmp_status prepare_trial(struct judge *judge, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = judge->pair;
    size_t count = pair->parameter_count;
    for (size_t i = 0; i < count; i++) {
        gcmp_figures_fill(&pair->parameters[i]);
    }
    double *votes = gcmp_arena_alloc(&judge->scratch, count, sizeof *votes);
    double *rms = gcmp_arena_alloc(&judge->scratch, count, sizeof *rms);
    struct gcmp_sample *samples = gcmp_arena_alloc(&judge->scratch, count, sizeof *samples);
    if (votes == NULL || rms == NULL || samples == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_kind_votes(pair->parameters, count, votes, &judge->scratch, error));
    GCMP_TRY(gcmp_layer_rms(pair->parameters, count, rms, &judge->scratch, error));
    double *floors = NULL;
    if (pair->bound.fit != NULL) {
        floors = gcmp_arena_alloc(&judge->scratch, count, sizeof *floors);
        if (floors == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        gcmp_fit_floors(pair->bound.fit, pair->parameters, count, rms, floors);
    }
    judge->trial = (struct gcmp_trial){.bound = &pair->bound,
                                       .parameters = pair->parameters,
                                       .count = count,
                                       .votes = votes,
                                       .layer_rms = rms,
                                       .floors = floors,
                                       .samples = samples,
                                       .common = NAN};
    return GRADCMP_OK;
}

static void count_parameters(struct gradcmp_pair_report *pair) {
    memset(pair->verdict_counts, 0, sizeof pair->verdict_counts);
    pair->compared_elems = pair->unjudged_elems = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        pair->verdict_counts[parameter->verdict]++;
        if (gcmp_is_comparable(parameter)) {
            pair->compared_elems =
                gcmp_add_saturated(pair->compared_elems, parameter->compared_elems);
        }
        if (parameter->verdict == GRADCMP_VERDICT_UNJUDGED) {
            pair->unjudged_elems =
                gcmp_add_saturated(pair->unjudged_elems, parameter->compared_elems);
        }
    }
}

/* Global norms: the parameters' squares added in the order of names. */
static void fill_norms(struct gradcmp_pair_report *pair) {
    struct gcmp_square_sum a = {0}, b = {0};
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (!isnan(parameter->norm_a)) {
            gcmp_square_add(&a, parameter->tally.a2, parameter->scale_a_log2);
        }
        if (!isnan(parameter->norm_b)) {
            gcmp_square_add(&b, parameter->tally.b2, parameter->scale_b_log2);
        }
    }
    pair->norm_a = gcmp_square_root(&a);
    pair->norm_b = gcmp_square_root(&b);
}

/* What a ratio tells something of: all that was judged, and of copies that disagree and of values
 * that are not finite what is left to compare. */
static bool has_ratio(const struct gradcmp_parameter_report *parameter) {
    bool is_part = parameter->verdict == GRADCMP_VERDICT_CONFLICT ||
                   parameter->verdict == GRADCMP_VERDICT_NONFINITE;
    return parameter->verdict >= GRADCMP_VERDICT_FAIL || (is_part && !isnan(parameter->ratio));
}

/* The parameter with the largest ratio, the first of equals. */
static size_t find_worst(const struct gradcmp_pair_report *pair) {
    size_t worst = SIZE_MAX;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (has_ratio(parameter) &&
            (worst == SIZE_MAX || parameter->ratio > pair->parameters[worst].ratio)) {
            worst = i;
        }
    }
    return worst;
}

static bool has_common_parameter(const struct gradcmp_pair_report *pair) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (pair->parameters[i].in_a && pair->parameters[i].in_b) {
            return true;
        }
    }
    return false;
}

/* Something is wrong: inconsistent, unless an assumed type decides. */
static enum gradcmp_status judge_findings(struct judge *judge, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = judge->pair;
    const struct gcmp_coarser *coarser;
    GCMP_TRY(gcmp_coarser_find(&judge->trial, judge->options, &coarser, &judge->scratch, error));
    pair->outcome = GRADCMP_OUTCOME_INCONSISTENT;
    if (coarser == NULL) {
        return GRADCMP_OK;
    }
    pair->outcome = GRADCMP_OUTCOME_UNDECIDED;
    pair->undecided_reason = gcmp_arena_format(
        judge->arena,
        "the gradients disagree in %s, which is assumed, and agree in %s: say `--dtype %s`",
        gradcmp_dtype_name(pair->bound.dtype), coarser->name, coarser->option);
    if (pair->undecided_reason == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Nothing is wrong: consistent, if enough was judged. */
static enum gradcmp_status judge_silence(struct judge *judge, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = judge->pair;
    pair->outcome = GRADCMP_OUTCOME_CONSISTENT;
    if (pair->verdict_counts[GRADCMP_VERDICT_PASS] == 0) {
        pair->outcome = GRADCMP_OUTCOME_VACUOUS;
        pair->undecided_reason = "no parameter with a non-zero gradient was judged";
    } else if (judge->options->strict && pair->unjudged_elems > 0) {
        pair->outcome = GRADCMP_OUTCOME_INCONSISTENT;
    } else if ((double)pair->unjudged_elems > (double)pair->compared_elems / 10) {
        pair->outcome = GRADCMP_OUTCOME_VACUOUS;
        pair->undecided_reason = gcmp_arena_format(
            judge->arena, "%llu of %llu elements could not be judged",
            (unsigned long long)pair->unjudged_elems, (unsigned long long)pair->compared_elems);
        if (pair->undecided_reason == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status judge_outcome(struct judge *judge, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = judge->pair;
    pair->undecided_reason = NULL;
    if (!has_common_parameter(pair)) {
        pair->outcome = GRADCMP_OUTCOME_VACUOUS;
        pair->undecided_reason = "no parameter is on both sides";
        return GRADCMP_OK;
    }
    return gcmp_trial_is_inconsistent(&judge->trial) ? judge_findings(judge, error)
                                                     : judge_silence(judge, error);
}

static enum gradcmp_status judge_pair(struct judge *judge, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = judge->pair;
    GCMP_TRY(prepare_trial(judge, error));
    gcmp_trial_run(&judge->trial);
    pair->common_factor = judge->trial.common;
    pair->usual_factor = judge->trial.usual;
    count_parameters(pair);
    fill_norms(pair);
    pair->worst = find_worst(pair);
    pair->onset_layer = gcmp_layer_onset(pair->parameters, pair->parameter_count);
    GCMP_TRY(gcmp_layer_jump(pair, &pair->jump_layer, &judge->scratch, error));
    return judge_outcome(judge, error);
}

enum gradcmp_status gcmp_judge_pair(struct gradcmp_pair_report *pair,
                                    const struct gradcmp_options *options, struct gcmp_arena *arena,
                                    struct gradcmp_error *error) {
    struct judge judge = {
        .pair = pair, .options = options, .arena = arena, .scratch = GCMP_ARENA_INIT};
    enum gradcmp_status status = judge_pair(&judge, error);
    gcmp_arena_free(&judge.scratch);
    return status;
}
