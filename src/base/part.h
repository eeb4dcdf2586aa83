/* Files that are one of several by their name: model-00001-of-00003.safetensors. */
#ifndef GCMP_BASE_PART_H
#define GCMP_BASE_PART_H

#include <stdbool.h>

#include "base/error.h"

/* Refuse to compare one of several files with anything but the same one of several: what the others
 * hold would be missing. That a file is one of several is told by its name, "-K-of-N.", where
 * another one or an index lies beside it. Errors: USAGE, naming the folder. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_check_parts(const char *path_a, const char *path_b,
                                                      struct gradcmp_error *error);

#endif
