/* Where in a parameter the difference lies: grid, boxes, products. */
#include "pair_maker.h"

#include "bounds/places.h"

enum { ROWS = 130, COLUMNS = 70, ELEMS = ROWS * COLUMNS };

static const uint64_t shape[] = {ROWS, COLUMNS};
static double a[ELEMS], b[ELEMS];
static struct gcmp_arena arena;
static struct gcmp_places places;

static void start(void) {
    struct gradcmp_error error = {0};
    for (size_t i = 0; i < ELEMS; i++) {
        a[i] = 1.0 + (double)(i % 7) / 8;
        b[i] = a[i];
    }
    arena = (struct gcmp_arena)GCMP_ARENA_INIT;
    assert_int_equal(gcmp_places_make(&places, 2, shape, 2, &arena, &error), GRADCMP_OK);
}

static void add_in_runs(size_t run) {
    for (size_t first = 0; first < ELEMS; first += run) {
        size_t count = ELEMS - first < run ? ELEMS - first : run;
        gcmp_places_add(&places, 1, first, a + first, b + first, count);
    }
}

static struct gradcmp_heat heat(void) {
    struct gradcmp_heat out;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_places_heat(&places, &arena, &out, &error), GRADCMP_OK);
    return out;
}

static void test_places__one_wrong_element_heats_its_cell_alone(void **state) {
    (void)state;
    start();
    b[100 * COLUMNS + 69] += 3.0;
    add_in_runs(ELEMS);
    struct gradcmp_heat map = heat();
    assert_int_equal(map.rows, 64);
    assert_int_equal(map.columns, 64);
    for (size_t cell = 0; cell < (size_t)64 * 64; cell++) {
        bool hot = cell == 49 * 64 + 63; /* floor(100 * 64 / 130), floor(69 * 64 / 70) */
        assert_true(hot ? map.cells[cell] > 0.1 : map.cells[cell] <= 0.0);
    }
    gcmp_arena_free(&arena);
}

static void test_places__mean_square_of_the_cells_is_rel(void **state) {
    (void)state;
    start();
    double d2 = 0.0, a2 = 0.0, mean = 0.0;
    for (size_t i = 0; i < ELEMS; i++) {
        b[i] = 2.0 * (a[i] + 0.01 * (double)(i % 11));
        d2 += pow(b[i] / 2.0 - a[i], 2.0);
        a2 += a[i] * a[i];
    }
    places.factor = 2.0;
    add_in_runs(ELEMS);
    struct gradcmp_heat map = heat();
    for (size_t cell = 0; cell < (size_t)64 * 64; cell++) {
        mean += map.cells[cell] * map.cells[cell] * places.cell_elems[cell] / ELEMS;
    }
    assert_true(fabs(mean - d2 / a2) < 1e-12 * (d2 / a2));
    gcmp_arena_free(&arena);
}

static void test_places__runs_of_any_length_give_the_same_bits(void **state) {
    (void)state;
    const uint64_t start_at[] = {5, 33}, extent[] = {90, 20};
    double first[64 * 64];
    struct gradcmp_tally tally = {0};
    for (size_t run = 1; run < 20000; run = run * 5 + 2) {
        start();
        struct gcmp_place_box box = {.start = start_at, .extent = extent, .side = 1};
        places.boxes = &box;
        places.box_count = 1;
        for (size_t i = 0; i < ELEMS; i++) {
            b[i] = a[i] * (1.0 + 1e-3 * sin((double)i));
        }
        add_in_runs(run);
        struct gradcmp_heat map = heat();
        if (run == 1) {
            memcpy(first, map.cells, sizeof first);
            tally = box.tally;
        }
        assert_memory_equal(first, map.cells, sizeof first);
        assert_memory_equal(&tally, &box.tally, sizeof tally);
        assert_int_equal(box.tally.elems, 90 * 20);
        gcmp_arena_free(&arena);
    }
}

static void test_places__boxes_see_their_own_side_and_elements(void **state) {
    (void)state;
    start();
    const uint64_t top[] = {0, 0}, bottom[] = {65, 0}, half[] = {65, COLUMNS};
    struct gcmp_place_box boxes[] = {{.start = top, .extent = half, .side = 1},
                                     {.start = bottom, .extent = half, .side = 1},
                                     {.start = top, .extent = half, .side = 2}};
    places.boxes = boxes;
    places.box_count = 3;
    b[64 * COLUMNS] += 1.0;
    b[65 * COLUMNS + 1] = NAN;
    add_in_runs(333);
    assert_true(fabs(boxes[0].tally.d2 - 1.0) < 1e-12);
    assert_true(boxes[1].tally.d2 <= 0.0);
    assert_int_equal(boxes[1].tally.nonfinite_any, 1);
    assert_int_equal(boxes[2].tally.elems, 0);
    gcmp_arena_free(&arena);
}

static void test_places__copies_are_multiplied(void **state) {
    (void)state;
    start();
    gcmp_places_multiply(&places, 0, 1, a, b, 100);
    assert_false(places.differ[1]);
    b[50] += 1.0;
    gcmp_places_multiply(&places, 0, 1, a, b, 100);
    assert_true(places.differ[1]);
    double sum = 0.0;
    for (size_t i = 0; i < 100; i++) {
        sum += 2.0 * a[i] * a[i] + (i == 50 ? a[i] : 0.0);
    }
    assert_true(fabs(places.products[1] - sum) < 1e-9);
    gcmp_arena_free(&arena);
}

static void test_places__scalars_and_zeros_are_safe(void **state) {
    (void)state;
    struct gradcmp_error error = {0};
    const double zero = 0.0, one = 1.0;
    arena = (struct gcmp_arena)GCMP_ARENA_INIT;
    assert_int_equal(gcmp_places_make(&places, 0, NULL, 1, &arena, &error), GRADCMP_OK);
    gcmp_places_add(&places, 1, 0, &zero, &one, 1);
    assert_int_equal(heat().rows, 0);
    gcmp_places_add(&places, 1, 0, &one, &zero, 1);
    assert_int_equal(heat().rows, 1);
    const uint64_t none[] = {0, 4};
    assert_int_equal(gcmp_places_make(&places, 2, none, 1, &arena, &error), GRADCMP_OK);
    assert_int_equal(heat().rows, 0);
    gcmp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places__one_wrong_element_heats_its_cell_alone),
        cmocka_unit_test(test_places__mean_square_of_the_cells_is_rel),
        cmocka_unit_test(test_places__runs_of_any_length_give_the_same_bits),
        cmocka_unit_test(test_places__boxes_see_their_own_side_and_elements),
        cmocka_unit_test(test_places__copies_are_multiplied),
        cmocka_unit_test(test_places__scalars_and_zeros_are_safe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
