/* The plot of an HTML report: relative error against the bound, by depth. */
#ifndef GCMP_REPORT_HTML_PLOT_H
#define GCMP_REPORT_HTML_PLOT_H

#include "report/markup.h"
#include "report/text.h"

/* Write it: one dot a parameter, of each layer at most `layer_dots` (the worst). Nothing where
 * there is no figure. */
void gcmp_html_plot(struct gcmp_markup *html, const struct gcmp_pair_view *view, size_t layer_dots);

#endif
