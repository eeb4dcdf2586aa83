/* The report of a comparison as Markdown, short enough for the comment of a merge request. */
#include <inttypes.h>
#include <math.h>

#include "report/facts.h"
#include "report/markdown.h"
#include "report/repeat.h"
#include "report/sweep_facts.h"
#include "report/text.h"

static const char *mark_of(enum gradcmp_outcome outcome) {
    static const char *const marks[] = {[GRADCMP_OUTCOME_CONSISTENT] = "\u2705",
                                        [GRADCMP_OUTCOME_INCONSISTENT] = "\u274c",
                                        [GRADCMP_OUTCOME_UNDECIDED] = "\u26a0\ufe0f",
                                        [GRADCMP_OUTCOME_VACUOUS] = "\u26a0\ufe0f",
                                        [GRADCMP_OUTCOME_ERROR] = "\u26a0\ufe0f"};
    return marks[outcome];
}

/* Of a plan it marks whether a row came out as expected. */
static const char *mark_of_row(const struct gradcmp_report *report, size_t row) {
    enum gradcmp_outcome outcome = report->pairs[row].outcome;
    if (report->sweep != NULL && report->sweep->rows[row].has_expected) {
        outcome = gcmp_sweep_row_status(report->sweep, row) == 0 ? GRADCMP_OUTCOME_CONSISTENT
                                                                 : GRADCMP_OUTCOME_INCONSISTENT;
    }
    return mark_of(outcome);
}

/* Add a text that was put together elsewhere, escaped. */
static void add_escaped(struct gcmp_text *text, struct gcmp_text *built) {
    gcmp_markdown_escape(text, built->bytes == NULL ? "" : built->bytes);
    text->failed = text->failed || built->failed;
    gcmp_text_free(built);
}

static void add_findings(struct gcmp_text *text, const struct gradcmp_pair_report *pair) {
    struct gcmp_text findings = GCMP_TEXT_INIT;
    gcmp_text_add_findings(&findings, pair);
    add_escaped(text, &findings);
}

static void add_expected(struct gcmp_text *text, const struct gradcmp_sweep *sweep, size_t row) {
    struct gcmp_text expected = GCMP_TEXT_INIT;
    if (sweep != NULL && sweep->rows[row].has_expected) {
        gcmp_text_add(text, "; ");
        gcmp_text_add_expected(&expected, sweep, row);
        add_escaped(text, &expected);
    }
}

static void add_candidates(struct gcmp_text *text, const struct gradcmp_report *report) {
    gcmp_text_add(text, "| | candidate | verdict | |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct gradcmp_pair_report *pair = &report->pairs[i];
        gcmp_text_addf(text, "| %s | ", mark_of_row(report, i));
        gcmp_markdown_code(text, gcmp_candidate_label(report, i));
        gcmp_text_addf(text, " | **%s** | ", gradcmp_outcome_name(pair->outcome));
        add_findings(text, pair);
        add_expected(text, report->sweep, i);
        gcmp_text_add(text, " |\n");
    }
}

static void add_parameter(struct gcmp_text *text, const struct gradcmp_pair_report *pair,
                          const struct gradcmp_parameter_report *parameter) {
    struct gcmp_text what = GCMP_TEXT_INIT;
    gcmp_text_addf(text, "| %s | %" PRId64 " | ", gradcmp_verdict_name(parameter->verdict),
                   parameter->layer);
    gcmp_markdown_code(text, parameter->name);
    gcmp_text_add(text, " | ");
    gcmp_text_explain(&what, pair, parameter);
    add_escaped(text, &what);
    gcmp_text_add(text, " | ");
    if (parameter->cause_count > 0) {
        gcmp_markdown_escape(text, parameter->causes[0].kind);
        gcmp_text_add(text, ": ");
        gcmp_markdown_escape(text, parameter->causes[0].text);
    }
    gcmp_text_add(text, " |\n");
}

/* The worst failing parameters of a pair, folded away. */
static void add_failing(struct gcmp_text *text, const struct gcmp_pair_view *view, size_t top) {
    size_t bad = view->count == 0 ? 0 : gcmp_bad_count(view->pair);
    if (bad == 0) {
        return;
    }
    size_t shown = bad < top ? bad : top;
    gcmp_text_addf(text, "\n<details><summary>%zu of %zu parameters fail in ", bad, view->count);
    gcmp_markdown_code(text, view->pair->path);
    gcmp_text_add(text, "</summary>\n\n| | l | parameter | | cause |\n"
                        "| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < shown; i++) {
        add_parameter(text, view->pair, view->by_badness[i]);
    }
    if (shown < bad) {
        gcmp_text_addf(text, "\nand %zu more\n", bad - shown);
    }
    gcmp_text_add(text, "\n</details>\n");
}

static void add_taken_over(struct gcmp_text *text, const struct gradcmp_report *report) {
    size_t count = 0;
    for (size_t i = 0; i < report->pair_count; i++) {
        count += report->pairs[i].taken_over;
    }
    if (count > 0) {
        gcmp_text_addf(text,
                       "\n%zu of %zu taken over: judged by an earlier sweep, unchanged since\n",
                       count, report->pair_count);
    }
}

static void add_foot(struct gcmp_text *text, const struct gradcmp_report *report) {
    struct gcmp_text command = GCMP_TEXT_INIT;
    gcmp_repeat_command(&command, report);
    gcmp_text_add(text, "\nbaseline ");
    gcmp_markdown_code(text, report->baseline_path);
    gcmp_text_add(text, "; again: ");
    gcmp_markdown_code(text, command.bytes == NULL ? "" : command.bytes);
    gcmp_text_addf(text, " (gradcmp %s)\n", gradcmp_version());
    text->failed = text->failed || command.failed;
    gcmp_text_free(&command);
}

/* What a sweep found beside its comparisons. */
static void add_sweep(struct gcmp_text *text, const struct gradcmp_sweep *sweep) {
    for (size_t i = 0; i < sweep->left_count; i++) {
        gcmp_text_add(text, "\nleft out: ");
        gcmp_markdown_escape(text, sweep->left[i].text);
        gcmp_text_add(text, "\n");
    }
    for (size_t i = 0; i < gcmp_sweep_finding_count(sweep); i++) {
        struct gcmp_sweep_finding finding = gcmp_sweep_finding(sweep, i);
        if (i == 0) {
            gcmp_text_addf(text, "\n%s:\n\n", gcmp_sweep_findings_title(sweep));
        }
        gcmp_text_add(text, "- ");
        gcmp_markdown_code(text, finding.label);
        gcmp_text_add(text, ": ");
        gcmp_markdown_escape(text, finding.text);
        gcmp_text_add(text, "\n");
    }
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        struct gcmp_text found = GCMP_TEXT_INIT;
        gcmp_text_add(text, i == 0 ? "\nRepeats of one configuration, bit for bit:\n\n" : "");
        gcmp_text_add(text, "- ");
        gcmp_markdown_code(text, sweep->repeats[i].label_b);
        gcmp_text_add(text, " against ");
        gcmp_markdown_code(text, sweep->repeats[i].label_a);
        gcmp_text_add(text, ": ");
        gcmp_text_add_repeat(&found, &sweep->repeats[i]);
        add_escaped(text, &found);
        gcmp_text_add(text, "\n");
    }
}

/* "### (mark) gradcmp compare: **inconsistent**"; of a sweep, its summary too. */
static void add_heading(struct gcmp_text *text, const struct gradcmp_report *report) {
    enum gradcmp_outcome overall = gcmp_overall_outcome(report);
    struct gcmp_text summary = GCMP_TEXT_INIT;
    if (report->sweep == NULL) {
        gcmp_text_addf(text, "<!-- gradcmp -->\n### %s gradcmp compare: **%s**\n\n",
                       mark_of(overall),
                       report->unfinished > 0 ? "interrupted" : gradcmp_outcome_name(overall));
        gcmp_text_add_unfinished(text, report);
        gcmp_text_add(text, report->unfinished > 0 ? "\n\n" : "");
        return;
    }
    int status = gradcmp_sweep_exit_status(report->sweep);
    overall = status == 0   ? GRADCMP_OUTCOME_CONSISTENT
              : status == 1 ? GRADCMP_OUTCOME_INCONSISTENT
                            : GRADCMP_OUTCOME_ERROR;
    gcmp_text_addf(text, "<!-- gradcmp -->\n### %s gradcmp sweep: **%s**\n\n", mark_of(overall),
                   gcmp_sweep_word(report->sweep));
    gcmp_text_add_sweep_summary(&summary, report->sweep);
    add_escaped(text, &summary);
    gcmp_text_add(text, "\n\n");
}

static void add_report(struct gcmp_out *out, const struct gradcmp_report *report,
                       const struct gradcmp_document_options *options) {
    add_heading(&out->text, report);
    add_candidates(&out->text, report);
    add_taken_over(&out->text, report);
    if (report->sweep != NULL) {
        add_sweep(&out->text, report->sweep);
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        struct gcmp_pair_view view;
        if (gcmp_pair_view_init(&view, report, &report->pairs[i], NULL) == GRADCMP_OK) {
            add_failing(&out->text, &view, options->top);
        } else {
            out->text.failed = true;
        }
        gcmp_pair_view_free(&view);
        gcmp_out_drain(out);
    }
    add_foot(&out->text, report);
}

enum gradcmp_status gradcmp_report_write_markdown(const struct gradcmp_report *report,
                                                  const struct gradcmp_document_options *options,
                                                  gradcmp_write_fn write, void *user,
                                                  struct gradcmp_error *error) {
    struct gradcmp_document_options own = gcmp_document_options(options, GCMP_MARKDOWN_TOP);
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    add_report(&out, report, &own);
    return gcmp_out_end(&out, error);
}
