/* The format "safetensors": one file, files with an index, and shards that ranks wrote. */
#ifndef GCMP_FORMATS_SAFETENSORS_H
#define GCMP_FORMATS_SAFETENSORS_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_safetensors;

#endif
