/* What several reports derive from a result. */
#include "report/facts.h"

#include "base/layer_word.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"

enum gradcmp_outcome gcmp_overall_outcome(const struct gradcmp_report *report) {
    /* The values of the enum happen to rise with the trouble that they mean. */
    enum gradcmp_outcome worst =
        report->pair_count == 0 ? GRADCMP_OUTCOME_VACUOUS : GRADCMP_OUTCOME_CONSISTENT;
    for (size_t i = 0; i < report->pair_count; i++) {
        if (report->pairs[i].outcome > worst) {
            worst = report->pairs[i].outcome;
        }
    }
    return report->unfinished > 0 ? GRADCMP_OUTCOME_ERROR : worst;
}

int gcmp_outcome_status(enum gradcmp_outcome outcome) {
    return outcome == GRADCMP_OUTCOME_CONSISTENT     ? 0
           : outcome == GRADCMP_OUTCOME_INCONSISTENT ? 1
                                                     : 2;
}

bool gcmp_verdict_is_bad(enum gradcmp_verdict verdict) {
    return verdict != GRADCMP_VERDICT_PASS && verdict != GRADCMP_VERDICT_UNJUDGED;
}

bool gcmp_verdict_makes_onset(enum gradcmp_verdict verdict) {
    return verdict == GRADCMP_VERDICT_FAIL || verdict == GRADCMP_VERDICT_SCALE ||
           verdict == GRADCMP_VERDICT_NONFINITE || verdict == GRADCMP_VERDICT_CONFLICT;
}

bool gcmp_names_count_layers(const struct gradcmp_pair_report *pair) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        bool is_inner = parameter->layer > 0 && (uint64_t)parameter->layer <= pair->bound.layers;
        struct gcmp_layer_index found;
        if (is_inner && gcmp_find_layer_index(parameter->name, &found) &&
            found.index != parameter->layer - 1) {
            return false;
        }
    }
    return true;
}

double gcmp_judged_rel(const struct gradcmp_parameter_report *parameter) {
    return isnan(parameter->rel_common) ? parameter->rel : parameter->rel_common;
}

size_t gcmp_bad_count(const struct gradcmp_pair_report *pair) {
    size_t bad = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        bad += gcmp_verdict_is_bad(pair->parameters[i].verdict);
    }
    return bad;
}

unsigned gcmp_compared_shape(const struct gradcmp_parameter_report *parameter, uint64_t *shape) {
    bool from_a = parameter->in_a;
    unsigned ndim = from_a ? parameter->ndim_a : parameter->ndim_b;
    const uint64_t *sizes = from_a ? parameter->shape_a : parameter->shape_b;
    ndim = ndim > GRADCMP_MAX_NDIM ? GRADCMP_MAX_NDIM : ndim;
    for (unsigned d = 0; d < ndim; d++) {
        shape[d] = sizes[d];
    }
    if (ndim > 0 && parameter->compared_shape0 != 0) {
        shape[0] = parameter->compared_shape0;
    }
    return ndim;
}

void gcmp_unravel(uint64_t elem, unsigned ndim, const uint64_t *shape, uint64_t *index) {
    for (unsigned d = ndim; d-- > 0;) {
        index[d] = shape[d] == 0 ? 0 : elem % shape[d];
        elem = shape[d] == 0 ? 0 : elem / shape[d];
    }
}

bool gcmp_is_compared(const struct gradcmp_parameter_report *parameter) {
    return parameter->in_a && parameter->in_b && parameter->shapes_agree;
}

double gcmp_max_abs(const struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_tally *tally = &parameter->tally;
    if (!gcmp_is_compared(parameter) || tally->elems <= tally->nonfinite_any) {
        return NAN;
    }
    return tally->max_d * exp2(-gradcmp_difference_log2(parameter));
}

uint64_t gcmp_shape_elems(unsigned ndim, const uint64_t *shape) {
    uint64_t elems;
    return gcmp_product(shape, ndim, &elems) ? elems : UINT64_MAX;
}

static int badness_rank(enum gradcmp_verdict verdict) {
    static const enum gradcmp_verdict order[] = {
        GRADCMP_VERDICT_NONFINITE, GRADCMP_VERDICT_CONFLICT, GRADCMP_VERDICT_FAIL,
        GRADCMP_VERDICT_SCALE,     GRADCMP_VERDICT_SHAPE,    GRADCMP_VERDICT_MISSING,
        GRADCMP_VERDICT_EXTRA,     GRADCMP_VERDICT_PASS,     GRADCMP_VERDICT_UNJUDGED};
    int count = (int)(sizeof order / sizeof order[0]);
    int rank = 0;
    while (rank < count && order[rank] != verdict) {
        rank++;
    }
    return rank;
}

/* NaN sorts behind every number. */
static int compare_descending(double a, double b) {
    double left = isnan(a) ? -1.0 : a, right = isnan(b) ? -1.0 : b;
    return left > right ? -1 : left < right;
}

int gcmp_compare_badness(const struct gradcmp_parameter_report *a,
                         const struct gradcmp_parameter_report *b) {
    int rank_a = badness_rank(a->verdict), rank_b = badness_rank(b->verdict);
    if (rank_a != rank_b) {
        return rank_a < rank_b ? -1 : 1;
    }
    int by_ratio = compare_descending(a->ratio, b->ratio);
    if (by_ratio != 0) {
        return by_ratio;
    }
    if (a->layer != b->layer) {
        return a->layer > b->layer ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

struct option_list {
    struct gcmp_option_value *values;
    size_t count;
};

static struct gcmp_option_value *add_value(struct option_list *list, const char *flag,
                                           const char *key, enum gcmp_option_kind kind) {
    assert(list->count < GCMP_MAX_OPTION_VALUES);
    struct gcmp_option_value *value = &list->values[list->count++];
    *value = (struct gcmp_option_value){.flag = flag, .key = key, .kind = kind};
    return value;
}

static void add_text(struct option_list *list, const char *flag, const char *key,
                     const char *text) {
    if (text != NULL) {
        add_value(list, flag, key, GCMP_OPTION_TEXT)->text = text;
    }
}

static void add_real(struct option_list *list, const char *flag, const char *key, double real) {
    if (real != 0.0) {
        add_value(list, flag, key, GCMP_OPTION_REAL)->real = real;
    }
}

static void add_count(struct option_list *list, const char *flag, const char *key, bool is_listed,
                      uint64_t count) {
    if (is_listed) {
        add_value(list, flag, key, GCMP_OPTION_COUNT)->count = count;
    }
}

static void add_switch(struct option_list *list, const char *flag, const char *key, bool is_listed,
                       bool value) {
    if (is_listed) {
        add_value(list, flag, key, GCMP_OPTION_SWITCH)->count = value;
    }
}

size_t gcmp_options_listed(const struct gradcmp_options *options,
                           struct gcmp_option_value out[GCMP_MAX_OPTION_VALUES]) {
    struct option_list list = {out, 0};
    add_text(&list, "--state", "state", options->state);
    add_text(&list, "--match", "match", options->match);
    add_text(&list, "--exclude", "exclude", options->exclude);
    add_text(&list, "--dtype", "dtype",
             options->dtype == GRADCMP_DTYPE_NONE ? NULL : gradcmp_dtype_name(options->dtype));
    add_real(&list, "--k", "k", options->k);
    add_real(&list, "--C", "C", options->C);
    add_real(&list, "--max-bound", "max_bound", options->max_bound);
    add_text(&list, "--fit", "fit", options->fit);
    add_text(&list, "--compat", "compat", options->compat_megatron ? "megatron" : NULL);
    add_count(&list, "--vocab", "vocab", options->vocab != 0, options->vocab);
    add_count(&list, "--layers", "layers", options->layers != 0, options->layers);
    add_count(&list, "--iteration", "iteration", options->iteration >= 0,
              (uint64_t)options->iteration);
    add_switch(&list, "--strict", "strict", options->strict != 0, true);
    add_switch(&list, options->verify > 0 ? "--verify" : "--no-verify", "verify",
               options->verify != 0, options->verify > 0);
    add_switch(&list, "--allow-same", "allow_same", options->allow_same != 0, true);
    add_switch(&list, "--allow-iterations", "allow_iterations", options->allow_iterations != 0,
               true);
    add_text(&list, "--map", "map", options->map);
    add_text(&list, "--previous-a", "previous_a", options->previous_a);
    add_text(&list, "--previous-b", "previous_b", options->previous_b);
    add_switch(&list, "--allow-loose", "allow_loose", options->allow_loose != 0, true);
    add_switch(&list, "--allow-routing", "allow_routing", options->allow_routing != 0, true);
    return list.count;
}
