/* The manual page, in man(7)'s macros. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/generate.h"
#include "cli/number.h"

/* Print text so that troff shows it as it is: a dash is a minus, a backslash itself, and no line
 * begins with a request. */
static void print_escaped(const char *text) {
    bool starts_line = true;
    for (; *text != '\0'; text++) {
        if (starts_line && (*text == '.' || *text == '\'')) {
            fputs("\\&", stdout);
        }
        starts_line = *text == '\n';
        switch (*text) {
        case '-':
            fputs("\\-", stdout);
            break;
        case '\\':
            fputs("\\e", stdout);
            break;
        case '"':
            fputs("\\(dq", stdout);
            break;
        default:
            putchar(*text);
        }
    }
}

/* The same, as one line for a human reader of the source: broken before column 80. */
static void print_filled(const char *text) {
    enum { COLUMNS = 72 };
    size_t column = 0;
    while (*text != '\0') {
        char word[128];
        size_t length = strcspn(text, " \n");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (column > 0) {
            bool breaks = column + 1 + length > COLUMNS;
            putchar(breaks ? '\n' : ' ');
            column = breaks ? 0 : column + 1;
        }
        print_escaped(word);
        column += length;
        text += length + strspn(text + length, " \n");
    }
    putchar('\n');
}

static void print_in(const char *font, const char *text) {
    printf("\\f%s", font);
    print_escaped(text);
    fputs("\\fR", stdout);
}

/* The day of the build, or of the source where the builder states it (reproducible builds do). */
static void print_title(void) {
    uint64_t epoch;
    const char *stated = getenv("SOURCE_DATE_EPOCH");
    time_t day = time(NULL);
    if (stated != NULL && cli_parse_count(stated, &epoch) && epoch < UINT32_MAX) {
        day = (time_t)epoch;
    }
    char date[32] = "";
    struct tm parts;
    if (gmtime_r(&day, &parts) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%d", &parts);
    }
    printf(".\\\" Made by gradcmp --generate man from the tables in src/cli.\n"
           ".TH GRADCMP 1 \"%s\" \"gradcmp %s\" \"User Commands\"\n"
           ".SH NAME\ngradcmp \\- compare gradients in checkpoints of one training step\n",
           date, gradcmp_version());
}

static void print_synopsis(void) {
    puts(".SH SYNOPSIS");
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        bool is_first = command == cli_commands;
        fputs(is_first ? "" : ".br\n", stdout);
        fputs("\\fBgradcmp\\fR ", stdout);
        fputs(is_first ? "[" : "", stdout);
        print_in("B", command->name);
        fputs(is_first ? "]" : "", stdout);
        fputs(" [\\fIOPTION\\fR]... ", stdout);
        print_in("I", command->operands);
        putchar('\n');
    }
}

/* The lines of `about` as paragraphs; the pointer to other commands has no place here. */
static void print_about(const char *about) {
    bool skips = false;
    while (*about != '\0') {
        size_t length = strcspn(about, "\n");
        char line[128];
        snprintf(line, sizeof line, "%.*s", (int)length, about);
        if (strncmp(line, "Exit status:", strlen("Exit status:")) == 0) {
            puts(".PP");
        }
        skips = strncmp(line, "Other commands:", strlen("Other commands:")) == 0 ||
                (skips && line[0] == ' ');
        if (!skips) {
            print_escaped(line);
            putchar('\n');
        }
        about += length + (about[length] == '\n');
    }
}

static void print_commands(void) {
    puts(".SH COMMANDS\nWithout the name of a command, \\fBcompare\\fR runs.");
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        fputs(".SS ", stdout);
        print_escaped(command->name);
        putchar('\n');
        print_about(command->about);
    }
}

/* "Commands: compare, fit." */
static void print_takers(const struct cli_option *option) {
    const char *separator = "Commands: ";
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        if (cli_generate_is_of(option, command)) {
            printf("%s%s", separator, command->name);
            separator = ", ";
        }
    }
    puts(".");
}

static void print_options(void) {
    puts(".SH OPTIONS\n"
         "An option's value may also be attached: \\fB\\-\\-k=4\\fR.\n"
         "Flags of one letter may share a dash.\n"
         "What follows \\fB\\-\\-\\fR is no option.");
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        puts(".TP");
        if (option->letter != 0) {
            printf("\\fB\\-%c\\fR, ", option->letter);
        }
        fputs("\\fB\\-\\-", stdout);
        print_escaped(option->name);
        fputs("\\fR", stdout);
        if (option->placeholder != NULL) {
            putchar(' ');
            print_in("I", option->placeholder);
        }
        putchar('\n');
        print_filled(option->detail);
        print_takers(option);
    }
}

static void print_examples(void) {
    puts(".SH EXAMPLES");
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        const char *text = command->example;
        size_t title = strcspn(text, "\n");
        const char *colon = strstr(text, ": ");
        size_t skipped = colon != NULL && colon < text + title ? (size_t)(colon + 2 - text) : 0;
        char line[128];
        snprintf(line, sizeof line, "%.*s", (int)(title - skipped), text + skipped);
        fputs(command == cli_commands ? "" : ".PP\n", stdout);
        print_escaped(line);
        puts(":\n.PP\n.nf");
        print_escaped(text + title + (text[title] == '\n'));
        puts(".fi");
    }
}

/* What is in no table. */
static void print_fixed(void) {
    static const struct {
        const char *head, *title, *text;
    } entries[] = {
        {"EXIT STATUS", "0", "What was compared is consistent."},
        {NULL, "1", "A difference or a finding."},
        {NULL, "2",
         "Trouble: a mistake in the command, a file that could not be read, or nothing that could "
         "be judged."},
        {NULL, "129, 130, 143", "Interrupted by SIGHUP, Ctrl-C or SIGTERM."},
        {"ENVIRONMENT", "NO_COLOR", "Where it is set, --color auto means never."},
        {NULL, "GRADCMP_RANKS", "Set to off, a program that mpirun starts works alone."},
        {NULL, "TMPDIR",
         "Where decompressed streams are kept, in files without a name, that are too large for "
         "memory; by default /var/tmp."},
        {NULL, "GRADCMP_H5HELPER",
         "The program that reads HDF5, where it does not lie beside the library."}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].head != NULL) {
            printf(".SH %s\n", entries[i].head);
        }
        puts(".TP");
        print_in("B", entries[i].title);
        putchar('\n');
        print_filled(entries[i].text);
    }
}

void cli_generate_manual(void) {
    print_title();
    print_synopsis();
    puts(".SH DESCRIPTION\n"
         "\\fBgradcmp\\fR reads checkpoints of training runs and tells whether the\n"
         "gradients in them are the same up to rounding, whatever the runs were\n"
         "split over, and if not, from which layer on.\n"
         "It runs no code that is in a file.");
    print_commands();
    print_options();
    print_fixed();
    print_examples();
}
