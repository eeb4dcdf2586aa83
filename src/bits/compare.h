/* One baseline and its candidates: opened, matched, and their tensors compared in one pass. */
#ifndef GCMP_BITS_COMPARE_H
#define GCMP_BITS_COMPARE_H

#include "bits/match.h"

/* A difference, for people and JSON; texts live in the result's arena. */
struct gcmp_bits_finding {
    const char *path;
    const char *a, *b;         /* as people read them; NULL: that side lacks it */
    const char *look;          /* of elements: "one flipped bit", ...; else NULL */
    const uint64_t *index;     /* of the first element, ndim entries; NULL: no elements */
    uint64_t elems, different; /* elements */
    uint64_t ulp;
    unsigned ndim;
    bool has_ulp, is_pattern; /* a and b are bit patterns in hex */
    uint8_t group, how;
    char a_kind, b_kind; /* in JSON: 'n' a number, 's' a quoted text, 't' another, '0' null */
};

struct gcmp_bits_group_result {
    uint64_t items, different;             /* compared; those that differ */
    uint64_t elems, different_elems;       /* of tensors */
    const char *look;                      /* of all differences together; NULL: none */
    const struct gcmp_bits_finding *first; /* NULL: identical */
};

enum { GCMP_BITS_MAX_FINDINGS = 1000 };

/* How one candidate came out. */
struct gcmp_bits_result {
    const char *a, *b;   /* paths as given */
    int64_t iteration;   /* of a run's folder; -1: none */
    bool is_lost;        /* the candidate, a run, lacks the iteration: "differs" */
    const char *verdict; /* "identical", "identical_except_layout", "differs", "error" */
    struct gradcmp_error error;
    struct gcmp_bits_group_result groups[GCMP_BITS_GROUPS];
    struct gcmp_bits_finding *findings; /* the first GCMP_BITS_MAX_FINDINGS of all groups */
    size_t finding_count;
    const char **ignored;
    size_t ignored_count;
    const char **notes;
    size_t note_count;
};

/* Compare a baseline with each candidate; results[i] is candidate i's, in `arena`. A candidate that
 * cannot be read gets the verdict "error"; the call fails where the baseline cannot. */
struct gcmp_bits_task {
    struct gcmp_arena *arena;
    const char *a;
    const char *const *candidates;
    size_t count;
    const struct gradcmp_options *options;
    const struct gcmp_bits_options *bits;
    struct gcmp_bits_result *results;
};
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_run(const struct gcmp_bits_task *task,
                                                   struct gradcmp_error *error);

/* Turn a match whose elements were compared into a result. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_judge(const struct gcmp_bits_match *match,
                                                     struct gcmp_arena *arena,
                                                     struct gcmp_bits_result *out,
                                                     struct gradcmp_error *error);

#endif
