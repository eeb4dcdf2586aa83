/* The cause of a pair, from what its parameters have in common. */
#include "bounds/cause_pair.h"

#include "pair_maker.h"

static struct maker maker;
static const struct gcmp_cause_noise no_noise = {1.0, NAN, EPS_BF16, EPS_BF16};
static struct gcmp_cause_facts facts[MAX_PARAMETERS];

/* A right model; norms are replicated over tensor-parallel ranks, the rest is sharded. */
static void start(void) {
    maker_start(&maker);
    maker_fill_model(&maker, 0.002, 0.01);
    memset(facts, 0, sizeof facts);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        bool norm = strstr(maker.parameters[i].name, "norm") != NULL;
        facts[i] = (struct gcmp_cause_facts){.replicated = norm, .sharded = !norm, .expert = -1};
        maker.parameters[i].ndim_a = norm ? 1 : 2;
    }
}

static void spoil(const char *name, double alpha, double rho) {
    maker_set(maker_find(&maker, name), (struct wanted){4096, 1.0, alpha, rho});
}

/* Judge, derive, conclude. */
static const struct gradcmp_cause *conclude(uint32_t tp, uint32_t dp) {
    struct gradcmp_error error = {0};
    maker_judge(&maker);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        struct gradcmp_parameter_report *parameter = &maker.parameters[i];
        struct gradcmp_cause cause;
        assert_int_equal(gcmp_cause_derive(parameter, &no_noise, &maker.arena, &cause, &error),
                         GRADCMP_OK);
        parameter->cause_count = cause.kind != NULL;
        parameter->causes = gcmp_arena_alloc(&maker.arena, 1, sizeof cause);
        assert_non_null(parameter->causes);
        parameter->causes[0] = cause;
    }
    struct gcmp_cause_scene scene = {.pair = &maker.pair, .facts = facts, .tp = tp, .dp = dp};
    assert_int_equal(gcmp_cause_conclude(&scene, &maker.arena, &error), GRADCMP_OK);
    return &maker.pair.cause;
}

static void expect_kind(const struct gradcmp_cause *cause, const char *kind) {
    assert_non_null(cause->kind);
    assert_string_equal(cause->kind, kind);
}

static void test_pair__without_failures_has_none(void **state) {
    (void)state;
    start();
    assert_null(conclude(2, 1)->kind);
    maker_end(&maker);
}

static void test_pair__one_factor_is_told_once(void **state) {
    (void)state;
    start();
    spoil("layers.1.mlp.fc1", 1.151, 0.01);
    spoil("layers.1.mlp.fc2", 1.149, 0.01);
    spoil("layers.2.mlp.fc2", 1.15, 0.01);
    const struct gradcmp_cause *cause = conclude(2, 1);
    expect_kind(cause, "scale");
    assert_near(cause->factor, 1.15, 1e-12);
    assert_int_equal(
        strncmp(cause->text, "3 parameters of layers 2 to 3: 1.15 times the baseline (", 56), 0);
    maker_end(&maker);
}

static void test_pair__another_factor_is_not_counted(void **state) {
    (void)state;
    start();
    spoil("layers.1.mlp.fc1", 2.0, 0.01);
    spoil("layers.0.mlp.fc1", 4.0, 0.01);
    const struct gradcmp_cause *cause = conclude(2, 1);
    expect_kind(cause, "scale");
    assert_true(cause->factor == 2.0);
    assert_non_null(strstr(cause->text, "layers.1.mlp.fc1: twice the baseline"));
    maker_end(&maker);
}

static void test_pair__below_the_onset_is_upstream(void **state) {
    (void)state;
    start();
    spoil("layers.2.mlp.fc1", 0.7, 0.5);
    spoil("layers.1.mlp.fc1", 0.7, 0.5);
    spoil("embedding", 0.7, 0.5);
    expect_kind(conclude(2, 1), "unexplained");
    expect_kind(&maker_find(&maker, "layers.2.mlp.fc1")->causes[0], "unexplained");
    expect_kind(&maker_find(&maker, "layers.1.mlp.fc1")->causes[0], "upstream");
    expect_kind(&maker_find(&maker, "embedding")->causes[0], "upstream");
    maker_end(&maker);
}

/* Conclude again, with the one failure above the other moved within its parameter. */
static const char *kind_below(const char *kind_above) {
    struct gradcmp_error error = {0};
    start();
    spoil("layers.2.mlp.fc1", 0.7, 0.5);
    spoil("layers.1.mlp.fc1", 0.7, 0.5);
    conclude(2, 1);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker.parameters[i].cause_count = 0;
    }
    struct gradcmp_parameter_report *above = maker_find(&maker, "layers.2.mlp.fc1");
    above->causes[0] = (struct gradcmp_cause){kind_above, NAN, 0.0, "moved"};
    above->cause_count = 1;
    struct gcmp_cause_scene scene = {.pair = &maker.pair, .facts = facts, .tp = 2, .dp = 1};
    assert_int_equal(gcmp_cause_conclude(&scene, &maker.arena, &error), GRADCMP_OK);
    const char *below = maker_find(&maker, "layers.1.mlp.fc1")->causes[0].kind;
    maker_end(&maker);
    return below;
}

/* A gradient that is all there, in other places or rounded, was right when it went on. */
static void test_pair__what_was_moved_is_not_inherited(void **state) {
    (void)state;
    assert_string_equal(kind_below("roll"), "unexplained");
    assert_string_equal(kind_below("cast"), "unexplained");
    assert_string_equal(kind_below("layer_slot"), "unexplained");
    assert_string_equal(kind_below("one_shard"), "upstream");
    assert_string_equal(kind_below("scale"), "upstream");
}

static void test_pair__small_factor_beside_a_failure_is_not_told(void **state) {
    (void)state;
    start();
    spoil("layers.2.mlp.fc1", 0.7, 0.5);
    spoil("layers.2.mlp.fc2", 1.02, 0.005);
    expect_kind(conclude(2, 1), "unexplained");
    expect_kind(&maker_find(&maker, "layers.2.mlp.fc2")->causes[0], "scale");
    maker_end(&maker);
}

static void spoil_norms(void) {
    spoil("final_norm", 0.5, 0.3);
    spoil("layers.3.mlp.norm", 0.6, 0.3);
    spoil("layers.3.attention.norm", 0.6, 0.3);
    spoil("layers.1.mlp.norm", 0.7, 0.4);
}

static void test_missing_reduction__only_replicated_fail(void **state) {
    (void)state;
    start();
    spoil_norms();
    expect_kind(conclude(2, 1), "missing_reduction");
    expect_kind(&maker_find(&maker, "layers.1.mlp.norm")->causes[0], "missing_reduction");
    maker_end(&maker);
}

static void test_missing_reduction__not_without_ranks_or_with_others(void **state) {
    (void)state;
    start();
    spoil_norms();
    expect_kind(conclude(1, 2), "unexplained");
    maker_end(&maker);
    start();
    spoil_norms();
    spoil("layers.0.mlp.fc1", 0.7, 0.4);
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
}

static void test_missing_reduction__needs_neighbours_and_half_of_its_class(void **state) {
    (void)state;
    start();
    spoil_norms();
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        if (maker.parameters[i].layer == 2) { /* nothing sharded next to layers.1.mlp.norm */
            facts[i].sharded = false;
        }
    }
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
    start();
    spoil_norms();
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        if (strcmp(maker.parameters[i].name, "layers.1.attention.proj") == 0) {
            facts[i] = (struct gcmp_cause_facts){.replicated = true, .expert = -1};
        }
    }
    expect_kind(conclude(2, 1), "unexplained"); /* one of three in layer 2 */
    maker_end(&maker);
}

static void test_missing_reduction__one_norm_alone_may_lack_another_sum(void **state) {
    (void)state;
    start();
    spoil("layers.1.mlp.norm", 0.7, 0.4);
    expect_kind(conclude(2, 1), "missing_reduction");
    maker_end(&maker);
    start();
    spoil("layers.1.mlp.norm", 0.7, 0.4);
    expect_kind(conclude(2, 2), "unexplained");
    maker_end(&maker);
}

/* Copies of several ranks that agree lack no sum over these ranks. */
static void test_missing_reduction__not_where_copies_agree(void **state) {
    (void)state;
    start();
    spoil("layers.1.attention.norm", 0.9, 0.4);
    spoil("layers.1.mlp.norm", 0.9, 0.5);
    expect_kind(conclude(2, 1), "missing_reduction");
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        facts[i].has_copies = maker.parameters[i].ndim_a == 1;
    }
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
}

/* Rounding that is a little over the bound, in norms alone. */
static void test_missing_reduction__not_for_small_errors(void **state) {
    (void)state;
    start();
    spoil("layers.1.attention.norm", 1.0, 0.04);
    spoil("layers.1.mlp.norm", 1.0, 0.05);
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
}

/* Layer 4 gets eight experts and a router. */
static void start_experts(void) {
    start();
    char name[64];
    for (int64_t e = 0; e < 8; e++) {
        snprintf(name, sizeof name, "layers.3.experts.%d.fc1", (int)e);
        struct gradcmp_parameter_report *expert = maker_put(&maker, name, 4, 1.0, 0.01);
        expert->ndim_a = 2;
        facts[maker.pair.parameter_count - 1] = (struct gcmp_cause_facts){.expert = e};
    }
    maker_put(&maker, "layers.3.router", 4, 1.0, 0.01)->ndim_a = 2;
    facts[maker.pair.parameter_count - 1] =
        (struct gcmp_cause_facts){.expert = -1, .replicated = true};
}

static void test_routing__some_experts_and_their_rows(void **state) {
    (void)state;
    static const double own_rows[] = {0.3, 0.0, 0.05, 0.0, 0.1, 0.5, 0.05, 0.0},
                        other_rows[] = {0.3, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.0}, no_rows[8] = {0};
    start_experts();
    spoil("layers.3.experts.0.fc1", 0.99, 0.17);
    spoil("layers.3.experts.5.fc1", 0.95, 0.24);
    spoil("layers.3.mlp.norm", 1.01, 0.13);
    spoil("layers.3.router", 0.99, 0.11);
    spoil("layers.1.mlp.fc1", 1.0, 0.08);
    struct gcmp_cause_facts *router = &facts[maker.pair.parameter_count - 1];
    router->expert_rows = own_rows;
    router->expert_count = 8;
    expect_kind(conclude(2, 1), "routing");
    expect_kind(&maker_find(&maker, "layers.1.mlp.fc1")->causes[0], "upstream");
    router->expert_rows = other_rows;
    expect_kind(conclude(2, 1), "unexplained");
    router->expert_rows = no_rows;
    expect_kind(conclude(2, 1), "unexplained");
    maker_set(maker_find(&maker, "layers.3.router"), (struct wanted){4096, 1.0, 1.0, 0.01});
    router->expert_rows = NULL; /* it agrees, so no choice has flipped */
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
}

static enum gradcmp_outcome outcome_when(bool allowed) {
    struct gradcmp_error error = {0};
    conclude(2, 1);
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker.parameters[i].cause_count = 0;
    }
    struct gcmp_cause_scene scene = {
        .pair = &maker.pair, .facts = facts, .tp = 2, .dp = 1, .allow_routing = allowed};
    assert_int_equal(gcmp_cause_conclude(&scene, &maker.arena, &error), GRADCMP_OK);
    return maker.pair.outcome;
}

static void test_routing__passes_where_it_is_allowed_and_explains_all(void **state) {
    (void)state;
    static const double rows[] = {0.4, 0.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.0};
    start_experts();
    struct gcmp_cause_facts *router = &facts[maker.pair.parameter_count - 1];
    router->expert_rows = rows;
    router->expert_count = 8;
    spoil("layers.3.router", 0.99, 0.11);
    spoil("layers.3.experts.0.fc1", 0.99, 0.17);
    spoil("layers.3.experts.5.fc1", 0.95, 0.24);
    spoil("layers.1.mlp.fc1", 1.0, 0.08);
    assert_int_equal(outcome_when(false), GRADCMP_OUTCOME_INCONSISTENT);
    assert_int_equal(outcome_when(true), GRADCMP_OUTCOME_CONSISTENT);
    struct gradcmp_parameter_report *below = maker_find(&maker, "layers.1.mlp.fc1");
    below->copies_conflict = true; /* that is not inherited */
    assert_int_equal(outcome_when(true), GRADCMP_OUTCOME_INCONSISTENT);
    expect_kind(&below->causes[0], "unexplained");
    below->copies_conflict = false;
    assert_int_equal(outcome_when(true), GRADCMP_OUTCOME_CONSISTENT);
    spoil("layers.1.mlp.fc1", 1.0, 0.8); /* more than a few tokens make */
    assert_int_equal(outcome_when(true), GRADCMP_OUTCOME_INCONSISTENT);
    maker_end(&maker);
}

/* Both sides clipped to one norm: the doubled layer is the cause, not the factor on the others. */
static void test_pair__clipping_hides_no_layer(void **state) {
    (void)state;
    start();
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        bool doubled = maker.parameters[i].layer == 2;
        maker_set(&maker.parameters[i],
                  (struct wanted){4096, 1.0, doubled ? 1.8 : 0.9, doubled ? 0.008 : 0.004});
    }
    maker_judge(&maker);
    double norm = maker.pair.norm_a;
    for (int clipped = 0; clipped < 2; clipped++) {
        conclude(2, 1);
        for (size_t i = 0; i < maker.pair.parameter_count; i++) {
            struct gradcmp_error error = {0};
            const struct gcmp_cause_noise noise = {maker.pair.common_factor, NAN, EPS_BF16,
                                                   EPS_BF16};
            struct gradcmp_parameter_report *parameter = &maker.parameters[i];
            assert_int_equal(
                gcmp_cause_derive(parameter, &noise, &maker.arena, &parameter->causes[0], &error),
                GRADCMP_OK);
            parameter->cause_count = parameter->causes[0].kind != NULL;
        }
        struct gradcmp_error error = {0};
        maker.pair.norm_b = norm;
        struct gcmp_cause_scene scene = {
            .pair = &maker.pair, .facts = facts, .tp = 2, .dp = 1, .clip = clipped ? norm : 0.0};
        assert_int_equal(gcmp_cause_conclude(&scene, &maker.arena, &error), GRADCMP_OK);
        assert_int_equal(maker.pair.onset_layer, 2);
        assert_string_equal(maker.pair.cause.kind, clipped ? "scale" : "common_scale");
    }
    assert_near(maker.pair.cause.factor, 2.0, 1e-9);
    assert_non_null(strstr(maker.pair.cause.text, "both sides are clipped to a global norm of"));
    maker_end(&maker);
}

static void test_routing__not_for_one_expert_or_most_of_them(void **state) {
    (void)state;
    start_experts();
    spoil("layers.3.experts.5.fc1", 0.95, 0.24);
    expect_kind(conclude(2, 1), "unexplained");
    for (int e = 0; e < 5; e++) {
        char name[64];
        snprintf(name, sizeof name, "layers.3.experts.%d.fc1", e);
        spoil(name, 0.95, 0.24);
    }
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
}

static void test_routing__not_where_dense_weights_fail_or_much_moved(void **state) {
    (void)state;
    start_experts();
    spoil("layers.3.experts.0.fc1", 0.99, 0.17);
    spoil("layers.3.experts.5.fc1", 0.95, 0.24);
    spoil("layers.3.attention.proj", 0.99, 0.2);
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
    start_experts();
    spoil("layers.3.experts.0.fc1", 0.5, 0.3);
    spoil("layers.3.experts.5.fc1", 0.5, 0.4);
    expect_kind(conclude(2, 1), "unexplained");
    maker_end(&maker);
}

static void test_pair__common_factor_comes_first(void **state) {
    (void)state;
    start();
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker_scale(&maker.parameters[i], 2.0);
    }
    const struct gradcmp_cause *cause = conclude(2, 1);
    expect_kind(cause, "common_scale");
    assert_true(cause->factor == 2.0);
    assert_near(cause->residual, 0.01, 0.002);
    assert_non_null(strstr(cause->text, "global norms"));
    maker_end(&maker);
}

/* A side's norm, what it says of clipping, and the portion of it that the state holds. */
static const char *text_of_clips(struct gcmp_clip a, double norm_a, struct gcmp_clip b,
                                 double norm_b) {
    struct gradcmp_error error = {0};
    maker.pair.norm_a = norm_a;
    maker.pair.norm_b = norm_b;
    struct gcmp_cause_scene scene = {
        .pair = &maker.pair, .facts = facts, .tp = 2, .dp = 1, .clips = {a, b}};
    assert_int_equal(gcmp_cause_conclude(&scene, &maker.arena, &error), GRADCMP_OK);
    assert_string_equal(maker.pair.cause.kind, "common_scale");
    return maker.pair.cause.text;
}

static void test_pair__a_common_factor_that_clipping_leaves_is_pointed_at(void **state) {
    const struct gcmp_clip silent = {NAN, 1.0}, tenth = {NAN, 0.1}, half = {0.5, 1.0},
                           off = {0.0, 1.0}, unknown = {NAN, NAN};
    (void)state;
    start();
    for (size_t i = 0; i < maker.pair.parameter_count; i++) {
        maker_scale(&maker.parameters[i], 2.0);
    }
    conclude(2, 1);
    assert_non_null(strstr(
        text_of_clips(silent, 4.9, silent, 0.9995),
        "; the candidate's gradients have a global norm of 0.9995, as after "
        "clipping to 1 (its files state no clipping; 1 is DeepSpeed's and transformers' default)"));
    assert_non_null(strstr(text_of_clips(silent, 4.9, tenth, 0.1), "norm of 1, as after"));
    const char *text = text_of_clips(half, 0.5, silent, 2.0);
    assert_non_null(strstr(text, "; the baseline's gradients have a global norm of 0.5, as after "
                                 "clipping to 0.5"));
    assert_null(strstr(text, "DeepSpeed"));
    assert_null(strstr(text_of_clips(silent, 4.9, silent, 0.9985), "clipping to"));
    assert_null(strstr(text_of_clips(silent, 4.9, off, 1.0), "clipping to"));
    assert_null(strstr(text_of_clips(silent, 4.9, unknown, 1.0), "clipping to"));
    assert_null(strstr(text_of_clips(silent, 4.9, half, 1.0), "clipping to"));
    assert_null(strstr(text_of_clips(half, 0.5, silent, 1.0), "clipping to"));
    maker_end(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair__a_common_factor_that_clipping_leaves_is_pointed_at),
        cmocka_unit_test(test_pair__without_failures_has_none),
        cmocka_unit_test(test_pair__one_factor_is_told_once),
        cmocka_unit_test(test_pair__another_factor_is_not_counted),
        cmocka_unit_test(test_pair__below_the_onset_is_upstream),
        cmocka_unit_test(test_pair__what_was_moved_is_not_inherited),
        cmocka_unit_test(test_pair__small_factor_beside_a_failure_is_not_told),
        cmocka_unit_test(test_missing_reduction__only_replicated_fail),
        cmocka_unit_test(test_missing_reduction__not_without_ranks_or_with_others),
        cmocka_unit_test(test_missing_reduction__needs_neighbours_and_half_of_its_class),
        cmocka_unit_test(test_missing_reduction__one_norm_alone_may_lack_another_sum),
        cmocka_unit_test(test_missing_reduction__not_for_small_errors),
        cmocka_unit_test(test_missing_reduction__not_where_copies_agree),
        cmocka_unit_test(test_routing__some_experts_and_their_rows),
        cmocka_unit_test(test_routing__passes_where_it_is_allowed_and_explains_all),
        cmocka_unit_test(test_pair__clipping_hides_no_layer),
        cmocka_unit_test(test_routing__not_for_one_expert_or_most_of_them),
        cmocka_unit_test(test_routing__not_where_dense_weights_fail_or_much_moved),
        cmocka_unit_test(test_pair__common_factor_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
