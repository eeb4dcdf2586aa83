/* What the peers of a collective put in. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "trace/judge.h"

enum { MAX_TOLD = 64 }; /* peers of one rank that are kept */

bool gcmp_needs_peers(const struct gcmp_rank_result *rank) {
    const struct gcmp_value_difference *value = &rank->value;
    return rank->has_value && value->event.is_collective && value->inputs_match == GCMP_YES &&
           value->arguments_match == GCMP_YES;
}

/* Read on until the record of an identity; *found is false where there is none. A stream that
 * cannot be read to there has none: why is told already. */
static enum gradcmp_status find_record(struct gcmp_stream *stream, struct gcmp_identity wanted,
                                       bool *found, struct gradcmp_error *error) {
    struct gradcmp_error trouble = {0};
    *found = false;
    while (!*found) {
        enum gradcmp_status status = gcmp_stream_fetch(stream, &trouble);
        if (status == GRADCMP_OK && !stream->is_done) {
            status = gcmp_stream_parse(stream, &trouble);
        }
        if (status != GRADCMP_OK && !gcmp_is_trouble(status)) {
            if (error != NULL) {
                *error = trouble;
            }
            return status;
        }
        if (status != GRADCMP_OK || stream->is_done) {
            return GRADCMP_OK;
        }
        const struct gcmp_identity *here = stream->files->layout == &gcmp_layout_boundary
                                               ? &stream->event.identity
                                               : &stream->event.giving;
        *found = here->low == wanted.low && here->high == wanted.high;
    }
    return GRADCMP_OK;
}

static bool gives_the_same(const struct gcmp_stream *a, const struct gcmp_stream *b) {
    return a->event.kind == GCMP_EVENT_CALL
               ? gcmp_same_inputs(&a->reader, &a->event, &b->reader, &b->event)
               : gcmp_same_outputs(&a->reader, &a->event, &b->reader, &b->event);
}

/* Tell whether a rank put the same into a collective on both sides; UNKNOWN where either side does
 * not tell. */
static enum gradcmp_status ask(struct gcmp_trace_run *run, const struct gcmp_trace_files *files_a,
                               const struct gcmp_trace_files *files_b, int64_t rank,
                               struct gcmp_identity wanted, enum gcmp_maybe *same,
                               struct gradcmp_error *error) {
    struct gcmp_stream *both = calloc(2, sizeof *both);
    if (both == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    bool found_a = false;
    bool found_b = false;
    *same = GCMP_UNKNOWN;
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_stream_start(&both[0], run, files_a, rank, error));
    GCMP_TRY_OUT(gcmp_stream_start(&both[1], run, files_b, rank, error));
    both[0].is_unchecked = both[1].is_unchecked = true;
    GCMP_TRY_OUT(find_record(&both[0], wanted, &found_a, error));
    if (found_a) {
        GCMP_TRY_OUT(find_record(&both[1], wanted, &found_b, error));
    }
    if (found_b) {
        *same = gives_the_same(&both[0], &both[1]) ? GCMP_YES : GCMP_NO;
    }
out:
    gcmp_stream_end(&both[0]);
    gcmp_stream_end(&both[1]);
    free(both);
    return status;
}

/* Answers so far: the same peer is asked by many. */
struct answer {
    int64_t rank;
    struct gcmp_identity wanted;
    enum gcmp_maybe same;
};

struct asking {
    struct gcmp_trace_run *run;
    const struct gcmp_trace_files *a, *b;
    struct gcmp_trace_result *result;
    struct answer *answers;
    size_t count, capacity;
    struct gradcmp_error *error;
};

static enum gradcmp_status ask_once(struct asking *asking, int64_t rank,
                                    struct gcmp_identity wanted, enum gcmp_maybe *same) {
    for (size_t i = 0; i < asking->count; i++) {
        const struct answer *answer = &asking->answers[i];
        if (answer->rank == rank && answer->wanted.low == wanted.low &&
            answer->wanted.high == wanted.high) {
            *same = answer->same;
            return GRADCMP_OK;
        }
    }
    GCMP_TRY(ask(asking->run, asking->a, asking->b, rank, wanted, same, asking->error));
    if (!gcmp_grow(&asking->answers, asking->count, &asking->capacity, sizeof *asking->answers)) {
        GCMP_FAIL_MEMORY(asking->error);
    }
    asking->answers[asking->count++] = (struct answer){rank, wanted, *same};
    return GRADCMP_OK;
}

static const struct gcmp_rank_result *find_rank(const struct gcmp_trace_result *result,
                                                int64_t rank) {
    for (size_t i = 0; i < result->rank_count; i++) {
        if (result->ranks[i].rank == rank) {
            return &result->ranks[i];
        }
    }
    return NULL;
}

static enum gradcmp_status ask_peer(struct asking *asking, struct gcmp_value_difference *value,
                                    int64_t peer, bool is_named) {
    const struct gcmp_rank_result *found = find_rank(asking->result, peer);
    enum gcmp_maybe same = GCMP_UNKNOWN;
    if (found != NULL && found->state == GCMP_RANK_JUDGED) {
        GCMP_TRY(ask_once(asking, peer, value->event.giving, &same));
    }
    if (same == GCMP_NO && value->peer_count < MAX_TOLD) {
        value->peers[value->peer_count++] = peer;
    } else if (same == GCMP_UNKNOWN && is_named && value->silent_count < MAX_TOLD) {
        value->silent_peers[value->silent_count++] = peer;
    }
    return GRADCMP_OK;
}

/* Ask everyone in the group; where no group is told, every rank that has the collective. */
static enum gradcmp_status ask_all(struct asking *asking, struct gcmp_rank_result *rank) {
    struct gcmp_value_difference *value = &rank->value;
    bool is_named = value->event.group != NULL;
    size_t count = is_named ? value->event.group_count : asking->result->rank_count;
    size_t told = count < MAX_TOLD ? count : MAX_TOLD;
    value->peers = gcmp_arena_alloc(asking->run->arena, told, sizeof *value->peers);
    value->silent_peers = gcmp_arena_alloc(asking->run->arena, told, sizeof *value->peers);
    if (value->peers == NULL || value->silent_peers == NULL) {
        GCMP_FAIL_MEMORY(asking->error);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t peer = is_named ? value->event.group[i] : asking->result->ranks[i].rank;
        if (peer != rank->rank) {
            GCMP_TRY(ask_peer(asking, value, peer, is_named));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ask_peers(struct gcmp_trace_run *run, const struct gcmp_trace_files *a,
                                   const struct gcmp_trace_files *b,
                                   struct gcmp_trace_result *result, struct gradcmp_error *error) {
    struct asking asking = {.run = run, .a = a, .b = b, .result = result, .error = error};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < result->rank_count && status == GRADCMP_OK; i++) {
        if (gcmp_needs_peers(&result->ranks[i])) {
            status = ask_all(&asking, &result->ranks[i]);
        }
    }
    free(asking.answers);
    return status;
}
