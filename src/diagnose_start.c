/* Undoes the first step of both sides, on samples of their weights. */
#include "diagnose_start.h"

#include <math.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "diagnose_probes.h"
#include "unshard/unshard.h"

enum {
    SAMPLE_ELEMS = 512,    /* of a parameter: enough to tell a hundredth from a tenth */
    MOST_PARAMETERS = 256, /* looked at, evenly over those that fail */
    BATCH = 16             /* read in one run */
};

/* What is stored of one side. */
struct side {
    struct gradcmp_checkpoint *checkpoint;
    const struct gradcmp_model *weights, *exp_avg, *exp_avg_sq; /* moments: both, or both NULL */
    struct gcmp_adam adam;
};

/* Samples of one parameter, as they are read. */
struct sample {
    const struct gradcmp_parameter *parameters[2]; /* weights */
    double *values[2][3];                          /* weight, exp_avg, exp_avg_sq; NULL: none */
    size_t count;
};

static double setting(const struct gradcmp_catalogue *catalogue, const char *first,
                      const char *second) {
    const char *const names[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        const struct gradcmp_setting *found = gcmp_catalogue_setting(catalogue, names[i]);
        if (found != NULL && found->kind == GRADCMP_SETTING_FLOAT) {
            return found->number;
        }
        if (found != NULL && found->kind == GRADCMP_SETTING_INT) {
            return (double)found->integer;
        }
    }
    return (double)NAN;
}

static double or_else(double value, double otherwise) {
    return isnan(value) ? otherwise : value;
}

/* False where the side is not known to be at step 1, or its learning rate is not known. */
static bool learn_adam(const struct gradcmp_catalogue *catalogue, struct gcmp_adam *adam) {
    double step = setting(catalogue, "optimizer.step", "step");
    if (isnan(step) && catalogue->iteration >= 0) {
        step = (double)catalogue->iteration;
    }
    *adam = (struct gcmp_adam){
        .lr = setting(catalogue, "optimizer.lr", "lr"),
        .weight_decay = or_else(setting(catalogue, "optimizer.weight_decay", "weight_decay"), 0.0),
        .eps = or_else(setting(catalogue, "optimizer.eps", "adam_eps"), 1e-8),
        .beta1 = or_else(setting(catalogue, "adam_beta1", "adam_beta1"), 0.0),
        .beta2 = or_else(setting(catalogue, "adam_beta2", "adam_beta2"), 0.0)};
    return step == 1.0 && adam->lr > 0.0 && adam->lr < 1.0 && adam->beta1 >= 0.0 &&
           adam->beta1 < 1.0 && adam->beta2 >= 0.0 && adam->beta2 < 1.0 &&
           adam->weight_decay >= 0.0 && adam->lr * adam->weight_decay < 0.5;
}

/* A state's parameters; NULL where there are none, or where they cannot be laid out. */
static enum gradcmp_status find_state(struct gradcmp_checkpoint *checkpoint, const char *state,
                                      const struct gradcmp_model **out,
                                      struct gradcmp_error *error) {
    struct gradcmp_error unreadable = {0};
    *out = NULL;
    if (!gcmp_checkpoint_has_state(checkpoint, state)) {
        return GRADCMP_OK;
    }
    if (gcmp_checkpoint_model(checkpoint, state, out, &unreadable) != GRADCMP_OK) {
        *out = NULL;
        if (unreadable.code == GRADCMP_ERROR_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status open_side(struct side *side, const char *weights,
                                     struct gradcmp_error *error) {
    GCMP_TRY(find_state(side->checkpoint, weights, &side->weights, error));
    GCMP_TRY(find_state(side->checkpoint, "exp_avg", &side->exp_avg, error));
    GCMP_TRY(find_state(side->checkpoint, "exp_avg_sq", &side->exp_avg_sq, error));
    if (side->exp_avg == NULL || side->exp_avg_sq == NULL) {
        side->exp_avg = side->exp_avg_sq = NULL;
    }
    return GRADCMP_OK;
}

/* The work on one pair. */
struct look {
    struct gcmp_comparison *comparison;
    size_t pair;
    struct side sides[2];
    struct sample samples[BATCH];
    size_t count;
    struct gcmp_start_finding *out;
    struct gcmp_start_count total; /* of what differs */
    struct gcmp_arena scratch;     /* of the batch */
    struct gcmp_probes probes;
};

/* The same lines of `like` and of another state, to be read into *values; *values is NULL where the
 * state does not have them. */
static enum gradcmp_status plan_read(struct look *look, size_t side,
                                     const struct gradcmp_model *model,
                                     const struct gradcmp_parameter *like, double **values,
                                     struct gradcmp_error *error) {
    const struct gradcmp_parameter *found =
        model == NULL ? NULL : gcmp_model_find(model, like->name);
    *values = NULL;
    if (found == NULL || found->ndim != like->ndim ||
        memcmp(found->shape, like->shape, like->ndim * sizeof *like->shape) != 0 ||
        !gcmp_dtype_is_float((enum gradcmp_dtype)found->dtype)) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *lines;
    GCMP_TRY(gcmp_probes_spot(found, SAMPLE_ELEMS, &look->scratch, &lines, error));
    *values = gcmp_arena_alloc(&look->scratch, lines->elem_count + 1, sizeof **values);
    if (*values == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_side read = {.catalogue = &look->sides[side].checkpoint->catalogue,
                             .parameter = lines,
                             .owner = side == 0 ? 0 : (uint32_t)look->pair + 1};
    return gcmp_probes_read(&look->probes, read, 0, *values, error);
}

/* True where a parameter can be sampled: it has axes and elements. */
static bool is_sampled(const struct gradcmp_parameter *a, const struct gradcmp_parameter *b) {
    return a != NULL && b != NULL && a->ndim > 0 && a->ndim == b->ndim && a->elem_count > 0 &&
           memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

static enum gradcmp_status plan_sample(struct look *look, struct sample *sample,
                                       struct gradcmp_error *error) {
    for (size_t s = 0; s < 2; s++) {
        const struct side *side = &look->sides[s];
        const struct gradcmp_model *models[] = {side->weights, side->exp_avg, side->exp_avg_sq};
        for (size_t m = 0; m < 3; m++) {
            size_t before = look->probes.count;
            GCMP_TRY(
                plan_read(look, s, models[m], sample->parameters[s], &sample->values[s][m], error));
            if (m == 0 && look->probes.count > before) {
                sample->count = (size_t)look->probes.items[before].values_left;
            }
        }
    }
    return GRADCMP_OK;
}

static double coarser_eps(const struct sample *sample) {
    double a = gcmp_dtype_eps((enum gradcmp_dtype)sample->parameters[0]->dtype);
    return fmax(a, gcmp_dtype_eps((enum gradcmp_dtype)sample->parameters[1]->dtype));
}

static void count_sample(struct look *look, const struct sample *sample) {
    struct gcmp_stepped stepped[2];
    for (size_t s = 0; s < 2; s++) {
        bool moments = sample->values[s][1] != NULL && sample->values[s][2] != NULL;
        stepped[s] =
            (struct gcmp_stepped){sample->values[s][0], moments ? sample->values[s][1] : NULL,
                                  moments ? sample->values[s][2] : NULL, look->sides[s].adam};
    }
    if (stepped[0].weight == NULL || stepped[1].weight == NULL) {
        return;
    }
    struct gcmp_start_count count = {0};
    gcmp_start_compare(&stepped[0], &stepped[1], sample->count, coarser_eps(sample), &count);
    enum gcmp_starts starts = gcmp_start_conclude(&count);
    look->out->looked_at += starts != GCMP_STARTS_UNKNOWN;
    if (starts == GCMP_STARTS_DIFFER) {
        look->out->differing++;
        look->total.d2 += count.d2;
        look->total.a2 += count.a2;
    }
}

static enum gradcmp_status run_batch(struct look *look, struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = &look->comparison->report->pairs[look->pair];
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < look->count; i++) {
        GCMP_TRY_OUT(plan_sample(look, &look->samples[i], error));
    }
    GCMP_TRY_OUT(gcmp_probes_run(&look->probes, look->comparison, error));
    for (size_t i = 0; i < look->count && gcmp_pair_is_open(pair); i++) {
        count_sample(look, &look->samples[i]);
    }
out:
    look->count = 0;
    gcmp_probes_free(&look->probes);
    gcmp_arena_free(&look->scratch);
    look->scratch = (struct gcmp_arena)GCMP_ARENA_INIT;
    return status;
}

/* Take a parameter up where both sides have its weights. */
static void add_sample(struct look *look, size_t index) {
    const struct gcmp_paired *paired = &look->comparison->pairings[look->pair].sides[index];
    if (paired->a == NULL || paired->b == NULL) {
        return;
    }
    const struct gradcmp_parameter *a = gcmp_model_find(look->sides[0].weights, paired->a->name),
                                   *b = gcmp_model_find(look->sides[1].weights, paired->b->name);
    if (is_sampled(a, b)) {
        look->samples[look->count++] = (struct sample){.parameters = {a, b}};
    }
}

/* Weights that started apart give gradients that differ: what passes tells nothing. */
static bool is_open(const struct gradcmp_parameter_report *report) {
    return report->verdict == GRADCMP_VERDICT_FAIL && report->cause_count == 0;
}

static enum gradcmp_status look_at_all(struct look *look, struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = &look->comparison->report->pairs[look->pair];
    size_t failing = 0, passed = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        failing += is_open(&pair->parameters[i]);
    }
    size_t step = failing / MOST_PARAMETERS + 1;
    for (size_t i = 0; i < pair->parameter_count && gcmp_pair_is_open(pair); i++) {
        if (is_open(&pair->parameters[i]) && passed++ % step == 0) {
            add_sample(look, i);
        }
        if (look->count == BATCH) {
            GCMP_TRY(run_batch(look, error));
        }
    }
    if (look->count > 0 && gcmp_pair_is_open(pair)) {
        GCMP_TRY(run_batch(look, error));
    }
    struct gcmp_start_finding *out = look->out;
    out->rel = look->total.a2 > 0.0 ? sqrt(look->total.d2 / look->total.a2) : (double)NAN;
    out->starts = out->differing > 0   ? GCMP_STARTS_DIFFER
                  : out->looked_at > 0 ? GCMP_STARTS_AGREE
                                       : GCMP_STARTS_UNKNOWN;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_diagnose_start(struct gcmp_comparison *comparison, size_t pair,
                                        struct gcmp_start_finding *out,
                                        struct gradcmp_error *error) {
    static const char *const states[] = {"fp32_param", "param"};
    struct look look = {.comparison = comparison,
                        .pair = pair,
                        .sides = {{.checkpoint = comparison->baseline.checkpoint},
                                  {.checkpoint = comparison->candidates[pair].checkpoint}},
                        .out = out,
                        .scratch = GCMP_ARENA_INIT};
    *out = (struct gcmp_start_finding){.starts = GCMP_STARTS_UNKNOWN, .rel = NAN};
    for (size_t s = 0; s < 2; s++) {
        if (!learn_adam(&look.sides[s].checkpoint->catalogue, &look.sides[s].adam)) {
            return GRADCMP_OK;
        }
    }
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        GCMP_TRY(open_side(&look.sides[0], states[i], error));
        GCMP_TRY(open_side(&look.sides[1], states[i], error));
        if (look.sides[0].weights != NULL && look.sides[1].weights != NULL) {
            return look_at_all(&look, error);
        }
    }
    return GRADCMP_OK;
}
