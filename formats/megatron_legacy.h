/* The format "megatron_legacy": what Megatron-LM writes with --ckpt-format torch, and MindSpeed-LLM
 * on Ascend. */
#ifndef GCMP_FORMATS_MEGATRON_LEGACY_H
#define GCMP_FORMATS_MEGATRON_LEGACY_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_megatron_legacy;

#endif
