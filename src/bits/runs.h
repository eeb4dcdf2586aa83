/* Folders of runs: their iterations, paired; and files of fingerprints. */
#ifndef GCMP_BITS_RUNS_H
#define GCMP_BITS_RUNS_H

#include "bits/report.h"

/* An iteration that both runs have, or that the second has lost. */
struct gcmp_bits_step {
    const char *a, *b; /* paths; of one that is lost, b is the run's */
    int64_t iteration;
    bool is_lost;
    const char *label; /* of one that is lost: "iteration 3", or with a name where that is needed */
};

struct gcmp_bits_steps {
    struct gcmp_bits_step *list; /* by candidate, then by iteration; in the arena */
    size_t count;
    const char **notes; /* iterations that one run lacks */
    size_t note_count;
};

/* Pair the iterations of paths[0] with those of each other path, where all are folders of runs and
 * one of them has several; else no step is found. Lost is what a run lacks behind its own first
 * iteration: one that was resumed need not have those before. USAGE where runs have no iteration in
 * common. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_pair_runs(struct gcmp_arena *arena,
                                                         const char *const *paths, size_t count,
                                                         struct gcmp_bits_steps *out,
                                                         struct gradcmp_error *error);

/* Check every path of the evidence against the file of fingerprints, which is written from the
 * first path where it is not there. Fills the evidence's content. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_hash(struct gradcmp_evidence *evidence,
                                                    const char *file,
                                                    const struct gradcmp_options *options,
                                                    const struct gcmp_bits_options *bits,
                                                    struct gradcmp_error *error);

#endif
