/* How the failing parameters of a pair lie. */
#include "bounds/onset.h"

#include <math.h>
#include <stdlib.h>

#include "bounds/cause.h"
#include "bounds/figures.h"
#include "bounds/median.h"

enum {
    FEWEST_LAYERS = 3,
    MOST_LAYERS = 512 /* of more, the next to the onset are fitted: slopes are between all pairs */
};

static bool is_failing(const struct gradcmp_parameter_report *parameter) {
    return gcmp_cause_is_wanted(parameter->verdict);
}

/* One layer's parameters. */
struct layer {
    int64_t layer;
    bool failing;
    struct gcmp_square_sum rest, norm; /* of those that have figures */
};

static int compare_layers(const void *left, const void *right) {
    int64_t a = ((const struct layer *)left)->layer, b = ((const struct layer *)right)->layer;
    return (a < b) - (a > b);
}

static struct layer layer_of(const struct gradcmp_pair_report *pair,
                             const struct gradcmp_parameter_report *parameter) {
    double factor = isnan(pair->common_factor) ? 1.0 : pair->common_factor;
    struct layer layer = {.layer = parameter->layer, .failing = is_failing(parameter)};
    if (gcmp_has_alpha(parameter)) {
        double rel = gcmp_rest_of(parameter, factor).rel;
        gcmp_square_add(&layer.rest, rel * rel * parameter->tally.a2, parameter->scale_a_log2);
        gcmp_square_add(&layer.norm, parameter->tally.a2, parameter->scale_a_log2);
    }
    return layer;
}

/* Join what is of one layer; sorted from the loss down. Returns how many layers there are. */
static size_t join_layers(struct layer *layers, size_t count) {
    size_t kept = 0;
    qsort(layers, count, sizeof *layers, compare_layers);
    for (size_t i = 0; i < count; i++) {
        struct layer *last = kept == 0 ? NULL : &layers[kept - 1];
        if (last == NULL || last->layer != layers[i].layer) {
            layers[kept++] = layers[i];
            continue;
        }
        last->failing = last->failing || layers[i].failing;
        if (layers[i].rest.started) {
            gcmp_square_add(&last->rest, layers[i].rest.sum, layers[i].rest.scale_log2);
            gcmp_square_add(&last->norm, layers[i].norm.sum, layers[i].norm.scale_log2);
        }
    }
    return kept;
}

/* The logarithms of the errors of failing layers from the onset down; returns how many, 0 where one
 * has none. */
static size_t collect_errors(const struct gradcmp_pair_report *pair, const struct layer *layers,
                             size_t count, struct gcmp_sample *errors) {
    size_t found = 0;
    for (size_t i = 0; i < count && found < MOST_LAYERS; i++) {
        if (layers[i].layer > pair->onset_layer || layers[i].layer <= 0 || !layers[i].failing ||
            !layers[i].norm.started) {
            continue;
        }
        double rel = gcmp_square_root(&layers[i].rest) / gcmp_square_root(&layers[i].norm);
        if (!isfinite(rel) || !(rel > 0.0)) {
            return 0;
        }
        errors[found++] = (struct gcmp_sample){log(rel), (double)layers[i].layer};
    }
    return found;
}

static enum gradcmp_status fit_growth(struct gradcmp_pair_report *pair, const struct layer *layers,
                                      size_t count, struct gcmp_arena *scratch,
                                      struct gradcmp_error *error) {
    struct gcmp_sample *errors = gcmp_arena_alloc(scratch, count + 1, sizeof *errors);
    if (errors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t found = collect_errors(pair, layers, count, errors), used = 0;
    struct gcmp_sample *slopes =
        gcmp_arena_alloc(scratch, found * (found + 1) / 2 + 1, sizeof *slopes);
    if (slopes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < found; i++) {
        for (size_t j = i + 1; j < found; j++) {
            double slope =
                (errors[j].value - errors[i].value) / (errors[i].weight - errors[j].weight);
            slopes[used++] = (struct gcmp_sample){slope, 1.0};
        }
    }
    if (found >= FEWEST_LAYERS) {
        pair->spread.growth = exp(gcmp_median(slopes, used, 0.0));
        pair->spread.growth_layers = found;
    }
    return GRADCMP_OK;
}

/* True where something fails in a layer of the sorted list. */
static bool fails_at(const struct layer *layers, size_t count, int64_t layer) {
    struct layer key = {.layer = layer};
    const struct layer *found = bsearch(&key, layers, count, sizeof *layers, compare_layers);
    return found != NULL && found->failing;
}

static void describe_class(struct gradcmp_pair_report *pair, const enum gradcmp_class *classes,
                           const struct layer *layers, size_t count) {
    enum gradcmp_class only = GRADCMP_CLASS_OTHER;
    bool one = true, started = false;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (is_failing(&pair->parameters[i])) {
            one = one && (!started || classes[i] == only);
            only = classes[i];
            started = true;
        }
    }
    size_t others = 0, failing = 0, all = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (fails_at(layers, count, parameter->layer)) {
            failing += is_failing(parameter);
            all += classes[i] == only;
            others += classes[i] != only && parameter->verdict == GRADCMP_VERDICT_PASS;
        }
    }
    if (started && one && only != GRADCMP_CLASS_OTHER && others > 0) {
        pair->spread.only_class = only;
        pair->spread.class_failing = failing;
        pair->spread.class_all = all;
    }
}

static void describe_neighbours(struct gradcmp_pair_report *pair) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->layer == pair->onset_layer) {
            pair->spread.onset_failing += is_failing(parameter);
            pair->spread.onset_passing += parameter->verdict == GRADCMP_VERDICT_PASS;
        }
    }
}

enum gradcmp_status gcmp_onset_describe(struct gradcmp_pair_report *pair,
                                        const enum gradcmp_class *classes,
                                        struct gcmp_arena *scratch, struct gradcmp_error *error) {
    pair->spread = (struct gradcmp_spread_facts){.growth = NAN};
    struct layer *layers = gcmp_arena_alloc(scratch, pair->parameter_count + 1, sizeof *layers);
    if (layers == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        layers[i] = layer_of(pair, &pair->parameters[i]);
    }
    size_t count = join_layers(layers, pair->parameter_count);
    pair->spread.layers = count;
    for (size_t i = 0; i < count; i++) {
        pair->spread.layers_failing += layers[i].failing;
    }
    describe_neighbours(pair);
    describe_class(pair, classes, layers, count);
    return pair->onset_layer < 0 ? GRADCMP_OK : fit_growth(pair, layers, count, scratch, error);
}
