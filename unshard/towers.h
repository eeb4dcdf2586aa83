/* Stacks of layers that feed one another: an encoder and a decoder, a tower of vision or sound and
 * a language model. Their layers are numbered one after another, so that l is a place on the way
 * from the input to the loss.
 *
 * What feeds what is taken only from names that leave no doubt, component by component, and only
 * between what stands under one prefix:
 * - "encoder" and "decoder", where both have layers (Megatron's T5: `encoder.layers`,
 *   `decoder.layers`; transformers' T5: `encoder.block`; BART and Whisper: `model.encoder.layers`);
 * - a tower ("vision_model", "vision_tower", "visual", "audio_tower" ...) and a language model that
 *   has layers: "language_model" (Megatron's LLaVA, megatron/core/models/multimodal; transformers'
 *   LLaVA), "text_model" beside a "connector" (Idefics), or the layers themselves (Qwen2-VL:
 *   `visual.blocks` and `model.layers`); between both what joins them ("qformer", "connector" ...),
 *   which may have layers too.
 * Several towers begin side by side, and so do all other stacks: those of CLIP ("text_model" and
 * "vision_model") feed no other.
 *
 * What is in a stack that feeds another, but in none of its layers, belongs to the last of them (a
 * final norm, a projector), or to l = 0 where it is known to stand at the input. Embeddings of a
 * stack that is fed stand beside the last layer in front of it. */
#ifndef GCMP_UNSHARD_TOWERS_H
#define GCMP_UNSHARD_TOWERS_H

#include "base/map.h"
#include "unshard/names.h"

/* All zero at first. Texts of names are borrowed. */
struct gcmp_towers {
    struct gcmp_map stacks_by_text, sites_by_text;
    struct gcmp_tower_stack *stacks; /* one for each text before a layer's index */
    struct gcmp_tower_site *sites; /* one for each prefix under which something may feed another */
    size_t stack_count, stack_capacity, site_count, site_capacity;
};

/* True where a name, canonical or not, holds a word of what may feed another stack: without one
 * among all names there is nothing to number. */
bool gcmp_towers_may_feed(const char *name);

/* Add a name, with the number of layers that it shows: its index + 1, or the length of its axis of
 * layers, 0 for none. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_towers_add(struct gcmp_towers *towers,
                                                     const struct gcmp_name *name, uint64_t layers,
                                                     struct gradcmp_error *error);

/* Number the layers, once all names are there. True where a stack feeds another. */
bool gcmp_towers_number(struct gcmp_towers *towers);

/* The layers in front of the stack that the name's layer is in. */
uint64_t gcmp_towers_before(const struct gcmp_towers *towers, const struct gcmp_name *name);

/* l of a name without a layer that is in a stack which feeds another, or between the two, or of an
 * embedding; -1 for any other. */
int64_t gcmp_towers_place(const struct gcmp_towers *towers, const struct gcmp_name *name);

/* The number of all layers. */
uint64_t gcmp_towers_total(const struct gcmp_towers *towers);

void gcmp_towers_free(struct gcmp_towers *towers);

#endif
