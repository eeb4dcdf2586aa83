/* How tensor-parallel ranks share parameters, told from shapes. */
#include "local_tools.h"

#define LOCAL_TEST(test) cmocka_unit_test_setup_teardown(test, local_setup, local_teardown)
#define LAYER            "decoder.layers.0."

/* A norm, which says that the hidden size is 8; and with it a layer. */
static void add_norms(struct hand *hand, int32_t tp) {
    LOCAL_RANKS(hand, tp, LAYER "input_layernorm.weight", 8);
    LOCAL_RANKS(hand, tp, LAYER "pre_mlp_layernorm.weight", 8);
}

/* A gated MLP of 6 inner columns in all, two ranks. */
static void add_mlp(struct hand *hand) {
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc1.weight", 6, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc2.weight", 8, 3);
}

#define WAY_OUT "; save with --ckpt-format torch_dist --dist-ckpt-optim-fully-reshardable"

static void test_local_split__layer_of_two_ranks(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 4);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_qkv.weight", 8, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    const struct gradcmp_parameter *fc1 = hand_find(&model, LAYER "mlp.linear_fc1.weight");
    ASSERT_SHAPE(fc1, 12, 8);
    assert_int_equal(fc1->slab_count, 4); /* gate of rank 0, of 1; then the other halves */
    expect_slab(fc1, 0, DIMS(0, 0), DIMS(3, 8), 0);
    expect_slab(fc1, 1, DIMS(3, 0), DIMS(3, 8), 0);
    expect_slab(fc1, 2, DIMS(6, 0), DIMS(3, 8), 3 * 8);
    expect_slab(fc1, 3, DIMS(9, 0), DIMS(3, 8), 3 * 8);
    assert_int_equal(fc1->slabs[2].coords->tp, 0);
    assert_int_equal(fc1->slabs[3].coords->tp, 1);
    const struct gradcmp_parameter *fc2 = hand_find(&model, LAYER "mlp.linear_fc2.weight");
    ASSERT_SHAPE(fc2, 8, 6);
    expect_slab(fc2, 1, DIMS(0, 3), DIMS(8, 3), 0);
    const struct gradcmp_parameter *qkv =
        hand_find(&model, LAYER "self_attention.linear_qkv.weight");
    ASSERT_SHAPE(qkv, 16, 8); /* twice the columns of proj, but no gate */
    assert_int_equal(qkv->slab_count, 2);
    const struct gradcmp_parameter *norm =
        hand_find(&model, LAYER "self_attention.linear_qkv.layer_norm_weight");
    ASSERT_SHAPE(norm, 8);
    assert_int_equal(norm->copy_count, 2);
    assert_int_equal(norm->overlap, 0);
    assert_int_equal(norm->replicated, 1);
    assert_int_equal(norm->slabs[0].coords->tp, 0);
    assert_int_equal(fc1->replicated, 0);
    gcmp_model_free(&model);
}

static void test_local_split__biases_follow_rows(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc1.weight", 6, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc1.bias", 6);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc2.weight", 8, 3);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc2.bias", 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    const struct gradcmp_parameter *bias = hand_find(&model, LAYER "mlp.linear_fc1.bias");
    ASSERT_SHAPE(bias, 12);
    assert_int_equal(bias->slab_count, 4);
    expect_slab(bias, 2, DIMS(6), DIMS(3), 3);
    assert_int_equal(hand_find(&model, LAYER "mlp.linear_fc2.bias")->copy_count, 2);
    gcmp_model_free(&model);
}

static void test_local_split__bias_of_another_length(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc1.bias", 5);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.linear_fc1.bias: shape [5] on each of 2 "
                "tensor-parallel ranks does not tell how it is split: its matrix has another "
                "number of rows" WAY_OUT);
}

/* Of a matrix that is frozen, a state tells nothing; that of a norm needs no telling. */
static void test_local_split__bias_without_its_matrix(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    LOCAL_RANKS(hand, 2, LAYER "input_layernorm.bias", 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_qkv.bias", 12);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "self_attention.linear_qkv.bias: shape [12] on each of 2 "
                "tensor-parallel ranks does not tell how it is split: its matrix has no such "
                "state" WAY_OUT);
}

/* [h, h] beside a matrix that ends in h is one of those that begin with it. */
static void test_local_split__square_beside_a_last_matrix(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 4);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_qkv.weight", 8, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_qkv.weight"), 16, 8);
    gcmp_model_free(&model);
}

/* [h, h] beside one that begins with h is the last. */
static void test_local_split__square_beside_a_first_matrix(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_qkv.weight", 12, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_proj.weight"), 8, 16);
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_qkv.weight"), 24, 8);
    gcmp_model_free(&model);
}

/* Two of [h, h]: an MLP is made in the order of its use, attention's output first; where the names
 * are Megatron's, that is known. */
static void test_local_split__two_squares_by_order_and_name(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 4);
    LOCAL_RANKS(hand, 4, LAYER "mlp.linear_fc1.weight", 8, 8);
    LOCAL_RANKS(hand, 4, LAYER "mlp.linear_fc2.weight", 8, 8);
    LOCAL_RANKS(hand, 4, LAYER "cross_attention.linear_proj.weight", 8, 8);
    LOCAL_RANKS(hand, 4, LAYER "cross_attention.linear_q.weight", 8, 8);
    LOCAL_RANKS(hand, 4, LAYER "cross_attention.linear_kv.weight", 6, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.linear_fc1.weight"), 32, 8);
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.linear_fc2.weight"), 8, 32);
    ASSERT_SHAPE(hand_find(&model, LAYER "cross_attention.linear_proj.weight"), 8, 32);
    ASSERT_SHAPE(hand_find(&model, LAYER "cross_attention.linear_q.weight"), 32, 8);
    ASSERT_SHAPE(hand_find(&model, LAYER "cross_attention.linear_kv.weight"), 24, 8);
    gcmp_model_free(&model);
}

#define SQUARES                                                                                    \
    ": shape [8, 8] on each of 4 tensor-parallel ranks does not tell how it is split: another "    \
    "matrix of the module is as square, and their names and order are not Megatron's; save with "  \
    "--ckpt-format torch_dist --dist-ckpt-optim-fully-reshardable"

/* Another writer's order says nothing. */
static void test_local_split__two_squares_of_other_names(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 4);
    LOCAL_RANKS(hand, 4, LAYER "mlp.up_proj.weight", 8, 8);
    LOCAL_RANKS(hand, 4, LAYER "mlp.down_proj.weight", 8, 8);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.down_proj.weight" SQUARES);
}

/* Nor do Megatron's names in an order that is not its own. */
static void test_local_split__two_squares_in_another_order(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 4);
    LOCAL_RANKS(hand, 4, LAYER "mlp.linear_fc2.weight", 8, 8);
    LOCAL_RANKS(hand, 4, LAYER "mlp.linear_fc1.weight", 8, 8);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.linear_fc1.weight" SQUARES);
}

/* Gate and the other half as two matrices are no halves of one. */
static void test_local_split__gate_of_its_own(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mlp.gate_proj.weight", 3, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.up_proj.weight", 3, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.down_proj.weight", 8, 3);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    const struct gradcmp_parameter *gate = hand_find(&model, LAYER "mlp.gate_proj.weight");
    ASSERT_SHAPE(gate, 6, 8);
    assert_int_equal(gate->slab_count, 2);
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.down_proj.weight"), 8, 6);
    gcmp_model_free(&model);
}

static void test_local_split__chain_that_does_not_fit(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc1.weight", 7, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc2.weight", 8, 3);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.linear_fc2.weight: shape [8, 3] on each of 2 "
                "tensor-parallel ranks does not tell how it is split: it does not take what the "
                "others give" WAY_OUT);
}

static void test_local_split__attention_that_does_not_fit(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 5);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_qkv.weight", 4, 8);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "self_attention.linear_proj.weight: shape [8, 5] on each of "
                "2 tensor-parallel ranks does not tell how it is split: it takes more than there "
                "is" WAY_OUT);
}

static void test_local_split__two_last_matrices(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mlp.a.weight", 8, 3);
    LOCAL_RANKS(hand, 2, LAYER "mlp.b.weight", 8, 3);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.a.weight: shape [8, 3] on each of 2 tensor-parallel "
                "ranks does not tell how it is split: another matrix of the module ends in the "
                "hidden size" WAY_OUT);
}

static void test_local_split__gates_and_routers_are_whole(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    hand->catalogue.experts = 6;
    hand->catalogue.parallel.tp = 2;
    LOCAL_RANKS(hand, 2, LAYER "mlp.router.weight", 6, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.router.bias", 6);
    LOCAL_RANKS(hand, 2, LAYER "mlp.shared_experts.gate_weight", 1, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.shared_experts.linear_fc1.weight", 6, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.shared_experts.linear_fc2.weight", 8, 3);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(hand_find(&model, LAYER "mlp.router.weight")->copy_count, 2);
    assert_int_equal(hand_find(&model, LAYER "mlp.router.bias")->copy_count, 2);
    assert_int_equal(hand_find(&model, LAYER "mlp.shared_experts.gate_weight")->copy_count, 2);
    /* of the router's shape, but with a matrix beside it that takes what it gives */
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.shared_experts.linear_fc1.weight"), 12, 8);
    gcmp_model_free(&model);
}

static void test_local_split__lone_matrix(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mlp.router.weight", 6, 8);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.router.weight: shape [6, 8] on each of 2 "
                "tensor-parallel ranks does not tell how it is split: no matrix beside it takes "
                "what it gives" WAY_OUT);
}

static void test_local_split__multi_token_prediction(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.enorm.weight", 8);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.eh_proj.weight", 4, 16);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.transformer_layer.mlp.linear_fc1.weight", 6, 8);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.transformer_layer.mlp.linear_fc2.weight", 8, 3);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, "mtp.layers.0.eh_proj.weight"), 8, 16);
    assert_int_equal(hand_find(&model, "mtp.layers.0.enorm.weight")->copy_count, 2);
    gcmp_model_free(&model);
}

static void test_local_split__what_attention_keeps_for_each_head(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.core_attention.softmax_offset", 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.q_layernorm.weight", 2);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.core_attention.softmax_offset"), 4);
    assert_int_equal(hand_find(&model, LAYER "self_attention.q_layernorm.weight")->copy_count, 2);
    gcmp_model_free(&model);
    local_setting(hand, "num_attention_heads", 2); /* then each rank holds it whole */
    model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.core_attention.softmax_offset"), 2);
    gcmp_model_free(&model);
}

/* A rank's share of the heads may be as many as the experts, or one: the heads are told first. */
static void test_local_split__heads_of_a_rank_as_many_as_experts(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    hand->catalogue.experts = 4;
    hand->catalogue.parallel.tp = 2;
    local_setting(hand, "num_attention_heads", 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.core_attention.softmax_offset", 4);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.q_layernorm.weight", 4);
    LOCAL_RANKS(hand, 2, LAYER "mlp.router.expert_bias", 4);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.core_attention.softmax_offset"), 8);
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.q_layernorm.weight"), 4);
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.router.expert_bias"), 4);
    gcmp_model_free(&model);
}

static void test_local_split__one_head_a_rank(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 4);
    local_setting(hand, "num_attention_heads", 4);
    LOCAL_RANKS(hand, 4, LAYER "self_attention.core_attention.softmax_offset", 1);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    const struct gradcmp_parameter *sinks =
        hand_find(&model, LAYER "self_attention.core_attention.softmax_offset");
    ASSERT_SHAPE(sinks, 4);
    assert_int_equal(sinks->copy_count, 1);
    gcmp_model_free(&model);
}

#define HEADS                                                                                      \
    "tp0pp0ep0vp0: " LAYER "self_attention.core_attention.softmax_offset: shape [1] on each of 4 " \
    "tensor-parallel ranks does not tell how it is split: the number of heads does not "           \
    "tell" WAY_OUT

static void test_local_split__heads_that_do_not_tell(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 4);
    LOCAL_RANKS(hand, 4, LAYER "self_attention.core_attention.softmax_offset", 1);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED, HEADS);
    local_setting(hand, "num_attention_heads", 6);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED, HEADS);
}

/* What a state-space model keeps for each of its heads is split as well. */
static void test_local_split__vector_of_a_mixer_as_long_as_experts(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    hand->catalogue.experts = 4;
    LOCAL_RANKS(hand, 2, LAYER "mixer.A_log", 4);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mixer.A_log: shape [4] on each of 2 tensor-parallel ranks "
                "does not tell how it is split: it is no norm, no bias and nothing of the hidden "
                "size" WAY_OUT);
}

static void test_local_split__bias_of_a_convolution(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mixer.conv1d.bias", 3);
    LOCAL_RANKS(hand, 2, LAYER "mixer.conv1d.weight", 3, 1, 4);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mixer.conv1d.bias: shape [3] on each of 2 tensor-parallel "
                "ranks does not tell how it is split: its weight is no matrix" WAY_OUT);
}

/* A share of multi-token prediction's matrix is no gate, which takes the hidden size. */
static void test_local_split__rows_of_a_rank_as_many_as_experts(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    hand->catalogue.experts = 4;
    LOCAL_RANKS(hand, 2, "mtp.layers.0.enorm.weight", 8);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.eh_proj.weight", 4, 16);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.transformer_layer.mlp.linear_fc1.weight", 6, 8);
    LOCAL_RANKS(hand, 2, "mtp.layers.0.transformer_layer.mlp.linear_fc2.weight", 8, 3);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, "mtp.layers.0.eh_proj.weight"), 8, 16);
    gcmp_model_free(&model);
}

static void test_local_split__vector_of_no_known_kind(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mixer.A_log", 3);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mixer.A_log: shape [3] on each of 2 tensor-parallel ranks "
                "does not tell how it is split: it is no norm, no bias and nothing of the hidden "
                "size" WAY_OUT);
}

static void test_local_split__tensor_of_three_axes(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "mixer.conv1d.weight", 3, 1, 4);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mixer.conv1d.weight: shape [3, 1, 4] on each of 2 "
                "tensor-parallel ranks does not tell how it is split: it is no matrix of a linear "
                "layer" WAY_OUT);
}

static void test_local_split__one_rank_needs_no_telling(void **state) {
    struct hand *hand = *state;
    LOCAL_RANKS(hand, 1, LAYER "mixer.conv1d.weight", 3, 1, 4);
    LOCAL_RANKS(hand, 1, LAYER "mixer.A_log", 3);
    LOCAL_RANKS(hand, 1, LAYER "mlp.router.weight", 6, 8);
    LOCAL_RANKS(hand, 1, "vision.patches", 6, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(model.count, 4);
    assert_int_equal(model.parameters[0].replicated, 0);
    gcmp_model_free(&model);
}

static void test_local_split__around_the_layers(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, "embedding.word_embeddings.weight", 5, 8);
    LOCAL_RANKS(hand, 2, "embedding.position_embeddings.weight", 16, 8);
    LOCAL_RANKS(hand, 2, "decoder.final_layernorm.weight", 8);
    LOCAL_RANKS(hand, 2, "output_layer.weight", 5, 8);
    LOCAL_RANKS(hand, 2, "output_layer.bias", 5);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, "embedding.word_embeddings.weight"), 10, 8);
    ASSERT_SHAPE(hand_find(&model, "embedding.position_embeddings.weight"), 16, 8);
    ASSERT_SHAPE(hand_find(&model, "decoder.final_layernorm.weight"), 8);
    ASSERT_SHAPE(hand_find(&model, "output_layer.weight"), 10, 8);
    ASSERT_SHAPE(hand_find(&model, "output_layer.bias"), 10);
    assert_int_equal(hand_find(&model, "embedding.word_embeddings.weight")->vocab_rows, 1);
    assert_int_equal(hand_find(&model, "embedding.word_embeddings.weight")->layer, 0);
    assert_int_equal(hand_find(&model, "output_layer.weight")->layer, 2);
    gcmp_model_free(&model);
}

static void test_local_split__head_of_one_output(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, "output_layer.weight", 1, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, "output_layer.weight"), 1, 8);
    assert_int_equal(hand_find(&model, "output_layer.weight")->copy_count, 2);
    gcmp_model_free(&model);
}

static void test_local_split__unknown_matrix_around_the_layers(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, "pooler.dense.weight", 8, 8);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: pooler.dense.weight: shape [8, 8] on each of 2 tensor-parallel "
                "ranks does not tell how it is split: it is no table of words, no embedding and no "
                "norm" WAY_OUT);
}

/* Where two sizes are as frequent, neither is taken for the hidden size. */
static void test_local_split__hidden_size_that_cannot_be_told(void **state) {
    struct hand *hand = *state;
    LOCAL_RANKS(hand, 2, LAYER "a_norm.weight", 8);
    LOCAL_RANKS(hand, 2, LAYER "b_norm.weight", 3);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc1.weight", 3, 8);
    LOCAL_RANKS(hand, 2, LAYER "mlp.linear_fc2.weight", 8, 3);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "mlp.linear_fc2.weight: shape [8, 3] on each of 2 "
                "tensor-parallel ranks does not tell how it is split: the hidden size cannot be "
                "told" WAY_OUT);
}

/* Stacks of different width have hidden sizes of their own. */
static void test_local_split__two_stacks(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    LOCAL_RANKS(hand, 2, "vision.layers.0.norm.weight", 6);
    LOCAL_RANKS(hand, 2, "vision.layers.0.mlp.linear_fc1.weight", 8, 6);
    LOCAL_RANKS(hand, 2, "vision.layers.0.mlp.linear_fc2.weight", 6, 8);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.linear_fc2.weight"), 8, 6);
    ASSERT_SHAPE(hand_find(&model, "vision.layers.0.mlp.linear_fc2.weight"), 6, 16);
    gcmp_model_free(&model);
}

static void test_local_split__module_that_the_arguments_say_is_whole(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    add_mlp(hand);
    local_setting(hand, "ffn_hidden_size", 3);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(hand_find(&model, LAYER "mlp.linear_fc1.weight")->copy_count, 2);
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.linear_fc2.weight"), 8, 3);
    gcmp_model_free(&model);
    local_setting(hand, "num_attention_heads", 2); /* is nothing to an MLP */
    local_setting(hand, "kv_channels", 3);
    model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.linear_fc2.weight"), 8, 3);
    gcmp_model_free(&model);
    local_setting(hand, "moe_ffn_hidden_size", 6); /* may be a share of this as well */
    model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "mlp.linear_fc2.weight"), 8, 6);
    gcmp_model_free(&model);
}

static void add_latent(struct hand *hand, uint64_t query_rows) {
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 10);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_q_down_proj.weight", query_rows, 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_q_up_proj.weight", 12, 6);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_kv_down_proj.weight", 7, 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_kv_up_proj.weight", 8, 5);
}

static void state_latent(struct hand *hand) {
    local_setting(hand, "q_lora_rank", 6);
    local_setting(hand, "kv_lora_rank", 5);
    local_setting(hand, "qk_pos_emb_head_dim", 2);
}

/* What makes a latent size is whole on each rank, or its rows are split. One matrix has as many
 * rows as the hidden size by chance. */
static void test_local_split__latent_attention(void **state) {
    struct hand *hand = *state;
    add_latent(hand, 3);
    state_latent(hand);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_q_down_proj.weight"), 6, 8);
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_q_up_proj.weight"), 24, 6);
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_kv_down_proj.weight"), 7, 8);
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_kv_up_proj.weight"), 16, 5);
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_proj.weight"), 8, 20);
    gcmp_model_free(&model);
}

static void test_local_split__latent_sizes_that_are_not_known(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 10);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_kv_down_proj.weight", 7, 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_kv_up_proj.weight", 12, 5);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: " LAYER "self_attention.linear_kv_down_proj.weight: shape [7, 8] on "
                "each of 2 tensor-parallel ranks does not tell how it is split: the latent sizes "
                "are not known" WAY_OUT);
}

/* A direct projection of the queries beside a latent one of keys and values. */
static void test_local_split__latent_keys_alone(void **state) {
    struct hand *hand = *state;
    add_norms(hand, 2);
    state_latent(hand);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_proj.weight", 8, 10);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_q_proj.weight", 12, 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_kv_down_proj.weight", 7, 8);
    LOCAL_RANKS(hand, 2, LAYER "self_attention.linear_kv_up_proj.weight", 12, 5);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, LAYER "self_attention.linear_q_proj.weight"), 24, 8);
    assert_int_equal(
        hand_find(&model, LAYER "self_attention.linear_kv_down_proj.weight")->copy_count, 2);
    gcmp_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(test_local_split__layer_of_two_ranks),
        LOCAL_TEST(test_local_split__biases_follow_rows),
        LOCAL_TEST(test_local_split__bias_of_another_length),
        LOCAL_TEST(test_local_split__bias_without_its_matrix),
        LOCAL_TEST(test_local_split__square_beside_a_last_matrix),
        LOCAL_TEST(test_local_split__square_beside_a_first_matrix),
        LOCAL_TEST(test_local_split__two_squares_by_order_and_name),
        LOCAL_TEST(test_local_split__two_squares_of_other_names),
        LOCAL_TEST(test_local_split__two_squares_in_another_order),
        LOCAL_TEST(test_local_split__gate_of_its_own),
        LOCAL_TEST(test_local_split__chain_that_does_not_fit),
        LOCAL_TEST(test_local_split__attention_that_does_not_fit),
        LOCAL_TEST(test_local_split__two_last_matrices),
        LOCAL_TEST(test_local_split__gates_and_routers_are_whole),
        LOCAL_TEST(test_local_split__lone_matrix),
        LOCAL_TEST(test_local_split__multi_token_prediction),
        LOCAL_TEST(test_local_split__what_attention_keeps_for_each_head),
        LOCAL_TEST(test_local_split__heads_of_a_rank_as_many_as_experts),
        LOCAL_TEST(test_local_split__one_head_a_rank),
        LOCAL_TEST(test_local_split__heads_that_do_not_tell),
        LOCAL_TEST(test_local_split__vector_of_a_mixer_as_long_as_experts),
        LOCAL_TEST(test_local_split__bias_of_a_convolution),
        LOCAL_TEST(test_local_split__rows_of_a_rank_as_many_as_experts),
        LOCAL_TEST(test_local_split__vector_of_no_known_kind),
        LOCAL_TEST(test_local_split__tensor_of_three_axes),
        LOCAL_TEST(test_local_split__one_rank_needs_no_telling),
        LOCAL_TEST(test_local_split__around_the_layers),
        LOCAL_TEST(test_local_split__head_of_one_output),
        LOCAL_TEST(test_local_split__unknown_matrix_around_the_layers),
        LOCAL_TEST(test_local_split__hidden_size_that_cannot_be_told),
        LOCAL_TEST(test_local_split__two_stacks),
        LOCAL_TEST(test_local_split__module_that_the_arguments_say_is_whole),
        LOCAL_TEST(test_local_split__latent_attention),
        LOCAL_TEST(test_local_split__latent_sizes_that_are_not_known),
        LOCAL_TEST(test_local_split__latent_keys_alone),
    };
    return cmocka_run_group_tests_name("local_split", tests, NULL, NULL);
}
