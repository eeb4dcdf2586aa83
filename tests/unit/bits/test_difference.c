/* Elements as patterns: counts, the first one, ulps, what differences look like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bits/difference.h"

static const uint64_t shape[] = {4, 8};

static struct gcmp_bits_difference begin(unsigned elem_bytes) {
    struct gcmp_bits_difference difference = {.shape = shape, .ndim = 2, .elem_bytes = elem_bytes};
    return difference;
}

static void test_compare__every_bit_of_every_width_is_found(void **state) {
    (void)state;
    static const unsigned widths[] = {1, 2, 4, 8, 16};
    for (size_t w = 0; w < 5; w++) {
        unsigned char a[32 * 16], b[32 * 16];
        memset(a, 0x5a, sizeof a);
        for (size_t bit = 0; bit < 32 * 8 * widths[w]; bit++) {
            memcpy(b, a, sizeof a);
            b[bit / 8] ^= (unsigned char)(1 << bit % 8);
            struct gcmp_bits_difference found = begin(widths[w]);
            gcmp_bits_compare(&found, 0, 32, a, b);
            assert_int_equal(found.different, 1);
            assert_int_equal(found.bits, 1);
            assert_int_equal(found.first, bit / 8 / widths[w]);
            assert_string_equal(gcmp_bits_look(&found, NULL, NULL), "one flipped bit");
        }
    }
}

static void test_merge__parts_in_any_order_give_the_whole(void **state) {
    (void)state;
    uint32_t a[32] = {0}, b[32] = {0};
    b[3] = 7;
    b[12] = 1;
    b[30] = 2;
    struct gcmp_bits_difference whole = begin(4), joined = begin(4), first = begin(4),
                                second = begin(4);
    gcmp_bits_compare(&whole, 0, 32, a, b);
    gcmp_bits_compare(&first, 0, 10, a, b);
    gcmp_bits_compare(&second, 10, 22, a + 10, b + 10);
    gcmp_bits_merge(&joined, &second);
    gcmp_bits_merge(&joined, &first);
    assert_memory_equal(&joined, &whole, sizeof whole);
    assert_int_equal(whole.different, 3);
    assert_int_equal(whole.bits, 5);
    assert_int_equal(whole.box[1].low, 3);
    assert_int_equal(whole.box[0].high, 3);
    assert_string_equal(gcmp_bits_look(&whole, NULL, NULL), "scattered");
}

static uint64_t ulp32(uint32_t a, uint32_t b) {
    uint64_t ulp = UINT64_MAX;
    return gcmp_bits_ulp(GRADCMP_DTYPE_FLOAT32, (const unsigned char *)&a,
                         (const unsigned char *)&b, &ulp)
               ? ulp
               : UINT64_MAX;
}

static void test_ulp__follows_the_order_of_values(void **state) {
    (void)state;
    assert_int_equal(ulp32(0x3f800000, 0x3f800001), 1);
    assert_int_equal(ulp32(0x80000000, 0), 0);
    assert_int_equal(ulp32(0x80000001, 1), 2);
    assert_int_equal(ulp32(0x7f800000, 0x7f7fffff), 1);
    assert_int_equal(ulp32(0x7fc00000, 0x7fc00001), UINT64_MAX);
    int8_t x = -128, y = 127;
    uint64_t ulp;
    assert_true(gcmp_bits_ulp(GRADCMP_DTYPE_INT8, (const unsigned char *)&x,
                              (const unsigned char *)&y, &ulp));
    assert_int_equal(ulp, 255);
    assert_false(gcmp_bits_ulp(GRADCMP_DTYPE_COMPLEX64, (const unsigned char *)&ulp,
                               (const unsigned char *)&ulp, &ulp));
}

static void test_look__one_of_several_slabs_is_one_shard(void **state) {
    (void)state;
    uint64_t starts[][2] = {{0, 0}, {2, 0}}, extent[] = {2, 8};
    struct gradcmp_slab slabs[] = {{.start = starts[0], .extent = extent},
                                   {.start = starts[1], .extent = extent}};
    struct gradcmp_parameter parameter = {
        .shape = shape, .ndim = 2, .slabs = slabs, .slab_count = 2, .copy_count = 1};
    uint16_t a[32] = {0}, b[32] = {0};
    b[16] = b[31] = 1;
    struct gcmp_bits_difference found = begin(2);
    gcmp_bits_compare(&found, 0, 32, a, b);
    assert_string_equal(gcmp_bits_look(&found, &parameter, NULL), "one shard");
    b[0] = 1;
    found = begin(2);
    gcmp_bits_compare(&found, 0, 32, a, b);
    assert_string_equal(gcmp_bits_look(&found, &parameter, &parameter), "scattered");
    memset(b, 1, sizeof b);
    found = begin(2);
    gcmp_bits_compare(&found, 0, 32, a, b);
    assert_string_equal(gcmp_bits_look(&found, &parameter, NULL), "all");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare__every_bit_of_every_width_is_found),
        cmocka_unit_test(test_merge__parts_in_any_order_give_the_whole),
        cmocka_unit_test(test_ulp__follows_the_order_of_values),
        cmocka_unit_test(test_look__one_of_several_slabs_is_one_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
