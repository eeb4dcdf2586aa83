/* The report of a comparison as one HTML page. */
#include <stdio.h>
#include <string.h>

#include "report/facts.h"
#include "report/html_parts.h"
#include "report/html_plot.h"
#include "report/repeat.h"
#include "report/side.h"
#include "report/sweep_facts.h"

enum { MAX_DOTS = 6000 };

/* A row of the list of figures; frees the text. */
static void add_figure(struct gcmp_markup *html, const char *label, struct gcmp_text *text) {
    if (text->length_bytes > 0) {
        gcmp_markup_element(html, "dt", label, NULL);
        gcmp_markup_element(html, "dd", text->bytes, NULL);
    }
    html->out->text.failed = html->out->text.failed || text->failed;
    gcmp_text_free(text);
}

static void add_figures(struct gcmp_markup *html, const struct gradcmp_report *report,
                        const struct gradcmp_pair_report *pair) {
    struct gcmp_text compared = GCMP_TEXT_INIT, norms = GCMP_TEXT_INIT, precision = GCMP_TEXT_INIT,
                     bound = GCMP_TEXT_INIT, common = GCMP_TEXT_INIT, options = GCMP_TEXT_INIT;
    gcmp_text_add_compared(&compared, report, pair);
    gcmp_text_add_norms(&norms, pair);
    gcmp_text_add_precision(&precision, report, pair);
    gcmp_text_add_bound(&bound, &pair->bound);
    gcmp_text_add_common(&common, pair);
    gcmp_repeat_options(&options, &report->options);
    gcmp_markup_open_line(html, "dl", "class", "figures", NULL);
    add_figure(html, "compared", &compared);
    add_figure(html, "global norm", &norms);
    add_figure(html, "computed in", &precision);
    add_figure(html, pair->bound.constant ? "bound" : "bound(l)", &bound);
    add_figure(html, "options", &options);
    add_figure(html, "common factor", &common);
    gcmp_markup_close(html);
}

/* One line of what both sides say of themselves; left out where neither says anything. */
static void add_side_row(struct gcmp_markup *html, const struct gcmp_side_row *row,
                         const struct gradcmp_catalogue *a, const struct gradcmp_catalogue *b) {
    struct gcmp_text left = GCMP_TEXT_INIT, right = GCMP_TEXT_INIT;
    gcmp_text_add(&left, "");
    gcmp_text_add(&right, "");
    row->add(&left, a, true);
    row->add(&right, b, true);
    if (!left.failed && !right.failed && left.length_bytes + right.length_bytes > 0) {
        bool is_known = left.length_bytes > 0 && right.length_bytes > 0;
        bool differs = strcmp(left.bytes, right.bytes) != 0;
        gcmp_markup_open_line(html, "tr", NULL);
        gcmp_markup_element(html, "th", row->label, "scope", "row", NULL);
        gcmp_markup_element(html, "td", left.length_bytes > 0 ? left.bytes : "not known", NULL);
        gcmp_markup_element(html, "td", right.length_bytes > 0 ? right.bytes : "not known", "class",
                            differs && is_known && row->spoils ? "d" : NULL, NULL);
        gcmp_markup_close(html);
    }
    html->out->text.failed = html->out->text.failed || left.failed || right.failed;
    gcmp_text_free(&left);
    gcmp_text_free(&right);
}

static void add_sides(struct gcmp_markup *html, const struct gradcmp_report *report,
                      const struct gradcmp_pair_report *pair) {
    gcmp_markup_open_line(html, "div", "class", "wide", NULL);
    gcmp_markup_open(html, "table", "class", "sides", NULL);
    gcmp_markup_open(html, "tbody", NULL);
    gcmp_markup_open_line(html, "tr", NULL);
    gcmp_markup_element(html, "th", "", "scope", "row", NULL);
    gcmp_markup_open(html, "td", "class", "path", NULL);
    gcmp_markup_element(html, "strong", "baseline", NULL);
    gcmp_markup_text(html, " ");
    gcmp_markup_element(html, "code", report->baseline_path, NULL);
    gcmp_markup_close(html);
    gcmp_markup_open(html, "td", "class", "path", NULL);
    gcmp_markup_element(html, "strong", "candidate", NULL);
    gcmp_markup_text(html, " ");
    gcmp_markup_element(html, "code", pair->path, NULL);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    for (const struct gcmp_side_row *row = gcmp_side_rows;
         row->label != NULL && pair->catalogue != NULL; row++) {
        add_side_row(html, row, report->baseline, pair->catalogue);
    }
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
}

static void add_findings(struct gcmp_markup *html, const struct gradcmp_report *report,
                         size_t index) {
    const struct gradcmp_pair_report *pair = &report->pairs[index];
    struct gcmp_text findings = GCMP_TEXT_INIT;
    gcmp_text_add_findings(&findings, pair);
    if (report->sweep != NULL && report->sweep->rows[index].has_expected) {
        gcmp_text_add(&findings, " (");
        gcmp_text_add_expected(&findings, report->sweep, index);
        gcmp_text_add(&findings, ")");
    }
    gcmp_markup_open_line(html, "p", "class", "summary", NULL);
    gcmp_html_word(html, gcmp_outcome_tone(pair->outcome), gradcmp_outcome_name(pair->outcome));
    gcmp_markup_text(html, " ");
    gcmp_markup_text(html, findings.bytes == NULL ? "" : findings.bytes);
    gcmp_markup_close(html);
    html->out->text.failed = html->out->text.failed || findings.failed;
    gcmp_text_free(&findings);
}

static void add_origin_notes(struct gcmp_markup *html, const char *origin,
                             const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 0; catalogue != NULL && i < catalogue->note_count; i++) {
        gcmp_markup_open_line(html, "li", NULL);
        gcmp_markup_text(html, origin);
        gcmp_markup_text(html, catalogue->notes[i]);
        gcmp_markup_close(html);
    }
}

static void add_notes(struct gcmp_markup *html, const struct gradcmp_report *report,
                      const struct gradcmp_pair_report *pair) {
    size_t of_sides =
        report->baseline->note_count + (pair->catalogue == NULL ? 0 : pair->catalogue->note_count);
    gcmp_html_notes(html, pair->notes, pair->note_count);
    if (of_sides > 0) {
        gcmp_markup_open_line(html, "ul", NULL);
        add_origin_notes(html, "baseline: ", report->baseline);
        add_origin_notes(html, "candidate: ", pair->catalogue);
        gcmp_markup_close(html);
    }
}

/* How much of each candidate is shown. */
struct share {
    size_t faults, layer_dots;
};

static struct share divide(const struct gradcmp_report *report, size_t top) {
    size_t dots = 0, layers = 0;
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct gradcmp_pair_report *pair = &report->pairs[i];
        bool is_drawn = pair->outcome != GRADCMP_OUTCOME_ERROR;
        dots += is_drawn ? pair->parameter_count : 0;
        layers += is_drawn ? (size_t)pair->bound.layers + 2 : 0;
    }
    struct share share = {top, SIZE_MAX};
    if (report->pair_count > 1) {
        share.faults = top / report->pair_count < 3 ? 3 : top / report->pair_count;
    }
    if (dots > MAX_DOTS) {
        share.layer_dots = layers < MAX_DOTS ? MAX_DOTS / layers : 1;
    }
    return share;
}

/* Whether there is a matrix, and each candidate has a heading of its own. */
static bool has_many(const struct gradcmp_report *report) {
    return report->pair_count + report->unfinished > 1 || report->sweep != NULL;
}

static void add_pair(struct gcmp_markup *html, const struct gradcmp_report *report, size_t index,
                     const struct share *share) {
    const struct gradcmp_pair_report *pair = &report->pairs[index];
    struct gcmp_pair_view view;
    char id[40];
    if (has_many(report)) {
        snprintf(id, sizeof id, "candidate%zu", index + 1);
        gcmp_markup_open_line(html, "h2", "id", id, NULL);
        gcmp_markup_textf(html, "%zu: ", index + 1);
        gcmp_markup_text(html, gcmp_candidate_label(report, index));
        gcmp_markup_close(html);
        add_findings(html, report, index);
    }
    if (pair->outcome == GRADCMP_OUTCOME_ERROR) {
        return;
    }
    if (gcmp_pair_view_init(&view, report, pair, NULL) == GRADCMP_OK) {
        gcmp_html_plot(html, &view, share->layer_dots);
        gcmp_html_faults(html, &view, share->faults);
        gcmp_markup_element(html, "h3", "What was compared", NULL);
        add_sides(html, report, pair);
        add_figures(html, report, pair);
        add_notes(html, report, pair);
    } else {
        html->out->text.failed = true;
    }
    gcmp_pair_view_free(&view);
}

static void add_command(struct gcmp_markup *html, const struct gradcmp_report *report) {
    struct gcmp_text command = GCMP_TEXT_INIT;
    gcmp_repeat_command(&command, report);
    gcmp_markup_element(html, "h2", "To repeat it", NULL);
    gcmp_markup_element(html, "pre", command.bytes == NULL ? "" : command.bytes, "id", "command",
                        NULL);
    gcmp_markup_open_line(html, "div", "class", "scripted tools", NULL);
    gcmp_markup_element(html, "button", "copy", "id", "copy", "type", "button", NULL);
    gcmp_markup_close(html);
    html->out->text.failed = html->out->text.failed || command.failed;
    gcmp_text_free(&command);
}

/* "3 candidates: 1 consistent, 2 inconsistent", or what the only one came to. */
static void summarize(struct gcmp_text *text, const struct gradcmp_report *report) {
    if (report->sweep != NULL) {
        gcmp_text_add_sweep_summary(text, report->sweep);
        return;
    }
    if (report->unfinished > 0) {
        gcmp_text_add_unfinished(text, report);
        return;
    }
    if (report->pair_count == 1) {
        gcmp_text_add_findings(text, report->pairs);
        return;
    }
    gcmp_text_addf(text, "%zu candidates", report->pair_count);
    gcmp_text_add_outcomes(text, report, ": ");
}

static struct gcmp_html_head head_of(const struct gradcmp_report *report, const char *summary) {
    enum gradcmp_outcome overall = gcmp_overall_outcome(report);
    if (report->sweep != NULL) {
        return (struct gcmp_html_head){
            .title = "gradcmp sweep",
            .verdict = gcmp_sweep_word(report->sweep),
            .tone = gcmp_status_tone(gradcmp_sweep_exit_status(report->sweep)),
            .summary = summary};
    }
    return (struct gcmp_html_head){
        .title = "gradcmp compare",
        .verdict = report->unfinished > 0 ? "interrupted" : gradcmp_outcome_name(overall),
        .tone = gcmp_outcome_tone(overall),
        .summary = summary};
}

static void add_report(struct gcmp_out *out, const struct gradcmp_report *report,
                       const struct gradcmp_document_options *options) {
    struct gcmp_markup html;
    struct gcmp_text summary = GCMP_TEXT_INIT;
    struct share share = divide(report, options->top);
    summarize(&summary, report);
    struct gcmp_html_head head = head_of(report, summary.bytes);
    gcmp_html_open(&html, out, &head);
    if (report->sweep != NULL) {
        gcmp_html_sweep_head(&html, report->sweep);
    }
    if (has_many(report)) {
        gcmp_html_matrix(&html, report);
    }
    if (report->sweep != NULL) {
        gcmp_html_sweep_findings(&html, report->sweep);
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        add_pair(&html, report, i, &share);
    }
    gcmp_html_table(&html, report, options->rows);
    add_command(&html, report);
    gcmp_html_close(&html);
    out->text.failed = out->text.failed || summary.failed;
    gcmp_text_free(&summary);
}

enum gradcmp_status gradcmp_report_write_html(const struct gradcmp_report *report,
                                              const struct gradcmp_document_options *options,
                                              gradcmp_write_fn write, void *user,
                                              struct gradcmp_error *error) {
    struct gradcmp_document_options own = gcmp_document_options(options, GCMP_HTML_TOP);
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    add_report(&out, report, &own);
    return gcmp_out_end(&out, error);
}
