/* --config: options from a YAML file, put before those of the command line. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "cli/option.h"

/* Arguments with those of a file before them. Zero-initialise; release with cli_config_release. */
struct cli_arguments {
    int argc;
    char **argv; /* ended by NULL; its first `owned` are malloced */
    int owned;
    bool is_configured;          /* a file has been read */
    struct gradcmp_ranks *ranks; /* that share the work; NULL: none */
};

/* Read the file and make arguments of it that cli_parse takes, with argv behind them, so that the
 * command line wins. Options that `command` does not take are left out if another does. Prints one
 * line, with file and line, and returns false for an unknown name or a value of the wrong type. */
bool cli_config_read(const char *path, const struct cli_command *command,
                     struct cli_arguments *arguments);

void cli_config_release(struct cli_arguments *arguments);

#endif
