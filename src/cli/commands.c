/* The table of commands. */
#include <string.h>

#include "cli/command.h"

const struct cli_command cli_commands[] = {
    {"compare", CLI_COMPARE, "BASELINE CANDIDATE...",
     "Judge the gradients in each CANDIDATE checkpoint against those in BASELINE.\n"
     "Exit status: 0 consistent, 1 different, 2 trouble or undecided.\n"
     "Other commands: gradcmp ls CHECKPOINT\n",
     "Example: a run on four tensor-parallel ranks against the same run on one\n"
     "  gradcmp --json report.json ckpt/tp1/iter_0000001 ckpt/tp4/iter_0000001\n",
     cli_run_compare},
    {"ls", CLI_LS, "CHECKPOINT",
     "List what is in a checkpoint: format, settings, unsharded tensors.\n"
     "Exit status: 0 listed, 2 trouble.\n",
     "Example: norms and SHA-256 of all tensors, as JSON on standard output\n"
     "  gradcmp ls --stats --json - ckpt/tp4/iter_0000001\n",
     cli_run_ls},
    {NULL, 0, NULL, NULL, NULL, NULL}};

const struct cli_command *cli_command_find(const char *name) {
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}
