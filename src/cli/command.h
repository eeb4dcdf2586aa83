/* The table of commands. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

#include "cli/settings.h"

/* One bit a command, for the option table. */
enum {
    CLI_COMPARE = 1,
    CLI_LS = 2,
    CLI_CHECK = 4,
    CLI_EXTRACT = 8,
    CLI_FIT = 16,
    CLI_SWEEP = 32,
    CLI_METRICS = 64,
    CLI_LINT = 128,
    CLI_BITS = 256,
    CLI_TRACE = 512,
    /* write HTML, JUnit, Markdown, annotations */
    CLI_REPORTS = CLI_COMPARE | CLI_CHECK | CLI_METRICS | CLI_LINT | CLI_BITS | CLI_TRACE,
    CLI_ALL = CLI_COMPARE | CLI_LS | CLI_CHECK | CLI_EXTRACT | CLI_FIT | CLI_SWEEP | CLI_BITS
};

/* Exit statuses of the program. Interrupted: 128 plus the signal, 129, 130 or 143. */
enum { CLI_EXIT_CONSISTENT = 0, CLI_EXIT_DIFFERENT = 1, CLI_EXIT_TROUBLE = 2 };

struct cli_command {
    const char *name;
    unsigned bits;                                   /* takes the options of any of them */
    const char *operands;                            /* as in the usage line */
    const char *about;                               /* lines below it */
    const char *example;                             /* lines at the end of --help */
    int (*run)(const struct cli_settings *settings); /* returns the exit status */
    bool is_shared; /* ranks share its work; else rank 0 does it alone */
};

/* All commands, ended by one without a name. The first is the one that runs when none is named. */
extern const struct cli_command cli_commands[];

/* Find a command by its whole name, or NULL. */
const struct cli_command *cli_command_find(const char *name);

int cli_run_compare(const struct cli_settings *settings);
int cli_run_ls(const struct cli_settings *settings);
int cli_run_check(const struct cli_settings *settings);
int cli_run_extract(const struct cli_settings *settings);
/* What extract writes: as --format says, else by the file's name. */
enum cli_format cli_extract_format(const struct cli_settings *settings);
int cli_run_sweep(const struct cli_settings *settings);
int cli_run_fit(const struct cli_settings *settings);
int cli_run_metrics(const struct cli_settings *settings);
int cli_run_trace(const struct cli_settings *settings);
int cli_run_bits(const struct cli_settings *settings);
int cli_run_lint(const struct cli_settings *settings);

#endif
