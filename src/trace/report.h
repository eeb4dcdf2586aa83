/* How what `trace` found is written. */
#ifndef GCMP_TRACE_REPORT_H
#define GCMP_TRACE_REPORT_H

#include "gradcmp/sys/evidence.h"

void gcmp_trace_write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json);
void gcmp_trace_write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page);

#endif
