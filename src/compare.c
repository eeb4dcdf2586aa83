/* gradcmp_compare: opens both sides, pairs, measures and judges them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dir.h"
#include "base/dtype.h"
#include "betas.h"
#include "bounds/bounds.h"
#include "comparison.h"
#include "diagnose.h"
#include "fit.h"
#include "numbering.h"
#include "pair_checks.h"
#include "previous.h"
#include "ranks.h"
#include "rest.h"
#include "stand_ins.h"
#include "tied_names.h"
#include "waves.h"
#include "weights_type.h"

enum { MORE_KEPT = 4 };

/* What a report keeps open, because its catalogues and names are printed from it. */
struct kept_checkpoints {
    struct gcmp_mapping *mapping; /* the rules of all of them; NULL: none */
    size_t count;
    struct gradcmp_checkpoint *checkpoints[];
};

void gcmp_compare_keep(struct gradcmp_report *report, struct gradcmp_checkpoint *checkpoint) {
    struct kept_checkpoints *kept = report->owned;
    kept->checkpoints[kept->count++] = checkpoint;
}

void gcmp_pair_fail(struct gradcmp_pair_report *pair, const struct gradcmp_error *error) {
    pair->outcome = GRADCMP_OUTCOME_ERROR;
    pair->error = *error;
    if (error->message[0] != '\0') {
        gcmp_error_add_path(&pair->error, pair->path);
    }
    pair->parameter_count = 0;
    pair->onset_layer = -1;
    pair->jump_layer = -1;
    pair->worst = SIZE_MAX;
}

enum gradcmp_status gcmp_pair_note(struct gcmp_comparison *comparison,
                                   struct gradcmp_pair_report *pair, struct gradcmp_error *error,
                                   const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    struct gcmp_arena *arena = comparison->report->arena;
    const char **notes = gcmp_arena_alloc(arena, pair->note_count + 1, sizeof *notes);
    const char *copy = gcmp_arena_dup(arena, line);
    if (notes == NULL || copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (pair->note_count > 0) {
        memcpy(notes, pair->notes, pair->note_count * sizeof *notes);
    }
    notes[pair->note_count++] = copy;
    pair->notes = notes;
    return GRADCMP_OK;
}

/* Take the caller's options, whatever version of the struct it was compiled with. */
static enum gradcmp_status take_options(struct gradcmp_report *report,
                                        const struct gradcmp_options *given,
                                        struct gradcmp_error *error) {
    if (given != NULL && given->struct_size < sizeof(size_t)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "options: struct_size is not set");
    }
    struct gradcmp_options options = gcmp_options_complete(given);
    if (!(options.k >= 0.0) || !(options.C >= 0.0) || !(options.max_bound >= 0.0)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "k, C and the cap of the bound must not be negative");
    }
    if (options.C != 0.0 && options.C < 1.0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "C is %g; the bound must not shrink with depth (C >= 1)", options.C);
    }
    if (options.fit != NULL && (options.k != 0.0 || options.C != 0.0 || options.compat_megatron)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "--fit brings its own bound: it cannot go with --k, --C or --compat");
    }
    bool failed = false;
    options.state = gcmp_arena_keep(report->arena, options.state, &failed);
    options.match = gcmp_arena_keep(report->arena, options.match, &failed);
    options.exclude = gcmp_arena_keep(report->arena, options.exclude, &failed);
    options.map = gcmp_arena_keep(report->arena, options.map, &failed);
    options.previous_a = gcmp_arena_keep(report->arena, options.previous_a, &failed);
    options.previous_b = gcmp_arena_keep(report->arena, options.previous_b, &failed);
    options.fit = gcmp_arena_keep(report->arena, options.fit, &failed);
    if (failed) {
        GCMP_FAIL_MEMORY(error);
    }
    report->options = options;
    return GRADCMP_OK;
}

static enum gradcmp_status new_report(const char *baseline, size_t candidate_count,
                                      struct gradcmp_report **out, struct gradcmp_error *error) {
    struct gradcmp_report *report = calloc(1, sizeof *report);
    struct gcmp_arena *arena = calloc(1, sizeof *arena);
    struct kept_checkpoints *kept = calloc(
        1, sizeof *kept + (candidate_count + 1 + MORE_KEPT) * sizeof(struct gradcmp_checkpoint *));
    if (report == NULL || arena == NULL || kept == NULL) {
        free(report);
        free(arena);
        free(kept);
        GCMP_FAIL_MEMORY(error);
    }
    report->arena = arena;
    report->owned = kept;
    *out = report;
    report->baseline_path = gcmp_arena_dup(arena, baseline);
    report->pairs = gcmp_arena_alloc(arena, candidate_count, sizeof *report->pairs);
    report->pair_count = candidate_count;
    if (report->baseline_path == NULL || report->pairs == NULL) {
        gradcmp_report_free(report);
        *out = NULL;
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

void gradcmp_report_free(struct gradcmp_report *report) {
    if (report == NULL) {
        return;
    }
    struct kept_checkpoints *kept = report->owned;
    for (size_t i = 0; i < kept->count; i++) {
        gradcmp_checkpoint_free(kept->checkpoints[i]);
    }
    gcmp_mapping_free(kept->mapping);
    free(kept);
    gcmp_arena_free(report->arena);
    free(report->arena);
    free(report);
}

static enum gradcmp_status open_participant(struct gcmp_comparison *comparison, const char *path,
                                            struct gcmp_participant *participant,
                                            struct gradcmp_error *error) {
    struct kept_checkpoints *kept = comparison->report->owned;
    GCMP_TRY(gcmp_checkpoint_open(path, comparison->options, &participant->checkpoint, error));
    gcmp_compare_keep(comparison->report, participant->checkpoint);
    gcmp_checkpoint_set_mapping(participant->checkpoint, kept->mapping,
                                participant == &comparison->baseline ? GCMP_MAPPING_BASELINE
                                                                     : GCMP_MAPPING_CANDIDATE);
    GCMP_TRY(gcmp_unshard_note_weights(&participant->checkpoint->catalogue, error));
    return gcmp_unshard_check_states(&participant->checkpoint->catalogue, error);
}

/* exp_avg where any side has it, else main_grad where any side has that, else exp_avg, for its
 * error. */
static const char *choose_state(const struct gcmp_comparison *comparison) {
    static const char *const preferred[] = {"exp_avg", "main_grad"};
    if (comparison->options->state != NULL) {
        return comparison->options->state;
    }
    for (size_t s = 0; s < 2; s++) {
        bool found = gcmp_checkpoint_has_state(comparison->baseline.checkpoint, preferred[s]);
        for (size_t i = 0; i < comparison->report->pair_count; i++) {
            const struct gradcmp_checkpoint *checkpoint = comparison->candidates[i].checkpoint;
            found = found ||
                    (checkpoint != NULL && gcmp_checkpoint_has_state(checkpoint, preferred[s]));
        }
        if (found) {
            return preferred[s];
        }
    }
    return preferred[0];
}

/* Fill the bound's numbers. A square has twice the relative error of its root. */
static void init_bound(const struct gcmp_comparison *comparison, struct gradcmp_bound *bound) {
    gcmp_bound_init(bound, comparison->options);
    if (strcmp(comparison->report->state, "exp_avg_sq") == 0) {
        bound->eps *= 2.0;
    }
}

/* The type of one side; that of its weights must be the one that they are stored in. */
static enum gradcmp_status choose_type(const struct gcmp_comparison *comparison,
                                       const struct gcmp_participant *side,
                                       struct gradcmp_bound *bound, struct gradcmp_error *error) {
    gcmp_checkpoint_precision(side->checkpoint, side->model, comparison->options->dtype,
                              &bound->dtype, &bound->dtype_source);
    return bound->dtype_source == GRADCMP_DTYPE_FROM_WEIGHTS
               ? gcmp_prove_weights_dtype(&side->checkpoint->catalogue, bound->dtype, error)
               : GRADCMP_OK;
}

/* The bound's type is the coarser of both sides; of two equal ones the less trusted source counts.
 */
static enum gradcmp_status choose_bound(const struct gcmp_comparison *comparison,
                                        const struct gcmp_participant *candidate,
                                        struct gradcmp_bound *bound, struct gradcmp_error *error) {
    const struct gradcmp_bound *base = &comparison->report->baseline_bound;
    GCMP_TRY(choose_type(comparison, candidate, bound, error));
    double eps_a = gcmp_dtype_eps(base->dtype), eps_b = gcmp_dtype_eps(bound->dtype);
    if (eps_a > eps_b || (eps_a == eps_b && base->dtype_source > bound->dtype_source)) {
        bound->dtype = base->dtype;
        bound->dtype_source = base->dtype_source;
    }
    uint64_t layers_a = comparison->baseline.model->shown, layers_b = candidate->model->shown;
    bound->layers = layers_a > layers_b ? layers_a : layers_b;
    init_bound(comparison, bound);
    return GRADCMP_OK;
}

/* The head is behind the layers that are there, whatever arguments count. */
static void place_heads(struct gradcmp_pair_report *pair) {
    int64_t head = (int64_t)pair->bound.layers + 1;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *report = &pair->parameters[i];
        report->layer = report->layer > head ? head : report->layer;
    }
}

static enum gradcmp_status prepare_pair(struct gcmp_comparison *comparison, size_t index,
                                        struct gcmp_name_filter *filter,
                                        struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    struct gcmp_participant *candidate = &comparison->candidates[index];
    GCMP_TRY(choose_bound(comparison, candidate, &pair->bound, error));
    GCMP_TRY(gcmp_previous_check(comparison, candidate, &pair->bound, error));
    const struct gradcmp_catalogue *a = &comparison->baseline.checkpoint->catalogue,
                                   *b = &candidate->checkpoint->catalogue;
    struct gcmp_pairing_input input = {comparison->baseline.model,
                                       candidate->model,
                                       filter,
                                       gcmp_true_vocab(comparison, candidate),
                                       a->padded_vocab,
                                       b->padded_vocab,
                                       gcmp_says_tied(a, false) || gcmp_says_tied(b, false)};
    GCMP_TRY(gcmp_pair_parameters(&input, comparison->report->arena, pair,
                                  &comparison->pairings[index], error));
    place_heads(pair);
    GCMP_TRY(gcmp_check_pair(comparison, index, error));
    GCMP_TRY(gcmp_fit_use(comparison, pair, error));
    return gcmp_note_pair(comparison, index, filter, error);
}

/* Make the candidates' models; then every rule of a map must have found something, unless there are
 * candidates that could not be looked at. */
static enum gradcmp_status make_models(struct gcmp_comparison *comparison,
                                       struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    const struct kept_checkpoints *kept = report->owned;
    bool is_complete = true;
    for (size_t i = 0; i < report->pair_count; i++) {
        struct gcmp_participant *candidate = &comparison->candidates[i];
        struct gradcmp_error own = {0};
        if (gcmp_pair_is_open(&report->pairs[i]) &&
            (gcmp_check_comparable(comparison, candidate, &own) != GRADCMP_OK ||
             gcmp_checkpoint_model(candidate->checkpoint, report->state, &candidate->model, &own) !=
                 GRADCMP_OK)) {
            gcmp_error_add_path(&own, report->pairs[i].path);
            gcmp_pair_fail(&report->pairs[i], &own);
        }
        is_complete = is_complete && gcmp_pair_is_open(&report->pairs[i]);
    }
    return kept->mapping != NULL && is_complete
               ? gcmp_mapping_check_used(kept->mapping,
                                         GCMP_MAPPING_BASELINE | GCMP_MAPPING_CANDIDATE, error)
               : GRADCMP_OK;
}

static void open_candidates(struct gcmp_comparison *comparison, const char *const *paths) {
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        struct gradcmp_pair_report *pair = &comparison->report->pairs[i];
        struct gradcmp_error error = {0};
        pair->common_factor = __builtin_nan("");
        pair->state_factor = 1.0;
        pair->spread.growth = __builtin_nan("");
        pair->cause = (struct gradcmp_cause){NULL, __builtin_nan(""), __builtin_nan(""), NULL};
        pair->worst = SIZE_MAX;
        pair->onset_layer = -1;
        pair->jump_layer = -1;
        pair->path = gcmp_arena_dup(comparison->report->arena, paths[i]);
        if (open_participant(comparison, paths[i], &comparison->candidates[i], &error) !=
            GRADCMP_OK) {
            gcmp_pair_fail(pair, &error);
            continue;
        }
        pair->catalogue = &comparison->candidates[i].checkpoint->catalogue;
        pair->path = comparison->candidates[i].checkpoint->path;
    }
}

static enum gradcmp_status prepare(struct gcmp_comparison *comparison, const char *baseline,
                                   const char *const *candidates, struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    struct kept_checkpoints *kept = report->owned;
    if (report->options.map != NULL) {
        GCMP_TRY(gcmp_mapping_read(report->options.map, &kept->mapping, error));
    }
    GCMP_TRY(open_participant(comparison, baseline, &comparison->baseline, error));
    report->baseline = &comparison->baseline.checkpoint->catalogue;
    report->baseline_path = comparison->baseline.checkpoint->path;
    open_candidates(comparison, candidates);
    report->state = choose_state(comparison);
    GCMP_TRY(gcmp_check_state(comparison, comparison->baseline.checkpoint, error));
    gcmp_waves_make_keys(comparison);
    GCMP_TRY(gcmp_stand_in(comparison, error));
    GCMP_TRY(gcmp_name_numbers(comparison, error));
    GCMP_TRY(gcmp_meet_tied_names(comparison, error));
    GCMP_TRY(gcmp_checkpoint_model(comparison->baseline.checkpoint, report->state,
                                   &comparison->baseline.model, error));
    gcmp_fit_digest(comparison->baseline.model, report->names_sha256);
    struct gradcmp_bound *bound = &report->baseline_bound;
    GCMP_TRY(choose_type(comparison, &comparison->baseline, bound, error));
    bound->layers = comparison->baseline.model->shown;
    init_bound(comparison, bound);
    GCMP_TRY(gcmp_waves_take_over(comparison, error));
    GCMP_TRY(make_models(comparison, error));
    GCMP_TRY(gcmp_previous_link(comparison, error));

    struct gcmp_name_filter filter;
    enum gradcmp_status status = gcmp_name_filter_init(&filter, &report->options, error);
    for (size_t i = 0; status == GRADCMP_OK && i < report->pair_count; i++) {
        struct gradcmp_error pair_error = {0};
        if (gcmp_pair_is_open(&report->pairs[i]) &&
            prepare_pair(comparison, i, &filter, &pair_error) != GRADCMP_OK) {
            gcmp_error_add_path(&pair_error, report->pairs[i].path);
            gcmp_pair_fail(&report->pairs[i], &pair_error);
        }
    }
    if (status == GRADCMP_OK) {
        status = gcmp_name_filter_check(&filter, error);
    }
    gcmp_name_filter_free(&filter);
    return status;
}

/* Have all ranks look at the same. */
static enum gradcmp_status agree(struct gcmp_comparison *comparison, struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    struct gcmp_view view;
    if (report->options.ranks == NULL) {
        return GRADCMP_OK;
    }
    gcmp_view_begin(&view);
    gcmp_view_add(&view, report->baseline);
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct gradcmp_pair_report *pair = &report->pairs[i];
        if (gcmp_pair_is_open(pair)) {
            gcmp_view_add(&view, pair->catalogue);
        } else {
            gcmp_view_add_error(&view, &pair->error);
        }
    }
    return gcmp_view_agree(&view, &report->options, error);
}

/* Measure and judge what is open, and look for causes. */
static enum gradcmp_status judge(struct gcmp_comparison *comparison, struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    GCMP_TRY(gcmp_measure(comparison, error));
    if (gcmp_is_helper(comparison->options)) {
        return GRADCMP_OK; /* rank 0 judges, and looks for causes */
    }
    GCMP_TRY(gcmp_apply_betas(comparison, error));
    for (size_t i = 0; i < report->pair_count; i++) {
        if (gcmp_pair_is_open(&report->pairs[i])) {
            GCMP_TRY(gcmp_judge_closely(comparison, i, error));
            GCMP_TRY(gcmp_fit_note_floors(comparison, &report->pairs[i], error));
        }
    }
    return gcmp_diagnose(comparison, error);
}

static enum gradcmp_status run(struct gcmp_comparison *comparison, const char *baseline,
                               const char *const *candidates, struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    struct gcmp_arena *arena = report->arena;
    size_t count = report->pair_count;
    comparison->candidates = gcmp_arena_alloc(arena, count, sizeof *comparison->candidates);
    comparison->pairings = gcmp_arena_alloc(arena, count, sizeof *comparison->pairings);
    comparison->errors = gcmp_arena_alloc(arena, count + 1, sizeof *comparison->errors);
    if (comparison->candidates == NULL || comparison->pairings == NULL ||
        comparison->errors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_fit_load(report, error));
    GCMP_TRY(prepare(comparison, baseline, candidates, error));
    GCMP_TRY(agree(comparison, error));
    return gcmp_waves_run(comparison, judge, error);
}

enum gradcmp_status gradcmp_compare(const char *baseline, const char *const *candidates,
                                    size_t candidate_count, const struct gradcmp_options *options,
                                    struct gradcmp_report **out, struct gradcmp_error *error) {
    return gcmp_compare_resumable(baseline, candidates, candidate_count, options, NULL, out, error);
}

enum gradcmp_status gcmp_compare_resumable(const char *baseline, const char *const *candidates,
                                           size_t candidate_count,
                                           const struct gradcmp_options *options,
                                           struct gcmp_resume *resume, struct gradcmp_report **out,
                                           struct gradcmp_error *error) {
    *out = NULL;
    if (candidate_count == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "no candidate to compare with the baseline");
    }
    struct gcmp_comparison comparison = {0};
    GCMP_TRY(new_report(baseline, candidate_count, &comparison.report, error));
    comparison.options = &comparison.report->options;
    enum gradcmp_status status = take_options(comparison.report, options, error);
    if (status == GRADCMP_OK) {
        status = gcmp_waves_begin(&comparison, resume, error);
    }
    if (status == GRADCMP_OK) {
        status = run(&comparison, baseline, candidates, error);
    }
    if (status == GRADCMP_ERROR_CANCELLED && comparison.report->pair_count > 0 &&
        comparison.report->readings > 0) {
        *out = comparison.report; /* of what is finished */
        return status;
    }
    if (status != GRADCMP_OK) {
        gcmp_error_add_path(error, status == GRADCMP_ERROR_CANCELLED ||
                                           status == GRADCMP_ERROR_MEMORY ||
                                           status == GRADCMP_ERROR_USAGE
                                       ? ""
                                       : baseline);
        gradcmp_report_free(comparison.report);
        return status;
    }
    *out = comparison.report;
    return GRADCMP_OK;
}
