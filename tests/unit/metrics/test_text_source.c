/* Golden values, training logs and CSV: what is read, and what is refused. */
#include "sides.h"

static int setup(void **state) {
    return (*state = temp_dir_make()) == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static const char *verdict_of(const char *temp, const char *a, const char *b) {
    static char verdict[32];
    text_file(temp, "a", a);
    text_file(temp, "b", b);
    json_t *document = compare(temp, "a", "b");
    snprintf(verdict, sizeof verdict, "%s", text_of(document, "verdict"));
    json_decref(document);
    return verdict;
}

#define GOLDEN(values)                                                                             \
    "{\"lm loss\": {\"start_step\": 1, \"end_step\": 3, \"step_interval\": 1, \"values\": " values \
    "}}"

static void test_golden__forms_are_the_same_values(void **state) {
    const char *by_step = GOLDEN("{\"1\": 2.5, \"2\": 2.25, \"3\": 2.0}");
    assert_string_equal(verdict_of(*state, by_step, GOLDEN("[2.5, 2.25, 2]")), "match");
    assert_string_equal(
        verdict_of(*state, by_step, "{\"lm loss\": {\"3\": 2, \"2\": 2.25, \"1\": 2.5}}"), "match");
    assert_string_equal(verdict_of(*state, by_step, GOLDEN("[2.5, 2.25, 2.00001]")), "differ");
    assert_string_equal(verdict_of(*state, "{\"x\": [1, 2]}", "{\"x\": [1, 2]}"), "match");
    const char *name = "{\"e \\\" 1e-400 .\": [1e1, -2.5E+0, true]}"; /* a name is no number */
    assert_string_equal(verdict_of(*state, name, name), "invalid");   /* true is no value */
    name = "{\"e \\\" 1e-400 .\": [1e1, -2.5E+0]}";
    assert_string_equal(verdict_of(*state, name, name), "match");
}

static void test_golden__words_are_told_apart(void **state) {
    const char *nan = GOLDEN("{\"1\": 2.5, \"2\": \"nan\"}");
    assert_string_equal(verdict_of(*state, nan, nan), "match");
    assert_string_equal(verdict_of(*state, nan, GOLDEN("{\"1\": 2.5, \"2\": \"inf\"}")), "differ");
    assert_string_equal(verdict_of(*state, nan, GOLDEN("{\"1\": 2.5, \"2\": 1}")), "differ");
    assert_string_equal(verdict_of(*state, nan, GOLDEN("{\"1\": 2.5}")), "match"); /* not sampled */
    assert_string_equal(verdict_of(*state, GOLDEN("{\"1\": 2.5}"), GOLDEN("{\"1\": \"nan\"}")),
                        "differ");
}

static void test_golden__what_is_no_golden_is_invalid(void **state) {
    static const char good[] = GOLDEN("{\"1\": 2.5}");
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "[1, 2]",
        GOLDEN("{\"1\": 2.5, \"1\": 2.5}"),
        GOLDEN("{\"1\": NaN}"),
        GOLDEN("{\"1\": \"2.5\"}"),
        GOLDEN("{\"one\": 2.5}"),
        GOLDEN("{\"01\": 2.5}"),
        GOLDEN("{}"),
        GOLDEN("[]"),
        GOLDEN("{\"-1\": 2}"),
        GOLDEN("{\"1\": true}"),
        GOLDEN("{\"1\": 9007199254740993}"),
        GOLDEN("{\"1\": 9007199254740993.0}"),
        GOLDEN("{\"1\": 1e-400}"),
        GOLDEN("{\"1\": 0.12345678901234567899}"),
        GOLDEN("[1, 2, 3, 4]"),
        GOLDEN("{\"1\": 2.5}") " trailing",
        "{\"0\": {\"input_prompt\": \"x\", \"generated_text\": \"y\"}}",
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4242\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (strcmp(verdict_of(*state, good, bad[i]), "invalid") != 0) {
            fail_msg("not invalid: %s", bad[i]);
        }
    }
}

#define LINE(step, loss)                                                                           \
    " [2026-11-01 10:00:00] iteration " step "/ 24 | consumed samples: 64 | elapsed time per "     \
    "iteration (ms): 100.5 | lm loss: " loss " | grad norm: 0.833 |\n"

static void test_log__prefixes_repeats_and_other_lines_do_not_matter(void **state) {
    const char *plain = LINE("1", "3.770381E+00") LINE("2", "3.688325E+00");
    assert_string_equal(
        verdict_of(*state, plain,
                   "using world size: 2\r\n[default0]:" LINE("       1", "3.770381E+00") "0: " LINE(
                       "1", "3.770381E+00") "saving\n7: " LINE("       2", "3.688325E+00")),
        "match");
    assert_string_equal(
        verdict_of(*state, plain, LINE("1", "3.770381E+00") LINE("2", "3.688326E+00")), "differ");
    assert_string_equal(verdict_of(*state, plain, LINE("1", "3.770381E+00") LINE("2", "nan")),
                        "differ");
}

static void test_log__a_cut_line_is_damage(void **state) {
    static const char *const cuts[] = {" [x] iteration 2/ 24 | lm loss: 1.5 | grad no",
                                       " [x] iteration 2/ 24 | lm loss: 1.5 | grad no\nend\n",
                                       " [2026-11-01 10:00:09] iteration 2/ 24",
                                       " [2026-11-01 10:00:09] iteration 2/",
                                       " [x] iteration 2/ 24 | lm loss: 1.5 |", /* after a field */
                                       " validation loss at iteration 1 on va",
                                       " validation loss at iteration 1 | lm loss value: 1"};
    char text[1024];
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        snprintf(text, sizeof text, "%s%s", LINE("1", "1.0"), cuts[i]);
        if (strcmp(verdict_of(*state, text, LINE("1", "1.0")), "invalid") != 0) {
            fail_msg("not invalid: %s", cuts[i]);
        }
    }
    snprintf(text, sizeof text, "%s%s", LINE("1", "1.0"), LINE("2", "1.5"));
    text[strlen(text) - 1] = '\0'; /* without its newline it is whole */
    assert_string_equal(verdict_of(*state, text, LINE("1", "1.0") LINE("2", "1.5")), "match");
    text_file(*state, "a", LINE("1", "1.0") LINE("2", "1.5"));
    text_file(*state, "b", LINE("1", "2.0") " [x] iteration 2/ 24 | lm loss: 1.5 | grad no");
    json_t *document = compare(*state, "a", "b"), *metric = metric_of(document, "lm loss");
    assert_non_null(strstr(text_of(document, "summary"), "line 2: the line of iteration 2 is cut"));
    assert_int_equal(count_of(metric, "values_differ"), 1); /* what came before is shown */
    json_decref(document);
}

static void test_log__a_last_line_without_its_newline_may_be_whole(void **state) {
    static const char *const ends[] = {
        " [2026-11-01 10:00:00] iteration 2/ 24 | consumed samples: 64 | grad norm: 0.833 |",
        " [after training is done] iteration 24/24", " [after training is done] iteration 24/",
        " [2026-11-01 10:00:09]_iteration 2/"};
    char text[1024], whole[sizeof text + 1];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(text, sizeof text, "%s%s", LINE("1", "1.0"), ends[i]);
        snprintf(whole, sizeof whole, "%s\n", text);
        if (strcmp(verdict_of(*state, whole, text), "match") != 0) {
            fail_msg("not whole: %s", ends[i]);
        }
    }
}

static void test_log__a_cut_line_that_a_restart_wrote_again_is_told(void **state) {
    text_file(*state, "a", LINE("1", "1.0") LINE("2", "1.5"));
    text_file(*state, "b",
              LINE("1", "1.0") " [x] iteration 2/ 24 | lm lo\nrestart 1/2\n" LINE("2", "1.5"));
    json_t *document = compare(*state, "a", "b");
    assert_string_equal(text_of(document, "verdict"), "match");
    const char *note = json_string_value(json_array_get(json_object_get(document, "notes"), 0));
    assert_non_null(strstr(note, "1 iteration line is cut, and whole elsewhere"));
    json_decref(document);
}

static void test_log__a_number_that_is_none_is_damage_and_a_remark_is_not(void **state) {
    static const char good[] = LINE("1", "1.0") LINE("2", "1.5");
    assert_string_equal(verdict_of(*state, good, LINE("1", "1.0") LINE("2", "abc")), "invalid");
    assert_string_equal(verdict_of(*state, good, LINE("1", "abc") LINE("2", "1.5")), "invalid");
    static const char *const unheld[] = {LINE("1", "1e999"), LINE("1", "0.12345678901234567899"),
                                         LINE("1", "None") LINE("2", "-1.5e-999")};
    for (size_t i = 0; i < sizeof unheld / sizeof unheld[0]; i++) {
        assert_string_equal(verdict_of(*state, unheld[i], unheld[i]), "invalid");
    }
    static const char *const never[] = {
        LINE("1", "None"), LINE("1", "1 | router loss: n/a") LINE("2", "2 | router loss: 5 %"),
        LINE("1", "1 | number of samples: 2026-11-01"), LINE("1", "1 | 12 | 1e999")};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        assert_string_equal(verdict_of(*state, never[i], never[i]), "match");
    }
    assert_string_equal(verdict_of(*state, LINE("1", "1.0"), LINE("1", "None")), "differ");
    assert_string_equal(verdict_of(*state,
                                   LINE("1", "1 | odd thing: 3") LINE("2", "1 | odd thing: "),
                                   LINE("1", "1 | odd thing: 3") LINE("2", "1")),
                        "invalid");
    assert_string_equal(verdict_of(*state, LINE("1", "1.0 | stage: train | as it is"),
                                   LINE("1", "1.0 | stage: test")),
                        "match");
}

static void test_log__matches_events_at_printed_digits_only(void **state) {
    struct records events = {0};
    put_version(&events);
    put_simple(&events, 1, "lm loss", 3.77038097F);
    put_simple(&events, 1, "grad-norm", 0.8331F);
    temp_file(*state, "events", events.bytes, events.length_bytes);
    text_file(*state, "log", LINE("1", "3.770381E+00"));
    json_t *document = compare(*state, "events", "log");
    assert_string_equal(text_of(document, "verdict"), "match");
    assert_non_null(strstr(text_of(document, "summary"), "at printed precision"));
    assert_true(
        json_is_true(json_object_get(metric_of(document, "grad-norm"), "printed_precision")));
    json_decref(document);
    text_file(*state, "log", LINE("1", "3.770382E+00"));
    document = compare(*state, "events", "log");
    assert_string_equal(text_of(document, "verdict"), "differ");
    json_decref(document);
}

static void test_csv__quotes_line_ends_separators_and_forms(void **state) {
    const char *plain = "step,loss,grad norm\n1,2.5,0.1\n2,2.25,\n";
    static const char *const same[] = {
        "step,loss,grad norm\r\n1,2.5,0.1\r\n2,2.25,\r\n",
        "\xef\xbb\xbf\"step\",\"loss\",\"grad norm\"\n\"1\",\"2.5\",\"0.1\"\n\n2, 2.25 ,",
        "loss;step;grad norm\n2.5;1;0.1\n2.25;2;\n",
        "step\tgrad norm\tloss\n1\t0.1\t2.5\n2\t\t2.25\n",
        "tag,step,value\nloss,1,2.5\nloss,2,2.25\ngrad norm,1,0.1\n",
        "step,loss,grad norm,Wall time\n1,2.5,0.1,2026-11-01 10:00\n2,2.25,,later\n"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (strcmp(verdict_of(*state, plain, same[i]), "match") != 0) {
            fail_msg("no match: %s", same[i]);
        }
    }
    assert_string_equal(verdict_of(*state, plain, "step,loss,grad norm\n1,2.5,0.1\n2,2.250001,\n"),
                        "differ");
}

static void test_csv__nothing_that_stands_in_a_table_is_passed_over(void **state) {
    static const char *const pairs[][2] = {
        {"step,x,\n1,7,5\n", "step,x,\n1,7,6\n"}, /* a column without a name */
        {"step,x,y\n1,7,\n", "step,x,y\n1,7,6\n"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (int k = 0; k < 2; k++) {
            if (strcmp(verdict_of(*state, pairs[i][k], pairs[i][!k]), "differ") != 0) {
                fail_msg("no difference: %s", pairs[i][k]);
            }
            assert_string_equal(verdict_of(*state, pairs[i][k], pairs[i][k]), "match");
        }
    }
    assert_string_equal(verdict_of(*state, "step,x,\n1,7,\n", "step,x\n1,7\n"), "match");
    assert_string_equal(verdict_of(*state, "step,x\n1,\n", "step,x\n1,\n"), "invalid");
    text_file(*state, "a", "step,metric,value,run,seed\n1,x,7,first,1\n");
    json_t *document = compare(*state, "a", "a");
    const char *note = json_string_value(json_array_get(json_object_get(document, "notes"), 1));
    assert_non_null(strstr(note, "2 columns beside metric, step and value are left out"));
    json_decref(document);
}

static void test_csv__the_first_column_without_a_name_is_an_index(void **state) {
    static const char *const indexed[] = {",step,x\n0,1,7\n1,2,8\n", ",step,x\n5,1,7\n6,2,8\n",
                                          ",step,x\n2026-11-01 10:00:00,1,7\nb,2,8\n",
                                          "\"\",step,x\n,1,7\n,2,8\n",
                                          ",step,metric,value\na,1,x,7\nb,2,x,8\n"};
    for (size_t i = 0; i < sizeof indexed / sizeof indexed[0]; i++) {
        assert_string_equal(verdict_of(*state, indexed[i], "step,x\n1,7\n2,8\n"), "match");
        assert_string_equal(verdict_of(*state, indexed[i], "step,x\n1,7\n2,9\n"), "differ");
        json_t *document = compare(*state, "a", "b");
        const char *note = json_string_value(json_array_get(json_object_get(document, "notes"), 0));
        assert_non_null(strstr(note, "the first column has no name"));
        json_decref(document);
    }
}

/* A sparse table of `steps` steps: at each tenth one a value, from `first` on. */
static void sparse_file(const char *temp, const char *name, int steps, int first, double value) {
    char text[32768];
    int at = sprintf(text, "step,x,y\n");
    for (int step = 1; step <= steps; step++) {
        at += step % 10 != 0 ? sprintf(text + at, "%d,,1\n", step)
                             : sprintf(text + at, "%d,%.1f,1\n", step, step < first ? value : 2.0);
    }
    text_file(temp, name, text);
}

static void test_csv__an_empty_cell_is_no_value(void **state) {
    static const char *const pairs[][2] = {
        {"step,x\n1,\n2,1\n", "step,x\n1,5\n2,1\n"},
        {"step,x\n1,\n2,1\n", "step,x\n2,1\n1,5\n"},
        {"step,metric,value\n1,x,\n2,x,1\n", "step,metric,value\n1,x,5\n2,x,1\n"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_string_equal(verdict_of(*state, pairs[i][1], pairs[i][0]), "differ");
        assert_string_equal(verdict_of(*state, pairs[i][0], pairs[i][1]), "match");
        json_t *document = compare(*state, "a", "b"); /* as for a row that A does not have */
        assert_int_equal(count_of(metric_of(document, "x"), "extra_in_b"), 1);
        json_decref(document);
    }
    struct gradcmp_metrics_options options = GRADCMP_METRICS_OPTIONS_INIT;
    options.approximate = 1;
    sparse_file(*state, "a", 300, 0, 2);
    sparse_file(*state, "b", 300, 21, 3); /* 2 of 30 values, not of 300 steps */
    json_t *document = document_of(compare_with(*state, "a", "b", &options));
    assert_string_equal(text_of(document, "verdict"), "differ");
    json_decref(document);
}

static void test_csv__broken_tables_are_invalid(void **state) {
    static const char *const bad[] = {"step,loss\n1,2.5,3\n",    "step,loss\n1\n",
                                      "step,loss\none,2.5\n",    "step,loss\n1,two\n",
                                      "step,loss\n1,\"2.5\n",    "step,loss\n1,\"2\"5\n",
                                      "step,loss,loss\n1,1,1\n", "step,loss\n",
                                      "loss,norm\n1,2\n",        "step\n1\n",
                                      "step,loss\n1.5,2\n",      "step,loss\n1,0x10\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (strcmp(verdict_of(*state, "step,loss\n1,2.5\n", bad[i]), "invalid") != 0) {
            fail_msg("not invalid: %s", bad[i]);
        }
    }
}

static void test_number__is_read_whole_with_its_last_digit(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
        int place;
    } good[] = {{"3.770381E+00", 3.770381, -6},
                {"1.0", 1, -1},
                {"133", 133, 0},
                {"-.5", -.5, -1},
                {"1.5e3", 1500, 2},
                {"0.10000000000000000555", 0.1, -20},
                {"0e9", 0, -400},
                {"0.000", 0, -3},
                {"3.000000E-04", 3e-4, -10}};
    static const char *const bad[] = {"",
                                      "1.0x",
                                      "0x10",
                                      ".",
                                      "e5",
                                      "1e",
                                      "1e99999",
                                      "--1",
                                      "1 2",
                                      "9007199254740993",
                                      "9007199254740993.0",
                                      "9007199254740993e0",
                                      "1e-400",
                                      "0.12345678901234567899"};
    struct gcmp_metric_point point;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(gcmp_metric_number(good[i].text, strlen(good[i].text), &point));
        assert_true(point.value == good[i].value);
        assert_int_equal(point.place, good[i].place);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(gcmp_metric_number(bad[i], strlen(bad[i]), &point));
    }
    assert_false(gcmp_metric_number("5\0", 2, &point));
}

/* Across kinds of source a number printed with an exponent is as fine as its digits. */
static void test_number__an_exponent_does_not_widen_what_it_matches(void **state) {
    static const struct {
        const char *printed;
        float stored;
        const char *verdict;
    } pairs[] = {{"0e400", 5, "differ"},
                 {"0e9", 5, "differ"},
                 {"0.000000E+00", 4e-7F, "differ"},
                 {"0.000000E+00", 0, "match"},
                 {"0.000", 4e-4F, "match"},
                 {"1e9", 5e8F, "differ"},
                 {"1e9", 9.6e8F, "match"},
                 {"1e9", 1.4e9F, "match"},
                 {"1.000000E-03", 9.99999e-4F, "differ"},
                 {"3.77E+00", 3.7651F, "match"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct records events = {0};
        char text[64];
        put_version(&events);
        put_simple(&events, 1, "loss", pairs[i].stored);
        temp_file(*state, "events", events.bytes, events.length_bytes);
        snprintf(text, sizeof text, "step,loss\n1,%s\n", pairs[i].printed);
        text_file(*state, "table", text);
        json_t *document = compare(*state, "events", "table");
        if (strcmp(text_of(document, "verdict"), pairs[i].verdict) != 0) {
            fail_msg("%s is a %s", pairs[i].printed, text_of(document, "verdict"));
        }
        json_decref(document);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_golden__forms_are_the_same_values),
        TEMP_TEST(test_golden__words_are_told_apart),
        TEMP_TEST(test_golden__what_is_no_golden_is_invalid),
        TEMP_TEST(test_log__prefixes_repeats_and_other_lines_do_not_matter),
        TEMP_TEST(test_log__a_cut_line_is_damage),
        TEMP_TEST(test_log__a_last_line_without_its_newline_may_be_whole),
        TEMP_TEST(test_log__a_cut_line_that_a_restart_wrote_again_is_told),
        TEMP_TEST(test_log__a_number_that_is_none_is_damage_and_a_remark_is_not),
        TEMP_TEST(test_log__matches_events_at_printed_digits_only),
        TEMP_TEST(test_csv__quotes_line_ends_separators_and_forms),
        TEMP_TEST(test_csv__nothing_that_stands_in_a_table_is_passed_over),
        TEMP_TEST(test_csv__the_first_column_without_a_name_is_an_index),
        TEMP_TEST(test_csv__an_empty_cell_is_no_value),
        TEMP_TEST(test_csv__broken_tables_are_invalid),
        TEMP_TEST(test_number__an_exponent_does_not_widen_what_it_matches),
        cmocka_unit_test(test_number__is_read_whole_with_its_last_digit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
