/* Layers of a pair. */
#include "bounds/layer.h"

#include <math.h>
#include <stdlib.h>

#include "bounds/figures.h"

/* A parameter in the order of layers. */
struct place {
    int64_t layer;
    size_t index;
};

static int compare_places(const void *left, const void *right) {
    int64_t a = ((const struct place *)left)->layer, b = ((const struct place *)right)->layer;
    return (a < b) - (a > b);
}

/* The parameters from the loss down; NULL without memory. Layers are numbers from a file: they are
 * sorted, not used as indices. */
static struct place *sort_places(const struct gradcmp_parameter_report *parameters, size_t count,
                                 struct gcmp_arena *scratch) {
    struct place *places = gcmp_arena_alloc(scratch, count, sizeof *places);
    if (places != NULL) {
        for (size_t i = 0; i < count; i++) {
            places[i] = (struct place){parameters[i].layer, i};
        }
        qsort(places, count, sizeof *places, compare_places);
    }
    return places;
}

/* The end of the run of one layer that begins at `first`. */
static size_t layer_end(const struct place *places, size_t count, size_t first) {
    size_t end = first + 1;
    while (end < count && places[end].layer == places[first].layer) {
        end++;
    }
    return end;
}

static double rms_of(const struct gradcmp_parameter_report *parameters, const struct place *places,
                     size_t count) {
    struct gcmp_square_sum total = {0};
    double elems = 0.0;
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_parameter_report *parameter = &parameters[places[i].index];
        if (gcmp_is_comparable(parameter)) {
            gcmp_square_add(&total, parameter->tally.a2, parameter->scale_a_log2);
            elems += (double)gcmp_finite_elems(parameter);
        }
    }
    return gcmp_square_root(&total) / sqrt(elems);
}

enum gradcmp_status gcmp_layer_rms(const struct gradcmp_parameter_report *parameters, size_t count,
                                   double *rms, struct gcmp_arena *scratch,
                                   struct gradcmp_error *error) {
    struct place *places = sort_places(parameters, count, scratch);
    if (places == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t first = 0, end; first < count; first = end) {
        end = layer_end(places, count, first);
        double value = rms_of(parameters, places + first, end - first);
        for (size_t i = first; i < end; i++) {
            rms[places[i].index] = value;
        }
    }
    return GRADCMP_OK;
}

static bool is_at_fault(enum gradcmp_verdict verdict) {
    return verdict == GRADCMP_VERDICT_FAIL || verdict == GRADCMP_VERDICT_SCALE ||
           verdict == GRADCMP_VERDICT_NONFINITE || verdict == GRADCMP_VERDICT_CONFLICT;
}

int64_t gcmp_layer_onset(const struct gradcmp_parameter_report *parameters, size_t count) {
    int64_t onset = -1;
    for (size_t i = 0; i < count; i++) {
        if (is_at_fault(parameters[i].verdict) && parameters[i].layer > onset) {
            onset = parameters[i].layer;
        }
    }
    return onset;
}

/* A parameter's error, 1 and less being inside. */
static double severity_of(const struct gradcmp_parameter_report *parameter, double factor) {
    switch (parameter->verdict) {
    case GRADCMP_VERDICT_NONFINITE:
    case GRADCMP_VERDICT_CONFLICT:
        return INFINITY;
    case GRADCMP_VERDICT_FAIL: /* whatever the bound, when inside it */
        return parameter->ratio > 1.0 ? parameter->ratio : (double)INFINITY;
    case GRADCMP_VERDICT_SCALE:
        return fmax(parameter->ratio,
                    fabs(parameter->alpha / factor - 1.0) / parameter->alpha_tolerance);
    default:
        return 1.0;
    }
}

static double layer_severity(const struct gradcmp_pair_report *pair, const struct place *places,
                             size_t count) {
    double factor = isnan(pair->common_factor) ? 1.0 : pair->common_factor, severity = 1.0;
    for (size_t i = 0; i < count; i++) {
        severity = fmax(severity, severity_of(&pair->parameters[places[i].index], factor));
    }
    return severity;
}

enum gradcmp_status gcmp_layer_jump(const struct gradcmp_pair_report *pair, int64_t *layer,
                                    struct gcmp_arena *scratch, struct gradcmp_error *error) {
    size_t count = pair->parameter_count;
    struct place *places = sort_places(pair->parameters, count, scratch);
    if (places == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *layer = -1;
    double above = 1.0, most = 1.0;
    for (size_t first = 0, end; first < count; first = end) {
        end = layer_end(places, count, first);
        double severity = layer_severity(pair, places + first, end - first);
        if (severity / above > most) { /* false for inf / inf */
            most = severity / above;
            *layer = places[first].layer;
        }
        above = severity;
    }
    return GRADCMP_OK;
}
