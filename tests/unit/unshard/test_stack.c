/* Stacked layers and experts, and what disagrees with them. */
#include "hand_catalogue.h"

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

static void test_stack__axis_of_layers_becomes_parameters(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 3;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "decoder.layers.mlp.w", 3, 4);
    uint32_t first = hand_piece(hand, tensor, DIMS(0, 0), DIMS(1, 4));
    uint32_t rest = hand_piece(hand, tensor, DIMS(1, 0), DIMS(2, 4)); /* spans two layers */
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "decoder.layers.0.mlp.w", "decoder.layers.1.mlp.w",
                 "decoder.layers.2.mlp.w");
    assert_int_equal(model.layers, 3);
    for (size_t l = 0; l < 3; l++) {
        const struct gradcmp_parameter *parameter = &model.parameters[l];
        assert_int_equal(parameter->layer, l + 1);
        ASSERT_SHAPE(parameter, 4);
        assert_int_equal(parameter->slab_count, 1);
        assert_int_equal(parameter->slabs[0].source, l == 0 ? first : rest);
        assert_int_equal(parameter->slabs[0].offset_elems, l == 2 ? 4 : 0);
    }
    gcmp_model_free(&model);
}

static void test_stack__stacked_and_numbered_keys_give_the_same_names(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 2;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.w", 2, 4);
    HAND_WHOLE(hand, "exp_avg_sq", "decoder.layers.0.mlp.w", 4);
    HAND_WHOLE(hand, "exp_avg_sq", "decoder.layers.1.mlp.w", 4);
    struct gradcmp_model stacked = hand_unshard(hand, "exp_avg");
    struct gradcmp_model numbered = hand_unshard(hand, "exp_avg_sq");
    assert_int_equal(stacked.count, numbered.count);
    for (size_t i = 0; i < stacked.count; i++) {
        assert_string_equal(stacked.parameters[i].name, numbered.parameters[i].name);
        assert_int_equal(stacked.parameters[i].layer, numbered.parameters[i].layer);
        ASSERT_SHAPE(&stacked.parameters[i], 4);
        ASSERT_SHAPE(&numbered.parameters[i], 4);
    }
    gcmp_model_free(&stacked);
    gcmp_model_free(&numbered);
}

static void test_stack__experts_become_parameters(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.experts.experts.linear_fc2.weight", 2, 3, 5, 4);
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.experts.experts.linear_fc2.bias", 2, 3, 5);
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.router.weight", 2, 3, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.count, 2 * (3 + 3 + 1));
    const struct gradcmp_parameter *parameter =
        hand_find(&model, "decoder.layers.1.mlp.experts.experts.2.linear_fc2.weight");
    ASSERT_SHAPE(parameter, 5, 4);
    assert_int_equal(parameter->layer, 2);
    assert_int_equal(parameter->slabs[0].offset_elems, (1 * 3 + 2) * 20);
    parameter = hand_find(&model, "decoder.layers.0.mlp.experts.experts.1.linear_fc2.bias");
    ASSERT_SHAPE(parameter, 5);
    assert_int_equal(parameter->slabs[0].offset_elems, 5);
    ASSERT_SHAPE(hand_find(&model, "decoder.layers.1.mlp.router.weight"), 3, 4);
    gcmp_model_free(&model);
}

static void test_stack__experts_of_numbered_layers_become_parameters(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.1.moe.experts.w1", 2, 5, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.1.moe.experts.0.w1", "layers.1.moe.experts.1.w1");
    assert_int_equal(model.parameters[1].layer, 2);
    ASSERT_SHAPE(&model.parameters[1], 5, 4);
    gcmp_model_free(&model);
}

static void test_stack__known_number_of_experts_decides(void **state) {
    struct hand *hand = *state;
    hand->catalogue.experts = 4;
    HAND_WHOLE(hand, "exp_avg", "layers.0.experts.a", 4, 5, 6);
    HAND_WHOLE(hand, "exp_avg", "layers.0.experts.b", 3, 5, 6);
    HAND_WHOLE(hand, "exp_avg", "layers.0.experts.matrix", 4, 6);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.0.experts.0.a", "layers.0.experts.1.a", "layers.0.experts.2.a",
                 "layers.0.experts.3.a", "layers.0.experts.b", "layers.0.experts.matrix");
    gcmp_model_free(&model);
}

static void test_stack__numbered_experts_are_not_stacked(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.0.experts.1.conv.weight", 4, 5, 6);
    HAND_WHOLE(hand, "exp_avg", "layers.0.shared_experts.conv.weight", 4, 5, 6);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.0.experts.1.conv.weight", "layers.0.shared_experts.conv.weight");
    gcmp_model_free(&model);
}

static void test_stack__tensors_that_disagree_are_no_stack(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.attention.weight", 8, 4);
    HAND_WHOLE(hand, "exp_avg", "layers.mlp.weight", 16, 4);
    HAND_WHOLE(hand, "exp_avg", "layers.mlp.experts.weight", 16, 4, 4);
    HAND_WHOLE(hand, "exp_avg", "layers.scale", 1);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.attention.weight", "layers.mlp.experts.weight",
                 "layers.mlp.weight", "layers.scale");
    assert_int_equal(model.layers, 0);
    assert_int_equal(model.parameters[0].layer, 1);
    gcmp_model_free(&model);
}

/* Modules in a dict called "layers", which have as many rows as each other. */
static void test_stack__modules_are_no_stack(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.q.weight", 64, 64); /* square, no biases */
    HAND_WHOLE(hand, "exp_avg", "layers.k.weight", 64, 64);
    HAND_WHOLE(hand, "exp_avg", "a.layers.conv.weight", 64, 3, 5);
    HAND_WHOLE(hand, "exp_avg", "a.layers.conv.bias", 64); /* no layer has a number as its bias */
    HAND_WHOLE(hand, "exp_avg", "b.layers.weight", 64, 3, 5);
    HAND_WHOLE(hand, "exp_avg", "c.layers.0.weight", 64, 64);
    HAND_WHOLE(hand, "exp_avg", "c.layers.norm.weight", 64, 3, 3);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "a.layers.conv.bias", "a.layers.conv.weight", "b.layers.weight",
                 "c.layers.0.weight", "c.layers.norm.weight", "layers.k.weight", "layers.q.weight");
    assert_int_equal(model.layers, 1);
    gcmp_model_free(&model);
}

/* Matrices of layers, without modules or beside a number for each layer. */
static void test_stack__matrices_tell_layers(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "layers.wq", 2, 6, 6);
    HAND_WHOLE(hand, "exp_avg", "layers.gate", 2);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.0.gate", "layers.0.wq", "layers.1.gate", "layers.1.wq");
    gcmp_model_free(&model);
}

/* What is no stack of its own is none of the weights that tell how many layers there are. */
static void test_stack__modules_of_weights_count_no_layers(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 99;
    HAND_WHOLE(hand, "exp_avg", "layers.q.weight", 64, 64);
    HAND_WHOLE(hand, "exp_avg", "blocks.1.weight", 4, 4);
    HAND_WHOLE(hand, "param", "layers.q.weight", 64, 64);
    HAND_WHOLE(hand, "param", "blocks.1.weight", 4, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.shown, 2);
    gcmp_model_free(&model);
}

static void test_stack__a_tensor_that_lost_a_layer_is_corrupt(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 8;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.a", 7, 4);
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.b", 8, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.decoder.layers.a: 7 layers on axis 0, but the model has 8, as "
                "exp_avg.decoder.layers.b");
    HAND_WHOLE(hand, "exp_avg_sq", "decoder.layers.a", 8, 4);
    HAND_WHOLE(hand, "exp_avg_sq", "decoder.layers.b", 9, 4);
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_CORRUPT,
                "exp_avg_sq.decoder.layers.b: 9 layers on axis 0, but the model has 8, as "
                "exp_avg_sq.decoder.layers.a");
}

static void test_stack__two_stacks_may_differ(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 2;
    HAND_WHOLE(hand, "exp_avg", "encoder.layers.a.w", 3, 4, 4);
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.a.w", 2, 4, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "decoder.layers.0.a.w", "decoder.layers.1.a.w", "encoder.layers.0.a.w",
                 "encoder.layers.1.a.w", "encoder.layers.2.a.w");
    assert_int_equal(model.layers, 5);
    gcmp_model_free(&model);
}

static void test_stack__a_number_for_each_layer(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 2;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.scale", 2);
    hand_whole(hand, "exp_avg", "encoder.layers.scale", 0, DIMS(1));
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "decoder.layers.0.scale", "decoder.layers.1.scale",
                 "encoder.layers.scale");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(model.parameters[i].ndim, 0);
        assert_int_equal(model.parameters[i].elem_count, 1);
    }
    gcmp_model_free(&model);
}

static void test_stack__no_layers_are_no_parameters(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.w", 0, 4, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.count, 0);
    gcmp_model_free(&model);
}

static void test_stack__absurd_numbers_are_refused(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.norm.w", (uint64_t)1 << 40, 3, 3);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_LIMIT,
                "exp_avg.decoder.layers.norm.w: 1099511627776 layers, at most 65536 are read");
    HAND_WHOLE(hand, "exp_avg_sq", "layers.0.experts.w", 65537, 3, 1);
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_LIMIT,
                "exp_avg_sq.layers.0.experts.w: 65537 experts, at most 65536 are read");
    HAND_WHOLE(hand, "param", "decoder.layers.experts.w", 65536, 65536, 2, 2);
    hand_refuse(
        hand, "param", GRADCMP_ERROR_LIMIT,
        "param.decoder.layers.experts.w: 65536 layers of 65536 experts make more parameters "
        "than 1 pieces can be about");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_stack__axis_of_layers_becomes_parameters),
        TEST(test_stack__stacked_and_numbered_keys_give_the_same_names),
        TEST(test_stack__experts_become_parameters),
        TEST(test_stack__experts_of_numbered_layers_become_parameters),
        TEST(test_stack__known_number_of_experts_decides),
        TEST(test_stack__numbered_experts_are_not_stacked),
        TEST(test_stack__tensors_that_disagree_are_no_stack),
        TEST(test_stack__modules_are_no_stack),
        TEST(test_stack__matrices_tell_layers),
        TEST(test_stack__modules_of_weights_count_no_layers),
        TEST(test_stack__a_tensor_that_lost_a_layer_is_corrupt),
        TEST(test_stack__two_stacks_may_differ),
        TEST(test_stack__a_number_for_each_layer),
        TEST(test_stack__no_layers_are_no_parameters),
        TEST(test_stack__absurd_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
