/* What all reports of a sweep say beside its comparisons: how it ended, what was found about
 * configurations, repeats bit for bit; and what those of several candidates say of an interrupt. */
#ifndef GCMP_REPORT_SWEEP_FACTS_H
#define GCMP_REPORT_SWEEP_FACTS_H

#include "base/text.h"
#include "gradcmp/sys/sweep.h"

/* How a sweep ended, in one word: "passes", "fails", "incomplete", "interrupted". */
const char *gcmp_sweep_word(const struct gradcmp_sweep *sweep);

/* What a candidate is called: its label in a sweep, else its path. */
const char *gcmp_candidate_label(const struct gradcmp_report *report, size_t index);

/* Exit status of one row: 0 where it came out as the plan expects (consistent without a plan). */
int gcmp_sweep_row_status(const struct gradcmp_sweep *sweep, size_t row);

/* Exit status of a repeat: 1 where bits differ or copies within a run disagree, 2 where it could
 * not be read, or nothing of it was compared. */
int gcmp_sweep_repeat_status(const struct gradcmp_sweep_repeat *repeat);

/* Findings about configurations: how many, and number `index` with the label of its run, or the
 * name of the configuration that has none (exit status 2). */
size_t gcmp_sweep_finding_count(const struct gradcmp_sweep *sweep);
struct gcmp_sweep_finding {
    const char *label, *text;
    int exit_status;
};
struct gcmp_sweep_finding gcmp_sweep_finding(const struct gradcmp_sweep *sweep, size_t index);
/* What the findings are about, as a title. */
const char *gcmp_sweep_findings_title(const struct gradcmp_sweep *sweep);

/* Add "of 3 candidates 2 were not judged"; nothing where all were. */
void gcmp_text_add_unfinished(struct gcmp_text *text, const struct gradcmp_report *report);

/* Add `lead` and "2 consistent, 1 inconsistent"; nothing where no candidate was judged. */
void gcmp_text_add_outcomes(struct gcmp_text *text, const struct gradcmp_report *report,
                            const char *lead);

/* Rows that were judged by an earlier sweep. */
size_t gcmp_sweep_taken_count(const struct gradcmp_sweep *sweep);

/* Add "of 3 configurations 2 consistent, 1 inconsistent; 1 not as expected". */
void gcmp_text_add_sweep_summary(struct gcmp_text *text, const struct gradcmp_sweep *sweep);
/* Add "256 KiB of the baseline, once, and 1.2 MiB of 4 candidates"; nothing where nothing was read.
 */
void gcmp_text_add_sweep_read(struct gcmp_text *text, const struct gradcmp_sweep *sweep);
/* Add "the plan expects error" with ", as found"; nothing where it expects nothing. */
void gcmp_text_add_expected(struct gcmp_text *text, const struct gradcmp_sweep *sweep, size_t row);
/* Add "identical, 32,416 elements" or what differs, and what copies within a run say beside it. */
void gcmp_text_add_repeat(struct gcmp_text *text, const struct gradcmp_sweep_repeat *repeat);

#endif
