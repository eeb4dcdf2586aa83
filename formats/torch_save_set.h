/* What the files of a torch.save checkpoint hold, before it is known which parameter is which:
 * tensors (weights, states of optimizers, others) and the optimizers' groups. */
#ifndef GCMP_FORMATS_TORCH_SAVE_SET_H
#define GCMP_FORMATS_TORCH_SAVE_SET_H

#include "base/map.h"
#include "formats/torch_file.h"
#include "gradcmp/sys/catalogue.h"

enum gcmp_pt_kind {
    GCMP_PT_OTHER = 0, /* listed only */
    GCMP_PT_WEIGHT,    /* of a model's state dict */
    GCMP_PT_STATE      /* of an optimizer */
};

/* One tensor of one file: a whole tensor, or the piece of it that one rank holds. */
struct gcmp_pt_tensor {
    enum gcmp_pt_kind kind;
    const char *key;   /* where it stands in the file, with dots: "optimizer.state.0.exp_avg" */
    const char *name;  /* of the parameter; NULL where it has only a number */
    const char *state; /* STATE: its word; WEIGHT: "param", or what the dict is called */
    size_t entry;      /* STATE without a name: index into the set's entries */
    uint32_t file;
    int32_t rank;               /* of the file; -1: none */
    bool is_of_stage;           /* rank is the stage of a pipeline that holds a copy */
    bool is_own;                /* its rank counts parameters of its own (gcmp_pt_part_stages) */
    const char *unread;         /* why its values cannot be read; NULL: they can */
    uint64_t *shape;            /* of the whole tensor, ndim entries */
    uint64_t *start;            /* of the piece in it; NULL: it is the whole */
    struct gradcmp_extent view; /* of the piece; not set where unread */
    unsigned ndim;
    const struct gradcmp_adam *adam; /* STATE: of the parameter, once its states were seen */
};

/* A number of an optimizer: the k-th parameter of its groups. */
struct gcmp_pt_entry {
    uint32_t optimizer, group; /* groups are counted over all optimizers */
    int32_t rank;              /* whose own number it is; -1: all ranks count so */
    int64_t id;                /* as the file writes it */
    const char *name;          /* from param_names, or once it is found; else NULL */
};

/* An optimizer and its entries, which stand side by side. */
struct gcmp_pt_optimizer {
    size_t first, count;
    const char *path; /* in the file */
};

/* The tensors of one rank, which stand side by side: files are in the order of ranks. */
struct gcmp_pt_run {
    size_t first, end; /* of the set's tensors */
    int32_t rank;
};
#define GCMP_PT_RUN_INIT                                                                           \
    { 0, 0, -1 }

/* Which rank the sharded tensors of a file say wrote it, by the mesh of most ranks. */
struct gcmp_pt_writer {
    uint32_t file;
    int32_t rank;        /* of the file's name */
    int64_t writer;      /* -1: they do not say */
    uint64_t mesh_ranks; /* 0: not known */
};

struct gcmp_pt_set {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_pt_writer *writers; /* of files named after ranks, in their order */
    size_t writer_count, writer_capacity;
    struct gcmp_pt_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    struct gcmp_pt_entry *entries;
    size_t entry_count, entry_capacity;
    struct gcmp_map entry_index; /* {optimizer, id} -> index into entries */
    struct gcmp_pt_optimizer *optimizers;
    size_t optimizer_count, optimizer_capacity;
    uint32_t *shared; /* optimizers of files of rank 0 and of no rank, in their order */
    size_t shared_count, shared_capacity;
    uint32_t group_count;
    bool is_ordered;     /* the weights of a file stand in the order of the model */
    bool is_interleaved; /* but those of several ranks do not, one rank after another */
    bool is_dealt;       /* ranks that hold no weights, or fewer than they number, have states */
    uint64_t mesh_ranks; /* most ranks that a mesh of a sharded tensor has; 0: none is sharded */
    int64_t step;        /* of the optimizer; -1: not known, -2: parameters disagree */
};

/* Where a walk stands in a file. */
struct gcmp_pt_place {
    struct gcmp_pt_set *set;
    const struct gcmp_torch_file *torch;
    int32_t rank;
    uint64_t visits_left; /* entries of dicts that may still be looked at */
    uint32_t optimizer;   /* number of the next optimizer in the file */
    struct gradcmp_error *error;
};

/* Take note of looking at one entry that takes so many bytes of memory: a dict, a tensor and a path
 * may be in the object many times. Errors: LIMIT. */
enum { GCMP_PT_TENSOR_BYTES = 128 }; /* some, of one tensor */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_visit(struct gcmp_pt_place *place,
                                                   const struct gcmp_node *node, size_t bytes);

/* True for what gcmp_pt_add_tensor takes: tensors, DTensors, ShardedTensors. */
bool gcmp_pt_is_tensor(const struct gcmp_node *node);

/* Describe a node as a tensor and append it; `about` gives kind, key, name, state and entry, which
 * must live in the catalogue's arena. A tensor whose type is not read is kept with the reason, and
 * so is a NumPy array. A ShardedTensor without a shard on this rank adds nothing. Errors: CORRUPT;
 * UNSUPPORTED for a sharded tensor whose place cannot be computed; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_add_tensor(const struct gcmp_pt_place *place,
                                                        const struct gcmp_node *node,
                                                        const struct gcmp_pt_tensor *about);

/* Append a weight that is a whole range of a safetensors file. Errors: MEMORY. */
struct gcmp_st_tensor;
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_add_range(struct gcmp_pt_set *set, uint32_t file,
                                                       const struct gcmp_st_tensor *weight,
                                                       struct gradcmp_error *error);

/* Look for weights and optimizers in the object of one file, and add them to the set. Settings of
 * the optimizers go into the catalogue. Errors: CORRUPT where a state or a group is not of its
 * form; LIMIT; MEMORY; those of gcmp_pt_add_tensor. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_walk(struct gcmp_pt_place *place);

/* The same for one optimizer (a dict of "state" and "param_groups") that stands under `path`. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_walk_optimizer(struct gcmp_pt_place *place,
                                                            const struct gcmp_node *optimizer,
                                                            const char *path);
/* The same for the state of one parameter, a dict of tensors that stands under `key` (NULL: in a
 * list), outside of such an optimizer. Errors: UNSUPPORTED besides, where the key is a number. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_walk_state(struct gcmp_pt_place *place,
                                                        const struct gcmp_node *key,
                                                        const struct gcmp_node *values,
                                                        const char *path);
/* The same for one dict of tensors, of that kind and state. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_walk_tensors(struct gcmp_pt_place *place,
                                                          const struct gcmp_node *dict,
                                                          const char *path, enum gcmp_pt_kind kind,
                                                          const char *state);

/* Record what an optimizer's groups say of themselves, as settings (adam_beta1, lr, ...). Errors:
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_read_groups(struct gradcmp_catalogue *catalogue,
                                                         const struct gcmp_node *groups,
                                                         struct gradcmp_error *error);

/* Keep a number as a setting; nothing where `value` is none. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_set_number(struct gradcmp_catalogue *catalogue,
                                                        const char *name,
                                                        const struct gcmp_node *value,
                                                        struct gradcmp_error *error);

/* Take what an object of torch.save says of its run: transformers' training_args.bin, or the args,
 * config or cfg beside the weights. Of their type of arithmetic, bfloat16 and float16 alone become
 * catalogue->compute; seed, clipping and batch sizes become settings. What is known already is
 * kept. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_read_run(struct gradcmp_catalogue *catalogue,
                                                      const struct gcmp_node *root,
                                                      struct gradcmp_error *error);

/* What a group of parameters says of itself; NaN for what it does not. */
struct gradcmp_adam gcmp_pt_group_adam(const struct gcmp_node *group);

/* True for the key of what a module keeps of its own beside parameters and buffers. */
bool gcmp_pt_is_extra_state(const char *key);
/* True for states that have the shape of their parameter and are compared. */
bool gcmp_pt_is_shaped(const char *state);
/* True for a tensor that is read, of real or complex numbers: what an optimizer can step. */
bool gcmp_pt_is_steppable(const struct gcmp_pt_tensor *tensor);
/* True for a tensor that is read, of real numbers. */
bool gcmp_pt_is_float(const struct gcmp_pt_tensor *tensor);
bool gcmp_pt_same_shape(const struct gcmp_pt_tensor *a, const struct gcmp_pt_tensor *b);
/* True for a state of a parameter that has a number. */
bool gcmp_pt_is_numbered(const struct gcmp_pt_tensor *tensor);
/* Go on to the next rank's tensors; false behind the last. */
bool gcmp_pt_next_run(const struct gcmp_pt_set *set, struct gcmp_pt_run *run);

/* Find the ranks that hold other parameters than rank 0, as stages of a pipeline do: what they
 * number is their own. The order of all weights is known only where names show that one rank
 * carries on the list of layers where the one before ends. Errors: UNSUPPORTED where nothing tells
 * what a rank's numbers count; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_part_stages(struct gcmp_pt_set *set,
                                                         struct gradcmp_error *error);

/* Name the states of numbered parameters by the weights. Without any weights, numbers stand for
 * themselves; so they do where several weights fit, and no ranks were met. Errors: UNSUPPORTED;
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_name_numbers(struct gcmp_pt_set *set,
                                                          struct gradcmp_error *error);

/* Make the catalogue's stored tensors of the set: names for numbers, pieces of one tensor put
 * together. Errors: UNSUPPORTED where a number could mean several weights, a tensor is in two
 * files, or states are there and nothing is read; CORRUPT where pieces of one
 * tensor disagree; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pt_join(struct gcmp_pt_set *set,
                                                  struct gradcmp_error *error);

void gcmp_pt_free(struct gcmp_pt_set *set);

/* The word for a state in reports: copies of weights in an optimizer are all "fp32_param". Words
 * that are not known are copied into `arena`; NULL without memory. */
const char *gcmp_pt_state_word(struct gcmp_arena *arena, const char *word);

#endif
