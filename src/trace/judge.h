/* One trace of both sides: what each rank's first difference means, given the others'. */
#ifndef GCMP_TRACE_JUDGE_H
#define GCMP_TRACE_JUDGE_H

#include "trace/align.h"

const char *gcmp_role_name(enum gcmp_role role);

enum gcmp_trace_verdict { GCMP_TRACE_MATCH, GCMP_TRACE_DIVERGED, GCMP_TRACE_INVALID };

const char *gcmp_trace_verdict_name(enum gcmp_trace_verdict verdict);

struct gcmp_trace_result {
    const char *name; /* of the folder, or of the layout */
    const struct gcmp_trace_layout *layout;
    const struct gcmp_trace_files *files; /* of a */
    enum gcmp_grain grain;
    enum gcmp_trace_verdict verdict;
    struct gcmp_rank_result *ranks; /* sorted */
    size_t rank_count;
    enum gcmp_strength strength; /* the weakest of the ranks' */
    bool comparable;
    const char *structural; /* "extra_or_missing", "order" or NULL */
    uint64_t records;       /* compared and equal */
};

/* Compare the files of one trace on both sides. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_judge_trace(struct gcmp_trace_run *run,
                                                      const struct gcmp_trace_files *a,
                                                      const struct gcmp_trace_files *b,
                                                      struct gcmp_trace_result *out,
                                                      struct gradcmp_error *error);

/* Look at the peers of ranks whose first difference is a collective with equal local input: fills
 * value.peers and value.silent_peers. Reads streams a second time. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ask_peers(struct gcmp_trace_run *run,
                                                    const struct gcmp_trace_files *a,
                                                    const struct gcmp_trace_files *b,
                                                    struct gcmp_trace_result *result,
                                                    struct gradcmp_error *error);
/* True where the peers decide the role. */
bool gcmp_needs_peers(const struct gcmp_rank_result *rank);

#endif
