/* JSON is loaded while one allocation after another fails, jansson's own among them. */
#include "base/json_load.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

/* Escapes and numbers of which a lost character would make others; enough values for tables and
 * buffers to grow. */
static const char text[] = "{\"a\\\"b\\\\c\\u00e9\": [1, 123456789012, -0.5e3, true, null, "
                           "\"\\ud83d\\ude00 and a longer text "
                           "that does not fit into the first sixteen bytes\"], \"shape\": [4096, "
                           "1024], \"k1\": {\"k2\": {}},"
                           " \"k3\": 3, \"k4\": 4, \"k5\": 5, \"k6\": 6, \"k7\": 7, \"k8\": 8, "
                           "\"k9\": 9, \"k10\": 1234567}";

/* Stands where a host's allocator would, below the one under test. */
static long calls_left = -1, blocks_held;

static void *host_malloc(size_t bytes) {
    if (calls_left >= 0 && calls_left-- == 0) {
        return NULL;
    }
    void *block = malloc(bytes);
    blocks_held += block != NULL;
    return block;
}

static void host_free(void *block) {
    blocks_held -= block != NULL;
    free(block);
}

static int use_host(void **state) {
    (void)state;
    json_set_alloc_funcs(host_malloc, host_free);
    return 0;
}

static void test_load__ends_at_each_allocation_that_fails(void **state) {
    (void)state;
    json_error_t fault;
    json_t *whole = gcmp_json_load(text, sizeof text - 1, JSON_REJECT_DUPLICATES, &fault);
    assert_non_null(whole);
    long before = blocks_held, failures = 0;
    for (bool succeeded = false; !succeeded; failures++) {
        calls_left = failures;
        json_t *value = gcmp_json_load(text, sizeof text - 1, JSON_REJECT_DUPLICATES, &fault);
        succeeded = calls_left >= 0;
        calls_left = -1;
        if (succeeded) {
            assert_true(json_equal(value, whole));
            json_decref(value);
        } else {
            assert_null(value);
            assert_true(gcmp_json_lacked_memory(&fault));
        }
        assert_int_equal(blocks_held, before);
    }
    assert_true(failures > 50);
    json_decref(whole);
    assert_int_equal(blocks_held, 0);
}

/* A text that is wrong is no lack of memory, and what it held is freed. */
static void test_load__a_wrong_text_is_told_from_a_lack(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "", "{", "{\"a\": 1, \"a\": 2}", "[1, 2", "{\"a\\q\": 1}", "[1e999]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_error_t fault;
        assert_null(gcmp_json_load(wrong[i], strlen(wrong[i]), JSON_REJECT_DUPLICATES, &fault));
        assert_false(gcmp_json_lacked_memory(&fault));
        assert_int_equal(blocks_held, 0);
    }
}

/* A long array, whole but for its end or with its key given again: its blocks are freed from the
 * oldest on. A search for each of them among all would take longer than a test may. */
static void test_load__frees_a_long_broken_text(void **state) {
    (void)state;
    enum { NUMBERS = 2000000, FEW = 100000 };
    static char longer[2 * NUMBERS + 32] = "{\"a\": [0";
    size_t count = strlen(longer);
    for (size_t i = 1; i < NUMBERS; i++) {
        memcpy(longer + count, ",1", 2);
        count += 2;
    }
    json_error_t fault;
    assert_null(gcmp_json_load(longer, count, 0, &fault));
    assert_false(gcmp_json_lacked_memory(&fault));
    assert_int_equal(blocks_held, 0);
    memcpy(longer + count, "],\"a\": 1}", 9);
    assert_null(gcmp_json_load(longer, count + 9, JSON_REJECT_DUPLICATES, &fault));
    assert_false(gcmp_json_lacked_memory(&fault));
    assert_int_equal(blocks_held, 0);
    calls_left = FEW;
    assert_null(gcmp_json_load(longer, count, 0, &fault));
    calls_left = -1;
    assert_true(gcmp_json_lacked_memory(&fault));
    assert_int_equal(blocks_held, 0);
}

/* Values of the host's own, older than any load, are freed by what gave them. */
static void test_load__leaves_the_values_of_the_host_alone(void **state) {
    (void)state;
    json_error_t fault;
    json_t *own = json_pack("{s:[i,i]}", "host", 1, 2);
    json_t *value = gcmp_json_load("[1]", 3, 0, &fault);
    json_array_append(own, value);
    json_decref(own);
    json_decref(value);
    assert_int_equal(blocks_held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load__leaves_the_values_of_the_host_alone),
        cmocka_unit_test(test_load__ends_at_each_allocation_that_fails),
        cmocka_unit_test(test_load__a_wrong_text_is_told_from_a_lack),
        cmocka_unit_test(test_load__frees_a_long_broken_text),
    };
    return cmocka_run_group_tests(tests, use_host, NULL);
}
