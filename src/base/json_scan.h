/* What the readers of whole JSON texts and of their parts have in common. */
#ifndef GCMP_BASE_JSON_SCAN_H
#define GCMP_BASE_JSON_SCAN_H

#include "base/json_text.h"

/* Check what the value at byte `from` costs, `depth` brackets deep in the text; with `whole` all
 * that follows is its own. Errors: LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_scan(const struct gcmp_json_text *text, size_t from,
                                                    unsigned depth, bool whole,
                                                    struct gradcmp_error *error);

/* Fail with what jansson said, `at` bytes into the text; or for a lack of memory. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_json_fail(const struct gcmp_json_text *text, uint64_t at,
                                                    const json_error_t *fault,
                                                    struct gradcmp_error *error);

#endif
