/* Metric series: gathering, joining what restarts wrote twice, numbers as text. */
#include "metrics/series.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/dir.h"
#include "base/grow.h"

enum { MAX_NOTES = 200, MAX_NUMBER_BYTES = 63 };

static bool is_name(const char *name, size_t name_bytes) {
    return name_bytes > 0 && name_bytes <= GCMP_METRIC_MAX_NAME_BYTES &&
           memchr(name, '\0', name_bytes) == NULL;
}

/* Find or add a metric. */
static enum gradcmp_status find_series(struct gcmp_metric_source *source, const char *name,
                                       size_t name_bytes, size_t *index,
                                       struct gradcmp_error *error) {
    if (gcmp_map_find(&source->names, name, name_bytes, index)) {
        return GRADCMP_OK;
    }
    if (!is_name(name, name_bytes)) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "a metric's name of %zu bytes, expected 1 to %d without a zero byte", name_bytes,
                  GCMP_METRIC_MAX_NAME_BYTES);
    }
    if (source->series_count >= GCMP_METRIC_MAX_SERIES) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %d metrics", GCMP_METRIC_MAX_SERIES);
    }
    char *own = gcmp_arena_text(source->arena, name, name_bytes);
    if (own == NULL ||
        !gcmp_grow(&source->series, source->series_count, &source->series_capacity,
                   sizeof *source->series) ||
        gcmp_map_add(&source->names, own, name_bytes, source->series_count, NULL) !=
            GCMP_MAP_ADDED) {
        GCMP_FAIL_MEMORY(error);
    }
    *index = source->series_count++;
    source->series[*index] = (struct gcmp_metric_series){
        .name = own, .part_bytes = source->part == NULL ? 0 : strlen(source->part) + 2};
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_metric_add(struct gcmp_metric_source *source, const char *name,
                                    size_t name_bytes, struct gcmp_metric_point point,
                                    struct gradcmp_error *error) {
    size_t index;
    char joined[GCMP_METRIC_MAX_NAME_BYTES + 1];
    if (source->part != NULL && is_name(name, name_bytes)) {
        size_t length = strlen(source->part) + 2;
        if (length + name_bytes > GCMP_METRIC_MAX_NAME_BYTES) {
            GCMP_FAIL(error, GRADCMP_ERROR_LIMIT,
                      "a metric's name of over %d bytes, its folder's included",
                      GCMP_METRIC_MAX_NAME_BYTES);
        }
        snprintf(joined, sizeof joined, "%s//", source->part);
        memcpy(joined + length, name, name_bytes);
        name = joined;
        name_bytes += length;
    }
    GCMP_TRY(find_series(source, name, name_bytes, &index, error));
    if (source->point_count >= GCMP_METRIC_MAX_POINTS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %u values", GCMP_METRIC_MAX_POINTS);
    }
    struct gcmp_metric_series *series = &source->series[index];
    if (!gcmp_grow(&series->points, series->count, &series->capacity, sizeof *series->points)) {
        GCMP_FAIL_MEMORY(error);
    }
    point.order = (uint32_t)source->point_count++; /* within the budget */
    series->points[series->count++] = point;
    return GRADCMP_OK;
}

bool gcmp_metric_same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static int by_step(const void *one, const void *two) {
    const struct gcmp_metric_point *a = one, *b = two;
    if (a->step != b->step) {
        return a->step < b->step ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Two readings of one step agree; one that has no value says nothing. */
static bool agree(const struct gcmp_metric_point *a, const struct gcmp_metric_point *b) {
    return a->is_absent || b->is_absent || gcmp_metric_same(a->value, b->value);
}

/* Copy the sorted points into `last`, keeping the last of each step; returns their count. */
static size_t keep_last(const struct gcmp_metric_series *series, struct gcmp_metric_point *last) {
    size_t kept = 0;
    for (size_t i = 0; i < series->count; i++) {
        bool is_again = kept > 0 && last[kept - 1].step == series->points[i].step;
        if (!is_again) {
            last[kept++] = series->points[i];
        } else if (!series->points[i].is_absent) {
            last[kept - 1] = series->points[i];
        }
    }
    return kept;
}

static void add_conflict(struct gcmp_metric_series *series, const struct gcmp_metric_point *first,
                         const struct gcmp_metric_point *later) {
    size_t told = series->conflict_count;
    struct gcmp_metric_conflict *last = told == 0 ? NULL : &series->conflicts[told - 1];
    if (last == NULL || last->step != later->step) {
        series->conflicts[series->conflict_count++] =
            (struct gcmp_metric_conflict){later->step, first->value, later->value, later->value};
    } else if (!isnan(last->farthest) &&
               !(fabs(later->value - first->value) <= fabs(last->farthest - first->value))) {
        last->farthest = later->value; /* NaN is farther than anything */
    }
}

/* Keep the first value of each step, in place, and gather the steps that disagree. */
static void keep_first(struct gcmp_metric_series *series) {
    size_t kept = 0;
    for (size_t i = 0; i < series->count; i++) {
        struct gcmp_metric_point *point = &series->points[i];
        struct gcmp_metric_point *first = kept == 0 ? NULL : &series->points[kept - 1];
        if (first == NULL || first->step != point->step) {
            series->points[kept++] = *point;
            continue;
        }
        if (!agree(first, point)) {
            add_conflict(series, first, point);
        }
        if (first->is_absent && !point->is_absent) {
            *first = *point;
        }
    }
    series->count = kept;
}

static size_t count_conflicts(const struct gcmp_metric_series *series) {
    size_t count = 0;
    for (size_t i = 1; i < series->count; i++) {
        count += series->points[i].step == series->points[i - 1].step;
    }
    return count;
}

static enum gradcmp_status settle_series(struct gcmp_metric_series *series,
                                         struct gradcmp_error *error) {
    if (series->count == 0) {
        return GRADCMP_OK;
    }
    qsort(series->points, series->count, sizeof *series->points, by_step);
    size_t again = count_conflicts(series);
    if (again == 0) {
        return GRADCMP_OK;
    }
    series->conflicts = calloc(again, sizeof *series->conflicts);
    series->last = calloc(series->count, sizeof *series->last);
    if (series->conflicts == NULL || series->last == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    keep_last(series, series->last);
    keep_first(series);
    return GRADCMP_OK;
}

static int by_name(const void *one, const void *two) {
    const struct gcmp_metric_series *a = one, *b = two;
    return strcmp(a->name, b->name);
}

enum gradcmp_status gcmp_metric_settle(struct gcmp_metric_source *source,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < source->series_count; i++) {
        GCMP_TRY(settle_series(&source->series[i], error));
    }
    gcmp_map_free(&source->names); /* its indices no longer hold */
    source->names = (struct gcmp_map)GCMP_MAP_INIT;
    if (source->series_count > 0) {
        qsort(source->series, source->series_count, sizeof *source->series, by_name);
    }
    return GRADCMP_OK;
}

const struct gcmp_metric_point *gcmp_metric_find(const struct gcmp_metric_point *points,
                                                 size_t count, int64_t step) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points[middle].step < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && points[low].step == step ? &points[low] : NULL;
}

const struct gcmp_metric_series *gcmp_metric_series_find(const struct gcmp_metric_source *source,
                                                         const char *name) {
    size_t low = 0, high = source->series_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(source->series[middle].name, name);
        if (order == 0) {
            return &source->series[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

void gcmp_metric_note(struct gcmp_metric_source *source, const char *format, ...) {
    char text[600];
    if (source->note_count >= MAX_NOTES) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *own = gcmp_arena_dup(source->arena, text);
    if (own != NULL && gcmp_grow(&source->notes, source->note_count, &source->note_capacity,
                                 sizeof *source->notes)) {
        source->notes[source->note_count++] = own;
    }
}

void gcmp_metric_series_free(struct gcmp_metric_series *series) {
    free(series->points);
    free(series->last);
    free(series->conflicts);
}

void gcmp_metric_source_free(struct gcmp_metric_source *source) {
    for (size_t i = 0; i < source->series_count; i++) {
        gcmp_metric_series_free(&source->series[i]);
    }
    free(source->series);
    free(source->notes);
    gcmp_map_free(&source->names);
    gcmp_dir_close(source->dir);
    source->dir = NULL;
    source->series = NULL;
    source->notes = NULL;
    source->series_count = source->note_count = 0;
}

/* [+-] digits [. digits] [e [+-] digits]: where the last digit stands, or false. */
static bool scan_decimal(const char *text, int16_t *place, bool *has_exponent) {
    const char *at = text + (*text == '+' || *text == '-');
    size_t whole = strspn(at, "0123456789");
    at += whole;
    size_t decimals = 0;
    if (*at == '.') {
        decimals = strspn(++at, "0123456789");
        at += decimals;
    }
    long exponent = 0;
    *has_exponent = (*at == 'e' || *at == 'E') && whole + decimals > 0;
    if (*has_exponent) {
        const char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
        size_t count = strspn(digits, "0123456789");
        if (count == 0 || count > 4) {
            return false;
        }
        exponent = strtol(at + 1, NULL, 10);
        at = digits + count;
    }
    *place = (int16_t)(exponent - (long)decimals); /* four digits of one, 63 of the other */
    return whole + decimals > 0 && *at == '\0';
}

static bool is_word(const char *text, const char *const words[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* strtod reads the locale's point. */
static double to_real(const char *text) {
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return NAN;
    }
    double value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    return value;
}

/* Read a decimal number, of which the last digit's place is known; false where binary64 does not
 * hold it. */
static bool take_decimal(const char *text, size_t length_bytes, bool has_exponent,
                         struct gcmp_metric_point *out) {
    struct gcmp_decimal decimal;
    out->value = to_real(text);
    out->type = GCMP_METRIC_DECIMAL;
    if (!gcmp_decimal_read(text, length_bytes, &decimal) || !isfinite(out->value) ||
        !gcmp_decimal_is_held(&decimal, out->value)) {
        return false;
    }
    if (has_exponent && decimal.count == 0) {
        out->place = GCMP_METRIC_EXACT_PLACE;
    }
    out->is_finer_below = has_exponent && decimal.count == 1 && decimal.digits[0] == '1';
    return true;
}

bool gcmp_metric_number(const char *text, size_t length_bytes, struct gcmp_metric_point *out) {
    static const char *const nans[] = {"nan", "+nan", "-nan"};
    static const char *const infs[] = {"inf", "+inf", "infinity", "+infinity"};
    static const char *const negative[] = {"-inf", "-infinity"};
    char own[MAX_NUMBER_BYTES + 1];
    bool has_exponent;
    if (length_bytes == 0 || length_bytes > MAX_NUMBER_BYTES ||
        memchr(text, '\0', length_bytes) != NULL) {
        return false;
    }
    memcpy(own, text, length_bytes);
    own[length_bytes] = '\0';
    *out = (struct gcmp_metric_point){.type = GCMP_METRIC_FLOAT64};
    if (is_word(own, nans, 3)) {
        out->value = NAN;
    } else if (is_word(own, infs, 4)) {
        out->value = INFINITY;
    } else if (is_word(own, negative, 2)) {
        out->value = -INFINITY;
    } else if (scan_decimal(own, &out->place, &has_exponent)) {
        return take_decimal(own, length_bytes, has_exponent, out);
    } else {
        return false;
    }
    return true;
}
