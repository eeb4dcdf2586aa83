/* Stored tensors that hold several parameters: axes of layers and of experts, and the cut along
 * them. */
#ifndef GCMP_UNSHARD_STACK_H
#define GCMP_UNSHARD_STACK_H

#include "base/arena.h"
#include "gradcmp/sys/parameter.h"
#include "unshard/fragments.h"
#include "unshard/names.h"

/* More layers, or experts in one layer, are GRADCMP_ERROR_LIMIT. */
enum { GCMP_MAX_LAYERS = 65536, GCMP_MAX_EXPERTS = 65536 };

/* One stored tensor of the wanted state: layers * experts parameters of shape[lead .. ndim). */
struct gcmp_item {
    const struct gradcmp_stored *stored;
    const struct gradcmp_stored *model; /* the model's tensor of that name, or NULL */
    const struct gcmp_name *name;
    const uint64_t *shape;         /* of the model's tensor */
    uint64_t layers, experts;      /* 1 without such an axis */
    size_t first_slot, slot_count; /* layers * experts */
    uint8_t ndim, lead;            /* lead: the axes of layers and experts, in that order */
    bool has_layers, has_experts;
    bool is_sharded; /* ranks hold different parts of a parameter, by more than flat slices */
};

/* The slabs of one parameter as far as one stored tensor holds it. */
struct gcmp_slot {
    struct gradcmp_slab *slabs;
    size_t count;
};

/* Decide which items are stacked, and how often: layer_axis.h says where an axis counts layers. One
 * counts experts where the name has `experts` without a number and an axis remains beside those of
 * a weight or a bias; where `catalogue` knows the number of experts, it must be that. Fills the
 * fields from `layers` on but first_slot and is_sharded. Errors: CORRUPT, LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_stack_decide(const struct gradcmp_catalogue *catalogue,
                                                       struct gcmp_item *items, size_t count,
                                                       struct gradcmp_error *error);

/* Arrays of dimensions made lately: many slabs have the same starts, extents and strides. */
struct gcmp_lately {
    struct {
        const uint64_t *dims;
        unsigned ndim;
    } made[512];
};

/* What the cuts of all items share. */
struct gcmp_cutter {
    struct gcmp_arena *arena; /* owns the slabs */
    uint64_t budget;          /* slabs that may still be made */
    struct gcmp_lately lately;
};

/* Fill an item's slots (slot_count entries, zeroed): slot layer * experts + expert gets the boxes
 * of that parameter, in the order of the pieces; and is_sharded. More slabs than the cutter's
 * budget are LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_stack_cut(struct gcmp_item *item, struct gcmp_slot *slots,
                                                    struct gcmp_cutter *cutter,
                                                    struct gradcmp_error *error);

#endif
