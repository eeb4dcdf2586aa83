/* The rules of approximate mode, ratios, options, and the curves of the HTML report. */
#include "sides.h"

#include "base/text.h"

static int setup(void **state) {
    return (*state = temp_dir_make()) == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* CSV of `steps` steps of one metric, 20.0, but `other` at the first `count` steps. */
static void series_file(const char *temp, const char *name, const char *metric, int steps,
                        int count, double other) {
    char text[8192];
    int at = sprintf(text, "step,%s\n", metric);
    for (int step = 1; step <= steps; step++) {
        at += sprintf(text + at, "%d,%.6f\n", step, step <= count ? other : 20.0);
    }
    text_file(temp, name, text);
}

static json_t *approximately(const char *temp, const char *const *tolerances, size_t count) {
    struct gradcmp_metrics_options options = GRADCMP_METRICS_OPTIONS_INIT;
    options.approximate = 1;
    options.tolerances = tolerances;
    options.tolerance_count = count;
    return document_of(compare_with(temp, "a", "b", &options));
}

static void expect(const char *temp, const char *metric, int steps, int count, double other,
                   const char *verdict) {
    series_file(temp, "a", metric, steps, 0, 0);
    series_file(temp, "b", metric, steps, count, other);
    json_t *document = approximately(temp, NULL, 0);
    assert_string_equal(text_of(document, "verdict"), verdict);
    json_decref(document);
}

static void test_approx__one_percent_of_the_steps_may_be_outside(void **state) {
    expect(*state, "lm loss", 24, 24, 21.0, "match"); /* 5% is inside */
    expect(*state, "lm loss", 24, 1, 21.1, "match");
    expect(*state, "lm loss", 24, 2, 21.1, "differ");
    expect(*state, "lm loss", 300, 3, 30, "match");
    expect(*state, "lm loss", 300, 4, 30, "differ");
    expect(*state, "lm loss", 1, 1, 21.1, "differ"); /* none of a single one */
    expect(*state, "num-zeros", 24, 24, 24, "match");
    expect(*state, "num-zeros", 24, 24, 24.1, "differ");
    expect(*state, "grad-norm", 24, 24, 40, "differ"); /* every other metric has 5% too */
}

static void test_approx__times_are_compared_by_a_median_behind_the_warm_up(void **state) {
    expect(*state, "iteration-time", 24, 4, 500, "match");
    expect(*state, "iteration-time", 24, 11, 500, "match"); /* 7 of the 16 in the window */
    expect(*state, "iteration-time", 24, 12, 500, "differ");
    expect(*state, "iteration-time", 60, 29, 500, "match"); /* a longer run: steps 30 to 45 */
    expect(*state, "iteration-time", 60, 40, 500, "differ");
    expect(*state, "iteration_timing_avg", 24, 4, 500, "match");
    expect(*state, "iteration_timing_avg", 24, 12, 500, "differ");
}

static void test_approx__tolerances_are_the_callers(void **state) {
    static const char *const wide[] = {"lm loss=0.5"}, *const tight[] = {"lm_loss=0.001"};
    series_file(*state, "a", "lm loss", 24, 0, 0);
    series_file(*state, "b", "lm loss", 24, 24, 29);
    json_t *document = approximately(*state, wide, 1);
    assert_string_equal(text_of(document, "verdict"), "match");
    json_decref(document);
    series_file(*state, "b", "lm loss", 24, 24, 20.1);
    document = approximately(*state, tight, 1);
    assert_string_equal(text_of(document, "verdict"), "differ");
    json_decref(document);
}

static void test_ratio__is_one_sided_and_judges_times_in_exact_mode(void **state) {
    static const char *const ratios[] = {"iteration-time=1.15"};
    struct gradcmp_metrics_options options = GRADCMP_METRICS_OPTIONS_INIT;
    options.max_ratios = ratios;
    options.max_ratio_count = 1;
    static const double times[] = {22.9, 23.1, 2};
    static const char *const verdicts[] = {"match", "differ", "match"};
    series_file(*state, "a", "iteration-time", 24, 0, 0);
    for (int i = 0; i < 3; i++) {
        series_file(*state, "b", "iteration-time", 24, 24, times[i]);
        json_t *document = document_of(compare_with(*state, "a", "b", &options));
        assert_string_equal(text_of(document, "verdict"), verdicts[i]);
        json_decref(document);
    }
}

static void test_metrics__nothing_judged_is_invalid(void **state) {
    series_file(*state, "a", "iteration-time", 24, 0, 0);
    series_file(*state, "b", "iteration-time", 24, 24, 21);
    json_t *document = compare(*state, "a", "b");
    assert_string_equal(text_of(document, "verdict"), "invalid");
    json_decref(document);
    series_file(*state, "b", "other", 24, 0, 0);
    document = compare(*state, "a", "b");
    assert_string_equal(text_of(document, "verdict"), "invalid");
    json_decref(document);
}

/* Steps of one metric that differ, beside a metric that does not. */
static const char *verdict_on(const char *temp, const char *metric, char *summary, size_t bytes) {
    static char verdict[32];
    char a[2048], b[2048];
    snprintf(a, sizeof a, "step,metric,value\n1,\"%s\",1\n1,same,1\n", metric);
    snprintf(b, sizeof b, "step,metric,value\n1,\"%s\",2\n1,same,1\n", metric);
    text_file(temp, "a", a);
    text_file(temp, "b", b);
    json_t *document = compare(temp, "a", "b");
    snprintf(verdict, sizeof verdict, "%s", text_of(document, "verdict"));
    snprintf(summary, bytes, "%s", text_of(document, "summary"));
    json_decref(document);
    return verdict;
}

static void test_times__are_told_from_losses_by_whole_words(void **state) {
    static const char *const losses[] = {"loss/student",
                                         "train/sequence_loss",
                                         "grad/self_attention",
                                         "val/energy_mae",
                                         "power_law_loss",
                                         "train/score",
                                         "reward/safety",
                                         "first time",
                                         "timing_loss",
                                         "latency-loss",
                                         "throughput loss",
                                         "loss/s",
                                         "val/energy",
                                         "tflops_penalty",
                                         "time",
                                         "loss (s)",
                                         "iteration times",
                                         "tokens/step",
                                         "score per second",
                                         "iteration-time loss",
                                         "throughput/mae",
                                         "timing error avg",
                                         "gpu power rmse",
                                         "latency_ppl",
                                         "tflops/accuracy",
                                         "attention time",
                                         "student_time",
                                         "grad-norm time",
                                         "rewards per second",
                                         "mfu/bleu",
                                         "energy/forces",
                                         "empowered",
                                         "val/energy_mean",
                                         "steps/s/depth",
                                         "loss_avg",
                                         "max"};
    static const char *const times[] = {"iteration-time",
                                        "iteration-time vs samples",
                                        "elapsed time per iteration (ms)",
                                        "throughput",
                                        "throughput per GPU (TFLOP/s/GPU)",
                                        "tokens/s",
                                        "tokens/s/gpu",
                                        "samples/sec",
                                        "forward-backward-time",
                                        "optimizer-copy-to-main-grad-time",
                                        "optimizer-unscale-and-check-inf-time",
                                        "params-all-gather-time",
                                        "energy per GPU (J/iter/GPU)",
                                        "power per GPU (W/GPU)",
                                        "iter-energy/gpu",
                                        "power/gpu",
                                        "train_step_timing in s",
                                        "Train/Samples/elapsed_time_ms_forward",
                                        "train_samples_per_second",
                                        "eval/steps_per_second",
                                        "train_runtime",
                                        "tokens_per_gpu_per_second",
                                        "tflops_per_sec_per_gpu",
                                        "global_step/sec",
                                        "device/batches_per_sec",
                                        "throughput(tps)",
                                        "timing_s/step",
                                        "epoch_time",
                                        "val/latency (ms)",
                                        "iteration_timing_avg",
                                        "timing",
                                        "perf/timing/fetch",
                                        "throughput/device/mfu",
                                        "perf/mfu(%)",
                                        "mfu",
                                        "actor tflops (bf16)",
                                        "latency_p95",
                                        "tokens/s/max",
                                        "step_time_mean",
                                        "power",
                                        "energy",
                                        "gpu_power",
                                        "system.power",
                                        "power (watts)",
                                        "monitor/energy",
                                        "total_energy",
                                        "img/s",
                                        "imgs/s",
                                        "sec/step",
                                        "s/step",
                                        "step (ms/step)",
                                        "tokens_per_sec_avg",
                                        "tokens per sec",
                                        "communication time",
                                        "gpu_time",
                                        "val_time",
                                        "update_time",
                                        "evaluate-time",
                                        "eval-time-time",
                                        "interval-time-time",
                                        "save-checkpoint-non-persistent-time",
                                        "timing_s/reward",
                                        "Iteration time, s",
                                        "power mean",
                                        "perf/mfu_avg",
                                        "system.gpu.0.powerWatts",
                                        "first token time"};
    char summary[400];
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        if (strcmp(verdict_on(*state, losses[i], summary, sizeof summary), "differ") != 0) {
            fail_msg("not judged: %s", losses[i]);
        }
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (strcmp(verdict_on(*state, times[i], summary, sizeof summary), "match") != 0) {
            fail_msg("judged: %s", times[i]);
        }
        assert_non_null(strstr(summary, times[i])); /* the verdict names what it leaves out */
    }
}

static void test_metrics__a_metric_of_one_side_is_a_difference(void **state) {
    text_file(*state, "a", "step,loss,norm\n1,2,3\n");
    text_file(*state, "b", "step,loss\n1,2\n");
    static const char *const orders[][2] = {{"a", "b"}, {"b", "a"}};
    for (int i = 0; i < 2; i++) {
        json_t *document = compare(*state, orders[i][0], orders[i][1]);
        assert_string_equal(text_of(document, "verdict"), "differ");
        json_decref(document);
    }
}

static void test_metrics__spellings_meet_across_kinds(void **state) {
    text_file(*state, "a", "step,lm_loss,Grad-Norm,num zeros,num-zeros\n1,2,3,4,5\n");
    text_file(*state, "b", "{\"lm loss\": [0, 2], \"grad_norm\": [0, 3], \"num-zeros\": [0, 5]}");
    static const char *const orders[][2] = {{"a", "b"}, {"b", "a"}};
    for (int i = 0; i < 2; i++) {
        json_t *document = compare(*state, orders[i][0], orders[i][1]);
        assert_int_equal(json_array_size(json_object_get(document, "metrics")), 3);
        assert_int_equal(json_array_size(json_object_get(document, "only_in_a")), i == 0);
        assert_int_equal(json_array_size(json_object_get(document, "only_in_b")), i == 1);
        json_decref(document);
    }
}

static void test_metrics__notes_take_memory_by_their_number_alone(void **state) {
    enum { METRICS = 4000 };
    char *a = malloc(METRICS * 32), *b = malloc(METRICS * 32);
    assert_true(a != NULL && b != NULL);
    int at_a = sprintf(a, "step,metric,value\n"), at_b = sprintf(b, "%s", a);
    for (int i = 0; i < METRICS; i++) {
        at_a += sprintf(a + at_a, "1,m%d,1\n1,m%d,2\n", i, i); /* disagrees with itself */
        at_b += sprintf(b + at_b, "1,m%d,1\n", i);
    }
    text_file(*state, "a", a);
    text_file(*state, "b", b);
    free(a);
    free(b);
    struct gradcmp_evidence *evidence = compare_with(*state, "a", "b", NULL);
    assert_true(evidence->note_count >= METRICS);
    assert_true(evidence->arena->used_bytes < (size_t)METRICS * 2048);
    gradcmp_evidence_free(evidence);
}

static void test_options__that_make_no_sense_are_usage_errors(void **state) {
    static const char *const bad[] = {"lm loss", "=1", "lm loss=x", "lm loss=-1", "other=1"};
    series_file(*state, "a", "lm loss", 3, 0, 0);
    char *path = temp_path(*state, "a");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gradcmp_metrics_options options = GRADCMP_METRICS_OPTIONS_INIT;
        struct gradcmp_evidence *evidence;
        struct gradcmp_error error = {0};
        options.approximate = 1;
        options.tolerances = &bad[i];
        options.tolerance_count = 1;
        assert_int_equal(gradcmp_metrics(path, path, &options, &evidence, &error),
                         GRADCMP_ERROR_USAGE);
        assert_null(evidence);
        options.approximate = 0; /* a tolerance belongs to approximate mode */
        assert_int_equal(gradcmp_metrics(path, path, &options, &evidence, &error),
                         GRADCMP_ERROR_USAGE);
    }
    free(path);
}

static void test_html__draws_curves_and_escapes_names(void **state) {
    series_file(*state, "a", "<script>", 5, 0, 0);
    series_file(*state, "b", "<script>", 5, 1, 21);
    struct gradcmp_evidence *evidence = compare_with(*state, "a", "b", NULL);
    struct gcmp_text html = GCMP_TEXT_INIT;
    evidence->writers->html(evidence, &html);
    assert_non_null(strstr(html.bytes, "&lt;script&gt;: differ"));
    assert_null(strstr(html.bytes, "<script>"));
    size_t lines = 0;
    for (const char *at = html.bytes; (at = strstr(at, "<polyline")) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines, 3); /* both curves, and their difference */
    gcmp_text_free(&html);
    gradcmp_evidence_free(evidence);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_approx__one_percent_of_the_steps_may_be_outside),
        TEMP_TEST(test_approx__times_are_compared_by_a_median_behind_the_warm_up),
        TEMP_TEST(test_approx__tolerances_are_the_callers),
        TEMP_TEST(test_ratio__is_one_sided_and_judges_times_in_exact_mode),
        TEMP_TEST(test_metrics__nothing_judged_is_invalid),
        TEMP_TEST(test_times__are_told_from_losses_by_whole_words),
        TEMP_TEST(test_metrics__a_metric_of_one_side_is_a_difference),
        TEMP_TEST(test_metrics__spellings_meet_across_kinds),
        TEMP_TEST(test_metrics__notes_take_memory_by_their_number_alone),
        TEMP_TEST(test_options__that_make_no_sense_are_usage_errors),
        TEMP_TEST(test_html__draws_curves_and_escapes_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
