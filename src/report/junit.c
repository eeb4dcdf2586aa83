/* JUnit XML. There are no times in it: the same result gives the same bytes. */
#include "report/junit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void gcmp_junit_count(struct gcmp_junit_counts *counts, enum gradcmp_case_outcome outcome) {
    counts->tests++;
    counts->failures += outcome == GRADCMP_CASE_FAIL;
    counts->errors += outcome == GRADCMP_CASE_ERROR;
    counts->skipped += outcome == GRADCMP_CASE_SKIPPED;
}

enum gradcmp_case_outcome gcmp_junit_outcome(int exit_status) {
    return exit_status == 0   ? GRADCMP_CASE_PASS
           : exit_status == 1 ? GRADCMP_CASE_FAIL
                              : GRADCMP_CASE_ERROR;
}

enum { COUNT_BYTES = 24 };

static const char *digits(char out[COUNT_BYTES], size_t value) {
    snprintf(out, COUNT_BYTES, "%zu", value);
    return out;
}

void gcmp_junit_open(struct gcmp_markup *xml, struct gcmp_out *out, const char *title,
                     const struct gcmp_junit_counts *counts) {
    char tests[COUNT_BYTES], failures[COUNT_BYTES], errors[COUNT_BYTES], skipped[COUNT_BYTES];
    *xml = (struct gcmp_markup){.out = out};
    gcmp_text_add(&out->text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    gcmp_markup_open_line(xml, "testsuites", "name", title, "tests", digits(tests, counts->tests),
                          "failures", digits(failures, counts->failures), "errors",
                          digits(errors, counts->errors), "skipped",
                          digits(skipped, counts->skipped), NULL);
}

void gcmp_junit_close(struct gcmp_markup *xml) {
    gcmp_text_add(&xml->out->text, "\n");
    gcmp_markup_close(xml);
    gcmp_text_add(&xml->out->text, "\n");
}

void gcmp_junit_suite(struct gcmp_markup *xml, const char *name, const char *options,
                      const struct gcmp_junit_counts *counts) {
    char tests[COUNT_BYTES], failures[COUNT_BYTES], errors[COUNT_BYTES], skipped[COUNT_BYTES];
    gcmp_markup_open_line(xml, "testsuite", "name", name, "tests", digits(tests, counts->tests),
                          "failures", digits(failures, counts->failures), "errors",
                          digits(errors, counts->errors), "skipped",
                          digits(skipped, counts->skipped), NULL);
    if (options != NULL && options[0] != '\0') {
        gcmp_markup_open_line(xml, "properties", NULL);
        gcmp_markup_empty(xml, "property", "name", "options", "value", options, NULL);
        gcmp_markup_close(xml);
    }
}

void gcmp_junit_case(struct gcmp_markup *xml, const struct gradcmp_case *own, const char *kind) {
    static const char *const elements[] = {[GRADCMP_CASE_PASS] = NULL,
                                           [GRADCMP_CASE_FAIL] = "failure",
                                           [GRADCMP_CASE_SKIPPED] = "skipped",
                                           [GRADCMP_CASE_ERROR] = "error"};
    char line[COUNT_BYTES];
    const char *element = elements[own->outcome], *text = own->text == NULL ? "" : own->text;
    bool has_line = own->line != 0;
    if (has_line) {
        snprintf(line, sizeof line, "%" PRIu64, own->line);
    }
    gcmp_markup_open_line(xml, "testcase", "classname", own->group, "name", own->name, "file",
                          own->file, "line", has_line ? line : NULL, NULL);
    if (element == NULL && text[0] != '\0') {
        gcmp_markup_element(xml, "system-out", text, NULL);
    } else if (element != NULL) {
        bool takes_type = own->outcome != GRADCMP_CASE_SKIPPED;
        gcmp_markup_empty(xml, element, "message", text, "type", takes_type ? kind : NULL, NULL);
    }
    gcmp_markup_close(xml);
}

/* --- of evidence and findings --- */

static size_t run_length(const struct gcmp_case_list *list, size_t first) {
    size_t count = 1;
    while (first + count < list->case_count &&
           strcmp(list->cases[first].group, list->cases[first + count].group) == 0) {
        count++;
    }
    return count;
}

static void add_groups(struct gcmp_markup *xml, const struct gcmp_case_list *list) {
    for (size_t first = 0; first < list->case_count;) {
        size_t count = run_length(list, first);
        struct gcmp_junit_counts counts = {0};
        for (size_t i = first; i < first + count; i++) {
            gcmp_junit_count(&counts, list->cases[i].outcome);
        }
        gcmp_junit_suite(xml, list->cases[first].group, list->options, &counts);
        for (size_t i = first; i < first + count; i++) {
            gcmp_junit_case(xml, &list->cases[i], gcmp_case_outcome_name(list->cases[i].outcome));
        }
        gcmp_text_add(&xml->out->text, "\n");
        gcmp_markup_close(xml);
        first += count;
    }
}

void gcmp_cases_junit(const struct gcmp_case_list *list,
                      const struct gradcmp_document_options *options, struct gcmp_out *out) {
    struct gcmp_markup xml;
    struct gcmp_junit_counts all = {0}, own = {0};
    bool has_groups = options->junit_level != GRADCMP_JUNIT_CANDIDATE;
    struct gradcmp_case verdict = {.group = list->title,
                                   .name = "verdict",
                                   .outcome = gcmp_junit_outcome(list->exit_status),
                                   .text = list->summary};
    for (size_t i = 0; has_groups && i < list->case_count; i++) {
        gcmp_junit_count(&all, list->cases[i].outcome);
    }
    gcmp_junit_count(&all, verdict.outcome);
    gcmp_junit_count(&own, verdict.outcome);
    gcmp_junit_open(&xml, out, list->title, &all);
    if (has_groups) {
        add_groups(&xml, list);
    }
    gcmp_junit_suite(&xml, list->title, list->options, &own);
    gcmp_junit_case(&xml, &verdict, list->verdict);
    gcmp_text_add(&out->text, "\n");
    gcmp_markup_close(&xml);
    gcmp_junit_close(&xml);
}
