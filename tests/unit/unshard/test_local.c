/* Ranks' own shards under local names: numbers of layers and experts, copies, what is missing. */
#include <stdio.h>

#include "local_tools.h"

#define LOCAL_TEST(test) cmocka_unit_test_setup_teardown(test, local_setup, local_teardown)

static const struct local_rank FIRST = {.tp = 0};

/* With n layers in each chunk: local + chunk * stages * n + stage * n. */
static void test_local__layers_of_chunks_and_stages(void **state) {
    struct hand *hand = *state;
    for (int32_t vp = 0; vp < 2; vp++) {
        for (int32_t pp = 0; pp < 2; pp++) {
            struct local_rank rank = {.pp = pp, .vp = vp};
            LOCAL_SHARD(hand, rank, "decoder.layers.0.w", 2);
            LOCAL_SHARD(hand, rank, "decoder.layers.1.w", 2);
        }
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(model.count, 8);
    assert_int_equal(model.layers, 8);
    for (int64_t layer = 0; layer < 8; layer++) {
        char name[40];
        snprintf(name, sizeof name, "decoder.layers.%d.w", (int)layer);
        const struct gradcmp_parameter *parameter = hand_find(&model, name);
        assert_int_equal(parameter->slabs[0].coords->vp, layer / 4);
        assert_int_equal(parameter->slabs[0].coords->pp, layer % 4 / 2);
        assert_int_equal(parameter->layer, layer + 1);
    }
    gcmp_model_free(&model);
}

static void test_local__stages_of_different_depth(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, FIRST, "decoder.layers.0.w", 2);
    for (int32_t local = 0; local < 12; local++) {
        char name[40];
        snprintf(name, sizeof name, "decoder.layers.%d.w", (int)local);
        LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, name, 2);
    }
    LOCAL_SHARD(hand, (struct local_rank){.pp = 2}, "decoder.layers.0.w", 2);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(hand_find(&model, "decoder.layers.0.w")->slabs[0].coords->pp, 0);
    assert_int_equal(hand_find(&model, "decoder.layers.12.w")->slabs[0].coords->pp, 1);
    assert_int_equal(hand_find(&model, "decoder.layers.13.w")->slabs[0].coords->pp, 2);
    gcmp_model_free(&model);
}

/* Each stack of layers counts for itself. */
static void test_local__stacks_count_apart(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 2;
    LOCAL_SHARD(hand, FIRST, "decoder.layers.0.w", 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "decoder.layers.0.w", 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "mtp.layers.0.w", 2);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_NAMES(&model, "decoder.layers.0.w", "decoder.layers.1.w", "mtp.layers.0.w");
    gcmp_model_free(&model);
}

static void test_local__wrappers_are_taken_off(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, FIRST, "module.module.decoder.layers.0.w", 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "module.module.decoder.layers.0.w", 2);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_NAMES(&model, "decoder.layers.0.w", "decoder.layers.1.w");
    gcmp_model_free(&model);
}

/* A state that the last layer of a stage lacks: how many there are is seen in the weights. So are
 * names that depend on what stands beside them. */
static void test_local__state_that_layers_lack(void **state) {
    struct hand *hand = *state;
    for (int32_t pp = 0; pp < 2; pp++) {
        struct local_rank rank = {.pp = pp};
        for (int layer = 0; layer < 2; layer++) {
            char name[64];
            snprintf(name, sizeof name, "decoder.layers.%d.input_layernorm.weight", layer);
            hand_stored(hand, LOCAL_SHARD(hand, rank, name, 2))->state = "param";
            snprintf(name, sizeof name, "decoder.layers.%d.self_attention.linear_qkv.weight",
                     layer);
            hand_stored(hand, LOCAL_SHARD(hand, rank, name, 4, 2))->state = "param";
        }
        LOCAL_SHARD(hand, rank, "decoder.layers.0.input_layernorm.weight", 2);
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_NAMES(&model, "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight",
                 "decoder.layers.2.self_attention.linear_qkv.layer_norm_weight");
    gcmp_model_free(&model);
}

/* An encoder without the state is in front of the decoder, at its depth on all stages. */
static void test_local__stack_that_lacks_the_state(void **state) {
    struct hand *hand = *state;
    for (int32_t stage = 0; stage < 2; stage++) {
        struct local_rank rank = {.pp = stage};
        LOCAL_SHARD(hand, rank, "decoder.layers.0.norm", 2);
        hand_stored(hand, LOCAL_SHARD(hand, rank, "decoder.layers.0.norm", 2))->state = "param";
        hand_stored(hand, LOCAL_SHARD(hand, rank, "encoder.layers.1.norm", 2))->state = "param";
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(model.layers, 6);
    assert_int_equal(model.shown, 6);
    assert_int_equal(hand_find(&model, "decoder.layers.0.norm")->layer, 5);
    assert_int_equal(hand_find(&model, "decoder.layers.1.norm")->layer, 6);
    gcmp_model_free(&model);
}

static void test_local__fewer_layers_than_the_run_has(void **state) {
    struct hand *hand = *state;
    hand->catalogue.layers = 3;
    LOCAL_SHARD(hand, FIRST, "decoder.layers.0.w", 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "decoder.layers.0.w", 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "mtp.layers.0.w", 2); /* is not counted */
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "the ranks' files hold 2 layers, but the run has 3");
}

/* Three layers on stages of two: the fourth is there in name only. */
static void test_local__layers_in_name_only(void **state) {
    struct hand *hand = *state;
    struct gradcmp_setting noop = {
        .name = "noop_layers", .kind = GRADCMP_SETTING_TEXT, .text = "1,3"};
    assert_int_equal(gcmp_catalogue_set(&hand->catalogue, &noop, NULL), GRADCMP_OK);
    hand->catalogue.layers = 4;
    hand->catalogue.parallel.pp = 2;
    LOCAL_SHARD(hand, FIRST, "decoder.layers.0.w", 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "decoder.layers.0.w", 2);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_NAMES(&model, "decoder.layers.0.w", "decoder.layers.2.w");
    gcmp_model_free(&model);
}

/* Local modules and grouped matrices name the same experts. */
static void test_local__experts_of_ranks(void **state) {
    struct hand *hand = *state;
    for (int32_t ep = 0; ep < 2; ep++) {
        struct local_rank rank = {.ep = ep};
        LOCAL_SHARD(hand, rank, "decoder.layers.0.mlp.experts.local_experts.0.linear_fc1.weight", 4,
                    2);
        LOCAL_SHARD(hand, rank, "decoder.layers.0.mlp.experts.local_experts.1.linear_fc1.weight", 4,
                    2);
        LOCAL_SHARD(hand, rank, "decoder.layers.1.mlp.experts.linear_fc1.weight0", 4, 2);
        LOCAL_SHARD(hand, rank, "decoder.layers.1.mlp.experts.linear_fc1.weight1", 4, 2);
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_NAMES(&model, "decoder.layers.0.mlp.experts.experts.0.linear_fc1.weight",
                 "decoder.layers.0.mlp.experts.experts.1.linear_fc1.weight",
                 "decoder.layers.0.mlp.experts.experts.2.linear_fc1.weight",
                 "decoder.layers.0.mlp.experts.experts.3.linear_fc1.weight",
                 "decoder.layers.1.mlp.experts.experts.0.linear_fc1.weight",
                 "decoder.layers.1.mlp.experts.experts.1.linear_fc1.weight",
                 "decoder.layers.1.mlp.experts.experts.2.linear_fc1.weight",
                 "decoder.layers.1.mlp.experts.experts.3.linear_fc1.weight");
    assert_int_equal(model.parameters[6].slabs[0].coords->ep, 1);
    gcmp_model_free(&model);
}

/* Ten experts on each of two ranks: numbers of more digits than before. */
static void test_local__numbers_grow(void **state) {
    struct hand *hand = *state;
    for (int32_t ep = 0; ep < 2; ep++) {
        for (int expert = 0; expert < 10; expert++) {
            char name[80];
            snprintf(name, sizeof name, "layers.0.mlp.experts.local_experts.%d.w", expert);
            struct local_rank rank = {.ep = ep, .pp = 1};
            LOCAL_SHARD(hand, rank, name, 1);
        }
    }
    for (int layer = 0; layer < 9; layer++) {
        char name[80];
        snprintf(name, sizeof name, "layers.%d.w", layer);
        LOCAL_SHARD(hand, FIRST, name, 1);
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    hand_find(&model, "layers.9.mlp.experts.experts.19.w");
    hand_find(&model, "layers.9.mlp.experts.experts.9.w");
    gcmp_model_free(&model);
}

static void test_local__ranks_with_different_numbers_of_experts(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, FIRST, "layers.0.mlp.experts.local_experts.0.w", 1);
    LOCAL_SHARD(hand, FIRST, "layers.0.mlp.experts.local_experts.1.w", 1);
    LOCAL_SHARD(hand, (struct local_rank){.ep = 1}, "layers.0.mlp.experts.local_experts.0.w", 1);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "of one layer, ranks hold 2 and 1 experts");
}

static void test_local__experts_in_one_tensor(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, FIRST, "layers.0.mlp.experts.weight1", 2, 8);
    LOCAL_SHARD(hand, (struct local_rank){.ep = 1}, "layers.0.mlp.experts.weight1", 2, 8);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_UNSUPPORTED,
                "tp0pp0ep0vp0: layers.0.mlp.experts.weight1: experts of a rank in one tensor are "
                "not read");
}

/* What is no expert is on every rank of experts: copies, also of what is split. */
static void test_local__copies_of_ranks_of_experts(void **state) {
    struct hand *hand = *state;
    for (int32_t r = 0; r < 4; r++) {
        struct local_rank rank = {.tp = r % 2, .ep = r};
        LOCAL_SHARD(hand, rank, "embedding.word_embeddings.weight", 3, 2);
        LOCAL_SHARD(hand, rank, "decoder.final_layernorm.weight", 2);
        LOCAL_SHARD(hand, rank, "decoder.layers.0.mlp.experts.local_experts.0.w", 2, 2);
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    const struct gradcmp_parameter *words = hand_find(&model, "embedding.word_embeddings.weight");
    ASSERT_SHAPE(words, 6, 2);
    assert_int_equal(words->copy_count, 2);
    assert_int_equal(words->overlap, 0);
    assert_int_equal(words->replicated, 0);
    assert_int_equal(words->slabs[0].coords->ep, 0);
    assert_int_equal(words->slabs[2].coords->ep, 2);
    const struct gradcmp_parameter *norm = hand_find(&model, "decoder.final_layernorm.weight");
    assert_int_equal(norm->copy_count, 4);
    assert_int_equal(norm->slabs[1].coords->tp, 0); /* of the first rank, then the others */
    assert_int_equal(norm->slabs[1].coords->ep, 2);
    assert_int_equal(norm->slabs[2].coords->tp, 1);
    assert_int_equal(hand_find(&model, "decoder.layers.0.mlp.experts.experts.3.w")->copy_count, 1);
    gcmp_model_free(&model);
}

/* Experts split over fewer ranks than the rest: tp 4, etp 2, ep 2. */
static void test_local__experts_split_over_fewer_ranks(void **state) {
    struct hand *hand = *state;
    for (int32_t r = 0; r < 4; r++) {
        struct local_rank rank = {.tp = r, .ep = r / 2, .etp = r % 2};
        LOCAL_SHARD(hand, rank, "layers.0.pre_mlp_layernorm.weight", 8);
        LOCAL_SHARD(hand, rank, "layers.0.mlp.experts.local_experts.0.linear_fc1.weight", 6, 8);
        LOCAL_SHARD(hand, rank, "layers.0.mlp.experts.local_experts.0.linear_fc2.weight", 8, 3);
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    const struct gradcmp_parameter *fc2 =
        hand_find(&model, "layers.0.mlp.experts.experts.1.linear_fc2.weight");
    ASSERT_SHAPE(fc2, 8, 6);
    assert_int_equal(fc2->copy_count, 1);
    expect_slab(fc2, 1, DIMS(0, 3), DIMS(8, 3), 0);
    assert_int_equal(fc2->slabs[1].coords->tp, 3);
    assert_int_equal(hand_find(&model, "layers.0.pre_mlp_layernorm.weight")->copy_count, 4);
    gcmp_model_free(&model);
}

/* The embedding stands on the first stage, and where tokens are predicted further. */
static void test_local__one_name_on_two_stages_is_copies(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, FIRST, "embedding.word_embeddings.weight", 3, 2);
    LOCAL_SHARD(hand, (struct local_rank){.pp = 1}, "embedding.word_embeddings.weight", 3, 2);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    assert_int_equal(model.count, 1);
    assert_int_equal(model.parameters[0].copy_count, 2);
    gcmp_model_free(&model);
}

static void test_local__rank_without_a_shard(void **state) {
    struct hand *hand = *state;
    LOCAL_RANKS(hand, 3, "decoder.final_layernorm.weight", 2);
    LOCAL_SHARD(hand, (struct local_rank){.tp = 0}, "embedding.word_embeddings.weight", 3, 2);
    LOCAL_SHARD(hand, (struct local_rank){.tp = 2}, "embedding.word_embeddings.weight", 3, 2);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "embedding.word_embeddings.weight: rows [3, 6) of axis 0 are in no shard");
}

static void test_local__shapes_that_differ(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, (struct local_rank){.tp = 0}, "decoder.final_layernorm.weight", 2);
    LOCAL_SHARD(hand, (struct local_rank){.tp = 1}, "decoder.final_layernorm.weight", 3);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "tp1pp0ep0vp0: decoder.final_layernorm.weight: shape [3], but tp0pp0ep0vp0: "
                "decoder.final_layernorm.weight has [2]");
}

static void test_local__types_that_differ(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, (struct local_rank){.tp = 0}, "decoder.final_layernorm.weight", 2);
    size_t other =
        LOCAL_SHARD(hand, (struct local_rank){.tp = 1}, "decoder.final_layernorm.weight", 2);
    hand_stored(hand, other)->dtype = GRADCMP_DTYPE_BFLOAT16;
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "tp1pp0ep0vp0: decoder.final_layernorm.weight: bfloat16, but tp0pp0ep0vp0: "
                "decoder.final_layernorm.weight is float32");
}

static void test_local__two_spellings_on_one_rank(void **state) {
    struct hand *hand = *state;
    LOCAL_SHARD(hand, FIRST, "decoder.final_layernorm.weight", 2);
    LOCAL_SHARD(hand, FIRST, "decoder.final_norm.weight", 2);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "tp0pp0ep0vp0: decoder.final_layernorm.weight and tp0pp0ep0vp0: "
                "decoder.final_norm.weight are the same shard of decoder.final_layernorm.weight");
}

static void test_local__shard_without_coordinates(void **state) {
    struct hand *hand = *state;
    size_t tensor = LOCAL_SHARD(hand, FIRST, "w", 2);
    hand_stored(hand, tensor)->pieces[0].coords = NULL;
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "tp0pp0ep0vp0: w: no whole tensor of one rank");
}

static void test_local__more_ranks_than_files(void **state) {
    struct hand *hand = *state;
    hand->catalogue.parallel.tp = 4;
    LOCAL_RANKS(hand, 2, "decoder.final_layernorm.weight", 2);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "incomplete: main_grad of 2 tensor-parallel ranks, but the run had 4");
}

/* One layer of experts on as many ranks as there are files; attention of `columns` on each. */
static void add_dump(struct hand *hand, int32_t ranks, uint64_t columns) {
    for (int32_t r = 0; r < ranks; r++) {
        struct local_rank rank = {.tp = r, .ep = r};
        LOCAL_SHARD(hand, rank, "layers.0.input_layernorm.weight", 12);
        LOCAL_SHARD(hand, rank, "layers.0.self_attention.linear_proj.weight", 12, columns);
        LOCAL_SHARD(hand, rank, "layers.0.self_attention.linear_qkv.weight", 2 * columns, 12);
        LOCAL_SHARD(hand, rank, "layers.0.mlp.experts.local_experts.0.linear_fc1.weight", 4, 12);
    }
}

static void test_local__dump_that_lacks_ranks(void **state) {
    struct hand *hand = *state;
    add_dump(hand, 2, 3);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "incomplete: layers.0.self_attention.linear_proj.weight has 6 columns on all 2 "
                "tensor-parallel ranks together, but the hidden size is 12: ranks beyond those of "
                "the experts wrote no file");
}

static void test_local__dump_of_one_rank_that_lacks_ranks(void **state) {
    struct hand *hand = *state;
    add_dump(hand, 1, 4);
    hand_refuse(hand, "main_grad", GRADCMP_ERROR_CORRUPT,
                "incomplete: layers.0.self_attention.linear_proj.weight has 4 columns on all 1 "
                "tensor-parallel ranks together, but the hidden size is 12: ranks beyond those of "
                "the experts wrote no file");
}

/* As wide as the hidden size, wider, or not a part of it. */
static void test_local__dumps_that_are_whole(void **state) {
    static const uint64_t columns[] = {6, 12, 4};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct hand hand;
        hand_init(&hand);
        add_dump(&hand, 2, columns[i]);
        struct gradcmp_model model = hand_unshard(&hand, "main_grad");
        ASSERT_SHAPE(hand_find(&model, "layers.0.self_attention.linear_proj.weight"), 12,
                     2 * columns[i]);
        gcmp_model_free(&model);
        hand_free(&hand);
    }
}

/* A run that states how many ranks it has is taken at its word. */
static void test_local__narrow_attention_of_a_known_size(void **state) {
    struct hand *hand = *state;
    hand->catalogue.parallel.tp = 2;
    add_dump(hand, 2, 3);
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    ASSERT_SHAPE(hand_find(&model, "layers.0.self_attention.linear_proj.weight"), 12, 6);
    gcmp_model_free(&model);
}

static void test_local__strides_of_views(void **state) {
    struct hand *hand = *state;
    for (int32_t tp = 0; tp < 2; tp++) {
        size_t tensor = LOCAL_SHARD(hand, (struct local_rank){.tp = tp},
                                    "embedding.word_embeddings.weight", 2, 3);
        struct gradcmp_piece *piece = hand_stored(hand, tensor)->pieces;
        double *values = calloc(20, sizeof *values);
        for (int i = 0; i < 20; i++) {
            values[i] = 100 * tp + i;
        }
        piece->source = hand_source(hand, values, 20);
        static const int64_t columns_first[] = {1, 4};
        piece->stride = columns_first;
        piece->offset_elems = 7;
    }
    struct gradcmp_model model = hand_unshard(hand, "main_grad");
    double *found = hand_read(hand, &model.parameters[0], 0);
    static const double expected[] = {7, 11, 15, 8, 12, 16, 107, 111, 115, 108, 112, 116};
    assert_memory_equal(found, expected, sizeof expected);
    free(found);
    gcmp_model_free(&model);
}

static void test_local__states_are_listed(void **state) {
    struct hand *hand = *state;
    const char **states;
    size_t count;
    LOCAL_SHARD(hand, FIRST, "w", 2);
    assert_int_equal(gcmp_unshard_states(&hand->catalogue, &hand->arena, &states, &count, NULL),
                     GRADCMP_OK);
    assert_int_equal(count, 1);
    assert_string_equal(states[0], "main_grad");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(test_local__layers_of_chunks_and_stages),
        LOCAL_TEST(test_local__stages_of_different_depth),
        LOCAL_TEST(test_local__stacks_count_apart),
        LOCAL_TEST(test_local__wrappers_are_taken_off),
        LOCAL_TEST(test_local__state_that_layers_lack),
        LOCAL_TEST(test_local__stack_that_lacks_the_state),
        LOCAL_TEST(test_local__fewer_layers_than_the_run_has),
        LOCAL_TEST(test_local__layers_in_name_only),
        LOCAL_TEST(test_local__experts_of_ranks),
        LOCAL_TEST(test_local__numbers_grow),
        LOCAL_TEST(test_local__ranks_with_different_numbers_of_experts),
        LOCAL_TEST(test_local__experts_in_one_tensor),
        LOCAL_TEST(test_local__copies_of_ranks_of_experts),
        LOCAL_TEST(test_local__experts_split_over_fewer_ranks),
        LOCAL_TEST(test_local__one_name_on_two_stages_is_copies),
        LOCAL_TEST(test_local__rank_without_a_shard),
        LOCAL_TEST(test_local__shapes_that_differ),
        LOCAL_TEST(test_local__types_that_differ),
        LOCAL_TEST(test_local__two_spellings_on_one_rank),
        LOCAL_TEST(test_local__shard_without_coordinates),
        LOCAL_TEST(test_local__more_ranks_than_files),
        LOCAL_TEST(test_local__dump_that_lacks_ranks),
        LOCAL_TEST(test_local__dump_of_one_rank_that_lacks_ranks),
        LOCAL_TEST(test_local__dumps_that_are_whole),
        LOCAL_TEST(test_local__narrow_attention_of_a_known_size),
        LOCAL_TEST(test_local__strides_of_views),
        LOCAL_TEST(test_local__states_are_listed),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
