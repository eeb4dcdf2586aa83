/* What the command line asked for. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stddef.h>

#include "gradcmp/gradcmp.h"

enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };

/* Arguments of an option that may be repeated. */
struct cli_list {
    const char **items; /* into argv; room for all of them */
    size_t count;
};

/* What extract writes. */
enum cli_format { CLI_FORMAT_BY_NAME, CLI_FORMAT_SAFETENSORS, CLI_FORMAT_HDF5 };

struct cli_settings {
    struct gradcmp_options options;
    struct gradcmp_sweep_options sweep;
    const char *json;   /* NULL: no JSON; "-": standard output; else a file */
    const char *output; /* file that extract writes; NULL: none given */
    unsigned top;       /* 0: the report's default */
    int quiet, verbose;
    int color; /* enum cli_color */
    int stats, as_float32;
    int format;        /* enum cli_format */
    int help, version; /* asked for: nothing else is done; help 2: all of it */

    const char *rules, *explain;        /* of lint; NULL: none given */
    int pair;                           /* of lint */
    int mode;                           /* of metrics: 0 exact, 1 approx */
    struct cli_list tolerances, ratios; /* of metrics */
    struct cli_list ignore;             /* of bits: paths that may differ */
    int no_default_ignore;
    const char *hash;                    /* of bits: file of fingerprints; NULL: none */
    const char *html, *junit, *markdown; /* like json */
    const char *hdf5;                    /* NULL: none; never standard output */
    int junit_level;                     /* enum gradcmp_junit_level */
    int annotations;                     /* nonzero: GitHub's, on standard error */
    int lenient;                         /* of trace */

    const char *config; /* file of more options; NULL: none */
    int configured;     /* how many of the arguments come from that file */

    int sandbox;                 /* nonzero: rights are given up first */
    uint64_t memory_limit_bytes; /* of the process; 0: none */

    const char **operands; /* into argv */
    size_t operand_count;
};

#endif
