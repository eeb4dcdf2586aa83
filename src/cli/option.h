/* The one table of options: it makes parsing, --help, and later the man page and completions. */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"

/* What an option takes, and the type of the field that it fills. */
enum cli_argument {
    CLI_FLAG,     /* nothing; int = value */
    CLI_TEXT,     /* any text; const char * */
    CLI_OUTPUT,   /* a file that may be left out: "-" then; const char * */
    CLI_COUNT,    /* a whole number of at least 1; uint64_t */
    CLI_SMALL,    /* the same; unsigned */
    CLI_STEP,     /* a whole number; int64_t */
    CLI_POSITIVE, /* a number above 0; double */
    CLI_SIZE,     /* bytes with a unit, at least 1; uint64_t */
    CLI_DTYPE,    /* a floating type; enum gradcmp_dtype */
    CLI_DEVICE,   /* auto, cpu, cuda or cuda:N; struct gradcmp_options */
    CLI_CHOICE,   /* one of `choices`; int = value + its index */
    CLI_LIST      /* any text; may be repeated; struct cli_list */
};

struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum cli_argument argument;
    unsigned commands; /* bits of those that take it */
    size_t offset;     /* of the field in struct cli_settings */
    int value;
    const char *placeholder;    /* of the argument, NULL without one */
    const char *const *choices; /* ended by NULL */
    const char *brief;          /* for --help: at most 20 characters */
    const char *detail;         /* for the manual: one sentence */
};

/* All options, ended by one without a name. */
extern const struct cli_option cli_options[];

/* Read the arguments behind the command's name into *settings, which must be set up. Prints one
 * line and returns false where they make no sense. argv's operands are gathered in
 * settings->operands, which must have room for argc. Stops early, with true, at --help and
 * --version. */
bool cli_parse(const struct cli_command *command, int argc, char *const *argv,
               struct cli_settings *settings);

/* Convert an argument into the option's field of *settings; false where it is no such thing. A
 * CLI_LIST must have room for one more. */
bool cli_option_store(const struct cli_option *option, const char *text,
                      struct cli_settings *settings);

/* Print, into `out`, what the option expects: "a number above 0", "auto, always or never". */
void cli_option_expects(const struct cli_option *option, char *out, size_t capacity);

#endif
