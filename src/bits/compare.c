/* Opens both sides, lets the engine hand over the elements of all tensors, and judges. */
#include "bits/compare.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/part.h"
#include "engine/engine.h"

/* Two runs of elements that are compared, and where the result goes. */
struct target {
    struct gcmp_side a, b;
    uint64_t elems;
    struct gcmp_bits_difference *difference;
    const struct gcmp_bits_owned *owned; /* NULL: all elements count */
    size_t candidate, entry;
    enum gcmp_bits_how how; /* what a difference means */
};

struct pass {
    const struct gcmp_bits_task *task;
    struct gcmp_bits_side a;
    struct gcmp_bits_side *sides;    /* of candidates */
    struct gcmp_bits_match *matches; /* of candidates */
    struct target *targets;
    size_t target_count, target_capacity;
    pthread_mutex_t lock; /* guards differences */
};

/* What the engine hands back to a job. */
struct face {
    struct pass *pass;
    const struct target *targets; /* by the job's b */
};

/* Compare a stretch of a flat buffer: what belongs to parameters apart from what does not. */
static void compare_owned(const struct gcmp_bits_owned *owned, const struct gcmp_facing *facing,
                          struct gcmp_bits_difference *part, struct gcmp_bits_difference *gaps) {
    uint64_t at = facing->first, end = facing->first + facing->elems;
    for (size_t i = gcmp_bits_span_after(owned, at); at < end;) {
        bool has_span = i < owned->count;
        bool is_inside = has_span && at >= owned->spans[i].begin;
        uint64_t edge = is_inside ? owned->spans[i].end : has_span ? owned->spans[i].begin : end;
        uint64_t next = edge < end ? edge : end;
        size_t skipped_bytes = (size_t)(at - facing->first) * part->elem_bytes;
        gcmp_bits_compare(is_inside ? part : gaps, at, (size_t)(next - at),
                          (const char *)facing->elems_a + skipped_bytes,
                          (const char *)facing->elems_b + skipped_bytes);
        at = next;
        i += is_inside && at == edge;
    }
}

static void compare_face(void *user, const struct gcmp_facing *facing) {
    const struct face *face = user;
    const struct target *target = &face->targets[facing->b];
    struct gcmp_bits_difference *whole = target->difference;
    struct gcmp_bits_difference part = {
        .shape = whole->shape, .ndim = whole->ndim, .elem_bytes = whole->elem_bytes};
    struct gcmp_bits_difference gaps = part;
    if (target->owned == NULL) {
        gcmp_bits_compare(&part, facing->first, facing->elems, facing->elems_a, facing->elems_b);
    } else {
        compare_owned(target->owned, facing, &part, &gaps);
    }
    pthread_mutex_lock(&face->pass->lock);
    gcmp_bits_merge(whole, &part);
    if (target->owned != NULL) {
        gcmp_bits_merge(target->owned->gaps, &gaps);
    }
    pthread_mutex_unlock(&face->pass->lock);
}

/* --- targets --- */

static enum gradcmp_status add_target(struct pass *pass, const struct target *target,
                                      struct gradcmp_error *error) {
    if (!gcmp_grow(&pass->targets, pass->target_count, &pass->target_capacity,
                   sizeof *pass->targets)) {
        GCMP_FAIL_MEMORY(error);
    }
    pass->targets[pass->target_count++] = *target;
    return GRADCMP_OK;
}

/* Copies of a tensor within one side, and between sides, must hold the same bytes: each copy of
 * either side is compared with the first of the baseline. */
static enum gradcmp_status add_copies(struct pass *pass, const struct target *first,
                                      struct gradcmp_error *error) {
    struct gcmp_arena *arena = pass->task->arena;
    const struct gcmp_side *sides[] = {&first->a, &first->b};
    for (size_t side = 0; side < 2; side++) {
        for (uint32_t copy = 1; copy < sides[side]->parameter->copy_count; copy++) {
            struct target target = *first;
            target.b = *sides[side];
            target.b.copy = copy;
            target.how = side == 0 ? GCMP_BITS_BY_COPY_A : GCMP_BITS_BY_COPY_B;
            target.difference =
                gcmp_bits_difference_make(arena, first->difference->ndim, first->difference->shape,
                                          first->difference->elem_bytes);
            if (target.difference == NULL) {
                GCMP_FAIL_MEMORY(error);
            }
            GCMP_TRY(add_target(pass, &target, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_targets(struct pass *pass, size_t candidate,
                                       struct gradcmp_error *error) {
    const struct gcmp_bits_match *match = &pass->matches[candidate];
    for (size_t i = 0; i < match->count; i++) {
        const struct gcmp_bits_entry *entry = &match->entries[i];
        if (entry->difference == NULL || entry->how != GCMP_BITS_SAME || entry->elems == 0 ||
            entry->a->kind != GCMP_BITS_TENSOR || entry->b->kind != GCMP_BITS_TENSOR) {
            continue;
        }
        struct target target = {
            .a = {.catalogue = entry->a->catalogue, .parameter = entry->a->parameter},
            .b = {.catalogue = entry->b->catalogue,
                  .parameter = entry->b->parameter,
                  .owner = (uint32_t)(1 + candidate)},
            .elems = entry->elems,
            .difference = entry->difference,
            .owned = entry->owned,
            .candidate = candidate,
            .entry = i,
            .how = GCMP_BITS_BY_VALUE};
        GCMP_TRY(add_target(pass, &target, error));
        GCMP_TRY(add_copies(pass, &target, error));
    }
    return GRADCMP_OK;
}

static int compare_targets(const void *left, const void *right) {
    const struct target *a = left, *b = right;
    if (a->a.parameter != b->a.parameter) {
        return a->a.parameter < b->a.parameter ? -1 : 1;
    }
    if (a->elems != b->elems) {
        return a->elems < b->elems ? -1 : 1;
    }
    return a->candidate < b->candidate ? -1 : a->candidate > b->candidate;
}

/* --- the engine --- */

struct jobs {
    struct gcmp_job *list;
    struct face *faces;
    struct gcmp_side *others;
    struct gradcmp_tally *tallies;
    size_t count;
};

static void free_jobs(struct jobs *jobs) {
    free(jobs->list);
    free(jobs->faces);
    free(jobs->others);
    free(jobs->tallies);
}

/* One job for each run of a baseline's tensor: it is read once for all candidates. */
static enum gradcmp_status make_jobs(struct pass *pass, struct jobs *jobs,
                                     struct gradcmp_error *error) {
    size_t count = pass->target_count;
    qsort(pass->targets, count, sizeof *pass->targets, compare_targets);
    jobs->list = calloc(count, sizeof *jobs->list);
    jobs->faces = calloc(count, sizeof *jobs->faces);
    jobs->others = calloc(count, sizeof *jobs->others);
    jobs->tallies = calloc(count, sizeof *jobs->tallies);
    if (jobs->list == NULL || jobs->faces == NULL || jobs->others == NULL ||
        jobs->tallies == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct target *target = &pass->targets[i];
        jobs->others[i] = target->b;
        struct gcmp_job *job = jobs->count == 0 ? NULL : &jobs->list[jobs->count - 1];
        if (job != NULL && job->a.parameter == target->a.parameter && job->elems == target->elems) {
            job->b_count++;
            continue;
        }
        struct face *face = &jobs->faces[jobs->count];
        *face = (struct face){pass, target};
        jobs->list[jobs->count++] = (struct gcmp_job){.a = target->a,
                                                      .b = &jobs->others[i],
                                                      .b_count = 1,
                                                      .elems = target->elems,
                                                      .tallies = &jobs->tallies[i],
                                                      .face = compare_face,
                                                      .face_user = face};
    }
    return GRADCMP_OK;
}

static enum gradcmp_status run_engine(struct pass *pass, struct gradcmp_error *errors,
                                      struct gradcmp_error *error) {
    const struct gradcmp_options *options = pass->task->options;
    struct jobs jobs = {0};
    if (pass->target_count == 0) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = make_jobs(pass, &jobs, error);
    if (status == GRADCMP_OK) {
        struct gcmp_engine_options engine = gcmp_engine_options_of(options);
        status =
            gcmp_engine_run(jobs.list, jobs.count, &engine, errors, 1 + pass->task->count, error);
    }
    free_jobs(&jobs);
    return status;
}

/* Bring what the engine found into the entries. */
static enum gradcmp_status conclude(struct pass *pass, struct gradcmp_error *error) {
    for (size_t i = 0; i < pass->target_count; i++) {
        const struct target *target = &pass->targets[i];
        struct gcmp_bits_match *match = &pass->matches[target->candidate];
        if (target->difference->different == 0) {
            continue;
        }
        if (target->how == GCMP_BITS_BY_VALUE) {
            match->entries[target->entry].how = GCMP_BITS_BY_VALUE;
            continue;
        }
        struct gcmp_bits_entry copy = match->entries[target->entry];
        copy.how = (uint8_t)target->how;
        copy.difference = target->difference;
        GCMP_TRY(gcmp_bits_add_entry(match, &copy, error));
    }
    return GRADCMP_OK;
}

/* --- the whole --- */

/* One checkpoint under two names is told, and a part against the whole is refused. */
static enum gradcmp_status check_two(const struct gcmp_bits_match *match,
                                     struct gradcmp_error *error) {
    const char *note = gcmp_dir_one_note(match->a->dir, match->b->dir);
    if (note != NULL) {
        GCMP_TRY(gcmp_bits_note(match->b, error, "%s", note));
    }
    return gcmp_check_parts(gcmp_dir_path(match->a->dir), gcmp_dir_path(match->b->dir), error);
}

/* Open and match one candidate; a failure is its own, but for a lack of memory. */
static enum gradcmp_status prepare(struct pass *pass, size_t candidate,
                                   struct gradcmp_error *error) {
    const struct gcmp_bits_task *task = pass->task;
    struct gcmp_bits_result *result = &task->results[candidate];
    struct gcmp_bits_match *match = &pass->matches[candidate];
    *match = (struct gcmp_bits_match){
        .arena = task->arena, .a = &pass->a, .b = &pass->sides[candidate], .options = task->bits};
    enum gradcmp_status status =
        gcmp_bits_side_open(match->b, task->candidates[candidate], task->options, &result->error);
    if (status == GRADCMP_OK) {
        status = check_two(match, &result->error);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_bits_match(match, &result->error);
    }
    if (status == GRADCMP_OK) {
        return add_targets(pass, candidate, error);
    }
    result->error.code = status;
    if (status == GRADCMP_ERROR_MEMORY && error != NULL) {
        *error = result->error;
    }
    return status == GRADCMP_ERROR_MEMORY ? status : GRADCMP_OK;
}

static enum gradcmp_status run_pass(struct pass *pass, struct gradcmp_error *errors,
                                    struct gradcmp_error *error) {
    const struct gcmp_bits_task *task = pass->task;
    GCMP_TRY(gcmp_bits_side_open(&pass->a, task->a, task->options, error));
    for (size_t i = 0; i < task->count; i++) {
        task->results[i] = (struct gcmp_bits_result){
            .a = task->a, .b = task->candidates[i], .iteration = -1, .verdict = "error"};
        GCMP_TRY(prepare(pass, i, error));
    }
    GCMP_TRY(run_engine(pass, errors, error));
    GCMP_TRY(conclude(pass, error));
    for (size_t i = 0; i < task->count; i++) {
        struct gcmp_bits_result *result = &task->results[i];
        if (result->error.code == GRADCMP_OK && errors[1 + i].code != GRADCMP_OK) {
            result->error = errors[1 + i];
        }
        if (result->error.code == GRADCMP_OK) {
            GCMP_TRY(gcmp_bits_judge(&pass->matches[i], task->arena, result, error));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_run(const struct gcmp_bits_task *task, struct gradcmp_error *error) {
    struct pass pass = {.task = task};
    pass.sides = calloc(task->count, sizeof *pass.sides);
    pass.matches = calloc(task->count, sizeof *pass.matches);
    struct gradcmp_error *errors = calloc(1 + task->count, sizeof *errors);
    pthread_mutex_init(&pass.lock, NULL);
    enum gradcmp_status status =
        pass.sides == NULL || pass.matches == NULL || errors == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : run_pass(&pass, errors, error);
    for (size_t i = 0; i < task->count && pass.matches != NULL && pass.sides != NULL; i++) {
        gcmp_bits_match_free(&pass.matches[i]);
        gcmp_bits_side_close(&pass.sides[i]);
    }
    gcmp_bits_side_close(&pass.a);
    pthread_mutex_destroy(&pass.lock);
    free(pass.sides);
    free(pass.matches);
    free(pass.targets);
    free(errors);
    return status;
}
