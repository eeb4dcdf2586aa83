/* gradcmp_bits: what is compared with what. */
#include <stdlib.h>
#include <string.h>

#include "bits/report.h"
#include "bits/runs.h"
#include "report/repeat.h"

const char *gradcmp_bits_default_ignore(size_t index) {
    size_t count = 0;
    while (gcmp_bits_default_ignores[count] != NULL) {
        count++;
    }
    return index < count ? gcmp_bits_default_ignores[index] : NULL;
}

/* One call under way. */
struct call {
    const char *const *paths;
    size_t count;
    struct gradcmp_options options;
    struct gradcmp_bits_options given;
    struct gcmp_bits_options bits;
    struct gradcmp_evidence *evidence;
    struct gcmp_bits_findings *content;
};

static enum gradcmp_status begin(struct call *call, struct gradcmp_error *error) {
    struct gcmp_arena *arena = calloc(1, sizeof *arena);
    call->evidence = arena == NULL ? NULL : gcmp_arena_alloc(arena, 1, sizeof *call->evidence);
    call->content = arena == NULL ? NULL : gcmp_arena_alloc(arena, 1, sizeof *call->content);
    if (call->evidence == NULL || call->content == NULL) {
        call->evidence = NULL;
        if (arena != NULL) {
            gcmp_arena_free(arena);
        }
        free(arena);
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_evidence *evidence = call->evidence;
    evidence->arena = arena;
    evidence->subcommand = "bits";
    evidence->verdict = "error";
    evidence->content = call->content;
    evidence->writers = &gcmp_bits_writers;
    evidence->paths = gcmp_arena_alloc(arena, call->count, sizeof *evidence->paths);
    if (evidence->paths == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < call->count; i++) {
        evidence->paths[i] = gcmp_arena_dup(arena, call->paths[i]);
        if (evidence->paths[i] == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    evidence->path_count = call->count;
    const char **ignores = gcmp_arena_alloc(arena, call->given.ignore_count, sizeof *ignores);
    for (size_t i = 0; ignores != NULL && i < call->given.ignore_count; i++) {
        ignores[i] = gcmp_arena_dup(arena, call->given.ignore[i]);
        ignores = ignores[i] == NULL ? NULL : ignores;
    }
    if (ignores == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    call->content->ignores = ignores;
    call->content->ignore_count = call->given.ignore_count;
    call->content->no_default_ignores = call->given.no_default_ignore != 0;
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_repeat_options(&text, &call->options);
    for (size_t i = 0; i < call->given.ignore_count; i++) {
        gcmp_repeat_option(&text, "--ignore", ignores[i]);
    }
    if (call->given.no_default_ignore != 0) {
        gcmp_repeat_option(&text, "--no-ignore", NULL);
    }
    GCMP_TRY(gcmp_repeat_keep(&text, arena, &evidence->options, error));
    call->bits = (struct gcmp_bits_options){ignores, call->given.ignore_count,
                                            call->given.no_default_ignore != 0};
    return GRADCMP_OK;
}

/* Each candidate against the first path. */
static enum gradcmp_status compare_paths(struct call *call, struct gradcmp_error *error) {
    struct gcmp_bits_findings *content = call->content;
    content->count = call->count - 1;
    content->results =
        gcmp_arena_alloc(call->evidence->arena, content->count, sizeof *content->results);
    if (content->results == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_bits_task task = {
        call->evidence->arena, call->evidence->paths[0], call->evidence->paths + 1,
        content->count,        &call->options,           &call->bits,
        content->results};
    return gcmp_bits_run(&task, error);
}

/* One iteration of two runs. A side that cannot be read is that iteration's error. */
static enum gradcmp_status compare_iteration(struct call *call, const struct gcmp_bits_step *step,
                                             struct gradcmp_error *error) {
    struct gcmp_bits_result *result = &call->content->results[call->content->count++];
    struct gcmp_bits_task task = {call->evidence->arena, step->a,     &step->b, 1,
                                  &call->options,        &call->bits, result};
    struct gradcmp_error failure = {0};
    enum gradcmp_status status = gcmp_bits_run(&task, &failure);
    result->a = step->a;
    result->b = step->b;
    result->iteration = step->iteration;
    if (status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_CANCELLED) {
        if (error != NULL) {
            *error = failure;
        }
        return status;
    }
    if (status != GRADCMP_OK) {
        result->verdict = "error";
        result->error = failure;
    }
    return GRADCMP_OK;
}

/* One that the second run lacks is a difference by itself. */
static enum gradcmp_status tell_lost(struct call *call, const struct gcmp_bits_step *step,
                                     struct gradcmp_error *error) {
    struct gcmp_arena *arena = call->evidence->arena;
    struct gcmp_bits_finding *finding = gcmp_arena_alloc(arena, 1, sizeof *finding);
    struct gcmp_bits_result *result = &call->content->results[call->content->count++];
    *result = (struct gcmp_bits_result){.a = step->a,
                                        .b = step->b,
                                        .iteration = step->iteration,
                                        .is_lost = true,
                                        .verdict = "differs",
                                        .findings = finding,
                                        .finding_count = 1};
    if (finding == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *finding = (struct gcmp_bits_finding){.path = step->label,
                                          .group = GCMP_BITS_KEYS,
                                          .how = GCMP_BITS_MISSING_IN_B,
                                          .a_kind = '0',
                                          .b_kind = '0'};
    result->groups[GCMP_BITS_KEYS] =
        (struct gcmp_bits_group_result){.items = 1, .different = 1, .first = finding};
    return GRADCMP_OK;
}

static enum gradcmp_status compare_runs(struct call *call, const struct gcmp_bits_steps *steps,
                                        struct gradcmp_error *error) {
    struct gcmp_bits_findings *content = call->content;
    content->by_iteration = true;
    content->results =
        gcmp_arena_alloc(call->evidence->arena, steps->count, sizeof *content->results);
    if (content->results == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < steps->count; i++) {
        const struct gcmp_bits_step *step = &steps->list[i];
        GCMP_TRY(step->is_lost ? tell_lost(call, step, error)
                               : compare_iteration(call, step, error));
    }
    call->evidence->notes = steps->notes;
    call->evidence->note_count = steps->note_count;
    return GRADCMP_OK;
}

static enum gradcmp_status compare(struct call *call, struct gradcmp_error *error) {
    struct gcmp_bits_steps steps = {0};
    if (call->given.hash != NULL) {
        return gcmp_bits_hash(call->evidence, call->given.hash, &call->options, &call->bits, error);
    }
    if (call->options.iteration < 0) {
        GCMP_TRY(gcmp_bits_pair_runs(call->evidence->arena, call->evidence->paths, call->count,
                                     &steps, error));
    }
    return steps.count > 0 ? compare_runs(call, &steps, error) : compare_paths(call, error);
}

static enum gradcmp_status check_usage(const struct call *call, struct gradcmp_error *error) {
    size_t least = call->given.hash == NULL ? 2 : 1;
    if (call->count < least) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "expected %s, found %zu",
                  least == 2 ? "a checkpoint and at least one to compare with it" : "a checkpoint",
                  call->count);
    }
    return GRADCMP_OK;
}

/* Take over what the caller's version of a struct has. */
static void take(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    memcpy(to, from, from_bytes < to_bytes ? from_bytes : to_bytes);
}

enum gradcmp_status gradcmp_bits(const char *const *paths, size_t count,
                                 const struct gradcmp_options *options,
                                 const struct gradcmp_bits_options *bits,
                                 struct gradcmp_evidence **out, struct gradcmp_error *error) {
    struct call call = {.paths = paths,
                        .count = count,
                        .options = GRADCMP_OPTIONS_INIT,
                        .given = GRADCMP_BITS_OPTIONS_INIT};
    *out = NULL;
    if (options != NULL) {
        take(&call.options, sizeof call.options, options, options->struct_size);
    }
    if (bits != NULL) {
        take(&call.given, sizeof call.given, bits, bits->struct_size);
    }
    GCMP_TRY(check_usage(&call, error));
    enum gradcmp_status status = begin(&call, error);
    if (status == GRADCMP_OK) {
        status = compare(&call, error);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_bits_conclude(call.evidence, error);
    }
    if (status != GRADCMP_OK) {
        gradcmp_evidence_free(call.evidence);
        return status;
    }
    *out = call.evidence;
    return GRADCMP_OK;
}
