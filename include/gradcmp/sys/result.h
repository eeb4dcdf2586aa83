/* The report's content: filled by src/compare.c and bounds/, printed by the reports. */
#ifndef GRADCMP_SYS_RESULT_H
#define GRADCMP_SYS_RESULT_H

#include <stdbool.h>

#include "gradcmp/sys/catalogue.h"
#include "gradcmp/sys/fit.h"
#include "gradcmp/sys/tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the compute type came from, most trusted first. */
enum gradcmp_dtype_source {
    GRADCMP_DTYPE_FROM_OPTION = 1, /* --dtype */
    GRADCMP_DTYPE_FROM_ARGS,       /* arguments in the checkpoint */
    GRADCMP_DTYPE_FROM_WEIGHTS,    /* the weights' type */
    GRADCMP_DTYPE_FROM_SIBLING,    /* a checkpoint in the same save folder */
    GRADCMP_DTYPE_FROM_STATE,      /* a state narrower than float32 */
    GRADCMP_DTYPE_ASSUMED_DUMP,    /* assumed: gradient dumps are bf16 */
    GRADCMP_DTYPE_ASSUMED_STATE    /* assumed: the state's own type */
};

/* L of the constant rule, whose l is 0 on every layer. */
enum { GRADCMP_CONSTANT_LAYERS = 32 };

/* bound(l) = min(k * C^(L+1-l) * eps, cap); with `constant`, min(k * C^33 * eps, cap) on
 * every layer (l = 0, L = 32). */
struct gradcmp_bound {
    double k, C, eps, cap;
    uint64_t layers; /* L */
    bool constant;   /* --compat megatron */
    enum gradcmp_dtype dtype;
    enum gradcmp_dtype_source dtype_source;
    const struct gradcmp_fit *fit; /* --fit: where k, C and floors come from; NULL: the theory */
};

/* What explains a difference. */
struct gradcmp_cause {
    const char *kind; /* "scale", "roll", ...; see DESIGN; NULL: none */
    double factor;    /* NaN: none */
    double residual;  /* relative, of what the cause leaves of the difference; NaN: none */
    const char *text; /* one line */
};

/* One slab of a parameter, on either side: how far off the candidate is in it. */
struct gradcmp_shard {
    const char *file;                    /* below the checkpoint */
    const struct gradcmp_coords *coords; /* of the rank that wrote it, or NULL */
    const uint64_t *start, *extent;      /* ndim_b entries */
    double rel;                          /* inf: all zero in the baseline alone */
    bool in_a;                           /* a slab of the baseline */
};

/* All slabs of a parameter that ranks with one coordinate wrote, taken together. */
struct gradcmp_rank_error {
    const char *axis; /* "tp", "pp", "ep", "dp", "etp" */
    int32_t rank;     /* on that axis */
    bool in_a;        /* of the baseline's ranks */
    size_t slabs;
    double rel; /* as of a shard */
};

/* Where in a parameter the difference lies: a grid over its rows (all axes but the last, flattened)
 * and columns (the last axis). Cell (i, j) covers rows ceil(i R / rows) up to but not including
 * ceil((i + 1) R / rows) of R rows, columns likewise. */
struct gradcmp_heat {
    uint32_t rows, columns; /* 1 to 64 each; 0: no map was made */
    /* rows * columns, row-major: the root mean square of the difference in a cell over that of the
     * whole baseline (a factor common to the pair divided out), so that their mean square, by
     * elements, is rel^2. NaN where no element is finite on both sides. */
    const double *cells;
};
enum { GRADCMP_HEAT_CELLS = 64 };

/* One parameter of a pair. bounds/ reads the first part and fills the second. */
struct gradcmp_parameter_report {
    const char *name;
    int64_t layer;
    bool in_a, in_b; /* which sides have it */
    uint8_t ndim_a, ndim_b, dtype_a, dtype_b;
    const uint64_t *shape_a, *shape_b;
    bool shapes_agree;        /* up to the rows of a padded vocabulary */
    uint64_t compared_elems;  /* what the tally covers */
    uint64_t compared_shape0; /* rows compared, where the vocabulary was cut; else 0 */
    struct gradcmp_tally tally;
    double scale_a_log2, scale_b_log2; /* a2 and max_a (b2, max_b) are of values times 2^this, and
                                          differences times the smaller of both; 0 normally */
    bool copies_conflict;              /* copies within a side differ beyond the bound */
    bool copies_nonfinite;             /* and that by NaN or Inf alone: copies_note says where */
    uint64_t copies_unequal_a, copies_unequal_b; /* elements of further copies within a side that
                                                    are not the bits of its first one */
    const char *copies_note;                     /* text about copies, or NULL */
    bool has_order;                              /* a cause was found that fits: it is no noise */
    struct {
        double factor; /* 0: not measured */
        double d2, ad; /* sums as in the tally, of b / factor in place of b */
    } rest;            /* once a factor is divided out: what the tally alone is too coarse for */

    enum gradcmp_verdict verdict;
    double rel, rel_common; /* rel_common is NaN where nothing common was divided out */
    double bound, ratio;    /* ratio of what was judged to the bound */
    double alpha, alpha_tolerance, rho, cosine; /* NaN where they do not exist */
    double norm_a, norm_b;

    struct gradcmp_cause *causes; /* filled for what fails by src/diagnose.c; the best first */
    size_t cause_count;
    struct gradcmp_shard *shards; /* of what fails: the candidate's slabs, where there are several,
                                     then the baseline's */
    size_t shard_count;
    struct gradcmp_rank_error *ranks; /* of what fails, where writers are known and several */
    size_t rank_count;
    struct gradcmp_heat heat; /* of what fails */
};

/* Differences (d2, ad, max_d) are of values times 2^this. */
static inline double gradcmp_difference_log2(const struct gradcmp_parameter_report *parameter) {
    return parameter->scale_a_log2 < parameter->scale_b_log2 ? parameter->scale_a_log2
                                                             : parameter->scale_b_log2;
}

/* Parameters of one sort. What they are follows from their shapes and layouts. */
enum gradcmp_class {
    GRADCMP_CLASS_OTHER,     /* none of the below, or not known */
    GRADCMP_CLASS_VECTOR,    /* one axis: norms and biases */
    GRADCMP_CLASS_EXPERT,    /* of one expert */
    GRADCMP_CLASS_ROUTER,    /* a row for each expert of its layer */
    GRADCMP_CLASS_EMBEDDING, /* a row for each word of the vocabulary, or l = 0 */
    GRADCMP_CLASS_ROW,       /* two axes, the last one cut over tensor-parallel ranks */
    GRADCMP_CLASS_COLUMN     /* two axes, the first one cut over tensor-parallel ranks */
};

/* How the failing parameters of a pair lie. */
struct gradcmp_spread_facts {
    size_t onset_failing, onset_passing; /* parameters of the onset layer */
    size_t layers_failing, layers;       /* layers with a failing parameter, and with any */
    enum gradcmp_class only_class;       /* all that fails is of it, and others pass; OTHER: none */
    size_t class_failing, class_all;     /* parameters of it, in the layers with a failing one */
    double growth;        /* factor of the error from one layer to the next below it; NaN: none */
    size_t growth_layers; /* layers that the growth was fitted to */
};

/* One baseline-candidate pair. */
struct gradcmp_pair_report {
    const char *path;
    const struct gradcmp_catalogue *catalogue; /* NULL where it could not be opened */
    enum gradcmp_outcome outcome;
    struct gradcmp_error error; /* with outcome ERROR */
    struct gradcmp_bound bound;
    struct gradcmp_parameter_report *parameters; /* sorted by name */
    size_t parameter_count;

    size_t verdict_counts[GRADCMP_VERDICT_PASS + 1];
    uint64_t compared_elems, unjudged_elems;
    size_t stateless; /* tensors of the model that have the state on neither side */
    uint64_t stateless_elems;
    size_t beside; /* where weights are compared: tensors that are not read as such, on a side */
    uint64_t beside_elems;
    uint64_t bytes;        /* of the slabs needed, both sides, each once */
    double common_factor;  /* NaN: none claimed */
    double usual_factor;   /* of most parameters, claimed or not; NaN: none */
    double norm_a, norm_b; /* global, replicas counted once */
    double state_factor;   /* of the candidate's state, that was divided out of all figures since
                              the sides' betas tell it; else 1 */
    size_t worst;          /* index of the parameter with the largest ratio; SIZE_MAX: none */
    int64_t onset_layer;   /* -1: none */
    int64_t jump_layer; /* layer where the ratio grows most against the layer above it; -1: none */
    struct gradcmp_cause cause;         /* kind NULL: none */
    struct gradcmp_spread_facts spread; /* of an inconsistent pair */
    const char *undecided_reason;       /* text with outcome UNDECIDED or VACUOUS */
    const char **notes;
    size_t note_count;
    size_t candidate; /* index among those that the caller named */
    bool taken_over;  /* not judged now: an earlier sweep did, and nothing has changed since */
};

struct gradcmp_report {
    struct gcmp_arena *arena;
    const char *baseline_path;
    const struct gradcmp_catalogue *baseline;
    struct gradcmp_bound baseline_bound; /* dtype and layers of the baseline alone */
    struct gradcmp_pair_report *pairs;
    size_t pair_count;
    const char *state;
    struct gradcmp_options options; /* strings copied into the arena */
    void *owned; /* checkpoints kept open for the catalogues; private to src/compare.c */
    const struct gradcmp_fit *fit; /* of options.fit, in the arena; NULL: none */
    char names_sha256[65];         /* of the baseline's parameters, each name ended by a newline */
    uint64_t cause_bytes;          /* read from files in the search for causes */
    size_t readings;               /* how often the baseline was read */
    size_t unfinished;             /* candidates that an interrupt left without a pair */
    const struct gradcmp_sweep *sweep; /* that it is of: documents tell the whole; NULL: none */
};

/* One thing that `check` found. */
struct gradcmp_finding {
    const char *kind; /* "copies_differ", "tied_differ", "master_differs", "nonfinite", "all_zero",
                         "subnormal", "absent_state", "padding", "shared_bytes", "negative",
                         "contradiction" (of files: no parameter) */
    const char *name; /* canonical name of the parameter */
    const char *state;
    const char *text; /* one line */
    struct {
        const char *name;
        double value;
    } figures[4];
    size_t figure_count;
};

/* One checkpoint looked at by `check`. */
struct gradcmp_checked {
    const char *path;
    const struct gradcmp_catalogue *catalogue; /* NULL where it could not be opened */
    struct gradcmp_error error;                /* code 0 where all was read */
    struct gradcmp_finding *findings;          /* sorted by parameter, then state */
    size_t finding_count, finding_capacity;
    size_t tensors; /* looked at, over all states */
    uint64_t elems, bytes;
    size_t other_tensors;           /* of no floating-point type, and not looked at */
    const char *other, *other_type; /* the first of these; NULL: none */
};

struct gradcmp_findings {
    struct gcmp_arena *arena;
    struct gradcmp_checked *checked;
    size_t checked_count;
    void *owned; /* private to src/check.c */
};

#ifdef __cplusplus
}
#endif

#endif
