/* Words of a shell script: quotes, and expansions of what is known. */
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "lint/shell.h"

/* A word being put together. */
struct builder {
    struct gcmp_shell *shell;
    struct gcmp_shell_text *text;
    struct gcmp_shell_words *words;
    struct gcmp_text current;
    bool has_current; /* also where it is empty, as "" is */
    bool splits;
    uint64_t line;
};

#define REFUSE(builder, ...)                                                                       \
    GCMP_FAIL_AT((builder)->shell->error, GRADCMP_ERROR_CORRUPT, (builder)->shell->source->path,   \
                 GRADCMP_NO_OFFSET, __VA_ARGS__)

size_t gcmp_shell_name_bytes(const char *at, const char *end) {
    const char *start = at;
    while (at < end && ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_' ||
                        (at > start && *at >= '0' && *at <= '9'))) {
        at++;
    }
    return (size_t)(at - start);
}

struct gcmp_shell_variable *gcmp_shell_find(struct gcmp_shell *shell, const char *name,
                                            size_t name_bytes) {
    size_t index;
    return gcmp_map_find(&shell->names, name, name_bytes, &index) ? &shell->variables[index] : NULL;
}

enum gradcmp_status gcmp_shell_make(struct gcmp_shell *shell, const char *name,
                                    struct gcmp_shell_variable **out) {
    *out = gcmp_shell_find(shell, name, strlen(name));
    if (*out != NULL) {
        return GRADCMP_OK;
    }
    if (shell->variable_count == GCMP_SHELL_MAX_VARIABLES) {
        GCMP_FAIL_AT(shell->error, GRADCMP_ERROR_LIMIT, shell->source->path, GRADCMP_NO_OFFSET,
                     "more than %d variables", GCMP_SHELL_MAX_VARIABLES);
    }
    if (!gcmp_grow(&shell->variables, shell->variable_count, &shell->variable_capacity,
                   sizeof *shell->variables)) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    const char *own = gcmp_arena_dup(shell->arena, name);
    if (own == NULL || gcmp_map_add(&shell->names, own, strlen(own), shell->variable_count, NULL) !=
                           GCMP_MAP_ADDED) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    *out = &shell->variables[shell->variable_count++];
    **out = (struct gcmp_shell_variable){.name = own};
    return GRADCMP_OK;
}

/* Copy a value without the zones that lie between the marks `from` and `to`, and without marks. */
static const char *strip(struct gcmp_shell *shell, const char *value, char from, char to) {
    char *out = gcmp_arena_dup(shell->arena, value);
    bool is_left_out = false;
    size_t at = 0;
    for (const char *byte = value; out != NULL && *byte != '\0'; byte++) {
        if (*byte >= GCMP_SHELL_UNKNOWN && *byte <= GCMP_SHELL_REPLACED) {
            is_left_out = *byte == from || (is_left_out && *byte != to);
        } else if (!is_left_out) {
            out[at++] = *byte;
        }
    }
    if (out != NULL) {
        out[at] = '\0';
    }
    return out == NULL ? "" : out;
}

const char *gcmp_shell_text_of(struct gcmp_shell *shell, const char *value) {
    return strip(shell, value, GCMP_SHELL_DEFAULT, GCMP_SHELL_DEFAULT_TEXT);
}

const char *gcmp_shell_raw_of(struct gcmp_shell *shell, const char *value) {
    return strip(shell, value, GCMP_SHELL_DEFAULT_TEXT, GCMP_SHELL_DEFAULT_END);
}

enum gradcmp_status gcmp_shell_add_word(struct gcmp_shell *shell, struct gcmp_shell_words *words,
                                        struct gcmp_shell_word word) {
    if (words->count >= GCMP_SHELL_MAX_WORDS) {
        GCMP_FAIL_AT(shell->error, GRADCMP_ERROR_LIMIT, shell->source->path, GRADCMP_NO_OFFSET,
                     "line %llu: a command of more than %d words", (unsigned long long)word.line,
                     GCMP_SHELL_MAX_WORDS);
    }
    if (!gcmp_grow(&words->items, words->count, &words->capacity, sizeof *words->items)) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    words->items[words->count++] = word;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_shell_charge(struct gcmp_shell *shell, size_t bytes, uint64_t line) {
    char where[32] = "";
    if (bytes <= GCMP_SHELL_MAX_BYTES - shell->expanded_bytes) {
        shell->expanded_bytes += bytes;
        return GRADCMP_OK;
    }
    if (line > 0) {
        snprintf(where, sizeof where, "line %llu: ", (unsigned long long)line);
    }
    GCMP_FAIL_AT(shell->error, GRADCMP_ERROR_LIMIT, shell->source->path, GRADCMP_NO_OFFSET,
                 "%svariables expand to more than %d MiB", where, GCMP_SHELL_MAX_BYTES >> 20);
}

enum gradcmp_status gcmp_shell_make_values(struct gcmp_shell *shell, size_t count,
                                           const char ***values, uint64_t **lines, uint64_t line) {
    GCMP_TRY(gcmp_shell_charge(shell, count * (sizeof **values + sizeof **lines), line));
    *values = gcmp_arena_alloc(shell->arena, count, sizeof **values);
    *lines = gcmp_arena_alloc(shell->arena, count, sizeof **lines);
    if (*values == NULL || *lines == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    return GRADCMP_OK;
}

/* --- building fields --- */

static enum gradcmp_status put(struct builder *builder, const char *bytes, size_t count) {
    struct gcmp_shell *shell = builder->shell;
    GCMP_TRY(gcmp_shell_charge(shell, count, builder->text->line));
    builder->has_current = true;
    gcmp_text_add_bytes(&builder->current, bytes, count);
    if (builder->current.failed) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status put_mark(struct builder *builder, char mark) {
    return put(builder, &mark, 1);
}

static enum gradcmp_status end_field(struct builder *builder) {
    if (!builder->has_current) {
        return GRADCMP_OK;
    }
    const char *bytes = builder->current.bytes == NULL ? "" : builder->current.bytes;
    struct gcmp_shell_word word = {.line = builder->line};
    word.value = gcmp_arena_text(builder->shell->arena, bytes, builder->current.length_bytes);
    if (word.value == NULL) {
        GCMP_FAIL_MEMORY(builder->shell->error);
    }
    gcmp_text_clear(&builder->current);
    builder->has_current = false;
    return gcmp_shell_add_word(builder->shell, builder->words, word);
}

/* Put a marked value: as it is inside quotes, else split at blanks that are not in a marked zone.
 */
static enum gradcmp_status put_value(struct builder *builder, const char *value, bool is_quoted) {
    if (is_quoted || !builder->splits) {
        return put(builder, value, strlen(value));
    }
    bool is_in_zone = false;
    for (; *value != '\0'; value++) {
        if (*value == GCMP_SHELL_UNKNOWN || *value == GCMP_SHELL_DEFAULT) {
            is_in_zone = true;
        } else if (*value == GCMP_SHELL_UNKNOWN_END || *value == GCMP_SHELL_DEFAULT_END) {
            is_in_zone = false;
        }
        if (!is_in_zone && (*value == ' ' || *value == '\t' || *value == '\n')) {
            GCMP_TRY(end_field(builder));
        } else {
            GCMP_TRY(put(builder, value, 1));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status put_unknown(struct builder *builder, const char *raw, size_t count) {
    GCMP_TRY(put_mark(builder, GCMP_SHELL_UNKNOWN));
    GCMP_TRY(put(builder, raw, count));
    return put_mark(builder, GCMP_SHELL_UNKNOWN_END);
}

/* Put all values of a variable: "${A[@]}" keeps them apart, everything else joins them. */
static enum gradcmp_status put_variable(struct builder *builder,
                                        const struct gcmp_shell_variable *variable, bool is_quoted,
                                        bool is_all) {
    size_t count = is_all || variable->count == 0 ? variable->count : 1;
    if (is_quoted) {
        builder->has_current = builder->has_current || count > 0 || !is_all;
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && builder->splits) {
            GCMP_TRY(end_field(builder));
        } else if (i > 0) {
            GCMP_TRY(put(builder, " ", 1));
        }
        builder->line = variable->lines[i];
        GCMP_TRY(put_value(builder, variable->values[i], is_quoted));
    }
    return GRADCMP_OK;
}

/* --- expansions --- */

/* Find the end of a bracketed part whose opening was passed: quotes and nested brackets skipped. */
static const char *find_closing(const char *at, const char *end, char opening, char closing) {
    size_t depth = 1;
    for (char quote = '\0'; at < end; at++) {
        if (*at == '\\' && quote != '\'' && at + 1 < end) {
            at++;
        } else if (quote != '\0') {
            quote = *at == quote ? '\0' : quote;
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
        } else if (*at == opening) {
            depth++;
        } else if (*at == closing && --depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* Step over text up to `to`, counting lines. */
static void advance(struct builder *builder, const char *to) {
    for (; builder->text->at < to; builder->text->at++) {
        builder->text->line += *builder->text->at == '\n';
    }
}

static enum gradcmp_status expand_default(struct builder *builder, const char *start,
                                          const char *word, const char *end, bool is_quoted);

/* ${...}: `start` is the '$', `body` to `end` what stands between the braces. */
static enum gradcmp_status expand_braces(struct builder *builder, const char *start,
                                         const char *body, const char *end, bool is_quoted) {
    size_t name_bytes = gcmp_shell_name_bytes(body, end);
    const char *rest = body + name_bytes;
    const struct gcmp_shell_variable *variable = gcmp_shell_find(builder->shell, body, name_bytes);
    bool is_all =
        end - rest == 3 && rest[0] == '[' && (rest[1] == '@' || rest[1] == '*') && rest[2] == ']';
    bool is_known = name_bytes > 0 && variable != NULL && variable->is_set;
    if (is_known && (rest == end || is_all)) {
        return put_variable(builder, variable, is_quoted, is_all);
    }
    bool has_colon = rest < end && *rest == ':';
    const char *sign = rest + has_colon;
    if (name_bytes > 0 && sign < end && (*sign == '-' || *sign == '=')) {
        static const char marks[] = {GCMP_SHELL_CONDITIONAL, GCMP_SHELL_REPLACED, '\0'};
        bool is_empty = is_known && variable->count > 0 &&
                        variable->values[0][strspn(variable->values[0], marks)] == '\0';
        if (is_known && !(is_empty && has_colon)) {
            return put_variable(builder, variable, is_quoted, false);
        }
        return expand_default(builder, start, sign + 1, end, is_quoted);
    }
    return put_unknown(builder, start, (size_t)(end + 1 - start));
}

static enum gradcmp_status scan_dollar(struct builder *builder, bool is_quoted);

/* The word behind ":-", up to the closing brace; it may hold expansions again. */
static enum gradcmp_status scan_default(struct builder *builder, const char *end) {
    struct gcmp_shell_text *text = builder->text;
    while (text->at < end) {
        if (*text->at == '$') {
            GCMP_TRY(scan_dollar(builder, true));
        } else if (*text->at == '"' || *text->at == '\'') {
            text->at++;
        } else {
            GCMP_TRY(put(builder, text->at, 1));
            advance(builder, text->at + 1);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status expand_default(struct builder *builder, const char *start,
                                          const char *word, const char *end, bool is_quoted) {
    struct gcmp_shell *shell = builder->shell;
    if (shell->depth >= GCMP_SHELL_MAX_DEPTH) {
        return put_unknown(builder, start, (size_t)(end + 1 - start));
    }
    /* The default is put together by a builder of its own, so that marks do not nest. */
    struct gcmp_shell_text inner_text = {word, end, builder->text->line};
    struct builder inner = {.shell = shell, .text = &inner_text, .line = builder->line};
    shell->depth++;
    enum gradcmp_status status = scan_default(&inner, end);
    shell->depth--;
    const char *value = "";
    if (status == GRADCMP_OK && inner.current.bytes != NULL) {
        value = gcmp_shell_text_of(shell, inner.current.bytes);
    }
    bool is_unknown =
        inner.current.bytes != NULL && strchr(inner.current.bytes, GCMP_SHELL_UNKNOWN) != NULL;
    gcmp_text_free(&inner.current);
    GCMP_TRY(status);
    if (is_unknown) {
        return put_unknown(builder, start, (size_t)(end + 1 - start));
    }
    (void)is_quoted;
    GCMP_TRY(put_mark(builder, GCMP_SHELL_DEFAULT));
    GCMP_TRY(put(builder, start, (size_t)(end + 1 - start)));
    GCMP_TRY(put_mark(builder, GCMP_SHELL_DEFAULT_TEXT));
    GCMP_TRY(put(builder, value, strlen(value)));
    return put_mark(builder, GCMP_SHELL_DEFAULT_END);
}

/* $name, $1, $@ ... */
static enum gradcmp_status expand_plain(struct builder *builder, bool is_quoted) {
    struct gcmp_shell_text *text = builder->text;
    const char *start = text->at, *name = start + 1;
    size_t name_bytes = gcmp_shell_name_bytes(name, text->end);
    if (name_bytes > 0) {
        const struct gcmp_shell_variable *variable =
            gcmp_shell_find(builder->shell, name, name_bytes);
        text->at = name + name_bytes;
        if (variable != NULL && variable->is_set) {
            return put_variable(builder, variable, is_quoted, false);
        }
        return put_unknown(builder, start, 1 + name_bytes);
    }
    bool is_special =
        name < text->end && *name != '\0' && strchr("0123456789@*#?$!-", *name) != NULL;
    text->at = name + is_special;
    return is_special ? put_unknown(builder, start, 2) : put(builder, "$", 1);
}

/* $'...': as it stands but for the quotes; escapes other than \n, \t, \' and \\ stay. */
static enum gradcmp_status scan_ansi(struct builder *builder) {
    struct gcmp_shell_text *text = builder->text;
    text->at += 2;
    builder->has_current = true;
    while (text->at < text->end && *text->at != '\'') {
        if (*text->at == '\\' && text->at + 1 < text->end) {
            char next = text->at[1];
            GCMP_TRY(put(builder, next == 'n' ? "\n" : next == 't' ? "\t" : &text->at[1], 1));
            text->at++;
        } else {
            GCMP_TRY(put(builder, text->at, 1));
        }
        advance(builder, text->at + 1);
    }
    if (text->at >= text->end) {
        REFUSE(builder, "line %llu: a quote is opened and not closed",
               (unsigned long long)builder->line);
    }
    text->at++;
    return GRADCMP_OK;
}

static enum gradcmp_status scan_dollar(struct builder *builder, bool is_quoted) {
    struct gcmp_shell_text *text = builder->text;
    const char *start = text->at;
    char next = start + 1 < text->end ? start[1] : '\0';
    if (next == '\'' && !is_quoted) {
        return scan_ansi(builder);
    }
    if (next != '(' && next != '{') {
        return expand_plain(builder, is_quoted);
    }
    const char *closing = find_closing(start + 2, text->end, next, next == '(' ? ')' : '}');
    if (closing == NULL) {
        REFUSE(builder, "line %llu: \"$%c\" is opened and not closed",
               (unsigned long long)text->line, next);
    }
    enum gradcmp_status status = next == '('
                                     ? put_unknown(builder, start, (size_t)(closing + 1 - start))
                                     : expand_braces(builder, start, start + 2, closing, is_quoted);
    advance(builder, closing + 1);
    return status;
}

static enum gradcmp_status scan_backticks(struct builder *builder) {
    struct gcmp_shell_text *text = builder->text;
    const char *closing = memchr(text->at + 1, '`', (size_t)(text->end - text->at - 1));
    if (closing == NULL) {
        REFUSE(builder, "line %llu: a backtick is opened and not closed",
               (unsigned long long)text->line);
    }
    GCMP_TRY(put_unknown(builder, text->at, (size_t)(closing + 1 - text->at)));
    advance(builder, closing + 1);
    return GRADCMP_OK;
}

static enum gradcmp_status scan_single(struct builder *builder) {
    struct gcmp_shell_text *text = builder->text;
    const char *closing = memchr(text->at + 1, '\'', (size_t)(text->end - text->at - 1));
    if (closing == NULL) {
        REFUSE(builder, "line %llu: a quote is opened and not closed",
               (unsigned long long)text->line);
    }
    GCMP_TRY(put(builder, text->at + 1, (size_t)(closing - text->at - 1)));
    advance(builder, closing + 1);
    return GRADCMP_OK;
}

/* A backslash: a line that goes on, or the next byte as it is. */
static enum gradcmp_status scan_backslash(struct builder *builder, bool is_quoted) {
    struct gcmp_shell_text *text = builder->text;
    const char *next = text->at + 1;
    if (next < text->end && *next == '\r' && next + 1 < text->end && next[1] == '\n') {
        next++;
    }
    if (next < text->end && *next == '\n') {
        advance(builder, next + 1);
        return GRADCMP_OK;
    }
    if (next >= text->end || (is_quoted && strchr("$`\"\\", *next) == NULL)) {
        text->at++;
        return put(builder, "\\", 1);
    }
    GCMP_TRY(put(builder, next, 1));
    advance(builder, next + 1);
    return GRADCMP_OK;
}

static enum gradcmp_status scan_double(struct builder *builder) {
    struct gcmp_shell_text *text = builder->text;
    uint64_t line = text->line;
    text->at++;
    builder->has_current = true;
    while (text->at < text->end && *text->at != '"') {
        switch (*text->at) {
        case '\\':
            GCMP_TRY(scan_backslash(builder, true));
            break;
        case '$':
            GCMP_TRY(scan_dollar(builder, true));
            break;
        case '`':
            GCMP_TRY(scan_backticks(builder));
            break;
        default:
            GCMP_TRY(put(builder, text->at, 1));
            advance(builder, text->at + 1);
        }
    }
    if (text->at >= text->end) {
        REFUSE(builder, "line %llu: a quote is opened and not closed", (unsigned long long)line);
    }
    text->at++;
    return GRADCMP_OK;
}

static enum gradcmp_status scan(struct builder *builder) {
    struct gcmp_shell_text *text = builder->text;
    while (text->at < text->end && strchr(" \t\r\n;&|<>()", *text->at) == NULL) {
        switch (*text->at) {
        case '\\':
            GCMP_TRY(scan_backslash(builder, false));
            break;
        case '\'':
            GCMP_TRY(scan_single(builder));
            break;
        case '"':
            GCMP_TRY(scan_double(builder));
            break;
        case '$':
            GCMP_TRY(scan_dollar(builder, false));
            break;
        case '`':
            GCMP_TRY(scan_backticks(builder));
            break;
        default:
            GCMP_TRY(put(builder, text->at++, 1));
        }
    }
    builder->has_current = builder->has_current || !builder->splits;
    return end_field(builder);
}

enum gradcmp_status gcmp_shell_word(struct gcmp_shell *shell, struct gcmp_shell_text *text,
                                    bool splits, struct gcmp_shell_words *words) {
    struct builder builder = {
        .shell = shell, .text = text, .words = words, .splits = splits, .line = text->line};
    enum gradcmp_status status = scan(&builder);
    gcmp_text_free(&builder.current);
    return status;
}
