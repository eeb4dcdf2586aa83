/* The parts of JSON documents that `compare` and `ls` share. */
#ifndef GCMP_REPORT_JSON_PARTS_H
#define GCMP_REPORT_JSON_PARTS_H

#include "gradcmp/sys/catalogue.h"
#include "report/json.h"

/* {"tp": 2, ..., "world": 4}; a size that is not known is null. */
void gcmp_emit_parallel(struct gcmp_emitter *json, const char *key,
                        const struct gradcmp_parallel *parallel);

/* What the run says of itself, in the order in which it was found. */
void gcmp_emit_settings(struct gcmp_emitter *json, const char *key,
                        const struct gradcmp_catalogue *catalogue);

/* "options": {those that are not default}. */
void gcmp_emit_options(struct gcmp_emitter *json, const struct gradcmp_options *options);

/* The format's name, or null. */
void gcmp_emit_format(struct gcmp_emitter *json, const char *key,
                      const struct gradcmp_catalogue *catalogue);

/* {"file": ..., "offset": ..., "message": ...}; null for what is not known. */
void gcmp_emit_error(struct gcmp_emitter *json, const char *key, const struct gradcmp_error *error);

#endif
