/* What the names of stored tensors say: the canonical form of each, where an index of a layer or
 * an expert stands or belongs, and what kind of tensor it is. */
#ifndef GCMP_UNSHARD_NAMES_H
#define GCMP_UNSHARD_NAMES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/catalogue.h"
#include "gradcmp/sys/parameter.h"

/* Part of a gated weight that is stored as two tensors: rows of the gate (`_w`), then of the
 * other half (`_v`). */
enum gcmp_half { GCMP_HALF_NONE, GCMP_HALF_FIRST, GCMP_HALF_SECOND };

struct gcmp_name {
    const char *text;   /* canonical; an axis of layers or experts has left no index in it */
    uint32_t layer_at;  /* where in text "<layer>." belongs if axis 0 counts layers; 0: nowhere */
    uint32_t expert_at; /* the same of the axis of experts, behind that of layers */
    int64_t layer;      /* index of a layer in text, from 0; -1: none */
    int64_t expert;     /* index of an expert in text, from 0; -1: none */
    uint32_t layer_digits_at, expert_digits_at; /* where in text these indices stand */
    uint8_t half;                               /* enum gcmp_half */
    bool is_vector;                             /* a bias or a norm: one axis fewer than a weight */
    bool is_expert;
    bool is_mtp; /* multi-token prediction: a head */
    bool is_embedding;
    bool has_vocab_rows; /* a table whose rows are words, if there are as many */
    bool was_unwrapped;  /* a leading "module." or "model." was taken off */
};

/* What a parameter of that name is, where its rows are those of the vocabulary. */
static inline enum gradcmp_vocab_rows gcmp_name_vocab_rows(const struct gcmp_name *name) {
    return name->is_embedding ? GRADCMP_VOCAB_INPUT : GRADCMP_VOCAB_OUTPUT;
}

/* A name longer than this, or with more components, is GRADCMP_ERROR_LIMIT. */
enum { GCMP_MAX_NAME_BYTES = 2048, GCMP_MAX_NAME_PARTS = 128 };

/* True for a state of parameters: neither an opaque object nor the optimizer's step count. */
bool gcmp_is_parameter_state(const char *state);
/* True for weights: the model's, and an optimizer's copies of full precision. */
bool gcmp_is_weight_state(const char *state);

/* True for the tensors of a state that are stored under names of parameters, not in buckets. */
bool gcmp_is_of_state(const struct gradcmp_stored *stored, const char *state);

/* Read the names of the stored tensors of a state, in the catalogue's order: *names is an array of
 * as many entries, malloced. Texts are stored names themselves or live in `arena`. Errors: LIMIT,
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_names_read(const struct gradcmp_catalogue *catalogue,
                                                     const char *state, struct gcmp_arena *arena,
                                                     struct gcmp_name **names,
                                                     struct gradcmp_error *error);

/* Compose the canonical name of one layer and expert of a stacked tensor; an index < 0 is left
 * out. NULL without memory. */
const char *gcmp_name_compose(const struct gcmp_name *name, int64_t layer, int64_t expert,
                              struct gcmp_arena *arena);

#endif
