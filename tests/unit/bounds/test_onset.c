/* How failures lie around the onset. */
#include "pair_maker.h"

#include "bounds/onset.h"

static struct maker maker;
static enum gradcmp_class classes[MAX_PARAMETERS];

/* Layers 1..6 with a weight and a norm each; layer l of weights differs by rel[l - 1]. */
static void make(const double *rel, double norm_rel) {
    maker_start(&maker);
    maker.pair.bound.layers = 6;
    for (int64_t l = 1; l <= 6; l++) {
        for (int norm = 0; norm < 2; norm++) {
            char name[64];
            snprintf(name, sizeof name, "decoder.layers.%d.%s", (int)l - 1, norm ? "norm" : "fc");
            struct gradcmp_parameter_report *parameter = maker_add(&maker, name, l);
            maker_set(parameter, (struct wanted){4096, 1.0, 1.0, norm ? norm_rel : rel[l - 1]});
            classes[maker.pair.parameter_count - 1] =
                norm ? GRADCMP_CLASS_VECTOR : GRADCMP_CLASS_OTHER;
        }
    }
    maker_judge(&maker);
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_onset_describe(&maker.pair, classes, &maker.arena, &error), GRADCMP_OK);
}

static void test_onset__growth_is_that_of_the_layers_below(void **state) {
    (void)state;
    const double rel[] = {0.8, 0.4, 0.2, 0.1, 0.001, 0.001}; /* onset 4, twofold a layer */
    make(rel, 0.0);
    const struct gradcmp_spread_facts *spread = &maker.pair.spread;
    assert_int_equal(maker.pair.onset_layer, 4);
    assert_int_equal(spread->growth_layers, 4);
    assert_true(fabs(spread->growth - 2.0) < 1e-6);
    assert_int_equal(spread->onset_failing, 1);
    assert_int_equal(spread->onset_passing, 1);
    assert_int_equal(spread->layers_failing, 4);
    assert_int_equal(spread->layers, 6);
    gcmp_arena_free(&maker.arena);
}

static void test_onset__one_layer_has_no_growth(void **state) {
    (void)state;
    const double rel[] = {0.001, 0.001, 0.001, 0.4, 0.001, 0.001};
    make(rel, 0.001);
    assert_true(isnan(maker.pair.spread.growth));
    assert_int_equal(maker.pair.spread.growth_layers, 0);
    gcmp_arena_free(&maker.arena);
}

static void test_onset__only_norms_are_told(void **state) {
    (void)state;
    const double rel[] = {0.001, 0.001, 0.001, 0.001, 0.001, 0.001};
    make(rel, 0.5);
    assert_int_equal(maker.pair.spread.only_class, GRADCMP_CLASS_VECTOR);
    assert_int_equal(maker.pair.spread.class_failing, 6);
    assert_int_equal(maker.pair.spread.class_all, 6);
    gcmp_arena_free(&maker.arena);
}

static void test_onset__a_class_is_not_told_where_others_fail_or_none_passes(void **state) {
    (void)state;
    const double rel[] = {0.001, 0.001, 0.5, 0.001, 0.001, 0.001};
    make(rel, 0.5);
    assert_int_equal(maker.pair.spread.only_class, GRADCMP_CLASS_OTHER);
    gcmp_arena_free(&maker.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onset__growth_is_that_of_the_layers_below),
        cmocka_unit_test(test_onset__one_layer_has_no_growth),
        cmocka_unit_test(test_onset__only_norms_are_told),
        cmocka_unit_test(test_onset__a_class_is_not_told_where_others_fail_or_none_passes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
