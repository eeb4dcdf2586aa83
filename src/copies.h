/* Copies of one parameter within a side: what ranks each hold, and which must be the same. */
#ifndef GCMP_COPIES_H
#define GCMP_COPIES_H

#include "comparison.h"

enum { GCMP_COPY_NAME_BYTES = 96 };

/* Write "copy 1 (tp 1, pp 0)": the ranks that all of the copy's slabs share. Returns `out`. */
const char *gcmp_copy_name(char out[GCMP_COPY_NAME_BYTES],
                           const struct gradcmp_parameter *parameter, uint32_t copy);

/* Say which of a job's two copies hold NaN or Inf, one of them at least: "NaN or Inf in 1 of 16
 * elements of copy 1 (tp 1)". NULL without memory. */
char *gcmp_copies_nonfinite(struct gcmp_arena *arena, const struct gcmp_job *job);

/* "baseline" or "candidate". */
const char *gcmp_side_name(const struct gcmp_side *side);

/* Judge two copies of a parameter (the first one, and the job's b) by the job's tally: what differs
 * becomes a note of the pair, beyond the bound a conflict of the parameter. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_judge_copies(struct gcmp_comparison *comparison,
                                                       struct gradcmp_pair_report *pair,
                                                       struct gradcmp_parameter_report *parameter,
                                                       const struct gcmp_job *job,
                                                       struct gradcmp_error *error);

#endif
