/* What a run says of itself in a distributed checkpoint without common.pt. */
#ifndef GCMP_FORMATS_DCP_RUN_H
#define GCMP_FORMATS_DCP_RUN_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* Read the objects "args" and "iteration" at the top level, as Megatron-FSDP saves them
 * (fsdp_dtensor), as gcmp_megatron_read_run reads common.pt. Sources must have been placed. An
 * object that cannot be read is noted. Errors: IO, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_read_run(struct gradcmp_catalogue *catalogue,
                                                       struct gradcmp_error *error);

#endif
