/* The program gradcmp: finds the command, reads its options, runs it. */
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/config.h"
#include "cli/contain.h"
#include "cli/generate.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/option.h"
#include "cli/ranks.h"
#include "cli/suggest.h"

/* Started with a standard descriptor closed, the first file opened would take its number, and a
 * report be written into it. Opened the wrong way round, so that writing fails as it should. */
static bool occupy_standard_descriptors(void) {
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
        if (fcntl(descriptor, F_GETFD) < 0 &&
            open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) != descriptor) {
            return false;
        }
    }
    return true;
}

/* A first operand that is no path may be a mistyped or misplaced command. */
static bool check_first_operand(const struct cli_settings *settings) {
    struct stat status;
    const char *word = settings->operand_count == 0 ? "/" : settings->operands[0];
    if (strchr(word, '/') != NULL || lstat(word, &status) == 0) {
        return true;
    }
    if (word[0] == '\0') {
        cli_complain("an empty path where a checkpoint is to be named");
        return false;
    }
    if (cli_command_find(word) != NULL) {
        cli_complain("%s: a command stands before its options: gradcmp %s ...", word, word);
        return false;
    }
    struct cli_suggestion suggestion = {word, NULL, 0};
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        cli_suggest(&suggestion, command->name);
    }
    if (suggestion.nearest != NULL) {
        cli_complain("%s: no such path or command; did you mean %s?", word, suggestion.nearest);
    } else {
        cli_complain("%s: no such path or command", word);
    }
    return false;
}

static int run(const struct cli_command *command, struct cli_arguments arguments, bool is_named);

/* What cannot be shared is done by rank 0, while the others wait for it to leave. */
static int run_on_ranks(const struct cli_command *command, struct cli_settings *settings) {
    if (!command->is_shared || settings->sweep.resume != NULL) {
        bool is_helper = gradcmp_ranks_index(settings->options.ranks) > 0;
        settings->options.ranks = NULL;
        return is_helper ? CLI_EXIT_CONSISTENT : command->run(settings);
    }
    return command->run(settings);
}

/* Run with the options of a file before those of the command line. */
static int run_configured(const char *path, const struct cli_command *command,
                          struct cli_arguments arguments, bool is_named) {
    arguments.is_configured = true;
    struct cli_arguments all = arguments;
    int status =
        cli_config_read(path, command, &all) ? run(command, all, is_named) : CLI_EXIT_TROUBLE;
    cli_config_release(&all);
    return status;
}

static int run(const struct cli_command *command, struct cli_arguments arguments, bool is_named) {
    struct cli_settings settings = {.options = GRADCMP_OPTIONS_INIT,
                                    .sweep = GRADCMP_SWEEP_OPTIONS_INIT,
                                    .configured = arguments.owned};
    /* Room for all arguments in each: operands, and the three lists. */
    size_t room = (size_t)arguments.argc + 1;
    settings.options.ranks = arguments.ranks;
    settings.operands = calloc(4 * room, sizeof *settings.operands);
    int status = CLI_EXIT_TROUBLE;
    if (settings.operands != NULL) {
        settings.tolerances.items = settings.operands + room;
        settings.ratios.items = settings.operands + 2 * room;
        settings.ignore.items = settings.operands + 3 * room;
    }
    if (settings.operands == NULL) {
        cli_complain("out of memory");
    } else if (!cli_parse(command, arguments.argc, arguments.argv, &settings)) {
        status = CLI_EXIT_TROUBLE;
    } else if (settings.help) {
        status = cli_print_help(command, settings.help > 1);
    } else if (settings.version) {
        status = cli_print_version();
    } else if (settings.config != NULL && !arguments.is_configured) {
        status = run_configured(settings.config, command, arguments, is_named);
    } else if (is_named || check_first_operand(&settings)) {
        status = cli_contain(&settings) ? run_on_ranks(command, &settings) : CLI_EXIT_TROUBLE;
    }
    free(settings.operands);
    return status;
}

static int run_named(int argc, char **argv, struct gradcmp_ranks *ranks) {
    const struct cli_command *command = argc > 1 ? cli_command_find(argv[1]) : NULL;
    int skipped = command != NULL ? 2 : argc > 0 ? 1 : 0;
    struct cli_arguments arguments = {
        .argc = argc - skipped, .argv = argv + skipped, .ranks = ranks};
    return run(command != NULL ? command : cli_commands, arguments, command != NULL);
}

/* glibc raises the size from which memory is asked of the kernel, and given back to it, with each
 * large block that is freed; then what one file took stays while the next is read. */
static void give_memory_back(void) {
#ifdef M_MMAP_THRESHOLD
    enum { LARGE_BYTES = 1 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

/* The usual 1024 are for programs that select(); more are there for the asking, and then no file is
 * closed and opened again, however many candidates there are. */
static void allow_many_files(void) {
    enum { ENOUGH = 1 << 16 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < ENOUGH) {
        limit.rlim_cur = limit.rlim_max < ENOUGH ? limit.rlim_max : ENOUGH;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv) {
    give_memory_back();
    allow_many_files();
    if (!occupy_standard_descriptors()) {
        return CLI_EXIT_TROUBLE;
    }
    cli_interrupt_not_by_writes();
    setlocale(LC_CTYPE, ""); /* which characters can be shown; numbers stay as in the C locale */
    if (argc == 3 && strcmp(argv[1], "--generate") == 0) { /* for the build; see generate.h */
        return cli_generate(argv[2]);
    }
    return cli_ranks_run(argc, argv, run_named);
}
