/* A report filled by hand: a model of eight layers, whose parameters pass until a test spoils some.
 * Figures are invented, but agree with each other as those of a real report do. */
#ifndef TEST_SAMPLE_H
#define TEST_SAMPLE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gradcmp/sys/format.h"
#include "gradcmp/sys/result.h"

enum { SAMPLE_LAYERS = 8, SAMPLE_MAX_PARAMETERS = 64, SAMPLE_MAX_PAIRS = 4 };

struct sample_pair {
    struct gradcmp_catalogue catalogue;
    struct gradcmp_setting settings[12];
    struct gradcmp_parameter_report parameters[SAMPLE_MAX_PARAMETERS];
    char names[SAMPLE_MAX_PARAMETERS][96];
    const char *notes[8];
};

struct sample {
    struct gradcmp_report report;
    struct gradcmp_catalogue baseline;
    struct gradcmp_setting settings[12];
    struct gradcmp_pair_report pairs[SAMPLE_MAX_PAIRS];
    struct sample_pair stores[SAMPLE_MAX_PAIRS];
};

static const struct gradcmp_format sample_format = {.name = "torch_dist"};
static const uint64_t sample_matrix[] = {32, 64}, sample_turned[] = {64, 32},
                      sample_vector[] = {64}, sample_embedding[] = {72, 32};

static inline void sample_settings(struct gradcmp_catalogue *catalogue,
                                   struct gradcmp_setting *settings) {
    const struct gradcmp_setting list[] = {
        {.name = "adam_beta1", .kind = GRADCMP_SETTING_FLOAT, .number = 0.0},
        {.name = "adam_beta2", .kind = GRADCMP_SETTING_FLOAT, .number = 0.95},
        {.name = "clip_grad", .kind = GRADCMP_SETTING_FLOAT, .number = 1.0},
        {.name = "hidden_dropout", .kind = GRADCMP_SETTING_FLOAT, .number = 0.0},
        {.name = "attention_dropout", .kind = GRADCMP_SETTING_FLOAT, .number = 0.0},
        {.name = "seed", .kind = GRADCMP_SETTING_INT, .integer = 1234},
        {.name = "global_batch_size", .kind = GRADCMP_SETTING_INT, .integer = 8},
        {.name = "consumed_train_samples", .kind = GRADCMP_SETTING_INT, .integer = 8},
        {.name = "bf16", .kind = GRADCMP_SETTING_BOOL, .integer = 1},
        {.name = "optimizer", .kind = GRADCMP_SETTING_TEXT, .text = "adam"},
    };
    memcpy(settings, list, sizeof list);
    catalogue->settings = settings;
    catalogue->setting_count = sizeof list / sizeof list[0];
}

static inline void sample_catalogue(struct gradcmp_catalogue *catalogue,
                                    struct gradcmp_setting *settings, uint32_t tp) {
    *catalogue = (struct gradcmp_catalogue){.format = &sample_format,
                                            .layout_name = "fully_sharded_model_space",
                                            .writer = "megatron-core",
                                            .parallel = {.tp = tp, .pp = 1, .dp = 1, .world = tp},
                                            .iteration = 1,
                                            .layers = SAMPLE_LAYERS,
                                            .vocab = 70,
                                            .padded_vocab = 72,
                                            .compute = GRADCMP_DTYPE_BFLOAT16};
    sample_settings(catalogue, settings);
}

static inline struct gradcmp_bound sample_bound(void) {
    return (struct gradcmp_bound){.k = 4.0,
                                  .C = 1.03,
                                  .eps = 0x1p-7,
                                  .cap = 0.25,
                                  .layers = SAMPLE_LAYERS,
                                  .dtype = GRADCMP_DTYPE_BFLOAT16,
                                  .dtype_source = GRADCMP_DTYPE_FROM_ARGS};
}

/* Give a parameter the figures of a relative error `rel` of multiples `alpha`. */
static inline void sample_figures(struct gradcmp_parameter_report *parameter, double rel,
                                  double alpha, enum gradcmp_verdict verdict) {
    double elems = (double)parameter->compared_elems, norm_a = sqrt(elems) * 0x1p-10;
    parameter->verdict = verdict;
    parameter->rel = rel;
    parameter->ratio = rel / parameter->bound;
    parameter->alpha = alpha;
    parameter->alpha_tolerance = 0x1p-6;
    parameter->rho = sqrt(fmax(0.0, rel * rel - (alpha - 1.0) * (alpha - 1.0)));
    parameter->cosine = alpha / sqrt(alpha * alpha + parameter->rho * parameter->rho);
    parameter->norm_a = norm_a;
    parameter->norm_b = norm_a * sqrt(alpha * alpha + parameter->rho * parameter->rho);
    parameter->tally.max_d = rel * 0x1p-9;
}

static inline struct gradcmp_parameter_report *sample_add(struct gradcmp_pair_report *pair,
                                                          const char *name, int64_t layer,
                                                          unsigned ndim, const uint64_t *shape) {
    struct gradcmp_parameter_report *parameter = &pair->parameters[pair->parameter_count++];
    uint64_t elems = ndim == 1 ? shape[0] : shape[0] * shape[1];
    *parameter = (struct gradcmp_parameter_report){.name = name,
                                                   .layer = layer,
                                                   .in_a = true,
                                                   .in_b = true,
                                                   .ndim_a = (uint8_t)ndim,
                                                   .ndim_b = (uint8_t)ndim,
                                                   .dtype_a = GRADCMP_DTYPE_FLOAT32,
                                                   .dtype_b = GRADCMP_DTYPE_FLOAT32,
                                                   .shape_a = shape,
                                                   .shape_b = shape,
                                                   .shapes_agree = true,
                                                   .compared_elems = elems,
                                                   .rel_common = NAN};
    parameter->bound = fmin(4.0 * pow(1.03, SAMPLE_LAYERS + 1 - (double)layer) * 0x1p-7, 0.25);
    parameter->tally = (struct gradcmp_tally){.elems = elems,
                                              .max_d_index = elems - 2,
                                              .zeros_a = 1,
                                              .zeros_b = 2,
                                              .equal_bits = elems / 3,
                                              .max_ulp = 12345};
    sample_figures(parameter, 0.002 + 0.001 * (double)(SAMPLE_LAYERS + 1 - layer), 1.0001,
                   GRADCMP_VERDICT_PASS);
    return parameter;
}

static inline void sample_layer(struct gradcmp_pair_report *pair, struct sample_pair *store,
                                int64_t layer) {
    static const char *const parts[] = {
        "mlp.linear_fc1.weight", "mlp.linear_fc2.weight", "self_attention.linear_proj.weight",
        "self_attention.linear_qkv.layer_norm_weight", "self_attention.linear_qkv.weight"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char *name = store->names[pair->parameter_count];
        snprintf(name, sizeof store->names[0], "decoder.layers.%d.%s", (int)layer - 1, parts[i]);
        sample_add(pair, name, layer, i == 3 ? 1 : 2, i == 3 ? sample_vector : sample_matrix);
    }
}

static inline struct gradcmp_parameter_report *sample_find(struct gradcmp_pair_report *pair,
                                                           const char *name) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (strcmp(pair->parameters[i].name, name) == 0) {
            return &pair->parameters[i];
        }
    }
    return NULL;
}

/* Fill counts, worst, onset and outcome from the verdicts, as bounds/ does. */
static inline void sample_conclude(struct gradcmp_pair_report *pair) {
    double worst = -1.0;
    memset(pair->verdict_counts, 0, sizeof pair->verdict_counts);
    pair->worst = SIZE_MAX;
    pair->onset_layer = -1;
    pair->compared_elems = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *p = &pair->parameters[i];
        bool deepens = p->verdict == GRADCMP_VERDICT_FAIL || p->verdict == GRADCMP_VERDICT_SCALE ||
                       p->verdict == GRADCMP_VERDICT_NONFINITE ||
                       p->verdict == GRADCMP_VERDICT_CONFLICT;
        pair->verdict_counts[p->verdict]++;
        pair->compared_elems += p->in_a && p->in_b ? p->compared_elems : 0;
        if (p->verdict != GRADCMP_VERDICT_UNJUDGED && p->ratio > worst) {
            worst = p->ratio;
            pair->worst = i;
        }
        if (deepens && p->layer > pair->onset_layer) {
            pair->onset_layer = p->layer;
        }
    }
    size_t good =
        pair->verdict_counts[GRADCMP_VERDICT_PASS] + pair->verdict_counts[GRADCMP_VERDICT_UNJUDGED];
    pair->outcome =
        good == pair->parameter_count ? GRADCMP_OUTCOME_CONSISTENT : GRADCMP_OUTCOME_INCONSISTENT;
    pair->bytes = 8 * pair->compared_elems;
}

static inline void sample_pair_fill(struct gradcmp_pair_report *pair, struct sample_pair *store,
                                    const char *path) {
    sample_catalogue(&store->catalogue, store->settings, 4);
    *pair = (struct gradcmp_pair_report){.path = path,
                                         .catalogue = &store->catalogue,
                                         .bound = sample_bound(),
                                         .parameters = store->parameters,
                                         .common_factor = NAN,
                                         .norm_a = 0.1875,
                                         .norm_b = 0.18754,
                                         .jump_layer = -1,
                                         .notes = store->notes};
    pair->error.offset_bytes = GRADCMP_NO_OFFSET;
    sample_add(pair, "decoder.final_layernorm.weight", SAMPLE_LAYERS + 1, 1, sample_vector);
    for (int64_t layer = 1; layer <= SAMPLE_LAYERS; layer++) {
        sample_layer(pair, store, layer);
    }
    struct gradcmp_parameter_report *embedding =
        sample_add(pair, "embedding.word_embeddings.weight", 0, 2, sample_embedding);
    embedding->compared_shape0 = 70;
    embedding->compared_elems = 70 * 32;
    embedding->tally.elems = 70 * 32;
    embedding->tally.max_d_index = 69 * 32 + 5;
    sample_conclude(pair);
}

/* Make a report of `count` candidates in which all pass; "ckpt/tp4" is the first's path. */
static inline void sample_init(struct sample *sample, size_t count) {
    static const char *const paths[] = {"ckpt/tp4", "ckpt/pp2", "ckpt/tp2_pp2", "ckpt/ep2"};
    memset(sample, 0, sizeof *sample);
    sample_catalogue(&sample->baseline, sample->settings, 1);
    sample->report = (struct gradcmp_report){.baseline_path = "ckpt/base",
                                             .baseline = &sample->baseline,
                                             .baseline_bound = sample_bound(),
                                             .pairs = sample->pairs,
                                             .pair_count = count,
                                             .state = "exp_avg",
                                             .options = GRADCMP_OPTIONS_INIT};
    for (size_t i = 0; i < count; i++) {
        sample_pair_fill(&sample->pairs[i], &sample->stores[i], paths[i]);
    }
}

static inline void sample_spoil(struct gradcmp_pair_report *pair, const char *name, double rel,
                                double alpha, enum gradcmp_verdict verdict) {
    sample_figures(sample_find(pair, name), rel, alpha, verdict);
}

/* Only one side has the parameter: there are no figures. */
static inline void sample_unpair(struct gradcmp_parameter_report *parameter,
                                 enum gradcmp_verdict verdict) {
    parameter->verdict = verdict;
    parameter->in_a = verdict != GRADCMP_VERDICT_EXTRA;
    parameter->in_b = verdict != GRADCMP_VERDICT_MISSING;
    parameter->shapes_agree = false;
    parameter->rel = parameter->bound = parameter->ratio = parameter->alpha = NAN;
    parameter->alpha_tolerance = parameter->rho = parameter->cosine = NAN;
    parameter->norm_a = parameter->in_a && verdict != GRADCMP_VERDICT_SHAPE ? 0.5 : NAN;
    parameter->norm_b = NAN;
    memset(&parameter->tally, 0, sizeof parameter->tally);
}

#endif
