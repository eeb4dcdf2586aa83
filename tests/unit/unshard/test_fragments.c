/* Grids of fragments: which shapes fit, and what does not. */
#include <stdio.h>

#include "hand_catalogue.h"

#include "unshard/fragments.h"

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

/* Boxes as they come, written as one line each. */
struct seen {
    char text[1024];
    size_t count;
};

static enum gradcmp_status write_box(void *user, const struct gcmp_box *box,
                                     struct gradcmp_error *error) {
    (void)error;
    struct seen *seen = user;
    size_t at = strlen(seen->text);
    at += (size_t)snprintf(seen->text + at, sizeof seen->text - at, "%s%d:", at == 0 ? "" : " ",
                           (int)box->offset_elems);
    for (unsigned d = 0; d < 2; d++) {
        at += (size_t)snprintf(seen->text + at, sizeof seen->text - at, "%s%d+%dx%d",
                               d == 0 ? "" : ",", (int)box->start[d], (int)box->extent[d],
                               (int)box->stride[d]);
    }
    seen->count++;
    return GRADCMP_OK;
}

static void assert_boxes(struct hand *hand, size_t tensor, const char *expected) {
    struct gcmp_grid grid;
    struct seen seen = {.count = 0};
    const struct gradcmp_stored *stored = hand_stored(hand, tensor);
    assert_int_equal(gcmp_grid_make(stored, NULL, &grid, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_grid_boxes(&grid, &stored->pieces[0], write_box, &seen, NULL),
                     GRADCMP_OK);
    assert_string_equal(seen.text, expected);
}

static void test_fragments__slice_inside_of_a_row_is_one_box(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 2, 1, 12); /* two fragments of [3, 4] */
    HAND_MODEL_SHAPE(hand, tensor, 6, 4);
    hand_piece(hand, tensor, DIMS(1, 0, 5), DIMS(1, 1, 2));
    assert_boxes(hand, tensor, "0:4+1x4,1+2x1");
}

static void test_fragments__slice_over_rows_is_three_boxes(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 2, 1, 20); /* two fragments of [5, 4] */
    HAND_MODEL_SHAPE(hand, tensor, 10, 4);
    hand_piece(hand, tensor, DIMS(1, 0, 3), DIMS(1, 1, 15));
    assert_boxes(hand, tensor, "0:5+1x4,3+1x1 1:6+3x4,0+4x1 13:9+1x4,0+2x1");
}

static void test_fragments__whole_fragment_is_one_box(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 1, 2, 10); /* columns: [5, 2] */
    HAND_MODEL_SHAPE(hand, tensor, 5, 4);
    hand_piece(hand, tensor, DIMS(0, 1, 0), DIMS(1, 1, 10));
    assert_boxes(hand, tensor, "0:0+5x2,2+2x1");
}

static void test_fragments__piece_over_cells_is_cut_at_them(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 1, 2, 10);
    HAND_MODEL_SHAPE(hand, tensor, 5, 4);
    hand_piece(hand, tensor, DIMS(0, 0, 0), DIMS(1, 2, 10));
    assert_boxes(hand, tensor, "0:0+5x2,0+2x1 10:0+5x2,2+2x1");
}

static void test_fragments__piece_over_a_block_of_cells_is_cut_at_them(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 3, 3, 4); /* nine fragments of [2, 2] */
    HAND_MODEL_SHAPE(hand, tensor, 6, 6);
    hand_piece(hand, tensor, DIMS(1, 1, 0), DIMS(2, 2, 4));
    assert_boxes(hand, tensor, "0:2+2x2,2+2x1 4:2+2x2,4+2x1 8:4+2x2,2+2x1 12:4+2x2,4+2x1");
}

static void test_fragments__cells_of_one_layer_stay_one_box(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 6, 1, 4); /* six layers of [4] */
    HAND_MODEL_SHAPE(hand, tensor, 6, 4);
    hand_piece(hand, tensor, DIMS(1, 0, 1), DIMS(4, 1, 3));
    assert_boxes(hand, tensor, "0:1+4x3,1+3x1");
}

static void test_fragments__a_flat_tensor_takes_the_models_shape(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 12);
    HAND_MODEL_SHAPE(hand, tensor, 3, 4);
    hand_piece(hand, tensor, DIMS(2), DIMS(9));
    assert_boxes(hand, tensor, "0:0+1x4,2+2x1 2:1+1x4,0+4x1 6:2+1x4,0+3x1");
}

static void test_fragments__numbers_without_axes(void **state) {
    struct hand *hand = *state;
    hand_model_shape(hand, hand_whole(hand, "exp_avg", "flat", 1, DIMS(1)), 0, DIMS(1));
    hand_whole(hand, "exp_avg", "bare", 0, DIMS(1));
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "bare", "flat");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(model.parameters[i].ndim, 0);
        assert_int_equal(model.parameters[i].elem_count, 1);
        assert_int_equal(model.parameters[i].slab_count, 1);
        assert_int_equal(model.parameters[i].copy_count, 1);
        assert_int_equal(model.parameters[i].slabs[0].offset_elems, 0);
    }
    gcmp_model_free(&model);
}

static void test_fragments__empty_pieces_and_tensors_are_nothing(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "gate", 2, 3);
    hand_piece(hand, tensor, DIMS(0, 0), DIMS(2, 3));
    hand_piece(hand, tensor, DIMS(2, 0), DIMS(0, 3)); /* ranks without rows */
    hand_piece(hand, tensor, DIMS(2, 0), DIMS(0, 3));
    HAND_WHOLE(hand, "exp_avg", "none", 0, 3);
    HAND_TENSOR(hand, "exp_avg", "unwritten", 3, 0);
    tensor = HAND_TENSOR(hand, "exp_avg", "flat", 1, 1, 0);
    HAND_MODEL_SHAPE(hand, tensor, 4, 0);
    tensor = HAND_TENSOR(hand, "exp_avg", "cells", 0, 1, 0);
    HAND_MODEL_SHAPE(hand, tensor, 0, 7);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "cells", "flat", "gate", "none", "unwritten");
    for (size_t i = 0; i < model.count; i++) {
        bool is_gate = strcmp(model.parameters[i].name, "gate") == 0;
        assert_int_equal(model.parameters[i].elem_count, is_gate ? 6 : 0);
        assert_int_equal(model.parameters[i].slab_count, is_gate ? 1 : 0);
        assert_int_equal(model.parameters[i].copy_count, 1);
    }
    gcmp_model_free(&model);
}

static void test_fragments__shapes_that_do_not_divide_are_corrupt(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_WHOLE(hand, "exp_avg", "w", 3, 1, 8); /* 3 * 2 rows and two left over */
    HAND_MODEL_SHAPE(hand, tensor, 8, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: stored shape [3, 1, 8] does not divide the model's shape [8, 4]");
}

static void test_fragments__wrong_local_size_is_corrupt(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_WHOLE(hand, "exp_avg", "w", 2, 1, 15);
    HAND_MODEL_SHAPE(hand, tensor, 8, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: stored shape [2, 1, 15] does not divide the model's shape [8, 4]");
}

static void test_fragments__no_cells_of_something_are_corrupt(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 0, 1, 4);
    HAND_MODEL_SHAPE(hand, tensor, 8, 4);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: stored shape [0, 1, 4] does not divide the model's shape [8, 4]");
}

static void test_fragments__other_shapes_name_both(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "param", "w", 8, 4);
    HAND_WHOLE(hand, "exp_avg", "w", 4, 8);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_UNSUPPORTED,
                "exp_avg.w: stored shape [4, 8] is neither a box nor fragments of the model's "
                "shape [8, 4]");
    HAND_WHOLE(hand, "exp_avg_sq", "w", 8, 5);
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_CORRUPT,
                "exp_avg_sq.w: stored shape [8, 5] is neither a box nor fragments of the model's "
                "shape [8, 4]");
}

static void test_fragments__stated_and_found_shape_must_agree(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "param", "w", 8, 4);
    size_t tensor = HAND_WHOLE(hand, "exp_avg", "w", 1, 1, 32);
    HAND_MODEL_SHAPE(hand, tensor, 4, 8);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: stated model shape [4, 8], but the model's tensor param.w has [8, 4]");
}

static void test_fragments__sizes_beyond_64_bits_are_corrupt(void **state) {
    struct hand *hand = *state;
    HAND_TENSOR(hand, "exp_avg", "w", (uint64_t)1 << 40, (uint64_t)1 << 40);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: stored shape [1099511627776, 1099511627776] with 2^63 elements or "
                "more, or as many in the model's shape [1099511627776, 1099511627776]");
    size_t tensor = HAND_TENSOR(hand, "exp_avg_sq", "w", 1, 1, 1);
    HAND_MODEL_SHAPE(hand, tensor, (uint64_t)1 << 32, (uint64_t)1 << 32);
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_CORRUPT,
                "exp_avg_sq.w: stored shape [1, 1, 1] with 2^63 elements or more, or as many in "
                "the model's shape [4294967296, 4294967296]");
}

static void test_fragments__pieces_outside_are_corrupt(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 3, 3);
    hand_piece(hand, tensor, DIMS(2, 0), DIMS(2, 3));
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: a piece of shape [2, 3] at [2, 0] is not inside of [3, 3]");
    tensor = HAND_TENSOR(hand, "exp_avg_sq", "w", 3, 3);
    hand_piece(hand, tensor, DIMS(UINT64_MAX, 0), DIMS(4, 3));
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_CORRUPT,
                "exp_avg_sq.w: a piece of shape [4, 3] at [18446744073709551615, 0] is not inside "
                "of [3, 3]");
}

static void test_fragments__strides_beyond_64_bits_are_corrupt(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 1, 1, 32);
    HAND_MODEL_SHAPE(hand, tensor, 8, 4);
    int64_t strides[3] = {0, 0, INT64_MAX / 2};
    struct gradcmp_piece *piece =
        hand_piece_of(hand, tensor, DIMS(0, 0, 1), DIMS(1, 1, 31), hand_source(hand, NULL, 0));
    piece->stride = strides;
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "exp_avg.w: strides of a piece leave the range of 64 bits");

    hand->catalogue.layers = 8;
    tensor = HAND_TENSOR(hand, "exp_avg_sq", "decoder.layers.w", 8, 1);
    int64_t leading[2] = {INT64_MAX / 4, 1};
    piece = hand_piece_of(hand, tensor, DIMS(0, 0), DIMS(8, 1), hand_source(hand, NULL, 0));
    piece->stride = leading;
    hand_refuse(hand, "exp_avg_sq", GRADCMP_ERROR_CORRUPT,
                "exp_avg_sq.decoder.layers.w: strides of a piece leave the range of 64 bits");
}

static void test_fragments__endless_cells_are_refused(void **state) {
    struct hand *hand = *state;
    uint64_t cells = (uint64_t)1 << 40;
    size_t tensor = HAND_WHOLE(hand, "exp_avg", "w", cells, 2);
    HAND_MODEL_SHAPE(hand, tensor, 2 * cells);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_LIMIT,
                "exp_avg.w: its 1 pieces make more boxes of parameters than are read");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_fragments__slice_inside_of_a_row_is_one_box),
        TEST(test_fragments__slice_over_rows_is_three_boxes),
        TEST(test_fragments__whole_fragment_is_one_box),
        TEST(test_fragments__piece_over_cells_is_cut_at_them),
        TEST(test_fragments__piece_over_a_block_of_cells_is_cut_at_them),
        TEST(test_fragments__cells_of_one_layer_stay_one_box),
        TEST(test_fragments__a_flat_tensor_takes_the_models_shape),
        TEST(test_fragments__numbers_without_axes),
        TEST(test_fragments__empty_pieces_and_tensors_are_nothing),
        TEST(test_fragments__shapes_that_do_not_divide_are_corrupt),
        TEST(test_fragments__wrong_local_size_is_corrupt),
        TEST(test_fragments__no_cells_of_something_are_corrupt),
        TEST(test_fragments__other_shapes_name_both),
        TEST(test_fragments__stated_and_found_shape_must_agree),
        TEST(test_fragments__sizes_beyond_64_bits_are_corrupt),
        TEST(test_fragments__pieces_outside_are_corrupt),
        TEST(test_fragments__strides_beyond_64_bits_are_corrupt),
        TEST(test_fragments__endless_cells_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
