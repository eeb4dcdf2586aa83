/* JUnit XML as Jenkins, GitLab and pytest's readers take it: suites, cases, and what became of
 * each. */
#ifndef GCMP_REPORT_JUNIT_H
#define GCMP_REPORT_JUNIT_H

#include "report/document.h"

struct gcmp_junit_counts {
    size_t tests, failures, errors, skipped;
};

void gcmp_junit_count(struct gcmp_junit_counts *counts, enum gradcmp_case_outcome outcome);

/* Begin and end a document; in between come suites. */
void gcmp_junit_open(struct gcmp_markup *xml, struct gcmp_out *out, const char *title,
                     const struct gcmp_junit_counts *counts);
void gcmp_junit_close(struct gcmp_markup *xml);

/* Start a suite; gcmp_markup_close ends it. `options` (NULL or empty: none) becomes a property. */
void gcmp_junit_suite(struct gcmp_markup *xml, const char *name, const char *options,
                      const struct gcmp_junit_counts *counts);

/* Write one case; `kind` says in one word what is wrong, `own->group` is its class. */
void gcmp_junit_case(struct gcmp_markup *xml, const struct gradcmp_case *own, const char *kind);

/* The outcome of a verdict with this exit status. */
enum gradcmp_case_outcome gcmp_junit_outcome(int exit_status);

#endif
