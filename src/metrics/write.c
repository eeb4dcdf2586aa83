/* The reports of `gradcmp metrics`, for people and as JSON. */
#include "metrics/content.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "metrics/names.h"
#include "metrics/source.h"
#include "report/json.h"
#include "report/page.h"

enum { NAME_COLUMNS = 30, MAX_STEPS_TOLD = 10000 };

const char *gcmp_metric_verdict_name(enum gcmp_metric_verdict verdict) {
    static const char *const names[] = {[GCMP_METRIC_MATCH] = "match",
                                        [GCMP_METRIC_DIFFER] = "differ",
                                        [GCMP_METRIC_UNJUDGED] = "unjudged"};
    return names[verdict];
}

static bool has_value(const struct gcmp_metric_point *point) {
    return point != NULL && !point->is_absent;
}

/* Bit pattern in hexadecimal: of binary32 for float32, else of binary64. */
static void bits_text(const struct gcmp_metric_point *point, char *out, size_t out_bytes) {
    float narrow = (float)point->value;
    uint32_t bits32;
    uint64_t bits64;
    memcpy(&bits32, &narrow, sizeof bits32);
    memcpy(&bits64, &point->value, sizeof bits64);
    if (point->type == GCMP_METRIC_FLOAT32) {
        snprintf(out, out_bytes, "0x%08" PRIx32, bits32);
    } else {
        snprintf(out, out_bytes, "0x%016" PRIx64, bits64);
    }
}

/* The value with as many digits as its type has, and its bits where the digits are not all. */
static void value_text(const struct gcmp_metric_point *point, char *out, size_t out_bytes) {
    char bits[24];
    if (point == NULL) {
        snprintf(out, out_bytes, "nothing");
    } else if (point->is_absent) {
        snprintf(out, out_bytes, "no value");
    } else if (point->type == GCMP_METRIC_DECIMAL && point->place <= 0 && point->place >= -12 &&
               fabs(point->value) < 1e15) {
        snprintf(out, out_bytes, "%.*f", -point->place, point->value);
    } else if (point->type == GCMP_METRIC_DECIMAL) {
        snprintf(out, out_bytes, "%.17g", point->value);
    } else {
        bits_text(point, bits, sizeof bits);
        snprintf(out, out_bytes, "%.*g = %s", point->type == GCMP_METRIC_FLOAT32 ? 9 : 17,
                 point->value, bits);
    }
}

static const char *unit_of(const struct gcmp_metric_result *result) {
    const struct gcmp_metric_point *a = result->first_a, *b = result->first_b;
    if (a->type == GCMP_METRIC_DECIMAL || b->type == GCMP_METRIC_DECIMAL) {
        return "in the last printed digit";
    }
    return a->type == GCMP_METRIC_FLOAT32 && b->type == GCMP_METRIC_FLOAT32 ? "ulp of float32"
                                                                            : "ulp of float64";
}

static void describe_approximate(const struct gcmp_metric_result *result, char *out,
                                 size_t out_bytes) {
    if (result->max_ratio > 0) {
        snprintf(out, out_bytes, "median %.6g against %.6g: ratio %.4g, at most %.4g",
                 result->median_b, result->median_a, result->median_b / result->median_a,
                 result->max_ratio);
    } else if (result->is_median) {
        snprintf(out, out_bytes, "median %.6g against %.6g of steps %lld to %lld, tolerance %.4g",
                 result->median_b, result->median_a, (long long)result->window_first,
                 (long long)result->window_last, result->rtol);
    } else {
        snprintf(out, out_bytes, "%zu of %zu steps outside %.4g, %zu allowed; the first is %lld",
                 result->outside, result->steps, result->rtol, result->allowed_outside,
                 (long long)result->first_outside_step);
    }
}

void gcmp_metric_describe(const struct gcmp_metric_result *result, char *out, size_t out_bytes) {
    char a[64], b[64];
    out[0] = '\0';
    if (result->was_approximate) {
        describe_approximate(result, out, out_bytes);
        return;
    }
    if (result->mismatches == 0) {
        return;
    }
    value_text(result->first_a, a, sizeof a);
    value_text(result->first_b, b, sizeof b);
    size_t at = (size_t)snprintf(out, out_bytes, "step %lld: %s, B has %s",
                                 (long long)result->first_mismatch_step, a, b);
    double distance = gcmp_metric_distance(result);
    if (isfinite(distance) && at < out_bytes) {
        at += (size_t)snprintf(out + at, out_bytes - at, " (%.6g %s)", distance, unit_of(result));
    }
    if (at < out_bytes) {
        snprintf(out + at, out_bytes - at, "; %zu of %zu steps differ", result->mismatches,
                 result->steps);
    }
}

/* --- terminal --- */

static void write_side(struct gcmp_page *page, const char *label,
                       const struct gcmp_metric_source *source) {
    gcmp_page_addf(page, "%-14s", label);
    gcmp_page_name(page, source->path);
    gcmp_page_end_line(page);
    if (source->kind != 0) {
        gcmp_page_addf(page, "%-14s%s: %zu file%s, %zu metric%s, %zu value%s\n", "",
                       gcmp_metric_kind_name(source->kind), source->file_count,
                       source->file_count == 1 ? "" : "s", source->series_count,
                       source->series_count == 1 ? "" : "s", source->point_count,
                       source->point_count == 1 ? "" : "s");
    }
}

static void write_result(struct gcmp_page *page, const struct gcmp_metric_result *result) {
    char text[400];
    enum gcmp_ink ink = result->verdict == GCMP_METRIC_MATCH    ? GCMP_INK_GOOD
                        : result->verdict == GCMP_METRIC_DIFFER ? GCMP_INK_BAD
                                                                : GCMP_INK_DOUBT;
    gcmp_page_add(page, "  ");
    gcmp_page_name_in(page, result->name, NAME_COLUMNS);
    gcmp_page_addf(page, " %8zu  ", result->steps);
    gcmp_page_ink(page, ink, gcmp_metric_verdict_name(result->verdict));
    if (result->verdict == GCMP_METRIC_MATCH && result->was_rounded && !result->was_approximate) {
        gcmp_page_addf(page, ", in units of 1e%d", result->rounded_place);
    }
    gcmp_page_end_line(page);
    gcmp_metric_describe(result, text, sizeof text);
    const char *why = result->why != NULL ? result->why : text;
    bool is_clear =
        result->verdict == GCMP_METRIC_MATCH && (!result->was_approximate || result->outside == 0);
    if (!is_clear && why[0] != '\0') {
        gcmp_page_add(page, "    ");
        gcmp_page_wrap(page, 4, 6, why);
    }
}

static void write_results(struct gcmp_page *page, const struct gcmp_metric_judgement *judgement) {
    size_t shown = 0, left = 0;
    gcmp_page_addf(page, "\n  %-*s %8s  verdict\n", NAME_COLUMNS, "metric", "steps");
    for (size_t i = 0; i < judgement->count; i++) {
        bool is_failed = judgement->results[i].verdict == GCMP_METRIC_DIFFER;
        if (is_failed && !page->verbose && ++shown > page->top) {
            left++;
            continue;
        }
        write_result(page, &judgement->results[i]);
    }
    if (left > 0) {
        gcmp_page_addf(page, "  and %zu more that differ (--top N, --verbose)\n", left);
    }
}

static void write_only(struct gcmp_page *page, const char *label, const char **names, size_t count,
                       bool counts) {
    for (size_t i = 0; i < count; i++) {
        gcmp_page_add(page, "  ");
        gcmp_page_name_in(page, names[i], NAME_COLUMNS);
        gcmp_page_addf(page, " %8s  ", "-");
        gcmp_page_ink(page, counts ? GCMP_INK_BAD : GCMP_INK_DOUBT, label);
        gcmp_page_end_line(page);
    }
}

static void write_notes(struct gcmp_page *page, const struct gradcmp_evidence *evidence) {
    size_t most = page->verbose ? evidence->note_count : page->top;
    if (evidence->note_count > 0) {
        gcmp_page_heading(page, "Notes");
    }
    for (size_t i = 0; i < evidence->note_count && i < most; i++) {
        gcmp_page_add(page, "- ");
        gcmp_page_wrap(page, 2, 2, evidence->notes[i]);
    }
    if (evidence->note_count > most) {
        gcmp_page_addf(page, "- and %zu more (--verbose)\n", evidence->note_count - most);
    }
}

void gcmp_metric_write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page) {
    const struct gcmp_metric_content *content = evidence->content;
    const struct gcmp_metric_judgement *judgement = &content->judgement;
    gcmp_page_end_line(page);
    write_side(page, "A", &content->a);
    write_side(page, "B", &content->b);
    gcmp_page_addf(page, "%-14s%s\n", "mode",
                   content->rules.is_approximate ? "approx: within tolerances, steps of A"
                                                 : "exact: the same values at all steps of A");
    if (content->is_judged) {
        write_results(page, judgement);
        write_only(page, "only in A", judgement->only_in_a, judgement->only_in_a_count,
                   judgement->only_in_a_counts);
        write_only(page, "only in B", judgement->only_in_b, judgement->only_in_b_count,
                   judgement->only_in_b_counts);
    }
    write_notes(page, evidence);
    gcmp_page_end_line(page);
    gcmp_page_name_ink(page, evidence->exit_status == 0 ? GCMP_INK_GOOD : GCMP_INK_BAD,
                       evidence->summary);
    gcmp_page_end_line(page);
}

/* --- JSON --- */

static void emit_side(struct gcmp_emitter *json, const char *key,
                      const struct gcmp_metric_source *source) {
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_text(json, "path", source->path);
    gcmp_emit_text(json, "kind", source->kind == 0 ? NULL : gcmp_metric_kind_name(source->kind));
    gcmp_emit_count(json, "files", source->file_count);
    gcmp_emit_count(json, "values", source->point_count);
    gcmp_emit_close(json);
}

static void emit_step(struct gcmp_emitter *json, const char *key, bool is_there, int64_t step) {
    if (is_there) {
        gcmp_emit_integer(json, key, step);
    } else {
        gcmp_emit_null(json, key);
    }
}

static void emit_point(struct gcmp_emitter *json, const char *key,
                       const struct gcmp_metric_point *point) {
    static const char *const types[] = {[GCMP_METRIC_FLOAT32] = "float32",
                                        [GCMP_METRIC_FLOAT64] = "float64",
                                        [GCMP_METRIC_DECIMAL] = "decimal"};
    char bits[24];
    if (!has_value(point)) {
        gcmp_emit_null(json, key);
        return;
    }
    bits_text(point, bits, sizeof bits);
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_real(json, "value", point->value);
    gcmp_emit_text(json, "bits", bits);
    gcmp_emit_text(json, "type", types[point->type]);
    if (point->type == GCMP_METRIC_DECIMAL) {
        gcmp_emit_integer(json, "last_digit", point->place);
    } else {
        gcmp_emit_null(json, "last_digit");
    }
    gcmp_emit_close(json);
}

static void emit_exact(struct gcmp_emitter *json, const struct gcmp_metric_result *result) {
    bool differs = result->mismatches > 0;
    gcmp_emit_count(json, "steps", result->steps);
    emit_step(json, "first_mismatch_step", differs, result->first_mismatch_step);
    gcmp_emit_count(json, "mismatches", result->mismatches);
    gcmp_emit_count(json, "values_differ", result->values_differ);
    gcmp_emit_open_array(json, "missing_in_b", false);
    for (size_t i = 0; i < result->missing_count && i < MAX_STEPS_TOLD; i++) {
        gcmp_emit_integer(json, NULL, result->missing_in_b[i]);
    }
    gcmp_emit_close(json);
    gcmp_emit_count(json, "missing_count", result->missing_count);
    gcmp_emit_count(json, "extra_in_b", result->extra_in_b);
    emit_point(json, "a", result->first_a);
    emit_point(json, "b", result->first_b);
    gcmp_emit_figure(json, "distance", gcmp_metric_distance(result));
    gcmp_emit_bool(json, "printed_precision", result->is_at_printed_precision);
    gcmp_emit_bool(json, "match_after_round5", !differs || result->is_equal_at_five);
    gcmp_emit_count(json, "conflicts_a", result->conflicts_a);
    gcmp_emit_count(json, "conflicts_b", result->conflicts_b);
    emit_step(json, "first_conflict_step", result->conflicts_a + result->conflicts_b > 0,
              result->first_conflict_step);
    emit_step(json, "first_mismatch_last_wins", result->has_last_wins,
              result->first_mismatch_last_wins);
}

static void emit_approximate(struct gcmp_emitter *json, const struct gcmp_metric_result *result) {
    bool was = result->was_approximate, is_median = was && result->is_median;
    emit_step(json, "first_outside_step", was && result->outside > 0, result->first_outside_step);
    if (was) {
        gcmp_emit_count(json, "outside", result->outside);
        gcmp_emit_count(json, "allowed_outside", result->allowed_outside);
        gcmp_emit_count(json, "conflicts_outside", result->self_outside);
    } else {
        gcmp_emit_null(json, "outside");
        gcmp_emit_null(json, "allowed_outside");
        gcmp_emit_null(json, "conflicts_outside");
    }
    gcmp_emit_figure(json, "rtol", was && result->max_ratio <= 0 ? result->rtol : NAN);
    gcmp_emit_figure(json, "max_ratio", result->max_ratio > 0 ? result->max_ratio : NAN);
    gcmp_emit_figure(json, "median_a", is_median ? result->median_a : NAN);
    gcmp_emit_figure(json, "median_b", is_median ? result->median_b : NAN);
    emit_step(json, "window_first", is_median, result->window_first);
    emit_step(json, "window_last", is_median, result->window_last);
}

static void emit_names(struct gcmp_emitter *json, const char *key, const char **names,
                       size_t count) {
    gcmp_emit_open_array(json, key, false);
    for (size_t i = 0; i < count; i++) {
        gcmp_emit_text(json, NULL, names[i]);
    }
    gcmp_emit_close(json);
}

static void emit_first(struct gcmp_emitter *json, const struct gcmp_metric_judgement *judgement) {
    if (!judgement->has_first) {
        gcmp_emit_null(json, "first_mismatch");
        return;
    }
    gcmp_emit_open_object(json, "first_mismatch", false);
    gcmp_emit_integer(json, "step", judgement->first_step);
    gcmp_emit_open_array(json, "metrics", false);
    for (size_t i = 0; i < judgement->count; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        if (result->verdict == GCMP_METRIC_DIFFER &&
            gcmp_metric_first_step(result) == judgement->first_step &&
            !gcmp_metric_by_samples(result->name)) {
            gcmp_emit_text(json, NULL, result->name);
        }
    }
    gcmp_emit_close(json);
    gcmp_emit_close(json);
}

static void emit_error(struct gcmp_emitter *json, const struct gcmp_metric_content *content) {
    const struct gradcmp_error *error = content->error.code != GRADCMP_OK ? &content->error
                                        : content->a.is_damaged           ? &content->a.damage
                                        : content->b.is_damaged           ? &content->b.damage
                                                                          : NULL;
    if (error == NULL) {
        gcmp_emit_null(json, "error");
        return;
    }
    gcmp_emit_open_object(json, "error", false);
    gcmp_emit_text(json, "file", error->path);
    emit_step(json, "offset", error->offset_bytes != GRADCMP_NO_OFFSET,
              (int64_t)error->offset_bytes);
    gcmp_emit_text(json, "message", error->message);
    gcmp_emit_close(json);
}

void gcmp_metric_write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json) {
    const struct gcmp_metric_content *content = evidence->content;
    const struct gcmp_metric_judgement *judgement = &content->judgement;
    gcmp_emit_text(json, "mode", content->rules.is_approximate ? "approx" : "exact");
    gcmp_emit_text(json, "options", evidence->options);
    emit_side(json, "a", &content->a);
    emit_side(json, "b", &content->b);
    emit_error(json, content);
    emit_first(json, judgement);
    gcmp_emit_open_array(json, "metrics", true);
    for (size_t i = 0; i < judgement->count; i++) {
        const struct gcmp_metric_result *result = &judgement->results[i];
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "name", result->name);
        gcmp_emit_text(json, "name_b", result->name_b);
        gcmp_emit_text(json, "verdict", gcmp_metric_verdict_name(result->verdict));
        emit_exact(json, result);
        emit_approximate(json, result);
        gcmp_emit_text(json, "why", result->why);
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
    emit_names(json, "only_in_a", judgement->only_in_a, judgement->only_in_a_count);
    emit_names(json, "only_in_b", judgement->only_in_b, judgement->only_in_b_count);
    emit_names(json, "left_out", content->left_out, content->left_out_count);
    emit_names(json, "notes", evidence->notes, evidence->note_count);
    gcmp_emit_text(json, "summary", evidence->summary);
}
