/* The end of the search: what was proved becomes a cause. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bounds/bounds.h"
#include "bounds/cause_shards.h"
#include "diagnose_search.h"

static enum gradcmp_status add_cause(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene,
                                     struct gradcmp_cause cause, struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    struct gradcmp_cause *grown =
        gcmp_arena_alloc(scene->comparison->report->arena, report->cause_count + 1, sizeof *grown);
    if (grown == NULL || cause.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t at = 0;
    while (at < report->cause_count &&
           gcmp_cause_find(report->causes[at].kind) <= gcmp_cause_find(cause.kind)) {
        at++;
    }
    if (at > 0) {
        memcpy(grown, report->causes, at * sizeof *grown);
    }
    grown[at] = cause;
    if (at < report->cause_count) {
        memcpy(grown + at + 1, report->causes + at, (report->cause_count - at) * sizeof *grown);
    }
    report->causes = grown;
    report->cause_count++;
    return GRADCMP_OK;
}

/* What there was to explain: without a factor common to all, and not less than a whole gradient
 * where the shapes differ. */
static double difference_before(const struct gradcmp_parameter_report *report) {
    double rel = isnan(report->rel_common) ? report->rel : report->rel_common;
    return report->shapes_agree ? rel : 1.0;
}

/* Parts of one hypothesis, added up. */
static void add_part(struct gradcmp_tally *total, const struct gradcmp_tally *part) {
    total->d2 += part->d2;
    total->ad += part->ad;
    total->a2 += part->a2;
    total->b2 += part->b2;
    total->max_d = fmax(total->max_d, part->max_d);
    total->nonfinite_any += part->nonfinite_any;
}

static enum gradcmp_status claim_guesses(struct gcmp_search *search,
                                         const struct gcmp_search_scene *scene,
                                         struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    double bound = gcmp_bound_at(&gcmp_search_pair(scene)->bound, report->layer);
    for (struct gcmp_guess *guess = search->guesses; guess != NULL; guess = guess->next) {
        if (!guess->confirmed) {
            continue;
        }
        struct gradcmp_tally tally = scene->probes->tallies[guess->probe];
        for (const struct gcmp_guess *part = guess->rest; part != NULL; part = part->rest) {
            add_part(&tally, &scene->probes->tallies[part->probe]);
        }
        double residual = gcmp_cause_residual(&tally, search->common);
        if (tally.nonfinite_any == 0 &&
            gcmp_cause_holds(residual, bound, difference_before(report))) {
            struct gradcmp_cause cause = {gcmp_cause_name(guess->kind), NAN, residual, guess->text};
            GCMP_TRY(add_cause(search, scene, cause, error));
        }
    }
    return GRADCMP_OK;
}

static uint64_t writer_of(const struct gcmp_search_scene *scene, const struct gradcmp_slab *slab) {
    const struct gradcmp_coords *at = slab->coords;
    if (at != NULL && at->tp >= 0) {
        return (uint64_t)1 << 63 | (uint64_t)(uint32_t)at->tp << 31 |
               (uint64_t)(uint32_t)(at->dp < 0 ? 0 : at->dp);
    }
    return gcmp_search_catalogue_b(scene)->sources[slab->source].file;
}

static const char *describe_shard(const struct gcmp_search_scene *scene,
                                  const struct gcmp_search *search, const uint64_t *writers,
                                  uint64_t writer) {
    size_t parts = 0, first = 0;
    for (size_t i = search->shard_count; i-- > 0;) {
        if (writers[i] == writer) {
            parts++;
            first = i;
        }
    }
    const struct gradcmp_slab *slab = &search->b->slabs[first];
    const struct gradcmp_catalogue *catalogue = gcmp_search_catalogue_b(scene);
    const char *file = gcmp_dir_file_name(catalogue->dir, catalogue->sources[slab->source].file);
    struct gcmp_arena *arena = scene->comparison->report->arena;
    char rank[48] = "";
    if (slab->coords != NULL && slab->coords->tp >= 0) {
        snprintf(rank, sizeof rank, "tensor parallel rank %d, ", slab->coords->tp);
    }
    return gcmp_arena_format(arena, "%zu of %zu parts differ%s and the others agree: %sfile %s",
                             parts, search->shard_count, parts == 1 ? "s" : "", rank, file);
}

/* The shards of the report. */
static enum gradcmp_status list_shards(const struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       const struct gradcmp_tally *tallies,
                                       struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    struct gcmp_arena *arena = scene->comparison->report->arena;
    const struct gradcmp_catalogue *catalogue = gcmp_search_catalogue_b(scene);
    size_t count = search->shard_count, ndim = search->b->ndim;
    struct gradcmp_shard *shards = gcmp_arena_alloc(arena, count, sizeof *shards);
    uint64_t *dims = gcmp_arena_alloc(arena, 2 * ndim * count, sizeof *dims);
    if (shards == NULL || dims == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_slab *slab = &search->b->slabs[i];
        uint64_t *start = dims + 2 * ndim * i, *extent = start + ndim;
        memcpy(start, slab->start, ndim * sizeof *start);
        memcpy(extent, slab->extent, ndim * sizeof *extent);
        shards[i] = (struct gradcmp_shard){
            gcmp_dir_file_name(catalogue->dir, catalogue->sources[slab->source].file), slab->coords,
            start, extent, gcmp_cause_residual(&tallies[i], search->common)};
    }
    report->shards = shards;
    report->shard_count = count;
    return GRADCMP_OK;
}

/* List the shards, and claim one of them where it is to blame. */
static enum gradcmp_status claim_shards(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    const struct gradcmp_tally *tallies = scene->probes->tallies + search->first_shard;
    size_t count = search->shard_count;
    uint64_t *writers = gcmp_arena_alloc(scene->scratch, count, sizeof *writers);
    if (writers == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        writers[i] = writer_of(scene, &search->b->slabs[i]);
    }
    GCMP_TRY(list_shards(search, scene, tallies, error));
    struct gcmp_shard_set set = {
        tallies, writers, count, report->bound, difference_before(report), search->common};
    uint64_t writer;
    double residual;
    if (!gcmp_cause_one_shard(&set, &writer, &residual)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_ONE_SHARD), NAN, residual,
                                  describe_shard(scene, search, writers, writer)};
    return add_cause(search, scene, cause, error);
}

/* Copies that are alike count once: what data-parallel ranks hold is no part of the sum. Fills the
 * sums with the products of those kept; returns how many they are. */
static size_t distinct_copies(const struct gcmp_search *search, const struct gradcmp_tally *tallies,
                              double *inner, double *with_a) {
    size_t count = search->copy_count, kept = 0, chosen[GCMP_SEARCH_COPIES];
    size_t at[GCMP_SEARCH_COPIES][GCMP_SEARCH_COPIES], next = count;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            at[i][j] = next++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < kept && !seen; k++) {
            seen = tallies[at[chosen[k]][i]].d2 == 0.0;
        }
        if (!seen) {
            chosen[kept++] = i;
        }
    }
    for (size_t i = 0; i < kept; i++) {
        const struct gradcmp_tally *tally = &tallies[chosen[i]];
        with_a[i] = tally->a2 + tally->ad;
        inner[i * kept + i] = tally->b2;
        for (size_t j = i + 1; j < kept; j++) {
            const struct gradcmp_tally *both = &tallies[at[chosen[i]][chosen[j]]];
            inner[i * kept + j] = both->a2 + both->ad;
        }
    }
    return kept;
}

static enum gradcmp_status claim_copies(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    const struct gradcmp_tally *tallies = scene->probes->tallies + search->first_copy;
    double inner[GCMP_SEARCH_COPIES * GCMP_SEARCH_COPIES], with_a[GCMP_SEARCH_COPIES];
    size_t kept = distinct_copies(search, tallies, inner, with_a);
    double common = search->common;
    struct gcmp_copy_sums sums = {inner, with_a, kept, tallies[0].a2};
    double residual = gcmp_cause_copy_sum(&sums);
    if (kept < 2 || common != 1.0 || tallies[0].nonfinite_any > 0 ||
        !gcmp_cause_holds(residual, report->bound, 1.0)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_PARTIAL_SUM), NAN, residual, NULL};
    cause.text =
        gcmp_arena_format(scene->comparison->report->arena,
                          "the candidate's %zu copies differ and add up to the baseline", kept);
    return add_cause(search, scene, cause, error);
}

enum gradcmp_status gcmp_search_claim(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      struct gradcmp_error *error) {
    GCMP_TRY(claim_guesses(search, scene, error));
    if (search->first_shard != GCMP_NO_PROBE) {
        GCMP_TRY(claim_shards(search, scene, error));
    }
    if (search->first_copy != GCMP_NO_PROBE) {
        GCMP_TRY(claim_copies(search, scene, error));
    }
    return GRADCMP_OK;
}
