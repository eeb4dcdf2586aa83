/* Random tensors for the fuzz targets that check meaning: the model as one rank would hold it,
 * which is what every layout of it must read as. */
#ifndef GCMP_FUZZ_RANDOM_SET_H
#define GCMP_FUZZ_RANDOM_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "demand.h"

enum { MAX_KINDS = 3, MAX_LAYERS = 3, MAX_EXPERTS = 3, MAX_NDIM = 3, MAX_DIM = 7 };
enum { MAX_SLOTS = MAX_LAYERS * MAX_EXPERTS, MAX_WHOLES = MAX_KINDS * MAX_SLOTS };
enum { MAX_ELEMS = MAX_DIM * MAX_DIM * MAX_DIM };

/* --- numbers --- */

struct input {
    const uint8_t *bytes;
    size_t left;
    uint64_t random; /* goes on where the bytes end, and fills the tensors */
};

static inline uint64_t next_random(struct input *input) {
    input->random ^= input->random << 13; /* xorshift64, G. Marsaglia */
    input->random ^= input->random >> 7;
    input->random ^= input->random << 17;
    return input->random;
}

/* A number below `limit`, which is at least 1. */
static inline unsigned next_below(struct input *input, unsigned limit) {
    if (limit <= 1) {
        return 0;
    }
    if (input->left == 0) {
        return (unsigned)(next_random(input) >> 32) % limit;
    }
    input->left--;
    return *input->bytes++ % limit;
}

static inline bool one_in(struct input *input, unsigned count) {
    return next_below(input, count) == 0;
}

static inline struct input make_input(const uint8_t *data, size_t size) {
    struct input input = {data, size, 0x9E3779B97F4A7C15U};
    for (size_t i = 0; i < size; i++) {
        input.random = (input.random ^ data[i]) * 0x100000001B3U; /* every byte counts */
    }
    input.random |= 1;
    return input;
}

/* --- types --- */

/* Finite elements of either sign around 1: the sign's bit, exponents in a small range, any
 * fraction.
 */
struct element {
    const char *name, *storage;
    unsigned bytes, fraction_bits, least_exponent;
};
static const struct element elements[] = {
    {"float32", "FloatStorage", 4, 23, 120},
    {"bfloat16", "BFloat16Storage", 2, 7, 120},
    {"float16", "HalfStorage", 2, 10, 9},
    {"float64", "DoubleStorage", 8, 52, 1016},
};

static inline void fill(struct input *input, const struct element *element, unsigned count,
                        uint8_t *bytes) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t random = next_random(input), exponent = element->least_exponent + random % 13;
        uint64_t bits = (random >> 5 & (((uint64_t)1 << element->fraction_bits) - 1)) |
                        exponent << element->fraction_bits;
        for (unsigned b = 0; b < element->bytes; b++) {
            *bytes++ = (uint8_t)(bits >> (8 * b));
        }
        bytes[-1] |= (uint8_t)(random >> 4 & 1) << 7;
    }
}

/* --- tensors --- */

/* One parameter of one layer and expert, and the gradient of it. */
struct whole {
    char name[96];
    uint8_t gradient[8 * MAX_ELEMS], weight[8 * MAX_ELEMS];
};

/* Parameters that are alike: of every layer, or of every expert of every layer. */
struct kind {
    const struct kind_name *name;
    unsigned ndim, elems, shape[MAX_NDIM];
    const struct element *gradient, *weight;
    unsigned layers, experts; /* experts 0: it is of no expert */
    unsigned first;           /* of its wholes, layer by layer, expert by expert */
};

/* How a kind is called: below the layer, and below the expert. `other` is a second spelling of the
 * same. */
struct kind_name {
    const char *text, *other, *below_expert;
    bool is_gated; /* may be stored as two halves of its rows, `_w` and `_v` */
};
static const struct kind_name kind_names[] = {
    {"self_attention.linear_qkv.weight", NULL, NULL, false},
    {"self_attention.linear_qkv.layer_norm_weight", "input_layernorm.weight", NULL, false},
    {"mlp.linear_fc1.weight", NULL, NULL, true},
    {"self_attention.linear_proj.weight", NULL, NULL, false},
    {"mlp.experts.experts", NULL, "linear_fc2.weight", false},
    {"mlp.router.weight", NULL, NULL, false},
    {"self_attention.linear_proj.bias", NULL, NULL, false},
};
enum { KIND_NAMES = sizeof kind_names / sizeof kind_names[0] };

struct set {
    struct kind kinds[MAX_KINDS];
    struct whole wholes[MAX_WHOLES];
    unsigned kind_count, count;
    bool has_weights;
};

static inline unsigned slots_of(const struct kind *kind) {
    return kind->layers * (kind->experts > 0 ? kind->experts : 1);
}

static inline void make_wholes(struct input *input, struct set *set, struct kind *kind) {
    kind->first = set->count;
    for (unsigned i = 0; i < slots_of(kind); i++) {
        struct whole *whole = &set->wholes[set->count++];
        if (kind->experts > 0) {
            snprintf(whole->name, sizeof whole->name, "decoder.layers.%u.%s.%u.%s",
                     i / kind->experts, kind->name->text, i % kind->experts,
                     kind->name->below_expert);
        } else {
            snprintf(whole->name, sizeof whole->name, "decoder.layers.%u.%s", i, kind->name->text);
        }
        fill(input, kind->gradient, kind->elems, whole->gradient);
        fill(input, kind->weight, kind->elems, whole->weight);
    }
}

/* The first kinds of the table after a random one, so that a norm stands beside its matrix. */
static inline void make_kind(struct input *input, struct kind *kind, unsigned name,
                             unsigned layers) {
    kind->name = &kind_names[name];
    kind->layers = layers;
    kind->experts = kind->name->below_expert != NULL ? 2 + next_below(input, MAX_EXPERTS - 1) : 0;
    kind->ndim = kind->experts > 0 ? 2 : 1 + next_below(input, MAX_NDIM);
    kind->gradient = &elements[one_in(input, 2) ? next_below(input, 4) : 0];
    kind->weight = &elements[one_in(input, 2) ? next_below(input, 3) : 1];
    kind->elems = 1;
    for (unsigned d = 0; d < kind->ndim; d++) {
        kind->shape[d] = 1 + next_below(input, MAX_DIM);
        kind->elems *= kind->shape[d];
    }
}

static inline void make_set(struct input *input, struct set *set) {
    set->kind_count = 1 + next_below(input, MAX_KINDS);
    set->count = 0;
    set->has_weights = one_in(input, 2);
    unsigned layers = 1 + next_below(input, 1 + next_below(input, MAX_LAYERS)); /* mostly few */
    unsigned first = next_below(input, KIND_NAMES - set->kind_count + 1);
    for (unsigned k = 0; k < set->kind_count; k++) {
        make_kind(input, &set->kinds[k], first + k, layers);
        make_wholes(input, set, &set->kinds[k]);
    }
}

#endif
