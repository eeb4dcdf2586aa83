/* The report of a comparison as Markdown, short enough for the comment of a merge request. */
#include <inttypes.h>
#include <math.h>

#include "report/facts.h"
#include "report/markdown.h"
#include "report/repeat.h"
#include "report/text.h"

static const char *mark_of(enum gradcmp_outcome outcome) {
    static const char *const marks[] = {[GRADCMP_OUTCOME_CONSISTENT] = "\u2705",
                                        [GRADCMP_OUTCOME_INCONSISTENT] = "\u274c",
                                        [GRADCMP_OUTCOME_UNDECIDED] = "\u26a0\ufe0f",
                                        [GRADCMP_OUTCOME_VACUOUS] = "\u26a0\ufe0f",
                                        [GRADCMP_OUTCOME_ERROR] = "\u26a0\ufe0f"};
    return marks[outcome];
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

static void add_candidates(struct gcmp_text *text, const struct gradcmp_report *report) {
    gcmp_text_add(text, "| | candidate | verdict | |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct gradcmp_pair_report *pair = &report->pairs[i];
        gcmp_text_addf(text, "| %s | ", mark_of(pair->outcome));
        gcmp_markdown_code(text, pair->path);
        gcmp_text_addf(text, " | **%s** | ", gradcmp_outcome_name(pair->outcome));
        add_findings(text, pair);
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
    gcmp_repeat_compare(&command, report);
    gcmp_text_add(text, "\nbaseline ");
    gcmp_markdown_code(text, report->baseline_path);
    gcmp_text_add(text, "; again: ");
    gcmp_markdown_code(text, command.bytes == NULL ? "" : command.bytes);
    gcmp_text_addf(text, " (gradcmp %s)\n", gradcmp_version());
    text->failed = text->failed || command.failed;
    gcmp_text_free(&command);
}

static void add_report(struct gcmp_out *out, const struct gradcmp_report *report,
                       const struct gradcmp_document_options *options) {
    enum gradcmp_outcome overall = gcmp_overall_outcome(report);
    gcmp_text_addf(&out->text, "<!-- gradcmp -->\n### %s gradcmp compare: **%s**\n\n",
                   mark_of(overall), gradcmp_outcome_name(overall));
    add_candidates(&out->text, report);
    add_taken_over(&out->text, report);
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
