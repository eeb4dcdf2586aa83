/* gradcmp check: checkpoints alone, without a baseline. */
#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/terminal.h"

static enum gradcmp_status write_text(const void *findings, const struct gradcmp_text_options *text,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_findings_write_text(findings, text, write, user, error);
}

static enum gradcmp_status write_json(const void *findings, gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_findings_write_json(findings, write, user, error);
}

static enum gradcmp_status write_html(const void *findings,
                                      const struct gradcmp_document_options *options,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_findings_write_html(findings, options, write, user, error);
}

static enum gradcmp_status write_junit(const void *findings,
                                       const struct gradcmp_document_options *options,
                                       gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    return gradcmp_findings_write_junit(findings, options, write, user, error);
}

static enum gradcmp_status write_markdown(const void *findings,
                                          const struct gradcmp_document_options *options,
                                          gradcmp_write_fn write, void *user,
                                          struct gradcmp_error *error) {
    return gradcmp_findings_write_markdown(findings, options, write, user, error);
}

static enum gradcmp_status write_annotations(const void *findings,
                                             const struct gradcmp_document_options *options,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error) {
    return gradcmp_findings_write_annotations(findings, options, write, user, error);
}

int cli_run_check(const struct cli_settings *settings) {
    if (settings->operand_count == 0) {
        cli_complain("no checkpoint given: gradcmp check CHECKPOINT... (gradcmp check --help)");
        return CLI_EXIT_TROUBLE;
    }
    if (!cli_deliver_check(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    options.warn = cli_warn;
    struct gradcmp_findings *findings = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, !settings->quiet && cli_terminal_progress());
    enum gradcmp_status status =
        gradcmp_check(settings->operands, settings->operand_count, &options, &findings, &error);
    cli_progress_end(&progress);
    if (status != GRADCMP_OK) {
        return cli_conclude(status, false, &error);
    }
    for (size_t i = 0; i < settings->operand_count; i++) {
        const struct gradcmp_error *failed = gradcmp_findings_error(findings, i);
        if (failed != NULL) {
            cli_complain_error(failed);
        }
    }
    struct cli_document document = {.content = findings,
                                    .text = write_text,
                                    .json = write_json,
                                    .html = write_html,
                                    .junit = write_junit,
                                    .markdown = write_markdown,
                                    .annotations = write_annotations};
    int exit_status = cli_deliver(&document, settings, gradcmp_findings_exit_status(findings));
    gradcmp_findings_free(findings);
    return exit_status;
}
