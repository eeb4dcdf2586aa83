/* The events of one rank on one side, over all of its files, in the order of execution. */
#ifndef GCMP_TRACE_STREAM_H
#define GCMP_TRACE_STREAM_H

#include "trace/files.h"
#include "trace/repeats.h"

struct gcmp_stream {
    struct gcmp_trace_run *run;
    const struct gcmp_trace_files *files;
    size_t at, end; /* files of the rank: the one being read, and the one behind the last */
    bool is_open, is_done;
    bool is_unchecked; /* read a second time */
    struct gcmp_framer framer;
    struct gcmp_reader reader;
    struct gcmp_frame frame; /* set by gcmp_stream_fetch */
    struct gcmp_event event; /* set by gcmp_stream_parse */
    int64_t last_sequence;
    struct gcmp_repeats repeats;
    uint64_t records;
};

/* Find the files of a rank: false where it has none. */
bool gcmp_stream_range(const struct gcmp_trace_files *files, int64_t rank, size_t *first,
                       size_t *end);

GRADCMP_MUST_USE enum gradcmp_status gcmp_stream_start(struct gcmp_stream *stream,
                                                       struct gcmp_trace_run *run,
                                                       const struct gcmp_trace_files *files,
                                                       int64_t rank, struct gradcmp_error *error);
void gcmp_stream_end(struct gcmp_stream *stream);

/* Get the bytes of the next event; is_done behind the last. Failures that gcmp_is_trouble name the
 * file and, in the message, the line. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_stream_fetch(struct gcmp_stream *stream,
                                                       struct gradcmp_error *error);
/* Make the event of them. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_stream_parse(struct gcmp_stream *stream,
                                                       struct gradcmp_error *error);
/* Take the event from a stream whose bytes are the same. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_stream_adopt(struct gcmp_stream *stream,
                                                       const struct gcmp_stream *twin,
                                                       struct gradcmp_error *error);
/* The path of the file being read. */
const char *gcmp_stream_path(const struct gcmp_stream *stream);

#endif
