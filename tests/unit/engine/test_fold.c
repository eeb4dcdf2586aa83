/* The tree above the units, in every order of arrival. */
#include "engine/engine_tools.h"

#include "engine/fold.h"

enum { MOST_UNITS = 70 };

static void fill_units(struct gradcmp_tally *units, size_t count) {
    uint64_t random = count;
    for (size_t i = 0; i < count; i++) {
        memset(&units[i], 0, sizeof units[i]);
        units[i].d2 = (double)next_random(&random) * 0x1p-60; /* sums depend on their order */
        units[i].ad = (double)(int64_t)next_random(&random) * 0x1p-50;
        units[i].max_d = (double)(next_random(&random) % 4);
        units[i].max_d_index = i * 1000 + next_random(&random) % 1000;
        units[i].elems = 1000;
    }
}

/* Level by level, adjacent pairs, an odd last one moving up. */
static struct gradcmp_tally fold_all(const struct gradcmp_tally *units, size_t count) {
    struct gradcmp_tally level[MOST_UNITS];
    memcpy(level, units, count * sizeof *units);
    while (count > 1) {
        for (size_t i = 0; i < count; i += 2) {
            level[i / 2] = level[i];
            if (i + 1 < count) {
                gcmp_tally_fold(&level[i / 2], &level[i + 1]);
            }
        }
        count = (count + 1) / 2;
    }
    return level[0];
}

static void shuffle(size_t *order, size_t count, uint64_t *random) {
    for (size_t i = count; i > 1; i--) {
        size_t other = next_random(random) % i, swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
}

static void test_fold__order_of_arrival_does_not_matter(void **state) {
    (void)state;
    uint64_t random = 8;
    for (size_t count = 1; count <= MOST_UNITS; count++) {
        struct gradcmp_tally units[MOST_UNITS], root;
        size_t order[MOST_UNITS];
        fill_units(units, count);
        struct gradcmp_tally expected = fold_all(units, count);
        for (int round = 0; round < 20; round++) {
            struct gcmp_fold fold = {.unit_count = count};
            for (size_t i = 0; i < count; i++) {
                order[i] = round == 0 ? i : count - 1 - i;
            }
            if (round > 1) {
                shuffle(order, count, &random);
            }
            memset(&root, 0xee, sizeof root);
            for (size_t i = 0; i < count; i++) {
                assert_true(gcmp_fold_add(&fold, order[i], &units[order[i]], &root));
            }
            assert_same_tally(&root, &expected);
            assert_int_equal(fold.node_count, 0);
            gcmp_fold_free(&fold);
        }
    }
}

/* With units in order, as few nodes wait as a binary counter has digits. */
static void test_fold__in_order_needs_little_memory(void **state) {
    (void)state;
    struct gcmp_fold fold = {.unit_count = 100000};
    struct gradcmp_tally unit, root;
    memset(&unit, 0, sizeof unit);
    unit.elems = 1;
    for (uint64_t i = 0; i < fold.unit_count; i++) {
        assert_true(gcmp_fold_add(&fold, i, &unit, &root));
        assert_true(fold.node_count <= 17);
    }
    assert_int_equal(root.elems, fold.unit_count);
    gcmp_fold_free(&fold);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold__order_of_arrival_does_not_matter),
        cmocka_unit_test(test_fold__in_order_needs_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
