/* Boxes against plain enumeration. */
#include "engine/engine_tools.h"

#include "engine/box.h"

enum { MOST_ELEMS = 4096 };

/* A random box, and by enumeration the parameter's index and the record's element of each of its
 * elements. */
struct case_box {
    struct gradcmp_parameter parameter;
    struct gradcmp_slab slab;
    uint64_t shape[4], start[4], extent[4];
    int64_t stride[4];
    struct gcmp_box box;
    uint64_t count, places[MOST_ELEMS];
    int64_t elements[MOST_ELEMS];
};

static void enumerate(struct case_box *at) {
    unsigned ndim = at->parameter.ndim;
    at->count = 0;
    for (uint64_t i = 0; i < at->parameter.elem_count; i++) {
        uint64_t left = i;
        int64_t element = at->slab.offset_elems;
        bool inside = true;
        for (unsigned d = ndim; d-- > 0;) {
            uint64_t index = left % at->shape[d];
            left /= at->shape[d];
            inside = inside && index >= at->start[d] && index < at->start[d] + at->extent[d];
            element += (int64_t)(index - at->start[d]) * at->stride[d];
        }
        if (inside) {
            at->places[at->count] = i;
            at->elements[at->count++] = element;
        }
    }
}

static void random_case(struct case_box *at, uint64_t *random) {
    memset(at, 0, sizeof *at);
    unsigned ndim = (unsigned)(next_random(random) % 5);
    at->parameter.ndim = (uint8_t)ndim;
    at->parameter.dtype = GRADCMP_DTYPE_FLOAT32;
    at->parameter.shape = at->shape;
    at->parameter.elem_count = 1;
    for (unsigned d = 0; d < ndim; d++) {
        at->shape[d] = 1 + next_random(random) % 7;
        at->extent[d] = 1 + next_random(random) % at->shape[d];
        at->start[d] = next_random(random) % (at->shape[d] - at->extent[d] + 1);
        at->stride[d] = (int64_t)(next_random(random) % 41) - 20;
        at->parameter.elem_count *= at->shape[d];
    }
    if (next_random(random) % 2 == 0) { /* often as it is in files */
        int64_t row = 1;
        for (unsigned d = ndim; d-- > 0;) {
            at->stride[d] = row;
            row *= (int64_t)at->extent[d];
        }
    }
    at->slab.start = at->start;
    at->slab.extent = at->extent;
    at->slab.stride = at->stride;
    at->slab.offset_elems = 600;
    enumerate(at);
}

/* Check rank at every index, and that cuts of every run give its elements in order. */
static void check_case(struct case_box *at, uint64_t *random) {
    struct gcmp_record record = {.length_bytes = 4 * 4000};
    assert_true(gcmp_box_place(&at->parameter, &at->slab, &at->box));
    assert_true(gcmp_box_bind(&at->parameter, &at->slab, &record, &at->box));
    assert_int_equal(at->box.elems, at->count);
    assert_int_equal(at->box.first, at->places[0]);
    uint64_t rank = 0;
    for (uint64_t i = 0; i <= at->parameter.elem_count; i++) {
        assert_int_equal(gcmp_box_rank(&at->box, i), rank);
        rank += rank < at->count && at->places[rank] == i;
    }
    uint64_t first = next_random(random) % at->count;
    uint64_t end = first + 1 + next_random(random) % (at->count - first);
    unsigned cuts = 0;
    while (first < end) {
        struct gcmp_part part;
        uint64_t elems = gcmp_box_cut(&at->box, first, end, &part);
        assert_true(elems > 0 && elems <= end - first);
        assert_int_equal(part.first, at->places[first]);
        assert_int_equal(part.origin, at->elements[first]);
        uint64_t last = part.first;
        int64_t last_element = part.origin;
        for (unsigned d = 0; d < at->box.ndim; d++) {
            last += (part.extent[d] - 1) * at->box.step[d];
            last_element += (int64_t)(part.extent[d] - 1) * at->box.stride[d];
        }
        assert_int_equal(last, at->places[first + elems - 1]);
        assert_int_equal(last_element, at->elements[first + elems - 1]);
        first += elems;
        cuts++;
    }
    assert_true(cuts <= 2 * at->box.ndim + 1);
}

static void test_box__rank_and_cuts_agree_with_enumeration(void **state) {
    (void)state;
    uint64_t random = 3;
    static struct case_box at;
    for (int i = 0; i < 3000; i++) {
        random_case(&at, &random);
        check_case(&at, &random);
    }
}

static void test_box__contiguous_means_one_run(void **state) {
    (void)state;
    uint64_t random = 4;
    static struct case_box at;
    unsigned seen = 0;
    for (int i = 0; i < 1000; i++) {
        random_case(&at, &random);
        check_case(&at, &random);
        bool one_run = true;
        for (uint64_t r = 1; r < at.count; r++) {
            one_run = one_run && at.elements[r] == at.elements[0] + (int64_t)r;
        }
        assert_int_equal(at.box.contiguous, one_run);
        seen += one_run;
    }
    assert_true(seen > 100);
}

/* A random item with its own strides, and a slab over it. */
static void random_item(struct case_box *at, struct gcmp_record *record, uint64_t *random) {
    record->ndim = 1 + (unsigned)(next_random(random) % 3);
    record->offset_elems = 300;
    record->length_bytes = 4 * 4000;
    uint64_t elems = 1;
    for (unsigned k = 0; k < record->ndim; k++) {
        record->shape[k] = 1 + next_random(random) % 6;
        record->stride[k] = (int64_t)(next_random(random) % 61) - 20;
        elems *= record->shape[k];
    }
    random_case(at, random);
    int64_t reach = 0;
    for (unsigned d = 0; d < at->parameter.ndim; d++) {
        at->stride[d] = (int64_t)(next_random(random) % 7);
        reach += (int64_t)(at->extent[d] - 1) * at->stride[d];
    }
    at->slab.offset_elems = (int64_t)(next_random(random) % elems);
    while (at->slab.offset_elems + reach >= (int64_t)elems) { /* shrink it until it fits */
        unsigned d = (unsigned)(next_random(random) % at->parameter.ndim);
        reach -= (int64_t)(at->extent[d] - 1) * at->stride[d];
        at->stride[d] = 0;
        at->slab.offset_elems = reach == 0 ? 0 : at->slab.offset_elems;
    }
    enumerate(at);
}

static void test_box__items_with_strides_are_composed_or_taken_apart(void **state) {
    (void)state;
    uint64_t random = 6, shape[3];
    int64_t stride[3];
    static struct case_box at;
    unsigned composed = 0, apart = 0;
    for (int i = 0; i < 5000; i++) {
        struct gcmp_record record = {.shape = shape, .stride = stride};
        random_item(&at, &record, &random);
        assert_true(gcmp_box_place(&at.parameter, &at.slab, &at.box));
        assert_true(gcmp_box_bind(&at.parameter, &at.slab, &record, &at.box));
        (*(at.box.indirect ? &apart : &composed))++;
        for (uint64_t r = 0; r < at.count; r++) {
            struct gcmp_part part;
            int64_t expected, found;
            gcmp_box_cut(&at.box, r, r + 1, &part);
            assert_true(gcmp_record_element(&record, (uint64_t)at.elements[r], &expected));
            found = part.origin;
            if (at.box.indirect) {
                assert_true(gcmp_record_element(&record, (uint64_t)part.origin, &found));
            }
            assert_int_equal(found, expected);
        }
    }
    assert_true(composed > 1000 && apart > 300);
}

static void test_box__axes_that_are_walked_as_one_are_joined(void **state) {
    (void)state;
    static struct case_box at = {.parameter = {.ndim = 4, .dtype = GRADCMP_DTYPE_FLOAT32},
                                 .shape = {3, 1, 4, 5},
                                 .extent = {2, 1, 4, 5},
                                 .start = {1, 0, 0, 0},
                                 .stride = {20, 7, 5, 1}};
    struct gcmp_record record = {.length_bytes = 4 * 40};
    at.parameter.shape = at.shape;
    at.slab.start = at.start;
    at.slab.extent = at.extent;
    at.slab.stride = at.stride;
    assert_true(gcmp_box_place(&at.parameter, &at.slab, &at.box));
    assert_true(gcmp_box_bind(&at.parameter, &at.slab, &record, &at.box));
    assert_int_equal(at.box.ndim, 1);
    assert_int_equal(at.box.extent[0], 40);
    assert_true(at.box.contiguous);
    record.length_bytes--; /* the last element is cut */
    assert_true(gcmp_box_place(&at.parameter, &at.slab, &at.box));
    assert_false(gcmp_box_bind(&at.parameter, &at.slab, &record, &at.box));
}

static bool binds(const struct gradcmp_slab *slab, uint64_t shape, uint64_t length_bytes) {
    struct gradcmp_parameter parameter = {
        .ndim = 1, .dtype = GRADCMP_DTYPE_FLOAT64, .shape = &shape};
    struct gcmp_record record = {.length_bytes = length_bytes};
    struct gcmp_box box;
    return gcmp_box_place(&parameter, slab, &box) && gcmp_box_bind(&parameter, slab, &record, &box);
}

static void test_box__reach_outside_or_past_arithmetic_is_refused(void **state) {
    (void)state;
    uint64_t start = 0, extent = 4;
    int64_t stride = 2;
    struct gradcmp_slab slab = {.start = &start, .extent = &extent, .stride = &stride};
    assert_true(binds(&slab, 4, 8 * 7));
    assert_false(binds(&slab, 4, 8 * 7 - 1));
    assert_false(binds(&slab, 3, 8 * 7)); /* outside of the parameter */
    stride = -1;
    assert_false(binds(&slab, 4, 8 * 7));
    slab.offset_elems = 3;
    assert_true(binds(&slab, 4, 8 * 4));
    slab.offset_elems = INT64_MAX;
    assert_false(binds(&slab, 4, UINT64_MAX));
    slab.offset_elems = INT64_MIN;
    assert_false(binds(&slab, 4, UINT64_MAX));
    slab.offset_elems = 0;
    stride = INT64_MAX;
    assert_false(binds(&slab, 4, UINT64_MAX));
    start = UINT64_MAX;
    assert_false(binds(&slab, 4, UINT64_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_box__rank_and_cuts_agree_with_enumeration),
        cmocka_unit_test(test_box__contiguous_means_one_run),
        cmocka_unit_test(test_box__items_with_strides_are_composed_or_taken_apart),
        cmocka_unit_test(test_box__axes_that_are_walked_as_one_are_joined),
        cmocka_unit_test(test_box__reach_outside_or_past_arithmetic_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
