/* What callers of the library read from a sweep. */
#include "gradcmp/sys/sweep.h"
#include "report/sweep_facts.h"

const struct gradcmp_report *gradcmp_sweep_report(const struct gradcmp_sweep *sweep) {
    return sweep->report;
}

const char *gradcmp_sweep_label(const struct gradcmp_sweep *sweep, size_t row) {
    return row < sweep->report->pair_count ? sweep->rows[row].label : NULL;
}

int gradcmp_sweep_exit_status(const struct gradcmp_sweep *sweep) {
    bool is_partial = sweep->unfinished > 0 || sweep->absent_count > 0 || sweep->golden_is_idle;
    int worst = is_partial ? 2 : sweep->baseline_finding_count > 0;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        int status = gcmp_sweep_row_status(sweep, i);
        worst = status > worst ? status : worst;
        worst = worst == 0 && sweep->rows[i].finding_count > 0 ? 1 : worst;
    }
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        int status = gcmp_sweep_repeat_status(&sweep->repeats[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}
