/* Fuzz target: files of rules (--map), read and applied to a small model of real names. Whatever
 * comes out holds each element once, under sorted names. */
#include "unshard/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "unshard/unshard.h"

#include "count_slab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_COUNTED = 4096 };

static void add_tensor(struct gradcmp_catalogue *catalogue, const char *name, uint64_t rows,
                       uint64_t columns) {
    const uint64_t dims[] = {rows, columns}, halves[] = {rows / 2, columns}, zeros[] = {0, 0},
                   middle[] = {rows / 2, 0};
    unsigned ndim = columns == 0 ? 1 : 2;
    struct gradcmp_stored *stored;
    demand(gcmp_catalogue_add_stored(catalogue, name, ndim,
                                     gcmp_catalogue_dims(catalogue, ndim, dims), 2, &stored,
                                     NULL) == GRADCMP_OK,
           "a tensor can be added");
    stored->state = "exp_avg";
    stored->dtype = GRADCMP_DTYPE_FLOAT32;
    for (size_t i = 0; i < 2; i++) {
        stored->pieces[i].start = gcmp_catalogue_dims(catalogue, ndim, i == 0 ? zeros : middle);
        stored->pieces[i].extent = gcmp_catalogue_dims(catalogue, ndim, halves);
    }
}

static void check_model(const struct gradcmp_model *model) {
    static unsigned char seen[MAX_COUNTED];
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *parameter = &model->parameters[i];
        demand(i == 0 || strcmp(model->parameters[i - 1].name, parameter->name) < 0,
               "names are sorted, each once");
        demand(parameter->elem_count <= MAX_COUNTED, "nothing grows");
        memset(seen, 0, sizeof seen);
        for (size_t s = 0; s < parameter->slab_count; s++) {
            count_slab(parameter, &parameter->slabs[s], seen);
        }
        for (uint64_t e = 0; e < parameter->elem_count; e++) {
            demand(seen[e] == 1, "all elements are there");
        }
    }
}

static void apply(struct gcmp_mapping *mapping, enum gcmp_mapping_side side) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_catalogue catalogue = {.arena = &arena, .iteration = -1};
    struct gradcmp_error error = {0};
    struct gradcmp_model model;
    catalogue.layers = 2;
    add_tensor(&catalogue, "decoder.layers.0.self_attention.linear_qkv.weight", 24, 4);
    add_tensor(&catalogue, "decoder.layers.1.self_attention.linear_qkv.weight", 24, 4);
    add_tensor(&catalogue, "decoder.layers.0.mlp.linear_fc1.weight", 8, 6);
    add_tensor(&catalogue, "decoder.layers.0.input_layernorm.weight", 4, 0);
    add_tensor(&catalogue, "embedding.word_embeddings.weight", 10, 4);
    demand(gcmp_unshard(&catalogue, "exp_avg", NULL, &model, &error) == GRADCMP_OK,
           "the model can be laid out");
    enum gradcmp_status status = gcmp_mapping_apply(mapping, &catalogue, side, &model, &error);
    if (status == GRADCMP_OK) {
        check_model(&model);
    } else {
        demand(error.code == status && error.message[0] != '\0', "a failure is told");
    }
    gcmp_model_free(&model);
    gcmp_catalogue_free(&catalogue);
    gcmp_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_mapping *mapping = NULL;
    struct gradcmp_error error = {0};
    enum gradcmp_status status =
        gcmp_mapping_parse("fuzz.yaml", (const char *)data, size, &mapping, &error);
    if (status != GRADCMP_OK) {
        demand(error.code == status && error.message[0] != '\0', "a failure is told");
        return 0;
    }
    apply(mapping, GCMP_MAPPING_BASELINE);
    apply(mapping, GCMP_MAPPING_ALONE);
    gcmp_mapping_free(mapping);
    return 0;
}
