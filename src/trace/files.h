/* Which files of a folder are a trace, of which layout, rank and iteration. */
#ifndef GCMP_TRACE_FILES_H
#define GCMP_TRACE_FILES_H

#include "base/arena.h"
#include "trace/layout.h"

struct gcmp_trace_file {
    uint32_t file; /* of the dir */
    int64_t rank, iteration;
    const char *name; /* below the trace's folder */
};

/* One trace: the files of one layout in one folder, sorted by rank and iteration. */
struct gcmp_trace_files {
    const char *folder; /* below the path that was given; "" for itself */
    const struct gcmp_trace_layout *layout;
    struct gcmp_dir *dir;
    struct gcmp_trace_file *files;
    size_t count;
};

/* What was found below a path. */
struct gcmp_traces {
    struct gcmp_dir *dir;
    struct gcmp_trace_files *traces;
    size_t count;
    const char *closed; /* the first entry that could not be looked into; NULL: none */
    size_t closed_count;
};

/* Something that spoils a trace: it is told, and the verdict is "invalid". */
struct gcmp_trouble {
    const char *layout; /* folder or layout; NULL: of all */
    char side;          /* 'a' or 'b' */
    int64_t rank;       /* -1: none */
    const char *path;
    uint64_t line; /* 0: none */
    const char *text;
    struct gcmp_trouble *next;
};

/* What all of one comparison share. */
struct gcmp_trace_run {
    struct gcmp_arena *arena;
    uint64_t seed; /* secret, of every hash */
    bool is_lenient;
    struct gcmp_trouble *first, **last; /* in the order of finding */
    size_t trouble_count;
    gradcmp_progress_fn progress;
    void *progress_user;
    uint64_t done_bytes, total_bytes;
};

/* Keep a trouble. `error` tells path and text (its line stands at the front of the message);
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_trouble_add(struct gcmp_trace_run *run,
                                                      const char *layout, char side, int64_t rank,
                                                      const struct gradcmp_error *trouble,
                                                      struct gradcmp_error *error);
/* True for a failure that belongs to the trace, not to the machine. */
bool gcmp_is_trouble(enum gradcmp_status status);

/* Look at the path of one side, an open directory: a trace, or a folder of several. Troubles with
 * single files are kept; finding no trace at all is one too. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_traces_find(struct gcmp_trace_run *run,
                                                      struct gcmp_dir *dir, char side,
                                                      struct gcmp_traces *out,
                                                      struct gradcmp_error *error);

#endif
