/* The iteration lines of Megatron-LM's training log (MindSpeed's and others' are the same):
 * " [date] iteration  N/ TOTAL | name: value | ... |", behind any prefix of a launcher. A line that
 * does not end with its '|' was cut and is left out. */
#include "metrics/text_source.h"

#include <string.h>

enum { MAX_TOLD = 5 };

struct span {
    const char *at, *end;
};

static struct span trim(struct span span) {
    while (span.at < span.end && (*span.at == ' ' || *span.at == '\t')) {
        span.at++;
    }
    while (span.end > span.at &&
           (span.end[-1] == ' ' || span.end[-1] == '\t' || span.end[-1] == '\r')) {
        span.end--;
    }
    return span;
}

static size_t length(struct span span) {
    return (size_t)(span.end - span.at);
}

static void skip_spaces(struct span *span) {
    while (span->at < span->end && *span->at == ' ') {
        span->at++;
    }
}

/* Read a whole number of at most 18 digits. */
static bool take_whole(struct span *span, int64_t *out) {
    int64_t value = 0;
    unsigned digits = 0;
    while (span->at < span->end && *span->at >= '0' && *span->at <= '9' && digits < 18) {
        value = value * 10 + (*span->at++ - '0');
        digits++;
    }
    *out = value;
    return digits > 0;
}

static bool take_char(struct span *span, char wanted) {
    if (span->at < span->end && *span->at == wanted) {
        span->at++;
        return true;
    }
    return false;
}

/* Match "iteration N/ TOTAL |" at the beginning of `rest` and step over it. */
static bool take_iteration(struct span *rest, int64_t *step) {
    static const char word[] = "iteration";
    int64_t total;
    if (length(*rest) < sizeof word || memcmp(rest->at, word, sizeof word - 1) != 0) {
        return false;
    }
    rest->at += sizeof word - 1;
    take_char(rest, ':');
    skip_spaces(rest);
    if (!take_whole(rest, step)) {
        return false;
    }
    skip_spaces(rest);
    if (!take_char(rest, '/')) {
        return false;
    }
    skip_spaces(rest);
    if (!take_whole(rest, &total)) {
        return false;
    }
    skip_spaces(rest);
    return take_char(rest, '|');
}

/* Match "validation loss at iteration N ... |" at the beginning of `rest`. */
static bool take_validation(struct span *rest, int64_t *step) {
    static const char words[] = "validation loss at iteration";
    if (length(*rest) < sizeof words || memcmp(rest->at, words, sizeof words - 1) != 0) {
        return false;
    }
    rest->at += sizeof words - 1;
    skip_spaces(rest);
    if (!take_whole(rest, step)) {
        return false;
    }
    const char *bar = memchr(rest->at, '|', length(*rest));
    if (bar == NULL) {
        return false;
    }
    rest->at = bar + 1;
    return true;
}

/* Find a line's fields: what stands behind the iteration. */
static bool find_fields(struct span line, struct span *fields, int64_t *step, bool *is_validation) {
    for (const char *at = line.at; at < line.end; at++) {
        struct span rest = {at, line.end};
        *is_validation = *at == 'v';
        if ((*at == 'i' && take_iteration(&rest, step)) ||
            (*at == 'v' && take_validation(&rest, step))) {
            *fields = trim(rest);
            return true;
        }
    }
    return false;
}

struct log {
    const struct gcmp_metric_text *text;
    struct gcmp_metric_source *source;
    size_t line, cut_lines, last_cut_line, odd_values;
    struct gradcmp_error *error;
};

/* "name: value" */
static enum gradcmp_status read_field(struct log *log, struct span field, int64_t step,
                                      bool is_validation) {
    const char *colon = field.end;
    while (colon > field.at && colon[-1] != ':') {
        colon--;
    }
    if (colon == field.at) {
        return GRADCMP_OK; /* a remark between two bars */
    }
    struct span name = trim((struct span){field.at, colon - 1});
    struct span value = trim((struct span){colon, field.end});
    struct gcmp_metric_point point;
    if (length(name) == 0 || !gcmp_metric_number(value.at, length(value), &point)) {
        if (log->odd_values++ < MAX_TOLD) {
            gcmp_metric_note(log->source, "line %zu: \"%.*s\" has no number, it is left out",
                             log->line, (int)(length(field) > 80 ? 80 : length(field)), field.at);
        }
        return GRADCMP_OK;
    }
    char own[GCMP_METRIC_MAX_NAME_BYTES];
    static const char prefix[] = "validation: ";
    size_t before = is_validation ? sizeof prefix - 1 : 0;
    if (before + length(name) > sizeof own) {
        GCMP_FAIL_AT(log->error, GRADCMP_ERROR_CORRUPT, log->text->path, GRADCMP_NO_OFFSET,
                     "line %zu: a metric's name of %zu bytes", log->line, length(name));
    }
    memcpy(own, prefix, before);
    memcpy(own + before, name.at, length(name));
    point.step = step;
    return gcmp_metric_add(log->source, own, before + length(name), point, log->error);
}

static enum gradcmp_status read_line(struct log *log, struct span line) {
    struct span fields;
    int64_t step;
    bool is_validation;
    line = trim(line);
    if (!find_fields(line, &fields, &step, &is_validation)) {
        return GRADCMP_OK;
    }
    if (line.end[-1] != '|') {
        log->cut_lines++;
        log->last_cut_line = log->line;
        return GRADCMP_OK;
    }
    while (fields.at < fields.end) {
        const char *bar = memchr(fields.at, '|', length(fields));
        struct span field = {fields.at, bar == NULL ? fields.end : bar};
        GCMP_TRY(read_field(log, trim(field), step, is_validation));
        fields.at = bar == NULL ? fields.end : bar + 1;
    }
    return GRADCMP_OK;
}

static struct span next_line(const struct gcmp_metric_text *text, size_t *at) {
    const char *start = text->bytes + *at;
    const char *newline = memchr(start, '\n', text->length_bytes - *at);
    const char *end = newline == NULL ? text->bytes + text->length_bytes : newline;
    *at = (size_t)(end - text->bytes) + (newline != NULL);
    return (struct span){start, end};
}

bool gcmp_log_probe(const struct gcmp_metric_text *text) {
    size_t at = 0;
    while (at < text->length_bytes) {
        struct span fields;
        int64_t step;
        bool is_validation;
        if (find_fields(next_line(text, &at), &fields, &step, &is_validation)) {
            return true;
        }
    }
    return false;
}

enum gradcmp_status gcmp_log_read(const struct gcmp_metric_text *text,
                                  struct gcmp_metric_source *source, struct gradcmp_error *error) {
    struct log log = {.text = text, .source = source, .error = error};
    size_t at = 0;
    while (at < text->length_bytes) {
        log.line++;
        GCMP_TRY(read_line(&log, next_line(text, &at)));
    }
    if (log.cut_lines > 0) {
        gcmp_metric_note(source, "%s: %zu iteration line%s cut (the last is line %zu) and left out",
                         text->path, log.cut_lines, log.cut_lines == 1 ? " is" : "s are",
                         log.last_cut_line);
    }
    if (log.odd_values > MAX_TOLD) {
        gcmp_metric_note(source, "%s: %zu more fields without a number are left out", text->path,
                         log.odd_values - MAX_TOLD);
    }
    if (source->point_count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, GRADCMP_NO_OFFSET,
                     "no whole iteration line with a value");
    }
    return GRADCMP_OK;
}
