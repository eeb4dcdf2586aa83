/* --help and --version. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/command.h"

/* Print to standard output and return the exit status. */
int cli_print_help(const struct cli_command *command);
int cli_print_version(void);

#endif
