/* Different starts: Adam's first step undone. */
#include "pair_maker.h"

#include "bounds/cause_start.h"

enum { ELEMS = 400 };

static const struct gcmp_adam adam = {
    .lr = 1e-3, .weight_decay = 0.1, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.95};
static double start[ELEMS], gradient[ELEMS];

/* One side's first step, as AdamW makes it. */
struct made {
    double weight[ELEMS], exp_avg[ELEMS], exp_avg_sq[ELEMS];
    struct gcmp_stepped stepped;
};

static void step(struct made *made, const double *from, const double *g) {
    for (size_t i = 0; i < ELEMS; i++) {
        made->exp_avg[i] = (1.0 - adam.beta1) * g[i];
        made->exp_avg_sq[i] = (1.0 - adam.beta2) * g[i] * g[i];
        double update = g[i] / (fabs(g[i]) + adam.eps);
        made->weight[i] = (float)(from[i] * (1.0 - adam.lr * adam.weight_decay) - adam.lr * update);
    }
    made->stepped = (struct gcmp_stepped){made->weight, made->exp_avg, made->exp_avg_sq, adam};
}

static void fill(void) {
    for (size_t i = 0; i < ELEMS; i++) {
        start[i] = 0.02 * sin(1.0 + 3.7 * (double)i);
        gradient[i] = 1e-4 * cos(2.0 + 1.3 * (double)i);
    }
}

static enum gcmp_starts compare(const struct made *a, const struct made *b,
                                struct gcmp_start_count *count) {
    *count = (struct gcmp_start_count){0};
    gcmp_start_compare(&a->stepped, &b->stepped, ELEMS, EPS_FP32, count);
    return gcmp_start_conclude(count);
}

static void test_cause_start__the_step_is_undone(void **state) {
    (void)state;
    struct made made;
    fill();
    step(&made, start, gradient);
    for (size_t i = 0; i < ELEMS; i++) {
        assert_true(fabs(gcmp_start_of(&made.stepped, i) - start[i]) < 1e-8);
    }
}

static void test_cause_start__other_gradients_from_one_start_agree(void **state) {
    (void)state;
    struct made a, b;
    double other[ELEMS];
    struct gcmp_start_count count;
    fill();
    for (size_t i = 0; i < ELEMS; i++) {
        other[i] = 1e-4 * cos(5.0 + 0.7 * (double)i);
    }
    step(&a, start, gradient);
    step(&b, start, other);
    assert_int_equal(compare(&a, &b, &count), GCMP_STARTS_AGREE);
    assert_int_equal(count.differing, 0);
}

static void test_cause_start__moments_that_were_changed_make_no_other_start(void **state) {
    (void)state;
    struct made a, b;
    struct gcmp_start_count count;
    fill();
    step(&a, start, gradient);
    step(&b, start, gradient);
    for (size_t i = 0; i < ELEMS; i++) {
        b.exp_avg[i] = -b.exp_avg[(i + 7) % ELEMS];
        b.exp_avg_sq[i] = 0.0; /* the undone step is without bounds */
    }
    assert_int_equal(compare(&a, &b, &count), GCMP_STARTS_AGREE);
}

static void test_cause_start__another_seed_and_a_part_of_it_differ(void **state) {
    (void)state;
    struct made a, b;
    struct gcmp_start_count count;
    double other[ELEMS];
    fill();
    for (size_t part = ELEMS; part >= ELEMS / 4; part /= 2) {
        for (size_t i = 0; i < ELEMS; i++) {
            other[i] = i < part ? 0.02 * cos(0.3 + 2.9 * (double)i) : start[i];
        }
        step(&a, start, gradient);
        step(&b, other, gradient);
        assert_int_equal(compare(&a, &b, &count), GCMP_STARTS_DIFFER);
        assert_true(count.d2 > 0.1 * count.a2);
    }
    step(&b, start, gradient);
    for (size_t i = 0; i < 20; i++) {
        b.weight[i] += 0.5; /* a twentieth */
    }
    assert_int_equal(compare(&a, &b, &count), GCMP_STARTS_UNKNOWN);
}

static void test_cause_start__nothing_tells_nothing(void **state) {
    (void)state;
    struct gcmp_start_count count = {0};
    assert_int_equal(gcmp_start_conclude(&count), GCMP_STARTS_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cause_start__the_step_is_undone),
        cmocka_unit_test(test_cause_start__other_gradients_from_one_start_agree),
        cmocka_unit_test(test_cause_start__moments_that_were_changed_make_no_other_start),
        cmocka_unit_test(test_cause_start__another_seed_and_a_part_of_it_differ),
        cmocka_unit_test(test_cause_start__nothing_tells_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
