/* Markdown as GitHub and GitLab show it in a comment. */
#ifndef GCMP_REPORT_MARKDOWN_H
#define GCMP_REPORT_MARKDOWN_H

#include "report/document.h"

/* Add text that means nothing but itself: made safe, and everything that Markdown or HTML could
 * take for a mark written as a character reference. */
void gcmp_markdown_escape(struct gcmp_text *text, const char *string);

/* Add a name or path as code. */
void gcmp_markdown_code(struct gcmp_text *text, const char *string);

#endif
