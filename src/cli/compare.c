/* gradcmp compare: judge candidates against a baseline. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/terminal.h"

static bool goes_to_stdout(const char *json) {
    return json != NULL && strcmp(json, "-") == 0;
}

static bool check_operands(const struct cli_settings *settings) {
    if (settings->operand_count == 0) {
        cli_complain("no checkpoints given: gradcmp BASELINE CANDIDATE... (--help tells more)");
    } else if (settings->operand_count == 1) {
        cli_complain("%s: only one checkpoint given; a candidate to compare with it is missing",
                     settings->operands[0]);
    }
    return settings->operand_count >= 2;
}

/* One line for each candidate that could not be read, whatever else is printed. */
static void complain_candidates(const struct gradcmp_report *report) {
    size_t count = gradcmp_report_candidate_count(report);
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_error *error = gradcmp_report_error(report, i);
        if (error != NULL) {
            cli_complain_error(error);
        }
    }
}

/* A single candidate that could not be read leaves nothing to report. */
static bool has_findings(const struct gradcmp_report *report) {
    return gradcmp_report_candidate_count(report) > 1 || gradcmp_report_error(report, 0) == NULL;
}

static int write_text(const struct gradcmp_report *report, const struct cli_settings *settings,
                      int status) {
    struct gradcmp_text_options text = GRADCMP_TEXT_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    text.color = cli_terminal_color((enum cli_color)settings->color);
    text.utf8 = cli_terminal_utf8();
    text.verbose = settings->verbose;
    text.top = settings->top;
    text.width = cli_terminal_width();
    enum gradcmp_status written =
        gradcmp_report_write_text(report, &text, cli_stdout_write, NULL, &error);
    if (written != GRADCMP_OK && written != GRADCMP_ERROR_IO) { /* IO: told when it is closed */
        cli_complain_error(&error);
        status = CLI_EXIT_TROUBLE;
    }
    return cli_stdout_close(status);
}

static int write_json(const struct gradcmp_report *report, const char *path, int status) {
    struct gradcmp_error error = {0};
    struct cli_file file;
    if (goes_to_stdout(path)) {
        enum gradcmp_status written =
            gradcmp_report_write_json(report, cli_stdout_write, NULL, &error);
        if (written != GRADCMP_OK && written != GRADCMP_ERROR_IO) {
            cli_complain_error(&error);
            status = CLI_EXIT_TROUBLE;
        }
        return cli_stdout_close_document(status);
    }
    if (!cli_file_open(&file, path)) {
        return CLI_EXIT_TROUBLE;
    }
    enum gradcmp_status written = gradcmp_report_write_json(report, cli_file_write, &file, &error);
    if (written != GRADCMP_OK && written != GRADCMP_ERROR_IO) {
        cli_complain_error(&error);
    }
    bool is_there = cli_file_close(&file, written == GRADCMP_OK);
    return is_there ? status : CLI_EXIT_TROUBLE;
}

static int write_reports(const struct gradcmp_report *report, const struct cli_settings *settings,
                         int status) {
    complain_candidates(report);
    int worst = status;
    if (settings->json != NULL) {
        worst = write_json(report, settings->json, status);
    }
    if (!settings->quiet && !goes_to_stdout(settings->json) && has_findings(report)) {
        int written = write_text(report, settings, status);
        worst = written > worst ? written : worst;
    }
    return worst;
}

/* What is finished is reported all the same; the exit status tells that it is not all. */
static int end_interrupted(const struct gradcmp_report *report,
                           const struct cli_settings *settings) {
    int signal_number = cli_interrupt_signal();
    size_t finished = report == NULL ? 0 : gradcmp_report_candidate_count(report);
    cli_complain("interrupted; %zu of %zu candidates finished", finished,
                 settings->operand_count - 1);
    if (finished > 0) {
        write_reports(report, settings, CLI_EXIT_TROUBLE);
    }
    return 128 + signal_number;
}

int cli_run_compare(const struct cli_settings *settings) {
    if (!check_operands(settings) || (settings->json != NULL && !goes_to_stdout(settings->json) &&
                                      !cli_file_check(settings->json))) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
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
        exit_status = write_reports(report, settings, gradcmp_report_exit_status(report));
    }
    gradcmp_report_free(report);
    return exit_status;
}
