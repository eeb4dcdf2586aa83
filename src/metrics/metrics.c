/* gradcmp_metrics: opens both sides, judges them, and sums it up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/grow.h"
#include "base/map.h"
#include "metrics/choice.h"
#include "metrics/content.h"
#include "metrics/names.h"
#include "metrics/source.h"
#include "report/repeat.h"

static const struct gradcmp_evidence_writers writers = {
    gcmp_metric_write_text, gcmp_metric_write_json, gcmp_metric_write_html};

static void release(struct gradcmp_evidence *evidence) {
    struct gcmp_metric_content *content = evidence->content;
    gcmp_metric_source_free(&content->a);
    gcmp_metric_source_free(&content->b);
    free(content->notes);
}

/* "lm loss=0.01" */
static enum gradcmp_status read_setting(const char *text, struct gcmp_arena *arena,
                                        struct gcmp_metric_setting *out,
                                        struct gradcmp_error *error) {
    const char *equals = strrchr(text, '=');
    struct gcmp_metric_point point;
    if (equals == NULL || equals == text ||
        !gcmp_metric_number(equals + 1, strlen(equals + 1), &point) || !isfinite(point.value) ||
        point.value < 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "\"%.200s\": expected a metric and a number, as in \"lm loss=0.01\"", text);
    }
    out->name = gcmp_arena_text(arena, text, (size_t)(equals - text));
    out->value = point.value;
    if (out->name == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (strlen(out->name) > GCMP_METRIC_MAX_NAME_BYTES) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "the name of a metric has at most %d bytes",
                  GCMP_METRIC_MAX_NAME_BYTES);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_settings(const char *const *texts, size_t count,
                                         struct gcmp_arena *arena, struct gcmp_metric_setting **out,
                                         struct gradcmp_error *error) {
    *out = gcmp_arena_alloc(arena, count, sizeof **out);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(read_setting(texts[i], arena, &(*out)[i], error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status check_used(const char *option,
                                      const struct gcmp_metric_setting *settings, size_t count,
                                      struct gradcmp_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (!settings[i].was_used) {
            GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                      "%s \"%.200s\": judges no metric that both sides have", option,
                      settings[i].name);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status open_side(const char *path,
                                     const struct gradcmp_metrics_options *options,
                                     struct gcmp_arena *arena, struct gcmp_metric_source *source,
                                     struct gradcmp_error *error) {
    GCMP_TRY(gcmp_metric_open(path, arena, source, error));
    GCMP_TRY(gcmp_metric_choose(source, options->match, true, error));
    return gcmp_metric_choose(source, options->exclude, false, error);
}

/* Keep why a side is unreadable; true where that is a verdict and no failure of the call. */
static bool keep_error(struct gcmp_metric_content *content, const char *path,
                       enum gradcmp_status status, const struct gradcmp_error *error) {
    if (status == GRADCMP_ERROR_MEMORY) {
        return false;
    }
    content->error = *error;
    gcmp_error_add_path(&content->error, path);
    return true;
}

static void add_note(struct gradcmp_evidence *evidence, const char *note) {
    struct gcmp_metric_content *content = evidence->content;
    if (note != NULL && gcmp_grow(&content->notes, evidence->note_count, &content->note_capacity,
                                  sizeof *content->notes)) {
        content->notes[evidence->note_count++] = note;
    }
    evidence->notes = content->notes;
}

static void add_side_notes(struct gradcmp_evidence *evidence, const char *side,
                           const struct gcmp_metric_source *source) {
    for (size_t i = 0; i < source->note_count; i++) {
        add_note(evidence, gcmp_arena_format(evidence->arena, "%s: %s", side, source->notes[i]));
    }
}

static enum gradcmp_status add_left_out(struct gcmp_metric_content *content, struct gcmp_map *known,
                                        const struct gcmp_metric_source *source,
                                        struct gradcmp_error *error) {
    for (size_t i = 0; i < source->left_out_count; i++) {
        const char *name = source->left_out[i];
        enum gcmp_map_result result = gcmp_map_add(known, name, strlen(name), i, NULL);
        if (result == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        if (result == GCMP_MAP_ADDED) {
            content->left_out[content->left_out_count++] = name;
        }
    }
    return GRADCMP_OK;
}

/* What both sides have, or one of them, and --match or --exclude leave out. */
static enum gradcmp_status join_left_out(struct gcmp_metric_content *content,
                                         struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gcmp_map known = GCMP_MAP_INIT;
    content->left_out = gcmp_arena_alloc(
        arena, content->a.left_out_count + content->b.left_out_count, sizeof *content->left_out);
    if (content->left_out == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = add_left_out(content, &known, &content->a, error);
    if (status == GRADCMP_OK) {
        status = add_left_out(content, &known, &content->b, error);
    }
    gcmp_map_free(&known);
    return status;
}

static void add_left_out_note(struct gradcmp_evidence *evidence,
                              const struct gcmp_metric_content *content) {
    enum { TOLD = 10 };
    size_t count = content->left_out_count, more = count > TOLD ? count - TOLD : 0;
    if (count == 0) {
        return;
    }
    const char *text = gcmp_arena_format(evidence->arena, "%zu metric%s left out by %s: ", count,
                                         count == 1 ? " is" : "s are", content->filters);
    for (size_t i = 0; i < count - more && text != NULL; i++) {
        text = gcmp_arena_format(evidence->arena, "%s%s%s", text, i == 0 ? "" : ", ",
                                 content->left_out[i]);
    }
    if (more > 0 && text != NULL) {
        text = gcmp_arena_format(evidence->arena, "%s and %zu more", text, more);
    }
    add_note(evidence, text);
}

static void add_result_notes(struct gradcmp_evidence *evidence,
                             const struct gcmp_metric_result *result) {
    struct gcmp_arena *arena = evidence->arena;
    const char *const sides[] = {"A", "B"};
    const struct gcmp_metric_series *const series[] = {result->a, result->b};
    for (int side = 0; side < 2; side++) {
        if (series[side]->conflict_count > 0 && !result->is_time) {
            const struct gcmp_metric_conflict *first = &series[side]->conflicts[0];
            add_note(evidence,
                     gcmp_arena_format(arena,
                                       "%s: %s disagrees with itself at %zu steps, first at %lld: "
                                       "%.9g, then %.9g (the first reading was taken)",
                                       result->name, sides[side], series[side]->conflict_count,
                                       (long long)first->step, first->first, first->later));
        }
    }
    if (result->has_last_wins && result->conflicts_a + result->conflicts_b > 0 &&
        !result->is_time) {
        add_note(evidence,
                 gcmp_arena_format(arena,
                                   "%s: were the last reading of each step taken, the first "
                                   "difference would be at step %lld",
                                   result->name, (long long)result->first_mismatch_last_wins));
    }
    if (result->is_again) {
        add_note(evidence, gcmp_arena_format(arena, "%s: B has it as %s, too, and each was judged",
                                             result->name, result->name_b));
    }
    if (result->values_differ == result->mismatches && result->mismatches > 0 &&
        result->is_equal_at_five && !result->is_time) {
        add_note(evidence,
                 gcmp_arena_format(arena, "%s: equal where both sides are rounded to five decimals",
                                   result->name));
    }
}

/* Steps that one side lacks are mostly the same for all metrics: told once for each number. */
static void add_step_notes(struct gradcmp_evidence *evidence,
                           const struct gcmp_metric_judgement *judgement) {
    size_t missing = 0, extra = 0;
    for (size_t i = 0; i < judgement->count; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        if (result->missing_count > 0 && result->values_differ == 0 &&
            result->missing_count != missing) {
            missing = result->missing_count;
            add_note(evidence, gcmp_arena_format(evidence->arena,
                                                 "B lacks %zu of %zu steps, and no value differs: "
                                                 "%s, and others alike",
                                                 missing, result->steps, result->name));
        }
        if (result->extra_in_b > 0 && result->extra_in_b != extra) {
            extra = result->extra_in_b;
            add_note(evidence, gcmp_arena_format(evidence->arena,
                                                 "B has %zu steps that A has not, which are not "
                                                 "judged: %s, and others alike",
                                                 extra, result->name));
        }
    }
}

static size_t count_verdict(const struct gcmp_metric_judgement *judgement,
                            enum gcmp_metric_verdict verdict) {
    size_t count = 0;
    for (size_t i = 0; i < judgement->count; i++) {
        count += judgement->results[i].verdict == verdict;
    }
    return count;
}

static const char *case_text(struct gradcmp_evidence *evidence,
                             const struct gcmp_metric_result *result) {
    char text[400];
    if (result->verdict == GCMP_METRIC_MATCH) {
        return NULL;
    }
    if (result->why != NULL) {
        return result->why;
    }
    gcmp_metric_describe(result, text, sizeof text);
    return gcmp_arena_dup(evidence->arena, text);
}

static void fill_cases(struct gradcmp_evidence *evidence,
                       const struct gcmp_metric_judgement *judgement) {
    static const enum gradcmp_case_outcome outcomes[] = {[GCMP_METRIC_MATCH] = GRADCMP_CASE_PASS,
                                                         [GCMP_METRIC_DIFFER] = GRADCMP_CASE_FAIL,
                                                         [GCMP_METRIC_UNJUDGED] =
                                                             GRADCMP_CASE_SKIPPED};
    struct gradcmp_case *cases = evidence->cases;
    for (size_t i = 0; i < judgement->count; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        cases[evidence->case_count++] = (struct gradcmp_case){
            "metrics", result->name, outcomes[result->verdict], case_text(evidence, result), NULL,
            0};
    }
    for (size_t i = 0; i < judgement->only_in_a_count; i++) {
        cases[evidence->case_count++] = (struct gradcmp_case){
            "metrics",
            judgement->only_in_a[i],
            judgement->only_in_a_counts ? GRADCMP_CASE_FAIL : GRADCMP_CASE_SKIPPED,
            "only in A",
            NULL,
            0};
    }
    for (size_t i = 0; i < judgement->only_in_b_count; i++) {
        cases[evidence->case_count++] = (struct gradcmp_case){
            "metrics",
            judgement->only_in_b[i],
            judgement->only_in_b_counts ? GRADCMP_CASE_FAIL : GRADCMP_CASE_SKIPPED,
            "only in B",
            NULL,
            0};
    }
}

/* "lm loss, grad-norm and 3 more" of those that differ at the first step. */
static const char *first_names(struct gcmp_arena *arena,
                               const struct gcmp_metric_judgement *judgement) {
    const char *names = "";
    size_t told = 0, more = 0;
    for (size_t i = 0; i < judgement->count; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        if (result->verdict != GCMP_METRIC_DIFFER || gcmp_metric_by_samples(result->name)) {
            continue;
        }
        if (gcmp_metric_first_step(result) != judgement->first_step || ++told > 3) {
            more += told > 3;
            continue;
        }
        const char *joined =
            gcmp_arena_format(arena, "%s%s%s", names, told > 1 ? ", " : "", result->name);
        names = joined == NULL ? names : joined;
    }
    const char *all = more == 0 ? names : gcmp_arena_format(arena, "%s and more", names);
    return all == NULL ? names : all;
}

/* "; not judged, as measured by the machine: iteration-time, throughput" of those that differ, or
 * of those that have no value to compare; NULL without memory. */
static const char *unjudged_names(struct gcmp_arena *arena,
                                  const struct gcmp_metric_judgement *judgement, bool are_empty) {
    enum { TOLD = 3 };
    const char *text = "";
    size_t told = 0, more = 0;
    for (size_t i = 0; i < judgement->count && text != NULL; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        bool is_one = result->verdict == GCMP_METRIC_UNJUDGED && are_empty == (result->pairs == 0);
        if (is_one && told++ < TOLD) {
            text = gcmp_arena_format(arena, "%s%s%s", text,
                                     told > 1    ? ", "
                                     : are_empty ? "; not judged, without a value on both sides: "
                                                 : "; not judged, as measured by the machine: ",
                                     result->name);
        }
    }
    more = told > TOLD ? told - TOLD : 0;
    return more == 0 || text == NULL ? text
                                     : gcmp_arena_format(arena, "%s and %zu more", text, more);
}

/* What "equal" means for these metrics in exact mode. */
static const char *exactness(const struct gcmp_metric_judgement *judgement) {
    bool is_printed = false, has_other_bits = false;
    for (size_t i = 0; i < judgement->count; i++) {
        is_printed = is_printed || judgement->results[i].is_at_printed_precision;
        has_other_bits = has_other_bits || judgement->results[i].has_other_bits;
    }
    return is_printed       ? "at printed precision, more digits are not known"
           : has_other_bits ? "in value, but some zeros or NaN have other bits"
                            : "bit for bit";
}

static void conclude(struct gradcmp_evidence *evidence, const char *verdict, int exit_status,
                     const char *summary) {
    evidence->verdict = verdict;
    evidence->exit_status = exit_status;
    evidence->summary = summary == NULL ? verdict : summary;
}

static void conclude_error(struct gradcmp_evidence *evidence, const struct gradcmp_error *error) {
    char where[64] = "";
    if (error->offset_bytes != GRADCMP_NO_OFFSET) {
        snprintf(where, sizeof where, " (byte %llu)", (unsigned long long)error->offset_bytes);
    }
    conclude(evidence, "invalid", 2,
             gcmp_arena_format(evidence->arena, "INVALID: %s: %s%s", error->path, error->message,
                               where));
}

static void conclude_match(struct gradcmp_evidence *evidence,
                           const struct gcmp_metric_content *content) {
    size_t matched = count_verdict(&content->judgement, GCMP_METRIC_MATCH);
    const char *how = content->rules.max_ratio_count > 0
                          ? "within the ratios and tolerances asked for"
                      : content->rules.is_approximate ? "within the tolerances"
                                                      : exactness(&content->judgement);
    size_t outside = 0;
    for (size_t i = 0; i < content->judgement.count; i++) {
        const struct gcmp_metric_result *result = &content->judgement.results[i];
        outside += result->was_approximate && result->outside > 0;
    }
    const char *summary = gcmp_arena_format(evidence->arena, "MATCH: %zu metric%s %s", matched,
                                            matched == 1 ? "" : "s", how);
    if (outside > 0 && summary != NULL) {
        summary = gcmp_arena_format(
            evidence->arena, "%s, %zu with steps outside, no more than may be", summary, outside);
    }
    const char *measured = unjudged_names(evidence->arena, &content->judgement, false);
    const char *empty = unjudged_names(evidence->arena, &content->judgement, true);
    if (measured != NULL && empty != NULL && summary != NULL) {
        summary = gcmp_arena_format(evidence->arena, "%s%s%s", summary, measured, empty);
    }
    size_t lone = content->a.lone_part_count + content->b.lone_part_count;
    if (lone > 0 && summary != NULL) {
        summary = gcmp_arena_format(evidence->arena,
                                    "%s; not judged: %zu folder%s of event files on one side",
                                    summary, lone, lone == 1 ? "" : "s");
    }
    conclude(evidence, "match", 0, summary);
}

static void conclude_differ(struct gradcmp_evidence *evidence,
                            const struct gcmp_metric_content *content) {
    const struct gcmp_metric_judgement *judgement = &content->judgement;
    if (!judgement->has_first) {
        size_t count = count_verdict(judgement, GCMP_METRIC_DIFFER);
        conclude(evidence, "differ", 1,
                 gcmp_arena_format(evidence->arena,
                                   "DIFFER: %zu metrics only in A, %zu only in B, %zu by samples",
                                   judgement->only_in_a_count, judgement->only_in_b_count, count));
        return;
    }
    conclude(evidence, "differ", 1,
             gcmp_arena_format(evidence->arena, "DIFFER: from step %lld on: %s",
                               (long long)judgement->first_step,
                               first_names(evidence->arena, judgement)));
}

/* A metric that --max-ratio asks to judge, and that could not be; or NULL. */
static const struct gcmp_metric_result *
find_unjudged_ratio(const struct gcmp_metric_judgement *judgement) {
    for (size_t i = 0; i < judgement->count; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        if (result->max_ratio > 0.0 && result->verdict == GCMP_METRIC_UNJUDGED) {
            return result;
        }
    }
    return NULL;
}

static void sum_up(struct gradcmp_evidence *evidence, const struct gcmp_metric_content *content) {
    const struct gcmp_metric_judgement *judgement = &content->judgement;
    const struct gcmp_metric_source *damaged = content->a.is_damaged   ? &content->a
                                               : content->b.is_damaged ? &content->b
                                                                       : NULL;
    const struct gcmp_metric_result *unjudged;
    size_t differ = count_verdict(judgement, GCMP_METRIC_DIFFER);
    bool lacks = (judgement->only_in_a_counts && judgement->only_in_a_count > 0) ||
                 (judgement->only_in_b_counts && judgement->only_in_b_count > 0);
    if (content->error.code != GRADCMP_OK) {
        conclude_error(evidence, &content->error);
    } else if (damaged != NULL) {
        conclude_error(evidence, &damaged->damage);
    } else if (judgement->count == 0 ||
               (differ == 0 && count_verdict(judgement, GCMP_METRIC_MATCH) == 0)) {
        bool is_chosen = content->a.left_out_count > 0 || content->b.left_out_count > 0;
        conclude(evidence, "invalid", 2,
                 judgement->count > 0 ? "INVALID: no metric could be judged"
                 : is_chosen ? "INVALID: what is chosen of the sides has no metric in common"
                             : "INVALID: the sides have no metric in common");
    } else if (differ > 0 || lacks) {
        conclude_differ(evidence, content);
    } else if ((unjudged = find_unjudged_ratio(judgement)) != NULL) {
        conclude(evidence, "invalid", 2,
                 gcmp_arena_format(evidence->arena, "INVALID: --max-ratio %.160s: %s",
                                   unjudged->name, unjudged->why));
    } else {
        conclude_match(evidence, content);
    }
}

static enum gradcmp_status judge(struct gradcmp_evidence *evidence,
                                 struct gcmp_metric_content *content, struct gradcmp_error *error) {
    struct gcmp_metric_judgement *judgement = &content->judgement;
    struct gcmp_metric_rules *rules = &content->rules;
    GCMP_TRY(gcmp_metric_judge(&content->a, &content->b, rules, evidence->arena, judgement, error));
    content->is_judged = true;
    GCMP_TRY(check_used("--tolerance", rules->tolerances,
                        rules->is_approximate ? rules->tolerance_count : 0, error));
    GCMP_TRY(check_used("--max-ratio", rules->max_ratios, rules->max_ratio_count, error));
    size_t count = judgement->count + judgement->only_in_a_count + judgement->only_in_b_count;
    evidence->cases = gcmp_arena_alloc(evidence->arena, count, sizeof *evidence->cases);
    if (evidence->cases == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    fill_cases(evidence, judgement);
    add_note(evidence, gcmp_dir_one_note(content->a.dir, content->b.dir));
    add_left_out_note(evidence, content);
    add_side_notes(evidence, "A", &content->a);
    add_side_notes(evidence, "B", &content->b);
    for (size_t i = 0; i < judgement->count; i++) {
        add_result_notes(evidence, &judgement->results[i]);
    }
    add_step_notes(evidence, judgement);
    return GRADCMP_OK;
}

static enum gradcmp_status look(struct gradcmp_evidence *evidence,
                                const struct gradcmp_metrics_options *options,
                                struct gradcmp_error *error) {
    struct gcmp_metric_content *content = evidence->content;
    struct gcmp_arena *arena = evidence->arena;
    struct gcmp_metric_rules *rules = &content->rules;
    struct gradcmp_error own = {0};
    rules->is_approximate = options->approximate != 0;
    rules->tolerance_count = options->tolerance_count;
    rules->max_ratio_count = options->max_ratio_count;
    GCMP_TRY(read_settings(options->tolerances, options->tolerance_count, arena, &rules->tolerances,
                           error));
    GCMP_TRY(read_settings(options->max_ratios, options->max_ratio_count, arena, &rules->max_ratios,
                           error));
    if (rules->tolerance_count > 0 && !rules->is_approximate) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "--tolerance belongs to --mode approx");
    }
    struct gcmp_metric_source *const sides[] = {&content->a, &content->b};
    for (int side = 0; side < 2; side++) {
        own = (struct gradcmp_error){0};
        enum gradcmp_status status =
            open_side(evidence->paths[side], options, arena, sides[side], &own);
        bool is_usage = status == GRADCMP_ERROR_USAGE && own.path[0] == '\0';
        if (is_usage ||
            (status != GRADCMP_OK && !keep_error(content, evidence->paths[side], status, &own))) {
            if (error != NULL) {
                *error = own;
            }
            return status;
        }
        if (status != GRADCMP_OK) {
            return GRADCMP_OK; /* a verdict: invalid */
        }
    }
    content->filters = options->exclude == NULL ? "--match"
                       : options->match == NULL ? "--exclude"
                                                : "--match and --exclude";
    GCMP_TRY(join_left_out(content, arena, error));
    gcmp_metric_drop_lone_parts(&content->a, &content->b);
    gcmp_metric_drop_lone_parts(&content->b, &content->a);
    return judge(evidence, content, error);
}

/* Make evidence in an arena of its own, with both paths and an empty content. */
static struct gradcmp_evidence *make_evidence(const char *a, const char *b) {
    struct gcmp_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) {
        return NULL;
    }
    struct gradcmp_evidence *evidence = gcmp_arena_alloc(arena, 1, sizeof *evidence);
    struct gcmp_metric_content *content = gcmp_arena_alloc(arena, 1, sizeof *content);
    const char **paths = gcmp_arena_alloc(arena, 2, sizeof *paths);
    if (evidence == NULL || content == NULL || paths == NULL ||
        (paths[0] = gcmp_arena_dup(arena, a)) == NULL ||
        (paths[1] = gcmp_arena_dup(arena, b)) == NULL) {
        gcmp_arena_free(arena);
        free(arena);
        return NULL;
    }
    content->a.path = paths[0];
    content->b.path = paths[1];
    evidence->arena = arena;
    evidence->subcommand = "metrics";
    evidence->paths = paths;
    evidence->path_count = 2;
    evidence->content = content;
    evidence->writers = &writers;
    evidence->release = release;
    return evidence;
}

/* What was asked for beside the two paths. */
static enum gradcmp_status keep_options(struct gradcmp_evidence *evidence,
                                        const struct gradcmp_metrics_options *options,
                                        struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    if (options->approximate) {
        gcmp_repeat_option(&text, "--mode", "approx");
    }
    if (options->match != NULL) {
        gcmp_repeat_option(&text, "--match", options->match);
    }
    if (options->exclude != NULL) {
        gcmp_repeat_option(&text, "--exclude", options->exclude);
    }
    for (size_t i = 0; i < options->tolerance_count; i++) {
        gcmp_repeat_option(&text, "--tolerance", options->tolerances[i]);
    }
    for (size_t i = 0; i < options->max_ratio_count; i++) {
        gcmp_repeat_option(&text, "--max-ratio", options->max_ratios[i]);
    }
    return gcmp_repeat_keep(&text, evidence->arena, &evidence->options, error);
}

enum gradcmp_status gradcmp_metrics(const char *a, const char *b,
                                    const struct gradcmp_metrics_options *options,
                                    struct gradcmp_evidence **out, struct gradcmp_error *error) {
    static const struct gradcmp_metrics_options defaults = GRADCMP_METRICS_OPTIONS_INIT;
    *out = NULL;
    if (options != NULL && options->struct_size != sizeof *options) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "struct gradcmp_metrics_options of %zu bytes, expected %zu", options->struct_size,
                  sizeof *options);
    }
    struct gradcmp_evidence *evidence = make_evidence(a, b);
    if (evidence == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    options = options == NULL ? &defaults : options;
    enum gradcmp_status status = keep_options(evidence, options, error);
    if (status == GRADCMP_OK) {
        status = look(evidence, options, error);
    }
    if (status != GRADCMP_OK) {
        gradcmp_evidence_free(evidence);
        return status;
    }
    sum_up(evidence, evidence->content);
    *out = evidence;
    return GRADCMP_OK;
}
