/* The grammar of keys. */
#include "temp_tools.h"

#include "formats/dcp_keys.h"

/* Expect what a key means. `path` is a pickle of protocol 0 of the writer's path, or NULL. */
struct expected {
    const char *key, *path;
    enum gcmp_dcp_style style;
    enum gcmp_dcp_kind kind;
    const char *name, *state;
};

static void check(const struct expected *expected) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_node *path = NULL;
    if (expected->path != NULL) {
        struct gcmp_cursor cursor = gcmp_cursor_make(expected->path, strlen(expected->path), 0);
        assert_int_equal(gcmp_pickle_load(&cursor, &arena, "", &path, NULL), GRADCMP_OK);
    }
    struct gcmp_dcp_key key;
    assert_true(gcmp_dcp_parse_key(&arena, expected->key, path, expected->style, &key));
    assert_int_equal(key.kind, expected->kind);
    assert_string_equal(key.name, expected->name);
    if (expected->state == NULL) {
        assert_null(key.state);
    } else {
        assert_non_null(key.state);
        assert_string_equal(key.state, expected->state);
    }
    gcmp_arena_free(&arena);
}

static void check_all(const struct expected *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check(&cases[i]);
    }
}

#define M GCMP_DCP_MEGATRON
#define T GCMP_DCP_TORCH

#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof *(cases))

static void test_parse__megatron(void **state) {
    (void)state;
    static const struct expected cases[] = {
        {"decoder.layers.mlp.linear_fc1.weight", NULL, M, GCMP_DCP_BARE,
         "decoder.layers.mlp.linear_fc1.weight", "param"},
        {"optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight", NULL, M, GCMP_DCP_STATE,
         "decoder.layers.mlp.linear_fc1.weight", "exp_avg"},
        {"chained_0.optimizer.state.exp_avg_sq.output_layer.weight", NULL, M, GCMP_DCP_STATE,
         "output_layer.weight", "exp_avg_sq"},
        {"chained_12.optimizer.state.fp32_param.output_layer.weight", NULL, M, GCMP_DCP_STATE,
         "output_layer.weight", "fp32_param"},
        {"optimizer.state.param.output_layer.weight", NULL, M, GCMP_DCP_STATE,
         "output_layer.weight", "fp32_param"},
        {"optimizer.state.momentum_buffer.a.weight", NULL, M, GCMP_DCP_STATE, "a.weight",
         "momentum_buffer"},
        /* a state that nobody knows yet: the style decides */
        {"optimizer.state.curvature.a.weight", NULL, M, GCMP_DCP_STATE, "a.weight", "curvature"},
        /* a parameter whose name ends with the word of a state */
        {"optimizer.state.exp_avg.decoder.sum", NULL, M, GCMP_DCP_STATE, "decoder.sum", "exp_avg"},
        {"decoder.layers.self_attention.linear_proj._extra_state/shard_0_8", NULL, M,
         GCMP_DCP_OTHER, "decoder.layers.self_attention.linear_proj._extra_state/shard_0_8", NULL},
        {"decoder.layers.0.mlp._extra_state", NULL, M, GCMP_DCP_OTHER,
         "decoder.layers.0.mlp._extra_state", NULL},
        {"rng_state/shard_0.0_1.1", NULL, M, GCMP_DCP_OTHER, "rng_state/shard_0.0_1.1", NULL},
        {"chained_x.weight", NULL, M, GCMP_DCP_BARE, "chained_x.weight", "param"},
        {"optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32)."
         "bucket_idx_0.exp_avg",
         NULL, M, GCMP_DCP_BUCKET,
         "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32)."
         "bucket_idx_0.exp_avg",
         "exp_avg"},
        {"chained_1.optimizer.distributed.dp_group_idx_0.bucket_idx_0.param", NULL, M,
         GCMP_DCP_BUCKET, "chained_1.optimizer.distributed.dp_group_idx_0.bucket_idx_0.param",
         "fp32_param"},
        {"optimizer.distributed.dp_group_idx_0.param_state/shard_0_1", NULL, M, GCMP_DCP_BUCKET,
         "optimizer.distributed.dp_group_idx_0.param_state/shard_0_1", NULL},
    };
    CHECK_ALL(cases);
}

static void test_parse__torch(void **state) {
    (void)state;
    static const struct expected cases[] = {
        {"model.layers.0.w", NULL, T, GCMP_DCP_BARE, "model.layers.0.w", "param"},
        {"optim.state.layers.0.w.exp_avg", NULL, T, GCMP_DCP_STATE, "layers.0.w", "exp_avg"},
        {"optimizer.state.layers.0.w.exp_avg_sq", NULL, T, GCMP_DCP_STATE, "layers.0.w",
         "exp_avg_sq"},
        {"state.layers.0.w.step", NULL, T, GCMP_DCP_STATE, "layers.0.w", "step"},
        {"optimizer.state.17.exp_avg", NULL, T, GCMP_DCP_STATE, "17", "exp_avg"},
        {"optimizer.state.a.curvature", NULL, T, GCMP_DCP_STATE, "a", "curvature"},
        /* a module whose name is the word of a state: the last word counts here */
        {"optim.state.exp_avg.weight.exp_avg", NULL, T, GCMP_DCP_STATE, "exp_avg.weight",
         "exp_avg"},
        /* Megatron's order is recognised where only the first word is a state */
        {"optimizer.state.exp_avg.weight", NULL, T, GCMP_DCP_STATE, "weight", "exp_avg"},
        {"optim.param_groups.0.lr", NULL, T, GCMP_DCP_OTHER, "optim.param_groups.0.lr", NULL},
        {"param_groups.layers.0.w.lr", NULL, T, GCMP_DCP_OTHER, "param_groups.layers.0.w.lr", NULL},
        {"train_state.step", NULL, T, GCMP_DCP_OTHER, "train_state.step", NULL},
        {"dataloader.dp_rank_0", NULL, T, GCMP_DCP_OTHER, "dataloader.dp_rank_0", NULL},
        {"optimizer.state.lonely", NULL, T, GCMP_DCP_OTHER, "optimizer.state.lonely", NULL},
        {"optimizer.state.", NULL, T, GCMP_DCP_OTHER, "optimizer.state.", NULL},
        {"optimizer.state..exp_avg", NULL, T, GCMP_DCP_OTHER, "optimizer.state..exp_avg", NULL},
        {"", NULL, T, GCMP_DCP_BARE, "", "param"},
    };
    CHECK_ALL(cases);
}

/* The writer's own path wins over what the key looks like. */
static void test_parse__path_of_the_writer(void **state) {
    (void)state;
    static const struct expected cases[] = {
        {"model.layers.0.w", "(Vmodel\nVlayers.0.w\nt.", T, GCMP_DCP_MODEL, "layers.0.w", "param"},
        {"app.model.layers.0.w", "(Vapp\nVmodel\nVlayers.0.w\nt.", T, GCMP_DCP_MODEL, "layers.0.w",
         "param"},
        /* one part: "model." is a part of the name */
        {"state_dict.layers.0.w", "(Vstate_dict\nVlayers.0.w\nt.", T, GCMP_DCP_MODEL, "layers.0.w",
         "param"},
        {"optimizer_0.state.w.exp_avg", "(Voptimizer_0\nVstate\nVw\nVexp_avg\nt.", T,
         GCMP_DCP_STATE, "w", "exp_avg"},
        {"state.model.layers.0.w", "(Vstate\nVmodel\nVlayers.0.w\nt.", T, GCMP_DCP_MODEL,
         "layers.0.w", "param"},
        {"optim.state.net.exp_avg", "(Voptim\nVstate\nVnet\nVexp_avg\nt.", T, GCMP_DCP_STATE, "net",
         "exp_avg"},
        {"loader.w", "(Vloader\nVw\nt.", T, GCMP_DCP_OTHER, "loader.w", NULL},
        {"model.layers.0.w", "(Vmodel.layers.0.w\nt.", T, GCMP_DCP_MODEL, "model.layers.0.w",
         "param"},
        {"optim.state.layers.0.w.exp_avg", "(Voptim\nVstate\nVlayers.0.w\nVexp_avg\nt.", T,
         GCMP_DCP_STATE, "layers.0.w", "exp_avg"},
        /* a state with a dot in it cannot be told from the key */
        {"optim.state.a.b.c.d", "(Voptim\nVstate\nVa.b\nVc.d\nt.", T, GCMP_DCP_STATE, "a.b", "c.d"},
        {"optim.state.3.exp_avg", "(Voptim\nVstate\nI3\nVexp_avg\nt.", T, GCMP_DCP_STATE, "3",
         "exp_avg"},
        {"optimizer.state.w.exp_avg", "(Voptimizer\nVstate.w.exp_avg\nt.", T, GCMP_DCP_STATE, "w",
         "exp_avg"},
        {"optim.layers.0.w.exp_avg", "(Voptim\nVlayers.0.w\nVexp_avg\nt.", T, GCMP_DCP_STATE,
         "layers.0.w", "exp_avg"},
        {"optimizer.3.exp_avg_sq", "(Voptimizer\nI3\nVexp_avg_sq\nt.", T, GCMP_DCP_STATE, "3",
         "exp_avg_sq"},
        {"optim.w.sum", "(Voptim\nVw\nVsum\nt.", T, GCMP_DCP_OTHER, "optim.w.sum", NULL},
        {"a.w.exp_avg", "(Va\nVw\nVexp_avg\nt.", T, GCMP_DCP_OTHER, "a.w.exp_avg", NULL},
        {"optim.param_groups.0.lr", "(Voptim\nVparam_groups\nI0\nVlr\nt.", T, GCMP_DCP_OTHER,
         "optim.param_groups.0.lr", NULL},
        {"rng_state.rank_0.torch", "(Vrng_state\nVrank_0\nVtorch\nt.", T, GCMP_DCP_OTHER,
         "rng_state.rank_0.torch", NULL},
        {"x.0", "(Vx\nI0\nt.", T, GCMP_DCP_OTHER, "x.0", NULL},
        /* no path at all, or something else: the key decides */
        {"optim.state.w.exp_avg", "(t.", T, GCMP_DCP_STATE, "w", "exp_avg"},
        {"optim.state.w.exp_avg", "I1\n.", T, GCMP_DCP_STATE, "w", "exp_avg"},
    };
    CHECK_ALL(cases);
}

/* Below the dict of a model are weights, whatever they are called. */
static void test_parse__weights_in_the_dict_of_a_model(void **state) {
    (void)state;
    static const struct expected cases[] = {
        {"model.state.enc.weight", "(Vmodel\nVstate.enc.weight\nt.", T, GCMP_DCP_MODEL,
         "state.enc.weight", "param"},
        {"app.model.state.0.exp_avg", "(Vapp\nVmodel\nVstate.0.exp_avg\nt.", T, GCMP_DCP_MODEL,
         "state.0.exp_avg", "param"},
        {"model.optimizer.w", "(Vmodel\nVoptimizer.w\nt.", T, GCMP_DCP_MODEL, "optimizer.w",
         "param"},
        {"model.experts.a", "(Vmodel\nVexperts\nVa\nt.", T, GCMP_DCP_MODEL, "experts.a", "param"},
        {"model.experts.1", "(Vmodel\nVexperts\nI1\nt.", T, GCMP_DCP_MODEL, "experts.1", "param"},
        {"net.1", "(Vnet\nI1\nt.", T, GCMP_DCP_MODEL, "net.1", "param"}, /* of a list */
        {"model.ema.w", "(Vmodel\nVema\nVw\nt.", T, GCMP_DCP_MODEL, "ema.w", "param"},
        {"model.sampler.a.w", "(Vmodel\nVsampler\nVa.w\nt.", T, GCMP_DCP_MODEL, "sampler.a.w",
         "param"},
        {"model.param_groups.0.lr", "(Vmodel\nVparam_groups\nI0\nVlr\nt.", T, GCMP_DCP_OTHER,
         "model.param_groups.0.lr", NULL},
        {"model.a._extra_state.scale", "(Vmodel\nVa._extra_state\nVscale\nt.", T, GCMP_DCP_OTHER,
         "model.a._extra_state.scale", NULL},
        {"optim.model.a.b", "(Voptim\nVmodel\nVa\nVb\nt.", T, GCMP_DCP_OTHER, "optim.model.a.b",
         NULL},
        /* a key that is not its path joined by dots */
        {"other.a", "(Vmodel\nVexperts\nVa\nt.", T, GCMP_DCP_BARE, "other.a", "param"},
        {"a", "(Vmodel\nVexperts\nVa\nt.", T, GCMP_DCP_BARE, "a", "param"},
        /* a flattened optimizer in the state of a trainer */
        {"state.optimizer.state.w.x.exp_avg", "(Vstate\nVoptimizer\nVstate.w.x.exp_avg\nt.", T,
         GCMP_DCP_STATE, "w.x", "exp_avg"},
    };
    CHECK_ALL(cases);
}

/* Whole words, or their last part, tell what stands beside weights; modules may have such names. */
static void test_words__beside_weights(void **state) {
    (void)state;
    static const char *const beside[] = {"optimizer",    "gen_optim",     "optimizer_0",
                                         "lr_scheduler", "train_metrics", "loss_history",
                                         "rng_states",   "scaler_state",  "sampler",
                                         "rng",          "config",        "_extra_state"};
    static const char *const others[] = {"history_encoder", "stats_net", "loader_net", "rng_net",
                                         "config_encoder",  "args_head", "loss",       "ema_unet",
                                         "transformer_ema", "policy",    "",           "_"};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        assert_true(gcmp_dcp_is_beside_weights(beside[i], strlen(beside[i])));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(gcmp_dcp_is_beside_weights(others[i], strlen(others[i])));
        assert_false(gcmp_dcp_is_average(others[i], strlen(others[i])));
    }
    assert_true(gcmp_dcp_may_be_module("sampler", strlen("sampler")));
    assert_true(gcmp_dcp_may_be_module("optim_net", strlen("optim_net")));
    static const char *const never[] = {"gen_optim",   "optimizer",       "optimizer_0", "optim_G",
                                        "optim_state", "GenAdamOptim_12", "param_groups"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_false(gcmp_dcp_may_be_module(never[i], strlen(never[i])));
    }
    assert_true(gcmp_dcp_is_of_module("layers.0.weight") && gcmp_dcp_is_of_module("bias"));
    assert_false(gcmp_dcp_is_of_module("loss"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse__megatron),
        cmocka_unit_test(test_parse__torch),
        cmocka_unit_test(test_parse__path_of_the_writer),
        cmocka_unit_test(test_parse__weights_in_the_dict_of_a_model),
        cmocka_unit_test(test_words__beside_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
