/* Every kernel against the scalar one, bit for bit; the scalar one against the order that the
 * design states. */
#include <math.h>

#include "kernels/kernel_tools.h"

enum { MOST_SHORT = 4 * GRADCMP_LANES + 3, MOST_ELEMS = GRADCMP_BLOCK_ELEMS };

/* Run a kernel and the scalar one on the same elements. */
static void check_kernel(const struct gcmp_kernel *kernel, const struct gcmp_block *block) {
    struct gradcmp_tally expected, found;
    memset(&found, 0xee, sizeof found);
    gcmp_scalar_tally(block->a, block->dtype_a, block->b, block->dtype_b, block->elems, &expected);
    kernel->tally(block->a, block->dtype_a, block->b, block->dtype_b, block->elems, &found);
    assert_same_tally(&found, &expected);
}

/* Elements that end at a guard page, and such that begin at one. */
static void check_at_guards(const struct gcmp_kernel *kernel, struct gcmp_block block,
                            const struct guarded *a, const struct guarded *b, enum fill fill) {
    size_t bytes_a = block.elems * gcmp_dtype_bytes(block.dtype_a);
    size_t bytes_b = block.elems * gcmp_dtype_bytes(block.dtype_b);
    for (int at_end = 0; at_end < 2; at_end++) {
        block.a = at_end ? a->end - bytes_a : a->first;
        block.b = at_end ? b->end - bytes_b : b->first;
        fill_elems((void *)block.a, block.dtype_a, block.elems, fill, block.elems);
        fill_elems((void *)block.b, block.dtype_b, block.elems, fill, block.elems + 1);
        check_kernel(kernel, &block);
    }
}

typedef void (*pair_check)(const struct gcmp_kernel *kernel, enum gradcmp_dtype dtype_a,
                           enum gradcmp_dtype dtype_b);

static void for_all_pairs(pair_check check) {
    for (const struct gcmp_kernel *const *kernel = gcmp_kernels(); *kernel != NULL; kernel++) {
        for (size_t t = 0; t < FLOAT_TYPES; t++) {
            for (size_t u = 0; u < FLOAT_TYPES; u++) {
                check(*kernel, float_types[t], float_types[u]);
            }
        }
    }
}

static void check_short(const struct gcmp_kernel *kernel, enum gradcmp_dtype dtype_a,
                        enum gradcmp_dtype dtype_b) {
    struct guarded a = guarded_make(8 * MOST_SHORT), b = guarded_make(8 * MOST_SHORT);
    for (size_t elems = 0; elems <= MOST_SHORT; elems++) {
        struct gcmp_block block = {NULL, NULL, dtype_a, dtype_b, elems};
        check_at_guards(kernel, block, &a, &b, (enum fill)(elems % FILL_KINDS));
    }
    guarded_free(&a);
    guarded_free(&b);
}

static void test_kernels__all_short_lengths_between_guard_pages(void **state) {
    (void)state;
    for_all_pairs(check_short);
}

static void check_alignments(const struct gcmp_kernel *kernel, enum gradcmp_dtype dtype_a,
                             enum gradcmp_dtype dtype_b) {
    enum { ELEMS = 3 * GRADCMP_LANES + 5 };
    unsigned char a[64 + 8 * ELEMS], b[64 + 8 * ELEMS];
    for (size_t shift = 0; shift < 64; shift++) {
        struct gcmp_block block = {a + shift, b + (shift * 7 + 3) % 64, dtype_a, dtype_b, ELEMS};
        fill_elems((void *)block.a, dtype_a, ELEMS, FILL_GRADIENTS, shift);
        fill_elems((void *)block.b, dtype_b, ELEMS, FILL_FINITE, shift + 100);
        check_kernel(kernel, &block);
    }
}

static void test_kernels__all_alignments(void **state) {
    (void)state;
    for_all_pairs(check_alignments);
}

static void check_long(const struct gcmp_kernel *kernel, enum gradcmp_dtype dtype_a,
                       enum gradcmp_dtype dtype_b) {
    static const size_t lengths[] = {MOST_ELEMS, 5000, 1024 + 64, 2048 - 1};
    struct guarded a = guarded_make(8 * MOST_ELEMS), b = guarded_make(8 * MOST_ELEMS);
    for (int fill = 0; fill < FILL_KINDS; fill++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            struct gcmp_block block = {NULL, NULL, dtype_a, dtype_b, lengths[i]};
            check_at_guards(kernel, block, &a, &b, (enum fill)fill);
        }
    }
    guarded_free(&a);
    guarded_free(&b);
}

static void test_kernels__blocks_of_all_kinds_of_values(void **state) {
    (void)state;
    for_all_pairs(check_long);
}

/* The second side is the first one rounded, with a few elements a step off: what a comparison
 * across types sees. Equal elements, ties of |d| and small distances are all there. */
static void check_near(const struct gcmp_kernel *kernel, enum gradcmp_dtype dtype_a,
                       enum gradcmp_dtype dtype_b) {
    static unsigned char a[8 * MOST_ELEMS], b[8 * MOST_ELEMS];
    struct gcmp_float_format format_a = gcmp_float_format(dtype_a);
    struct gcmp_float_format format_b = gcmp_float_format(dtype_b);
    uint64_t random = 5;
    fill_elems(a, dtype_a, MOST_ELEMS, FILL_GRADIENTS, 9);
    for (size_t i = 0; i < MOST_ELEMS; i++) {
        uint64_t bits = gcmp_load_bits(a, gcmp_dtype_bytes(dtype_a), i);
        bits = gcmp_lane_narrow(format_b, gcmp_lane_widen(format_a, bits));
        store_bits(b, gcmp_dtype_bytes(dtype_b), i, bits ^ (next_random(&random) % 29 == 0));
    }
    struct gcmp_block block = {a, b, dtype_a, dtype_b, MOST_ELEMS};
    check_kernel(kernel, &block);
}

static void test_kernels__one_side_rounded_from_the_other(void **state) {
    (void)state;
    for_all_pairs(check_near);
}

/* --- the scalar kernel --- */

/* The sums of a float32 pair, written down once more from the design's text. */
static void defined_sums(const float *a, const float *b, size_t elems, double out[4]) {
    double lanes[GRADCMP_LANES][4] = {{0}};
    for (size_t j = 0; j < GRADCMP_LANES; j++) {
        for (size_t i = j; i < elems; i += GRADCMP_LANES) {
            double x = a[i], y = b[i], d = y - x;
            lanes[j][0] = fma(d, d, lanes[j][0]);
            lanes[j][1] = fma(x, d, lanes[j][1]);
            lanes[j][2] = fma(x, x, lanes[j][2]);
            lanes[j][3] = fma(y, y, lanes[j][3]);
        }
    }
    static const size_t steps[] = {16, 8, 4, 2, 1};
    for (size_t s = 0; s < 5; s++) {
        for (size_t j = 0; j < steps[s]; j++) {
            for (size_t k = 0; k < 4; k++) {
                lanes[j][k] += lanes[j + steps[s]][k];
            }
        }
    }
    memcpy(out, lanes[0], 4 * sizeof(double));
}

static void test_scalar__sums_follow_the_stated_order(void **state) {
    (void)state;
    static float a[MOST_ELEMS], b[MOST_ELEMS];
    for (size_t elems = 1; elems <= MOST_ELEMS; elems = elems * 3 + 1) {
        struct gradcmp_tally tally;
        double expected[4];
        fill_elems(a, GRADCMP_DTYPE_FLOAT32, elems, FILL_GRADIENTS, elems);
        fill_elems(b, GRADCMP_DTYPE_FLOAT32, elems, FILL_GRADIENTS, elems + 1);
        defined_sums(a, b, elems, expected);
        gcmp_scalar_tally(a, GRADCMP_DTYPE_FLOAT32, b, GRADCMP_DTYPE_FLOAT32, elems, &tally);
        assert_memory_equal(expected, &tally.d2, sizeof expected);
    }
}

static void test_scalar__counts_and_maxima_of_a_worked_example(void **state) {
    (void)state;
    const float a[] = {1.0f, -2.0f, 0.0f, -0.0f, NAN, INFINITY, 3.0f, 4.0f};
    const float b[] = {1.5f, -2.5f, -0.0f, 0.0f, 0.0f, INFINITY, NAN, 4.0f};
    struct gradcmp_tally t;
    gcmp_scalar_tally(a, GRADCMP_DTYPE_FLOAT32, b, GRADCMP_DTYPE_FLOAT32, 8, &t);
    assert_int_equal(t.elems, 8);
    assert_true(t.d2 == 0.5 && t.ad == 1.5 && t.a2 == 21.0 && t.b2 == 24.5);
    assert_true(t.max_d == 0.5 && t.max_d_index == 0); /* the first of two */
    assert_true(t.max_a == 4.0 && t.max_b == 4.0);
    assert_int_equal(t.zeros_a, 2);
    assert_int_equal(t.zeros_b, 3);
    assert_int_equal(t.nonfinite_a, 2);
    assert_int_equal(t.nonfinite_b, 2);
    assert_int_equal(t.nonfinite_any, 3);
    assert_int_equal(t.equal_bits, 2); /* inf and 4 */
    assert_int_equal(t.max_ulp, 1 << 22);
}

static void test_scalar__mixed_types_are_judged_in_the_coarser_one(void **state) {
    (void)state;
    const float a[] = {1.0f, 1.00390625f, 1.0118f, 448.0f}; /* the second is half a bf16 step up */
    const uint16_t b[] = {0x3f80, 0x3f80, 0x3f80, 0x43e0};
    struct gradcmp_tally t;
    gcmp_scalar_tally(a, GRADCMP_DTYPE_FLOAT32, b, GRADCMP_DTYPE_BFLOAT16, 4, &t);
    assert_int_equal(t.equal_bits, 3);
    assert_int_equal(t.max_ulp, 2);
    assert_int_equal(t.max_d_index, 2);
    gcmp_scalar_tally(b, GRADCMP_DTYPE_BFLOAT16, a, GRADCMP_DTYPE_FLOAT32, 4, &t);
    assert_int_equal(t.equal_bits, 3);
    assert_int_equal(t.max_ulp, 2);
}

/* --- choice --- */

static void test_choose__disabled_names_are_not_used(void **state) {
    (void)state;
#if defined(GCMP_ARENA_MALLOC)
    setenv("GRADCMP_DISABLE_CPU", "avx512,avx2,neon", 1);
    assert_string_equal(gcmp_kernel_choose()->name, "scalar");
    setenv("GRADCMP_DISABLE_CPU", "avx,scala", 1); /* whole names only */
    size_t count = 0;
    while (gcmp_kernels()[count] != NULL) {
        count++;
    }
    assert_ptr_equal(gcmp_kernel_choose(), gcmp_kernels()[count - 1]);
    unsetenv("GRADCMP_DISABLE_CPU");
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalar__sums_follow_the_stated_order),
        cmocka_unit_test(test_scalar__counts_and_maxima_of_a_worked_example),
        cmocka_unit_test(test_scalar__mixed_types_are_judged_in_the_coarser_one),
        cmocka_unit_test(test_kernels__all_short_lengths_between_guard_pages),
        cmocka_unit_test(test_kernels__all_alignments),
        cmocka_unit_test(test_kernels__blocks_of_all_kinds_of_values),
        cmocka_unit_test(test_kernels__one_side_rounded_from_the_other),
        cmocka_unit_test(test_choose__disabled_names_are_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
