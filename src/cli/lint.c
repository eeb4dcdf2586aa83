/* gradcmp lint: the determinism settings of a run. */
#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/evidence.h"
#include "cli/message.h"
#include "cli/output.h"

static int explain(const char *rule) {
    struct gradcmp_error error = {0};
    enum gradcmp_status status = gradcmp_lint_explain(rule, cli_stdout_write, NULL, &error);
    return cli_stdout_close(cli_conclude(status, cli_stdout_failed(), &error));
}

int cli_run_lint(const struct cli_settings *settings) {
    if (settings->explain != NULL) {
        return explain(settings->explain);
    }
    if (settings->operand_count == 0) {
        cli_complain("no file given: gradcmp lint FILE... (gradcmp lint --help)");
        return CLI_EXIT_TROUBLE;
    }
    if (!cli_deliver_check(settings)) {
        return CLI_EXIT_TROUBLE;
    }
    struct gradcmp_lint_options options = GRADCMP_LINT_OPTIONS_INIT;
    options.rules = settings->rules;
    options.strict = settings->options.strict;
    options.pair = settings->pair;
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_error error = {0};
    enum gradcmp_status status =
        gradcmp_lint(settings->operands, settings->operand_count, &options, &evidence, &error);
    if (status != GRADCMP_OK) {
        return cli_conclude(status, false, &error);
    }
    return cli_deliver_evidence(evidence, settings, false);
}
