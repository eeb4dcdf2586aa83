/* Names in files that say nothing else of their tensors. */
#include "temp_tools.h"

#include "formats/plain_names.h"

static void check_name(const char *text, enum gcmp_dcp_style style, enum gcmp_dcp_kind kind,
                       const char *name, const char *state) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_key key;
    assert_true(gcmp_plain_parse_name(&arena, text, style, &key));
    if (key.kind != kind || strcmp(key.name, name) != 0 ||
        strcmp(key.state == NULL ? "-" : key.state, state) != 0) {
        fail_msg("%s: kind %d, name %s, state %s", text, (int)key.kind, key.name,
                 key.state == NULL ? "-" : key.state);
    }
    gcmp_arena_free(&arena);
}

static void test_parse__states_are_told_wherever_they_stand(void **state) {
    (void)state;
    static const char *const forms[] = {"exp_avg.layers.0.w",
                                        "exp_avg/layers/0/w",
                                        "layers.0.w.exp_avg",
                                        "optimizer.exp_avg.layers.0.w",
                                        "optimizer/exp_avg/layers/0/w",
                                        "optimizer/exp_avg/layers.0.w",
                                        "optim.layers.0.w.exp_avg",
                                        "opt/state/exp_avg/layers/0/w",
                                        "state.exp_avg.layers.0.w",
                                        "optimizer.state.layers.0.w.exp_avg",
                                        "chained_1.optimizer.state.exp_avg.layers.0.w"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        check_name(forms[i], GCMP_DCP_TORCH, GCMP_DCP_STATE, "layers.0.w", "exp_avg");
        check_name(forms[i], GCMP_DCP_MEGATRON, GCMP_DCP_STATE, "layers.0.w", "exp_avg");
    }
}

static void test_parse__other_states(void **state) {
    (void)state;
    check_name("exp_avg_sq/w.x", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "exp_avg_sq");
    check_name("optimizer.param.w.x", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "fp32_param");
    check_name("optimizer.step.w.x", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "step");
    check_name("grads.w.x", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "main_grad");
    check_name("gradients/w/x", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "main_grad");
    check_name("w.x.grad", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "main_grad");
    check_name("w/x/gradient", GCMP_DCP_MEGATRON, GCMP_DCP_STATE, "w.x", "main_grad");
    check_name("main_grad.w.x", GCMP_DCP_TORCH, GCMP_DCP_STATE, "w.x", "main_grad");
}

/* A parameter may be called like a weak word, and no state may swallow it: its gradient would not
 * be compared. */
static void test_parse__names_that_end_like_a_state_or_with_a_dot(void **state) {
    (void)state;
    for (int style = GCMP_DCP_TORCH; style <= GCMP_DCP_MEGATRON; style++) {
        enum gcmp_dcp_style as = (enum gcmp_dcp_style)style;
        check_name("optimizer.state.exp_avg.a.step", as, GCMP_DCP_STATE, "a.step", "exp_avg");
        check_name("exp_avg.a.sum", as, GCMP_DCP_STATE, "a.sum", "exp_avg");
        check_name("exp_avg_sq/param", as, GCMP_DCP_STATE, "param", "exp_avg_sq");
        check_name("optimizer.sum.w.exp_avg", as, GCMP_DCP_STATE, "sum.w", "exp_avg");
        check_name("optimizer.state.exp_avg.a.", as, GCMP_DCP_STATE, "a.", "exp_avg");
        check_name("exp_avg...", as, GCMP_DCP_STATE, "..", "exp_avg");
        check_name("optimizer.state.exp_avg.", as, GCMP_DCP_OTHER, "optimizer.state.exp_avg.", "-");
    }
}

/* A word that may well be a module's is a weight without "optimizer." in front. */
static void test_parse__weights_and_others(void **state) {
    (void)state;
    check_name("layers.0.step.w", GCMP_DCP_TORCH, GCMP_DCP_BARE, "layers.0.step.w", "param");
    check_name("step.w.x", GCMP_DCP_TORCH, GCMP_DCP_BARE, "step.w.x", "param");
    check_name("model/layers/0/w", GCMP_DCP_TORCH, GCMP_DCP_BARE, "model.layers.0.w", "param");
    check_name("exp_avg", GCMP_DCP_TORCH, GCMP_DCP_BARE, "exp_avg", "param");
    check_name("grad", GCMP_DCP_TORCH, GCMP_DCP_BARE, "grad", "param");
    check_name("optimizer.param_groups.0.lr", GCMP_DCP_TORCH, GCMP_DCP_OTHER,
               "optimizer.param_groups.0.lr", "-");
    check_name("rng_state/0", GCMP_DCP_TORCH, GCMP_DCP_OTHER, "rng_state.0", "-");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse__states_are_told_wherever_they_stand),
        cmocka_unit_test(test_parse__other_states),
        cmocka_unit_test(test_parse__names_that_end_like_a_state_or_with_a_dot),
        cmocka_unit_test(test_parse__weights_and_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
