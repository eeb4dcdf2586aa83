/* Kinds of parameters and their votes. */
#include "pair_maker.h"

#include "bounds/figures.h"
#include "bounds/kind.h"

static void get_votes(struct maker *maker, double *votes) {
    struct gradcmp_error error = {0};
    for (size_t i = 0; i < maker->pair.parameter_count; i++) {
        gcmp_figures_fill(&maker->parameters[i]);
    }
    assert_int_equal(gcmp_kind_votes(maker->parameters, maker->pair.parameter_count, votes,
                                     &maker->arena, &error),
                     GRADCMP_OK);
}

static void test_kind__names_that_differ_in_indices_share_one_vote(void **state) {
    (void)state;
    struct maker maker;
    double votes[11];
    maker_start(&maker);
    maker_put(&maker, "layers.0.experts.9.fc1", 1, 1, 0);
    maker_put(&maker, "layers.0.experts.10.fc1", 1, 1, 0);
    maker_put(&maker, "layers.11.experts.9.fc1", 1, 1, 0);
    maker_put(&maker, "layers.0.experts.9.fc2", 1, 1, 0);
    maker_put(&maker, "layers.1.experts.9.fc1.bias", 1, 1, 0);
    maker_put(&maker, "layers.1.experts.fc1", 1, 1, 0);
    maker_put(&maker, "", 1, 1, 0);
    maker_put(&maker, "7", 1, 1, 0);
    maker_put(&maker, "80", 1, 1, 0);
    maker_put(&maker, "layers.3a", 1, 1, 0);
    maker_put(&maker, "layers.4a", 1, 1, 0);
    get_votes(&maker, votes);
    for (int i = 0; i < 3; i++) {
        assert_near(votes[i], 1.0 / 3, 1e-15);
    }
    assert_true(votes[3] == 1 && votes[4] == 1 && votes[5] == 1 && votes[6] == 1);
    assert_true(votes[7] == 0.5 && votes[8] == 0.5);
    assert_true(votes[9] == 1 && votes[10] == 1);
    maker_end(&maker);
}

static void test_kind__parameters_without_alpha_have_no_vote(void **state) {
    (void)state;
    struct maker maker;
    double votes[8];
    maker_start(&maker);
    maker_put(&maker, "w.0", 1, 1, 0);
    maker_put(&maker, "w.1", 1, 1, 0)->in_b = false;
    maker_put(&maker, "w.2", 1, 1, 0)->copies_conflict = true;
    maker_put(&maker, "w.3", 1, 1, 0)->tally.nonfinite_any = 1;
    maker_put(&maker, "w.4", 1, 1, 0)->shapes_agree = false;
    maker_put(&maker, "w.5", 1, 1, 0)->tally = (struct gradcmp_tally){.elems = 4096};
    get_votes(&maker, votes);
    assert_true(votes[0] == 1.0);
    for (int i = 1; i < 6; i++) {
        assert_true(votes[i] == 0.0);
    }
    maker_end(&maker);
}

static void test_kind__no_memory_is_an_error(void **state) {
    (void)state;
    struct maker maker;
    double votes[1];
    struct gradcmp_error error = {0};
    maker_start(&maker);
    maker_put(&maker, "w", 1, 1, 0);
    for (size_t limit = 16; limit < 48; limit += 16) {
        struct gcmp_arena small = {.limit_bytes = limit};
        assert_int_equal(gcmp_kind_votes(maker.parameters, 1, votes, &small, &error),
                         GRADCMP_ERROR_MEMORY);
        assert_int_equal(error.code, GRADCMP_ERROR_MEMORY);
        gcmp_arena_free(&small);
    }
    maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kind__names_that_differ_in_indices_share_one_vote),
        cmocka_unit_test(test_kind__parameters_without_alpha_have_no_vote),
        cmocka_unit_test(test_kind__no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
