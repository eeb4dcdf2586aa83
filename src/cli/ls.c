/* gradcmp ls: what is in a checkpoint. */
#include <string.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/terminal.h"

static bool check_operands(const struct cli_settings *settings) {
    if (settings->operand_count == 0) {
        cli_complain("no checkpoint given: gradcmp ls CHECKPOINT (gradcmp ls --help tells more)");
    } else if (settings->operand_count > 1) {
        cli_complain("%s: one checkpoint at a time is listed", settings->operands[1]);
    }
    return settings->operand_count == 1;
}

static struct gradcmp_ls_options list_options(const struct cli_settings *settings) {
    struct gradcmp_ls_options list = GRADCMP_LS_OPTIONS_INIT;
    list.format = settings->json == NULL ? GRADCMP_LS_TEXT : GRADCMP_LS_JSON;
    list.stats = settings->stats;
    list.as_float32 = settings->as_float32;
    list.verbose = settings->verbose;
    list.color = cli_terminal_color((enum cli_color)settings->color);
    list.utf8 = cli_terminal_utf8();
    return list;
}

/* Where the list goes: a file, or standard output (file NULL). */
struct destination {
    struct cli_file *file;
    bool is_document;
};

static int list(struct gradcmp_checkpoint *checkpoint, const struct cli_settings *settings,
                const struct gradcmp_options *options, const struct destination *destination) {
    struct gradcmp_ls_options ls = list_options(settings);
    struct gradcmp_error error = {0};
    struct cli_file *file = destination->file;
    enum gradcmp_status status = gradcmp_checkpoint_list(
        checkpoint, options, &ls, file == NULL ? cli_stdout_write : cli_file_write, file, &error);
    cli_progress_end(options->progress_user);
    bool output_failed = file == NULL ? cli_stdout_failed() : file->failed;
    int exit_status = cli_conclude(status, output_failed, &error);
    if (file != NULL) {
        bool is_there = cli_file_close(file, status == GRADCMP_OK);
        return is_there || exit_status != CLI_EXIT_CONSISTENT ? exit_status : CLI_EXIT_TROUBLE;
    }
    return destination->is_document ? cli_stdout_close_document(exit_status)
                                    : cli_stdout_close(exit_status);
}

int cli_run_ls(const struct cli_settings *settings) {
    bool to_file = settings->json != NULL && strcmp(settings->json, "-") != 0;
    if (!cli_deliver_check(settings) || !check_operands(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    options.warn = cli_warn;
    struct gradcmp_checkpoint *checkpoint = NULL;
    struct gradcmp_error error = {0};
    struct cli_file file;
    struct destination destination = {to_file ? &file : NULL, settings->json != NULL};
    cli_interrupt_catch();
    cli_progress_start(&progress, cli_terminal_progress());
    if (gradcmp_checkpoint_open(settings->operands[0], &options, &checkpoint, &error) !=
        GRADCMP_OK) {
        cli_complain_error(&error);
        return CLI_EXIT_TROUBLE;
    }
    int exit_status = CLI_EXIT_TROUBLE;
    if (!to_file || cli_file_open(&file, settings->json)) {
        exit_status = list(checkpoint, settings, &options, &destination);
    }
    gradcmp_checkpoint_free(checkpoint);
    return exit_status;
}
