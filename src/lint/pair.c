/* What differs between the settings of two runs, and whether it spoils their comparison. */
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "lint/lint.h"
#include "lint/value.h"

/* What decides what is computed: data, start, batch, model, precision. */
static const char *const spoiling[] = {
    "data_path",
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
    "add_position_embedding",
    "add_qkv_bias",
    "activation_func_clamp_value",
    "apply_layernorm_1p",
    "apply_query_key_layer_scaling",
    "attention_output_gate",
    "attention_softmax_in_fp32",
    "accumulate_allreduce_grads_in_fp32",
    "data_parallel_random_init",
    "dataloader_type",
    "decoder_num_layers",
    "decoder_seq_length",
    "embedding_init_method_std",
    "encoder_num_layers",
    "encoder_seq_length",
    "eod_mask_loss",
    "experimental_attention_variant",
    "first_last_layers_bf16",
    "fp32_residual_connection",
    "fp4",
    "fp4_format",
    "fp4_recipe",
    "fp8_amax_compute_algo",
    "fp8_amax_history_len",
    "fp8_format",
    "fp8_margin",
    "fp8_recipe",
    "fp8_wgrad",
    "glu_linear_offset",
    "grad_reduce_in_bf16",
    "hybrid_attention_ratio",
    "hybrid_layer_pattern",
    "hybrid_mlp_ratio",
    "hybrid_override_pattern",
    "img_h",
    "img_w",
    "init_method_xavier_uniform",
    "initial_loss_scale",
    "is_hybrid_model",
    "kv_lora_rank",
    "loss_scale",
    "mamba_head_dim",
    "mamba_num_groups",
    "mamba_num_heads",
    "mamba_state_dim",
    "mask_prob",
    "moe_apply_probs_on_input",
    "moe_expert_capacity_factor",
    "moe_input_jitter_eps",
    "moe_pad_expert_input_to_capacity",
    "moe_router_bias_update_rate",
    "moe_router_dtype",
    "moe_router_enable_expert_bias",
    "moe_router_force_load_balancing",
    "moe_router_group_topk",
    "moe_router_num_groups",
    "moe_router_pre_softmax",
    "moe_router_score_function",
    "moe_router_topk_scaling_factor",
    "moe_shared_expert_gate",
    "moe_shared_expert_intermediate_size",
    "moe_token_drop_policy",
    "moe_z_loss_coeff",
    "mscale",
    "mscale_all_dim",
    "mtp_loss_scaling_factor",
    "no_rope_freq",
    "num_classes",
    "num_layers_at_end_in_bf16",
    "num_layers_at_start_in_bf16",
    "openai_gelu",
    "original_max_position_embeddings",
    "patch_dim",
    "per_split_data_args_path",
    "q_lora_rank",
    "qk_clip",
    "qk_head_dim",
    "qk_l2_norm",
    "qk_layernorm",
    "qk_pos_emb_head_dim",
    "quick_geglu",
    "reset_attention_mask",
    "reset_position_ids",
    "rope_scaling_factor",
    "rope_type",
    "rotary_interleaved",
    "rotary_scaling_factor",
    "rotary_seq_len_interpolation_factor",
    "short_seq_prob",
    "softmax_type",
    "spec",
    "squared_relu",
    "use_rope_scaling",
    "use_rotary_position_embeddings",
    "v_head_dim",
    "window_attn_skip_freq",
    "window_size",
    NULL,
};

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
    return gcmp_find_word(name, strlen(name), names) != NULL;
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

/* A switch that is off, or None, is the same as one that is not there. */
static bool is_nothing(const struct gcmp_lint_setting *setting) {
    return setting == NULL || setting->text == NULL ||
           (setting->more == NULL && strcmp(setting->text, "false") == 0);
}

/* The name by which an argument is known: without the sections before it, "model.hidden_dropout".
 */
static bool is_argument_in(const char *name, const char *const names[]) {
    const char *dot = strrchr(name, '.');
    const char *own = dot == NULL ? name : dot + 1;
    return is_in(own, names);
}

/* The name without the sections that a name of several of them is told apart by. */
static const char *plain_name(const struct gcmp_lint_setting *setting) {
    return setting->is_by_path ? setting->path + setting->section_bytes : setting->name;
}

static const char *shown_name(const struct gcmp_lint_setting *setting) {
    return setting->name + setting->is_by_path; /* behind the mark of a path */
}

static const char *rule_of(const struct gcmp_lint_setting *setting) {
    const char *name = plain_name(setting);
    if (setting->kind == GCMP_LINT_PACKAGE) {
        return "PR03";
    }
    if (is_argument_in(name, topology)) {
        return "PR04";
    }
    if (is_argument_in(name, spoiling)) {
        return "PR01";
    }
    return gcmp_lint_is_relevant(setting->kind, name) || is_of_family(name) ? "PR02" : "PR05";
}

/* Variables whose words their libraries read without regard to case: NCCL's parseList (tuning.cc),
 * debug.cc and net.cc; MindSpeed-LLM on deterministic computation. */
static const char *const without_case[] = {
    "NCCL_ALGO", "NCCL_PROTO",         "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS",
    "NCCL_NET",  "HCCL_DETERMINISTIC", NULL};

static bool is_bool(const char *text) {
    return strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0;
}

/* True where case says nothing: of True and true, of words that a library reads so, and of versions
 * (PEP 440), but not of what a package was built from. */
static bool is_case_blind(const struct gcmp_lint_setting *setting) {
    return setting->kind == GCMP_LINT_PACKAGE
               ? strchr(setting->text, '/') == NULL
               : is_bool(setting->text) ||
                     (setting->kind == GCMP_LINT_ENV && is_in(setting->name, without_case));
}

/* True for values that mean the same, whichever way they are written. */
static bool is_same(const struct gcmp_lint_setting *a, const struct gcmp_lint_setting *b) {
    if (is_nothing(a) && is_nothing(b)) {
        return true;
    }
    if (a == NULL || b == NULL || a->text == NULL || b->text == NULL) {
        return false;
    }
    if (a->kind == GCMP_LINT_ARG && gcmp_lint_is_same_list(a, b)) {
        return true;
    }
    if ((a->more == NULL) != (b->more == NULL) ||
        (a->more != NULL && strcmp(a->more, b->more) != 0)) {
        return false;
    }
    return strcmp(a->text, b->text) == 0 ||
           (is_case_blind(a) && strcasecmp(a->text, b->text) == 0) ||
           (a->kind == GCMP_LINT_ARG && gcmp_lint_is_same_number(a->text, b->text));
}

/* A setting that reads alike in both, and decides: whether it is the same is known only where its
 * value is. */
static enum gradcmp_status judge_same(struct gcmp_lint_content *content,
                                      const struct gcmp_lint_setting *a,
                                      const struct gcmp_lint_setting *b,
                                      struct gradcmp_error *error) {
    const struct gcmp_lint_setting *sides[] = {a, b};
    size_t before = content->count;
    for (size_t i = 0; i < 2 && content->count == before; i++) {
        if (sides[i] != NULL && sides[i]->is_partial) {
            struct gcmp_lint_finding finding = {.subject = shown_name(sides[i]),
                                                .value = sides[i]->text,
                                                .file = content->run.sources[i].path};
            return gcmp_lint_add(content, "PR07", finding, error);
        }
        const char *rule = sides[i] == NULL ? "" : rule_of(sides[i]);
        if (strcmp(rule, "PR01") == 0 || strcmp(rule, "PR02") == 0) {
            GCMP_TRY(gcmp_lint_judge_known(content, &content->run.sources[i], sides[i], error));
        }
    }
    return GRADCMP_OK;
}

static bool more_of(const struct gcmp_lint_setting *setting) {
    return setting != NULL && setting->more != NULL;
}

static enum gradcmp_status compare(struct gcmp_lint_content *content,
                                   const struct gcmp_lint_setting *a,
                                   const struct gcmp_lint_setting *b, struct gcmp_arena *arena,
                                   struct gradcmp_error *error) {
    const struct gcmp_lint_setting *there = a != NULL ? a : b;
    const struct gcmp_lint_source *sources = content->run.sources;
    if (!is_looked_at(there)) {
        return GRADCMP_OK;
    }
    if (is_same(a, b)) {
        return judge_same(content, a, b, error);
    }
    struct gcmp_lint_finding finding = {.subject = shown_name(there), .line = there->line};
    finding.file = a != NULL ? sources[0].path : sources[1].path;
    finding.value =
        gcmp_arena_format(arena, "%s%s%s | %s%s%s", gcmp_lint_shown(a), more_of(a) ? " " : "",
                          more_of(a) ? a->more : "", gcmp_lint_shown(b), more_of(b) ? " " : "",
                          more_of(b) ? b->more : "");
    if (finding.value == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const char *rule = rule_of(there);
    bool is_one_sided = a == NULL || b == NULL;
    if (is_one_sided && sources[0].form != sources[1].form) {
        rule = "PR06"; /* a script states less than what the run prints */
    } else if (!is_one_sided && (gcmp_lint_is_unevaluated(a) || gcmp_lint_is_unevaluated(b))) {
        rule = "PR07";
    }
    if (strcmp(rule, "PR02") == 0 && !gcmp_lint_is_relevant(there->kind, plain_name(there))) {
        finding.severity = GCMP_LINT_WARNING; /* may matter: NCCL_PROTO does, NCCL_DEBUG does not */
    }
    return gcmp_lint_add(content, rule, finding, error);
}

/* Compare what is no setting of two launches: the program, and its operands, such as the name of a
 * file of settings. */
static enum gradcmp_status compare_launches(struct gcmp_lint_content *content,
                                            struct gcmp_arena *arena, struct gradcmp_error *error) {
    const struct gcmp_lint_source *a = &content->run.sources[0], *b = &content->run.sources[1];
    const struct {
        const char *subject, *rule, *a, *b;
    } parts[] = {{"program", "PR01", a->program, b->program},
                 {"operands", "PR07", a->operands, b->operands}};
    for (size_t i = 0; i < 2 && a->program != NULL && b->program != NULL; i++) {
        const char *one = parts[i].a == NULL ? "" : parts[i].a;
        const char *other = parts[i].b == NULL ? "" : parts[i].b;
        if (strcmp(one, other) == 0) {
            continue;
        }
        struct gcmp_lint_finding finding = {.subject = parts[i].subject, .file = a->path};
        finding.line = a->program_line;
        finding.value = gcmp_arena_format(arena, "%s | %s", one, other);
        if (finding.value == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_lint_add(content, parts[i].rule, finding, error));
    }
    bool is_same_rest = a->unread == NULL ? b->unread == NULL
                                          : b->unread != NULL && strcmp(a->unread, b->unread) == 0;
    if (a->form != b->form || is_same_rest) {
        return GRADCMP_OK;
    }
    struct gcmp_lint_finding rest = {.subject = "sections", .value = "others", .file = a->path};
    rest.text = "sections beside those of the environment and the arguments differ, and are not "
                "looked at";
    return gcmp_lint_add(content, "PR07", rest, error);
}

static bool has_kind(const struct gcmp_lint_source *source, enum gcmp_lint_kind kind) {
    return kind == GCMP_LINT_ENV   ? source->has_env
           : kind == GCMP_LINT_ARG ? source->has_args
                                   : source->has_packages;
}

static const struct gcmp_lint_setting *find_plain(const struct gcmp_lint_source *source,
                                                  const struct gcmp_lint_setting *setting) {
    return gcmp_lint_find(source, setting->kind, plain_name(setting));
}

/* What a setting is compared with in the other source; NULL: nothing. */
static const struct gcmp_lint_setting *find_other(const struct gcmp_lint_source *other,
                                                  const struct gcmp_lint_setting *setting) {
    const struct gcmp_lint_setting *plain = find_plain(other, setting), *same = NULL;
    if (setting->is_by_path || (plain != NULL && plain->is_repeated && setting->path != NULL)) {
        same = gcmp_lint_find(other, setting->kind, setting->path);
    }
    if (same == NULL && setting->is_by_path && plain != NULL && plain->path != NULL &&
        !plain->is_repeated && strcmp(plain->path, setting->path) == 0) {
        same = plain;
    }
    return same != NULL || setting->is_by_path ? same : plain;
}

/* True for a name of several sections, of which the last counts alone, where it is compared by the
 * sections; and for the last section's own value where it is not. */
static bool is_twice(const struct gcmp_lint_source *own, const struct gcmp_lint_source *other,
                     const struct gcmp_lint_setting *setting) {
    const struct gcmp_lint_setting *plain =
        setting->is_by_path ? find_plain(own, setting) : setting;
    if (plain == NULL || !plain->is_repeated) {
        return false;
    }
    const struct gcmp_lint_setting *found = find_plain(other, plain);
    bool by_path = found == NULL || found->is_repeated ||
                   (found->path != NULL && gcmp_lint_find(own, found->kind, found->path) != NULL);
    return setting->is_by_path ? !by_path && strcmp(plain->path, setting->path) == 0 : by_path;
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
        if (!one->is_unset && has_kind(b, one->kind) && !is_twice(a, b, one)) {
            GCMP_TRY(compare(content, one, find_other(b, one), arena, error));
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        const struct gcmp_lint_setting *one = &b->settings[i];
        if (!one->is_unset && has_kind(a, one->kind) && !is_twice(b, a, one) &&
            find_other(a, one) == NULL) {
            GCMP_TRY(compare(content, NULL, one, arena, error));
        }
    }
    GCMP_TRY(compare_launches(content, arena, error));
    GCMP_TRY(gcmp_lint_judge_hidden(content, a, error));
    return gcmp_lint_judge_hidden(content, b, error);
}
