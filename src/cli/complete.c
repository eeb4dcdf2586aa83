/* Completion for bash, zsh and fish. Each script finds the command that is being typed, offers its
 * options, and for an option's argument words or files. */
#include <stdio.h>
#include <string.h>

#include "cli/generate.h"

/* Print "A SEPARATOR B ..." */
static void print_command_names(const char *separator) {
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        printf("%s%s", command == cli_commands ? "" : separator, command->name);
    }
}

static void print_words(const char *const *words) {
    for (size_t i = 0; words[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "" : " ", words[i]);
    }
}

/* Print text that stands in single quotes; each of `escaped` gets a backslash. */
static void print_quoted(const char *text, const char *escaped) {
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            fputs(strchr(escaped, *text) != NULL ? "\\" : "", stdout);
            putchar(*text);
        }
    }
}

/* The first sentence of the manual would be long: brief is made for such a place. */
static const char *describe(const struct cli_option *option) {
    return option->brief;
}

/* --- bash --- */

static void print_bash_values(void) {
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        const char *const *words = cli_generate_words(option);
        if (option->argument == CLI_FLAG) {
            continue;
        }
        printf("        --%s%s%c)", option->name, option->letter == 0 ? "" : "|-",
               option->letter == 0 ? ' ' : option->letter);
        if (words != NULL) {
            fputs(" COMPREPLY=($(compgen -W '", stdout);
            print_words(words);
            fputs("' -- \"$current\"))", stdout);
        } else if (cli_generate_takes_file(option)) {
            fputs(" _gradcmp_files \"$current\"", stdout);
        } else {
            fputs(" COMPREPLY=()", stdout);
        }
        puts("; return ;;");
    }
}

static void print_bash_options(void) {
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        printf("        %s) options='", command->name);
        const char *separator = "";
        for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
            if (cli_generate_is_of(option, command)) {
                printf("%s--%s", separator, option->name);
                separator = " ";
            }
        }
        puts("' ;;");
    }
}

void cli_generate_bash(void) {
    puts("# Completion of gradcmp for bash, made by gradcmp --generate bash.\n"
         "# shellcheck shell=bash disable=SC2207\n"
         "_gradcmp_files() {\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    local IFS=$'\\n'\n"
         "    COMPREPLY=($(compgen -f -- \"$1\"))\n"
         "}\n"
         "_gradcmp() {\n"
         "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    local command=compare options=\n"
         "    if [ \"$current\" = = ]; then\n"
         "        current=\n"
         "    elif [ \"$before\" = = ]; then\n"
         "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    fi\n"
         "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
         "        case ${COMP_WORDS[1]} in");
    fputs("            ", stdout);
    print_command_names("|");
    puts(") command=${COMP_WORDS[1]} ;;\n        esac\n    fi\n    case $before in");
    print_bash_values();
    puts("    esac\n    case $command in");
    print_bash_options();
    puts("    esac\n"
         "    case $current in\n"
         "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")); return ;;\n"
         "    esac\n"
         "    _gradcmp_files \"$current\"\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        COMPREPLY+=($(compgen -W '", stdout);
    print_command_names(" ");
    puts("' -- \"$current\"))\n    fi\n}\ncomplete -F _gradcmp gradcmp");
}

/* --- zsh --- */

static void print_zsh_argument(const struct cli_option *option) {
    const char *const *words = cli_generate_words(option);
    /* A second colon: the argument may be left out. */
    fputs(option->argument == CLI_OUTPUT ? "::" : ":", stdout);
    print_quoted(option->placeholder, ":\\[]");
    putchar(':');
    if (words != NULL) {
        putchar('(');
        print_words(words);
        putchar(')');
    } else if (cli_generate_takes_file(option)) {
        fputs("_files", stdout);
    }
}

static void print_zsh_option(const struct cli_option *option) {
    bool has_argument = option->argument != CLI_FLAG;
    const char *repeats = option->argument == CLI_LIST ? "*" : "";
    fputs("                ", stdout);
    if (option->letter != 0) {
        printf("'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name, option->letter,
               has_argument ? "+" : "", option->name, has_argument ? "=" : "");
    } else {
        printf("'%s--%s%s[", repeats, option->name, has_argument ? "=" : "");
    }
    print_quoted(describe(option), ":\\[]");
    putchar(']');
    if (has_argument) {
        print_zsh_argument(option);
    }
    puts("' \\");
}

/* The first line of what a command is about. */
static void print_about(const char *about, const char *escaped) {
    char line[128];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(about, "\n"), about);
    print_quoted(line, escaped);
}

void cli_generate_zsh(void) {
    puts("#compdef gradcmp\n"
         "# Completion of gradcmp for zsh, made by gradcmp --generate zsh.\n"
         "_gradcmp() {\n"
         "    local command=compare\n"
         "    local -a commands\n"
         "    commands=(");
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        printf("        '%s:", command->name);
        print_about(command->about, ":\\");
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n"
         "        _describe -t commands command commands\n"
         "        _files\n"
         "        return\n"
         "    fi");
    fputs("    case ${words[2]} in\n        ", stdout);
    print_command_names("|");
    puts(") command=${words[2]}; shift words; (( CURRENT-- )) ;;\n"
         "    esac\n"
         "    case $command in");
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        printf("        %s)\n            _arguments -s -S \\\n", command->name);
        for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
            if (cli_generate_is_of(option, command)) {
                print_zsh_option(option);
            }
        }
        puts("                '*:file:_files' ;;");
    }
    puts("    esac\n}\n"
         "if [ \"$funcstack[1]\" = _gradcmp ]; then\n    _gradcmp \"$@\"\n"
         "else\n    compdef _gradcmp gradcmp\nfi");
}

/* --- fish --- */

static void print_fish_option(const struct cli_option *option) {
    const char *const *words = cli_generate_words(option);
    fputs("complete -c gradcmp -n 'contains -- (__gradcmp_command)", stdout);
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        if (cli_generate_is_of(option, command)) {
            printf(" %s", command->name);
        }
    }
    printf("' -l %s", option->name);
    if (option->letter != 0) {
        printf(" -s %c", option->letter);
    }
    if (words != NULL) {
        fputs(" -x -a '", stdout);
        print_words(words);
        putchar('\'');
    } else if (cli_generate_takes_file(option)) {
        fputs(" -r -F", stdout);
    } else if (option->argument != CLI_FLAG) {
        fputs(" -x", stdout);
    }
    /* In single quotes fish takes \' and \\ only. */
    fputs(" -d '", stdout);
    for (const char *text = describe(option); *text != '\0'; text++) {
        fputs(*text == '\'' || *text == '\\' ? "\\" : "", stdout);
        putchar(*text);
    }
    puts("'");
}

void cli_generate_fish(void) {
    puts("# Completion of gradcmp for fish, made by gradcmp --generate fish.\n"
         "function __gradcmp_command\n"
         "    set -l words (commandline -opc)\n"
         "    if set -q words[2]");
    fputs("        and contains -- $words[2] ", stdout);
    print_command_names(" ");
    puts("\n        echo $words[2]\n    else\n        echo compare\n    end\nend\n"
         "function __gradcmp_is_first\n"
         "    test (count (commandline -opc)) -eq 1\n"
         "end");
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        printf("complete -c gradcmp -n __gradcmp_is_first -a %s -d '", command->name);
        char line[128];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(command->about, "\n"), command->about);
        for (const char *text = line; *text != '\0'; text++) {
            fputs(*text == '\'' || *text == '\\' ? "\\" : "", stdout);
            putchar(*text);
        }
        puts("'");
    }
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        print_fish_option(option);
    }
}
