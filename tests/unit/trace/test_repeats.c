/* Identities that come twice, in any order of occurrences. */
#include "temp_tools.h"

#include "trace/repeats.h"

static bool add(struct gcmp_repeats *repeats, uint64_t key, int64_t iteration, int64_t occurrence) {
    bool repeated;
    assert_int_equal(gcmp_repeats_add(repeats, key, iteration, occurrence, &repeated, NULL),
                     GRADCMP_OK);
    return repeated;
}

static void test_repeats__each_occurrence_may_come_once(void **state) {
    (void)state;
    struct gcmp_repeats repeats = {.is_started = false};
    static const int64_t order[] = {0, 1, 4, 3, 2, 5, 9};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        assert_false(add(&repeats, 7, 1, order[i]));
        assert_false(add(&repeats, 8, 1, order[i]));
        for (size_t k = 0; k <= i; k++) {
            assert_true(add(&repeats, 7, 1, order[k]));
        }
    }
    assert_false(add(&repeats, 7, 1, 6));
    gcmp_repeats_free(&repeats);
}

static void test_repeats__iterations_are_apart(void **state) {
    (void)state;
    struct gcmp_repeats repeats = {.is_started = false};
    assert_false(add(&repeats, 7, -1, 0));
    assert_false(add(&repeats, 7, 1, 0));
    assert_false(add(&repeats, 7, 2, 0));
    assert_true(add(&repeats, 7, 1, 0)); /* the one before is still known */
    assert_true(add(&repeats, 7, 2, 0));
    assert_false(add(&repeats, 7, 3, 0));
    assert_true(add(&repeats, 7, -1, 0));
    gcmp_repeats_free(&repeats);
}

static void test_repeats__memory_follows_names_not_records(void **state) {
    (void)state;
    struct gcmp_repeats repeats = {.is_started = false};
    for (int64_t i = 0; i < 100000; i++) {
        assert_false(add(&repeats, 1 + (uint64_t)i % 10, 1, i / 10));
    }
    assert_int_equal(repeats.now.next.count, 10);
    assert_int_equal(repeats.now.odd.count, 0);
    gcmp_repeats_free(&repeats);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats__each_occurrence_may_come_once),
        cmocka_unit_test(test_repeats__iterations_are_apart),
        cmocka_unit_test(test_repeats__memory_follows_names_not_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
