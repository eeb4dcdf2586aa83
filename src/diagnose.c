/* Joins the search for causes: which parameters, what is known of them, in which steps. */
#include "diagnose.h"

#include <math.h>
#include <stdlib.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "bounds/bounds.h"
#include "bounds/cause_pair.h"
#include "diagnose_facts.h"
#include "diagnose_search.h"
#include "diagnose_start.h"
#include "rest.h"
#include "waves.h"

enum { BATCH = 16 }; /* parameters whose samples are in memory at once */

/* One pair under way. */
struct diagnosis {
    struct gcmp_comparison *comparison;
    size_t pair;
    struct gcmp_cause_facts *facts; /* one a parameter; malloced; NULL: none */
    double common;                  /* factor, or 1 */
    struct gcmp_global_facts global;
    bool of_noise;          /* what is unjudged is searched; without facts */
    bool settled;           /* one cause concerns all gradients; no order is looked for */
    const char *start_text; /* with starts that differ */
};

static double common_of(const struct gradcmp_pair_report *pair) {
    return isnan(pair->common_factor) ? 1.0 : pair->common_factor;
}

static struct gradcmp_pair_report *pair_of(const struct diagnosis *work) {
    return &work->comparison->report->pairs[work->pair];
}

/* A router has a row for each expert of its layer: note how far off each is. */
static enum gradcmp_status learn_router(struct diagnosis *work, const struct gcmp_search *search,
                                        struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = &pair_of(work)->parameters[search->index];
    struct gcmp_cause_facts *facts = &work->facts[search->index];
    const struct gcmp_lines *lines = &search->samples[0].lines;
    uint64_t experts = gcmp_facts_experts(pair_of(work), work->facts, report->layer);
    if (facts->expert >= 0 || report->ndim_a != 2 || experts < 2 || report->shape_a[0] != experts ||
        lines->a == NULL) {
        return GRADCMP_OK;
    }
    double *rows = gcmp_arena_alloc(work->comparison->report->arena, experts, sizeof *rows);
    if (rows == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (uint64_t row = 0; row < experts; row++) {
        rows[row] = gcmp_sample_row_sq(lines, row);
    }
    facts->expert_rows = rows;
    facts->expert_count = experts;
    return GRADCMP_OK;
}

/* Claim what the sums show. */
static enum gradcmp_status derive(struct diagnosis *work, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = pair_of(work);
    struct gcmp_arena *arena = work->comparison->report->arena;
    struct gcmp_sample *samples = calloc(pair->parameter_count + 1, sizeof *samples);
    if (samples == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const struct gcmp_cause_noise noise = gcmp_cause_noise_of(pair, samples);
    free(samples);
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *report = &pair->parameters[i];
        struct gradcmp_cause cause;
        GCMP_TRY(gcmp_cause_derive(report, &noise, arena, &cause, error));
        if (cause.kind == NULL) {
            continue;
        }
        report->causes = gcmp_arena_alloc(arena, 1, sizeof *report->causes);
        if (report->causes == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        report->causes[0] = cause;
        report->cause_count = 1;
    }
    return GRADCMP_OK;
}

static double setting_of(const struct gradcmp_catalogue *catalogue, const char *name) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(catalogue, name);
    return setting == NULL                          ? (double)NAN
           : setting->kind == GRADCMP_SETTING_INT   ? (double)setting->integer
           : setting->kind == GRADCMP_SETTING_FLOAT ? setting->number
                                                    : (double)NAN;
}

/* The global norm that both sides clip to; 0: none, or not the same. */
static double common_clip(const struct gradcmp_catalogue *a, const struct gradcmp_catalogue *b) {
    double clip_a = setting_of(a, "clip_grad"), clip_b = setting_of(b, "clip_grad");
    return clip_a > 0.0 && clip_a <= clip_b && clip_b <= clip_a ? clip_a : 0.0;
}

/* How a side clips, and which part of a gradient the compared state holds. `previous`: the step
 * before was taken off; `factor`: what was divided out of the state's figures. */
static struct gcmp_clip clip_of(const struct gradcmp_report *report,
                                const struct gradcmp_catalogue *catalogue, const char *previous,
                                double factor) {
    struct gcmp_clip clip = {.norm = setting_of(catalogue, "clip_grad"), .portion = NAN};
    double beta = setting_of(catalogue, "adam_beta1");
    if (strcmp(report->state, "main_grad") == 0 || previous != NULL) {
        clip.portion = 1.0 / factor;
    } else if (strcmp(report->state, "exp_avg") == 0 &&
               (catalogue->iteration == 1 || beta <= 0.0)) {
        clip.portion = (1.0 - beta) / factor;
    }
    return clip;
}

/* Data-parallel ranks; of what was extracted the arguments alone tell. 0: not known. */
static uint32_t dp_of(const struct gradcmp_catalogue *catalogue) {
    double stated = setting_of(catalogue, "data_parallel_size");
    return catalogue->parallel.dp != 0             ? catalogue->parallel.dp
           : stated >= 1.0 && stated <= UINT32_MAX ? (uint32_t)stated
                                                   : 0;
}

/* Microbatches of a data-parallel rank in one step; 0: not known. */
static uint64_t microbatches_of(const struct gradcmp_catalogue *catalogue) {
    double global = setting_of(catalogue, "global_batch_size");
    double micro = setting_of(catalogue, "micro_batch_size");
    double count = global / (micro * dp_of(catalogue));
    return count >= 1.0 && count <= 1e6 && floor(count) >= count ? (uint64_t)count : 0;
}

/* Bytes of a parameter on both sides, with all copies and what values are computed from. */
static uint64_t bytes_of(const struct diagnosis *work, size_t index) {
    const struct gcmp_paired *sides = &work->comparison->pairings[work->pair].sides[index];
    const struct gradcmp_parameter *const both[] = {sides->a, sides->b};
    double bytes = 0.0;
    for (size_t i = 0; i < 2; i++) {
        if (both[i] != NULL) {
            double copies = i == 1 && both[i]->copy_count > 1 ? both[i]->copy_count : 1.0;
            double states = both[i]->former != NULL ? 2.0 : 1.0;
            bytes += (double)both[i]->elem_count *
                     gcmp_dtype_bytes((enum gradcmp_dtype)both[i]->dtype) * copies * states;
        }
    }
    return bytes < 0x1p62 ? (uint64_t)bytes : UINT64_C(1) << 62;
}

/* What is read next is kept where all of it, `bytes`, can be. */
static void choose_pages(struct diagnosis *work, uint64_t bytes) {
    struct gcmp_pages *pages = work->comparison->pages;
    uint64_t limit = gcmp_probes_kept_bytes(work->comparison->options);
    gcmp_pages_keep(pages, bytes <= limit);
    if (bytes <= limit && gcmp_pages_kept_bytes(pages) + bytes > limit) {
        gcmp_pages_clear(pages);
    }
}

/* Where half of what was compared fails without a cause, look whether both sides started alike. */
static enum gradcmp_status look_at_start(struct diagnosis *work, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = pair_of(work);
    size_t open = 0, compared = 0;
    uint64_t open_bytes = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        compared += report->in_a && report->in_b && report->shapes_agree;
        if (report->verdict == GRADCMP_VERDICT_FAIL && report->cause_count == 0) {
            open++;
            open_bytes += bytes_of(work, i);
        }
    }
    work->global.dp = dp_of(pair->catalogue);
    work->global.microbatches = microbatches_of(pair->catalogue);
    if (2 * open < compared || compared == 0) {
        return GRADCMP_OK;
    }
    struct gcmp_start_finding found;
    choose_pages(work, open_bytes);
    GCMP_TRY(gcmp_diagnose_start(work->comparison, work->pair, &found, error));
    work->global.starts = found.starts;
    if (found.starts == GCMP_STARTS_DIFFER) {
        work->start_text = gcmp_arena_format(
            work->comparison->report->arena,
            "with the first step undone, the weights of %zu of %zu parameters differ between the "
            "sides, by %.3g of their size",
            found.differing, found.looked_at, found.rel);
        if (work->start_text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

/* What the sums show needs no sample. */
static bool is_explained(const struct gradcmp_parameter_report *report) {
    return report->cause_count > 0 || report->tally.nonfinite_any > 0 ||
           report->verdict == GRADCMP_VERDICT_SCALE;
}

typedef bool (*is_searched_fn)(const struct gradcmp_pair_report *pair,
                               const struct gradcmp_parameter_report *report);

static bool is_searched(const struct gradcmp_parameter_report *report) {
    return gcmp_cause_is_wanted(report->verdict) && report->in_a && report->in_b;
}

static bool is_at_onset(const struct gradcmp_pair_report *pair,
                        const struct gradcmp_parameter_report *report) {
    return is_searched(report) && report->layer == pair->onset_layer;
}

static bool is_elsewhere(const struct gradcmp_pair_report *pair,
                         const struct gradcmp_parameter_report *report) {
    return is_searched(report) && report->layer != pair->onset_layer;
}

/* Beyond the bound, and taken for noise. */
static bool is_noise(const struct gradcmp_pair_report *pair,
                     const struct gradcmp_parameter_report *report) {
    (void)pair;
    return report->verdict == GRADCMP_VERDICT_UNJUDGED && report->ratio > 1.0;
}

/* Look for order in samples of what has no cause yet, and read whole what that suggests. */
static enum gradcmp_status search_order(struct diagnosis *work, struct gcmp_search *searches,
                                        size_t count, struct gcmp_search_scene *scene,
                                        struct gradcmp_error *error) {
    struct gcmp_probes samples = {0}, wholes = {0};
    enum gradcmp_status status = GRADCMP_OK;
    scene->probes = &samples;
    for (size_t i = 0; i < count; i++) {
        if (!work->settled && !is_explained(gcmp_search_report(&searches[i], scene))) {
            GCMP_TRY_OUT(gcmp_search_sample(&searches[i], scene, error));
        }
    }
    GCMP_TRY_OUT(gcmp_probes_run(&samples, work->comparison, error));
    scene->probes = &wholes;
    for (size_t i = 0; i < count && gcmp_pair_is_open(pair_of(work)); i++) {
        GCMP_TRY_OUT(gcmp_search_confirm(&searches[i], scene, &samples, error));
        if (!work->of_noise) {
            GCMP_TRY_OUT(learn_router(work, &searches[i], error));
        }
    }
    if (gcmp_pair_is_open(pair_of(work))) {
        GCMP_TRY_OUT(gcmp_probes_run(&wholes, work->comparison, error));
    }
    for (size_t i = 0; i < count && gcmp_pair_is_open(pair_of(work)); i++) {
        GCMP_TRY_OUT(gcmp_search_claim(&searches[i], scene, error));
    }
out:
    scene->probes = NULL;
    gcmp_probes_free(&samples);
    gcmp_probes_free(&wholes);
    return status;
}

static enum gradcmp_status search_batch(struct diagnosis *work, struct gcmp_search *searches,
                                        size_t count, struct gradcmp_error *error) {
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_search_scene scene = {work->comparison, work->pair, &scratch, NULL};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY_OUT(gcmp_search_begin(&searches[i], &scene, error));
    }
    GCMP_TRY_OUT(search_order(work, searches, count, &scene, error));
    bool tells_places = !work->of_noise && gcmp_pair_is_open(pair_of(work));
    if (tells_places) {
        GCMP_TRY_OUT(gcmp_search_places(searches, count, &scene, error));
    }
    for (size_t i = 0; i < count && tells_places && gcmp_pair_is_open(pair_of(work)); i++) {
        GCMP_TRY_OUT(gcmp_search_tell_places(&searches[i], &scene, error));
    }
out:
    gcmp_arena_free(&scratch);
    return status;
}

/* Parameters that are searched together: few, and if possible what can be kept in memory. */
struct batch {
    struct gcmp_search searches[BATCH];
    size_t count;
    uint64_t bytes;
};

static enum gradcmp_status end_batch(struct diagnosis *work, struct batch *batch,
                                     struct gradcmp_error *error) {
    size_t count = batch->count;
    if (count == 0 || !gcmp_pair_is_open(pair_of(work))) {
        return GRADCMP_OK;
    }
    choose_pages(work, batch->bytes);
    batch->count = 0;
    batch->bytes = 0;
    return search_batch(work, batch->searches, count, error);
}

static enum gradcmp_status search_some(struct diagnosis *work, is_searched_fn is_wanted,
                                       struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = pair_of(work);
    uint64_t limit = gcmp_probes_kept_bytes(work->comparison->options);
    struct batch batch = {.count = 0};
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        if (!is_wanted(pair, report)) {
            continue;
        }
        uint64_t bytes = bytes_of(work, i);
        if (batch.count == BATCH || batch.bytes + bytes > limit) {
            GCMP_TRY(end_batch(work, &batch, error));
        }
        batch.searches[batch.count++] = (struct gcmp_search){
            .index = i, .of_noise = work->of_noise, .common = work->common * pair->state_factor};
        batch.bytes += bytes;
    }
    return end_batch(work, &batch, error);
}

/* The layer that is hit first is searched first: where it shows no cause and all gradients have one
 * in common, the others are not searched for order. */
static enum gradcmp_status search_all(struct diagnosis *work, struct gradcmp_error *error) {
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    double figure;
    work->settled =
        work->global.starts == GCMP_STARTS_DIFFER &&
        gcmp_cause_global(pair_of(work), &work->global, &scratch, &figure) != GCMP_CAUSE_NONE;
    enum gradcmp_status status = search_some(work, is_at_onset, error);
    if (status == GRADCMP_OK) {
        work->settled =
            gcmp_cause_global(pair_of(work), &work->global, &scratch, &figure) != GCMP_CAUSE_NONE;
        status = search_some(work, is_elsewhere, error);
    }
    gcmp_arena_free(&scratch);
    return status;
}

/* Noise has no order: what was left unjudged as noise and is the baseline in another order fails.
 * Its cause is told once the pair was judged again. */
static enum gradcmp_status look_into_noise(struct gcmp_comparison *comparison, size_t index,
                                           struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    struct diagnosis work = {
        .comparison = comparison, .pair = index, .common = common_of(pair), .of_noise = true};
    bool has_order = false;
    GCMP_TRY(search_some(&work, is_noise, error));
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *report = &pair->parameters[i];
        report->has_order = report->cause_count > 0;
        report->causes = NULL;
        report->cause_count = 0;
        has_order = has_order || report->has_order;
    }
    return has_order && gcmp_pair_is_open(pair)
               ? gcmp_judge_pair(pair, &comparison->report->options, comparison->report->arena,
                                 error)
               : GRADCMP_OK;
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static enum gradcmp_status diagnose_pair(struct gcmp_comparison *comparison, size_t index,
                                         struct gradcmp_error *error) {
    const struct gradcmp_report *report = comparison->report;
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    struct diagnosis work = {.comparison = comparison, .pair = index};
    work.common = common_of(pair);
    const struct gradcmp_parallel *a = &comparison->baseline.checkpoint->catalogue.parallel;
    const struct gradcmp_parallel *b =
        &comparison->candidates[index].checkpoint->catalogue.parallel;
    enum gradcmp_status status = GRADCMP_OK;
    work.facts = calloc(pair->parameter_count + 1, sizeof *work.facts);
    if (work.facts == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY_OUT(gcmp_facts_learn(comparison, index, work.facts, error));
    GCMP_TRY_OUT(gcmp_measure_own_rests(comparison, index, error));
    if (!gcmp_pair_is_open(pair)) {
        goto out;
    }
    GCMP_TRY_OUT(derive(&work, error));
    GCMP_TRY_OUT(look_at_start(&work, error));
    GCMP_TRY_OUT(search_all(&work, error));
    if (gcmp_pair_is_open(pair)) {
        struct gcmp_cause_scene scene = {
            .pair = pair,
            .facts = work.facts,
            .tp = larger(a->tp, b->tp),
            .dp = larger(a->dp, b->dp),
            .global = work.global,
            .start_text = work.start_text,
            .allow_routing = comparison->options->allow_routing != 0,
            .clip = common_clip(report->baseline, pair->catalogue),
            .clips = {
                clip_of(report, report->baseline, report->options.previous_a, 1.0),
                clip_of(report, pair->catalogue, report->options.previous_b, pair->state_factor)}};
        status = gcmp_cause_conclude(&scene, comparison->report->arena, error);
    }
out:
    free(work.facts);
    return status;
}

enum gradcmp_status gcmp_diagnose(struct gcmp_comparison *comparison, struct gradcmp_error *error) {
    enum gradcmp_status status = GRADCMP_OK;
    comparison->pages = gcmp_pages_make(gcmp_probes_kept_bytes(comparison->options));
    if (comparison->pages == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        if (gcmp_pair_is_open(&comparison->report->pairs[i])) {
            GCMP_TRY_OUT(look_into_noise(comparison, i, error));
        }
    }
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        if (comparison->report->pairs[i].outcome != GRADCMP_OUTCOME_INCONSISTENT) {
            gcmp_waves_finish(comparison, i); /* also when the search for others is cancelled */
        }
    }
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        if (comparison->report->pairs[i].outcome == GRADCMP_OUTCOME_INCONSISTENT) {
            GCMP_TRY_OUT(diagnose_pair(comparison, i, error));
            gcmp_pages_clear(comparison->pages);
            gcmp_waves_finish(comparison, i);
        }
    }
out:
    comparison->report->cause_bytes = gcmp_pages_read_bytes(comparison->pages);
    gcmp_pages_free(comparison->pages);
    comparison->pages = NULL;
    return status;
}
