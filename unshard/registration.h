/* The order in which Megatron's modules register their parameters: buckets hold them in reverse.
 *
 * Sources: the order of assignments in __init__ of GPTModel (embedding, decoder, mtp,
 * output_layer), TransformerBlock (layers, final_layernorm), TransformerLayer (input_layernorm,
 * self_attention, pre_cross_attn_layernorm, cross_attention, pre_mlp_layernorm, mlp), Attention
 * (linear_proj before what its subclasses add), MoELayer (router, experts, shared_experts). */
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

/* One parameter and where it stands. */
struct gcmp_registered {
    const struct gradcmp_parameter *parameter;
    int64_t expert;  /* index of the expert it belongs to; -1: none */
    int64_t layer;   /* index of the layer from 0; -1 before the layers, INT64_MAX behind them */
    unsigned module; /* rank of its module among those of the layer, or of the model */
    unsigned matrix; /* of an expert: 1 or 2 for linear_fc1 and linear_fc2; else 0 */
    unsigned tensor; /* rank within the module: norm, weight, bias, others */
    size_t index;    /* in the model: the last resort */
};

/* Describe each parameter of a model (model->count entries of `list`) and sort the list into the
 * order of registration. */
void gcmp_registration_order(const struct gradcmp_model *model, struct gcmp_modules modules,
                             struct gcmp_registered *list);

#endif
