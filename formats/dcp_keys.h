/* What the keys of a distributed checkpoint mean: which parameter, and which state of it. */
#ifndef GCMP_FORMATS_DCP_KEYS_H
#define GCMP_FORMATS_DCP_KEYS_H

#include "formats/pickle.h"
#include "gradcmp/sys/catalogue.h"

enum gcmp_dcp_kind {
    GCMP_DCP_OTHER = 0, /* no tensor of a parameter: random generators, data loaders, counters */
    GCMP_DCP_BARE,      /* a name at top level: a weight */
    GCMP_DCP_MODEL,     /* a weight, whose name the writer's own path gives */
    GCMP_DCP_STATE,     /* a state of the optimizer */
    GCMP_DCP_BUCKET     /* a flat buffer of the distributed optimizer, or its description */
};

struct gcmp_dcp_key {
    enum gcmp_dcp_kind kind;
    const char *text;  /* the key, its words separated by dots */
    const char *name;  /* of the parameter; the whole key where there is none */
    const char *state; /* "exp_avg", "param", ...; NULL for OTHER */
    /* Where one key does not tell (a module may be called "state" or "sampler"): the name as a
     * weight, and whether it would be of kind BARE or MODEL. */
    bool is_doubtful;
    enum gcmp_dcp_kind weight_kind; /* OTHER: it would be none */
    const char *weight;
    /* Leading bytes of `text`: */
    size_t optimizer_bytes; /* STATE: the path of the optimizer, in front of "state." */
    size_t dict_bytes;      /* the path of the dict that holds the value; 0: not told */
};

/* How the checkpoint's writer composes keys. */
enum gcmp_dcp_style {
    GCMP_DCP_TORCH,   /* optimizer.state.<name>.<state> */
    GCMP_DCP_MEGATRON /* optimizer.state.<state>.<name> */
};

/* True for the word of a state that nobody calls a module or a parameter. */
bool gcmp_dcp_is_clear_state(const char *text, size_t bytes);

/* True for the word of a state, which may be that of a module too ("sum", "param"). */
bool gcmp_dcp_is_state(const char *text, size_t bytes);

/* True for words that name what is kept beside weights: optimizers, generators, counters. */
bool gcmp_dcp_is_beside_weights(const char *word, size_t bytes);

/* True for those of them that a module may have as its name too. */
bool gcmp_dcp_may_be_module(const char *word, size_t bytes);

/* True for the word of averages of the weights. */
bool gcmp_dcp_is_average(const char *word, size_t bytes);

/* True for the word under which modules keep what is no tensor of theirs. */
bool gcmp_dcp_is_extra_state(const char *word, size_t bytes);

/* True for a name in a dict that only modules give: joined by dots, or of a layer's tensor. */
bool gcmp_dcp_is_of_module(const char *name);

/* True for what trainers call the dict of a model's weights. */
bool gcmp_dcp_is_model(const char *word);

/* Take a key apart; what it leaves in doubt is for gcmp_dcp_settle_roles. `path` is the writer's
 * own path to the value (planner_data: a tuple of text and integers) or NULL; `style` decides where
 * the key alone does not. New text goes into `arena`. False without memory. */
bool gcmp_dcp_parse_key(struct gcmp_arena *arena, const char *key, const struct gcmp_node *path,
                        enum gcmp_dcp_style style, struct gcmp_dcp_key *out);

#endif
