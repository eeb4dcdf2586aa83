/* Regular expressions of files and of the command line: what they may cost, and whether they match.
 */
#ifndef GCMP_BASE_EXPRESSION_H
#define GCMP_BASE_EXPRESSION_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* regcomp of a POSIX extended expression that came through gcmp_expression_fault; `flags` are more
 * of regcomp's, `label` stands before the expression in messages ("--match "). To be freed by
 * regfree on success. Errors: USAGE, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_expression_compile(regex_t *expression, int flags,
                                                             const char *label, const char *pattern,
                                                             struct gradcmp_error *error);

/* Tell what is wrong with a POSIX extended expression before the C library compiles it: NULL, or a
 * phrase. The library repeats what is repeated, so that (a{9}){9} takes 81 states and a++++ doubles
 * at every sign; it descends into every group; and \1 within an expression takes exponential time.
 * None of that is bounded there. */
const char *gcmp_expression_fault(const char *pattern);

/* Write the text that whatever an expression matches begins with into `prefix`, whose room is at
 * least the expression's own with its end: "layers.1" of "layers\.1(_[0-9]+)?", "" where it cannot
 * be told. */
void gcmp_expression_prefix(const char *pattern, char *prefix);

/* regexec: true where the expression matches. *lacks_memory becomes true, and stays as it is
 * otherwise, where memory ran out: the answer means nothing then. glibc calls some of the
 * allocations that fail within it "no match"; errno knows better. */
bool gcmp_expression_matches(const regex_t *expression, const char *text, size_t capture_count,
                             regmatch_t *captures, bool *lacks_memory);

#endif
