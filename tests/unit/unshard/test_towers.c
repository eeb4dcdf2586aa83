/* Stacks that feed one another: which names show it, and how their layers are numbered. */
#include <stdio.h>

#include "hand_catalogue.h"

/* A tensor of one piece, and the l that it must get. */
struct row {
    const char *name;
    int64_t layer;
};

static void add_rows(struct hand *hand, const char *state, const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        hand_whole(hand, state, rows[i].name, 1, DIMS(4));
    }
}

static void check_rows(const struct gradcmp_model *model, const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int64_t layer = hand_find(model, rows[i].name)->layer;
        if (layer != rows[i].layer) {
            fail_msg("%s: l = %d, expected %d", rows[i].name, (int)layer, (int)rows[i].layer);
        }
    }
}

static void check_names(uint64_t layers, const struct row *rows, size_t count) {
    struct hand hand;
    hand_init(&hand);
    add_rows(&hand, "exp_avg", rows, count);
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    assert_int_equal(model.layers, layers);
    assert_int_equal(model.shown, layers);
    check_rows(&model, rows, count);
    gcmp_model_free(&model);
    hand_free(&hand);
}
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define CHECK(layers, ...)                                                                         \
    check_names(layers, (const struct row[]){__VA_ARGS__},                                         \
                COUNT(((const struct row[]){__VA_ARGS__})))

static void test_towers__an_encoder_feeds_its_decoder(void **state) {
    (void)state;
    CHECK(5, {"embedding.word_embeddings.weight", 0}, {"encoder.layers.0.mlp.weight", 1},
          {"encoder.layers.2.mlp.weight", 3}, {"encoder.final_layernorm.weight", 3},
          {"decoder.layers.0.mlp.weight", 4}, {"decoder.layers.1.mlp.weight", 5},
          {"decoder.final_layernorm.weight", 6}, {"lm_head.bias", 6}); /* Megatron's T5 */
    CHECK(4, {"shared.weight", 5}, {"encoder.embed_tokens.weight", 0},
          {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 1},
          {"encoder.block.1.layer.1.DenseReluDense.wo.weight", 2},
          {"encoder.final_layer_norm.weight", 2}, {"decoder.block.0.layer.2.wo.weight", 3},
          {"decoder.block.1.layer.0.q.weight", 4}, {"decoder.final_layer_norm.weight", 5});
    CHECK(3, {"encoder.layernorm_embedding.weight", 0}, {"encoder.embed_positions.weight", 0},
          {"encoder.layers.0.fc1.weight", 1}, {"decoder.embed_positions.weight", 1},
          {"decoder.layers.0.fc1.weight", 2}, {"decoder.layers.1.fc1.weight", 3}); /* BART */
    CHECK(3, {"encoder.conv1.weight", 0}, {"encoder.conv2.bias", 0},
          {"encoder.layers.1.fc1.weight", 2}, {"encoder.layer_norm.weight", 2},
          {"decoder.layers.0.fc1.weight", 3}, {"decoder.layer_norm.weight", 4},
          {"proj_out.weight", 4}); /* Whisper */
    CHECK(3, {"encoder.conv_in.conv1.weight", 0}, {"encoder.mid.block_1.conv1.weight", 2},
          {"encoder.stem.0.conv1.weight", 2}, {"encoder.layers.1.w", 2},
          {"decoder.layers.0.w", 3}); /* a convolution deep inside is none of the input's */
    CHECK(3, {"encoder.encoder.layer.1.w", 2}, {"encoder.layernorm.weight", 2},
          {"decoder.model.decoder.layers.0.w", 3}); /* of two models */
}

static void test_towers__a_tower_feeds_the_language_model(void **state) {
    (void)state;
    CHECK(5, {"vision_model.class_token", 0}, {"vision_model.conv1.weight", 0},
          {"vision_model.ln_pre.bias", 0}, {"vision_model.position_embeddings.weight", 0},
          {"vision_model.decoder.layers.0.w", 1}, {"vision_model.decoder.layers.2.w", 3},
          {"vision_model.decoder.final_layernorm.weight", 3},
          {"vision_projection.encoder.linear_fc1.weight", 3},
          {"language_model.embedding.word_embeddings.weight", 3},
          {"language_model.decoder.layers.0.w", 4}, {"language_model.decoder.layers.1.w", 5},
          {"language_model.decoder.final_layernorm.weight", 6},
          {"language_model.output_layer.weight", 6}); /* Megatron's LLaVA */
    CHECK(3, {"vision_tower.vision_model.embeddings.class_embedding", 0},
          {"vision_tower.vision_model.pre_layrnorm.weight", 0},
          {"vision_tower.vision_model.encoder.layers.1.w", 2},
          {"vision_tower.vision_model.post_layernorm.weight", 2},
          {"multi_modal_projector.linear_1.weight", 2}, {"language_model.layers.0.w", 3},
          {"language_model.norm.weight", 4}, {"lm_head.weight", 4});
    CHECK(3, {"visual.patch_embed.proj.weight", 0}, {"visual.blocks.1.w", 2},
          {"visual.merger.ln_q.weight", 2}, {"embed_tokens.weight", 2}, {"layers.0.w", 3},
          {"norm.weight", 4}); /* Qwen2-VL */
    CHECK(3, {"model.visual.blocks.1.w", 2}, {"model.layers.0.w", 3}, {"layers.0.w", 1});
    CHECK(4, {"thinker.visual.blocks.0.w", 1}, {"thinker.audio_tower.layers.1.w", 2},
          {"thinker.audio_tower.conv1.weight", 0}, {"thinker.model.layers.1.w", 4},
          {"talker.model.layers.0.w", 1}); /* side by side, and another model */
}

/* A prefix of the whole model comes off first. */
static void test_towers__prefixes_of_all_do_not_matter(void **state) {
    (void)state;
    static const struct row rows[] = {{"model.vision_tower.encoder.layers.1.w", 2},
                                      {"model.multi_modal_projector.linear_1.weight", 2},
                                      {"model.language_model.layers.0.w", 3},
                                      {"model.language_model.norm.weight", 4},
                                      {"lm_head.weight", 4}};
    struct hand hand;
    hand_init(&hand);
    add_rows(&hand, "exp_avg", rows, COUNT(rows));
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *name = rows[i].name;
        name += strncmp(name, "model.", 6) == 0 ? 6 : 0;
        assert_int_equal(hand_find(&model, name)->layer, rows[i].layer);
    }
    gcmp_model_free(&model);
    hand_free(&hand);
}

static void test_towers__what_joins_may_have_layers(void **state) {
    (void)state;
    CHECK(7, {"query_tokens", 4}, {"vision_model.encoder.layers.1.w", 2},
          {"vision_model.post_layernorm.weight", 2}, {"qformer.encoder.layer.1.w", 4},
          {"qformer.layernorm.weight", 4}, {"language_projection.weight", 4},
          {"language_model.encoder.block.0.w", 5},
          {"language_model.encoder.final_layer_norm.weight", 5},
          {"language_model.decoder.block.1.w", 7},
          {"language_model.decoder.final_layer_norm.weight", 8}); /* BLIP-2 with T5 */
    CHECK(4, {"vision_tower.blocks.0.0.w", 1}, {"image_projection", 1},
          {"language_model.model.encoder.layers.1.w", 3},
          {"language_model.model.encoder.layernorm_embedding.weight", 1},
          {"language_model.model.decoder.layers.0.w", 4}); /* Florence-2 */
    CHECK(3, {"vision_model.encoder.layers.1.w", 2}, {"connector.proj.weight", 2},
          {"text_model.layers.0.w", 3}, {"text_model.norm.weight", 4}); /* Idefics */
}

static void test_towers__other_stacks_keep_their_numbers(void **state) {
    (void)state;
    CHECK(2, {"decoder.layers.1.w", 2}, {"decoder.final_layernorm.weight", 3},
          {"embedding.word_embeddings.weight", 0}, {"mtp.layers.0.w", 3}); /* GPT */
    CHECK(2, {"encoder.layers.1.w", 2}, {"encoder.final_layernorm.weight", 3},
          {"pooler.dense.weight", 3}, {"lm_head.dense.weight", 3}); /* BERT */
    CHECK(2, {"layers.1.w", 2}, {"norm.weight", 3}, {"lm_head.weight", 3});
    CHECK(3, {"vision_model.encoder.layers.1.w", 2}, {"vision_model.post_layernorm.weight", 4},
          {"text_model.encoder.layers.2.w", 3}, {"visual_projection.weight", 4},
          {"text_projection.weight", 4}, {"logit_scale", 4}); /* transformers' CLIP */
    CHECK(3, {"audio_model.audio_encoder.layers.1.w", 2}, {"audio_projection.linear1.weight", 4},
          {"text_model.encoder.layer.2.w", 3}, {"text_projection.linear1.weight", 4},
          {"text_model.embeddings.word_embeddings.weight", 0}); /* transformers' CLAP */
    CHECK(2, {"visual.transformer.resblocks.1.w", 2}, {"visual.ln_post.weight", 3},
          {"transformer.resblocks.0.w", 1}, {"text_projection", 3}); /* OpenAI's CLIP */
    CHECK(2, {"encoder.layers.1.w", 2}, {"my_decoder.layers.0.w", 1}, {"encoder.norm.weight", 3});
    CHECK(2, {"a.encoder.layers.1.w", 2}, {"b.decoder.layers.0.w", 1}, {"a.encoder.norm", 3});
    CHECK(2, {"language_model.layers.1.w", 2}, {"connector.weight", 3}); /* no tower is there */
    CHECK(1, {"encoder.layers.0.w", 1}, {"decoder.norm.weight", 2}, {"encoder.norm.weight", 2});
}

static void test_towers__prediction_of_further_words_is_a_head(void **state) {
    (void)state;
    CHECK(3, {"vision_model.layers.1.w", 2}, {"language_model.decoder.layers.0.w", 3},
          {"language_model.mtp.layers.4.w", 4}, {"language_model.mtp.layers.0.eh_proj.weight", 4});
}

static void test_towers__weights_show_stacks_without_state(void **state) {
    (void)state;
    static const struct row language[] = {{"vision_projection.weight", 3},
                                          {"language_model.decoder.layers.0.w", 4},
                                          {"language_model.decoder.layers.1.w", 5},
                                          {"language_model.decoder.norm.weight", 6}};
    static const struct row tower[] = {{"vision_model.class_token", 0},
                                       {"vision_model.layers.2.w", 3}};
    struct hand hand;
    hand_init(&hand);
    add_rows(&hand, "exp_avg", language, COUNT(language));
    add_rows(&hand, "param", language, COUNT(language));
    add_rows(&hand, "param", tower, COUNT(tower));
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    assert_int_equal(model.layers, 5);
    assert_int_equal(model.shown, 5);
    check_rows(&model, language, COUNT(language));
    gcmp_model_free(&model);
    model = hand_unshard(&hand, "param");
    check_rows(&model, language, COUNT(language));
    check_rows(&model, tower, COUNT(tower));
    gcmp_model_free(&model);
    hand_free(&hand);
    CHECK(2, {"vision_projection.weight", 0}, {"language_model.decoder.layers.1.w", 2},
          {"language_model.decoder.norm.weight", 3}); /* nothing shows the tower's layers */
}

static void test_towers__stacked_layers_are_counted(void **state) {
    (void)state;
    struct hand hand;
    hand_init(&hand);
    hand_whole(&hand, "exp_avg", "encoder.layers.mlp.weight", 3, DIMS(3, 4, 4));
    hand_whole(&hand, "exp_avg", "encoder.final_layernorm.weight", 1, DIMS(4));
    hand_whole(&hand, "exp_avg", "decoder.layers.mlp.weight", 3, DIMS(2, 4, 4));
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    assert_int_equal(model.layers, 5);
    static const struct row rows[] = {{"encoder.layers.2.mlp.weight", 3},
                                      {"encoder.final_layernorm.weight", 3},
                                      {"decoder.layers.0.mlp.weight", 4},
                                      {"decoder.layers.1.mlp.weight", 5}};
    check_rows(&model, rows, COUNT(rows));
    gcmp_model_free(&model);
    struct gradcmp_error error = {0};
    struct gcmp_unshard_options options = {.layers = 9};
    assert_int_equal(gcmp_unshard(&hand.catalogue, "exp_avg", &options, &model, &error),
                     GRADCMP_OK);
    assert_int_equal(model.layers, 9);
    check_rows(&model, rows, COUNT(rows));
    gcmp_model_free(&model);
    options.layers = 4;
    assert_int_equal(gcmp_unshard(&hand.catalogue, "exp_avg", &options, &model, &error),
                     GRADCMP_ERROR_USAGE);
    assert_string_equal(error.message, "4 layers were asked for, but the checkpoint has 5 (stacks "
                                       "that feed one another count together)");
    hand_free(&hand);
}

/* Axes that disagree count something else. */
static void test_towers__an_axis_of_weights_that_counts_no_layers_is_none(void **state) {
    (void)state;
    struct hand hand;
    hand_init(&hand);
    hand_whole(&hand, "exp_avg", "encoder.layers.0.w", 1, DIMS(4));
    hand_whole(&hand, "exp_avg", "decoder.layers.0.w", 1, DIMS(4));
    hand_whole(&hand, "param", "encoder.layers.a", 1, DIMS(7));
    hand_whole(&hand, "param", "encoder.layers.b", 1, DIMS(9));
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    assert_int_equal(model.layers, 2);
    assert_int_equal(hand_find(&model, "decoder.layers.0.w")->layer, 2);
    gcmp_model_free(&model);
    hand_free(&hand);
}

static void test_towers__too_many_layers_together_are_refused(void **state) {
    (void)state;
    struct hand hand;
    hand_init(&hand);
    hand_whole(&hand, "exp_avg", "encoder.layers.39999.w", 1, DIMS(4));
    hand_whole(&hand, "exp_avg", "decoder.layers.39999.w", 1, DIMS(4));
    hand_refuse(&hand, "exp_avg", GRADCMP_ERROR_LIMIT, "80000 layers, at most 65536 are read");
    hand_free(&hand);
}

/* Names of nothing but such words cost no more than others. */
static void test_towers__many_words_do_no_harm(void **state) {
    (void)state;
    static const char *const words[] = {"encoder", "decoder", "vision_model", "language_model"};
    struct hand hand;
    hand_init(&hand);
    for (size_t n = 0; n < 200; n++) {
        char name[2048];
        size_t bytes = 0;
        for (size_t i = 0; i < 120; i++) {
            const char *word = words[(n + i * (n % 7 + 1)) % 4];
            bytes += (size_t)snprintf(name + bytes, sizeof name - bytes, "%s.", word);
        }
        snprintf(name + bytes, sizeof name - bytes, "layers.%zu.w", n);
        hand_whole(&hand, "exp_avg", name, 1, DIMS(4));
    }
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    for (size_t i = 0; i < model.count; i++) {
        assert_in_range(model.parameters[i].layer, 1, model.layers);
    }
    gcmp_model_free(&model);
    hand_free(&hand);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_towers__an_encoder_feeds_its_decoder),
        cmocka_unit_test(test_towers__a_tower_feeds_the_language_model),
        cmocka_unit_test(test_towers__prefixes_of_all_do_not_matter),
        cmocka_unit_test(test_towers__what_joins_may_have_layers),
        cmocka_unit_test(test_towers__other_stacks_keep_their_numbers),
        cmocka_unit_test(test_towers__prediction_of_further_words_is_a_head),
        cmocka_unit_test(test_towers__weights_show_stacks_without_state),
        cmocka_unit_test(test_towers__stacked_layers_are_counted),
        cmocka_unit_test(test_towers__an_axis_of_weights_that_counts_no_layers_is_none),
        cmocka_unit_test(test_towers__many_words_do_no_harm),
        cmocka_unit_test(test_towers__too_many_layers_together_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
