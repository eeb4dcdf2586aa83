/* The parts of the HTML report of a comparison. */
#ifndef GCMP_REPORT_HTML_PARTS_H
#define GCMP_REPORT_HTML_PARTS_H

#include "report/html_page.h"
#include "report/text.h"

/* Tones of verdicts. */
enum gcmp_tone gcmp_outcome_tone(enum gradcmp_outcome outcome);
enum gcmp_tone gcmp_verdict_tone(enum gradcmp_verdict verdict);
enum gcmp_tone gcmp_status_tone(int exit_status);

/* The failing parameters of a pair, the worst `top` of them in full: sentence, causes, heat map,
 * shards. */
void gcmp_html_faults(struct gcmp_markup *html, const struct gcmp_pair_view *view, size_t top);

/* The table of all parameters, of one candidate with all figures, of several with the error over
 * the bound in each. At most `rows` rows, the worst first. */
void gcmp_html_table(struct gcmp_markup *html, const struct gradcmp_report *report, size_t rows);

/* The matrix of candidates by groups of layers. */
void gcmp_html_matrix(struct gcmp_markup *html, const struct gradcmp_report *report);

/* Of a sweep: what was swept, against what; and what was found beside the comparisons. */
void gcmp_html_sweep_head(struct gcmp_markup *html, const struct gradcmp_sweep *sweep);
void gcmp_html_sweep_findings(struct gcmp_markup *html, const struct gradcmp_sweep *sweep);

#endif
