/* Which commands of a script surely run: branches, subshells, functions and their local variables.
 */
#ifndef GCMP_LINT_FLOW_H
#define GCMP_LINT_FLOW_H

#include "lint/shell.h"

/* What contains commands. Only those up to GCMP_FLOW_LIST may be passed over. */
enum gcmp_flow_kind {
    GCMP_FLOW_IF = 1,
    GCMP_FLOW_CASE,
    GCMP_FLOW_WHILE,
    GCMP_FLOW_LIST, /* behind && or || */
    GCMP_FLOW_FOR,
    GCMP_FLOW_BRACE,
    GCMP_FLOW_SUBSHELL
};

/* Open and close what contains commands. At the close of a branch, what was assigned in it is
 * marked as conditional; at that of a subshell it is taken back. Closing what is not open does
 * nothing. Errors: LIMIT (nested too deeply), MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_open(struct gcmp_shell *shell,
                                                    enum gcmp_flow_kind kind);
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_close(struct gcmp_shell *shell,
                                                     enum gcmp_flow_kind kind);
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_close_to(struct gcmp_shell *shell, size_t count);

/* The innermost, or 0. */
enum gcmp_flow_kind gcmp_flow_top(const struct gcmp_shell *shell);

/* The next branch of what is open: "else", ";;". */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_next(struct gcmp_shell *shell,
                                                    enum gcmp_flow_kind kind);

/* Remember what a variable is before it changes. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_touch(struct gcmp_shell *shell,
                                                     struct gcmp_shell_variable *variable);

/* Remember it until the function returns. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_local(struct gcmp_shell *shell, const char *name);
void gcmp_flow_restore_locals(struct gcmp_shell *shell, size_t count);

/* Take the marks of what is conditional out of a word of a command, and put them into its flags. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_flag_word(struct gcmp_shell *shell,
                                                         struct gcmp_shell_word *word);

/* A value with all its words marked as conditional. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_flow_mark(struct gcmp_shell *shell, const char **value);

#endif
