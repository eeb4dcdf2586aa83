/* The arguments of a launch: options with their values, overrides, operands. */
#include "lint/script.h"

#include <stdlib.h>
#include <string.h>

/* Remember a word that stands for what is not known, or that a branch may have replaced. */
static void look_at_word(struct gcmp_script *script, const struct gcmp_shell_word *word) {
    struct gcmp_lint_source *source = script->shell.source;
    if (word->value[0] == GCMP_SHELL_UNKNOWN && source->unknown_arguments == NULL) {
        source->unknown_arguments = gcmp_shell_raw_of(&script->shell, word->value);
        source->unknown_line = word->line;
    }
    if (word->is_replaced && source->conditional_argument == NULL) {
        source->conditional_argument = gcmp_shell_text_of(&script->shell, word->value);
        source->conditional_line = word->line;
    }
}

/* The bytes of the name in "name=value", as Hydra's overrides are written ("+model.seed=1"); 0 for
 * another word. */
static size_t override_bytes(const char *word) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-@/";
    size_t sign = strspn(word, "+~");
    size_t first = strspn(word + sign, letters);
    size_t name = sign + first + strspn(word + sign + first, others);
    return first > 0 && word[name] == '=' ? name : 0;
}

/* How many words behind an option are its values. The first may be anything but a long option;
 * what may be an option, or is an override, ends the others. */
static size_t count_values(const struct gcmp_shell_word *words, size_t count) {
    size_t i = 0;
    for (; i < count; i++) {
        const char *value = words[i].value;
        bool is_short = value[0] == '-' && strcspn(value + 1, "0123456789.") > 0;
        bool ends =
            strncmp(value, "--", 2) == 0 ||
            (i == 0 ? words[i].is_replaced && value[0] == '\0'
                    : is_short || value[0] == GCMP_SHELL_UNKNOWN || override_bytes(value) > 0);
        if (ends) {
            break;
        }
    }
    return i;
}

/* Words with blanks between them, as texts or (`raw`) as written; NULL without memory. */
static const char *join_words(struct gcmp_shell *shell, const struct gcmp_shell_word *words,
                              size_t count, bool raw) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        const char *value = raw ? gcmp_shell_raw_of(shell, words[i].value)
                                : gcmp_shell_text_of(shell, words[i].value);
        gcmp_text_addf(&text, "%s%s", i == 0 ? "" : " ", value);
    }
    const char *own = text.failed ? NULL : gcmp_arena_dup(shell->arena, text.bytes);
    gcmp_text_free(&text);
    return own;
}

/* The values of an option. Where a further one is not known, nor is the whole. */
static enum gradcmp_status fill_values(struct gcmp_script *script,
                                       const struct gcmp_shell_word *words, size_t count,
                                       struct gcmp_lint_setting *setting) {
    struct gcmp_shell *shell = &script->shell;
    gcmp_script_fill_setting(shell, words->value, setting->line, setting);
    for (size_t i = 0; i < count; i++) {
        const char *value = words[i].value;
        bool is_unknown =
            i > 0 && value[0] != GCMP_SHELL_UNKNOWN && strchr(value, GCMP_SHELL_UNKNOWN) != NULL;
        setting->is_unresolved = setting->is_unresolved || is_unknown;
        setting->is_defaulted = setting->is_defaulted || strchr(value, GCMP_SHELL_DEFAULT) != NULL;
        setting->is_conditional = setting->is_conditional || words[i].is_conditional;
        look_at_word(script, &words[i]);
    }
    if (count == 1) {
        return GRADCMP_OK;
    }
    setting->more = join_words(shell, words + 1, count - 1, false);
    setting->raw = setting->is_unresolved || setting->is_defaulted
                       ? join_words(shell, words, count, true)
                       : setting->raw;
    if (setting->more == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    return GRADCMP_OK;
}

/* --name value..., --name=value, --switch. *used: the words of it. */
static enum gradcmp_status set_option(struct gcmp_script *script, size_t i, size_t *used) {
    const struct gcmp_script_launch *launch = &script->launch;
    struct gcmp_shell *shell = &script->shell;
    const struct gcmp_shell_word *word = &launch->arguments[i];
    const char *text = gcmp_shell_text_of(shell, word->value);
    const char *equals = strchr(word->value, '=');
    struct gcmp_lint_setting setting = {.line = word->line, .is_conditional = word->is_conditional};
    size_t values = equals == NULL ? count_values(word + 1, launch->argument_count - i - 1) : 0;
    char *name = gcmp_arena_text(shell->arena, text, strcspn(text, "="));
    if (name == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    *used = 1 + values;
    setting.is_switch = equals == NULL && values == 0;
    if (equals != NULL) {
        gcmp_script_fill_setting(shell, equals + 1, word->line, &setting);
    } else if (values > 0) {
        GCMP_TRY(fill_values(script, word + 1, values, &setting));
    }
    return gcmp_lint_set_argument(shell->source, name, setting, shell->error);
}

static enum gradcmp_status set_override(struct gcmp_script *script,
                                        const struct gcmp_shell_word *word, size_t name_bytes) {
    struct gcmp_shell *shell = &script->shell;
    struct gcmp_lint_setting setting = {.line = word->line, .is_conditional = word->is_conditional};
    size_t sign = strspn(word->value, "+~");
    char *name = gcmp_arena_text(shell->arena, word->value + sign, name_bytes - sign);
    if (name == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    gcmp_script_fill_setting(shell, word->value + name_bytes + 1, word->line, &setting);
    return gcmp_lint_set_argument(shell->source, name, setting, shell->error);
}

/* Arguments of the program: options, overrides, and (all behind "--") operands. */
static enum gradcmp_status take_arguments(struct gcmp_script *script,
                                          struct gcmp_shell_words *operands) {
    const struct gcmp_script_launch *launch = &script->launch;
    bool is_ended = false;
    for (size_t i = 0, used; i < launch->argument_count; i += used) {
        const struct gcmp_shell_word *word = &launch->arguments[i];
        const char *text = gcmp_shell_text_of(&script->shell, word->value);
        size_t override = is_ended ? 0 : override_bytes(word->value);
        used = 1;
        look_at_word(script, word);
        if (!is_ended && strcmp(text, "--") == 0) {
            is_ended = true;
        } else if (!is_ended && strncmp(text, "--", 2) == 0) {
            GCMP_TRY(set_option(script, i, &used));
        } else if (override > 0) {
            GCMP_TRY(set_override(script, word, override));
        } else if (word->value[0] != GCMP_SHELL_UNKNOWN) {
            GCMP_TRY(gcmp_shell_add_word(&script->shell, operands, *word));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_script_set_arguments(struct gcmp_script *script) {
    struct gcmp_lint_source *source = script->shell.source;
    struct gcmp_shell_words operands = {0};
    source->program = script->launch.program;
    source->program_line = script->launch.line;
    enum gradcmp_status status = take_arguments(script, &operands);
    if (status == GRADCMP_OK && operands.count > 0) {
        source->operands = join_words(&script->shell, operands.items, operands.count, false);
        if (source->operands == NULL) {
            status = gcmp_error_set(script->shell.error, GRADCMP_ERROR_MEMORY, NULL,
                                    GRADCMP_NO_OFFSET, "out of memory");
        }
    }
    free(operands.items);
    return status;
}
