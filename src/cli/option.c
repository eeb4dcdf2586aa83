/* The table of options. */
#include "cli/option.h"

#define FIELD(member) offsetof(struct cli_settings, member)
#define CHOICES(...)                                                                               \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }
#define NO_ARGUMENT NULL, NULL

const struct cli_option cli_options[] = {
    {"state", 0, CLI_TEXT, CLI_COMPARE | CLI_FIT | CLI_LS | CLI_EXTRACT, FIELD(options.state), 0,
     "NAME", NULL, "state, e.g. exp_avg",
     "Compare (list) this state of the parameters: exp_avg, exp_avg_sq, main_grad, param. By "
     "default "
     "exp_avg where either side has it, else main_grad; ls lists all."},
    {"match", 0, CLI_TEXT, CLI_COMPARE | CLI_FIT | CLI_LS | CLI_EXTRACT | CLI_METRICS,
     FIELD(options.match), 0, "REGEX", NULL, "only these names",
     "Take only parameters whose name has a match of this POSIX extended regular expression."},
    {"exclude", 0, CLI_TEXT, CLI_COMPARE | CLI_FIT | CLI_LS | CLI_EXTRACT | CLI_METRICS,
     FIELD(options.exclude), 0, "REGEX", NULL, "not these names",
     "Leave out parameters whose name has a match of this POSIX extended regular expression."},
    {"dtype", 0, CLI_DTYPE, CLI_COMPARE | CLI_FIT, FIELD(options.dtype), 0, "TYPE", NULL,
     "bf16 fp16 fp32 fp64",
     "The type that the runs computed in: bf16, fp16, fp32, fp64 or fp8, or PyTorch's names. By "
     "default the checkpoints tell."},
    {"k", 0, CLI_POSITIVE, CLI_COMPARE, FIELD(options.k), 0, "X", NULL, "factor of the bound",
     "Factor of the bound; by default 4, or 32 for fp32 and fp64."},
    {"C", 0, CLI_POSITIVE, CLI_COMPARE, FIELD(options.C), 0, "X", NULL, "its growth a layer",
     "Growth of the bound from one layer to the next; by default 1.03."},
    {"max-bound", 0, CLI_POSITIVE, CLI_COMPARE, FIELD(options.max_bound), 0, "X", NULL,
     "its cap (0.25)", "The bound never exceeds this; by default 0.25."},
    {"compat", 0, CLI_CHOICE, CLI_COMPARE, FIELD(options.compat_megatron), 1, "megatron",
     CHOICES("megatron"), "one constant bound",
     "Use the one constant bound of Megatron-LM's script: that of layer 0 of 32 layers."},
    {"fit", 0, CLI_TEXT, CLI_COMPARE, FIELD(options.fit), 0, "FILE", NULL, "bound by gradcmp fit",
     "Judge by the noise that gradcmp fit measured on known-good runs and wrote to FILE."},
    {"allow-loose", 0, CLI_FLAG, CLI_FIT, FIELD(options.allow_loose), 1, NO_ARGUMENT,
     "beyond the theory",
     "Take good runs that differ by more than the theory allows, where nothing but rounding could "
     "be seen in them; the fit is then looser than the theory, and says so."},
    {"strict", 0, CLI_FLAG, CLI_COMPARE | CLI_LINT, FIELD(options.strict), 1, NO_ARGUMENT,
     "doubts fail too",
     "Fail a pair for parameters that cannot be judged; of lint, fail for warnings."},
    {"vocab", 0, CLI_COUNT, CLI_COMPARE | CLI_FIT, FIELD(options.vocab), 0, "N", NULL,
     "vocabulary's rows",
     "True rows of the vocabulary; those behind are padding and are not compared."},
    {"layers", 0, CLI_COUNT, CLI_ALL, FIELD(options.layers), 0, "N", NULL, "layers of the model",
     "Layers of the model; by default the checkpoints tell."},
    {"iteration", 0, CLI_STEP, CLI_ALL, FIELD(options.iteration), 0, "N", NULL,
     "which of a folder's", "Open this iteration where a path is a folder with several."},
    {"allow-same", 0, CLI_FLAG, CLI_COMPARE, FIELD(options.allow_same), 1, NO_ARGUMENT,
     "one path twice", "Compare a checkpoint with itself all the same."},
    {"allow-iterations", 0, CLI_FLAG, CLI_COMPARE | CLI_FIT, FIELD(options.allow_iterations), 1,
     NO_ARGUMENT, "different steps", "Compare checkpoints of different iterations all the same."},
    {"allow-routing", 0, CLI_FLAG, CLI_COMPARE, FIELD(options.allow_routing), 1, NO_ARGUMENT,
     "flipped experts pass",
     "Let a pair pass whose differences a flipped choice of experts explains."},
    {"verify", 0, CLI_FLAG, CLI_ALL, FIELD(options.verify), 1, NO_ARGUMENT, "check all checksums",
     "Check the stored checksums also of records that are needed in part only."},
    {"no-verify", 0, CLI_FLAG, CLI_ALL, FIELD(options.verify), -1, NO_ARGUMENT,
     "check no checksums", "Check no stored checksum."},
    {"stats", 0, CLI_FLAG, CLI_LS, FIELD(stats), 1, NO_ARGUMENT, "norm, max, SHA-256",
     "Read every tensor: norm, largest magnitude and SHA-256 of the unsharded bytes."},
    {"as", 0, CLI_CHOICE, CLI_LS | CLI_EXTRACT, FIELD(as_float32), 1, "float32", CHOICES("float32"),
     "as binary32",
     "With ls --stats: SHA-256 of the values as little-endian binary32; extract: write them so."},
    {"output", 'o', CLI_TEXT, CLI_EXTRACT | CLI_FIT, FIELD(output), 0, "FILE", NULL,
     "file to write", "Write this file; it appears whole or not at all."},
    {"ignore", 0, CLI_LIST, CLI_BITS, FIELD(ignore), 0, "PATH", NULL, "may differ; a glob",
     "Leave out what has this path (a glob such as args.lr or *seed*, of all or of its last parts; "
     "'.' and '/' are the same); may be given several times. By default save, load, save_time, "
     "timestamp, start_time, wall_time, elapsed, run_name, hostname, master_addr, master_port, "
     "tensorboard_dir, wandb_save_dir, wandb_exp_name, output_dir, log_dir, logging_dir and "
     "non_persistent_global_ckpt_dir and non_persistent_local_ckpt_dir may differ."},
    {"no-ignore", 0, CLI_FLAG, CLI_BITS, FIELD(no_default_ignore), 1, NO_ARGUMENT,
     "save, load: no more", "Nothing may differ by default, only what --ignore says."},
    {"hash", 0, CLI_TEXT, CLI_BITS, FIELD(hash), 0, "FILE", NULL, "instead of a twin",
     "Compare every checkpoint with the fingerprints in FILE, the same for any sharding; where "
     "there is no FILE, write it from the first checkpoint."},
    {"plan", 0, CLI_TEXT, CLI_SWEEP, FIELD(sweep.plan), 0, "FILE", NULL, "what to compare",
     "Compare what this YAML file names: a sweep plan (options given here win over its own), or "
     "the "
     "model_config.yaml of a Megatron functional test, whose runs are repeat_R_key_KEY below DIR "
     "(a "
     "configuration without one is exit 2)."},
    {"baseline", 0, CLI_TEXT, CLI_SWEEP, FIELD(sweep.baseline), 0, "PATH", NULL, "which is trusted",
     "The baseline: a path, or the name of a checkpoint below DIR. By default the plan's, else the "
     "one that was split over the fewest ranks."},
    {"resume", 0, CLI_TEXT, CLI_SWEEP, FIELD(sweep.resume), 0, "FILE", NULL, "skip judged pairs",
     "Keep judged pairs in FILE, after every four, and take those over that are in it and of which "
     "neither files nor options nor the program have changed."},
    {"golden", 0, CLI_TEXT, CLI_SWEEP, FIELD(sweep.golden), 0, "FILE", NULL, "golden num-zeros",
     "Golden values of Megatron-LM's tests (JSON), whose num-zeros the zeros in the gradients must "
     "equal (of other configurations than the first: within 20%). By default the one "
     "golden_values*.json beside a model_config.yaml."},
    {"json", 0, CLI_OUTPUT,
     CLI_COMPARE | CLI_FIT | CLI_LS | CLI_CHECK | CLI_METRICS | CLI_LINT | CLI_TRACE | CLI_BITS,
     FIELD(json), 0, "[FILE]", NULL, "JSON; none: stdout",
     "Write the result as JSON to FILE, or in place of the text to standard output where FILE is - "
     "or left out (at the end, before another option or before a directory)."},
    {"html", 0, CLI_TEXT, CLI_REPORTS, FIELD(html), 0, "FILE", NULL, "one page",
     "Write the result as one HTML page that needs nothing else; - is standard output."},
    {"junit", 0, CLI_TEXT, CLI_REPORTS, FIELD(junit), 0, "FILE", NULL, "JUnit XML",
     "Write the result as JUnit XML; - is standard output."},
    {"junit-level", 0, CLI_CHOICE, CLI_REPORTS, FIELD(junit_level), GRADCMP_JUNIT_PARAMETER, "WHAT",
     CHOICES("parameter", "layer", "candidate"), "its test cases",
     "What is one test case of JUnit: parameter (the default), layer, or candidate. The verdict is "
     "one more."},
    {"markdown", 0, CLI_TEXT, CLI_REPORTS, FIELD(markdown), 0, "FILE", NULL, "for a comment",
     "Write a summary in Markdown, for the comment of a merge request; - is standard output."},
    {"hdf5", 0, CLI_TEXT, CLI_COMPARE, FIELD(hdf5), 0, "FILE", NULL, "figures as datasets",
     "Write all figures, and the heat maps of what fails, as datasets of one HDF5 file."},
    {"annotations", 0, CLI_CHOICE, CLI_REPORTS, FIELD(annotations), 1, "CI", CHOICES("github"),
     "github: in its log",
     "Print the verdict and the worst failures as GitHub's workflow commands on standard error."},
    {"top", 0, CLI_SMALL,
     CLI_COMPARE | CLI_FIT | CLI_CHECK | CLI_METRICS | CLI_LINT | CLI_TRACE | CLI_BITS, FIELD(top),
     0, "N", NULL, "failures shown (20)",
     "List at most N failing parameters or findings; by default 20."},
    {"verbose", 'v', CLI_FLAG, CLI_ALL | CLI_METRICS | CLI_LINT | CLI_TRACE, FIELD(verbose), 1,
     NO_ARGUMENT, "list everything", "List every parameter, every note and every setting."},
    {"quiet", 'q', CLI_FLAG,
     CLI_COMPARE | CLI_FIT | CLI_CHECK | CLI_METRICS | CLI_LINT | CLI_TRACE | CLI_BITS,
     FIELD(quiet), 1, NO_ARGUMENT, "exit status only", "Print no report; the exit status tells."},
    {"color", 0, CLI_CHOICE, CLI_ALL | CLI_METRICS | CLI_LINT | CLI_TRACE, FIELD(color), 0, "WHEN",
     CHOICES("auto", "always", "never"), "auto, always, never",
     "Colours: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), always, never."},
    {"threads", 0, CLI_SMALL, CLI_COMPARE | CLI_FIT | CLI_CHECK | CLI_BITS, FIELD(options.threads),
     0, "N", NULL, "default: all allowed",
     "Threads; by default as many as the CPU affinity and the cgroup's quota allow."},
    {"device", 0, CLI_DEVICE, CLI_COMPARE, FIELD(options), 0, "WHICH", NULL, "auto, cpu, cuda[:N]",
     "What adds the sums up: cpu, cuda (or cuda:N, GPU number N), or auto, which takes a GPU where "
     "one is at hand and there is enough to read. The figures are the same."},
    {"buffers", 0, CLI_SIZE, CLI_ALL, FIELD(options.buffer_bytes), 0, "SIZE", NULL,
     "memory, e.g. 48MiB",
     "Bound of all buffers together, such as 4MiB or 1GiB; by default 48MiB."},
    {"reads", 0, CLI_CHOICE, CLI_COMPARE | CLI_FIT | CLI_CHECK | CLI_BITS, FIELD(options.reads), 0,
     "HOW", CHOICES("auto", "uring", "threads"), "auto, uring, threads",
     "How reads run ahead of sums: uring (the kernel's io_uring, where it is allowed), threads, or "
     "auto, which takes io_uring for --direct and threads for files that go through the page "
     "cache, "
     "where the kernel reads ahead itself. The figures are the same."},
    {"direct", 0, CLI_FLAG, CLI_COMPARE | CLI_FIT | CLI_CHECK | CLI_BITS, FIELD(options.direct), 1,
     NO_ARGUMENT, "past the page cache",
     "Read past the page cache (O_DIRECT), which spares memory that others use; where the file "
     "system refuses, through it."},
    {"format", 0, CLI_CHOICE, CLI_EXTRACT, FIELD(format), 1, "NAME", CHOICES("safetensors", "hdf5"),
     "safetensors, hdf5", "Write this format; by default the file's name tells (.h5, .hdf5)."},
    {"map", 0, CLI_TEXT, CLI_COMPARE | CLI_FIT | CLI_LS | CLI_CHECK | CLI_EXTRACT,
     FIELD(options.map), 0, "FILE", NULL, "rules for names",
     "Bring parameters to other names and shapes by the rules of this YAML file: rename, split, "
     "concat, transpose, layer."},
    {"side", 0, CLI_CHOICE, CLI_LS | CLI_CHECK | CLI_EXTRACT, FIELD(options.map_side), 1, "WHICH",
     CHOICES("baseline", "candidate"), "whose rules of --map",
     "Apply the rules of --map that are for baselines, or for candidates, too."},
    {"previous-a", 0, CLI_TEXT, CLI_COMPARE, FIELD(options.previous_a), 0, "PATH", NULL,
     "baseline a step ago",
     "The baseline's checkpoint of the step before: the gradient is recovered from both."},
    {"previous-b", 0, CLI_TEXT, CLI_COMPARE, FIELD(options.previous_b), 0, "PATH", NULL,
     "candidate a step ago", "The same of the candidate."},
    {"mode", 0, CLI_CHOICE, CLI_METRICS, FIELD(mode), 0, "MODE", CHOICES("exact", "approx"),
     "exact or approx",
     "exact (the default): every stored value is the same; approx: within the tolerances of "
     "Megatron-LM's checks."},
    {"tolerance", 0, CLI_LIST, CLI_METRICS, FIELD(tolerances), 0, "M=X", NULL, "relative, of M",
     "With --mode approx: relative tolerance X of metric M; by default 0.05, 0.20 for num-zeros. "
     "May be repeated."},
    {"max-ratio", 0, CLI_LIST, CLI_METRICS, FIELD(ratios), 0, "M=X", NULL, "B at most X times A",
     "The median of metric M in B may be at most X times that in A; replaces other judgements of "
     "M. May be repeated."},
    {"rules", 0, CLI_TEXT, CLI_LINT, FIELD(rules), 0, "SETS", NULL, "which sets of rules",
     "megatron, ascend, gradients, or several with commas; auto (the default) takes megatron or "
     "ascend, as the files tell."},
    {"pair", 0, CLI_FLAG, CLI_LINT, FIELD(pair), 1, NO_ARGUMENT, "compare two runs",
     "Tell what differs between the settings of two runs, and whether that spoils a comparison."},
    {"explain", 0, CLI_TEXT, CLI_LINT, FIELD(explain), 0, "RULE", NULL, "what a rule is about",
     "Print what a rule looks at, what it accepts, and why."},
    {"lenient", 0, CLI_FLAG, CLI_TRACE, FIELD(lenient), 1, NO_ARGUMENT, "judge the rest",
     "Leave out what is damaged or cannot be compared, and judge the rest."},
    {"sandbox", 0, CLI_FLAG, ~0U, FIELD(sandbox), 1, NO_ARGUMENT, "give up rights",
     "Give up all rights but to read the given paths and to write the reports (Landlock, seccomp): "
     "no other file, no network, no program. Trouble where the kernel does not allow it."},
    {"memory-limit", 0, CLI_SIZE, ~0U, FIELD(memory_limit_bytes), 0, "SIZE", NULL, "of the process",
     "Take no more memory than this, such as 256MiB, buffers and threads included; trouble where "
     "that does not do. The helper for HDF5 gets as much again."},
    {"help", 'h', CLI_FLAG, CLI_ALL | CLI_METRICS | CLI_LINT | CLI_TRACE, FIELD(help), 1,
     NO_ARGUMENT, "this text", "Print a short help and exit."},
    {"config", 0, CLI_TEXT, ~0U, FIELD(config), 0, "FILE", NULL, "options from a file",
     "Take options from this YAML file, each under its long name without dashes (max-bound: 0.1, "
     "strict: true, tolerance: [a list]). The command line wins; options of other commands are "
     "left out."},
    {"help-all", 0, CLI_FLAG, ~0U, FIELD(help), 2, NO_ARGUMENT, "all options in full",
     "Print all options, each with a sentence, and exit."},
    {"version", 'V', CLI_FLAG, CLI_ALL | CLI_METRICS | CLI_LINT | CLI_TRACE, FIELD(version), 1,
     NO_ARGUMENT, "version, features", "Print the version and what this build can do, and exit."},
    {NULL, 0, CLI_FLAG, 0, 0, 0, NULL, NULL, NULL, NULL}};
