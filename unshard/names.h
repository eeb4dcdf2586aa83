/* What the names of stored tensors say: the canonical form of each, where an index of a layer or
 * an expert stands or belongs, and what kind of tensor it is. */
#ifndef GCMP_UNSHARD_NAMES_H
#define GCMP_UNSHARD_NAMES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "gradcmp/sys/catalogue.h"

/* Part of a gated weight that is stored as two tensors: rows of the gate (`_w`), then of the
 * other half (`_v`). */
enum gcmp_half { GCMP_HALF_NONE, GCMP_HALF_FIRST, GCMP_HALF_SECOND };

struct gcmp_name {
    const char *text; /* canonical; an axis of layers or experts has left no index in it */
    size_t layer_at;  /* where in text "<layer>." belongs if axis 0 counts layers; 0: nowhere */
    size_t expert_at; /* the same of the axis of experts, behind that of layers */
    int64_t layer;    /* index of a layer in text, from 0; -1: none */
    uint8_t half;     /* enum gcmp_half */
    bool is_vector;   /* a bias or a norm: one axis fewer than a weight */
    bool is_expert;
    bool is_mtp; /* multi-token prediction: a head */
    bool is_embedding;
    bool has_vocab_rows; /* a table whose rows are words, if there are as many */
    bool was_unwrapped;  /* a leading "module." or "model." was taken off */
    uint64_t states;     /* a bit for each state that has it */
};

/* The names of all stored tensors of a catalogue that can be parameters. */
struct gcmp_names {
    struct gcmp_name *list;
    size_t count;
    struct gcmp_map by_stored; /* stored->name -> index */
    struct gcmp_map by_text;   /* text with its half's suffix -> index */
};

/* A name longer than this, or with more components, is GRADCMP_ERROR_LIMIT. */
enum { GCMP_MAX_NAME_BYTES = 2048, GCMP_MAX_NAME_PARTS = 128 };

/* True for a state of parameters: neither an opaque object nor the optimizer's step count. */
bool gcmp_is_parameter_state(const char *state);

/* Read the names of a catalogue's stored tensors of such states, buckets left out; texts live in
 * `arena`. On failure and after use: gcmp_names_free. Errors: LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_names_read(const struct gradcmp_catalogue *catalogue,
                                                     struct gcmp_arena *arena,
                                                     struct gcmp_names *names,
                                                     struct gradcmp_error *error);
void gcmp_names_free(struct gcmp_names *names);

/* Find what was read of a stored tensor's name; NULL if it was none of those. */
const struct gcmp_name *gcmp_names_find(const struct gcmp_names *names, const char *stored_name);

/* Compose the canonical name of one layer and expert of a stacked tensor; an index < 0 is left
 * out. NULL without memory. */
char *gcmp_name_compose(const struct gcmp_name *name, int64_t layer, int64_t expert,
                        struct gcmp_arena *arena);

#endif
