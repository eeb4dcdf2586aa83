/* One rank of two traces side by side: where the two first differ. */
#ifndef GCMP_TRACE_ALIGN_H
#define GCMP_TRACE_ALIGN_H

#include "trace/stream.h"

/* A truth that may not be known. */
enum gcmp_maybe { GCMP_UNKNOWN = -1, GCMP_NO = 0, GCMP_YES = 1 };

/* What is kept of an event; texts in the run's arena, NULL where there is none. */
struct gcmp_kept {
    int64_t iteration, microbatch, occurrence;
    const char *phase, *type, *name, *id, *module;
    enum gcmp_event_kind kind;
    int64_t sequence_a, sequence_b; /* -1: none */
    const char *path_a, *path_b;
    uint64_t line_a, line_b;
    bool is_collective;
    struct gcmp_identity giving;
    int64_t *group; /* ranks of a's group, sorted as written */
    size_t group_count;
};

/* The first event whose values differ. */
struct gcmp_value_difference {
    uint64_t index; /* in the rank's order, from 0 */
    struct gcmp_kept event;
    enum gcmp_maybe inputs_match, outputs_match, arguments_match;
    enum gcmp_inputs inputs;
    bool at_start; /* nothing was computed before it in its microbatch */
    bool same_group;
    const char *where; /* what differs, such as "out[0].digest: 00ff != 00fe" */
    /* For a collective with equal local input, from looking at the peers. */
    int64_t *peers, *silent_peers; /* whose input differs; who were not traced */
    size_t peer_count, silent_count;
};

/* The first place where the events themselves differ. */
struct gcmp_structural {
    uint64_t index;
    const char *kind;  /* "stream_end", "order", "extra_or_missing", "missing_event", ... */
    bool is_order;     /* the same events in another order */
    char ended;        /* 'a' or 'b': that side ends here; 0: neither */
    char missing_from; /* 'a' or 'b': the side that never has the other's event; 0: open */
    bool has_a, has_b;
    struct gcmp_kept a, b; /* what stands there; path_a and line_a are each one's own */
};

/* What a rank's first difference is to the whole. */
enum gcmp_role {
    GCMP_ROLE_MATCH,      /* none */
    GCMP_ROLE_ORIGIN,     /* equal inputs, other outputs */
    GCMP_ROLE_RECEIVER,   /* it came from elsewhere: other inputs, or a peer's */
    GCMP_ROLE_SOURCE,     /* an operation without tensor inputs: a random number, a constant */
    GCMP_ROLE_INPUTS,     /* what the step began with differs: data, its order, the start */
    GCMP_ROLE_UNPROVEN,   /* outputs differ, inputs were not recorded */
    GCMP_ROLE_STRUCTURAL, /* the events themselves differ */
    GCMP_ROLE_MISSING,    /* one side has no such rank */
    GCMP_ROLE_DAMAGED     /* not read to its end, nothing found before */
};

enum gcmp_rank_state { GCMP_RANK_JUDGED, GCMP_RANK_MISSING_A, GCMP_RANK_MISSING_B };

/* Where a rank stands in a group of ranks that some collective runs over. */
struct gcmp_coordinate {
    const char *family; /* "data_parallel" */
    size_t index, size;
};
enum { GCMP_MAX_COORDINATES = 8 };

struct gcmp_rank_result {
    int64_t rank;
    enum gcmp_rank_state state;
    bool is_damaged; /* a file could not be read to its end, or not be compared */
    uint64_t equal_prefix, records_a, records_b;
    bool has_value, has_structural;
    struct gcmp_value_difference value;
    struct gcmp_structural structural;
    enum gcmp_strength strength;
    char mode[32];
    bool saw_skipped, saw_inputs;
    struct gcmp_coordinate coordinates[GCMP_MAX_COORDINATES];
    size_t coordinate_count;
    enum gcmp_role role; /* set by gcmp_judge_trace */
};

/* Compare one rank that both sides have. Troubles are kept in the run. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_align_rank(struct gcmp_trace_run *run, const struct gcmp_trace_files *a,
                const struct gcmp_trace_files *b, const char *layout, int64_t rank,
                struct gcmp_rank_result *out, struct gradcmp_error *error);

/* Read the one side of a rank that the other lacks, to see that it is sound; counts its records. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_read_rank(struct gcmp_trace_run *run, const struct gcmp_trace_files *files, char side,
               const char *layout, struct gcmp_rank_result *out, struct gradcmp_error *error);

/* Compare what went into two events of one identity. */
bool gcmp_same_inputs(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                      const struct gcmp_reader *b, const struct gcmp_event *event_b);
/* Compare what came out. */
bool gcmp_same_outputs(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                       const struct gcmp_reader *b, const struct gcmp_event *event_b);

#endif
