/* Bucket layouts, written as Megatron writes them and read back element by element. */
#include "bucket_writer.h"

static char *final_name(struct hand *hand, const struct param *param, uint64_t layer,
                        uint64_t expert) {
    const char *behind_layers = strstr(param->name, "layers."), *experts;
    if (!param->in_layer) {
        return gcmp_arena_dup(&hand->arena, param->name);
    }
    behind_layers += 7;
    experts = strstr(behind_layers, "experts.experts.");
    if (experts == NULL) {
        return gcmp_arena_format(&hand->arena, "decoder.layers.%d.%s", (int)layer, behind_layers);
    }
    return gcmp_arena_format(&hand->arena, "decoder.layers.%d.mlp.experts.experts.%d.%s",
                             (int)layer, (int)expert, experts + 16);
}

static void check_parameter(struct hand *hand, const struct model *model,
                            const struct gradcmp_model *read, struct which which) {
    const struct param *p = &model->params[which.param];
    const struct gradcmp_parameter *found =
        hand_find(read, final_name(hand, p, which.layer, which.expert));
    const struct setup *setup = model->setup;
    uint64_t copies = p->split == WHOLE ? setup->tp : 1;
    if (which.param == 0 && setup->pp * setup->chunks > 1) {
        copies = UINT64_C(1) + setup->tied + setup->predicts;
    }
    assert_int_equal(found->copy_count, copies);
    assert_int_equal(found->replicated, copies > 1);
    assert_int_equal(found->overlap, 0);
    assert_int_equal(found->dtype, GRADCMP_DTYPE_FLOAT32);
    for (uint32_t copy = 0; copy < copies; copy++) {
        double *values = hand_read(hand, found, copy);
        for (uint64_t i = 0; i < elems_of(p); i++) {
            double expected = value_of(which.param, which.layer, which.expert, i, copy);
            if (values[i] != expected) {
                fail_msg("%s, copy %u, element %d: %g, expected %g", found->name, copy, (int)i,
                         values[i], expected);
            }
        }
        free(values);
    }
}

/* What tells one layout of gathered buffers from others. */
static void say_arguments(struct hand *hand, const struct setup *setup) {
    struct gradcmp_setting said[] = {
        {.name = "transformer_impl",
         .kind = GRADCMP_SETTING_TEXT,
         .text = setup->fused_norms ? "transformer_engine" : "local"},
        {.name = "moe_grouped_gemm", .kind = GRADCMP_SETTING_BOOL, .integer = setup->grouped},
        {.name = "overlap_grad_reduce",
         .kind = GRADCMP_SETTING_BOOL,
         .integer = setup->bucket_elems != 0},
        {.name = "ddp_bucket_size",
         .kind = GRADCMP_SETTING_INT,
         .integer = (int64_t)setup->bucket_elems}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        assert_int_equal(gcmp_catalogue_set(&hand->catalogue, &said[i], NULL), GRADCMP_OK);
    }
}

static void check_setup(struct setup setup) {
    struct model model = make_model(&setup);
    struct hand hand;
    hand_init(&hand);
    write_all(&hand, &model);
    if (setup.gathered) {
        say_arguments(&hand, &setup);
    }
    struct gradcmp_model read;
    struct gradcmp_error error = {0};
    if (gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    size_t count = 0;
    for (size_t i = 0; i < model.count; i++) {
        if (i + 1 == setup.frozen) {
            assert_int_equal(read.frozen, model.params[i].in_layer ? setup.layers : 1);
            assert_string_equal(read.parameters[read.count].name,
                                final_name(&hand, &model.params[i], 0, 0));
            continue;
        }
        uint64_t layers = model.params[i].in_layer ? setup.layers : 1;
        uint64_t experts = model.params[i].is_expert ? setup.experts : 1;
        for (uint64_t j = 0; j < layers * experts; j++, count++) {
            check_parameter(&hand, &model, &read, (struct which){i, j / experts, j % experts});
        }
    }
    assert_int_equal(read.count, count);
    assert_string_equal(read.state, "exp_avg");
    gcmp_model_free(&read);
    hand_free(&hand);
}

/* Fill in what a test does not care about. */
static struct setup complete(struct setup setup) {
    uint64_t *ones[] = {&setup.tp, &setup.pp, &setup.chunks, &setup.ep, &setup.dp};
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) {
        *ones[i] = *ones[i] == 0 ? 1 : *ones[i];
    }
    setup.etp = setup.etp == 0 ? setup.tp : setup.etp;
    setup.layers = setup.layers == 0 ? 4 : setup.layers;
    return setup;
}
#define CHECK(...) check_setup(complete((struct setup){__VA_ARGS__}))

static void test_buckets__one_rank(void **state) {
    (void)state;
    CHECK(.tp = 1);
}

static void test_buckets__tensor_parallel_ranks_keep_copies(void **state) {
    (void)state;
    CHECK(.tp = 2);
    CHECK(.tp = 3, .ungated = true);
}

static void test_buckets__data_parallel_ranks_cut_anywhere(void **state) {
    (void)state;
    for (uint64_t dp = 2; dp < 6; dp++) {
        CHECK(.tp = 2, .dp = dp);
    }
}

static void test_buckets__pipeline_stages_and_chunks(void **state) {
    (void)state;
    CHECK(.pp = 2);
    CHECK(.pp = 2, .chunks = 2, .tp = 2);
    CHECK(.layers = 5, .pp = 2, .dp = 2); /* 2 and 3 layers */
}

static void test_buckets__several_buckets(void **state) {
    (void)state;
    for (uint64_t elems = 100; elems < 900; elems += 150) {
        CHECK(.bucket_elems = elems, .dp = 2, .pp = 2);
    }
}

static void test_buckets__tied_embedding_of_the_last_stage_is_a_copy(void **state) {
    (void)state;
    CHECK(.tied = true, .pp = 2, .tp = 2);
    CHECK(.tied = true);
}

/* The stage of multi-token prediction holds the embedding as well, as its first module. */
static void test_buckets__embedding_of_several_tokens_is_a_copy(void **state) {
    (void)state;
    CHECK(.predicts = true);
    CHECK(.predicts = true, .pp = 2, .tp = 2);
    CHECK(.predicts = true, .pp = 2, .chunks = 2, .tied = true);
    CHECK(.predicts = true, .pp = 2, .gathered = true);
    CHECK(.predicts = true, .pp = 2, .experts = 4, .ep = 2);
}

/* Parts of one tensor follow each other without a gap or an edge. */
static void test_buckets__tensor_that_is_stored_in_parts(void **state) {
    (void)state;
    CHECK(.mixes = true);
    CHECK(.mixes = true, .tp = 2, .dp = 2, .pp = 2);
    CHECK(.mixes = true, .tp = 3, .ungated = true, .gathered = true);
    for (uint64_t elems = 100; elems < 900; elems += 150) {
        CHECK(.mixes = true, .tp = 2, .bucket_elems = elems);
    }
}

/* Weights that are frozen are in no buffer: where sizes leave one choice of them, it is that. */
static void test_buckets__frozen_weights(void **state) {
    (void)state;
    CHECK(.frozen = 1); /* the embedding */
    CHECK(.frozen = 1, .tp = 2, .dp = 2);
    CHECK(.frozen = 6, .bucket_elems = 300, .fused_norms = true); /* linear_fc1's norm */
    CHECK(.frozen = 8, .tp = 2);                                  /* linear_fc2 */
    CHECK(.frozen = 1, .mixes = true, .tp = 2);
    CHECK(.frozen = 1, .experts = 4, .ep = 2);
}

/* A model's second name of a parameter is no parameter. */
static void test_buckets__weight_of_two_names(void **state) {
    (void)state;
    CHECK(.is_named_twice = true);
    CHECK(.is_named_twice = true, .tp = 2, .pp = 2, .gathered = true);
}

static void test_buckets__norms_fused_into_the_matrix_behind_them(void **state) {
    (void)state;
    CHECK(.fused_norms = true, .tp = 2);
}

static void test_buckets__experts_beside_dense_weights(void **state) {
    (void)state;
    CHECK(.experts = 4);
    CHECK(.experts = 4, .grouped = true, .tp = 2);
}

static void test_buckets__experts_of_their_own_optimizer(void **state) {
    (void)state;
    CHECK(.experts = 4, .ep = 2);
    CHECK(.experts = 4, .ep = 2, .grouped = true, .tp = 2);
    CHECK(.experts = 4, .ep = 4, .tp = 2, .pp = 2, .dp = 2);
}

static void test_buckets__weights_of_two_types_have_two_buffers(void **state) {
    (void)state;
    CHECK(.experts = 4, .own_router_type = true);
    CHECK(.experts = 4, .own_router_type = true, .tp = 2, .pp = 2, .ep = 2);
}

/* Each buffer in one flat tensor, where one rank gathered it. */
static void test_buckets__gathered_on_one_rank(void **state) {
    (void)state;
    CHECK(.gathered = true, .tp = 2);
    CHECK(.gathered = true, .unaligned = true, .tp = 3, .ungated = true);
    CHECK(.gathered = true, .pp = 2, .chunks = 2, .tp = 2, .fused_norms = true);
    CHECK(.gathered = true, .experts = 4, .ep = 2, .grouped = true, .tp = 2);
    CHECK(.gathered = true, .tied = true, .pp = 2, .tp = 2);
}

static void test_buckets__gathered_buckets_begin_where_the_one_before_ends(void **state) {
    (void)state;
    for (uint64_t elems = 100; elems < 900; elems += 150) {
        CHECK(.gathered = true, .bucket_elems = elems, .pp = 2);
    }
}

/* Sizes alone cannot tell an order of a gathered buffer from another; with arguments or without,
 * each layout that fits is listed once, and can be asked for by its number. */
static void test_buckets__layouts_that_fit_are_listed(void **state) {
    (void)state;
    const struct setup setup = complete((struct setup){.gathered = true, .tp = 2});
    struct model model = make_model(&setup);
    struct hand hand;
    hand_init(&hand);
    write_all(&hand, &model);
    struct gcmp_bucket_layouts layouts;
    struct gradcmp_error error = {0};
    assert_int_equal(
        gcmp_unshard_bucket_layouts(&hand.catalogue, "exp_avg", NULL, &layouts, &error),
        GRADCMP_OK);
    assert_int_equal(layouts.count, 2); /* the norm before attention, or within it */
    assert_int_equal(layouts.allowed, 2);
    struct gradcmp_model read;
    assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error),
                     GRADCMP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "several orders of the model's parameters"));
    say_arguments(&hand, &setup);
    assert_int_equal(
        gcmp_unshard_bucket_layouts(&hand.catalogue, "exp_avg", NULL, &layouts, &error),
        GRADCMP_OK);
    assert_int_equal(layouts.count, 2);
    assert_int_equal(layouts.allowed, 1);
    for (size_t i = 0; i < layouts.count; i++) {
        struct gcmp_unshard_options options = {.bucket_layout = layouts.numbers[i]};
        assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", &options, &read, &error),
                         GRADCMP_OK);
        const struct gradcmp_parameter *norm =
            hand_find(&read, "decoder.layers.1.self_attention.linear_qkv.layer_norm_weight");
        double *values = hand_read(&hand, norm, 0);
        assert_int_equal(values[0] == value_of(1, 1, 0, 0, 0), i == 0);
        free(values);
        gcmp_model_free(&read);
    }
    assert_int_equal(
        gcmp_unshard_bucket_layouts(&hand.catalogue, "exp_avg_sq", NULL, &layouts, &error),
        GRADCMP_OK);
    assert_int_equal(layouts.count, 0);
    hand_free(&hand);
}

static void lose_an_element(struct hand *hand) {
    for (size_t i = 0; i < hand->catalogue.stored_count; i++) {
        struct gradcmp_stored *stored = &hand->catalogue.stored[i];
        if (stored->layout == GRADCMP_LAYOUT_BUCKET) {
            uint64_t *shape = gcmp_arena_alloc(&hand->arena, 1, sizeof *shape);
            assert_non_null(shape);
            shape[0] = stored->shape[0] - 1;
            stored->shape = stored->pieces[0].extent = shape;
            return;
        }
    }
}

/* A whole buffer stands beside a bucket of it. */
static void add_a_bucket(struct hand *hand) {
    uint64_t one = 64;
    size_t tensor = hand_tensor(hand, "exp_avg",
                                "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch."
                                "bfloat16, torch.float32).bucket_idx_1.exp_avg",
                                1, &one);
    uint64_t start = 0;
    hand_piece(hand, tensor, &start, &one);
    hand_stored(hand, tensor)->key = hand_stored(hand, tensor)->name;
    hand_stored(hand, tensor)->layout = GRADCMP_LAYOUT_BUCKET;
}

/* Write a setup and read it after `change`: it must still be read, with as many parameters. */
static void accept(struct setup setup, void (*change)(struct hand *hand)) {
    struct model model = make_model(&setup);
    struct hand hand;
    hand_init(&hand);
    write_all(&hand, &model);
    change(&hand);
    struct gradcmp_model read;
    struct gradcmp_error error = {0};
    if (gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    check_parameter(&hand, &model, &read, (struct which){0, 0, 0});
    for (size_t i = 0; i < read.count; i++) {
        assert_null(strstr(read.parameters[i].name, "expert_bias"));
    }
    gcmp_model_free(&read);
    hand_free(&hand);
}

static void widen_weights(struct hand *hand) {
    for (size_t i = 0; i < hand->catalogue.stored_count; i++) {
        hand->catalogue.stored[i].dtype = GRADCMP_DTYPE_FLOAT32;
    }
}

static void add_expert_bias(struct hand *hand) {
    HAND_WHOLE(hand, "param", "decoder.layers.mlp.router.expert_bias", 4, 4);
}

static void add_empty_piece(struct hand *hand) {
    for (size_t i = 0; i < hand->catalogue.stored_count; i++) {
        if (hand->catalogue.stored[i].layout == GRADCMP_LAYOUT_BUCKET) {
            hand_piece(hand, i, DIMS(192), DIMS(0));
        }
    }
}

static void test_buckets__what_says_nothing_is_left_alone(void **state) {
    (void)state;
    accept(complete((struct setup){.tp = 2}), widen_weights);
    accept(complete((struct setup){.experts = 4}), add_expert_bias);
    accept(complete((struct setup){.dp = 2}), add_empty_piece);
}

/* Write a setup and have it refused, after `break_it`. */
static void refuse(const struct setup *setup, void (*break_it)(struct hand *hand),
                   enum gradcmp_status code, const char *message) {
    struct model model = make_model(setup);
    struct hand hand;
    hand_init(&hand);
    write_all(&hand, &model);
    break_it(&hand);
    struct gradcmp_model read;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error), code);
    assert_string_equal(error.message, message);
    assert_null(read.arena);
    hand_free(&hand);
}

static struct gradcmp_stored *first_bucket(struct hand *hand) {
    for (size_t i = 0;; i++) {
        if (hand->catalogue.stored[i].layout == GRADCMP_LAYOUT_BUCKET) {
            return &hand->catalogue.stored[i];
        }
    }
}

#define KEY                                                                                        \
    "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32)"        \
    ".bucket_idx_0.exp_avg"
#define WAY_OUT "; save with --dist-ckpt-optim-fully-reshardable"

static void forget_parallel(struct hand *hand) {
    hand->catalogue.parallel.tp = 0;
}

static void lose_group(struct hand *hand) {
    hand->catalogue.stored_count--; /* the last bucket is all that rank 1 has */
}

static void grow_weight(struct hand *hand) {
    struct gradcmp_stored *stored = &hand->catalogue.stored[0]; /* the embedding, one piece */
    stored->shape = stored->pieces[0].extent =
        gcmp_catalogue_dims(&hand->catalogue, 2, DIMS(25, HIDDEN));
}

static void lose_edge(struct hand *hand) {
    struct gradcmp_stored *bucket = first_bucket(hand); /* join the first two pieces */
    uint64_t joined = bucket->pieces[0].extent[0] + bucket->pieces[1].extent[0];
    bucket->pieces[1].start = bucket->pieces[0].start;
    bucket->pieces[1].extent = gcmp_catalogue_dims(&hand->catalogue, 1, &joined);
    bucket->pieces++;
    bucket->piece_count--;
}

/* Join a gap with the parameter behind it. */
static void lose_start_edge(struct hand *hand) {
    struct gradcmp_stored *bucket = first_bucket(hand);
    uint64_t joined = bucket->pieces[1].extent[0] + bucket->pieces[2].extent[0];
    bucket->pieces[2].start = bucket->pieces[1].start;
    bucket->pieces[2].extent = gcmp_catalogue_dims(&hand->catalogue, 1, &joined);
    bucket->pieces[1] = bucket->pieces[0];
    bucket->pieces++;
    bucket->piece_count--;
}

static void grow_bucket(struct hand *hand) {
    struct gradcmp_stored *bucket = first_bucket(hand);
    uint64_t length = bucket->shape[0];
    bucket->shape = gcmp_catalogue_dims(&hand->catalogue, 1, DIMS(length + 10));
    hand_piece(hand, (size_t)(bucket - hand->catalogue.stored), &length, DIMS(10));
}

/* The embedding of two ranks in three pieces, or in columns of four. */
static void cut_in_three(struct hand *hand) {
    hand->catalogue.stored[0].piece_count = 0;
    for (uint64_t row = 0; row < 24; row += 8) {
        hand_piece(hand, 0, DIMS(row, 0), DIMS(8, HIDDEN));
    }
}

static void cut_in_columns(struct hand *hand) {
    const uint64_t columns[5] = {0, 1, 3, 4, HIDDEN};
    hand->catalogue.stored[0].piece_count = 0;
    for (size_t i = 0; i < 4; i++) {
        hand_piece(hand, 0, DIMS(0, columns[i]), DIMS(24, columns[i + 1] - columns[i]));
    }
}

static void cut_in_a_grid(struct hand *hand) {
    hand->catalogue.stored[0].piece_count = 0;
    for (uint64_t i = 0; i < 4; i++) {
        hand_piece(hand, 0, DIMS(12 * (i / 2), HIDDEN / 2 * (i % 2)), DIMS(12, HIDDEN / 2));
    }
}

static void lose_piece(struct hand *hand) {
    struct gradcmp_stored *bucket = first_bucket(hand);
    bucket->pieces[1] = bucket->pieces[--bucket->piece_count];
}

static void lose_last_piece(struct hand *hand) {
    first_bucket(hand)->piece_count--;
}

static void rename_bucket(struct hand *hand) {
    first_bucket(hand)->key = "optimizer.distributed.dp_group_idx_0.exp_avg";
}

static void renumber_bucket(struct hand *hand) {
    first_bucket(hand)->key = "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch."
                              "bfloat16, torch.float32).bucket_idx_1.exp_avg";
}

static void keep_all(struct hand *hand) {
    (void)hand;
}

static void test_buckets__what_does_not_fit_is_refused(void **state) {
    (void)state;
    const struct setup one = complete((struct setup){.tp = 1});
    const struct setup two = complete((struct setup){.tp = 2});
    refuse(&one, forget_parallel, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": the sizes of the parallel groups are not known" WAY_OUT);
    refuse(&two, lose_group, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": the buckets are not one set for each parallel rank" WAY_OUT);
    refuse(&one, grow_weight, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": no order of the model's parameters fills this buffer" WAY_OUT);
    refuse(&one, lose_edge, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": no order of the model's parameters fills this buffer" WAY_OUT);
    refuse(&one, lose_start_edge, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": no order of the model's parameters fills this buffer" WAY_OUT);
    const struct setup several = complete((struct setup){.bucket_elems = 400});
    refuse(&several, grow_bucket, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": no order of the model's parameters fills this buffer" WAY_OUT);
    refuse(&two, cut_in_three, GRADCMP_ERROR_UNSUPPORTED,
           "embedding.word_embeddings.weight: its 3 pieces do not tell how 2 ranks hold it");
    refuse(&two, cut_in_columns, GRADCMP_ERROR_UNSUPPORTED,
           "embedding.word_embeddings.weight: its 4 pieces do not tell how 2 ranks hold it");
    const struct setup layer = complete((struct setup){.frozen_layer = 2});
    refuse(&layer, keep_all, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": it does not hold all of the model's parameters, and several choices of frozen "
               "ones would fill it" WAY_OUT);
    const struct setup stages = complete((struct setup){.frozen = 1, .pp = 2});
    refuse(&stages, keep_all, GRADCMP_ERROR_UNSUPPORTED,
           KEY ": no order of the model's parameters fills this buffer" WAY_OUT);
    const struct setup four = complete((struct setup){.tp = 4});
    refuse(&four, cut_in_a_grid, GRADCMP_ERROR_UNSUPPORTED,
           "embedding.word_embeddings.weight: its 4 pieces do not tell how 4 ranks hold it");
}

static void test_buckets__damaged_buckets_are_corrupt(void **state) {
    (void)state;
    const struct setup one = complete((struct setup){.tp = 1});
    refuse(&one, lose_piece, GRADCMP_ERROR_CORRUPT,
           KEY ": a piece at element 192, expected at 144");
    refuse(&one, lose_last_piece, GRADCMP_ERROR_CORRUPT,
           KEY ": pieces end at element 3840, but the bucket has 3984");
    refuse(&one, rename_bucket, GRADCMP_ERROR_UNSUPPORTED,
           "optimizer.distributed.dp_group_idx_0.exp_avg: the key does not say which bucket this "
           "is" WAY_OUT);
    refuse(&one, renumber_bucket, GRADCMP_ERROR_CORRUPT,
           "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, "
           "torch.float32).bucket_idx_1.exp_avg: expected bucket 0 of that buffer");
}

#define GATHERED_KEY                                                                               \
    "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32)"

static void test_buckets__gathered_buffers_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const struct setup one = complete((struct setup){.gathered = true});
    refuse(&one, lose_an_element, GRADCMP_ERROR_UNSUPPORTED,
           GATHERED_KEY ".exp_avg: no order of the model's parameters fills this buffer" WAY_OUT);
    refuse(&one, add_a_bucket, GRADCMP_ERROR_CORRUPT,
           GATHERED_KEY ".bucket_idx_1.exp_avg: expected bucket 1 of that buffer");
}

static void rename_norms(struct hand *hand) {
    for (size_t i = 0; i < hand->catalogue.stored_count; i++) {
        struct gradcmp_stored *stored = &hand->catalogue.stored[i];
        if (strcmp(stored->name, "decoder.layers.mlp.linear_fc1.layer_norm_weight") == 0) {
            stored->name = "decoder.layers.mlp.surprise.weight";
        }
    }
}

/* The sizes may fit by chance, but for layouts that masters were compared in. */
static void test_buckets__module_of_no_known_place(void **state) {
    (void)state;
    const struct setup setup = complete((struct setup){.tp = 1, .fused_norms = true});
    struct model model = make_model(&setup);
    struct hand hand;
    hand_init(&hand);
    for (size_t i = 0; i < model.count; i++) { /* written where it is looked for, as the last */
        if (strstr(model.params[i].name, "linear_fc1.layer_norm") != NULL) {
            struct param norm = model.params[i];
            memmove(&model.params[i], &model.params[i + 1], 2 * sizeof norm);
            model.params[i + 2] = norm;
            break;
        }
    }
    write_all(&hand, &model);
    rename_norms(&hand);
    struct gradcmp_model read;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error),
                     GRADCMP_ERROR_UNSUPPORTED);
    assert_string_equal(error.message,
                        KEY ": nothing tells in which order it holds modules such as that of "
                            "decoder.layers.0.mlp.surprise.weight" WAY_OUT);
    struct gcmp_bucket_layouts layouts;
    assert_int_equal(
        gcmp_unshard_bucket_layouts(&hand.catalogue, "exp_avg", NULL, &layouts, &error),
        GRADCMP_OK);
    struct gcmp_unshard_options options = {.bucket_layout = layouts.numbers[0]};
    assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", &options, &read, &error),
                     GRADCMP_OK);
    gcmp_model_free(&read);
    hand_free(&hand);
}

/* Matrices of one size in both orders of experts: the arguments decide, or nothing does. */
static void test_buckets__orders_that_both_fit_need_the_arguments(void **state) {
    (void)state;
    const struct setup setup = complete((struct setup){.experts = 2, .grouped = true});
    struct model model = make_model(&setup);
    for (size_t i = 0; i < model.count; i++) {
        if (model.params[i].is_expert) {
            model.params[i].shape[0] = 12;
            model.params[i].shape[1] = HIDDEN;
            model.params[i].split = WHOLE;
        }
    }
    struct hand hand;
    hand_init(&hand);
    write_all(&hand, &model);
    struct gradcmp_model read;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error),
                     GRADCMP_ERROR_UNSUPPORTED);
    assert_string_equal(error.message,
                        KEY ": several orders of the model's parameters fill the buffers" WAY_OUT);
    struct gradcmp_setting grouped = {.name = "moe_grouped_gemm", .kind = GRADCMP_SETTING_BOOL};
    grouped.integer = 1;
    assert_int_equal(gcmp_catalogue_set(&hand.catalogue, &grouped, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error),
                     GRADCMP_OK);
    for (size_t i = 0; i < model.count; i++) {
        if (model.params[i].is_expert) {
            check_parameter(&hand, &model, &read, (struct which){i, 2, 1});
        }
    }
    gcmp_model_free(&read);
    hand_free(&hand);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets__one_rank),
        cmocka_unit_test(test_buckets__tensor_parallel_ranks_keep_copies),
        cmocka_unit_test(test_buckets__data_parallel_ranks_cut_anywhere),
        cmocka_unit_test(test_buckets__pipeline_stages_and_chunks),
        cmocka_unit_test(test_buckets__several_buckets),
        cmocka_unit_test(test_buckets__tied_embedding_of_the_last_stage_is_a_copy),
        cmocka_unit_test(test_buckets__embedding_of_several_tokens_is_a_copy),
        cmocka_unit_test(test_buckets__tensor_that_is_stored_in_parts),
        cmocka_unit_test(test_buckets__frozen_weights),
        cmocka_unit_test(test_buckets__weight_of_two_names),
        cmocka_unit_test(test_buckets__norms_fused_into_the_matrix_behind_them),
        cmocka_unit_test(test_buckets__experts_beside_dense_weights),
        cmocka_unit_test(test_buckets__experts_of_their_own_optimizer),
        cmocka_unit_test(test_buckets__weights_of_two_types_have_two_buffers),
        cmocka_unit_test(test_buckets__gathered_on_one_rank),
        cmocka_unit_test(test_buckets__gathered_buckets_begin_where_the_one_before_ends),
        cmocka_unit_test(test_buckets__layouts_that_fit_are_listed),
        cmocka_unit_test(test_buckets__gathered_buffers_that_do_not_fit_are_refused),
        cmocka_unit_test(test_buckets__what_says_nothing_is_left_alone),
        cmocka_unit_test(test_buckets__what_does_not_fit_is_refused),
        cmocka_unit_test(test_buckets__damaged_buckets_are_corrupt),
        cmocka_unit_test(test_buckets__module_of_no_known_place),
        cmocka_unit_test(test_buckets__orders_that_both_fit_need_the_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
