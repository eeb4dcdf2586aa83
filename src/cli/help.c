/* --help and --version: a screen of 24 lines of 80 columns. */
#include "cli/help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/option.h"
#include "cli/output.h"

enum { LEFT_COLUMNS = 20, CELL_COLUMNS = 40, MAX_CELLS = 64, SCREEN_COLUMNS = 80 };

static size_t gather(const struct cli_command *command, const struct cli_option **cells) {
    size_t count = 0;
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if ((option->commands & command->bit) != 0 && count < MAX_CELLS) {
            cells[count++] = option;
        }
    }
    return count;
}

/* " -v, --verbose       list everything" */
static int print_cell(const struct cli_option *option, int columns) {
    char left[64], letter[8] = "";
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    snprintf(left, sizeof left, " %s--%s%s%s", letter, option->name,
             option->placeholder == NULL ? "" : " ",
             option->placeholder == NULL ? "" : option->placeholder);
    return printf("%-*s%-*s", LEFT_COLUMNS, left, columns, option->brief);
}

/* Two columns, read downwards. */
static void print_options(const struct cli_command *command) {
    const struct cli_option *cells[MAX_CELLS];
    size_t count = gather(command, cells), rows = (count + 1) / 2;
    for (size_t row = 0; row < rows; row++) {
        bool has_right = rows + row < count;
        print_cell(cells[row], has_right ? CELL_COLUMNS - LEFT_COLUMNS : 0);
        if (has_right) {
            print_cell(cells[rows + row], 0);
        }
        putchar('\n');
    }
}

/* Print "LABEL name, name", broken before column 80. */
static void print_features(const char *label, const char *wanted) {
    const char *kind, *name;
    size_t column = strlen(label);
    bool is_first = true;
    fputs(label, stdout);
    for (size_t i = 0; (name = gradcmp_feature(i, &kind)) != NULL; i++) {
        if (strcmp(kind, wanted) != 0) {
            continue;
        }
        bool breaks = column + strlen(", ,") + strlen(name) > SCREEN_COLUMNS;
        printf("%s%s%s", is_first ? " " : ",", is_first ? "" : breaks ? "\n  " : " ", name);
        column = (breaks && !is_first ? 2 : column + 2) + strlen(name);
        is_first = false;
    }
    putchar('\n');
}

int cli_print_help(const struct cli_command *command) {
    const char *open = command == cli_commands ? "[" : "",
               *close = command == cli_commands ? "]" : "";
    printf("Usage: gradcmp %s%s%s [OPTION]... %s\n", open, command->name, close, command->operands);
    fputs(command->about, stdout);
    print_features("Formats:", "format");
    putchar('\n');
    print_options(command);
    printf("\n%s", command->example);
    return cli_stdout_close(CLI_EXIT_CONSISTENT);
}

int cli_print_version(void) {
    printf("gradcmp %s\n", gradcmp_version());
    print_features("formats:", "format");
    print_features("kernels:", "kernel");
    print_features("devices:", "device");
    return cli_stdout_close(CLI_EXIT_CONSISTENT);
}
