/* The heat map of a parameter as a picture: where in it the difference lies. */
#ifndef GCMP_REPORT_HEAT_H
#define GCMP_REPORT_HEAT_H

#include "gradcmp/sys/result.h"
#include "report/markup.h"

/* Steps of the colours: 0 no difference at all, 1 to 7 inside the bound (7: its upper half, each
 * step below it half as much), 8 to 14 beyond it (each step twice as much), 15 nothing finite. */
enum { GCMP_HEAT_STEPS = 16, GCMP_HEAT_AT_BOUND = 7, GCMP_HEAT_LAST = 14, GCMP_HEAT_NONE = 15 };
unsigned gcmp_heat_step(double cell, double bound);

/* Add a picture of one byte a pixel (a step) as "data:image/png;base64,...". Nothing is compressed:
 * the bytes depend on no library's version. */
void gcmp_heat_add_png(struct gcmp_text *text, const unsigned char *steps, unsigned rows,
                       unsigned columns);

/* Write the map with what stands beside it; nothing where there is none. */
void gcmp_heat_html(struct gcmp_markup *html, const struct gradcmp_parameter_report *parameter);
/* Write what the colours mean. */
void gcmp_heat_legend(struct gcmp_markup *html);

#endif
