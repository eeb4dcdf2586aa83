/* What is made from the tables of options and commands for others to read: the manual page, and
 * completions of shells. The build runs `gradcmp --generate man|bash|zsh|fish` and installs what is
 * printed, so that nothing can be left behind. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include <stdbool.h>

#include "cli/option.h"

/* Print what is called `kind`. Returns the exit status; one line where there is no such kind. */
int cli_generate(const char *kind);

/* True where a command takes an option. */
bool cli_generate_is_of(const struct cli_option *option, const struct cli_command *command);

/* The words that an option's argument is one of, or most often is, ended by NULL; NULL: no such
 * words. */
const char *const *cli_generate_words(const struct cli_option *option);

/* True where an option's argument names a file or folder. */
bool cli_generate_takes_file(const struct cli_option *option);

/* Print to standard output. */
void cli_generate_manual(void);
void cli_generate_bash(void);
void cli_generate_zsh(void);
void cli_generate_fish(void);

#endif
