/* Judges two sides. The rules of approximate mode are those of Megatron-LM's functional tests: |b -
 * a| <= rtol * |a|, 1% of the steps (at least one, at most 50) may be outside, and times are
 * compared by their medians over a window behind the warm-up. */
#include "metrics/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/names.h"

enum { NAME_BYTES = GCMP_METRIC_MAX_NAME_BYTES + 1 };
enum { MAX_OUTSIDE = 50, WINDOW_FALLBACK = 4, FIVE_DECIMALS = -5 };

/* The name without the folder in front. */
static const char *own_name(const struct gcmp_metric_result *result) {
    return result->a->name + result->a->part_bytes;
}

static bool is_printed(const struct gcmp_metric_point *point) {
    return point->type == GCMP_METRIC_DECIMAL;
}

/* Half a unit of the digit at 10^place, with room for the rounding of this computation. */
static double half_unit(int place) {
    return 0.5 * pow(10.0, place) * (1 + 0x1p-40);
}

/* Equal once both are rounded to the digit at 10^place: by rounding, so that a tie goes one way. */
static bool equal_at(double a, double b, int place) {
    double units = pow(10.0, -place);
    if (gcmp_metric_same(a, b)) {
        return true;
    }
    return isfinite(a) && isfinite(b) && nearbyint(a * units) == nearbyint(b * units);
}

/* Of two points, one of them printed, the one whose last printed digit counts for more. */
static const struct gcmp_metric_point *coarser(const struct gcmp_metric_point *a,
                                               const struct gcmp_metric_point *b) {
    return !is_printed(a) || (is_printed(b) && b->place > a->place) ? b : a;
}

/* A pair under judgement. */
struct pair {
    const struct gcmp_metric_source *a, *b;
    struct gcmp_metric_rules *rules;
    struct gcmp_arena *arena;
    struct gradcmp_error *error;
};

/* True where one was stored as float32, and the other, printed, would have been stored so too. */
static bool equal_as_float32(const struct gcmp_metric_point *a, const struct gcmp_metric_point *b) {
    return (a->type == GCMP_METRIC_FLOAT32 || b->type == GCMP_METRIC_FLOAT32) &&
           fabs(a->value) <= 3.4028234663852886e38 && fabs(b->value) <= 3.4028234663852886e38 &&
           (float)a->value == (float)b->value;
}

/* Compare two values as they are stored; across kinds of source, at the coarser one's printed
 * digits, which is all that is known. */
static bool equal(const struct pair *pair, const struct gcmp_metric_point *a,
                  const struct gcmp_metric_point *b) {
    if (b == NULL || a->is_absent || b->is_absent) {
        return a->is_absent && (b == NULL || b->is_absent);
    }
    if (gcmp_metric_same(a->value, b->value)) {
        return true;
    }
    if (pair->a->kind == pair->b->kind || (!is_printed(a) && !is_printed(b))) {
        return false;
    }
    if (!isfinite(a->value) || !isfinite(b->value)) {
        return false;
    }
    if (equal_as_float32(a, b)) {
        return true;
    }
    const struct gcmp_metric_point *coarse = coarser(a, b), *fine = coarse == a ? b : a;
    bool is_finer = coarse->is_finer_below && fabs(fine->value) < fabs(coarse->value);
    return fabs(a->value - b->value) <= half_unit(coarse->place - is_finer);
}

static const struct gcmp_metric_point *find(const struct gcmp_metric_series *series, int64_t step) {
    return gcmp_metric_find(series->points, series->count, step);
}

/* Find the first mismatch where the last reading of each step counts. */
static void judge_last_wins(const struct pair *pair, struct gcmp_metric_result *result) {
    for (size_t i = 0; i < result->a->count; i++) {
        const struct gcmp_metric_series *a = result->a, *b = result->b;
        const struct gcmp_metric_point *at_a = a->last != NULL ? &a->last[i] : &a->points[i];
        const struct gcmp_metric_point *at_b =
            gcmp_metric_find(b->last != NULL ? b->last : b->points, b->count, at_a->step);
        if (!equal(pair, at_a, at_b)) {
            result->has_last_wins = true;
            result->first_mismatch_last_wins = at_a->step;
            return;
        }
    }
}

static void note_mismatch(struct gcmp_metric_result *result, const struct gcmp_metric_point *a,
                          const struct gcmp_metric_point *b) {
    bool is_value = b != NULL && !a->is_absent && !b->is_absent;
    if (result->mismatches++ == 0) {
        result->first_mismatch_step = a->step;
        result->first_a = a;
        result->first_b = b;
    }
    result->values_differ += is_value;
    result->is_equal_at_five =
        result->is_equal_at_five && is_value && equal_at(a->value, b->value, FIVE_DECIMALS);
}

static void note_precision(struct gcmp_metric_result *result,
                           const struct gcmp_metric_point *point) {
    if (is_printed(point) && (!result->is_at_printed_precision || point->place > result->place)) {
        result->is_at_printed_precision = true;
        result->place = point->place;
    }
}

/* Remember the coarsest digit at which values that are not the same were taken for equal. */
static void note_rounding(struct gcmp_metric_result *result, const struct gcmp_metric_point *a,
                          const struct gcmp_metric_point *b) {
    if (b == NULL || a->is_absent || b->is_absent || gcmp_metric_same(a->value, b->value)) {
        return;
    }
    int place = coarser(a, b)->place;
    result->rounded_place =
        result->was_rounded && result->rounded_place > place ? result->rounded_place : place;
    result->was_rounded = true;
}

static int64_t bits_of(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* True for equal values that were stored, as a zero and its negative, or NaN of two payloads. */
static bool have_other_bits(const struct gcmp_metric_point *a, const struct gcmp_metric_point *b) {
    return b != NULL && !a->is_absent && !b->is_absent && !is_printed(a) && !is_printed(b) &&
           bits_of(a->value) != bits_of(b->value);
}

static size_t count_extra(const struct gcmp_metric_result *result) {
    size_t extra = 0;
    for (size_t i = 0; i < result->b->count; i++) {
        extra += find(result->a, result->b->points[i].step) == NULL;
    }
    return extra;
}

static void note_conflicts(struct gcmp_metric_result *result) {
    const struct gcmp_metric_series *a = result->a, *b = result->b;
    result->conflicts_a = a->conflict_count;
    result->conflicts_b = b->conflict_count;
    if (a->conflict_count > 0) {
        result->first_conflict_step = a->conflicts[0].step;
    }
    if (b->conflict_count > 0 &&
        (a->conflict_count == 0 || b->conflicts[0].step < result->first_conflict_step)) {
        result->first_conflict_step = b->conflicts[0].step;
    }
}

static enum gradcmp_status compare_exact(const struct pair *pair,
                                         struct gcmp_metric_result *result) {
    const struct gcmp_metric_series *a = result->a;
    result->steps = a->count;
    result->is_equal_at_five = true;
    result->missing_in_b = gcmp_arena_alloc(pair->arena, a->count, sizeof *result->missing_in_b);
    if (result->missing_in_b == NULL) {
        GCMP_FAIL_MEMORY(pair->error);
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct gcmp_metric_point *at_a = &a->points[i];
        const struct gcmp_metric_point *at_b = find(result->b, at_a->step);
        if (at_b == NULL) {
            result->missing_in_b[result->missing_count++] = at_a->step;
        } else {
            note_precision(result, at_a);
            note_precision(result, at_b);
            result->pairs += !at_a->is_absent && !at_b->is_absent;
        }
        if (!equal(pair, at_a, at_b)) {
            note_mismatch(result, at_a, at_b);
        } else {
            result->has_other_bits = result->has_other_bits || have_other_bits(at_a, at_b);
            note_rounding(result, at_a, at_b);
        }
    }
    result->extra_in_b = count_extra(result);
    note_conflicts(result);
    if (result->conflicts_a + result->conflicts_b > 0) {
        judge_last_wins(pair, result);
    }
    return GRADCMP_OK;
}

/* A value as Megatron's checks see it: every word ("nan", "inf") and every step that is not there
 * is the same infinity. */
static double checked_value(const struct gcmp_metric_source *source,
                            const struct gcmp_metric_point *point) {
    if (point == NULL || point->is_absent) {
        return INFINITY;
    }
    return source->kind == GCMP_METRIC_GOLDEN && !isfinite(point->value) ? INFINITY : point->value;
}

static bool is_close(double b, double a, double rtol) {
    return a == b || (isfinite(a) && isfinite(b) && fabs(b - a) <= rtol * fabs(a));
}

static size_t allowed_of(size_t steps) {
    size_t percent = steps / 100;
    return steps == 1 ? 0 : percent < 1 ? 1 : percent > MAX_OUTSIDE ? MAX_OUTSIDE : percent;
}

/* Count the steps of which a side holds values further apart than the tolerance. */
static void judge_conflicts(const struct gcmp_metric_series *series,
                            struct gcmp_metric_result *result) {
    for (size_t i = 0; i < series->conflict_count; i++) {
        const struct gcmp_metric_conflict *conflict = &series->conflicts[i];
        if (!is_close(conflict->farthest, conflict->first, result->rtol) &&
            (result->self_outside++ == 0 || conflict->step < result->first_self_outside_step)) {
            result->first_self_outside_step = conflict->step;
        }
    }
}

/* A run that disagrees with itself beyond the tolerance differs, however many steps may be outside:
 * which of its values counts is not known. */
static void judge_steps(const struct pair *pair, struct gcmp_metric_result *result) {
    result->was_approximate = true;
    result->allowed_outside = allowed_of(result->steps);
    for (size_t i = 0; i < result->a->count; i++) {
        const struct gcmp_metric_point *point = &result->a->points[i];
        double a = checked_value(pair->a, point);
        double b = checked_value(pair->b, find(result->b, point->step));
        if (!is_close(b, a, result->rtol)) {
            if (result->outside++ == 0) {
                result->first_outside_step = point->step;
            }
        }
    }
    bool is_fine = result->outside <= result->allowed_outside;
    if (!result->is_time) {
        judge_conflicts(result->a, result);
        judge_conflicts(result->b, result);
    }
    if (is_fine && result->self_outside > 0) {
        result->why = "a side holds steps twice with values further apart than the tolerance";
    }
    result->verdict = is_fine && result->self_outside == 0 ? GCMP_METRIC_MATCH : GCMP_METRIC_DIFFER;
}

/* Choose the steps whose times count: 5 to 20 of a short run, 30 to 45 of a longer one, else the
 * first four from there on. Returns how many, as indices into A's points. */
static size_t choose_window(const struct pair *pair, const struct gcmp_metric_result *result,
                            size_t *window) {
    size_t count = 0;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < result->a->count; i++) {
        if (isfinite(checked_value(pair->a, &result->a->points[i]))) {
            last = result->a->points[i].step;
        }
    }
    int64_t from = last <= 25 ? 5 : 30, to = last <= 25 ? 20 : 45;
    for (int is_fallback = 0; is_fallback < 2 && count == 0; is_fallback++) {
        for (size_t i = 0; i < result->a->count; i++) {
            const struct gcmp_metric_point *point = &result->a->points[i];
            bool is_in =
                point->step >= from && (is_fallback ? count < WINDOW_FALLBACK : point->step <= to);
            if (is_in && isfinite(checked_value(pair->a, point))) {
                window[count++] = i;
            }
        }
    }
    return count;
}

static int by_value(const void *one, const void *two) {
    double a = *(const double *)one, b = *(const double *)two;
    if (isnan(a) || isnan(b)) {
        return isnan(a) - isnan(b);
    }
    return a < b ? -1 : a > b;
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    if (isnan(values[count - 1])) {
        return NAN; /* NaN sorts last, and spoils a median */
    }
    double high = values[count / 2];
    return count % 2 != 0 ? high : (values[count / 2 - 1] + high) / 2;
}

/* Fill in both medians; *has_any is false where no step of A lies in the window. */
static enum gradcmp_status find_medians(const struct pair *pair, struct gcmp_metric_result *result,
                                        bool *has_any) {
    size_t steps = result->a->count;
    size_t *window = gcmp_arena_alloc(pair->arena, steps, sizeof *window);
    double *values = gcmp_arena_alloc(pair->arena, steps, sizeof *values);
    if (window == NULL || values == NULL) {
        GCMP_FAIL_MEMORY(pair->error);
    }
    size_t count = choose_window(pair, result, window);
    *has_any = count > 0;
    if (count == 0) {
        return GRADCMP_OK;
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = result->a->points[window[i]].value;
    }
    result->median_a = median(values, count);
    for (size_t i = 0; i < count; i++) {
        values[i] = checked_value(pair->b, find(result->b, result->a->points[window[i]].step));
    }
    result->median_b = median(values, count);
    result->is_median = result->was_approximate = true;
    result->window_first = result->a->points[window[0]].step;
    result->window_last = result->a->points[window[count - 1]].step;
    return GRADCMP_OK;
}

static struct gcmp_metric_setting *find_setting(struct gcmp_metric_setting *settings, size_t count,
                                                const char *name) {
    char wanted[NAME_BYTES], own[NAME_BYTES];
    struct gcmp_metric_setting *found = NULL;
    gcmp_metric_normalise(name, own, sizeof own);
    for (size_t i = count; i-- > 0;) { /* the last one given wins */
        gcmp_metric_normalise(settings[i].name, wanted, sizeof wanted);
        if (strcmp(wanted, own) == 0) {
            settings[i].was_used = true;
            found = found == NULL ? &settings[i] : found;
        }
    }
    return found;
}

static const char NO_MEDIAN[] = "no step behind the warm-up (5 or 30 on) to take a median of";

/* B may be at most so much more than A, by medians. */
static enum gradcmp_status judge_ratio(const struct pair *pair, struct gcmp_metric_result *result,
                                       double ratio) {
    bool has_any;
    result->max_ratio = ratio;
    GCMP_TRY(find_medians(pair, result, &has_any));
    if (!has_any) {
        result->verdict = GCMP_METRIC_UNJUDGED;
        result->why = NO_MEDIAN;
        return GRADCMP_OK;
    }
    bool is_fine = isfinite(result->median_b) && result->median_b <= ratio * result->median_a;
    result->verdict = is_fine ? GCMP_METRIC_MATCH : GCMP_METRIC_DIFFER;
    result->outside = !is_fine;
    result->first_outside_step = result->window_first;
    return GRADCMP_OK;
}

static enum gradcmp_status judge_approximate(const struct pair *pair,
                                             struct gcmp_metric_result *result) {
    const struct gcmp_metric_setting *own =
        find_setting(pair->rules->tolerances, pair->rules->tolerance_count, result->name);
    result->rtol = own == NULL ? gcmp_metric_default_rtol(own_name(result)) : own->value;
    if (result->is_time && own == NULL && !gcmp_metric_is_iteration_time(own_name(result))) {
        result->verdict = GCMP_METRIC_UNJUDGED;
        result->why = "measured by the machine; say --tolerance NAME=X to judge it";
        return GRADCMP_OK;
    }
    if (!gcmp_metric_is_iteration_time(own_name(result))) {
        judge_steps(pair, result);
        return GRADCMP_OK;
    }
    bool has_any;
    GCMP_TRY(find_medians(pair, result, &has_any));
    if (!has_any) {
        result->verdict = GCMP_METRIC_UNJUDGED;
        result->why = NO_MEDIAN;
        return GRADCMP_OK;
    }
    bool is_fine = is_close(result->median_b, result->median_a, result->rtol);
    result->verdict = is_fine ? GCMP_METRIC_MATCH : GCMP_METRIC_DIFFER;
    result->outside = !is_fine;
    result->first_outside_step = result->window_first;
    return GRADCMP_OK;
}

/* True where nothing was compared, and so nothing differs: the sides agree only on what they lack.
 */
static bool is_empty(const struct gcmp_metric_result *result) {
    return result->pairs == 0 && result->mismatches == 0 &&
           result->conflicts_a + result->conflicts_b == 0;
}

static void judge_exact(struct gcmp_metric_result *result) {
    bool agrees = result->conflicts_a + result->conflicts_b == 0;
    if (result->mismatches == 0 && agrees) {
        result->verdict = GCMP_METRIC_MATCH;
    } else if (result->is_time) {
        result->verdict = GCMP_METRIC_UNJUDGED;
        result->why = "a measured time; --mode approx or --max-ratio judges it";
    } else {
        result->verdict = GCMP_METRIC_DIFFER;
        result->why =
            result->mismatches > 0 ? NULL : "a side holds steps twice with different values";
    }
}

static enum gradcmp_status judge_one(const struct pair *pair, struct gcmp_metric_result *result) {
    result->is_time = gcmp_metric_is_time(own_name(result));
    GCMP_TRY(compare_exact(pair, result));
    const struct gcmp_metric_setting *ratio =
        find_setting(pair->rules->max_ratios, pair->rules->max_ratio_count, result->name);
    if (is_empty(result)) {
        (void)find_setting(pair->rules->tolerances, pair->rules->tolerance_count, result->name);
        result->verdict = GCMP_METRIC_UNJUDGED;
        result->max_ratio = ratio == NULL ? 0.0 : ratio->value;
        result->why = "no step at which both sides have a value";
        return GRADCMP_OK;
    }
    if (ratio != NULL) {
        return judge_ratio(pair, result, ratio->value);
    }
    if (pair->rules->is_approximate) {
        return judge_approximate(pair, result);
    }
    judge_exact(result);
    return GRADCMP_OK;
}

/* The series of a side by their names as all kinds of source spell them. */
struct spellings {
    const struct gcmp_metric_source *side;
    struct gcmp_map names;
};

/* Fill in the series whose own names the other side does not have, where the kinds differ. */
static enum gradcmp_status learn_spellings(struct spellings *spellings,
                                           const struct gcmp_metric_source *other,
                                           struct gcmp_arena *arena, struct gradcmp_error *error) {
    const struct gcmp_metric_source *side = spellings->side;
    for (size_t i = 0; i < side->series_count && side->kind != other->kind; i++) {
        char own[NAME_BYTES];
        if (gcmp_metric_series_find(other, side->series[i].name) != NULL) {
            continue;
        }
        gcmp_metric_normalise(side->series[i].name, own, sizeof own);
        const char *key = gcmp_arena_dup(arena, own);
        if (key == NULL ||
            gcmp_map_add(&spellings->names, key, strlen(key), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

/* The other side's series of a name: spelt alike, or across kinds of source as the other kind
 * spells it. */
static const struct gcmp_metric_series *counterpart(const struct spellings *to, const char *name) {
    const struct gcmp_metric_series *same = gcmp_metric_series_find(to->side, name);
    char wanted[NAME_BYTES];
    size_t index;
    if (same != NULL || to->names.count == 0) {
        return same;
    }
    gcmp_metric_normalise(name, wanted, sizeof wanted);
    return gcmp_map_find(&to->names, wanted, strlen(wanted), &index) ? &to->side->series[index]
                                                                     : NULL;
}

int64_t gcmp_metric_first_step(const struct gcmp_metric_result *result) {
    bool is_own =
        result->self_outside > 0 && (result->outside <= result->allowed_outside ||
                                     result->first_self_outside_step < result->first_outside_step);
    return is_own                    ? result->first_self_outside_step
           : result->was_approximate ? result->first_outside_step
           : result->mismatches > 0  ? result->first_mismatch_step
                                     : result->first_conflict_step;
}

static void find_first(struct gcmp_metric_judgement *out) {
    for (size_t i = 0; i < out->count; i++) {
        const struct gcmp_metric_result *result = &out->results[i];
        int64_t step = gcmp_metric_first_step(result);
        if (result->verdict == GCMP_METRIC_DIFFER && !gcmp_metric_by_samples(result->name) &&
            (!out->has_first || step < out->first_step)) {
            out->has_first = true;
            out->first_step = step;
        }
    }
}

static enum gradcmp_status judge_series(const struct pair *pair, const struct gcmp_metric_series *a,
                                        const struct gcmp_metric_series *b, bool is_again,
                                        struct gcmp_metric_judgement *out) {
    struct gcmp_metric_result *result = &out->results[out->count++];
    result->name = a->name;
    result->name_b = b->name;
    result->is_again = is_again;
    result->a = a;
    result->b = b;
    return judge_one(pair, result);
}

/* Judge every series of A that B has, and list what only one side has. Of several series of B that
 * are one name to A, each is judged. */
static enum gradcmp_status judge_all(const struct pair *pair, const struct spellings *in_a,
                                     const struct spellings *in_b,
                                     struct gcmp_metric_judgement *out) {
    const struct gcmp_metric_source *a = pair->a, *b = pair->b;
    for (size_t i = 0; i < a->series_count; i++) {
        const struct gcmp_metric_series *other = counterpart(in_b, a->series[i].name);
        if (other == NULL) {
            out->only_in_a[out->only_in_a_count++] = a->series[i].name;
        } else {
            GCMP_TRY(judge_series(pair, &a->series[i], other, false, out));
        }
    }
    for (size_t i = 0; i < b->series_count; i++) {
        const struct gcmp_metric_series *own = &b->series[i];
        const struct gcmp_metric_series *other = counterpart(in_a, own->name);
        if (other == NULL) {
            out->only_in_b[out->only_in_b_count++] = own->name;
        } else if (counterpart(in_b, other->name) != own) {
            GCMP_TRY(judge_series(pair, other, own, true, out));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_metric_judge(const struct gcmp_metric_source *a,
                                      const struct gcmp_metric_source *b,
                                      struct gcmp_metric_rules *rules, struct gcmp_arena *arena,
                                      struct gcmp_metric_judgement *out,
                                      struct gradcmp_error *error) {
    struct pair pair = {a, b, rules, arena, error};
    struct spellings in_a = {a, GCMP_MAP_INIT}, in_b = {b, GCMP_MAP_INIT};
    out->results = gcmp_arena_alloc(arena, a->series_count + b->series_count, sizeof *out->results);
    out->only_in_a = gcmp_arena_alloc(arena, a->series_count, sizeof *out->only_in_a);
    out->only_in_b = gcmp_arena_alloc(arena, b->series_count, sizeof *out->only_in_b);
    if (out->results == NULL || out->only_in_a == NULL || out->only_in_b == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = learn_spellings(&in_a, b, arena, error);
    if (status == GRADCMP_OK) {
        status = learn_spellings(&in_b, a, arena, error);
    }
    if (status == GRADCMP_OK) {
        status = judge_all(&pair, &in_a, &in_b, out);
    }
    gcmp_map_free(&in_a.names);
    gcmp_map_free(&in_b.names);
    GCMP_TRY(status);
    out->only_in_a_counts = a->kind == b->kind || a->kind == GCMP_METRIC_GOLDEN;
    out->only_in_b_counts = a->kind == b->kind && a->kind != GCMP_METRIC_GOLDEN;
    find_first(out);
    return GRADCMP_OK;
}

/* Order the patterns of a type as its values. */
static int64_t rank32(double value) {
    float narrow = (float)value;
    int32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
}

static int64_t rank64(double value) {
    int64_t bits = bits_of(value);
    return bits < 0 ? INT64_MIN - bits : bits;
}

double gcmp_metric_distance(const struct gcmp_metric_result *result) {
    const struct gcmp_metric_point *a = result->first_a, *b = result->first_b;
    if (a == NULL || b == NULL || a->is_absent || b->is_absent || isnan(a->value) ||
        isnan(b->value)) {
        return NAN;
    }
    if (is_printed(a) || is_printed(b)) {
        return fabs(b->value - a->value) / pow(10.0, coarser(a, b)->place);
    }
    if (a->type == GCMP_METRIC_FLOAT32 && b->type == GCMP_METRIC_FLOAT32) {
        return fabs((double)(rank32(b->value) - rank32(a->value)));
    }
    int64_t rank_a = rank64(a->value), rank_b = rank64(b->value);
    return rank_a < rank_b ? (double)((uint64_t)rank_b - (uint64_t)rank_a)
                           : (double)((uint64_t)rank_a - (uint64_t)rank_b);
}
