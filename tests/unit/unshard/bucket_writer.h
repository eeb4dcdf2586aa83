/* Writes catalogues of checkpoints whose optimizer is stored in buckets, as Megatron does:
 * parameters in reverse order of registration, gaps between them, slices of data-parallel ranks.
 * Gaps and the ends of buckets hold a value that no parameter has. */
#ifndef GCMP_TEST_BUCKET_WRITER_H
#define GCMP_TEST_BUCKET_WRITER_H

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
    bool mixes;                    /* layers have a mixer too, with a tensor in parts */
    uint64_t frozen, frozen_layer; /* 1 and more: a parameter or a layer that is in no buffer */
    bool is_named_twice;           /* the table of positions, as T5's */
    bool predicts; /* several tokens, in the last stage, which holds the embedding for that */
    bool gathered,
        unaligned; /* one flat tensor a buffer, without what pads buckets; gaps or none */
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

/* The norm before attention, and attention; the norm is made first, or within linear_qkv. */
static void add_attention(struct model *model) {
    uint64_t h = HIDDEN;
    struct param norm = {"decoder.layers.self_attention.linear_qkv.layer_norm_weight",
                         1,
                         {h, 0},
                         WHOLE,
                         true,
                         false};
    struct param proj = {
        "decoder.layers.self_attention.linear_proj.weight", 2, {h, 12}, COLUMNS, true, false};
    struct param bias = {
        "decoder.layers.self_attention.linear_proj.bias", 1, {h, 0}, WHOLE, true, false};
    struct param qkv = {
        "decoder.layers.self_attention.linear_qkv.weight", 2, {36, h}, ROWS, true, false};
    if (!model->setup->fused_norms) {
        add(model, norm);
    }
    add(model, proj);
    add(model, bias);
    if (model->setup->fused_norms) {
        add(model, norm);
    }
    add(model, qkv);
}

static void add_mlp(struct model *model) {
    const struct setup *setup = model->setup;
    uint64_t h = HIDDEN, ffn = 12;
    enum split first = setup->ungated ? ROWS : GATED_ROWS;
    add(model,
        (struct param){
            "decoder.layers.mlp.linear_fc1.layer_norm_weight", 1, {h, 0}, WHOLE, true, false});
    if (setup->experts == 0) {
        add(model,
            (struct param){
                "decoder.layers.mlp.linear_fc1.weight", 2, {2 * ffn, h}, first, true, false});
        add(model, (struct param){
                       "decoder.layers.mlp.linear_fc2.weight", 2, {h, ffn}, COLUMNS, true, false});
        return;
    }
    add(model, (struct param){
                   "decoder.layers.mlp.router.weight", 2, {setup->experts, h}, WHOLE, true, false});
    add(model, (struct param){"decoder.layers.mlp.experts.experts.linear_fc1.weight",
                              2,
                              {2 * ffn, h},
                              GATED_ROWS,
                              true,
                              true});
    add(model, (struct param){"decoder.layers.mlp.experts.experts.linear_fc2.weight",
                              2,
                              {h, ffn},
                              COLUMNS,
                              true,
                              true});
}

/* A part of a tensor, whose part before it follows in the list. */
static bool joins(const struct param *param) {
    const char *part = strstr(param->name, "in_proj.weight.");
    return part != NULL && strcmp(part, "in_proj.weight.z") != 0;
}

static void add_mixer(struct model *model) {
    static const char *const parts[] = {"decoder.layers.mixer.in_proj.weight.dt",
                                        "decoder.layers.mixer.in_proj.weight.x",
                                        "decoder.layers.mixer.in_proj.weight.z"};
    add(model, (struct param){"decoder.layers.mixer.A_log", 1, {12, 0}, ROWS, true, false});
    for (size_t i = 0; i < 3; i++) {
        add(model, (struct param){parts[i], 2, {12 * (i + 1), HIDDEN}, ROWS, true, false});
    }
}

static struct model make_model(const struct setup *setup) {
    struct model model = {.count = 0, .setup = setup};
    uint64_t h = HIDDEN;
    add(&model, (struct param){"embedding.word_embeddings.weight", 2, {24, h}, ROWS, false, false});
    if (setup->is_named_twice) {
        add(&model, (struct param){"position_embeddings.weight", 2, {16, h}, WHOLE, false, false});
    }
    add_attention(&model);
    add_mlp(&model);
    if (setup->mixes) {
        add_mixer(&model);
    }
    add(&model, (struct param){"decoder.final_layernorm.weight", 1, {h, 0}, WHOLE, false, false});
    if (setup->predicts) {
        add(&model, (struct param){"mtp.layers.0.enorm.weight", 1, {h, 0}, WHOLE, false, false});
        add(&model, (struct param){"mtp.layers.0.eh_proj.weight", 2, {36, h}, ROWS, false, false});
    }
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

/* A box of a weight: rows and columns. */
struct box {
    uint64_t start[2], extent[2];
};

/* Part `part` of what one of `ranks` holds of a weight. */
static struct box part_box(const struct param *param, uint64_t ranks, uint64_t rank,
                           uint64_t part) {
    struct box box = {{0, 0}, {param->shape[0], param->ndim == 1 ? 1 : param->shape[1]}};
    uint64_t parts = param->split == GATED_ROWS ? 2 : 1;
    unsigned axis = param->split == COLUMNS ? 1 : 0;
    if (param->split != WHOLE) {
        box.extent[axis] = param->shape[axis] / parts / ranks;
        box.start[axis] = param->shape[axis] / parts * part + box.extent[axis] * rank;
    }
    return box;
}

static bool is_router(const struct param *param) {
    return strstr(param->name, "router") != NULL;
}

/* The model's own tensor: a piece for each layer, expert, rank and part. */
static void write_weight(struct hand *hand, const struct model *model, const struct param *param) {
    const struct setup *setup = model->setup;
    uint64_t shape[4], start[4], extent[4];
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
        struct box box = part_box(param, ranks, i / parts % ranks, i % parts);
        for (unsigned d = 0; d < lead; d++) {
            start[d] = lead_index[d + (param->in_layer ? 0 : 1)];
            extent[d] = 1;
        }
        memcpy(start + lead, box.start, param->ndim * sizeof *start);
        memcpy(extent + lead, box.extent, param->ndim * sizeof *extent);
        hand_piece(hand, tensor, start, extent);
    }
}

/* A buffer under way: values, and the ends of parameters and gaps. */
struct buffer {
    double values[8192];
    uint64_t edges[1024];
    size_t edge_count;
    uint64_t length; /* without the padding at the end */
    uint64_t base;   /* gathered: where the bucket under way began */
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
    if (setup->gathered) {
        snprintf(name, sizeof name, "%s.exp_avg", buffer->key);
        buffer->edges[0] = 0;
        buffer->edge_count = 1;
    }
    size_t tensor = hand_tensor(hand, "exp_avg", name, 1, &buffer->length);
    hand_stored(hand, tensor)->key = hand_stored(hand, tensor)->name;
    hand_stored(hand, tensor)->layout = GRADCMP_LAYOUT_BUCKET;
    uint64_t unit = 128 * setup->dp, padded = (buffer->length + unit - 1) / unit * unit;
    padded = setup->gathered ? setup->dp * buffer->length : padded;
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
    buffer->length = buffer->base = 0;
    buffer->edge_count = 0;
    buffer->bucket++;
}

/* Where a rank stands. */
struct rank {
    uint64_t tp, ep, stage, chunk;
};

static void pad(const struct setup *setup, struct buffer *buffer) {
    uint64_t in_bucket = buffer->length - buffer->base;
    uint64_t aligned =
        setup->unaligned ? buffer->length : buffer->base + (in_bucket + 63) / 64 * 64;
    if (aligned > buffer->length) {
        add_edge(buffer);
    }
    while (buffer->length < aligned) {
        buffer->values[buffer->length++] = -1e30;
    }
}

/* What is written into a buffer, and by which rank. */
struct writer {
    struct hand *hand;
    const struct model *model;
    struct buffer *buffer;
    struct rank rank;
};

/* One parameter of one layer and expert. */
struct which {
    size_t param;
    uint64_t layer, expert;
};

/* Append one parameter as the rank holds it. */
static void append(const struct writer *writer, struct which which, uint64_t copy) {
    const struct setup *setup = writer->model->setup;
    const struct param *p = &writer->model->params[which.param];
    struct buffer *buffer = writer->buffer;
    if (which.param + 1 == setup->frozen ||
        (p->in_layer && which.layer + 1 == setup->frozen_layer)) {
        return;
    }
    uint64_t ranks = p->is_expert ? setup->etp : setup->tp;
    bool goes_on = which.param > 0 && joins(p - 1);
    if (!joins(p)) {
        pad(setup, buffer);
        add_edge(buffer);
    }
    bool is_apart = setup->gathered && setup->tied && setup->pp > 1 && which.param == 0;
    buffer->base = is_apart ? buffer->length : buffer->base;
    for (uint64_t part = 0; part < (p->split == GATED_ROWS ? 2 : 1); part++) {
        struct box box = part_box(p, ranks, writer->rank.tp, part);
        for (uint64_t i = 0; i < box.extent[0] * box.extent[1]; i++) {
            uint64_t columns = p->ndim == 1 ? 1 : p->shape[1];
            uint64_t row = box.start[0] + i / box.extent[1];
            uint64_t elem = row * columns + box.start[1] + i % box.extent[1];
            buffer->values[buffer->length++] =
                value_of(which.param, which.layer, which.expert, elem, copy);
        }
    }
    bool closes = !goes_on && setup->bucket_elems != 0 &&
                  buffer->length - buffer->base >= setup->bucket_elems;
    if (setup->gathered) {
        bool may_close = writer->rank.stage == 0 && writer->rank.chunk == 0;
        buffer->base = is_apart || (closes && may_close) ? buffer->length : buffer->base;
    } else if (closes) {
        close_bucket(writer->hand, setup, buffer);
    }
}

static uint64_t copy_of(const struct param *param, struct rank rank, uint64_t repeat) {
    return param->split == WHOLE ? rank.tp : repeat;
}

/* Experts of one layer, in reverse order of registration. */
static void append_experts(const struct writer *writer, size_t fc1, uint64_t layer) {
    const struct setup *setup = writer->model->setup;
    uint64_t each = setup->experts / setup->ep;
    for (uint64_t i = 2 * each; i-- > 0;) {
        uint64_t matrix = setup->grouped ? i / each : i % 2;
        uint64_t expert = writer->rank.ep * each + (setup->grouped ? i % each : i / 2);
        append(writer, (struct which){fc1 + matrix, layer, expert}, 0);
    }
}

/* Sums of what a buffer holds. */
enum { DENSE = 1, EXPERTS = 2, ROUTERS = 4 };

/* A layer's parameters from the last to the first. */
static void append_layer(const struct writer *writer, uint64_t layer, unsigned kinds) {
    const struct param *params = writer->model->params;
    for (size_t i = writer->model->count; i-- > 0;) {
        unsigned kind = params[i].is_expert ? EXPERTS : is_router(&params[i]) ? ROUTERS : DENSE;
        if (!params[i].in_layer || (kinds & kind) == 0) {
            continue;
        }
        if (kind != EXPERTS) {
            append(writer, (struct which){i, layer, 0}, copy_of(&params[i], writer->rank, 0));
        } else if (!params[i - 1].is_expert) {
            append_experts(writer, i, layer);
        }
    }
}

/* Parameters behind the layers (or, with `before`, those in front of them). */
static void append_ends(const struct writer *writer, bool before) {
    for (size_t i = writer->model->count; i-- > 0;) {
        const struct param *param = &writer->model->params[i];
        if (!param->in_layer && (strstr(param->name, "embeddings.") != NULL) == before) {
            append(writer, (struct which){i, 0, 0}, copy_of(param, writer->rank, 0));
        }
    }
}

/* Name the buffer that the rank fills with these kinds. */
static void name_buffer(const struct writer *writer, unsigned kinds, const char *prefix) {
    const struct setup *setup = writer->model->setup;
    struct rank rank = writer->rank;
    uint64_t group = kinds == EXPERTS ? (rank.stage * setup->ep + rank.ep) * setup->etp + rank.tp
                                      : rank.stage * setup->tp + rank.tp;
    snprintf(writer->buffer->key, sizeof writer->buffer->key,
             "%soptimizer.distributed.dp_group_idx_%d.gbuf_idx_%d.dtype_(torch.%s, torch.float32)",
             prefix, (int)group, (int)rank.chunk + (kinds == ROUTERS ? 1 : 0),
             kinds == ROUTERS ? "float32" : "bfloat16");
}

static void write_buffer(const struct writer *writer, unsigned kinds, const char *prefix) {
    const struct setup *setup = writer->model->setup;
    uint64_t stages = setup->pp * setup->chunks;
    uint64_t place = writer->rank.chunk * setup->pp + writer->rank.stage;
    memset(writer->buffer, 0, sizeof *writer->buffer);
    name_buffer(writer, kinds, prefix);
    if (place + 1 == stages && (kinds & DENSE) != 0) {
        if (setup->tied && stages > 1) { /* a shared embedding has a bucket of its own */
            append(writer, (struct which){0, 0, 0},
                   copy_of(&writer->model->params[0], writer->rank, 1));
            if (!setup->gathered) {
                pad(setup, writer->buffer);
                close_bucket(writer->hand, setup, writer->buffer);
            }
        }
        append_ends(writer, false);
    }
    uint64_t first = setup->layers * place / stages;
    for (uint64_t layer = setup->layers * (place + 1) / stages; layer-- > first;) {
        append_layer(writer, layer, kinds);
    }
    if (place == 0 && (kinds & DENSE) != 0) {
        append_ends(writer, true);
    } else if (place + 1 == stages && setup->predicts && (kinds & DENSE) != 0) {
        append(writer, (struct which){0, 0, 0},
               copy_of(&writer->model->params[0], writer->rank, setup->tied ? 2 : 1));
    }
    close_bucket(writer->hand, setup, writer->buffer);
}

static void write_all(struct hand *hand, const struct model *model) {
    const struct setup *setup = model->setup;
    bool two = setup->ep > 1;
    for (size_t i = 0; i < model->count; i++) {
        write_weight(hand, model, &model->params[i]);
    }
    if (setup->is_named_twice) {
        struct param second = model->params[1];
        second.name = "embedding.position_embeddings.weight";
        write_weight(hand, model, &second);
    }
    hand->catalogue.parallel = (struct gradcmp_parallel){.tp = (uint32_t)setup->tp,
                                                         .pp = (uint32_t)setup->pp,
                                                         .ep = (uint32_t)setup->ep,
                                                         .etp = (uint32_t)setup->etp};
    static struct buffer buffer;
    struct writer writer = {.hand = hand, .model = model, .buffer = &buffer};
    for (uint64_t i = 0; i < setup->chunks * setup->pp * setup->tp; i++) {
        writer.rank =
            (struct rank){i % setup->tp, 0, i / setup->tp % setup->pp, i / setup->tp / setup->pp};
        unsigned routers = setup->own_router_type ? 0 : ROUTERS;
        write_buffer(&writer, DENSE | routers | (two ? 0 : EXPERTS), two ? "chained_0." : "");
        if (setup->own_router_type) {
            write_buffer(&writer, ROUTERS, two ? "chained_0." : "");
        }
    }
    for (uint64_t i = 0; two && i < setup->chunks * setup->pp * setup->ep * setup->etp; i++) {
        writer.rank = (struct rank){i % setup->etp, i / setup->etp % setup->ep,
                                    i / setup->etp / setup->ep % setup->pp,
                                    i / setup->etp / setup->ep / setup->pp};
        write_buffer(&writer, EXPERTS, "chained_1.");
    }
}

#endif
