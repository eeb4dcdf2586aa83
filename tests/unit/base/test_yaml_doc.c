#include "base/yaml_doc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static struct gcmp_arena arena;
static struct gradcmp_error error;

static int teardown(void **state) {
    (void)state;
    gcmp_arena_free(&arena);
    memset(&error, 0, sizeof error);
    return 0;
}

static struct gcmp_yaml *parse(const char *text) {
    struct gcmp_yaml *root;
    assert_int_equal(gcmp_yaml_parse(&arena, "f.yaml", text, strlen(text), &root, &error),
                     GRADCMP_OK);
    return root;
}

static void expect_refusal(const char *text, size_t length, enum gradcmp_status code,
                           const char *message) {
    struct gcmp_yaml *root;
    assert_int_equal(gcmp_yaml_parse(&arena, "f.yaml", text, length, &root, &error), code);
    assert_null(root);
    assert_string_equal(error.path, "f.yaml");
    assert_non_null(strstr(error.message, message));
}

static void test_yaml__a_mark_of_utf8_is_no_column(void **state) {
    (void)state;
    struct gcmp_yaml *root = parse("\xef\xbb\xbf"
                                   "a: 1\nb: 2\n");
    assert_int_equal(root->count, 2);
    assert_string_equal(root->keys[0]->text, "a");
    assert_string_equal(gcmp_yaml_get(root, "b")->text, "2");
}

static void test_yaml__mapping_keeps_order_and_lines(void **state) {
    (void)state;
    struct gcmp_yaml *root = parse("b: 1\na:\n  - x\n  - 'y'\n");
    assert_int_equal(root->kind, GCMP_YAML_MAPPING);
    assert_int_equal(root->count, 2);
    assert_string_equal(root->keys[0]->text, "b");
    const struct gcmp_yaml *list = gcmp_yaml_get(root, "a");
    assert_int_equal(list->count, 2);
    assert_int_equal(list->items[1]->line, 4);
    assert_true(list->items[0]->is_plain);
    assert_false(list->items[1]->is_plain);
    assert_null(gcmp_yaml_get(root, "c"));
    assert_null(parse(""));
}

static void test_yaml__merge_keys_yield_to_own_and_earlier_ones(void **state) {
    (void)state;
    struct gcmp_yaml *root = parse("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\n"
                                   "m:\n  <<: [*x, *y]\n  a: 3\nn:\n  <<: *y\n");
    const struct gcmp_yaml *m = gcmp_yaml_get(root, "m");
    assert_int_equal(m->count, 3);
    assert_string_equal(gcmp_yaml_get(m, "a")->text, "3");
    assert_string_equal(gcmp_yaml_get(m, "b")->text, "1");
    assert_string_equal(gcmp_yaml_get(m, "c")->text, "2");
    assert_string_equal(gcmp_yaml_get(gcmp_yaml_get(root, "n"), "b")->text, "2");
}

static void test_yaml__damage_names_the_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"a: 1\nb: 2\na: 3\n", "line 3: key \"a\" is there twice"},
                 {"a: [1\n", "line 2: "},
                 {"a: *b\n", "line 1: an alias names no finished node"},
                 {"a: &b [*b]\n", "line 1: an alias names no finished node"},
                 {"a: 1\n---\nb: 2\n", "line 2: one document is expected"},
                 {"? [1]\n: 2\n", "line 1: a key is expected to be text"},
                 {"a:\n  <<: 5\n", "line 2: << is expected to name mappings"},
                 {"a: \"x\\0y\"\n", "line 1: a NUL inside text"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refusal(cases[i].text, strlen(cases[i].text), GRADCMP_ERROR_CORRUPT,
                       cases[i].message);
    }
    static const char control[] = "a: 1\nb: 2\nc: \001\n", bad_utf8[] = "a: 1\n\nc: \xff\n";
    expect_refusal(control, sizeof control - 1, GRADCMP_ERROR_CORRUPT, "line 3: ");
    expect_refusal(bad_utf8, sizeof bad_utf8 - 1, GRADCMP_ERROR_CORRUPT, "line 3: ");
}

static void test_yaml__many_aliases_are_refused(void **state) {
    (void)state;
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 9; i++) {
        gcmp_text_addf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++) {
            gcmp_text_addf(&text, "*a%d,", i - 1);
        }
        gcmp_text_add(&text, "]\n");
    }
    expect_refusal(text.bytes, text.length_bytes, GRADCMP_ERROR_LIMIT,
                   "aliases stand for too many");
    gcmp_text_free(&text);
}

static void test_yaml__merges_are_counted_as_nodes(void **state) {
    (void)state;
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, "a: &a {");
    for (int i = 0; i < 2000; i++) {
        gcmp_text_addf(&text, "k%d: 1,", i);
    }
    gcmp_text_add(&text, "}\n");
    for (int i = 0; i < 600; i++) {
        gcmp_text_addf(&text, "m%d: {<<: *a}\n", i);
    }
    expect_refusal(text.bytes, text.length_bytes, GRADCMP_ERROR_LIMIT, "too many nodes");
    gcmp_text_free(&text);
}

static void test_yaml__deep_nesting_is_refused(void **state) {
    (void)state;
    char deep[100];
    memset(deep, '[', sizeof deep);
    expect_refusal(deep, sizeof deep, GRADCMP_ERROR_LIMIT, "line 1: nested more than 64 deep");
}

static void test_yaml__scalars_are_read_whole(void **state) {
    (void)state;
    struct gcmp_yaml *root =
        parse("n: 12_000\nq: '12'\nbad: 12x\nr: -1.5e-3\nt: yes\nf: False\nz: ~\nhuge: "
              "99999999999999999999\ninf: 1e999\n");
    uint64_t count;
    double real;
    bool flag;
    assert_true(gcmp_yaml_count(gcmp_yaml_get(root, "n"), &count));
    assert_int_equal(count, 12000);
    assert_false(gcmp_yaml_count(gcmp_yaml_get(root, "q"), &count));
    assert_false(gcmp_yaml_count(gcmp_yaml_get(root, "bad"), &count));
    assert_false(gcmp_yaml_count(gcmp_yaml_get(root, "huge"), &count));
    assert_false(gcmp_yaml_count(gcmp_yaml_get(root, "z"), &count));
    assert_true(gcmp_yaml_real(gcmp_yaml_get(root, "r"), &real));
    assert_true(real == -1.5e-3);
    assert_false(gcmp_yaml_real(gcmp_yaml_get(root, "inf"), &real));
    assert_false(gcmp_yaml_real(gcmp_yaml_get(root, "bad"), &real));
    assert_true(gcmp_yaml_bool(gcmp_yaml_get(root, "t"), &flag) && flag);
    assert_true(gcmp_yaml_bool(gcmp_yaml_get(root, "f"), &flag) && !flag);
    assert_false(gcmp_yaml_bool(gcmp_yaml_get(root, "n"), &flag));
    assert_true(gcmp_yaml_is_null(gcmp_yaml_get(root, "z")));
    assert_false(gcmp_yaml_is_null(gcmp_yaml_get(root, "q")));
}

static void test_yaml__unknown_key_names_the_nearest(void **state) {
    (void)state;
    static const char *const known[] = {"baseline", "candidates", NULL};
    struct gcmp_yaml *root = parse("baseline: a\ncandidate: b\n");
    assert_int_equal(gcmp_yaml_check_keys(root, "f.yaml", "plan", known, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message, "line 2: plan: unknown key \"candidate\"; did you mean "
                                       "\"candidates\"?");
    assert_int_equal(gcmp_yaml_check_keys(parse("baseline: a\n"), "f.yaml", "plan", known, &error),
                     GRADCMP_OK);
    assert_int_equal(gcmp_yaml_check_keys(parse("- a\n"), "f.yaml", "plan", known, &error),
                     GRADCMP_ERROR_CORRUPT);
}

/* 32 bytes a short text, and the list's pointers: a document is millions of them at worst. */
static void test_yaml__texts_take_little_memory(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    struct gcmp_text text = GCMP_TEXT_INIT;
    for (int i = 0; i < COUNT; i++) {
        gcmp_text_addf(&text, "- %d\n", i);
    }
    const struct gcmp_yaml *root = parse(text.bytes);
    assert_int_equal(root->count, COUNT);
    assert_string_equal(root->items[COUNT - 1]->text, "9999");
    assert_int_equal(root->items[COUNT - 1]->line, COUNT);
    assert_in_range(arena.used_bytes, 1, COUNT * (32 + sizeof root) + 1024);
    gcmp_text_free(&text);
}

static void test_yaml__file_that_is_none_fails(void **state) {
    (void)state;
    struct gcmp_yaml *root;
    assert_int_equal(gcmp_yaml_read(&arena, "/nowhere.yaml", &root, &error), GRADCMP_ERROR_IO);
    assert_int_equal(gcmp_yaml_read(&arena, "/", &root, &error), GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "expected a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_yaml__a_mark_of_utf8_is_no_column, teardown),
        cmocka_unit_test_teardown(test_yaml__mapping_keeps_order_and_lines, teardown),
        cmocka_unit_test_teardown(test_yaml__merge_keys_yield_to_own_and_earlier_ones, teardown),
        cmocka_unit_test_teardown(test_yaml__damage_names_the_line, teardown),
        cmocka_unit_test_teardown(test_yaml__many_aliases_are_refused, teardown),
        cmocka_unit_test_teardown(test_yaml__merges_are_counted_as_nodes, teardown),
        cmocka_unit_test_teardown(test_yaml__deep_nesting_is_refused, teardown),
        cmocka_unit_test_teardown(test_yaml__scalars_are_read_whole, teardown),
        cmocka_unit_test_teardown(test_yaml__unknown_key_names_the_nearest, teardown),
        cmocka_unit_test_teardown(test_yaml__texts_take_little_memory, teardown),
        cmocka_unit_test_teardown(test_yaml__file_that_is_none_fails, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
