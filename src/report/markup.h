/* A writer of XML and HTML that streams. It is our own because names come from files that anyone
 * may have written: here every text and every attribute is escaped, and what was opened is closed.
 * What it writes is well-formed XML and valid HTML at once. */
#ifndef GCMP_REPORT_MARKUP_H
#define GCMP_REPORT_MARKUP_H

#include "report/out.h"

enum { GCMP_MARKUP_MAX_DEPTH = 24 };

struct gcmp_markup {
    struct gcmp_out *out;
    const char *open[GCMP_MARKUP_MAX_DEPTH]; /* names of the elements that are open */
    unsigned depth;
};

/* Add text made safe (as for a terminal: control characters, broken UTF-8 and marks that reorder
 * text become \xNN) and escaped for content and quoted attributes of XML and HTML alike. */
void gcmp_markup_escape(struct gcmp_text *text, const char *string);

/* Start an element. Pairs of name and value follow, ended by NULL; a value of NULL leaves its
 * attribute out. Names are our own words. */
void gcmp_markup_open(struct gcmp_markup *markup, const char *name, ...)
    __attribute__((sentinel(0)));
/* Start one that takes a line of its own. */
void gcmp_markup_open_line(struct gcmp_markup *markup, const char *name, ...)
    __attribute__((sentinel(0)));
/* End the innermost element. */
void gcmp_markup_close(struct gcmp_markup *markup);

/* Write an element without content, such as <br/>. */
void gcmp_markup_empty(struct gcmp_markup *markup, const char *name, ...)
    __attribute__((sentinel(0)));

/* Write an element that holds text alone. */
void gcmp_markup_element(struct gcmp_markup *markup, const char *name, const char *content, ...)
    __attribute__((sentinel(0)));

/* Write text. */
void gcmp_markup_text(struct gcmp_markup *markup, const char *content);
void gcmp_markup_textf(struct gcmp_markup *markup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
