/* Options from a YAML file. */
#include "cli/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/suggest.h"

/* Options that make no sense in a file. */
static bool is_of_files(const struct cli_option *option) {
    static const char *const others[] = {"config", "help", "help-all", "version"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(option->name, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* Find an option by its name: the command's own where several share it. */
static const struct cli_option *find(const struct cli_command *command, const char *name) {
    const struct cli_option *found = NULL;
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if (strcmp(option->name, name) == 0 && is_of_files(option) &&
            (found == NULL || (option->commands & command->bits) != 0)) {
            found = option;
        }
    }
    return found;
}

static void refuse_name(const char *path, const struct gradcmp_config_entry *entry) {
    struct cli_suggestion suggestion = {entry->name, NULL, 0};
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if (is_of_files(option)) {
            cli_suggest(&suggestion, option->name);
        }
    }
    if (suggestion.nearest != NULL) {
        cli_complain("%s: line %" PRIu64 ": no such option: %.100s; did you mean %s?", path,
                     entry->line, entry->name, suggestion.nearest);
    } else {
        cli_complain("%s: line %" PRIu64 ": no such option: %.100s (gradcmp --help-all lists them)",
                     path, entry->line, entry->name);
    }
}

/* True where the value is of the kind that the option takes, whatever it says. */
static bool is_of_kind(const struct cli_option *option, const struct gradcmp_config_entry *entry) {
    switch (option->argument) {
    case CLI_FLAG:
        return entry->kind == GRADCMP_CONFIG_BOOL && !entry->is_item;
    case CLI_COUNT:
    case CLI_SMALL:
    case CLI_STEP:
    case CLI_POSITIVE:
        return entry->kind == GRADCMP_CONFIG_NUMBER && !entry->is_item;
    case CLI_LIST:
        return entry->kind == GRADCMP_CONFIG_TEXT;
    default:
        return !entry->is_item &&
               (entry->kind == GRADCMP_CONFIG_TEXT || entry->kind == GRADCMP_CONFIG_NUMBER);
    }
}

/* True where the option takes the value; a trial, of which nothing is kept. */
static bool takes(const struct cli_option *option, const struct gradcmp_config_entry *entry) {
    static const struct gradcmp_options defaults = GRADCMP_OPTIONS_INIT;
    struct cli_settings trial = {.options = defaults};
    const char *room[2] = {NULL, NULL};
    if (option->argument == CLI_LIST) {
        ((struct cli_list *)((char *)&trial + option->offset))->items = room;
    }
    return is_of_kind(option, entry) && cli_option_store(option, entry->value, &trial);
}

static void refuse_value(const char *path, const struct cli_option *option,
                         const struct gradcmp_config_entry *entry) {
    static const char *const kinds[] = {[GRADCMP_CONFIG_TEXT] = "the text",
                                        [GRADCMP_CONFIG_NUMBER] = "the number",
                                        [GRADCMP_CONFIG_BOOL] = "the truth value",
                                        [GRADCMP_CONFIG_NULL] = "nothing"};
    char wanted[80];
    cli_option_expects(option, wanted, sizeof wanted);
    bool is_null = entry->kind == GRADCMP_CONFIG_NULL;
    cli_complain("%s: line %" PRIu64 ": %s: expected %s, found %s%s%s%.200s", path, entry->line,
                 option->name, option->argument == CLI_FLAG ? "true or false" : wanted,
                 entry->is_item ? "a list with " : "", kinds[entry->kind], is_null ? "" : " ",
                 entry->value);
}

/* Add "--NAME" or "--NAME=VALUE". */
static bool add(struct cli_arguments *arguments, const struct cli_option *option,
                const char *value) {
    bool is_flag = option->argument == CLI_FLAG;
    size_t capacity = strlen(option->name) + strlen(value) + sizeof "--=";
    char *text = malloc(capacity);
    if (text == NULL) {
        cli_complain("out of memory");
        return false;
    }
    snprintf(text, capacity, "--%s%s%s", option->name, is_flag ? "" : "=", is_flag ? "" : value);
    arguments->argv[arguments->argc++] = text;
    arguments->owned++;
    return true;
}

static bool take_entry(const char *path, const struct cli_command *command,
                       const struct gradcmp_config_entry *entry, struct cli_arguments *arguments) {
    const struct cli_option *option = find(command, entry->name);
    if (option == NULL) {
        refuse_name(path, entry);
        return false;
    }
    if (!takes(option, entry)) {
        refuse_value(path, option, entry);
        return false;
    }
    bool is_off = option->argument == CLI_FLAG && strcmp(entry->value, "true") != 0;
    return is_off || (option->commands & command->bits) == 0 ||
           add(arguments, option, entry->value);
}

bool cli_config_read(const char *path, const struct cli_command *command,
                     struct cli_arguments *arguments) {
    struct gradcmp_config *config = NULL;
    struct gradcmp_error error = {0};
    char **argv = arguments->argv;
    int argc = arguments->argc;
    arguments->argv = NULL; /* from here on the caller's to release */
    arguments->argc = 0;
    if (gradcmp_config_open(path, &config, &error) != GRADCMP_OK) {
        cli_complain_error(&error);
        return false;
    }
    size_t count = gradcmp_config_count(config);
    arguments->argv = calloc(count + (size_t)argc + 1, sizeof *argv);
    bool is_fine = arguments->argv != NULL;
    if (!is_fine) {
        cli_complain("out of memory");
    }
    for (size_t i = 0; is_fine && i < count; i++) {
        struct gradcmp_config_entry entry;
        gradcmp_config_entry(config, i, &entry);
        is_fine = take_entry(path, command, &entry, arguments);
    }
    for (int i = 0; is_fine && i < argc; i++) {
        arguments->argv[arguments->argc++] = argv[i];
    }
    gradcmp_config_free(config);
    return is_fine;
}

void cli_config_release(struct cli_arguments *arguments) {
    for (int i = 0; i < arguments->owned; i++) {
        free(arguments->argv[i]);
    }
    free(arguments->argv);
}
