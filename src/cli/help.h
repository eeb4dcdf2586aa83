/* --help and --version. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdbool.h>

#include "cli/command.h"

/* Print to standard output and return the exit status. `all`: every option in full, else those that
 * are used most, on one screen. */
int cli_print_help(const struct cli_command *command, bool all);
int cli_print_version(void);

#endif
