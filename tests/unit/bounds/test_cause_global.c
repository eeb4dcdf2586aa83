/* Causes that concern every gradient. */
#include "bounds/cause_pair.h"

#include "pair_maker.h"

static struct maker maker;
static struct gcmp_cause_facts facts[MAX_PARAMETERS];

/* Every gradient is alpha times the baseline's and a rest; `lucky` parameters agree. */
static void make(double alpha, double rho, size_t lucky) {
    maker_start(&maker);
    maker_fill_model(&maker, 0.002, 0.01);
    for (size_t i = lucky; i < maker.pair.parameter_count; i++) {
        maker_set(&maker.parameters[i], (struct wanted){4096, 1.0, alpha, rho});
    }
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        facts[i] = (struct gcmp_cause_facts){.expert = -1, .sharded = true};
        maker.parameters[i].ndim_a = 2;
    }
    maker_judge(&maker);
}

static const struct gradcmp_cause *conclude(enum gcmp_starts starts, uint64_t microbatches,
                                            uint64_t dp) {
    struct gradcmp_error error = {0};
    struct gcmp_cause_scene scene = {.pair = &maker.pair,
                                     .facts = facts,
                                     .tp = 1,
                                     .dp = 1,
                                     .global = {starts, microbatches, dp},
                                     .start_text = "the weights differ"};
    assert_int_equal(gcmp_cause_conclude(&scene, &maker.arena, &error), GRADCMP_OK);
    return &maker.pair.cause;
}

static void expect(const char *kind, bool has_onset) {
    assert_string_equal(maker.pair.cause.kind, kind);
    assert_int_equal(maker.pair.onset_layer >= 0, has_onset);
    gcmp_arena_free(&maker.arena);
}

static void test_cause_global__other_starts_blame_no_layer(void **state) {
    (void)state;
    make(0.01, 1.0, 0);
    conclude(GCMP_STARTS_DIFFER, 4, 1);
    assert_non_null(strstr(maker.pair.cause.text, "the weights differ (usually another seed"));
    expect("different_start", false);
}

static void test_cause_global__other_data_needs_starts_that_agree(void **state) {
    (void)state;
    make(0.01, 1.0, 0);
    conclude(GCMP_STARTS_AGREE, 4, 1);
    expect("different_data", false);
    make(0.01, 1.0, 0);
    conclude(GCMP_STARTS_UNKNOWN, 4, 1);
    expect("unexplained", true);
}

static void test_cause_global__a_fault_that_reaches_all_is_no_other_data(void **state) {
    (void)state;
    make(0.9, 0.5, 0); /* a wrong forward pass: cosine 0.87 */
    conclude(GCMP_STARTS_AGREE, 4, 1);
    expect("unexplained", true);
    make(0.01, 1.0, 3); /* something agrees */
    conclude(GCMP_STARTS_AGREE, 4, 1);
    expect("unexplained", true);
    make(0.05, 5.0, 0); /* a hundred times the size */
    conclude(GCMP_STARTS_AGREE, 4, 1);
    expect("unexplained", true);
}

static void test_cause_global__last_microbatch_is_one_share_of_all(void **state) {
    (void)state;
    make(0.25, 0.4, 0); /* cosine 0.53, norm 0.47 */
    conclude(GCMP_STARTS_AGREE, 4, 1);
    expect("last_microbatch", false);
    make(0.25, 0.4, 0);
    conclude(GCMP_STARTS_AGREE, 8, 1);
    expect("unexplained", true);
    make(0.25, 0.4, 0);
    conclude(GCMP_STARTS_AGREE, 4, 4); /* or one data-parallel rank of four */
    expect("unexplained", true);
    make(0.25, 2.0, 0); /* longer than any share */
    conclude(GCMP_STARTS_UNKNOWN, 4, 1);
    expect("unexplained", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cause_global__other_starts_blame_no_layer),
        cmocka_unit_test(test_cause_global__other_data_needs_starts_that_agree),
        cmocka_unit_test(test_cause_global__a_fault_that_reaches_all_is_no_other_data),
        cmocka_unit_test(test_cause_global__last_microbatch_is_one_share_of_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
