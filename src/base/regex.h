/* Regular expressions of POSIX over names, with a lack of memory told apart from no match. */
#ifndef GCMP_BASE_REGEX_H
#define GCMP_BASE_REGEX_H

#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

/* regexec: true where the expression matches. *lacks_memory becomes true, and stays as it is
 * otherwise, where memory ran out: the answer means nothing then. glibc calls some of the
 * allocations that fail within it "no match"; errno knows better. */
static inline bool gcmp_regex_matches(const regex_t *regex, const char *name, size_t capture_count,
                                      regmatch_t *captures, bool *lacks_memory) {
    errno = 0;
    int code = regexec(regex, name, capture_count, captures, 0);
    *lacks_memory = *lacks_memory || code == REG_ESPACE || errno == ENOMEM;
    return code == 0;
}

#endif
