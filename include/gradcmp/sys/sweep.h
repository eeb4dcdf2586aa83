/* A sweep's content: filled by src/sweep*.c, printed by src/report. */
#ifndef GRADCMP_SYS_SWEEP_H
#define GRADCMP_SYS_SWEEP_H

#include "gradcmp/sys/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One configuration beside the baseline; row i belongs to the report's pair i. */
struct gradcmp_sweep_row {
    size_t entry; /* private to src/sweep.c */
    const char
        *label; /* what tells it from the others: its path below the swept folder, or a name */
    bool has_expected; /* the plan says how it is to come out */
    enum gradcmp_outcome expected;
    const char **findings; /* where the run did not do what its configuration says */
    size_t finding_count;
};

/* Two repeats of one configuration, whose compared state must be the same bit for bit. */
struct gradcmp_sweep_repeat {
    const char *label_a, *label_b;
    bool could_be_read, taken_over;
    uint64_t elems, equal_bits; /* compared, and of them the same */
    const char *first;          /* name of the first parameter that differs; NULL: none */
    size_t copies;              /* parameters whose copies disagree: beyond the bound, or otherwise
                                   in one of both than in the other */
    const char *first_copies;   /* name of the first of these; NULL: none */
    size_t unequal;             /* parameters whose copies differ inside the bound, as much in one
                                   as in the other: only the first copy was compared */
    struct gradcmp_error error; /* where it could not be read */
};

/* What lies in the swept folder and was not compared, for one reason. */
struct gradcmp_sweep_left {
    size_t count;     /* checkpoints, or folders that were not looked into */
    const char *text; /* the reason, how many, and the first of them */
};

/* A configuration of a recipe that has no run. */
struct gradcmp_sweep_absent {
    const char *name, *text;
};

struct gradcmp_sweep {
    struct gcmp_arena *arena;
    struct gradcmp_report *report; /* owned */
    const char *root;              /* the swept folder or the plan's, as given */
    const char *baseline_label;
    const char *baseline_reason; /* why this one: "has the least parallelism (1 rank)" */
    const char **baseline_findings;
    size_t baseline_finding_count;
    struct gradcmp_sweep_row *rows; /* report->pair_count */
    struct gradcmp_sweep_repeat *repeats;
    size_t repeat_count;
    uint64_t baseline_bytes, candidate_bytes; /* of slabs, each once; of what was read now */
    const char *resume;                       /* file that rows were taken over from; NULL: none */
    const char *golden;                       /* file of golden values; NULL: none */
    const char *golden_note; /* what was done with it, or why there is none; NULL: nothing to say */
    bool golden_is_idle;     /* the caller named it, and it judged nothing: no sweep passes by it */
    struct gradcmp_sweep_left *left;
    size_t left_count;
    struct gradcmp_sweep_absent *absent;
    size_t absent_count;
    size_t unfinished; /* rows and repeats that an interrupt left out */
    const char *folder, *plan, *baseline_named, *golden_named; /* as the caller gave them; NULL */
};

#ifdef __cplusplus
}
#endif

#endif
