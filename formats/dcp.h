/* torch distributed checkpoints (DCP), as torch and Megatron-Core write them. */
#ifndef GCMP_FORMATS_DCP_H
#define GCMP_FORMATS_DCP_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_torch_dist;

#endif
