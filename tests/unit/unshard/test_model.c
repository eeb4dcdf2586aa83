/* Whole models: halves, parts under one name, kinds of stored tensors, what parameters say. */
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

static void test_model__parameters_are_sorted_and_found(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "b", 2);
    HAND_WHOLE(hand, "exp_avg", "layers.10.w", 2);
    HAND_WHOLE(hand, "exp_avg", "layers.9.w", 2);
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "a", "b", "layers.10.w", "layers.9.w");
    assert_string_equal(model.state, "exp_avg");
    for (size_t i = 0; i < model.count; i++) {
        assert_ptr_equal(gcmp_model_find(&model, model.parameters[i].name), &model.parameters[i]);
        assert_string_equal(model.parameters[i].state, "exp_avg");
        assert_int_equal(model.parameters[i].dtype, GRADCMP_DTYPE_FLOAT32);
    }
    assert_null(gcmp_model_find(&model, "layers.1.w"));
    assert_null(gcmp_model_find(&model, ""));
    assert_null(gcmp_model_find(&model, "z"));
    gcmp_model_free(&model);
    assert_null(gcmp_model_find(&model, "a"));
}

static void test_model__only_the_state_that_was_asked_for(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "b", 2);
    HAND_WHOLE(hand, NULL, "c", 2);
    hand_stored(hand, HAND_WHOLE(hand, "exp_avg", "bucket", 2))->layout = GRADCMP_LAYOUT_BUCKET;
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "a");
    gcmp_model_free(&model);
    model = hand_unshard(hand, "main_grad");
    assert_int_equal(model.count, 0);
    gcmp_model_free(&model);
}

static void test_model__slabs_carry_source_and_coordinates(void **state) {
    struct hand *hand = *state;
    struct gradcmp_coords coords = {.tp = 1, .pp = -1, .ep = -1, .dp = 3, .vp = -1, .etp = -1};
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "a", 4);
    hand_piece(hand, tensor, DIMS(0), DIMS(1));
    uint32_t source = hand_source(hand, NULL, 0);
    hand_piece_of(hand, tensor, DIMS(1), DIMS(3), source)->coords = &coords;
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_null(model.parameters[0].slabs[0].coords);
    assert_ptr_equal(model.parameters[0].slabs[1].coords, &coords);
    assert_int_equal(model.parameters[0].slabs[1].source, source);
    gcmp_model_free(&model);
}

static void test_model__halves_become_rows_of_one(void **state) {
    struct hand *hand = *state;
    size_t second = HAND_TENSOR(hand, "exp_avg", "layers.0.mlp.linear_fc1.weight_v", 6, 4);
    hand_piece(hand, second, DIMS(0, 0), DIMS(3, 4));
    hand_piece(hand, second, DIMS(3, 0), DIMS(3, 4));
    HAND_WHOLE(hand, "exp_avg", "layers.0.mlp.linear_fc1.weight_w", 6, 4);
    HAND_WHOLE(hand, "exp_avg", "layers.0.mlp.linear_fc1.bias_w", 6);
    HAND_WHOLE(hand, "exp_avg", "layers.0.mlp.linear_fc1.bias_v", 6);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.0.mlp.linear_fc1.bias", "layers.0.mlp.linear_fc1.weight");
    ASSERT_SHAPE(&model.parameters[0], 12);
    const struct gradcmp_parameter *weight = &model.parameters[1];
    ASSERT_SHAPE(weight, 12, 4);
    assert_int_equal(weight->elem_count, 48);
    assert_int_equal(weight->slab_count, 3);
    const uint64_t starts[3] = {0, 6, 9};
    const uint32_t sources[3] = {2, 0, 1};
    for (size_t s = 0; s < 3; s++) {
        assert_int_equal(weight->slabs[s].start[0], starts[s]);
        assert_int_equal(weight->slabs[s].source, sources[s]);
    }
    gcmp_model_free(&model);
}

static void test_model__halves_of_stacked_layers(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.linear_fc1.weight_w", 2, 6, 4);
    HAND_WHOLE(hand, "exp_avg", "decoder.layers.mlp.linear_fc1.weight_v", 2, 6, 4);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "decoder.layers.0.mlp.linear_fc1.weight",
                 "decoder.layers.1.mlp.linear_fc1.weight");
    ASSERT_SHAPE(&model.parameters[1], 12, 4);
    assert_int_equal(model.parameters[1].slabs[1].start[0], 6);
    assert_int_equal(model.parameters[1].slabs[1].offset_elems, 24);
    gcmp_model_free(&model);
}

static void test_model__one_half_alone_is_a_name_of_its_own(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "conv.weight_v", 6, 4); /* a weight norm */
    HAND_WHOLE(hand, "exp_avg", "conv.weight_g", 6, 1);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "conv.weight_g", "conv.weight_v");
    gcmp_model_free(&model);
}

static void test_model__a_lost_half_is_corrupt(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "param", "fc1.weight_w", 6, 4);
    HAND_WHOLE(hand, "param", "fc1.weight_v", 6, 4);
    HAND_WHOLE(hand, "exp_avg", "fc1.weight_w", 6, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "fc1.weight: half exp_avg.fc1.weight_w is there, but no half \"_v\"");
    HAND_WHOLE(hand, "exp_avg_sq", "fc1.weight_v", 6, 4);
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_CORRUPT,
                "fc1.weight: half exp_avg_sq.fc1.weight_v is there, but no half \"_w\"");
}

static void test_model__whole_and_halves_are_corrupt(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "fc1.weight", 12, 4);
    HAND_WHOLE(hand, "exp_avg", "fc1.weight_w", 6, 4);
    HAND_WHOLE(hand, "exp_avg", "fc1.weight_v", 6, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "fc1.weight: stored whole, as exp_avg.fc1.weight, and in halves, as "
                "exp_avg.fc1.weight_w");
}

static void test_model__halves_that_differ_are_corrupt(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "fc1.weight_w", 6, 4);
    HAND_WHOLE(hand, "exp_avg", "fc1.weight_v", 5, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "fc1.weight: shape [6, 4] as exp_avg.fc1.weight_w, but [5, 4] as "
                "exp_avg.fc1.weight_v");
}

static void test_model__halves_without_rows_are_corrupt(void **state) {
    struct hand *hand = *state;
    hand_whole(hand, "exp_avg", "fc1.weight_w", 0, DIMS(1));
    hand_whole(hand, "exp_avg", "fc1.weight_v", 0, DIMS(1));
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT, "fc1.weight: halves without rows to join");
}

static void test_model__a_hole_in_a_half_is_named(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "fc1.weight_w", 6, 4);
    size_t second = HAND_TENSOR(hand, "exp_avg", "fc1.weight_v", 6, 4);
    hand_piece(hand, second, DIMS(0, 0), DIMS(4, 4));
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "fc1.weight: rows [10, 12) of axis 0 are in no shard");
}

static void test_model__parts_of_chained_optimizers_complement_each_other(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 2;
    size_t first = HAND_TENSOR(hand, "exp_avg", "decoder.layers.w", 2, 4);
    size_t second = HAND_TENSOR(hand, "exp_avg", "decoder.layers.w", 2, 4);
    hand_piece(hand, first, DIMS(0, 0), DIMS(1, 4));
    hand_piece(hand, first, DIMS(1, 0), DIMS(1, 2));
    hand_piece(hand, second, DIMS(1, 2), DIMS(1, 2));
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "decoder.layers.0.w", "decoder.layers.1.w");
    assert_int_equal(model.parameters[0].slab_count, 1);
    assert_int_equal(model.parameters[1].slab_count, 2);
    assert_int_equal(model.parameters[1].copy_count, 1);
    gcmp_model_free(&model);
}

static void test_model__two_tensors_of_one_name_collide(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "w", 4);
    size_t second = HAND_WHOLE(hand, "exp_avg", "w", 4);
    hand_stored(hand, second)->key = "chained_1.exp_avg.w";
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "w: stored more than once, as exp_avg.w and as chained_1.exp_avg.w");
}

static void test_model__tensors_of_one_name_must_be_alike(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "w", 4);
    size_t second = HAND_WHOLE(hand, "exp_avg", "w", 4, 1);
    hand_stored(hand, second)->key = "chained_1.exp_avg.w";
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "w: shape [4] as exp_avg.w, but [4, 1] as chained_1.exp_avg.w");
    HAND_WHOLE(hand, "param", "w", 4);
    second = HAND_WHOLE(hand, "param", "w", 4);
    hand_stored(hand, second)->dtype = GRADCMP_DTYPE_BFLOAT16;
    hand_refuse(hand, "param", GRADCMP_ERROR_CORRUPT,
                "w: float32 as param.w, but bfloat16 as param.w");
}

static void test_model__overlapping_chunks_must_hold_the_same_bits(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_WHOLE(hand, "exp_avg", "w", 4);
    hand_piece(hand, tensor, DIMS(0), DIMS(2));
    hand_piece(hand, tensor, DIMS(2), DIMS(2));
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.parameters[0].copy_count, 2);
    assert_int_equal(model.parameters[0].overlap, 1);
    gcmp_model_free(&model);
}

static void test_model__replicated_where_ranks_hold_no_parts(void **state) {
    struct hand *hand = *state;
    hand->catalogue.parallel.tp = 2;
    size_t norm = HAND_TENSOR(hand, "exp_avg", "norm.weight", 1, 4); /* two data-parallel slices */
    HAND_MODEL_SHAPE(hand, norm, 4);
    hand_piece(hand, norm, DIMS(0, 0), DIMS(1, 1));
    hand_piece(hand, norm, DIMS(0, 1), DIMS(1, 3));
    size_t row = HAND_WHOLE(hand, "exp_avg", "row.weight", 1, 2, 6);
    HAND_MODEL_SHAPE(hand, row, 3, 4);
    size_t column = HAND_TENSOR(hand, "exp_avg", "column.weight", 4, 3);
    hand_piece(hand, column, DIMS(0, 0), DIMS(2, 3));
    hand_piece(hand, column, DIMS(2, 0), DIMS(2, 3));
    HAND_WHOLE(hand, "exp_avg", "router.weight", 4, 3);
    HAND_WHOLE(hand, "exp_avg", "experts.0.weight", 4, 3);
    size_t stack = HAND_TENSOR(hand, "exp_avg", "layers.norm.weight", 2, 1, 3);
    HAND_MODEL_SHAPE(hand, stack, 2, 3);
    hand_piece(hand, stack, DIMS(0, 0, 0), DIMS(2, 1, 3));
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(hand_find(&model, "norm.weight")->replicated, 1);
    assert_int_equal(hand_find(&model, "router.weight")->replicated, 1);
    assert_int_equal(hand_find(&model, "layers.1.norm.weight")->replicated, 1);
    assert_int_equal(hand_find(&model, "row.weight")->replicated, 0);
    assert_int_equal(hand_find(&model, "column.weight")->replicated, 0);
    assert_int_equal(hand_find(&model, "experts.0.weight")->replicated, 0);
    gcmp_model_free(&model);

    hand->catalogue.parallel.tp = 1;
    model = hand_unshard(hand, "exp_avg");
    assert_int_equal(hand_find(&model, "norm.weight")->replicated, 0);
    gcmp_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_model__parameters_are_sorted_and_found),
        TEST(test_model__only_the_state_that_was_asked_for),
        TEST(test_model__slabs_carry_source_and_coordinates),
        TEST(test_model__halves_become_rows_of_one),
        TEST(test_model__halves_of_stacked_layers),
        TEST(test_model__one_half_alone_is_a_name_of_its_own),
        TEST(test_model__a_lost_half_is_corrupt),
        TEST(test_model__whole_and_halves_are_corrupt),
        TEST(test_model__halves_that_differ_are_corrupt),
        TEST(test_model__halves_without_rows_are_corrupt),
        TEST(test_model__a_hole_in_a_half_is_named),
        TEST(test_model__parts_of_chained_optimizers_complement_each_other),
        TEST(test_model__two_tensors_of_one_name_collide),
        TEST(test_model__tensors_of_one_name_must_be_alike),
        TEST(test_model__overlapping_chunks_must_hold_the_same_bits),
        TEST(test_model__replicated_where_ranks_hold_no_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
