/* Canonical names, layers and kinds. */
#include "hand_catalogue.h"

/* Unshard one state of tensors that are one piece each, named so. */
struct case_tensor {
    const char *name;
    unsigned ndim;
    uint64_t shape[4];
};

static struct gradcmp_model unshard_tensors(struct hand *hand, const struct case_tensor *tensors,
                                            size_t count) {
    for (size_t i = 0; i < count; i++) {
        hand_whole(hand, "exp_avg", tensors[i].name, tensors[i].ndim, tensors[i].shape);
    }
    return hand_unshard(hand, "exp_avg");
}
#define UNSHARD(hand, ...)                                                                         \
    unshard_tensors(hand, (const struct case_tensor[]){__VA_ARGS__},                               \
                    sizeof((const struct case_tensor[]){__VA_ARGS__}) /                            \
                        sizeof(struct case_tensor))

static int setup(void **state) {
    struct hand *hand = malloc(sizeof *hand);
    hand_init(hand);
    *state = hand;
    return 0;
}

static int teardown(void **state) {
    hand_free(*state);
    free(*state);
    return 0;
}

static void test_names__numbered_layers_count_from_one(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model = UNSHARD(
        hand, {"decoder.layers.0.mlp.linear_fc2.weight", 2, {4, 4}},
        {"decoder.layers.11.mlp.linear_fc2.weight", 2, {4, 4}},
        {"decoder.final_layernorm.weight", 1, {4}}, {"embedding.word_embeddings.weight", 2, {8, 4}},
        {"output_layer.weight", 2, {8, 4}});
    assert_int_equal(model.layers, 12);
    assert_int_equal(hand_find(&model, "decoder.layers.0.mlp.linear_fc2.weight")->layer, 1);
    assert_int_equal(hand_find(&model, "decoder.layers.11.mlp.linear_fc2.weight")->layer, 12);
    assert_int_equal(hand_find(&model, "embedding.word_embeddings.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "decoder.final_layernorm.weight")->layer, 13);
    assert_int_equal(hand_find(&model, "output_layer.weight")->layer, 13);
    gcmp_model_free(&model);
}

static void test_names__other_words_for_layers_are_known(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"transformer.h.3.attn.weight", 2, {4, 4}},
                {"encoder.layer.2.output.weight", 2, {4, 4}}, {"blocks.1.weight", 2, {4, 4}},
                {"transformer.wte.weight", 2, {8, 4}}, {"transformer.wpe.weight", 2, {8, 4}},
                {"h.weight", 1, {4}}, {"layer.norm", 1, {4}});
    assert_int_equal(model.layers, 4);
    assert_int_equal(hand_find(&model, "transformer.h.3.attn.weight")->layer, 4);
    assert_int_equal(hand_find(&model, "encoder.layer.2.output.weight")->layer, 3);
    assert_int_equal(hand_find(&model, "encoder.layer.2.output.weight")->vocab_rows, 0);
    assert_int_equal(hand_find(&model, "blocks.1.weight")->layer, 2);
    assert_int_equal(hand_find(&model, "transformer.wte.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "transformer.wpe.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "h.weight")->layer, 5);
    assert_int_equal(hand_find(&model, "layer.norm")->layer, 5);
    gcmp_model_free(&model);
}

static void test_names__what_ends_like_an_embedding_is_one(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model = UNSHARD(
        hand, {"layers.1.w", 1, {4}}, {"emb.weight", 2, {8, 4}}, {"model.embed.weight", 2, {8, 4}},
        {"patch_embed.proj.weight", 2, {8, 4}}, {"src_tok_emb.weight", 2, {8, 4}},
        {"unembed.weight", 2, {8, 4}}, {"embed_out.weight", 2, {8, 4}},
        {"output_embeddings.weight", 2, {8, 4}}, {"remember.weight", 2, {8, 4}});
    assert_int_equal(hand_find(&model, "emb.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "embed.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "patch_embed.proj.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "src_tok_emb.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "unembed.weight")->layer, 3);
    assert_int_equal(hand_find(&model, "embed_out.weight")->layer, 3);
    assert_int_equal(hand_find(&model, "output_embeddings.weight")->layer, 3);
    assert_int_equal(hand_find(&model, "remember.weight")->layer, 3);
    gcmp_model_free(&model);
}

static void test_names__multi_token_prediction_is_a_head(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"decoder.layers.mlp.linear_fc2.weight", 3, {2, 4, 4}},
                {"mtp.layers.5.transformer_layer.mlp.linear_fc2.weight", 2, {4, 4}},
                {"mtp.layers.7.embedding.weight", 2, {4, 4}});
    assert_int_equal(model.layers, 2);
    assert_int_equal(
        hand_find(&model, "mtp.layers.5.transformer_layer.mlp.linear_fc2.weight")->layer, 3);
    assert_int_equal(hand_find(&model, "mtp.layers.7.embedding.weight")->layer, 3);
    gcmp_model_free(&model);
}

static void test_names__layers_of_catalogue_and_option_decide_l(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.1.w", 3);
    HAND_WHOLE(hand, "exp_avg", "norm.weight", 3);
    hand->catalogue.layers = 5;
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.layers, 5);
    assert_int_equal(model.shown, 2); /* no tensor is of the others */
    assert_int_equal(hand_find(&model, "norm.weight")->layer, 6);
    gcmp_model_free(&model);

    HAND_WHOLE(hand, "param", "layers.3.w", 3);
    model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.layers, 5);
    assert_int_equal(model.shown, 4); /* a layer without the state is between others and the loss */
    gcmp_model_free(&model);

    struct gcmp_unshard_options options = {.layers = 9};
    assert_int_equal(gcmp_unshard(&hand->catalogue, "exp_avg", &options, &model, NULL), GRADCMP_OK);
    assert_int_equal(model.layers, 9);
    gcmp_model_free(&model);

    struct gradcmp_error error = {0};
    options.layers = 1;
    assert_int_equal(gcmp_unshard(&hand->catalogue, "exp_avg", &options, &model, &error),
                     GRADCMP_ERROR_USAGE);
    assert_string_equal(error.message, "1 layers were asked for, but the checkpoint has 2");

    hand->catalogue.layers = 1; /* a run's arguments cannot take a layer away */
    model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.layers, 2);
    gcmp_model_free(&model);
}

static void test_names__absurd_layers_are_refused(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.65535.w", 3);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.layers, 65536);
    gcmp_model_free(&model);
    HAND_WHOLE(hand, "exp_avg_sq", "layers.65536.w", 3);
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_LIMIT,
                "exp_avg_sq.layers.65536.w: layer 65536, at most 65536 are read");
    HAND_WHOLE(hand, "param", "layers.99999999999999999999999.w", 3);
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard(&hand->catalogue, "param", NULL, &model, &error),
                     GRADCMP_ERROR_LIMIT);
    hand->catalogue.layers = UINT64_MAX;
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_LIMIT,
                "18446744073709551615 layers, at most 65536 are read");
}

static void test_names__wrappers_come_off(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"module.module.embedding.word_embeddings.weight", 2, {8, 4}},
                {"module.decoder._fsdp_wrapped_module.layers.0._orig_mod.w", 1, {4}},
                {"model.norm.weight", 1, {4}}, {"inner.model.weight", 1, {4}});
    ASSERT_NAMES(&model, "decoder.layers.0.w", "embedding.word_embeddings.weight",
                 "inner.model.weight", "norm.weight");
    gcmp_model_free(&model);
}

static void test_names__a_prefix_that_tells_tensors_apart_stays(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model = UNSHARD(hand, {"model.norm.weight", 1, {4}},
                                         {"norm.weight", 1, {4}}, {"model.other", 1, {4}});
    ASSERT_NAMES(&model, "model.norm.weight", "model.other", "norm.weight");
    gcmp_model_free(&model);
}

static void test_names__a_name_twice_does_not_keep_its_prefix(void **state) {
    struct hand *hand = *state;
    size_t first = HAND_TENSOR(hand, "exp_avg", "module.w", 4);
    size_t second = HAND_TENSOR(hand, "exp_avg", "module.w", 4); /* of chained optimizers */
    hand_piece(hand, first, DIMS(0), DIMS(1));
    hand_piece(hand, second, DIMS(1), DIMS(3));
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "w");
    gcmp_model_free(&model);
}

static void test_names__a_prefix_in_one_state_only_comes_off(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "param", "model.norm.weight", 4);
    HAND_WHOLE(hand, "exp_avg", "norm.weight", 4);
    struct gradcmp_model model = hand_unshard(hand, "param");
    ASSERT_NAMES(&model, "norm.weight");
    gcmp_model_free(&model);
}

static void test_names__fused_norms_have_one_name(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"decoder.layers.0.input_layernorm.weight", 1, {4}},
                {"decoder.layers.0.input_layernorm.bias", 1, {4}},
                {"decoder.layers.0.self_attention.linear_qkv.weight", 2, {8, 4}},
                {"decoder.layers.0.pre_mlp_layernorm.weight", 1, {4}},
                {"decoder.layers.0.pre_mlp_layernorm.bias", 1, {4}},
                {"decoder.layers.0.mlp.linear_fc1.weight", 2, {8, 4}});
    ASSERT_NAMES(&model, "decoder.layers.0.mlp.linear_fc1.layer_norm_bias",
                 "decoder.layers.0.mlp.linear_fc1.layer_norm_weight",
                 "decoder.layers.0.mlp.linear_fc1.weight",
                 "decoder.layers.0.self_attention.linear_qkv.layer_norm_bias",
                 "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight",
                 "decoder.layers.0.self_attention.linear_qkv.weight");
    gcmp_model_free(&model);
}

static void test_names__fused_norms_of_stacked_and_expert_layers(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"decoder.layers.pre_mlp_layernorm.weight", 2, {2, 4}},
                {"decoder.layers.mlp.router.weight", 3, {2, 2, 4}});
    ASSERT_NAMES(&model, "decoder.layers.0.mlp.linear_fc1.layer_norm_weight",
                 "decoder.layers.0.mlp.router.weight",
                 "decoder.layers.1.mlp.linear_fc1.layer_norm_weight",
                 "decoder.layers.1.mlp.router.weight");
    gcmp_model_free(&model);
}

static void test_names__a_norm_without_its_matrix_keeps_its_name(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"layers.0.input_layernorm.weight", 1, {4}},
                {"layers.0.self_attn.q_proj.weight", 2, {4, 4}},
                {"layers.1.input_layernorm.weight", 1, {4}},
                {"layers.1.self_attention.linear_qkv.weight", 2, {4, 4}},
                {"layers.1.self_attention.linear_qkv.layer_norm_weight", 1, {4}});
    ASSERT_NAMES(&model, "layers.0.input_layernorm.weight", "layers.0.self_attn.q_proj.weight",
                 "layers.1.input_layernorm.weight",
                 "layers.1.self_attention.linear_qkv.layer_norm_weight",
                 "layers.1.self_attention.linear_qkv.weight");
    gcmp_model_free(&model);
}

static void test_names__experts_have_one_spelling(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"decoder.layers.0.mlp.experts.local_experts.1.linear_fc1.weight", 2, {4, 4}},
                {"decoder.layers.0.mlp.experts.linear_fc2.weight3", 2, {4, 4}},
                {"decoder.layers.0.mlp.experts.linear_fc1.bias12", 1, {4}},
                {"decoder.layers.0.mlp.experts.experts.2.linear_fc2.weight", 2, {4, 4}},
                {"decoder.layers.1.mlp.experts.5.gate_proj.weight", 2, {4, 4}},
                {"decoder.final_norm.weight", 1, {4}});
    ASSERT_NAMES(&model, "decoder.final_layernorm.weight",
                 "decoder.layers.0.mlp.experts.experts.1.linear_fc1.weight",
                 "decoder.layers.0.mlp.experts.experts.12.linear_fc1.bias",
                 "decoder.layers.0.mlp.experts.experts.2.linear_fc2.weight",
                 "decoder.layers.0.mlp.experts.experts.3.linear_fc2.weight",
                 "decoder.layers.1.mlp.experts.5.gate_proj.weight");
    gcmp_model_free(&model);
}

static void test_names__rows_of_the_vocabulary_only_in_its_tables(void **state) {
    struct hand *hand = *state;
    hand->catalogue.vocab = 70;
    struct gradcmp_model model = UNSHARD(
        hand, {"embedding.word_embeddings.weight", 2, {80, 4}},
        {"embedding.position_embeddings.weight", 2, {128, 4}}, {"output_layer.weight", 2, {80, 4}},
        {"output_layer.bias", 1, {80}}, {"output_layer.norm.weight", 1, {80}},
        {"lm_head.weight", 2, {70, 4}}, {"decoder.final_layernorm.weight", 1, {80}},
        {"embed_out.weight", 2, {69, 4}}, {"output.weight", 2, {72, 4}},
        {"wte.weight", 3, {80, 4, 4}}, {"layers.0.output.weight", 2, {80, 4}},
        {"layers.0.lm_head.weight", 2, {80, 4}}, {"other.weight", 2, {80, 4}});
    for (size_t i = 0; i < model.count; i++) {
        const struct gradcmp_parameter *parameter = &model.parameters[i];
        bool is_output = strcmp(parameter->name, "output_layer.weight") == 0 ||
                         strcmp(parameter->name, "output_layer.bias") == 0 ||
                         strcmp(parameter->name, "lm_head.weight") == 0 ||
                         strcmp(parameter->name, "output.weight") == 0;
        uint8_t expected = is_output ? GRADCMP_VOCAB_OUTPUT
                           : strcmp(parameter->name, "embedding.word_embeddings.weight") == 0
                               ? GRADCMP_VOCAB_INPUT
                               : GRADCMP_VOCAB_NONE;
        if (parameter->vocab_rows != expected) {
            fail_msg("%s: vocab_rows is %d", parameter->name, parameter->vocab_rows);
        }
    }
    gcmp_model_free(&model);
}

static void test_names__too_long_is_refused(void **state) {
    struct hand *hand = *state;
    char name[2100];
    memset(name, 'a', sizeof name);
    name[2048] = '\0';
    HAND_WHOLE(hand, "exp_avg", name, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_string_equal(model.parameters[0].name, name);
    gcmp_model_free(&model);

    name[2048] = 'a';
    name[2049] = '\0';
    HAND_WHOLE(hand, "param", name, 4);
    hand_refuse(hand, "param", GRADCMP_ERROR_LIMIT,
                "tensor name \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
                "\": 2049 bytes, at most 2048 bytes and 128 components are read");
}

static void test_names__too_many_components_are_refused(void **state) {
    struct hand *hand = *state;
    char name[300];
    for (int i = 0; i < 257; i++) {
        name[i] = i % 2 == 0 ? 'b' : '.';
    }
    name[255] = '\0'; /* 128 components, the last one "b" */
    HAND_WHOLE(hand, "exp_avg", name, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_string_equal(model.parameters[0].name, name);
    gcmp_model_free(&model);
    name[255] = '.';
    name[257] = '\0';
    HAND_WHOLE(hand, "param", name, 4);
    hand_refuse(hand, "param", GRADCMP_ERROR_LIMIT,
                "tensor name \"b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b...."
                "\": 257 bytes, at most 2048 bytes and 128 components are read");
}

static void test_names__odd_names_do_no_harm(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model =
        UNSHARD(hand, {"", 1, {4}}, {".", 1, {4}}, {"layers", 1, {4}}, {"layers.", 2, {1, 4}},
                {"experts.", 1, {4}}, {"model", 1, {4}}, {"module.model", 1, {4}}, {"_w", 1, {4}},
                {"w_w", 1, {4}}, {"a._orig_mod", 1, {4}}, {"experts.layers.a.w", 4, {2, 3, 4, 5}});
    ASSERT_NAMES(&model, "", ".", "_w", "a._orig_mod", "experts.", "experts.layers.0.a.w",
                 "experts.layers.1.a.w", "layers", "layers.", "model", "module.model", "w_w");
    gcmp_model_free(&model);
}

static void test_names__a_wrapper_alone_is_a_name(void **state) {
    struct hand *hand = *state;
    struct gradcmp_model model = UNSHARD(hand, {"model", 1, {4}}, {"_orig_mod", 1, {4}});
    ASSERT_NAMES(&model, "_orig_mod", "model");
    gcmp_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_names__numbered_layers_count_from_one),
        TEST(test_names__other_words_for_layers_are_known),
        TEST(test_names__what_ends_like_an_embedding_is_one),
        TEST(test_names__multi_token_prediction_is_a_head),
        TEST(test_names__layers_of_catalogue_and_option_decide_l),
        TEST(test_names__absurd_layers_are_refused),
        TEST(test_names__wrappers_come_off),
        TEST(test_names__a_prefix_that_tells_tensors_apart_stays),
        TEST(test_names__a_name_twice_does_not_keep_its_prefix),
        TEST(test_names__a_prefix_in_one_state_only_comes_off),
        TEST(test_names__fused_norms_have_one_name),
        TEST(test_names__fused_norms_of_stacked_and_expert_layers),
        TEST(test_names__a_norm_without_its_matrix_keeps_its_name),
        TEST(test_names__experts_have_one_spelling),
        TEST(test_names__rows_of_the_vocabulary_only_in_its_tables),
        TEST(test_names__too_long_is_refused),
        TEST(test_names__too_many_components_are_refused),
        TEST(test_names__odd_names_do_no_harm),
        TEST(test_names__a_wrapper_alone_is_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
