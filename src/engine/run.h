/* One run of the engine: its jobs, the queue of units that all threads take from, and what they
 * leave behind. */
#ifndef GCMP_ENGINE_RUN_H
#define GCMP_ENGINE_RUN_H

#include "engine/deal.h"
#include "engine/engine.h"
#include "engine/faults.h"
#include "engine/fold.h"
#include "engine/gather.h"
#include "engine/share.h"
#include "kernels/kernels.h"

/* A side of a job whose parameter has a former one, looked at once. */
struct gcmp_former_plan {
    struct gcmp_side side; /* of the former; parameter NULL: there is none */
    struct gcmp_side_plan plan;
};

/* A job under way: from when its first unit is taken until its last one is done. */
struct gcmp_task {
    struct gcmp_task *next, **link; /* in the run's list; link points at what points here */
    struct gcmp_job *job;
    size_t index;                     /* of the job */
    size_t side_count;                /* 1 + job->b_count */
    struct gcmp_side_plan *plans;     /* side_count; 0 is a, 1 + i is b[i] */
    struct gcmp_former_plan *formers; /* side_count */
    struct gcmp_fold *folds;          /* by tally */
    uint64_t unit_elems, unit_count;
    uint64_t first_unit, end_unit; /* of this rank's share */
    uint64_t units_left;           /* guarded by lock, as the folds */
    pthread_mutex_t lock;
};

struct gcmp_unit {
    struct gcmp_task *task;
    uint64_t index, first, elems; /* elements of the job */
    uint64_t ticket;              /* of a job with a sink: its turn */
};

struct gcmp_run {
    struct gcmp_job *jobs;
    size_t job_count;
    const struct gcmp_kernel *kernel;
    struct gcmp_pages *pages;     /* of the options */
    struct gcmp_records **tables; /* one for each catalogue */
    const struct gradcmp_catalogue **catalogues;
    size_t table_count;
    bool has_formers;
    size_t buffer_bytes;                  /* of each of a thread's buffers */
    uint64_t unit_bytes;                  /* of a side, where slabs are not interleaved */
    uint64_t most_unit_bytes;             /* of a side, where they are */
    const struct gcmp_ring_way *ring_way; /* threads read ahead through rings; NULL: none do */
    unsigned slots;                       /* then: buffers of loads, of each thread */
    bool direct;
    const struct gcmp_accelerator *accelerator; /* NULL: none */
    struct gradcmp_error *accelerator_error; /* NULL: its failure is the run's; guarded by lock */
    unsigned threads;                        /* that may tally at one time */
    unsigned readers; /* further threads that may be started where reads block */
    struct gcmp_faults faults;
    gradcmp_progress_fn progress;
    void *progress_user;
    uint64_t bytes_total;
    struct gradcmp_ranks *ranks; /* of the options */
    struct gcmp_deal deal;
    struct gcmp_share share; /* what is found for the other ranks */
    int verify;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t next_job;
    size_t hinted_jobs;      /* the sources of jobs before this one are being read ahead */
    struct gcmp_task *front; /* the task that units are taken from; NULL: the next job's */
    uint64_t next_unit;
    struct gcmp_task *tasks; /* all that are under way */
    uint64_t next_ticket, turn;
    uint64_t bytes_done;
    unsigned workers;  /* threads still at work */
    unsigned tallying; /* of them, those that tally */
    bool reads_block;  /* a thread waited for much of its last reads */
    bool stop;
    struct gradcmp_error fatal; /* with stop */
    bool is_superseded;         /* nothing that is still to come is needed */
    bool has_told_baseline;     /* of the calling thread: ranks above were told of a fault */
};

/* Prepare a run: tables of records, uses of sources, room for faults. gcmp_run_free in either case.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_run_make(struct gcmp_run *run,
                                                   const struct gcmp_engine_options *options,
                                                   size_t owner_count, struct gradcmp_error *error);
void gcmp_run_free(struct gcmp_run *run);

/* The table of a catalogue's records. */
struct gcmp_records *gcmp_run_records(const struct gcmp_run *run,
                                      const struct gradcmp_catalogue *catalogue);

/* Orders faults of records: those of one place come in the order of tables and sources. */
static inline uint64_t gcmp_run_tie(size_t table, uint32_t source) {
    return ((uint64_t)table << 32 | source) + 1;
}

/* A side of a job: 0 is a, 1 + i is b[i]. */
static inline const struct gcmp_side *gcmp_job_side(const struct gcmp_job *job, size_t side) {
    return side == 0 ? &job->a : &job->b[side - 1];
}

/* True where the units of a job are delivered, one after another. */
static inline bool gcmp_job_has_turns(const struct gcmp_job *job) {
    return job->sink != NULL || job->sides != NULL;
}

/* True where a side's values are computed, and not what is stored. */
bool gcmp_job_computes(const struct gcmp_job *job, size_t side);

/* The type of a side's elements in a unit's buffer: computed values are float64. */
enum gradcmp_dtype gcmp_job_dtype(const struct gcmp_job *job, size_t side);

/* Bytes of such an element. */
unsigned gcmp_job_elem_bytes(const struct gcmp_job *job, size_t side);

/* Take the next unit. False when there is none, or the run was stopped. */
bool gcmp_run_take(struct gcmp_run *run, struct gcmp_unit *unit);

/* Give a unit back; after a task's last one its records are checked and the task is gone. */
void gcmp_run_done(struct gcmp_run *run, const struct gcmp_unit *unit);

/* Stop the run: no further unit is taken. The first error stays. */
void gcmp_run_stop(struct gcmp_run *run, const struct gradcmp_error *error);

/* Wait for the turn of a unit whose job has a sink; end it. */
void gcmp_run_await_turn(struct gcmp_run *run, const struct gcmp_unit *unit);
void gcmp_run_end_turn(struct gcmp_run *run);

/* Wait until fewer than run->threads threads tally; end it. Threads beyond that number are there to
 * read ahead. */
void gcmp_run_begin_tally(struct gcmp_run *run);
void gcmp_run_end_tally(struct gcmp_run *run);

/* Say that reads keep threads waiting; tell whether this was said since the last call. */
void gcmp_run_say_reads_block(struct gcmp_run *run);
bool gcmp_run_reads_block(struct gcmp_run *run);

/* Values of a former parameter that are at hand at a time. */
enum { GCMP_FORMER_ELEMS = 4096 };

/* A tally under way on the accelerator. */
struct gcmp_flight {
    bool is_flying;
    size_t side;
    struct gradcmp_backend_work work;
};

/* A thread's lane of the accelerator: two units may be under way, by the slot of a's buffer, and
 * two tallies, by that of b's. */
struct gcmp_lane {
    struct gradcmp_backend_lane *handle; /* NULL: the processor tallies */
    bool failed;                         /* the processor tallies what is in the lane's buffers */
    bool a_is_new;                       /* a was gathered and not yet sent */
    unsigned slot_a, slot_b;             /* in use now */
    struct gcmp_flight flights[GRADCMP_BACKEND_SLOTS];
    struct {
        struct gcmp_unit unit;
        bool is_open;    /* taken, and not given back */
        bool is_started; /* all of its tallies were started */
    } units[GRADCMP_BACKEND_SLOTS];
};

struct gcmp_ahead;

/* How gathering ended. */
struct gcmp_gathered {
    enum gradcmp_status status;
    struct gradcmp_error error;
};

/* A thread's buffers, and what it does with them. With a lane, a and b are its buffers. */
struct gcmp_worker {
    struct gcmp_run *run;
    unsigned char *a, *b;
    double *former; /* GCMP_FORMER_ELEMS values, where the run has formers; else NULL */
    struct gcmp_staging staging;
    struct gcmp_lane lane;
    struct gcmp_ahead *ahead; /* NULL: nothing is read ahead on this thread */
    unsigned units;           /* processed so far */
    bool timed;               /* the reads of the unit at hand are timed */
};

/* A buffer that direct reads may use; NULL without memory. The caller frees it. */
unsigned char *gcmp_buffer_make(size_t bytes);

/* False without memory. */
bool gcmp_worker_make(struct gcmp_worker *worker, struct gcmp_run *run);
void gcmp_worker_free(struct gcmp_worker *worker);

/* Do the next bit of work: a unit, or a side of one. False where none is left. */
bool gcmp_worker_step(struct gcmp_worker *worker);

/* Wait for what is still under way on the accelerator. */
void gcmp_worker_finish(struct gcmp_worker *worker);

/* Fold the root of a unit's tally of a side into its job's. */
void gcmp_worker_fold(const struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                      const struct gradcmp_tally *root);

/* Where the elements of a side of a unit are to be gathered for a buffer at `out`, so that values
 * which are computed can be made there: see gcmp_worker_end_gather. */
struct gcmp_want gcmp_worker_want(const struct gcmp_unit *unit, size_t side, unsigned char *out,
                                  const struct gcmp_staging *staging);
/* What is left to do once gathering ended with *status: record a fault, make values that are
 * computed. True where the buffer holds the side's elements. */
bool gcmp_worker_end_gather(const struct gcmp_worker *worker, const struct gcmp_unit *unit,
                            size_t side, unsigned char *out, const struct gcmp_gathered *gathered);
/* Tell whether a side of a unit is to be read; whether any side is to be compared. */
bool gcmp_worker_is_live(const struct gcmp_worker *worker, const struct gcmp_unit *unit,
                         size_t side);
bool gcmp_worker_is_wanted(const struct gcmp_worker *worker, const struct gcmp_unit *unit);
/* Tally a unit of a (worker->a) against another side, and fold it into the job's tally. */
void gcmp_worker_tally(const struct gcmp_worker *worker, const struct gcmp_unit *unit, size_t side,
                       const unsigned char *other);

/* --- worker_ahead.c: the same with reads that run ahead --- */

/* Slots of a thread that reads ahead: at least a, b, and one that is being read. */
enum { GCMP_LEAST_SLOTS = 3, GCMP_MOST_SLOTS = 8 };

/* Open a ring, for run->ring_way; NULL where the system does not allow it. */
struct gcmp_ring *gcmp_ahead_open_ring(const struct gcmp_ring_way *way);
/* Make what a thread reads ahead with; false without memory. Where no ring can be had, nothing runs
 * ahead. */
bool gcmp_ahead_make(struct gcmp_worker *worker);
void gcmp_ahead_free(struct gcmp_worker *worker);
/* gcmp_worker_step of such a thread. */
bool gcmp_ahead_step(struct gcmp_worker *worker);

/* --- worker_lane.c: the same through a lane --- */

/* Open a lane where the run has an accelerator. After a failure, which is told as the run
 * wants it, there is none. */
void gcmp_lane_make(struct gcmp_worker *worker);
void gcmp_lane_free(struct gcmp_worker *worker);
/* Choose the buffers of the next unit, or of its next side, and wait until nothing uses them. */
void gcmp_lane_next_a(struct gcmp_worker *worker, const struct gcmp_unit *unit);
void gcmp_lane_next_b(struct gcmp_worker *worker);
/* Start the tally of a side whose buffers were filled. */
void gcmp_lane_start(struct gcmp_worker *worker, size_t side);
/* All sides of the unit were started. */
void gcmp_lane_end_unit(struct gcmp_worker *worker);
/* Wait for everything. */
void gcmp_lane_finish(struct gcmp_worker *worker);

/* Look for the owners' faults once more, block by block, so that which one is the first does not
 * depend on the size of units. */
void gcmp_worker_refine_faults(struct gcmp_worker *worker);

#endif
