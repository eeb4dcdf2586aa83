/* The iteration lines of Megatron-LM's training log (MindSpeed's and others' are the same):
 * " [date] iteration  N/ TOTAL | name: value | ... |", behind any prefix of a launcher. A line that
 * does not end with its '|' was cut; the text's last one also where it stops before the field that
 * ended the line before it (iterations that fp16 skips have fewer fields, and the same last one).
 */
#include "metrics/text_source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

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

/* Match "iteration N/ TOTAL |" at the beginning of `rest` and step over it, as far as it goes;
 * *is_begun from the slash on. */
static bool take_iteration(struct span *rest, int64_t *step, bool *is_begun) {
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
    *is_begun = take_char(rest, '/');
    if (!*is_begun) {
        return false;
    }
    skip_spaces(rest);
    if (!take_whole(rest, &total)) {
        return false;
    }
    skip_spaces(rest);
    return take_char(rest, '|');
}

/* Match "validation loss at iteration N ... |" at the beginning of `rest`; *is_begun from the
 * number on. */
static bool take_validation(struct span *rest, int64_t *step, bool *is_begun) {
    static const char words[] = "validation loss at iteration";
    if (length(*rest) < sizeof words || memcmp(rest->at, words, sizeof words - 1) != 0) {
        return false;
    }
    rest->at += sizeof words - 1;
    skip_spaces(rest);
    if (!take_whole(rest, step)) {
        return false;
    }
    *is_begun = true;
    const char *bar = memchr(rest->at, '|', length(*rest));
    rest->at = bar == NULL ? rest->end : bar + 1;
    return bar != NULL;
}

/* An iteration line, or one of a validation. */
struct head {
    struct span before; /* what stands before the iteration */
    struct span fields; /* and behind it */
    int64_t step;
    bool is_validation;
    bool is_cut; /* the line ends within the head */
};

/* Find the head of an iteration line; false where there is none, or it is cut. */
static bool find_head(struct span line, struct head *head) {
    head->is_cut = false;
    for (const char *at = line.at; at < line.end && !head->is_cut; at++) {
        struct span rest = {at, line.end};
        bool is_begun = false;
        head->before = (struct span){line.at, at};
        head->is_validation = *at == 'v';
        if ((*at == 'i' && take_iteration(&rest, &head->step, &is_begun)) ||
            (*at == 'v' && take_validation(&rest, &head->step, &is_begun))) {
            head->fields = trim(rest);
            return true;
        }
        head->is_cut = is_begun && rest.at == rest.end;
    }
    return false;
}

/* A line that was cut, or a field without a number: where it was first seen. */
struct oddity {
    int64_t key; /* of a cut line */
    const char *name;
    size_t line;
    bool is_number; /* a field has one, of which binary64 holds not all */
};

struct log {
    const struct gcmp_metric_text *text;
    struct gcmp_metric_source *source;
    struct gradcmp_error *error;
    size_t line;
    struct span before, last_name; /* of the last iteration line that is not cut */
    size_t bars;                   /* also of that */
    int64_t *whole;                /* keys of lines that are not cut */
    size_t whole_count, whole_capacity;
    struct oddity *cuts, *odd; /* the latter: of each name the first */
    size_t cut_count, cut_capacity, odd_count, odd_capacity;
    struct gcmp_map odd_names;
};

/* What tells lines apart: the step, and whether it is of a validation. */
static int64_t key_of(const struct head *head) {
    return 2 * head->step + head->is_validation; /* a step has 18 digits at most */
}

/* What stands before a field's first colon. */
static struct span name_of(struct span field) {
    struct span name = {field.at, field.at};
    while (name.end < field.end && *name.end != ':') {
        name.end++;
    }
    return trim(name);
}

static void skip_digits(struct span *span) {
    while (span->at < span->end && *span->at >= '0' && *span->at <= '9') {
        span->at++;
    }
}

/* True for what is written as a decimal number. */
static bool is_decimal(struct span value) {
    (void)(take_char(&value, '-') || take_char(&value, '+'));
    const char *start = value.at;
    skip_digits(&value);
    take_char(&value, '.');
    skip_digits(&value);
    if (value.at > start && (take_char(&value, 'e') || take_char(&value, 'E'))) {
        (void)(take_char(&value, '-') || take_char(&value, '+'));
        skip_digits(&value);
    }
    return value.at > start && value.at == value.end;
}

/* Remember a field without a number that binary64 holds. */
static enum gradcmp_status note_odd(struct log *log, struct span field, struct span value) {
    struct span name = name_of(field);
    size_t index;
    if (!gcmp_map_find(&log->odd_names, name.at, length(name), &index)) {
        char *own = gcmp_arena_text(log->source->arena, name.at, length(name));
        index = log->odd_count;
        if (own == NULL ||
            gcmp_map_add(&log->odd_names, own, length(name), index, NULL) != GCMP_MAP_ADDED ||
            !gcmp_grow(&log->odd, log->odd_count, &log->odd_capacity, sizeof *log->odd)) {
            GCMP_FAIL_MEMORY(log->error);
        }
        log->odd[log->odd_count++] = (struct oddity){.name = own, .line = log->line};
    }
    if (value.at > field.at && is_decimal(value) && !log->odd[index].is_number) {
        log->odd[index].is_number = true;
        log->odd[index].line = log->line;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_field(struct log *log, struct span field, const struct head *head) {
    const char *colon = field.end;
    while (colon > field.at && colon[-1] != ':') {
        colon--;
    }
    struct span name = trim((struct span){field.at, colon == field.at ? colon : colon - 1});
    struct span value = trim((struct span){colon, field.end});
    struct gcmp_metric_point point;
    if (length(field) == 0) {
        return GRADCMP_OK;
    }
    if (length(name) == 0 || !gcmp_metric_number(value.at, length(value), &point)) {
        return note_odd(log, field, value);
    }
    char own[GCMP_METRIC_MAX_NAME_BYTES];
    static const char prefix[] = "validation: ";
    size_t before = head->is_validation ? sizeof prefix - 1 : 0;
    if (before + length(name) > sizeof own) {
        GCMP_FAIL_AT(log->error, GRADCMP_ERROR_CORRUPT, log->text->path, GRADCMP_NO_OFFSET,
                     "line %zu: a metric's name of %zu bytes", log->line, length(name));
    }
    memcpy(own, prefix, before);
    memcpy(own + before, name.at, length(name));
    point.step = head->step;
    return gcmp_metric_add(log->source, own, before + length(name), point, log->error);
}

static enum gradcmp_status note_cut(struct log *log, const struct head *head) {
    if (!gcmp_grow(&log->cuts, log->cut_count, &log->cut_capacity, sizeof *log->cuts)) {
        GCMP_FAIL_MEMORY(log->error);
    }
    log->cuts[log->cut_count++] = (struct oddity){.key = key_of(head), .line = log->line};
    return GRADCMP_OK;
}

static size_t count_bars(struct span span) {
    size_t bars = 0;
    for (const char *at = span.at; at < span.end; at++) {
        bars += *at == '|';
    }
    return bars;
}

static bool is_same(struct span a, struct span b) {
    return length(a) == length(b) && (length(a) == 0 || memcmp(a.at, b.at, length(a)) == 0);
}

/* The name of the last field of a line that ends with its '|'. */
static struct span last_name_of(struct span fields) {
    const char *end = fields.end > fields.at ? fields.end - 1 : fields.end, *at = end;
    while (at > fields.at && at[-1] != '|') {
        at--;
    }
    return name_of(trim((struct span){at, end}));
}

/* True where a line ends too early: within a field, or as the text's last one with fewer fields
 * than the line before it and another one at the end. */
static bool is_cut(struct log *log, struct span line, const struct head *head, bool is_open) {
    if (line.end[-1] != '|') {
        return true;
    }
    if (head->is_validation) {
        return false;
    }
    size_t bars = count_bars(head->fields);
    struct span last_name = last_name_of(head->fields);
    if (is_open && bars < log->bars && !is_same(last_name, log->last_name)) {
        return true;
    }
    log->bars = bars;
    log->last_name = last_name;
    log->before = head->before;
    return false;
}

/* True for the same text, but for the digits. */
static bool is_alike(struct span a, struct span b) {
    skip_digits(&a);
    skip_digits(&b);
    while (a.at < a.end && b.at < b.end && *a.at == *b.at) {
        a.at++;
        b.at++;
        skip_digits(&a);
        skip_digits(&b);
    }
    return a.at == a.end && b.at == b.end;
}

/* True where the text ends within a head that begins as the iteration line before it does: others
 * mention an iteration. */
static bool is_head_cut(const struct log *log, const struct head *head, bool is_open) {
    bool has_line = log->before.at != NULL && !head->is_validation;
    return is_open && head->is_cut && (!has_line || is_alike(head->before, log->before));
}

/* Read a line; `is_open` where the text ends without ending the line. */
static enum gradcmp_status read_line(struct log *log, struct span line, bool is_open) {
    struct head head;
    line = trim(line);
    if (!find_head(line, &head)) {
        return is_head_cut(log, &head, is_open) ? note_cut(log, &head) : GRADCMP_OK;
    }
    if (is_cut(log, line, &head, is_open)) {
        return note_cut(log, &head);
    }
    if (!gcmp_grow(&log->whole, log->whole_count, &log->whole_capacity, sizeof *log->whole)) {
        GCMP_FAIL_MEMORY(log->error);
    }
    log->whole[log->whole_count++] = key_of(&head);
    struct span fields = head.fields;
    while (fields.at < fields.end) {
        const char *bar = memchr(fields.at, '|', length(fields));
        struct span field = {fields.at, bar == NULL ? fields.end : bar};
        GCMP_TRY(read_field(log, trim(field), &head));
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
        struct head head;
        if (find_head(next_line(text, &at), &head)) {
            return true;
        }
    }
    return false;
}

static int by_key(const void *one, const void *two) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)two;
    return a < b ? -1 : a > b;
}

__attribute__((format(printf, 2, 3))) static void note_damage(struct log *log, const char *format,
                                                              ...) {
    struct gcmp_metric_source *source = log->source;
    char text[sizeof source->damage.message];
    va_list arguments;
    if (!source->is_damaged) {
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        (void)gcmp_error_set(&source->damage, GRADCMP_ERROR_CORRUPT, log->text->path,
                             GRADCMP_NO_OFFSET, "%s", text);
        source->is_damaged = true;
    }
}

/* A line that is cut is a value lost, but where a restart wrote the step again, whole. */
static void judge_cuts(struct log *log) {
    size_t again = 0;
    if (log->cut_count > 0 && log->whole_count > 0) {
        qsort(log->whole, log->whole_count, sizeof *log->whole, by_key);
    }
    for (size_t i = 0; i < log->cut_count; i++) {
        const struct oddity *cut = &log->cuts[i];
        if (log->whole_count > 0 &&
            bsearch(&cut->key, log->whole, log->whole_count, sizeof *log->whole, by_key) != NULL) {
            again++;
        } else {
            note_damage(log, "line %zu: the line of %s %lld is cut", cut->line,
                        cut->key % 2 != 0 ? "the validation at iteration" : "iteration",
                        (long long)(cut->key / 2));
        }
    }
    if (again > 0) {
        gcmp_metric_note(log->source, "%s: %zu iteration line%s cut, and whole elsewhere",
                         log->text->path, again, again == 1 ? " is" : "s are");
    }
}

/* A field that has a number elsewhere has lost it, as has one that writes more than binary64 holds;
 * others are remarks. */
static void judge_odd(struct log *log) {
    size_t remarks = 0, index;
    for (size_t i = 0; i < log->odd_count; i++) {
        const struct oddity *odd = &log->odd[i];
        if (odd->is_number ||
            gcmp_map_find(&log->source->names, odd->name, strlen(odd->name), &index)) {
            note_damage(log, "line %zu: \"%.80s\" without a number that binary64 holds", odd->line,
                        odd->name);
        } else if (remarks++ < MAX_TOLD) {
            gcmp_metric_note(log->source, "line %zu: \"%.80s\" has no number, it is left out",
                             odd->line, odd->name);
        }
    }
    if (remarks > MAX_TOLD) {
        gcmp_metric_note(log->source, "%s: %zu more fields without a number are left out",
                         log->text->path, remarks - MAX_TOLD);
    }
}

static enum gradcmp_status read_log(struct log *log) {
    const struct gcmp_metric_text *text = log->text;
    size_t at = 0;
    while (at < text->length_bytes) {
        log->line++;
        struct span line = next_line(text, &at);
        GCMP_TRY(read_line(log, line, line.end == text->bytes + text->length_bytes));
    }
    judge_cuts(log);
    judge_odd(log);
    if (log->source->point_count == 0) {
        GCMP_FAIL_AT(log->error, GRADCMP_ERROR_CORRUPT, text->path, GRADCMP_NO_OFFSET,
                     "no whole iteration line with a value");
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_log_read(const struct gcmp_metric_text *text,
                                  struct gcmp_metric_source *source, struct gradcmp_error *error) {
    struct log log = {.text = text, .source = source, .error = error};
    enum gradcmp_status status = read_log(&log);
    free(log.whole);
    free(log.cuts);
    free(log.odd);
    gcmp_map_free(&log.odd_names);
    return status;
}
