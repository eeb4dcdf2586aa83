/* The format "megatron_wgrads": gradients that Megatron-LM dumps with --save-wgrads-interval. */
#ifndef GCMP_FORMATS_MEGATRON_WGRADS_H
#define GCMP_FORMATS_MEGATRON_WGRADS_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_megatron_wgrads;

#endif
