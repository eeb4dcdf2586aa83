/* Brings evidence (of metrics, lint, ...) to where it is wanted. */
#ifndef CLI_EVIDENCE_H
#define CLI_EVIDENCE_H

#include "cli/settings.h"

/* Write `evidence` as the settings ask, free it, and return the exit status. */
int cli_deliver_evidence(struct gradcmp_evidence *evidence, const struct cli_settings *settings);

#endif
