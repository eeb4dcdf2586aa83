/* Brings evidence (of metrics, lint, ...) to where it is wanted. */
#ifndef CLI_EVIDENCE_H
#define CLI_EVIDENCE_H

#include <stdbool.h>

#include "cli/settings.h"

/* Write `evidence` as the settings ask, free it, and return the exit status. Where --quiet keeps
 * the text back, why there is no answer goes to standard error, unless the caller has told it. */
int cli_deliver_evidence(struct gradcmp_evidence *evidence, const struct cli_settings *settings,
                         bool is_told);

#endif
