/* The parts of JSON documents that `compare` and `ls` share. */
#ifndef GCMP_REPORT_JSON_PARTS_H
#define GCMP_REPORT_JSON_PARTS_H

#include "gradcmp/sys/catalogue.h"
#include "report/json.h"

/* {"tp": 2, ..., "world": 4}; a size that is not known is null. */
void gcmp_json_parallel(struct gcmp_json *json, const char *key,
                        const struct gradcmp_parallel *parallel);

/* What the run says of itself, in the order in which it was found. */
void gcmp_json_settings(struct gcmp_json *json, const char *key,
                        const struct gradcmp_catalogue *catalogue);

/* The format's name, or null. */
void gcmp_json_format(struct gcmp_json *json, const char *key,
                      const struct gradcmp_catalogue *catalogue);

#endif
