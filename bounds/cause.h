/* Causes: what may explain a difference, what it takes to claim it, what usually produces it. */
#ifndef GCMP_BOUNDS_CAUSE_H
#define GCMP_BOUNDS_CAUSE_H

#include "base/arena.h"
#include "base/error.h"
#include "bounds/median.h"
#include "gradcmp/sys/move.h"
#include "gradcmp/sys/result.h"

/* In the order in which one is preferred to another where several explain a parameter. */
enum gcmp_cause_kind {
    GCMP_CAUSE_NONE,
    GCMP_CAUSE_COMMON_SCALE,
    GCMP_CAUSE_DIFFERENT_START,
    GCMP_CAUSE_DIFFERENT_DATA,
    GCMP_CAUSE_LAST_MICROBATCH,
    GCMP_CAUSE_NONFINITE,
    GCMP_CAUSE_ZERO,
    GCMP_CAUSE_CAST,
    GCMP_CAUSE_PARTIAL_SUM,
    GCMP_CAUSE_SIGN,
    GCMP_CAUSE_SCALE,
    GCMP_CAUSE_HALVES_SWAPPED,
    GCMP_CAUSE_QKV_REGROUPED,
    GCMP_CAUSE_BLOCKS_PERMUTED,
    GCMP_CAUSE_BLOCK_REPEATED,
    GCMP_CAUSE_TRANSPOSED,
    GCMP_CAUSE_ROLL,
    GCMP_CAUSE_LAYER_SLOT,
    GCMP_CAUSE_PADDING,
    GCMP_CAUSE_ONE_SHARD,
    GCMP_CAUSE_MISSING_REDUCTION,
    GCMP_CAUSE_ROUTING,
    GCMP_CAUSE_UPSTREAM,
    GCMP_CAUSE_UNEXPLAINED
};

/* The name in reports: "halves_swapped". */
const char *gcmp_cause_name(enum gcmp_cause_kind kind);
/* The kind of a name; NONE for NULL and for a name that is none. */
enum gcmp_cause_kind gcmp_cause_find(const char *name);
/* One line on what usually produces it, without a full stop; "" where there is nothing to say. */
const char *gcmp_cause_origin(enum gcmp_cause_kind kind);

/* What is left of a tally's difference once b was divided by `factor`, relative to a:
 * sqrt(sum (b - c a)^2) / (|c| sqrt(A)), in the form that cancels least. inf where a is zero and b
 * is not, 0 where both are; NaN where the sums are not finite. */
double gcmp_cause_residual(const struct gradcmp_tally *tally, double factor);

/* True where a residual proves a cause: inside the parameter's bound, and under a quarter of what
 * there was to explain, so that a cause is never claimed for noise that it leaves as it was.
 * `before` is the parameter's own relative difference. */
bool gcmp_cause_holds(double residual, double bound, double before);

/* Bring a factor to the simple number (a small integer, its inverse, a small fraction, and their
 * negatives) that lies within `tolerance` of it, relatively; itself where there is none. */
double gcmp_cause_snap(double factor, double tolerance);

/* "twice the baseline"; NULL without memory. */
const char *gcmp_cause_factor_text(double factor, struct gcmp_arena *arena);
/* What a cast says: the candidate (in_b) or the baseline was rounded to `dtype`. NULL without
 * memory. */
const char *gcmp_cause_cast_text(bool in_b, enum gradcmp_dtype dtype, struct gcmp_arena *arena);

/* What all parameters of a pair have in common. */
struct gcmp_cause_noise {
    double common; /* factor, or 1 */
    double rho;    /* median over parameters that pass; NaN: none passes */
    double eps;    /* of the compute type */
    double unit;   /* of tolerances of factors: gcmp_noise_unit */
};

/* The noise of a judged pair; samples is room for pair->parameter_count. */
struct gcmp_cause_noise gcmp_cause_noise_of(const struct gradcmp_pair_report *pair,
                                            struct gcmp_sample *samples);

/* The cause of a failing parameter that its own sums show: nonfinite, zero, cast, sign, scale.
 * kind NULL where they show none. Text lives in
 * `arena`. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_cause_derive(const struct gradcmp_parameter_report *parameter,
                  const struct gcmp_cause_noise *noise, struct gcmp_arena *arena,
                  struct gradcmp_cause *out, struct gradcmp_error *error);

/* True where something is wrong with the values of a parameter, so that a cause is looked for. */
bool gcmp_cause_is_wanted(enum gradcmp_verdict verdict);

#endif
