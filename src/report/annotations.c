/* Workflow commands of GitHub Actions ("::error title=...::text"), which its page shows beside the
 * job. A runner shows ten of each kind a step, so the verdicts come first. */
#include <inttypes.h>
#include <string.h>

#include "report/document.h"
#include "report/facts.h"
#include "report/printable.h"
#include "report/sweep_facts.h"
#include "report/text.h"

/* Escape as the runner undoes it: % first, and in properties also : and , (it cuts there). */
static void add_data(struct gcmp_text *text, const char *string, bool is_property) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, string, true);
    for (const char *at = safe.bytes == NULL ? "" : safe.bytes; *at != '\0'; at++) {
        if (*at == '%' || (is_property && strchr(":,", *at) != NULL)) {
            gcmp_text_addf(text, "%%%02X", (unsigned char)*at);
        } else {
            gcmp_text_add_bytes(text, at, 1);
        }
    }
    text->failed = text->failed || safe.failed;
    gcmp_text_free(&safe);
}

struct annotation {
    const char *level; /* "error", "warning" or "notice" */
    const char *title, *file;
    uint64_t line;
    const char *text;
};

static void add_line(struct gcmp_out *out, const struct annotation *own) {
    struct gcmp_text *text = &out->text;
    gcmp_text_addf(text, "::%s ", own->level);
    if (own->file != NULL) {
        gcmp_text_add(text, "file=");
        add_data(text, own->file, true);
        gcmp_text_add(text, ",");
        if (own->line != 0) {
            gcmp_text_addf(text, "line=%" PRIu64 ",", own->line);
        }
    }
    gcmp_text_add(text, "title=");
    add_data(text, own->title, true);
    gcmp_text_add(text, "::");
    add_data(text, own->text, false);
    gcmp_text_add(text, "\n");
    gcmp_out_drain(out);
}

static const char *level_of(int exit_status) {
    return exit_status == 0 ? "notice" : "error";
}

/* --- a comparison --- */

/* Whether a candidate is as it should be: consistent, or in a sweep as planned. */
static bool is_as_wanted(const struct gradcmp_report *report, size_t index) {
    return report->sweep != NULL ? gcmp_sweep_row_status(report->sweep, index) == 0
                                 : report->pairs[index].outcome == GRADCMP_OUTCOME_CONSISTENT;
}

static void add_pair(struct gcmp_out *out, const struct gradcmp_report *report, size_t index) {
    const struct gradcmp_pair_report *pair = &report->pairs[index];
    struct gcmp_text title = GCMP_TEXT_INIT, text = GCMP_TEXT_INIT;
    gcmp_text_addf(&title, "gradcmp: %s", gradcmp_outcome_name(pair->outcome));
    gcmp_text_add(&text, gcmp_candidate_label(report, index));
    gcmp_text_add(&text, ": ");
    gcmp_text_add_findings(&text, pair);
    if (report->sweep != NULL && report->sweep->rows[index].has_expected) {
        gcmp_text_add(&text, "; ");
        gcmp_text_add_expected(&text, report->sweep, index);
    }
    if (!title.failed && !text.failed) {
        struct annotation own = {.level = level_of(!is_as_wanted(report, index)),
                                 .title = title.bytes,
                                 .text = text.bytes};
        add_line(out, &own);
    }
    out->text.failed = out->text.failed || title.failed || text.failed;
    gcmp_text_free(&title);
    gcmp_text_free(&text);
}

static void add_parameter(struct gcmp_out *out, const struct gradcmp_pair_report *pair,
                          const struct gradcmp_parameter_report *parameter) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, pair->path);
    gcmp_text_add(&text, ": ");
    gcmp_text_add(&text, parameter->name);
    gcmp_text_add(&text, ": ");
    gcmp_text_explain(&text, pair, parameter);
    if (!text.failed) {
        struct annotation own = {.level = "warning",
                                 .title = gradcmp_verdict_name(parameter->verdict),
                                 .text = text.bytes};
        add_line(out, &own);
    }
    out->text.failed = out->text.failed || text.failed;
    gcmp_text_free(&text);
}

static void add_parameters(struct gcmp_out *out, const struct gradcmp_report *report,
                           const struct gradcmp_pair_report *pair, size_t *left) {
    struct gcmp_pair_view view;
    bool is_fine = gcmp_pair_view_init(&view, report, pair, NULL) == GRADCMP_OK;
    size_t bad = is_fine && view.count > 0 ? gcmp_bad_count(pair) : 0;
    for (size_t i = 0; i<bad && * left> 0; i++, (*left)--) {
        add_parameter(out, pair, view.by_badness[i]);
    }
    out->text.failed = out->text.failed || !is_fine;
    gcmp_pair_view_free(&view);
}

/* One line of a sweep; frees the text. */
static void add_sweep_line(struct gcmp_out *out, int exit_status, const char *title,
                           struct gcmp_text *text) {
    struct annotation own = {.level = level_of(exit_status), .title = title, .text = text->bytes};
    if (!text->failed) {
        add_line(out, &own);
    }
    out->text.failed = out->text.failed || text->failed;
    gcmp_text_free(text);
}

/* How it ended, and what was found beside the comparisons. */
static void add_sweep(struct gcmp_out *out, const struct gradcmp_sweep *sweep) {
    struct gcmp_text text = GCMP_TEXT_INIT, title = GCMP_TEXT_INIT;
    gcmp_text_addf(&title, "gradcmp sweep: %s", gcmp_sweep_word(sweep));
    gcmp_text_add_sweep_summary(&text, sweep);
    add_sweep_line(out, gradcmp_sweep_exit_status(sweep),
                   title.failed ? "gradcmp sweep" : title.bytes, &text);
    gcmp_text_free(&title);
    for (size_t i = 0; i < gcmp_sweep_finding_count(sweep); i++) {
        struct gcmp_sweep_finding finding = gcmp_sweep_finding(sweep, i);
        text = (struct gcmp_text)GCMP_TEXT_INIT;
        gcmp_text_add(&text, finding.label);
        gcmp_text_add(&text, ": ");
        gcmp_text_add(&text, finding.text);
        add_sweep_line(out, finding.exit_status, "gradcmp: configuration", &text);
    }
    for (size_t i = 0; i < sweep->left_count; i++) {
        text = (struct gcmp_text)GCMP_TEXT_INIT;
        gcmp_text_add(&text, sweep->left[i].text);
        add_sweep_line(out, 0, "gradcmp: left out", &text);
    }
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        const struct gradcmp_sweep_repeat *repeat = &sweep->repeats[i];
        if (gcmp_sweep_repeat_status(repeat) != 0) {
            text = (struct gcmp_text)GCMP_TEXT_INIT;
            gcmp_text_add(&text, repeat->label_b);
            gcmp_text_add(&text, " against ");
            gcmp_text_add(&text, repeat->label_a);
            gcmp_text_add(&text, ": ");
            gcmp_text_add_repeat(&text, repeat);
            add_sweep_line(out, gcmp_sweep_repeat_status(repeat), "gradcmp: repeats", &text);
        }
    }
}

enum gradcmp_status gradcmp_report_write_annotations(const struct gradcmp_report *report,
                                                     const struct gradcmp_document_options *options,
                                                     gradcmp_write_fn write, void *user,
                                                     struct gradcmp_error *error) {
    size_t left = gcmp_document_options(options, GCMP_ANNOTATIONS_TOP).top;
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    if (report->sweep != NULL) {
        add_sweep(&out, report->sweep);
    } else if (report->unfinished > 0) {
        struct gcmp_text text = GCMP_TEXT_INIT;
        gcmp_text_add_unfinished(&text, report);
        add_sweep_line(&out, 2, "gradcmp: interrupted", &text);
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        add_pair(&out, report, i);
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        if (report->sweep == NULL || !is_as_wanted(report, i)) {
            add_parameters(&out, report, &report->pairs[i], &left);
        }
    }
    return gcmp_out_end(&out, error);
}

/* --- findings and evidence --- */

void gcmp_cases_annotations(const struct gcmp_case_list *list,
                            const struct gradcmp_document_options *options, struct gcmp_out *out) {
    struct annotation verdict = {
        .level = level_of(list->exit_status), .title = list->title, .text = list->summary};
    size_t left = options->top;
    add_line(out, &verdict);
    for (size_t i = 0; i < list->case_count && left > 0; i++) {
        const struct gradcmp_case *own = &list->cases[i];
        if (own->outcome == GRADCMP_CASE_FAIL || own->outcome == GRADCMP_CASE_ERROR) {
            struct gcmp_text text = GCMP_TEXT_INIT;
            gcmp_text_add(&text, own->group);
            gcmp_text_add(&text, ": ");
            gcmp_text_add(&text, own->text == NULL ? "" : own->text);
            struct annotation line = {.level = "warning",
                                      .title = own->name,
                                      .file = own->file,
                                      .line = own->line,
                                      .text = text.bytes == NULL ? "" : text.bytes};
            add_line(out, &line);
            out->text.failed = out->text.failed || text.failed;
            gcmp_text_free(&text);
            left--;
        }
    }
}
