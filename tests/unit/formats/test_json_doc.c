/* JSON texts: what is accepted, and what is refused where. */
#include "temp_tools.h"

#include "formats/json_doc.h"

enum { BASE = 100 };

static enum gradcmp_status parse(const char *bytes, size_t count, json_t **root,
                                 struct gradcmp_error *error) {
    struct gcmp_json_text text = {bytes, count, "some/file", BASE};
    return gcmp_json_parse(&text, root, error);
}

static void check_refused(const char *bytes, size_t count, enum gradcmp_status code, uint64_t at,
                          const char *message) {
    json_t *root;
    struct gradcmp_error error;
    memset(&error, 0, sizeof error);
    assert_int_equal(parse(bytes, count, &root, &error), code);
    assert_null(root);
    assert_int_equal(error.code, code);
    assert_int_equal(error.offset_bytes, BASE + at);
    assert_string_equal(error.path, "some/file");
    assert_text_contains(error.message, message);
}

static void test_parse__values_are_there(void **state) {
    (void)state;
    static const char text[] =
        " {\"a\": [1, 2, 9007199254740993], \"]\\\"{\": \"x\", \"b\": 24e0}\n";
    json_t *root;
    uint64_t sizes[3], size;
    unsigned count;
    assert_int_equal(parse(text, sizeof text - 1, &root, NULL), GRADCMP_OK);
    assert_true(gcmp_json_sizes(json_object_get(root, "a"), sizes, 3, &count));
    assert_int_equal(count, 3);
    assert_int_equal(sizes[2], 9007199254740993);
    assert_false(gcmp_json_sizes(json_object_get(root, "a"), sizes, 2, &count));
    assert_false(gcmp_json_sizes(root, sizes, 3, &count));
    assert_string_equal(json_string_value(json_object_get(root, "]\"{")), "x");
    assert_false(gcmp_json_size(json_object_get(root, "b"), &size)); /* no integer */
    json_decref(root);
}

static void test_size__negative_is_none(void **state) {
    (void)state;
    uint64_t size = 5, sizes[1];
    unsigned count;
    json_t *value = json_integer(-1), *array = json_pack("[i]", -3);
    assert_false(gcmp_json_size(value, &size));
    assert_false(gcmp_json_sizes(array, sizes, 1, &count));
    assert_string_equal(gcmp_json_kind(value), "a negative integer");
    assert_string_equal(gcmp_json_kind(array), "an array");
    assert_string_equal(gcmp_json_kind(NULL), "nothing");
    json_decref(value);
    json_decref(array);
}

static void test_parse__wrong_text_is_refused_at_its_byte(void **state) {
    (void)state;
    check_refused("", 0, GRADCMP_ERROR_CORRUPT, 0, "json: ");
    check_refused("{\"a\": 1", 7, GRADCMP_ERROR_CORRUPT, 7, "json: '}' expected near end of file");
    check_refused("{\"a\": 1, \"a\": 2}", 16, GRADCMP_ERROR_CORRUPT, 12,
                  "json: duplicate object key near '\"a\"'");
    check_refused("{\"a\": \"\xff\"}", 10, GRADCMP_ERROR_CORRUPT, 7, "json: unable to decode byte");
    check_refused("{\"a\\u0000b\": 1}", 15, GRADCMP_ERROR_CORRUPT, 11,
                  "json: NUL byte in object key");
    check_refused("{} x", 4, GRADCMP_ERROR_CORRUPT, 4, "json: end of file expected near 'x'");
    check_refused("99999999999999999999", 20, GRADCMP_ERROR_CORRUPT, 20,
                  "json: too big integer near");
    check_refused("[1,]", 4, GRADCMP_ERROR_CORRUPT, 4, "json: ");
    check_refused("{\"\\ud800\": 1}", 13, GRADCMP_ERROR_CORRUPT, 9, "json: ");
}

static void test_parse__deep_nesting_is_refused(void **state) {
    (void)state;
    char text[2 * 65];
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    check_refused(text, sizeof text, GRADCMP_ERROR_LIMIT, 64, "json: more than 64 levels");
    json_t *root;
    assert_int_equal(parse(text + 1, sizeof text - 2, &root, NULL), GRADCMP_OK);
    json_decref(root);
}

/* An object costs as much as eight other values: the limit is met in a text of 350 KB of "{},",
 * which would be parsed into some 50 MiB. */
static void test_parse__more_values_than_memory_is_refused(void **state) {
    (void)state;
    size_t objects = (1 << 20) / 9 + 1, count = 3 * objects + 1;
    char *text = malloc(count);
    text[0] = '[';
    for (size_t i = 0; i < objects; i++) {
        memcpy(text + 1 + 3 * i, "{},", 3);
    }
    text[count - 1] = ']';
    json_t *root;
    struct gradcmp_error error;
    assert_int_equal(parse(text, count, &root, &error), GRADCMP_ERROR_LIMIT);
    assert_text_contains(error.message, "json: more values than are read (1048576, ");
    assert_in_range(error.offset_bytes, BASE + count - 16, BASE + count);
    free(text);
}

static void check_file_refused(struct gcmp_dir *dir, const char *name, uint64_t limit,
                               enum gradcmp_status code) {
    struct gcmp_json_file file;
    struct gradcmp_error error;
    memset(&error, 0, sizeof error);
    assert_int_equal(gcmp_json_open(dir, name, limit, &file, &error), code);
    assert_text_contains(error.path, name);
    gcmp_json_close(&file);
}

static void test_open__file_is_named_in_errors(void **state) {
    struct gcmp_json_file file;
    struct gcmp_dir *dir;
    temp_file(*state, "good.json", "{\"a\": 1}", 8);
    temp_file(*state, "bad.json", "{\"a\": }", 7);
    assert_int_equal(gcmp_dir_open(*state, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_json_open(dir, "good.json", 8, &file, NULL), GRADCMP_OK);
    assert_int_equal(json_integer_value(json_object_get(file.root, "a")), 1);
    assert_text_contains(file.text.path, "/good.json");
    gcmp_json_close(&file);
    check_file_refused(dir, "bad.json", 100, GRADCMP_ERROR_CORRUPT);
    check_file_refused(dir, "good.json", 7, GRADCMP_ERROR_LIMIT);
    check_file_refused(dir, "none.json", 7, GRADCMP_ERROR_IO);
    gcmp_dir_close(dir);
}

static void test_place__names_are_found_as_whole_strings(void **state) {
    (void)state;
    static const char bytes[] = "{\"abc\": \"b\", \"c\": 1}";
    struct gcmp_json_text text = {bytes, sizeof bytes - 1, "f", BASE};
    assert_int_equal(gcmp_json_place(&text, "abc"), BASE + 1);
    assert_int_equal(gcmp_json_place(&text, "c"), BASE + 13);
    assert_int_equal(gcmp_json_place(&text, "d"), BASE);
    assert_int_equal(gcmp_json_place(&text, "c\": 1}"), BASE);
}

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse__values_are_there),
        cmocka_unit_test(test_size__negative_is_none),
        cmocka_unit_test(test_parse__wrong_text_is_refused_at_its_byte),
        cmocka_unit_test(test_parse__deep_nesting_is_refused),
        cmocka_unit_test(test_parse__more_values_than_memory_is_refused),
        TEMP_TEST(test_open__file_is_named_in_errors),
        cmocka_unit_test(test_place__names_are_found_as_whole_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
