/* Brings results to where they are wanted. */
#include "cli/deliver.h"

#include <string.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/terminal.h"

static bool goes_to_stdout(const char *json) {
    return json != NULL && strcmp(json, "-") == 0;
}

bool cli_deliver_check(const struct cli_settings *settings) {
    return settings->json == NULL || goes_to_stdout(settings->json) ||
           cli_file_check(settings->json);
}

int cli_conclude(enum gradcmp_status status, bool output_failed,
                 const struct gradcmp_error *error) {
    if (status == GRADCMP_OK || output_failed) {
        return CLI_EXIT_CONSISTENT;
    }
    if (status == GRADCMP_ERROR_CANCELLED) {
        cli_complain("interrupted");
        return 128 + cli_interrupt_signal();
    }
    cli_complain_error(error);
    return CLI_EXIT_TROUBLE;
}

static int higher(int a, int b) {
    return a > b ? a : b;
}

static int deliver_text(const struct cli_document *document, const struct cli_settings *settings,
                        int status) {
    struct gradcmp_text_options text = GRADCMP_TEXT_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    text.color = cli_terminal_color((enum cli_color)settings->color);
    text.utf8 = cli_terminal_utf8();
    text.verbose = settings->verbose;
    text.top = settings->top;
    text.width = cli_terminal_width();
    enum gradcmp_status written =
        document->text(document->content, &text, cli_stdout_write, NULL, &error);
    return cli_stdout_close(higher(status, cli_conclude(written, cli_stdout_failed(), &error)));
}

static int deliver_json(const struct cli_document *document, const char *path, int status) {
    struct gradcmp_error error = {0};
    struct cli_file file;
    if (goes_to_stdout(path)) {
        enum gradcmp_status written =
            document->json(document->content, cli_stdout_write, NULL, &error);
        return cli_stdout_close_document(
            higher(status, cli_conclude(written, cli_stdout_failed(), &error)));
    }
    if (!cli_file_open(&file, path)) {
        return CLI_EXIT_TROUBLE;
    }
    enum gradcmp_status written = document->json(document->content, cli_file_write, &file, &error);
    cli_conclude(written, file.failed, &error);
    return cli_file_close(&file, written == GRADCMP_OK) ? status : CLI_EXIT_TROUBLE;
}

int cli_deliver(const struct cli_document *document, const struct cli_settings *settings,
                int status) {
    int worst = status;
    if (settings->json != NULL) {
        worst = deliver_json(document, settings->json, status);
    }
    if (!settings->quiet && !goes_to_stdout(settings->json) && document->text != NULL) {
        worst = higher(worst, deliver_text(document, settings, status));
    }
    return worst;
}
