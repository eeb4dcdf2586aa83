/* Ranks' flat buffers: where weights lie in them, which weights they hold, and what is refused. */
#include <stdio.h>

#include "local_tools.h"

#include "unshard/local_buffers.h"

#define LOCAL_TEST(test) cmocka_unit_test_setup_teardown(test, local_setup, local_teardown)

enum { MOST = 8 };

/* One buffer by hand: weights by their elements, in order of registration; parts by theirs. */
struct flat {
    struct hand hand;
    struct gcmp_flat_weight weights[MOST];
    const struct gradcmp_stored *parts[MOST];
    struct gcmp_flat_buffer buffer;
};

static struct flat *make_flat(size_t weights, const uint64_t *elems, size_t parts,
                              const uint64_t *sizes) {
    struct flat *flat = calloc(1, sizeof *flat);
    hand_init(&flat->hand);
    for (size_t i = 0; i < weights + parts; i++) {
        char name[32];
        snprintf(name, sizeof name, i < weights ? "w%zu" : "part%zu",
                 i < weights ? i : i - weights);
        HAND_WHOLE(&flat->hand, "param", name, i < weights ? elems[i] : sizes[i - weights]);
    }
    for (size_t i = 0; i < weights; i++) {
        flat->weights[i].stored = hand_stored(&flat->hand, i);
        flat->weights[i].elems = elems[i];
    }
    for (size_t i = 0; i < parts; i++) {
        flat->parts[i] = hand_stored(&flat->hand, weights + i);
    }
    flat->buffer = (struct gcmp_flat_buffer){
        .weights = flat->weights, .weight_count = weights, .parts = flat->parts};
    flat->buffer.part_count = parts;
    return flat;
}
#define MAKE_FLAT(elems, sizes)                                                                    \
    make_flat(sizeof(elems) / sizeof *(elems), elems, sizeof(sizes) / sizeof *(sizes), sizes)

static void free_flat(struct flat *flat) {
    hand_free(&flat->hand);
    free(flat);
}

static void expect_starts(struct flat *flat, const uint64_t *starts) {
    struct gradcmp_error error = {0};
    if (gcmp_flat_buffer_fit(&flat->buffer, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    for (size_t i = 0; i < flat->buffer.weight_count; i++) {
        assert_int_equal(flat->weights[i].start, starts[i]);
        assert_int_equal(flat->weights[i].part, 0);
    }
    free_flat(flat);
}

static void expect_refusal(struct flat *flat, const char *message) {
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_flat_buffer_fit(&flat->buffer, &error), GRADCMP_ERROR_UNSUPPORTED);
    assert_string_equal(error.message, message);
    free_flat(flat);
}

static const uint64_t THREE[] = {10, 20, 30};

static void test_fit__last_weight_first_aligned_to_64(void **state) {
    (void)state;
    static const uint64_t size[] = {128 + 10};
    expect_starts(MAKE_FLAT(THREE, size), (const uint64_t[]){128, 64, 0});
}

static void test_fit__without_alignment(void **state) {
    (void)state;
    static const uint64_t size[] = {60};
    expect_starts(MAKE_FLAT(THREE, size), (const uint64_t[]){50, 30, 0});
}

/* The first bucket ends behind the second weight: its padding is not in the file. */
static void test_fit__buckets_of_the_arguments(void **state) {
    (void)state;
    static const uint64_t size[] = {64 + 20 + 10};
    struct flat *flat = MAKE_FLAT(THREE, size);
    flat->buffer.bucket_elems = 40;
    expect_starts(flat, (const uint64_t[]){84, 64, 0});
}

/* A shared embedding has a bucket of its own, before which the next multiple of 64 counts. */
static void test_fit__shared_embedding(void **state) {
    (void)state;
    static const uint64_t four[] = {10, 20, 30, 40}, size[] = {128 + 20 + 10};
    struct flat *flat = MAKE_FLAT(four, size);
    flat->weights[1].is_shared = true;
    expect_starts(flat, (const uint64_t[]){148, 128, 64, 0});
}

static void test_fit__sizes_that_no_rule_makes(void **state) {
    (void)state;
    static const uint64_t size[] = {139}, small[] = {59};
    expect_refusal(MAKE_FLAT(THREE, size),
                   "param.part0: 139 elements; its 3 weights have 60, and no rule of alignment and "
                   "buckets makes them as long; save with --ckpt-format torch_dist "
                   "--dist-ckpt-optim-fully-reshardable");
    expect_refusal(MAKE_FLAT(THREE, small),
                   "param.part0: 59 elements; its 3 weights have 60, and no rule of alignment and "
                   "buckets makes them as long; save with --ckpt-format torch_dist "
                   "--dist-ckpt-optim-fully-reshardable");
}

/* With buckets of 20 the second one begins behind 74 elements, with a shared third weight at 128:
 * both end at 148. */
static void test_fit__two_rules_that_differ(void **state) {
    (void)state;
    static const uint64_t four[] = {10, 10, 10, 10}, size[] = {148};
    struct flat *flat = MAKE_FLAT(four, size);
    flat->weights[1].is_shared = true;
    flat->buffer.bucket_elems = 20;
    expect_refusal(flat, "param.part0: 148 elements; its 4 weights have 40, and several rules of "
                         "alignment and buckets make them as long; save with --ckpt-format "
                         "torch_dist --dist-ckpt-optim-fully-reshardable");
}

/* Rules that give the same places are one. */
static void test_fit__rules_that_agree(void **state) {
    (void)state;
    static const uint64_t even[] = {64, 128, 64}, size[] = {256};
    struct flat *flat = MAKE_FLAT(even, size);
    flat->weights[0].is_shared = true;
    flat->buffer.bucket_elems = 100;
    expect_starts(flat, (const uint64_t[]){192, 64, 0});
}

static void test_fit__no_weights(void **state) {
    (void)state;
    static const uint64_t size[] = {5};
    struct flat *flat = make_flat(0, NULL, 1, size);
    expect_refusal(flat, "param.part0: 5 elements; its 0 weights have 0, and there is nothing to "
                         "fill it; save with --ckpt-format torch_dist "
                         "--dist-ckpt-optim-fully-reshardable");
}

/* Make the weights views of one record, at these places. */
static void set_views(struct flat *flat, const int64_t *views) {
    static const int64_t one = 1;
    for (size_t i = 0; i < flat->buffer.weight_count; i++) {
        struct gradcmp_piece *piece = hand_stored(&flat->hand, i)->pieces;
        piece->source = 0;
        piece->stride = &one;
        piece->offset_elems = views[i];
    }
}

/* Weights that are views of their own buffer show where a bucket ends. */
static void test_fit__views_show_the_buckets(void **state) {
    (void)state;
    static const uint64_t size[] = {64 + 20 + 10}, sum[] = {30 + 64 + 10};
    struct flat *flat = MAKE_FLAT(THREE, size);
    set_views(flat, (const int64_t[]){128 + 128, 64, 0}); /* 84 is padded to 256, not to 128 */
    expect_starts(flat, (const uint64_t[]){84, 64, 0});
    flat = MAKE_FLAT(THREE, sum);
    set_views(flat, (const int64_t[]){128 + 64, 128, 0}); /* 30 is padded to 128, not to 64 */
    expect_starts(flat, (const uint64_t[]){94, 30, 0});
}

/* Views of something else are no proof; then the rules decide. */
static void test_fit__views_that_are_no_buffer(void **state) {
    (void)state;
    static const uint64_t size[] = {128 + 10};
    struct flat *flat = MAKE_FLAT(THREE, size);
    set_views(flat, (const int64_t[]){0, 10, 30}); /* in the order of registration */
    expect_starts(flat, (const uint64_t[]){128, 64, 0});
    flat = MAKE_FLAT(THREE, size);
    set_views(flat, (const int64_t[]){30, 20, 0}); /* overlapping */
    expect_starts(flat, (const uint64_t[]){128, 64, 0});
}

static void expect_parts(struct flat *flat, const uint64_t *starts, const size_t *parts) {
    struct gradcmp_error error = {0};
    if (gcmp_flat_buffer_fit(&flat->buffer, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    for (size_t i = 0; i < flat->buffer.weight_count; i++) {
        assert_int_equal(flat->weights[i].start, starts[i]);
        assert_int_equal(flat->weights[i].part, parts[i]);
    }
    free_flat(flat);
}

static void test_fit__parts_one_a_bucket(void **state) {
    (void)state;
    static const uint64_t dense[] = {50, 10}, aligned[] = {64 + 20, 10}, one_each[] = {30, 20, 10};
    expect_parts(MAKE_FLAT(THREE, dense), (const uint64_t[]){0, 30, 0}, (const size_t[]){1, 0, 0});
    expect_parts(MAKE_FLAT(THREE, aligned), (const uint64_t[]){0, 64, 0},
                 (const size_t[]){1, 0, 0});
    expect_parts(MAKE_FLAT(THREE, one_each), (const uint64_t[]){0, 0, 0},
                 (const size_t[]){2, 1, 0});
}

static void test_fit__parts_that_are_not_filled(void **state) {
    (void)state;
    static const uint64_t gap[] = {51, 10}, longer[] = {50, 11}, more[] = {50, 10, 1};
    const uint64_t *const sizes[] = {gap, longer, more};
    for (size_t i = 0; i < 3; i++) {
        struct flat *flat = make_flat(3, THREE, i == 2 ? 3 : 2, sizes[i]);
        assert_int_equal(gcmp_flat_buffer_fit(&flat->buffer, NULL), GRADCMP_ERROR_UNSUPPORTED);
        free_flat(flat);
    }
}

/* --- which weights a buffer holds --- */

/* Append a weight of a rank. */
static void add_weight(struct hand *hand, struct local_rank rank, const char *name, uint64_t elems,
                       enum gradcmp_dtype dtype) {
    size_t tensor = LOCAL_SHARD(hand, rank, name, elems);
    hand_stored(hand, tensor)->state = "param";
    hand_stored(hand, tensor)->dtype = (uint8_t)dtype;
}

/* Append a buffer of a rank; values count from `first`. */
static void add_buffer(struct hand *hand, struct local_rank rank, const char *name, uint64_t elems,
                       double first) {
    size_t tensor = LOCAL_SHARD(hand, rank, name, elems);
    struct gradcmp_stored *stored = hand_stored(hand, tensor);
    double *values = calloc(elems + 1, sizeof *values);
    for (uint64_t i = 0; i < elems; i++) {
        values[i] = first + (double)i;
    }
    stored->state = "exp_avg";
    stored->layout = GRADCMP_LAYOUT_LOCAL_BUFFER;
    stored->pieces[0].source = hand_source(hand, values, elems);
}

/* The first value of a parameter, which must be whole. */
static double first_value(struct hand *hand, const struct gradcmp_model *model, const char *name) {
    double *values = hand_read(hand, hand_find(model, name), 0);
    double first = values[0];
    free(values);
    return first;
}

static const struct local_rank FIRST = {.tp = 0};

/* One buffer for each chunk and type, in the order in which they first occur. */
static void test_cut__chunks_and_types(void **state) {
    struct hand *hand = *state;
    struct local_rank second = {.vp = 1};
    add_weight(hand, second, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_weight(hand, FIRST, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_weight(hand, FIRST, "layers.0.b_norm", 3, GRADCMP_DTYPE_FLOAT32);
    add_weight(hand, FIRST, "layers.0.c_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_weight(hand, FIRST, "layers.0.mlp.router.expert_bias", 7, GRADCMP_DTYPE_FLOAT32);
    add_buffer(hand, FIRST, "gbuf_idx_2", 3, 300);
    add_buffer(hand, FIRST, "gbuf_idx_0", 67, 100);
    add_buffer(hand, FIRST, "gbuf_idx_1", 3, 200);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.0.a_norm", "layers.0.b_norm", "layers.0.c_norm",
                 "layers.1.a_norm");
    assert_true(first_value(hand, &model, "layers.0.a_norm") == 164.0);
    assert_true(first_value(hand, &model, "layers.0.b_norm") == 200.0);
    assert_true(first_value(hand, &model, "layers.0.c_norm") == 100.0);
    assert_true(first_value(hand, &model, "layers.1.a_norm") == 300.0);
    assert_int_equal(model.parameters[0].dtype, GRADCMP_DTYPE_FLOAT32); /* the buffer's */
    gcmp_model_free(&model);
}

/* Experts apart: the last optimizer of the chain is theirs, the dense one of rank 0 of replicas. */
static void test_cut__experts_in_an_optimizer_of_their_own(void **state) {
    struct hand *hand = *state;
    for (int32_t ep = 0; ep < 2; ep++) {
        struct local_rank rank = {.ep = ep};
        add_weight(hand, rank, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
        add_weight(hand, rank, "layers.0.mlp.experts.local_experts.0.w", 5, GRADCMP_DTYPE_BFLOAT16);
        add_buffer(hand, rank, "chained_1.gbuf_idx_0", 5, 500 + 10 * ep);
    }
    add_buffer(hand, FIRST, "chained_0.gbuf_idx_0", 3, 300);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    ASSERT_NAMES(&model, "layers.0.a_norm", "layers.0.mlp.experts.experts.0.w",
                 "layers.0.mlp.experts.experts.1.w");
    assert_true(first_value(hand, &model, "layers.0.a_norm") == 300.0);
    assert_true(first_value(hand, &model, "layers.0.mlp.experts.experts.1.w") == 510.0);
    gcmp_model_free(&model);
}

/* One rank of experts: they are in the buffers of all. */
static void test_cut__experts_of_one_rank(void **state) {
    struct hand *hand = *state;
    add_weight(hand, FIRST, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_weight(hand, FIRST, "layers.0.mlp.experts.local_experts.0.w", 5, GRADCMP_DTYPE_BFLOAT16);
    add_buffer(hand, FIRST, "gbuf_idx_0", 67, 100);
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_true(first_value(hand, &model, "layers.0.mlp.experts.experts.0.w") == 100.0);
    assert_true(first_value(hand, &model, "layers.0.a_norm") == 164.0);
    gcmp_model_free(&model);
}

/* Three optimizers: the first chunk, the others, the experts. */
static void test_cut__first_chunk_in_an_optimizer_of_its_own(void **state) {
    struct hand *hand = *state;
    for (int32_t ep = 0; ep < 2; ep++) {
        for (int32_t vp = 0; vp < 2; vp++) {
            struct local_rank rank = {.ep = ep, .vp = vp};
            add_weight(hand, rank, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
            add_weight(hand, rank, "layers.0.experts.local_experts.0.w", 5, GRADCMP_DTYPE_BFLOAT16);
        }
        struct local_rank rank = {.ep = ep};
        add_buffer(hand, rank, "chained_0.gbuf_idx_0", 3, 0);
        add_buffer(hand, rank, "chained_1.gbuf_idx_0", 3, 100);
        add_buffer(hand, rank, "chained_2.gbuf_idx_0", 5, 200);
        add_buffer(hand, rank, "chained_2.gbuf_idx_1", 5, 300);
    }
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_int_equal(model.count, 6);
    assert_true(first_value(hand, &model, "layers.0.a_norm") == 0.0);
    assert_true(first_value(hand, &model, "layers.1.a_norm") == 100.0);
    assert_true(first_value(hand, &model, "layers.0.experts.experts.1.w") == 200.0);
    assert_true(first_value(hand, &model, "layers.1.experts.experts.0.w") == 300.0);
    gcmp_model_free(&model);
}

static void test_cut__weight_in_no_buffer(void **state) {
    struct hand *hand = *state;
    add_weight(hand, FIRST, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_weight(hand, FIRST, "layers.0.b_norm", 3, GRADCMP_DTYPE_FLOAT32);
    add_buffer(hand, FIRST, "gbuf_idx_0", 3, 0);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "tp0pp0ep0vp0: layers.0.b_norm: in none of the 1 buffers of tp0pp0ep0vp0: "
                "gbuf_idx_0");
}

/* A stage whose buffers are missing altogether. */
static void test_cut__rank_without_buffers(void **state) {
    struct hand *hand = *state;
    add_weight(hand, FIRST, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_weight(hand, (struct local_rank){.pp = 1}, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_buffer(hand, FIRST, "gbuf_idx_0", 3, 0);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "tp0pp1ep0vp0: layers.0.a_norm: no exp_avg is stored of it, but of 1 others");
}

static void test_cut__buckets_that_are_not_in_order(void **state) {
    struct hand *hand = *state;
    add_weight(hand, FIRST, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_buffer(hand, FIRST, "gbuf_idx_0.bucket_idx_0", 3, 0);
    add_buffer(hand, FIRST, "gbuf_idx_0.bucket_idx_2", 3, 0);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "tp0pp0ep0vp0: gbuf_idx_0.bucket_idx_2: expected bucket 1 of that buffer here");
}

static void test_cut__name_that_says_no_buffer(void **state) {
    struct hand *hand = *state;
    add_weight(hand, FIRST, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
    add_buffer(hand, FIRST, "buffer", 3, 0);
    hand_refuse(hand, "exp_avg", GRADCMP_ERROR_CORRUPT,
                "tp0pp0ep0vp0: buffer: no flat buffer of one rank");
}

/* The arguments state that the output layer shares its weights with the embedding, on two stages.
 */
static void test_cut__tied_on_two_stages(void **state) {
    struct hand *hand = *state;
    hand->catalogue.parallel.pp = 2;
    local_flag(hand, "untie_embeddings_and_output_weights", false);
    for (int32_t pp = 0; pp < 2; pp++) {
        struct local_rank rank = {.pp = pp};
        const char *words = pp == 0 ? "embedding.word_embeddings.weight" : "output_layer.weight";
        add_weight(hand, rank, "layers.0.a_norm", 3, GRADCMP_DTYPE_BFLOAT16);
        size_t tensor = LOCAL_SHARD(hand, rank, words, 5, 2);
        hand_stored(hand, tensor)->state = "param";
        hand_stored(hand, tensor)->dtype = GRADCMP_DTYPE_BFLOAT16;
        add_weight(hand, rank, "layers.0.b_norm", 3, GRADCMP_DTYPE_BFLOAT16);
        add_buffer(hand, rank, "gbuf_idx_0", 64 + 10 + 3, 100 * pp);
    }
    struct gradcmp_model model = hand_unshard(hand, "exp_avg");
    assert_true(first_value(hand, &model, "output_layer.weight") == 164.0);
    assert_true(first_value(hand, &model, "layers.1.a_norm") == 174.0);
    assert_true(first_value(hand, &model, "layers.0.b_norm") == 0.0);
    gcmp_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit__last_weight_first_aligned_to_64),
        cmocka_unit_test(test_fit__without_alignment),
        cmocka_unit_test(test_fit__buckets_of_the_arguments),
        cmocka_unit_test(test_fit__shared_embedding),
        cmocka_unit_test(test_fit__sizes_that_no_rule_makes),
        cmocka_unit_test(test_fit__two_rules_that_differ),
        cmocka_unit_test(test_fit__rules_that_agree),
        cmocka_unit_test(test_fit__no_weights),
        cmocka_unit_test(test_fit__views_show_the_buckets),
        cmocka_unit_test(test_fit__views_that_are_no_buffer),
        cmocka_unit_test(test_fit__parts_one_a_bucket),
        cmocka_unit_test(test_fit__parts_that_are_not_filled),
        LOCAL_TEST(test_cut__chunks_and_types),
        LOCAL_TEST(test_cut__experts_in_an_optimizer_of_their_own),
        LOCAL_TEST(test_cut__experts_of_one_rank),
        LOCAL_TEST(test_cut__first_chunk_in_an_optimizer_of_its_own),
        LOCAL_TEST(test_cut__weight_in_no_buffer),
        LOCAL_TEST(test_cut__rank_without_buffers),
        LOCAL_TEST(test_cut__buckets_that_are_not_in_order),
        LOCAL_TEST(test_cut__name_that_says_no_buffer),
        LOCAL_TEST(test_cut__tied_on_two_stages),
    };
    return cmocka_run_group_tests_name("local_buffers", tests, NULL, NULL);
}
