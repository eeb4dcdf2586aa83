/* --sandbox and --memory-limit: what the process may do and take. */
#ifndef CLI_CONTAIN_H
#define CLI_CONTAIN_H

#include <stdbool.h>

#include "cli/settings.h"

/* Give up memory and rights as the settings ask, before the command begins; buffers that were left
 * to us then fit the limit. False after one line where that cannot be done. */
bool cli_contain(struct cli_settings *settings);

#endif
