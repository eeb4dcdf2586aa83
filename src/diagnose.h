/* Causes: why the parameters of an inconsistent pair fail. */
#ifndef GCMP_DIAGNOSE_H
#define GCMP_DIAGNOSE_H

#include "comparison.h"

/* Judge anew as failing what was left unjudged as noise, and of which a sample shows an order. Fill
 * the causes and shards of every failing parameter, and the cause of every pair, of a
 * comparison that was judged. Costs nothing where all is well and judged; else samples of the
 * failing parameters are read, and whole ones to confirm what those show. A candidate that cannot
 * be read any more becomes an error of its pair. Errors: as gcmp_engine_run. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_diagnose(struct gcmp_comparison *comparison,
                                                   struct gradcmp_error *error);

#endif
