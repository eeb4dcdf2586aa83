/* The terminal report: one page for each candidate, a summary of several, and the last line. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/facts.h"
#include "report/sweep_facts.h"
#include "report/text.h"

enum { DEFAULT_TOP = 20 };

static int compare_by_badness(const void *left, const void *right) {
    return gcmp_compare_badness(*(const struct gradcmp_parameter_report *const *)left,
                                *(const struct gradcmp_parameter_report *const *)right);
}

static int compare_by_layer(const void *left, const void *right) {
    const struct gradcmp_parameter_report *a =
        *(const struct gradcmp_parameter_report *const *)left;
    const struct gradcmp_parameter_report *b =
        *(const struct gradcmp_parameter_report *const *)right;
    if (a->layer != b->layer) {
        return a->layer > b->layer ? -1 : 1;
    }
    return gcmp_compare_badness(a, b);
}

enum gradcmp_status gcmp_pair_view_init(struct gcmp_pair_view *view,
                                        const struct gradcmp_report *report,
                                        const struct gradcmp_pair_report *pair,
                                        struct gradcmp_error *error) {
    size_t count = pair->outcome == GRADCMP_OUTCOME_ERROR ? 0 : pair->parameter_count;
    *view = (struct gcmp_pair_view){.report = report, .pair = pair, .count = count};
    view->by_badness = calloc(count + 1, sizeof *view->by_badness);
    view->by_layer = calloc(count + 1, sizeof *view->by_layer);
    if (view->by_badness == NULL || view->by_layer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        view->by_badness[i] = &pair->parameters[i];
        view->by_layer[i] = &pair->parameters[i];
    }
    qsort(view->by_badness, count, sizeof *view->by_badness, compare_by_badness);
    qsort(view->by_layer, count, sizeof *view->by_layer, compare_by_layer);
    return GRADCMP_OK;
}

void gcmp_pair_view_free(struct gcmp_pair_view *view) {
    free(view->by_badness);
    free(view->by_layer);
}

static enum gradcmp_status add_pair(struct gcmp_page *page, const struct gradcmp_report *report,
                                    const struct gradcmp_pair_report *pair,
                                    struct gradcmp_error *error) {
    struct gcmp_pair_view view;
    enum gradcmp_status status = gcmp_pair_view_init(&view, report, pair, error);
    if (status == GRADCMP_OK) {
        view.only_differences = pair != report->pairs && !page->verbose;
        gcmp_text_head(page, &view);
        gcmp_text_layers(page, &view);
        gcmp_text_failures(page, &view);
        gcmp_text_causes(page, &view);
        if (pair->outcome != GRADCMP_OUTCOME_ERROR) {
            gcmp_text_notes(page, &view);
        }
        gcmp_page_end_line(page);
        gcmp_text_verdict(page, pair);
    }
    gcmp_pair_view_free(&view);
    return status;
}

static void add_separator(struct gcmp_page *page, size_t index, size_t count) {
    char line[80];
    if (index > 0) {
        gcmp_page_end_line(page);
    }
    snprintf(line, sizeof line, "==== candidate %zu of %zu ====", index + 1, count);
    gcmp_page_ink(page, GCMP_INK_BOLD, line);
    gcmp_page_end_line(page);
}

static void add_named_findings(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    if (pair->outcome != GRADCMP_OUTCOME_ERROR) { /* an error names the file itself */
        gcmp_page_name(page, pair->path);
        gcmp_page_add(page, ": ");
    }
    gcmp_text_findings(page, pair);
}

static double worst_ratio(const struct gradcmp_pair_report *pair) {
    return pair->worst < pair->parameter_count ? pair->parameters[pair->worst].ratio : NAN;
}

enum { OUTCOME_COLUMNS = 14, SUMMARY_RATIO_COLUMNS = 9, ONSET_COLUMNS = 26 };

/* "  from layer 8, scale", in what is left of the line. */
static void add_onset(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    if (pair->onset_layer >= 0) {
        gcmp_page_addf(page, "  from layer %" PRId64, pair->onset_layer);
    }
    if (pair->outcome == GRADCMP_OUTCOME_INCONSISTENT && pair->cause.kind != NULL) {
        gcmp_page_addf(page, "%s%s", pair->onset_layer >= 0 ? ", " : "  ", pair->cause.kind);
    }
}

/* One line a candidate; what each came to in full stands in its own part above. */
static void add_summary_row(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    char ratio[GCMP_FIGURE_BYTES];
    size_t name = page->width - OUTCOME_COLUMNS - SUMMARY_RATIO_COLUMNS - ONSET_COLUMNS;
    gcmp_text_outcome(page, pair->outcome);
    gcmp_page_pad(page, strlen(gradcmp_outcome_name(pair->outcome)), OUTCOME_COLUMNS);
    if (pair->outcome == GRADCMP_OUTCOME_ERROR) {
        gcmp_page_name(page, pair->path);
    } else {
        gcmp_page_name_in(page, pair->path, name);
        gcmp_page_addf(page, "%*s", (int)SUMMARY_RATIO_COLUMNS,
                       gcmp_figure(ratio, worst_ratio(pair)));
        add_onset(page, pair);
    }
    gcmp_page_end_line(page);
}

static void add_summary(struct gcmp_page *page, const struct gradcmp_report *report) {
    size_t name = page->width - OUTCOME_COLUMNS - SUMMARY_RATIO_COLUMNS - ONSET_COLUMNS;
    char line[GCMP_PAGE_MAX_WIDTH + 64];
    gcmp_page_heading(page, "==== summary ====");
    snprintf(line, sizeof line, "%-*s%-*s%*s", (int)OUTCOME_COLUMNS, "verdict", (int)name,
             "candidate", (int)SUMMARY_RATIO_COLUMNS, "x bound");
    gcmp_page_ink(page, GCMP_INK_DIM, line);
    gcmp_page_end_line(page);
    for (size_t i = 0; i < report->pair_count; i++) {
        add_summary_row(page, &report->pairs[i]);
    }
    gcmp_page_end_line(page);
}

/* The candidate that decides the outcome of all; of several, the one that is furthest off. */
static const struct gradcmp_pair_report *deciding_pair(const struct gradcmp_report *report) {
    const struct gradcmp_pair_report *decides = NULL;
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct gradcmp_pair_report *pair = &report->pairs[i];
        if (pair->outcome == gcmp_overall_outcome(report) &&
            (decides == NULL || worst_ratio(pair) > worst_ratio(decides))) {
            decides = pair;
        }
    }
    return decides;
}

/* The last line of several candidates: how many had which outcome, and the one that decides. */
static void add_overall(struct gcmp_page *page, const struct gradcmp_report *report) {
    struct gcmp_text outcomes = GCMP_TEXT_INIT;
    if (report->unfinished > 0) {
        gcmp_page_ink(page, GCMP_INK_DOUBT, "INTERRUPTED");
    } else {
        gcmp_text_outcome(page, gcmp_overall_outcome(report));
    }
    gcmp_page_addf(page, ": of %zu candidates", report->pair_count + report->unfinished);
    gcmp_text_add_outcomes(&outcomes, report, " ");
    gcmp_page_add(page, outcomes.bytes == NULL ? "" : outcomes.bytes);
    page->out.text.failed = page->out.text.failed || outcomes.failed;
    gcmp_text_free(&outcomes);
    if (report->unfinished > 0) {
        gcmp_page_addf(page, "; %zu not judged", report->unfinished);
    }
    const struct gradcmp_pair_report *decides = deciding_pair(report);
    if (decides != NULL) {
        gcmp_page_add(page, "; ");
        add_named_findings(page, decides);
    }
    gcmp_page_end_line(page);
}

static enum gradcmp_status add_report(struct gcmp_page *page, const struct gradcmp_report *report,
                                      struct gradcmp_error *error) {
    for (size_t i = 0; i < report->pair_count; i++) {
        if (report->pair_count > 1) {
            add_separator(page, i, report->pair_count);
        }
        GCMP_TRY(add_pair(page, report, &report->pairs[i], error));
    }
    if (report->pair_count > 1) {
        add_summary(page, report);
    }
    if (report->pair_count != 1 || report->unfinished > 0) {
        add_overall(page, report);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_report_write_text(const struct gradcmp_report *report,
                                              const struct gradcmp_text_options *text,
                                              gradcmp_write_fn write, void *user,
                                              struct gradcmp_error *error) {
    struct gcmp_page page;
    gcmp_page_open(&page, text, DEFAULT_TOP);
    gcmp_out_begin(&page.out, write, user);
    enum gradcmp_status status = add_report(&page, report, error);
    enum gradcmp_status end_status = gcmp_out_end(&page.out, status == GRADCMP_OK ? error : NULL);
    return status == GRADCMP_OK ? end_status : status;
}
