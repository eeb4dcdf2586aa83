/* What a rank found in its share of a run, and how all shares become one result. */
#ifndef GCMP_ENGINE_SHARE_H
#define GCMP_ENGINE_SHARE_H

#include "engine/faults.h"
#include "engine/fold.h"
#include "engine/ranks.h"
#include "engine/records.h"

struct gcmp_run;
struct gcmp_task;

/* A subtree of the tree above the half blocks of a job: units are whole multiples of them on any
 * rank, whatever their size. */
struct gcmp_share_node {
    uint64_t job;
    uint32_t tally; /* index into the job's tallies */
    uint32_t level; /* UINT32_MAX: the whole job */
    uint64_t index; /* of the subtrees of its level */
    struct gradcmp_tally root;
};

/* What is known here of the checksum of a record that other ranks read too. */
struct gcmp_share_part {
    uint32_t table, source; /* index of the run's tables */
    uint32_t owner;
    struct gcmp_record_part part;
};

/* Guarded by the run's lock while threads run. */
struct gcmp_share {
    struct gcmp_share_node *nodes; /* owned */
    size_t node_count, node_capacity;
    struct gcmp_share_part *parts; /* owned */
    size_t part_count, part_capacity;
};

void gcmp_share_free(struct gcmp_share *share);

/* Keep what waits in the folds of a task of which other ranks have units. False without memory. */
bool gcmp_share_keep_task(struct gcmp_run *run, const struct gcmp_task *task);
/* Keep what is known of a record. False without memory. */
bool gcmp_share_keep_part(struct gcmp_run *run, const struct gcmp_share_part *part);

/* Meet the other ranks when the threads are done: afterwards jobs' tallies and the run's faults are
 * those of all ranks. CANCELLED where a rank is on its way out; USAGE where ranks do not do the
 * same; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_share_exchange(struct gcmp_run *run,
                                                         struct gcmp_ranks_waiting *waiting,
                                                         struct gradcmp_error *error);

#endif
