/* Delivers what compare and sweep found. */
#ifndef GRADCMP_CLI_JUDGED_H
#define GRADCMP_CLI_JUDGED_H

#include "cli/settings.h"
#include "gradcmp/gradcmp.h"

/* A report and, where it is one of a sweep, the sweep that owns it; else NULL. */
struct cli_judged {
    const struct gradcmp_report *report;
    const struct gradcmp_sweep *sweep;
};

/* Complain of each candidate that could not be read, one line each, and with --quiet of what else
 * there is no answer to, and write all reports that were asked for. Returns the exit status, as
 * cli_deliver. */
int cli_judged_deliver(const struct cli_judged *judged, const struct cli_settings *settings,
                       int status);

#endif
