/* The processes (ranks) that a launcher started together: how they meet, and what they tell each
 * other on the way. All of them run the same program on the same checkpoints, and meet at the same
 * points; a rank that comes to the end of its way early, or late, is noticed at the next meeting.
 */
#ifndef GCMP_ENGINE_RANKS_H
#define GCMP_ENGINE_RANKS_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/ranks.h"

/* Where ranks meet. */
enum gcmp_ranks_step {
    GCMP_STEP_JOIN = 1,
    GCMP_STEP_AGREE, /* do all see the same checkpoints? */
    GCMP_STEP_RUN,   /* a run of the engine is done */
    GCMP_STEP_CHECK, /* checksums were looked at once more */
    GCMP_STEP_LEAVE
};

/* What a rank shows the others at a meeting. */
struct gcmp_ranks_card {
    uint32_t step; /* enum gcmp_ranks_step */
    uint32_t told; /* words that it sent so far */
    uint64_t bytes;
    uint64_t digest[2]; /* must be the same on all ranks */
    uint64_t sample[2]; /* the same where `has_sample` is set on both */
    uint32_t has_sample;
    int32_t exit_status;        /* LEAVE */
    struct gradcmp_error error; /* of the first candidate that cannot be had; LEAVE: why it ends */
};

struct gradcmp_ranks {
    const struct gradcmp_ranks_table *table;
    struct gradcmp_ranks_link *link;
    unsigned index, count;
    uint32_t meetings; /* so far */
    uint32_t told;
    uint32_t *heard;               /* words by rank; owned */
    struct gcmp_ranks_card *cards; /* of the last meeting, by rank; owned */
    bool is_broken;                /* nobody can be met any more */
    bool is_stopped;               /* a rank ended before its time */
    struct gradcmp_error dissent;  /* how they differ, where they do */
    bool is_superseded; /* a lower rank cannot read the baseline: nothing of this run is needed */
};

/* Make ranks of a plug-in's table and open it. The caller frees them (gcmp_ranks_free), also after
 * a failure. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ranks_open(struct gradcmp_ranks *ranks,
                                                     const struct gradcmp_ranks_table *table,
                                                     struct gradcmp_error *error);
void gcmp_ranks_free(struct gradcmp_ranks *ranks);

/* What a rank that waits calls now and then. */
struct gcmp_ranks_waiting {
    gradcmp_progress_fn progress; /* nonzero: interrupted. May be NULL */
    void *user;
    uint64_t done, total;        /* what it is called with */
    unsigned patience_ms;        /* how long to wait on after an interrupt */
    struct gradcmp_ranks *ranks; /* private, as all that follows */
    uint64_t next_ns, over_ns;
};

/* Meet the others: `mine` is shown, and ranks->cards are theirs. CANCELLED where a rank is on its
 * way out or waiting was interrupted, DEVICE where they cannot be reached. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ranks_meet(struct gradcmp_ranks *ranks,
                                                     const struct gcmp_ranks_card *mine,
                                                     struct gcmp_ranks_waiting *waiting,
                                                     struct gradcmp_error *error);

/* The same at the end: meet until all ranks are there. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ranks_meet_last(struct gradcmp_ranks *ranks,
                                                          const struct gcmp_ranks_card *mine,
                                                          struct gcmp_ranks_waiting *waiting,
                                                          struct gradcmp_error *error);

/* The lowest rank whose card has another digest, or another sample, than rank 0's; 0: none. */
unsigned gcmp_ranks_dissenter(const struct gradcmp_ranks *ranks);

/* Give rank `root`'s bytes to all. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ranks_spread(struct gradcmp_ranks *ranks, unsigned root,
                                                       void *bytes, size_t count,
                                                       struct gcmp_ranks_waiting *waiting,
                                                       struct gradcmp_error *error);

/* Words on the way. */
enum gcmp_ranks_word {
    GCMP_WORD_STOP = 1, /* the sender ends before its time */
    GCMP_WORD_BASELINE  /* the sender cannot read the baseline; until the next meeting */
};
void gcmp_ranks_tell(struct gradcmp_ranks *ranks, enum gcmp_ranks_word word);
/* Take what was told; sets is_stopped and is_superseded. */
void gcmp_ranks_listen(struct gradcmp_ranks *ranks);

#endif
