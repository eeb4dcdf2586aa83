/* Bucket layouts, written here as Megatron writes them and read back element by element. The writer
 * fills gaps and the ends of buckets with a value that no parameter has. */
#include <stdio.h>

#include "hand_catalogue.h"

enum { MAX_PARAMS = 64, HIDDEN = 6 };

/* How ranks hold a weight. */
enum split { WHOLE, ROWS, COLUMNS, GATED_ROWS };

/* One parameter of a layer, or of the model around its layers. */
struct param {
    const char *name; /* of the stored tensor, with "layers." and no number in layers */
    unsigned ndim;
    uint64_t shape[2];
    enum split split;
    bool in_layer, is_expert;
};

struct setup {
    uint64_t layers, experts, tp, pp, chunks, ep, etp, dp, bucket_elems;
    bool fused_norms, grouped, tied, ungated, own_router_type;
};

/* A model's parameters in the order in which modules register them; experts of a layer are expanded
 * where they are laid out. */
struct model {
    struct param params[MAX_PARAMS];
    size_t count;
    const struct setup *setup;
};

static void add(struct model *model, struct param param) {
    assert_true(model->count < MAX_PARAMS);
    model->params[model->count++] = param;
}

static struct model make_model(const struct setup *setup) {
    struct model model = {.count = 0, .setup = setup};
    uint64_t h = HIDDEN, ffn = 12;
    struct param norm = {"decoder.layers.self_attention.linear_qkv.layer_norm_weight",
                         1,
                         {h, 0},
                         WHOLE,
                         true,
                         false};
    add(&model, (struct param){"embedding.word_embeddings.weight", 2, {24, h}, ROWS, false, false});
    if (!setup->fused_norms) {
        add(&model, norm);
    }
    add(&model,
        (struct param){
            "decoder.layers.self_attention.linear_proj.weight", 2, {h, 12}, COLUMNS, true, false});
    add(&model,
        (struct param){
            "decoder.layers.self_attention.linear_proj.bias", 1, {h, 0}, WHOLE, true, false});
    if (setup->fused_norms) {
        add(&model, norm);
    }
    add(&model,
        (struct param){
            "decoder.layers.self_attention.linear_qkv.weight", 2, {36, h}, ROWS, true, false});
    add(&model,
        (struct param){
            "decoder.layers.mlp.linear_fc1.layer_norm_weight", 1, {h, 0}, WHOLE, true, false});
    if (setup->experts == 0) {
        add(&model, (struct param){"decoder.layers.mlp.linear_fc1.weight",
                                   2,
                                   {2 * ffn, h},
                                   setup->ungated ? ROWS : GATED_ROWS,
                                   true,
                                   false});
        add(&model, (struct param){
                        "decoder.layers.mlp.linear_fc2.weight", 2, {h, ffn}, COLUMNS, true, false});
    } else {
        add(&model,
            (struct param){
                "decoder.layers.mlp.router.weight", 2, {setup->experts, h}, WHOLE, true, false});
        add(&model, (struct param){"decoder.layers.mlp.experts.experts.linear_fc1.weight",
                                   2,
                                   {2 * ffn, h},
                                   GATED_ROWS,
                                   true,
                                   true});
        add(&model, (struct param){"decoder.layers.mlp.experts.experts.linear_fc2.weight",
                                   2,
                                   {h, ffn},
                                   COLUMNS,
                                   true,
                                   true});
    }
    add(&model, (struct param){"decoder.final_layernorm.weight", 1, {h, 0}, WHOLE, false, false});
    if (!setup->tied) {
        add(&model, (struct param){"output_layer.weight", 2, {24, h}, ROWS, false, false});
    }
    return model;
}

static uint64_t elems_of(const struct param *param) {
    return param->ndim == 1 ? param->shape[0] : param->shape[0] * param->shape[1];
}

/* The value of an element, in the copy that a rank holds of it. */
static double value_of(size_t param, uint64_t layer, uint64_t expert, uint64_t elem,
                       uint64_t copy) {
    return (double)(((param * 16 + layer) * 16 + expert) * 1024 + elem) + 0.125 * (double)copy;
}

/* Rows or columns of a weight on one of `ranks`: the box's start and extent for part `part`. */
static void part_box(const struct param *param, uint64_t ranks, uint64_t rank, uint64_t part,
                     uint64_t start[2], uint64_t extent[2]) {
    start[0] = start[1] = 0;
    extent[0] = param->shape[0];
    extent[1] = param->ndim == 1 ? 1 : param->shape[1];
    uint64_t parts = param->split == GATED_ROWS ? 2 : 1;
    unsigned axis = param->split == COLUMNS ? 1 : 0;
    if (param->split != WHOLE) {
        extent[axis] = param->shape[axis] / parts / ranks;
        start[axis] = param->shape[axis] / parts * part + extent[axis] * rank;
    }
}

static bool is_router(const struct param *param) {
    return strstr(param->name, "router") != NULL;
}

/* The model's own tensor: a piece for each layer, expert, rank and part. */
static void write_weight(struct hand *hand, const struct model *model, const struct param *param) {
    const struct setup *setup = model->setup;
    uint64_t shape[4], start[4], extent[4], box_start[2], box_extent[2];
    unsigned lead = 0;
    uint64_t layers = param->in_layer ? setup->layers : 1;
    uint64_t experts = param->is_expert ? setup->experts : 1;
    if (param->in_layer) {
        shape[lead++] = layers;
    }
    if (param->is_expert) {
        shape[lead++] = experts;
    }
    memcpy(shape + lead, param->shape, param->ndim * sizeof *shape);
    size_t tensor = hand_tensor(hand, "param", param->name, lead + param->ndim, shape);
    bool is_wide = setup->own_router_type && is_router(param);
    hand_stored(hand, tensor)->dtype = is_wide ? GRADCMP_DTYPE_FLOAT32 : GRADCMP_DTYPE_BFLOAT16;
    uint64_t ranks = param->split == WHOLE ? 1 : param->is_expert ? setup->etp : setup->tp;
    uint64_t parts = param->split == GATED_ROWS ? 2 : 1;
    for (uint64_t i = 0; i < layers * experts * ranks * parts; i++) {
        uint64_t lead_index[2] = {i / parts / ranks / experts, i / parts / ranks % experts};
        part_box(param, ranks, i / parts % ranks, i % parts, box_start, box_extent);
        for (unsigned d = 0; d < lead; d++) {
            start[d] = lead_index[d + (param->in_layer ? 0 : 1)];
            extent[d] = 1;
        }
        memcpy(start + lead, box_start, param->ndim * sizeof *start);
        memcpy(extent + lead, box_extent, param->ndim * sizeof *extent);
        hand_piece(hand, tensor, start, extent);
    }
}

/* A buffer under way: values, and the ends of parameters and gaps. */
struct buffer {
    double values[8192];
    uint64_t edges[1024];
    size_t edge_count;
    uint64_t length; /* without the padding at the end */
    uint64_t bucket;
    char key[160]; /* without ".bucket_idx_<n>" */
};

static void add_edge(struct buffer *buffer) {
    assert_true(buffer->edge_count < 1024);
    buffer->edges[buffer->edge_count++] = buffer->length;
}

/* Write elements [from, to) as a piece, every third time with room between its elements. */
static void write_piece(struct hand *hand, size_t tensor, const struct buffer *buffer,
                        uint64_t from, uint64_t to) {
    static const int64_t twice = 2;
    uint64_t count = to - from;
    bool is_spread = hand->catalogue.source_count % 3 == 0;
    double *values = calloc(2 * count + 5, sizeof *values);
    assert_non_null(values);
    for (uint64_t i = 0; i < count; i++) {
        values[is_spread ? 5 + 2 * i : i] = buffer->values[from + i];
    }
    uint32_t source = hand_source(hand, values, 2 * count + 5);
    struct gradcmp_piece *piece = hand_piece_of(hand, tensor, &from, &count, source);
    if (is_spread) {
        piece->stride = &twice;
        piece->offset_elems = 5;
    }
}

/* Write the bucket under way, in slices of data-parallel ranks, and start the next. */
static void close_bucket(struct hand *hand, const struct setup *setup, struct buffer *buffer) {
    if (buffer->length == 0) {
        return;
    }
    char name[200];
    snprintf(name, sizeof name, "%s.bucket_idx_%d.exp_avg", buffer->key, (int)buffer->bucket);
    size_t tensor = hand_tensor(hand, "exp_avg", name, 1, &buffer->length);
    hand_stored(hand, tensor)->key = hand_stored(hand, tensor)->name;
    hand_stored(hand, tensor)->layout = GRADCMP_LAYOUT_BUCKET;
    uint64_t unit = 128 * setup->dp, padded = (buffer->length + unit - 1) / unit * unit;
    for (size_t i = 0; i < buffer->edge_count; i++) {
        uint64_t from = buffer->edges[i];
        uint64_t end = i + 1 < buffer->edge_count ? buffer->edges[i + 1] : buffer->length;
        while (from < end) { /* cut where a rank's part of the bucket ends */
            uint64_t rank_end = (from / (padded / setup->dp) + 1) * (padded / setup->dp);
            uint64_t to = rank_end < end ? rank_end : end;
            write_piece(hand, tensor, buffer, from, to);
            from = to;
        }
    }
    buffer->length = 0;
    buffer->edge_count = 0;
    buffer->bucket++;
}

/* Where a rank stands. */
struct rank {
    uint64_t tp, ep, stage, chunk;
};

static void pad(struct buffer *buffer) {
    uint64_t aligned = (buffer->length + 63) / 64 * 64;
    if (aligned > buffer->length) {
        add_edge(buffer);
    }
    while (buffer->length < aligned) {
        buffer->values[buffer->length++] = -1e30;
    }
}

/* Append one parameter as a rank holds it. */
static void append(struct hand *hand, const struct model *model, struct buffer *buffer,
                   size_t param, uint64_t layer, uint64_t expert, struct rank rank, uint64_t copy) {
    const struct param *p = &model->params[param];
    uint64_t ranks = p->is_expert ? model->setup->etp : model->setup->tp;
    uint64_t parts = p->split == GATED_ROWS ? 2 : 1, start[2], extent[2];
    pad(buffer);
    add_edge(buffer);
    for (uint64_t part = 0; part < parts; part++) {
        part_box(p, ranks, rank.tp, part, start, extent);
        for (uint64_t i = 0; i < extent[0] * extent[1]; i++) {
            uint64_t columns = p->ndim == 1 ? 1 : p->shape[1];
            uint64_t elem = (start[0] + i / extent[1]) * columns + start[1] + i % extent[1];
            buffer->values[buffer->length++] = value_of(param, layer, expert, elem, copy);
        }
    }
    if (model->setup->bucket_elems != 0 && buffer->length >= model->setup->bucket_elems) {
        close_bucket(hand, model->setup, buffer);
    }
}

static uint64_t copy_of(const struct param *param, struct rank rank, uint64_t repeat) {
    return param->split == WHOLE ? rank.tp : repeat;
}

/* Experts of one layer, in reverse order of registration. */
static void append_experts(struct hand *hand, const struct model *model, struct buffer *buffer,
                           size_t fc1, uint64_t layer, struct rank rank) {
    const struct setup *setup = model->setup;
    uint64_t each = setup->experts / setup->ep;
    for (uint64_t i = 2 * each; i-- > 0;) {
        uint64_t matrix = setup->grouped ? i / each : i % 2;
        uint64_t expert = rank.ep * each + (setup->grouped ? i % each : i / 2);
        append(hand, model, buffer, fc1 + matrix, layer, expert, rank, 0);
    }
}

/* Sums of what a buffer holds. */
enum { DENSE = 1, EXPERTS = 2, ROUTERS = 4 };

/* A layer's parameters from the last to the first. */
static void append_layer(struct hand *hand, const struct model *model, struct buffer *buffer,
                         uint64_t layer, struct rank rank, unsigned which) {
    for (size_t i = model->count; i-- > 0;) {
        const struct param *param = &model->params[i];
        if (!param->in_layer) {
            continue;
        }
        unsigned kind = param->is_expert ? EXPERTS : is_router(param) ? ROUTERS : DENSE;
        if (kind != EXPERTS && (which & kind) != 0) {
            append(hand, model, buffer, i, layer, 0, rank, copy_of(param, rank, 0));
        } else if ((which & kind) != 0 && !model->params[i - 1].is_expert) {
            append_experts(hand, model, buffer, i, layer, rank);
        }
    }
}

/* Parameters behind the layers (or, with `before`, those in front of them). */
static void append_ends(struct hand *hand, const struct model *model, struct buffer *buffer,
                        struct rank rank, bool before) {
    for (size_t i = model->count; i-- > 0;) {
        const struct param *param = &model->params[i];
        if (!param->in_layer && (strncmp(param->name, "embedding", 9) == 0) == before) {
            append(hand, model, buffer, i, 0, 0, rank, copy_of(param, rank, 0));
        }
    }
}

static void write_buffer(struct hand *hand, const struct model *model, struct rank rank,
                         unsigned which, const char *prefix) {
    static struct buffer buffer;
    const struct setup *setup = model->setup;
    uint64_t stages = setup->pp * setup->chunks, place = rank.chunk * setup->pp + rank.stage;
    uint64_t first = setup->layers * place / stages, end = setup->layers * (place + 1) / stages;
    uint64_t group = which == EXPERTS ? (rank.stage * setup->ep + rank.ep) * setup->etp + rank.tp
                                      : rank.stage * setup->tp + rank.tp;
    memset(&buffer, 0, sizeof buffer);
    snprintf(buffer.key, sizeof buffer.key,
             "%soptimizer.distributed.dp_group_idx_%d.gbuf_idx_%d.dtype_(torch.%s, torch.float32)",
             prefix, (int)group, (int)rank.chunk + (which == ROUTERS ? 1 : 0),
             which == ROUTERS ? "float32" : "bfloat16");
    if (place + 1 == stages && (which & DENSE) != 0) {
        if (setup->tied && stages > 1) {
            append(hand, model, &buffer, 0, 0, 0, rank, copy_of(&model->params[0], rank, 1));
            pad(&buffer); /* a shared embedding has a bucket of its own */
            close_bucket(hand, setup, &buffer);
        }
        append_ends(hand, model, &buffer, rank, false);
    }
    for (uint64_t layer = end; layer-- > first;) {
        append_layer(hand, model, &buffer, layer, rank, which);
    }
    if (place == 0 && (which & DENSE) != 0) {
        append_ends(hand, model, &buffer, rank, true);
    }
    close_bucket(hand, setup, &buffer);
}

static void write_all(struct hand *hand, const struct model *model) {
    const struct setup *setup = model->setup;
    bool two = setup->ep > 1;
    for (size_t i = 0; i < model->count; i++) {
        write_weight(hand, model, &model->params[i]);
    }
    hand->catalogue.parallel = (struct gradcmp_parallel){.tp = (uint32_t)setup->tp,
                                                         .pp = (uint32_t)setup->pp,
                                                         .ep = (uint32_t)setup->ep,
                                                         .etp = (uint32_t)setup->etp};
    for (uint64_t i = 0; i < setup->chunks * setup->pp * setup->tp; i++) {
        struct rank rank = {i % setup->tp, 0, i / setup->tp % setup->pp, i / setup->tp / setup->pp};
        unsigned routers = setup->own_router_type ? 0 : ROUTERS;
        write_buffer(hand, model, rank, DENSE | routers | (two ? 0 : EXPERTS),
                     two ? "chained_0." : "");
        if (setup->own_router_type) {
            write_buffer(hand, model, rank, ROUTERS, two ? "chained_0." : "");
        }
    }
    for (uint64_t i = 0; two && i < setup->chunks * setup->pp * setup->ep * setup->etp; i++) {
        struct rank rank = {i % setup->etp, i / setup->etp % setup->ep,
                            i / setup->etp / setup->ep % setup->pp,
                            i / setup->etp / setup->ep / setup->pp};
        write_buffer(hand, model, rank, EXPERTS, "chained_1.");
    }
}

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
                            const struct gradcmp_model *read, size_t param, uint64_t layer,
                            uint64_t expert) {
    const struct param *p = &model->params[param];
    const struct gradcmp_parameter *found = hand_find(read, final_name(hand, p, layer, expert));
    const struct setup *setup = model->setup;
    uint64_t copies = p->split == WHOLE ? setup->tp : 1;
    if (param == 0 && setup->tied && setup->pp * setup->chunks > 1) {
        copies = 2;
    }
    assert_int_equal(found->copy_count, copies);
    assert_int_equal(found->replicated, copies > 1);
    assert_int_equal(found->overlap, 0);
    assert_int_equal(found->dtype, GRADCMP_DTYPE_FLOAT32);
    for (uint32_t copy = 0; copy < copies; copy++) {
        double *values = hand_read(hand, found, copy);
        for (uint64_t i = 0; i < elems_of(p); i++) {
            double expected = value_of(param, layer, expert, i, copy);
            if (values[i] != expected) {
                fail_msg("%s, copy %u, element %d: %g, expected %g", found->name, copy, (int)i,
                         values[i], expected);
            }
        }
        free(values);
    }
}

static void check_setup(struct setup setup) {
    struct model model = make_model(&setup);
    struct hand hand;
    hand_init(&hand);
    write_all(&hand, &model);
    struct gradcmp_model read;
    struct gradcmp_error error = {0};
    if (gcmp_unshard_buckets(&hand.catalogue, "exp_avg", NULL, &read, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    size_t count = 0;
    for (size_t i = 0; i < model.count; i++) {
        uint64_t layers = model.params[i].in_layer ? setup.layers : 1;
        uint64_t experts = model.params[i].is_expert ? setup.experts : 1;
        for (uint64_t j = 0; j < layers * experts; j++, count++) {
            check_parameter(&hand, &model, &read, i, j / experts, j % experts);
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
    check_parameter(&hand, &model, &read, 0, 0, 0);
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
            check_parameter(&hand, &model, &read, i, 2, 1);
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
        cmocka_unit_test(test_buckets__norms_fused_into_the_matrix_behind_them),
        cmocka_unit_test(test_buckets__experts_beside_dense_weights),
        cmocka_unit_test(test_buckets__experts_of_their_own_optimizer),
        cmocka_unit_test(test_buckets__weights_of_two_types_have_two_buffers),
        cmocka_unit_test(test_buckets__what_says_nothing_is_left_alone),
        cmocka_unit_test(test_buckets__what_does_not_fit_is_refused),
        cmocka_unit_test(test_buckets__damaged_buckets_are_corrupt),
        cmocka_unit_test(test_buckets__orders_that_both_fit_need_the_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
