/* The fit of k, C and floors to known-good pairs. */
#include "bounds/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bounds/bounds.h"
#include "bounds/figures.h"
#include "bounds/fit_pairs.h"
#include "bounds/layer.h"
#include "bounds/median.h"

#define LEAST_MARGIN  1.25
#define MARGIN_OF_ONE 0.75

enum { LEAST_SLOPE_LAYERS = 4, MAX_SLOPE_LAYERS = 512 };

/* The work on one fit. */
struct fitting {
    const struct gcmp_fit_input *input;
    struct gradcmp_fit *fit;
    const struct gradcmp_pair_report *first; /* of the good pairs; all have its parameters */
    double *noise;                           /* of each parameter; NaN where it was not judged */
    struct gcmp_arena *arena;
    struct gcmp_arena scratch;
};

static double depth_of(const struct gradcmp_fit *fit, int64_t layer) {
    return fmax((double)fit->layer_count + 1.0 - (double)layer, 0.0);
}

double gcmp_fit_bound_eps(const struct gradcmp_fit *fit, int64_t layer) {
    return fit->k * pow(fit->C, depth_of(fit, layer));
}

double gcmp_fit_theory_eps(const struct gradcmp_fit *fit, int64_t layer) {
    return fit->theory_k * pow(fit->theory_C, depth_of(fit, layer));
}

/* Of each parameter the most over all pairs, in multiples of eps. */
static void gather_noise(struct fitting *fitting) {
    for (size_t p = 0; p < fitting->first->parameter_count; p++) {
        fitting->noise[p] = NAN;
        for (size_t i = 0; i < fitting->input->pair_count; i++) {
            double noise = gcmp_fit_noise(&fitting->input->pairs[i], p);
            fitting->noise[p] = fmax(fitting->noise[p], noise); /* fmax passes over NaN */
        }
    }
}

static int compare_rows(const void *left, const void *right) {
    int64_t a = ((const struct gradcmp_fit_layer *)left)->layer;
    int64_t b = ((const struct gradcmp_fit_layer *)right)->layer;
    return (a < b) - (a > b);
}

/* One row for each layer with a judged parameter, from the loss down; figures still to be filled.
 */
static bool list_layers(struct fitting *fitting) {
    const struct gradcmp_pair_report *pair = fitting->first;
    struct gradcmp_fit *fit = fitting->fit;
    fit->layers = gcmp_arena_alloc(fitting->arena, pair->parameter_count, sizeof *fit->layers);
    if (fit->layers == NULL) {
        return false;
    }
    size_t count = 0;
    for (size_t p = 0; p < pair->parameter_count; p++) {
        if (!isnan(fitting->noise[p])) {
            fit->layers[count++].layer = pair->parameters[p].layer;
        }
    }
    qsort(fit->layers, count, sizeof *fit->layers, compare_rows);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || fit->layers[i].layer != fit->layers[i - 1].layer) {
            fit->layers[fit->layer_row_count++] = fit->layers[i];
        }
    }
    return true;
}

/* Figures of one layer; samples has room for all parameters. */
static void fill_layer(const struct fitting *fitting, struct gradcmp_fit_layer *row,
                       struct gcmp_sample *samples) {
    const struct gradcmp_pair_report *pair = fitting->first;
    for (size_t p = 0; p < pair->parameter_count; p++) {
        if (pair->parameters[p].layer != row->layer || isnan(fitting->noise[p])) {
            continue;
        }
        samples[row->parameters++] = (struct gcmp_sample){fitting->noise[p], 1.0};
        if (row->worst_name == NULL || fitting->noise[p] > row->worst) {
            row->worst = fitting->noise[p];
            row->worst_name = pair->parameters[p].name;
        }
    }
    row->median = gcmp_median(samples, row->parameters, 0.0);
}

/* Rows of layers 1..L with noise, evenly thinned out where they are very many. */
static size_t slope_layers(const struct gradcmp_fit *fit,
                           const struct gradcmp_fit_layer *rows[MAX_SLOPE_LAYERS]) {
    size_t count = 0, step = fit->layer_row_count / MAX_SLOPE_LAYERS + 1;
    for (size_t i = 0; i < fit->layer_row_count; i += step) {
        const struct gradcmp_fit_layer *row = &fit->layers[i];
        bool inside = row->layer >= 1 && (uint64_t)row->layer <= fit->layer_count;
        if (inside && row->median > 0.0) {
            rows[count++] = row;
        }
    }
    return count;
}

/* C by Theil and Sen. Errors: MEMORY. */
static enum gradcmp_status fit_growth(struct fitting *fitting, struct gradcmp_error *error) {
    struct gradcmp_fit *fit = fitting->fit;
    const struct gradcmp_fit_layer *rows[MAX_SLOPE_LAYERS];
    size_t count = slope_layers(fit, rows), slopes = 0;
    fit->C = fit->theory_C;
    if (count < LEAST_SLOPE_LAYERS) {
        return GRADCMP_OK;
    }
    struct gcmp_sample *samples =
        gcmp_arena_alloc(&fitting->scratch, count * (count - 1) / 2, sizeof *samples);
    if (samples == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) { /* j is deeper */
            double growth = log(rows[j]->median / rows[i]->median);
            double steps = (double)(rows[i]->layer - rows[j]->layer);
            samples[slopes++] = (struct gcmp_sample){growth / steps, 1.0};
        }
    }
    double slope = gcmp_median(samples, slopes, log(fit->theory_C));
    fit->C = fmin(fmax(exp(slope), 1.0), fit->theory_C);
    return GRADCMP_OK;
}

/* The pair's largest noise with the fit's growth taken out. */
static double envelope_of(const struct fitting *fitting, size_t index) {
    const struct gradcmp_pair_report *pair = &fitting->input->pairs[index];
    double most = 0.0;
    for (size_t p = 0; p < pair->parameter_count; p++) {
        double depth = depth_of(fitting->fit, pair->parameters[p].layer);
        most = fmax(most, gcmp_fit_noise(pair, p) / pow(fitting->fit->C, depth));
    }
    return most;
}

/* Where k0 cut k off: the smallest C that still gives what was wanted at every depth, up to the
 * theory. */
static void raise_growth(struct gradcmp_fit *fit, double wanted_k) {
    double growth = fit->C;
    for (size_t i = 0; i < fit->layer_row_count; i++) {
        double depth = depth_of(fit, fit->layers[i].layer);
        double wanted =
            fmin(wanted_k * pow(fit->C, depth), gcmp_fit_theory_eps(fit, fit->layers[i].layer));
        if (depth > 0.0) {
            growth = fmax(growth, pow(wanted / fit->k, 1.0 / depth));
        }
    }
    fit->C = fmin(growth, fit->theory_C);
}

static void fit_factor(struct fitting *fitting) {
    struct gradcmp_fit *fit = fitting->fit;
    double first = 0.0, second = 0.0;
    size_t counting = 0;
    for (size_t i = 0; i < fit->pair_count; i++) {
        if (fit->pairs[i].standing == GRADCMP_FIT_COUNTS) {
            double envelope = envelope_of(fitting, i);
            second = fmax(second, fmin(first, envelope));
            first = fmax(first, envelope);
            counting++;
        }
    }
    fit->is_tightened = counting > 0;
    fit->margin = NAN;
    if (!fit->is_tightened) {
        fit->k = fit->theory_k;
        fit->C = fit->theory_C;
        return;
    }
    fit->margin = LEAST_MARGIN + MARGIN_OF_ONE / (double)counting;
    if (second > 0.0) {
        fit->margin = fmax(fit->margin, first / second);
    }
    fit->k = fit->margin * first;
    if (fit->k > fit->theory_k) {
        double wanted = fit->k;
        fit->k = fit->theory_k;
        raise_growth(fit, wanted);
    }
}

/* Pairs beyond the theory's bound were taken: no looser than they demand. */
static void loosen(struct fitting *fitting) {
    struct gradcmp_fit *fit = fitting->fit;
    double most = 0.0;
    for (size_t i = 0; i < fit->pair_count; i++) {
        fit->is_looser = fit->is_looser || fit->pairs[i].is_loose;
    }
    if (!fit->is_looser) {
        return;
    }
    fit->C = fit->theory_C;
    for (size_t i = 0; i < fit->pair_count; i++) {
        most = fmax(most, envelope_of(fitting, i));
    }
    fit->margin = LEAST_MARGIN;
    fit->k = fmax(LEAST_MARGIN * most, fit->theory_k);
}

/* Root mean square of a parameter's baseline over that of its layer; 0 where it has none. */
static double share_of(const struct gradcmp_parameter_report *parameter, double layer_rms) {
    double rms = parameter->norm_a / sqrt((double)gcmp_finite_elems(parameter));
    return isfinite(rms / layer_rms) ? rms / layer_rms : 0.0;
}

/* The floor of parameter p: what was measured in any pair, with the margin. */
static double floor_of(const struct fitting *fitting, size_t p, double layer_rms) {
    const struct gradcmp_fit *fit = fitting->fit;
    double most = 0.0, share = share_of(&fitting->first->parameters[p], layer_rms);
    for (size_t i = 0; i < fitting->input->pair_count; i++) {
        double rel = fitting->input->pairs[i].parameters[p].rel;
        most = isfinite(rel) ? fmax(most, rel) : most;
    }
    double limit = gcmp_fit_theory_eps(fit, fitting->first->parameters[p].layer) * fit->eps;
    double margin = fit->is_tightened ? fit->margin : LEAST_MARGIN + MARGIN_OF_ONE;
    double allowed = most > limit ? LEAST_MARGIN * most : fmin(margin * most, limit);
    return allowed * share;
}

static enum gradcmp_status fit_floors(struct fitting *fitting, struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = fitting->first;
    struct gradcmp_fit *fit = fitting->fit;
    size_t count = pair->parameter_count;
    double *rms = gcmp_arena_alloc(&fitting->scratch, count, sizeof *rms);
    fit->floors = gcmp_arena_alloc(fitting->arena, count, sizeof *fit->floors);
    if (rms == NULL || fit->floors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_layer_rms(pair->parameters, count, rms, &fitting->scratch, error));
    for (size_t p = 0; p < count; p++) {
        double floor = floor_of(fitting, p, rms[p]);
        if (floor > 0.0) {
            fit->floors[fit->floor_count++] =
                (struct gradcmp_fit_floor){pair->parameters[p].name, floor};
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status fit_all(struct fitting *fitting, struct gradcmp_error *error) {
    size_t count = fitting->first->parameter_count;
    fitting->noise = gcmp_arena_alloc(&fitting->scratch, count, sizeof *fitting->noise);
    struct gcmp_sample *samples = gcmp_arena_alloc(&fitting->scratch, count, sizeof *samples);
    if (fitting->noise == NULL || samples == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    gather_noise(fitting);
    if (!list_layers(fitting)) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < fitting->fit->layer_row_count; i++) {
        struct gradcmp_fit_layer *row = &fitting->fit->layers[i];
        *row = (struct gradcmp_fit_layer){.layer = row->layer};
        fill_layer(fitting, row, samples);
    }
    GCMP_TRY(fit_growth(fitting, error));
    fit_factor(fitting);
    loosen(fitting);
    return fit_floors(fitting, error);
}

bool gcmp_fit_is_void(const struct gradcmp_fit *fit) {
    bool differs = false;
    for (size_t i = 0; i < fit->pair_count; i++) {
        if (fit->pairs[i].standing >= GRADCMP_FIT_BAD) {
            return true;
        }
        differs = differs || fit->pairs[i].standing != GRADCMP_FIT_IDENTICAL;
    }
    return !differs;
}

enum gradcmp_status gcmp_fit_measure(const struct gcmp_fit_input *input, struct gcmp_arena *arena,
                                     struct gradcmp_fit *fit, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_fit_sort_pairs(input, arena, fit, error));
    if (gcmp_fit_is_void(fit)) {
        return GRADCMP_OK;
    }
    struct fitting fitting = {.input = input,
                              .fit = fit,
                              .first = &input->pairs[0],
                              .arena = arena,
                              .scratch = GCMP_ARENA_INIT};
    enum gradcmp_status status = fit_all(&fitting, error);
    gcmp_arena_free(&fitting.scratch);
    return status;
}

void gcmp_fit_apply(const struct gradcmp_fit *fit, struct gradcmp_bound *bound) {
    bound->k = fit->k;
    bound->C = fit->C;
    bound->fit = fit;
}

static int compare_floors(const void *key, const void *entry) {
    return strcmp(key, ((const struct gradcmp_fit_floor *)entry)->name);
}

void gcmp_fit_floors(const struct gradcmp_fit *fit,
                     const struct gradcmp_parameter_report *parameters, size_t count,
                     const double *layer_rms, double *floors) {
    for (size_t p = 0; p < count; p++) {
        const struct gradcmp_fit_floor *found =
            fit->floor_count == 0 ? NULL
                                  : bsearch(parameters[p].name, fit->floors, fit->floor_count,
                                            sizeof *fit->floors, compare_floors);
        double share = share_of(&parameters[p], layer_rms[p]);
        floors[p] = found != NULL && share > 0.0 ? found->floor / share : 0.0;
    }
}
