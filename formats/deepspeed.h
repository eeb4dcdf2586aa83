/* The format "deepspeed": what a DeepSpeed engine saves under one tag. */
#ifndef GCMP_FORMATS_DEEPSPEED_H
#define GCMP_FORMATS_DEEPSPEED_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_deepspeed;

#endif
