/* The structure of one stored name, from its text alone. */
#ifndef GCMP_UNSHARD_NAME_PARSE_H
#define GCMP_UNSHARD_NAME_PARSE_H

#include "unshard/names.h"

/* Fill `out` from a stored name: wrappers taken off (a leading "module." or "model." only with
 * `unwrap`), spellings of experts and of the final norm made one, suffixes of halves kept. The text
 * is `stored_name` itself where nothing changes. Errors: LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_name_parse(const char *stored_name, bool unwrap,
                                                     struct gcmp_arena *arena,
                                                     struct gcmp_name *out,
                                                     struct gradcmp_error *error);

#endif
