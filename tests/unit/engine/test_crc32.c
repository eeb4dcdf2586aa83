/* Checksums of pieces in any order. */
#include "engine/engine_tools.h"

/* Bit by bit, from the polynomial. */
static uint32_t defined_crc32(const unsigned char *bytes, size_t count) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static void test_crc32__known_value(void **state) {
    (void)state;
    assert_int_equal(gcmp_crc32(0, "123456789", 9), 0xcbf43926);
}

static void test_crc32__all_lengths_and_alignments(void **state) {
    (void)state;
    enum { MOST = 1700 };
    struct guarded guarded = guarded_make(MOST);
    uint64_t random = 1;
    for (unsigned char *at = guarded.first; at < guarded.end; at++) {
        *at = (unsigned char)next_random(&random);
    }
    for (size_t count = 0; count <= MOST; count++) {
        assert_int_equal(gcmp_crc32(0, guarded.end - count, count),
                         defined_crc32(guarded.end - count, count));
        assert_int_equal(gcmp_crc32(0, guarded.first, count), defined_crc32(guarded.first, count));
    }
    for (size_t cut = 0; cut <= MOST; cut += 13) {
        uint32_t first = gcmp_crc32(0, guarded.first, cut);
        assert_int_equal(gcmp_crc32(first, guarded.first + cut, MOST - cut),
                         defined_crc32(guarded.first, MOST));
    }
    guarded_free(&guarded);
}

static void test_shift__pieces_add_up_in_any_order(void **state) {
    (void)state;
    static unsigned char bytes[200000];
    uint64_t random = 2;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)next_random(&random);
    }
    for (size_t piece = 1; piece < sizeof bytes; piece = piece * 5 + 3) {
        uint32_t sum = 0;
        for (size_t end = sizeof bytes; end > 0;) {
            size_t count = end < piece ? end : piece;
            end -= count;
            sum ^= gcmp_crc32_shift(gcmp_crc32(0, bytes + end, count), sizeof bytes - end - count);
        }
        assert_int_equal(sum, gcmp_crc32(0, bytes, sizeof bytes));
    }
}

/* x^(8n) has period 2^32 - 1 in bits; a shift by it changes nothing. */
static void test_shift__long_distances(void **state) {
    (void)state;
    uint64_t period = 0xffffffff;
    assert_int_equal(gcmp_crc32_shift(0x12345678, period), 0x12345678);
    assert_int_equal(gcmp_crc32_shift(0x12345678, period * 1000 + 77),
                     gcmp_crc32_shift(0x12345678, 77));
    assert_int_equal(gcmp_crc32_shift(gcmp_crc32_shift(0x9abcdef0, (uint64_t)1 << 40), 12345),
                     gcmp_crc32_shift(0x9abcdef0, ((uint64_t)1 << 40) + 12345));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32__known_value),
        cmocka_unit_test(test_crc32__all_lengths_and_alignments),
        cmocka_unit_test(test_shift__pieces_add_up_in_any_order),
        cmocka_unit_test(test_shift__long_distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
