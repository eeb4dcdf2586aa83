/* What `gradcmp fit` measures on known-good pairs, and what a fit file holds. Filled by
 * bounds/fit.c or src/fit_file.c, printed by the reports, used by bounds/trial.c. */
#ifndef GRADCMP_SYS_FIT_H
#define GRADCMP_SYS_FIT_H

#include <stdbool.h>

#include "gradcmp/gradcmp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a pair that was given as good adds to the fit. */
enum gradcmp_fit_standing {
    GRADCMP_FIT_COUNTS = 1, /* noise of its own */
    GRADCMP_FIT_REPEAT,     /* the same noise as an earlier pair: one measurement, not two */
    GRADCMP_FIT_QUIET,      /* nothing was reordered in the compute type */
    GRADCMP_FIT_IDENTICAL,  /* no difference at all */
    GRADCMP_FIT_BAD,        /* not good: nothing is fitted while it is among the pairs */
    GRADCMP_FIT_ERROR       /* could not be read or judged */
};

struct gradcmp_fit_pair {
    const char *path;
    enum gradcmp_fit_standing standing;
    double worst;           /* largest rel / (C^(L+1-l) eps), the theory's C; NaN: nothing judged */
    const char *worst_name; /* of the parameter, or NULL */
    bool is_suspect;        /* far noisier somewhere than the other pairs; `text` says where */
    bool is_loose;          /* beyond the theory's bound, and taken because the caller said so */
    const char *text;       /* one line: what is wrong or remarkable; NULL: nothing */
};

/* Noise of one layer, in multiples of eps: of each parameter the most over all good pairs. */
struct gradcmp_fit_layer {
    int64_t layer;
    size_t parameters; /* judged ones */
    double median, worst;
    const char *worst_name;
};

/* Error of one parameter that rounding alone makes: its root mean square over that of the
 * baseline's gradients of the layer, with the margin. */
struct gradcmp_fit_floor {
    const char *name;
    double floor;
};

/* Made from pairs, or read from a file (then pairs have paths only, layers and eps no names). */
struct gradcmp_fit {
    struct gcmp_arena *arena; /* owns all below; NULL: somebody else's */
    const char *path;         /* of the file that it was read from, or NULL */
    const char *baseline_path;
    const struct gradcmp_options *options; /* that the pairs were judged with; NULL: not known */

    enum gradcmp_dtype dtype; /* compute type of all pairs */
    const char *state;
    uint64_t layer_count;     /* L */
    uint64_t parameter_count; /* parameters that were compared */
    char names_sha256[65];    /* of the names of all the baseline has, each ended by a newline */
    double eps;               /* of the compute type; twice that for exp_avg_sq */

    double k, C; /* bound(l) = min(k C^(L+1-l) eps, cap) */
    double theory_k, theory_C;
    double margin;     /* over the measured noise; NaN: nothing was tightened */
    bool is_looser;    /* than the theory's default, because the good pairs demand it */
    bool is_tightened; /* there was noise to measure */

    struct gradcmp_fit_pair *pairs;
    size_t pair_count;
    struct gradcmp_fit_layer *layers; /* from the loss down */
    size_t layer_row_count;
    struct gradcmp_fit_floor *floors; /* sorted by name */
    size_t floor_count;

    struct gradcmp_error *errors; /* one a pair, with standing ERROR */
};

#ifdef __cplusplus
}
#endif

#endif
