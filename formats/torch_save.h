/* The format "torch.save": one file of torch.save, or a folder of such files. */
#ifndef GCMP_FORMATS_TORCH_SAVE_H
#define GCMP_FORMATS_TORCH_SAVE_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_torch_save;

#endif
