/* Megatron's golden values. Forms found: {metric: {start_step, end_step, step_interval, values:
 * {"step": number | "nan"}}}, the same with a list of values, {metric: {"step": number}}, and
 * {metric: [number]}. */
#include "metrics/text_source.h"
#include "base/json_load.h"
#include "base/json_text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEGACY_DECIMALS = 5 };

struct golden {
    const struct gcmp_metric_text *text;
    struct gcmp_metric_source *source;
    const char *metric;
    struct gradcmp_error *error;
};

#define REFUSE(golden, code, ...)                                                                  \
    GCMP_FAIL_AT((golden)->error, (code), (golden)->text->path, GRADCMP_NO_OFFSET, __VA_ARGS__)

static bool string_value(const char *text, struct gcmp_metric_point *point) {
    size_t length = strlen(text);
    if (!gcmp_metric_number(text, length, point) || point->type != GCMP_METRIC_FLOAT64) {
        return false; /* digits in quotes are no number in this form */
    }
    point->is_absent = isnan(point->value); /* "nan" stands for a step that was not sampled */
    return true;
}

/* Read one value; false where it is none. */
static bool read_value(const json_t *value, struct gcmp_metric_point *point) {
    point->type = GCMP_METRIC_FLOAT64;
    if (json_is_real(value)) {
        point->value = json_real_value(value);
        return true;
    }
    if (json_is_integer(value)) {
        json_int_t whole = json_integer_value(value);
        point->value = (double)whole;
        return whole < (1LL << 53) && whole > -(1LL << 53); /* no two become one */
    }
    if (json_is_null(value)) {
        point->is_absent = true;
        point->value = NAN;
        return true;
    }
    return json_is_string(value) && string_value(json_string_value(value), point);
}

static enum gradcmp_status add(const struct golden *golden, int64_t step, const json_t *value) {
    struct gcmp_metric_point point = {0};
    if (!read_value(value, &point)) {
        char *found = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        enum gradcmp_status status = gcmp_error_set(
            golden->error, GRADCMP_ERROR_CORRUPT, golden->text->path, GRADCMP_NO_OFFSET,
            "\"%.80s\", step %lld: expected a number, \"nan\" or \"inf\", found %.80s",
            golden->metric, (long long)step, found == NULL ? "?" : found);
        free(found);
        return status;
    }
    point.step = step;
    return gcmp_metric_add(golden->source, golden->metric, strlen(golden->metric), point,
                           golden->error);
}

/* A step as a key: decimal digits as a program prints them. */
static bool read_step(const char *key, int64_t *step) {
    size_t digits = strspn(key, "0123456789");
    if (digits == 0 || digits > 18 || key[digits] != '\0' || (key[0] == '0' && digits > 1)) {
        return false;
    }
    *step = strtoll(key, NULL, 10);
    return true;
}

static enum gradcmp_status read_by_step(const struct golden *golden, json_t *values) {
    const char *key;
    json_t *value;
    json_object_foreach(values, key, value) {
        int64_t step;
        if (!read_step(key, &step)) {
            REFUSE(golden, GRADCMP_ERROR_CORRUPT,
                   "\"%.80s\": expected a step, found the key \"%.80s\"", golden->metric, key);
        }
        GCMP_TRY(add(golden, step, value));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_list(const struct golden *golden, const json_t *values,
                                     int64_t start, int64_t interval) {
    for (size_t i = 0; i < json_array_size(values); i++) {
        int64_t step;
        if (__builtin_mul_overflow((int64_t)i, interval, &step) ||
            __builtin_add_overflow(step, start, &step)) {
            REFUSE(golden, GRADCMP_ERROR_CORRUPT, "\"%.80s\": the step of value %zu is past 2^63",
                   golden->metric, i);
        }
        GCMP_TRY(add(golden, step, json_array_get(values, i)));
    }
    return GRADCMP_OK;
}

/* The list form says where it starts and ends, and what lies between two values. */
static enum gradcmp_status read_spaced(const struct golden *golden, const json_t *metric,
                                       const json_t *values) {
    const json_t *start = json_object_get(metric, "start_step");
    const json_t *end = json_object_get(metric, "end_step");
    const json_t *interval = json_object_get(metric, "step_interval");
    if (!json_is_integer(start) || !json_is_integer(interval) || json_integer_value(interval) < 1 ||
        json_integer_value(start) < 0) {
        REFUSE(golden, GRADCMP_ERROR_CORRUPT,
               "\"%.80s\": a list of values needs start_step and step_interval", golden->metric);
    }
    int64_t first = json_integer_value(start), apart = json_integer_value(interval);
    size_t count = json_array_size(values);
    if (json_is_integer(end) && count > 0 &&
        (json_integer_value(end) - first) / apart < (int64_t)count - 1) {
        REFUSE(golden, GRADCMP_ERROR_CORRUPT,
               "\"%.80s\": %zu values from step %lld at intervals of %lld pass end_step %lld",
               golden->metric, count, (long long)first, (long long)apart,
               (long long)json_integer_value(end));
    }
    return read_list(golden, values, first, apart);
}

static enum gradcmp_status read_metric(const struct golden *golden, json_t *metric) {
    json_t *values = json_object_get(metric, "values");
    int64_t ignored;
    const json_t *held = values != NULL ? values : metric;
    if ((json_is_object(held) && json_object_size(held) == 0) ||
        (json_is_array(held) && json_array_size(held) == 0)) {
        REFUSE(golden, GRADCMP_ERROR_CORRUPT, "\"%.80s\" has no values", golden->metric);
    }
    if (json_is_object(values)) {
        return read_by_step(golden, values);
    }
    if (json_is_array(values)) {
        return read_spaced(golden, metric, values);
    }
    if (values == NULL && json_is_object(metric) && !read_step(golden->metric, &ignored)) {
        return read_by_step(golden, metric);
    }
    if (json_is_array(metric)) {
        return read_list(golden, metric, 0, 1);
    }
    if (json_is_number(metric)) {
        return add(golden, 0, metric);
    }
    REFUSE(
        golden, GRADCMP_ERROR_UNSUPPORTED,
        "no golden values of a training run: \"%.80s\" has no values by step (those of inference "
        "tests have none)",
        golden->metric);
}

/* True where five decimals give a value back. */
static bool is_short(double value) {
    char text[400];
    struct gcmp_metric_point point;
    int length = snprintf(text, sizeof text, "%.*f", LEGACY_DECIMALS, value);
    return length < 63 && gcmp_metric_number(text, (size_t)length, &point) && point.value == value;
}

/* What the values show of how they were stored: all rounded to five decimals, or all float32. JSON
 * drops zeros at the end, so a value that needs fewer decimals is known to five all the same. */
static void find_precision(struct gcmp_metric_series *series) {
    bool are_short = true, are_float32 = true;
    for (size_t i = 0; i < series->count; i++) {
        double value = series->points[i].value;
        if (isfinite(value)) {
            are_short = are_short && is_short(value);
            are_float32 = are_float32 && fabs(value) <= 3.4028234663852886e38 &&
                          (double)(float)value == value;
        }
    }
    enum gcmp_metric_type type = are_short     ? GCMP_METRIC_DECIMAL
                                 : are_float32 ? GCMP_METRIC_FLOAT32
                                               : GCMP_METRIC_FLOAT64;
    for (size_t i = 0; i < series->count; i++) {
        series->points[i].type = (uint8_t)type;
        series->points[i].place = (int16_t)(type == GCMP_METRIC_DECIMAL ? -LEGACY_DECIMALS : 0);
    }
}

/* True for a number with a point or an exponent; *length_bytes is that of any number. */
static bool is_real(const char *at, size_t *length_bytes) {
    bool has_mark = false;
    *length_bytes = strspn(at, "+-.0123456789Ee");
    for (size_t i = 0; i < *length_bytes; i++) {
        has_mark = has_mark || at[i] == '.' || at[i] == 'e' || at[i] == 'E';
    }
    return has_mark && (*at == '-' || (*at >= '0' && *at <= '9'));
}

/* Refuse a real that binary64 does not hold: once parsed, its text is gone. The JSON is sound. */
static enum gradcmp_status check_reals(const struct golden *golden) {
    const char *bytes = golden->text->bytes;
    size_t line = 1, length = 0;
    for (size_t at = 0; at<golden->text->length_bytes; at += length> 0 ? length : 1) {
        struct gcmp_metric_point point;
        length = 0;
        if (bytes[at] == '"') {
            for (at++; bytes[at] != '"'; at++) {
                at += bytes[at] == '\\';
            }
        } else if (is_real(bytes + at, &length) &&
                   !gcmp_metric_number(bytes + at, length, &point)) {
            REFUSE(golden, GRADCMP_ERROR_CORRUPT,
                   "line %zu: expected a number that binary64 holds, found %.*s", line,
                   (int)(length > 80 ? 80 : length), bytes + at);
        }
        line += bytes[at] == '\n';
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_document(struct golden *golden, json_t *document) {
    json_t *metric;
    if (!json_is_object(document) || json_object_size(document) == 0) {
        REFUSE(golden, GRADCMP_ERROR_UNSUPPORTED,
               "no golden values: expected a JSON object of metrics");
    }
    GCMP_TRY(check_reals(golden));
    json_object_foreach(document, golden->metric, metric) {
        GCMP_TRY(read_metric(golden, metric));
    }
    for (size_t i = 0; i < golden->source->series_count; i++) {
        find_precision(&golden->source->series[i]);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_golden_read(const struct gcmp_metric_text *text,
                                     struct gcmp_metric_source *source,
                                     struct gradcmp_error *error) {
    json_error_t trouble;
    GCMP_TRY(gcmp_json_check_cost(
        &(struct gcmp_json_text){text->bytes, text->length_bytes, text->path, 0}, error));
    json_t *document =
        gcmp_json_load(text->bytes, text->length_bytes, JSON_REJECT_DUPLICATES, &trouble);
    if (document == NULL && gcmp_json_lacked_memory(&trouble)) {
        GCMP_FAIL_MEMORY(error);
    }
    if (document == NULL) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path,
                     (uint64_t)(trouble.position > 0 ? trouble.position : 0),
                     "line %d, column %d: %.200s", trouble.line, trouble.column, trouble.text);
    }
    struct golden golden = {text, source, "", error};
    enum gradcmp_status status = read_document(&golden, document);
    gcmp_error_add_path(error, text->path);
    json_decref(document);
    return status;
}
