/* gradcmp trace: two traces of a run, operation by operation. */
#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/evidence.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/terminal.h"

/* Troubles that are told on standard error; the report has them all. */
enum { MAX_COMPLAINTS = 20 };

/* One line for each file that spoils the comparison. False where none is why there is no answer. */
static bool complain_of_cases(const struct gradcmp_evidence *evidence) {
    size_t told = 0;
    bool is_told = false;
    for (size_t i = 0; i < gradcmp_evidence_case_count(evidence) && told < MAX_COMPLAINTS; i++) {
        struct gradcmp_case found;
        gradcmp_evidence_case(evidence, i, &found);
        if (found.file == NULL || found.text == NULL ||
            (found.outcome != GRADCMP_CASE_ERROR && found.outcome != GRADCMP_CASE_SKIPPED)) {
            continue;
        }
        told++;
        is_told = is_told || found.outcome == GRADCMP_CASE_ERROR;
        if (found.line > 0) {
            cli_complain("%s: line %llu: %s", found.file, (unsigned long long)found.line,
                         found.text);
        } else {
            cli_complain("%s: %s", found.file, found.text);
        }
    }
    return is_told;
}

int cli_run_trace(const struct cli_settings *settings) {
    if (settings->operand_count != 2) {
        cli_complain("two traces are needed: gradcmp trace A B (gradcmp trace --help)");
        return CLI_EXIT_TROUBLE;
    }
    if (!cli_deliver_check(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_trace_options options = GRADCMP_TRACE_OPTIONS_INIT;
    options.lenient = settings->lenient;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, !settings->quiet && cli_terminal_progress());
    enum gradcmp_status status =
        gradcmp_trace(settings->operands[0], settings->operands[1], &options, &evidence, &error);
    cli_progress_end(&progress);
    if (status != GRADCMP_OK) {
        return cli_conclude(status, false, &error);
    }
    bool is_told = complain_of_cases(evidence);
    return cli_deliver_evidence(evidence, settings, is_told);
}
