/* A launch script: commands in order, up to the one that starts the training. What comes after it
 * does not count. */
#include "lint/script.h"

#include <stdlib.h>
#include <string.h>

#include "lint/text.h"

/* --- reading --- */

/* Whether NAME= at this place is an assignment. */
static bool may_assign(const struct gcmp_script *script) {
    size_t head = gcmp_script_head(&script->words);
    if (head == script->words.count) {
        return true;
    }
    const char *name = script->words.items[head].value;
    if (strcmp(name, "env") == 0) {
        for (size_t i = head + 1; i < script->words.count; i++) {
            bool is_option = script->words.items[i].name != NULL ||
                             script->words.items[i].value[0] == '-' ||
                             strcmp(script->words.items[i - 1].value, "-u") == 0;
            if (!is_option) {
                return false;
            }
        }
    }
    return gcmp_script_is_assigning(name);
}

static void skip_blanks(struct gcmp_shell_text *text) {
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\r')) {
        text->at++;
    }
}

static void skip_comment(struct gcmp_shell_text *text) {
    while (text->at < text->end && *text->at != '\n') {
        text->at++;
    }
}

/* Drop the quotes of an option's value, and what stands behind it. */
static void cut_value(char *value) {
    char quote = '\0', *out = value;
    for (const char *at = value; *at != '\0' && (quote != '\0' || strchr(" \t\r", *at) == NULL);
         at++) {
        bool opens = quote == '\0' && (*at == '"' || *at == '\'');
        if (opens || *at == quote) {
            quote = opens ? *at : '\0';
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
}

/* A comment, which may be an option for the batch system: #SBATCH --export=ALL,A=b. Behind the
 * first command there is none. */
static enum gradcmp_status read_comment(struct gcmp_script *script, struct gcmp_shell_text *text) {
    static const char *const starts[] = {"#SBATCH --export=", "#SBATCH --export ", "#PBS -v "};
    const char *from = text->at, *list = NULL;
    skip_comment(text);
    for (size_t i = 0; i < sizeof starts / sizeof *starts && list == NULL; i++) {
        size_t count = strlen(starts[i]);
        bool begins = (size_t)(text->at - from) > count && memcmp(from, starts[i], count) == 0;
        list = begins ? from + count : NULL;
    }
    if (list == NULL || script->is_skipping || script->has_begun || script->words.count > 0) {
        return GRADCMP_OK;
    }
    char *own = gcmp_arena_text(script->shell.arena, list, (size_t)(text->at - list));
    if (own == NULL) {
        GCMP_FAIL_MEMORY(script->shell.error);
    }
    cut_value(own);
    return gcmp_script_export_list(script, own, text->line);
}

/* NAME=( words ), over several lines and with comments. */
static enum gradcmp_status read_array(struct gcmp_script *script, struct gcmp_shell_text *text,
                                      const struct gcmp_shell_word *how) {
    struct gcmp_shell_words items = {0};
    enum gradcmp_status status = GRADCMP_OK;
    text->at++;
    while (status == GRADCMP_OK && text->at < text->end && *text->at != ')') {
        if (*text->at == '\n' || *text->at == ' ' || *text->at == '\t' || *text->at == '\r') {
            text->line += *text->at++ == '\n';
        } else if (*text->at == '#') {
            skip_comment(text);
        } else if (strchr(";&|<>(", *text->at) != NULL) {
            text->at++;
        } else {
            status = gcmp_shell_word(&script->shell, text, true, &items);
        }
    }
    if (status == GRADCMP_OK && text->at >= text->end) {
        status =
            gcmp_error_set(script->shell.error, GRADCMP_ERROR_CORRUPT, script->shell.source->path,
                           GRADCMP_NO_OFFSET, "line %llu: \"%.100s=(\" is opened and not closed",
                           (unsigned long long)how->line, how->name);
    }
    if (status == GRADCMP_OK) {
        text->at++;
        status = gcmp_script_assign(script, how->name, items.items, items.count, how);
    }
    free(items.items);
    return status;
}

/* Read an assignment at this place; *was_one is false where none stands here. */
static enum gradcmp_status read_assignment(struct gcmp_script *script, struct gcmp_shell_text *text,
                                           bool *was_one) {
    size_t name_bytes = gcmp_shell_name_bytes(text->at, text->end);
    const char *equals = text->at + name_bytes;
    bool is_append = equals + 1 < text->end && equals[0] == '+' && equals[1] == '=';
    equals += is_append;
    *was_one = name_bytes > 0 && equals < text->end && *equals == '=' && may_assign(script);
    if (!*was_one) {
        return GRADCMP_OK;
    }
    struct gcmp_shell_word word = {.is_append = is_append, .line = text->line};
    word.name = gcmp_arena_text(script->shell.arena, text->at, name_bytes);
    if (word.name == NULL) {
        GCMP_FAIL_MEMORY(script->shell.error);
    }
    text->at = equals + 1;
    if (text->at < text->end && *text->at == '(') {
        return read_array(script, text, &word);
    }
    struct gcmp_shell_words value = {0};
    enum gradcmp_status status = gcmp_shell_word(&script->shell, text, false, &value);
    if (status == GRADCMP_OK) {
        word.value = value.count > 0 ? value.items[0].value : "";
        status = gcmp_shell_add_word(&script->shell, &script->words, word);
    }
    free(value.items);
    return status;
}

/* Bodies of here-documents are text for another program. */
static enum gradcmp_status skip_heredocs(struct gcmp_script *script, struct gcmp_shell_text *text) {
    for (size_t i = 0; i < script->heredoc_count; i++) {
        const struct gcmp_script_heredoc *heredoc = &script->heredocs[i];
        size_t word_bytes = strlen(heredoc->word);
        bool is_closed = false;
        while (!is_closed && text->at < text->end) {
            const char *line = text->at;
            skip_comment(text);
            const char *end = text->at;
            while (heredoc->strips_tabs && line < end && *line == '\t') {
                line++;
            }
            end -= end > line && end[-1] == '\r';
            is_closed =
                (size_t)(end - line) == word_bytes && memcmp(line, heredoc->word, word_bytes) == 0;
            text->line += text->at < text->end;
            text->at += text->at < text->end;
        }
    }
    script->heredoc_count = 0;
    return GRADCMP_OK;
}

/* A redirection: its target is no word of the command. */
static enum gradcmp_status read_redirection(struct gcmp_script *script,
                                            struct gcmp_shell_text *text) {
    struct gcmp_shell_words target = {0};
    bool is_heredoc =
        text->end - text->at > 2 && strncmp(text->at, "<<", 2) == 0 && text->at[2] != '<';
    const char *start = text->at;
    while (text->at < text->end && strchr("<>&|", *text->at) != NULL) {
        text->at++;
    }
    bool strips_tabs = is_heredoc && text->at < text->end && *text->at == '-';
    text->at += strips_tabs;
    skip_blanks(text);
    if (text->at < text->end && *text->at == '(') {
        return GRADCMP_OK; /* <(command) */
    }
    if (text->at == start) {
        text->at++;
    }
    enum gradcmp_status status = gcmp_shell_word(&script->shell, text, false, &target);
    if (status == GRADCMP_OK && is_heredoc && target.count > 0 &&
        script->heredoc_count < GCMP_SCRIPT_MAX_HEREDOCS) {
        const char *word = gcmp_shell_raw_of(&script->shell, target.items[0].value);
        char *own = gcmp_arena_dup(script->shell.arena, word);
        if (own != NULL) {
            script->heredocs[script->heredoc_count++] =
                (struct gcmp_script_heredoc){own, strips_tabs};
        }
    }
    free(target.items);
    return status;
}

/* "2" of "2>&1" is no word. */
static void drop_descriptor(struct gcmp_script *script, const struct gcmp_shell_text *text,
                            const char *start) {
    size_t digits = strspn(start, "0123456789");
    if (digits > 0 && start + digits == text->at && text->at < text->end &&
        (*text->at == '<' || *text->at == '>') && script->words.count > 0) {
        script->words.count--;
    }
}

/* Whether a command as good as never fails, so that what stands behind && is sure to run. */
static bool is_sure(const struct gcmp_script *script) {
    static const char *const words[] = {
        "cd",    "mkdir",  "source", ".",    "echo",  "printf", "set", "unset", "true", ":",
        "sleep", "ulimit", "shopt",  "date", "conda", "module", "pip", "pip3",  NULL};
    size_t head = gcmp_script_head(&script->words);
    if (head == script->words.count) {
        return head > 0 && script->words.items[head - 1].name != NULL;
    }
    const char *name = script->words.items[head].value;
    return (head == 0 || script->words.items[head - 1].name != NULL) &&
           (gcmp_script_is_assigning(name) || gcmp_script_is_one_of(name, words));
}

/* a && b, a || b: b may not run. */
static enum gradcmp_status read_list_operator(struct gcmp_script *script,
                                              struct gcmp_shell_text *text) {
    bool may_skip = *text->at == '|' || !is_sure(script);
    text->at += 2;
    GCMP_TRY(gcmp_script_run_command(script));
    if (gcmp_flow_top(&script->shell) == GCMP_FLOW_LIST) {
        return gcmp_flow_next(&script->shell, GCMP_FLOW_LIST);
    }
    return may_skip ? gcmp_flow_open(&script->shell, GCMP_FLOW_LIST) : GRADCMP_OK;
}

/* A newline, ; or &. */
static enum gradcmp_status end_list(struct gcmp_script *script) {
    bool is_open_list = script->words.count == 0; /* "a &&" at the end of a line */
    GCMP_TRY(gcmp_script_run_command(script));
    return gcmp_flow_top(&script->shell) == GCMP_FLOW_LIST && !is_open_list
               ? gcmp_flow_close(&script->shell, GCMP_FLOW_LIST)
               : GRADCMP_OK;
}

static enum gradcmp_status read_piece(struct gcmp_script *script, struct gcmp_shell_text *text);

static enum gradcmp_status keep_function(struct gcmp_script *script, const char *name,
                                         const struct gcmp_shell_text *from, const char *to) {
    struct gcmp_shell *shell = &script->shell;
    struct gcmp_shell_variable *variable;
    const char *key = gcmp_arena_format(shell->arena, "%s()", name);
    const char *body = gcmp_arena_text(shell->arena, from->at, (size_t)(to - from->at));
    const char **values = gcmp_arena_alloc(shell->arena, 1, sizeof *values);
    uint64_t *lines = gcmp_arena_alloc(shell->arena, 1, sizeof *lines);
    if (key == NULL || body == NULL || values == NULL || lines == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    GCMP_TRY(gcmp_shell_make(shell, key, &variable));
    values[0] = body;
    lines[0] = from->line;
    variable->values = values;
    variable->lines = lines;
    variable->count = 1;
    variable->room = NULL;
    variable->is_set = true;
    return GRADCMP_OK;
}

/* NAME() { ... }: kept for its calls. The reading stands behind the name. */
static enum gradcmp_status read_function(struct gcmp_script *script, struct gcmp_shell_text *text,
                                         const char *name) {
    struct gcmp_shell *shell = &script->shell;
    while (text->at < text->end && strchr("() \t\r\n", *text->at) != NULL &&
           !(*text->at == '(' && text->at[1] != ')')) {
        text->line += *text->at++ == '\n';
    }
    script->words.count = 0;
    if (text->at >= text->end || (*text->at != '{' && *text->at != '(')) {
        return GRADCMP_OK;
    }
    struct gcmp_shell_text from = {text->at + 1, text->end, text->line};
    size_t outer_base = shell->frame_base, frames = shell->frame_count;
    const char *to = text->at;
    bool is_open = false;
    enum gradcmp_status status = GRADCMP_OK;
    script->is_skipping = true;
    shell->frame_base = frames;
    while (status == GRADCMP_OK && text->at < text->end &&
           !(is_open && shell->frame_count == frames)) {
        skip_blanks(text);
        to = script->words.count == 0 || *text->at == ')' ? text->at : to;
        status = text->at < text->end ? read_piece(script, text) : gcmp_script_run_command(script);
        is_open = is_open || shell->frame_count > frames;
    }
    bool is_closed = is_open && shell->frame_count == frames;
    shell->frame_base = outer_base;
    shell->frame_count = frames;
    script->is_skipping = false;
    script->words.count = 0;
    GCMP_TRY(status);
    return keep_function(script, name, &from, is_closed && to > from.at ? to : text->at);
}

/* The name of the function that begins here, or NULL. */
static const char *function_name(const struct gcmp_script *script,
                                 const struct gcmp_shell_text *text) {
    const struct gcmp_shell_words *words = &script->words;
    size_t head = gcmp_script_head(words);
    if (script->is_skipping || head >= words->count || words->items[head].value == NULL) {
        return NULL;
    }
    bool has_word = strcmp(words->items[head].value, "function") == 0;
    if (has_word) {
        return words->count == head + 2 ? words->items[head + 1].value : NULL;
    }
    const char *at = text->at;
    if (words->count != head + 1 || at >= text->end || *at++ != '(') {
        return NULL;
    }
    at += strspn(at, " \t");
    return *at == ')' ? words->items[head].value : NULL;
}

static enum gradcmp_status read_parenthesis(struct gcmp_script *script,
                                            struct gcmp_shell_text *text) {
    const char *name = function_name(script, text);
    if (name != NULL) {
        return read_function(script, text, name);
    }
    bool opens = *text->at++ == '(';
    GCMP_TRY(gcmp_script_run_command(script));
    if (opens) {
        return gcmp_flow_open(&script->shell, GCMP_FLOW_SUBSHELL);
    }
    while (gcmp_flow_top(&script->shell) == GCMP_FLOW_LIST) {
        GCMP_TRY(gcmp_flow_close(&script->shell, GCMP_FLOW_LIST));
    }
    return gcmp_flow_top(&script->shell) == GCMP_FLOW_SUBSHELL
               ? gcmp_flow_close(&script->shell, GCMP_FLOW_SUBSHELL)
               : GRADCMP_OK;
}

/* Fields of a command; what is empty because a branch may have emptied it is no field. */
static enum gradcmp_status read_fields(struct gcmp_script *script, struct gcmp_shell_text *text) {
    size_t kept = script->words.count;
    GCMP_TRY(gcmp_shell_word(&script->shell, text, true, &script->words));
    for (size_t i = kept; i < script->words.count; i++) {
        struct gcmp_shell_word *word = &script->words.items[i];
        bool was_empty = word->value[0] == '\0';
        GCMP_TRY(gcmp_flow_flag_word(&script->shell, word));
        if (was_empty || word->value[0] != '\0' || word->is_replaced) {
            script->words.items[kept++] = *word;
        }
    }
    script->words.count = kept;
    return GRADCMP_OK;
}

static enum gradcmp_status read_piece(struct gcmp_script *script, struct gcmp_shell_text *text) {
    bool was_assignment;
    const char *start = text->at;
    switch (*text->at) {
    case '\n':
        text->line++;
        text->at++;
        GCMP_TRY(end_list(script));
        return skip_heredocs(script, text);
    case '#':
        return read_comment(script, text);
    case '&':
        if (text->at + 1 < text->end && text->at[1] == '>') {
            return read_redirection(script, text);
        }
        if (text->at + 1 < text->end && text->at[1] == '&') {
            return read_list_operator(script, text);
        }
        text->at++;
        return end_list(script);
    case ';':
        text->at++;
        GCMP_TRY(end_list(script));
        if (text->at < text->end && (*text->at == ';' || *text->at == '&')) {
            text->at++;
            return gcmp_flow_next(&script->shell, GCMP_FLOW_CASE);
        }
        return GRADCMP_OK;
    case '|':
        if (text->at + 1 < text->end && text->at[1] == '|') {
            return read_list_operator(script, text);
        }
        text->at++;
        return gcmp_script_run_command(script);
    case '(':
    case ')':
        return read_parenthesis(script, text);
    case '<':
    case '>':
        return read_redirection(script, text);
    default:
        GCMP_TRY(read_assignment(script, text, &was_assignment));
        if (was_assignment) {
            return GRADCMP_OK;
        }
        GCMP_TRY(read_fields(script, text));
        drop_descriptor(script, text, start);
        const char *name = function_name(script, text);
        return name == NULL || *text->at == '(' ? GRADCMP_OK : read_function(script, text, name);
    }
}

enum gradcmp_status gcmp_script_run_text(struct gcmp_script *script, struct gcmp_shell_text *text) {
    for (;;) {
        skip_blanks(text);
        if (text->at >= text->end) {
            return gcmp_script_run_command(script);
        }
        GCMP_TRY(read_piece(script, text));
    }
}

/* --- what comes of it --- */

/* Functions that nothing here calls are called by name from elsewhere, or by what is not known. */
static enum gradcmp_status run_uncalled(struct gcmp_script *script) {
    struct gcmp_shell *shell = &script->shell;
    GCMP_TRY(gcmp_flow_close_to(shell, 0));
    for (size_t i = 0; i < shell->variable_count && !script->launch.is_there; i++) {
        const char *name = shell->variables[i].name;
        if (gcmp_script_ends_in(name, "()") && shell->variables[i].is_set &&
            shell->variables[i].times == 0) {
            GCMP_TRY(gcmp_flow_open(shell, GCMP_FLOW_SUBSHELL));
            GCMP_TRY(gcmp_script_run_function(script, i));
            GCMP_TRY(gcmp_flow_close_to(shell, 0));
            if (script->launch.is_there) {
                gcmp_lint_note(shell->source,
                               "%s:%llu: %.100s is not called here; it was taken "
                               "as called at the end",
                               shell->source->path,
                               (unsigned long long)shell->variables[i].lines[0], name);
            }
        }
    }
    return GRADCMP_OK;
}

/* A script without a launch sets an environment for another: all that it exports counts. */
static enum gradcmp_status conclude(struct gcmp_script *script) {
    struct gcmp_lint_source *source = script->shell.source;
    struct gcmp_script_launch *launch = &script->launch;
    if (!launch->is_there) {
        GCMP_TRY(run_uncalled(script));
    }
    if (!launch->is_there) {
        GCMP_TRY(gcmp_script_keep_env(script, launch));
        gcmp_lint_note(source, "%s: starts no training; what it exports is looked at",
                       source->path);
    }
    source->has_env = true;
    source->has_args = launch->is_there;
    for (size_t i = 0; i < launch->env_count; i++) {
        GCMP_TRY(gcmp_lint_set(source, &launch->env[i], script->shell.error));
    }
    return launch->is_there ? gcmp_script_set_arguments(script) : GRADCMP_OK;
}

static enum gradcmp_status check_bytes(const char *bytes, size_t length_bytes,
                                       const struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < length_bytes; i++) {
        if (bytes[i] >= 0 && bytes[i] <= GCMP_SHELL_REPLACED) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, source->path, i,
                         "a control byte in a shell script");
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_lint_read_script(const char *bytes, size_t length_bytes,
                                          struct gcmp_lint_source *source,
                                          struct gradcmp_error *error) {
    struct gcmp_script script = {
        .shell = {.source = source, .error = error, .arena = source->arena}};
    struct gcmp_shell_text text = {bytes, bytes + length_bytes, 1};
    source->form = GCMP_LINT_SCRIPT;
    GCMP_TRY(check_bytes(bytes, length_bytes, source, error));
    enum gradcmp_status status = gcmp_script_run_text(&script, &text);
    if (status == GRADCMP_OK) {
        status = conclude(&script);
    }
    free(script.words.items);
    free(script.prefix.items);
    free(script.shell.variables);
    free(script.shell.touches.items);
    free(script.shell.locals.items);
    gcmp_map_free(&script.shell.names);
    gcmp_error_add_path(error, source->path);
    return status;
}
