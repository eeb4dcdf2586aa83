/* The report as JSON: schema 1, key by key. */
#include "report/capture.h"
#include "report/sample.h"

#include <jansson.h>

static struct sample sample;

static char *render(void) {
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error = {0};
    assert_int_equal(gradcmp_report_write_json(&sample.report, capture_write, &capture, &error),
                     GRADCMP_OK);
    gcmp_text_add(&capture.text, "");
    assert_false(capture.text.failed);
    return capture.text.bytes;
}

static json_t *load(void) {
    char *text = render();
    json_error_t trouble;
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &trouble);
    if (document == NULL) {
        fail_msg("%s at line %d", trouble.text, trouble.line);
    }
    free(text);
    return document;
}

/* Keys of an object in the order written (jansson keeps it), joined by spaces. */
static void expect_keys(const json_t *object, const char *expected) {
    struct gcmp_text keys = GCMP_TEXT_INIT;
    const char *key;
    json_t *value;
    gcmp_text_add(&keys, "");
    json_object_foreach((json_t *)object, key, value) {
        gcmp_text_addf(&keys, "%s%s", keys.length_bytes == 0 ? "" : " ", key);
    }
    assert_string_equal(keys.bytes, expected);
    gcmp_text_free(&keys);
}

static json_t *candidate_of(const json_t *document, size_t index) {
    return json_array_get(json_object_get(document, "candidates"), index);
}

static const json_t *parameter_of(const json_t *candidate, const char *name) {
    const json_t *list = json_object_get(candidate, "parameters");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *parameter = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(parameter, "name")), name) == 0) {
            return parameter;
        }
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static void spoil(void) {
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    sample_spoil(pair, "decoder.layers.2.mlp.linear_fc2.weight", 1.0, 2.0, GRADCMP_VERDICT_FAIL);
    sample_spoil(pair, "decoder.layers.2.mlp.linear_fc1.weight", 0.02, 1.02, GRADCMP_VERDICT_SCALE);
    sample_spoil(pair, "decoder.layers.1.mlp.linear_fc1.weight", 0.07, 1.01, GRADCMP_VERDICT_FAIL);
    sample_conclude(pair);
    pair->jump_layer = 3;
}

static void test_json_report__whole_document(void **state) {
    (void)state;
    spoil();
    sample.report.options.k = 3.5;
    sample.report.options.threads = 7;
    sample.report.options.buffer_bytes = 1 << 20;
    static const char *notes[] = {"a note"}, *baseline_notes[] = {"of the baseline"};
    sample.pairs[0].notes = notes;
    sample.pairs[0].note_count = 1;
    sample.baseline.notes = baseline_notes;
    sample.baseline.note_count = 1;
    char *text = render();
    expect_golden("fail.json", text);
    free(text);
}

static void test_json_report__keys_are_those_of_the_schema(void **state) {
    (void)state;
    spoil();
    json_t *document = load();
    expect_keys(document, "schema tool version verdict options baseline candidates");
    expect_keys(json_object_get(document, "baseline"),
                "path format layers dtype dtype_source iteration parallel settings");
    const json_t *candidate = candidate_of(document, 0);
    expect_keys(candidate,
                "path format iteration parallel settings verdict bound summary onset cause notes "
                "parameters");
    expect_keys(json_object_get(candidate, "parallel"), "tp pp vp dp cp ep etp world");
    expect_keys(json_object_get(candidate, "bound"), "k C L eps rule dtype_source");
    expect_keys(
        json_object_get(candidate, "summary"),
        "parameters pass fail scale nonfinite missing extra shape conflict unjudged elements "
        "bytes common_factor norm_a norm_b worst");
    expect_keys(json_object_get(json_object_get(candidate, "summary"), "worst"), "name ratio");
    expect_keys(json_object_get(candidate, "onset"),
                "layer names jump_layer failing passing layers_failing all_layers only growth");
    expect_keys(
        json_array_get(json_object_get(candidate, "parameters"), 0),
        "name layer shape dtype verdict rel rel_common bound ratio alpha alpha_tolerance rho "
        "cos norm_a norm_b max_abs max_index max_ulp equal_bits zeros_a zeros_b nonfinite_a "
        "nonfinite_b causes shards ranks");
    json_decref(document);
}

static void test_json_report__values_are_those_of_the_result(void **state) {
    (void)state;
    spoil();
    json_t *document = load();
    const json_t *candidate = candidate_of(document, 0);
    const char *name = "decoder.layers.2.mlp.linear_fc2.weight";
    const json_t *json = parameter_of(candidate, name);
    const struct gradcmp_parameter_report *parameter = sample_find(&sample.pairs[0], name);
    const struct {
        const char *key;
        double value;
    } figures[] = {{"rel", parameter->rel},
                   {"bound", parameter->bound},
                   {"ratio", parameter->ratio},
                   {"alpha", parameter->alpha},
                   {"rho", parameter->rho},
                   {"alpha_tolerance", parameter->alpha_tolerance},
                   {"cos", parameter->cosine},
                   {"norm_a", parameter->norm_a},
                   {"norm_b", parameter->norm_b},
                   {"max_abs", parameter->tally.max_d},
                   {"max_ulp", 12345},
                   {"zeros_a", 1},
                   {"equal_bits", 2048 / 3},
                   {"zeros_b", 2},
                   {"nonfinite_a", 0},
                   {"nonfinite_b", 0},
                   {"layer", 3}};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        double value = json_number_value(json_object_get(json, figures[i].key));
        if (value != figures[i].value) {
            fail_msg("%s: %.17g, expected %.17g", figures[i].key, value, figures[i].value);
        }
    }
    const json_t *index = json_object_get(json, "max_index"); /* element 2046 of [32, 64] */
    assert_int_equal(json_integer_value(json_array_get(index, 0)), 31);
    assert_int_equal(json_integer_value(json_array_get(index, 1)), 62);
    assert_true(json_is_null(json_object_get(json, "rel_common")));
    assert_true(json_is_null(json_object_get(candidate, "cause")));
    assert_string_equal(text_of(json, "verdict"), "fail");
    assert_string_equal(text_of(document, "verdict"), "inconsistent");
    json_decref(document);
}

static void test_json_report__onset_names_what_fails_in_its_layer(void **state) {
    (void)state;
    spoil();
    json_t *document = load();
    const json_t *onset = json_object_get(candidate_of(document, 0), "onset");
    const json_t *names = json_object_get(onset, "names");
    assert_int_equal(json_integer_value(json_object_get(onset, "layer")), 3);
    assert_int_equal(json_array_size(names), 2);
    assert_string_equal(json_string_value(json_array_get(names, 0)),
                        "decoder.layers.2.mlp.linear_fc1.weight");
    assert_string_equal(json_string_value(json_array_get(names, 1)),
                        "decoder.layers.2.mlp.linear_fc2.weight");
    json_decref(document);
    sample_init(&sample, 1);
    document = load();
    assert_true(json_is_null(json_object_get(candidate_of(document, 0), "onset")));
    assert_string_equal(text_of(document, "verdict"), "consistent");
    json_decref(document);
}

static void test_json_report__cut_vocabulary_shows_the_rows_compared(void **state) {
    (void)state;
    sample_init(&sample, 1);
    json_t *document = load();
    const json_t *embedding =
        parameter_of(candidate_of(document, 0), "embedding.word_embeddings.weight");
    const json_t *shape = json_object_get(embedding, "shape");
    const json_t *index = json_object_get(embedding, "max_index");
    assert_int_equal(json_integer_value(json_array_get(shape, 0)), 70);
    assert_int_equal(json_integer_value(json_array_get(shape, 1)), 32);
    assert_int_equal(json_integer_value(json_array_get(index, 0)), 69);
    assert_int_equal(json_integer_value(json_array_get(index, 1)), 5);
    json_decref(document);
}

static void test_json_report__what_was_not_compared_is_null(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_parameter_report *extra =
        sample_find(&sample.pairs[0], "decoder.layers.0.mlp.linear_fc1.weight");
    sample_unpair(extra, GRADCMP_VERDICT_EXTRA);
    extra->dtype_a = GRADCMP_DTYPE_NONE;
    extra->dtype_b = GRADCMP_DTYPE_BFLOAT16;
    extra->shape_a = NULL;
    extra->ndim_a = 0;
    sample_conclude(&sample.pairs[0]);
    json_t *document = load();
    const json_t *json = parameter_of(candidate_of(document, 0), extra->name);
    static const char *const nulls[] = {
        "rel",        "rel_common", "bound",   "ratio",       "alpha",       "rho",
        "cos",        "norm_a",     "norm_b",  "max_abs",     "max_index",   "max_ulp",
        "equal_bits", "zeros_a",    "zeros_b", "nonfinite_a", "nonfinite_b", "alpha_tolerance"};
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        if (!json_is_null(json_object_get(json, nulls[i]))) {
            fail_msg("%s is not null", nulls[i]);
        }
    }
    assert_string_equal(text_of(json, "verdict"), "extra");
    assert_string_equal(text_of(json, "dtype"), "bfloat16");
    assert_int_equal(json_array_size(json_object_get(json, "shape")), 2);
    assert_int_equal(json_array_size(json_object_get(json, "causes")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "shards")), 0);
    json_decref(document);
}

static void test_json_report__scaled_reading_is_scaled_back(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_parameter_report *parameter = &sample.pairs[0].parameters[1];
    parameter->tally.max_d = 0.75;
    parameter->scale_a_log2 = parameter->scale_b_log2 = 600;
    json_t *document = load();
    const json_t *json = parameter_of(candidate_of(document, 0), parameter->name);
    double max_abs = json_number_value(json_object_get(json, "max_abs"));
    assert_true(max_abs == ldexp(0.75, -600));
    json_decref(document);
}

static void test_json_report__infinite_ratio_is_a_string(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    sample_spoil(pair, "embedding.word_embeddings.weight", INFINITY, NAN, GRADCMP_VERDICT_FAIL);
    sample_conclude(pair);
    json_t *document = load();
    const json_t *candidate = candidate_of(document, 0);
    const json_t *json = parameter_of(candidate, "embedding.word_embeddings.weight");
    assert_string_equal(text_of(json, "rel"), "inf");
    assert_string_equal(text_of(json, "ratio"), "inf");
    assert_true(json_is_null(json_object_get(json, "alpha")));
    assert_string_equal(
        text_of(json_object_get(json_object_get(candidate, "summary"), "worst"), "ratio"), "inf");
    json_decref(document);
}

static void test_json_report__unreadable_candidate_has_an_error_instead(void **state) {
    (void)state;
    sample_init(&sample, 2);
    struct gradcmp_pair_report *pair = &sample.pairs[1];
    pair->outcome = GRADCMP_OUTCOME_ERROR;
    pair->catalogue = NULL;
    snprintf(pair->error.path, sizeof pair->error.path, "ckpt/pp2/__0_0.distcp");
    snprintf(pair->error.message, sizeof pair->error.message, "cut short");
    pair->error.offset_bytes = 4096;
    json_t *document = load();
    const json_t *candidate = candidate_of(document, 1);
    assert_string_equal(text_of(document, "verdict"), "error");
    expect_keys(candidate, "path format iteration parallel settings verdict error");
    assert_true(json_is_null(json_object_get(candidate, "format")));
    const json_t *error = json_object_get(candidate, "error");
    expect_keys(error, "file offset message");
    assert_string_equal(text_of(error, "file"), "ckpt/pp2/__0_0.distcp");
    assert_int_equal(json_integer_value(json_object_get(error, "offset")), 4096);
    json_decref(document);
    pair->error.offset_bytes = GRADCMP_NO_OFFSET;
    pair->error.path[0] = '\0';
    document = load();
    error = json_object_get(candidate_of(document, 1), "error");
    assert_true(json_is_null(json_object_get(error, "offset")));
    assert_true(json_is_null(json_object_get(error, "file")));
    json_decref(document);
}

static void test_json_report__options_are_those_that_are_not_default(void **state) {
    (void)state;
    sample_init(&sample, 1);
    json_t *document = load();
    expect_keys(json_object_get(document, "options"), "");
    json_decref(document);
    struct gradcmp_options *options = &sample.report.options;
    *options = (struct gradcmp_options){.state = "param",
                                        .match = "mlp",
                                        .exclude = "router",
                                        .dtype = GRADCMP_DTYPE_BFLOAT16,
                                        .k = 5.0,
                                        .C = 1.05,
                                        .max_bound = 0.5,
                                        .vocab = UINT64_MAX >> 1,
                                        .layers = 9,
                                        .iteration = 0,
                                        .threads = 3,
                                        .buffer_bytes = 99,
                                        .compat_megatron = 1,
                                        .strict = 1,
                                        .verify = 1,
                                        .allow_same = 1,
                                        .allow_iterations = 1};
    document = load();
    const json_t *json = json_object_get(document, "options");
    expect_keys(json,
                "state match exclude dtype k C max_bound compat vocab layers iteration strict "
                "verify allow_same allow_iterations");
    assert_string_equal(text_of(json, "dtype"), "bfloat16");
    assert_true(json_integer_value(json_object_get(json, "vocab")) == INT64_MAX);
    assert_int_equal(json_integer_value(json_object_get(json, "iteration")), 0);
    assert_true(json_is_true(json_object_get(json, "verify")));
    json_decref(document);
    options->verify = -1;
    document = load();
    assert_true(json_is_false(json_object_get(json_object_get(document, "options"), "verify")));
    json_decref(document);
}

static void test_json_report__reason_of_undecided_is_the_first_note(void **state) {
    (void)state;
    sample_init(&sample, 1);
    static const char *notes[] = {"another"};
    sample.pairs[0].outcome = GRADCMP_OUTCOME_UNDECIDED;
    sample.pairs[0].undecided_reason = "say --dtype bf16";
    sample.pairs[0].notes = notes;
    sample.pairs[0].note_count = 1;
    json_t *document = load();
    const json_t *list = json_object_get(candidate_of(document, 0), "notes");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_array_get(list, 0)), "say --dtype bf16");
    assert_string_equal(text_of(document, "verdict"), "undecided");
    json_decref(document);
}

static void test_json_report__no_finished_candidate_is_no_agreement(void **state) {
    (void)state;
    sample_init(&sample, 0);
    json_t *document = load();
    assert_string_equal(text_of(document, "verdict"), "vacuous");
    assert_int_equal(json_array_size(json_object_get(document, "candidates")), 0);
    json_decref(document);
}

/* A report of 100,000 parameters is passed on in pieces, never held whole. */
static void test_json_report__large_report_streams(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    struct gradcmp_parameter_report *many = malloc(COUNT * sizeof *many);
    assert_non_null(many);
    for (size_t i = 0; i < COUNT; i++) {
        many[i] = pair->parameters[i % pair->parameter_count];
    }
    pair->parameters = many;
    pair->parameter_count = COUNT;
    struct capture capture = {.only_counts = true};
    struct gradcmp_error error;
    assert_int_equal(gradcmp_report_write_json(&sample.report, capture_write, &capture, &error),
                     GRADCMP_OK);
    assert_true(capture.total_bytes > COUNT * (size_t)500);
    assert_true(capture.largest_bytes < 128 * 1024);
    assert_true(capture.calls > 100);
    free(many);
}

static void test_json_report__failed_write_stops_and_is_an_io_error(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct capture capture = {.text = GCMP_TEXT_INIT, .fail_from_call = 1};
    struct gradcmp_error error = {0};
    assert_int_equal(gradcmp_report_write_json(&sample.report, capture_write, &capture, &error),
                     GRADCMP_ERROR_IO);
    assert_int_equal(capture.calls, 1);
    assert_string_equal(error.message, "the report could not be written");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_report__whole_document),
        cmocka_unit_test(test_json_report__keys_are_those_of_the_schema),
        cmocka_unit_test(test_json_report__values_are_those_of_the_result),
        cmocka_unit_test(test_json_report__onset_names_what_fails_in_its_layer),
        cmocka_unit_test(test_json_report__cut_vocabulary_shows_the_rows_compared),
        cmocka_unit_test(test_json_report__what_was_not_compared_is_null),
        cmocka_unit_test(test_json_report__scaled_reading_is_scaled_back),
        cmocka_unit_test(test_json_report__infinite_ratio_is_a_string),
        cmocka_unit_test(test_json_report__unreadable_candidate_has_an_error_instead),
        cmocka_unit_test(test_json_report__options_are_those_that_are_not_default),
        cmocka_unit_test(test_json_report__reason_of_undecided_is_the_first_note),
        cmocka_unit_test(test_json_report__no_finished_candidate_is_no_agreement),
        cmocka_unit_test(test_json_report__large_report_streams),
        cmocka_unit_test(test_json_report__failed_write_stops_and_is_an_io_error),
    };
    return cmocka_run_group_tests_name("report/json_report", tests, NULL, NULL);
}
