/* A launch script while it is read: commands in order, and the launch found so far. */
#ifndef GCMP_LINT_SCRIPT_H
#define GCMP_LINT_SCRIPT_H

#include "lint/flow.h"

enum { GCMP_SCRIPT_MAX_HEREDOCS = 16 };

/* A here-document whose body begins at the next line. */
struct gcmp_script_heredoc {
    char *word;
    bool strips_tabs;
};

/* The command that starts the training, as far as is known. */
struct gcmp_script_launch {
    bool is_there;
    unsigned score;
    const char *program; /* without its folder */
    size_t argument_count;
    struct gcmp_shell_word *arguments; /* behind the program's name */
    struct gcmp_lint_setting *env;
    size_t env_count;
    uint64_t line;
};

struct gcmp_script {
    struct gcmp_shell shell;
    struct gcmp_shell_words words;  /* of the command being read */
    struct gcmp_shell_words prefix; /* assignments that hold for one command only */
    struct gcmp_script_heredoc heredocs[GCMP_SCRIPT_MAX_HEREDOCS];
    size_t heredoc_count;
    struct gcmp_script_launch launch;
    unsigned nested, calls;
    bool has_begun;   /* a command was read */
    bool is_skipping; /* a function's body is read for where it ends */
};

/* Read commands up to the end of a text, and run each. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_run_text(struct gcmp_script *script,
                                                          struct gcmp_shell_text *text);

/* The command in script->words is complete: do what it does to variables, and forget it. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_run_command(struct gcmp_script *script);

/* Assign values to a variable: one, or those of an array. `how`: its line, and whether it adds. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_assign(struct gcmp_script *script,
                                                        const char *name,
                                                        const struct gcmp_shell_word *values,
                                                        size_t count,
                                                        const struct gcmp_shell_word *how);

/* Run the body of the function in that variable as if it stood at the call. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_run_function(struct gcmp_script *script,
                                                              size_t index);

/* Run a text as a script of its own: sh -c "...", eval "...". */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_run_nested(struct gcmp_script *script,
                                                            const struct gcmp_shell_word *word);

/* The command from words[head] on starts a program: keep it where it is the training. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_run_program(struct gcmp_script *script,
                                                             size_t head);
/* env [-i] [-u NAME] [A=b]... command */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_run_env(struct gcmp_script *script, size_t head);

/* Export what a batch system sets before the script runs: "ALL,A=b,C=d", which is taken apart. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_export_list(struct gcmp_script *script, char *list,
                                                             uint64_t line);

/* Doubt what a word of a command does. */
void gcmp_script_doubt(struct gcmp_script *script, const char *subject,
                       const struct gcmp_shell_word *word, const char *text);

/* Set a variable for the command being read. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_add_prefix(struct gcmp_script *script,
                                                            const struct gcmp_shell_word *word);

/* Split a field NAME=value, as "export "$X"" gives it; false where it is none, or without memory.
 */
bool gcmp_script_split_field(struct gcmp_shell *shell, const struct gcmp_shell_word *field,
                             struct gcmp_shell_word *out);

/* Set the arguments of the launch that was found in the script's source. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_set_arguments(struct gcmp_script *script);

/* Remember the environment at this moment: what is exported, then what holds for this command. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_script_keep_env(struct gcmp_script *script,
                                                          struct gcmp_script_launch *launch);

/* Fill text, doubts and line of a setting from a marked value. */
void gcmp_script_fill_setting(struct gcmp_shell *shell, const char *value, uint64_t line,
                              struct gcmp_lint_setting *out);

/* The first word that is neither a keyword nor an assignment before the command. */
size_t gcmp_script_head(const struct gcmp_shell_words *words);

bool gcmp_script_is_one_of(const char *word, const char *const words[]);
bool gcmp_script_ends_in(const char *word, const char *ending);

/* export and its like: words behind them may assign. */
bool gcmp_script_is_assigning(const char *word);

#endif
