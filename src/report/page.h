/* A page of terminal text: ink (colours only where wanted), columns, wrapped lines, figures. */
#ifndef GCMP_REPORT_PAGE_H
#define GCMP_REPORT_PAGE_H

#include <stdint.h>

#include "report/out.h"
#include "report/printable.h"

struct gcmp_page {
    struct gcmp_out out;
    bool color, utf8, verbose;
    size_t top;   /* failing parameters listed */
    size_t width; /* columns */
};

enum { GCMP_PAGE_DEFAULT_WIDTH = 80, GCMP_PAGE_MIN_WIDTH = 68, GCMP_PAGE_MAX_WIDTH = 200 };

enum gcmp_ink { GCMP_INK_BOLD, GCMP_INK_DIM, GCMP_INK_GOOD, GCMP_INK_BAD, GCMP_INK_DOUBT };

/* Bring a wanted width (0: the default) into the range in which tables hold together. */
size_t gcmp_page_width(unsigned wanted);

/* Set a page up as the caller's options (NULL: the defaults) say; `default_top` where they leave
 * `top` open. The output still has to be begun. */
void gcmp_page_open(struct gcmp_page *page, const struct gradcmp_text_options *text,
                    size_t default_top);

/* Add text as it is, and end a line. */
void gcmp_page_add(struct gcmp_page *page, const char *text);
void gcmp_page_addf(struct gcmp_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gcmp_page_end_line(struct gcmp_page *page);

/* Add text in an ink. */
void gcmp_page_ink(struct gcmp_page *page, enum gcmp_ink ink, const char *text);
/* Add a heading of its own line, with an empty line before it. */
void gcmp_page_heading(struct gcmp_page *page, const char *text);

/* Add a name or path from a file, made safe to print. */
void gcmp_page_name(struct gcmp_page *page, const char *name);
/* The same in an ink. */
void gcmp_page_name_ink(struct gcmp_page *page, enum gcmp_ink ink, const char *name);
/* The same in exactly `columns` columns: padded, or its tail behind "...". */
void gcmp_page_name_in(struct gcmp_page *page, const char *name, size_t columns);
/* Add spaces after text of `used` columns, up to `columns`. */
void gcmp_page_pad(struct gcmp_page *page, size_t used, size_t columns);

/* Add text (made safe) that starts at column `column`, breaking lines at spaces; lines after the
 * first are indented by `indent`. Ends the last line. A word that is longer than a line stays
 * whole.
 */
void gcmp_page_wrap(struct gcmp_page *page, size_t column, size_t indent, const char *text);

enum { GCMP_FIGURE_BYTES = 48 };
/* Format a number of three (error: four) significant digits, a factor with four decimals; "-" for
 * NaN. Return `out`. */
const char *gcmp_figure(char out[GCMP_FIGURE_BYTES], double value);
const char *gcmp_figure_error(char out[GCMP_FIGURE_BYTES], double value);
const char *gcmp_figure_factor(char out[GCMP_FIGURE_BYTES], double value);
/* The same, with as many digits as tell it from 1. */
const char *gcmp_figure_common(char out[GCMP_FIGURE_BYTES], double value);
/* Format a number that a person once typed: "0.95", "1e-08", "1". */
const char *gcmp_figure_setting(char out[GCMP_FIGURE_BYTES], double value);
/* Format with thousands apart ("1,234"), and bytes in binary units ("9.4 MiB"). */
const char *gcmp_figure_count(char out[GCMP_FIGURE_BYTES], uint64_t value);
const char *gcmp_figure_bytes(char out[GCMP_FIGURE_BYTES], uint64_t bytes);

/* Add "[2, 3]". */
void gcmp_text_add_shape(struct gcmp_text *text, unsigned ndim, const uint64_t *shape);

#endif
