/* The state of one gradcmp_compare call, shared by its steps. */
#ifndef GCMP_COMPARISON_H
#define GCMP_COMPARISON_H

#include "checkpoint.h"
#include "engine/engine.h"
#include "pairing.h"

/* One side of the call: the baseline or a candidate. */
struct gcmp_participant {
    struct gradcmp_checkpoint *checkpoint; /* NULL where it could not be opened */
    const struct gradcmp_model *model;     /* NULL where it could not be unsharded */
    bool is_recovered;                     /* its values are gradients, by the step before */
};

struct gcmp_comparison {
    const struct gradcmp_options *options; /* complete, in the report */
    struct gradcmp_report *report;
    struct gcmp_participant baseline;
    struct gcmp_participant *candidates; /* report->pair_count entries */
    struct gcmp_pairing *pairings;       /* one a pair */
    struct gradcmp_error *errors;        /* one an owner: 0 the baseline, 1 + i candidate i */
    struct gcmp_pages *pages;            /* while causes are looked for; else NULL */
    struct gcmp_waves *waves;            /* which pairs are under way, and which are finished */
};

/* True where a pair still has to be judged. */
static inline bool gcmp_pair_is_open(const struct gradcmp_pair_report *pair) {
    return pair->outcome != GRADCMP_OUTCOME_ERROR;
}

/* Note an error of one candidate in its pair. */
void gcmp_pair_fail(struct gradcmp_pair_report *pair, const struct gradcmp_error *error);

/* Keep a checkpoint open for as long as the report; there is room for four more than one a side. */
void gcmp_compare_keep(struct gradcmp_report *report, struct gradcmp_checkpoint *checkpoint);

/* Add one line to a pair's notes. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pair_note(struct gcmp_comparison *comparison,
                                                    struct gradcmp_pair_report *pair,
                                                    struct gradcmp_error *error, const char *format,
                                                    ...) __attribute__((format(printf, 4, 5)));

/* Compare as gradcmp_compare does, and take over from `resume` (NULL: nothing) what was judged
 * before and has not changed. Then candidates are judged some at a time, each time with one reading
 * of the baseline, and what is finished is kept in `resume` and written. */
struct gcmp_resume;
GRADCMP_MUST_USE enum gradcmp_status
gcmp_compare_resumable(const char *baseline, const char *const *candidates, size_t candidate_count,
                       const struct gradcmp_options *options, struct gcmp_resume *resume,
                       struct gradcmp_report **out, struct gradcmp_error *error);

/* Tally every pair of parameters, copies, and padding rows; fills the tallies and what copies and
 * padding give rise to. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_measure(struct gcmp_comparison *comparison,
                                                  struct gradcmp_error *error);

#endif
