/* gradcmp compare: judge candidates against a baseline. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
#include "cli/judged.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/terminal.h"

static bool check_operands(const struct cli_settings *settings) {
    if (settings->operand_count == 0) {
        cli_complain("no checkpoints given: gradcmp BASELINE CANDIDATE... (--help tells more)");
    } else if (settings->operand_count == 1) {
        cli_complain("%s: only one checkpoint given; a candidate to compare with it is missing",
                     settings->operands[0]);
    }
    return settings->operand_count >= 2;
}

/* What is finished is reported all the same; the exit status tells that it is not all. */
static int end_interrupted(const struct gradcmp_report *report,
                           const struct cli_settings *settings) {
    int signal_number = cli_interrupt_signal();
    size_t finished = report == NULL ? 0 : gradcmp_report_candidate_count(report);
    char more[80];
    snprintf(more, sizeof more, "; %zu of %zu candidates finished", finished,
             settings->operand_count - 1);
    cli_interrupt_complain(more);
    if (finished > 0) {
        cli_judged_deliver(&(struct cli_judged){report, NULL}, settings, CLI_EXIT_TROUBLE);
    }
    return 128 + signal_number;
}

int cli_run_compare(const struct cli_settings *settings) {
    if (!cli_deliver_check(settings) || !check_operands(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    options.warn = cli_warn;
    struct gradcmp_report *report = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, !settings->quiet && cli_terminal_progress());
    enum gradcmp_status status =
        gradcmp_compare(settings->operands[0], settings->operands + 1, settings->operand_count - 1,
                        &options, &report, &error);
    cli_progress_end(&progress);
    int exit_status = CLI_EXIT_TROUBLE;
    if (status == GRADCMP_ERROR_CANCELLED) {
        exit_status = end_interrupted(report, settings);
    } else if (status != GRADCMP_OK) {
        cli_complain_error(&error);
    } else {
        exit_status = cli_judged_deliver(&(struct cli_judged){report, NULL}, settings,
                                         gradcmp_report_exit_status(report));
    }
    gradcmp_report_free(report);
    return exit_status;
}
