/* The report as JSON, schema 1: every key is always there, in one order. */
#include <math.h>

#include "report/facts.h"
#include "gradcmp/sys/sweep.h"
#include "report/json_parts.h"
#include "report/names.h"

static void write_dtype(struct gcmp_emitter *json, const char *key, enum gradcmp_dtype dtype) {
    gcmp_emit_text(json, key, dtype == GRADCMP_DTYPE_NONE ? NULL : gradcmp_dtype_name(dtype));
}

static void write_iteration(struct gcmp_emitter *json, const struct gradcmp_catalogue *catalogue) {
    if (catalogue == NULL || catalogue->iteration < 0) {
        gcmp_emit_null(json, "iteration");
    } else {
        gcmp_emit_integer(json, "iteration", catalogue->iteration);
    }
}

static void write_baseline(struct gcmp_emitter *json, const struct gradcmp_report *report) {
    const struct gradcmp_catalogue *catalogue = report->baseline;
    const struct gradcmp_bound *bound = &report->baseline_bound;
    gcmp_emit_open_object(json, "baseline", true);
    gcmp_emit_text(json, "path", report->baseline_path);
    gcmp_emit_format(json, "format", catalogue);
    gcmp_emit_known(json, "layers", bound->layers);
    write_dtype(json, "dtype", bound->dtype);
    gcmp_emit_text(json, "dtype_source", gcmp_dtype_source_key(bound->dtype_source));
    write_iteration(json, catalogue);
    gcmp_emit_parallel(json, "parallel", &catalogue->parallel);
    gcmp_emit_settings(json, "settings", catalogue);
    gcmp_emit_close(json);
}

static void write_bound(struct gcmp_emitter *json, const struct gradcmp_bound *bound) {
    gcmp_emit_open_object(json, "bound", false);
    gcmp_emit_real(json, "k", bound->k);
    gcmp_emit_real(json, "C", bound->C);
    gcmp_emit_count(json, "L", bound->constant ? GRADCMP_CONSTANT_LAYERS : bound->layers);
    gcmp_emit_real(json, "eps", bound->eps);
    gcmp_emit_text(json, "rule",
                   bound->constant      ? "constant"
                   : bound->fit != NULL ? "fit"
                                        : "depth");
    gcmp_emit_text(json, "dtype_source", gcmp_dtype_source_key(bound->dtype_source));
    gcmp_emit_close(json);
}

static void write_worst(struct gcmp_emitter *json, const struct gradcmp_pair_report *pair) {
    if (pair->worst >= pair->parameter_count) {
        gcmp_emit_null(json, "worst");
        return;
    }
    gcmp_emit_open_object(json, "worst", false);
    gcmp_emit_text(json, "name", pair->parameters[pair->worst].name);
    gcmp_emit_figure(json, "ratio", pair->parameters[pair->worst].ratio);
    gcmp_emit_close(json);
}

static void write_summary(struct gcmp_emitter *json, const struct gradcmp_pair_report *pair) {
    static const enum gradcmp_verdict order[] = {
        GRADCMP_VERDICT_PASS,      GRADCMP_VERDICT_FAIL,     GRADCMP_VERDICT_SCALE,
        GRADCMP_VERDICT_NONFINITE, GRADCMP_VERDICT_MISSING,  GRADCMP_VERDICT_EXTRA,
        GRADCMP_VERDICT_SHAPE,     GRADCMP_VERDICT_CONFLICT, GRADCMP_VERDICT_UNJUDGED};
    gcmp_emit_open_object(json, "summary", true);
    gcmp_emit_count(json, "parameters", pair->parameter_count);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        gcmp_emit_count(json, gradcmp_verdict_name(order[i]), pair->verdict_counts[order[i]]);
    }
    gcmp_emit_count(json, "elements", pair->compared_elems);
    gcmp_emit_count(json, "bytes", pair->bytes);
    gcmp_emit_figure(json, "common_factor", pair->common_factor);
    gcmp_emit_figure(json, "norm_a", pair->norm_a);
    gcmp_emit_figure(json, "norm_b", pair->norm_b);
    write_worst(json, pair);
    gcmp_emit_close(json);
}

/* How the failures lie around the onset. */
static void write_spread(struct gcmp_emitter *json, const struct gradcmp_spread_facts *spread) {
    static const char *const classes[] = {[GRADCMP_CLASS_OTHER] = NULL,
                                          [GRADCMP_CLASS_VECTOR] = "norms",
                                          [GRADCMP_CLASS_EXPERT] = "experts",
                                          [GRADCMP_CLASS_ROUTER] = "router",
                                          [GRADCMP_CLASS_EMBEDDING] = "embeddings",
                                          [GRADCMP_CLASS_ROW] = "row_parallel",
                                          [GRADCMP_CLASS_COLUMN] = "column_parallel"};
    gcmp_emit_count(json, "failing", spread->onset_failing);
    gcmp_emit_count(json, "passing", spread->onset_passing);
    gcmp_emit_count(json, "layers_failing", spread->layers_failing);
    gcmp_emit_bool(json, "all_layers",
                   spread->layers > 0 && spread->layers_failing == spread->layers);
    gcmp_emit_text(json, "only", classes[spread->only_class]);
    gcmp_emit_figure(json, "growth", spread->growth_layers > 0 ? spread->growth : NAN);
}

static void write_onset(struct gcmp_emitter *json, const struct gradcmp_pair_report *pair) {
    if (pair->onset_layer < 0) {
        gcmp_emit_null(json, "onset");
        return;
    }
    gcmp_emit_open_object(json, "onset", true);
    gcmp_emit_integer(json, "layer", pair->onset_layer);
    gcmp_emit_open_array(json, "names", true);
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->layer == pair->onset_layer && gcmp_verdict_makes_onset(parameter->verdict)) {
            gcmp_emit_text(json, NULL, parameter->name);
        }
    }
    gcmp_emit_close(json);
    if (pair->jump_layer < 0) {
        gcmp_emit_null(json, "jump_layer");
    } else {
        gcmp_emit_integer(json, "jump_layer", pair->jump_layer);
    }
    write_spread(json, &pair->spread);
    gcmp_emit_close(json);
}

static void write_note(struct gcmp_emitter *json, const char *before, const char *note) {
    struct gcmp_text line = GCMP_TEXT_INIT;
    gcmp_text_add(&line, before);
    gcmp_text_add(&line, note);
    json->out->text.failed = json->out->text.failed || line.failed;
    if (!line.failed) {
        gcmp_emit_text(json, NULL, line.bytes);
    }
    gcmp_text_free(&line);
}

static void write_notes(struct gcmp_emitter *json, const struct gradcmp_report *report,
                        const struct gradcmp_pair_report *pair) {
    gcmp_emit_open_array(json, "notes", true);
    if (pair->undecided_reason != NULL) {
        gcmp_emit_text(json, NULL, pair->undecided_reason);
    }
    for (size_t i = 0; i < pair->note_count; i++) {
        gcmp_emit_text(json, NULL, pair->notes[i]);
    }
    for (size_t i = 0; i < report->baseline->note_count; i++) {
        write_note(json, "baseline: ", report->baseline->notes[i]);
    }
    for (size_t i = 0; pair->catalogue != NULL && i < pair->catalogue->note_count; i++) {
        write_note(json, "candidate: ", pair->catalogue->notes[i]);
    }
    gcmp_emit_close(json);
}

/* What the tally holds, or null where nothing was compared. */
static void write_counts(struct gcmp_emitter *json,
                         const struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"max_ulp", tally->max_ulp},         {"equal_bits", tally->equal_bits},
                  {"zeros_a", tally->zeros_a},         {"zeros_b", tally->zeros_b},
                  {"nonfinite_a", tally->nonfinite_a}, {"nonfinite_b", tally->nonfinite_b}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (gcmp_is_compared(parameter)) {
            gcmp_emit_count(json, counts[i].key, counts[i].value);
        } else {
            gcmp_emit_null(json, counts[i].key);
        }
    }
}

static void write_maximum(struct gcmp_emitter *json,
                          const struct gradcmp_parameter_report *parameter, unsigned ndim,
                          const uint64_t *shape) {
    double max_abs = gcmp_max_abs(parameter);
    gcmp_emit_figure(json, "max_abs", max_abs);
    if (isnan(max_abs)) {
        gcmp_emit_null(json, "max_index");
        return;
    }
    uint64_t index[GRADCMP_MAX_NDIM];
    gcmp_unravel(parameter->tally.max_d_index, ndim, shape, index);
    gcmp_emit_sizes(json, "max_index", index, ndim);
}

static void write_cause(struct gcmp_emitter *json, const char *key,
                        const struct gradcmp_cause *cause) {
    if (cause->kind == NULL) {
        gcmp_emit_null(json, key);
        return;
    }
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_text(json, "kind", cause->kind);
    gcmp_emit_figure(json, "factor", cause->factor);
    gcmp_emit_figure(json, "residual", cause->residual);
    gcmp_emit_text(json, "text", cause->text);
    gcmp_emit_close(json);
}

static void write_causes(struct gcmp_emitter *json,
                         const struct gradcmp_parameter_report *parameter) {
    gcmp_emit_open_array(json, "causes", false);
    for (size_t i = 0; i < parameter->cause_count; i++) {
        write_cause(json, NULL, &parameter->causes[i]);
    }
    gcmp_emit_close(json);
}

/* The coordinates of a rank that are known, or null. */
static void write_rank(struct gcmp_emitter *json, const struct gradcmp_coords *coords) {
    if (coords == NULL) {
        gcmp_emit_null(json, "rank");
        return;
    }
    const struct {
        const char *key;
        int32_t value;
    } known[] = {{"tp", coords->tp}, {"pp", coords->pp}, {"ep", coords->ep},
                 {"dp", coords->dp}, {"vp", coords->vp}, {"etp", coords->etp}};
    gcmp_emit_open_object(json, "rank", false);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].value >= 0) {
            gcmp_emit_integer(json, known[i].key, known[i].value);
        }
    }
    gcmp_emit_close(json);
}

static void write_shards(struct gcmp_emitter *json,
                         const struct gradcmp_parameter_report *parameter) {
    gcmp_emit_open_array(json, "shards", false);
    for (size_t i = 0; i < parameter->shard_count; i++) {
        const struct gradcmp_shard *shard = &parameter->shards[i];
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "file", shard->file);
        write_rank(json, shard->coords);
        gcmp_emit_sizes(json, "start", shard->start, parameter->ndim_b);
        gcmp_emit_sizes(json, "extent", shard->extent, parameter->ndim_b);
        gcmp_emit_figure(json, "rel", shard->rel);
        gcmp_emit_text(json, "side", shard->in_a ? "baseline" : "candidate");
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
}

/* Errors per rank on an axis of parallelism, where writers are known. */
static void write_ranks(struct gcmp_emitter *json,
                        const struct gradcmp_parameter_report *parameter) {
    gcmp_emit_open_array(json, "ranks", false);
    for (size_t i = 0; i < parameter->rank_count; i++) {
        const struct gradcmp_rank_error *rank = &parameter->ranks[i];
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "axis", rank->axis);
        gcmp_emit_integer(json, "rank", rank->rank);
        gcmp_emit_text(json, "side", rank->in_a ? "baseline" : "candidate");
        gcmp_emit_count(json, "slabs", rank->slabs);
        gcmp_emit_figure(json, "rel", rank->rel);
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
}

static void write_parameter(struct gcmp_emitter *json,
                            const struct gradcmp_parameter_report *parameter) {
    uint64_t shape[GRADCMP_MAX_NDIM];
    unsigned ndim = gcmp_compared_shape(parameter, shape);
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "name", parameter->name);
    gcmp_emit_integer(json, "layer", parameter->layer);
    gcmp_emit_sizes(json, "shape", shape, ndim);
    write_dtype(json, "dtype", parameter->in_a ? parameter->dtype_a : parameter->dtype_b);
    gcmp_emit_text(json, "verdict", gradcmp_verdict_name(parameter->verdict));
    gcmp_emit_figure(json, "rel", parameter->rel);
    gcmp_emit_figure(json, "rel_common", parameter->rel_common);
    gcmp_emit_figure(json, "bound", parameter->bound);
    gcmp_emit_figure(json, "ratio", parameter->ratio);
    gcmp_emit_figure(json, "alpha", parameter->alpha);
    gcmp_emit_figure(json, "alpha_tolerance", parameter->alpha_tolerance);
    gcmp_emit_figure(json, "rho", parameter->rho);
    gcmp_emit_figure(json, "cos", parameter->cosine);
    gcmp_emit_figure(json, "norm_a", parameter->norm_a);
    gcmp_emit_figure(json, "norm_b", parameter->norm_b);
    write_maximum(json, parameter, ndim, shape);
    write_counts(json, parameter);
    write_causes(json, parameter);
    write_shards(json, parameter);
    write_ranks(json, parameter);
    gcmp_emit_close(json);
}

static void write_figures(struct gcmp_emitter *json, const struct gradcmp_report *report,
                          const struct gradcmp_pair_report *pair) {
    write_bound(json, &pair->bound);
    write_summary(json, pair);
    write_onset(json, pair);
    write_cause(json, "cause", &pair->cause);
    write_notes(json, report, pair);
    gcmp_emit_open_array(json, "parameters", true);
    for (size_t i = 0; i < pair->parameter_count; i++) {
        write_parameter(json, &pair->parameters[i]);
    }
    gcmp_emit_close(json);
}

static void write_pair(struct gcmp_emitter *json, const struct gradcmp_report *report,
                       const struct gradcmp_pair_report *pair) {
    static const struct gradcmp_catalogue nothing_known = {0};
    const struct gradcmp_catalogue *catalogue =
        pair->catalogue == NULL ? &nothing_known : pair->catalogue;
    gcmp_emit_text(json, "path", pair->path);
    gcmp_emit_format(json, "format", catalogue);
    write_iteration(json, pair->catalogue);
    gcmp_emit_parallel(json, "parallel", &catalogue->parallel);
    gcmp_emit_settings(json, "settings", catalogue);
    gcmp_emit_text(json, "verdict", gradcmp_outcome_name(pair->outcome));
    if (pair->outcome == GRADCMP_OUTCOME_ERROR) {
        gcmp_emit_error(json, "error", &pair->error);
    } else {
        write_figures(json, report, pair);
    }
}

static void write_head(struct gcmp_emitter *json, const char *verdict,
                       const struct gradcmp_report *report) {
    gcmp_emit_open_object(json, NULL, true);
    gcmp_emit_integer(json, "schema", 1);
    gcmp_emit_text(json, "tool", "gradcmp");
    gcmp_emit_text(json, "version", gradcmp_version());
    gcmp_emit_text(json, "verdict", verdict);
    gcmp_emit_options(json, &report->options);
    write_baseline(json, report);
}

enum gradcmp_status gradcmp_report_write_json(const struct gradcmp_report *report,
                                              gradcmp_write_fn write, void *user,
                                              struct gradcmp_error *error) {
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_emitter json = {.out = &out};
    write_head(&json, gradcmp_outcome_name(gcmp_overall_outcome(report)), report);
    if (report->unfinished > 0) { /* after an interrupt */
        gcmp_emit_count(&json, "unfinished", report->unfinished);
    }
    gcmp_emit_open_array(&json, "candidates", true);
    for (size_t i = 0; i < report->pair_count; i++) {
        gcmp_emit_open_object(&json, NULL, true);
        write_pair(&json, report, &report->pairs[i]);
        gcmp_emit_close(&json);
    }
    gcmp_emit_close(&json);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}

/* --- a sweep: the same, with what a row has beside its pair --- */

static void write_lines(struct gcmp_emitter *json, const char *key, const char *const *lines,
                        size_t count) {
    gcmp_emit_open_array(json, key, false);
    for (size_t i = 0; i < count; i++) {
        gcmp_emit_text(json, NULL, lines[i]);
    }
    gcmp_emit_close(json);
}

static void write_repeats(struct gcmp_emitter *json, const struct gradcmp_sweep *sweep) {
    gcmp_emit_open_array(json, "repeats", true);
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        const struct gradcmp_sweep_repeat *repeat = &sweep->repeats[i];
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "a", repeat->label_a);
        gcmp_emit_text(json, "b", repeat->label_b);
        gcmp_emit_bool(json, "taken_over", repeat->taken_over);
        if (repeat->could_be_read) {
            gcmp_emit_count(json, "elements", repeat->elems);
            gcmp_emit_count(json, "equal_bits", repeat->equal_bits);
            gcmp_emit_text(json, "first", repeat->first);
            gcmp_emit_count(json, "copies", repeat->copies);
            gcmp_emit_text(json, "first_copies", repeat->first_copies);
            gcmp_emit_count(json, "unequal_copies", repeat->unequal);
        } else {
            gcmp_emit_error(json, "error", &repeat->error);
        }
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
}

/* What was not compared: checkpoints that are there, and configurations that have none. */
static void write_left_out(struct gcmp_emitter *json, const struct gradcmp_sweep *sweep) {
    gcmp_emit_open_array(json, "left_out", false);
    for (size_t i = 0; i < sweep->left_count; i++) {
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_count(json, "count", sweep->left[i].count);
        gcmp_emit_text(json, "text", sweep->left[i].text);
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
    gcmp_emit_open_array(json, "absent", false);
    for (size_t i = 0; i < sweep->absent_count; i++) {
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "name", sweep->absent[i].name);
        gcmp_emit_text(json, "text", sweep->absent[i].text);
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
}

static void write_row(struct gcmp_emitter *json, const struct gradcmp_sweep *sweep, size_t i) {
    const struct gradcmp_sweep_row *row = &sweep->rows[i];
    gcmp_emit_open_object(json, NULL, true);
    gcmp_emit_text(json, "label", row->label);
    gcmp_emit_text(json, "expected",
                   row->has_expected ? gradcmp_outcome_name(row->expected) : NULL);
    write_lines(json, "findings", row->findings, row->finding_count);
    gcmp_emit_bool(json, "taken_over", sweep->report->pairs[i].taken_over);
    write_pair(json, sweep->report, &sweep->report->pairs[i]);
    gcmp_emit_close(json);
}

enum gradcmp_status gradcmp_sweep_write_json(const struct gradcmp_sweep *sweep,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error) {
    static const char *const verdicts[] = {"pass", "fail", "error"};
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_emitter json = {.out = &out};
    write_head(&json, verdicts[gradcmp_sweep_exit_status(sweep)], sweep->report);
    gcmp_emit_text(&json, "baseline_label", sweep->baseline_label);
    gcmp_emit_text(&json, "baseline_reason", sweep->baseline_reason);
    write_lines(&json, "baseline_findings", sweep->baseline_findings,
                sweep->baseline_finding_count);
    gcmp_emit_count(&json, "baseline_bytes", sweep->baseline_bytes);
    gcmp_emit_count(&json, "candidate_bytes", sweep->candidate_bytes);
    gcmp_emit_count(&json, "baseline_readings", sweep->report->readings);
    gcmp_emit_count(&json, "unfinished", sweep->unfinished);
    gcmp_emit_text(&json, "golden", sweep->golden);
    gcmp_emit_text(&json, "golden_note", sweep->golden_note);
    write_left_out(&json, sweep);
    gcmp_emit_open_array(&json, "candidates", true);
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        write_row(&json, sweep, i);
    }
    gcmp_emit_close(&json);
    write_repeats(&json, sweep);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}
