/* The terminal report as a whole: golden texts of hand-filled results, and rules of the page. */
#include "report/capture.h"
#include "report/sample.h"

static struct sample sample; /* large; each test fills it anew */

static char *render(const struct gradcmp_text_options *options) {
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error = {0};
    assert_int_equal(
        gradcmp_report_write_text(&sample.report, options, capture_write, &capture, &error),
        GRADCMP_OK);
    assert_string_equal(error.message, "");
    gcmp_text_add(&capture.text, "");
    assert_false(capture.text.failed);
    return capture.text.bytes;
}

static void expect_report(const char *golden, const struct gradcmp_text_options *options) {
    char *text = render(options);
    expect_golden(golden, text);
    free(text);
}

static void spoil_backward(void) {
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    sample_spoil(pair, "decoder.layers.2.mlp.linear_fc2.weight", 1.0, 2.0, GRADCMP_VERDICT_FAIL);
    sample_spoil(pair, "decoder.layers.1.mlp.linear_fc1.weight", 0.07, 1.01, GRADCMP_VERDICT_FAIL);
    sample_spoil(pair, "decoder.layers.1.mlp.linear_fc2.weight", 0.0245, 1.0243,
                 GRADCMP_VERDICT_SCALE);
    sample_conclude(pair);
    pair->jump_layer = pair->onset_layer;
}

static void test_text_report__all_pass_is_consistent(void **state) {
    (void)state;
    sample_init(&sample, 1);
    expect_report("consistent.txt", NULL);
}

static void test_text_report__one_layer_fails_shows_where_and_how_badly(void **state) {
    (void)state;
    sample_init(&sample, 1);
    spoil_backward();
    static const char *notes[] = {
        "decoder.layers.0.self_attention.linear_qkv.weight: 2 copies differ inside the bound, by "
        "0.001 at most, which is what an unordered reduction leaves"};
    sample.pairs[0].notes = notes;
    sample.pairs[0].note_count = 1;
    expect_report("fail.txt", NULL);
}

static void test_text_report__colour_and_utf8_decorate_the_same_words(void **state) {
    (void)state;
    sample_init(&sample, 1);
    spoil_backward();
    struct gradcmp_text_options options = GRADCMP_TEXT_OPTIONS_INIT;
    options.color = 1;
    options.utf8 = 1;
    expect_report("fail_color_utf8.txt", &options);
}

static void test_text_report__verbose_lists_every_parameter(void **state) {
    (void)state;
    sample_init(&sample, 1);
    spoil_backward();
    sample_spoil(&sample.pairs[0], "decoder.layers.5.mlp.linear_fc1.weight", 0.05, 0.99,
                 GRADCMP_VERDICT_UNJUDGED);
    sample_conclude(&sample.pairs[0]);
    struct gradcmp_text_options options = GRADCMP_TEXT_OPTIONS_INIT;
    options.verbose = 1;
    options.width = 110;
    expect_report("fail_verbose.txt", &options);
}

static void test_text_report__every_kind_of_failure_is_explained(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    sample_unpair(sample_find(pair, "decoder.layers.0.mlp.linear_fc1.weight"),
                  GRADCMP_VERDICT_MISSING);
    sample_unpair(sample_find(pair, "decoder.layers.0.mlp.linear_fc2.weight"),
                  GRADCMP_VERDICT_EXTRA);
    struct gradcmp_parameter_report *turned =
        sample_find(pair, "decoder.layers.1.mlp.linear_fc2.weight");
    sample_unpair(turned, GRADCMP_VERDICT_SHAPE);
    turned->shape_b = sample_turned;
    struct gradcmp_parameter_report *copies =
        sample_find(pair, "decoder.layers.2.self_attention.linear_qkv.layer_norm_weight");
    copies->verdict = GRADCMP_VERDICT_CONFLICT;
    copies->copies_conflict = true;
    copies->copies_note = "copy 1 of the candidate (tp 1) is 0.7 from copy 0";
    struct gradcmp_parameter_report *broken =
        sample_find(pair, "decoder.layers.3.mlp.linear_fc1.weight");
    broken->verdict = GRADCMP_VERDICT_NONFINITE;
    broken->tally.nonfinite_b = 3;
    broken->tally.nonfinite_any = 3;
    sample_spoil(pair, "decoder.layers.4.mlp.linear_fc1.weight", INFINITY, NAN,
                 GRADCMP_VERDICT_FAIL);
    sample_find(pair, "decoder.layers.4.mlp.linear_fc1.weight")->norm_b = 0.25;
    sample_spoil(pair, "decoder.layers.6.mlp.linear_fc1.weight", 0.03, 0.9, GRADCMP_VERDICT_FAIL);
    sample_find(pair, "decoder.layers.6.mlp.linear_fc1.weight")->cosine = 0.8;
    sample_spoil(pair, "decoder.layers.6.mlp.linear_fc2.weight", 0.03, 0.0, GRADCMP_VERDICT_FAIL);
    sample_find(pair, "decoder.layers.6.mlp.linear_fc2.weight")->norm_b = 0.0;
    sample_spoil(pair, "decoder.layers.5.mlp.linear_fc1.weight", 0.05, 0.99,
                 GRADCMP_VERDICT_UNJUDGED);
    sample_conclude(pair);
    pair->jump_layer = 3;
    expect_report("every_failure.txt", NULL);
}

static void test_text_report__common_factor_is_said_and_divided_out(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    pair->common_factor = 0.125;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        parameter->rel_common = parameter->rel;
        parameter->rel = 0.875;
        parameter->alpha = 0.125;
    }
    struct gradcmp_parameter_report *bad =
        sample_find(pair, "decoder.layers.2.mlp.linear_fc2.weight");
    bad->verdict = GRADCMP_VERDICT_FAIL;
    bad->rel_common = 0.5;
    bad->ratio = bad->rel_common / bad->bound;
    sample_conclude(pair);
    pair->norm_b = pair->norm_a / 8;
    expect_report("common_factor.txt", NULL);
}

static void test_text_report__differing_runs_and_options_are_marked(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_catalogue *candidate = &sample.stores[0].catalogue;
    candidate->layout_name = "fully_reshardable, in a layout with quite a long name";
    candidate->settings[5].integer = 4321;
    candidate->settings[0].number = 0.9;
    candidate->settings[6].kind = GRADCMP_SETTING_NONE;
    candidate->iteration = 2;
    sample.report.baseline_bound.dtype = GRADCMP_DTYPE_FLOAT32;
    sample.pairs[0].bound.dtype_source = GRADCMP_DTYPE_ASSUMED_STATE;
    struct gradcmp_options *options = &sample.report.options;
    options->allow_iterations = 1;
    options->strict = 1;
    options->verify = -1;
    options->k = 3.5;
    options->vocab = 70;
    options->exclude = "router|\033[31mred";
    options->compat_megatron = 1;
    options->threads = 7;
    sample.pairs[0].bound.constant = true;
    sample.pairs[0].bound.k = 3.5;
    expect_report("marked.txt", NULL);
}

static void test_text_report__undecided_says_what_to_do(void **state) {
    (void)state;
    sample_init(&sample, 1);
    sample.pairs[0].outcome = GRADCMP_OUTCOME_UNDECIDED;
    sample.pairs[0].undecided_reason =
        "float32 is assumed, and 3 parameters fail that would pass in bfloat16; say --dtype bf16";
    char *text = render(NULL);
    assert_non_null(strstr(text,
                           "\nUNDECIDED: float32 is assumed, and 3 parameters fail that would "
                           "pass in bfloat16; say --dtype bf16; worst "));
    free(text);
}

static void test_text_report__unreadable_candidate_shows_file_and_byte(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    pair->outcome = GRADCMP_OUTCOME_ERROR;
    pair->catalogue = NULL;
    pair->parameter_count = 0;
    pair->worst = SIZE_MAX;
    snprintf(pair->error.path, sizeof pair->error.path, "ckpt/tp4/__0_0.distcp");
    snprintf(pair->error.message, sizeof pair->error.message, "record ends behind the file");
    pair->error.offset_bytes = 4096;
    expect_report("error.txt", NULL);
}

static void test_text_report__several_candidates_end_in_a_summary(void **state) {
    (void)state;
    sample_init(&sample, 3);
    struct gradcmp_pair_report *pair = &sample.pairs[1];
    sample_spoil(pair, "embedding.word_embeddings.weight", 0.6, 1.6, GRADCMP_VERDICT_FAIL);
    sample_conclude(pair);
    pair = &sample.pairs[2];
    sample_unpair(sample_find(pair, "decoder.layers.0.mlp.linear_fc1.weight"),
                  GRADCMP_VERDICT_MISSING);
    sample_conclude(pair);
    expect_report("several.txt", NULL);
}

static void test_text_report__trouble_outranks_a_difference(void **state) {
    (void)state;
    sample_init(&sample, 3);
    sample.pairs[0].outcome = GRADCMP_OUTCOME_INCONSISTENT;
    sample.pairs[1].outcome = GRADCMP_OUTCOME_ERROR;
    sample.pairs[1].catalogue = NULL;
    snprintf(sample.pairs[1].error.message, sizeof sample.pairs[1].error.message, "cut short");
    char *text = render(NULL);
    assert_non_null(strstr(text, "\nERROR: of 3 candidates 1 consistent, 1 inconsistent, 1 error; "
                                 "ckpt/pp2: cut short\n"));
    free(text);
}

static void test_text_report__no_finished_candidate_is_no_agreement(void **state) {
    (void)state;
    sample_init(&sample, 0);
    char *text = render(NULL);
    assert_string_equal(text, "VACUOUS: of 0 candidates\n");
    free(text);
}

/* Fail all parameters; return how many entries the list then has. */
static size_t count_entries(unsigned top) {
    sample_init(&sample, 1);
    for (size_t i = 0; i < sample.pairs[0].parameter_count; i++) {
        sample_figures(&sample.pairs[0].parameters[i], 0.5, 1.4, GRADCMP_VERDICT_FAIL);
    }
    sample_conclude(&sample.pairs[0]);
    struct gradcmp_text_options options = GRADCMP_TEXT_OPTIONS_INIT;
    options.top = top;
    char *text = render(&options);
    size_t entries = 0;
    for (const char *at = text; (at = strstr(at, "\n  fail      ")) != NULL; at++) {
        entries++;
    }
    free(text);
    return entries;
}

static void test_text_report__top_limits_the_list(void **state) {
    (void)state;
    assert_int_equal(count_entries(0), 20);
    assert_int_equal(count_entries(3), 3);
    assert_int_equal(count_entries(1000), 42);
}

static size_t columns_of(const char *line, const char *end) {
    size_t columns = 0;
    for (; line < end; line++) {
        columns += ((unsigned char)*line & 0xC0) != 0x80;
    }
    return columns;
}

/* Paths and the last line are never broken; all else must fit. */
static void test_text_report__lines_fit_the_page(void **state) {
    (void)state;
    static const unsigned widths[] = {0, 68, 80, 100, 200};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        sample_init(&sample, 1);
        spoil_backward();
        struct gradcmp_text_options options = GRADCMP_TEXT_OPTIONS_INIT;
        options.width = widths[i];
        options.utf8 = i % 2 == 1;
        char *text = render(&options);
        size_t limit = widths[i] == 0 ? 80 : widths[i];
        const char *line = text;
        for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            bool may_be_long = strncmp(line, "INCONSISTENT: ", 14) == 0;
            if (!may_be_long && columns_of(line, end) > limit) {
                fail_msg("over %zu columns: %.*s", limit, (int)(end - line), line);
            }
        }
        assert_string_equal(line, "");
        free(text);
    }
}

static void test_text_report__hostile_names_reach_no_terminal(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    pair->path = "a\nCONSISTENT: 1";
    pair->parameters[3].name = "decoder.layers.0.\033]0;x\007\xff\xc2\x9b[31m.weight";
    sample_figures(&pair->parameters[3], 0.5, 1.4, GRADCMP_VERDICT_FAIL);
    sample_conclude(pair);
    static const char *notes[] = {"\033[2Jnote"};
    pair->notes = notes;
    pair->note_count = 1;
    char *text = render(NULL);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\007'));
    assert_null(strstr(text, "\nCONSISTENT"));
    assert_non_null(strstr(text, "decoder.layers.0.\\x1b]0;x\\x07\\xff\\xc2\\x9b[31m.weight"));
    free(text);
}

static void test_text_report__failed_write_is_an_io_error(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct capture capture = {.text = GCMP_TEXT_INIT, .fail_from_call = 1};
    struct gradcmp_error error = {0};
    assert_int_equal(
        gradcmp_report_write_text(&sample.report, NULL, capture_write, &capture, &error),
        GRADCMP_ERROR_IO);
    assert_int_equal(error.code, GRADCMP_ERROR_IO);
    assert_string_equal(error.message, "the report could not be written");
    assert_int_equal(capture.calls, 1);
}

static void test_text_report__options_of_an_older_caller_are_taken(void **state) {
    (void)state;
    sample_init(&sample, 1);
    struct gradcmp_text_options options = GRADCMP_TEXT_OPTIONS_INIT;
    options.struct_size = offsetof(struct gradcmp_text_options, utf8);
    options.utf8 = 1; /* beyond what such a caller has */
    char *with = render(&options), *without = render(NULL);
    assert_string_equal(with, without);
    free(with);
    free(without);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_report__all_pass_is_consistent),
        cmocka_unit_test(test_text_report__one_layer_fails_shows_where_and_how_badly),
        cmocka_unit_test(test_text_report__colour_and_utf8_decorate_the_same_words),
        cmocka_unit_test(test_text_report__verbose_lists_every_parameter),
        cmocka_unit_test(test_text_report__every_kind_of_failure_is_explained),
        cmocka_unit_test(test_text_report__common_factor_is_said_and_divided_out),
        cmocka_unit_test(test_text_report__differing_runs_and_options_are_marked),
        cmocka_unit_test(test_text_report__undecided_says_what_to_do),
        cmocka_unit_test(test_text_report__unreadable_candidate_shows_file_and_byte),
        cmocka_unit_test(test_text_report__several_candidates_end_in_a_summary),
        cmocka_unit_test(test_text_report__trouble_outranks_a_difference),
        cmocka_unit_test(test_text_report__no_finished_candidate_is_no_agreement),
        cmocka_unit_test(test_text_report__top_limits_the_list),
        cmocka_unit_test(test_text_report__lines_fit_the_page),
        cmocka_unit_test(test_text_report__hostile_names_reach_no_terminal),
        cmocka_unit_test(test_text_report__failed_write_is_an_io_error),
        cmocka_unit_test(test_text_report__options_of_an_older_caller_are_taken),
    };
    return cmocka_run_group_tests_name("report/text", tests, NULL, NULL);
}
