/* Checkpoints that several names lead to, by links within the folder that is searched. */
#ifndef GCMP_BASE_ALIASES_H
#define GCMP_BASE_ALIASES_H

#include "base/runs.h"
#include "base/search.h"

/* Bytes of a name below the search's folder up to the first link in it; 0 where there is none, and
 * where memory is missing, which gcmp_dir_check tells. */
size_t gcmp_link_bytes(const struct gcmp_search *search, const char *name);

/* Take those of the hits away that are another one by a link, and note them in runs: one without a
 * link in its name stays where there is one, else the first by name. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_aliases_take(struct gcmp_search *search, struct gcmp_runs *runs, struct gradcmp_error *error);

#endif
