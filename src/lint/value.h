/* Values that are written in several ways and mean the same. */
#ifndef GCMP_LINT_VALUE_H
#define GCMP_LINT_VALUE_H

#include <stdbool.h>

#include "base/text.h"
#include "lint/facts.h"

/* True for one number that is written in two ways: 1, 1.0; 1e-5, 0.00001; 16, 0x10. */
bool gcmp_lint_is_same_number(const char *a, const char *b);

/* True for one list that is written in two ways, by a command line, a document or a checkpoint:
 * [0.5,"a"], (0.50, 'a'), 0.5 a. Numbers are compared as such, and sums of lists written out
 * ("([0]*1+[1]*2)"). False where neither value is a list or of several words. */
bool gcmp_lint_is_same_list(const struct gcmp_lint_setting *a, const struct gcmp_lint_setting *b);

/* True for a value that Python would compute a list from, in a way that is not followed:
 * "([0]*2+[1])*3". What it is compared with is not known to differ. */
bool gcmp_lint_is_unevaluated(const struct gcmp_lint_setting *setting);

#endif
