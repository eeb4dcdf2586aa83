/* Which parameters there will be, before any slab is made. */
#ifndef GCMP_UNSHARD_PLAN_H
#define GCMP_UNSHARD_PLAN_H

#include "base/arena.h"
#include "unshard/stack.h"
#include "unshard/towers.h"
#include "unshard/unshard.h"

/* One parameter as far as one stored tensor holds it: its slot in that item. */
struct gcmp_entry {
    const char *name; /* canonical */
    uint32_t item, slot;
};

struct gcmp_plan {
    struct gcmp_item *items; /* the stored tensors of the state, in the catalogue's order */
    size_t item_count;
    struct gcmp_entry *entries; /* sorted by name, then by half, then by item */
    size_t entry_count;
    uint64_t pieces;         /* of all items */
    uint64_t layers;         /* L */
    uint64_t shown;          /* of these, the highest that a tensor of the state or of the weights
                                shows; all where they were asked for */
    struct gcmp_name *names; /* one an item */
    struct gcmp_towers towers;
    bool has_towers; /* a stack of layers feeds another */
};

/* What a plan is made of and where its texts live. */
struct gcmp_plan_input {
    const struct gradcmp_catalogue *catalogue;
    const char *state;
    const struct gcmp_unshard_options *options; /* NULL: the defaults */
    struct gcmp_arena *arena;                   /* names that are not the catalogue's */
    struct gcmp_arena *scratch;                 /* texts of names; must outlive the plan */
};

/* Plan the parameters of a state. On failure and after use: gcmp_plan_free. Errors: CORRUPT,
 * UNSUPPORTED, LIMIT, USAGE (options->layers below a layer there is), MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_plan_make(const struct gcmp_plan_input *input,
                                                    struct gcmp_plan *plan,
                                                    struct gradcmp_error *error);
void gcmp_plan_free(struct gcmp_plan *plan);

/* l of an entry's parameter: layer + 1, behind the layers of stacks that feed its own; without one,
 * 0 for an embedding and L + 1 for a head. */
int64_t gcmp_plan_layer(const struct gcmp_plan *plan, const struct gcmp_entry *entry);

#endif
