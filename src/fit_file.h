/* A fit as a small YAML file. */
#ifndef GCMP_FIT_FILE_H
#define GCMP_FIT_FILE_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/fit.h"

/* Read a file that gradcmp_fit_write_yaml wrote (or a person edited) into *fit, all of it in
 * `arena`. Unknown keys, keys written twice, wrong types and numbers out of range are CORRUPT with
 * "line N: ..."; also IO, LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_read(struct gcmp_arena *arena, const char *path,
                                                   struct gradcmp_fit *fit,
                                                   struct gradcmp_error *error);

#endif
