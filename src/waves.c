/* Judges pairs all at once or in waves, and keeps what is finished. */
#include "waves.h"

#include <stdio.h>

/* Candidates that share one reading of the baseline where finished ones are kept: few enough that
 * little is lost, many enough that the baseline adds at most a quarter to what is read. */
enum { WAVE = 4 };

enum gradcmp_status gcmp_waves_begin(struct gcmp_comparison *comparison, struct gcmp_resume *resume,
                                     struct gradcmp_error *error) {
    struct gcmp_arena *arena = comparison->report->arena;
    size_t count = comparison->report->pair_count;
    if (resume != NULL &&
        (comparison->options->previous_a != NULL || comparison->options->previous_b != NULL)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "--resume cannot go with --previous-a and --previous-b");
    }
    if (resume != NULL && comparison->options->ranks != NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "--resume cannot be shared by several processes");
    }
    struct gcmp_waves *waves = gcmp_arena_alloc(arena, 1, sizeof *waves);
    if (waves == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    waves->resume = resume;
    waves->keys = gcmp_arena_alloc(arena, count, sizeof *waves->keys);
    waves->kept = gcmp_arena_alloc(arena, count, sizeof *waves->kept);
    waves->is_aside = gcmp_arena_alloc(arena, count, sizeof *waves->is_aside);
    waves->is_finished = gcmp_arena_alloc(arena, count, sizeof *waves->is_finished);
    if (waves->keys == NULL || waves->kept == NULL || waves->is_aside == NULL ||
        waves->is_finished == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    comparison->waves = waves;
    return GRADCMP_OK;
}

/* A pair that is put aside looks like one that could not be opened: all steps leave it alone. */
static void put_aside(struct gcmp_comparison *comparison, size_t index) {
    struct gcmp_waves *waves = comparison->waves;
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    waves->kept[index] = *pair;
    waves->is_aside[index] = true;
    gcmp_pair_fail(pair, &(struct gradcmp_error){.offset_bytes = GRADCMP_NO_OFFSET});
}

static void bring_back(struct gcmp_comparison *comparison, size_t index) {
    comparison->report->pairs[index] = comparison->waves->kept[index];
    comparison->waves->is_aside[index] = false;
}

void gcmp_waves_finish(struct gcmp_comparison *comparison, size_t index) {
    if (!comparison->waves->is_aside[index]) {
        comparison->waves->is_finished[index] = true;
    }
}

/* --- what was judged before --- */

void gcmp_waves_make_keys(struct gcmp_comparison *comparison) {
    struct gradcmp_report *report = comparison->report;
    for (size_t i = 0; i < report->pair_count; i++) {
        report->pairs[i].candidate = i;
        if (comparison->waves->resume != NULL && gcmp_pair_is_open(&report->pairs[i])) {
            comparison->waves->keys[i] = gcmp_resume_key_of(comparison, i);
        }
    }
}

static enum gradcmp_status take_over(struct gcmp_comparison *comparison, size_t index, bool *found,
                                     struct gradcmp_error *error) {
    const struct gcmp_waves *waves = comparison->waves;
    struct gradcmp_report *report = comparison->report;
    const struct gradcmp_pair_report now = report->pairs[index];
    struct gradcmp_pair_report pair;
    GCMP_TRY(
        gcmp_resume_find(waves->resume, &waves->keys[index], report->arena, &pair, found, error));
    if (*found) {
        pair.path = now.path;
        pair.catalogue = now.catalogue;
        pair.candidate = now.candidate;
        pair.bound.fit = report->fit;
        pair.taken_over = true;
        report->pairs[index] = pair;
        return gcmp_pair_note(comparison, &report->pairs[index], error,
                              "taken over from %.200s: judged by an earlier sweep, and neither "
                              "files nor options have changed since",
                              gcmp_resume_path(waves->resume));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_waves_take_over(struct gcmp_comparison *comparison,
                                         struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    for (size_t i = 0; comparison->waves->resume != NULL && i < report->pair_count; i++) {
        bool found = false;
        if (gcmp_pair_is_open(&report->pairs[i])) {
            GCMP_TRY(take_over(comparison, i, &found, error));
        }
        if (found) {
            put_aside(comparison, i);
            comparison->waves->is_finished[i] = true;
        }
    }
    return GRADCMP_OK;
}

/* --- waves --- */

/* Progress of one wave as that of all: bytes before it, and as much again for each that is left. */
struct all_progress {
    gradcmp_progress_fn progress;
    void *user;
    uint64_t before, total;
    size_t now, left; /* pairs */
};

static int tell_progress(void *user, uint64_t done, uint64_t total) {
    struct all_progress *all = user;
    all->total = total > all->total ? total : all->total;
    return all->progress(all->user, all->before + done,
                         all->before + total + total / all->now * all->left);
}

/* Pairs that are finished now are kept; a failure to write costs the next sweep time, and nothing
 * else: one line says so. */
static enum gradcmp_status keep_finished(struct gcmp_comparison *comparison,
                                         struct gradcmp_error *error) {
    struct gcmp_waves *waves = comparison->waves;
    const struct gradcmp_report *report = comparison->report;
    for (size_t i = 0; i < report->pair_count; i++) {
        if (!waves->is_aside[i] && waves->is_finished[i] && waves->keys[i].is_known &&
            gcmp_pair_is_open(&report->pairs[i])) {
            GCMP_TRY(gcmp_resume_put(waves->resume, &waves->keys[i], report->baseline_path,
                                     &report->pairs[i], error));
        }
    }
    return gcmp_resume_save(waves->resume, error);
}

/* Bring back the next few that wait; how many. */
static size_t begin_wave(struct gcmp_comparison *comparison) {
    const struct gcmp_waves *waves = comparison->waves;
    size_t count = 0;
    for (size_t i = 0; i < comparison->report->pair_count && count < WAVE; i++) {
        if (waves->is_aside[i] && !waves->is_finished[i]) {
            bring_back(comparison, i);
            count++;
        }
    }
    return count;
}

static void end_wave(struct gcmp_comparison *comparison) {
    const struct gcmp_waves *waves = comparison->waves;
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        if (!waves->is_aside[i] && waves->is_finished[i]) {
            put_aside(comparison, i);
        }
    }
}

static void warn_unwritten(struct gcmp_comparison *comparison, const struct gradcmp_error *error) {
    const struct gradcmp_options *options = comparison->options;
    char line[sizeof error->path + sizeof error->message + 64];
    if (options->warn != NULL && !comparison->waves->was_warned) {
        snprintf(line, sizeof line, "%s%s%s; the next sweep will judge these pairs anew",
                 error->path, error->path[0] == '\0' ? "" : ": ", error->message);
        options->warn(options->warn_user, line);
    }
    comparison->waves->was_warned = true;
}

static enum gradcmp_status run_wave(struct gcmp_comparison *comparison, gcmp_judge_fn judge,
                                    struct gradcmp_error *error) {
    struct gradcmp_error unwritten = {0};
    enum gradcmp_status status = judge(comparison, error);
    comparison->report->readings++;
    if (status != GRADCMP_OK && status != GRADCMP_ERROR_CANCELLED) {
        return status;
    }
    /* What is finished is kept also when the call is cancelled. */
    if (keep_finished(comparison, &unwritten) != GRADCMP_OK) {
        warn_unwritten(comparison, &unwritten);
    }
    return status;
}

static enum gradcmp_status run_waves(struct gcmp_comparison *comparison, gcmp_judge_fn judge,
                                     struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    struct all_progress all = {.progress = report->options.progress,
                               .user = report->options.progress_user};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < report->pair_count; i++) {
        if (gcmp_pair_is_open(&report->pairs[i])) {
            put_aside(comparison, i);
            all.left++;
        } else {
            gcmp_waves_finish(comparison, i);
        }
    }
    if (all.progress != NULL) {
        report->options.progress = tell_progress;
        report->options.progress_user = &all;
    }
    for (all.now = begin_wave(comparison); all.now > 0 && status == GRADCMP_OK;
         all.now = status == GRADCMP_OK ? begin_wave(comparison) : 0) {
        all.left -= all.now;
        status = run_wave(comparison, judge, error);
        end_wave(comparison);
        all.before += all.total;
        all.total = 0;
    }
    report->options.progress = all.progress;
    report->options.progress_user = all.user;
    return status;
}

/* After CANCELLED the report tells of finished pairs alone. */
static void drop_unfinished(struct gcmp_comparison *comparison) {
    struct gradcmp_report *report = comparison->report;
    size_t count = 0;
    for (size_t i = 0; i < report->pair_count; i++) {
        if (comparison->waves->is_finished[i]) {
            report->pairs[count++] = report->pairs[i];
        }
    }
    report->unfinished = report->pair_count - count;
    report->pair_count = count;
}

enum gradcmp_status gcmp_waves_run(struct gcmp_comparison *comparison, gcmp_judge_fn judge,
                                   struct gradcmp_error *error) {
    struct gradcmp_report *report = comparison->report;
    enum gradcmp_status status;
    if (comparison->waves->resume != NULL) {
        status = run_waves(comparison, judge, error);
    } else {
        status = judge(comparison, error);
        report->readings = 1;
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        if (comparison->waves->is_aside[i] && comparison->waves->is_finished[i]) {
            bring_back(comparison, i);
        }
    }
    if (status == GRADCMP_ERROR_CANCELLED) {
        drop_unfinished(comparison);
    }
    return status;
}
