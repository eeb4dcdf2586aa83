/* Commands of a launch script: what they assign and export, and the one that starts the training.
 */
#include "lint/script.h"

#include <stdlib.h>
#include <string.h>

/* A call counts as so many bytes of what may be expanded: some thousand calls are allowed. */
enum { MAX_NESTED = 3, CALL_BYTES = 4096 };

/* A value that only the running shell knows. */
static const char unknown[] = {GCMP_SHELL_UNKNOWN, '$', '.', '.', '.', GCMP_SHELL_UNKNOWN_END, 0};

bool gcmp_script_is_one_of(const char *word, const char *const words[]) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Words that stand before a command and change nothing of what is looked at here. */
static bool is_keyword(const char *word) {
    static const char *const words[] = {
        "if",   "then", "elif", "else",    "while",   "until", "do",   "!",    "{",    "}", "time",
        "exec", "eval", "fi",   "command", "builtin", "nohup", "done", "sudo", "esac", NULL};
    return gcmp_script_is_one_of(word, words);
}

bool gcmp_script_is_assigning(const char *word) {
    static const char *const words[] = {"export", "declare", "typeset", "readonly",
                                        "local",  "env",     NULL};
    return gcmp_script_is_one_of(word, words);
}

/* --- variables --- */

/* Make room behind the first `kept` values for `count` more: where it is, or, so that an array that
 * grows is copied seldom, in one that is larger by half. */
static enum gradcmp_status make_room(struct gcmp_shell *shell, struct gcmp_shell_variable *variable,
                                     size_t kept, size_t count, uint64_t line) {
    struct gcmp_shell_room *room = variable->room;
    if (kept > 0 && room != NULL && room->used == kept && count <= room->capacity - kept) {
        room->used += count;
        return GRADCMP_OK;
    }
    const char **values;
    uint64_t *lines;
    size_t capacity = kept + count + kept / 2;
    GCMP_TRY(gcmp_shell_make_values(shell, capacity, &values, &lines, line));
    room = gcmp_arena_alloc(shell->arena, 1, sizeof *room);
    if (room == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    for (size_t i = 0; i < kept; i++) {
        values[i] = variable->values[i];
        lines[i] = variable->lines[i];
    }
    *room = (struct gcmp_shell_room){kept + count, capacity};
    variable->values = values;
    variable->lines = lines;
    variable->room = room;
    return GRADCMP_OK;
}

void gcmp_script_doubt(struct gcmp_script *script, const char *subject,
                       const struct gcmp_shell_word *word, const char *text) {
    struct gcmp_lint_doubt doubt = {.subject = subject, .text = text, .line = word->line};
    doubt.value = gcmp_shell_raw_of(&script->shell, word->value);
    gcmp_lint_doubt(script->shell.source, &doubt);
}

enum gradcmp_status gcmp_script_assign(struct gcmp_script *script, const char *name,
                                       const struct gcmp_shell_word *values, size_t count,
                                       const struct gcmp_shell_word *how) {
    struct gcmp_shell *shell = &script->shell;
    struct gcmp_shell_variable *variable;
    if (script->is_skipping) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_shell_make(shell, name, &variable));
    GCMP_TRY(gcmp_flow_touch(shell, variable));
    size_t kept = how->is_append && variable->is_set ? variable->count : 0;
    GCMP_TRY(make_room(shell, variable, kept, count, how->line));
    for (size_t i = 0; i < count; i++) {
        variable->values[kept + i] = values[i].value;
        variable->lines[kept + i] = values[i].line;
    }
    variable->count = kept + count;
    variable->is_set = true;
    variable->times += !how->is_append;
    variable->line = how->line;
    variable->is_exported = variable->is_exported || shell->exports_all;
    return GRADCMP_OK;
}

/* NAME=value, NAME+=value */
static enum gradcmp_status assign_word(struct gcmp_script *script,
                                       const struct gcmp_shell_word *word) {
    struct gcmp_shell *shell = &script->shell;
    const struct gcmp_shell_variable *old = gcmp_shell_find(shell, word->name, strlen(word->name));
    struct gcmp_shell_word how = *word;
    if (word->is_append && old != NULL && old->is_set && old->count > 0) {
        GCMP_TRY(gcmp_shell_charge(shell, strlen(old->values[0]), word->line));
        how.value = gcmp_arena_format(shell->arena, "%s%s", old->values[0], word->value);
        if (how.value == NULL) {
            GCMP_FAIL_MEMORY(shell->error);
        }
    }
    if (word->is_conditional) {
        GCMP_TRY(gcmp_flow_mark(shell, &how.value));
    }
    how.is_append = false;
    return gcmp_script_assign(script, word->name, &how, 1, &how);
}

static enum gradcmp_status export_name(struct gcmp_script *script, const char *name,
                                       bool is_exported) {
    struct gcmp_shell_variable *variable;
    GCMP_TRY(gcmp_shell_make(&script->shell, name, &variable));
    GCMP_TRY(gcmp_flow_touch(&script->shell, variable));
    variable->is_exported = is_exported;
    variable->is_export_conditional = false;
    return GRADCMP_OK;
}

bool gcmp_script_split_field(struct gcmp_shell *shell, const struct gcmp_shell_word *field,
                             struct gcmp_shell_word *out) {
    const char *text = field->value; /* *out may be *field */
    size_t name_bytes = gcmp_shell_name_bytes(text, text + strlen(text));
    if (name_bytes == 0 || text[name_bytes] != '=') {
        return false;
    }
    *out = (struct gcmp_shell_word){.value = text + name_bytes + 1,
                                    .line = field->line,
                                    .is_conditional = field->is_conditional};
    out->name = gcmp_arena_text(shell->arena, text, name_bytes);
    return out->name != NULL;
}

/* --- builtins --- */

static enum gradcmp_status run_export(struct gcmp_script *script, size_t head) {
    const char *builtin = script->words.items[head].value;
    bool exports = strcmp(builtin, "export") == 0, is_exported = true;
    bool is_local = script->calls > 0 && !exports && strcmp(builtin, "readonly") != 0;
    for (size_t i = head + 1; i < script->words.count; i++) {
        struct gcmp_shell_word word = script->words.items[i];
        if (word.name == NULL && word.value[0] == '-') {
            exports = exports || strchr(word.value, 'x') != NULL;
            is_exported = is_exported && strchr(word.value, 'n') == NULL;
            is_local = is_local && strchr(word.value, 'g') == NULL;
            continue;
        }
        bool assigns = word.name != NULL || gcmp_script_split_field(&script->shell, &word, &word);
        if (!assigns && exports && word.value[0] == GCMP_SHELL_UNKNOWN) {
            gcmp_script_doubt(script, builtin, &word,
                              "what it exports is known only when the script runs");
            continue;
        }
        if (!assigns) {
            word.name = gcmp_shell_text_of(&script->shell, word.value);
        }
        if (is_local) {
            GCMP_TRY(gcmp_flow_local(&script->shell, word.name));
        }
        if (assigns) {
            GCMP_TRY(assign_word(script, &word));
        }
        if (exports) {
            GCMP_TRY(export_name(script, word.name, is_exported));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_script_export_list(struct gcmp_script *script, char *list, uint64_t line) {
    for (char *at = list; at != NULL;) {
        struct gcmp_shell_word word, field = {.value = at, .line = line};
        char *comma = strchr(at, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        if (gcmp_script_split_field(&script->shell, &field, &word)) {
            GCMP_TRY(assign_word(script, &word));
            GCMP_TRY(export_name(script, word.name, true));
        }
        at = comma == NULL ? NULL : comma + 1;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status run_unset(struct gcmp_script *script, size_t head) {
    for (size_t i = head + 1; i < script->words.count; i++) {
        const char *name = script->words.items[i].value;
        struct gcmp_shell_variable *variable = gcmp_shell_find(&script->shell, name, strlen(name));
        if (variable != NULL) {
            GCMP_TRY(gcmp_flow_touch(&script->shell, variable));
            variable->is_set = variable->is_exported = false;
        }
    }
    return GRADCMP_OK;
}

static void run_set(struct gcmp_script *script, size_t head) {
    for (size_t i = head + 1; i < script->words.count; i++) {
        const char *word = script->words.items[i].value;
        bool is_name = strcmp(word, "allexport") == 0 && i > head + 1;
        const char *sign = is_name ? script->words.items[i - 1].value : word;
        if (is_name || ((word[0] == '-' || word[0] == '+') && strchr(word, 'a') != NULL)) {
            script->shell.exports_all = sign[0] == '-';
        }
    }
}

/* --- texts that are scripts --- */

/* A text that is no script after all: close what it opened, and tell. */
static enum gradcmp_status drop_text(struct gcmp_script *script, const struct gcmp_shell_word *word,
                                     size_t frames) {
    gcmp_script_doubt(script, "commands", word, "this text could not be read as commands");
    if (script->shell.error != NULL) {
        *script->shell.error = (struct gradcmp_error){0};
    }
    script->heredoc_count = 0;
    return gcmp_flow_close_to(&script->shell, frames);
}

enum gradcmp_status gcmp_script_run_nested(struct gcmp_script *script,
                                           const struct gcmp_shell_word *word) {
    const char *inner = gcmp_shell_text_of(&script->shell, word->value);
    struct gcmp_shell_text text = {inner, inner + strlen(inner), word->line};
    struct gcmp_shell_words outer_words = script->words, outer_prefix = script->prefix;
    if (script->nested >= MAX_NESTED) {
        gcmp_script_doubt(script, "commands", word,
                          "commands in texts of commands are followed three deep");
        return GRADCMP_OK;
    }
    size_t frames = script->shell.frame_count;
    unsigned depth = script->shell.depth;
    script->nested++;
    script->words = (struct gcmp_shell_words){0};
    enum gradcmp_status status = gcmp_script_run_text(script, &text);
    if (status == GRADCMP_ERROR_CORRUPT) {
        status = drop_text(script, word, frames);
        script->shell.depth = depth;
    }
    free(script->words.items);
    script->nested--;
    script->words = outer_words;
    outer_prefix.items = script->prefix.items; /* it may have moved; what was added is gone */
    outer_prefix.capacity = script->prefix.capacity;
    script->prefix = outer_prefix;
    return status;
}

/* The variable that holds a function's body, or NULL. */
static struct gcmp_shell_variable *find_function(struct gcmp_script *script, const char *name) {
    const char *key = gcmp_arena_format(script->shell.arena, "%s()", name);
    struct gcmp_shell_variable *found =
        key == NULL ? NULL : gcmp_shell_find(&script->shell, key, strlen(key));
    return found != NULL && found->is_set ? found : NULL;
}

/* Run a function's body as if it stood at the call. A function that calls itself is run once. */
enum gradcmp_status gcmp_script_run_function(struct gcmp_script *script, size_t index) {
    struct gcmp_shell *shell = &script->shell;
    const char *body = shell->variables[index].values[0];
    struct gcmp_shell_text text = {body, body + strlen(body), shell->variables[index].lines[0]};
    struct gcmp_shell_words outer_words = script->words, outer_prefix = script->prefix;
    if (shell->variables[index].is_active || script->calls >= GCMP_SHELL_MAX_CALLS) {
        gcmp_lint_note(shell->source,
                       "%s:%llu: calls of functions within each other are followed "
                       "%d deep, and never into themselves",
                       shell->source->path, (unsigned long long)text.line, GCMP_SHELL_MAX_CALLS);
        return GRADCMP_OK;
    }
    shell->expanded_bytes += strlen(body) + CALL_BYTES;
    if (shell->expanded_bytes > GCMP_SHELL_MAX_BYTES) {
        GCMP_FAIL_AT(shell->error, GRADCMP_ERROR_LIMIT, shell->source->path, GRADCMP_NO_OFFSET,
                     "line %llu: functions that are called come to more than %d MiB",
                     (unsigned long long)text.line, GCMP_SHELL_MAX_BYTES >> 20);
    }
    size_t locals = shell->locals.count, frames = shell->frame_count, base = shell->frame_base;
    shell->variables[index].is_active = true;
    shell->variables[index].times++;
    shell->frame_base = frames;
    script->calls++;
    script->words = (struct gcmp_shell_words){0};
    enum gradcmp_status status = gcmp_script_run_text(script, &text);
    if (status == GRADCMP_OK) {
        status = gcmp_flow_close_to(shell, frames);
    }
    free(script->words.items);
    gcmp_flow_restore_locals(shell, locals);
    script->calls--;
    shell->frame_base = base;
    shell->variables[index].is_active = false;
    script->words = outer_words;
    outer_prefix.items = script->prefix.items; /* it may have moved */
    outer_prefix.capacity = script->prefix.capacity;
    script->prefix = outer_prefix;
    return status;
}

/* --- commands --- */

/* The first word that is neither a keyword nor an assignment before the command. */
size_t gcmp_script_head(const struct gcmp_shell_words *words) {
    size_t i = 0;
    while (i < words->count &&
           (words->items[i].name != NULL || is_keyword(words->items[i].value))) {
        i++;
    }
    return i;
}

/* for NAME in WORD...: the value is known where there is one word. */
static enum gradcmp_status run_for(struct gcmp_script *script, size_t head) {
    const struct gcmp_shell_words *words = &script->words;
    if (head + 1 >= words->count) {
        return GRADCMP_OK;
    }
    bool is_one = words->count == head + 4 && strcmp(words->items[head + 2].value, "in") == 0;
    struct gcmp_shell_word how = words->items[head + 1];
    const char *name = how.value;
    how.value = is_one ? words->items[head + 3].value : unknown;
    return gcmp_script_assign(script, name, &how, 1, &how);
}

/* read [-r] [-p TEXT] NAME..., printf -v NAME, mapfile NAME: variables that get what is not known.
 */
static enum gradcmp_status run_reader(struct gcmp_script *script, size_t head) {
    const struct gcmp_shell_words *words = &script->words;
    bool is_printf = strcmp(words->items[head].value, "printf") == 0;
    for (size_t i = head + 1; i < words->count; i++) {
        struct gcmp_shell_word how = words->items[i];
        const char *name = how.value;
        size_t name_bytes = gcmp_shell_name_bytes(name, name + strlen(name));
        bool is_value = i > head + 1 && words->items[i - 1].value[0] == '-' &&
                        words->items[i - 1].value[1] != '\0' &&
                        strchr("dipC", words->items[i - 1].value[1]) != NULL &&
                        words->items[i - 1].value[2] == '\0';
        bool is_named = !is_printf || strcmp(words->items[i - 1].value, "-v") == 0;
        if (!is_value && is_named && name_bytes > 0 && name[name_bytes] == '\0') {
            how.value = unknown;
            GCMP_TRY(gcmp_script_assign(script, name, &how, 1, &how));
        }
    }
    return GRADCMP_OK;
}

/* eval "...": a script in words. Setting up conda or an agent sets nothing that is looked at. */
static enum gradcmp_status run_eval(struct gcmp_script *script, size_t head) {
    static const char *const harmless[] = {
        "conda",  "mamba",     "ssh-agent", "direnv",  "starship", "pyenv",     "rbenv",
        "nodenv", "modulecmd", "lmod",      "thefuck", "zoxide",   "dircolors", "brew shellenv"};
    struct gcmp_shell_word word = script->words.items[head];
    const char *raw = gcmp_shell_raw_of(&script->shell, word.value);
    if (word.value[0] != GCMP_SHELL_UNKNOWN) {
        return gcmp_script_run_nested(script, &word);
    }
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        if (strstr(raw, harmless[i]) != NULL) {
            return GRADCMP_OK;
        }
    }
    gcmp_script_doubt(script, "eval", &word,
                      "what it runs is known only when the script runs: it may set variables");
    return GRADCMP_OK;
}

static enum gradcmp_status run_head(struct gcmp_script *script, size_t head) {
    static const char *const readers[] = {"read", "printf", "mapfile", "readarray", NULL};
    const char *name = script->words.items[head].value;
    bool is_text = name[0] == GCMP_SHELL_UNKNOWN || strpbrk(name, " \t\n;") != NULL;
    if (is_text && head > 0 && script->words.items[head - 1].name == NULL &&
        strcmp(script->words.items[head - 1].value, "eval") == 0) {
        return run_eval(script, head);
    }
    if (gcmp_script_is_one_of(name, readers)) {
        return run_reader(script, head);
    }
    if (strcmp(name, "env") == 0) {
        return gcmp_script_run_env(script, head);
    }
    if (gcmp_script_is_assigning(name)) {
        return run_export(script, head);
    }
    if (strcmp(name, "unset") == 0) {
        return run_unset(script, head);
    }
    if (strcmp(name, "set") == 0) {
        run_set(script, head);
        return GRADCMP_OK;
    }
    if (strcmp(name, "for") == 0) {
        return run_for(script, head);
    }
    if ((strcmp(name, "source") == 0 || strcmp(name, ".") == 0) && head + 1 < script->words.count) {
        gcmp_lint_note(script->shell.source, "%s:%llu: what \"%s %.100s\" sets is not known",
                       script->shell.source->path,
                       (unsigned long long)script->words.items[head].line, name,
                       gcmp_shell_raw_of(&script->shell, script->words.items[head + 1].value));
        return GRADCMP_OK;
    }
    const struct gcmp_shell_variable *function = find_function(script, name);
    if (function != NULL) {
        GCMP_TRY(gcmp_script_run_function(script, (size_t)(function - script->shell.variables)));
    }
    return gcmp_script_run_program(script, head);
}

/* A word that opens or closes something. */
static enum gradcmp_status run_keyword(struct gcmp_script *script, const char *word) {
    static const struct {
        const char *word;
        enum gcmp_flow_kind kind;
        enum gradcmp_status (*run)(struct gcmp_shell *shell, enum gcmp_flow_kind kind);
    } all[] = {
        {"if", GCMP_FLOW_IF, gcmp_flow_open},       {"elif", GCMP_FLOW_IF, gcmp_flow_next},
        {"else", GCMP_FLOW_IF, gcmp_flow_next},     {"fi", GCMP_FLOW_IF, gcmp_flow_close},
        {"case", GCMP_FLOW_CASE, gcmp_flow_open},   {"esac", GCMP_FLOW_CASE, gcmp_flow_close},
        {"while", GCMP_FLOW_WHILE, gcmp_flow_open}, {"until", GCMP_FLOW_WHILE, gcmp_flow_open},
        {"for", GCMP_FLOW_FOR, gcmp_flow_open},     {"select", GCMP_FLOW_FOR, gcmp_flow_open},
        {"{", GCMP_FLOW_BRACE, gcmp_flow_open},     {"}", GCMP_FLOW_BRACE, gcmp_flow_close}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(word, all[i].word) == 0) {
            return all[i].run(&script->shell, all[i].kind);
        }
    }
    if (strcmp(word, "done") == 0) {
        size_t at = script->shell.frame_count;
        while (at > script->shell.frame_base &&
               script->shell.frames[at - 1].kind != GCMP_FLOW_WHILE &&
               script->shell.frames[at - 1].kind != GCMP_FLOW_FOR) {
            at--;
        }
        return at > script->shell.frame_base ? gcmp_flow_close_to(&script->shell, at - 1)
                                             : GRADCMP_OK;
    }
    return GRADCMP_OK;
}

/* The keywords before the command, and the command if it is one. */
static enum gradcmp_status run_keywords(struct gcmp_script *script, size_t head) {
    for (size_t i = 0; i <= head && i < script->words.count; i++) {
        if (script->words.items[i].name == NULL) {
            GCMP_TRY(run_keyword(script, script->words.items[i].value));
        }
    }
    return GRADCMP_OK;
}

/* The command is complete. */
enum gradcmp_status gcmp_script_run_command(struct gcmp_script *script) {
    script->has_begun = script->has_begun || script->words.count > 0;
    GCMP_TRY(run_keywords(script, gcmp_script_head(&script->words)));
    if (script->is_skipping) {
        script->words.count = 0;
        return GRADCMP_OK;
    }
    size_t head = gcmp_script_head(&script->words), before = script->prefix.count;
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < head && status == GRADCMP_OK; i++) {
        const struct gcmp_shell_word *word = &script->words.items[i];
        if (word->name != NULL) {
            status = head == script->words.count ? assign_word(script, word)
                                                 : gcmp_script_add_prefix(script, word);
        }
    }
    if (status == GRADCMP_OK && head < script->words.count) {
        status = run_head(script, head);
    }
    script->prefix.count = before;
    script->words.count = 0;
    return status;
}
