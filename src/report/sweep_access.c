/* What callers of the library read from a sweep. */
#include "gradcmp/sys/sweep.h"

const struct gradcmp_report *gradcmp_sweep_report(const struct gradcmp_sweep *sweep) {
    return sweep->report;
}

const char *gradcmp_sweep_label(const struct gradcmp_sweep *sweep, size_t row) {
    return row < sweep->report->pair_count ? sweep->rows[row].label : NULL;
}

static int row_status(const struct gradcmp_sweep *sweep, size_t row) {
    static const int statuses[] = {[GRADCMP_OUTCOME_CONSISTENT] = 0,
                                   [GRADCMP_OUTCOME_INCONSISTENT] = 1,
                                   [GRADCMP_OUTCOME_UNDECIDED] = 2,
                                   [GRADCMP_OUTCOME_VACUOUS] = 2,
                                   [GRADCMP_OUTCOME_ERROR] = 2};
    enum gradcmp_outcome outcome = sweep->report->pairs[row].outcome;
    if (!sweep->rows[row].has_expected) {
        return statuses[outcome];
    }
    bool is_expected = outcome == sweep->rows[row].expected;
    return is_expected ? 0 : statuses[outcome] == 0 ? 1 : statuses[outcome];
}

int gradcmp_sweep_exit_status(const struct gradcmp_sweep *sweep) {
    int worst = sweep->unfinished > 0 ? 2 : sweep->baseline_finding_count > 0;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        int status = row_status(sweep, i);
        worst = status > worst ? status : worst;
        worst = worst == 0 && sweep->rows[i].finding_count > 0 ? 1 : worst;
    }
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        const struct gradcmp_sweep_repeat *repeat = &sweep->repeats[i];
        int status = !repeat->could_be_read ? 2 : repeat->equal_bits != repeat->elems;
        worst = status > worst ? status : worst;
    }
    return worst;
}
