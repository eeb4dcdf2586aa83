#include "engine/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SOURCES = 1000 };

/* Ranges of a file that is not read here, each told by its offset. */
static struct gcmp_records *make_records(struct gradcmp_catalogue *catalogue) {
    static struct gradcmp_source sources[SOURCES];
    for (size_t i = 0; i < SOURCES; i++) {
        sources[i] = (struct gradcmp_source){.offset_bytes = 10 * i, .length_bytes = 10};
    }
    *catalogue = (struct gradcmp_catalogue){.sources = sources, .source_count = SOURCES};
    struct gcmp_records *records = gcmp_records_make(catalogue, 0, 0);
    assert_non_null(records);
    return records;
}

static void test_records__each_source_has_its_own(void **state) {
    (void)state;
    struct gradcmp_catalogue catalogue;
    struct gcmp_records *records = make_records(&catalogue);
    struct gcmp_record *held[SOURCES], *ended;
    for (uint32_t i = 0; i < SOURCES; i++) {
        assert_true(gcmp_records_announce(records, i, i));
        assert_true(gcmp_records_announce(records, i, 2 * i));
    }
    for (uint32_t i = 0; i < SOURCES; i++) {
        assert_int_equal(gcmp_records_hold(records, i, &held[i], NULL), GRADCMP_OK);
        assert_int_equal(held[i]->offset_bytes, 10 * i);
    }
    for (uint32_t i = SOURCES; i-- > 0;) {
        size_t last_job;
        gcmp_record_release(held[i]);
        assert_false(gcmp_records_end_use(records, i, &ended, &last_job));
        assert_true(gcmp_records_end_use(records, i, &ended, &last_job));
        assert_ptr_equal(ended, held[i]);
        assert_int_equal(last_job, 2 * i);
        gcmp_record_free(ended);
    }
    gcmp_records_free(records);
}

/* Most sources of a large catalogue are not named by a run. */
static void test_records__sources_that_are_not_named_need_nothing(void **state) {
    (void)state;
    static const uint32_t named[] = {0, 255, 256, SOURCES - 1};
    struct gradcmp_catalogue catalogue;
    struct gcmp_records *records = make_records(&catalogue);
    struct gcmp_record *record;
    size_t last_job;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        assert_true(gcmp_records_announce(records, named[i], i));
    }
    assert_true(gcmp_records_end_use(records, 255, &record, &last_job));
    assert_null(record); /* nobody held it */
    assert_int_equal(last_job, 1);
    assert_int_equal(gcmp_records_hold(records, 700, &record, NULL), GRADCMP_OK); /* unannounced */
    assert_int_equal(record->offset_bytes, 7000);
    gcmp_record_release(record);
    gcmp_records_free(records);
}

static void test_records__sources_that_are_none_are_refused(void **state) {
    (void)state;
    struct gradcmp_catalogue catalogue;
    struct gcmp_records *records = make_records(&catalogue);
    struct gcmp_record *record;
    struct gradcmp_error error;
    size_t last_job;
    assert_true(gcmp_records_announce(records, SOURCES, 0));
    assert_int_equal(gcmp_records_hold(records, SOURCES, &record, &error), GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message, "slab names source 1000 of 1000");
    assert_false(gcmp_records_end_use(records, SOURCES, &record, &last_job));
    gcmp_records_free(records);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records__each_source_has_its_own),
        cmocka_unit_test(test_records__sources_that_are_not_named_need_nothing),
        cmocka_unit_test(test_records__sources_that_are_none_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
