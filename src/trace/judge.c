/* What the first differences of a trace mean. */
#include "trace/judge.h"

#include <stdio.h>
#include <string.h>

const char *gcmp_role_name(enum gcmp_role role) {
    static const char *const names[] = {
        [GCMP_ROLE_MATCH] = "match",           [GCMP_ROLE_ORIGIN] = "origin",
        [GCMP_ROLE_RECEIVER] = "receiver",     [GCMP_ROLE_SOURCE] = "source",
        [GCMP_ROLE_INPUTS] = "inputs",         [GCMP_ROLE_UNPROVEN] = "unproven",
        [GCMP_ROLE_STRUCTURAL] = "structural", [GCMP_ROLE_MISSING] = "missing",
        [GCMP_ROLE_DAMAGED] = "damaged"};
    return names[role];
}

const char *gcmp_trace_verdict_name(enum gcmp_trace_verdict verdict) {
    static const char *const names[] = {"match", "diverged", "invalid"};
    return names[verdict];
}

/* ---- roles */

/* The role of a call: inputs and outputs are in one record. */
static enum gcmp_role role_of_call(const struct gcmp_rank_result *rank) {
    const struct gcmp_value_difference *value = &rank->value;
    if (value->inputs_match == GCMP_NO || value->arguments_match == GCMP_NO) {
        return GCMP_ROLE_RECEIVER;
    }
    if (value->inputs == GCMP_INPUTS_UNKNOWN && rank->saw_inputs && !value->event.is_collective &&
        value->event.phase == NULL) {
        return GCMP_ROLE_SOURCE; /* others told their inputs, so this one has none */
    }
    if (value->inputs == GCMP_INPUTS_NONE) {
        return value->event.is_collective ? GCMP_ROLE_RECEIVER : GCMP_ROLE_SOURCE;
    }
    return value->inputs_match == GCMP_YES ? GCMP_ROLE_ORIGIN : GCMP_ROLE_UNPROVEN;
}

static enum gcmp_role role_of_boundary(const struct gcmp_value_difference *value) {
    const struct gcmp_kept *event = &value->event;
    bool is_data = event->phase != NULL && strcmp(event->phase, "data") == 0;
    switch (event->kind) {
    case GCMP_EVENT_OUTPUT:
        return value->inputs_match == GCMP_YES ? GCMP_ROLE_ORIGIN : GCMP_ROLE_UNPROVEN;
    case GCMP_EVENT_INPUT:
        return is_data || value->at_start ? GCMP_ROLE_INPUTS : GCMP_ROLE_RECEIVER;
    default:
        return is_data || value->at_start ? GCMP_ROLE_INPUTS : GCMP_ROLE_UNPROVEN;
    }
}

static enum gcmp_role role_of(const struct gcmp_rank_result *rank) {
    const struct gcmp_value_difference *value = &rank->value;
    if (rank->state != GCMP_RANK_JUDGED) {
        return GCMP_ROLE_MISSING;
    }
    if (!rank->has_value) {
        return rank->has_structural ? GCMP_ROLE_STRUCTURAL
               : rank->is_damaged   ? GCMP_ROLE_DAMAGED
                                    : GCMP_ROLE_MATCH;
    }
    enum gcmp_role role =
        value->event.kind == GCMP_EVENT_CALL ? role_of_call(rank) : role_of_boundary(value);
    if (role == GCMP_ROLE_ORIGIN && value->event.is_collective &&
        (value->peer_count > 0 || value->silent_count > 0 || !value->same_group)) {
        return GCMP_ROLE_RECEIVER; /* or nobody knows, and then nobody is blamed */
    }
    return role;
}

static bool is_data(const struct gcmp_rank_result *rank) {
    return rank->value.event.phase != NULL && strcmp(rank->value.event.phase, "data") == 0;
}

/* A rank that begins with what another rank made (a pipeline's later stage) is no start where that
 * other rank is known. */
static void correct_starts(struct gcmp_trace_result *result) {
    bool has_cause = false;
    for (size_t i = 0; i < result->rank_count; i++) {
        const struct gcmp_rank_result *rank = &result->ranks[i];
        has_cause |= rank->role == GCMP_ROLE_ORIGIN || rank->role == GCMP_ROLE_SOURCE ||
                     (rank->role == GCMP_ROLE_INPUTS && is_data(rank));
    }
    for (size_t i = 0; has_cause && i < result->rank_count; i++) {
        struct gcmp_rank_result *rank = &result->ranks[i];
        if (rank->role == GCMP_ROLE_INPUTS && !is_data(rank)) {
            rank->role = GCMP_ROLE_RECEIVER;
        }
    }
}

/* ---- the trace */

static const char *structural_word(const struct gcmp_rank_result *rank) {
    return !rank->has_structural ? NULL : rank->structural.is_order ? "order" : "extra_or_missing";
}

static void sum_up(struct gcmp_trace_run *run, size_t troubles_before,
                   struct gcmp_trace_result *out) {
    bool differs = false;
    bool is_judged = false;
    out->comparable = true;
    for (size_t i = 0; i < out->rank_count; i++) {
        struct gcmp_rank_result *rank = &out->ranks[i];
        const char *word = structural_word(rank);
        rank->role = role_of(rank);
        differs |= rank->has_value || rank->has_structural || rank->role == GCMP_ROLE_MISSING;
        is_judged |= rank->equal_prefix > 0 || rank->has_value || rank->has_structural;
        out->records += rank->equal_prefix;
        out->comparable &=
            rank->role != GCMP_ROLE_MISSING &&
            (!rank->has_value || !rank->value.event.is_collective || rank->value.same_group);
        if (word != NULL && (out->structural == NULL || !rank->structural.is_order)) {
            out->structural = word;
        }
        if (rank->strength != GCMP_STRENGTH_NONE &&
            (out->strength == GCMP_STRENGTH_NONE || rank->strength < out->strength)) {
            out->strength = rank->strength;
        }
    }
    correct_starts(out);
    bool is_spoilt = run->trouble_count > troubles_before && !run->is_lenient;
    out->verdict = is_spoilt || !is_judged ? GCMP_TRACE_INVALID
                   : differs               ? GCMP_TRACE_DIVERGED
                                           : GCMP_TRACE_MATCH;
}

/* The next rank of either side behind `rank`; false behind the last. */
static bool next_rank(const struct gcmp_trace_files *a, const struct gcmp_trace_files *b,
                      size_t *at_a, size_t *at_b, int64_t *rank) {
    while (*at_a < a->count && a->files[*at_a].rank <= *rank) {
        (*at_a)++;
    }
    while (*at_b < b->count && b->files[*at_b].rank <= *rank) {
        (*at_b)++;
    }
    if (*at_a == a->count && *at_b == b->count) {
        return false;
    }
    int64_t in_a = *at_a < a->count ? a->files[*at_a].rank : INT64_MAX;
    int64_t in_b = *at_b < b->count ? b->files[*at_b].rank : INT64_MAX;
    *rank = in_a < in_b ? in_a : in_b;
    return true;
}

static enum gradcmp_status complain(struct gcmp_trace_run *run,
                                    const struct gcmp_trace_files *files, const char *layout,
                                    int64_t rank, const char *text, struct gradcmp_error *error) {
    struct gradcmp_error trouble = {0};
    snprintf(trouble.path, sizeof trouble.path, "%s%s%s", gcmp_dir_path(files->dir),
             files->folder[0] == '\0' ? "" : "/", files->folder);
    snprintf(trouble.message, sizeof trouble.message, "%s", text);
    return gcmp_trouble_add(run, layout, 'b', rank, &trouble, error);
}

/* Iterations that were chosen differently leave nothing to compare: the files of one side must be
 * the first of the other's (a run that ended early), or the same. */
static enum gradcmp_status check_iterations(struct gcmp_trace_run *run,
                                            const struct gcmp_trace_files *a,
                                            const struct gcmp_trace_files *b, const char *layout,
                                            int64_t rank, bool *fine, struct gradcmp_error *error) {
    size_t first_a;
    size_t end_a;
    size_t first_b;
    size_t end_b;
    *fine = true;
    (void)gcmp_stream_range(a, rank, &first_a, &end_a);
    (void)gcmp_stream_range(b, rank, &first_b, &end_b);
    for (size_t i = 0; first_a + i < end_a && first_b + i < end_b && *fine; i++) {
        const struct gcmp_trace_file *file_a = &a->files[first_a + i];
        const struct gcmp_trace_file *file_b = &b->files[first_b + i];
        *fine = file_a->iteration == file_b->iteration;
        if (!*fine) {
            char text[160];
            snprintf(text, sizeof text,
                     "other iterations were traced on rank %lld: %lld here, %lld on the other side",
                     (long long)rank, (long long)file_b->iteration, (long long)file_a->iteration);
            return complain(run, b, layout, rank, text, error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status judge_rank(struct gcmp_trace_run *run, const struct gcmp_trace_files *a,
                                      const struct gcmp_trace_files *b, const char *layout,
                                      struct gcmp_rank_result *out, struct gradcmp_error *error) {
    size_t first;
    size_t end;
    bool in_a = gcmp_stream_range(a, out->rank, &first, &end);
    bool in_b = gcmp_stream_range(b, out->rank, &first, &end);
    bool fine = true;
    if (!in_a || !in_b) {
        const struct gcmp_trace_files *there = in_a ? a : b;
        out->state = in_a ? GCMP_RANK_MISSING_B : GCMP_RANK_MISSING_A;
        return gcmp_read_rank(run, there, in_a ? 'a' : 'b', layout, out, error);
    }
    GCMP_TRY(check_iterations(run, a, b, layout, out->rank, &fine, error));
    if (!fine) {
        out->is_damaged = true;
        return GRADCMP_OK;
    }
    return gcmp_align_rank(run, a, b, layout, out->rank, out, error);
}

enum gradcmp_status gcmp_judge_trace(struct gcmp_trace_run *run, const struct gcmp_trace_files *a,
                                     const struct gcmp_trace_files *b,
                                     struct gcmp_trace_result *out, struct gradcmp_error *error) {
    size_t before = run->trouble_count;
    size_t at_a = 0;
    size_t at_b = 0;
    int64_t rank = -1;
    out->layout = a->layout;
    out->files = a;
    out->grain = a->layout->grain;
    out->ranks = gcmp_arena_alloc(run->arena, a->count + b->count, sizeof *out->ranks);
    if (out->ranks == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    while (next_rank(a, b, &at_a, &at_b, &rank)) {
        struct gcmp_rank_result *result = &out->ranks[out->rank_count++];
        result->rank = rank;
        GCMP_TRY(judge_rank(run, a, b, out->name, result, error));
    }
    GCMP_TRY(gcmp_ask_peers(run, a, b, out, error));
    sum_up(run, before, out);
    return GRADCMP_OK;
}
