/* Reading the command line by the table of options. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "cli/number.h"
#include "cli/option.h"
#include "cli/suggest.h"

enum { MAX_TAKEN = 128 }; /* more than there are options */

/* An option that was given. */
struct taken {
    const struct cli_option *option;
    const char *text;
};

/* Where the parser stands. */
struct parser {
    const struct cli_command *command;
    char *const *argv; /* ended by NULL */
    int next;          /* index of the next argument */
    struct cli_settings *settings;
    struct taken taken[MAX_TAKEN];
    size_t taken_count;
};

static bool is_of(const struct cli_option *option, const struct parser *parser) {
    return (option->commands & parser->command->bits) != 0;
}

static const struct cli_option *find_long(const struct parser *parser, const char *name,
                                          size_t length) {
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if (is_of(option, parser) && strlen(option->name) == length &&
            memcmp(option->name, name, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static const struct cli_option *find_letter(const struct parser *parser, char letter) {
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if (is_of(option, parser) && option->letter == letter) {
            return option;
        }
    }
    return NULL;
}

static bool refuse_unknown(const struct parser *parser, const char *name, size_t length) {
    char word[32];
    struct cli_suggestion suggestion = {"", NULL, 0};
    if (length < sizeof word) {
        memcpy(word, name, length);
        word[length] = '\0';
        suggestion.word = word;
    }
    for (const struct cli_option *option = cli_options; option->name != NULL; option++) {
        if (is_of(option, parser)) {
            cli_suggest(&suggestion, option->name);
        }
    }
    int shown = length > 200 ? 200 : (int)length;
    if (suggestion.nearest != NULL) {
        cli_complain("--%.*s: no such option of %s; did you mean --%s?", shown, name,
                     parser->command->name, suggestion.nearest);
    } else {
        cli_complain("--%.*s: no such option of %s (gradcmp %s --help lists them)", shown, name,
                     parser->command->name, parser->command->name);
    }
    return false;
}

static enum gradcmp_dtype find_dtype(const char *name) {
    static const struct {
        const char *name;
        enum gradcmp_dtype dtype;
    } aliases[] = {{"bf16", GRADCMP_DTYPE_BFLOAT16},     {"fp16", GRADCMP_DTYPE_FLOAT16},
                   {"fp32", GRADCMP_DTYPE_FLOAT32},      {"fp64", GRADCMP_DTYPE_FLOAT64},
                   {"fp8", GRADCMP_DTYPE_FLOAT8_E4M3FN}, {"half", GRADCMP_DTYPE_FLOAT16},
                   {"float", GRADCMP_DTYPE_FLOAT32},     {"double", GRADCMP_DTYPE_FLOAT64}};
    static const char module[] = "torch.";
    name += strncmp(name, module, sizeof module - 1) == 0 ? sizeof module - 1 : 0;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(aliases[i].name, name) == 0) {
            return aliases[i].dtype;
        }
    }
    for (int dtype = GRADCMP_DTYPE_FLOAT64; dtype <= GRADCMP_DTYPE_FLOAT8_E5M2; dtype++) {
        if (strcmp(gradcmp_dtype_name((enum gradcmp_dtype)dtype), name) == 0) {
            return (enum gradcmp_dtype)dtype;
        }
    }
    return GRADCMP_DTYPE_NONE;
}

static bool store_choice(const struct cli_option *option, const char *text, int *field) {
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            *field = option->value + i;
            return true;
        }
    }
    return false;
}

static bool store_small(const char *text, unsigned *field) {
    uint64_t count;
    if (!cli_parse_count(text, &count) || count == 0 || count > UINT32_MAX) {
        return false;
    }
    *field = (unsigned)count;
    return true;
}

static bool store_step(const char *text, int64_t *field) {
    uint64_t count;
    if (!cli_parse_count(text, &count) || count > INT64_MAX) {
        return false;
    }
    *field = (int64_t)count;
    return true;
}

static bool store_device(const char *text, struct gradcmp_options *options) {
    static const char *const names[] = {"auto", "cpu", "cuda"};
    uint64_t index = 0;
    size_t length = strcspn(text, ":");
    for (int i = 0; i < 3; i++) {
        bool has_number = i == GRADCMP_DEVICE_CUDA && text[length] == ':';
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0 &&
            (has_number ? cli_parse_count(text + length + 1, &index) && index <= INT16_MAX
                        : text[length] == '\0')) {
            options->device = (enum gradcmp_device)i;
            options->device_index = (unsigned)index;
            return true;
        }
    }
    return false;
}

/* Convert an argument into the option's field; false where it is no such thing. */
static bool store(const struct cli_option *option, const char *text, void *field) {
    switch (option->argument) {
    case CLI_FLAG:
        *(int *)field = option->value;
        return true;
    case CLI_TEXT:
    case CLI_OUTPUT:
        *(const char **)field = text;
        return text[0] != '\0';
    case CLI_COUNT:
        return cli_parse_count(text, field) && *(uint64_t *)field > 0;
    case CLI_SMALL:
        return store_small(text, field);
    case CLI_STEP:
        return store_step(text, field);
    case CLI_POSITIVE:
        return cli_parse_positive(text, field);
    case CLI_SIZE:
        return cli_parse_size(text, field) && *(uint64_t *)field > 0;
    case CLI_DTYPE:
        *(enum gradcmp_dtype *)field = find_dtype(text);
        return *(enum gradcmp_dtype *)field != GRADCMP_DTYPE_NONE;
    case CLI_DEVICE:
        return store_device(text, field);
    case CLI_CHOICE:
        return store_choice(option, text, field);
    case CLI_LIST:
        ((struct cli_list *)field)->items[((struct cli_list *)field)->count++] = text;
        return text[0] != '\0';
    }
    return false;
}

bool cli_option_store(const struct cli_option *option, const char *text,
                      struct cli_settings *settings) {
    return store(option, text, (char *)settings + option->offset);
}

void cli_option_expects(const struct cli_option *option, char *out, size_t capacity) {
    static const char *const wanted[] = {[CLI_FLAG] = "nothing",
                                         [CLI_TEXT] = "a text that is not empty",
                                         [CLI_LIST] = "a text that is not empty",
                                         [CLI_OUTPUT] = "a file",
                                         [CLI_COUNT] = "a whole number of at least 1",
                                         [CLI_SMALL] = "a whole number of at least 1",
                                         [CLI_STEP] = "a whole number of at least 0",
                                         [CLI_POSITIVE] = "a number above 0",
                                         [CLI_SIZE] = "a size such as 4MiB or 1GiB",
                                         [CLI_DTYPE] = "bf16, fp16, fp32, fp64 or fp8",
                                         [CLI_DEVICE] = "auto, cpu, cuda or cuda:N"};
    if (option->argument != CLI_CHOICE) {
        snprintf(out, capacity, "%s", wanted[option->argument]);
        return;
    }
    size_t at = 0;
    for (size_t i = 0; at < capacity && option->choices[i] != NULL; i++) {
        const char *before = i == 0 ? "" : option->choices[i + 1] == NULL ? " or " : ", ";
        at += (size_t)snprintf(out + at, capacity - at, "%s%s", before, option->choices[i]);
    }
}

static void refuse_argument(const struct cli_option *option, const char *text) {
    char wanted[80];
    cli_option_expects(option, wanted, sizeof wanted);
    cli_complain("--%s: expected %s, found \"%s\"", option->name, wanted, text);
}

/* What a wrapper sets and its user overrides: the last one holds. */
static bool may_repeat(const struct cli_option *option) {
    return option->argument == CLI_FLAG || option->argument == CLI_LIST ||
           strcmp(option->name, "color") == 0 || option->argument == CLI_SMALL ||
           option->argument == CLI_SIZE;
}

/* Of two options that decide what is judged or written, none is dropped silently. */
static bool check_repeated(struct parser *parser, const struct cli_option *option,
                           const char *text) {
    for (size_t i = 0; i < parser->taken_count; i++) {
        const struct taken *before = &parser->taken[i];
        if (before->option != option && before->option->offset == option->offset) {
            cli_complain("--%s and --%s: they contradict each other", before->option->name,
                         option->name);
            return false;
        }
        if (before->option == option && !may_repeat(option) && strcmp(before->text, text) != 0) {
            cli_complain("--%s: given twice, as \"%s\" and as \"%s\"", option->name, before->text,
                         text);
            return false;
        }
    }
    if (parser->taken_count < MAX_TAKEN) {
        parser->taken[parser->taken_count++] = (struct taken){option, text};
    }
    return true;
}

static bool take(struct parser *parser, const struct cli_option *option, const char *text) {
    if (!check_repeated(parser, option, text)) {
        return false;
    }
    if (!cli_option_store(option, text, parser->settings)) {
        refuse_argument(option, text);
        return false;
    }
    return true;
}

static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* True where the argument of an option that may stand alone belongs to something else: there is
 * none, it is an option, or it is a directory, into which nothing can be written. */
static bool is_left_out(const char *text) {
    return text == NULL || (text[0] == '-' && text[1] != '\0') || is_directory(text);
}

/* True where a command has all the operands that it needs, so that one more directory behind an
 * option was rather meant to be its file. */
static bool has_operands(const struct parser *parser) {
    size_t needed = 1;
    for (const char *at = parser->command->operands; *at != '\0'; at++) {
        needed += *at == ' ';
    }
    return parser->settings->operand_count >= needed;
}

/* Take an option whose argument, if any, is `attached` ("--k=4") or the next one ("--k 4"). */
static bool take_option(struct parser *parser, const struct cli_option *option,
                        const char *attached) {
    if (option->argument == CLI_FLAG) {
        if (attached != NULL) {
            cli_complain("--%s: takes no value, found \"%s\"", option->name, attached);
            return false;
        }
        return take(parser, option, "");
    }
    if (attached != NULL) {
        return take(parser, option, attached);
    }
    const char *next = parser->argv[parser->next];
    if (option->argument == CLI_OUTPUT && next != NULL && is_directory(next) &&
        has_operands(parser)) {
        cli_complain("--%s: %s is a directory; name a file in it (or --%s - before a checkpoint)",
                     option->name, next, option->name);
        return false;
    }
    if (option->argument == CLI_OUTPUT && is_left_out(next)) {
        return take(parser, option, "-");
    }
    if (next == NULL) {
        cli_complain("--%s: needs a value: --%s %s", option->name, option->name,
                     option->placeholder);
        return false;
    }
    parser->next++;
    return take(parser, option, next);
}

static bool take_long(struct parser *parser, const char *text) {
    size_t length = strcspn(text, "=");
    const struct cli_option *option = find_long(parser, text, length);
    if (option == NULL) {
        return refuse_unknown(parser, text, length);
    }
    return take_option(parser, option, text[length] == '=' ? text + length + 1 : NULL);
}

/* Letters stand for flags only, so that several may share a dash. */
static bool take_letters(struct parser *parser, const char *text) {
    for (; *text != '\0'; text++) {
        const struct cli_option *option = find_letter(parser, *text);
        if (option == NULL) {
            cli_complain("-%c: no such option of %s (gradcmp %s --help lists them)", *text,
                         parser->command->name, parser->command->name);
            return false;
        }
        if (!take_option(parser, option, NULL)) {
            return false;
        }
    }
    return true;
}

static void take_operand(struct parser *parser, const char *text) {
    parser->settings->operands[parser->settings->operand_count++] = text;
}

/* Set aside what a file says of the curve of the bound, so that what is said here can be told. */
static struct gradcmp_options set_aside(struct gradcmp_options *options) {
    struct gradcmp_options file = *options;
    options->k = options->C = 0.0;
    options->fit = NULL;
    options->compat_megatron = 0;
    return file;
}

/* Take what the file says where it goes with what was said here: a fit brings its own curve, which
 * k, C and the constant rule contradict; beside the constant rule k and C mean another bound. */
static void take_back(struct gradcmp_options *options, const struct gradcmp_options *file) {
    bool has_curve = options->k != 0.0 || options->C != 0.0;
    bool has_bound = options->fit != NULL || options->compat_megatron != 0;
    if (has_bound) {
        return;
    }
    options->k = options->k != 0.0 ? options->k : file->k;
    options->C = options->C != 0.0 ? options->C : file->C;
    options->fit = has_curve ? NULL : file->fit;
    options->compat_megatron = file->compat_megatron;
}

/* Drop the tolerances of a file that chose --mode approx, where exact was said here: the first
 * `count` of the list. */
static void drop_tolerances(struct cli_settings *settings, bool was_approximate, size_t count) {
    struct cli_list *list = &settings->tolerances;
    if (was_approximate && settings->mode == 0 && count > 0) {
        list->count -= count;
        memmove(list->items, list->items + count, list->count * sizeof *list->items);
    }
}

/* Refuse what says how to do something that was not asked for. */
static bool check_idle(const struct cli_settings *settings, bool is_ls) {
    if (settings->options.map_side != 0 && settings->options.map == NULL) {
        cli_complain("--side says whose rules of --map are applied, and there is no --map");
        return false;
    }
    if (is_ls && settings->as_float32 && !settings->stats) {
        cli_complain("--as float32 is of what --stats hashes, and there is no --stats");
        return false;
    }
    return true;
}

bool cli_parse(const struct cli_command *command, int argc, char *const *argv,
               struct cli_settings *settings) {
    struct parser parser = {.command = command, .argv = argv, .settings = settings};
    struct gradcmp_options file;
    bool is_aside = false, was_approximate = false;
    size_t tolerances = 0;
    while (parser.next < argc && !settings->help && !settings->version) {
        if (parser.next == settings->configured) {
            parser.taken_count = 0; /* what a file says may be said otherwise here */
            file = set_aside(&settings->options);
            was_approximate = settings->mode != 0;
            tolerances = settings->tolerances.count;
            is_aside = true;
        }
        const char *text = argv[parser.next++];
        bool is_fine = true;
        if (strcmp(text, "--") == 0) {
            while (parser.next < argc) {
                take_operand(&parser, argv[parser.next++]);
            }
        } else if (strncmp(text, "--", 2) == 0) {
            is_fine = take_long(&parser, text + 2);
        } else if (text[0] == '-' && text[1] != '\0') {
            is_fine = take_letters(&parser, text + 1);
        } else {
            take_operand(&parser, text);
        }
        if (!is_fine) {
            return false;
        }
    }
    if (is_aside) {
        take_back(&settings->options, &file);
        drop_tolerances(settings, was_approximate, tolerances);
    }
    return settings->help || settings->version ||
           check_idle(settings, (command->bits & CLI_LS) != 0);
}
