/* The list of a checkpoint, as text and JSON. */
#include "report/capture.h"
#include "report/sample.h"

#include <jansson.h>

#include "report/ls.h"

static const char *const states[] = {"exp_avg", "param"};
static struct gradcmp_catalogue catalogue;
static struct gradcmp_setting settings[12];

static void make_tensors(struct gcmp_ls_tensor *tensors, bool stats) {
    static const uint64_t matrix[] = {32, 64}, vector[] = {64};
    const struct gcmp_ls_tensor list[] = {{.name = "decoder.layers.0.mlp.linear_fc1.weight",
                                           .state = "exp_avg",
                                           .layer = 1,
                                           .shape = matrix,
                                           .ndim = 2,
                                           .dtype = GRADCMP_DTYPE_FLOAT32,
                                           .pieces = 4,
                                           .copies = 1},
                                          {.name = "decoder.layers.0.mlp.linear_fc1.weight",
                                           .state = "param",
                                           .layer = 1,
                                           .shape = matrix,
                                           .ndim = 2,
                                           .dtype = GRADCMP_DTYPE_BFLOAT16,
                                           .pieces = 4,
                                           .copies = 1},
                                          {.name = "final_\033norm.weight",
                                           .state = "param",
                                           .layer = 9,
                                           .shape = vector,
                                           .ndim = 1,
                                           .dtype = GRADCMP_DTYPE_FLOAT8_E4M3FN,
                                           .pieces = 2,
                                           .copies = 2}};
    memcpy(tensors, list, sizeof list);
    for (size_t i = 0; stats && i < 3; i++) {
        tensors[i].has_stats = true;
        tensors[i].norm = i == 2 ? INFINITY : 0.1 + (double)i;
        tensors[i].max_abs = i == 2 ? NAN : 1e-5;
        memset(tensors[i].sha256, "abc"[i], 64);
        tensors[i].sha256[64] = '\0';
    }
}

static struct gcmp_ls make_list(struct gcmp_ls_tensor *tensors, bool stats) {
    sample_catalogue(&catalogue, settings, 4);
    make_tensors(tensors, stats);
    return (struct gcmp_ls){.path = "ckpt/tp4",
                            .catalogue = &catalogue,
                            .layers = 8,
                            .states = states,
                            .state_count = 2,
                            .tensors = tensors,
                            .tensor_count = 3};
}

static void expect_text(const char *golden, bool stats, const struct gradcmp_ls_options *options) {
    struct gcmp_ls_tensor tensors[3];
    struct gcmp_ls ls = make_list(tensors, stats);
    static const char *notes[] = {"a note of the reader"};
    catalogue.notes = notes;
    catalogue.note_count = 1;
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error;
    assert_int_equal(gcmp_ls_write_text(&ls, options, capture_write, &capture, &error), GRADCMP_OK);
    expect_golden(golden, captured(&capture));
    gcmp_text_free(&capture.text);
}

static void test_ls__text(void **state) {
    (void)state;
    struct gradcmp_ls_options options = GRADCMP_LS_OPTIONS_INIT;
    expect_text("ls.txt", false, &options);
}

static void test_ls__verbose_text_with_figures(void **state) {
    (void)state;
    struct gradcmp_ls_options options = GRADCMP_LS_OPTIONS_INIT;
    options.verbose = 1;
    options.color = 1;
    expect_text("ls_stats.txt", true, &options);
}

static json_t *load(bool stats) {
    struct gcmp_ls_tensor tensors[3];
    struct gcmp_ls ls = make_list(tensors, stats);
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error;
    assert_int_equal(gcmp_ls_write_json(&ls, capture_write, &capture, &error), GRADCMP_OK);
    json_t *document = json_loads(captured(&capture), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    gcmp_text_free(&capture.text);
    return document;
}

static void expect_keys(const json_t *object, const char *const *expected) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        assert_non_null(*expected);
        assert_string_equal(key, *expected++);
    }
    assert_null(*expected);
}

static void test_ls__json_has_the_keys_of_the_schema(void **state) {
    (void)state;
    static const char *const keys[] = {"schema",   "path",   "format",  "parallel", "layers",
                                       "settings", "states", "tensors", NULL};
    static const char *const tensor_keys[] = {"name",   "layer", "state",   "shape",  "dtype",
                                              "pieces", "norm",  "max_abs", "sha256", NULL};
    json_t *document = load(false);
    expect_keys(document, keys);
    const json_t *tensor = json_array_get(json_object_get(document, "tensors"), 0);
    expect_keys(tensor, tensor_keys);
    assert_true(json_is_null(json_object_get(tensor, "norm")));
    assert_true(json_is_null(json_object_get(tensor, "max_abs")));
    assert_true(json_is_null(json_object_get(tensor, "sha256")));
    assert_int_equal(json_integer_value(json_object_get(tensor, "pieces")), 4);
    assert_int_equal(json_array_size(json_object_get(document, "states")), 2);
    json_decref(document);
}

static void test_ls__json_with_figures(void **state) {
    (void)state;
    json_t *document = load(true);
    const json_t *tensors = json_object_get(document, "tensors");
    const json_t *first = json_array_get(tensors, 0), *last = json_array_get(tensors, 2);
    assert_true(json_real_value(json_object_get(first, "norm")) == 0.1);
    assert_int_equal(json_string_length(json_object_get(first, "sha256")), 64);
    assert_string_equal(json_string_value(json_object_get(last, "norm")), "inf");
    assert_true(json_is_null(json_object_get(last, "max_abs")));
    assert_string_equal(json_string_value(json_object_get(last, "name")), "final_\033norm.weight");
    assert_string_equal(json_string_value(json_object_get(last, "dtype")), "float8_e4m3fn");
    json_decref(document);
}

static void test_ls__failed_write_is_an_io_error(void **state) {
    (void)state;
    struct gcmp_ls_tensor tensors[3];
    struct gcmp_ls ls = make_list(tensors, false);
    struct gradcmp_ls_options options = GRADCMP_LS_OPTIONS_INIT;
    struct capture capture = {.text = GCMP_TEXT_INIT, .fail_from_call = 1};
    struct gradcmp_error error;
    assert_int_equal(gcmp_ls_write_text(&ls, &options, capture_write, &capture, &error),
                     GRADCMP_ERROR_IO);
    assert_int_equal(gcmp_ls_write_json(&ls, capture_write, &capture, &error), GRADCMP_ERROR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ls__text),
        cmocka_unit_test(test_ls__verbose_text_with_figures),
        cmocka_unit_test(test_ls__json_has_the_keys_of_the_schema),
        cmocka_unit_test(test_ls__json_with_figures),
        cmocka_unit_test(test_ls__failed_write_is_an_io_error),
    };
    return cmocka_run_group_tests_name("report/ls", tests, NULL, NULL);
}
