/* From the path that a user names to the checkpoint meant by it. */
#ifndef GCMP_BASE_LOCATE_H
#define GCMP_BASE_LOCATE_H

#include <stdint.h>

#include "base/error.h"

/* Find the checkpoint at `path`: the path itself (a file, or a folder with the marks of a
 * checkpoint); else the iteration that a tracker file in it names (Megatron's
 * latest_checkpointed_iteration.txt, DeepSpeed's latest); else the one checkpoint at most three
 * folders further down. With `iteration` >= 0 trackers are not asked and the checkpoint of that
 * iteration is taken. On success *found is malloced. Errors: IO; USAGE where several could be meant
 * (they are listed) or none is of that iteration; CORRUPT for a tracker that does not name one
 * folder, and for a save that was not finished; UNSUPPORTED where there is no mark of a checkpoint;
 * LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_locate(const char *path, int64_t iteration, char **found,
                                                 struct gradcmp_error *error);

#endif
