/* What the terminal, if there is one, can show. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

#include "cli/settings.h"

/* Whether to colour standard output: --color, then NO_COLOR, CLICOLOR_FORCE, then whether it is a
 * terminal that is not dumb. */
bool cli_terminal_color(enum cli_color wanted);

/* Whether text is UTF-8 in the user's locale; call setlocale first. */
bool cli_terminal_utf8(void);

/* Columns of standard output where it is a terminal, else 0. */
unsigned cli_terminal_width(void);

/* Whether a line on standard error can be overwritten. */
bool cli_terminal_progress(void);

#endif
