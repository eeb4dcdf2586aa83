/* Names and paths come from files that anyone may have written: text made safe to print. */
#ifndef GCMP_REPORT_PRINTABLE_H
#define GCMP_REPORT_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "base/utf8.h"

/* Add `string` for a terminal: every byte that is no UTF-8, every control character and everything
 * that reorders text is written as \xNN a byte, so that a name can neither steer the terminal nor
 * look like another. Without `utf8` every byte beyond ASCII is. */
void gcmp_printable_add(struct gcmp_text *text, const char *string, bool utf8);

/* Columns that printed text takes, one a code point (wide characters count one). */
size_t gcmp_printable_columns(const char *string);

/* Return the tail of `string` that takes at most `columns` columns. */
const char *gcmp_printable_tail(const char *string, size_t columns);

#endif
