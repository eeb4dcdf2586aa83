/* Turns pairs into engine jobs and the tallies into figures: values, copies, padding rows, what one
 * side alone has, and a second reading, scaled by a power of two, of float64 parameters whose
 * squares leave the range of binary64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "bounds/bounds.h"
#include "comparison.h"
#include "copies.h"
#include "device.h"
#include "rescale.h"
#include "unshard/names.h"

enum job_kind { JOB_VALUES, JOB_COPIES, JOB_PADDING, JOB_ALONE, JOB_ONE_SIDE };

/* Times 2^this the squares of a side are lost beside those of the other. */
enum { FAR_LOG2 = 400 };

/* What a job was made for. */
struct job_origin {
    enum job_kind kind;
    uint32_t owner; /* side that copies, padding or the parameter belong to */
    const struct gradcmp_parameter *parameter; /* of that side */
    size_t first_result;                       /* of its tallies; JOB_VALUES has one a candidate */
    uint64_t compared; /* elements of it that are compared; pairs that compare others have jobs of
                        * their own */
    size_t only_pair;  /* 1 + the pair that alone is concerned; 0: all that the owner is in */
};

/* Where a tally of JOB_VALUES goes. */
struct value_target {
    size_t pair, parameter;
};

struct plan {
    struct gcmp_job *jobs;
    struct job_origin *origins;
    struct gcmp_side *sides;
    struct gradcmp_tally *tallies;
    struct value_target *targets;
    size_t job_count, job_capacity, result_count, result_capacity;
};

static void plan_free(struct plan *plan) {
    free(plan->jobs);
    free(plan->origins);
    free(plan->sides);
    free(plan->tallies);
    free(plan->targets);
    *plan = (struct plan){0};
}

/* Room for `jobs` jobs with `results` tallies in all. */
static enum gradcmp_status plan_init(struct plan *plan, size_t jobs, size_t results,
                                     struct gradcmp_error *error) {
    *plan = (struct plan){.job_capacity = jobs, .result_capacity = results};
    plan->jobs = calloc(jobs + 1, sizeof *plan->jobs);
    plan->origins = calloc(jobs + 1, sizeof *plan->origins);
    plan->sides = calloc(results + 1, sizeof *plan->sides);
    plan->tallies = calloc(results + 1, sizeof *plan->tallies);
    plan->targets = calloc(results + 1, sizeof *plan->targets);
    if (plan->jobs == NULL || plan->origins == NULL || plan->sides == NULL ||
        plan->tallies == NULL || plan->targets == NULL) {
        plan_free(plan);
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static struct gcmp_side whole_side(const struct gradcmp_catalogue *catalogue,
                                   const struct gradcmp_parameter *parameter, uint32_t owner) {
    struct gcmp_side side = {.catalogue = catalogue, .parameter = parameter, .owner = owner};
    return side;
}

/* Start a job of one or more results; they are taken from the plan's room. */
static struct gcmp_job *add_job(struct plan *plan, struct gcmp_side a, uint64_t elems,
                                struct job_origin origin) {
    struct gcmp_job *job = &plan->jobs[plan->job_count];
    origin.first_result = plan->result_count;
    plan->origins[plan->job_count++] = origin;
    job->a = a;
    job->elems = elems;
    job->b = &plan->sides[plan->result_count];
    job->tallies = &plan->tallies[plan->result_count];
    return job;
}

static void add_result(struct plan *plan, struct gcmp_job *job, struct gcmp_side b,
                       struct value_target target) {
    plan->sides[plan->result_count] = b;
    plan->targets[plan->result_count] = target;
    plan->result_count++;
    job->b_count++;
}

static struct gcmp_side candidate_side(const struct gcmp_comparison *comparison, size_t pair,
                                       const struct gradcmp_parameter *parameter) {
    return whole_side(&comparison->candidates[pair].checkpoint->catalogue, parameter,
                      (uint32_t)pair + 1);
}

static struct gcmp_side baseline_side(const struct gcmp_comparison *comparison,
                                      const struct gradcmp_parameter *parameter) {
    return whole_side(&comparison->baseline.checkpoint->catalogue, parameter, 0);
}

static bool is_measured(const struct gradcmp_parameter_report *report) {
    return report->in_a && report->in_b && report->shapes_agree;
}

static struct gradcmp_parameter_report *find_parameter(const struct gradcmp_pair_report *pair,
                                                       const char *name) {
    size_t low = 0, high = pair->parameter_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(pair->parameters[middle].name, name);
        if (order == 0) {
            return &pair->parameters[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Advance pair `p`'s cursor to `name`; its index, or SIZE_MAX where it is not measured there. */
static size_t find_measured(const struct gcmp_comparison *comparison, size_t p, size_t *cursor,
                            const char *name) {
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
    while (*cursor < pair->parameter_count && strcmp(pair->parameters[*cursor].name, name) < 0) {
        (*cursor)++;
    }
    bool found = *cursor < pair->parameter_count && gcmp_pair_is_open(pair) &&
                 strcmp(pair->parameters[*cursor].name, name) == 0 &&
                 is_measured(&pair->parameters[*cursor]);
    return found ? *cursor : SIZE_MAX;
}

/* Copies of one parameter, as far as it is compared: each further copy against the first. */
static void plan_copies(struct plan *plan, struct gcmp_side side, struct job_origin origin) {
    origin.kind = JOB_COPIES;
    for (uint32_t copy = 1; copy < side.parameter->copy_count; copy++) {
        struct gcmp_job *job = add_job(plan, side, origin.compared, origin);
        struct gcmp_side other = side;
        other.copy = copy;
        add_result(plan, job, other, (struct value_target){0, 0});
    }
}

/* What of one side is read besides values, of a parameter of which `compared` elements are
 * compared: its copies, and the rows of a padded vocabulary beyond, of each copy in turn. */
static void plan_extras(struct plan *plan, struct gcmp_side side, uint64_t compared) {
    struct job_origin origin = {
        .owner = side.owner, .parameter = side.parameter, .compared = compared};
    plan_copies(plan, side, origin);
    origin.kind = JOB_PADDING;
    side.first_elem = compared;
    while (compared < side.parameter->elem_count && side.copy < side.parameter->copy_count) {
        add_job(plan, side, side.parameter->elem_count - compared, origin);
        plan->result_count++;
        side.copy++;
    }
}

/* Jobs for one baseline parameter: candidates that compare the same elements share one reading. */
static void plan_parameter(const struct gcmp_comparison *comparison, struct plan *plan,
                           const struct gradcmp_parameter *a, const size_t *at) {
    for (size_t p = 0; p < comparison->report->pair_count; p++) {
        if (at[p] == SIZE_MAX) {
            continue;
        }
        uint64_t elems = comparison->report->pairs[p].parameters[at[p]].compared_elems;
        bool seen = false;
        for (size_t q = 0; q < p && !seen; q++) {
            seen = at[q] != SIZE_MAX &&
                   comparison->report->pairs[q].parameters[at[q]].compared_elems == elems;
        }
        if (seen) {
            continue;
        }
        plan_extras(plan, baseline_side(comparison, a), elems);
        struct job_origin origin = {.kind = JOB_VALUES, .parameter = a};
        struct gcmp_job *job = add_job(plan, baseline_side(comparison, a), elems, origin);
        for (size_t q = p; q < comparison->report->pair_count; q++) {
            if (at[q] != SIZE_MAX &&
                comparison->report->pairs[q].parameters[at[q]].compared_elems == elems) {
                const struct gradcmp_parameter *b = comparison->pairings[q].sides[at[q]].b;
                add_result(plan, job, candidate_side(comparison, q, b),
                           (struct value_target){q, at[q]});
            }
        }
    }
}

static enum gradcmp_status plan_values(const struct gcmp_comparison *comparison, struct plan *plan,
                                       struct gradcmp_error *error) {
    size_t pairs = comparison->report->pair_count;
    size_t *cursors = calloc(2 * pairs, sizeof *cursors);
    if (cursors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const struct gradcmp_model *model = comparison->baseline.model;
    for (size_t i = 0; i < model->count; i++) {
        size_t *at = cursors + pairs;
        for (size_t p = 0; p < pairs; p++) {
            at[p] = find_measured(comparison, p, &cursors[p], model->parameters[i].name);
        }
        plan_parameter(comparison, plan, &model->parameters[i], at);
    }
    free(cursors);
    return GRADCMP_OK;
}

/* A tied output layer that only one side stores, against that side's embedding; and its copies. */
static void plan_tied(const struct gcmp_comparison *comparison, struct plan *plan, size_t p) {
    const struct gcmp_tied *tied = &comparison->pairings[p].tied;
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
    const struct gradcmp_parameter_report *embedding =
        tied->output == NULL ? NULL : find_parameter(pair, tied->embedding->name);
    if (embedding != NULL && gcmp_pair_is_open(pair) && is_measured(embedding)) {
        struct gcmp_side side = tied->in_b ? candidate_side(comparison, p, tied->embedding)
                                           : baseline_side(comparison, tied->embedding);
        struct job_origin origin = {.kind = JOB_COPIES,
                                    .owner = side.owner,
                                    .parameter = side.parameter,
                                    .compared = embedding->compared_elems,
                                    .only_pair = p + 1};
        struct gcmp_job *job = add_job(plan, side, embedding->compared_elems, origin);
        side.parameter = tied->output;
        add_result(plan, job, side, (struct value_target){0, 0});
        plan_copies(plan, side, origin);
    }
}

/* Parameters that one side alone has, where there is no more of them than of what is compared, and
 * where the state is zero if no gradient came. */
static void plan_alone(const struct gcmp_comparison *comparison, struct plan *plan, size_t p) {
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
    const struct gcmp_paired *sides = comparison->pairings[p].sides;
    uint64_t alone = 0, compared = 0; /* below 2^64: elements lie in files */
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter *either = sides[i].a != NULL ? sides[i].a : sides[i].b;
        bool is_alone = sides[i].a == NULL || sides[i].b == NULL;
        *(is_alone ? &alone : &compared) += either->elem_count;
    }
    if (alone > compared || gcmp_is_weight_state(comparison->report->state)) {
        return;
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter *either = sides[i].a != NULL ? sides[i].a : sides[i].b;
        bool is_alone = sides[i].a == NULL || sides[i].b == NULL;
        if (is_alone && either->elem_count > 0 &&
            gcmp_dtype_is_float((enum gradcmp_dtype)either->dtype)) {
            struct gcmp_side side = sides[i].a != NULL ? baseline_side(comparison, either)
                                                       : candidate_side(comparison, p, either);
            add_job(plan, side, either->elem_count,
                    (struct job_origin){.kind = JOB_ALONE,
                                        .owner = side.owner,
                                        .parameter = either,
                                        .only_pair = p + 1});
            plan->result_count++;
        }
    }
}

/* What is read besides values, of candidates, and of what one side alone has. */
static void plan_rest(const struct gcmp_comparison *comparison, struct plan *plan) {
    const struct gradcmp_report *report = comparison->report;
    for (size_t p = 0; p < report->pair_count; p++) {
        const struct gradcmp_pair_report *pair = &report->pairs[p];
        if (!gcmp_pair_is_open(pair)) {
            continue;
        }
        plan_tied(comparison, plan, p);
        plan_alone(comparison, plan, p);
        for (size_t i = 0; i < pair->parameter_count; i++) {
            if (is_measured(&pair->parameters[i])) {
                plan_extras(plan, candidate_side(comparison, p, comparison->pairings[p].sides[i].b),
                            pair->parameters[i].compared_elems);
            }
        }
    }
}

/* Most results of one parameter of a side: values, copies, and the padding of each copy. */
static size_t most_results(const struct gradcmp_parameter *parameter) {
    return (parameter->vocab_rows ? 2 : 1) * (size_t)parameter->copy_count + 1;
}

/* Upper bounds of jobs and results. */
static size_t count_results(const struct gcmp_comparison *comparison) {
    size_t count = 0;
    const struct gradcmp_model *model = comparison->baseline.model;
    const size_t pairs = comparison->report->pair_count;
    for (size_t i = 0; i < model->count; i++) {
        /* Of rows of a vocabulary, each pair may compare another number. */
        const struct gradcmp_parameter *a = &model->parameters[i];
        count += (a->vocab_rows ? pairs : 1) * most_results(a);
    }
    for (size_t p = 0; p < pairs; p++) {
        const struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
        const struct gradcmp_parameter *tied = comparison->pairings[p].tied.output;
        count += tied == NULL ? 0u : tied->copy_count;
        for (size_t i = 0; i < pair->parameter_count; i++) {
            const struct gradcmp_parameter *b = comparison->pairings[p].sides[i].b;
            count += 2u + (b == NULL ? 0u : most_results(b));
        }
    }
    return count;
}

/* Run the plan's jobs on what was asked for. */
static enum gradcmp_status run_engine(struct gcmp_comparison *comparison, struct plan *plan,
                                      struct gcmp_engine_options *engine,
                                      struct gradcmp_error *error) {
    struct gcmp_device device;
    uint64_t bytes = 0;
    for (size_t j = 0; j < plan->job_count; j++) {
        const struct gcmp_job *job = &plan->jobs[j];
        bytes += job->elems * (1 + job->b_count) * sizeof(float);
    }
    enum gradcmp_status status = gcmp_device_choose(&device, comparison->options, bytes, error);
    if (status == GRADCMP_OK) {
        gcmp_device_use(&device, comparison->options, engine);
        status = gcmp_engine_run(plan->jobs, plan->job_count, engine, comparison->errors,
                                 comparison->report->pair_count + 1, error);
    }
    gcmp_device_release(&device, comparison->options);
    return status;
}

static enum gradcmp_status run_plan(struct gcmp_comparison *comparison, struct plan *plan,
                                    struct gradcmp_error *error) {
    const struct gradcmp_options *options = comparison->options;
    struct gcmp_engine_options engine = gcmp_engine_options_of(options);
    engine.ranks = options->ranks;
    struct gradcmp_report *report = comparison->report;
    GCMP_TRY(run_engine(comparison, plan, &engine, error));
    for (size_t p = 0; p < report->pair_count; p++) {
        const struct gradcmp_error *side_error = &comparison->errors[p + 1];
        if (side_error->code != GRADCMP_OK && gcmp_pair_is_open(&report->pairs[p])) {
            gcmp_pair_fail(&report->pairs[p], side_error);
        }
    }
    return GRADCMP_OK;
}

static void take_values(struct gcmp_comparison *comparison, const struct plan *plan) {
    for (size_t j = 0; j < plan->job_count; j++) {
        const struct job_origin *origin = &plan->origins[j];
        for (size_t r = 0; origin->kind == JOB_VALUES && r < plan->jobs[j].b_count; r++) {
            const struct value_target *target = &plan->targets[origin->first_result + r];
            struct gradcmp_pair_report *pair = &comparison->report->pairs[target->pair];
            if (gcmp_pair_is_open(pair)) {
                pair->parameters[target->parameter].tally = plan->jobs[j].tallies[r];
            }
        }
    }
}

/* Call `visit` for each open pair that a job concerns, with the parameter's report. */
typedef enum gradcmp_status (*visit_fn)(struct gcmp_comparison *comparison,
                                        struct gradcmp_pair_report *pair,
                                        struct gradcmp_parameter_report *parameter,
                                        const struct gcmp_job *job, struct gradcmp_error *error);

static enum gradcmp_status visit_pairs(struct gcmp_comparison *comparison,
                                       const struct job_origin *origin, const struct gcmp_job *job,
                                       visit_fn visit, struct gradcmp_error *error) {
    for (size_t p = 0; p < comparison->report->pair_count; p++) {
        struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
        if (!gcmp_pair_is_open(pair) || (origin->owner != 0 && origin->owner != p + 1) ||
            (origin->only_pair != 0 && origin->only_pair != p + 1)) {
            continue;
        }
        struct gradcmp_parameter_report *report = find_parameter(pair, origin->parameter->name);
        if (report != NULL && is_measured(report) && report->compared_elems == origin->compared) {
            GCMP_TRY(visit(comparison, pair, report, job, error));
        }
    }
    return GRADCMP_OK;
}

/* The jobs of a parameter's copies follow one another, that of the first copy first. */
static bool is_as_first_copy(const struct gcmp_job *job) {
    const struct gradcmp_tally *own = &job->tallies[0], *first = (job - job->a.copy)->tallies;
    return job->a.copy > 0 && own->zeros_a == first->zeros_a &&
           own->nonfinite_a == first->nonfinite_a && own->max_a == first->max_a &&
           own->a2 == first->a2;
}

static enum gradcmp_status visit_padding(struct gcmp_comparison *comparison,
                                         struct gradcmp_pair_report *pair,
                                         struct gradcmp_parameter_report *parameter,
                                         const struct gcmp_job *job, struct gradcmp_error *error) {
    const struct gradcmp_tally *tally = &job->tallies[0];
    const struct gcmp_paired *sides = comparison->pairings[pair - comparison->report->pairs].sides;
    char copy[GCMP_COPY_NAME_BYTES] = "";
    if (tally->zeros_a == tally->elems || is_as_first_copy(job)) {
        return GRADCMP_OK;
    }
    if (job->a.copy > 0) {
        gcmp_copy_name(copy, job->a.parameter, job->a.copy);
    }
    const char *of = copy[0] == '\0' ? "" : ", ";
    if (sides[parameter - pair->parameters].vocab == 0) {
        const bool is_known = comparison->pairings[pair - comparison->report->pairs].vocab != 0;
        parameter->shapes_agree = false; /* rows with values may be words that one side lacks */
        return gcmp_pair_note(
            comparison, pair, error,
            "%s: the %s%s%s has rows beyond row %llu that are not zero, and %s", parameter->name,
            gcmp_side_name(&job->a), of, copy, (unsigned long long)parameter->compared_shape0,
            is_known ? "may be of another vocabulary: there are tables of other sizes (--exclude "
                       "leaves some out)"
                     : "the size of the vocabulary is not known; if they are padding, say --vocab "
                       "N");
    }
    return gcmp_pair_note(
        comparison, pair, error,
        "%s: padding rows %llu and on are not zero in the %s%s%s (largest value %.3g%s); "
        "they are not compared",
        parameter->name, (unsigned long long)parameter->compared_shape0, gcmp_side_name(&job->a),
        of, copy, tally->max_a, tally->nonfinite_a > 0 ? ", some not finite" : "");
}

static enum gradcmp_status take_extras(struct gcmp_comparison *comparison, const struct plan *plan,
                                       struct gradcmp_error *error) {
    for (size_t j = 0; j < plan->job_count; j++) {
        const struct job_origin *origin = &plan->origins[j];
        if (origin->kind == JOB_COPIES) {
            GCMP_TRY(visit_pairs(comparison, origin, &plan->jobs[j], gcmp_judge_copies, error));
        } else if (origin->kind == JOB_PADDING) {
            GCMP_TRY(visit_pairs(comparison, origin, &plan->jobs[j], visit_padding, error));
        }
    }
    return GRADCMP_OK;
}

/* Say which of the parameters that one side of a pair alone has are zero. */
static enum gradcmp_status note_alone(struct gcmp_comparison *comparison, const struct plan *plan,
                                      size_t p, bool of_a, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
    const char *first = NULL;
    size_t all = 0, zero = 0;
    for (size_t j = 0; j < plan->job_count; j++) {
        const struct job_origin *origin = &plan->origins[j];
        const struct gcmp_job *job = &plan->jobs[j];
        if (origin->kind == JOB_ALONE && origin->only_pair == p + 1 &&
            (origin->owner == 0) == of_a) {
            all++;
            if (job->tallies[0].zeros_a == job->elems) {
                first = zero++ == 0 ? origin->parameter->name : first;
            }
        }
    }
    if (zero == 0 || !gcmp_pair_is_open(pair)) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(comparison, pair, error,
                          "%zu of %zu parameters that only the %s has are nothing but zeros, such "
                          "as %.200s: of a parameter that no gradient reaches, some libraries keep "
                          "zeros and others no state (--exclude leaves it out)",
                          zero, all, of_a ? "baseline" : "candidate", first);
}

static enum gradcmp_status take_alone(struct gcmp_comparison *comparison, const struct plan *plan,
                                      struct gradcmp_error *error) {
    for (size_t p = 0; p < comparison->report->pair_count; p++) {
        GCMP_TRY(note_alone(comparison, plan, p, true, error));
        GCMP_TRY(note_alone(comparison, plan, p, false, error));
    }
    return GRADCMP_OK;
}

static void take_sums(struct gradcmp_tally *tally, const struct gradcmp_tally *scaled) {
    tally->a2 = scaled->a2;
    tally->b2 = scaled->b2;
    tally->ad = scaled->ad;
    tally->d2 = scaled->d2;
}

/* Plan to read copies of float64 again, scaled, whose squares left the range. */
static enum gradcmp_status plan_scaled_copies(const struct plan *plan, struct plan *again,
                                              struct gradcmp_error *error) {
    for (size_t j = 0; j < plan->job_count; j++) {
        const struct gcmp_job *job = &plan->jobs[j];
        const struct job_origin *origin = &plan->origins[j];
        if (origin->kind != JOB_COPIES ||
            !gcmp_needs_rescaling(job->a.parameter->dtype, job->b[0].parameter->dtype,
                                  job->tallies)) {
            continue;
        }
        if (again->jobs == NULL) {
            GCMP_TRY(plan_init(again, plan->job_count, plan->job_count, error));
        }
        struct gcmp_job *scaled = add_job(again, job->a, job->elems, *origin);
        scaled->scale_log2 = gcmp_common_scale_log2(job->tallies);
        add_result(again, scaled, job->b[0], (struct value_target){0, origin->first_result});
    }
    return GRADCMP_OK;
}

/* The sums of copies are asked only how far these are from each other: any scale will do. */
static enum gradcmp_status measure_scaled_copies(struct gcmp_comparison *comparison,
                                                 struct plan *plan, struct gradcmp_error *error) {
    struct plan again = {0};
    enum gradcmp_status status = plan_scaled_copies(plan, &again, error);
    if (status == GRADCMP_OK && again.job_count > 0) {
        status = run_plan(comparison, &again, error);
    }
    for (size_t r = 0; status == GRADCMP_OK && r < again.result_count; r++) {
        take_sums(&plan->tallies[again.targets[r].parameter], &again.tallies[r]);
    }
    plan_free(&again);
    return status;
}

/* Read a parameter again so that the largest value of both sides is from 1 to 2; and, where that
 * makes nothing of one side, that side by itself. */
static void plan_again(const struct gcmp_comparison *comparison, struct plan *plan, size_t p,
                       size_t i) {
    const struct gradcmp_parameter_report *report = &comparison->report->pairs[p].parameters[i];
    const struct gcmp_paired *paired = &comparison->pairings[p].sides[i];
    const struct gcmp_side sides[] = {baseline_side(comparison, paired->a),
                                      candidate_side(comparison, p, paired->b)};
    const double largest[] = {report->tally.max_a, report->tally.max_b};
    const int scale = gcmp_common_scale_log2(&report->tally);
    struct job_origin origin = {.kind = JOB_VALUES, .parameter = paired->a};
    struct gcmp_job *job = add_job(plan, sides[0], report->compared_elems, origin);
    job->scale_log2 = scale;
    add_result(plan, job, sides[1], (struct value_target){p, i});
    for (uint32_t side = 0; side < 2; side++) {
        if (largest[side] > 0.0 && -ilogb(largest[side]) > scale + FAR_LOG2) {
            origin = (struct job_origin){
                .kind = JOB_ONE_SIDE, .parameter = sides[side].parameter, .owner = side};
            job = add_job(plan, sides[side], report->compared_elems, origin);
            job->scale_log2 = -ilogb(largest[side]);
            add_result(plan, job, sides[side], (struct value_target){p, i});
        }
    }
}

static enum gradcmp_status plan_scaled(const struct gcmp_comparison *comparison, struct plan *plan,
                                       struct gradcmp_error *error) {
    size_t count = 0;
    for (size_t p = 0; p < comparison->report->pair_count; p++) {
        count += comparison->report->pairs[p].parameter_count;
    }
    GCMP_TRY(plan_init(plan, 2 * count, 2 * count, error));
    for (size_t p = 0; p < comparison->report->pair_count; p++) {
        const struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
        for (size_t i = 0; i < pair->parameter_count; i++) {
            const struct gradcmp_parameter_report *report = &pair->parameters[i];
            if (gcmp_pair_is_open(pair) && is_measured(report) &&
                gcmp_needs_rescaling(report->dtype_a, report->dtype_b, &report->tally)) {
                plan_again(comparison, plan, p, i);
            }
        }
    }
    return GRADCMP_OK;
}

static void take_both(struct gradcmp_parameter_report *report, const struct gradcmp_tally *scaled,
                      int scale_log2) {
    take_sums(&report->tally, scaled);
    report->tally.max_d = scaled->max_d;
    report->tally.max_a = scaled->max_a;
    report->tally.max_b = scaled->max_b;
    report->scale_a_log2 = report->scale_b_log2 = scale_log2;
}

/* The jobs of one parameter follow one another, that of both sides first. */
static void take_scaled(struct gcmp_comparison *comparison, const struct plan *plan) {
    for (size_t j = 0; j < plan->job_count; j++) {
        const struct job_origin *origin = &plan->origins[j];
        const struct value_target *target = &plan->targets[origin->first_result];
        struct gradcmp_pair_report *pair = &comparison->report->pairs[target->pair];
        struct gradcmp_parameter_report *report = &pair->parameters[target->parameter];
        const struct gradcmp_tally *scaled = &plan->jobs[j].tallies[0];
        int scale_log2 = plan->jobs[j].scale_log2;
        if (!gcmp_pair_is_open(pair)) {
            continue;
        }
        if (origin->kind == JOB_VALUES) {
            take_both(report, scaled, scale_log2);
        } else if (origin->owner == 0) {
            report->tally.a2 = scaled->a2;
            report->tally.max_a = scaled->max_a;
            report->scale_a_log2 = scale_log2;
        } else {
            report->tally.b2 = scaled->b2;
            report->tally.max_b = scaled->max_b;
            report->scale_b_log2 = scale_log2;
        }
    }
}

static enum gradcmp_status measure_scaled(struct gcmp_comparison *comparison,
                                          struct gradcmp_error *error) {
    struct plan plan;
    GCMP_TRY(plan_scaled(comparison, &plan, error));
    enum gradcmp_status status = GRADCMP_OK;
    if (plan.job_count > 0) {
        status = run_plan(comparison, &plan, error);
        if (status == GRADCMP_OK) {
            take_scaled(comparison, &plan);
        }
    }
    plan_free(&plan);
    return status;
}

/* Bytes of the slabs of all measured parameters of a pair, each slab once. */
static uint64_t needed_bytes(const struct gcmp_comparison *comparison, size_t p) {
    uint64_t bytes = 0;
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[p];
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (is_measured(&pair->parameters[i])) {
            const struct gcmp_paired *sides = &comparison->pairings[p].sides[i];
            bytes += sides->a->elem_count * sides->a->copy_count *
                     gcmp_dtype_bytes((enum gradcmp_dtype)sides->a->dtype);
            bytes += sides->b->elem_count * sides->b->copy_count *
                     gcmp_dtype_bytes((enum gradcmp_dtype)sides->b->dtype);
        }
    }
    return bytes;
}

enum gradcmp_status gcmp_measure(struct gcmp_comparison *comparison, struct gradcmp_error *error) {
    struct plan plan;
    size_t results = count_results(comparison);
    GCMP_TRY(plan_init(&plan, results, results, error));
    enum gradcmp_status status;
    GCMP_TRY_OUT(plan_values(comparison, &plan, error));
    plan_rest(comparison, &plan);
    for (size_t p = 0; p < comparison->report->pair_count; p++) {
        comparison->report->pairs[p].bytes = needed_bytes(comparison, p);
    }
    GCMP_TRY_OUT(run_plan(comparison, &plan, error));
    take_values(comparison, &plan);
    GCMP_TRY_OUT(measure_scaled_copies(comparison, &plan, error));
    GCMP_TRY_OUT(take_extras(comparison, &plan, error));
    GCMP_TRY_OUT(take_alone(comparison, &plan, error));
    status = measure_scaled(comparison, error);
out:
    plan_free(&plan);
    return status;
}
