/* gradcmp_check: one checkpoint alone, at any step, without a baseline. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/catalogue.h"
#include "base/dtype.h"
#include "report/page.h"
#include "checkpoint.h"
#include "copies.h"
#include "finding.h"
#include "engine/engine.h"
#include "masters.h"
#include "ranks.h"
#include "shared_bytes.h"
#include "squares.h"
#include "unshard/names.h"

enum check_kind {
    CHECK_VALUES,
    CHECK_SHARD,
    CHECK_COPIES,
    CHECK_MASTER,
    CHECK_TIED,
    CHECK_PADDING
};

/* What a job was made for. */
struct check_origin {
    enum check_kind kind;
    const struct gradcmp_parameter *parameter;
    size_t slab;                /* CHECK_SHARD */
    size_t whole;               /* CHECK_SHARD: index of the job over the whole tensor */
    const struct gcmp_job *job; /* of the plan, once it is whole */
};

/* Jobs of one checkpoint; arrays grow. */
struct check_plan {
    struct gradcmp_checkpoint *checkpoint;
    struct gcmp_job *jobs;
    struct check_origin *origins;
    struct gcmp_side *others; /* side b of each job that has one */
    struct gradcmp_tally *tallies;
    struct gcmp_squares *squares; /* of each job */
    size_t count, capacity;
};

struct kept_checks {
    size_t count;
    struct gradcmp_checkpoint *checkpoints[];
};

static void plan_free(struct check_plan *plan) {
    free(plan->jobs);
    free(plan->origins);
    free(plan->others);
    free(plan->tallies);
    free(plan->squares);
}

static bool grow_array(void *array, size_t capacity, size_t item_bytes) {
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = reallocarray(old, capacity, item_bytes);
    if (grown == NULL) {
        return false;
    }
    memcpy(array, &grown, sizeof grown);
    return true;
}

/* Add a job over elements [first, first + elems) of a parameter; `other` (NULL: none) is side b. */
static enum gradcmp_status plan_add(struct check_plan *plan, struct check_origin origin,
                                    const struct gcmp_side *other, uint64_t first, uint64_t elems,
                                    struct gradcmp_error *error) {
    if (plan->count == plan->capacity) {
        size_t capacity = plan->capacity == 0 ? 256 : 2 * plan->capacity;
        if (!grow_array(&plan->jobs, capacity, sizeof *plan->jobs) ||
            !grow_array(&plan->origins, capacity, sizeof *plan->origins) ||
            !grow_array(&plan->others, capacity, sizeof *plan->others)) {
            GCMP_FAIL_MEMORY(error);
        }
        plan->capacity = capacity;
    }
    struct gcmp_job job = {.a = {.catalogue = &plan->checkpoint->catalogue,
                                 .parameter = origin.parameter,
                                 .first_elem = first},
                           .elems = elems,
                           .b_count = other != NULL};
    plan->jobs[plan->count] = job;
    plan->origins[plan->count] = origin;
    if (other != NULL) {
        plan->others[plan->count] = *other;
    }
    plan->count++;
    return GRADCMP_OK;
}

static struct gcmp_side side_of(const struct check_plan *plan,
                                const struct gradcmp_parameter *parameter, uint32_t copy) {
    struct gcmp_side side = {
        .catalogue = &plan->checkpoint->catalogue, .parameter = parameter, .copy = copy};
    return side;
}

/* Make a parameter of one slab alone, so that its values can be looked at by themselves. */
static struct gradcmp_parameter *
slab_alone(struct gcmp_arena *arena, const struct gradcmp_parameter *parameter, size_t slab) {
    struct gradcmp_parameter *alone = gcmp_arena_alloc(arena, 1, sizeof *alone);
    struct gradcmp_slab *copy = gcmp_arena_alloc(arena, 1, sizeof *copy);
    uint64_t *zeros = gcmp_arena_alloc(arena, parameter->ndim, sizeof *zeros);
    if (alone == NULL || copy == NULL || zeros == NULL) {
        return NULL;
    }
    *alone = *parameter;
    *copy = parameter->slabs[slab];
    copy->start = zeros;
    copy->copy = 0;
    alone->shape = copy->extent;
    alone->elem_count = 1;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        alone->elem_count *= copy->extent[d];
    }
    alone->slabs = copy;
    alone->slab_count = 1;
    alone->copy_count = 1;
    return alone;
}

/* Elements of a parameter that hold values: all, or the rows of the true vocabulary. */
static uint64_t used_elems(const struct check_plan *plan,
                           const struct gradcmp_parameter *parameter) {
    uint64_t vocab = plan->checkpoint->catalogue.vocab;
    if (!parameter->vocab_rows || vocab == 0 || parameter->shape[0] <= vocab) {
        return parameter->elem_count;
    }
    return parameter->elem_count / parameter->shape[0] * vocab;
}

static enum gradcmp_status plan_parameter(struct check_plan *plan, struct gcmp_arena *arena,
                                          const struct gradcmp_parameter *parameter,
                                          struct gradcmp_error *error) {
    uint64_t used = used_elems(plan, parameter);
    struct check_origin origin = {CHECK_VALUES, parameter, 0, 0, NULL};
    size_t whole = plan->count;
    GCMP_TRY(plan_add(plan, origin, NULL, 0, used, error));
    for (uint32_t copy = 0; copy < parameter->copy_count && used < parameter->elem_count; copy++) {
        origin.kind = CHECK_PADDING;
        GCMP_TRY(plan_add(plan, origin, NULL, used, parameter->elem_count - used, error));
        plan->jobs[plan->count - 1].a.copy = copy;
    }
    for (uint32_t copy = 1; copy < parameter->copy_count; copy++) {
        struct gcmp_side other = side_of(plan, parameter, copy);
        struct check_origin copies = {CHECK_COPIES, parameter, 0, 0, NULL};
        GCMP_TRY(plan_add(plan, copies, &other, 0, used, error));
    }
    bool by_shard = !gcmp_is_weight_state(parameter->state) && parameter->slab_count > 1 &&
                    parameter->copy_count == 1 && used == parameter->elem_count;
    for (size_t i = 0; by_shard && i < parameter->slab_count; i++) {
        struct gradcmp_parameter *alone = slab_alone(arena, parameter, i);
        if (alone == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        struct check_origin shard = {CHECK_SHARD, alone, i, whole, NULL};
        GCMP_TRY(plan_add(plan, shard, NULL, 0, alone->elem_count, error));
    }
    return GRADCMP_OK;
}

/* Elements of a weight that its master has too; 0 where it is no master of that shape. Rows of a
 * padded vocabulary may be more on either side. */
static uint64_t mastered_elems(const struct check_plan *plan,
                               const struct gradcmp_parameter *weight,
                               const struct gradcmp_parameter *master) {
    uint64_t used = used_elems(plan, weight), others = used_elems(plan, master);
    bool is_padded =
        weight->vocab_rows && master->vocab_rows && weight->ndim == master->ndim &&
        gcmp_dims_equal(weight->ndim - 1U, weight->shape + 1, master->ndim - 1U, master->shape + 1);
    return weight->elem_count == master->elem_count ? used
           : !is_padded                             ? 0
           : used < others                          ? used
                                                    : others;
}

static enum gradcmp_status plan_master(struct check_plan *plan,
                                       const struct gcmp_finding_sink *sink,
                                       const struct gradcmp_parameter *weight,
                                       const struct gradcmp_parameter *master,
                                       struct gradcmp_error *error) {
    uint64_t elems = mastered_elems(plan, weight, master);
    if (elems > 0 || weight->elem_count == 0) {
        struct gcmp_side other = side_of(plan, master, 0);
        struct check_origin origin = {CHECK_MASTER, weight, 0, 0, NULL};
        return plan_add(plan, origin, &other, 0, elems, error);
    }
    struct gradcmp_finding *finding;
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, "the fp32 master has another shape: ");
    gcmp_text_add_shape(&text, master->ndim, master->shape);
    gcmp_text_add(&text, " in place of ");
    gcmp_text_add_shape(&text, weight->ndim, weight->shape);
    enum gradcmp_status status = gcmp_finding_add(sink, "master_differs", weight, &finding, error);
    if (status == GRADCMP_OK) {
        status = text.failed ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                              "out of memory")
                             : gcmp_finding_say(sink, finding, error, "%s", text.bytes);
    }
    gcmp_text_free(&text);
    return status;
}

/* Model weights against their fp32 masters, compared in the weights' type. */
static enum gradcmp_status plan_masters(struct check_plan *plan,
                                        const struct gcmp_finding_sink *sink,
                                        struct gradcmp_error *error) {
    const struct gradcmp_model *weights = gcmp_model_of(plan->checkpoint, "param");
    const struct gradcmp_model *masters = gcmp_model_of(plan->checkpoint, "fp32_param");
    for (size_t i = 0; weights != NULL && masters != NULL && i < weights->count; i++) {
        const struct gradcmp_parameter *weight = &weights->parameters[i];
        const struct gradcmp_parameter *master = gcmp_model_find(masters, weight->name);
        if (master != NULL && gcmp_dtype_is_float((enum gradcmp_dtype)weight->dtype) &&
            gcmp_dtype_is_float((enum gradcmp_dtype)master->dtype)) {
            GCMP_TRY(plan_master(plan, sink, weight, master, error));
        }
    }
    return GRADCMP_OK;
}

/* The embedding of an output layer's shape; of several, that whose name begins most like it. NULL:
 * there is none. */
static const struct gradcmp_parameter *find_embedding(const struct gradcmp_model *model,
                                                      const struct gradcmp_parameter *output) {
    const struct gradcmp_parameter *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *parameter = &model->parameters[i];
        size_t alike = 0;
        if (!gcmp_may_be_tied(parameter, output)) {
            continue;
        }
        while (parameter->name[alike] != '\0' && parameter->name[alike] == output->name[alike]) {
            alike++;
        }
        if (found == NULL || alike > most) {
            found = parameter;
            most = alike;
        }
    }
    return found;
}

/* A tied output layer has the values of its embedding. */
static enum gradcmp_status plan_tied(struct check_plan *plan, const struct gradcmp_model *model,
                                     struct gradcmp_error *error) {
    bool is_tied = gcmp_says_tied(&plan->checkpoint->catalogue, true);
    for (size_t i = 0; i < model->count && is_tied; i++) {
        const struct gradcmp_parameter *output = &model->parameters[i];
        const struct gradcmp_parameter *embedding =
            output->vocab_rows == GRADCMP_VOCAB_OUTPUT ? find_embedding(model, output) : NULL;
        if (embedding != NULL) {
            struct gcmp_side other = side_of(plan, output, 0);
            struct check_origin origin = {CHECK_TIED, embedding, 0, 0, NULL};
            GCMP_TRY(plan_add(plan, origin, &other, 0, used_elems(plan, embedding), error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status make_plan(struct check_plan *plan, const struct gcmp_finding_sink *sink,
                                     struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = plan->checkpoint;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model = &checkpoint->models[i].model;
        for (size_t j = 0; j < model->count; j++) {
            if (gcmp_dtype_is_float((enum gradcmp_dtype)model->parameters[j].dtype)) {
                GCMP_TRY(plan_parameter(plan, sink->arena, &model->parameters[j], error));
            }
        }
        GCMP_TRY(plan_tied(plan, model, error));
    }
    GCMP_TRY(plan_masters(plan, sink, error));
    plan->tallies = calloc(plan->count + 1, sizeof *plan->tallies);
    plan->squares = calloc(plan->count + 1, sizeof *plan->squares);
    if (plan->tallies == NULL || plan->squares == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < plan->count; i++) {
        plan->jobs[i].b = &plan->others[i];
        plan->jobs[i].tallies = &plan->tallies[i];
        plan->origins[i].job = &plan->jobs[i];
    }
    return GRADCMP_OK;
}

/* Run the plan. Ranks that share the work have no sinks: they each look at the signs once more. */
static enum gradcmp_status run_plan(struct check_plan *plan, const struct gradcmp_options *options,
                                    struct gradcmp_error *error) {
    struct gradcmp_error side_error = {0};
    struct gcmp_engine_options engine = gcmp_engine_options_of(options);
    struct gcmp_job *alone = calloc(plan->count + 1, sizeof *alone);
    size_t count = 0;
    enum gradcmp_status status = GRADCMP_OK;
    if (alone == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < plan->count; i++) {
        const struct check_origin *origin = &plan->origins[i];
        if (origin->kind == CHECK_VALUES && gcmp_is_of_squares(origin->parameter)) {
            plan->squares[i].dtype = (enum gradcmp_dtype)origin->parameter->dtype;
            alone[count] = plan->jobs[i];
            alone[count].sink = gcmp_squares_sink;
            alone[count].sink_user = &plan->squares[i];
            plan->jobs[i] = options->ranks == NULL ? alone[count] : plan->jobs[i];
            count++;
        }
    }
    engine.ranks = options->ranks;
    GCMP_TRY_OUT(gcmp_engine_run(plan->jobs, plan->count, &engine, &side_error, 1, error));
    if (options->ranks != NULL) {
        engine.ranks = NULL;
        status = gcmp_engine_run(alone, count, &engine, &side_error, 1, error);
    }
out:
    free(alone);
    return status;
}

/* The least positive normal number of a type; below it values have lost precision. */
static double least_normal(enum gradcmp_dtype dtype) {
    switch (dtype) {
    case GRADCMP_DTYPE_FLOAT64:
        return DBL_MIN;
    case GRADCMP_DTYPE_FLOAT16:
        return 0x1p-14;
    case GRADCMP_DTYPE_FLOAT8_E4M3FN:
        return 0x1p-6;
    case GRADCMP_DTYPE_FLOAT8_E5M2:
        return 0x1p-14;
    default:
        return FLT_MIN; /* float32 and bfloat16 */
    }
}

/* All zero is a fault of gradients and of matrices; biases and second moments start there. */
static bool zero_is_odd(const struct gradcmp_parameter *parameter) {
    return !gcmp_is_weight_state(parameter->state) || parameter->ndim > 1;
}

static enum gradcmp_status judge_values(const struct gcmp_finding_sink *sink,
                                        const struct check_origin *origin,
                                        const struct gradcmp_tally *tally,
                                        struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = origin->parameter;
    bool whole = origin->kind == CHECK_VALUES;
    struct gradcmp_finding *finding;
    char where[64] = "";
    if (!whole) {
        snprintf(where, sizeof where, " of shard %zu", origin->slab);
    }
    if (tally->nonfinite_a > 0) {
        if (!whole) {
            return GRADCMP_OK; /* told of the whole tensor */
        }
        GCMP_TRY(gcmp_finding_add(sink, "nonfinite", parameter, &finding, error));
        gcmp_finding_figure(finding, "elements", (double)tally->elems);
        gcmp_finding_figure(finding, "nonfinite", (double)tally->nonfinite_a);
        return gcmp_finding_say(sink, finding, error, "%llu of %llu elements are NaN or Inf",
                                (unsigned long long)tally->nonfinite_a,
                                (unsigned long long)tally->elems);
    }
    if (tally->elems == 0) {
        return GRADCMP_OK;
    }
    if (tally->max_a == 0.0 && zero_is_odd(parameter)) {
        GCMP_TRY(gcmp_finding_add(sink, "all_zero", parameter, &finding, error));
        gcmp_finding_figure(finding, "elements", (double)tally->elems);
        return gcmp_finding_say(sink, finding, error, "all %llu elements%s are zero",
                                (unsigned long long)tally->elems, where);
    }
    if (tally->max_a > 0.0 && tally->max_a < least_normal((enum gradcmp_dtype)parameter->dtype)) {
        GCMP_TRY(gcmp_finding_add(sink, "subnormal", parameter, &finding, error));
        gcmp_finding_figure(finding, "elements", (double)tally->elems);
        gcmp_finding_figure(finding, "max_abs", tally->max_a);
        return gcmp_finding_say(sink, finding, error,
                                "no element%s reaches the least normal number (largest %.3g)",
                                where, tally->max_a);
    }
    return GRADCMP_OK;
}

/* What CHECK_VALUES says of the first copy, of another one. */
static enum gradcmp_status judge_other_copy(const struct gcmp_finding_sink *sink,
                                            const struct check_origin *origin,
                                            const struct gradcmp_tally *tally,
                                            struct gradcmp_error *error) {
    struct gradcmp_finding *finding;
    char name[GCMP_COPY_NAME_BYTES];
    if (tally->nonfinite_b == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_finding_add(sink, "nonfinite", origin->parameter, &finding, error));
    gcmp_finding_figure(finding, "elements", (double)tally->elems);
    gcmp_finding_figure(finding, "nonfinite", (double)tally->nonfinite_b);
    return gcmp_finding_say(sink, finding, error, "%llu of %llu elements of %s are NaN or Inf",
                            (unsigned long long)tally->nonfinite_b,
                            (unsigned long long)tally->elems,
                            gcmp_copy_name(name, origin->parameter, origin->job->b[0].copy));
}

/* By how much two sides differ, and where no difference can be taken. NULL without memory. */
static const char *tell_distance(const struct gcmp_finding_sink *sink,
                                 const struct check_origin *origin,
                                 const struct gradcmp_tally *tally) {
    if (tally->nonfinite_any == 0) {
        return gcmp_arena_format(sink->arena, "by %.3g at most", tally->max_d);
    }
    char *which = origin->kind == CHECK_COPIES
                      ? gcmp_copies_nonfinite(sink->arena, origin->job)
                      : gcmp_arena_format(sink->arena, "NaN or Inf in %llu",
                                          (unsigned long long)tally->nonfinite_any);
    return which == NULL || tally->nonfinite_any == tally->elems
               ? which
               : gcmp_arena_format(sink->arena, "by %.3g at most where both are finite; %s",
                                   tally->max_d, which);
}

/* Pairs within the checkpoint that must agree to the last bit. */
static enum gradcmp_status judge_equal(const struct gcmp_finding_sink *sink,
                                       const struct check_origin *origin,
                                       const struct gradcmp_tally *tally,
                                       struct gradcmp_error *error) {
    static const char *const kinds[] = {[CHECK_COPIES] = "copies_differ",
                                        [CHECK_MASTER] = "master_differs",
                                        [CHECK_TIED] = "tied_differ"};
    static const char *const words[] = {
        [CHECK_COPIES] = "copies on different ranks differ",
        [CHECK_MASTER] = "the weights are not their rounded fp32 masters",
        [CHECK_TIED] = "the output layer differs from the embedding that it is tied to"};
    uint64_t different = tally->elems - tally->equal_bits;
    if (different == 0) {
        return GRADCMP_OK;
    }
    if (origin->kind == CHECK_COPIES) {
        GCMP_TRY(judge_other_copy(sink, origin, tally, error));
    }
    struct gradcmp_finding *finding;
    const char *distance = tell_distance(sink, origin, tally);
    if (distance == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_finding_add(sink, kinds[origin->kind], origin->parameter, &finding, error));
    gcmp_finding_figure(finding, "elements", (double)tally->elems);
    gcmp_finding_figure(finding, "different", (double)different);
    gcmp_finding_figure(finding, "rel",
                        tally->a2 > 0.0 ? sqrt(tally->d2 / tally->a2) : (double)NAN);
    gcmp_finding_figure(finding, "max_abs", tally->max_d);
    return gcmp_finding_say(sink, finding, error, "%s: %llu of %llu elements, %s",
                            words[origin->kind], (unsigned long long)different,
                            (unsigned long long)tally->elems, distance);
}

/* Padding rows of weights keep what they were initialised with. Those of a gradient are zero only
 * where the loss masks the padding, which Megatron's does not: that is no finding. */
static enum gradcmp_status judge_padding(const struct gcmp_finding_sink *sink,
                                         struct gradcmp_catalogue *catalogue,
                                         const struct check_origin *origin,
                                         const struct gradcmp_tally *tally,
                                         struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = origin->parameter;
    unsigned long long odd = tally->elems - tally->zeros_a, elems = tally->elems;
    if (tally->nonfinite_a == 0) {
        return odd == 0 || origin->job->a.copy > 0 || gcmp_is_weight_state(parameter->state)
                   ? GRADCMP_OK
                   : gcmp_catalogue_note(catalogue, error,
                                         "%.160s (%.40s): padding rows of the vocabulary are not "
                                         "zero (%llu of %llu elements, largest %.3g)",
                                         parameter->name, parameter->state, odd, elems,
                                         tally->max_a);
    }
    struct gradcmp_finding *finding;
    char largest[64] = "";
    GCMP_TRY(gcmp_finding_add(sink, "padding", parameter, &finding, error));
    gcmp_finding_figure(finding, "elements", (double)tally->elems);
    gcmp_finding_figure(finding, "max_abs", tally->max_a);
    gcmp_finding_figure(finding, "nonfinite", (double)tally->nonfinite_a);
    if (tally->max_a > 0.0) {
        snprintf(largest, sizeof largest, ", largest of the others %.3g", tally->max_a);
    }
    return gcmp_finding_say(
        sink, finding, error,
        "padding rows of the vocabulary are not zero (%llu of %llu elements, %llu of them "
        "NaN or Inf%s)",
        odd, elems, (unsigned long long)tally->nonfinite_a, largest);
}

static enum gradcmp_status judge_plan(const struct gcmp_finding_sink *sink,
                                      const struct check_plan *plan, struct gradcmp_error *error) {
    for (size_t i = 0; i < plan->count; i++) {
        const struct check_origin *origin = &plan->origins[i];
        switch (origin->kind) {
        case CHECK_SHARD:
            if (plan->tallies[origin->whole].max_a == 0.0) {
                break; /* told of the whole tensor */
            }
            GCMP_TRY(judge_values(sink, origin, &plan->tallies[i], error));
            break;
        case CHECK_VALUES:
            GCMP_TRY(judge_values(sink, origin, &plan->tallies[i], error));
            GCMP_TRY(gcmp_judge_squares(sink, origin->job, &plan->squares[i], error));
            break;
        case CHECK_PADDING:
            GCMP_TRY(judge_padding(sink, &plan->checkpoint->catalogue, origin, &plan->tallies[i],
                                   error));
            break;
        default:
            GCMP_TRY(judge_equal(sink, origin, &plan->tallies[i], error));
        }
    }
    return GRADCMP_OK;
}

static void count_parameter(const struct gradcmp_parameter *parameter,
                            struct gradcmp_checked *checked) {
    enum gradcmp_dtype dtype = (enum gradcmp_dtype)parameter->dtype;
    if (!gcmp_dtype_is_float(dtype)) {
        if (checked->other_tensors++ == 0) {
            checked->other = parameter->name;
            checked->other_type = gradcmp_dtype_name(dtype);
        }
        return;
    }
    checked->tensors++;
    checked->elems += parameter->elem_count;
    checked->bytes += parameter->elem_count * parameter->copy_count * gcmp_dtype_bytes(dtype);
}

static void count_work(const struct gradcmp_checkpoint *checkpoint,
                       struct gradcmp_checked *checked) {
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model = &checkpoint->models[i].model;
        for (size_t j = 0; j < model->count; j++) {
            count_parameter(&model->parameters[j], checked);
        }
    }
}

static int compare_findings(const void *left, const void *right) {
    const struct gradcmp_finding *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order == 0) {
        order = strcmp(a->state, b->state);
    }
    if (order == 0) {
        order = strcmp(a->kind, b->kind);
    }
    return order != 0 ? order : strcmp(a->text, b->text);
}

/* One finding a parameter, up to a number that can be read. */
static enum gradcmp_status tell_lost(const struct gcmp_finding_sink *sink,
                                     const struct gcmp_lost_states *lost,
                                     struct gradcmp_error *error) {
    for (size_t i = 0; i < lost->count && i <= GCMP_MAX_LISTED; i++) {
        const struct gcmp_lost_state *item = &lost->items[i];
        struct gradcmp_finding *finding;
        GCMP_TRY(gcmp_finding_add(sink, "absent_state", NULL, &finding, error));
        if (i == GCMP_MAX_LISTED) {
            gcmp_finding_figure(finding, "parameters", (double)lost->count);
            return gcmp_finding_say(sink, finding, error,
                                    "%zu parameters lost a state, of which %d are listed",
                                    lost->count, GCMP_MAX_LISTED);
        }
        finding->name = gcmp_arena_dup(sink->arena, item->name);
        finding->state = item->absent;
        if (finding->name == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_finding_say(sink, finding, error,
                                  "%s is stored, but %s is not, which %zu other tensors have",
                                  item->stored, item->absent, lost->whole_count));
    }
    return GRADCMP_OK;
}

/* A parameter that lost one of its states is a finding here, not an end. */
static enum gradcmp_status check_states(const struct gcmp_finding_sink *sink,
                                        const struct gradcmp_checkpoint *checkpoint,
                                        struct gradcmp_error *error) {
    struct gcmp_lost_states lost;
    enum gradcmp_status status = gcmp_unshard_lost_states(&checkpoint->catalogue, &lost, error);
    status = status == GRADCMP_OK ? tell_lost(sink, &lost, error) : status;
    free(lost.items);
    return status;
}

/* Likewise a parameter that lost its weight, or its master. */
static enum gradcmp_status check_weights(const struct gcmp_finding_sink *sink,
                                         const struct gradcmp_checkpoint *checkpoint,
                                         struct gradcmp_error *error) {
    struct gcmp_lost_states weights, masters = {.items = NULL};
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_find_lost_weights(checkpoint, &weights, error));
    GCMP_TRY_OUT(tell_lost(sink, &weights, error));
    GCMP_TRY_OUT(gcmp_find_lost_masters(checkpoint, &masters, error));
    status = tell_lost(sink, &masters, error);
out:
    free(weights.items);
    free(masters.items);
    return status;
}

/* Files of one checkpoint that contradict each other. */
static enum gradcmp_status check_contradictions(const struct gcmp_finding_sink *sink,
                                                const struct gradcmp_catalogue *catalogue,
                                                struct gradcmp_error *error) {
    for (size_t i = 0; i < catalogue->contradiction_count; i++) {
        struct gradcmp_finding *finding;
        GCMP_TRY(gcmp_finding_add(sink, "contradiction", NULL, &finding, error));
        GCMP_TRY(gcmp_finding_say(sink, finding, error, "%s", catalogue->contradictions[i]));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status check_open(const struct gcmp_finding_sink *sink,
                                      struct gradcmp_checkpoint *checkpoint,
                                      const struct gradcmp_options *options,
                                      struct gradcmp_error *error) {
    GCMP_TRY(check_contradictions(sink, &checkpoint->catalogue, error));
    GCMP_TRY(check_states(sink, checkpoint, error));
    GCMP_TRY(gcmp_checkpoint_load_all(checkpoint, error));
    count_work(checkpoint, sink->checked);
    if (sink->checked->tensors == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
                     "no parameter%s in any state: nothing to check",
                     checkpoint->listed_count == 0 ? "" : " of a floating-point type");
    }
    GCMP_TRY(check_weights(sink, checkpoint, error));
    GCMP_TRY(gcmp_find_shared_bytes(sink, checkpoint, error));
    struct check_plan plan = {.checkpoint = checkpoint};
    enum gradcmp_status status;
    GCMP_TRY_OUT(make_plan(&plan, sink, error));
    GCMP_TRY_OUT(run_plan(&plan, options, error));
    status = judge_plan(sink, &plan, error);
    if (status == GRADCMP_OK && sink->checked->finding_count > 1) {
        qsort(sink->checked->findings, sink->checked->finding_count,
              sizeof *sink->checked->findings, compare_findings);
    }
out:
    plan_free(&plan);
    return status;
}

/* Have all ranks look at the same. */
static enum gradcmp_status agree(const struct gradcmp_checked *checked,
                                 const struct gradcmp_options *options, enum gradcmp_status opened,
                                 struct gradcmp_error *error) {
    struct gcmp_view view;
    gcmp_view_begin(&view);
    if (opened == GRADCMP_OK) {
        gcmp_view_add(&view, checked->catalogue);
    } else {
        gcmp_view_add_error(&view, &checked->error);
    }
    return gcmp_view_agree(&view, options, error);
}

/* Look at one checkpoint. What it is to blame for goes into checked->error; memory and cancelling
 * end the call. */
static enum gradcmp_status check_one(const struct gcmp_finding_sink *sink, struct kept_checks *kept,
                                     const struct gradcmp_options *options,
                                     struct gradcmp_error *error) {
    struct gradcmp_checked *checked = sink->checked;
    struct gradcmp_checkpoint *checkpoint;
    enum gradcmp_status status =
        gcmp_checkpoint_open(checked->path, options, &checkpoint, &checked->error);
    if (status == GRADCMP_OK) {
        kept->checkpoints[kept->count++] = checkpoint;
        checked->path = checkpoint->path;
        checked->catalogue = &checkpoint->catalogue;
        status = gcmp_checkpoint_take_map(checkpoint, options, &checked->error);
    }
    if (options->ranks != NULL && status != GRADCMP_ERROR_MEMORY) {
        GCMP_TRY(agree(checked, options, status, error));
    }
    if (status == GRADCMP_OK) {
        status = check_open(sink, checkpoint, options, &checked->error);
    }
    if (status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_CANCELLED) {
        *error = checked->error;
        return status;
    }
    if (status != GRADCMP_OK) {
        gcmp_error_add_path(&checked->error, checked->path);
        checked->finding_count = 0;
    }
    return GRADCMP_OK;
}

void gradcmp_findings_free(struct gradcmp_findings *findings) {
    if (findings == NULL) {
        return;
    }
    struct kept_checks *kept = findings->owned;
    for (size_t i = 0; kept != NULL && i < kept->count; i++) {
        gradcmp_checkpoint_free(kept->checkpoints[i]);
    }
    free(kept);
    if (findings->arena != NULL) {
        gcmp_arena_free(findings->arena);
    }
    free(findings->arena);
    free(findings);
}

static enum gradcmp_status new_findings(size_t path_count, struct gradcmp_findings **out,
                                        struct gradcmp_error *error) {
    struct gradcmp_findings *findings = calloc(1, sizeof *findings);
    if (findings == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    findings->arena = calloc(1, sizeof *findings->arena);
    findings->owned =
        calloc(1, sizeof(struct kept_checks) + path_count * sizeof(struct gradcmp_checkpoint *));
    if (findings->arena != NULL) {
        findings->checked =
            gcmp_arena_alloc(findings->arena, path_count, sizeof *findings->checked);
    }
    if (findings->owned == NULL || findings->checked == NULL) {
        gradcmp_findings_free(findings);
        GCMP_FAIL_MEMORY(error);
    }
    *out = findings;
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_check(const char *const *paths, size_t path_count,
                                  const struct gradcmp_options *options,
                                  struct gradcmp_findings **out, struct gradcmp_error *error) {
    *out = NULL;
    if (path_count == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "no checkpoint to check");
    }
    struct gradcmp_options complete = gcmp_options_complete(options);
    struct gradcmp_error own = {0};
    struct gradcmp_findings *findings;
    GCMP_TRY(new_findings(path_count, &findings, error));
    for (size_t i = 0; i < path_count; i++) {
        struct gradcmp_checked *checked = &findings->checked[findings->checked_count++];
        checked->path = gcmp_arena_dup(findings->arena, paths[i]);
        struct gcmp_finding_sink sink = {findings->arena, checked};
        enum gradcmp_status status = checked->path == NULL
                                         ? gcmp_error_set(&own, GRADCMP_ERROR_MEMORY, NULL,
                                                          GRADCMP_NO_OFFSET, "out of memory")
                                         : check_one(&sink, findings->owned, &complete, &own);
        if (status != GRADCMP_OK) {
            if (error != NULL) {
                *error = own;
            }
            gradcmp_findings_free(findings);
            return status;
        }
    }
    *out = findings;
    return GRADCMP_OK;
}
