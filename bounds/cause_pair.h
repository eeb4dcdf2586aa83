/* The cause of a pair: what its failing parameters have in common, and which of their causes
 * counts. */
#ifndef GCMP_BOUNDS_CAUSE_PAIR_H
#define GCMP_BOUNDS_CAUSE_PAIR_H

#include "bounds/cause_global.h"

/* What is known of a parameter beside its figures. */
struct gcmp_cause_facts {
    bool replicated;           /* every tensor-parallel rank holds all of it */
    bool has_copies;           /* of several tensor-parallel ranks, which agree */
    bool sharded;              /* it is cut over tensor-parallel ranks; neither: not known */
    int64_t expert;            /* number of the expert that it belongs to; -1: none */
    const double *expert_rows; /* of a router: the square of the difference in each expert's row, of
                                  any one unit; NULL: no router, or not looked at */
    size_t expert_count;       /* rows */
    bool words;                /* a row for each word of the vocabulary */
    int axis;                  /* that is cut over tensor-parallel ranks; -1: none, or not known */
    enum gradcmp_class sort;
};

/* How a side clips its gradients. */
struct gcmp_clip {
    double norm;    /* global norm that it says it clips to; 0: it does not clip; NaN: not stated */
    double portion; /* of a gradient's norm in the compared state's; NaN: not known */
};

/* What is known of the pair. */
struct gcmp_cause_scene {
    struct gradcmp_pair_report *pair;
    const struct gcmp_cause_facts *facts; /* one a parameter */
    uint32_t tp, dp;                      /* the larger of both sides' degrees; 0: not known */
    struct gcmp_global_facts global;
    const char *start_text; /* what was found of different starts; NULL: nothing */
    bool allow_routing;
    double clip;               /* global norm that both sides clip to; 0: none, or not the same */
    struct gcmp_clip clips[2]; /* of the baseline, of the candidate */
};

/* Give every failing parameter that has no cause yet one of missing_reduction, routing, upstream or
 * unexplained, and the pair its cause and how its failures lie (bounds/onset.h). To be called for
 * an inconsistent pair, when the causes of single parameters have been claimed. Texts live in
 * `arena`. Errors: MEMORY.
 *
 * The pair's cause, the first that applies:
 *   different_start, different_data, last_microbatch     see bounds/cause_global.h; then no layer
 *                       is blamed: there is no onset and no jump
 *   common_scale        the pair's common factor is claimed; not where something else fails and
 *                       both global norms are what both sides clip to: then the factor follows
 *                       from what fails. Its text points at a clipping of one side alone, where
 *                       that side's gradients have the global norm that it says, or 1, a usual
 *                       default, where it says nothing
 *   missing_reduction   only replicated parameters fail; see below
 *   routing             see below
 *   the cause of a failing parameter in the onset layer, in the order of enum gcmp_cause_kind
 *   transposed          of a parameter with verdict `shape`, where nothing else fails
 *
 * missing_reduction: there are several tensor-parallel ranks; every failing parameter is
 * replicated over them, without copies of several ranks at hand that agree (a missing sum would
 * have left them unlike), and has no other cause; in each layer with one, the sharded neighbours
 * pass, half of the replicated ones or more fail, and one by a tenth of its gradient or more: of n
 * parts that are alike or independent, what lacks n - 1 differs by half or more, and rounding that
 * is a little over its bound does not look like this; and not one parameter alone where a missing
 * sum over data-parallel ranks would look the same.
 *
 * routing: in the onset layer at least two experts fail and at least as many do not, all by no more
 * than half of their gradient; the router fails too, with at least three quarters of its difference
 * (squared) in the rows of the experts that fail; whatever else fails there has one axis, or is
 * within twice its bound (the attention behind the experts inherits). A token whose choice flips
 * leaves one expert for another, and the router learns of both: a fault in the experts' own
 * arithmetic or reduction would not spare the others, one in the router's not the other rows, and
 * one behind the experts' outputs not the router. Some of the difference is in other rows, since
 * the weights of a token's other choices change with it (measured: 4 to 18 % in runs of 4 and 12
 * experts).
 *
 * With allow_routing, a pair whose cause is routing is consistent where that explains all of it:
 * every finding is routing, or upstream of it by no more than half of the gradient.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_cause_conclude(const struct gcmp_cause_scene *scene,
                                                         struct gcmp_arena *arena,
                                                         struct gradcmp_error *error);

#endif
