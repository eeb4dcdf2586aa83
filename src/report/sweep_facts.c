/* What all reports of a sweep say beside its comparisons. */
#include "report/sweep_facts.h"

#include "report/facts.h"
#include "report/page.h"

const char *gcmp_sweep_word(const struct gradcmp_sweep *sweep) {
    static const char *const words[] = {"passes", "fails", "incomplete"};
    return sweep->unfinished > 0 ? "interrupted" : words[gradcmp_sweep_exit_status(sweep)];
}

const char *gcmp_candidate_label(const struct gradcmp_report *report, size_t index) {
    return report->sweep != NULL ? report->sweep->rows[index].label : report->pairs[index].path;
}

int gcmp_sweep_row_status(const struct gradcmp_sweep *sweep, size_t row) {
    enum gradcmp_outcome outcome = sweep->report->pairs[row].outcome;
    int status = gcmp_outcome_status(outcome);
    if (!sweep->rows[row].has_expected) {
        return status;
    }
    bool is_expected = outcome == sweep->rows[row].expected;
    return is_expected ? 0 : status == 0 ? 1 : status;
}

int gcmp_sweep_repeat_status(const struct gradcmp_sweep_repeat *repeat) {
    /* What only one of them has, or has in another shape, is no compared element. */
    bool differs =
        repeat->first != NULL || repeat->equal_bits != repeat->elems || repeat->copies > 0;
    return !repeat->could_be_read || (repeat->elems == 0 && !differs) ? 2 : differs;
}

/* Those of runs that are there. */
static size_t count_run_findings(const struct gradcmp_sweep *sweep) {
    size_t count = sweep->baseline_finding_count;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        count += sweep->rows[i].finding_count;
    }
    return count;
}

size_t gcmp_sweep_finding_count(const struct gradcmp_sweep *sweep) {
    return sweep->absent_count + count_run_findings(sweep);
}

const char *gcmp_sweep_findings_title(const struct gradcmp_sweep *sweep) {
    return sweep->absent_count == 0 ? "Runs that did not do what their configuration says"
                                    : "Configurations without a run, and runs that did not do what "
                                      "theirs says";
}

struct gcmp_sweep_finding gcmp_sweep_finding(const struct gradcmp_sweep *sweep, size_t index) {
    if (index < sweep->absent_count) {
        const struct gradcmp_sweep_absent *absent = &sweep->absent[index];
        return (struct gcmp_sweep_finding){absent->name, absent->text, 2};
    }
    index -= sweep->absent_count;
    if (index < sweep->baseline_finding_count) {
        return (struct gcmp_sweep_finding){sweep->baseline_label, sweep->baseline_findings[index],
                                           1};
    }
    index -= sweep->baseline_finding_count;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        const struct gradcmp_sweep_row *row = &sweep->rows[i];
        if (index < row->finding_count) {
            return (struct gcmp_sweep_finding){row->label, row->findings[index], 1};
        }
        index -= row->finding_count;
    }
    return (struct gcmp_sweep_finding){"", "", 0};
}

void gcmp_text_add_unfinished(struct gcmp_text *text, const struct gradcmp_report *report) {
    if (report->unfinished > 0) {
        gcmp_text_addf(text, "of %zu candidates %zu %s not judged",
                       report->pair_count + report->unfinished, report->unfinished,
                       report->unfinished == 1 ? "was" : "were");
    }
}

void gcmp_text_add_outcomes(struct gcmp_text *text, const struct gradcmp_report *report,
                            const char *lead) {
    size_t counts[GRADCMP_OUTCOME_ERROR + 1] = {0};
    for (size_t i = 0; i < report->pair_count; i++) {
        counts[report->pairs[i].outcome]++;
    }
    for (unsigned outcome = 0; outcome <= GRADCMP_OUTCOME_ERROR; outcome++) {
        if (counts[outcome] > 0) {
            gcmp_text_addf(text, "%s%zu %s", lead, counts[outcome],
                           gradcmp_outcome_name((enum gradcmp_outcome)outcome));
            lead = ", ";
        }
    }
}

size_t gcmp_sweep_taken_count(const struct gradcmp_sweep *sweep) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        count += sweep->report->pairs[i].taken_over;
    }
    return count;
}

static size_t count_unexpected(const struct gradcmp_sweep *sweep) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        enum gradcmp_outcome wanted =
            sweep->rows[i].has_expected ? sweep->rows[i].expected : GRADCMP_OUTCOME_CONSISTENT;
        count += sweep->report->pairs[i].outcome != wanted;
    }
    return count;
}

/* Repeats are counted only where there are some: most sweeps have none. */
static void add_repeat_counts(struct gcmp_text *text, const struct gradcmp_sweep *sweep) {
    size_t different = 0;
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        different += gcmp_sweep_repeat_status(&sweep->repeats[i]) != 0;
    }
    if (different > 0) {
        gcmp_text_addf(text, "; %zu repeat%s not identical", different, different == 1 ? "" : "s");
    }
}

static void add_left_count(struct gcmp_text *text, const struct gradcmp_sweep *sweep) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->left_count; i++) {
        count += sweep->left[i].count;
    }
    if (count > 0) {
        gcmp_text_addf(text, "; %zu left out", count);
    }
}

void gcmp_text_add_sweep_summary(struct gcmp_text *text, const struct gradcmp_sweep *sweep) {
    size_t all = sweep->report->pair_count + sweep->report->unfinished;
    gcmp_text_addf(text, "of %zu configuration%s", all, all == 1 ? "" : "s");
    gcmp_text_add_outcomes(text, sweep->report, " ");
    size_t unexpected = count_unexpected(sweep), findings = count_run_findings(sweep);
    if (unexpected > 0) {
        gcmp_text_addf(text, "; %zu not as expected", unexpected);
    }
    add_repeat_counts(text, sweep);
    if (sweep->unfinished > 0) {
        gcmp_text_addf(text, "; %zu not judged", sweep->unfinished);
    }
    if (findings > 0) {
        gcmp_text_addf(text, "; %zu finding%s about configurations", findings,
                       findings == 1 ? "" : "s");
    }
    if (sweep->absent_count > 0) {
        gcmp_text_addf(text, "; %zu configuration%s without a run", sweep->absent_count,
                       sweep->absent_count == 1 ? "" : "s");
    }
    if (sweep->golden_is_idle) {
        gcmp_text_add(text, "; --golden judges none");
    }
    add_left_count(text, sweep);
}

void gcmp_text_add_sweep_read(struct gcmp_text *text, const struct gradcmp_sweep *sweep) {
    char a[GCMP_FIGURE_BYTES], b[GCMP_FIGURE_BYTES];
    size_t judged = sweep->report->pair_count - gcmp_sweep_taken_count(sweep);
    if (sweep->report->readings == 0 || judged == 0) {
        return;
    }
    gcmp_text_addf(text, "%s of the baseline, ", gcmp_figure_bytes(a, sweep->baseline_bytes));
    if (sweep->report->readings > 1) {
        gcmp_text_addf(text, "%zu times", sweep->report->readings);
    } else {
        gcmp_text_add(text, "once");
    }
    gcmp_text_addf(text, ", and %s of %zu candidate%s",
                   gcmp_figure_bytes(b, sweep->candidate_bytes), judged, judged == 1 ? "" : "s");
}

void gcmp_text_add_expected(struct gcmp_text *text, const struct gradcmp_sweep *sweep, size_t row) {
    if (sweep->rows[row].has_expected) {
        bool is_as_found = sweep->report->pairs[row].outcome == sweep->rows[row].expected;
        gcmp_text_addf(text, "the plan expects %s%s",
                       gradcmp_outcome_name(sweep->rows[row].expected),
                       is_as_found ? ", as found" : "");
    }
}

/* What the copies of one run say that the compared ones do not. */
static void add_repeat_copies(struct gcmp_text *text, const struct gradcmp_sweep_repeat *repeat) {
    if (repeat->copies > 0) {
        gcmp_text_addf(text, "; copies of %zu parameter%s disagree within a run, first of ",
                       repeat->copies, repeat->copies == 1 ? "" : "s");
        gcmp_text_add(text, repeat->first_copies);
    }
    if (repeat->unequal > 0) {
        gcmp_text_addf(text,
                       "; copies of %zu parameter%s differ inside the bound within both runs, and "
                       "only the first ones were compared",
                       repeat->unequal, repeat->unequal == 1 ? "" : "s");
    }
}

void gcmp_text_add_repeat(struct gcmp_text *text, const struct gradcmp_sweep_repeat *repeat) {
    char elems[GCMP_FIGURE_BYTES], differ[GCMP_FIGURE_BYTES];
    if (!repeat->could_be_read) {
        gcmp_text_add(text, repeat->error.message);
        return;
    }
    if (gcmp_sweep_repeat_status(repeat) == 2) {
        gcmp_text_add(text, "no element was compared");
    } else if (repeat->first == NULL) {
        gcmp_text_addf(text, "%s, %s elements",
                       repeat->copies == 0 ? "identical" : "first copies identical",
                       gcmp_figure_count(elems, repeat->elems));
    } else if (repeat->equal_bits == repeat->elems) {
        gcmp_text_add(text, "one of them lacks, or has in another shape or type, ");
        gcmp_text_add(text, repeat->first);
    } else {
        gcmp_text_addf(text, "%s of %s elements differ, first in ",
                       gcmp_figure_count(differ, repeat->elems - repeat->equal_bits),
                       gcmp_figure_count(elems, repeat->elems));
        gcmp_text_add(text, repeat->first);
    }
    add_repeat_copies(text, repeat);
}
