/* The head of the terminal report: what was recognised, and by what measure it is judged. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "report/facts.h"
#include "report/names.h"
#include "report/repeat.h"
#include "report/side.h"
#include "report/text.h"

enum { LABEL_COLUMNS = 14 };

static void add_label(struct gcmp_page *page, const char *label) {
    gcmp_page_ink(page, GCMP_INK_DIM, label);
    gcmp_page_pad(page, strlen(label), LABEL_COLUMNS);
}

static void add_path(struct gcmp_page *page, const char *label, const char *path) {
    add_label(page, label);
    gcmp_page_name(page, path);
    gcmp_page_end_line(page);
}

/* Both values side by side, or one below the other where they are long. */
static void add_both(struct gcmp_page *page, const struct gcmp_side_row *row, const char *a,
                     const char *b) {
    size_t columns = (page->width - LABEL_COLUMNS) / 2;
    bool is_known = a[0] != '\0' && b[0] != '\0';
    const char *left = a[0] == '\0' ? "not known" : a, *right = b[0] == '\0' ? "not known" : b;
    size_t used = gcmp_printable_columns(left);
    add_label(page, row->label);
    gcmp_page_add(page, left);
    if (used >= columns || gcmp_printable_columns(right) + 2 > columns) {
        gcmp_page_end_line(page);
        used = 0;
        columns = LABEL_COLUMNS;
    }
    gcmp_page_pad(page, used, columns);
    if (row->spoils && is_known) {
        gcmp_page_ink(page, GCMP_INK_DOUBT, "! ");
        gcmp_page_ink(page, GCMP_INK_DOUBT, right);
    } else {
        gcmp_page_add(page, right);
    }
    gcmp_page_end_line(page);
}

static void add_row(struct gcmp_page *page, const struct gcmp_side_row *row,
                    const struct gcmp_pair_view *view) {
    const struct gradcmp_catalogue *a = view->report->baseline, *b = view->pair->catalogue;
    struct gcmp_text left = GCMP_TEXT_INIT, right = GCMP_TEXT_INIT;
    row->add(&left, a, page->utf8);
    row->add(&right, b, page->utf8);
    const char *text_a = left.bytes == NULL ? "" : left.bytes;
    const char *text_b = right.bytes == NULL ? "" : right.bytes;
    if (strcmp(text_a, text_b) != 0) {
        add_both(page, row, text_a, text_b);
    } else if (text_a[0] != '\0' && !view->only_differences) {
        size_t columns = (page->width - LABEL_COLUMNS) / 2;
        add_label(page, row->label);
        gcmp_page_add(page, text_a);
        gcmp_page_pad(page, gcmp_printable_columns(text_a), columns - 1);
        gcmp_page_ink(page, GCMP_INK_DIM, " same");
        gcmp_page_end_line(page);
    }
    page->out.text.failed = page->out.text.failed || left.failed || right.failed;
    gcmp_text_free(&left);
    gcmp_text_free(&right);
}

static void add_sides(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    gcmp_page_end_line(page);
    add_label(page, "");
    gcmp_page_ink(page, GCMP_INK_DIM, "baseline");
    gcmp_page_pad(page, strlen("baseline"), (page->width - LABEL_COLUMNS) / 2);
    gcmp_page_ink(page, GCMP_INK_DIM, "candidate");
    gcmp_page_end_line(page);
    for (const struct gcmp_side_row *row = gcmp_side_rows; row->label != NULL; row++) {
        add_row(page, row, view);
    }
}

static void add_wrapped(struct gcmp_page *page, const char *label, struct gcmp_text *text) {
    add_label(page, label);
    gcmp_page_wrap(page, LABEL_COLUMNS, LABEL_COLUMNS, text->bytes == NULL ? "" : text->bytes);
    page->out.text.failed = page->out.text.failed || text->failed;
    gcmp_text_free(text);
}

void gcmp_text_add_compared(struct gcmp_text *text, const struct gradcmp_report *report,
                            const struct gradcmp_pair_report *pair) {
    char figure[GCMP_FIGURE_BYTES];
    gcmp_text_addf(text, "%s of %zu parameter%s", report->state, pair->parameter_count,
                   pair->parameter_count == 1 ? "" : "s");
    gcmp_text_addf(text, ", %s elements", gcmp_figure_count(figure, pair->compared_elems));
    gcmp_text_addf(text, ", %s in files", gcmp_figure_bytes(figure, pair->bytes));
}

void gcmp_text_add_norms(struct gcmp_text *text, const struct gradcmp_pair_report *pair) {
    char figure[GCMP_FIGURE_BYTES];
    gcmp_text_addf(text, "%s in the baseline", gcmp_figure_error(figure, pair->norm_a));
    gcmp_text_addf(text, ", %s in the candidate", gcmp_figure_error(figure, pair->norm_b));
    if (pair->norm_a > 0.0) {
        gcmp_text_addf(text, ", ratio %s", gcmp_figure_factor(figure, pair->norm_b / pair->norm_a));
    }
}

/* 2^-7 where it is one, else digits. */
static void add_power(struct gcmp_text *text, double value) {
    int exponent;
    char figure[GCMP_FIGURE_BYTES];
    if (value > 0.0 && isfinite(value) && frexp(value, &exponent) == 0.5) {
        gcmp_text_addf(text, "2^%d", exponent - 1);
    } else {
        gcmp_text_add(text, gcmp_figure(figure, value));
    }
}

/* The formula of bounds/bounds.h, for the head only: verdicts use each parameter's own bound. */
static double bound_after(const struct gradcmp_bound *bound, double steps) {
    return fmin(bound->k * pow(bound->C, steps) * bound->eps, bound->cap);
}

static void add_formula(struct gcmp_text *text, const struct gradcmp_bound *bound,
                        const char *exponent) {
    char figure[GCMP_FIGURE_BYTES];
    gcmp_text_addf(text, "min(%s", gcmp_figure_setting(figure, bound->k));
    gcmp_text_addf(text, " * %s^%s * ", gcmp_figure_setting(figure, bound->C), exponent);
    add_power(text, bound->eps);
    gcmp_text_addf(text, ", %s)", gcmp_figure_setting(figure, bound->cap));
}

void gcmp_text_add_bound(struct gcmp_text *text, const struct gradcmp_bound *bound) {
    char figure[GCMP_FIGURE_BYTES];
    if (bound->constant) {
        char depth[8];
        snprintf(depth, sizeof depth, "%d", GRADCMP_CONSTANT_LAYERS + 1);
        add_formula(text, bound, depth);
        gcmp_text_addf(text, " = %s on every layer",
                       gcmp_figure(figure, bound_after(bound, GRADCMP_CONSTANT_LAYERS + 1)));
        return;
    }
    add_formula(text, bound, "(L+1-l)");
    gcmp_text_addf(text, ", L = %" PRIu64 ":", bound->layers);
    gcmp_text_addf(text, " %s at the loss", gcmp_figure(figure, bound_after(bound, 0)));
    gcmp_text_addf(text, " ... %s at the embeddings",
                   gcmp_figure(figure, bound_after(bound, (double)bound->layers + 1.0)));
    if (bound->fit != NULL) {
        gcmp_text_addf(text, "; fitted to %zu %s known to be good", bound->fit->pair_count,
                       bound->fit->pair_count == 1 ? "pair" : "pairs");
    }
}

void gcmp_text_add_precision(struct gcmp_text *text, const struct gradcmp_report *report,
                             const struct gradcmp_pair_report *pair) {
    const struct gradcmp_bound *bound = &pair->bound;
    gcmp_text_addf(text, "%s, eps = ", gradcmp_dtype_name(bound->dtype));
    add_power(text, bound->eps);
    if (bound->constant && bound->eps != gcmp_dtype_eps(bound->dtype)) {
        gcmp_text_add(text, " of bfloat16");
    }
    gcmp_text_addf(text, " (%s)", gcmp_dtype_source_text(bound->dtype_source));
    if (report->baseline_bound.dtype != bound->dtype) {
        gcmp_text_addf(text, "; the coarser of both, the baseline computed in %s",
                       gradcmp_dtype_name(report->baseline_bound.dtype));
    }
}

void gcmp_text_add_common(struct gcmp_text *text, const struct gradcmp_pair_report *pair) {
    char figure[GCMP_FIGURE_BYTES];
    if (!isnan(pair->common_factor)) {
        gcmp_text_addf(
            text,
            "ALL gradients of the candidate are %s times the baseline's. This factor is "
            "divided out below. It usually comes from gradient clipping, from averaging over "
            "ranks or tokens, or from the loss scale",
            gcmp_figure_common(figure, pair->common_factor));
    }
}

static void add_options(struct gcmp_page *page, const struct gradcmp_options *options) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_repeat_options(&text, options);
    if (text.length_bytes > 0) {
        add_wrapped(page, "options", &text);
    }
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
}

static void add_measure(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    struct gcmp_text compared = GCMP_TEXT_INIT, norms = GCMP_TEXT_INIT, precision = GCMP_TEXT_INIT,
                     bound = GCMP_TEXT_INIT;
    gcmp_text_add_compared(&compared, view->report, view->pair);
    add_wrapped(page, "compared", &compared);
    gcmp_text_add_norms(&norms, view->pair);
    add_wrapped(page, "global norm", &norms);
    gcmp_text_add_precision(&precision, view->report, view->pair);
    add_wrapped(page, "computed in", &precision);
    gcmp_text_add_bound(&bound, &view->pair->bound);
    add_wrapped(page, view->pair->bound.constant ? "bound" : "bound(l)", &bound);
    add_options(page, &view->report->options);
    if (!isnan(view->pair->common_factor)) {
        struct gcmp_text common = GCMP_TEXT_INIT;
        gcmp_text_add_common(&common, view->pair);
        add_wrapped(page, "common factor", &common);
    }
}

void gcmp_text_head(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    add_path(page, "baseline", view->report->baseline_path);
    add_path(page, "candidate", view->pair->path);
    if (view->pair->outcome == GRADCMP_OUTCOME_ERROR) {
        return;
    }
    add_sides(page, view);
    gcmp_page_end_line(page);
    add_measure(page, view);
}
