/* The parts of the terminal report, from the top of the page to its last line. */
#ifndef GCMP_REPORT_TEXT_H
#define GCMP_REPORT_TEXT_H

#include "gradcmp/sys/result.h"
#include "report/page.h"

/* One pair as it is shown, with its parameters in two more orders. */
struct gcmp_pair_view {
    const struct gradcmp_report *report;
    const struct gradcmp_pair_report *pair;
    size_t count;
    bool only_differences; /* the head leaves out what is the same on both sides */
    const struct gradcmp_parameter_report **by_badness; /* worst first */
    const struct gradcmp_parameter_report *
        *by_layer; /* from the loss down, in a layer worst first */
};

/* Sort the parameters. Free with gcmp_pair_view_free, whatever was returned. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pair_view_init(struct gcmp_pair_view *view,
                                                         const struct gradcmp_report *report,
                                                         const struct gradcmp_pair_report *pair,
                                                         struct gradcmp_error *error);
void gcmp_pair_view_free(struct gcmp_pair_view *view);

/* What was recognised on both sides, what is compared, the bound, the options. */
void gcmp_text_head(struct gcmp_page *page, const struct gcmp_pair_view *view);
/* One line a layer. */
void gcmp_text_layers(struct gcmp_page *page, const struct gcmp_pair_view *view);
/* The parameters that failed, what was not judged, and (verbose) every parameter. */
void gcmp_text_failures(struct gcmp_page *page, const struct gcmp_pair_view *view);
/* Why they failed, each cause once. */
void gcmp_text_causes(struct gcmp_page *page, const struct gcmp_pair_view *view);
void gcmp_text_notes(struct gcmp_page *page, const struct gcmp_pair_view *view);

/* The one line that stands alone: verdict, onset, worst. */
void gcmp_text_verdict(struct gcmp_page *page, const struct gradcmp_pair_report *pair);
/* The same without the word of the verdict, for a line that is led by something else. */
void gcmp_text_findings(struct gcmp_page *page, const struct gradcmp_pair_report *pair);

/* Add the same to a text that goes elsewhere than to a terminal; still to be escaped. */
void gcmp_text_add_findings(struct gcmp_text *text, const struct gradcmp_pair_report *pair);

/* Add what is wrong with a parameter in half a sentence: "error 1.002 = 128 eps = ...". */
void gcmp_text_explain(struct gcmp_text *text, const struct gradcmp_pair_report *pair,
                       const struct gradcmp_parameter_report *parameter);

/* Add what was measured and by which bound, as the head of the terminal report tells it: one of
 * "compared", "global norm", "computed in", "bound", "common factor" (nothing: there is none). */
void gcmp_text_add_compared(struct gcmp_text *text, const struct gradcmp_report *report,
                            const struct gradcmp_pair_report *pair);
void gcmp_text_add_norms(struct gcmp_text *text, const struct gradcmp_pair_report *pair);
void gcmp_text_add_precision(struct gcmp_text *text, const struct gradcmp_report *report,
                             const struct gradcmp_pair_report *pair);
void gcmp_text_add_bound(struct gcmp_text *text, const struct gradcmp_bound *bound);
void gcmp_text_add_common(struct gcmp_text *text, const struct gradcmp_pair_report *pair);

/* Add "; cause: scale 2 (twice the baseline)", or nothing. */
void gcmp_text_cause(struct gcmp_page *page, const struct gradcmp_pair_report *pair);

/* Add an outcome's word in capitals, in its ink. */
void gcmp_text_outcome(struct gcmp_page *page, enum gradcmp_outcome outcome);

/* Add "layer 3 (decoder.layers.2)", "the head (layer 9)" or "the embeddings (layer 0)". */
void gcmp_text_layer_name(struct gcmp_page *page, const struct gradcmp_pair_report *pair,
                          int64_t layer);

/* Ink of a verdict. */
enum gcmp_ink gcmp_verdict_ink(enum gradcmp_verdict verdict);

#endif
