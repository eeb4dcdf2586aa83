/* Lists of layers in names of parameters: "decoder.layers.3.mlp.weight". */
#ifndef GCMP_BASE_LAYER_WORD_H
#define GCMP_BASE_LAYER_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for a component of a name that lists layers, where a number follows. */
bool gcmp_is_layer_word(const char *at, size_t bytes);

/* The first list of layers in a name. */
struct gcmp_layer_index {
    size_t word_at; /* where the word stands */
    size_t bytes;   /* of the name up to the end of the index: "decoder.layers.3" */
    int64_t index;  /* from 0; larger than any in use it saturates */
};

/* Find the first list of layers with an index; false where there is none. */
bool gcmp_find_layer_index(const char *name, struct gcmp_layer_index *out);

/* The number that `bytes` digits spell, or -1; larger than any index in use it saturates. */
int64_t gcmp_read_index(const char *at, size_t bytes);

#endif
