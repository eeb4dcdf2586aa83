/* The lane code's conversions, against rules stated independently of it. */
#include <math.h>

#include "kernels/kernel_tools.h"

/* The value of a finite pattern by the definition of the format. */
static double defined_value(struct gcmp_float_format format, uint64_t bits) {
    uint64_t magnitude = gcmp_lane_magnitude(format, bits);
    int exponent = (int)(magnitude >> format.fraction_bits);
    double fraction = (double)(magnitude & (((uint64_t)1 << format.fraction_bits) - 1));
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    double hidden = ldexp(1.0, (int)format.fraction_bits);
    double value = exponent == 0
                       ? ldexp(fraction, 1 - bias - (int)format.fraction_bits)
                       : ldexp(hidden + fraction, exponent - bias - (int)format.fraction_bits);
    return bits == magnitude ? value : -value;
}

static void test_widen__all_narrow_patterns_have_their_values(void **state) {
    (void)state;
    for (size_t t = 2; t < FLOAT_TYPES; t++) {
        struct gcmp_float_format format = gcmp_float_format(float_types[t]);
        uint64_t patterns = (uint64_t)2 << (format.exponent_bits + format.fraction_bits);
        for (uint64_t bits = 0; bits < patterns; bits++) {
            double value = gcmp_lane_from_bits(gcmp_lane_widen(format, bits));
            if (gcmp_lane_finite(format, bits)) {
                assert_true(gcmp_lane_to_bits(value) ==
                            gcmp_lane_to_bits(defined_value(format, bits)));
            } else {
                assert_true(isnan(value) || isinf(value));
                assert_int_equal(gcmp_lane_narrow(format, gcmp_lane_to_bits(value)), bits);
            }
        }
    }
}

static void test_widen__float32_agrees_with_the_compiler(void **state) {
    (void)state;
    uint64_t random = 1;
    struct gcmp_float_format format = gcmp_float_format(GRADCMP_DTYPE_FLOAT32);
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)random_bits(FILL_FINITE, format, &random);
        float value;
        memcpy(&value, &bits, sizeof value);
        assert_true(gcmp_lane_widen(format, bits) == gcmp_lane_to_bits((double)value));
    }
}

static void test_special__known_patterns(void **state) {
    (void)state;
    struct gcmp_float_format e4m3 = gcmp_float_format(GRADCMP_DTYPE_FLOAT8_E4M3FN);
    struct gcmp_float_format e5m2 = gcmp_float_format(GRADCMP_DTYPE_FLOAT8_E5M2);
    assert_true(defined_value(e4m3, 0x7e) == 448.0);
    assert_true(gcmp_lane_finite(e4m3, 0x7e) && !gcmp_lane_finite(e4m3, 0x7f));
    assert_true(gcmp_lane_finite(e4m3, 0xfe) && !gcmp_lane_finite(e4m3, 0xff));
    assert_true(isnan(gcmp_lane_from_bits(gcmp_lane_widen(e4m3, 0xff))));
    assert_true(defined_value(e5m2, 0x7b) == 57344.0);
    assert_true(gcmp_lane_from_bits(gcmp_lane_widen(e5m2, 0xfc)) == -INFINITY);
}

static uint64_t narrow(struct gcmp_float_format format, double value) {
    return gcmp_lane_narrow(format, gcmp_lane_to_bits(value));
}

/* Between each two neighbours: just below the middle down, the middle to the even one, just above
 * up. The neighbour above the largest finite number is infinity, or the NaN of e4m3fn. */
static void check_rounding(struct gcmp_float_format format, uint64_t low) {
    double x = defined_value(format, low);
    double step = low == 0 ? defined_value(format, 1) : x - defined_value(format, low - 1);
    double y = low + 1 < gcmp_lane_special(format) ? defined_value(format, low + 1) : x + step;
    double middle = x + (y - x) / 2;
    uint64_t even = low % 2 == 0 ? low : low + 1;
    uint64_t sign = (uint64_t)1 << (format.exponent_bits + format.fraction_bits);
    assert_int_equal(narrow(format, x), low);
    assert_int_equal(narrow(format, middle), even);
    assert_int_equal(narrow(format, -middle), even | sign);
    assert_int_equal(narrow(format, nextafter(middle, 0.0)), low);
    assert_int_equal(narrow(format, -nextafter(middle, INFINITY)), (low + 1) | sign);
}

static void test_narrow__every_step_of_narrow_types_rounds_to_nearest_even(void **state) {
    (void)state;
    for (size_t t = 2; t < FLOAT_TYPES; t++) {
        struct gcmp_float_format format = gcmp_float_format(float_types[t]);
        for (uint64_t low = 0; low < gcmp_lane_special(format); low++) {
            check_rounding(format, low);
        }
    }
}

static void test_narrow__float32_agrees_with_the_compiler(void **state) {
    (void)state;
    uint64_t random = 2;
    struct gcmp_float_format format = gcmp_float_format(GRADCMP_DTYPE_FLOAT32);
    for (int i = 0; i < 1000000; i++) {
        uint64_t near_float32 = (next_random(&random) % 0x2a0 + 0x360) << 52;
        uint64_t bits = near_float32 | (next_random(&random) >> (12 + next_random(&random) % 40));
        float value = (float)gcmp_lane_from_bits(bits);
        uint32_t expected;
        memcpy(&expected, &value, sizeof expected);
        assert_int_equal(gcmp_lane_narrow(format, bits), expected);
    }
}

static void test_narrow__past_the_largest(void **state) {
    (void)state;
    struct gcmp_float_format e4m3 = gcmp_float_format(GRADCMP_DTYPE_FLOAT8_E4M3FN);
    struct gcmp_float_format bf16 = gcmp_float_format(GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(narrow(e4m3, 464.0), 0x7e);
    assert_int_equal(narrow(e4m3, 464.0001), 0x7f);
    assert_int_equal(narrow(e4m3, -INFINITY), 0xff);
    assert_int_equal(narrow(bf16, 1e300), 0x7f80);
    assert_int_equal(narrow(bf16, -1e-300), 0x8000);
    assert_int_equal(narrow(bf16, 5e-324), 0);
}

static void test_narrow__nan_keeps_sign_and_payload(void **state) {
    (void)state;
    struct gcmp_float_format bf16 = gcmp_float_format(GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(gcmp_lane_narrow(bf16, 0xfff8000000000000u), 0xffc0);
    assert_int_equal(gcmp_lane_narrow(bf16, 0x7ff2000000000000u), 0x7f90); /* signalling */
    assert_int_equal(gcmp_lane_narrow(bf16, 0x7ff0000000000001u), 0x7fc0); /* never infinity */
}

static void test_ulps__cross_zero_and_do_not_overflow(void **state) {
    (void)state;
    struct gcmp_float_format float64 = gcmp_float_format(GRADCMP_DTYPE_FLOAT64);
    struct gcmp_float_format e5m2 = gcmp_float_format(GRADCMP_DTYPE_FLOAT8_E5M2);
    assert_int_equal(gcmp_lane_ulps(e5m2, 0x00, 0x80), 0);
    assert_int_equal(gcmp_lane_ulps(e5m2, 0x01, 0x81), 2);
    assert_int_equal(gcmp_lane_ulps(e5m2, 0x05, 0x03), 2);
    assert_int_equal(gcmp_lane_ulps(e5m2, 0x83, 0x85), 2);
    assert_true(gcmp_lane_ulps(float64, 0x7fefffffffffffff, 0xffefffffffffffff) ==
                0xffdffffffffffffe);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen__all_narrow_patterns_have_their_values),
        cmocka_unit_test(test_widen__float32_agrees_with_the_compiler),
        cmocka_unit_test(test_special__known_patterns),
        cmocka_unit_test(test_narrow__every_step_of_narrow_types_rounds_to_nearest_even),
        cmocka_unit_test(test_narrow__float32_agrees_with_the_compiler),
        cmocka_unit_test(test_narrow__past_the_largest),
        cmocka_unit_test(test_narrow__nan_keeps_sign_and_payload),
        cmocka_unit_test(test_ulps__cross_zero_and_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
