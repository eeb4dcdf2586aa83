/* Several traces of one pair of runs put together: the finest that found something tells the
 * operation, unless stronger evidence contradicts it. */
#ifndef GCMP_TRACE_COMBINE_H
#define GCMP_TRACE_COMBINE_H

#include "trace/judge.h"

/* One rank over all traces. */
struct gcmp_trace_rank {
    int64_t rank;
    enum gcmp_role role;
    const struct gcmp_rank_result *told; /* the result that tells it */
    const struct gcmp_trace_result *by;  /* of this trace */
    bool is_overruled;                   /* a stronger trace took the finer one's word away */
    bool has_evidence, saw_skipped; /* some trace has fingerprints of tensors; not of all of them */
};

struct gcmp_trace_content {
    struct gcmp_trace_run *run; /* for its troubles; lives in the arena */
    struct gcmp_trace_result *traces;
    size_t trace_count;
    bool is_folder; /* several traces in folders of their own */
    enum gcmp_trace_verdict verdict;
    bool comparable;
    bool is_bare;           /* all events are equal, and no tensor was fingerprinted: invalid */
    const char *structural; /* "extra_or_missing", "order" or NULL */
    struct gcmp_trace_rank *ranks;
    size_t rank_count;
    int64_t *missing_a, *missing_b;
    size_t missing_a_count, missing_b_count;
    const char *reading;
};

/* Fill verdict, comparable, structural, ranks and missing ranks from the traces. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_traces_combine(struct gcmp_trace_run *run,
                                                         struct gcmp_trace_content *content,
                                                         struct gradcmp_error *error);

/* Write the one sentence; NULL without memory. */
const char *gcmp_trace_reading(struct gcmp_trace_run *run,
                               const struct gcmp_trace_content *content);

#endif
