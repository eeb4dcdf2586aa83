/* Tensors of one checkpoint that are the same bytes of one file. */
#ifndef GCMP_SHARED_BYTES_H
#define GCMP_SHARED_BYTES_H

#include "checkpoint.h"
#include "finding.h"

/* Add a finding for each tensor whose bytes another one has too: items of a distributed checkpoint,
 * each of which holds one piece of one tensor, and moments and masters of any checkpoint, which no
 * two parameters share. Weights may be tied, and moments of such are not told of. Errors: MEMORY.
 */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_find_shared_bytes(const struct gcmp_finding_sink *sink,
                       const struct gradcmp_checkpoint *checkpoint, struct gradcmp_error *error);

#endif
