/* CSV (RFC 4180, also with semicolons or tabs): one column a metric beside one of steps, or long
 * form with the columns metric, step and value. */
#include "metrics/text_source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"

enum { MAX_COLUMNS = 10000, FIXED_CHANGES = 9 };

struct field {
    char *at; /* unquoted, in the parser's own copy */
    size_t length_bytes;
    bool is_quoted;
};

struct csv {
    const struct gcmp_metric_text *text;
    struct gcmp_metric_source *source;
    struct gradcmp_error *error;
    char *bytes; /* a copy: quotes are taken out in place */
    size_t at, line, row_line;
    char separator;
    struct field *fields;
    size_t field_count, field_capacity;
    struct field *names; /* of the columns */
    size_t name_count;
    size_t step_column, metric_column, value_column; /* SIZE_MAX: none */
};

#define REFUSE(csv, ...)                                                                           \
    GCMP_FAIL_AT((csv)->error, GRADCMP_ERROR_CORRUPT, (csv)->text->path, GRADCMP_NO_OFFSET,        \
                 __VA_ARGS__)

static bool is_one_of(const struct field *field, const char *const words[]) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strlen(words[i]) == field->length_bytes &&
            strncasecmp(field->at, words[i], field->length_bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_step(const struct field *field) {
    static const char *const words[] = {
        "step",        "steps",      "iteration", "iterations",          "iter", "global_step",
        "global step", "train/step", "_step",     "trainer/global_step", NULL};
    return is_one_of(field, words);
}

/* Columns that tell when, not what. */
static bool is_clock(const struct field *field) {
    static const char *const words[] = {"wall time",     "wall_time", "timestamp", "_timestamp",
                                        "time",          "date",      "datetime",  "_runtime",
                                        "relative time", NULL};
    return is_one_of(field, words);
}

static bool is_metric(const struct field *field) {
    static const char *const words[] = {"metric", "tag", "name", "key", "metric_name", NULL};
    return is_one_of(field, words);
}

static bool is_value(const struct field *field) {
    static const char *const words[] = {"value", "scalar", "metric_value", NULL};
    return is_one_of(field, words);
}

static enum gradcmp_status add_field(struct csv *csv, struct field field) {
    if (csv->field_count >= MAX_COLUMNS) {
        REFUSE(csv, "line %zu: more than %d columns", csv->line, MAX_COLUMNS);
    }
    if (!gcmp_grow(&csv->fields, csv->field_count, &csv->field_capacity, sizeof *csv->fields)) {
        GCMP_FAIL_MEMORY(csv->error);
    }
    csv->fields[csv->field_count++] = field;
    return GRADCMP_OK;
}

/* A field in quotes; a quote inside is written twice. */
static enum gradcmp_status take_quoted(struct csv *csv, struct field *field) {
    size_t write = ++csv->at, line = csv->line;
    *field = (struct field){csv->bytes + write, 0, true};
    while (csv->at < csv->text->length_bytes) {
        char byte = csv->bytes[csv->at++];
        if (byte == '"' && csv->bytes[csv->at] != '"') {
            field->length_bytes = (size_t)(csv->bytes + write - field->at);
            return GRADCMP_OK;
        }
        csv->at += byte == '"';
        csv->line += byte == '\n';
        csv->bytes[write++] = byte;
    }
    REFUSE(csv, "line %zu: a quote is opened and not closed", line);
}

static void take_plain(struct csv *csv, struct field *field) {
    char *start = csv->bytes + csv->at;
    while (csv->at < csv->text->length_bytes && csv->bytes[csv->at] != csv->separator &&
           csv->bytes[csv->at] != '\n' && csv->bytes[csv->at] != '\r') {
        csv->at++;
    }
    char *end = csv->bytes + csv->at;
    while (start < end && (*start == ' ' || *start == '\t')) {
        start++;
    }
    while (end > start && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *field = (struct field){start, (size_t)(end - start), false};
}

/* Step over the end of a field; *is_end where the row ends with it. */
static enum gradcmp_status take_separator(struct csv *csv, bool *is_end) {
    *is_end = true;
    if (csv->at >= csv->text->length_bytes) {
        return GRADCMP_OK;
    }
    char byte = csv->bytes[csv->at++];
    if (byte == '\r' && csv->bytes[csv->at] == '\n') {
        byte = csv->bytes[csv->at++];
    }
    if (byte == '\n' || byte == '\r') {
        csv->line++;
        return GRADCMP_OK;
    }
    *is_end = false;
    if (byte != csv->separator) {
        REFUSE(csv, "line %zu: text behind a closing quote", csv->line);
    }
    return GRADCMP_OK;
}

/* Read the next row that is not empty; no field at the end of the text. */
static enum gradcmp_status read_row(struct csv *csv) {
    csv->field_count = 0;
    while (csv->field_count == 0 && csv->at < csv->text->length_bytes) {
        bool is_end = false;
        csv->row_line = csv->line;
        while (!is_end) {
            struct field field = {0};
            if (csv->bytes[csv->at] == '"') {
                GCMP_TRY(take_quoted(csv, &field));
            } else {
                take_plain(csv, &field);
            }
            GCMP_TRY(take_separator(csv, &is_end));
            GCMP_TRY(add_field(csv, field));
        }
        if (csv->field_count == 1 && csv->fields[0].length_bytes == 0) {
            csv->field_count = 0; /* an empty line */
        }
    }
    return GRADCMP_OK;
}

/* Find the separator: of the three, the one that stands most often outside quotes in the header. */
static char find_separator(const struct gcmp_metric_text *text) {
    static const char candidates[] = ",;\t";
    size_t counts[3] = {0};
    bool is_quoted = false;
    for (size_t i = 0; i < text->length_bytes && text->bytes[i] != '\n'; i++) {
        is_quoted = is_quoted != (text->bytes[i] == '"');
        const char *found = strchr(candidates, text->bytes[i]);
        if (!is_quoted && text->bytes[i] != '\0' && found != NULL) {
            counts[found - candidates]++;
        }
    }
    size_t best = counts[1] > counts[0] ? 1 : 0;
    return candidates[counts[2] > counts[best] ? 2 : best];
}

static enum gradcmp_status start(struct csv *csv) {
    size_t length = csv->text->length_bytes;
    csv->bytes = malloc(length + 1);
    if (csv->bytes == NULL) {
        GCMP_FAIL_MEMORY(csv->error);
    }
    memcpy(csv->bytes, csv->text->bytes, length);
    csv->bytes[length] = '\0';
    csv->separator = find_separator(csv->text);
    csv->line = 1;
    csv->step_column = csv->metric_column = csv->value_column = SIZE_MAX;
    csv->at = gcmp_utf8_mark_bytes(csv->bytes, length);
    return read_row(csv);
}

static void finish(struct csv *csv) {
    free(csv->bytes);
    free(csv->fields);
    free(csv->names);
}

/* Learn what the columns are; false where none holds steps. */
static bool find_columns(struct csv *csv) {
    for (size_t i = 0; i < csv->field_count; i++) {
        const struct field *field = &csv->fields[i];
        size_t *column = is_step(field)     ? &csv->step_column
                         : is_metric(field) ? &csv->metric_column
                         : is_value(field)  ? &csv->value_column
                                            : NULL;
        if (column != NULL && *column == SIZE_MAX) {
            *column = i;
        }
    }
    if (csv->metric_column == SIZE_MAX) {
        csv->value_column = SIZE_MAX; /* a column "value" alone is a metric of that name */
    }
    return csv->step_column != SIZE_MAX && csv->field_count > 1;
}

bool gcmp_csv_probe(const struct gcmp_metric_text *text) {
    struct csv csv = {.text = text};
    bool is_it = start(&csv) == GRADCMP_OK && find_columns(&csv);
    finish(&csv);
    return is_it;
}

static enum gradcmp_status check_names(const struct csv *csv) {
    struct gcmp_map seen = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < csv->field_count && status == GRADCMP_OK; i++) {
        const struct field *field = &csv->fields[i];
        enum gcmp_map_result result = gcmp_map_add(&seen, field->at, field->length_bytes, i, NULL);
        if (result == GCMP_MAP_NO_MEMORY) {
            status = gcmp_error_set(csv->error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        } else if (result == GCMP_MAP_PRESENT && field->length_bytes > 0) {
            status = gcmp_error_set(
                csv->error, GRADCMP_ERROR_CORRUPT, csv->text->path, GRADCMP_NO_OFFSET,
                "line %zu: the column \"%.*s\" stands twice", csv->row_line,
                (int)(field->length_bytes > 80 ? 80 : field->length_bytes), field->at);
        }
    }
    gcmp_map_free(&seen);
    return status;
}

/* A step: a whole number, also as "12.0" or "1e3", as spreadsheets write it. */
static bool read_step(const struct field *field, int64_t *step) {
    struct gcmp_metric_point point;
    if (!gcmp_metric_number(field->at, field->length_bytes, &point) ||
        point.type != GCMP_METRIC_DECIMAL || point.value < -9e15 || point.value > 9e15 ||
        point.value != (double)(int64_t)point.value) {
        return false;
    }
    *step = (int64_t)point.value;
    return true;
}

static enum gradcmp_status add_value(struct csv *csv, const struct field *name,
                                     const struct field *value, int64_t step) {
    struct gcmp_metric_point point;
    if (value->length_bytes == 0) {
        return GRADCMP_OK; /* not sampled at this step */
    }
    if (!gcmp_metric_number(value->at, value->length_bytes, &point)) {
        REFUSE(csv,
               "line %zu, column \"%.*s\": expected a number that binary64 holds, found \"%.*s\"",
               csv->row_line, (int)(name->length_bytes > 80 ? 80 : name->length_bytes), name->at,
               (int)(value->length_bytes > 80 ? 80 : value->length_bytes), value->at);
    }
    point.step = step;
    return gcmp_metric_add(csv->source, name->at, name->length_bytes, point, csv->error);
}

/* The first column without a name is the index that pandas' to_csv() writes. */
static bool is_index(const struct csv *csv, size_t column) {
    return column == 0 && csv->names[0].length_bytes == 0;
}

static enum gradcmp_status read_values(struct csv *csv, int64_t step) {
    if (csv->metric_column != SIZE_MAX && csv->value_column != SIZE_MAX) {
        return add_value(csv, &csv->fields[csv->metric_column], &csv->fields[csv->value_column],
                         step);
    }
    for (size_t i = 0; i < csv->name_count; i++) {
        char number[32];
        struct field name = csv->names[i];
        if (name.length_bytes == 0) { /* a column without a name has values all the same */
            name.at = number;
            name.length_bytes = (size_t)snprintf(number, sizeof number, "(column %zu)", i + 1);
        }
        if (i != csv->step_column && !is_index(csv, i) && !is_clock(&name)) {
            GCMP_TRY(add_value(csv, &name, &csv->fields[i], step));
        }
    }
    return GRADCMP_OK;
}

/* The power of ten of a value's first digit. */
static int first_place(double value) {
    int place = (int)floor(log10(fabs(value)));
    return fabs(value) >= pow(10.0, place + 1) ? place + 1
           : fabs(value) < pow(10.0, place)    ? place - 1
                                               : place;
}

/* True for a decimal with digits: a zero that was printed with an exponent is known whole. */
static bool has_digits(const struct gcmp_metric_point *point) {
    return point->type == GCMP_METRIC_DECIMAL &&
           (point->value != 0.0 || point->place != GCMP_METRIC_EXACT_PLACE);
}

static int digits_of(const struct gcmp_metric_point *point) {
    return point->value == 0.0 ? 1 : first_place(point->value) - point->place + 1;
}

/* True where a zero at the end was written ("2.3400", not "2.0" or "1.0E-5"): none is left out. */
static bool ends_in_zero(const struct gcmp_metric_point *point) {
    bool is_long = point->value == 0.0 || digits_of(point) > 2;
    return point->place <= -2 && point->place > -15 && is_long &&
           fmod(round(point->value * pow(10.0, -point->place)), 10.0) == 0.0;
}

/* Count the points from `first` on that end at one place; *is_fixed where that is how they were
 * printed: leaving zeros out would have made some shorter, unless the values stay the same. */
static size_t measure_run(const struct gcmp_metric_series *series, size_t first, bool *is_fixed) {
    const struct gcmp_metric_point *points = series->points;
    size_t end = first, changes = 0, zeros = 0;
    for (; end < series->count && has_digits(&points[end]) &&
           points[end].place == points[first].place;
         end++) {
        changes += end > first && points[end].value != points[end - 1].value;
        zeros += ends_in_zero(&points[end]);
    }
    *is_fixed = zeros > 0 || changes >= FIXED_CHANGES;
    return end > first ? end - first : 1;
}

/* A value is known to the finest place of its column, or to as many digits as the longest value
 * there, whichever is less. */
static void refine(struct gcmp_metric_point *point, int finest, int most_digits) {
    int by_digits = point->value == 0.0 ? finest : first_place(point->value) - most_digits + 1;
    int place = by_digits > finest ? by_digits : finest;
    point->place = (int16_t)(place < point->place ? place : point->place);
}

/* Programs leave zeros at the end out ("2.0" beside "2.3456789"): refine what may be such a value,
 * not rows that were printed at fewer decimals than others. */
static void spread_precision(struct gcmp_metric_series *series) {
    int finest = INT16_MAX, most_digits = 1;
    for (size_t i = 0; i < series->count; i++) {
        const struct gcmp_metric_point *point = &series->points[i];
        if (has_digits(point)) {
            int digits = digits_of(point);
            finest = point->place < finest ? point->place : finest;
            most_digits = digits > most_digits ? digits : most_digits;
        }
    }
    for (size_t i = 0; i < series->count;) {
        bool is_fixed;
        size_t end = i + measure_run(series, i, &is_fixed);
        for (; i < end; i++) {
            if (!is_fixed && has_digits(&series->points[i])) {
                refine(&series->points[i], finest, most_digits);
            }
        }
    }
}

/* Tell which columns of the long form are neither metric, step, value nor clock. */
static void note_further_columns(struct csv *csv) {
    const struct field *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < csv->name_count && csv->value_column != SIZE_MAX; i++) {
        if (i != csv->step_column && i != csv->metric_column && i != csv->value_column &&
            !is_index(csv, i) && !is_clock(&csv->names[i])) {
            first = first == NULL ? &csv->names[i] : first;
            count++;
        }
    }
    if (first != NULL) {
        gcmp_metric_note(
            csv->source,
            "%zu column%s beside metric, step and value %s left out, the first \"%.*s\"", count,
            count == 1 ? "" : "s", count == 1 ? "is" : "are",
            (int)(first->length_bytes > 80 ? 80 : first->length_bytes), first->at);
    }
}

static enum gradcmp_status read_rows(struct csv *csv) {
    for (;;) {
        int64_t step;
        GCMP_TRY(read_row(csv));
        if (csv->field_count == 0) {
            return GRADCMP_OK;
        }
        if (csv->field_count != csv->name_count) {
            REFUSE(csv, "line %zu: %zu columns expected, %zu found", csv->row_line, csv->name_count,
                   csv->field_count);
        }
        const struct field *field = &csv->fields[csv->step_column];
        if (!read_step(field, &step)) {
            REFUSE(csv, "line %zu: expected a step, found \"%.*s\"", csv->row_line,
                   (int)(field->length_bytes > 80 ? 80 : field->length_bytes), field->at);
        }
        GCMP_TRY(read_values(csv, step));
    }
}

static enum gradcmp_status read_table(struct csv *csv) {
    GCMP_TRY(start(csv));
    if (!find_columns(csv)) {
        REFUSE(csv, "line 1: no column named step or iteration beside another one");
    }
    GCMP_TRY(check_names(csv));
    csv->name_count = csv->field_count;
    csv->names = calloc(csv->name_count, sizeof *csv->names);
    if (csv->names == NULL) {
        GCMP_FAIL_MEMORY(csv->error);
    }
    memcpy(csv->names, csv->fields, csv->name_count * sizeof *csv->names);
    note_further_columns(csv);
    if (is_index(csv, 0)) {
        gcmp_metric_note(csv->source,
                         "%s: the first column has no name, it is left out as an index",
                         csv->text->path);
    }
    GCMP_TRY(read_rows(csv));
    for (size_t i = 0; i < csv->source->series_count; i++) {
        spread_precision(&csv->source->series[i]);
    }
    if (csv->source->point_count == 0) {
        REFUSE(csv, "line %zu: no value below the header", csv->line);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_csv_read(const struct gcmp_metric_text *text,
                                  struct gcmp_metric_source *source, struct gradcmp_error *error) {
    struct csv csv = {.text = text, .source = source, .error = error};
    enum gradcmp_status status = read_table(&csv);
    finish(&csv);
    gcmp_error_add_path(error, text->path);
    return status;
}
