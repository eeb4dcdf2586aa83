/* Which states there are, and whether each parameter has all of them. */
#include "hand_catalogue.h"

static int setup(void **state) {
    struct hand *hand = malloc(sizeof *hand);
    hand_init(hand);
    *state = hand;
    return 0;
}

static int teardown(void **state) {
    hand_free(*state);
    free(*state);
    return 0;
}

static void assert_check(struct hand *hand, enum gradcmp_status status, const char *message) {
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard_check_states(&hand->catalogue, &error), status);
    assert_string_equal(error.message, message);
}

static void test_states__are_sorted_and_each_once(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "param", "a", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "a", 2);
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    HAND_WHOLE(hand, "exp_avg", "b", 2);
    HAND_WHOLE(hand, "step", "a", 1);
    HAND_WHOLE(hand, NULL, "rng", 1);
    hand_stored(hand, HAND_WHOLE(hand, "fp32_param", "0", 2))->layout = GRADCMP_LAYOUT_BUCKET;
    const char **states;
    size_t count;
    assert_int_equal(gcmp_unshard_states(&hand->catalogue, &hand->arena, &states, &count, NULL),
                     GRADCMP_OK);
    assert_int_equal(count, 4);
    assert_string_equal(states[0], "exp_avg");
    assert_string_equal(states[1], "exp_avg_sq");
    assert_string_equal(states[2], "fp32_param");
    assert_string_equal(states[3], "param");
}

static void test_states__none_are_none(void **state) {
    struct hand *hand = *state;
    const char **states;
    size_t count = 7;
    assert_int_equal(gcmp_unshard_states(&hand->catalogue, &hand->arena, &states, &count, NULL),
                     GRADCMP_OK);
    assert_int_equal(count, 0);
    assert_check(hand, GRADCMP_OK, "");
}

static void test_states__all_that_lost_a_moment_are_named(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "a", 2);
    HAND_WHOLE(hand, "exp_avg", "b", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "c", 2);
    HAND_WHOLE(hand, "exp_avg", "d", 2);
    assert_check(hand, GRADCMP_ERROR_CORRUPT,
                 "b: exp_avg is stored, but exp_avg_sq is not, which 1 other tensors have; 2 more "
                 "lost one: c, d");
    struct gcmp_lost_states lost;
    assert_int_equal(gcmp_unshard_lost_states(&hand->catalogue, &lost, NULL), GRADCMP_OK);
    assert_int_equal(lost.count, 3);
    assert_int_equal(lost.whole_count, 1);
    assert_string_equal(lost.items[1].name, "c");
    assert_string_equal(lost.items[1].stored, "exp_avg_sq");
    assert_string_equal(lost.items[1].absent, "exp_avg");
    free(lost.items);
}

static void test_states__a_long_list_is_cut(void **state) {
    static const char *const names[] = {"b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "a", 2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        HAND_WHOLE(hand, "exp_avg", names[i], 2);
    }
    assert_check(hand, GRADCMP_ERROR_CORRUPT,
                 "b: exp_avg is stored, but exp_avg_sq is not, which 1 other tensors have; 10 more "
                 "lost one: c, d, e, f, g, h, i, j, ...");
}

static void test_states__a_lost_moment_is_corrupt(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "param", "a", 2);
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "a", 2);
    HAND_WHOLE(hand, "param", "b", 2);
    HAND_WHOLE(hand, "exp_avg", "b", 2);
    assert_check(hand, GRADCMP_ERROR_CORRUPT,
                 "b: exp_avg is stored, but exp_avg_sq is not, which 1 other tensors have");
    hand_stored(hand, 4)->state = "exp_avg_sq";
    assert_check(hand, GRADCMP_ERROR_CORRUPT,
                 "b: exp_avg_sq is stored, but exp_avg is not, which 1 other tensors have");
    hand_stored(hand, 4)->state = "step"; /* no moment at all: no gradient came */
    assert_check(hand, GRADCMP_OK, "");
}

static void test_states__one_moment_everywhere_is_a_choice(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "a", 2);
    HAND_WHOLE(hand, "exp_avg", "b", 2);
    HAND_WHOLE(hand, "param", "c", 2);
    assert_check(hand, GRADCMP_OK, "");
}

static void test_states__other_optimizers_keep_other_states(void **state) {
    struct hand *hand = *state;
    HAND_WHOLE(hand, "exp_avg", "norm", 2);
    HAND_WHOLE(hand, "exp_avg_sq", "norm", 2);
    HAND_WHOLE(hand, "momentum_buffer", "matrix", 2);
    HAND_WHOLE(hand, "exp_avg", "factored", 2);
    HAND_WHOLE(hand, "exp_avg_sq_row", "factored", 2);
    HAND_WHOLE(hand, "exp_avg_sq_col", "factored", 2);
    assert_check(hand, GRADCMP_OK, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_states__are_sorted_and_each_once),
        TEST(test_states__none_are_none),
        TEST(test_states__all_that_lost_a_moment_are_named),
        TEST(test_states__a_long_list_is_cut),
        TEST(test_states__a_lost_moment_is_corrupt),
        TEST(test_states__one_moment_everywhere_is_a_choice),
        TEST(test_states__other_optimizers_keep_other_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
