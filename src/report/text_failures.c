/* The parameters that failed, worst first, and what else a reader must know of them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/facts.h"
#include "report/text.h"

enum { VERDICT_COLUMNS = 9, INDENT_COLUMNS = 2 + VERDICT_COLUMNS + 1, NOTES_SHOWN = 8 };

/* "error 1.000 = 128 eps", of what was judged. */
static void add_error(struct gcmp_text *text, const struct gradcmp_pair_report *pair,
                      const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    double judged = gcmp_judged_rel(parameter);
    gcmp_text_addf(text, "error %s", gcmp_figure_error(figure, judged));
    gcmp_text_addf(text, " = %s eps", gcmp_figure(figure, judged / pair->bound.eps));
}

/* What was judged is not the raw error where a common factor was divided out. */
static void add_raw_error(struct gcmp_text *text,
                          const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    if (!isnan(parameter->rel_common)) {
        gcmp_text_addf(text, ", beside the common factor; with it the error is %s",
                       gcmp_figure_error(figure, parameter->rel));
    }
}

static void add_alpha(struct gcmp_text *text, const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    gcmp_text_addf(text, "; alpha %s", gcmp_figure_factor(figure, parameter->alpha));
}

/* A candidate that is all zero, or points elsewhere, fails inside the bound too (a cap that was
 * raised would else let it pass). */
static void add_other_reason(struct gcmp_text *text,
                             const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    if (parameter->verdict != GRADCMP_VERDICT_FAIL || parameter->ratio > 1.0) {
        return;
    }
    if (parameter->norm_b == 0.0) {
        gcmp_text_add(text, "; fails since the candidate is all zero");
    } else {
        gcmp_text_addf(text, "; fails since the directions differ, cosine %s",
                       gcmp_figure_error(figure, parameter->cosine));
    }
}

static void explain_fail(struct gcmp_text *text, const struct gradcmp_pair_report *pair,
                         const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    if (isinf(parameter->rel) && parameter->tally.max_a > 0.0) {
        gcmp_text_addf(text, "too far off for a figure: norm %s in the baseline",
                       gcmp_figure_error(figure, parameter->norm_a));
        gcmp_text_addf(text, ", %s in the candidate", gcmp_figure_error(figure, parameter->norm_b));
        return;
    }
    if (isinf(parameter->rel)) {
        gcmp_text_addf(text, "the baseline is all zero, the candidate is not (norm %s)",
                       gcmp_figure_error(figure, parameter->norm_b));
        return;
    }
    add_error(text, pair, parameter);
    gcmp_text_addf(text, " = %s times the bound", gcmp_figure(figure, parameter->ratio));
    gcmp_text_addf(text, " %s", gcmp_figure(figure, parameter->bound));
    add_raw_error(text, parameter);
    add_alpha(text, parameter);
    add_other_reason(text, parameter);
}

static void explain_scale(struct gcmp_text *text, const struct gradcmp_pair_report *pair,
                          const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    add_error(text, pair, parameter);
    gcmp_text_addf(text, ", inside the bound %s", gcmp_figure(figure, parameter->bound));
    add_raw_error(text, parameter);
    gcmp_text_addf(text, "; alpha %s", gcmp_figure_common(figure, parameter->alpha));
    gcmp_text_addf(text, ", off by more than the %s that noise explains",
                   gcmp_figure(figure, parameter->alpha_tolerance));
}

static void explain_nonfinite(struct gcmp_text *text,
                              const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    const struct gradcmp_tally *tally = &parameter->tally;
    gcmp_text_addf(text, "NaN or Inf in %s elements of the baseline",
                   gcmp_figure_count(figure, tally->nonfinite_a));
    gcmp_text_addf(text, " and %s of the candidate", gcmp_figure_count(figure, tally->nonfinite_b));
    gcmp_text_addf(text, ", of %s", gcmp_figure_count(figure, tally->elems));
}

static void add_side(struct gcmp_text *text, const struct gradcmp_parameter_report *parameter,
                     bool of_a) {
    unsigned ndim = of_a ? parameter->ndim_a : parameter->ndim_b;
    gcmp_text_add_shape(text, ndim, of_a ? parameter->shape_a : parameter->shape_b);
    gcmp_text_addf(text, " %s", gradcmp_dtype_name(of_a ? parameter->dtype_a : parameter->dtype_b));
}

void gcmp_text_explain(struct gcmp_text *text, const struct gradcmp_pair_report *pair,
                       const struct gradcmp_parameter_report *parameter) {
    switch (parameter->verdict) {
    case GRADCMP_VERDICT_SHAPE:
        gcmp_text_add(text, "the shapes differ: baseline ");
        add_side(text, parameter, true);
        gcmp_text_add(text, ", candidate ");
        add_side(text, parameter, false);
        break;
    case GRADCMP_VERDICT_MISSING:
        gcmp_text_add(text, "only the baseline has it: ");
        add_side(text, parameter, true);
        break;
    case GRADCMP_VERDICT_EXTRA:
        gcmp_text_add(text, "only the candidate has it: ");
        add_side(text, parameter, false);
        break;
    case GRADCMP_VERDICT_CONFLICT:
        gcmp_text_add(text, "its copies differ by more than the bound");
        break;
    case GRADCMP_VERDICT_NONFINITE:
        explain_nonfinite(text, parameter);
        break;
    case GRADCMP_VERDICT_SCALE:
        explain_scale(text, pair, parameter);
        break;
    case GRADCMP_VERDICT_FAIL:
    case GRADCMP_VERDICT_UNJUDGED:
    case GRADCMP_VERDICT_PASS:
        explain_fail(text, pair, parameter);
        break;
    }
    if (parameter->copies_note != NULL) {
        gcmp_text_addf(text, "; %s", parameter->copies_note);
    }
}

/* Where the largest difference is, and how alike the two are otherwise. */
static void add_details(struct gcmp_text *text, const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    double max_abs = gcmp_max_abs(parameter);
    if (isnan(max_abs)) {
        return;
    }
    uint64_t shape[GRADCMP_MAX_NDIM], index[GRADCMP_MAX_NDIM];
    unsigned ndim = gcmp_compared_shape(parameter, shape);
    gcmp_unravel(parameter->tally.max_d_index, ndim, shape, index);
    gcmp_text_addf(text, "; largest difference %s at ", gcmp_figure(figure, max_abs));
    gcmp_text_add_shape(text, ndim, index);
    gcmp_text_addf(text, ", cosine %s", gcmp_figure_error(figure, parameter->cosine));
    gcmp_text_addf(text, ", norms %s", gcmp_figure_error(figure, parameter->norm_a));
    gcmp_text_addf(text, " and %s", gcmp_figure_error(figure, parameter->norm_b));
    gcmp_text_addf(text, ", %s of", gcmp_figure_count(figure, parameter->tally.equal_bits));
    gcmp_text_addf(text, " %s elements have equal bits",
                   gcmp_figure_count(figure, parameter->tally.elems));
}

static void add_entry(struct gcmp_page *page, const struct gcmp_pair_view *view,
                      const struct gradcmp_parameter_report *parameter) {
    const char *verdict = gradcmp_verdict_name(parameter->verdict);
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_page_add(page, "  ");
    gcmp_page_ink(page, gcmp_verdict_ink(parameter->verdict), verdict);
    gcmp_page_pad(page, strlen(verdict), VERDICT_COLUMNS + 1);
    gcmp_page_name(page, parameter->name);
    gcmp_page_end_line(page);
    gcmp_page_pad(page, 0, INDENT_COLUMNS);
    gcmp_text_explain(&text, view->pair, parameter);
    if (page->verbose) {
        add_details(&text, parameter);
    }
    gcmp_page_wrap(page, INDENT_COLUMNS, INDENT_COLUMNS, text.bytes == NULL ? "" : text.bytes);
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
}

static void add_legend(struct gcmp_page *page) {
    gcmp_page_wrap(page, 0, 0,
                   "error = |candidate - baseline| / |baseline|, by norms; alpha = the factor that "
                   "brings the baseline closest to the candidate.");
}

static void add_failing(struct gcmp_page *page, const struct gcmp_pair_view *view, size_t bad) {
    char heading[160];
    size_t shown = bad < page->top ? bad : page->top;
    snprintf(heading, sizeof heading, "Failing parameters: %zu of %zu%s", bad, view->count,
             shown == 1 ? "" : ", the worst first");
    gcmp_page_heading(page, heading);
    bool has_figures = false;
    for (size_t i = 0; i < shown; i++) {
        add_entry(page, view, view->by_badness[i]);
        has_figures = has_figures || view->by_badness[i]->verdict == GRADCMP_VERDICT_FAIL ||
                      view->by_badness[i]->verdict == GRADCMP_VERDICT_SCALE;
    }
    if (shown < bad) {
        gcmp_page_addf(page, "  and %zu more (--top N lists N of them)", bad - shown);
        gcmp_page_end_line(page);
    }
    if (has_figures) {
        add_legend(page);
    }
}

static void add_unjudged(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    size_t unjudged = view->pair->verdict_counts[GRADCMP_VERDICT_UNJUDGED];
    if (unjudged == 0) {
        return;
    }
    char heading[200];
    snprintf(heading, sizeof heading, "Unjudged parameters: %zu of %zu%s", unjudged, view->count,
             page->verbose ? "" : " (--verbose lists them)");
    gcmp_page_heading(page, heading);
    gcmp_page_wrap(
        page, 0, 0,
        "Their gradients are zero on both sides, or so small against the rounding of "
        "their layer that nothing can be said. What makes such gradients larger, so that "
        "they can be judged: a smaller rotary base, more tokens in the step.");
    for (size_t i = 0; page->verbose && i < view->count; i++) {
        if (view->by_badness[i]->verdict == GRADCMP_VERDICT_UNJUDGED) {
            add_entry(page, view, view->by_badness[i]);
        }
    }
}

enum { TABLE_COLUMNS = 62 }; /* before the name */

/* Full names, which people search for: behind the figures where all of them fit, else on a line of
 * their own above them. */
static bool names_fit(const struct gcmp_page *page, const struct gcmp_pair_view *view) {
    for (size_t i = 0; i < view->count; i++) {
        if (gcmp_printable_columns(view->by_layer[i]->name) + TABLE_COLUMNS > page->width) {
            return false;
        }
    }
    return true;
}

static void add_table_row(struct gcmp_page *page, const struct gcmp_pair_view *view,
                          const struct gradcmp_parameter_report *parameter, bool is_one_line) {
    char error[GCMP_FIGURE_BYTES], eps[GCMP_FIGURE_BYTES], ratio[GCMP_FIGURE_BYTES],
        alpha[GCMP_FIGURE_BYTES], seen[GCMP_FIGURE_BYTES];
    double judged = gcmp_judged_rel(parameter);
    const char *verdict = gradcmp_verdict_name(parameter->verdict);
    if (!is_one_line) {
        gcmp_page_add(page, "     ");
        gcmp_page_name(page, parameter->name);
        gcmp_page_end_line(page);
    }
    gcmp_page_addf(page, "%4" PRId64 " ", parameter->layer);
    gcmp_page_ink(page, gcmp_verdict_ink(parameter->verdict), verdict);
    gcmp_page_pad(page, strlen(verdict), VERDICT_COLUMNS);
    gcmp_page_addf(
        page, " %9s %8s %8s %9s %8s", gcmp_figure_error(error, judged),
        gcmp_figure(eps, judged / view->pair->bound.eps), gcmp_figure(ratio, parameter->ratio),
        gcmp_figure_factor(alpha, parameter->alpha), gcmp_figure(seen, parameter->alpha_tolerance));
    if (is_one_line) {
        gcmp_page_add(page, "  ");
        gcmp_page_name(page, parameter->name);
    }
    gcmp_page_end_line(page);
}

static void add_table(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    gcmp_page_heading(page, "Every parameter");
    bool is_one_line = names_fit(page, view);
    gcmp_page_ink(
        page, GCMP_INK_DIM,
        is_one_line
            ? "   l verdict       error      eps  x bound     alpha      +/-  parameter"
            : "   l verdict       error      eps  x bound     alpha      +/-  parameter below");
    gcmp_page_end_line(page);
    for (size_t i = 0; i < view->count; i++) {
        add_table_row(page, view, view->by_layer[i], is_one_line);
    }
    gcmp_page_add(page, "+/-: alpha's tolerance, the smallest factor (less one) that is seen");
    gcmp_page_end_line(page);
}

void gcmp_text_failures(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    size_t bad = gcmp_bad_count(view->pair);
    if (bad > 0) {
        add_failing(page, view, bad);
    }
    add_unjudged(page, view);
    if (page->verbose && view->count > 0) {
        add_table(page, view);
    }
}

struct note_list {
    const char *origin;
    const char *const *notes;
    size_t count;
};

static void add_note(struct gcmp_page *page, const char *origin, const char *note) {
    gcmp_page_addf(page, "- %s", origin);
    gcmp_page_wrap(page, 2 + strlen(origin), 2, note);
}

void gcmp_text_notes(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    const struct gradcmp_catalogue *a = view->report->baseline, *b = view->pair->catalogue;
    const struct note_list lists[] = {
        {"", view->pair->notes, view->pair->note_count},
        {"baseline: ", a->notes, a->note_count},
        {"candidate: ", b == NULL ? NULL : b->notes, b == NULL ? 0 : b->note_count}};
    size_t total = lists[0].count + lists[1].count + lists[2].count, shown = 0;
    size_t limit = page->verbose ? total : NOTES_SHOWN;
    if (total > 0) {
        gcmp_page_heading(page, "Notes");
    }
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < lists[l].count && shown < limit; i++, shown++) {
            add_note(page, lists[l].origin, lists[l].notes[i]);
        }
    }
    if (shown < total) {
        gcmp_page_addf(page, "- and %zu more (--verbose)", total - shown);
        gcmp_page_end_line(page);
    }
}
