/* --help (a screen of 24 lines of 80 columns), --help-all (every option in full), --version. */
#include "cli/help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/option.h"
#include "cli/output.h"

enum { LEFT_COLUMNS = 20, CELL_COLUMNS = 40, MAX_CELLS = 64, SCREEN_COLUMNS = 80 };

/* Options that few need: the screen has no room for them, --help-all and the manual have. */
static bool is_rare(const struct cli_option *option) {
    static const char *const rare[] = {
        "k",      "C",         "max-bound",    "compat",      "allow-same", "allow-iterations",
        "verify", "no-verify", "buffers",      "device",      "previous-a", "previous-b",
        "layers", "iteration", "junit-level",  "annotations", "fit",        "allow-routing",
        "config", "sandbox",   "memory-limit", "reads",       "direct"};
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++) {
        if (strcmp(option->name, rare[i]) == 0) {
            return true;
        }
    }
    return false;
}

static size_t gather(const struct cli_command *command, const struct cli_option **cells) {
    size_t count = 0;
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if ((option->commands & command->bits) != 0 && !is_rare(option) && count < MAX_CELLS) {
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

/* Add a text in lines of up to 72 columns, indented. */
static void print_wrapped(const char *text) {
    enum { INDENT = 8, COLUMNS = 78 };
    size_t column = 0;
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (column == 0 || column + 1 + word > COLUMNS) {
            printf("%s%*s", column == 0 ? "" : "\n", INDENT, "");
            column = INDENT;
        } else {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, word, stdout);
        column += word;
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}

/* Every option in full. */
static void print_manual(const struct cli_command *command) {
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if ((option->commands & command->bits) == 0) {
            continue;
        }
        if (option->letter != 0) {
            printf("  -%c,", option->letter);
        } else {
            fputs("     ", stdout);
        }
        printf(" --%s%s%s\n", option->name, option->placeholder == NULL ? "" : " ",
               option->placeholder == NULL ? "" : option->placeholder);
        print_wrapped(option->detail);
    }
}

/* For the command that runs when none is named: the others. */
static void print_others(void) {
    size_t column = (size_t)printf("Other commands:");
    for (const struct cli_command *other = cli_commands + 1; other->name != NULL; other++) {
        const char *end = other[1].name == NULL ? "" : ",";
        bool breaks = column + 1 + strlen(other->name) + strlen(end) > SCREEN_COLUMNS;
        printf("%s %s%s", breaks ? "\n " : "", other->name, end);
        column = (breaks ? 1 : column) + 1 + strlen(other->name) + strlen(end);
    }
    putchar('\n');
}

int cli_print_help(const struct cli_command *command, bool all) {
    const char *open = command == cli_commands ? "[" : "",
               *close = command == cli_commands ? "]" : "";
    printf("Usage: gradcmp %s%s%s [OPTION]... %s\n", open, command->name, close, command->operands);
    fputs(command->about, stdout);
    if (command == cli_commands) {
        print_others();
    }
    if ((command->bits & (CLI_METRICS | CLI_TRACE)) == 0) { /* these read no checkpoints */
        print_features("Formats:", "format");
    }
    putchar('\n');
    if (all) {
        print_manual(command);
    } else {
        print_options(command);
    }
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
