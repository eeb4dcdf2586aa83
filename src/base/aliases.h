/* Checkpoints that several names lead to, by links within the folder that is searched. */
#ifndef GCMP_BASE_ALIASES_H
#define GCMP_BASE_ALIASES_H

#include "base/runs.h"
#include "base/search.h"

/* Find the first link in a path behind its first bytes, which name a folder; *link_bytes: bytes of
 * the path up to its end, 0 where there is none. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_link_find(const char *path, size_t folder_bytes,
                                                    size_t *link_bytes,
                                                    struct gradcmp_error *error);

/* Find what a path is, however it is named: the checkpoint that gcmp_locate finds there, else the
 * path itself. *is_placed is false where it is not there. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_place_find(const char *path, int64_t iteration,
                                                     struct gcmp_dir_place *place, bool *is_placed,
                                                     struct gradcmp_error *error);

/* Take those of the hits away that are another one by a link, and note them in runs: one without a
 * link in its name stays where there is one, else the first by name. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_aliases_take(struct gcmp_search *search, struct gcmp_runs *runs, struct gradcmp_error *error);

#endif
