/* Applies the rules to the sources of one run. */
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "base/word.h"
#include "lint/lint.h"

enum gradcmp_status gcmp_lint_parse_sets(const char *text, unsigned *out,
                                         struct gradcmp_error *error) {
    static const struct {
        const char *name;
        unsigned bit;
    } sets[] = {{"auto", 0},
                {"megatron", GCMP_LINT_MEGATRON},
                {"ascend", GCMP_LINT_ASCEND},
                {"gradients", GCMP_LINT_GRADIENTS}};
    *out = 0;
    while (text != NULL && *text != '\0') {
        size_t count = strcspn(text, ","), i = 0;
        while (i < 4 &&
               (strlen(sets[i].name) != count || strncmp(sets[i].name, text, count) != 0)) {
            i++;
        }
        if (i == 4) {
            GCMP_FAIL(
                error, GRADCMP_ERROR_USAGE,
                "--rules: expected auto, megatron, ascend or gradients (several with commas), "
                "found \"%.*s\"",
                (int)(count > 100 ? 100 : count), text);
        }
        *out |= sets[i].bit;
        text += count + (text[count] == ',');
    }
    return GRADCMP_OK;
}

static bool starts_with(const char *text, const char *const prefixes[]) {
    for (size_t i = 0; prefixes[i] != NULL; i++) {
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Settings that only runs on Ascend have. */
static bool is_of_ascend(const struct gcmp_lint_setting *setting) {
    static const char *const variables[] = {"HCCL_",       "ASCEND_", "CLOSE_MATMUL",
                                            "PYTORCH_NPU", "NPU_",    "ACL_",
                                            "TORCH_NPU",   "CANN_",   NULL};
    static const char *const arguments[] = {"npu_", "use_deter_comp", "balanced_moe_", NULL};
    static const char *const packages[] = {"torch_npu", "mindspeed", NULL};
    return starts_with(setting->name, setting->kind == GCMP_LINT_ENV   ? variables
                                      : setting->kind == GCMP_LINT_ARG ? arguments
                                                                       : packages);
}

unsigned gcmp_lint_choose_sets(const struct gcmp_lint_run *run) {
    for (size_t i = 0; i < run->source_count; i++) {
        for (size_t k = 0; k < run->sources[i].count; k++) {
            if (is_of_ascend(&run->sources[i].settings[k])) {
                return GCMP_LINT_ASCEND;
            }
        }
    }
    return GCMP_LINT_MEGATRON;
}

static bool is_of_megatron(const struct gcmp_lint_source *source) {
    static const char *const arguments[] = {"adam_beta1",
                                            "attention_dropout",
                                            "clip_grad",
                                            "context_parallel_size",
                                            "cross_entropy_loss_fusion",
                                            "deterministic_mode",
                                            "expert_model_parallel_size",
                                            "global_batch_size",
                                            "hidden_dropout",
                                            "hidden_size",
                                            "micro_batch_size",
                                            "num_attention_heads",
                                            "num_layers",
                                            "pipeline_model_parallel_size",
                                            "tensor_model_parallel_size",
                                            "tokenizer_type",
                                            "tp_comm_overlap",
                                            "train_iters",
                                            "train_samples",
                                            "transformer_impl",
                                            "use_distributed_optimizer",
                                            NULL};
    for (size_t i = 0; i < source->count; i++) {
        const struct gcmp_lint_setting *setting = &source->settings[i];
        if (setting->kind == GCMP_LINT_ARG &&
            gcmp_find_word(setting->name, strlen(setting->name), arguments) != NULL) {
            return true;
        }
    }
    return false;
}

void gcmp_lint_note_trainer(const struct gcmp_lint_run *run) {
    bool has_args = false;
    for (size_t i = 0; i < run->source_count; i++) {
        has_args = has_args || run->sources[i].has_args;
        if (is_of_megatron(&run->sources[i]) || run->sources[i].unknown_arguments != NULL) {
            return;
        }
    }
    if (has_args) {
        gcmp_lint_note(&run->sources[0],
                       "no argument of Megatron-LM was found, by whose rules this is judged: other "
                       "trainers spell their settings otherwise");
    }
}

static enum gradcmp_status append(struct gcmp_lint_content *content,
                                  const struct gcmp_lint_finding *finding,
                                  struct gradcmp_error *error) {
    if (!gcmp_grow(&content->findings, content->count, &content->capacity,
                   sizeof *content->findings)) {
        GCMP_FAIL_MEMORY(error);
    }
    content->findings[content->count++] = *finding;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_lint_add(struct gcmp_lint_content *content, const char *id,
                                  struct gcmp_lint_finding finding, struct gradcmp_error *error) {
    finding.rule = gcmp_lint_rule_find(id);
    if (finding.severity == 0) {
        finding.severity = finding.rule->severity;
    }
    if (finding.fix == NULL) {
        finding.fix = finding.rule->fix;
    }
    if (finding.accepted == NULL) {
        finding.accepted = finding.rule->accepted;
    }
    return append(content, &finding, error);
}

/* --- GN: how settings are written --- */

static struct gcmp_lint_finding at(const struct gcmp_lint_source *source,
                                   const struct gcmp_lint_setting *setting) {
    struct gcmp_lint_finding finding = {.file = source->path, .line = setting->line};
    finding.subject = setting->name;
    finding.value = setting->text;
    return finding;
}

enum gradcmp_status gcmp_lint_judge_known(struct gcmp_lint_content *content,
                                          const struct gcmp_lint_source *source,
                                          const struct gcmp_lint_setting *setting,
                                          struct gradcmp_error *error) {
    struct gcmp_lint_finding finding = at(source, setting);
    if (setting->is_conditional) {
        GCMP_TRY(gcmp_lint_add(content, "GN06", finding, error));
    }
    if (setting->is_unresolved || setting->is_defaulted) {
        finding.value = setting->raw;
        finding.severity = setting->is_unresolved ? GCMP_LINT_WARNING : GCMP_LINT_INFO;
        GCMP_TRY(gcmp_lint_add(content, "GN04", finding, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_lint_judge_hidden(struct gcmp_lint_content *content,
                                           const struct gcmp_lint_source *source,
                                           struct gradcmp_error *error) {
    if (source->conditional_argument != NULL) {
        struct gcmp_lint_finding finding = {.subject = "arguments", .file = source->path};
        finding.value = source->conditional_argument;
        finding.line = source->conditional_line;
        finding.text = "a branch of the script replaces arguments by it, so that others may be "
                       "there in its place";
        GCMP_TRY(gcmp_lint_add(content, "GN06", finding, error));
    }
    for (size_t i = 0; i < source->doubt_count; i++) {
        const struct gcmp_lint_doubt *doubt = &source->doubts[i];
        struct gcmp_lint_finding finding = {.subject = doubt->subject,
                                            .value = doubt->value,
                                            .file = source->path,
                                            .line = doubt->line,
                                            .text = doubt->text};
        GCMP_TRY(gcmp_lint_add(content, "GN07", finding, error));
    }
    if (source->stray_lines > 0) {
        struct gcmp_lint_finding finding = {.subject = "line", .file = source->path};
        finding.line = source->first_stray_line;
        GCMP_TRY(gcmp_lint_add(content, "GN02", finding, error));
    }
    if (source->unknown_arguments != NULL) {
        struct gcmp_lint_finding finding = {.subject = "arguments", .file = source->path};
        finding.value = source->unknown_arguments;
        finding.line = source->unknown_line;
        finding.text = "the launch takes arguments from it that are not known, so that an argument "
                       "told as absent may be there";
        GCMP_TRY(gcmp_lint_add(content, "GN04", finding, error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status judge_writing(struct gcmp_lint_content *content,
                                         const struct gcmp_lint_source *source,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < source->count; i++) {
        const struct gcmp_lint_setting *setting = &source->settings[i];
        if (setting->is_unset || !gcmp_lint_is_relevant(setting->kind, setting->name)) {
            continue;
        }
        if (setting->times > 1) {
            GCMP_TRY(gcmp_lint_add(content, "GN01", at(source, setting), error));
        }
        GCMP_TRY(gcmp_lint_judge_known(content, source, setting, error));
    }
    return gcmp_lint_judge_hidden(content, source, error);
}

/* Whether a source says anything of a setting: an environment dump also by its absence. */
static bool speaks(const struct gcmp_lint_source *source, const struct gcmp_lint_setting *setting,
                   enum gcmp_lint_kind kind) {
    return setting != NULL ? !setting->is_unresolved
                           : kind == GCMP_LINT_ENV && source->form == GCMP_LINT_ENV_DUMP;
}

/* The different values of a setting, as they are met. */
struct values {
    struct gcmp_map known; /* texts */
    struct gcmp_text text; /* "Ring | CollnetChain": the first of them */
    bool all_dumps;        /* all that speak of it are environment dumps */
};

enum { MAX_SHOWN = 6 };

static enum gcmp_map_result add_value(struct values *values, const char *text) {
    size_t count = values->known.count;
    enum gcmp_map_result result = gcmp_map_add(&values->known, text, strlen(text), 0, NULL);
    if (result == GCMP_MAP_ADDED && count < MAX_SHOWN) {
        gcmp_text_addf(&values->text, "%s%s", count > 0 ? " | " : "", text);
    }
    return result;
}

/* Gather what the run's sources say of a setting. False without memory. */
static bool gather_values(const struct gcmp_lint_run *run, const struct gcmp_lint_setting *wanted,
                          struct values *values) {
    values->all_dumps = true;
    for (size_t i = 0; i < run->source_count; i++) {
        const struct gcmp_lint_source *source = &run->sources[i];
        const struct gcmp_lint_setting *own = gcmp_lint_find(source, wanted->kind, wanted->name);
        if (!speaks(source, own, wanted->kind)) {
            continue;
        }
        values->all_dumps = values->all_dumps && source->form == GCMP_LINT_ENV_DUMP;
        if (add_value(values, gcmp_lint_shown(own)) == GCMP_MAP_NO_MEMORY) {
            return false;
        }
    }
    return !values->text.failed;
}

static enum gradcmp_status tell_values(struct gcmp_lint_content *content,
                                       struct gcmp_lint_finding *finding, struct values *values,
                                       struct gcmp_arena *arena, struct gradcmp_error *error) {
    size_t count = values->known.count;
    if (count <= 1) {
        return GRADCMP_OK;
    }
    if (count > MAX_SHOWN) {
        gcmp_text_addf(&values->text, " | ... (%zu values)", count);
    }
    finding->value = values->text.failed ? NULL : gcmp_arena_dup(arena, values->text.bytes);
    if (finding->value == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_lint_add(content, values->all_dumps ? "GN03" : "GN05", *finding, error);
}

/* Settings of one source that others of the same run contradict; `judged` holds those that an
 * earlier source has too. */
static enum gradcmp_status judge_agreement(struct gcmp_lint_content *content,
                                           const struct gcmp_lint_source *source,
                                           struct gcmp_map *judged, struct gcmp_arena *arena,
                                           struct gradcmp_error *error) {
    for (size_t i = 0; i < source->count; i++) {
        const struct gcmp_lint_setting *setting = &source->settings[i];
        if (setting->is_unset || !gcmp_lint_is_relevant(setting->kind, setting->name)) {
            continue;
        }
        const char *key = gcmp_arena_format(arena, "%d %s", (int)setting->kind, setting->name);
        enum gcmp_map_result result =
            key == NULL ? GCMP_MAP_NO_MEMORY : gcmp_map_add(judged, key, strlen(key), 0, NULL);
        if (result == GCMP_MAP_PRESENT) {
            continue;
        }
        struct gcmp_lint_finding finding = at(source, setting);
        struct values values = {.known = GCMP_MAP_INIT};
        bool ok = result == GCMP_MAP_ADDED && gather_values(&content->run, setting, &values);
        enum gradcmp_status status = ok ? tell_values(content, &finding, &values, arena, error)
                                        : gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                         GRADCMP_NO_OFFSET, "out of memory");
        gcmp_map_free(&values.known);
        gcmp_text_free(&values.text);
        GCMP_TRY(status);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status judge_sources(struct gcmp_lint_content *content,
                                         struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gcmp_map judged = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < content->run.source_count && status == GRADCMP_OK; i++) {
        const struct gcmp_lint_source *source = &content->run.sources[i];
        status = judge_writing(content, source, error);
        if (status == GRADCMP_OK) {
            status = judge_agreement(content, source, &judged, arena, error);
        }
    }
    gcmp_map_free(&judged);
    return status;
}

/* --- the table --- */

static enum gradcmp_status apply(struct gcmp_lint_content *content,
                                 const struct gcmp_lint_rule *rule, struct gradcmp_error *error) {
    struct gcmp_lint_finding finding = {.rule = rule, .severity = rule->severity};
    if (rule->check == NULL || (rule->sets & content->sets) == 0 ||
        !gcmp_lint_run_has(&content->run, rule->kind)) {
        return GRADCMP_OK;
    }
    content->evaluated++;
    finding.subject = rule->subject;
    finding.fix = rule->fix;
    finding.accepted = rule->accepted;
    return rule->check(&content->run, rule, &finding) ? append(content, &finding, error)
                                                      : GRADCMP_OK;
}

enum gradcmp_status gcmp_lint_judge(struct gcmp_lint_content *content, struct gcmp_arena *arena,
                                    struct gradcmp_error *error) {
    GCMP_TRY(judge_sources(content, arena, error));
    for (const struct gcmp_lint_rule *rule = gcmp_lint_rules; rule->id != NULL; rule++) {
        GCMP_TRY(apply(content, rule, error));
    }
    return GRADCMP_OK;
}
