/* Which of the dicts of tensors in an object of torch.save are a model's weights. */
#ifndef GCMP_FORMATS_TORCH_SAVE_MODELS_H
#define GCMP_FORMATS_TORCH_SAVE_MODELS_H

#include "formats/torch_save_set.h"

/* What the words above a dict, and its own, tell. Lengths are of parts of its path; 0: none. */
struct gcmp_pt_where {
    size_t top_bytes;   /* to the entry of the whole object */
    size_t model_bytes; /* to the outermost word of a model */
    size_t root_bytes;  /* to the outermost dict under such a word that holds tensors itself */
    bool is_averaged;   /* under a word for averaged weights */
    bool is_extra;      /* in what a module's get_extra_state gave */
    /* Under a word for what is no model, with none of a model below it; under one that no module
     * has. */
    bool is_other, is_never;
};

/* A dict of tensors that may be a model's. */
struct gcmp_pt_dict {
    const struct gcmp_node *node;
    const char *path, *word; /* word: the last of the path */
    struct gcmp_pt_where where;
    bool has_states; /* names of it tell states ("state.<name>.exp_avg") */
    /* Of the set's tensors, how many elements these have, and whether their names are those of a
     * module; found by gcmp_pt_walk_dicts. */
    size_t first, end;
    uint64_t elems;
    bool is_module;
};

/* Take note of a word of the path, which has so many bytes with it. */
void gcmp_pt_enter(struct gcmp_pt_where *where, const char *word, size_t path_bytes);

/* Add the tensors of an object's dicts to the set, as weights, states or others. The dicts stand in
 * the order in which they were found, each before those in it. Errors: those of
 * gcmp_pt_walk_tensors. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_walk_dicts(struct gcmp_pt_place *place,
                                                        struct gcmp_pt_dict *dicts, size_t count);

#endif
