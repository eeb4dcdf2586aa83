/* A launch script: commands in order, what they assign and export, and the command that starts the
 * training. What comes after it does not count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/shell.h"
#include "lint/text.h"

enum { MAX_NESTED = 3, MAX_HEREDOCS = 16 };

/* A here-document whose body begins at the next line. */
struct heredoc {
    char *word;
    bool strips_tabs;
};

/* The command that starts the training, as far as is known. */
struct launch {
    bool is_there;
    unsigned score;
    size_t argument_count;
    struct gcmp_shell_word *arguments; /* behind the program's name */
    struct gcmp_lint_setting *env;
    size_t env_count;
    uint64_t line;
};

struct script {
    struct gcmp_shell shell;
    struct gcmp_shell_words words;  /* of the command being read */
    struct gcmp_shell_words prefix; /* assignments that hold for one command only */
    struct heredoc heredocs[MAX_HEREDOCS];
    size_t heredoc_count;
    struct launch launch;
    unsigned nested;
    bool has_sourced;
};

static enum gradcmp_status run_text(struct script *script, struct gcmp_shell_text *text);

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_one_of(const char *word, const char *const words[]) {
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
    return is_one_of(word, words);
}

static bool is_assigning(const char *word) {
    static const char *const words[] = {"export", "declare", "typeset", "readonly",
                                        "local",  "env",     NULL};
    return is_one_of(word, words);
}

/* --- variables --- */

static enum gradcmp_status assign(struct script *script, const char *name,
                                  const struct gcmp_shell_word *values, size_t count,
                                  const struct gcmp_shell_word *how) {
    struct gcmp_shell *shell = &script->shell;
    struct gcmp_shell_variable *variable;
    GCMP_TRY(gcmp_shell_make(shell, name, &variable));
    size_t kept = how->is_append && variable->is_set ? variable->count : 0;
    const char **all = gcmp_arena_alloc(shell->arena, kept + count, sizeof *all);
    uint64_t *lines = gcmp_arena_alloc(shell->arena, kept + count, sizeof *lines);
    if (all == NULL || lines == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    for (size_t i = 0; i < kept; i++) {
        all[i] = variable->values[i];
        lines[i] = variable->lines[i];
    }
    for (size_t i = 0; i < count; i++) {
        all[kept + i] = values[i].value;
        lines[kept + i] = values[i].line;
    }
    variable->values = all;
    variable->lines = lines;
    variable->count = kept + count;
    variable->is_set = true;
    variable->times += !how->is_append;
    variable->line = how->line;
    variable->is_exported = variable->is_exported || shell->exports_all;
    return GRADCMP_OK;
}

/* NAME=value, NAME+=value */
static enum gradcmp_status assign_word(struct script *script, const struct gcmp_shell_word *word) {
    struct gcmp_shell *shell = &script->shell;
    const struct gcmp_shell_variable *old = gcmp_shell_find(shell, word->name, strlen(word->name));
    struct gcmp_shell_word how = *word;
    if (word->is_append && old != NULL && old->is_set && old->count > 0) {
        shell->expanded_bytes += strlen(old->values[0]);
        if (shell->expanded_bytes > GCMP_SHELL_MAX_BYTES) {
            GCMP_FAIL_AT(shell->error, GRADCMP_ERROR_LIMIT, shell->source->path, GRADCMP_NO_OFFSET,
                         "line %llu: variables expand to more than %d MiB",
                         (unsigned long long)word->line, GCMP_SHELL_MAX_BYTES >> 20);
        }
        how.value = gcmp_arena_format(shell->arena, "%s%s", old->values[0], word->value);
        if (how.value == NULL) {
            GCMP_FAIL_MEMORY(shell->error);
        }
    }
    how.is_append = false;
    return assign(script, word->name, &how, 1, &how);
}

static enum gradcmp_status export_name(struct script *script, const char *name, bool is_exported) {
    struct gcmp_shell_variable *variable;
    GCMP_TRY(gcmp_shell_make(&script->shell, name, &variable));
    variable->is_exported = is_exported;
    return GRADCMP_OK;
}

/* A field NAME=value, as "export "$X"" gives it. */
static bool split_field(struct gcmp_shell *shell, const struct gcmp_shell_word *field,
                        struct gcmp_shell_word *out) {
    const char *text = field->value; /* *out may be *field */
    size_t name_bytes = gcmp_shell_name_bytes(text, text + strlen(text));
    if (name_bytes == 0 || text[name_bytes] != '=') {
        return false;
    }
    *out = (struct gcmp_shell_word){.value = text + name_bytes + 1, .line = field->line};
    out->name = gcmp_arena_text(shell->arena, text, name_bytes);
    return out->name != NULL;
}

/* --- builtins --- */

static enum gradcmp_status run_export(struct script *script, size_t head) {
    const char *builtin = script->words.items[head].value;
    bool exports = strcmp(builtin, "export") == 0, is_exported = true;
    for (size_t i = head + 1; i < script->words.count; i++) {
        struct gcmp_shell_word word = script->words.items[i];
        if (word.name == NULL && word.value[0] == '-') {
            exports = exports || strchr(word.value, 'x') != NULL;
            is_exported = is_exported && strchr(word.value, 'n') == NULL;
            continue;
        }
        if (word.name != NULL || split_field(&script->shell, &word, &word)) {
            GCMP_TRY(assign_word(script, &word));
        } else {
            word.name = gcmp_shell_text_of(&script->shell, word.value);
        }
        if (exports) {
            GCMP_TRY(export_name(script, word.name, is_exported));
        }
    }
    return GRADCMP_OK;
}

static void run_unset(struct script *script, size_t head) {
    for (size_t i = head + 1; i < script->words.count; i++) {
        const char *name = script->words.items[i].value;
        struct gcmp_shell_variable *variable = gcmp_shell_find(&script->shell, name, strlen(name));
        if (variable != NULL) {
            variable->is_set = variable->is_exported = false;
        }
    }
}

static void run_set(struct script *script, size_t head) {
    for (size_t i = head + 1; i < script->words.count; i++) {
        const char *word = script->words.items[i].value;
        bool is_name = strcmp(word, "allexport") == 0 && i > head + 1;
        const char *sign = is_name ? script->words.items[i - 1].value : word;
        if (is_name || ((word[0] == '-' || word[0] == '+') && strchr(word, 'a') != NULL)) {
            script->shell.exports_all = sign[0] == '-';
        }
    }
}

/* --- the launch --- */

static bool is_launcher(const char *word) {
    static const char *const words[] = {"torchrun", "deepspeed", "accelerate", "msrun", NULL};
    const char *name = base_name(word);
    return is_one_of(name, words) || strncmp(name, "python", 6) == 0;
}

static bool ends_in(const char *word, const char *ending) {
    size_t count = strlen(word), end = strlen(ending);
    return count > end && strcmp(word + count - end, ending) == 0;
}

/* What is printed or looked for is not started. */
static bool is_talk(const char *head) {
    static const char *const words[] = {"echo", "printf", "which", "type", "cat",  "grep", "alias",
                                        "pip",  "pip3",   "conda", "for",  "case", "kill", "pkill",
                                        "test", "[",      "[[",    "ls",   "cd",   NULL};
    return is_one_of(head, words);
}

/* Find the training program among the words: a .py file, or the module behind -m that is no
 * launcher itself. Returns its index, or the count. */
static size_t find_program(const struct gcmp_shell_words *words, size_t from) {
    for (size_t i = from; i < words->count; i++) {
        const char *word = words->items[i].value;
        bool is_module = i > from && strcmp(words->items[i - 1].value, "-m") == 0;
        if (is_module && (strncmp(word, "torch.distributed", 17) == 0 ||
                          strcmp(word, "accelerate.commands.launch") == 0)) {
            continue;
        }
        if (ends_in(word, ".py") || is_module) {
            return i;
        }
        if (i > from && strcmp(words->items[i - 1].value, "-c") == 0) {
            return words->count; /* a program in a word */
        }
    }
    return words->count;
}

static unsigned score_of(const struct gcmp_shell_words *words, size_t program) {
    const char *name = base_name(words->items[program].value);
    unsigned score = 1;
    for (size_t i = program + 1; i < words->count; i++) {
        score += strncmp(words->items[i].value, "--", 2) == 0;
    }
    for (size_t i = 0; i < program; i++) {
        const char *word = base_name(words->items[i].value);
        score += strcmp(word, "torchrun") == 0 || strcmp(word, "deepspeed") == 0 ||
                         strncmp(word, "torch.distributed", 17) == 0
                     ? 2000
                     : 0;
    }
    return score + (strstr(name, "train") != NULL || strstr(name, "finetune") != NULL ? 4000 : 0);
}

static void fill_setting(struct gcmp_shell *shell, const char *value, uint64_t line,
                         struct gcmp_lint_setting *out) {
    out->text = gcmp_shell_text_of(shell, value);
    out->is_unresolved = strchr(value, GCMP_SHELL_UNKNOWN) != NULL;
    out->is_defaulted = strchr(value, GCMP_SHELL_DEFAULT) != NULL;
    out->raw = out->is_unresolved || out->is_defaulted ? gcmp_shell_raw_of(shell, value) : NULL;
    out->line = line;
}

/* Remember the environment at this moment: what is exported, then what holds for this command. */
static enum gradcmp_status keep_env(struct script *script, struct launch *launch) {
    struct gcmp_shell *shell = &script->shell;
    size_t most = shell->variable_count + script->prefix.count;
    launch->env = gcmp_arena_alloc(shell->arena, most, sizeof *launch->env);
    if (launch->env == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    for (size_t i = 0; i < shell->variable_count; i++) {
        const struct gcmp_shell_variable *variable = &shell->variables[i];
        if (variable->is_set && variable->is_exported && variable->count > 0) {
            struct gcmp_lint_setting *setting = &launch->env[launch->env_count++];
            *setting = (struct gcmp_lint_setting){.kind = GCMP_LINT_ENV, .name = variable->name};
            fill_setting(shell, variable->values[0], variable->line, setting);
            setting->times = variable->times;
        }
    }
    for (size_t i = 0; i < script->prefix.count; i++) {
        const struct gcmp_shell_word *word = &script->prefix.items[i];
        struct gcmp_lint_setting *setting = &launch->env[launch->env_count++];
        *setting =
            (struct gcmp_lint_setting){.kind = GCMP_LINT_ENV, .name = word->name, .times = 1};
        setting->is_unset = word->value == NULL;
        fill_setting(shell, word->value == NULL ? "" : word->value, word->line, setting);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status keep_launch(struct script *script, size_t program) {
    struct gcmp_shell *shell = &script->shell;
    unsigned score = score_of(&script->words, program);
    if (script->launch.is_there && script->launch.score >= score) {
        return GRADCMP_OK;
    }
    struct launch launch = {.is_there = true, .score = score};
    launch.line = script->words.items[program].line;
    launch.argument_count = script->words.count - program - 1;
    launch.arguments =
        gcmp_arena_alloc(shell->arena, launch.argument_count, sizeof *launch.arguments);
    if (launch.arguments == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    for (size_t i = 0; i < launch.argument_count; i++) {
        launch.arguments[i] = script->words.items[program + 1 + i];
    }
    GCMP_TRY(keep_env(script, &launch));
    script->launch = launch;
    return GRADCMP_OK;
}

static enum gradcmp_status add_prefix(struct script *script, const struct gcmp_shell_word *word) {
    return gcmp_shell_add_word(&script->shell, &script->prefix, *word);
}

/* Settings that a launcher passes on: mpirun -x A=b, docker run -e A=b, srun --export=ALL,A=b. */
static enum gradcmp_status take_passed(struct script *script, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        struct gcmp_shell_word word, field = script->words.items[i];
        static const char exported[] = "--export=";
        bool is_passed = i > from && (strcmp(script->words.items[i - 1].value, "-x") == 0 ||
                                      strcmp(script->words.items[i - 1].value, "-e") == 0);
        if (is_passed && split_field(&script->shell, &field, &word)) {
            GCMP_TRY(add_prefix(script, &word));
        }
        if (strncmp(field.value, exported, sizeof exported - 1) != 0) {
            continue;
        }
        for (char *at = gcmp_arena_dup(script->shell.arena, field.value + sizeof exported - 1);
             at != NULL;) {
            char *comma = strchr(at, ',');
            if (comma != NULL) {
                *comma = '\0';
            }
            field.value = at;
            if (split_field(&script->shell, &field, &word)) {
                GCMP_TRY(add_prefix(script, &word));
            }
            at = comma == NULL ? NULL : comma + 1;
        }
    }
    return GRADCMP_OK;
}

/* sh -c "...": the text is a script of its own. */
static enum gradcmp_status run_nested(struct script *script, const struct gcmp_shell_word *word) {
    const char *inner = gcmp_shell_text_of(&script->shell, word->value);
    struct gcmp_shell_text text = {inner, inner + strlen(inner), word->line};
    struct gcmp_shell_words outer_words = script->words, outer_prefix = script->prefix;
    if (script->nested >= MAX_NESTED) {
        return GRADCMP_OK;
    }
    script->nested++;
    script->words = (struct gcmp_shell_words){0};
    enum gradcmp_status status = run_text(script, &text);
    free(script->words.items);
    script->nested--;
    script->words = outer_words;
    outer_prefix.items = script->prefix.items; /* it may have moved; what was added is gone */
    outer_prefix.capacity = script->prefix.capacity;
    script->prefix = outer_prefix;
    return status;
}

static enum gradcmp_status run_program(struct script *script, size_t head) {
    const struct gcmp_shell_words *words = &script->words;
    if (is_talk(base_name(words->items[head].value))) {
        return GRADCMP_OK;
    }
    for (size_t i = head; i < words->count; i++) {
        const char *name = base_name(words->items[i].value);
        bool is_shell = strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0;
        if (is_shell && i + 2 < words->count && words->items[i + 1].value[0] == '-' &&
            strchr(words->items[i + 1].value, 'c') != NULL) {
            GCMP_TRY(take_passed(script, head, i));
            struct gcmp_shell_word inner = words->items[i + 2];
            return run_nested(script, &inner);
        }
        if (is_launcher(words->items[i].value) || (i == head && ends_in(name, ".py"))) {
            size_t program = find_program(words, i == head && ends_in(name, ".py") ? i : i + 1);
            GCMP_TRY(take_passed(script, head, i));
            return program < words->count ? keep_launch(script, program) : GRADCMP_OK;
        }
    }
    return GRADCMP_OK;
}

/* env [-i] [-u NAME] [A=b]... command */
static enum gradcmp_status run_env(struct script *script, size_t head) {
    size_t i = head + 1;
    for (; i < script->words.count; i++) {
        struct gcmp_shell_word word = script->words.items[i];
        if (word.name == NULL && strcmp(word.value, "-u") == 0 && i + 1 < script->words.count) {
            struct gcmp_shell_word gone = {.name = script->words.items[++i].value,
                                           .line = word.line};
            GCMP_TRY(add_prefix(script, &gone));
        } else if (word.name != NULL || split_field(&script->shell, &word, &word)) {
            GCMP_TRY(add_prefix(script, &word));
        } else if (word.value[0] != '-') {
            break;
        }
    }
    return i < script->words.count ? run_program(script, i) : GRADCMP_OK;
}

/* --- commands --- */

/* The first word that is neither a keyword nor an assignment before the command. */
static size_t find_head(const struct gcmp_shell_words *words) {
    size_t i = 0;
    while (i < words->count &&
           (words->items[i].name != NULL || is_keyword(words->items[i].value))) {
        i++;
    }
    return i;
}

static enum gradcmp_status run_for(struct script *script, size_t head) {
    if (head + 1 < script->words.count) {
        static const char unknown[] = {GCMP_SHELL_UNKNOWN,     '$', '.', '.', '.',
                                       GCMP_SHELL_UNKNOWN_END, 0};
        struct gcmp_shell_word how = script->words.items[head + 1];
        const char *name = how.value;
        how.value = unknown;
        return assign(script, name, &how, 1, &how);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status run_head(struct script *script, size_t head) {
    const char *name = script->words.items[head].value;
    if (strcmp(name, "env") == 0) {
        return run_env(script, head);
    }
    if (is_assigning(name)) {
        return run_export(script, head);
    }
    if (strcmp(name, "unset") == 0) {
        run_unset(script, head);
        return GRADCMP_OK;
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
    return run_program(script, head);
}

/* The command is complete. */
static enum gradcmp_status run_command(struct script *script) {
    size_t head = find_head(&script->words), before = script->prefix.count;
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < head && status == GRADCMP_OK; i++) {
        const struct gcmp_shell_word *word = &script->words.items[i];
        if (word->name != NULL) {
            status =
                head == script->words.count ? assign_word(script, word) : add_prefix(script, word);
        }
    }
    if (status == GRADCMP_OK && head < script->words.count) {
        status = run_head(script, head);
    }
    script->prefix.count = before;
    script->words.count = 0;
    return status;
}

/* --- reading --- */

/* Whether NAME= at this place is an assignment. */
static bool may_assign(const struct script *script) {
    size_t head = find_head(&script->words);
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
    return is_assigning(name);
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

/* NAME=( words ), over several lines and with comments. */
static enum gradcmp_status read_array(struct script *script, struct gcmp_shell_text *text,
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
        status = assign(script, how->name, items.items, items.count, how);
    }
    free(items.items);
    return status;
}

/* Read an assignment at this place; *was_one is false where none stands here. */
static enum gradcmp_status read_assignment(struct script *script, struct gcmp_shell_text *text,
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
static enum gradcmp_status skip_heredocs(struct script *script, struct gcmp_shell_text *text) {
    for (size_t i = 0; i < script->heredoc_count; i++) {
        const struct heredoc *heredoc = &script->heredocs[i];
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
static enum gradcmp_status read_redirection(struct script *script, struct gcmp_shell_text *text) {
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
        script->heredoc_count < MAX_HEREDOCS) {
        const char *word = gcmp_shell_raw_of(&script->shell, target.items[0].value);
        char *own = gcmp_arena_dup(script->shell.arena, word);
        if (own != NULL) {
            script->heredocs[script->heredoc_count++] = (struct heredoc){own, strips_tabs};
        }
    }
    free(target.items);
    return status;
}

/* "2" of "2>&1" is no word. */
static void drop_descriptor(struct script *script, const struct gcmp_shell_text *text,
                            const char *start) {
    size_t digits = strspn(start, "0123456789");
    if (digits > 0 && start + digits == text->at && text->at < text->end &&
        (*text->at == '<' || *text->at == '>') && script->words.count > 0) {
        script->words.count--;
    }
}

static enum gradcmp_status read_piece(struct script *script, struct gcmp_shell_text *text) {
    bool was_assignment;
    const char *start = text->at;
    switch (*text->at) {
    case '\n':
        text->line++;
        text->at++;
        GCMP_TRY(run_command(script));
        return skip_heredocs(script, text);
    case '#':
        skip_comment(text);
        return GRADCMP_OK;
    case '&':
        if (text->at + 1 < text->end && text->at[1] == '>') {
            return read_redirection(script, text);
        }
        text->at++;
        return run_command(script);
    case ';':
    case '|':
    case '(':
    case ')':
        text->at++;
        return run_command(script);
    case '<':
    case '>':
        return read_redirection(script, text);
    default:
        GCMP_TRY(read_assignment(script, text, &was_assignment));
        if (was_assignment) {
            return GRADCMP_OK;
        }
        GCMP_TRY(gcmp_shell_word(&script->shell, text, true, &script->words));
        drop_descriptor(script, text, start);
        return GRADCMP_OK;
    }
}

static enum gradcmp_status run_text(struct script *script, struct gcmp_shell_text *text) {
    for (;;) {
        skip_blanks(text);
        if (text->at >= text->end) {
            return run_command(script);
        }
        GCMP_TRY(read_piece(script, text));
    }
}

/* --- what comes of it --- */

/* Arguments of the program: --name value, --name=value, --switch. */
static enum gradcmp_status set_arguments(struct script *script) {
    const struct launch *launch = &script->launch;
    struct gcmp_lint_source *source = script->shell.source;
    for (size_t i = 0; i < launch->argument_count; i++) {
        const struct gcmp_shell_word *word = &launch->arguments[i];
        const char *text = gcmp_shell_text_of(&script->shell, word->value);
        if (word->value[0] == GCMP_SHELL_UNKNOWN && source->unknown_arguments == NULL) {
            source->unknown_arguments = gcmp_shell_raw_of(&script->shell, word->value);
            source->unknown_line = word->line;
        }
        if (strncmp(text, "--", 2) != 0 || text[2] == '\0') {
            continue;
        }
        struct gcmp_lint_setting setting = {.line = word->line};
        const char *equals = strchr(word->value, '=');
        const struct gcmp_shell_word *next = i + 1 < launch->argument_count ? word + 1 : NULL;
        char *name = gcmp_arena_text(script->shell.arena, text, strcspn(text, "="));
        if (name == NULL) {
            GCMP_FAIL_MEMORY(script->shell.error);
        }
        if (equals != NULL) {
            fill_setting(&script->shell, equals + 1, word->line, &setting);
        } else if (next != NULL && strncmp(next->value, "--", 2) != 0) {
            fill_setting(&script->shell, next->value, word->line, &setting);
        } else {
            setting.is_switch = true;
        }
        GCMP_TRY(gcmp_lint_set_argument(source, name, setting, script->shell.error));
    }
    return GRADCMP_OK;
}

/* A script without a launch sets an environment for another: all that it exports counts. */
static enum gradcmp_status conclude(struct script *script) {
    struct gcmp_lint_source *source = script->shell.source;
    struct launch *launch = &script->launch;
    if (!launch->is_there) {
        GCMP_TRY(keep_env(script, launch));
        gcmp_lint_note(source, "%s: starts no training; what it exports is looked at",
                       source->path);
    }
    source->has_env = true;
    source->has_args = launch->is_there;
    for (size_t i = 0; i < launch->env_count; i++) {
        GCMP_TRY(gcmp_lint_set(source, &launch->env[i], script->shell.error));
    }
    return launch->is_there ? set_arguments(script) : GRADCMP_OK;
}

static enum gradcmp_status check_bytes(const char *bytes, size_t length_bytes,
                                       const struct gcmp_lint_source *source,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < length_bytes; i++) {
        if (bytes[i] >= 0 && bytes[i] <= GCMP_SHELL_DEFAULT_END) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, source->path, i,
                         "a control byte in a shell script");
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_lint_read_script(const char *bytes, size_t length_bytes,
                                          struct gcmp_lint_source *source,
                                          struct gradcmp_error *error) {
    struct script script = {.shell = {.source = source, .error = error, .arena = source->arena}};
    struct gcmp_shell_text text = {bytes, bytes + length_bytes, 1};
    source->form = GCMP_LINT_SCRIPT;
    GCMP_TRY(check_bytes(bytes, length_bytes, source, error));
    enum gradcmp_status status = run_text(&script, &text);
    if (status == GRADCMP_OK) {
        status = conclude(&script);
    }
    free(script.words.items);
    free(script.prefix.items);
    free(script.shell.variables);
    gcmp_map_free(&script.shell.names);
    gcmp_error_add_path(error, source->path);
    return status;
}
