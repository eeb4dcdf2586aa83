/* The synthetic study: rounding noise on real gradients, faults of known kind and size on top, and
 * how often the judgement is right.
 *
 *   study [--quick] [--draws N] CHECKPOINT
 *
 * Prints one line for each type, depth, fault and size, tab-separated: draws, how many were found,
 * at the right layer, and by the constant bound of today's script. --quick is a smaller study whose
 * rates are checked; it returns 1 where one is not what it should be. README.md tells the model of
 * the noise. Everything is drawn from fixed seeds, so the output is the same on every run. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds/bounds.h"
#include "study/faults.h"
#include "study/noise.h"

enum { TENSORS_MAX = 2048, SIZES = 10 };

static const double sizes[SIZES] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0};

/* Today's script: one bound for all layers, that of layer 0 of 32 in bfloat16. */
#define CONSTANT_BOUND 0.0829

struct setup {
    const char *name;
    enum gradcmp_dtype dtype;
    double noise_eps; /* typical noise at the loss, as measured on good pairs */
};
static const struct setup setups[] = {{"bf16", GRADCMP_DTYPE_BFLOAT16, 1.5},
                                      {"fp16", GRADCMP_DTYPE_FLOAT16, 1.5},
                                      {"fp32", GRADCMP_DTYPE_FLOAT32, 3.3}};

/* The real gradients, and models of any depth made of them. */
struct source {
    struct study_tensor real[TENSORS_MAX];
    size_t real_count;
    unsigned real_layers;
};

struct model {
    struct study_tensor tensors[TENSORS_MAX];
    size_t count;
    unsigned depth;
    double *noisy[TENSORS_MAX]; /* the candidate without a fault */
    struct gradcmp_parameter_report clean[TENSORS_MAX], judged[TENSORS_MAX];
};

struct outcome {
    bool is_found, is_located, script_finds;
};

/* What became of one cell of the table. */
struct cell {
    unsigned draws, found, located, script;
};

static void die(const char *text) {
    fprintf(stderr, "study: %s\n", text);
    exit(2);
}

static void *must_alloc(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        die("out of memory");
    }
    return memory;
}

/* ------------------------------------------------------------------------------ real gradients */

static void load_tensor(struct gradcmp_checkpoint *checkpoint, size_t index,
                        const struct gradcmp_tensor_info *info, struct study_tensor *tensor) {
    struct gradcmp_error error = {0};
    size_t elems = 1;
    for (unsigned d = 0; d < info->ndim; d++) {
        elems *= (size_t)info->shape[d];
    }
    float *values = must_alloc(elems, sizeof *values);
    if (gradcmp_checkpoint_read(checkpoint, index, values, elems * sizeof *values, &error) !=
        GRADCMP_OK) {
        die(error.message);
    }
    snprintf(tensor->name, sizeof tensor->name, "%s", info->name);
    tensor->layer = info->layer;
    tensor->elems = elems;
    tensor->rows = info->ndim > 0 ? (size_t)info->shape[0] : 1;
    double *wide = must_alloc(elems, sizeof *wide);
    for (size_t i = 0; i < elems; i++) {
        wide[i] = values[i];
    }
    tensor->values = wide;
    free(values);
}

static void load_source(const char *path, struct source *source) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_checkpoint *checkpoint;
    if (gradcmp_checkpoint_open(path, &options, &checkpoint, &error) != GRADCMP_OK) {
        die(error.message);
    }
    size_t count = gradcmp_checkpoint_tensor_count(checkpoint);
    for (size_t i = 0; i < count; i++) {
        struct gradcmp_tensor_info info;
        gradcmp_checkpoint_tensor(checkpoint, i, &info);
        if (strcmp(info.state, "exp_avg") == 0 && info.dtype == GRADCMP_DTYPE_FLOAT32) {
            load_tensor(checkpoint, i, &info, &source->real[source->real_count++]);
        }
    }
    gradcmp_checkpoint_free(checkpoint);
    for (size_t i = 0; i < source->real_count; i++) {
        const struct study_tensor *tensor = &source->real[i];
        if (strstr(tensor->name, ".layers.") != NULL &&
            (unsigned)tensor->layer > source->real_layers) {
            source->real_layers = (unsigned)tensor->layer;
        }
    }
    if (source->real_layers == 0) {
        die("no layers with exp_avg in binary32 in the checkpoint");
    }
}

/* ---------------------------------------------------------------------------- a model of a depth
 */

/* Layer `layer` of the model takes the gradients of one of the real layers. */
static void add_layer(const struct source *source, struct model *model, unsigned layer) {
    unsigned from = (layer - 1) % source->real_layers + 1;
    for (size_t i = 0; i < source->real_count; i++) {
        const struct study_tensor *real = &source->real[i];
        const char *end = strstr(real->name, ".layers.");
        if (end == NULL || real->layer != (int64_t)from) {
            continue;
        }
        struct study_tensor *tensor = &model->tensors[model->count++];
        *tensor = *real;
        tensor->layer = layer;
        end = strchr(end + strlen(".layers."), '.');
        snprintf(tensor->name, sizeof tensor->name, "decoder.layers.%u%.150s", layer - 1,
                 end == NULL ? "" : end);
    }
}

static void build_model(const struct source *source, struct model *model, unsigned depth) {
    model->count = 0;
    model->depth = depth;
    for (unsigned layer = 1; layer <= depth; layer++) {
        if (model->count + 32 > TENSORS_MAX) {
            die("too many tensors");
        }
        add_layer(source, model, layer);
    }
    for (size_t i = 0; i < source->real_count; i++) {
        if (strstr(source->real[i].name, ".layers.") == NULL) {
            struct study_tensor *tensor = &model->tensors[model->count++];
            *tensor = source->real[i];
            tensor->layer = tensor->layer == 0 ? 0 : (int64_t)depth + 1;
        }
    }
}

static void count_tensor(const struct study_tensor *tensor, const double *b,
                         struct gradcmp_parameter_report *report) {
    struct gradcmp_tally tally = {.elems = tensor->elems};
    for (size_t i = 0; i < tensor->elems; i++) {
        double a = tensor->values[i], d = b[i] - a;
        tally.d2 += d * d;
        tally.ad += a * d;
        tally.a2 += a * a;
        tally.b2 += b[i] * b[i];
        tally.max_d = fmax(tally.max_d, fabs(d));
        tally.max_a = fmax(tally.max_a, fabs(a));
        tally.max_b = fmax(tally.max_b, fabs(b[i]));
    }
    *report = (struct gradcmp_parameter_report){.name = tensor->name,
                                                .layer = tensor->layer,
                                                .in_a = true,
                                                .in_b = true,
                                                .shapes_agree = true,
                                                .compared_elems = tensor->elems,
                                                .tally = tally};
}

/* Draw the noise of a whole candidate. */
static void draw_candidate(struct model *model, const struct setup *setup, struct study_rng *rng) {
    double eps = setup->dtype == GRADCMP_DTYPE_BFLOAT16  ? 0x1p-7
                 : setup->dtype == GRADCMP_DTYPE_FLOAT16 ? 0x1p-10
                                                         : 0x1p-23;
    for (size_t i = 0; i < model->count; i++) {
        const struct study_tensor *tensor = &model->tensors[i];
        double depth = (double)model->depth + 1.0 - (double)tensor->layer;
        double size = setup->noise_eps * eps * pow(STUDY_GROWTH, depth);
        model->noisy[i] = realloc(model->noisy[i], tensor->elems * sizeof(double));
        if (model->noisy[i] == NULL) {
            die("out of memory");
        }
        study_add_noise(tensor, size, rng, model->noisy[i]);
        count_tensor(tensor, model->noisy[i], &model->clean[i]);
    }
}

/* ------------------------------------------------------------------------------------ judgement */

static struct outcome judge(struct model *model, const struct setup *setup, int64_t fault_layer) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_pair_report pair = {.parameters = model->judged,
                                       .parameter_count = model->count};
    pair.bound.layers = model->depth;
    pair.bound.dtype = setup->dtype;
    pair.bound.dtype_source = GRADCMP_DTYPE_FROM_ARGS;
    gcmp_bound_init(&pair.bound, &options);
    if (gcmp_judge_pair(&pair, &options, &arena, &error) != GRADCMP_OK) {
        die(error.message);
    }
    struct outcome outcome = {pair.outcome == GRADCMP_OUTCOME_INCONSISTENT, false, false};
    outcome.is_located = outcome.is_found && (fault_layer < 0 ? !isnan(pair.common_factor)
                                                              : pair.onset_layer == fault_layer);
    for (size_t i = 0; i < model->count; i++) {
        outcome.script_finds = outcome.script_finds || !(model->judged[i].rel <= CONSTANT_BOUND);
    }
    gcmp_arena_free(&arena);
    return outcome;
}

static void add_outcome(struct cell *cell, struct outcome outcome) {
    cell->draws++;
    cell->found += outcome.is_found;
    cell->located += outcome.is_located;
    cell->script += outcome.script_finds;
}

/* Put a fault on the drawn candidate and judge it. */
static struct outcome try_fault(struct model *model, const struct setup *setup,
                                enum study_fault fault, double size, struct study_rng *rng) {
    memcpy(model->judged, model->clean, model->count * sizeof model->judged[0]);
    int64_t layer = -1;
    if (fault != STUDY_COMMON) {
        layer = 1 + (int64_t)(study_uniform(rng) * model->depth);
    }
    for (size_t i = 0; i < model->count; i++) {
        const struct study_tensor *tensor = &model->tensors[i];
        if (layer >= 0 && (tensor->layer != layer || !study_is_hit(fault, tensor))) {
            continue;
        }
        double *b = must_alloc(tensor->elems, sizeof *b);
        memcpy(b, model->noisy[i], tensor->elems * sizeof *b);
        study_apply_fault(fault, size, tensor, b, rng);
        count_tensor(tensor, b, &model->judged[i]);
        free(b);
    }
    return judge(model, setup, layer);
}

/* One type and depth: false alarms, and every fault at every size. */
struct block {
    const struct setup *setup;
    unsigned depth, draws;
    struct cell clean, faults[STUDY_FAULT_COUNT][SIZES];
};

static void run_block(const struct source *source, struct model *model, struct block *block) {
    build_model(source, model, block->depth);
    for (unsigned draw = 0; draw < block->draws; draw++) {
        struct study_rng rng =
            study_seed(draw + 1000 * block->depth, (unsigned)block->setup->dtype);
        draw_candidate(model, block->setup, &rng);
        memcpy(model->judged, model->clean, model->count * sizeof model->judged[0]);
        add_outcome(&block->clean, judge(model, block->setup, -1));
        for (int fault = 0; fault < STUDY_FAULT_COUNT; fault++) {
            for (int size = 0; size < SIZES; size++) {
                add_outcome(
                    &block->faults[fault][size],
                    try_fault(model, block->setup, (enum study_fault)fault, sizes[size], &rng));
            }
        }
    }
}

static void print_cell(const struct block *block, const char *fault, double size,
                       const struct cell *cell) {
    printf("%s\t%u\t%s\t%g\t%u\t%u\t%u\t%u\n", block->setup->name, block->depth, fault, size,
           cell->draws, cell->found, cell->located, cell->script);
}

static void print_block(const struct block *block) {
    print_cell(block, "none", 0.0, &block->clean);
    for (int fault = 0; fault < STUDY_FAULT_COUNT; fault++) {
        for (int size = 0; size < SIZES; size++) {
            print_cell(block, study_fault_name((enum study_fault)fault), sizes[size],
                       &block->faults[fault][size]);
        }
    }
    fflush(stdout);
}

/* --------------------------------------------------------------------------- what must hold */

static int complaints;

static void demand(bool holds, const struct block *block, const char *what) {
    if (!holds) {
        fprintf(stderr, "study: %s at depth %u: %s\n", block->setup->name, block->depth, what);
        complaints++;
    }
}

/* A share of the draws of one cell; sizes[index] is the fault's size. */
static bool reaches(const struct block *block, enum study_fault fault, int index, double share) {
    const struct cell *cell = &block->faults[fault][index];
    return cell->found >= share * cell->draws;
}

static void check_block(const struct block *block) {
    bool is_fp32 = block->setup->dtype == GRADCMP_DTYPE_FLOAT32;
    demand(block->clean.found <= 0.01 * block->clean.draws, block, "false alarms");
    demand(reaches(block, STUDY_COMMON, 2, 0.95), block, "0.5 % on everything is missed");
    for (int size = is_fp32 ? 0 : 5; size < SIZES; size++) {
        demand(reaches(block, STUDY_SCALE, size, 0.95), block, "a scaled tensor is missed");
    }
    demand(reaches(block, STUDY_SCALE, 4, 0.95), block, "2 % on one tensor is missed");
    for (int fault = 0; fault < STUDY_FAULT_COUNT; fault++) {
        const struct cell *whole = &block->faults[fault][SIZES - 1];
        demand(whole->found == whole->draws, block, study_fault_name((enum study_fault)fault));
        demand(whole->located >= 0.95 * whole->draws, block, "a whole fault is not located");
        if (is_fp32) {
            demand(reaches(block, (enum study_fault)fault, 4, 0.95), block,
                   study_fault_name((enum study_fault)fault));
        }
    }
}

int main(int argc, char **argv) {
    static const unsigned depths[] = {8, 24, 48, 96};
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    unsigned draws = quick ? 20 : 200;
    int next = quick ? 2 : 1;
    if (argc > next + 1 && strcmp(argv[next], "--draws") == 0) {
        draws = (unsigned)strtoul(argv[next + 1], NULL, 10);
        next += 2;
    }
    if (argc != next + 1 || draws == 0) {
        die("usage: study [--quick] [--draws N] CHECKPOINT");
    }
    struct source *source = must_alloc(1, sizeof *source);
    struct model *model = must_alloc(1, sizeof *model);
    load_source(argv[next], source);
    printf("type\tdepth\tfault\tsize\tdraws\tfound\tlocated\tscript\n");
    for (size_t s = 0; s < sizeof setups / sizeof setups[0]; s++) {
        for (size_t d = 0; d < (quick ? 1 : sizeof depths / sizeof depths[0]); d++) {
            struct block *block = must_alloc(1, sizeof *block);
            *block = (struct block){.setup = &setups[s], .depth = depths[d], .draws = draws};
            run_block(source, model, block);
            print_block(block);
            check_block(block);
            free(block);
        }
    }
    for (size_t i = 0; i < TENSORS_MAX; i++) {
        free(model->noisy[i]);
    }
    for (size_t i = 0; i < source->real_count; i++) {
        free(source->real[i].values);
    }
    free(model);
    free(source);
    return complaints > 0 ? 1 : 0;
}
