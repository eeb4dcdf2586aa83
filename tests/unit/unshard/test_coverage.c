/* Coverage: whole, with holes, with copies, and layouts that no straight cut separates. */
#include <stdio.h>

#include "hand_catalogue.h"

#include "unshard/coverage.h"

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

struct rectangle {
    uint64_t row, rows, column, columns;
};

/* A tensor "w" of that shape in state exp_avg, made of these rectangles; sources count them. */
static void add_rectangles(struct hand *hand, uint64_t rows, uint64_t columns,
                           const struct rectangle *list, size_t count) {
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", rows, columns);
    for (size_t i = 0; i < count; i++) {
        hand_piece(hand, tensor, DIMS(list[i].row, list[i].column),
                   DIMS(list[i].rows, list[i].columns));
    }
}
#define ADD(hand, rows, columns, ...)                                                              \
    add_rectangles(hand, rows, columns, (const struct rectangle[]){__VA_ARGS__},                   \
                   sizeof((const struct rectangle[]){__VA_ARGS__}) / sizeof(struct rectangle))

static void refuse(struct hand *hand, const char *message) {
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT, message);
}

/* Assert number of copies, that each is whole, and the order of slabs. */
static void assert_copies(struct hand *hand, uint32_t copies) {
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    const struct gradcmp_parameter *w = hand_find(&model, "w");
    assert_int_equal(w->copy_count, copies);
    assert_int_equal(w->overlap, copies > 1);
    for (uint32_t copy = 0; copy < copies; copy++) {
        unsigned char *seen = calloc(w->elem_count, 1);
        assert_non_null(seen);
        uint64_t total = 0;
        for (size_t s = 0; s < w->slab_count; s++) {
            const struct gradcmp_slab *slab = &w->slabs[s];
            for (uint64_t i = 0; slab->copy == copy && i < slab->extent[0] * slab->extent[1]; i++) {
                uint64_t at = (slab->start[0] + i / slab->extent[1]) * w->shape[1] +
                              slab->start[1] + i % slab->extent[1];
                assert_false(seen[at]);
                seen[at] = 1;
                total++;
            }
        }
        assert_int_equal(total, w->elem_count);
        free(seen);
    }
    for (size_t s = 1; s < w->slab_count; s++) {
        const struct gradcmp_slab *a = &w->slabs[s - 1], *b = &w->slabs[s];
        uint64_t first_a = a->start[0] * w->shape[1] + a->start[1];
        uint64_t first_b = b->start[0] * w->shape[1] + b->start[1];
        assert_true(a->copy < b->copy || (a->copy == b->copy && first_a < first_b));
    }
    gcmp_model_free(&model);
}

static void test_coverage__a_hole_of_rows_is_named(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "decoder.layers.mlp.linear_fc1.weight", 3, 80, 32);
    hand_piece(hand, tensor, DIMS(0, 0, 0), DIMS(2, 80, 32));
    hand_piece(hand, tensor, DIMS(2, 0, 0), DIMS(1, 20, 32));
    hand_piece(hand, tensor, DIMS(2, 40, 0), DIMS(1, 40, 32));
    refuse(hand, "decoder.layers.2.mlp.linear_fc1.weight: rows [20, 40) of axis 0 are in no shard");
}

static void test_coverage__holes_at_the_edges_are_named(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {1, 3, 0, 4});
    refuse(hand, "w: rows [0, 1) of axis 0 are in no shard");
}

static void test_coverage__a_hole_at_the_end_is_named(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 4, 0, 3});
    refuse(hand, "w: rows [3, 4) of axis 1 are in no shard");
}

static void test_coverage__a_hole_inside_is_named_on_all_axes(void **state) {
    struct hand *hand = *state;
    ADD(hand, 6, 6, {0, 2, 0, 6}, {2, 2, 0, 1}, {2, 2, 3, 3}, {4, 2, 0, 6});
    refuse(hand, "w: rows [2, 4) of axis 0, [1, 3) of axis 1 are in no shard");
}

static void test_coverage__a_missing_layer_is_named(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 3;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "decoder.layers.w", 3, 4);
    hand_piece(hand, tensor, DIMS(0, 0), DIMS(1, 4));
    hand_piece(hand, tensor, DIMS(2, 0), DIMS(1, 4));
    refuse(hand, "decoder.layers.1.w: all elements are in no shard");
}

static void test_coverage__a_missing_flat_slice_is_named(void **state) {
    struct hand *hand = *state;
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", 2, 1, 20); /* fragments of [5, 4] */
    HAND_MODEL_SHAPE(hand, tensor, 10, 4);
    hand_piece(hand, tensor, DIMS(0, 0, 0), DIMS(1, 1, 20));
    hand_piece(hand, tensor, DIMS(1, 0, 0), DIMS(1, 1, 7));
    hand_piece(hand, tensor, DIMS(1, 0, 8), DIMS(1, 1, 12));
    refuse(hand, "w: rows [6, 7) of axis 0, [3, 4) of axis 1 are in no shard");
}

static void test_coverage__a_huge_tensor_of_little_is_refused_at_once(void **state) {
    struct hand *hand = *state;
    ADD(hand, (uint64_t)1 << 40, 3, {0, 2, 0, 3});
    refuse(hand, "w: rows [2, 1099511627776) of axis 0 are in no shard");
}

static void test_coverage__grids_are_covered_in_any_order(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {2, 2, 0, 2}, {0, 2, 2, 2}, {2, 2, 2, 2}, {0, 2, 0, 2});
    assert_copies(hand, 1);
}

static void test_coverage__a_chunk_listed_twice_is_two_copies(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 2, 0, 4}, {2, 2, 0, 4}, {0, 2, 0, 4}, {2, 2, 0, 4});
    assert_copies(hand, 2);
}

static void test_coverage__a_whole_and_two_halves_are_two_copies(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 4, 0, 2}, {0, 4, 0, 4}, {0, 4, 2, 2});
    assert_copies(hand, 2);
}

static void test_coverage__parts_may_be_copied_in_different_ways(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 2, 0, 4}, {0, 2, 0, 4}, {2, 2, 0, 4}, {2, 2, 0, 1}, {2, 2, 1, 3});
    assert_copies(hand, 2);
}

static void test_coverage__rows_cut_differently_are_copies(void **state) {
    struct hand *hand = *state;
    ADD(hand, 12, 2, {0, 4, 0, 2}, {4, 4, 0, 2}, {8, 4, 0, 2}, {0, 6, 0, 2}, {6, 6, 0, 2},
        {0, 1, 0, 2}, {1, 11, 0, 2});
    assert_copies(hand, 3);
}

static void test_coverage__rows_and_columns_are_copies(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 4, 0, 2}, {0, 4, 2, 2}, {0, 2, 0, 4}, {2, 2, 0, 4});
    assert_copies(hand, 2);
}

/* Two copies of two rows, of ranks `first` to `fourth` (-1: the file does not tell): pieces that
 * overlap are damage where they differ, replicas that ranks wrote are not. */
static void check_overlap(struct hand *hand, const int32_t ranks[4], uint8_t overlap) {
    struct gradcmp_coords coords[4];
    ADD(hand, 2, 4, {0, 1, 0, 4}, {1, 1, 0, 4}, {0, 1, 0, 4}, {1, 1, 0, 4});
    for (size_t i = 0; i < 4; i++) {
        coords[i] = (struct gradcmp_coords){-1, -1, -1, ranks[i], -1, -1};
        hand->catalogue.stored[0].pieces[i].coords = ranks[i] < 0 ? NULL : &coords[i];
    }
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    const struct gradcmp_parameter *w = hand_find(&model, "w");
    assert_int_equal(w->copy_count, 2);
    assert_int_equal(w->overlap, overlap);
    assert_int_equal(w->of_ranks, !overlap);
    gcmp_model_free(&model);
}

static void test_coverage__ranks_copies_are_replicas(void **state) {
    check_overlap(*state, (const int32_t[]){0, 1, 2, 3}, 0);
}

static void test_coverage__copies_of_one_rank_overlap(void **state) {
    check_overlap(*state, (const int32_t[]){0, 1, 0, 1}, 1);
}

static void test_coverage__copies_of_unknown_ranks_overlap(void **state) {
    check_overlap(*state, (const int32_t[]){0, 1, 2, -1}, 1);
}

static void test_coverage__a_pinwheel_is_covered(void **state) {
    struct hand *hand = *state;
    ADD(hand, 3, 3, {0, 1, 0, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 2, 0, 1}, {1, 1, 1, 1});
    assert_copies(hand, 1);
}

static void test_coverage__a_pinwheels_hole_is_named(void **state) {
    struct hand *hand = *state;
    ADD(hand, 3, 3, {0, 1, 0, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 2, 0, 1});
    refuse(hand, "w: rows [1, 2) of axis 0, [1, 2) of axis 1 are in no shard");
}

static void test_coverage__two_pinwheels_are_two_copies(void **state) {
    struct hand *hand = *state;
    ADD(hand, 3, 3, {0, 1, 0, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 2, 0, 1}, {1, 1, 1, 1},
        {0, 1, 0, 2}, {0, 2, 2, 1}, {2, 1, 1, 2}, {1, 2, 0, 1}, {1, 1, 1, 1});
    assert_copies(hand, 2);
}

static void test_coverage__part_of_a_copy_is_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 2, 0, 4}, {2, 2, 0, 4}, {2, 2, 0, 4});
    refuse(hand, "w: rows [2, 4) of axis 0 are in more than one shard, and the shards are no whole "
                 "copies");
}

static void test_coverage__a_copy_of_the_first_part_is_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 2, 0, 4}, {2, 2, 0, 4}, {0, 2, 0, 4});
    refuse(hand, "w: rows [0, 2) of axis 0 are in more than one shard, and the shards are no whole "
                 "copies");
}

static void test_coverage__overlapping_rows_are_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 3, 3, {0, 2, 0, 3}, {1, 2, 0, 3});
    refuse(hand, "w: rows [1, 2) of axis 0 are in more than one shard, and the shards are no whole "
                 "copies");
}

static void test_coverage__rows_within_others_are_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 6, 3, {0, 4, 0, 3}, {1, 1, 0, 3}, {3, 3, 0, 3});
    refuse(hand, "w: rows [1, 2) of axis 0 are in more than one shard, and the shards are no whole "
                 "copies");
}

static void test_coverage__a_chain_that_breaks_off_is_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 6, 2, {0, 4, 0, 2}, {0, 3, 0, 2}, {3, 3, 0, 2});
    refuse(hand, "w: rows [0, 4) of axis 0 are in more than one shard, and the shards are no whole "
                 "copies");
}

static void test_coverage__a_whole_and_one_half_are_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 4, 0, 4}, {0, 4, 0, 2});
    refuse(hand, "w: rows [0, 2) of axis 1 are in more than one shard, and the shards are no whole "
                 "copies");
}

static void test_coverage__scattered_overlaps_are_corrupt(void **state) {
    struct hand *hand = *state;
    ADD(hand, 4, 4, {0, 3, 0, 3}, {1, 3, 1, 3}, {0, 1, 2, 2}, {3, 1, 0, 2});
    refuse(hand, "w: rows [0, 1) of axis 0, [2, 3) of axis 1 are in more than one shard, and the "
                 "shards are no whole copies");
}

static void test_coverage__overlaps_are_found_behind_slabs_that_ended(void **state) {
    struct hand *hand = *state; /* a pinwheel, and one element of its left arm once more */
    ADD(hand, 9, 9, {0, 3, 0, 6}, {0, 6, 6, 3}, {6, 3, 3, 6}, {3, 6, 0, 3}, {3, 3, 3, 3},
        {7, 1, 1, 1});
    refuse(hand, "w: rows [7, 8) of axis 0, [1, 2) of axis 1 are in more than one shard, and the "
                 "shards are no whole copies");
}

/* Boxes of a whole tensor, cut at random: the order and the number of copies do not matter. */
static void cut_at_random(struct hand *hand, size_t tensor, struct rectangle whole,
                          unsigned depth) {
    bool is_row = rand() % 2 == 0;
    uint64_t length = is_row ? whole.rows : whole.columns;
    if (depth == 0 || length < 2) {
        hand_piece(hand, tensor, DIMS(whole.row, whole.column), DIMS(whole.rows, whole.columns));
        return;
    }
    uint64_t cut = 1 + (uint64_t)rand() % (length - 1);
    struct rectangle first = whole, second = whole;
    if (is_row) {
        first.rows = cut;
        second.row += cut;
        second.rows -= cut;
    } else {
        first.columns = cut;
        second.column += cut;
        second.columns -= cut;
    }
    cut_at_random(hand, tensor, first, depth - 1);
    cut_at_random(hand, tensor, second, depth - 1);
}

static void test_coverage__random_cuts_are_covered_and_every_loss_is_found(void **state) {
    (void)state;
    srand(7);
    for (int round = 0; round < 60; round++) {
        struct hand hand;
        hand_init(&hand);
        size_t tensor = HAND_TENSOR(&hand, "exp_avg", "w", 16, 12);
        cut_at_random(&hand, tensor, (struct rectangle){0, 16, 0, 12}, 1 + (unsigned)round % 6);
        struct gradcmp_stored *stored = hand_stored(&hand, tensor);
        for (size_t i = stored->piece_count; i > 1; i--) {
            size_t j = (size_t)rand() % i;
            struct gradcmp_piece moved = stored->pieces[i - 1];
            stored->pieces[i - 1] = stored->pieces[j];
            stored->pieces[j] = moved;
        }
        assert_copies(&hand, 1);
        stored->piece_count--; /* the message's box lies in the piece that was lost */
        const struct gradcmp_piece *lost = &stored->pieces[stored->piece_count];
        struct gradcmp_model model;
        struct gradcmp_error error = {0};
        assert_int_equal(gcmp_unshard(&hand.catalogue, "exp_avg", NULL, &model, &error),
                         GRADCMP_ERROR_CORRUPT);
        assert_non_null(strstr(error.message, "are in no shard"));
        unsigned long long from, to;
        const char *rows = strstr(error.message, "rows [");
        if (rows != NULL && sscanf(rows, "rows [%llu, %llu) of axis 0", &from, &to) == 2 &&
            strstr(rows, "of axis 0") != NULL) {
            assert_true(from >= lost->start[0] && to <= lost->start[0] + lost->extent[0]);
        }
        stored->piece_count++; /* and one that is there twice is no whole copy, unless it is all */
        if (stored->piece_count > 1) {
            hand_piece(&hand, tensor, lost->start, lost->extent);
            assert_int_equal(gcmp_unshard(&hand.catalogue, "exp_avg", NULL, &model, &error),
                             GRADCMP_ERROR_CORRUPT);
            assert_non_null(strstr(error.message, "in more than one shard"));
        }
        hand_free(&hand);
    }
}

/* Grids of very many boxes, in an order that suits no axis. */
static void test_coverage__large_grids_are_covered(void **state) {
    struct hand *hand = *state;
    enum { SIDE = 200 };
    uint64_t shape[2] = {2 * SIDE, 3 * SIDE};
    struct gradcmp_slab *slabs = calloc(SIDE * SIDE, sizeof *slabs);
    uint64_t *starts = calloc(2 * SIDE * SIDE, sizeof *starts);
    const uint64_t extent[2] = {2, 3};
    assert_non_null(slabs);
    assert_non_null(starts);
    for (uint64_t i = 0; i < SIDE * SIDE; i++) {
        uint64_t at = i * 7919 % (SIDE * SIDE);
        starts[2 * i] = 2 * (at / SIDE);
        starts[2 * i + 1] = 3 * (at % SIDE);
        slabs[i].start = &starts[2 * i];
        slabs[i].extent = extent;
        slabs[i].source = (uint32_t)at;
    }
    struct gradcmp_parameter parameter = {.name = "w", .shape = shape, .ndim = 2};
    struct gcmp_cover_room room = {NULL, 0};
    parameter.elem_count = shape[0] * shape[1];
    parameter.slabs = slabs;
    parameter.slab_count = SIDE * SIDE;
    assert_int_equal(gcmp_cover(&parameter, &room, NULL), GRADCMP_OK);
    assert_int_equal(parameter.copy_count, 1);
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        assert_int_equal(slabs[i].source, i);
    }
    struct gradcmp_error error = {0};
    parameter.slabs[SIDE + 2] = parameter.slabs[SIDE + 1];
    assert_int_equal(gcmp_cover(&parameter, &room, &error), GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message,
                        "w: rows [2, 4) of axis 0, [3, 6) of axis 1 are in more than "
                        "one shard, and the shards are no whole copies");
    gcmp_cover_room_free(&room);
    free(slabs);
    free(starts);
    (void)hand;
}

/* Each cut takes one box off: what quadratic work would come of. It ends, whatever it says. */
static void test_coverage__a_spiral_ends(void **state) {
    struct hand *hand = *state;
    enum { TURNS = 1000 };
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", TURNS, TURNS);
    struct gradcmp_stored *stored = hand_stored(hand, tensor);
    stored->pieces = gcmp_arena_alloc(&hand->arena, 2 * TURNS, sizeof *stored->pieces);
    assert_non_null(stored->pieces);
    for (uint64_t i = 0; i + 1 < TURNS; i++) {
        struct gradcmp_piece *row = &stored->pieces[stored->piece_count++];
        row->start = gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(i, i));
        row->extent = gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(1, TURNS - i));
        struct gradcmp_piece *column = &stored->pieces[stored->piece_count++];
        column->start = gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(i + 1, i));
        column->extent = gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(TURNS - i - 1, 1));
    }
    struct gradcmp_error error = {0};
    struct gradcmp_model model;
    assert_int_equal(gcmp_unshard(&hand->catalogue, "exp_avg", NULL, &model, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message,
                        "w: rows [999, 1000) of axis 0, [999, 1000) of axis 1 are in no shard");
    struct gradcmp_piece *last = &stored->pieces[stored->piece_count++];
    last->start = gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(TURNS - 1, TURNS - 1));
    last->extent = gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(1, 1));
    model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.parameters[0].copy_count, 1);
    gcmp_model_free(&model);
}

static uint64_t bound_to(int64_t value, uint64_t most) {
    return value < 0 ? 0 : (uint64_t)value > most ? most : (uint64_t)value;
}

/* Add the part of a square that lies in the tensor. */
static void add_square(struct hand *hand, struct gradcmp_stored *stored, int64_t row,
                       int64_t column, int64_t side) {
    uint64_t start[2] = {bound_to(row, stored->shape[0]), bound_to(column, stored->shape[1])};
    uint64_t end[2] = {bound_to(row + side, stored->shape[0]),
                       bound_to(column + side, stored->shape[1])};
    if (end[0] > start[0] && end[1] > start[1]) {
        struct gradcmp_piece *piece = &stored->pieces[stored->piece_count++];
        piece->start = gcmp_catalogue_dims(&hand->catalogue, 2, start);
        piece->extent =
            gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(end[0] - start[0], end[1] - start[1]));
    }
}

/* Squares of sides 2 and 1 that fill the plane without any straight line between them. */
static struct gradcmp_stored *add_squares(struct hand *hand, uint64_t rows, uint64_t columns) {
    size_t tensor = HAND_TENSOR(hand, "exp_avg", "w", rows, columns);
    struct gradcmp_stored *stored = hand_stored(hand, tensor);
    stored->pieces =
        gcmp_arena_alloc(&hand->arena, (rows + 4) * (columns + 4), sizeof *stored->pieces);
    assert_non_null(stored->pieces);
    for (int64_t row = -3; row < (int64_t)rows + 1; row++) {
        for (int64_t column = -3; column < (int64_t)columns + 1; column++) {
            if ((row + 3 * column) % 5 == 0) { /* (2, 1) and (-1, 2) make the lattice */
                add_square(hand, stored, row, column, 2);
                add_square(hand, stored, row + 2, column, 1);
            }
        }
    }
    return stored;
}

static void test_coverage__squares_without_cuts_are_covered(void **state) {
    struct hand *hand = *state;
    struct gradcmp_stored *stored = add_squares(hand, 43, 57);
    assert_true(stored->piece_count > 900);
    assert_copies(hand, 1);
    stored->pieces[400] = stored->pieces[--stored->piece_count];
    struct gradcmp_model model;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard(&hand->catalogue, "exp_avg", NULL, &model, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "are in no shard"));
}

static void test_coverage__too_irregular_is_refused(void **state) {
    struct hand *hand = *state;
    add_squares(hand, 5, 20000);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_LIMIT,
                "w: 44001 pieces in a layout too irregular to prove that they cover all elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_coverage__a_hole_of_rows_is_named),
        TEST(test_coverage__holes_at_the_edges_are_named),
        TEST(test_coverage__a_hole_at_the_end_is_named),
        TEST(test_coverage__a_hole_inside_is_named_on_all_axes),
        TEST(test_coverage__a_missing_layer_is_named),
        TEST(test_coverage__a_missing_flat_slice_is_named),
        TEST(test_coverage__a_huge_tensor_of_little_is_refused_at_once),
        TEST(test_coverage__grids_are_covered_in_any_order),
        TEST(test_coverage__a_chunk_listed_twice_is_two_copies),
        TEST(test_coverage__a_whole_and_two_halves_are_two_copies),
        TEST(test_coverage__parts_may_be_copied_in_different_ways),
        TEST(test_coverage__rows_cut_differently_are_copies),
        TEST(test_coverage__rows_and_columns_are_copies),
        TEST(test_coverage__ranks_copies_are_replicas),
        TEST(test_coverage__copies_of_one_rank_overlap),
        TEST(test_coverage__copies_of_unknown_ranks_overlap),
        TEST(test_coverage__a_pinwheel_is_covered),
        TEST(test_coverage__a_pinwheels_hole_is_named),
        TEST(test_coverage__two_pinwheels_are_two_copies),
        TEST(test_coverage__part_of_a_copy_is_corrupt),
        TEST(test_coverage__a_copy_of_the_first_part_is_corrupt),
        TEST(test_coverage__overlapping_rows_are_corrupt),
        TEST(test_coverage__rows_within_others_are_corrupt),
        TEST(test_coverage__a_chain_that_breaks_off_is_corrupt),
        TEST(test_coverage__a_whole_and_one_half_are_corrupt),
        TEST(test_coverage__scattered_overlaps_are_corrupt),
        TEST(test_coverage__overlaps_are_found_behind_slabs_that_ended),
        TEST(test_coverage__random_cuts_are_covered_and_every_loss_is_found),
        TEST(test_coverage__large_grids_are_covered),
        TEST(test_coverage__a_spiral_ends),
        TEST(test_coverage__squares_without_cuts_are_covered),
        TEST(test_coverage__too_irregular_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
