/* Fuzz target: unsharding. The input is a program that makes a catalogue: tensors with names from a
 * table or of its own bytes, shapes, stated shapes, pieces, buckets. Whatever comes out of it as a
 * parameter is counted element by element: each copy must hold each element once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "unshard/unshard.h"

#include "count_slab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TENSORS = 12, MAX_PIECES = 64, MAX_COUNTED = 4096 };

struct input {
    const uint8_t *bytes;
    size_t left;
};

static unsigned next(struct input *input) {
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->bytes++;
}

/* Mostly small numbers, some of the size of a bucket's alignment, and some that reach for the ends
 * of 64 bits. */
static uint64_t next_dim(struct input *input) {
    static const uint64_t large[] = {
        UINT64_MAX, INT64_MAX, (uint64_t)1 << 40, (uint64_t)1 << 32, 65536, 65537, 100000, 1000};
    unsigned byte = next(input);
    return byte < 192 ? byte % 14 : byte < 224 ? byte % 8 * 16 : large[byte % 8];
}

/* Name of a bucket's exp_avg. */
#define BUCKET(GROUP, BUCKET)                                                                      \
    ("optimizer.distributed.dp_group_idx_" GROUP                                                   \
     ".gbuf_idx_0.dtype_(torch.float32, torch.float32).bucket_idx_" BUCKET ".exp_avg")

static const char *next_name(struct input *input, struct gcmp_arena *arena) {
    static const char *const names[] = {
        "w",
        "decoder.layers.mlp.linear_fc1.weight",
        "decoder.layers.mlp.linear_fc1.weight_w",
        "decoder.layers.mlp.linear_fc1.weight_v",
        "decoder.layers.mlp.experts.experts.linear_fc2.weight",
        "decoder.layers.3.mlp.experts.linear_fc1.bias12",
        "decoder.layers.1.input_layernorm.weight",
        "decoder.layers.1.self_attention.linear_qkv.weight",
        "decoder.layers.pre_mlp_layernorm.weight",
        "decoder.layers.mlp.router.weight",
        "module.w",
        "model.module.embedding.word_embeddings.weight",
        "output_layer.weight",
        "mtp.layers.0.w",
        BUCKET("0", "0"),
        BUCKET("1", "0"),
        BUCKET("0", "1"),
    };
    unsigned byte = next(input);
    if (byte < 224) {
        return names[byte % (sizeof names / sizeof names[0])];
    }
    size_t length = next(input) % 32;
    length = length < input->left ? length : input->left;
    const char *name = gcmp_arena_text(arena, (const char *)input->bytes, length);
    input->bytes += length;
    input->left -= length;
    return name;
}

static const char *next_state(struct input *input) {
    static const char *const states[] = {"exp_avg",    "exp_avg", "exp_avg", "param",
                                         "exp_avg_sq", "step",    NULL};
    return states[next(input) % 7];
}

static const uint64_t *next_dims(struct input *input, struct gradcmp_catalogue *catalogue,
                                 unsigned ndim) {
    uint64_t dims[GRADCMP_MAX_NDIM];
    for (unsigned d = 0; d < ndim; d++) {
        dims[d] = next_dim(input);
    }
    return gcmp_catalogue_dims(catalogue, ndim, dims);
}

static void fill_piece(struct input *input, struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_stored *stored, struct gradcmp_piece *piece) {
    piece->start = next_dims(input, catalogue, stored->ndim);
    piece->extent = next_dims(input, catalogue, stored->ndim);
    piece->source = next(input);
    if (next(input) % 8 == 0) {
        const uint64_t *stride = next_dims(input, catalogue, stored->ndim);
        piece->stride = (const int64_t *)stride;
        piece->offset_elems = (int64_t)next_dim(input);
    }
}

static bool add_tensor(struct input *input, struct gradcmp_catalogue *catalogue) {
    struct gradcmp_stored *stored;
    const char *state = next_state(input), *name = next_name(input, catalogue->arena);
    unsigned ndim = next(input) % 6;
    const uint64_t *shape = next_dims(input, catalogue, ndim);
    size_t pieces = next(input) % MAX_PIECES;
    if (name == NULL || shape == NULL ||
        gcmp_catalogue_add_stored(catalogue, name, ndim, shape, pieces, &stored, NULL) !=
            GRADCMP_OK) {
        return false;
    }
    stored->state = state;
    stored->dtype = GRADCMP_DTYPE_FLOAT32;
    if (strncmp(name, "optimizer.distributed.", 22) == 0) {
        stored->layout = GRADCMP_LAYOUT_BUCKET;
    }
    if (next(input) % 2 == 0 && ndim > 0) {
        stored->model_ndim = (uint8_t)(ndim - 1);
        stored->model_shape = next_dims(input, catalogue, ndim - 1);
    }
    for (size_t i = 0; i < pieces; i++) {
        fill_piece(input, catalogue, stored, &stored->pieces[i]);
    }
    return true;
}

static void count_elements(const struct gradcmp_parameter *parameter) {
    static unsigned char seen[MAX_COUNTED];
    size_t s = 0;
    for (uint32_t copy = 0; copy < parameter->copy_count; copy++) {
        memset(seen, 0, sizeof seen);
        for (; s < parameter->slab_count && parameter->slabs[s].copy == copy; s++) {
            count_slab(parameter, &parameter->slabs[s], seen);
        }
        for (uint64_t i = 0; i < parameter->elem_count; i++) {
            demand(seen[i] == 1, "a copy holds all elements");
        }
    }
    demand(s == parameter->slab_count, "slabs are sorted by copy");
}

static void check_model(const struct gradcmp_model *model) {
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *parameter = &model->parameters[i];
        uint64_t elems;
        demand(i == 0 || strcmp(model->parameters[i - 1].name, parameter->name) < 0,
               "names are sorted, each once");
        demand(parameter->layer >= 0 && (uint64_t)parameter->layer <= model->layers + 1,
               "l lies in 0 .. L + 1");
        demand(gcmp_product(parameter->shape, parameter->ndim, &elems) &&
                   elems == parameter->elem_count && parameter->copy_count > 0,
               "elements are those of the shape");
        demand(gcmp_model_find(model, parameter->name) == parameter, "a name is found");
        if (elems <= MAX_COUNTED && parameter->slab_count <= MAX_COUNTED) {
            count_elements(parameter);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_catalogue catalogue = {.arena = &arena, .iteration = -1};
    catalogue.layers = next_dim(&input);
    catalogue.experts = next_dim(&input);
    catalogue.vocab = next_dim(&input);
    catalogue.parallel.tp = next(&input) % 4;
    catalogue.parallel.pp = next(&input) % 4;
    for (int i = 0; i < MAX_TENSORS && input.left > 0 && add_tensor(&input, &catalogue); i++) {
    }
    const char **states;
    size_t count;
    struct gradcmp_error error;
    if (gcmp_unshard_states(&catalogue, &arena, &states, &count, &error) == GRADCMP_OK) {
        for (size_t i = 0; i < count; i++) {
            struct gradcmp_model model;
            if (gcmp_unshard(&catalogue, states[i], NULL, &model, &error) == GRADCMP_OK) {
                check_model(&model);
                gcmp_model_free(&model);
            }
        }
    }
    struct gradcmp_model model;
    if (gcmp_unshard_buckets(&catalogue, "exp_avg", NULL, &model, &error) == GRADCMP_OK) {
        check_model(&model);
        gcmp_model_free(&model);
    }
    enum gradcmp_status status = gcmp_unshard_check_states(&catalogue, &error);
    demand(status == GRADCMP_OK || status == GRADCMP_ERROR_CORRUPT, "states are checked");
    gcmp_catalogue_free(&catalogue);
    gcmp_arena_free(&arena);
    return 0;
}
