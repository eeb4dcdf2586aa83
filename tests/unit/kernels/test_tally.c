/* The tree of blocks. */
#include "kernels/kernel_tools.h"

/* Fold blocks level by level, as the design says it, with all of them in memory. */
static void fold_levels(struct gradcmp_tally *blocks, size_t count) {
    while (count > 1) {
        size_t next = 0;
        for (size_t i = 0; i < count; i += 2) {
            blocks[next] = blocks[i];
            if (i + 1 < count) {
                gcmp_tally_fold(&blocks[next], &blocks[i + 1]);
            }
            next++;
        }
        count = next;
    }
}

static void test_span__folds_blocks_level_by_level(void **state) {
    (void)state;
    enum { MOST_BLOCKS = 23 };
    const enum gradcmp_dtype type = GRADCMP_DTYPE_FLOAT8_E5M2;
    static unsigned char a[MOST_BLOCKS * GRADCMP_BLOCK_ELEMS], b[sizeof a];
    const struct gcmp_kernel *kernel = gcmp_kernel_choose();
    fill_elems(a, type, sizeof a, FILL_SPRINKLED, 1);
    fill_elems(b, type, sizeof b, FILL_SPRINKLED, 2);
    for (size_t count = 1; count <= MOST_BLOCKS; count++) {
        size_t elems = count * GRADCMP_BLOCK_ELEMS - (count % 3) * 5000;
        struct gradcmp_tally blocks[MOST_BLOCKS], found;
        for (size_t i = 0; i < count; i++) {
            size_t first = i * GRADCMP_BLOCK_ELEMS, left = elems - first;
            kernel->tally(a + first, type, b + first, type,
                          left < GRADCMP_BLOCK_ELEMS ? left : GRADCMP_BLOCK_ELEMS, &blocks[i]);
            gcmp_tally_shift(&blocks[i], first);
        }
        fold_levels(blocks, count);
        gcmp_tally_span(kernel, a, type, b, type, elems, &found);
        assert_same_tally(&found, &blocks[0]);
        assert_int_equal(found.elems, elems);
    }
}

static void test_span__empty_is_zeroed(void **state) {
    (void)state;
    struct gradcmp_tally none, found;
    memset(&none, 0, sizeof none);
    memset(&found, 1, sizeof found);
    gcmp_tally_span(gcmp_kernel_choose(), NULL, GRADCMP_DTYPE_FLOAT32, NULL, GRADCMP_DTYPE_FLOAT32,
                    0, &found);
    assert_same_tally(&found, &none);
}

static void test_span__index_of_the_largest_is_the_first_over_all_blocks(void **state) {
    (void)state;
    enum { ELEMS = 3 * GRADCMP_BLOCK_ELEMS };
    static float a[ELEMS], b[ELEMS];
    const size_t places[] = {2 * GRADCMP_BLOCK_ELEMS + 77,
                             GRADCMP_BLOCK_ELEMS + 1025,
                             GRADCMP_BLOCK_ELEMS + 1024,
                             16383,
                             40,
                             9};
    struct gradcmp_tally found;
    for (const struct gcmp_kernel *const *kernel = gcmp_kernels(); *kernel != NULL; kernel++) {
        memset(b, 0, sizeof b);
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            b[places[i]] = i % 2 == 0 ? 2.5f : -2.5f;
            gcmp_tally_span(*kernel, a, GRADCMP_DTYPE_FLOAT32, b, GRADCMP_DTYPE_FLOAT32, ELEMS,
                            &found);
            assert_int_equal(found.max_d_index, places[i]);
        }
    }
}

static void test_shift__no_difference_has_no_index(void **state) {
    (void)state;
    struct gradcmp_tally tally;
    memset(&tally, 0, sizeof tally);
    gcmp_tally_shift(&tally, 100);
    assert_int_equal(tally.max_d_index, 0);
    tally.max_d = 0.5;
    tally.max_d_index = 7;
    gcmp_tally_shift(&tally, 100);
    assert_int_equal(tally.max_d_index, 107);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span__folds_blocks_level_by_level),
        cmocka_unit_test(test_span__empty_is_zeroed),
        cmocka_unit_test(test_span__index_of_the_largest_is_the_first_over_all_blocks),
        cmocka_unit_test(test_shift__no_difference_has_no_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
