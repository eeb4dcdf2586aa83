/* The fit: what good pairs add, k, C and margin, floors, and what judges by them. */
#include "pair_maker.h"

#include "bounds/fit.h"

enum { MAX_PAIRS = 4, DEEP = 40 };

static struct maker makers[MAX_PAIRS];

/* Good pairs and their fit. */
struct bench {
    struct gradcmp_pair_report pairs[MAX_PAIRS];
    size_t count;
    struct gcmp_arena arena;
    struct gradcmp_fit fit;
    bool allow_loose;
};

static struct maker *bench_add(struct bench *bench) {
    struct maker *maker = &makers[bench->count++];
    maker_start(maker);
    return maker;
}

static void bench_measure(struct bench *bench) {
    struct gradcmp_error error = {0};
    for (size_t i = 0; i < bench->count; i++) {
        (void)maker_judge(&makers[i]);
        bench->pairs[i] = makers[i].pair;
    }
    struct gcmp_fit_input input = {bench->pairs, bench->count, bench->allow_loose};
    memset(&bench->fit, 0, sizeof bench->fit);
    assert_int_equal(gcmp_fit_measure(&input, &bench->arena, &bench->fit, &error), GRADCMP_OK);
}

static void bench_end(struct bench *bench) {
    for (size_t i = 0; i < bench->count; i++) {
        maker_end(&makers[i]);
    }
    gcmp_arena_free(&bench->arena);
}

/* A deep model of three parameters a layer; noise of `eps` times eps at the loss that grows by
 * `growth` a layer. */
static void fill_deep(struct maker *maker, double eps, double growth) {
    static const char *const kinds[] = {"fc1", "fc2", "norm"};
    char name[64];
    maker->pair.bound.layers = DEEP;
    for (int layer = 0; layer < DEEP; layer++) {
        for (int kind = 0; kind < 3; kind++) {
            snprintf(name, sizeof name, "layers.%02d.%s", layer, kinds[kind]);
            double share = 0.6 + 0.2 * kind;
            maker_put(maker, name, layer + 1, 1.0,
                      share * eps * pow(growth, DEEP - layer) * EPS_BF16);
        }
    }
}

/* Judge the maker's parameters by the fit. */
static enum gradcmp_outcome judge_by(struct maker *maker, const struct gradcmp_fit *fit) {
    struct gradcmp_error error = {0};
    gcmp_bound_init(&maker->pair.bound, &maker->options);
    gcmp_fit_apply(fit, &maker->pair.bound);
    assert_int_equal(gcmp_judge_pair(&maker->pair, &maker->options, &maker->arena, &error),
                     GRADCMP_OK);
    return maker->pair.outcome;
}

static void assert_nowhere_looser(const struct gradcmp_fit *fit) {
    for (int64_t layer = 0; layer <= (int64_t)fit->layer_count + 1; layer++) {
        assert_true(gcmp_fit_bound_eps(fit, layer) <=
                    gcmp_fit_theory_eps(fit, layer) * (1 + 1e-12));
    }
}

static void test_fit__growth_and_envelope_come_from_the_noise(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 0.9, 1.01);
    bench_measure(&bench);
    assert_false(gcmp_fit_is_void(&bench.fit));
    assert_int_equal(bench.fit.pairs[0].standing, GRADCMP_FIT_COUNTS);
    assert_near(bench.fit.C, 1.01, 1e-9);
    assert_near(bench.fit.margin, 2.0, 1e-12);
    assert_near(bench.fit.k, 2.0 * 0.9, 1e-9); /* the norm's share is 1 */
    assert_nowhere_looser(&bench.fit);
    assert_int_equal(bench.fit.layer_row_count, DEEP);
    assert_int_equal(bench.fit.layers[0].layer, DEEP);
    assert_near(bench.fit.layers[0].worst, 0.9 * 1.01, 1e-9);
    assert_near(bench.fit.layers[0].median, 0.8 * 0.9 * 1.01, 1e-9);
    bench_end(&bench);
}

static void test_fit__margin_shrinks_with_pairs_but_covers_their_spread(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 1.0, 1.0);
    fill_deep(bench_add(&bench), 0.99, 1.0);
    bench_measure(&bench);
    assert_near(bench.fit.margin, 1.25 + 0.75 / 2, 1e-12);
    assert_near(bench.fit.k, bench.fit.margin, 1e-9);
    bench_end(&bench);

    /* With the noisier pair left out, the other's fit would have needed a margin of 2.5. */
    bench = (struct bench){0};
    fill_deep(bench_add(&bench), 1.5, 1.0);
    fill_deep(bench_add(&bench), 0.6, 1.0);
    bench_measure(&bench);
    assert_near(bench.fit.margin, 2.5, 1e-9);
    bench_end(&bench);
}

static void test_fit__repeats_count_once(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 1.0, 1.0);
    fill_deep(bench_add(&bench), 1.0 + 1e-8, 1.0);
    fill_deep(bench_add(&bench), 1.001, 1.0);
    bench_measure(&bench);
    assert_int_equal(bench.fit.pairs[1].standing, GRADCMP_FIT_REPEAT);
    assert_int_equal(bench.fit.pairs[2].standing, GRADCMP_FIT_COUNTS);
    assert_near(bench.fit.margin, 1.25 + 0.75 / 2, 1e-12);
    bench_end(&bench);
}

static void test_fit__k_is_cut_at_the_theory(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 3.0, 1.0); /* 2 * 3 is over 4 */
    bench_measure(&bench);
    assert_true(bench.fit.k == 4.0 && !bench.fit.is_looser);
    assert_nowhere_looser(&bench.fit);
    for (int64_t layer = 1; layer <= DEEP; layer++) { /* and still the margin, up to the theory */
        double wanted = fmin(6.0, gcmp_fit_theory_eps(&bench.fit, layer));
        assert_true(gcmp_fit_bound_eps(&bench.fit, layer) >= wanted * (1 - 1e-9));
    }
    bench_end(&bench);
}

static void test_fit__quiet_pairs_do_not_tighten(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 0.3, 1.0);
    bench_measure(&bench);
    assert_int_equal(bench.fit.pairs[0].standing, GRADCMP_FIT_QUIET);
    assert_true(bench.fit.k == 4.0 && bench.fit.C == 1.03 && !bench.fit.is_tightened);
    assert_true(isnan(bench.fit.margin) && !gcmp_fit_is_void(&bench.fit));
    bench_end(&bench);
}

static void test_fit__identical_pairs_are_nothing_to_measure(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 0.0, 1.0);
    bench_measure(&bench);
    assert_int_equal(bench.fit.pairs[0].standing, GRADCMP_FIT_IDENTICAL);
    assert_true(gcmp_fit_is_void(&bench.fit));
    bench_end(&bench);
}

static void test_fit__bad_pair_is_refused_with_its_reason(void **state) {
    (void)state;
    struct bench bench = {.allow_loose = true};
    fill_deep(bench_add(&bench), 1.0, 1.0);
    struct maker *bad = bench_add(&bench);
    fill_deep(bad, 1.0, 1.0);
    maker_scale(maker_find(bad, "layers.07.fc1"), 1.02); /* inside the bound, but a factor */
    bench_measure(&bench);
    assert_int_equal(bench.fit.pairs[0].standing, GRADCMP_FIT_COUNTS);
    assert_int_equal(bench.fit.pairs[1].standing, GRADCMP_FIT_BAD);
    assert_non_null(strstr(bench.fit.pairs[1].text, "from layer 8 on"));
    assert_true(gcmp_fit_is_void(&bench.fit) && bench.fit.floor_count == 0);
    bench_end(&bench);

    bench = (struct bench){.allow_loose = true};
    bad = bench_add(&bench);
    fill_deep(bad, 1.0, 1.0);
    for (size_t i = 0; i < bad->pair.parameter_count; i++) {
        maker_scale(&bad->parameters[i], 1.25);
    }
    bench_measure(&bench);
    assert_int_equal(bench.fit.pairs[0].standing, GRADCMP_FIT_BAD);
    assert_non_null(strstr(bench.fit.pairs[0].text, "times the baseline's"));
    bench_end(&bench);
}

static void test_fit__other_type_or_layers_are_refused(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 1.0, 1.0);
    fill_deep(bench_add(&bench), 0.01, 1.0);
    makers[1].pair.bound.dtype = GRADCMP_DTYPE_FLOAT16;
    fill_deep(bench_add(&bench), 1.0, 1.0);
    makers[2].pair.bound.layers = DEEP + 1;
    bench_measure(&bench);
    assert_non_null(strstr(bench.fit.pairs[1].text, "float16"));
    assert_int_equal(bench.fit.pairs[1].standing, GRADCMP_FIT_BAD);
    assert_int_equal(bench.fit.pairs[2].standing, GRADCMP_FIT_BAD);
    bench_end(&bench);
}

/* One gradient that is 1.5 times its bound off, without a factor. */
static void put_loose(struct bench *bench) {
    struct maker *maker = bench_add(bench);
    fill_deep(maker, 1.0, 1.0);
    maker_set(maker_find(maker, "layers.39.fc1"), (struct wanted){4096, 1.0, 1.0, 6.18 * EPS_BF16});
}

static void test_fit__looser_only_when_told_and_only_as_demanded(void **state) {
    (void)state;
    struct bench bench = {0};
    put_loose(&bench);
    bench_measure(&bench);
    assert_int_equal(bench.fit.pairs[0].standing, GRADCMP_FIT_BAD);
    assert_non_null(strstr(bench.fit.pairs[0].text, "--allow-loose"));
    bench_end(&bench);

    bench = (struct bench){.allow_loose = true};
    put_loose(&bench);
    bench_measure(&bench);
    assert_true(bench.fit.pairs[0].is_loose && bench.fit.is_looser);
    assert_near(bench.fit.k, 1.25 * 6.0, 1e-9);
    bench_end(&bench);
}

static void test_fit__outlier_is_named(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 0.6, 1.0);
    struct maker *odd = bench_add(&bench);
    fill_deep(odd, 0.6, 1.001);
    maker_set(maker_find(odd, "layers.20.fc1"), (struct wanted){4096, 1.0, 1.0, 3 * EPS_BF16});
    bench_measure(&bench);
    assert_false(bench.fit.pairs[0].is_suspect);
    assert_true(bench.fit.pairs[1].is_suspect);
    assert_non_null(strstr(bench.fit.pairs[1].text, "layers.20.fc1"));
    assert_int_equal(judge_by(odd, &bench.fit), GRADCMP_OUTCOME_CONSISTENT);
    bench_end(&bench);
}

static void test_fit__good_pairs_pass_their_fit_and_errors_inside_the_theory_do_not(void **state) {
    (void)state;
    struct bench bench = {0};
    fill_deep(bench_add(&bench), 0.8, 1.0);
    fill_deep(bench_add(&bench), 0.75, 1.0);
    bench_measure(&bench);
    assert_int_equal(judge_by(&makers[0], &bench.fit), GRADCMP_OUTCOME_CONSISTENT);
    assert_int_equal(judge_by(&makers[1], &bench.fit), GRADCMP_OUTCOME_CONSISTENT);
    struct gradcmp_parameter_report *hit = maker_find(&makers[1], "layers.00.fc1");
    maker_set(hit, (struct wanted){4096, 1.0, 1.0, 2 * EPS_BF16});
    assert_int_equal(judge_by(&makers[1], &bench.fit), GRADCMP_OUTCOME_INCONSISTENT);
    assert_int_equal(hit->verdict, GRADCMP_VERDICT_FAIL);
    assert_int_equal(maker_judge(&makers[1]), GRADCMP_OUTCOME_CONSISTENT); /* by the theory */
    bench_end(&bench);
}

/* A fit of noise 1 eps, and a parameter whose gradient has become `size` times as large while its
 * error stayed. */
static const struct gradcmp_parameter_report *judge_small(struct bench *bench, double size,
                                                          struct wanted wanted) {
    fill_deep(bench_add(bench), 1.0, 1.0);
    bench_measure(bench);
    struct gradcmp_parameter_report *small = maker_find(&makers[0], "layers.39.norm");
    wanted.elems = 4096;
    wanted.rms = size;
    maker_set(small, wanted);
    (void)judge_by(&makers[0], &bench->fit);
    return small;
}

static void test_fit__floor_stands_in_for_a_bound_that_small_gradients_outgrow(void **state) {
    (void)state;
    /* rel = 8 eps = 0.0625 of a gradient an eighth as large: the same error. The floor allows two
     * eps of the size of the layer without it (rms sqrt(2/3) or so), so about 13 eps here. */
    struct bench bench = {0};
    const struct gradcmp_parameter_report *p =
        judge_small(&bench, 0.125, (struct wanted){.alpha = 1.0, .rho = 8 * EPS_BF16});
    assert_int_equal(p->verdict, GRADCMP_VERDICT_PASS);
    assert_true(p->bound > 8 * EPS_BF16 && p->bound < 16 * EPS_BF16);
    bench_end(&bench);
    bench = (struct bench){0};
    p = judge_small(&bench, 0.125, (struct wanted){.alpha = 1.0, .rho = 20 * EPS_BF16});
    assert_int_not_equal(p->verdict, GRADCMP_VERDICT_PASS);
    bench_end(&bench);
}

static void test_fit__drowned_gradient_is_unjudged_unless_a_fault_shows(void **state) {
    (void)state;
    struct {
        double alpha, rho;
        enum gradcmp_verdict expected;
    } cases[] = {{0.9, 0.5, GRADCMP_VERDICT_UNJUDGED}, /* noise */
                 {-1.0, 1e-4, GRADCMP_VERDICT_FAIL},   /* sign */
                 {1.5, 1e-4, GRADCMP_VERDICT_FAIL},    /* a factor */
                 {0.0, 0.0, GRADCMP_VERDICT_FAIL},     /* gone */
                 {0.1, 0.3, GRADCMP_VERDICT_FAIL}};    /* a third of the size */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench bench = {0};
        const struct gradcmp_parameter_report *p = judge_small(
            &bench, 0.001, (struct wanted){.alpha = cases[i].alpha, .rho = cases[i].rho});
        assert_int_equal(p->verdict, cases[i].expected);
        bench_end(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit__growth_and_envelope_come_from_the_noise),
        cmocka_unit_test(test_fit__margin_shrinks_with_pairs_but_covers_their_spread),
        cmocka_unit_test(test_fit__repeats_count_once),
        cmocka_unit_test(test_fit__k_is_cut_at_the_theory),
        cmocka_unit_test(test_fit__quiet_pairs_do_not_tighten),
        cmocka_unit_test(test_fit__identical_pairs_are_nothing_to_measure),
        cmocka_unit_test(test_fit__bad_pair_is_refused_with_its_reason),
        cmocka_unit_test(test_fit__other_type_or_layers_are_refused),
        cmocka_unit_test(test_fit__looser_only_when_told_and_only_as_demanded),
        cmocka_unit_test(test_fit__outlier_is_named),
        cmocka_unit_test(test_fit__good_pairs_pass_their_fit_and_errors_inside_the_theory_do_not),
        cmocka_unit_test(test_fit__floor_stands_in_for_a_bound_that_small_gradients_outgrow),
        cmocka_unit_test(test_fit__drowned_gradient_is_unjudged_unless_a_fault_shows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
