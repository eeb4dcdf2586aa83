/* Parameters made of other parameters by slabs: read back element by element. */
#include "unshard/reslab.h"

#include "hand_catalogue.h"

/* A [6, 4] parameter in two row blocks, [0, 2) and [2, 6); element (r, c) is 10 r + c. */
struct fixture {
    struct hand hand;
    struct gradcmp_model model;
    const struct gradcmp_parameter *parameter;
};

static void start(struct fixture *fixture) {
    hand_init(&fixture->hand);
    size_t tensor = HAND_TENSOR(&fixture->hand, "exp_avg", "w.weight", 6, 4);
    const uint64_t rows[] = {0, 2, 6};
    for (size_t block = 0; block < 2; block++) {
        uint64_t count = rows[block + 1] - rows[block];
        double *values = calloc(count * 4, sizeof *values);
        assert_non_null(values);
        for (uint64_t i = 0; i < count * 4; i++) {
            values[i] = (double)(10 * (rows[block] + i / 4) + i % 4);
        }
        uint32_t source = hand_source(&fixture->hand, values, count * 4);
        hand_piece_of(&fixture->hand, tensor, DIMS(rows[block], 0), DIMS(count, 4), source);
    }
    fixture->model = hand_unshard(&fixture->hand, "exp_avg");
    fixture->parameter = hand_find(&fixture->model, "w.weight");
}

static void end(struct fixture *fixture) {
    gcmp_model_free(&fixture->model);
    hand_free(&fixture->hand);
}

/* The made parameter's values are these, and its slabs are sorted. */
static void assert_values(const struct fixture *fixture, const struct gradcmp_parameter *made,
                          const double *expected) {
    double *values = hand_read(&fixture->hand, made, 0);
    for (uint64_t i = 0; i < made->elem_count; i++) {
        assert_true(values[i] == expected[i]);
    }
    free(values);
    uint64_t last = 0;
    for (size_t s = 0; s < made->slab_count; s++) {
        uint64_t first = made->slabs[s].start[0] * made->shape[1] + made->slabs[s].start[1];
        assert_true(s == 0 || first > last);
        last = first;
    }
}

static void test_box__across_slabs_reads_its_elements(void **state) {
    (void)state;
    struct fixture fixture;
    struct gradcmp_parameter *made;
    struct gradcmp_error error = {0};
    start(&fixture);
    assert_int_equal(gcmp_reslab_box(fixture.parameter, DIMS(1, 1), DIMS(3, 2), &fixture.hand.arena,
                                     &made, &error),
                     GRADCMP_OK);
    ASSERT_SHAPE(made, 3, 2);
    assert_int_equal(made->elem_count, 6);
    assert_values(&fixture, made, (const double[]){11, 12, 21, 22, 31, 32});
    end(&fixture);
}

static void test_moves__rows_exchanged_across_slabs(void **state) {
    (void)state;
    struct fixture fixture;
    struct gradcmp_parameter *made;
    struct gradcmp_error error = {0};
    start(&fixture);
    struct gradcmp_move items[] = {{DIMS(0, 0), DIMS(3, 0), DIMS(3, 4)},
                                   {DIMS(3, 0), DIMS(0, 0), DIMS(3, 4)}};
    struct gradcmp_moves moves = {DIMS(6, 4), items, 2};
    assert_int_equal(
        gcmp_reslab_moves(fixture.parameter, &moves, &fixture.hand.arena, &made, &error),
        GRADCMP_OK);
    assert_values(&fixture, made, (const double[]){30, 31, 32, 33, 40, 41, 42, 43, 50, 51, 52, 53,
                                                   0,  1,  2,  3,  10, 11, 12, 13, 20, 21, 22, 23});
    end(&fixture);
}

static void test_moves__one_block_twice(void **state) {
    (void)state;
    struct fixture fixture;
    struct gradcmp_parameter *made;
    struct gradcmp_error error = {0};
    start(&fixture);
    struct gradcmp_move items[] = {{DIMS(4, 2), DIMS(0, 0), DIMS(2, 2)},
                                   {DIMS(4, 2), DIMS(0, 2), DIMS(2, 2)}};
    struct gradcmp_moves moves = {DIMS(2, 4), items, 2};
    assert_int_equal(
        gcmp_reslab_moves(fixture.parameter, &moves, &fixture.hand.arena, &made, &error),
        GRADCMP_OK);
    assert_values(&fixture, made, (const double[]){42, 43, 42, 43, 52, 53, 52, 53});
    end(&fixture);
}

static void test_transpose__reads_columns(void **state) {
    (void)state;
    struct fixture fixture;
    struct gradcmp_parameter *made;
    struct gradcmp_error error = {0};
    start(&fixture);
    assert_int_equal(gcmp_reslab_transpose(fixture.parameter, &fixture.hand.arena, &made, &error),
                     GRADCMP_OK);
    ASSERT_SHAPE(made, 4, 6);
    assert_values(&fixture, made, (const double[]){0, 10, 20, 30, 40, 50, 1, 11, 21, 31, 41, 51,
                                                   2, 12, 22, 32, 42, 52, 3, 13, 23, 33, 43, 53});
    end(&fixture);
}

static void test_moves__outside_or_not_filling_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    struct gradcmp_parameter *made;
    struct gradcmp_error error = {0};
    start(&fixture);
    struct gradcmp_move outside = {DIMS(4, 0), DIMS(0, 0), DIMS(3, 4)};
    struct gradcmp_moves moves = {DIMS(3, 4), &outside, 1};
    assert_int_equal(
        gcmp_reslab_moves(fixture.parameter, &moves, &fixture.hand.arena, &made, &error),
        GRADCMP_ERROR_USAGE);
    assert_string_equal(error.message, "w.weight: a box outside of its shape");
    struct gradcmp_move huge = {DIMS(UINT64_MAX, 0), DIMS(0, 0), DIMS(3, 4)};
    moves.items = &huge;
    assert_int_equal(
        gcmp_reslab_moves(fixture.parameter, &moves, &fixture.hand.arena, &made, &error),
        GRADCMP_ERROR_USAGE);
    struct gradcmp_move part = {DIMS(0, 0), DIMS(0, 0), DIMS(3, 3)};
    moves.items = &part;
    assert_int_equal(
        gcmp_reslab_moves(fixture.parameter, &moves, &fixture.hand.arena, &made, &error),
        GRADCMP_ERROR_USAGE);
    assert_string_equal(error.message, "w.weight: moves that do not fill the shape once");
    end(&fixture);
}

static void test_transpose__of_one_axis_is_refused(void **state) {
    (void)state;
    struct fixture fixture;
    struct gradcmp_parameter *made;
    struct gradcmp_error error = {0};
    start(&fixture);
    struct gradcmp_parameter vector = *fixture.parameter;
    vector.ndim = 1;
    assert_int_equal(gcmp_reslab_transpose(&vector, &fixture.hand.arena, &made, &error),
                     GRADCMP_ERROR_USAGE);
    end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_box__across_slabs_reads_its_elements),
        cmocka_unit_test(test_moves__rows_exchanged_across_slabs),
        cmocka_unit_test(test_moves__one_block_twice),
        cmocka_unit_test(test_transpose__reads_columns),
        cmocka_unit_test(test_moves__outside_or_not_filling_is_refused),
        cmocka_unit_test(test_transpose__of_one_axis_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
