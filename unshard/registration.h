/* The order in which Megatron's modules register their parameters: buckets hold them in reverse.
 *
 * torch lists a module's own parameters first, then those of its modules in the order in which they
 * were assigned in __init__. Sources of that order: LLaVAModel, GPTModel, T5Model, BertModel,
 * MambaModel, CLIPViTModel, RADIOViTModel (models/), LanguageModelEmbedding, TransformerBlock,
 * TransformerLayer, Attention (core_attention and linear_proj before what its subclasses add),
 * MultiTokenPredictionLayer, MoELayer, SharedExpertMLP (transformer/), MambaLayer, MambaMixer,
 * GatedDeltaNet (ssm/). */
#ifndef GCMP_UNSHARD_REGISTRATION_H
#define GCMP_UNSHARD_REGISTRATION_H

#include <stdbool.h>

#include "gradcmp/sys/parameter.h"

/* What a name in a checkpoint does not tell of the modules behind it. */
struct gcmp_modules {
    bool norms_are_fused; /* the norm before attention is part of linear_qkv (Transformer Engine);
                             else a module of its own, before self_attention */
    bool experts_are_grouped; /* all first matrices, then all second ones; else expert by expert */
};

enum { GCMP_REGISTERED_DEPTH = 16 };

/* One parameter and where it stands. */
struct gcmp_registered {
    const struct gradcmp_parameter *parameter;
    size_t index;              /* in the model */
    int64_t expert;            /* index of the expert it belongs to; -1: none */
    bool is_output;            /* the embedding once more, in the place of a tied output layer */
    uint8_t depth, unit_depth; /* entries of `path`; those of the layer or module that no stage of a
                                  pipeline cuts */
    uint16_t whole_bytes; /* of the name, where the tensor is stored in several parts: that of the
                             whole, of which this is one; 0: it is whole */
    uint32_t path[GCMP_REGISTERED_DEPTH]; /* sorts as modules are registered */
};

/* Describe each parameter of a model, and once more an embedding that is tied to the output layer
 * (`list` has room for model->count + 1 entries), and sort the list into the order of registration;
 * parts of one tensor are in reverse, as buckets do not reverse these. *unknown is a parameter of a
 * module that is not known to be where it was sorted; NULL without. Returns the number of entries.
 */
size_t gcmp_registration_order(const struct gradcmp_model *model, struct gcmp_modules modules,
                               struct gcmp_registered *list, const char **unknown);

/* True where a stage of the pipeline may end between two entries that follow each other. */
bool gcmp_registered_apart(const struct gcmp_registered *a, const struct gcmp_registered *b);

/* True for parts of one tensor. */
bool gcmp_registered_together(const struct gcmp_registered *a, const struct gcmp_registered *b);

/* True for an embedding, which the stage of multi-token prediction holds as well. */
bool gcmp_registered_embedding(const struct gcmp_registered *entry);

#endif
