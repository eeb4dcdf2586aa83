/* What is known of the parameters of a pair beside their figures. */
#ifndef GCMP_DIAGNOSE_FACTS_H
#define GCMP_DIAGNOSE_FACTS_H

#include "bounds/cause_pair.h"
#include "comparison.h"

/* Fill facts[], one a parameter, zeroed before; the rows of routers stay out. Weights of the side
 * that has tensor-parallel ranks are laid out, not read. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_facts_learn(const struct gcmp_comparison *comparison,
                                                      size_t index, struct gcmp_cause_facts *facts,
                                                      struct gradcmp_error *error);

/* Experts of a layer, as their numbers tell. */
uint64_t gcmp_facts_experts(const struct gradcmp_pair_report *pair,
                            const struct gcmp_cause_facts *facts, int64_t layer);

#endif
