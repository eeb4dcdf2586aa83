/* A fit as JSON, schema 1: what a plot needs, too. */
#include <math.h>

#include "gradcmp/sys/fit.h"
#include "report/json_parts.h"

static const char *standing_key(enum gradcmp_fit_standing standing) {
    static const char *const keys[] = {NULL,        "counts",   "repeat", "quiet",
                                       "identical", "not_good", "error"};
    return keys[standing];
}

static void write_pair(struct gcmp_emitter *json, const struct gradcmp_fit_pair *pair) {
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "path", pair->path);
    gcmp_emit_text(json, "standing", standing_key(pair->standing));
    gcmp_emit_figure(json, "worst_eps", pair->worst);
    gcmp_emit_text(json, "worst_name", pair->worst_name);
    gcmp_emit_bool(json, "suspect", pair->is_suspect);
    gcmp_emit_bool(json, "loose", pair->is_loose);
    gcmp_emit_text(json, "text", pair->text);
    gcmp_emit_close(json);
}

static void write_layer(struct gcmp_emitter *json, const struct gradcmp_fit *fit,
                        const struct gradcmp_fit_layer *row) {
    double depth = fmax((double)fit->layer_count + 1.0 - (double)row->layer, 0.0);
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_integer(json, "layer", row->layer);
    gcmp_emit_count(json, "parameters", row->parameters);
    gcmp_emit_real(json, "median_eps", row->median);
    gcmp_emit_real(json, "worst_eps", row->worst);
    gcmp_emit_text(json, "worst_name", row->worst_name);
    gcmp_emit_real(json, "fit_eps", fit->k * pow(fit->C, depth));
    gcmp_emit_real(json, "theory_eps", fit->theory_k * pow(fit->theory_C, depth));
    gcmp_emit_close(json);
}

static void write_terms(struct gcmp_emitter *json, const struct gradcmp_fit *fit) {
    gcmp_emit_text(json, "baseline", fit->baseline_path);
    gcmp_emit_text(json, "dtype",
                   fit->dtype == GRADCMP_DTYPE_NONE ? NULL : gradcmp_dtype_name(fit->dtype));
    gcmp_emit_text(json, "state", fit->state);
    gcmp_emit_count(json, "layers", fit->layer_count);
    gcmp_emit_count(json, "parameters", fit->parameter_count);
    gcmp_emit_text(json, "names_sha256", fit->names_sha256);
    gcmp_emit_real(json, "eps", fit->eps);
}

static void write_bound(struct gcmp_emitter *json, const struct gradcmp_fit *fit, bool is_fitted) {
    gcmp_emit_figure(json, "k", is_fitted ? fit->k : (double)NAN);
    gcmp_emit_figure(json, "C", is_fitted ? fit->C : (double)NAN);
    gcmp_emit_figure(json, "margin", fit->margin);
    gcmp_emit_bool(json, "looser_than_theory", fit->is_looser);
    gcmp_emit_open_object(json, "theory", false);
    gcmp_emit_real(json, "k", fit->theory_k);
    gcmp_emit_real(json, "C", fit->theory_C);
    gcmp_emit_close(json);
}

static void write_rows(struct gcmp_emitter *json, const struct gradcmp_fit *fit) {
    gcmp_emit_open_array(json, "pairs", true);
    for (size_t i = 0; i < fit->pair_count; i++) {
        write_pair(json, &fit->pairs[i]);
        gcmp_out_drain(json->out);
    }
    gcmp_emit_close(json);
    gcmp_emit_open_array(json, "noise", true);
    for (size_t i = 0; i < fit->layer_row_count; i++) {
        write_layer(json, fit, &fit->layers[i]);
        gcmp_out_drain(json->out);
    }
    gcmp_emit_close(json);
    gcmp_emit_open_array(json, "floors", true);
    for (size_t i = 0; i < fit->floor_count; i++) {
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "name", fit->floors[i].name);
        gcmp_emit_real(json, "floor", fit->floors[i].floor);
        gcmp_emit_close(json);
        gcmp_out_drain(json->out);
    }
    gcmp_emit_close(json);
}

enum gradcmp_status gradcmp_fit_write_json(const struct gradcmp_fit *fit, gradcmp_write_fn write,
                                           void *user, struct gradcmp_error *error) {
    static const char *const verdicts[] = {"fitted", "not_good", "error"};
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_emitter json = {.out = &out};
    int status = gradcmp_fit_exit_status(fit);
    gcmp_emit_open_object(&json, NULL, true);
    gcmp_emit_integer(&json, "schema", 1);
    gcmp_emit_text(&json, "tool", "gradcmp");
    gcmp_emit_text(&json, "version", gradcmp_version());
    gcmp_emit_text(&json, "verdict", verdicts[status]);
    if (fit->options != NULL) {
        gcmp_emit_options(&json, fit->options);
    }
    write_terms(&json, fit);
    write_bound(&json, fit, status == 0);
    write_rows(&json, fit);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}
