/* gradcmp compare: judge candidates against a baseline. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
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

static enum gradcmp_status write_text(const void *report, const struct gradcmp_text_options *text,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_report_write_text(report, text, write, user, error);
}

static enum gradcmp_status write_json(const void *report, gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_report_write_json(report, write, user, error);
}

static enum gradcmp_status write_html(const void *report,
                                      const struct gradcmp_document_options *options,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_report_write_html(report, options, write, user, error);
}

static enum gradcmp_status write_junit(const void *report,
                                       const struct gradcmp_document_options *options,
                                       gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    return gradcmp_report_write_junit(report, options, write, user, error);
}

static enum gradcmp_status write_markdown(const void *report,
                                          const struct gradcmp_document_options *options,
                                          gradcmp_write_fn write, void *user,
                                          struct gradcmp_error *error) {
    return gradcmp_report_write_markdown(report, options, write, user, error);
}

static enum gradcmp_status write_annotations(const void *report,
                                             const struct gradcmp_document_options *options,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error) {
    return gradcmp_report_write_annotations(report, options, write, user, error);
}

static enum gradcmp_status write_hdf5(const void *content, int descriptor,
                                      struct gradcmp_error *error) {
    return gradcmp_report_write_hdf5(content, descriptor, error);
}

static int write_reports(const struct gradcmp_report *report, const struct cli_settings *settings,
                         int status) {
    struct cli_document document = {.content = report,
                                    .text = has_findings(report) ? write_text : NULL,
                                    .json = write_json,
                                    .html = write_html,
                                    .junit = write_junit,
                                    .markdown = write_markdown,
                                    .annotations = write_annotations,
                                    .hdf5 = write_hdf5};
    complain_candidates(report);
    return cli_deliver(&document, settings, status);
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
        write_reports(report, settings, CLI_EXIT_TROUBLE);
    }
    return 128 + signal_number;
}

int cli_run_compare(const struct cli_settings *settings) {
    if (!check_operands(settings) || !cli_deliver_check(settings)) {
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
        exit_status = write_reports(report, settings, gradcmp_report_exit_status(report));
    }
    gradcmp_report_free(report);
    return exit_status;
}
