/* Causes and shards in both reports. */
#include "report/capture.h"
#include "report/sample.h"

#include <jansson.h>

static struct sample sample;
static const uint64_t start[] = {0, 32}, extent[] = {32, 32}, origin[] = {0, 0};
static const struct gradcmp_coords writer = {
    .tp = 1, .pp = 0, .ep = -1, .dp = -1, .vp = -1, .etp = -1};
static struct gradcmp_cause twice = {"scale", 2.0, 0.014, "twice the baseline"},
                            above = {"upstream", NAN, NAN, "a layer nearer to the loss fails"},
                            rolled[] = {{"roll", NAN, 0.0, "columns rolled by 1"},
                                        {"one_shard", NAN, 0.02, "1 of 2 parts differs"}};
static struct gradcmp_shard shards[] = {{"__0_0.distcp", NULL, origin, extent, 0.01, false},
                                        {"__1_0.distcp", &writer, start, extent, INFINITY, true}};

static struct gradcmp_parameter_report *give(const char *name, struct gradcmp_cause *causes,
                                             size_t count) {
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    sample_spoil(pair, name, 1.0, 2.0, GRADCMP_VERDICT_FAIL);
    struct gradcmp_parameter_report *parameter = sample_find(pair, name);
    parameter->causes = causes;
    parameter->cause_count = count;
    return parameter;
}

static void spoil(void) {
    sample_init(&sample, 1);
    give("decoder.layers.2.mlp.linear_fc1.weight", &twice, 1);
    give("decoder.layers.2.mlp.linear_fc2.weight", &twice, 1);
    give("decoder.layers.1.mlp.linear_fc1.weight", &above, 1);
    give("decoder.layers.0.mlp.linear_fc1.weight", &above, 1);
    struct gradcmp_parameter_report *parameter =
        give("decoder.layers.0.mlp.linear_fc2.weight", rolled, 2);
    parameter->shards = shards;
    parameter->shard_count = 2;
    sample_conclude(&sample.pairs[0]);
    sample.pairs[0].cause = (struct gradcmp_cause){
        "scale", 2.0, 0.014, "2 parameters of layer 3: twice the baseline (usually)"};
}

static char *text_report(void) {
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error = {0};
    assert_int_equal(
        gradcmp_report_write_text(&sample.report, NULL, capture_write, &capture, &error),
        GRADCMP_OK);
    gcmp_text_add(&capture.text, "");
    return capture.text.bytes;
}

static json_t *json_report(void) {
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error = {0};
    json_error_t trouble;
    assert_int_equal(gradcmp_report_write_json(&sample.report, capture_write, &capture, &error),
                     GRADCMP_OK);
    gcmp_text_add(&capture.text, "");
    json_t *document = json_loads(capture.text.bytes, JSON_REJECT_DUPLICATES, &trouble);
    assert_non_null(document);
    gcmp_text_free(&capture.text);
    return document;
}

static size_t occurrences(const char *text, const char *what) {
    size_t count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

static void test_causes__text_tells_each_once(void **state) {
    (void)state;
    spoil();
    char *text = text_report();
    assert_non_null(strstr(text, "\nCauses\n- scale: 2 parameters of layer 3: twice the baseline "
                                 "(usually); a difference of"));
    assert_int_equal(occurrences(text, "- scale: "), 1);
    assert_non_null(strstr(text, "\n- upstream: 2 parameters of layers 1 to 2: a layer nearer"));
    assert_non_null(strstr(text, "\n- roll: decoder.layers.0.mlp.linear_fc2.weight: columns rolled "
                                 "by 1; no"));
    assert_null(strstr(text, "one_shard"));
    const char *last = strstr(text, "; cause: scale 2 (twice the baseline)\n");
    assert_non_null(last);
    assert_string_equal(strchr(last, '\n'), "\n"); /* on the last line */
    free(text);
}

static void test_causes__unexplained_is_not_dressed_up(void **state) {
    (void)state;
    static struct gradcmp_cause none = {"unexplained", NAN, NAN, "nothing tried explains it"};
    sample_init(&sample, 1);
    give("decoder.layers.2.mlp.linear_fc1.weight", &none, 1);
    sample_conclude(&sample.pairs[0]);
    sample.pairs[0].cause = none;
    char *text = text_report();
    assert_non_null(strstr(text, "; cause: unexplained\n"));
    free(text);
}

static void test_causes__without_one_there_is_no_section(void **state) {
    (void)state;
    sample_init(&sample, 1);
    sample_conclude(&sample.pairs[0]);
    char *text = text_report();
    assert_null(strstr(text, "Causes"));
    assert_null(strstr(text, "cause:"));
    free(text);
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

/* Compact text of a value, for one comparison. */
static void expect_json(const json_t *value, const char *expected) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void test_causes__json_has_them_in_order(void **state) {
    (void)state;
    spoil();
    json_t *document = json_report();
    const json_t *candidate = json_array_get(json_object_get(document, "candidates"), 0);
    expect_json(json_object_get(candidate, "cause"),
                "{\"kind\":\"scale\",\"factor\":2,\"residual\":0.014,\"text\":\"2 parameters of "
                "layer 3: twice the baseline (usually)\"}");
    const json_t *parameter = parameter_of(candidate, "decoder.layers.0.mlp.linear_fc2.weight");
    expect_json(json_object_get(parameter, "causes"),
                "[{\"kind\":\"roll\",\"factor\":null,\"residual\":0,\"text\":\"columns rolled by "
                "1\"},{\"kind\":\"one_shard\",\"factor\":null,\"residual\":0.02,\"text\":\"1 of 2 "
                "parts differs\"}]");
    expect_json(json_object_get(parameter, "shards"),
                "[{\"file\":\"__0_0.distcp\",\"rank\":null,\"start\":[0,0],\"extent\":[32,32],"
                "\"rel\":0.01,\"side\":\"candidate\"},{\"file\":\"__1_0.distcp\",\"rank\":{\"tp\":"
                "1,\"pp\":0},\"start\":"
                "[0,32],\"extent\":[32,32],\"rel\":\"inf\",\"side\":\"baseline\"}]");
    json_decref(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes__text_tells_each_once),
        cmocka_unit_test(test_causes__unexplained_is_not_dressed_up),
        cmocka_unit_test(test_causes__without_one_there_is_no_section),
        cmocka_unit_test(test_causes__json_has_them_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
