/* The page around every HTML report: head, style, script, foot; and what several pages show alike.
 */
#ifndef GCMP_REPORT_HTML_PAGE_H
#define GCMP_REPORT_HTML_PAGE_H

#include "report/document.h"

/* Made of page.css and page.js when the project is built. */
extern const char gcmp_page_style[], gcmp_page_script[];

enum gcmp_tone { GCMP_TONE_GOOD, GCMP_TONE_BAD, GCMP_TONE_DOUBT };

/* Return "good", "bad" or "doubt", the class of that tone. */
const char *gcmp_tone_class(enum gcmp_tone tone);

struct gcmp_html_head {
    const char *title;   /* "gradcmp compare" */
    const char *verdict; /* one word */
    enum gcmp_tone tone;
    const char *summary; /* one line below it, or NULL */
};

/* Begin and end a page; in between comes what is in it. */
void gcmp_html_open(struct gcmp_markup *html, struct gcmp_out *out,
                    const struct gcmp_html_head *head);
void gcmp_html_close(struct gcmp_markup *html);

/* Write a word on a coloured ground. */
void gcmp_html_word(struct gcmp_markup *html, enum gcmp_tone tone, const char *word);

/* Write the field and choice that filter table `id`; `verdicts` are ended by NULL. */
void gcmp_html_tools(struct gcmp_markup *html, const char *id, const char *hint,
                     const char *const *verdicts);

/* Start a table that can be sorted, with its heads (ended by one without text); the rows follow.
 * gcmp_html_table_close ends it. */
struct gcmp_html_column {
    const char *text, *hint;
    bool is_number;
};
void gcmp_html_table_open(struct gcmp_markup *html, const char *id,
                          const struct gcmp_html_column *columns);
void gcmp_html_table_close(struct gcmp_markup *html);

/* Write notes as a list under a heading; nothing where there are none. */
void gcmp_html_notes(struct gcmp_markup *html, const char *const *notes, size_t count);

/* Add bytes as base64. */
void gcmp_base64_add(struct gcmp_text *text, const unsigned char *bytes, size_t length_bytes);

#endif
