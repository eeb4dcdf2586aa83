/* Brings results to where they are wanted. */
#include "cli/deliver.h"

#include <string.h>

#include "cli/command.h"
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
    if (written != GRADCMP_OK && written != GRADCMP_ERROR_IO) { /* IO: told when it is closed */
        cli_complain_error(&error);
        status = CLI_EXIT_TROUBLE;
    }
    return cli_stdout_close(status);
}

static int deliver_json(const struct cli_document *document, const char *path, int status) {
    struct gradcmp_error error = {0};
    struct cli_file file;
    if (goes_to_stdout(path)) {
        enum gradcmp_status written =
            document->json(document->content, cli_stdout_write, NULL, &error);
        if (written != GRADCMP_OK && written != GRADCMP_ERROR_IO) {
            cli_complain_error(&error);
            status = CLI_EXIT_TROUBLE;
        }
        return cli_stdout_close_document(status);
    }
    if (!cli_file_open(&file, path)) {
        return CLI_EXIT_TROUBLE;
    }
    enum gradcmp_status written = document->json(document->content, cli_file_write, &file, &error);
    if (written != GRADCMP_OK && written != GRADCMP_ERROR_IO) {
        cli_complain_error(&error);
    }
    bool is_there = cli_file_close(&file, written == GRADCMP_OK);
    return is_there ? status : CLI_EXIT_TROUBLE;
}

int cli_deliver(const struct cli_document *document, const struct cli_settings *settings,
                int status) {
    int worst = status;
    if (settings->json != NULL) {
        worst = deliver_json(document, settings->json, status);
    }
    if (!settings->quiet && !goes_to_stdout(settings->json) && document->text != NULL) {
        int written = deliver_text(document, settings, status);
        worst = written > worst ? written : worst;
    }
    return worst;
}
