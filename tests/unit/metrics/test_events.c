/* TensorBoard event files: framing, both encodings of a scalar, damage, restarts. */
#include "sides.h"

static int setup(void **state) {
    return (*state = temp_dir_make()) == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static void save(const char *temp, const char *name, const struct records *file) {
    temp_file(temp, name, file->bytes, file->length_bytes);
}

static void test_crc32c__of_the_check_string_is_known(void **state) {
    (void)state;
    assert_int_equal(gcmp_crc32c((const unsigned char *)"123456789", 9), 0xe3069283u);
    assert_int_equal(gcmp_crc32c((const unsigned char *)"", 0), 0);
}

/* Two files with the same float32 at steps 1 and 2, where `value` encodes it in the second. */
static json_t *with_encoding(const char *temp, const void *value, size_t value_bytes, float plain) {
    struct records a = {0}, b = {0};
    put_version(&a);
    put_version(&b);
    put_simple(&a, 1, "loss", plain);
    put_event(&b, 1, "loss", value, value_bytes);
    save(temp, "a", &a);
    save(temp, "b", &b);
    return compare(temp, "a", "b");
}

static void test_events__both_encodings_give_the_value(void **state) {
    float one = 1.5F;
    double wide = 1.5;
    unsigned char packed[] = {0x42, 8, 0x08, 1, 0x2a, 4, 0, 0, 0, 0};
    unsigned char content[] = {0x42, 8, 0x08, 1, 0x22, 4, 0, 0, 0, 0};
    unsigned char single[] = {0x42, 7, 0x08, 1, 0x2d, 0, 0, 0, 0};
    unsigned char doubles[] = {0x42, 12, 0x08, 2, 0x32, 8, 0, 0, 0, 0, 0, 0, 0, 0};
    memcpy(packed + 6, &one, 4);
    memcpy(content + 6, &one, 4);
    memcpy(single + 5, &one, 4);
    memcpy(doubles + 6, &wide, 8);
    const struct {
        const void *bytes;
        size_t count;
    } encodings[] = {{packed, sizeof packed},
                     {content, sizeof content},
                     {single, sizeof single},
                     {doubles, sizeof doubles}};
    for (size_t i = 0; i < 4; i++) {
        json_t *document = with_encoding(*state, encodings[i].bytes, encodings[i].count, one);
        assert_string_equal(text_of(document, "verdict"), "match");
        assert_int_equal(count_of(metric_of(document, "loss"), "steps"), 1);
        json_decref(document);
        document = with_encoding(*state, encodings[i].bytes, encodings[i].count, 1.25F);
        assert_string_equal(text_of(document, "verdict"), "differ");
        json_decref(document);
    }
}

#define SCALAR(...)                                                                                \
    { 0x42, sizeof((unsigned char[]){__VA_ARGS__}), __VA_ARGS__ }

/* One value of a type, in its own field or as bytes: the number that it is. */
static void test_events__scalars_of_all_types_are_read(void **state) {
    static const struct {
        unsigned char bytes[24];
        double value;
    } scalars[] = {{SCALAR(8, 19, 0x6a, 2, 0x80, 0x78), 1},  /* half 0x3c00 */
                   {SCALAR(8, 19, 0x6a, 1, 1), 0x1p-24},     /* its smallest */
                   {SCALAR(8, 14, 0x6a, 2, 0x80, 0x7f), 1},  /* bfloat16 0x3f80 */
                   {SCALAR(8, 23, 0x8a, 1, 1, 7), 7},        /* uint64 */
                   {SCALAR(8, 22, 0x82, 1, 1, 9), 9},        /* uint32 */
                   {SCALAR(8, 10, 0x5a, 1, 1), 1},           /* bool */
                   {SCALAR(8, 6, 0x22, 1, 0xfe), -2},        /* int8 */
                   {SCALAR(8, 4, 0x22, 1, 0xfe), 254},       /* uint8 */
                   {SCALAR(8, 17, 0x38, 0xff, 0x7f), 16383}, /* uint16 */
                   {SCALAR(8, 5, 0x22, 2, 0xff, 0xff), -1},  /* int16 */
                   {SCALAR(8, 9, 0x22, 8, 0, 0, 0, 0, 0, 0, 0, 0x80), -0x1p63}, /* int64 */
                   {SCALAR(8, 23, 0x22, 8, 0, 0, 0, 0, 0, 0, 0, 0x80), 0x1p63},
                   {SCALAR(8, 1, 0x12, 0), 0}}; /* a scalar's shape, and no element: zero */
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        json_t *document =
            with_encoding(*state, scalars[i].bytes, 2U + scalars[i].bytes[1], 0.125F);
        const json_t *b = json_object_get(metric_of(document, "loss"), "b");
        assert_string_equal(text_of(document, "verdict"), "differ");
        if (json_number_value(json_object_get(b, "value")) != scalars[i].value) {
            fail_msg("scalar %zu is %g", i, json_number_value(json_object_get(b, "value")));
        }
        json_decref(document);
    }
}

static void test_events__scalars_that_cannot_be_held_are_invalid(void **state) {
    static const unsigned char scalars[][24] = {
        SCALAR(8, 9, 0x22, 8, 1, 0, 0, 0, 0, 0, 0x20, 0),                       /* int64 2^53 + 1 */
        SCALAR(8, 9, 0x22, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xdf, 0xff),  /* its negative */
        SCALAR(8, 23, 0x22, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), /* uint64 */
        SCALAR(8, 8, 0x4a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0),                    /* complex64 */
        SCALAR(8, 23, 0x82, 1, 1, 7),                            /* uint64, in uint32's field */
        SCALAR(8, 24, 0x22, 1, 0x3c),                            /* float8 */
        SCALAR(8, 1, 0x12, 0, 0x22, 8, 0, 0, 0, 0, 0, 0, 0, 0)}; /* two elements of one */
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        struct records a = {0}, b = {0};
        put_version(&a);
        put_simple(&a, 1, "loss", 1);
        put_version(&b);
        put_simple(&b, 1, "loss", 1);
        put_event(&b, 1, "x", scalars[i], 2U + scalars[i][1]);
        save(*state, "a", &a);
        save(*state, "b", &b);
        json_t *document = compare(*state, "a", "b");
        if (strcmp(text_of(document, "verdict"), "invalid") != 0) {
            fail_msg("scalar %zu is %s", i, text_of(document, "verdict"));
        }
        json_decref(document);
    }
}

static void test_events__the_values_beside_one_that_cannot_be_held_are_shown(void **state) {
    static const unsigned char scalars[][24] = {
        SCALAR(8, 9, 0x22, 8, 1, 0, 0, 0, 0, 0, 0x20, 0),    /* int64 2^53 + 1 */
        SCALAR(8, 8, 0x4a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0), /* complex64 */
        SCALAR(8, 0, 0x22, 1, 0x3c)};                        /* no type */
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        for (int is_cut = 0; is_cut < 2; is_cut++) {
            struct records a = {0}, b = {0};
            put_version(&a);
            put_simple(&a, 1, "loss", 1);
            put_simple(&a, 2, "loss", 2);
            put_version(&b);
            put_simple(&b, 1, "loss", 1);
            put_event(&b, 1, "x", scalars[i], 2U + scalars[i][1]);
            put_simple(&b, 2, "loss", 3);
            b.bytes[b.length_bytes++] = 0; /* a further damage: the first one is told */
            b.length_bytes -= is_cut == 0;
            save(*state, "a", &a);
            save(*state, "b", &b);
            json_t *document = compare(*state, "a", "b"), *metric = metric_of(document, "loss");
            assert_string_equal(text_of(document, "verdict"), "invalid");
            assert_non_null(strstr(text_of(document, "summary"), "record 2: "));
            assert_int_equal(count_of(metric, "values_differ"), 1);
            json_decref(document);
        }
    }
}

static void test_events__a_negative_zero_is_equal_and_not_bit_for_bit(void **state) {
    static const float values[] = {0.0F, -0.0F};
    static const char *const words[] = {"bit for bit", "zeros or NaN have other bits"};
    for (int i = 0; i < 2; i++) {
        struct records a = {0}, b = {0};
        put_version(&a);
        put_version(&b);
        put_simple(&a, 1, "loss", values[0]);
        put_simple(&b, 1, "loss", values[i]);
        save(*state, "a", &a);
        save(*state, "b", &b);
        json_t *document = compare(*state, "a", "b");
        assert_string_equal(text_of(document, "verdict"), "match");
        assert_non_null(strstr(text_of(document, "summary"), words[i]));
        json_decref(document);
    }
}

/* A histogram's tensor, and the empty one of the plug-in for hyperparameters, are no scalars. */
static void test_events__tensors_of_other_shapes_are_left_out(void **state) {
    static const unsigned char tensors[][24] = {
        SCALAR(8, 2, 0x12, 4, 0x12, 2, 8, 3, 0x31, 0, 0, 0, 0, 0, 0, 0, 0),
        SCALAR(8, 1, 0x12, 4, 0x12, 2, 8, 0, 0x2d, 0, 0, 0, 0), SCALAR(8, 7, 0x42, 1, 'x')};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        struct records file = {0};
        put_version(&file);
        put_simple(&file, 1, "loss", 1);
        put_event(&file, 1, "x", tensors[i], 2U + tensors[i][1]);
        save(*state, "a", &file);
        json_t *document = compare(*state, "a", "a");
        assert_string_equal(text_of(document, "verdict"), "match");
        assert_int_equal(json_array_size(json_object_get(document, "metrics")), 1);
        json_decref(document);
    }
}

static void test_events__one_ulp_is_told_with_both_patterns(void **state) {
    struct records a = {0}, b = {0};
    put_version(&a);
    put_version(&b);
    for (unsigned char step = 1; step <= 3; step++) {
        put_simple(&a, step, "loss", 1.0F);
        put_simple(&b, step, "loss", step == 2 ? 1.00000011920928955078125F : 1.0F);
    }
    save(*state, "a", &a);
    save(*state, "b", &b);
    json_t *document = compare(*state, "a", "b"), *metric = metric_of(document, "loss");
    assert_string_equal(text_of(document, "verdict"), "differ");
    assert_int_equal(count_of(metric, "first_mismatch_step"), 2);
    assert_int_equal(count_of(metric, "mismatches"), 1);
    assert_string_equal(text_of(json_object_get(metric, "a"), "bits"), "0x3f800000");
    assert_string_equal(text_of(json_object_get(metric, "b"), "bits"), "0x3f800001");
    assert_true(json_real_value(json_object_get(metric, "distance")) == 1 ||
                json_integer_value(json_object_get(metric, "distance")) == 1);
    json_decref(document);
}

/* Every cut of the file, and every flipped bit, is seen: never a match. */
static void test_events__no_cut_or_flipped_bit_passes(void **state) {
    struct records whole = {0};
    put_version(&whole);
    put_simple(&whole, 1, "loss", 2.5F);
    put_simple(&whole, 2, "loss", 2.25F);
    save(*state, "a.tfevents.1", &whole);
    for (size_t cut = 0; cut < whole.length_bytes; cut++) {
        struct records part = whole;
        part.length_bytes = cut;
        save(*state, "b.tfevents.1", &part);
        json_t *document = compare(*state, "a.tfevents.1", "b.tfevents.1");
        assert_string_not_equal(text_of(document, "verdict"), "match");
        json_decref(document);
    }
    for (size_t bit = 0; bit < whole.length_bytes * 8; bit += 5) {
        struct records damaged = whole;
        damaged.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        save(*state, "b.tfevents.1", &damaged);
        json_t *document = compare(*state, "a.tfevents.1", "b.tfevents.1");
        assert_string_equal(text_of(document, "verdict"), "invalid");
        json_decref(document);
    }
}

static void test_events__a_cut_record_is_told_with_its_offset(void **state) {
    struct records whole = {0};
    put_version(&whole);
    put_simple(&whole, 1, "loss", 2.5F);
    size_t second = whole.length_bytes;
    put_simple(&whole, 2, "loss", 2.25F);
    save(*state, "a", &whole);
    whole.length_bytes -= 3;
    save(*state, "b", &whole);
    json_t *document = compare(*state, "a", "b");
    assert_string_equal(text_of(document, "verdict"), "invalid");
    const json_t *error = json_object_get(document, "error");
    assert_int_equal(count_of(error, "offset"), second);
    assert_non_null(strstr(text_of(error, "message"), "record 2 is cut off"));
    assert_int_equal(count_of(metric_of(document, "loss"), "first_mismatch_step"), 2);
    json_decref(document);
}

static void test_events__a_broken_message_is_corrupt(void **state) {
    struct records a = {0}, b = {0};
    put_version(&a);
    put_version(&b);
    put_simple(&a, 1, "loss", 1);
    put_record(&b, "\x10\x01\x2a\x7f", 4); /* a summary longer than its record */
    save(*state, "a", &a);
    save(*state, "b", &b);
    json_t *document = compare(*state, "a", "b");
    assert_string_equal(text_of(document, "verdict"), "invalid");
    json_decref(document);
}

static void test_events__records_of_something_else_are_refused(void **state) {
    struct records file = {0};
    put_simple(&file, 1, "loss", 1);
    save(*state, "a", &file);
    json_t *document = compare(*state, "a", "a");
    assert_string_equal(text_of(document, "verdict"), "invalid");
    assert_non_null(strstr(text_of(json_object_get(document, "error"), "message"), "brain.Event"));
    json_decref(document);
}

/* A restart repeats steps; names sort the other way round than times. */
static void test_events__restarts_are_joined_by_time(void **state) {
    struct records a = {0}, early = {0}, late = {0};
    put_version(&a);
    put_version(&early);
    put_version(&late);
    for (unsigned char step = 1; step <= 4; step++) {
        put_simple(&a, step, "loss", step);
        if (step <= 3) {
            put_simple(&early, step, "loss", step);
        }
        if (step >= 3) {
            put_simple(&late, step, "loss", step == 3 ? 33 : step);
        }
    }
    temp_folder(*state, "a");
    temp_folder(*state, "b");
    save(*state, "a/events.out.tfevents.100.x.1.0", &a);
    save(*state, "b/events.out.tfevents.1000.x.1.0", &late);
    save(*state, "b/events.out.tfevents.200.x.1.0", &early);
    json_t *document = compare(*state, "a", "b"), *metric = metric_of(document, "loss");
    assert_int_equal(count_of(metric, "mismatches"), 0); /* the first reading counts */
    assert_int_equal(count_of(metric, "conflicts_b"), 1);
    assert_int_equal(count_of(metric, "first_conflict_step"), 3);
    assert_int_equal(count_of(metric, "first_mismatch_last_wins"), 3);
    assert_string_equal(text_of(document, "verdict"), "differ"); /* it disagrees with itself */
    json_decref(document);
}

static void test_events__several_runs_in_a_folder_are_refused(void **state) {
    struct records a = {0};
    put_version(&a);
    put_simple(&a, 1, "loss", 1);
    temp_folder(*state, "runs");
    temp_folder(*state, "runs/one");
    temp_folder(*state, "runs/two");
    save(*state, "runs/one/events.out.tfevents.1", &a);
    json_t *document = compare(*state, "runs", "runs/one");
    assert_string_equal(text_of(document, "verdict"), "match");
    json_decref(document);
    save(*state, "runs/two/events.out.tfevents.1", &a);
    document = compare(*state, "runs", "runs/one");
    assert_string_equal(text_of(document, "verdict"), "invalid");
    json_decref(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c__of_the_check_string_is_known),
        TEMP_TEST(test_events__both_encodings_give_the_value),
        TEMP_TEST(test_events__scalars_of_all_types_are_read),
        TEMP_TEST(test_events__scalars_that_cannot_be_held_are_invalid),
        TEMP_TEST(test_events__the_values_beside_one_that_cannot_be_held_are_shown),
        TEMP_TEST(test_events__a_negative_zero_is_equal_and_not_bit_for_bit),
        TEMP_TEST(test_events__tensors_of_other_shapes_are_left_out),
        TEMP_TEST(test_events__one_ulp_is_told_with_both_patterns),
        TEMP_TEST(test_events__no_cut_or_flipped_bit_passes),
        TEMP_TEST(test_events__a_cut_record_is_told_with_its_offset),
        TEMP_TEST(test_events__a_broken_message_is_corrupt),
        TEMP_TEST(test_events__records_of_something_else_are_refused),
        TEMP_TEST(test_events__restarts_are_joined_by_time),
        TEMP_TEST(test_events__several_runs_in_a_folder_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
