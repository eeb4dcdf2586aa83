/* JSON read part by part: the same values as in one document, and the same refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_text.h"

enum { BASE = 100, MANY = 5000 };

static struct gcmp_json_text make_text(const char *bytes, size_t count) {
    return (struct gcmp_json_text){bytes, count, "some/file", BASE};
}

/* Read the parts of an object or array into a document. */
static enum gradcmp_status read_parts(struct gcmp_json_parts *parts, json_t *out,
                                      struct gradcmp_error *error) {
    for (;;) {
        bool found;
        json_t *value;
        GCMP_TRY(gcmp_json_parts_next(parts, &found, error));
        if (!found) {
            return gcmp_json_parts_end(parts, error);
        }
        GCMP_TRY(gcmp_json_parts_value(parts, &value, error));
        if (parts->is_object) {
            assert_int_equal(parts->text->bytes[parts->place - BASE], '"');
            assert_int_equal(json_object_set_new(out, parts->name, value), 0);
        } else {
            assert_int_equal(json_array_append_new(out, value), 0);
        }
    }
}

static enum gradcmp_status read_text(const struct gcmp_json_text *text, uint32_t limit,
                                     json_t **out, struct gradcmp_error *error) {
    struct gcmp_json_parts parts;
    enum gradcmp_status status = gcmp_json_parts_open(&parts, text, 0, limit, error);
    *out = parts.is_object ? json_object() : json_array();
    if (status == GRADCMP_OK) {
        status = read_parts(&parts, *out, error);
    }
    gcmp_json_parts_close(&parts);
    return status;
}

/* Every text must be taken or refused as jansson does with the whole of it. */
static void check_same(const char *bytes, size_t count) {
    struct gcmp_json_text text = make_text(bytes, count);
    struct gradcmp_error whole_error, error;
    json_t *whole, *parts;
    memset(&whole_error, 0, sizeof whole_error);
    memset(&error, 0, sizeof error);
    enum gradcmp_status expected = gcmp_json_parse(&text, &whole, &whole_error);
    assert_int_equal(read_text(&text, MANY, &parts, &error), expected);
    /* Behind a number, jansson's document quotes that as well. */
    char *quote = strstr(whole_error.message, "json: unable to decode") == NULL
                      ? NULL
                      : strstr(whole_error.message, " near '");
    if (quote != NULL && strstr(error.message, " near '") == NULL) {
        *quote = '\0';
    }
    assert_string_equal(error.message, whole_error.message);
    assert_int_equal(error.offset_bytes, whole_error.offset_bytes);
    assert_string_equal(error.path, whole_error.path);
    if (expected == GRADCMP_OK) {
        assert_true(json_equal(whole, parts));
    }
    json_decref(whole);
    json_decref(parts);
}

static const char *const texts[] = {
    "{}",
    " { } \n",
    "[]",
    "[1, -2.5e3, \"x\", null, true, [[]], {\"a\": {}}]",
    "{\"a\": 1, \"b\\u00e9\\n\": [1, 2, {\"a\": \"}]\\\"\"}]}",
    "{\"\xc3\xa9\": {\"c\":{\"d\":null}}}\r\n\t ",
    "{",
    "[",
    "{\"a",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{\"a\":1 \"b\":2}",
    "{\"a\" 1}",
    "{\"a\"::1}",
    "{\"a\":}",
    "{a:1}",
    "{1:1}",
    "{,}",
    "[,]",
    "[1,]",
    "[1",
    "[1 2]",
    "[1}",
    "{\"a\":1]",
    "{\"a\":[1}",
    "{\"a\":\"",
    "{\"a\":\"\\q\"}",
    "{\"a\":tru}",
    "{\"a\":01}",
    "{\"a\":1.}",
    "{\"a\":99999999999999999999}",
    "{\"a\":1e999}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"\\u0061 long name, as long as this\":1,\"a long name, as long as this\":2}",
    "{\"a\":{\"b\":1,\"b\":1}}",
    "{\"a\\u0000b\":1}",
    "{\"a\":\"\\u0000\"}",
    "{\"\\ud800\":1}",
    "{\"\xff\":1}",
    "{\"a\":1\xff}",
    "{\xc3\xa9:1}",
    "{\"a\":\"\xff\"}",
    "{\"a\n\":1}",
    "{} x",
    "{}{}",
    "{},",
    "{\"a\":1} \"a string of more than twenty bytes\"",
    "{\"a\":1 \"a string of more than twenty bytes\"}",
};

static void test_parts__are_as_in_one_document(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_same(texts[i], strlen(texts[i]));
    }
}

/* Cut anywhere, and with any byte replaced. */
static void test_parts__of_damaged_texts_are_refused_in_the_same_words(void **state) {
    (void)state;
    static const char good[] = "{\"ab\": [1, 2], \"c\\u00e9\":{\"d\": \"e\"} , \"f\" : -1.5e3}  ";
    static const char other[] = "{}[]\",:\\0-e \xff\n";
    char bytes[sizeof good];
    for (size_t cut = 1; cut < sizeof good; cut++) {
        check_same(good, cut);
    }
    for (size_t at = 1; at < sizeof good - 1; at++) {
        for (size_t i = 0; i < sizeof other - 1; i++) {
            memcpy(bytes, good, sizeof good);
            bytes[at] = other[i];
            check_same(bytes, sizeof good - 1);
        }
    }
}

/* jansson alone reads over a NUL behind a number. */
static void test_parts__nul_is_refused_everywhere(void **state) {
    (void)state;
    static const char good[] = "{\"ab\": [1, 2], \"f\" : -1.5e3 } ";
    char bytes[sizeof good];
    for (size_t at = 1; at < sizeof good - 1; at++) {
        json_t *whole, *parts;
        memcpy(bytes, good, sizeof good);
        bytes[at] = '\0';
        struct gcmp_json_text text = make_text(bytes, sizeof good - 1);
        assert_int_equal(gcmp_json_parse(&text, &whole, NULL), GRADCMP_ERROR_CORRUPT);
        assert_int_equal(read_text(&text, MANY, &parts, NULL), GRADCMP_ERROR_CORRUPT);
        json_decref(parts);
    }
}

static void check_deep(size_t depth, enum gradcmp_status expected) {
    char text[2 * 80];
    json_t *parts;
    struct gradcmp_error error;
    memset(&error, 0, sizeof error);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    struct gcmp_json_text whole = make_text(text, 2 * depth);
    assert_int_equal(read_text(&whole, MANY, &parts, &error), expected);
    if (expected != GRADCMP_OK) {
        assert_string_equal(error.message, "json: more than 64 levels");
        assert_int_equal(error.offset_bytes, BASE + 64);
    }
    json_decref(parts);
}

static void test_parts__count_levels_from_the_text(void **state) {
    (void)state;
    check_deep(64, GRADCMP_OK);
    check_deep(65, GRADCMP_ERROR_LIMIT);
}

/* Names that meet in the table, and one twice among many, however it is spelt. */
static void test_parts__of_many_names_are_told_apart(void **state) {
    (void)state;
    size_t capacity = 32 * MANY, count = 0;
    char *bytes = malloc(capacity);
    for (unsigned i = 0; i < MANY; i++) {
        count += (size_t)snprintf(bytes + count, capacity - count, "%c\"name%u\":%u",
                                  i == 0 ? '{' : ',', i, i);
    }
    bytes[count] = '}';
    check_same(bytes, count + 1);
    json_t *parts;
    struct gradcmp_error error;
    struct gcmp_json_text text = make_text(bytes, count + 1);
    assert_int_equal(read_text(&text, MANY - 1, &parts, &error), GRADCMP_ERROR_LIMIT);
    assert_string_equal(error.message, "json: more than 4999 members in one object");
    json_decref(parts);
    count -= strlen(",\"name4999\":4999");
    count += (size_t)snprintf(bytes + count, capacity - count, ",\"n\\u0061me17\":1}");
    check_same(bytes, count);
    text.count = count;
    assert_int_equal(read_text(&text, MANY, &parts, &error), GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message, "json: duplicate object key near '\"n\\u0061me17\"'");
    json_decref(parts);
    free(bytes);
}

/* Each part has all of a document's bounds to itself, and none more. */
static void test_parts__have_the_bounds_of_a_document(void **state) {
    (void)state;
    enum { HALF = 600000, COUNT = 4 * HALF + 1 }; /* bytes "[[0,0,...0],[0,0,...0]]" */
    char *bytes = malloc(COUNT + 4);
    json_t *parts;
    struct gradcmp_error error;
    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = i % 2 == 0 ? '[' : '0';
    }
    for (size_t i = 2; i < COUNT; i += 2) {
        bytes[i] = ',';
    }
    bytes[COUNT - 1] = ']';
    memmove(bytes + 1, bytes, COUNT);
    bytes[COUNT + 1] = ']';
    memcpy(bytes + 2 * HALF + 1, "],[", 3);
    struct gcmp_json_text text = make_text(bytes, COUNT + 2);
    assert_int_equal(gcmp_json_parse(&text, &parts, &error), GRADCMP_ERROR_LIMIT);
    assert_int_equal(read_text(&text, MANY, &parts, &error), GRADCMP_OK);
    assert_int_equal(json_array_size(parts), 2);
    json_decref(parts);
    memcpy(bytes + 2 * HALF + 1, ",0,", 3);
    assert_int_equal(read_text(&text, MANY, &parts, &error), GRADCMP_ERROR_LIMIT);
    assert_ptr_not_equal(strstr(error.message, "json: more values than are read"), NULL);
    json_decref(parts);
    free(bytes);
}

static void test_parts__refuse_a_string_of_more_than_memory(void **state) {
    (void)state;
    enum { COUNT = (24 << 20) + 8 };
    char *bytes = malloc(COUNT);
    json_t *parts;
    struct gradcmp_error error;
    memset(bytes, 'x', COUNT);
    memcpy(bytes, "{\"", 2);
    struct gcmp_json_text text = make_text(bytes, COUNT);
    assert_int_equal(read_text(&text, MANY, &parts, &error), GRADCMP_ERROR_LIMIT);
    assert_string_equal(error.message, "json: a string of more than 24 MiB");
    assert_int_equal(error.offset_bytes, BASE + 1);
    json_decref(parts);
    memcpy(bytes, "{\"\":\"", 5);
    assert_int_equal(read_text(&text, MANY, &parts, &error), GRADCMP_ERROR_LIMIT);
    assert_int_equal(error.offset_bytes, BASE + 4);
    json_decref(parts);
    free(bytes);
}

/* An object inside of one is read in the same way. */
static void test_parts__may_be_read_by_parts(void **state) {
    (void)state;
    static const char bytes[] = "{\"a\": {\"b\": 1, \"c\": 2} , \"d\": 3}";
    struct gcmp_json_text text = make_text(bytes, sizeof bytes - 1);
    struct gcmp_json_parts outer, inner;
    bool found;
    json_t *value;
    assert_int_equal(gcmp_json_parts_open(&outer, &text, 0, 2, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_json_parts_next(&outer, &found, NULL), GRADCMP_OK);
    assert_true(gcmp_json_begins(&text, outer.at, '{'));
    assert_false(gcmp_json_begins(&text, outer.at, '['));
    assert_int_equal(gcmp_json_parts_open(&inner, &text, outer.at, 2, NULL), GRADCMP_OK);
    for (json_int_t i = 1; i <= 2; i++) {
        assert_int_equal(gcmp_json_parts_next(&inner, &found, NULL), GRADCMP_OK);
        assert_true(found);
        assert_int_equal(gcmp_json_parts_value(&inner, &value, NULL), GRADCMP_OK);
        assert_int_equal(json_integer_value(value), i);
        json_decref(value);
    }
    assert_int_equal(gcmp_json_parts_next(&inner, &found, NULL), GRADCMP_OK);
    assert_false(found);
    outer.at = inner.at;
    gcmp_json_parts_close(&inner);
    assert_int_equal(gcmp_json_parts_next(&outer, &found, NULL), GRADCMP_OK);
    assert_string_equal(outer.name, "d");
    assert_int_equal(gcmp_json_parts_value(&outer, &value, NULL), GRADCMP_OK);
    json_decref(value);
    assert_int_equal(gcmp_json_parts_next(&outer, &found, NULL), GRADCMP_OK);
    assert_false(found);
    assert_int_equal(gcmp_json_parts_end(&outer, NULL), GRADCMP_OK);
    gcmp_json_parts_close(&outer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts__are_as_in_one_document),
        cmocka_unit_test(test_parts__of_damaged_texts_are_refused_in_the_same_words),
        cmocka_unit_test(test_parts__nul_is_refused_everywhere),
        cmocka_unit_test(test_parts__count_levels_from_the_text),
        cmocka_unit_test(test_parts__of_many_names_are_told_apart),
        cmocka_unit_test(test_parts__have_the_bounds_of_a_document),
        cmocka_unit_test(test_parts__refuse_a_string_of_more_than_memory),
        cmocka_unit_test(test_parts__may_be_read_by_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
