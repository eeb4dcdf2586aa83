/* The table of rules. Sources: Megatron-LM megatron/training/determinism.py and arguments.py; the
 * NCCL user guide, NCCL_ALGO; MindSpeed-LLM's page on deterministic computation and its
 * npu_deterministic feature; CANN's reference of environment variables; MindSpeed-MM; and what the
 * method of this tool needs. */
#include "lint/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gcmp_lint_severity_name(enum gcmp_lint_severity severity) {
    static const char *const names[] = {
        [GCMP_LINT_INFO] = "info", [GCMP_LINT_WARNING] = "warning", [GCMP_LINT_ERROR] = "error"};
    return names[severity];
}

const char *gcmp_lint_kind_name(enum gcmp_lint_kind kind) {
    static const char *const names[] = {
        "setting", [GCMP_LINT_ENV] = "environment", [GCMP_LINT_ARG] = "argument",
        [GCMP_LINT_PACKAGE] = "package"};
    return names[kind];
}

const struct gcmp_lint_setting *gcmp_lint_run_find(const struct gcmp_lint_run *run,
                                                   enum gcmp_lint_kind kind, const char *name,
                                                   const struct gcmp_lint_source **source) {
    for (size_t i = 0; i < run->source_count; i++) {
        const struct gcmp_lint_setting *found = gcmp_lint_find(&run->sources[i], kind, name);
        if (found != NULL) {
            if (source != NULL) {
                *source = &run->sources[i];
            }
            return found;
        }
    }
    return NULL;
}

static bool has_kind(const struct gcmp_lint_source *source, enum gcmp_lint_kind kind) {
    return kind == GCMP_LINT_ENV       ? source->has_env
           : kind == GCMP_LINT_ARG     ? source->has_args
           : kind == GCMP_LINT_PACKAGE ? source->has_packages
                                       : true;
}

bool gcmp_lint_run_has(const struct gcmp_lint_run *run, enum gcmp_lint_kind kind) {
    for (size_t i = 0; i < run->source_count; i++) {
        if (has_kind(&run->sources[i], kind)) {
            return true;
        }
    }
    return false;
}

/* Find the rule's subject and put its value and place into the finding. NULL where it is not set;
 * *is_known is false where it is set to something that is not known. */
static const struct gcmp_lint_setting *look(const struct gcmp_lint_run *run,
                                            const struct gcmp_lint_rule *rule,
                                            struct gcmp_lint_finding *finding, bool *is_known) {
    const struct gcmp_lint_source *source = NULL;
    const struct gcmp_lint_setting *found =
        gcmp_lint_run_find(run, rule->kind, rule->subject, &source);
    *is_known = found == NULL || !found->is_unresolved;
    if (found == NULL) {
        for (size_t i = run->source_count; i-- > 0;) { /* where it would have to stand */
            finding->file =
                has_kind(&run->sources[i], rule->kind) ? run->sources[i].path : finding->file;
        }
        return NULL;
    }
    finding->file = source->path;
    finding->line = found->line;
    finding->value = found->text;
    finding->is_bool = found->is_switch;
    return found;
}

/* --- Megatron-LM --- */

/* A switch that has to be on. */
static bool check_on(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                     struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return is_known && !gcmp_lint_is_true(found);
}

/* A switch that has to be off. */
static bool check_off(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                      struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return is_known && gcmp_lint_is_true(found);
}

/* Nothing is set: told, for what takes effect then. */
static bool check_stated(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                         struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found == NULL || (is_known && found->text == NULL);
}

/* Next algorithm of a list, blanks taken off and empty ones passed over. */
static bool next_token(const char **at, char *out, size_t out_bytes) {
    while (**at != '\0') {
        size_t count = strcspn(*at, ",");
        const char *start = *at, *end = *at + count;
        *at = end + (*end == ',');
        while (start < end && (*start == ' ' || *start == '\t')) {
            start++;
        }
        while (end > start && (end[-1] == ' ' || end[-1] == '\t')) {
            end--;
        }
        if (start < end) {
            snprintf(out, out_bytes, "%.*s", (int)(end - start > 200 ? 200 : end - start), start);
            return true;
        }
    }
    return false;
}

struct algorithms {
    size_t count, refused;
    bool has_no_nvls;
};

static struct algorithms read_algorithms(const char *text) {
    static const char *const accepted[] = {"Ring", "CollnetDirect", "CollnetChain", "^NVLS"};
    struct algorithms out = {0};
    char token[256];
    while (next_token(&text, token, sizeof token)) {
        bool is_accepted = false;
        for (size_t i = 0; i < 4; i++) {
            is_accepted = is_accepted || strcmp(token, accepted[i]) == 0;
        }
        out.count++;
        out.refused += !is_accepted;
        out.has_no_nvls = out.has_no_nvls || strcmp(token, "^NVLS") == 0;
    }
    return out;
}

/* MG02, MG03 and MG04 look at one list; the number of the rule tells which fault. */
static bool check_algorithms(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                             struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    if (found == NULL || !is_known || found->text == NULL) {
        return false;
    }
    struct algorithms list = read_algorithms(found->text);
    bool is_refused = list.refused > 0 || list.count == 0;
    switch (rule->id[3]) {
    case '2':
        return is_refused;
    case '3':
        return !is_refused && list.has_no_nvls && list.count == 1;
    default:
        return !is_refused && list.has_no_nvls && list.count > 1;
    }
}

/* Set to something that is not one of the accepted words (separated by blanks); unset is fine. */
static bool is_word_of(const char *text, const char *words) {
    size_t length = strlen(text);
    for (const char *at = words; *at != '\0';) {
        size_t count = strcspn(at, " ");
        if (count == length && memcmp(at, text, count) == 0) {
            return true;
        }
        at += count;
        at += strspn(at, " ");
    }
    return false;
}

static bool check_zero(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                       struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL && !is_word_of(found->text, "0");
}

static bool check_cublas(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                         struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL &&
           !is_word_of(found->text, ":4096:8 :16:8");
}

/* Empty counts as unset; else the first character decides. */
static bool check_first_is_one(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                               struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL && found->text[0] != '\0' &&
           found->text[0] != '1';
}

/* Set, and not 1. */
static bool check_one_if_set(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                             struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL && strcmp(found->text, "1") != 0;
}

/* Unset or a whole number. */
static bool check_hash_seed(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                            struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL && found->text[0] != '\0' &&
           strspn(found->text, "0123456789") != strlen(found->text);
}

/* Compare dotted versions by their numbers. */
static int compare_versions(const char *a, const char *b) {
    while (*a != '\0' || *b != '\0') {
        char *end_a, *end_b;
        unsigned long one = strtoul(a, &end_a, 10), two = strtoul(b, &end_b, 10);
        if (one != two) {
            return one < two ? -1 : 1;
        }
        if (*end_a != '.' && *end_b != '.') {
            return 0;
        }
        a = *end_a == '.' ? end_a + 1 : "";
        b = *end_b == '.' ? end_b + 1 : "";
    }
    return 0;
}

static bool check_conv1d_version(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                                 struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && found->text != NULL && found->text[0] >= '0' && found->text[0] <= '9' &&
           compare_versions(found->text, "1.6.0") < 0;
}

/* --- Ascend --- */

static bool is_on(const struct gcmp_lint_run *run, const char *name) {
    return gcmp_lint_is_true(gcmp_lint_run_find(run, GCMP_LINT_ARG, name, NULL));
}

static bool check_npu_flag(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                           struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return is_known && !gcmp_lint_is_true(found) && !is_on(run, "use_deter_comp");
}

static bool check_hccl(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                       struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    if (found == NULL) {
        finding->severity = GCMP_LINT_WARNING; /* --npu-deterministic sets it, after the start */
        return true;
    }
    return is_known && found->text != NULL && strcasecmp(found->text, "true") != 0 &&
           strcasecmp(found->text, "strict") != 0;
}

static bool check_hccl_strict(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                              struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL &&
           strcasecmp(found->text, "strict") == 0;
}

static bool check_deprecated(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                             struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    const struct gcmp_lint_source *source = NULL;
    gcmp_lint_run_find(run, rule->kind, rule->subject, &source);
    if (!is_known || !gcmp_lint_is_true(found) || source->is_mindspeed_mm) {
        return false; /* in MindSpeed-MM it is the current way */
    }
    finding->severity = is_on(run, "npu_deterministic") ? GCMP_LINT_INFO : GCMP_LINT_WARNING;
    return true;
}

static bool check_filled(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                         struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL && found->text[0] != '\0';
}

static bool check_k_shift(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                          struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    if (found == NULL && is_on(run, "npu_deterministic")) {
        finding->severity = GCMP_LINT_INFO; /* the flag sets it */
    }
    return found == NULL || (is_known && (found->text == NULL || strcmp(found->text, "1") != 0));
}

/* --- what the comparison of gradients needs --- */

static bool to_number(const struct gcmp_lint_setting *found, double *out) {
    char *end = NULL;
    if (found == NULL || found->text == NULL || found->is_unresolved || found->text[0] == '\0') {
        return false;
    }
    *out = strtod(found->text, &end);
    return end != found->text && *end == '\0';
}

/* Set to a number that is not 0, or not set, where the default is not 0 either. */
static bool check_zero_number(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                              struct gcmp_lint_finding *finding) {
    bool is_known;
    double value;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    if (!is_known) {
        return false;
    }
    for (size_t i = 0; found == NULL && i < run->source_count; i++) {
        if (run->sources[i].form == GCMP_LINT_CHECKPOINT && finding->severity == GCMP_LINT_ERROR) {
            finding->severity = GCMP_LINT_WARNING; /* it may hold less than all arguments */
        }
    }
    return !to_number(found, &value) || value < 0 || value > 0;
}

static bool check_one_step(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                           struct gcmp_lint_finding *finding) {
    bool is_known;
    double value;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    static const char *const others[] = {"exit_interval", "save_interval"};
    for (size_t i = 0; i < run->source_count; i++) {
        if (run->sources[i].iteration == 1) {
            return false; /* a checkpoint of step 1 */
        }
    }
    for (size_t i = 0; i < 2; i++) {
        if (to_number(gcmp_lint_run_find(run, GCMP_LINT_ARG, others[i], NULL), &value) &&
            value >= 1 && value <= 1) {
            return false; /* a checkpoint of step 1 is there */
        }
    }
    return is_known && (!to_number(found, &value) || value < 1 || value > 1);
}

static bool check_adam(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                       struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    return found != NULL && is_known && found->text != NULL &&
           strcasecmp(found->text, "adam") != 0 && strcasecmp(found->text, "adamw") != 0;
}

/* A run that starts from nothing starts from values that depend on how it is split. */
static bool check_start(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                        struct gcmp_lint_finding *finding) {
    bool is_known;
    const struct gcmp_lint_setting *found = look(run, rule, finding, &is_known);
    const struct gcmp_lint_setting *other =
        gcmp_lint_run_find(run, GCMP_LINT_ARG, "pretrained_checkpoint", NULL);
    return (found == NULL || found->text == NULL) && (other == NULL || other->text == NULL);
}

#define ENV     GCMP_LINT_ENV
#define ARG     GCMP_LINT_ARG
#define PACKAGE GCMP_LINT_PACKAGE
#define INFO    GCMP_LINT_INFO
#define WARNING GCMP_LINT_WARNING
#define ERROR   GCMP_LINT_ERROR

static const char by_default[] = "Megatron-LM's deterministic mode fills Ring, 0 and :4096:8 where "
                                 "these are not set; what is not exported does not show in a dump";
static const char filled[] =
    "filled by --deterministic-mode; export it to make the setting visible";
static const char gradients_source[] = "gradcmp, \"How to prepare a run\"";
static const char determinism[] = "Megatron-LM, megatron/training/determinism.py";
static const char mindspeed[] = "MindSpeed-LLM, deterministic computation";

const struct gcmp_lint_rule gcmp_lint_rules[] = {
    {"GN01", GCMP_LINT_GENERAL, 0, INFO, "a setting", "one assignment",
     "a setting that is assigned twice in one source is easily read wrong: the last one wins",
     "remove the earlier assignment", "gradcmp", NULL},
    {"GN02", GCMP_LINT_GENERAL, 0, WARNING, "line", "KEY=value",
     "lines of an environment dump that are no KEY=value belong to values with line breaks, and "
     "such a value may look like an assignment",
     "dump with NUL separators or one KEY=value per line", "gradcmp", NULL},
    {"GN03", GCMP_LINT_GENERAL, 0, ERROR, "a setting", "the same value on all ranks",
     "ranks of one run that compute with different settings do not compute the same",
     "launch all ranks with the same value", "gradcmp", NULL},
    {"GN04", GCMP_LINT_GENERAL, 0, WARNING, "a setting", "a value that the source tells",
     "a value that depends on a shell variable is known only when the run starts; a default may be "
     "overridden",
     "resolve the variable or dump the environment of the running process", "gradcmp", NULL},
    {"GN05", GCMP_LINT_GENERAL, 0, WARNING, "a setting", "one value in all sources",
     "the sources of one run say different things; the first one was taken",
     "name only the sources that belong to the run", "gradcmp", NULL},
    {"GN06", GCMP_LINT_GENERAL, 0, WARNING, "a setting", "a value that is set in every case",
     "a branch of the script (if, case, while, && or ||) sets it, and whether that branch runs is "
     "known only when the run starts",
     "set it outside of branches, or dump the environment of the running process", "gradcmp", NULL},
    {"GN07", GCMP_LINT_GENERAL, 0, WARNING, "a command", "export, and one training a script",
     "a command may set variables or start a training in a way that is not followed",
     "set variables by export and start one training a script, or dump the environment of the "
     "running process",
     "gradcmp", NULL},

    {"MG01", GCMP_LINT_MEGATRON, ARG, ERROR, "deterministic_mode", "true",
     "the default is off, and only this flag makes Megatron-LM choose and check deterministic "
     "algorithms",
     "add --deterministic-mode", determinism, check_on},
    {"MG02", GCMP_LINT_MEGATRON, ENV, ERROR, "NCCL_ALGO",
     "Ring, CollnetDirect, CollnetChain, ^NVLS, or unset",
     "deterministic mode accepts these algorithms only, in this spelling; an empty value is set "
     "and "
     "names none",
     "use only Ring, CollnetDirect, CollnetChain or ^NVLS (exact case), or unset", determinism,
     check_algorithms},
    {"MG03", GCMP_LINT_MEGATRON, ENV, INFO, "NCCL_ALGO", "Ring",
     "^NVLS alone is accepted, and the result then depends on the algorithm that NCCL falls back "
     "to",
     "prefer NCCL_ALGO=Ring: the algorithm used after excluding NVLS is not pinned", determinism,
     check_algorithms},
    {"MG04", GCMP_LINT_MEGATRON, ENV, WARNING, "NCCL_ALGO", "one thing",
     "Megatron-LM accepts each word, but for NCCL a leading ^ negates the whole list: ^NVLS,Ring "
     "leaves Tree",
     "a leading ^ makes NCCL exclude every listed algorithm; list one thing or use Ring",
     "NCCL user guide, NCCL_ALGO", check_algorithms},
    {"MG05", GCMP_LINT_MEGATRON, ENV, ERROR, "NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0, or unset",
     "Transformer Engine may choose algorithms that are not deterministic; the value is compared "
     "as "
     "text",
     "set to 0 or unset", determinism, check_zero},
    {"MG06", GCMP_LINT_MEGATRON, ENV, ERROR, "CUBLAS_WORKSPACE_CONFIG", ":4096:8, :16:8, or unset",
     "cuBLAS is deterministic with a fixed workspace; deterministic mode accepts these two",
     "set to :4096:8 or :16:8, or unset", determinism, check_cublas},
    {"MG07", GCMP_LINT_MEGATRON, ENV, ERROR, "MAMBA_DETERMINISTIC",
     "unset, empty, or something that begins with 1",
     "the Mamba kernels' backward pass uses atomic additions unless this begins with 1",
     "unset or set to 1", determinism, check_first_is_one},
    {"MG08", GCMP_LINT_MEGATRON, ENV, ERROR, "CAUSAL_CONV1D_DETERMINISTIC",
     "unset, empty, or something that begins with 1",
     "the convolution's backward pass uses atomic additions unless this begins with 1",
     "unset or set to 1 (needs causal_conv1d >= 1.6.0)", determinism, check_first_is_one},
    {"MG09", GCMP_LINT_MEGATRON, ARG, ERROR, "cross_entropy_loss_fusion", "false",
     "the fused cross entropy is not deterministic; deterministic mode refuses it",
     "drop --cross-entropy-loss-fusion", determinism, check_off},
    {"MG10", GCMP_LINT_MEGATRON, ARG, ERROR, "tp_comm_overlap", "false",
     "overlapped tensor-parallel communication adds in an order of its own; deterministic mode "
     "refuses it",
     "drop --tp-comm-overlap", determinism, check_off},
    {"MG11", GCMP_LINT_MEGATRON, ENV, INFO, "NCCL_ALGO", "set", by_default, filled, determinism,
     check_stated},
    {"MG11", GCMP_LINT_MEGATRON, ENV, INFO, "NVTE_ALLOW_NONDETERMINISTIC_ALGO", "set", by_default,
     filled, determinism, check_stated},
    {"MG11", GCMP_LINT_MEGATRON, ENV, INFO, "CUBLAS_WORKSPACE_CONFIG", "set", by_default, filled,
     determinism, check_stated},
    {"MG12", GCMP_LINT_MEGATRON, ARG, INFO, "seed", "stated",
     "a run without a seed uses 1234, and whether that was meant cannot be told",
     "the default seed 1234 applies; state --seed to make runs comparable on purpose", determinism,
     check_stated},
    {"MG13", GCMP_LINT_MEGATRON, PACKAGE, WARNING, "causal_conv1d", "1.6.0 or later",
     "CAUSAL_CONV1D_DETERMINISTIC is known from 1.6.0 on; earlier releases ignore it",
     "install causal_conv1d 1.6.0 or later", determinism, check_conv1d_version},
    {"MG14", GCMP_LINT_MEGATRON, ENV, WARNING, "CUDA_DEVICE_MAX_CONNECTIONS", "1, or unset",
     "with several hardware queues, communication and computation of tensor and context "
     "parallelism start in an order of their own; Megatron-LM asks for 1",
     "export CUDA_DEVICE_MAX_CONNECTIONS=1", "Megatron-LM, megatron/training/arguments.py",
     check_one_if_set},
    {"MG15", GCMP_LINT_MEGATRON, ENV, WARNING, "PYTHONHASHSEED", "a whole number, or unset",
     "the order of Python's sets of strings differs from run to run", "export PYTHONHASHSEED=0",
     "Python, PYTHONHASHSEED", check_hash_seed},

    {"AS01", GCMP_LINT_ASCEND, ARG, ERROR, "npu_deterministic", "true (or use_deter_comp)",
     "the default is off: operators and collectives may add in any order",
     "add --npu-deterministic", mindspeed, check_npu_flag},
    {"AS02", GCMP_LINT_ASCEND, ENV, ERROR, "HCCL_DETERMINISTIC", "true, in any case",
     "collectives reduce in a fixed order only with true; the flag sets it inside of the process, "
     "after the start; 1 belongs to the C interface, not to the variable",
     "export HCCL_DETERMINISTIC=true before launch", "CANN, HCCL_DETERMINISTIC", check_hccl},
    {"AS03", GCMP_LINT_ASCEND, ARG, WARNING, "use_deter_comp", "npu_deterministic in its place",
     "deprecated in MindSpeed, and still mapped to the new flag",
     "replace --use-deter-comp by --npu-deterministic", mindspeed, check_deprecated},
    {"AS04", GCMP_LINT_ASCEND, ARG, INFO, "seed", "stated",
     "a run without a seed uses 1234, and whether that was meant cannot be told",
     "the default seed 1234 applies; state --seed", mindspeed, check_stated},
    {"AS05", GCMP_LINT_ASCEND, ENV, WARNING, "HCCL_LOGIC_SUPERPOD_ID", "unset or empty",
     "it changes the topology that HCCL sees, and with RoCE the algorithm of collectives",
     "unset HCCL_LOGIC_SUPERPOD_ID or keep it and the topology the same in both runs", mindspeed,
     check_filled},
    {"AS06", GCMP_LINT_ASCEND, ENV, WARNING, "CLOSE_MATMUL_K_SHIFT", "1",
     "matrix products may shift along K, and so add in another order; --npu-deterministic sets it",
     "export CLOSE_MATMUL_K_SHIFT=1", "MindSpeed-MM, deterministic computing", check_k_shift},
    {"AS07", GCMP_LINT_ASCEND, ARG, ERROR, "balanced_moe_experts", "false",
     "documented as not exact to the bit, also with the deterministic flag",
     "drop --balanced-moe-experts", "MindSpeed, dynamically balanced expert parallelism",
     check_off},
    {"AS08", GCMP_LINT_ASCEND, ENV, INFO, "HCCL_DETERMINISTIC", "true",
     "strict is known to newer CANN only, and holds on A2 over symmetric nodes, on A3 for sums, "
     "from "
     "three ranks on",
     "check the product conditions of strict; true is the general setting",
     "CANN, HCCL_DETERMINISTIC", check_hccl_strict},
    {"AS09", GCMP_LINT_ASCEND, ENV, WARNING, "PYTHONHASHSEED", "a whole number, or unset",
     "--npu-deterministic sets it to the seed, after Python has started; another value at the "
     "start "
     "gives Python's sets another order",
     "export PYTHONHASHSEED=0", mindspeed, check_hash_seed},

    {"GC01", GCMP_LINT_GRADIENTS, ARG, ERROR, "attention_dropout", "0",
     "dropout draws other masks under another layout; the default is 0.1", "--attention-dropout 0",
     gradients_source, check_zero_number},
    {"GC02", GCMP_LINT_GRADIENTS, ARG, ERROR, "hidden_dropout", "0",
     "dropout draws other masks under another layout; the default is 0.1", "--hidden-dropout 0",
     gradients_source, check_zero_number},
    {"GC03", GCMP_LINT_GRADIENTS, ARG, INFO, "adam_beta1", "0",
     "with 0 the first moment is the gradient; after step 1 any other value scales it, which is "
     "divided out",
     "--adam-beta1 0", gradients_source, check_zero_number},
    {"GC04", GCMP_LINT_GRADIENTS, ARG, INFO, "adam_beta2", "0",
     "with 0 the second moment is the gradient's square", "--adam-beta2 0", gradients_source,
     check_zero_number},
    {"GC05", GCMP_LINT_GRADIENTS, ARG, INFO, "clip_grad", "0",
     "clipping scales all gradients by one factor when their norm passes it; the default is 1.0",
     "--clip-grad 0", gradients_source, check_zero_number},
    {"GC06", GCMP_LINT_GRADIENTS, ARG, WARNING, "train_iters", "1 (or a checkpoint of step 1)",
     "after the first step the runs no longer have the same weights, and gradients differ rightly",
     "--train-iters 1, or --save-interval 1", gradients_source, check_one_step},
    {"GC07", GCMP_LINT_GRADIENTS, ARG, WARNING, "global_batch_size", "stated, the same in both",
     "without it the batch is the micro batch times the data-parallel ranks, so that it changes "
     "with "
     "the layout",
     "state --global-batch-size", gradients_source, check_stated},
    {"GC08", GCMP_LINT_GRADIENTS, ARG, INFO, "seed", "stated, the same in both",
     "the seed decides the order of the data and the start", "state --seed", gradients_source,
     check_stated},
    {"GC09", GCMP_LINT_GRADIENTS, ARG, WARNING, "load", "a checkpoint that both runs start from",
     "weights that are drawn at the start depend on how the model is split",
     "--load the same checkpoint in both runs", gradients_source, check_start},
    {"GC10", GCMP_LINT_GRADIENTS, ARG, ERROR, "no_save_optim", "false",
     "the gradients are read from the optimizer's state", "drop --no-save-optim", gradients_source,
     check_off},
    {"GC11", GCMP_LINT_GRADIENTS, ARG, ERROR, "optimizer", "adam",
     "only Adam keeps a first moment that is the gradient", "--optimizer adam", gradients_source,
     check_adam},

    {"PR01", GCMP_LINT_PAIR, 0, ERROR, "a setting", "the same in both runs",
     "decides what is computed: data, start, batch or model; the comparison is spoilt",
     "run both with the same value", "gradcmp", NULL},
    {"PR02", GCMP_LINT_PAIR, 0, ERROR, "a setting", "the same in both runs",
     "decides how deterministically it is computed: differences cannot be blamed on the change",
     "run both with the same value", "gradcmp", NULL},
    {"PR03", GCMP_LINT_PAIR, 0, WARNING, "a package", "the same in both runs",
     "another release may compute otherwise: rounding differs, bits do not agree",
     "install the same release, unless it is what is compared", "gradcmp", NULL},
    {"PR04", GCMP_LINT_PAIR, 0, INFO, "topology", "what is compared",
     "how the run is split: rounding differs, and gradients agree inside the bound only", "none",
     "gradcmp", NULL},
    {"PR05", GCMP_LINT_PAIR, 0, INFO, "a setting", "any",
     "differs, and is not known to change what is computed", "none", "gradcmp", NULL},
    {"PR06", GCMP_LINT_PAIR, 0, INFO, "a setting", "stated in both", "only one run states it",
     "state it in both", "gradcmp", NULL},
    {"PR07", GCMP_LINT_PAIR, 0, WARNING, "what is not compared", "the same in both runs",
     "what it stands for is not looked at, and may decide what is computed",
     "compare by hand what it stands for", "gradcmp", NULL},
    {NULL, 0, 0, INFO, NULL, NULL, NULL, NULL, NULL, NULL}};

const struct gcmp_lint_rule *gcmp_lint_rule_find(const char *id) {
    for (const struct gcmp_lint_rule *rule = gcmp_lint_rules; rule->id != NULL; rule++) {
        if (strcasecmp(rule->id, id) == 0) {
            return rule;
        }
    }
    return NULL;
}

bool gcmp_lint_is_relevant(enum gcmp_lint_kind kind, const char *name) {
    for (const struct gcmp_lint_rule *rule = gcmp_lint_rules; rule->id != NULL; rule++) {
        if (rule->check != NULL && rule->kind == kind && strcmp(rule->subject, name) == 0) {
            return true;
        }
    }
    return false;
}
