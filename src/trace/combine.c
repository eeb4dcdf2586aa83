/* Several traces put together. */
#include "trace/combine.h"

#include <stdlib.h>
#include <string.h>

static const struct gcmp_rank_result *find_rank(const struct gcmp_trace_result *trace,
                                                int64_t rank) {
    size_t low = 0;
    for (size_t high = trace->rank_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (trace->ranks[middle].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < trace->rank_count && trace->ranks[low].rank == rank ? &trace->ranks[low] : NULL;
}

static bool found_something(const struct gcmp_rank_result *rank) {
    return rank->has_value || rank->has_structural;
}

/* How much a trace's word on a rank weighs: something found, then fineness, then strength. */
static unsigned weigh(const struct gcmp_trace_result *trace, const struct gcmp_rank_result *rank) {
    return (found_something(rank)             ? 4096U
            : rank->state != GCMP_RANK_JUDGED ? 2048U
                                              : 0U) +
           256U * (unsigned)trace->grain + 16U * (trace->layout == &gcmp_layout_ops) +
           (unsigned)rank->strength;
}

/* ---- does stronger evidence see the difference before? */

/* -1 where the order of a phase is not known. */
static int phase_order(const char *phase) {
    static const char *const phases[] = {"data", "forward", "backward", "grad_reduce"};
    for (int i = 0; phase != NULL && i < 4; i++) {
        if (strcmp(phase, phases[i]) == 0) {
            return i;
        }
    }
    return phase != NULL && strcmp(phase, "optimizer") == 0 ? 3 : -1;
}

static bool is_within(const char *module, const char *outer) {
    size_t length = outer == NULL ? 0 : strlen(outer);
    return module != NULL && length > 0 && strncmp(module, outer, length) == 0 &&
           (module[length] == '\0' || module[length] == '.');
}

/* Look through the finer trace: where do the operations of a module stand, compared with the one
 * that is blamed? */
static enum gradcmp_status module_ends_before(struct gcmp_trace_run *run,
                                              const struct gcmp_trace_result *finer,
                                              const struct gcmp_rank_result *rank,
                                              const char *module, bool *ends,
                                              struct gradcmp_error *error) {
    const struct gcmp_kept *blamed = &rank->value.event;
    struct gradcmp_error trouble = {0};
    bool seen_before = false;
    bool seen_behind = false;
    struct gcmp_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_stream_start(stream, run, finer->files, rank->rank, &trouble);
    stream->is_unchecked = true;
    for (uint64_t index = 0; status == GRADCMP_OK && !stream->is_done; index++) {
        status = gcmp_stream_fetch(stream, &trouble);
        if (status == GRADCMP_OK && !stream->is_done) {
            status = gcmp_stream_parse(stream, &trouble);
        }
        const struct gcmp_event *event = &stream->event;
        if (status != GRADCMP_OK || stream->is_done || event->iteration != blamed->iteration ||
            event->microbatch != blamed->microbatch || !is_within(event->module, module)) {
            continue;
        }
        *(index < rank->value.index ? &seen_before : &seen_behind) = true;
    }
    gcmp_stream_end(stream);
    free(stream);
    *ends = seen_before && !seen_behind;
    if (status != GRADCMP_OK && !gcmp_is_trouble(status)) {
        if (error != NULL) {
            *error = trouble;
        }
        return status;
    }
    return GRADCMP_OK;
}

/* Tell whether the first difference that `strong` sees comes before the event that the finer trace
 * blames. In doubt it does not. */
static enum gradcmp_status comes_before(struct gcmp_trace_run *run,
                                        const struct gcmp_rank_result *strong,
                                        const struct gcmp_trace_result *finer,
                                        const struct gcmp_rank_result *fine, bool *before,
                                        struct gradcmp_error *error) {
    const struct gcmp_kept *s = &strong->value.event;
    const struct gcmp_kept *f = &fine->value.event;
    int phase_s = phase_order(s->phase);
    int phase_f = phase_order(f->phase);
    *before = false;
    if (s->iteration != f->iteration || phase_s < 0 || phase_f < 0) {
        *before = s->iteration >= 0 && s->iteration < f->iteration;
        return GRADCMP_OK;
    }
    if (s->microbatch >= 0 && f->microbatch >= 0 && s->microbatch != f->microbatch) {
        *before = s->microbatch < f->microbatch && phase_s <= phase_f;
        return GRADCMP_OK;
    }
    if (phase_s != phase_f) {
        *before = phase_s < phase_f && (s->microbatch >= 0 || f->microbatch < 0);
        return GRADCMP_OK;
    }
    if (is_within(f->module, s->module)) {
        *before = s->kind == GCMP_EVENT_INPUT;
        return GRADCMP_OK;
    }
    if (phase_s != 1 || s->module == NULL) {
        return GRADCMP_OK;
    }
    return module_ends_before(run, finer, fine, s->module, before, error);
}

/* Tracers of one family count steps alike; others may start from another number. */
static bool counts_alike(const struct gcmp_trace_layout *a, const struct gcmp_trace_layout *b) {
    bool megatron_a = a == &gcmp_layout_boundary || a == &gcmp_layout_ops;
    bool megatron_b = b == &gcmp_layout_boundary || b == &gcmp_layout_ops;
    return a == b || (megatron_a && megatron_b);
}

/* Take an origin back that stronger evidence contradicts: digests that are blind to permutations
 * blame the operation behind which a permutation first shows. */
static enum gradcmp_status overrule(struct gcmp_trace_run *run,
                                    const struct gcmp_trace_content *content,
                                    struct gcmp_trace_rank *rank, struct gradcmp_error *error) {
    const struct gcmp_trace_result *finer = rank->by;
    const struct gcmp_rank_result *fine = rank->told;
    for (size_t i = 0; i < content->trace_count && rank->role == GCMP_ROLE_ORIGIN; i++) {
        const struct gcmp_trace_result *trace = &content->traces[i];
        const struct gcmp_rank_result *strong = find_rank(trace, rank->rank);
        bool before = false;
        if (strong == NULL || !strong->has_value || strong->strength <= fine->strength ||
            strong->strength < GCMP_STRENGTH_CHECKSUM ||
            !counts_alike(trace->layout, finer->layout)) {
            continue;
        }
        GCMP_TRY(comes_before(run, strong, finer, fine, &before, error));
        if (before) {
            rank->told = strong;
            rank->by = trace;
            rank->is_overruled = true;
            rank->role = strong->role;
            return GRADCMP_OK;
        }
    }
    return GRADCMP_OK;
}

/* ---- the whole */

/* Gather the ranks of all traces, sorted, each once. */
static int compare_ranks(const void *left, const void *right) {
    int64_t a = ((const struct gcmp_trace_rank *)left)->rank;
    int64_t b = ((const struct gcmp_trace_rank *)right)->rank;
    return a < b ? -1 : a > b;
}

static enum gradcmp_status gather_ranks(struct gcmp_trace_run *run,
                                        struct gcmp_trace_content *content,
                                        struct gradcmp_error *error) {
    size_t total = 0;
    for (size_t i = 0; i < content->trace_count; i++) {
        total += content->traces[i].rank_count;
    }
    content->ranks = gcmp_arena_alloc(run->arena, total, sizeof *content->ranks);
    content->missing_a = gcmp_arena_alloc(run->arena, total, sizeof *content->missing_a);
    content->missing_b = gcmp_arena_alloc(run->arena, total, sizeof *content->missing_b);
    if (content->ranks == NULL || content->missing_a == NULL || content->missing_b == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t count = 0;
    for (size_t i = 0; i < content->trace_count; i++) {
        for (size_t r = 0; r < content->traces[i].rank_count; r++) {
            content->ranks[count++].rank = content->traces[i].ranks[r].rank;
        }
    }
    if (count > 0) {
        qsort(content->ranks, count, sizeof *content->ranks, compare_ranks);
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || content->ranks[i].rank != content->ranks[content->rank_count - 1].rank) {
            content->ranks[content->rank_count++] = content->ranks[i];
        }
    }
    return GRADCMP_OK;
}

/* Choose the trace that tells of a rank. */
static void choose(const struct gcmp_trace_content *content, struct gcmp_trace_rank *rank) {
    unsigned best = 0;
    for (size_t i = 0; i < content->trace_count; i++) {
        const struct gcmp_rank_result *found = find_rank(&content->traces[i], rank->rank);
        rank->has_evidence |= found != NULL && found->strength != GCMP_STRENGTH_NONE;
        rank->saw_skipped |= found != NULL && found->saw_skipped;
        if (found != NULL && (rank->told == NULL || weigh(&content->traces[i], found) > best)) {
            best = weigh(&content->traces[i], found);
            rank->told = found;
            rank->by = &content->traces[i];
            rank->role = found->role;
        }
    }
}

static void note_missing(struct gcmp_trace_content *content, int64_t rank) {
    bool in_a = true;
    bool in_b = true;
    for (size_t i = 0; i < content->trace_count; i++) {
        const struct gcmp_rank_result *found = find_rank(&content->traces[i], rank);
        in_a &= found == NULL || found->state != GCMP_RANK_MISSING_A;
        in_b &= found == NULL || found->state != GCMP_RANK_MISSING_B;
    }
    if (!in_a) {
        content->missing_a[content->missing_a_count++] = rank;
    }
    if (!in_b) {
        content->missing_b[content->missing_b_count++] = rank;
    }
}

/* A module is no operation: where operations were traced and found wanting on some rank, a rank of
 * which only modules are known cannot be blamed beside it. */
static void withhold_modules(struct gcmp_trace_content *content) {
    enum gcmp_grain finest = GCMP_GRAIN_MODULE;
    for (size_t i = 0; i < content->rank_count; i++) {
        const struct gcmp_trace_rank *rank = &content->ranks[i];
        if (found_something(rank->told) && rank->by->grain > finest) {
            finest = rank->by->grain;
        }
    }
    for (size_t i = 0; i < content->rank_count; i++) {
        struct gcmp_trace_rank *rank = &content->ranks[i];
        if (rank->role == GCMP_ROLE_ORIGIN && rank->by->grain < finest && !rank->is_overruled) {
            rank->role = GCMP_ROLE_UNPROVEN;
        }
    }
}

static void sum_up(struct gcmp_trace_run *run, struct gcmp_trace_content *content) {
    size_t judged = 0;
    enum gcmp_strength strongest = GCMP_STRENGTH_NONE;
    content->comparable = true;
    content->verdict = GCMP_TRACE_MATCH;
    for (size_t i = 0; i < content->trace_count; i++) {
        const struct gcmp_trace_result *trace = &content->traces[i];
        bool is_invalid = trace->verdict == GCMP_TRACE_INVALID;
        judged += !is_invalid;
        strongest = trace->strength > strongest ? trace->strength : strongest;
        content->comparable &= trace->comparable;
        if (!is_invalid && trace->verdict > content->verdict) {
            content->verdict = trace->verdict;
        }
        if (trace->structural != NULL &&
            (content->structural == NULL || strcmp(trace->structural, "order") != 0)) {
            content->structural = trace->structural;
        }
    }
    content->is_bare = content->verdict == GCMP_TRACE_MATCH && strongest == GCMP_STRENGTH_NONE;
    if (judged == 0 || content->is_bare ||
        (!run->is_lenient && (judged < content->trace_count || run->trouble_count > 0))) {
        content->verdict = GCMP_TRACE_INVALID;
        content->structural = NULL;
    }
}

enum gradcmp_status gcmp_traces_combine(struct gcmp_trace_run *run,
                                        struct gcmp_trace_content *content,
                                        struct gradcmp_error *error) {
    GCMP_TRY(gather_ranks(run, content, error));
    for (size_t i = 0; i < content->rank_count; i++) {
        choose(content, &content->ranks[i]);
        GCMP_TRY(overrule(run, content, &content->ranks[i], error));
        note_missing(content, content->ranks[i].rank);
    }
    withhold_modules(content);
    sum_up(run, content);
    return GRADCMP_OK;
}
