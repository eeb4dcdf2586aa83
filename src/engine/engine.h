/* The engine: gathers slabs of both sides in units of blocks, tallies them on several threads, and
 * returns figures that do not depend on how the work was cut. */
#ifndef GCMP_ENGINE_ENGINE_H
#define GCMP_ENGINE_ENGINE_H

#include "base/arena.h"
#include "base/error.h"
#include "engine/accelerator.h"
#include "engine/pages.h"
#include "engine/ring.h"
#include "gradcmp/gradcmp.h"
#include "engine/ranks.h"
#include "gradcmp/sys/parameter.h"
#include "gradcmp/sys/tally.h"

/* One side of a job: a run of a parameter's elements in row-major order, from one copy. Those of a
 * parameter with a former are computed in float64, which is their type for all that follows. */
struct gcmp_side {
    const struct gradcmp_catalogue *catalogue;
    const struct gradcmp_parameter *parameter;
    uint64_t first_elem; /* of the run */
    uint32_t copy;
    uint32_t owner; /* index into the run's errors: 0 the baseline, 1 + i candidate i */
    double divisor; /* if not 0, the side's values are made float64 and divided by this first */
    enum gradcmp_dtype rounding; /* if not NONE, they are made float64 and rounded to this type */
};

/* Receive the run's elements in order, in the stored type (computed ones: float64) and native byte
 * order (for hashes, extraction). Called from one thread at a time, but not always the same; the
 * jobs of a run are delivered one after another. Return nonzero to stop the run (CANCELLED). */
typedef int (*gcmp_sink_fn)(void *user, const void *elems, size_t bytes);

/* Receive elements of one side of a job: 0 is a, 1 + i is b[i]. `first` counts from the job's first
 * element. Runs of elements come in order; of each run, side after side, and those of side 0
 * stay where they are until the run's last side was received. Otherwise as a sink. */
typedef int (*gcmp_sides_fn)(void *user, size_t side, uint64_t first, const void *elems,
                             size_t count);

/* Elements of both sides of a job, from the same stretch of the run, each in its stored type and
 * native byte order. */
struct gcmp_facing {
    size_t b;       /* index into the job's b */
    uint64_t first; /* element of the job */
    size_t elems;
    const void *elems_a, *elems_b;
};

/* Receive a stretch of both sides, in place of a tally. Called from several threads at once,
 * stretches in any order. */
typedef void (*gcmp_face_fn)(void *user, const struct gcmp_facing *facing);

/* Tally `elems` elements of `a` against each of b[0 .. b_count); with b_count 0, of `a` alone (then
 * tallies[0] is written, with b = a). Types that are not floating go to the sink only: of their
 * tallies only elems is set. */
struct gcmp_job {
    struct gcmp_side a;
    const struct gcmp_side *b;
    size_t b_count;
    uint64_t elems;
    int scale_log2; /* if not 0, every value is made float64 and multiplied by 2^this first */
    struct gradcmp_tally *tallies; /* b_count entries, or 1 */
    gcmp_sink_fn sink;             /* of a's elements; NULL normally */
    gcmp_sides_fn sides;           /* of all sides' elements; NULL normally, and with a sink */
    void *sink_user;
    gcmp_face_fn face; /* not NULL: sides are handed over as they are; of tallies only elems is
                          set. Not with scale_log2 */
    void *face_user;
};

struct gcmp_engine_options {
    unsigned threads; /* 0: CPU affinity and cgroup quota */
    uint64_t
        buffer_bytes; /* 0: 48 MiB; bounds all buffers of all threads; at least 384 KiB are used */
    int verify;       /* as in struct gradcmp_options */
    gradcmp_progress_fn progress;
    void *progress_user;
    const struct gcmp_accelerator *accelerator; /* tallies in place of the processor; NULL: none */
    /* Where the accelerator fails, the run goes on without it and its error is put here; with NULL
     * the run fails (DEVICE). */
    struct gradcmp_error *accelerator_error;
    struct gcmp_pages *pages; /* files are read through them; NULL: as they are */
    /* How reads run ahead of sums. */
    enum gradcmp_reads reads;
    int direct; /* nonzero: whole pieces are read past the page cache, where that is allowed */
    gradcmp_warn_fn warn; /* told at the end where it was refused; NULL allowed */
    void *warn_user;
    const struct gcmp_ring_way *ring_way; /* in place of io_uring; NULL normally */
    /* The ranks that share the work, each called with the same jobs and none of them with a sink or
     * a face: all receive the same tallies and errors, those of a run without them. CANCELLED too
     * where another rank ends. NULL: this process does all. */
    struct gradcmp_ranks *ranks;
};

/* What the caller of the library chose: threads, buffers, ways of reading, checks, progress. */
struct gcmp_engine_options gcmp_engine_options_of(const struct gradcmp_options *options);

/* Run all jobs; figures do not depend on options. errors[o] for each owner o < owner_count says
 * whether that side could be read (code 0); the tallies of jobs with a failed side are not to be
 * used. Of several faults of one side the one of the first job, at the lowest element, is reported,
 * on any thread count. A failed baseline (owner 0) fails the call. Checksums of records that were
 * read whole are checked: while they are read where each byte was read once, else by one more
 * reading. The calling thread works too, and it alone calls `progress`. Other errors: USAGE (a job
 * outside of its parameter), MEMORY, CANCELLED.
 */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_engine_run(struct gcmp_job *jobs, size_t job_count, const struct gcmp_engine_options *options,
                struct gradcmp_error *errors, size_t owner_count, struct gradcmp_error *error);

/* Threads that the affinity mask and the cgroup's CPU quota allow; at least 1. */
unsigned gcmp_engine_default_threads(void);

#endif
