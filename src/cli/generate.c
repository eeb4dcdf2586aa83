/* gradcmp --generate: which file is made, and what all of them ask of the table. */
#include "cli/generate.h"

#include <string.h>

#include "cli/message.h"
#include "cli/output.h"

bool cli_generate_is_of(const struct cli_option *option, const struct cli_command *command) {
    return (option->commands & command->bits) != 0;
}

const char *const *cli_generate_words(const struct cli_option *option) {
    static const char *const dtypes[] = {"bf16", "fp16", "fp32", "fp64", "fp8", NULL};
    static const char *const devices[] = {"auto", "cpu", "cuda", NULL};
    static const char *const states[] = {"exp_avg", "exp_avg_sq", "main_grad", "param", NULL};
    switch (option->argument) {
    case CLI_CHOICE:
        return option->choices;
    case CLI_DTYPE:
        return dtypes;
    case CLI_DEVICE:
        return devices;
    default:
        return strcmp(option->name, "state") == 0 ? states : NULL;
    }
}

bool cli_generate_takes_file(const struct cli_option *option) {
    static const char *const words[] = {"FILE", "[FILE]", "PATH", "DIR", "CHECKPOINT"};
    for (size_t i = 0; option->placeholder != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(option->placeholder, words[i]) == 0) {
            return true;
        }
    }
    return option->argument == CLI_OUTPUT;
}

int cli_generate(const char *kind) {
    static const struct {
        const char *name;
        void (*print)(void);
    } kinds[] = {{"man", cli_generate_manual},
                 {"bash", cli_generate_bash},
                 {"zsh", cli_generate_zsh},
                 {"fish", cli_generate_fish}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, kind) == 0) {
            kinds[i].print();
            return cli_stdout_close_document(CLI_EXIT_CONSISTENT);
        }
    }
    cli_complain("--generate: expected man, bash, zsh or fish, found \"%s\"", kind);
    return CLI_EXIT_TROUBLE;
}
