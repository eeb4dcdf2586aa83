/* What paths mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bits/item.h"

static void test_group_of__path_and_state(void **state) {
    (void)state;
    static const struct {
        const char *path, *state, *group;
    } cases[] = {
        {"model/layers.0.weight", NULL, "model"},
        {"anything", "param", "model"},
        {"optimizer/state/0/step", NULL, "opt_step"},
        {"optimizer.state.exp_avg.w", "exp_avg", "exp_avg"},
        {"optimizer/state/3/exp_avg_sq", NULL, "exp_avg_sq"},
        {"common/optimizer/optimizer/param_groups/0/lr", NULL, "opt_hyper"},
        {"common/optimizer/optimizer/param_groups/0/step", NULL, "opt_step"},
        {"common/opt_param_scheduler/num_steps", NULL, "scheduler"},
        {"rng_state/shard_0.0_1.1/0/0/cuda_rng_state", NULL, "rng"},
        {"common/args/consumed_train_samples", NULL, "data"},
        {"common/args/no_load_rng", NULL, "args"},
        {"grad_scaler/_growth_tracker", NULL, "scaler"},
        {"dataloader.dp_rank_1/<pickle>/position", NULL, "data"},
        {"master/layers.0.bias", NULL, "master"},
        {"encoder/wrngs", NULL, "other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(gcmp_bits_group_name(gcmp_bits_group_of(cases[i].path, cases[i].state)),
                            cases[i].group);
    }
}

static void test_without_ranks__numbers_of_ranks_go(void **state) {
    (void)state;
    static const struct {
        const char *path, *without;
    } cases[] = {
        {"mp_rank_01_000/model_optim_rng/args/lr", "*/model_optim_rng/args/lr"},
        {"rng_state/shard_0.1_1.2/0", "rng_state/*/0"},
        {"dataloader.dp_rank_12/x", "dataloader.*/x"},
        {"rng_state_3/cuda", "*/cuda"},
        {"layers.0.weight", "layers.0.weight"},
        {"args/rank", "args/rank"},
    };
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(gcmp_bits_without_ranks(&arena, cases[i].path), cases[i].without);
    }
    assert_true(gcmp_bits_is_by_rank("rng/(0, 1)/cuda"));
    assert_false(gcmp_bits_is_by_rank("layers.0.weight"));
    gcmp_arena_free(&arena);
}

static void test_ignores__globs_of_all_or_of_the_last_parts(void **state) {
    (void)state;
    assert_true(gcmp_bits_ignores("args.lr", "common/args/lr"));
    assert_true(gcmp_bits_ignores("common/args/*", "common/args/lr"));
    assert_true(gcmp_bits_ignores("lr", "common/args/lr"));
    assert_true(gcmp_bits_ignores("*seed*", "args/data_seed"));
    assert_false(gcmp_bits_ignores("save", "args/save_interval"));
    assert_false(gcmp_bits_ignores("args.lr", "args/lr_decay"));
    assert_false(gcmp_bits_ignores("arg", "args/lr"));
}

static void test_layout_settings__sizes_tell_another_layout(void **state) {
    (void)state;
    assert_true(gcmp_bits_is_layout_size("common/args/tensor_model_parallel_size"));
    assert_true(gcmp_bits_is_layout_size("dataloader.world_size"));
    assert_false(gcmp_bits_is_layout_size("args/sequence_parallel"));
    assert_true(gcmp_bits_is_layout_setting("args/sequence_parallel"));
    assert_false(gcmp_bits_is_layout_setting("args/lr"));
    assert_true(gcmp_bits_is_layout_setting("common/content_metadata/distrib_optim_sharding_type"));
    assert_true(gcmp_bits_is_layout_setting("common/optimizer/param_state_sharding_type"));
    assert_true(gcmp_bits_is_layout_setting("common/args/dist_ckpt_optim_fully_reshardable"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_of__path_and_state),
        cmocka_unit_test(test_without_ranks__numbers_of_ranks_go),
        cmocka_unit_test(test_ignores__globs_of_all_or_of_the_last_parts),
        cmocka_unit_test(test_layout_settings__sizes_tell_another_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
