/* Axes of layers and experts. */
#include "unshard/stack.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "unshard/dims.h"
#include "unshard/layer_axis.h"

static enum gradcmp_status find_families(const struct gcmp_item *items, size_t count,
                                         struct gcmp_layer_axis *axis,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < count; i++) {
        struct gcmp_layer_member member = {items[i].name, items[i].stored->key, items[i].ndim,
                                           items[i].shape};
        GCMP_TRY(gcmp_layer_axis_add(axis, &member, error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_layers(const struct gcmp_layer_axis *axis, uint64_t layers,
                                       struct gcmp_item *item, struct gradcmp_error *error) {
    if (item->ndim == 0 || !gcmp_layer_axis_holds(axis, item->name, layers)) {
        return GRADCMP_OK;
    }
    item->layers = item->shape[0];
    item->has_layers = true;
    item->lead = 1;
    if (item->layers > GCMP_MAX_LAYERS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s: %" PRIu64 " layers, at most %d are read",
                  item->stored->key, item->layers, GCMP_MAX_LAYERS);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_experts(uint64_t experts, struct gcmp_item *item,
                                        struct gradcmp_error *error) {
    unsigned left = item->ndim - item->lead, needed = item->name->is_vector ? 2 : 3;
    bool layers_are_known = item->name->layer_at == 0 || item->has_layers;
    if (item->name->expert_at == 0 || !layers_are_known || left < needed ||
        (experts != 0 && item->shape[item->lead] != experts)) {
        return GRADCMP_OK;
    }
    item->experts = item->shape[item->lead];
    item->has_experts = true;
    item->lead++;
    if (item->experts > GCMP_MAX_EXPERTS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s: %" PRIu64 " experts, at most %d are read",
                  item->stored->key, item->experts, GCMP_MAX_EXPERTS);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status decide(const struct gradcmp_catalogue *catalogue,
                                  const struct gcmp_layer_axis *axis, struct gcmp_item *items,
                                  size_t count, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_layer_axis_check(axis, catalogue->layers, error));
    for (size_t i = 0; i < count; i++) {
        struct gcmp_item *item = &items[i];
        item->layers = item->experts = 1;
        GCMP_TRY(take_layers(axis, catalogue->layers, item, error));
        GCMP_TRY(take_experts(catalogue->experts, item, error));
        item->slot_count = (size_t)(item->layers * item->experts);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_stack_decide(const struct gradcmp_catalogue *catalogue,
                                      struct gcmp_item *items, size_t count,
                                      struct gradcmp_error *error) {
    struct gcmp_layer_axis axis = GCMP_LAYER_AXIS_INIT;
    enum gradcmp_status status = find_families(items, count, &axis, error);
    if (status == GRADCMP_OK) {
        status = decide(catalogue, &axis, items, count, error);
    }
    gcmp_layer_axis_free(&axis);
    return status;
}

/* State of the two walks over an item's boxes: one counts the slabs of each slot, one makes them.
 */
struct cut {
    struct gcmp_item *item;
    struct gcmp_slot *slots;
    struct gcmp_cutter *cutter;
    uint64_t total;
};

/* Where a box lies on the axes of layers and experts. */
struct lead_range {
    uint64_t first[2], count[2];
};

static struct lead_range lead_range(const struct gcmp_item *item, const struct gcmp_box *box) {
    struct lead_range range = {{0, 0}, {1, 1}};
    if (item->has_layers) {
        range.first[0] = box->start[0];
        range.count[0] = box->extent[0];
    }
    if (item->has_experts) {
        range.first[1] = box->start[item->lead - 1];
        range.count[1] = box->extent[item->lead - 1];
    }
    return range;
}

static enum gradcmp_status count_box(void *user, const struct gcmp_box *box,
                                     struct gradcmp_error *error) {
    struct cut *cut = user;
    struct lead_range range = lead_range(cut->item, box);
    uint64_t made = range.count[0] * range.count[1]; /* within the slots */
    if (made > cut->cutter->budget) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT,
                  "%s: its %zu pieces make more boxes of parameters than are read",
                  cut->item->stored->key, cut->item->stored->piece_count);
    }
    cut->cutter->budget -= made;
    cut->total += made;
    for (uint64_t l = 0; l < range.count[0]; l++) {
        struct gcmp_slot *row = cut->slots + (range.first[0] + l) * cut->item->experts;
        for (uint64_t e = 0; e < range.count[1]; e++) {
            row[range.first[1] + e].count++;
        }
    }
    return GRADCMP_OK;
}

/* Return an array in the arena with these dimensions, one made lately if there is; NULL without
 * memory. */
static const uint64_t *keep(struct gcmp_cutter *cutter, unsigned ndim, const uint64_t *dims) {
    enum { WAYS = sizeof cutter->lately.made / sizeof cutter->lately.made[0] };
    uint64_t hash = ndim;
    for (unsigned d = 0; d < ndim; d++) {
        hash = (hash ^ dims[d]) * 0x9e3779b97f4a7c15u;
    }
    size_t way = (size_t)(hash >> 40) % WAYS;
    if (cutter->lately.made[way].dims == NULL ||
        !gcmp_dims_equal(cutter->lately.made[way].ndim, cutter->lately.made[way].dims, ndim,
                         dims)) {
        uint64_t *copy = gcmp_arena_alloc(cutter->arena, ndim, sizeof *copy);
        if (copy == NULL) {
            return NULL;
        }
        memcpy(copy, dims, ndim * sizeof *copy);
        cutter->lately.made[way].dims = copy;
        cutter->lately.made[way].ndim = ndim;
    }
    return cutter->lately.made[way].dims;
}

/* Give a slab the box's arrays without the axes of layers and experts. */
static bool copy_arrays(struct cut *cut, const struct gcmp_box *box, struct gradcmp_slab *slab) {
    unsigned lead = cut->item->lead, ndim = cut->item->ndim - lead;
    uint64_t stride[GRADCMP_MAX_NDIM];
    for (unsigned d = 0; d < ndim; d++) {
        stride[d] = (uint64_t)box->stride[lead + d];
    }
    slab->start = keep(cut->cutter, ndim, box->start + lead);
    slab->extent = keep(cut->cutter, ndim, box->extent + lead);
    slab->stride = (const int64_t *)keep(cut->cutter, ndim, stride);
    return slab->start != NULL && slab->extent != NULL && slab->stride != NULL;
}

static enum gradcmp_status make_slabs(void *user, const struct gcmp_box *box,
                                      struct gradcmp_error *error) {
    struct cut *cut = user;
    const struct gcmp_item *item = cut->item;
    struct lead_range range = lead_range(item, box);
    struct gradcmp_slab shared = {.source = box->source, .coords = box->coords};
    if (!copy_arrays(cut, box, &shared)) {
        GCMP_FAIL_MEMORY(error);
    }
    for (uint64_t l = 0; l < range.count[0]; l++) {
        struct gcmp_slot *row = cut->slots + (range.first[0] + l) * item->experts;
        for (uint64_t e = 0; e < range.count[1]; e++) {
            struct gcmp_slot *slot = &row[range.first[1] + e];
            struct gradcmp_slab *slab = &slot->slabs[slot->count++];
            *slab = shared;
            slab->offset_elems = box->offset_elems;
            if ((item->has_layers && !gcmp_advance(&slab->offset_elems, l, box->stride[0])) ||
                (item->has_experts &&
                 !gcmp_advance(&slab->offset_elems, e, box->stride[item->lead - 1]))) {
                GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                          "%s: strides of a piece leave the range of 64 bits", item->stored->key);
            }
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status each_box(struct cut *cut, gcmp_box_fn emit,
                                    struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = cut->item->stored;
    struct gcmp_grid grid;
    GCMP_TRY(gcmp_grid_make(stored, cut->item->model, &grid, error));
    for (size_t i = 0; i < stored->piece_count; i++) {
        GCMP_TRY(gcmp_grid_boxes(&grid, &stored->pieces[i], emit, cut, error));
    }
    for (unsigned d = cut->item->lead; grid.is_flat && d < grid.lead; d++) {
        cut->item->is_sharded = cut->item->is_sharded || stored->shape[d] > 1;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_stack_cut(struct gcmp_item *item, struct gcmp_slot *slots,
                                   struct gcmp_cutter *cutter, struct gradcmp_error *error) {
    struct cut cut = {.item = item, .slots = slots, .cutter = cutter};
    GCMP_TRY(each_box(&cut, count_box, error));
    struct gradcmp_slab *slabs = gcmp_arena_alloc(cutter->arena, cut.total, sizeof *slabs);
    if (slabs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < item->slot_count; i++) {
        bool is_boxes = item->stored->ndim == item->ndim;
        item->is_sharded = item->is_sharded || (is_boxes && slots[i].count > 1);
        slots[i].slabs = slabs;
        slabs += slots[i].count;
        slots[i].count = 0;
    }
    return each_box(&cut, make_slabs, error);
}
