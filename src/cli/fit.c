/* gradcmp fit: k, C and floors from known-good runs. */
#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/terminal.h"

static enum gradcmp_status write_text(const void *fit, const struct gradcmp_text_options *text,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_fit_write_text(fit, text, write, user, error);
}

static enum gradcmp_status write_json(const void *fit, gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_fit_write_json(fit, write, user, error);
}

static bool check_arguments(const struct cli_settings *settings) {
    if (settings->operand_count < 2) {
        cli_complain("%s", settings->operand_count == 0
                               ? "no checkpoints given: gradcmp fit BASELINE GOOD... -o FILE"
                               : "only one checkpoint given; good ones to compare with it are "
                                 "missing");
        return false;
    }
    return (settings->output == NULL || cli_file_check_new(settings->output)) &&
           cli_deliver_check(settings);
}

static int write_file(const struct gradcmp_fit *fit, const char *path) {
    struct cli_file file;
    struct gradcmp_error error = {0};
    if (!cli_file_open(&file, path)) {
        return CLI_EXIT_TROUBLE;
    }
    enum gradcmp_status status = gradcmp_fit_write_yaml(fit, cli_file_write, &file, &error);
    int exit_status = cli_conclude(status, file.failed, &error);
    bool is_there = cli_file_close(&file, status == GRADCMP_OK);
    return is_there || exit_status != CLI_EXIT_CONSISTENT ? exit_status : CLI_EXIT_TROUBLE;
}

/* The file first: a table of a fit that could not be kept would mislead. */
static int deliver(const struct gradcmp_fit *fit, const struct cli_settings *settings) {
    struct cli_document document = {.content = fit, .text = write_text, .json = write_json};
    int status = gradcmp_fit_exit_status(fit);
    for (size_t i = 1; i < settings->operand_count; i++) {
        const struct gradcmp_error *failed = gradcmp_fit_error(fit, i - 1);
        if (failed != NULL) {
            cli_complain_error(failed);
        }
    }
    if (status == CLI_EXIT_CONSISTENT && settings->output != NULL) {
        status = write_file(fit, settings->output);
    }
    return cli_deliver(&document, settings, status);
}

int cli_run_fit(const struct cli_settings *settings) {
    if (!check_arguments(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    struct gradcmp_fit *fit = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, !settings->quiet && cli_terminal_progress());
    enum gradcmp_status status =
        gradcmp_fit_make(settings->operands[0], settings->operands + 1, settings->operand_count - 1,
                         &options, &fit, &error);
    cli_progress_end(&progress);
    if (status != GRADCMP_OK) {
        return cli_conclude(status, false, &error);
    }
    int exit_status = deliver(fit, settings);
    gradcmp_fit_free(fit);
    return exit_status;
}
