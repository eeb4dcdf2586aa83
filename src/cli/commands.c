/* The table of commands. */
#include <string.h>

#include "cli/command.h"

const struct cli_command cli_commands[] = {
    {"compare", CLI_COMPARE, "BASELINE CANDIDATE...",
     "Judge the gradients in each CANDIDATE checkpoint against those in BASELINE.\n"
     "Exit status: 0 consistent, 1 different, 2 trouble or undecided.\n",
     "Example: a run on four tensor-parallel ranks against the same run on one\n"
     "  gradcmp --json report.json ckpt/tp1/iter_0000001 ckpt/tp4/iter_0000001\n",
     cli_run_compare, true},
    {"sweep", CLI_SWEEP | CLI_COMPARE, "DIR | --plan FILE [DIR]",
     "Compare all checkpoints below DIR with one baseline: the one with the least\n"
     "parallelism, or that of --baseline; or as the plan says. Prints one matrix.\n"
     "Exit status: 0 all consistent or as planned, 1 not, 2 trouble in a row.\n",
     "Example: every parallel configuration of one model\n"
     "  gradcmp sweep --baseline tp1pp1 runs/nightly\n",
     cli_run_sweep, true},
    {"ls", CLI_LS, "CHECKPOINT",
     "List what is in a checkpoint: format, settings, unsharded tensors.\n"
     "Exit status: 0 listed, 2 trouble.\n",
     "Example: norms and SHA-256 of all tensors, as JSON on standard output\n"
     "  gradcmp ls --stats --json - ckpt/tp4/iter_0000001\n",
     cli_run_ls, false},
    {"check", CLI_CHECK, "CHECKPOINT...",
     "Look at each CHECKPOINT alone, at any step: do copies agree, are tied weights\n"
     "equal, are weights their rounded masters, is anything NaN, all zero or lost?\n"
     "Exit status: 0 clean, 1 findings, 2 trouble.\n",
     "Example: the newest iteration of a run\n"
     "  gradcmp check /scratch/run17/checkpoints\n",
     cli_run_check, true},
    {"extract", CLI_EXTRACT, "CHECKPOINT -o FILE",
     "Write the unsharded tensors of CHECKPOINT to one safetensors or HDF5 FILE.\n"
     "Exit status: 0 written, 2 trouble.\n",
     "Example: the gradients alone, as binary32\n"
     "  gradcmp extract --state exp_avg --as float32 ckpt/tp4 -o grads.safetensors\n",
     cli_run_extract, false},
    {"fit", CLI_FIT, "BASELINE GOOD...",
     "Measure the rounding noise of runs known to be good, and write a bound made\n"
     "from it to a FILE that compare --fit takes.\n"
     "Exit status: 0 fitted, 1 a pair is not good, 2 trouble or nothing to measure.\n",
     "Example: from two layouts that are trusted\n"
     "  gradcmp fit -o noise.yaml ckpt/tp1 ckpt/tp2 ckpt/tp4\n"
     "  gradcmp --fit noise.yaml ckpt/tp1 ckpt/new\n",
     cli_run_fit, false},
    {"metrics", CLI_METRICS, "A B",
     "Find the first step at which the metrics of two runs differ: TensorBoard event\n"
     "files or their folder, golden values (JSON), training logs, CSV.\n"
     "Exit status: 0 match, 1 differ, 2 unreadable or nothing to judge.\n",
     "Example: within the tolerances of Megatron-LM's tests, at most 15% slower\n"
     "  gradcmp metrics --mode approx --max-ratio iteration-time=1.15 gold.json run/tb\n",
     cli_run_metrics, false},
    {"bits", CLI_BITS, "A B...",
     "Compare all that a resume restores in A and each B, bit for bit: weights,\n"
     "states, steps, generators, data position, arguments. Two runs: by iteration.\n"
     "Exit status: 0 identical, 1 different, 2 trouble. May differ (and is listed):\n"
     "save, load, save_time, run_name, hostname, ... (gradcmp bits in README.md)\n",
     "Example: a resumed run against the unbroken one; the learning rate may differ\n"
     "  gradcmp bits --ignore args.lr unbroken/iter_0000200 resumed/iter_0000200\n",
     cli_run_bits, false},
    {"lint", CLI_LINT, "FILE...",
     "Look at the determinism settings of a run: environment dumps, launch scripts,\n"
     "arguments (JSON, YAML), training logs, pip freeze, checkpoints.\n"
     "Exit status: 0 pass or warnings, 1 errors, 2 unreadable or nothing to judge.\n",
     "Example: what differs between two runs, and does it spoil their comparison?\n"
     "  gradcmp lint --pair run1/launch.sh run2/launch.sh\n",
     cli_run_lint, false},
    {"trace", CLI_TRACE, "A B",
     "Find the first operation whose outputs differ in two traces of a run: folders\n"
     "of Megatron-LM's tracer, PyTorch's DebugMode or msprobe, or of several of them.\n"
     "Exit status: 0 equal, 1 diverged, 2 invalid or trouble.\n",
     "Example: where did two runs that should be the same part?\n"
     "  gradcmp trace --json trace.json run17/traces run18/traces\n",
     cli_run_trace, false},
    {NULL, 0, NULL, NULL, NULL, NULL, false}};

const struct cli_command *cli_command_find(const char *name) {
    for (const struct cli_command *command = cli_commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}
