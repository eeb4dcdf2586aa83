/* The documents: every one of comparisons, findings and evidence. */
#include "report/capture.h"
#include "report/sample.h"

#include "base/arena.h"
#include "gradcmp/sys/evidence.h"
#include "report/groups.h"
#include "report/json.h"
#include "report/page.h"

typedef enum gradcmp_status (*report_writer)(const struct gradcmp_report *report,
                                             const struct gradcmp_document_options *options,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error);
static const report_writer report_writers[] = {
    gradcmp_report_write_html, gradcmp_report_write_junit, gradcmp_report_write_markdown,
    gradcmp_report_write_annotations};
enum { WRITERS = 4, HTML = 0, JUNIT, MARKDOWN, ANNOTATIONS };

static struct sample sample;

static void spoil(void) {
    sample_init(&sample, 1);
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    static double cells[6 * 5];
    for (size_t i = 0; i < 30; i++) {
        cells[i] = i % 5 == 4 ? 2.0 : 0.0;
    }
    sample_spoil(pair, "decoder.layers.2.mlp.linear_fc2.weight", 1.0, 2.0, GRADCMP_VERDICT_FAIL);
    sample_find(pair, "decoder.layers.2.mlp.linear_fc2.weight")->heat =
        (struct gradcmp_heat){6, 5, cells};
    sample_spoil(pair, "decoder.layers.1.mlp.linear_fc1.weight", 0.0, 1.0,
                 GRADCMP_VERDICT_UNJUDGED);
    sample_unpair(sample_find(pair, "decoder.layers.0.mlp.linear_fc1.weight"),
                  GRADCMP_VERDICT_MISSING);
    sample_conclude(pair);
}

static char *render(report_writer writer, const struct gradcmp_document_options *options) {
    struct capture capture = {.text = GCMP_TEXT_INIT};
    struct gradcmp_error error = {0};
    assert_int_equal(writer(&sample.report, options, capture_write, &capture, &error), GRADCMP_OK);
    captured(&capture);
    return capture.text.bytes;
}

static size_t count(const char *text, const char *what) {
    size_t found = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        found++;
    }
    return found;
}

static void test_documents__goldens(void **state) {
    (void)state;
    static const char *const names[] = {NULL, "fail.junit.xml", "fail.md", "fail.annotations.txt"};
    spoil();
    for (size_t i = 0; i < WRITERS; i++) {
        if (names[i] != NULL) {
            char *text = render(report_writers[i], NULL);
            expect_golden(names[i], text);
            free(text);
        }
    }
}

static void test_documents__page_has_each_parameter_once(void **state) {
    (void)state;
    spoil();
    char *text = render(report_writers[HTML], NULL);
    size_t parameters = sample.pairs[0].parameter_count;
    assert_int_equal(count(text, "<tr data-v="), parameters);
    assert_int_equal(count(text, "<circle class=\"p\""), parameters - 3);
    assert_int_equal(count(text, "<circle class=\"u\""), 1);
    assert_int_equal(count(text, "<path class=\"f\""), 1); /* what is missing has no error */
    assert_int_equal(count(text, "class=\"fault\""), 2);
    assert_int_equal(count(text, "<img class=\"heat\""), 1);
    assert_int_equal(count(text, "data:image/png;base64,"), 2); /* the map and its legend */
    assert_non_null(strstr(text, "1 without an error of their own"));
    assert_non_null(strstr(text, "<pre id=\"command\">gradcmp compare ckpt/base ckpt/tp4</pre>"));
    free(text);
}

static void test_documents__rows_and_faults_are_bounded_and_told(void **state) {
    (void)state;
    spoil();
    struct gradcmp_document_options options = GRADCMP_DOCUMENT_OPTIONS_INIT;
    options.top = 1;
    options.rows = 3;
    char *text = render(report_writers[HTML], &options);
    assert_int_equal(count(text, "<tr data-v="), 3);
    assert_int_equal(count(text, "class=\"fault\""), 1);
    assert_non_null(strstr(text, "The worst 3 of 42 parameters; the JSON has all."));
    assert_non_null(strstr(text, "1 more failing parameters are in the table of all."));
    free(text);
    text = render(report_writers[MARKDOWN], &options);
    assert_non_null(strstr(text, "and 1 more"));
    free(text);
    text = render(report_writers[ANNOTATIONS], &options);
    assert_int_equal(count(text, "::warning "), 1);
    free(text);
}

static void test_documents__several_candidates(void **state) {
    (void)state;
    sample_init(&sample, 4);
    sample_spoil(&sample.pairs[1], "decoder.layers.2.mlp.linear_fc2.weight", 1.0, 2.0,
                 GRADCMP_VERDICT_FAIL);
    sample_conclude(&sample.pairs[1]);
    sample.pairs[2].outcome = GRADCMP_OUTCOME_ERROR;
    snprintf(sample.pairs[2].error.message, sizeof sample.pairs[2].error.message, "broken");
    sample.pairs[3].parameters[0].name = "an.extra.name";
    char *text = render(report_writers[HTML], NULL);
    assert_int_equal(count(text, "<tr data-v="), sample.pairs[0].parameter_count + 1);
    assert_int_equal(count(text, "<tr data-v=\"fail pass\">"), 1);
    assert_int_equal(count(text, "<svg class=\"plot\""), 3);
    assert_int_equal(count(text, "href=\"#candidate"), 4);
    assert_non_null(strstr(text, "4 candidates: 2 consistent, 1 inconsistent, 1 error"));
    free(text);
    text = render(report_writers[JUNIT], NULL);
    assert_non_null(strstr(text, "<error message=\"ckpt/tp2_pp2: broken\" type=\"error\"/>"));
    free(text);
}

static void test_documents__dots_are_bounded_over_all_candidates(void **state) {
    (void)state;
    enum { MANY = 9000 };
    static struct gradcmp_parameter_report many[MANY];
    static char names[MANY][16];
    sample_init(&sample, 1);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "p%05zu", i);
        many[i] = sample.pairs[0].parameters[3];
        many[i].name = names[i];
        many[i].layer = 3;
    }
    sample.pairs[0].parameters = many;
    sample.pairs[0].parameter_count = MANY;
    sample_conclude(&sample.pairs[0]);
    char *text = render(report_writers[HTML], NULL);
    size_t dots = count(text, "<circle class=\"p\"");
    assert_true(dots > 100 && dots <= 6000);
    assert_non_null(strstr(text, "others are not."));
    assert_int_equal(count(text, "<tr data-v="), 5000);
    free(text);
}

static void test_documents__junit_levels_and_strictness(void **state) {
    (void)state;
    spoil();
    struct gradcmp_document_options options = GRADCMP_DOCUMENT_OPTIONS_INIT;
    char *text = render(report_writers[JUNIT], &options);
    assert_int_equal(count(text, "<testcase "), sample.pairs[0].parameter_count + 1);
    assert_int_equal(count(text, "<skipped "), 1);
    assert_int_equal(count(text, "<failure "), 3);
    free(text);
    sample.report.options.strict = 1;
    text = render(report_writers[JUNIT], &options);
    assert_int_equal(count(text, "<skipped "), 0);
    assert_int_equal(count(text, "<failure "), 4);
    free(text);
    sample.report.options.strict = 0;
    options.junit_level = GRADCMP_JUNIT_LAYER;
    text = render(report_writers[JUNIT], &options);
    assert_int_equal(count(text, "<testcase "), SAMPLE_LAYERS + 2 + 1);
    assert_int_equal(count(text, "<failure "), 3);
    free(text);
    options.junit_level = GRADCMP_JUNIT_CANDIDATE;
    text = render(report_writers[JUNIT], &options);
    assert_int_equal(count(text, "<testcase "), 1);
    assert_int_equal(count(text, "<failure "), 1);
    free(text);
}

static void test_documents__every_outcome_is_told(void **state) {
    (void)state;
    static const struct {
        enum gradcmp_outcome outcome;
        const char *junit;
    } cases[] = {{GRADCMP_OUTCOME_UNDECIDED, "errors=\"1\""},
                 {GRADCMP_OUTCOME_VACUOUS, "errors=\"1\""},
                 {GRADCMP_OUTCOME_CONSISTENT, "errors=\"0\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample_init(&sample, 1);
        sample.pairs[0].outcome = cases[i].outcome;
        sample.pairs[0].undecided_reason = "say --dtype";
        char *text = render(report_writers[JUNIT], NULL);
        assert_non_null(strstr(text, cases[i].junit));
        assert_int_equal(count(text, "failures=\"0\""), 2);
        free(text);
    }
}

static void test_documents__hostile_names_are_text(void **state) {
    (void)state;
    spoil();
    struct gradcmp_pair_report *pair = &sample.pairs[0];
    sample_find(pair, "decoder.layers.2.mlp.linear_fc2.weight")->name =
        "</script><script>alert(1)</script>\"'&\x01\xff";
    pair->path = "<svg onload=alert(2)>\n::error::x";
    static const char *notes[] = {"<img src=x>"};
    pair->notes = notes;
    pair->note_count = 1;
    for (size_t i = 0; i < WRITERS; i++) {
        char *text = render(report_writers[i], NULL);
        bool is_markup = i != ANNOTATIONS;
        assert_null(strstr(text, "\x01"));
        assert_null(strstr(text, "\xff"));
        assert_null(strstr(text, "\n::error::x"));
        if (is_markup) {
            assert_null(strstr(text, "alert(1)</"));
            assert_null(strstr(text, "<script>alert"));
            assert_null(strstr(text, "<svg onload"));
            assert_null(strstr(text, "<img src=x"));
        }
        free(text);
    }
}

static void test_documents__failures_of_the_writer_are_told(void **state) {
    (void)state;
    spoil();
    for (size_t i = 0; i < WRITERS; i++) {
        struct capture capture = {.text = GCMP_TEXT_INIT, .fail_from_call = 1};
        struct gradcmp_error error = {0};
        assert_int_equal(report_writers[i](&sample.report, NULL, capture_write, &capture, &error),
                         GRADCMP_ERROR_IO);
        assert_int_equal(error.code, GRADCMP_ERROR_IO);
        gcmp_text_free(&capture.text);
    }
}

static void test_groups__layers_from_the_loss_down(void **state) {
    (void)state;
    struct gcmp_layer_group groups[GCMP_MAX_LAYER_GROUPS];
    sample_init(&sample, 1);
    assert_int_equal(gcmp_layer_groups(&sample.report, groups), SAMPLE_LAYERS + 2);
    assert_string_equal(groups[0].label, "head");
    assert_string_equal(groups[1].label, "layers.7");
    assert_string_equal(groups[SAMPLE_LAYERS + 1].label, "embedding");
    sample.pairs[0].bound.layers = 100; /* nine layers a group; eight have parameters */
    size_t seen = 0, all = gcmp_layer_groups(&sample.report, groups);
    for (size_t i = 0; i < all; i++) {
        seen += gcmp_group_cell(&sample.pairs[0], &groups[i]).count;
    }
    assert_int_equal(seen, sample.pairs[0].parameter_count);
    assert_true(all <= GCMP_MAX_LAYER_GROUPS);
}

/* --- evidence --- */

static void own_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page) {
    gcmp_page_add(page, evidence->summary);
}

static void own_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json) {
    gcmp_emit_text(json, "summary", evidence->summary);
}

static void own_html(const struct gradcmp_evidence *evidence, struct gcmp_text *html) {
    (void)evidence;
    gcmp_text_add(html, "<p id=\"own\">drawn</p>");
}

static const struct gradcmp_evidence_writers writers = {own_text, own_json, own_html};

static void test_documents__evidence(void **state) {
    (void)state;
    struct gradcmp_case cases[] = {
        {"exp_avg", "rank <0>", GRADCMP_CASE_PASS, NULL, NULL, 0},
        {"exp_avg", "rank 1", GRADCMP_CASE_FAIL, "differs & more", "a<b.yaml", 17},
        {"rng", "state", GRADCMP_CASE_SKIPPED, "not there", NULL, 0},
        {"rng", "other", GRADCMP_CASE_ERROR, "unreadable", NULL, 0}};
    const char *paths[] = {"A", "B<"}, *notes[] = {"a note"};
    struct gradcmp_evidence evidence = {.subcommand = "bits",
                                        .verdict = "differs",
                                        .summary = "DIFFERS: in 1 group",
                                        .exit_status = 1,
                                        .paths = paths,
                                        .path_count = 2,
                                        .cases = cases,
                                        .case_count = 4,
                                        .notes = notes,
                                        .note_count = 1,
                                        .writers = &writers};
    struct capture junit = {.text = GCMP_TEXT_INIT}, html = {.text = GCMP_TEXT_INIT},
                   markdown = {.text = GCMP_TEXT_INIT}, lines = {.text = GCMP_TEXT_INIT};
    assert_int_equal(gradcmp_evidence_write_junit(&evidence, NULL, capture_write, &junit, NULL), 0);
    expect_golden("evidence.junit.xml", captured(&junit));
    assert_int_equal(
        gradcmp_evidence_write_markdown(&evidence, NULL, capture_write, &markdown, NULL), 0);
    expect_golden("evidence.md", captured(&markdown));
    assert_int_equal(
        gradcmp_evidence_write_annotations(&evidence, NULL, capture_write, &lines, NULL), 0);
    expect_golden("evidence.annotations.txt", captured(&lines));
    assert_int_equal(gradcmp_evidence_write_html(&evidence, NULL, capture_write, &html, NULL), 0);
    assert_non_null(strstr(captured(&html), "<p id=\"own\">drawn</p>"));
    assert_non_null(strstr(captured(&html), "a&lt;b.yaml:17"));
    assert_int_equal(count(captured(&html), "<tr data-v="), 4);
    gcmp_text_free(&junit.text);
    gcmp_text_free(&html.text);
    gcmp_text_free(&markdown.text);
    gcmp_text_free(&lines.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents__goldens),
        cmocka_unit_test(test_documents__page_has_each_parameter_once),
        cmocka_unit_test(test_documents__rows_and_faults_are_bounded_and_told),
        cmocka_unit_test(test_documents__several_candidates),
        cmocka_unit_test(test_documents__dots_are_bounded_over_all_candidates),
        cmocka_unit_test(test_documents__junit_levels_and_strictness),
        cmocka_unit_test(test_documents__every_outcome_is_told),
        cmocka_unit_test(test_documents__hostile_names_are_text),
        cmocka_unit_test(test_documents__failures_of_the_writer_are_told),
        cmocka_unit_test(test_groups__layers_from_the_loss_down),
        cmocka_unit_test(test_documents__evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
