/* The order in which modules register their parameters, told from names. */
#include "unshard/registration.h"

#include "hand_catalogue.h"

enum { MAX_NAMES = 48 };

static const struct gcmp_modules FUSED = {true, true};

/* Sort names[0 .. count), given in the order that is expected, from another order. Returns the
 * parameter whose place is not known. */
static const char *expect_order(const char *const *names, size_t count,
                                struct gcmp_modules modules) {
    struct gradcmp_parameter parameters[MAX_NAMES];
    struct gcmp_registered list[MAX_NAMES + 1];
    const struct gradcmp_model model = {.parameters = parameters, .count = count};
    const char *unknown;
    assert_true(count <= MAX_NAMES);
    for (size_t i = 0; i < count; i++) {
        parameters[i] = (struct gradcmp_parameter){.name = names[(i * 7 + 3) % count]};
    }
    size_t entries = gcmp_registration_order(&model, modules, list, &unknown);
    assert_true(entries >= count);
    for (size_t i = 0, at = 0; i < entries; i++) {
        if (!list[i].is_output) {
            assert_string_equal(list[i].parameter->name, names[at++]);
        }
    }
    return unknown;
}
/* The number of names must be no multiple of 7. */
#define EXPECT(modules, ...)                                                                       \
    expect_order((const char *const[]){__VA_ARGS__},                                               \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), modules)

#define ATTENTION "decoder.layers.0.self_attention."
#define MLP       "decoder.layers.0.mlp."

static void test_registration__attention_with_sinks(void **state) {
    (void)state;
    assert_null(EXPECT(FUSED, ATTENTION "core_attention.softmax_offset",
                       ATTENTION "linear_proj.weight", ATTENTION "linear_proj.bias",
                       ATTENTION "linear_qkv.layer_norm_weight", ATTENTION "linear_qkv.weight",
                       ATTENTION "q_layernorm.weight", ATTENTION "k_layernorm.weight",
                       MLP "linear_fc1.weight"));
    const struct gcmp_modules local = {false, false};
    assert_null(EXPECT(local, ATTENTION "linear_qkv.layer_norm_weight",
                       ATTENTION "core_attention.softmax_offset", ATTENTION "linear_proj.weight",
                       ATTENTION "linear_qkv.weight"));
}

static void test_registration__latent_attention(void **state) {
    (void)state;
    assert_null(EXPECT(
        FUSED, "decoder.layers.0.input_layernorm.weight", ATTENTION "linear_proj.weight",
        ATTENTION "linear_q_down_proj.weight", ATTENTION "linear_q_up_proj.layer_norm_weight",
        ATTENTION "linear_q_up_proj.weight", ATTENTION "linear_kv_down_proj.weight",
        ATTENTION "linear_kv_up_proj.layer_norm_weight", ATTENTION "linear_kv_up_proj.weight"));
}

/* A module's own tensors are before its modules. */
static void test_registration__gate_of_shared_experts(void **state) {
    (void)state;
#define EXPERT MLP "experts.experts."
    assert_null(EXPECT(FUSED, "decoder.layers.0.pre_mlp_layernorm.weight", MLP "router.weight",
                       EXPERT "2.linear_fc1.weight", EXPERT "10.linear_fc1.weight",
                       EXPERT "2.linear_fc2.weight", EXPERT "10.linear_fc2.weight",
                       MLP "shared_experts.gate_weight", MLP "shared_experts.linear_fc1.weight",
                       MLP "shared_experts.linear_fc2.weight"));
    const struct gcmp_modules sequential = {true, false};
    assert_null(EXPECT(sequential, MLP "router.weight", EXPERT "2.linear_fc1.weight",
                       EXPERT "2.linear_fc2.weight", EXPERT "10.linear_fc1.weight",
                       EXPERT "10.linear_fc2.weight"));
}

static void test_registration__multi_token_prediction(void **state) {
    (void)state;
#define MTP "mtp.layers.0."
    assert_null(EXPECT(FUSED, "embedding.word_embeddings.weight",
                       "decoder.layers.2.mlp.linear_fc2.weight",
                       "decoder.layers.10.mlp.linear_fc2.weight", "decoder.final_layernorm.weight",
                       MTP "enorm.weight", MTP "hnorm.weight", MTP "eh_proj.weight",
                       MTP "transformer_layer.self_attention.linear_proj.weight",
                       MTP "transformer_layer.self_attention.linear_qkv.weight",
                       MTP "transformer_layer.mlp.linear_fc1.weight", MTP "final_layernorm.weight",
                       "mtp.layers.1.enorm.weight", "output_layer.weight"));
}

/* Parts of one tensor are in reverse. */
static void test_registration__state_space_layers(void **state) {
    (void)state;
#define MIXER "decoder.layers.0.mixer."
    assert_null(EXPECT(FUSED, MIXER "dt_bias", MIXER "A_log", MIXER "D",
                       MIXER "in_proj.layer_norm_weight", MIXER "in_proj.weight.dt",
                       MIXER "in_proj.weight.C", MIXER "in_proj.weight.B", MIXER "in_proj.weight.x",
                       MIXER "in_proj.weight.z", MIXER "conv1d.weight.B", MIXER "conv1d.weight.x",
                       MIXER "conv1d.bias.B", MIXER "conv1d.bias.x", MIXER "norm.weight",
                       MIXER "out_proj.weight", "decoder.layers.0.norm.weight"));
}

static void test_registration__vision_and_language(void **state) {
    (void)state;
    assert_null(EXPECT(
        FUSED, "language_model.embedding.word_embeddings.weight",
        "language_model.decoder.layers.0.mlp.linear_fc1.weight",
        "language_model.decoder.final_layernorm.weight", "language_model.output_layer.weight",
        "vision_model.class_token", "vision_model.ln_pre.weight", "vision_model.ln_pre.bias",
        "vision_model.conv1.weight", "vision_model.position_embeddings.weight",
        "vision_model.decoder.layers.0.mlp.linear_fc1.weight",
        "vision_model.decoder.layers.10.mlp.linear_fc1.weight",
        "vision_projection.encoder.linear_fc1.weight", "vision_projection.encoder.linear_fc1.bias",
        "vision_projection.encoder.linear_fc2.weight",
        "vision_projection.encoder.linear_fc2.bias"));
}

static void test_registration__encoder_and_heads(void **state) {
    (void)state;
    assert_null(EXPECT(
        FUSED, "embedding.word_embeddings.weight", "embedding.position_embeddings.weight",
        "embedding.tokentype_embeddings.weight", "encoder.layers.0.mlp.linear_fc1.weight",
        "encoder.final_layernorm.weight", "decoder.layers.0.self_attention.linear_qkv.weight",
        "decoder.layers.0.pre_cross_attn_layernorm.weight",
        "decoder.layers.0.cross_attention.linear_proj.weight",
        "decoder.layers.0.cross_attention.linear_q.weight",
        "decoder.layers.0.cross_attention.linear_kv.weight", MLP "linear_fc1.layer_norm_weight",
        "lm_head.dense.weight", "lm_head.layer_norm.weight", "output_layer.bias",
        "binary_head.weight", "pooler.dense.weight"));
}

/* Where the sizes are all there is, a module of no known place would be a guess. */
static void test_registration__module_of_no_known_place_is_told(void **state) {
    (void)state;
    assert_string_equal(EXPECT(FUSED, ATTENTION "linear_qkv.weight", ATTENTION "surprise.weight"),
                        ATTENTION "surprise.weight");
    assert_string_equal(EXPECT(FUSED, MLP "bar.bias", MLP "foo.weight"), MLP "foo.weight");
    assert_string_equal(EXPECT(FUSED, MLP "linear_fc1.weight", MLP "linear_fc1.scale"),
                        MLP "linear_fc1.scale");
    assert_string_equal(EXPECT(FUSED, MIXER "in_proj.weight.z", MIXER "in_proj.weight.q"),
                        MIXER "in_proj.weight.q");
    assert_null(EXPECT(FUSED, MLP "scale", MLP "linear_fc1.weight")); /* its own: before modules */
    assert_null(EXPECT(FUSED, "wrapper.embedding.word_embeddings.weight",
                       "wrapper.output_layer.weight")); /* nothing beside it */
}

/* A pipeline does not cut layers, nor embeddings. */
static void test_registration__stages_end_between_layers(void **state) {
    (void)state;
    static const char *const names[] = {
        "embedding.position_embeddings.weight",   "embedding.word_embeddings.weight",
        "decoder.layers.0.mlp.linear_fc2.weight", "decoder.layers.0.mlp.linear_fc1.weight",
        "decoder.layers.1.mlp.linear_fc1.weight", "decoder.final_layernorm.weight"};
    static const bool apart[] = {false, true, false, true, true, true};
    struct gradcmp_parameter parameters[6];
    struct gcmp_registered list[7];
    const struct gradcmp_model model = {.parameters = parameters, .count = 6};
    for (size_t i = 0; i < 6; i++) {
        parameters[i] = (struct gradcmp_parameter){.name = names[i]};
    }
    const char *unknown;
    assert_int_equal(gcmp_registration_order(&model, FUSED, list, &unknown), 7);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(gcmp_registered_apart(&list[i], &list[i + 1]), apart[i]);
    }
    assert_true(list[6].is_output); /* tied to the embedding */
    assert_ptr_equal(list[6].parameter, list[0].parameter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registration__attention_with_sinks),
        cmocka_unit_test(test_registration__latent_attention),
        cmocka_unit_test(test_registration__gate_of_shared_experts),
        cmocka_unit_test(test_registration__multi_token_prediction),
        cmocka_unit_test(test_registration__state_space_layers),
        cmocka_unit_test(test_registration__vision_and_language),
        cmocka_unit_test(test_registration__encoder_and_heads),
        cmocka_unit_test(test_registration__module_of_no_known_place_is_told),
        cmocka_unit_test(test_registration__stages_end_between_layers),
    };
    return cmocka_run_group_tests_name("registration", tests, NULL, NULL);
}
