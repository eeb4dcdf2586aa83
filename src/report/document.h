/* What the documents (HTML, JUnit, Markdown, annotations) have in common: their options, how they
 * begin and end, and findings and evidence in one form. */
#ifndef GCMP_REPORT_DOCUMENT_H
#define GCMP_REPORT_DOCUMENT_H

#include "gradcmp/sys/evidence.h"
#include "gradcmp/sys/result.h"
#include "report/markup.h"

enum {
    GCMP_HTML_TOP = 50,
    GCMP_MARKDOWN_TOP = 20,
    GCMP_ANNOTATIONS_TOP = 10,
    GCMP_HTML_ROWS = 5000
};

/* Return the caller's options, those of later versions left out, with `default_top` where `top` is
 * open and the default where `rows` is. */
struct gradcmp_document_options
gcmp_document_options(const struct gradcmp_document_options *options, unsigned default_top);

/* The cases of evidence or findings, in groups. */
struct gcmp_case_list {
    const char *title;   /* "gradcmp check" */
    const char *verdict; /* one word */
    const char *summary; /* one line */
    int exit_status;
    const char *const *paths; /* what was looked at */
    size_t path_count;
    const struct gradcmp_case *cases; /* those of a group stand together */
    size_t case_count;
    const char *const *notes;
    size_t note_count;
    const char *options; /* that are not default, as they are typed; NULL: none */
    const struct gradcmp_evidence *evidence; /* for its own part of the page; or NULL */
};

/* Views of evidence: nothing is copied. */
struct gcmp_case_list gcmp_evidence_list(const struct gradcmp_evidence *evidence,
                                         struct gcmp_text *title);

/* Make cases of findings: one for each, in the group of its checkpoint; an error for a checkpoint
 * that was not read, a pass for a clean one. All lie in `arena`. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_findings_list(const struct gradcmp_findings *findings,
                                                        struct gcmp_arena *arena,
                                                        struct gcmp_case_list *out,
                                                        struct gradcmp_error *error);

/* Each writes one document of such a list. */
void gcmp_cases_html(const struct gcmp_case_list *list,
                     const struct gradcmp_document_options *options, struct gcmp_out *out);
void gcmp_cases_junit(const struct gcmp_case_list *list,
                      const struct gradcmp_document_options *options, struct gcmp_out *out);
void gcmp_cases_markdown(const struct gcmp_case_list *list,
                         const struct gradcmp_document_options *options, struct gcmp_out *out);
void gcmp_cases_annotations(const struct gcmp_case_list *list,
                            const struct gradcmp_document_options *options, struct gcmp_out *out);

/* Word of a case's outcome: "pass", "fail", "skipped", "error". */
const char *gcmp_case_outcome_name(enum gradcmp_case_outcome outcome);

#endif
