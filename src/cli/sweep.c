/* gradcmp sweep: many configurations against one baseline. */
#include <string.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
#include "cli/judged.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/terminal.h"

/* The file that pairs are kept in is no report. */
static bool check_resume(const struct cli_settings *settings) {
    const char *resume = settings->sweep.resume;
    const char *const reports[] = {settings->json, settings->html, settings->junit,
                                   settings->markdown, settings->hdf5};
    if (resume == NULL) {
        return true;
    }
    if (resume[0] == '\0' || strcmp(resume, "-") == 0) {
        cli_complain("--resume: expected the name of a file");
        return false;
    }
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        if (reports[i] != NULL && strcmp(reports[i], resume) == 0) {
            cli_complain("%s: --resume and a report would be the same file", resume);
            return false;
        }
    }
    return true;
}

static bool check_operands(const struct cli_settings *settings) {
    if (settings->operand_count > 1) {
        cli_complain("%s: one folder is swept; several checkpoints are for gradcmp compare",
                     settings->operands[1]);
        return false;
    }
    if (settings->operand_count == 0 && settings->sweep.plan == NULL) {
        cli_complain("no folder given: gradcmp sweep DIR, or --plan FILE (gradcmp sweep --help)");
        return false;
    }
    return true;
}

static int write_reports(const struct gradcmp_sweep *sweep, const struct cli_settings *settings) {
    const struct cli_judged judged = {gradcmp_sweep_report(sweep), sweep};
    return cli_judged_deliver(&judged, settings, gradcmp_sweep_exit_status(sweep));
}

/* After an interrupt, what is finished is reported all the same. */
static int end(const struct gradcmp_sweep *sweep, const struct cli_settings *settings,
               enum gradcmp_status status, const struct gradcmp_error *error) {
    if (status == GRADCMP_OK) {
        return write_reports(sweep, settings);
    }
    if (sweep != NULL) {
        write_reports(sweep, settings);
    }
    return cli_conclude(status, false, error);
}

int cli_run_sweep(const struct cli_settings *settings) {
    if (!check_operands(settings) || !check_resume(settings) || !cli_deliver_check(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    options.warn = cli_warn;
    struct gradcmp_sweep *sweep = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, !settings->quiet && cli_terminal_progress());
    enum gradcmp_status status =
        gradcmp_sweep_run(settings->operand_count == 0 ? NULL : settings->operands[0],
                          &settings->sweep, &options, &sweep, &error);
    cli_progress_end(&progress);
    int exit_status = end(sweep, settings, status, &error);
    gradcmp_sweep_free(sweep);
    return exit_status;
}
