/* gradcmp metrics: two metric series, step by step. */
#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/evidence.h"
#include "cli/message.h"

int cli_run_metrics(const struct cli_settings *settings) {
    if (settings->operand_count != 2) {
        cli_complain("expected two paths: gradcmp metrics A B (gradcmp metrics --help)");
        return CLI_EXIT_TROUBLE;
    }
    if (!cli_deliver_check(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct gradcmp_metrics_options options = GRADCMP_METRICS_OPTIONS_INIT;
    options.approximate = settings->mode;
    options.match = settings->options.match;
    options.exclude = settings->options.exclude;
    options.tolerances = settings->tolerances.items;
    options.tolerance_count = settings->tolerances.count;
    options.max_ratios = settings->ratios.items;
    options.max_ratio_count = settings->ratios.count;
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    enum gradcmp_status status =
        gradcmp_metrics(settings->operands[0], settings->operands[1], &options, &evidence, &error);
    if (status != GRADCMP_OK) {
        return cli_conclude(status, false, &error);
    }
    return cli_deliver_evidence(evidence, settings, false);
}
