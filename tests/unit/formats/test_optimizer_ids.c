/* Numbers of optimizers: what is certain, and what is refused. */
#include "temp_tools.h"

#include "formats/optimizer_ids.h"

enum { MOST = 16 };

/* One problem: shapes of weights and of numbers, one axis each but where a row count is given. */
struct problem {
    struct gcmp_ids ids;
    struct gcmp_ids_weight weights[MOST];
    struct gcmp_ids_entry entries[MOST];
    uint64_t shapes[2 * MOST];
    struct gradcmp_error error;
};

static void add_weight(struct problem *problem, uint64_t size, uint64_t sequence) {
    uint64_t *shape = &problem->shapes[problem->ids.weight_count];
    *shape = size;
    problem->weights[problem->ids.weight_count++] =
        (struct gcmp_ids_weight){"w", shape, 1, sequence};
}

/* Size 0: a number without a state. */
static void add_number(struct problem *problem, uint32_t group, uint64_t size) {
    uint64_t *shape = &problem->shapes[MOST + problem->ids.entry_count];
    *shape = size;
    problem->entries[problem->ids.entry_count++] =
        (struct gcmp_ids_entry){size == 0 ? NULL : shape, 1, group, 77};
}

/* Weights as "5 5 3", with a bar between sequences, numbers as "5 3 | 5" with a bar between groups.
 */
static struct problem *make(const char *weights, const char *numbers, bool is_ordered) {
    struct problem *problem = calloc(1, sizeof *problem);
    uint32_t group = 0, sequence = 0;
    problem->ids.weights = problem->weights;
    problem->ids.entries = problem->entries;
    problem->ids.is_ordered = is_ordered;
    for (const char *at = weights; *at != '\0'; at++) {
        if (*at == '|') {
            sequence++;
        } else if (*at != ' ') {
            add_weight(problem, (uint64_t)(*at - '0'), sequence);
        }
    }
    for (const char *at = numbers; *at != '\0'; at++) {
        if (*at == '|') {
            group++;
        } else if (*at != ' ') {
            add_number(problem, group, (uint64_t)(*at - '0'));
        }
    }
    return problem;
}

/* The weights of the numbers, as digits; "-" for a number that needs no name. */
static void check_solved(const char *weights, const char *numbers, bool is_ordered,
                         const char *expected) {
    struct problem *problem = make(weights, numbers, is_ordered);
    char found[MOST + 1] = "";
    if (gcmp_ids_solve(&problem->ids, &problem->error) != GRADCMP_OK) {
        fail_msg("%s / %s: %s", weights, numbers, problem->error.message);
    }
    for (size_t i = 0; i < problem->ids.entry_count; i++) {
        size_t weight = problem->entries[i].weight;
        found[i] = weight == SIZE_MAX ? '-' : (char)('0' + weight);
    }
    assert_string_equal(found, expected);
    free(problem);
}

static void check_refused(const char *weights, const char *numbers, bool is_ordered,
                          const char *part) {
    struct problem *problem = make(weights, numbers, is_ordered);
    assert_int_equal(gcmp_ids_solve(&problem->ids, &problem->error), GRADCMP_ERROR_UNSUPPORTED);
    assert_text_contains(problem->error.message, part);
    free(problem);
}

static void test_optimizer_ids__one_group_of_all_weights_is_in_order(void **state) {
    (void)state;
    check_solved("5 5 3 5", "5 5 3 5", true, "0123");
    check_solved("5 5 3 5", "5 0 3 5", true, "0123"); /* without a state, but in its place */
    check_refused("5 5 3 5", "5 3 5 5", true,
                  "number 1, of shape [3], is not of the shape of the weight at its place");
    check_solved("", "", true, "");
}

static void test_optimizer_ids__one_group_of_fewer_needs_one_way(void **state) {
    (void)state;
    check_solved("5 3 4 2", "5 4 2", true, "023");
    check_solved("5 5 3 4", "5 5 4", true, "013");
    check_refused("5 5 3", "5 3", true, "number 0, of shape [5], could be several weights");
    check_solved("5 4 5 3", "5 4 3", true, "013"); /* only the first 5 comes before the 4 */
    check_refused("5 4 3", "3 5", true, "number 1, of shape [5], fits no weight behind");
    check_refused("5 4", "5 4 4", true, "numbers 3 parameters, but there are only 2 weights");
    check_solved("5 3 4 2", "5 0 2", true, "013"); /* a number without a state may be any */
}

static void test_optimizer_ids__groups_are_told_by_shapes(void **state) {
    (void)state;
    check_solved("5 1 5 1 6", "5 5 6 | 1 1", true, "02413");
    check_solved("5 1 5 1 6", "1 1 | 5 5 6", true, "13024");
    check_refused("5 1 5 1", "5 1 | 5 1", true, "groups share that shape");
    check_refused("5 1 5 1", "5 | 1 1", true, "not as many numbers as weights of that shape");
    check_refused("5 1", "5 | 2", true,
                  "number 1, of shape [2], is not of the shape of any weight");
    check_refused("5 6 5 1", "6 5 5 | 1", true, "too late in its group");
    check_solved("5 1 6 1", "5 0 | 1 1", true, "0-13"); /* no weight of 6 has a state */
}

/* Weights that are listed rank by rank: within each in order. */
static void test_optimizer_ids__sequences_are_told_apart_by_shapes(void **state) {
    (void)state;
    check_solved("5 5 | 3 3", "5 3 5 3", true, "0213");
    check_solved("5 5 | 3 3", "3 3 5 5", true, "2301");
    check_solved("5 4 | 3", "3 5 4", true, "201");
    check_refused("5 | 5", "5 5", true,
                  "number 0, of shape [5], could be several weights (the order");
    check_refused("5 3 | 5", "5 3 5", true, "the order of the weights is not known");
    check_refused("5 4 | 3", "4 3 5", true, "number 2, of shape [5], comes too late in its group");
    check_refused("5 5 | 3", "5 3", true, "not as many numbers as weights");
    check_refused("5 | 3", "5 4", true,
                  "number 1, of shape [4], is not of the shape of any weight");
    check_solved("5 4 | 3 6", "6 | 3 5 | 4", true, "3201");
    check_solved("5 5 | 3", "5 5 | 3", true, "012");
}

static void test_optimizer_ids__without_an_order_shapes_must_be_unique(void **state) {
    (void)state;
    check_solved("5 3 4", "3 4 5", false, "120");
    check_refused("5 5 4", "5 5 4", false, "the order of the weights is not known");
}

static void check_fit(const char *weights, const char *numbers, bool expected) {
    struct problem *problem = make(weights, numbers, false);
    bool fit = !expected;
    assert_int_equal(gcmp_ids_fit(&problem->ids, &fit, &problem->error), GRADCMP_OK);
    assert_int_equal(fit, expected);
    free(problem);
}

static void test_optimizer_ids__numbers_fit_weights_by_shapes(void **state) {
    (void)state;
    check_fit("5 5 4", "5 5 4", true);
    check_fit("5 4", "5 5 5 | 4", true);
    check_fit("5 4", "5 0 4", true);
    check_fit("5 4", "5 3", false);
    check_fit("", "5", false);
    check_fit("5", "", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer_ids__one_group_of_all_weights_is_in_order),
        cmocka_unit_test(test_optimizer_ids__one_group_of_fewer_needs_one_way),
        cmocka_unit_test(test_optimizer_ids__groups_are_told_by_shapes),
        cmocka_unit_test(test_optimizer_ids__sequences_are_told_apart_by_shapes),
        cmocka_unit_test(test_optimizer_ids__without_an_order_shapes_must_be_unique),
        cmocka_unit_test(test_optimizer_ids__numbers_fit_weights_by_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
