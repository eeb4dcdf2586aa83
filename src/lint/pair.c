/* What differs between the settings of two runs, and whether it spoils their comparison. */
#include <stdio.h>
#include <string.h>

#include "lint/lint.h"

/* What decides what is computed: data, start, batch, model, precision. */
static const char *const spoiling[] = {"data_path",
                                       "data_args_path",
                                       "train_data_path",
                                       "mock_data",
                                       "split",
                                       "data_cache_path",
                                       "seed",
                                       "global_batch_size",
                                       "rampup_batch_size",
                                       "load",
                                       "pretrained_checkpoint",
                                       "finetune",
                                       "num_layers",
                                       "hidden_size",
                                       "ffn_hidden_size",
                                       "num_attention_heads",
                                       "num_query_groups",
                                       "group_query_attention",
                                       "kv_channels",
                                       "seq_length",
                                       "max_position_embeddings",
                                       "vocab_size",
                                       "make_vocab_size_divisible_by",
                                       "tokenizer_type",
                                       "tokenizer_model",
                                       "vocab_file",
                                       "merge_file",
                                       "normalization",
                                       "norm_epsilon",
                                       "swiglu",
                                       "position_embedding_type",
                                       "rotary_base",
                                       "rotary_percent",
                                       "add_bias_linear",
                                       "disable_bias_linear",
                                       "untie_embeddings_and_output_weights",
                                       "attention_dropout",
                                       "hidden_dropout",
                                       "init_method_std",
                                       "num_experts",
                                       "moe_router_topk",
                                       "moe_ffn_hidden_size",
                                       "moe_layer_freq",
                                       "moe_router_load_balancing_type",
                                       "moe_aux_loss_coeff",
                                       "moe_token_dispatcher_type",
                                       "mtp_num_layers",
                                       "multi_latent_attention",
                                       "bf16",
                                       "fp16",
                                       "fp8",
                                       "params_dtype",
                                       "optimizer",
                                       "clip_grad",
                                       "calculate_per_token_loss",
                                       "iteration",
                                       "consumed_train_samples",
                                       NULL};

/* How the run is split over devices. */
static const char *const topology[] = {"tensor_model_parallel_size",
                                       "pipeline_model_parallel_size",
                                       "context_parallel_size",
                                       "expert_model_parallel_size",
                                       "expert_tensor_parallel_size",
                                       "data_parallel_size",
                                       "world_size",
                                       "sequence_parallel",
                                       "padded_vocab_size",
                                       "num_layers_per_virtual_pipeline_stage",
                                       "virtual_pipeline_model_parallel_size",
                                       "num_virtual_stages_per_pipeline_rank",
                                       "micro_batch_size",
                                       "use_distributed_optimizer",
                                       "cp_comm_type",
                                       "hierarchical_context_parallel_sizes",
                                       "pipeline_model_parallel_layout",
                                       "decoder_first_pipeline_num_layers",
                                       "decoder_last_pipeline_num_layers",
                                       "nproc_per_node",
                                       "nnodes",
                                       "WORLD_SIZE",
                                       "LOCAL_WORLD_SIZE",
                                       "CUDA_VISIBLE_DEVICES",
                                       "ASCEND_RT_VISIBLE_DEVICES",
                                       NULL};

/* Families of variables that libraries of a run read. */
static const char *const families[] = {"NCCL_",    "NVTE_",   "CUBLAS_", "CUDA_",
                                       "CUDNN_",   "HCCL_",   "ASCEND_", "TORCH_",
                                       "PYTORCH_", "NVIDIA_", "TRITON_", NULL};

static bool is_in(const char *name, const char *const names[]) {
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_of_family(const char *name) {
    for (size_t i = 0; families[i] != NULL; i++) {
        if (strncmp(name, families[i], strlen(families[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Variables that say who a rank is differ by nature. */
static bool is_looked_at(const struct gcmp_lint_setting *setting) {
    return setting->kind != GCMP_LINT_ENV || is_of_family(setting->name) ||
           is_in(setting->name, topology) || gcmp_lint_is_relevant(setting->kind, setting->name);
}

static const char *shown(const struct gcmp_lint_setting *setting) {
    return setting == NULL ? "(not set)" : setting->text == NULL ? "(none)" : setting->text;
}

/* A switch that is off, or None, is the same as one that is not there. */
static bool is_nothing(const struct gcmp_lint_setting *setting) {
    return setting == NULL || setting->text == NULL || strcmp(setting->text, "false") == 0;
}

static const char *rule_of(const struct gcmp_lint_setting *setting) {
    if (setting->kind == GCMP_LINT_PACKAGE) {
        return "PR03";
    }
    if (is_in(setting->name, topology)) {
        return "PR04";
    }
    if (is_in(setting->name, spoiling)) {
        return "PR01";
    }
    return gcmp_lint_is_relevant(setting->kind, setting->name) || is_of_family(setting->name)
               ? "PR02"
               : "PR05";
}

/* Numbers that are written differently are the same: 1, 1.0; True, true. */
static bool is_same(const struct gcmp_lint_setting *a, const struct gcmp_lint_setting *b) {
    if (is_nothing(a) && is_nothing(b)) {
        return true;
    }
    return strcasecmp(shown(a), shown(b)) == 0;
}

static enum gradcmp_status compare(struct gcmp_lint_content *content,
                                   const struct gcmp_lint_setting *a,
                                   const struct gcmp_lint_setting *b, struct gcmp_arena *arena,
                                   struct gradcmp_error *error) {
    const struct gcmp_lint_setting *there = a != NULL ? a : b;
    const struct gcmp_lint_source *sources = content->run.sources;
    if (!is_looked_at(there) || is_same(a, b)) {
        return GRADCMP_OK;
    }
    struct gcmp_lint_finding finding = {.subject = there->name, .line = there->line};
    finding.file = a != NULL ? sources[0].path : sources[1].path;
    finding.value = gcmp_arena_format(arena, "%s | %s", shown(a), shown(b));
    if (finding.value == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const char *rule = rule_of(there);
    bool is_one_sided = a == NULL || b == NULL;
    if (is_one_sided && sources[0].form != sources[1].form) {
        rule = "PR06"; /* a script states less than what the run prints */
    }
    if (strcmp(rule, "PR02") == 0 && !gcmp_lint_is_relevant(there->kind, there->name)) {
        finding.severity = GCMP_LINT_WARNING; /* may matter: NCCL_PROTO does, NCCL_DEBUG does not */
    }
    return gcmp_lint_add(content, rule, finding, error);
}

static bool has_kind(const struct gcmp_lint_source *source, enum gcmp_lint_kind kind) {
    return kind == GCMP_LINT_ENV   ? source->has_env
           : kind == GCMP_LINT_ARG ? source->has_args
                                   : source->has_packages;
}

enum gradcmp_status gcmp_lint_judge_pair(struct gcmp_lint_content *content,
                                         struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gcmp_lint_source *a = &content->run.sources[0], *b = &content->run.sources[1];
    for (int kind = GCMP_LINT_ENV; kind <= GCMP_LINT_PACKAGE; kind++) {
        if (has_kind(a, (enum gcmp_lint_kind)kind) != has_kind(b, (enum gcmp_lint_kind)kind)) {
            gcmp_lint_note(a, "%ss are known of one run only, and not compared",
                           gcmp_lint_kind_name((enum gcmp_lint_kind)kind));
        }
        content->evaluated +=
            has_kind(a, (enum gcmp_lint_kind)kind) && has_kind(b, (enum gcmp_lint_kind)kind);
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct gcmp_lint_setting *one = &a->settings[i];
        if (!one->is_unset && has_kind(b, one->kind)) {
            GCMP_TRY(compare(content, one, gcmp_lint_find(b, one->kind, one->name), arena, error));
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        const struct gcmp_lint_setting *one = &b->settings[i];
        if (!one->is_unset && has_kind(a, one->kind) &&
            gcmp_lint_find(a, one->kind, one->name) == NULL) {
            GCMP_TRY(compare(content, NULL, one, arena, error));
        }
    }
    return GRADCMP_OK;
}
