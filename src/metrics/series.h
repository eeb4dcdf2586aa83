/* Metric series as they were read: for each metric its values by step, with what is known of the
 * precision in which they were stored. */
#ifndef GCMP_METRICS_SERIES_H
#define GCMP_METRICS_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"

/* Budgets; past them reading fails with GRADCMP_ERROR_LIMIT. */
enum { GCMP_METRIC_MAX_SERIES = 100000, GCMP_METRIC_MAX_NAME_BYTES = 1024 };
#define GCMP_METRIC_MAX_POINTS 50000000u

/* The place of a value that is known whole: below every digit of binary64. */
enum { GCMP_METRIC_EXACT_PLACE = -400 };

enum gcmp_metric_kind {
    GCMP_METRIC_EVENTS = 1, /* TensorBoard event files */
    GCMP_METRIC_GOLDEN,     /* Megatron's golden values, JSON */
    GCMP_METRIC_LOG,        /* iteration lines of a training log */
    GCMP_METRIC_CSV
};

enum gcmp_metric_type {
    GCMP_METRIC_FLOAT32 = 1,
    GCMP_METRIC_FLOAT64,
    GCMP_METRIC_DECIMAL /* printed digits: the value is known to half a unit of the last one */
};

/* There may be millions. */
struct gcmp_metric_point {
    int64_t step;
    double value;
    uint32_t order;     /* of reading, over all files */
    int16_t place;      /* DECIMAL: the last digit stands for 10^place */
    uint8_t type;       /* enum gcmp_metric_type */
    bool is_absent : 1; /* the source names the step, and says that there is no value */
    /* A power of ten printed with an exponent: what is smaller would show a digit more. */
    bool is_finer_below : 1;
};

/* A step that a source holds twice with different values. */
struct gcmp_metric_conflict {
    int64_t step;
    double first, later;
    double farthest; /* of all later readings, the one that is farthest from the first */
};

struct gcmp_metric_series {
    const char *name;
    size_t part_bytes; /* of the folder in front of the name; see gcmp_metric_source.parts */
    struct gcmp_metric_point *points; /* after settling: one a step, ascending, the first read */
    size_t count, capacity;
    struct gcmp_metric_point *last; /* where there are conflicts: the last read of each step */
    struct gcmp_metric_conflict *conflicts;
    size_t conflict_count;
};

/* A folder below a run with event files of it, as TensorBoard's add_scalars makes them: its metrics
 * are called "FOLDER//METRIC". */
struct gcmp_metric_part {
    const char *name; /* in the arena */
    bool is_damaged;  /* counts where the part is judged */
    struct gradcmp_error damage;
};

/* One side. Zero-initialise, set `path` and `arena`, and free with gcmp_metric_source_free. */
struct gcmp_metric_source {
    const char *path;
    struct gcmp_arena *arena; /* borrowed: names and notes */
    enum gcmp_metric_kind kind;
    struct gcmp_metric_series *series;
    size_t series_count, series_capacity;
    struct gcmp_map names;
    size_t file_count, point_count;
    const char **notes;
    size_t note_count, note_capacity;
    const char **left_out; /* metrics that --match and --exclude leave; in the arena */
    size_t left_out_count;
    struct gcmp_metric_part *parts; /* in the arena */
    size_t part_count, part_capacity;
    const char *part;       /* while files of one are read; else NULL */
    size_t lone_part_count; /* that the other side lacks, and that were left out */
    struct gcmp_dir *dir;   /* where it was read; owned */
    /* Set where reading stopped before the end, or passed over a value: the rest could be read. */
    bool is_damaged;
    struct gradcmp_error damage;
};

/* Add a value of a metric; `point->order` is filled here. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_metric_add(struct gcmp_metric_source *source,
                                                     const char *name, size_t name_bytes,
                                                     struct gcmp_metric_point point,
                                                     struct gradcmp_error *error);

/* Sort every series by step, keep the first value of each and note those that disagree, and sort
 * the series by name. To be called once, when all is read. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_metric_settle(struct gcmp_metric_source *source,
                                                        struct gradcmp_error *error);

/* Find a step among settled points; NULL when it is not there. */
const struct gcmp_metric_point *gcmp_metric_find(const struct gcmp_metric_point *points,
                                                 size_t count, int64_t step);

/* Find a settled series, or NULL. */
const struct gcmp_metric_series *gcmp_metric_series_find(const struct gcmp_metric_source *source,
                                                         const char *name);

/* Remember a sentence for the report; failures of memory only lose it. */
void gcmp_metric_note(struct gcmp_metric_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Free what a series holds, when it is taken out of its source. */
void gcmp_metric_series_free(struct gcmp_metric_series *series);

void gcmp_metric_source_free(struct gcmp_metric_source *source);

/* Read a number as people and programs print it ("3.770381E+00", "-5", "nan", "inf"), whole, with a
 * point whatever the locale: its value as a DECIMAL point (NaN and Inf: FLOAT64). A zero with an
 * exponent is exact: so printed, no other number looks like one. False where it is no number, or
 * one that binary64 does not hold (base/decimal.h). `length_bytes` is at most 63. */
bool gcmp_metric_number(const char *text, size_t length_bytes, struct gcmp_metric_point *out);

/* True for equal values, NaN being equal to NaN, and -0 to 0. */
bool gcmp_metric_same(double a, double b);

#endif
