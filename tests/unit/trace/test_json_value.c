/* One record's JSON: what is read, what is refused, what counts as the same data. */
#include "temp_tools.h"

#include "trace/json_value.h"

/* Parse a copy; the caller releases text and copy. */
static bool parse(struct gcmp_jv_text *text, char **copy, const char *json, bool nan) {
    assert_true(gcmp_jv_init(text, nan));
    *copy = strdup(json);
    return gcmp_jv_parse(text, *copy, strlen(json));
}

static void assert_refused(const char *json, const char *fault) {
    struct gcmp_jv_text text;
    char *copy;
    assert_false(parse(&text, &copy, json, false));
    assert_text_contains(text.fault, fault);
    gcmp_jv_release(&text);
    free(copy);
}

static void test_parse__values_are_found_by_key(void **state) {
    (void)state;
    struct gcmp_jv_text text;
    char *copy;
    int64_t count;
    assert_true(parse(&text, &copy,
                      "{\"a\":[1,{\"b\":-2}],\"c\":\"x\\u00e9\\ud83d\\ude00\\n\","
                      "\"d\":18446744073709551615,\"e\":1.5e3}",
                      false));
    uint32_t list = gcmp_jv_get(&text, 0, "a");
    assert_true(gcmp_jv_is(&text, list, GCMP_JV_ARRAY));
    assert_true(gcmp_jv_count(&text, gcmp_jv_first(list), &count));
    assert_int_equal(count, 1);
    uint32_t inner = gcmp_jv_next(&text, gcmp_jv_first(list));
    assert_false(gcmp_jv_count(&text, gcmp_jv_get(&text, inner, "b"), &count));
    assert_string_equal(gcmp_jv_string(&text, gcmp_jv_get(&text, 0, "c")),
                        "x\xc3\xa9\xf0\x9f\x98\x80\n");
    assert_true(text.values[gcmp_jv_get(&text, 0, "d")].of.magnitude == UINT64_MAX);
    assert_true(gcmp_jv_number(&text, gcmp_jv_get(&text, 0, "e")) == 1500.0);
    assert_int_equal(gcmp_jv_get(&text, 0, "f"), GCMP_JV_ABSENT);
    gcmp_jv_release(&text);
    free(copy);
}

static void test_parse__what_is_no_json_is_refused(void **state) {
    (void)state;
    assert_refused("{\"a\":1,\"a\":2}", "twice");
    assert_refused("{\"a\":1,\"\\u0061\":2}", "twice");
    assert_refused("{\"a\":18446744073709551616}", "64 bits");
    assert_refused("[1e999]", "binary64");
    assert_refused("[01]", "no JSON");
    assert_refused("[1.]", "no JSON");
    assert_refused("[NaN]", "NaN");
    assert_refused("[\"\\u0000\"]", "NUL");
    assert_refused("[\"\xff\"]", "UTF-8");
    assert_refused("[\"\xed\xa0\x80\"]", "UTF-8");
    assert_refused("[\"\\ud800\"]", "surrogate");
    assert_refused("[\"\\x\"]", "escape");
    assert_refused("[\"a\tb\"]", "control");
    assert_refused("[1,]", "value");
    assert_refused("{\"a\" 1}", "colon");
    assert_refused("[1 2]", "comma");
    assert_refused("1 2", "follows");
    assert_refused("", "value");
}

static void test_parse__depth_past_the_limit_is_refused(void **state) {
    (void)state;
    char deep[2 * (GCMP_JV_MAX_DEPTH + 1) + 1];
    memset(deep, '[', GCMP_JV_MAX_DEPTH + 1);
    memset(deep + GCMP_JV_MAX_DEPTH + 1, ']', GCMP_JV_MAX_DEPTH + 1);
    deep[sizeof deep - 1] = '\0';
    assert_refused(deep, "64 deep");
    deep[sizeof deep - 2] = '\0'; /* one pair less */
    struct gcmp_jv_text text;
    char *copy;
    assert_true(parse(&text, &copy, deep + 1, false));
    gcmp_jv_release(&text);
    free(copy);
}

static void test_parse__many_keys_are_compared_too(void **state) {
    (void)state;
    char json[40 * 12 + 20] = "{";
    for (int i = 0; i < 40; i++) {
        sprintf(json + strlen(json), "\"k%d\":%d,", i, i);
    }
    strcpy(json + strlen(json), "\"k7\":1}");
    assert_refused(json, "twice");
}

static void test_parse__a_cut_text_is_told_from_a_wrong_one(void **state) {
    (void)state;
    static const char whole[] = "{\"a\":[1,\"b\"],\"c\":null}";
    for (size_t length = 1; length + 1 < sizeof whole; length++) {
        struct gcmp_jv_text text;
        char copy[sizeof whole];
        memcpy(copy, whole, sizeof whole);
        assert_true(gcmp_jv_init(&text, false));
        assert_false(gcmp_jv_parse(&text, copy, length));
        assert_true(text.is_cut);
        gcmp_jv_release(&text);
    }
}

static bool equal(const char *left, const char *right, struct gcmp_jv_difference *difference) {
    struct gcmp_jv_text a;
    struct gcmp_jv_text b;
    char *copy_a;
    char *copy_b;
    assert_true(parse(&a, &copy_a, left, true));
    assert_true(parse(&b, &copy_b, right, true));
    /* The whole text has the index that means absent, so look at the one item of an array. */
    bool same = gcmp_jv_equal(&a, 1, &b, 1);
    if (difference != NULL) {
        gcmp_jv_differ(&a, 1, &b, 1, difference);
    }
    gcmp_jv_release(&a);
    gcmp_jv_release(&b);
    free(copy_a);
    free(copy_b);
    return same;
}

/* Members in reverse order, in objects of all sizes, also within each other. */
static void test_equal__members_come_in_any_order(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static const int sizes[] = {1, 2, 16, 17, 18, 300, MANY};
    char *left = malloc(MANY * 64), *right = malloc(MANY * 64);
    assert_true(left != NULL && right != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int change = 0; change < 3; change++) { /* none, a value within, a key */
            int count = sizes[i], at_a = sprintf(left, "[{"), at_b = sprintf(right, "[{");
            for (int k = 0; k < count; k++) {
                int back = count - 1 - k;
                at_a +=
                    sprintf(left + at_a, "%s\"k%d\":{\"x\":%d,\"y\":[1]}", k > 0 ? "," : "", k, k);
                at_b += sprintf(right + at_b, "%s\"%s%d\":{\"y\":[%d],\"x\":%d}", k > 0 ? "," : "",
                                change == 2 && back == 0 ? "l" : "k", back,
                                change == 1 && back == count / 2 ? 2 : 1, back);
            }
            strcpy(left + at_a, "}]");
            strcpy(right + at_b, "}]");
            assert_int_equal(equal(left, right, NULL), change == 0);
        }
    }
    free(left);
    free(right);
}

static void test_equal__is_of_data_not_of_spelling(void **state) {
    (void)state;
    assert_true(equal("[{\"a\":1,\"b\":[2,null]}]", "[ {\"b\":[2.0, null],\"a\":1} ]", NULL));
    assert_true(equal("[0.1]", "[1e-1]", NULL));
    assert_true(equal("[NaN]", "[NaN]", NULL));
    assert_true(equal("[-0]", "[0]", NULL));
    assert_false(equal("[1]", "[true]", NULL));
    assert_false(equal("[1]", "[\"1\"]", NULL));
    assert_false(equal("[9007199254740993]", "[9007199254740992]", NULL));
    assert_false(equal("[9007199254740993]", "[9007199254740992.0]", NULL));
    assert_false(equal("[9007199254740993.0]", "[9007199254740992.0]", NULL));
    assert_false(equal("[9007199254740993e0]", "[9007199254740992e0]", NULL));
    assert_false(equal("[0.1234567890123456789]", "[0.1234567890123456788]", NULL));
    assert_false(equal("[1e-400]", "[2e-400]", NULL));
    assert_true(equal("[9007199254740993.0]", "[9007199254740993e0]", NULL));
    assert_true(equal("[0.10000000000000001]", "[0.1]", NULL));
    assert_true(equal("[Infinity]", "[Infinity]", NULL));
    assert_false(equal("[Infinity]", "[-Infinity]", NULL));
    assert_false(equal("[{\"a\":1}]", "[{\"a\":1,\"b\":2}]", NULL));
    assert_false(equal("[{\"a\":1}]", "[{\"b\":1}]", NULL));
    assert_false(equal("[[1,2]]", "[[2,1]]", NULL));
    assert_false(equal("[NaN]", "[Infinity]", NULL));
}

static void test_differ__names_the_place_and_both_values(void **state) {
    (void)state;
    struct gcmp_jv_difference difference;
    assert_false(equal("[[{\"shape\":[2,3],\"digest\":\"00\"}]]",
                       "[[{\"shape\":[2,3],\"digest\":\"01\"}]]", &difference));
    assert_string_equal(difference.path, "[0].digest");
    assert_string_equal(difference.a, "00");
    assert_string_equal(difference.b, "01");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse__values_are_found_by_key),
        cmocka_unit_test(test_parse__what_is_no_json_is_refused),
        cmocka_unit_test(test_parse__depth_past_the_limit_is_refused),
        cmocka_unit_test(test_parse__many_keys_are_compared_too),
        cmocka_unit_test(test_parse__a_cut_text_is_told_from_a_wrong_one),
        cmocka_unit_test(test_equal__members_come_in_any_order),
        cmocka_unit_test(test_equal__is_of_data_not_of_spelling),
        cmocka_unit_test(test_differ__names_the_place_and_both_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
