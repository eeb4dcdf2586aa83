/* Sides that cannot be read: which fault is reported, and that nothing else suffers. */
#include "engine/engine_tools.h"

#include "engine/faults.h"

/* A baseline and two candidates of the same few tensors. */
enum { OWNERS = 3, JOBS = 4 };

struct trio {
    struct world *worlds[OWNERS];
    struct tensor tensors[OWNERS][JOBS];
    struct gcmp_side sides[JOBS][OWNERS - 1];
    struct gradcmp_tally found[JOBS][OWNERS - 1];
    struct gcmp_job jobs[JOBS];
    struct gradcmp_error errors[OWNERS], error;
};

/* Tensor j has 30,000 (j + 1) float32; each is cut by columns, so that pieces are interleaved. */
static struct trio *trio_make(char *temp, enum storing way) {
    struct trio *trio = calloc(1, sizeof *trio);
    char name[] = "c0";
    for (size_t c = 0; c < OWNERS; c++) {
        name[1] = (char)('0' + c);
        trio->worlds[c] = world_make(temp, name, c);
        for (size_t j = 0; j < JOBS; j++) {
            uint64_t shape[2] = {100 * (j + 1), 300}, parts[2] = {1, 3};
            trio->tensors[c][j] = tensor_make(GRADCMP_DTYPE_FLOAT32, 2, shape);
            fill_elems(trio->tensors[c][j].elems, GRADCMP_DTYPE_FLOAT32, shape[0] * shape[1],
                       FILL_GRADIENTS, c * 100 + j);
            store_grid(trio->worlds[c], &trio->tensors[c][j], parts, way, 0);
        }
    }
    for (size_t j = 0; j < JOBS; j++) {
        for (size_t c = 1; c < OWNERS; c++) {
            trio->sides[j][c - 1] = side_of(trio->worlds[c], &trio->tensors[c][j], (uint32_t)c);
        }
        trio->jobs[j] = (struct gcmp_job){.a = side_of(trio->worlds[0], &trio->tensors[0][j], 0),
                                          .b = trio->sides[j],
                                          .b_count = OWNERS - 1,
                                          .elems = trio->tensors[0][j].parameter.elem_count,
                                          .tallies = trio->found[j]};
    }
    return trio;
}

static void trio_open(struct trio *trio) {
    for (size_t c = 0; c < OWNERS; c++) {
        world_open(trio->worlds[c]);
    }
}

static void trio_free(struct trio *trio) {
    for (size_t c = 0; c < OWNERS; c++) {
        for (size_t j = 0; j < JOBS; j++) {
            free(trio->tensors[c][j].elems);
        }
        world_free(trio->worlds[c]);
    }
    free(trio);
}

static enum gradcmp_status trio_run(struct trio *trio, unsigned threads, uint64_t buffer_bytes,
                                    int verify) {
    struct gcmp_engine_options options = {
        .threads = threads, .buffer_bytes = buffer_bytes, .verify = verify};
    memset(&trio->error, 0, sizeof trio->error);
    memset(trio->errors, 0xee, sizeof trio->errors);
    return gcmp_engine_run(trio->jobs, JOBS, &options, trio->errors, OWNERS, &trio->error);
}

static void assert_candidate_is_right(struct trio *trio, size_t c) {
    for (size_t j = 0; j < JOBS; j++) {
        struct gradcmp_tally expected =
            span_of(&trio->tensors[0][j], 0, &trio->tensors[c][j], 0, trio->jobs[j].elems);
        assert_same_tally(&trio->found[j][c - 1], &expected);
    }
}

/* The source of a slab of a tensor. */
static struct gradcmp_source *source_of(struct trio *trio, size_t c, size_t j, size_t slab) {
    return &trio->worlds[c]->sources[trio->tensors[c][j].parameter.slabs[slab].source];
}

static void set_checksums(struct trio *trio) {
    for (size_t c = 0; c < OWNERS; c++) {
        world_set_checksums(trio->worlds[c]);
    }
}

static void flip_bit(struct trio *trio, size_t c, const struct gradcmp_source *source,
                     uint64_t at) {
    trio->worlds[c]->bytes[source->offset_bytes + at] ^= 0x10;
}

static void test_faults__a_candidate_that_ends_early_fails_alone(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    struct world *world = trio->worlds[1];
    world->length_bytes = source_of(trio, 1, 2, 1)->offset_bytes + 1000;
    trio_open(trio);
    for (unsigned threads = 1; threads <= 4; threads++) {
        assert_int_equal(trio_run(trio, threads, threads == 3 ? 1 : 0, 0), GRADCMP_OK);
        assert_int_equal(trio->errors[0].code, GRADCMP_OK);
        assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
        assert_int_equal(trio->errors[1].offset_bytes, world->length_bytes);
        assert_text_contains(trio->errors[1].path, "/c1");
        assert_int_equal(trio->errors[2].code, GRADCMP_OK);
        assert_candidate_is_right(trio, 2);
    }
    trio_free(trio);
}

static void test_faults__a_baseline_that_ends_early_fails_the_call(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    trio->worlds[0]->length_bytes = source_of(trio, 0, 1, 0)->offset_bytes + 8;
    trio_open(trio);
    for (unsigned threads = 1; threads <= 4; threads++) {
        assert_int_equal(trio_run(trio, threads, 0, 0), GRADCMP_ERROR_CORRUPT);
        assert_text_contains(trio->error.path, "/c0");
        assert_int_equal(trio->error.offset_bytes, trio->worlds[0]->length_bytes);
        assert_int_equal(trio->errors[0].code, GRADCMP_ERROR_CORRUPT);
    }
    trio_free(trio);
}

/* Several faults of one side in several jobs: the first one in the order of jobs and elements, on
 * every number of threads and every size of units. */
static void test_faults__the_first_is_reported_however_the_work_is_cut(void **state) {
    struct trio *trio = trio_make(*state, STORE_ITEM);
    trio_open(trio);
    struct world *world = trio->worlds[2];
    /* The last slab of tensor 1 fails from its 60th row on, the first one from its 170th; the first
     * one of tensors 2 and 3, and every item of candidate 1's last tensor, at once. */
    const struct gradcmp_slab *slabs = trio->tensors[2][1].parameter.slabs;
    world->extents[slabs[2].source].offset_bytes = world->length_bytes - 60 * 100 * 4;
    world->extents[slabs[0].source].offset_bytes = world->length_bytes - 170 * 100 * 4;
    for (size_t j = 2; j < JOBS; j++) {
        world->resolve_fails[trio->tensors[2][j].parameter.slabs[0].source] = GRADCMP_ERROR_LIMIT;
    }
    for (size_t slab = 0; slab < 3; slab++) {
        trio->worlds[1]->resolve_fails[trio->tensors[1][3].parameter.slabs[slab].source] =
            GRADCMP_ERROR_UNSUPPORTED;
    }
    uint32_t first_item = trio->tensors[1][3].parameter.slabs[0].source;
    struct gradcmp_error first[OWNERS];
    for (unsigned round = 0; round < 12; round++) {
        uint64_t buffers = round % 3 == 0 ? 0 : round % 3 == 1 ? 1 : 2500000;
        assert_int_equal(trio_run(trio, 1 + round / 3, buffers, 0), GRADCMP_OK);
        assert_int_equal(trio->errors[2].code, GRADCMP_ERROR_CORRUPT);
        assert_int_equal(trio->errors[2].offset_bytes, world->length_bytes);
        assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_UNSUPPORTED);
        assert_int_equal(trio->errors[1].offset_bytes,
                         trio->worlds[1]->sources[first_item].offset_bytes);
        if (round == 0) {
            memcpy(first, trio->errors, sizeof first);
        }
        for (size_t c = 0; c < OWNERS; c++) {
            assert_string_equal(trio->errors[c].message, first[c].message);
        }
    }
    trio_free(trio);
}

static void test_faults__an_item_is_resolved_once(void **state) {
    struct trio *trio = trio_make(*state, STORE_ITEM);
    trio_open(trio);
    assert_int_equal(trio_run(trio, 4, 1, 0), GRADCMP_OK);
    for (size_t i = 0; i < trio->worlds[0]->catalogue.source_count; i++) {
        assert_int_equal(trio->worlds[0]->resolve_calls[i], 1);
    }
    trio_free(trio);
}

static void test_faults__out_of_memory_in_resolve_fails_the_call(void **state) {
    struct trio *trio = trio_make(*state, STORE_ITEM);
    trio_open(trio);
    trio->worlds[1]->resolve_fails[3] = GRADCMP_ERROR_MEMORY;
    for (unsigned threads = 1; threads <= 3; threads++) {
        assert_int_equal(trio_run(trio, threads, 0, 0), GRADCMP_ERROR_MEMORY);
        assert_int_equal(trio->error.code, GRADCMP_ERROR_MEMORY);
    }
    trio_free(trio);
}

static void test_faults__a_hole_is_found(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    struct gradcmp_parameter *parameter = &trio->tensors[1][1].parameter;
    parameter->slab_count--;
    trio_open(trio);
    assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(trio->errors[1].message, "\"weight\"");
    assert_candidate_is_right(trio, 2);
    trio_free(trio);
}

static void test_faults__a_slab_that_leaves_its_record_is_found(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    trio_open(trio);
    source_of(trio, 1, 0, 1)->length_bytes -= 4;
    assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
    assert_int_equal(trio->errors[1].offset_bytes, source_of(trio, 1, 0, 1)->offset_bytes);
    assert_text_contains(trio->errors[1].message, "outside of its record");
    trio_free(trio);
}

static void test_faults__a_slab_outside_of_its_parameter_is_found(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    trio_open(trio);
    uint64_t *start = (uint64_t *)(void *)trio->tensors[1][2].parameter.slabs[1].start;
    start[0] = UINT64_MAX - 3;
    assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(trio->errors[1].message, "outside of \"weight\"");
    trio_free(trio);
}

static void test_faults__an_item_of_another_type_is_found(void **state) {
    struct trio *trio = trio_make(*state, STORE_ITEM);
    trio_open(trio);
    trio->worlds[1]->extents[0].dtype = GRADCMP_DTYPE_INT32;
    assert_int_equal(trio_run(trio, 1, 0, 0), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
    assert_string_equal(trio->errors[1].message, "elements: expected float32, found int32");
    trio_free(trio);
}

static void check_extent_is_refused(char *temp, void (*spoil)(struct gradcmp_extent *)) {
    struct trio *trio = trio_make(temp, STORE_ITEM);
    trio_open(trio);
    spoil(&trio->worlds[1]->extents[1]);
    assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(trio->errors[1].path, "/c1");
    assert_candidate_is_right(trio, 2);
    trio_free(trio);
}

static void long_stride(struct gradcmp_extent *extent) {
    extent->stride[0] = INT64_MAX;
}
static void negative_stride(struct gradcmp_extent *extent) {
    extent->stride[1] = -1;
}
static void huge_shape(struct gradcmp_extent *extent) {
    extent->shape[0] = (uint64_t)1 << 40;
    extent->shape[1] = (uint64_t)1 << 40;
}
static void short_record(struct gradcmp_extent *extent) {
    extent->length_bytes -= 1;
}
static void wrapping_record(struct gradcmp_extent *extent) {
    extent->offset_bytes = UINT64_MAX - 8;
}
static void empty_item(struct gradcmp_extent *extent) {
    extent->shape[1] = 0;
}
static void no_type(struct gradcmp_extent *extent) {
    extent->dtype = GRADCMP_DTYPE_NONE;
}
static void many_axes(struct gradcmp_extent *extent) {
    extent->ndim = GRADCMP_MAX_NDIM + 1;
}

static void test_faults__extents_that_contradict_themselves_are_refused(void **state) {
    check_extent_is_refused(*state, long_stride);
    check_extent_is_refused(*state, negative_stride);
    check_extent_is_refused(*state, huge_shape);
    check_extent_is_refused(*state, short_record);
    check_extent_is_refused(*state, wrapping_record);
    check_extent_is_refused(*state, empty_item);
    check_extent_is_refused(*state, no_type);
    check_extent_is_refused(*state, many_axes);
}

static void test_faults__a_job_outside_of_its_parameter_is_a_usage_error(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    trio_open(trio);
    trio->sides[1][0].first_elem = 1;
    assert_int_equal(trio_run(trio, 1, 0, 0), GRADCMP_ERROR_USAGE);
    trio->sides[1][0].first_elem = UINT64_MAX;
    assert_int_equal(trio_run(trio, 1, 0, 0), GRADCMP_ERROR_USAGE);
    trio->sides[1][0].first_elem = 0;
    trio->sides[1][0].owner = OWNERS;
    assert_int_equal(trio_run(trio, 1, 0, 0), GRADCMP_ERROR_USAGE);
    trio_free(trio);
}

/* --- checksums --- */

static void check_flipped_bit(char *temp, enum storing way) {
    struct trio *trio = trio_make(temp, way);
    set_checksums(trio);
    const struct gradcmp_source *source = source_of(trio, 1, 3, 1);
    flip_bit(trio, 1, source, source->length_bytes / 2);
    trio_open(trio);
    for (unsigned threads = 1; threads <= 3; threads++) {
        assert_int_equal(trio_run(trio, threads, threads == 2 ? 1 : 0, 0), GRADCMP_OK);
        assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
        assert_int_equal(trio->errors[1].offset_bytes, source->offset_bytes);
        assert_text_contains(trio->errors[1].path, "/c1");
        assert_text_contains(trio->errors[1].message, "checksum: expected ");
        assert_int_equal(trio->errors[0].code, GRADCMP_OK);
        assert_int_equal(trio->errors[2].code, GRADCMP_OK);
        assert_candidate_is_right(trio, 2);
        assert_int_equal(trio_run(trio, threads, 0, -1), GRADCMP_OK);
        assert_int_equal(trio->errors[1].code, GRADCMP_OK);
    }
    trio_free(trio);
}

static void test_checksum__a_flipped_bit_is_found(void **state) {
    check_flipped_bit(*state, STORE_PLAIN);    /* while it is read */
    check_flipped_bit(*state, STORE_PERMUTED); /* by another reading */
    check_flipped_bit(*state, STORE_BIG);
    check_flipped_bit(*state, STORE_ITEM);
    check_flipped_bit(*state, STORE_ITEM_VIEW);
}

static void test_checksum__right_ones_are_accepted(void **state) {
    for (int way = 0; way < STORE_DECODED; way++) {
        struct trio *trio = trio_make(*state, (enum storing)way);
        set_checksums(trio);
        trio_open(trio);
        for (unsigned threads = 1; threads <= 3; threads++) {
            assert_int_equal(trio_run(trio, threads, 1, 1), GRADCMP_OK);
            for (size_t c = 1; c < OWNERS; c++) {
                assert_int_equal(trio->errors[c].code, GRADCMP_OK);
                assert_candidate_is_right(trio, c);
            }
        }
        trio_free(trio);
    }
}

/* A record that is needed in part is checked only where that is asked for. */
static void test_checksum__parts_are_checked_on_request(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    set_checksums(trio);
    const struct gradcmp_source *source = source_of(trio, 1, 0, 2);
    flip_bit(trio, 1, source, source->length_bytes - 1);
    trio_open(trio);
    trio->jobs[0].elems -= 300; /* not the last row */
    assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_OK);
    assert_candidate_is_right(trio, 1);
    assert_int_equal(trio_run(trio, 2, 0, 1), GRADCMP_OK);
    assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
    assert_int_equal(trio->errors[1].offset_bytes, source->offset_bytes);
    trio_free(trio);
}

/* A record read by two jobs, half by each, is whole; one read twice is not wrong. */
static void test_checksum__records_shared_by_jobs(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    set_checksums(trio);
    trio_open(trio);
    struct gcmp_job *jobs = trio->jobs;
    jobs[1] = jobs[0];
    jobs[1].tallies = trio->found[1];
    struct gcmp_side halves[OWNERS - 1] = {trio->sides[0][0], trio->sides[0][1]};
    jobs[1].b = halves;
    jobs[0].elems = 20000;
    jobs[1].elems -= 20000;
    jobs[1].a.first_elem = halves[0].first_elem = halves[1].first_elem = 20000;
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
        assert_int_equal(trio->errors[1].code, GRADCMP_OK);
        source_of(trio, 1, 0, 0)->crc32 ^= 1;
        assert_int_equal(trio_run(trio, 2, 0, 0), GRADCMP_OK);
        assert_int_equal(trio->errors[1].code, GRADCMP_ERROR_CORRUPT);
        source_of(trio, 1, 0, 0)->crc32 ^= 1;
        jobs[0].elems = 30000;
    }
    trio_free(trio);
}

/* A checksum that fails does not hide an earlier fault, and does not replace it. */
static void test_checksum__comes_after_faults_of_reading(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    set_checksums(trio);
    flip_bit(trio, 1, source_of(trio, 1, 1, 0), 5);
    flip_bit(trio, 1, source_of(trio, 1, 2, 0), 5);
    trio_open(trio);
    source_of(trio, 1, 2, 2)->offset_bytes = trio->worlds[1]->length_bytes - 4;
    for (unsigned threads = 1; threads <= 4; threads++) {
        assert_int_equal(trio_run(trio, threads, 1, 0), GRADCMP_OK);
        assert_int_equal(trio->errors[1].offset_bytes, source_of(trio, 1, 1, 0)->offset_bytes);
        assert_text_contains(trio->errors[1].message, "checksum");
    }
    source_of(trio, 1, 1, 0)->crc32 = 0; /* none stored */
    for (unsigned threads = 1; threads <= 4; threads++) {
        assert_int_equal(trio_run(trio, threads, 1, 0), GRADCMP_OK);
        assert_text_contains(trio->errors[1].message, "truncated");
    }
    trio_free(trio);
}

/* What a job shares with a later one is judged as of the later one, whichever of the two ends last.
 */
static void test_checksum__of_a_shared_record_counts_from_its_last_job(void **state) {
    struct trio *trio = trio_make(*state, STORE_PLAIN);
    set_checksums(trio);
    flip_bit(trio, 1, source_of(trio, 1, 0, 0), 5);
    trio_open(trio);
    for (size_t slab = 0; slab < 3; slab++) { /* tensor 1: no checksums, and cannot be read */
        source_of(trio, 1, 1, slab)->offset_bytes = trio->worlds[1]->length_bytes - 4;
        source_of(trio, 1, 1, slab)->crc32 = 0;
    }
    trio->jobs[2] = trio->jobs[0];
    trio->jobs[2].tallies = trio->found[2];
    for (unsigned threads = 1; threads <= 4; threads++) {
        assert_int_equal(trio_run(trio, threads, 1, 1), GRADCMP_OK);
        assert_text_contains(trio->errors[1].message, "truncated");
    }
    trio_free(trio);
}

/* --- the order of faults --- */

static void test_first_fault__is_by_job_then_by_element(void **state) {
    (void)state;
    static const struct gcmp_place places[] = {{1, 0}, {1, 5}, {2, 3}, {SIZE_MAX, UINT64_MAX}};
    enum { COUNT = sizeof places / sizeof places[0] };
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < COUNT; j++) {
            struct gcmp_faults faults;
            struct gcmp_fault fault = {.side = i};
            assert_true(gcmp_faults_make(&faults, 2));
            fault.place = places[i];
            gcmp_faults_add(&faults, 1, &fault);
            fault.place = places[j];
            fault.side = j;
            gcmp_faults_add(&faults, 1, &fault);
            size_t first = i < j ? i : j;
            assert_int_equal(faults.by_owner[1].side, first);
            for (size_t k = 0; k < COUNT; k++) {
                assert_int_equal(gcmp_faults_block(&faults, 1, places[k]), k >= first);
                assert_false(gcmp_faults_block(&faults, 0, places[k]));
            }
            gcmp_faults_free(&faults);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_faults__a_candidate_that_ends_early_fails_alone),
        TEMP_TEST(test_faults__a_baseline_that_ends_early_fails_the_call),
        TEMP_TEST(test_faults__the_first_is_reported_however_the_work_is_cut),
        TEMP_TEST(test_faults__an_item_is_resolved_once),
        TEMP_TEST(test_faults__out_of_memory_in_resolve_fails_the_call),
        TEMP_TEST(test_faults__a_hole_is_found),
        TEMP_TEST(test_faults__a_slab_that_leaves_its_record_is_found),
        TEMP_TEST(test_faults__a_slab_outside_of_its_parameter_is_found),
        TEMP_TEST(test_faults__an_item_of_another_type_is_found),
        TEMP_TEST(test_faults__extents_that_contradict_themselves_are_refused),
        TEMP_TEST(test_faults__a_job_outside_of_its_parameter_is_a_usage_error),
        TEMP_TEST(test_checksum__a_flipped_bit_is_found),
        TEMP_TEST(test_checksum__right_ones_are_accepted),
        TEMP_TEST(test_checksum__parts_are_checked_on_request),
        TEMP_TEST(test_checksum__records_shared_by_jobs),
        TEMP_TEST(test_checksum__comes_after_faults_of_reading),
        TEMP_TEST(test_checksum__of_a_shared_record_counts_from_its_last_job),
        cmocka_unit_test(test_first_fault__is_by_job_then_by_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
