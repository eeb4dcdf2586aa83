/* Compares what the files of Megatron's ranks say of the run. Names of arguments:
 * megatron/training/arguments.py; the order of ranks: megatron/core/parallel_state.py. */
#include "formats/megatron_same_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"

enum { MAX_OPTIMIZERS = 64, MAX_GROUPS = 256 };

/* Arguments that all ranks of a run share, whole numbers all of them. */
static const char *const SIZES[GCMP_RUN_SIZES] = {"tensor_model_parallel_size",
                                                  "pipeline_model_parallel_size",
                                                  "virtual_pipeline_model_parallel_size",
                                                  "context_parallel_size",
                                                  "expert_model_parallel_size",
                                                  "expert_tensor_parallel_size",
                                                  "data_parallel_size",
                                                  "world_size",
                                                  "num_layers",
                                                  "hidden_size",
                                                  "ffn_hidden_size",
                                                  "num_attention_heads",
                                                  "num_query_groups",
                                                  "num_experts",
                                                  "padded_vocab_size",
                                                  "seq_length"};
enum { SIZE_TP, SIZE_PP, SIZE_CP = 3, SIZE_WORLD = 7 };

static int64_t integer_of(const struct gcmp_node *args, const char *name) {
    const struct gcmp_node *node = gcmp_node_get(args, name);
    int64_t value;
    return node != NULL && node->kind == GCMP_NODE_INT && gcmp_node_int(node, &value) && value >= 0
               ? value
               : -1;
}

/* Take the betas, which are told where all groups have the same, and the latest step; an empty
 * group takes no steps. */
static void see_groups(const struct gcmp_node *optimizer, struct gcmp_run_facts *facts) {
    const struct gcmp_node *groups = gcmp_node_get(optimizer, "param_groups");
    groups = groups != NULL ? groups
                            : gcmp_node_get(gcmp_node_get(optimizer, "optimizer"), "param_groups");
    for (size_t i = 0; i < gcmp_node_count(groups) && i < MAX_GROUPS; i++) {
        const struct gcmp_node *group = gcmp_node_item(groups, i);
        const struct gcmp_node *betas = gcmp_node_get(group, "betas");
        const struct gcmp_node *params = gcmp_node_get(group, "params");
        double step;
        for (size_t b = 0; b < 2 && gcmp_node_count(betas) == 2; b++) {
            double beta = (double)NAN;
            (void)gcmp_node_number(gcmp_node_item(betas, b), &beta);
            facts->are_mixed = facts->are_mixed || beta < facts->betas[b] || beta > facts->betas[b];
            facts->betas[b] = beta;
        }
        if ((params == NULL || gcmp_node_count(params) > 0) &&
            gcmp_node_number(gcmp_node_get(group, "step"), &step)) {
            facts->step = fmax(facts->step, step);
        }
    }
}

static struct gcmp_run_facts facts_of(const struct gcmp_node *root) {
    const struct gcmp_node *args = gcmp_node_get(root, "args"), *key, *value;
    const struct gcmp_node *optimizer = gcmp_node_get(root, "optimizer");
    struct gcmp_run_facts facts = {.seed = integer_of(args, "seed"),
                                   .rank = integer_of(args, "rank"),
                                   .step = (double)NAN,
                                   .betas = {(double)NAN, (double)NAN},
                                   .has_optimizer = gcmp_node_count(optimizer) > 0};
    int64_t number;
    for (size_t i = 0; i < GCMP_RUN_SIZES; i++) {
        facts.sizes[i] = integer_of(args, SIZES[i]);
    }
    see_groups(optimizer, &facts);
    for (size_t i = 0; i < gcmp_node_count(optimizer) && i < MAX_OPTIMIZERS; i++) {
        if (gcmp_node_pair(optimizer, i, &key, &value) && gcmp_node_int(key, &number)) {
            see_groups(value, &facts);
        } else if (gcmp_node_item(optimizer, i) != NULL) {
            see_groups(gcmp_node_item(optimizer, i), &facts); /* of a chain */
        }
    }
    return facts;
}

/* --- what means another run --- */

static enum gradcmp_status check_sizes(const struct gcmp_same_run *run,
                                       const struct gcmp_run_facts *facts,
                                       const struct gcmp_rank_reader *reader,
                                       struct gradcmp_error *error) {
    const struct gcmp_node *root = reader->torch.root;
    for (size_t i = 0; i < GCMP_RUN_SIZES; i++) {
        long long here = facts->sizes[i], there = run->first.sizes[i];
        if (here >= 0 && there >= 0 && here != there) {
            GCMP_RANK_FAIL(reader, root, error, GRADCMP_ERROR_CORRUPT,
                           "%s is %lld, but %lld in the first rank's file (%.60s): they are of two "
                           "runs",
                           SIZES[i], here, there, run->first_name);
        }
    }
    if (facts->step < run->first.step || facts->step > run->first.step) {
        GCMP_RANK_FAIL(reader, root, error, GRADCMP_ERROR_CORRUPT,
                       "the optimizer is at step %.17g, but at %.17g in the first rank's file "
                       "(%.60s): they are of two saves",
                       facts->step, run->first.step, run->first_name);
    }
    return GRADCMP_OK;
}

/* --- what is a contradiction --- */

static enum gradcmp_status check_options(const struct gcmp_same_run *run,
                                         const struct gcmp_run_facts *facts,
                                         const struct gcmp_rank_reader *reader, const char *name,
                                         struct gradcmp_error *error) {
    static const char *const betas[] = {"first", "second"};
    char line[320];
    if (facts->seed >= 0 && run->first.seed >= 0 && facts->seed != run->first.seed) {
        snprintf(line, sizeof line, "%.60s says seed %lld, %.60s says %lld", name,
                 (long long)facts->seed, run->first_name, (long long)run->first.seed);
        GCMP_TRY(gcmp_catalogue_contradict(reader->catalogue, error, line));
    }
    for (size_t i = 0; i < 2; i++) {
        double here = facts->betas[i], there = run->first.betas[i];
        bool are_mixed = facts->are_mixed || run->first.are_mixed;
        if (!are_mixed && (here < there || here > there)) {
            snprintf(line, sizeof line, "the %s beta is %.9g in %.60s, and %.9g in %.60s", betas[i],
                     here, name, there, run->first_name);
            GCMP_TRY(gcmp_catalogue_contradict(reader->catalogue, error, line));
        }
    }
    return GRADCMP_OK;
}

/* Ranks are counted along tensor parallelism first, and along the stages of the pipeline last or,
 * with use_tp_pp_dp_mapping, before data parallelism. Where that leaves one place for a rank, and
 * it is not the folder's, true. */
static bool is_elsewhere(const struct gcmp_run_facts *facts, const struct gcmp_node *args,
                         const struct gcmp_rank_file *file, int64_t *tp, int64_t *pp) {
    const int64_t *sizes = facts->sizes;
    int64_t is_early;
    bool has_towers = integer_of(args, "encoder_tensor_model_parallel_size") > 0 ||
                      integer_of(args, "encoder_pipeline_model_parallel_size") > 0;
    bool is_known = sizes[SIZE_TP] > 0 && sizes[SIZE_PP] > 0 && sizes[SIZE_WORLD] > facts->rank &&
                    !has_towers && sizes[SIZE_WORLD] % sizes[SIZE_PP] == 0;
    if (!is_known) {
        return false;
    }
    int64_t cp = sizes[SIZE_CP] > 0 ? sizes[SIZE_CP] : 1;
    bool has_order = gcmp_node_int(gcmp_node_get(args, "use_tp_pp_dp_mapping"), &is_early);
    int64_t step =
        has_order && is_early != 0 ? sizes[SIZE_TP] * cp : sizes[SIZE_WORLD] / sizes[SIZE_PP];
    *tp = facts->rank % sizes[SIZE_TP];
    *pp = facts->rank / step % sizes[SIZE_PP];
    return *tp != (int64_t)file->tp || *pp != (int64_t)file->pp;
}

static enum gradcmp_status check_writer(struct gcmp_same_run *run,
                                        const struct gcmp_run_facts *facts,
                                        const struct gcmp_rank_reader *reader,
                                        const struct gcmp_rank_file *file,
                                        struct gradcmp_error *error) {
    const struct gcmp_node *args = gcmp_node_get(reader->torch.root, "args");
    size_t index = (size_t)(file - run->files->list), found;
    int64_t *key = gcmp_arena_alloc(reader->catalogue->arena, 1, sizeof *key), tp, pp;
    char line[320];
    if (key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *key = facts->rank;
    enum gcmp_map_result added = gcmp_map_add(&run->writers, key, sizeof *key, index, &found);
    if (added == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    if (found != index) {
        snprintf(line, sizeof line, "%.60s and %.60s were both written by rank %lld",
                 run->files->list[found].name, file->name, (long long)facts->rank);
        return gcmp_catalogue_contradict(reader->catalogue, error, line);
    }
    if (is_elsewhere(facts, args, file, &tp, &pp)) {
        snprintf(line, sizeof line,
                 "%.60s was written by rank %lld, which is tensor-parallel rank %lld of stage %lld",
                 file->name, (long long)facts->rank, (long long)tp, (long long)pp);
        return gcmp_catalogue_contradict(reader->catalogue, error, line);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_same_run_check(struct gcmp_same_run *run,
                                        const struct gcmp_rank_reader *reader,
                                        const struct gcmp_rank_file *file,
                                        struct gradcmp_error *error) {
    struct gcmp_run_facts facts = facts_of(reader->torch.root);
    if (!run->has_first) {
        run->has_first = true;
        run->first = facts;
        run->first_name = file->name;
    }
    GCMP_TRY(check_sizes(run, &facts, reader, error));
    GCMP_TRY(check_options(run, &facts, reader, file->name, error));
    return facts.has_optimizer && facts.rank >= 0 ? check_writer(run, &facts, reader, file, error)
                                                  : GRADCMP_OK;
}
