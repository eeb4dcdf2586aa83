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
        {"mp_rank_00/model_optim_rng/opt_param_scheduler/num_steps", NULL, "scheduler"},
        {"mp_rank_00/model_optim_rng/iteration", NULL, "other"},
        {"mp_rank_00/model_optim_rng/rng_state/0/torch_rng_state", NULL, "rng"},
        {"mp_rank_00/model_optim_rng/model/layers.0._extra_state", NULL, "model"},
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

static void test_without_ranks__hyperparameters_have_one_place(void **state) {
    (void)state;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    static const char *const cases[][2] = {
        {"optimizer.distributed.dp_group_idx_3.optimizer/shard_0_1/0/param_groups/1/lr",
         "common/optimizer/optimizer/param_groups/1/lr"},
        {"chained_1.optimizer.distributed.dp_group_idx_0.optimizer/shard_0_1/0/param_groups",
         "common/optimizer/1/optimizer/param_groups"},
        {"optimizer.distributed.dp_group_idx_3.optimizer/shard_0_1",
         "optimizer.distributed.dp_group_idx_3.optimizer/*"},
        {"optimizer.distributed.dp_group_idx_0.per_bucket_numel/shard_0_1/0",
         "optimizer.distributed.dp_group_idx_0.per_bucket_numel/*/0"},
        {"chained_.optimizer.distributed.dp_group_idx_0.optimizer/x/0/lr",
         "chained_.optimizer.distributed.dp_group_idx_0.optimizer/x/0/lr"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(gcmp_bits_without_ranks(&arena, cases[i][0]), cases[i][1]);
    }
    gcmp_arena_free(&arena);
}

static void test_rank_bytes__up_to_the_slash_behind_a_rank(void **state) {
    (void)state;
    assert_int_equal(gcmp_bits_rank_bytes("mp_rank_00/model_optim_rng/iteration"), 10);
    assert_int_equal(gcmp_bits_rank_bytes("step5/model_rank3/x"), 17);
    assert_int_equal(gcmp_bits_rank_bytes("rng/(0, 1)/cuda"), 10);
    assert_int_equal(gcmp_bits_rank_bytes("rank_3"), 0);
    assert_int_equal(gcmp_bits_rank_bytes("layers.0.weight/x"), 0);
}

static bool is_for_all(const char *path) {
    struct gcmp_bits_item item = {.path = path,
                                  .type = "int",
                                  .kind = GCMP_BITS_VALUE,
                                  .group = (uint8_t)gcmp_bits_group_of(path, NULL)};
    return gcmp_bits_is_for_all_ranks(&item);
}

static void test_for_all_ranks__not_what_a_rank_has_for_itself(void **state) {
    (void)state;
    static const char *const alike[] = {
        "*/model_optim_rng/iteration", "*/args/lr", "*/x/opt_param_scheduler/num_steps",
        "*/optimizer/param_groups/0/lr", "*/optimizer/param_groups/0/step"};
    static const char *const own[] = {"*/args/rank",
                                      "*/args/local_rank",
                                      "*/args/cuda_device",
                                      "*/args/data_seed",
                                      "*/rng_state/python/0",
                                      "*/optimizer/param_groups/0/params/3",
                                      "*/optimizer/state/3/step",
                                      "*/x/slices/0/numel",
                                      "*/model/layers.0._extra_state"};
    for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++) {
        assert_true(is_for_all(alike[i]));
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        assert_false(is_for_all(own[i]));
    }
}

static void test_numbering__of_parameters_of_a_rank(void **state) {
    (void)state;
    assert_true(gcmp_bits_is_numbering("*/x/optimizer/1/optimizer/param_groups/0/params/3"));
    assert_true(gcmp_bits_is_numbering("*/x/optimizer/fp32_from_fp16_params/0"));
    assert_false(gcmp_bits_is_numbering("optimizer/param_groups/0/params/3"));
    assert_false(gcmp_bits_is_numbering("*/x/optimizer/param_groups/0/lr"));
    assert_true(gcmp_bits_is_numbered("*/x/optimizer/1/optimizer/state/4/step"));
    assert_false(gcmp_bits_is_numbered("optimizer/state/4/step"));
    assert_false(gcmp_bits_is_numbered("*/x/optimizer/state"));
}

static void test_of_layout__what_only_one_layout_keeps(void **state) {
    (void)state;
    const char *step = "common/optimizer/optimizer/param_groups/0/step";
    assert_true(gcmp_bits_is_of_layout("megatron_legacy", "*/optimizer/param_groups/0/step",
                                       "optimizer of each rank"));
    assert_false(gcmp_bits_is_of_layout("torch_dist", step, "fully_sharded_model_space"));
    assert_false(gcmp_bits_is_of_layout("torch_dist", step, "dp_reshardable"));
    assert_true(gcmp_bits_is_of_layout("torch_dist", "common/content_metadata/x", NULL));
    assert_false(gcmp_bits_is_of_layout("torch_dist", "common/iteration", NULL));
    assert_int_equal(gcmp_bits_optimizer_marks("common/optimizer/0/optimizer/param_groups/1/lr"),
                     GCMP_BITS_OPTIMIZERS);
    assert_int_equal(gcmp_bits_optimizer_marks("common/optimizer/optimizer/param_groups/1/step"),
                     GCMP_BITS_ONE_OPTIMIZER | GCMP_BITS_GROUP_STEPS);
    assert_int_equal(gcmp_bits_optimizer_marks("*/model_optim_rng/optimizer"),
                     GCMP_BITS_OPTIMIZERS);
    assert_int_equal(gcmp_bits_optimizer_marks("common/args/optimizer"), 0);
    assert_int_equal(gcmp_bits_optimizer_marks("common/iteration"), 0);
    assert_true(gcmp_bits_is_of_version("*/optimizer/param_groups/0/default_config"));
    assert_false(gcmp_bits_is_of_version("*/optimizer/param_groups/0/lr"));
    assert_false(gcmp_bits_is_of_layout("safetensors", "scheduler/last_epoch", NULL));
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
        cmocka_unit_test(test_without_ranks__hyperparameters_have_one_place),
        cmocka_unit_test(test_rank_bytes__up_to_the_slash_behind_a_rank),
        cmocka_unit_test(test_for_all_ranks__not_what_a_rank_has_for_itself),
        cmocka_unit_test(test_numbering__of_parameters_of_a_rank),
        cmocka_unit_test(test_of_layout__what_only_one_layout_keeps),
        cmocka_unit_test(test_ignores__globs_of_all_or_of_the_last_parts),
        cmocka_unit_test(test_layout_settings__sizes_tell_another_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
