/* Copies of what is told of an event, which outlive its record. */
#ifndef GCMP_TRACE_KEEP_H
#define GCMP_TRACE_KEEP_H

#include "trace/align.h"

/* Keep the event of one stream; its sequence, path and line go to those of a. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_keep_one(const struct gcmp_stream *stream, struct gcmp_kept *out, struct gradcmp_error *error);
/* Keep one event that both streams have. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_keep_pair(const struct gcmp_stream *a,
                                                    const struct gcmp_stream *b,
                                                    struct gcmp_kept *out,
                                                    struct gradcmp_error *error);
/* Take note of the group that a collective runs over: "data_parallel.all_reduce" over [0, 2] puts
 * rank 2 at index 1 of 2 of "data_parallel". */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_coordinate(const struct gcmp_stream *stream,
                                                          struct gcmp_rank_result *out,
                                                          struct gradcmp_error *error);

#endif
