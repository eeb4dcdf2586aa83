/* Items: what a resume restores, as a flat list of paths. A tensor, an array or a plain value each;
 * dicts, lists and objects are taken apart. */
#ifndef GCMP_BITS_ITEM_H
#define GCMP_BITS_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "gradcmp/sys/parameter.h"

/* What an item belongs to; the order is that of reports. */
enum gcmp_bits_group {
    GCMP_BITS_MODEL,
    GCMP_BITS_MASTER,
    GCMP_BITS_EXP_AVG,
    GCMP_BITS_EXP_AVG_SQ,
    GCMP_BITS_OPT_STEP,
    GCMP_BITS_OPT_HYPER,
    GCMP_BITS_SCHEDULER,
    GCMP_BITS_RNG,
    GCMP_BITS_DATA,
    GCMP_BITS_SCALER,
    GCMP_BITS_ARGS,
    GCMP_BITS_OTHER,
    GCMP_BITS_KEYS,   /* what one side lacks */
    GCMP_BITS_LAYOUT, /* what has no meaning across layouts, and was left out */
    GCMP_BITS_GROUPS
};

enum gcmp_bits_kind {
    GCMP_BITS_TENSOR, /* elements are in a file: parameter and catalogue are set */
    GCMP_BITS_ARRAY,  /* elements are in memory, row-major, in the host's byte order */
    GCMP_BITS_VALUE   /* bytes say all, in a form that type tells */
};

/* Which ranks have an item. */
enum gcmp_bits_ranks {
    GCMP_BITS_RANKLESS, /* it is of no rank, or of the only one */
    GCMP_BITS_EVERY_RANK,
    GCMP_BITS_FIRST_RANK, /* the first one alone, for all of them */
    GCMP_BITS_SOME_RANKS
};

struct gcmp_bits_item {
    const char *path;  /* parts with '/' between them */
    const char *whole; /* the path as it was before ranks were taken from it; or NULL */
    const char *type;  /* "int", "float", "str", "list", ...; of arrays and tensors the dtype */
    /* VALUE: the value (int: decimal digits; float: 8 bytes; others: text). ARRAY: elements. */
    const unsigned char *bytes;
    size_t length_bytes;
    const struct gradcmp_parameter *parameter;
    const struct gradcmp_catalogue *catalogue;
    const uint64_t *shape; /* ARRAY, TENSOR */
    const char *state;     /* of a tensor of the model or the optimizer; else NULL */
    uint8_t ndim, elem_bytes;
    uint8_t kind;      /* enum gcmp_bits_kind */
    uint8_t dtype;     /* enum gradcmp_dtype; NONE: of ours only the bytes are known */
    uint8_t group;     /* enum gcmp_bits_group */
    uint8_t ranks;     /* enum gcmp_bits_ranks, where ranks were taken from the path */
    bool python;       /* ARRAY: a list of Python's numbers, not a tensor */
    bool by_rank;      /* the path names a rank */
    bool model_layout; /* TENSOR: a box of the model's tensor, whatever the sharding */
    bool is_flat; /* TENSOR: a flat buffer of an optimizer: parameters, and gaps between them */
};

/* A growing list of items; sorted by path once it is whole. */
struct gcmp_bits_items {
    struct gcmp_bits_item *list;
    size_t count, capacity;
};

GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_add(struct gcmp_bits_items *items,
                                                   const struct gcmp_bits_item *item,
                                                   struct gradcmp_error *error);
void gcmp_bits_sort(struct gcmp_bits_items *items);
/* The first item whose path is not before `path`; count where there is none. */
size_t gcmp_bits_lower(const struct gcmp_bits_items *items, const char *path);

/* True for a value of a type ("int"), and for its fingerprint ("int xxh3"). */
bool gcmp_bits_has_type(const struct gcmp_bits_item *item, const char *type);

/* --- what paths mean (paths.c) --- */

/* The word for a group: "exp_avg_sq". */
const char *gcmp_bits_group_name(enum gcmp_bits_group group);
/* The group of an item by its path, and by its state where it has one (NULL: none). */
enum gcmp_bits_group gcmp_bits_group_of(const char *path, const char *state);
/* True where the path names a rank ("rank_1", "shard_0.0_1.2", "mp_rank_00"): its item has no
 * meaning where there are other ranks. */
bool gcmp_bits_is_by_rank(const char *path);
/* Write the path with ranks' numbers as '*'; of hyperparameters that Megatron keeps for each group
 * of ranks, as the layouts spell it that keep them once. NULL without memory. */
char *gcmp_bits_without_ranks(struct gcmp_arena *arena, const char *path);
/* Bytes of a path up to the '/' behind its first rank; 0: none is before a '/'. */
size_t gcmp_bits_rank_bytes(const char *path);
/* What follows a group of hyperparameters ("/lr" of "param_groups/0/lr"); NULL: the path is in
 * none. */
const char *gcmp_bits_in_group(const char *path);
/* True for what a trainer keeps in every rank's file, the same in each: by what it is, the
 * scheduler, hyperparameters, arguments, the iteration; not generators, paths, numbers of ranks and
 * devices. */
bool gcmp_bits_is_for_all_ranks(const struct gcmp_bits_item *item);
/* True for settings that say how a run was laid out ("tensor_model_parallel_size"). */
bool gcmp_bits_is_layout_setting(const char *path);
/* True for those of them that tell another layout by themselves: sizes. */
bool gcmp_bits_is_layout_size(const char *path);
/* True for what belongs to one of a format's layouts, so that a checkpoint in another layout
 * (`other` is its name, or NULL) need not have it. */
bool gcmp_bits_is_of_layout(const char *format, const char *path, const char *other);
/* What paths tell of where other objects of the same side stand. */
enum {
    GCMP_BITS_EXTRA_STATES = 1,  /* of modules, at numbers of layers that vary */
    GCMP_BITS_ONE_OPTIMIZER = 2, /* it is kept by itself ... */
    GCMP_BITS_OPTIMIZERS = 4,    /* ... or in a list, as where experts have one of their own */
    GCMP_BITS_GROUP_STEPS = 8    /* groups of hyperparameters count steps, not parameters */
};
/* The last three of these that a path shows. */
unsigned gcmp_bits_optimizer_marks(const char *path);
/* True for numbers, and lists, of the parameters that each rank's optimizer has; the path has '*'
 * for the rank. */
bool gcmp_bits_is_numbering(const char *path);
/* True for what each rank's optimizer keeps under such a number. */
bool gcmp_bits_is_numbered(const char *path);
/* True for marks of hyperparameters that hold no value, and that only newer versions write. */
bool gcmp_bits_is_of_version(const char *path);
/* True for what a module keeps beside its tensors ("decoder.layers.0.mlp.linear_fc1._extra_state").
 */
bool gcmp_bits_is_extra_state(const char *path);

/* What may differ: the patterns by default, ended by NULL. */
extern const char *const gcmp_bits_default_ignores[];
/* True where a pattern (a glob) fits the path, or its last parts; '.' may stand for '/'. */
bool gcmp_bits_ignores(const char *pattern, const char *path);

/* Add a value as a person reads it: 4, 0.0003, "cosine", None, or its bytes in hex. */
void gcmp_bits_show(struct gcmp_text *text, const struct gcmp_bits_item *item);

#endif
