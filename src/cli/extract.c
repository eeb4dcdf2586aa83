/* gradcmp extract: unsharded tensors as a safetensors or an HDF5 file. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/terminal.h"

static bool ends_in(const char *text, const char *ending) {
    size_t length = strlen(text), end = strlen(ending);
    return length > end && strcmp(text + length - end, ending) == 0;
}

/* The format that a name stands for. */
static enum cli_format format_of(const char *name) {
    return ends_in(name, ".safetensors")                    ? CLI_FORMAT_SAFETENSORS
           : ends_in(name, ".h5") || ends_in(name, ".hdf5") ? CLI_FORMAT_HDF5
                                                            : CLI_FORMAT_BY_NAME;
}

enum cli_format cli_extract_format(const struct cli_settings *settings) {
    return settings->format != CLI_FORMAT_BY_NAME ? (enum cli_format)settings->format
                                                  : format_of(settings->output);
}

static bool check_arguments(const struct cli_settings *settings) {
    if (settings->operand_count == 0) {
        cli_complain("no checkpoint given: gradcmp extract CHECKPOINT -o FILE");
    } else if (settings->operand_count > 1) {
        cli_complain("%s: one checkpoint at a time is extracted", settings->operands[1]);
    } else if (settings->output == NULL) {
        cli_complain("no file to write: gradcmp extract CHECKPOINT -o FILE.safetensors");
    } else if (cli_extract_format(settings) == CLI_FORMAT_BY_NAME) {
        cli_complain("%s: the name must end in .safetensors, .h5 or .hdf5, or --format must say "
                     "what to write",
                     settings->output);
    } else if (format_of(settings->output) != CLI_FORMAT_BY_NAME &&
               format_of(settings->output) != cli_extract_format(settings)) {
        cli_complain("%s: the name is one of another format than --format says", settings->output);
    } else {
        return cli_file_check_new(settings->output);
    }
    return false;
}

static int extract(struct gradcmp_checkpoint *checkpoint, const struct gradcmp_options *options,
                   const struct cli_settings *settings) {
    struct cli_file file;
    struct gradcmp_error error = {0};
    bool is_hdf5 = cli_extract_format(settings) == CLI_FORMAT_HDF5;
    bool is_open = is_hdf5 ? cli_file_open_readable(&file, settings->output)
                           : cli_file_open(&file, settings->output);
    if (!is_open) {
        return CLI_EXIT_TROUBLE;
    }
    enum gradcmp_status status =
        is_hdf5 ? gradcmp_checkpoint_extract_hdf5(checkpoint, options, settings->as_float32,
                                                  file.descriptor, &error)
                : gradcmp_checkpoint_extract(checkpoint, options, settings->as_float32,
                                             cli_file_write, &file, &error);
    cli_progress_end(options->progress_user);
    if (status == GRADCMP_ERROR_IO && error.path[0] == '\0') { /* of what is written */
        snprintf(error.path, sizeof error.path, "%s", settings->output);
    }
    int exit_status = cli_conclude(status, file.failed, &error);
    bool is_there = cli_file_close(&file, status == GRADCMP_OK);
    return is_there || exit_status != CLI_EXIT_CONSISTENT ? exit_status : CLI_EXIT_TROUBLE;
}

int cli_run_extract(const struct cli_settings *settings) {
    if (!check_arguments(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct cli_progress progress;
    struct gradcmp_options options = settings->options;
    options.progress = cli_progress_step;
    options.progress_user = &progress;
    options.warn = cli_warn;
    struct gradcmp_checkpoint *checkpoint = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, cli_terminal_progress());
    if (gradcmp_checkpoint_open(settings->operands[0], &options, &checkpoint, &error) !=
        GRADCMP_OK) {
        cli_complain_error(&error);
        return CLI_EXIT_TROUBLE;
    }
    int exit_status = extract(checkpoint, &options, settings);
    gradcmp_checkpoint_free(checkpoint);
    return exit_status;
}
