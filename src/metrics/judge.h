/* Judges two sides metric by metric: exact, or with the tolerances of Megatron-LM's checks. */
#ifndef GCMP_METRICS_JUDGE_H
#define GCMP_METRICS_JUDGE_H

#include "metrics/series.h"

enum gcmp_metric_verdict {
    GCMP_METRIC_MATCH = 1,
    GCMP_METRIC_DIFFER,
    GCMP_METRIC_UNJUDGED /* a measured time in exact mode, or no value on both sides at any step */
};

/* "NAME=X" as the caller gave it. */
struct gcmp_metric_setting {
    const char *name;
    double value;
    bool was_used;
};

struct gcmp_metric_rules {
    bool is_approximate;
    struct gcmp_metric_setting *tolerances, *max_ratios;
    size_t tolerance_count, max_ratio_count;
};

/* One metric of both sides. Steps are those of A. */
struct gcmp_metric_result {
    const char *name;   /* A's */
    const char *name_b; /* B's, where the kinds of source spell it differently */
    bool is_again;      /* B has another series of that name, spelt in another way */
    const struct gcmp_metric_series *a, *b;
    enum gcmp_metric_verdict verdict;
    bool is_time;
    /* exact */
    size_t steps, mismatches, values_differ; /* values_differ: mismatches that both sides have */
    size_t pairs;                            /* steps at which both sides have a value */
    int64_t first_mismatch_step;
    const struct gcmp_metric_point *first_a, *first_b; /* NULL: B lacks the step */
    int64_t *missing_in_b;
    size_t missing_count, extra_in_b;
    bool is_at_printed_precision; /* compared (or only known) at printed digits */
    int place;                    /* the coarser side's last digit, where so */
    bool was_rounded;             /* some values are equal only once they are rounded */
    int rounded_place;            /* the coarsest digit that they were rounded to */
    bool is_equal_at_five;        /* equal where both are rounded to five decimals */
    bool has_other_bits;          /* stored values that are equal: zeros of other signs, NaN */
    size_t conflicts_a, conflicts_b;
    int64_t first_conflict_step;
    bool has_last_wins; /* the first mismatch where the last reading of a step counts */
    int64_t first_mismatch_last_wins;
    /* approximate */
    bool was_approximate; /* the fields below hold */
    double rtol;
    size_t outside, allowed_outside;
    int64_t first_outside_step;
    size_t self_outside; /* steps of which a side holds values further apart than rtol */
    int64_t first_self_outside_step;
    bool is_median; /* judged by medians over a window */
    double median_a, median_b;
    int64_t window_first, window_last;
    double max_ratio; /* 0: none */
    const char *why;  /* of the verdict, where the figures do not tell; or NULL */
};

struct gcmp_metric_judgement {
    struct gcmp_metric_result *results;
    size_t count;
    const char **only_in_a, **only_in_b;
    size_t only_in_a_count, only_in_b_count;
    bool only_in_b_counts; /* a golden side is a list of what has to be there: more is no fault */
    bool only_in_a_counts;
    bool has_first; /* earliest step at which a metric differs */
    int64_t first_step;
};

/* Compare everything. The results live in `arena` and point into both sources. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_metric_judge(const struct gcmp_metric_source *a, const struct gcmp_metric_source *b,
                  struct gcmp_metric_rules *rules, struct gcmp_arena *arena,
                  struct gcmp_metric_judgement *out, struct gradcmp_error *error);

/* The step from which on a metric differs: of its first difference, or where a side disagrees with
 * itself. */
int64_t gcmp_metric_first_step(const struct gcmp_metric_result *result);

/* Distance in representable values of the type (FLOAT32 or FLOAT64), or in units of the last
 * printed digit; NaN where there is none. */
double gcmp_metric_distance(const struct gcmp_metric_result *result);

#endif
