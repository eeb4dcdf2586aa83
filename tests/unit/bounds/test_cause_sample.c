/* Order found in samples, and the moves that stand for it: each move list applied to values gives
 * what the sample showed. */
#include <math.h>
#include "bounds/cause_sample.h"

#include "bounds/cause_moves.h"
#include "pair_maker.h"

#define DIMS(...)                                                                                  \
    (const uint64_t[]) {                                                                           \
        __VA_ARGS__                                                                                \
    }

enum { MOST = 24 * 8 };

/* Values that are all different, in no order. */
static void fill(double *values, size_t count) {
    uint32_t seed = 7;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (double)(seed >> 8) / 0x1p23 - 1.0;
    }
}

/* Apply moves of a two-axis shape. */
static void apply(const struct gradcmp_moves *moves, const uint64_t *shape, const double *from,
                  double *to) {
    for (size_t m = 0; m < moves->count; m++) {
        const struct gradcmp_move *move = &moves->items[m];
        for (uint64_t r = 0; r < move->extent[0]; r++) {
            for (uint64_t c = 0; c < move->extent[1]; c++) {
                to[(move->to[0] + r) * moves->shape[1] + move->to[1] + c] =
                    from[(move->from[0] + r) * shape[1] + move->from[1] + c];
            }
        }
    }
}

static void test_map__permuted_blocks_and_their_moves(void **state) {
    (void)state;
    double a[MOST], b[MOST], moved[MOST];
    fill(a, MOST);
    const size_t expected[] = {2, 0, 3, 1};
    for (size_t block = 0; block < 4; block++) {
        memcpy(b + block * 48, a + expected[block] * 48, 48 * sizeof *b);
    }
    b[5] *= 1.001;
    struct gcmp_lines lines = {a, b, 24, 8, 0.01};
    size_t map[GCMP_MAX_BLOCKS];
    assert_int_equal(gcmp_sample_map(&lines, 4, map), GCMP_MAP_PERMUTED);
    assert_memory_equal(map, expected, sizeof expected);
    assert_false(gcmp_map_is_cyclic(map, 4));
    assert_int_equal(gcmp_sample_map(&lines, 2, map), GCMP_MAP_NO_FIT);
    assert_int_equal(gcmp_sample_map(&lines, 5, map), GCMP_MAP_NO_FIT);

    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_axis axis = {DIMS(24, 8), 2, 0};
    struct gradcmp_moves moves;
    assert_true(gcmp_moves_blocks(&axis, 4, expected, &arena, &moves));
    apply(&moves, axis.shape, a, moved);
    b[5] = moved[5];
    assert_memory_equal(moved, b, sizeof b);
    gcmp_arena_free(&arena);
}

static void test_map__repeated_block(void **state) {
    (void)state;
    double a[MOST], b[MOST];
    fill(a, MOST);
    memcpy(b, a, sizeof b);
    memcpy(b + MOST / 2, a, MOST / 2 * sizeof *b);
    struct gcmp_lines lines = {a, b, 24, 8, 0.01};
    size_t map[GCMP_MAX_BLOCKS];
    assert_int_equal(gcmp_sample_map(&lines, 2, map), GCMP_MAP_REPEATED);
    assert_int_equal(map[0], 0);
    assert_int_equal(map[1], 0);
}

static void test_map__equal_blocks_stay_where_they_are(void **state) {
    (void)state;
    double a[MOST], b[MOST];
    fill(a, MOST / 2);
    memcpy(a + MOST / 2, a, MOST / 2 * sizeof *a);
    memcpy(b, a, sizeof b);
    struct gcmp_lines lines = {a, b, 24, 8, 0.01};
    size_t map[GCMP_MAX_BLOCKS];
    assert_int_equal(gcmp_sample_map(&lines, 2, map), GCMP_MAP_IDENTITY);
    for (size_t i = 0; i < MOST / 2; i++) { /* each is a little nearer to the other */
        b[i] = 1.001 * a[i];
        a[MOST / 2 + i] = 1.001 * a[i];
    }
    assert_int_equal(gcmp_sample_map(&lines, 2, map), GCMP_MAP_IDENTITY);
}

static void test_map__something_else_does_not_fit(void **state) {
    (void)state;
    double a[MOST], b[MOST], both[2 * MOST];
    fill(both, 2 * MOST);
    memcpy(a, both, sizeof a);
    memcpy(b, both + MOST, sizeof b);
    struct gcmp_lines lines = {a, b, 24, 8, 0.1};
    size_t map[GCMP_MAX_BLOCKS];
    for (size_t count = 2; count <= 24; count++) {
        assert_int_equal(gcmp_sample_map(&lines, count, map), GCMP_MAP_NO_FIT);
    }
    assert_int_equal(gcmp_sample_roll(&lines, 1), 0);
}

/* Roll whole and by blocks, along rows; the moves bring the same about. */
static void test_roll__every_shift_is_found(void **state) {
    (void)state;
    double a[MOST], b[MOST], moved[MOST];
    struct gcmp_axis axis = {DIMS(24, 8), 2, 0};
    fill(a, MOST);
    for (size_t count = 1; count <= 4; count++) {
        uint64_t rows = 24 / count;
        for (uint64_t shift = 1; shift < rows; shift++) {
            for (uint64_t r = 0; r < 24; r++) {
                uint64_t base = r / rows * rows, from = base + (r - base + rows - shift) % rows;
                memcpy(b + r * 8, a + from * 8, 8 * sizeof *b);
            }
            struct gcmp_lines lines = {a, b, 24, 8, 0.01};
            assert_int_equal(gcmp_sample_roll(&lines, count), shift);
            struct gcmp_arena arena = GCMP_ARENA_INIT;
            struct gradcmp_moves moves;
            assert_true(gcmp_moves_roll(&axis, count, shift, &arena, &moves));
            apply(&moves, axis.shape, a, moved);
            assert_memory_equal(moved, b, sizeof b);
            gcmp_arena_free(&arena);
        }
    }
}

static void test_roll__of_a_vector(void **state) {
    (void)state;
    double a[MOST], b[MOST];
    fill(a, MOST);
    for (size_t i = 0; i < MOST; i++) {
        b[i] = a[(i + MOST - 17) % MOST];
    }
    struct gcmp_lines lines = {a, b, MOST, 1, 0.01};
    assert_int_equal(gcmp_sample_roll(&lines, 1), 17);
    assert_int_equal(gcmp_sample_roll(&lines, 0), 0);
}

static void test_roll__without_one_is_none(void **state) {
    (void)state;
    double a[MOST];
    fill(a, MOST);
    struct gcmp_lines lines = {a, a, 24, 8, 0.01};
    assert_int_equal(gcmp_sample_roll(&lines, 1), 0);
    double zeros[MOST] = {0};
    struct gcmp_lines none = {zeros, zeros, 24, 8, 0.01};
    assert_int_equal(gcmp_sample_roll(&none, 1), 0);
}

/* Count and compare what a shift's moves bring together: b[i] must be a[i + offset] in its block.
 */
static void check_shift(uint64_t rows, uint64_t columns, uint64_t block_rows, int64_t offset) {
    double a[MOST], b[MOST], moved_a[MOST], moved_b[MOST];
    const uint64_t shape[] = {rows, columns};
    size_t expected = 0, found = 0;
    fill(a, MOST);
    fill(b, MOST);
    for (int64_t i = 0; i < (int64_t)(rows * columns); i++) {
        int64_t size = (int64_t)(block_rows * columns), base = i / size * size;
        int64_t end =
            base + size < (int64_t)(rows * columns) ? base + size : (int64_t)(rows * columns);
        b[i] = -2.0; /* what no element of a is */
        if (i + offset >= base && i + offset < end) {
            b[i] = a[i + offset];
            expected++;
        }
    }
    for (unsigned part = 0; part < 2; part++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gcmp_flat_shift shift = {block_rows, offset, part};
        struct gradcmp_moves from_a, from_b;
        assert_true(gcmp_moves_flat(shape, &shift, &arena, &from_a, &from_b));
        apply(&from_a, shape, a, moved_a);
        apply(&from_b, shape, b, moved_b);
        size_t elems = from_a.count == 0 ? 0 : from_a.shape[0] * from_a.shape[1];
        assert_memory_equal(moved_a, moved_b, elems * sizeof *moved_a);
        found += elems;
        gcmp_arena_free(&arena);
    }
    assert_int_equal(found, expected);
}

static void test_shift__every_offset_in_blocks_whole_and_cut(void **state) {
    (void)state;
    for (int64_t offset = -23; offset <= 23; offset++) {
        if (offset != 0) {
            check_shift(24, 8, 24, offset);
            check_shift(24, 8, 6, offset);
            check_shift(23, 8, 6, offset); /* the last block is shorter */
            check_shift(19, 8, 6, offset); /* and hardly there */
        }
    }
}

static void test_shift__is_found_in_a_run(void **state) {
    (void)state;
    enum { COUNT = 2048 };
    static double a[COUNT], b[COUNT];
    fill(a, COUNT);
    for (int64_t offset = -600; offset <= 600; offset += 100) {
        for (int64_t i = 0; i < COUNT; i++) {
            b[i] = i + offset >= 0 && i + offset < COUNT ? 1.001 * a[i + offset] : 0.0;
        }
        assert_int_equal(gcmp_sample_shift(a, b, COUNT, 0.01), offset);
    }
    fill(b, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        b[i] = b[i] * b[i] - 0.3;
    }
    assert_int_equal(gcmp_sample_shift(a, b, COUNT, 0.1), 0);
    assert_int_equal(gcmp_sample_shift(a, b, 100, 0.1), 0);
}

/* [q0 q1 k v] twice, of 4 heads in 2 groups with rows of 1: kinds are q0..q3, k0 k1, v0 v1. */
static void test_qkv__groups_to_kinds_and_back(void **state) {
    (void)state;
    struct gcmp_axis axis = {DIMS(8, 1), 2, 0};
    const double grouped[] = {0, 1, 10, 20, 2, 3, 11, 21}, kinds[] = {0, 1, 2, 3, 10, 11, 20, 21};
    double moved[8];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_qkv qkv = {.heads = 4, .groups = 2, .head_dim = 1, .ranks = 1, .to_kinds = true};
    struct gradcmp_moves moves;
    assert_true(gcmp_qkv_fits(&axis, &qkv));
    assert_true(gcmp_moves_qkv(&axis, &qkv, &arena, &moves));
    apply(&moves, axis.shape, grouped, moved);
    assert_memory_equal(moved, kinds, sizeof kinds);
    qkv.to_kinds = false;
    assert_true(gcmp_moves_qkv(&axis, &qkv, &arena, &moves));
    apply(&moves, axis.shape, kinds, moved);
    assert_memory_equal(moved, grouped, sizeof grouped);
    qkv.ranks = 2; /* each rank has one group: both orders are the same */
    assert_true(gcmp_moves_qkv(&axis, &qkv, &arena, &moves));
    apply(&moves, axis.shape, kinds, moved);
    assert_memory_equal(moved, kinds, sizeof kinds);
    gcmp_arena_free(&arena);
}

static void test_qkv__numbers_that_do_not_fit(void **state) {
    (void)state;
    struct gcmp_axis axis = {DIMS(8, 1), 2, 0};
    const struct gcmp_qkv wrong[] = {{4, 2, 2, 1, true},
                                     {0, 2, 1, 1, true},
                                     {4, 0, 1, 1, true},
                                     {4, 2, 1, 3, true},
                                     {3, 2, 1, 1, true},
                                     {4, 2, 1, 0, true},
                                     {UINT64_MAX, UINT64_MAX, 1, 1, true}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(gcmp_qkv_fits(&axis, &wrong[i]));
    }
}

/* A sample is inside its shape, along the whole axis, and near to its budget. */
static void check_sample(const uint64_t *shape, unsigned ndim, unsigned axis, uint64_t budget) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_axis along = {shape, ndim, axis};
    struct gradcmp_moves moves;
    assert_true(gcmp_moves_sample(&along, budget, &arena, &moves));
    uint64_t elems = 1, moved = 0;
    assert_int_equal(moves.shape[axis], shape[axis]);
    for (unsigned d = 0; d < ndim; d++) {
        elems *= moves.shape[d];
    }
    assert_true(elems <= budget || elems <= 4 * shape[axis]);
    for (size_t m = 0; m < moves.count; m++) {
        uint64_t part = 1;
        for (unsigned d = 0; d < ndim; d++) {
            assert_true(moves.items[m].from[d] + moves.items[m].extent[d] <= shape[d]);
            assert_true(moves.items[m].to[d] + moves.items[m].extent[d] <= moves.shape[d]);
            part *= moves.items[m].extent[d];
        }
        moved += part;
    }
    assert_int_equal(moved, elems);
    gcmp_arena_free(&arena);
}

static void test_sample__stays_inside_shape_and_budget(void **state) {
    (void)state;
    check_sample(DIMS(24, 8), 2, 0, 1000);
    check_sample(DIMS(4096, 4096), 2, 0, 32768);
    check_sample(DIMS(4096, 4096), 2, 1, 32768);
    check_sample(DIMS(150000, 7), 2, 0, 32768);
    check_sample(DIMS(7, 150000), 2, 0, 32768);
    check_sample(DIMS(300), 1, 0, 64);
    check_sample(DIMS(64, 65, 66, 67), 4, 2, 4096);
    check_sample(DIMS(5, 1, 1), 3, 0, 4);
}

/* Of noise only an order counts: many values, unlike each other, and none another. */
static void test_sample__reordered_values(void **state) {
    (void)state;
    double a[64], b[64], room[128];
    struct gcmp_lines lines = {.a = a, .b = b, .rows = 64, .columns = 1, .limit = 0.03};
    for (int i = 0; i < 64; i++) {
        a[i] = sin(i + 1.0);
        b[i] = sin((i + 20) % 64 + 1.0);
    }
    assert_true(gcmp_sample_is_reordered(&lines, room));
    lines.rows = 32; /* too few */
    assert_false(gcmp_sample_is_reordered(&lines, room));
    lines.rows = 64;
    b[7] += 0.01; /* another value */
    assert_false(gcmp_sample_is_reordered(&lines, room));
    for (int i = 0; i < 64; i++) { /* steps of rounding, which are few */
        a[i] = i % 5;
        b[i] = (i + 1) % 5;
    }
    a[63] = b[63] = 9.0;
    assert_false(gcmp_sample_is_reordered(&lines, room));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample__reordered_values),
        cmocka_unit_test(test_map__permuted_blocks_and_their_moves),
        cmocka_unit_test(test_map__repeated_block),
        cmocka_unit_test(test_map__equal_blocks_stay_where_they_are),
        cmocka_unit_test(test_map__something_else_does_not_fit),
        cmocka_unit_test(test_roll__every_shift_is_found),
        cmocka_unit_test(test_roll__of_a_vector),
        cmocka_unit_test(test_roll__without_one_is_none),
        cmocka_unit_test(test_shift__every_offset_in_blocks_whole_and_cut),
        cmocka_unit_test(test_shift__is_found_in_a_run),
        cmocka_unit_test(test_qkv__groups_to_kinds_and_back),
        cmocka_unit_test(test_qkv__numbers_that_do_not_fit),
        cmocka_unit_test(test_sample__stays_inside_shape_and_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
