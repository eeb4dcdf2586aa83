/* gradcmp bits: everything that a resume restores, bit for bit. */
#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/evidence.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/terminal.h"

/* What could not be read is told where other trouble is. False where nothing was told. */
static bool complain_errors(const struct gradcmp_evidence *evidence) {
    bool is_told = false;
    for (size_t i = 0; i < gradcmp_evidence_case_count(evidence); i++) {
        struct gradcmp_case found;
        gradcmp_evidence_case(evidence, i, &found);
        if (found.outcome == GRADCMP_CASE_ERROR) {
            cli_complain("%s: %s", found.file, found.text);
            is_told = true;
        }
    }
    return is_told;
}

int cli_run_bits(const struct cli_settings *settings) {
    if (settings->operand_count < (settings->hash == NULL ? 2U : 1U)) {
        cli_complain("expected two checkpoints: gradcmp bits A B... (gradcmp bits --help)");
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
    struct gradcmp_bits_options bits = GRADCMP_BITS_OPTIONS_INIT;
    bits.ignore = settings->ignore.items;
    bits.ignore_count = settings->ignore.count;
    bits.no_default_ignore = settings->no_default_ignore;
    bits.hash = settings->hash;
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    cli_interrupt_catch();
    cli_progress_start(&progress, !settings->quiet && cli_terminal_progress());
    enum gradcmp_status status = gradcmp_bits(settings->operands, settings->operand_count, &options,
                                              &bits, &evidence, &error);
    cli_progress_end(&progress);
    if (status != GRADCMP_OK) {
        return cli_conclude(status, false, &error);
    }
    bool is_told = complain_errors(evidence);
    return cli_deliver_evidence(evidence, settings, is_told);
}
