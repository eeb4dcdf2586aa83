/* Makes the parameters of one state from a plan: joins what belongs to one name, and proves its
 * coverage. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "unshard/coverage.h"
#include "unshard/dims.h"
#include "unshard/local.h"
#include "unshard/plan.h"

/* Boxes that one piece may make on average, and slots beside: more is not how ranks store. */
enum { BOXES_PER_PIECE = 64, BOXES_PER_SLOT = 8, LEAST_BOXES = 1024 };

/* One call of gcmp_unshard. */
struct work {
    const struct gradcmp_catalogue *catalogue;
    struct gcmp_plan plan;
    struct gcmp_slot *slots; /* of all items */
    struct gcmp_cutter cutter;
    struct gcmp_cover_room room;
    struct gradcmp_model *model;
    bool is_local;                   /* the stored tensors were merged from ranks' own shards */
    struct gradcmp_catalogue merged; /* of ranks' own shards; what catalogue then points at */
};

/* Entries of one name. */
struct group {
    const struct gcmp_entry *entries;
    size_t count;
    unsigned halves; /* of a gated weight: 2, else 1 */
};

static const struct gcmp_item *item_of(const struct work *work, const struct gcmp_entry *entry) {
    return &work->plan.items[entry->item];
}

static struct gcmp_slot *slot_of(const struct work *work, const struct gcmp_entry *entry) {
    return &work->slots[item_of(work, entry)->first_slot + entry->slot];
}

static enum gradcmp_status cut_items(struct work *work, struct gradcmp_error *error) {
    work->slots = calloc(work->plan.entry_count + 1, sizeof *work->slots);
    if (work->slots == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    work->cutter.arena = work->model->arena;
    work->cutter.budget = BOXES_PER_PIECE * work->plan.pieces +
                          BOXES_PER_SLOT * (uint64_t)work->plan.entry_count + LEAST_BOXES;
    for (size_t i = 0; i < work->plan.item_count; i++) {
        struct gcmp_item *item = &work->plan.items[i];
        GCMP_TRY(gcmp_stack_cut(item, work->slots + item->first_slot, &work->cutter, error));
    }
    return GRADCMP_OK;
}

/* Rows of a table of words: a tensor of the right kind, with at least as many as there are words.
 */
static bool has_vocab_rows(const struct work *work, const struct gcmp_item *item) {
    return item->name->has_vocab_rows && item->lead == 0 && item->name->layer < 0 &&
           item->ndim == (item->name->is_vector ? 1 : 2) &&
           item->shape[0] >= work->catalogue->vocab;
}

/* What the first entry says of the parameter. */
static void describe(const struct work *work, const struct gcmp_entry *entry,
                     struct gradcmp_parameter *out) {
    const struct gcmp_item *item = item_of(work, entry);
    const struct gcmp_slot *slot = slot_of(work, entry);
    out->name = entry->name;
    out->state = work->model->state;
    out->layer = gcmp_plan_layer(&work->plan, entry);
    out->shape = item->shape + item->lead;
    out->ndim = (uint8_t)(item->ndim - item->lead);
    out->dtype = item->stored->dtype;
    out->slabs = slot->slabs;
    out->slab_count = slot->count;
    out->adam = item->stored->adam;
    out->vocab_rows =
        has_vocab_rows(work, item) ? (uint8_t)gcmp_name_vocab_rows(item->name) : GRADCMP_VOCAB_NONE;
    out->replicated =
        work->catalogue->parallel.tp > 1 && !item->is_sharded && !item->name->is_expert;
}

/* Two stored tensors of one parameter must have one shape and one type. */
static enum gradcmp_status check_alike(const struct work *work, const struct gcmp_entry *first,
                                       const struct gcmp_entry *other,
                                       struct gradcmp_error *error) {
    const struct gcmp_item *a = item_of(work, first), *b = item_of(work, other);
    unsigned ndim_a = (unsigned)(a->ndim - a->lead), ndim_b = (unsigned)(b->ndim - b->lead);
    if (!gcmp_dims_equal(ndim_a, a->shape + a->lead, ndim_b, b->shape + b->lead)) {
        char shape_a[GCMP_DIMS_BYTES], shape_b[GCMP_DIMS_BYTES];
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: shape %s as %s, but %s as %s", first->name,
                  gcmp_dims_text(shape_a, ndim_a, a->shape + a->lead), a->stored->key,
                  gcmp_dims_text(shape_b, ndim_b, b->shape + b->lead), b->stored->key);
    }
    if (a->stored->dtype != b->stored->dtype) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: %s as %s, but %s as %s", first->name,
                  gradcmp_dtype_name((enum gradcmp_dtype)a->stored->dtype), a->stored->key,
                  gradcmp_dtype_name((enum gradcmp_dtype)b->stored->dtype), b->stored->key);
    }
    if (!gcmp_same_adam(a->stored->adam, b->stored->adam)) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "%s: its parts, %s and %s, were averaged over other steps or with other betas",
                  first->name, a->stored->key, b->stored->key);
    }
    return GRADCMP_OK;
}

/* A gated weight needs both halves, and nothing that holds it whole. */
static enum gradcmp_status check_halves(const struct work *work, struct group *group,
                                        struct gradcmp_error *error) {
    const struct gcmp_entry *seen[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < group->count; i++) {
        seen[item_of(work, &group->entries[i])->name->half] = &group->entries[i];
    }
    const struct gcmp_entry *first = seen[GCMP_HALF_FIRST], *second = seen[GCMP_HALF_SECOND];
    const struct gcmp_entry *whole = seen[GCMP_HALF_NONE], *half = first != NULL ? first : second;
    group->halves = 1;
    if (half == NULL) {
        return GRADCMP_OK;
    }
    if (whole != NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: stored whole, as %s, and in halves, as %s",
                  half->name, item_of(work, whole)->stored->key, item_of(work, half)->stored->key);
    }
    if (first == NULL || second == NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: half %s is there, but no half \"_%c\"",
                  half->name, item_of(work, half)->stored->key, first == NULL ? 'w' : 'v');
    }
    group->halves = 2;
    return GRADCMP_OK;
}

/* Give a joined gated weight the rows of both halves. */
static enum gradcmp_status double_rows(const struct work *work, struct gradcmp_parameter *out,
                                       struct gradcmp_error *error) {
    uint64_t *shape = gcmp_arena_alloc(work->model->arena, out->ndim, sizeof *shape);
    if (shape == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned d = 0; d < out->ndim; d++) {
        shape[d] = out->shape[d];
    }
    if (out->ndim == 0 || !gcmp_mul_u64(shape[0], 2, &shape[0])) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: halves without rows to join", out->name);
    }
    out->shape = shape;
    return GRADCMP_OK;
}

/* Append the slabs of one entry, moved down by `rows`. */
static enum gradcmp_status append(const struct work *work, const struct gcmp_entry *entry,
                                  uint64_t rows, struct gradcmp_parameter *out,
                                  struct gradcmp_error *error) {
    const struct gcmp_slot *slot = slot_of(work, entry);
    uint64_t *starts = NULL;
    if (rows > 0) {
        starts = gcmp_arena_alloc(work->model->arena, slot->count, out->ndim * sizeof *starts);
        if (starts == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    for (size_t i = 0; i < slot->count; i++) {
        struct gradcmp_slab *slab = &out->slabs[out->slab_count++];
        *slab = slot->slabs[i];
        if (starts != NULL) {
            memcpy(starts, slab->start, out->ndim * sizeof *starts);
            starts[0] += rows;
            slab->start = starts;
            starts += out->ndim;
        }
    }
    return GRADCMP_OK;
}

/* Join several stored tensors of one name: halves, or parts that chained optimizers hold. */
static enum gradcmp_status join(const struct work *work, const struct group *group,
                                struct gradcmp_parameter *out, struct gradcmp_error *error) {
    size_t slabs = 0;
    for (size_t i = 0; i < group->count; i++) {
        GCMP_TRY(check_alike(work, group->entries, &group->entries[i], error));
        slabs += slot_of(work, &group->entries[i])->count;
        out->replicated = out->replicated && !item_of(work, &group->entries[i])->is_sharded;
    }
    out->slabs = gcmp_arena_alloc(work->model->arena, slabs, sizeof *out->slabs);
    out->slab_count = 0;
    if (out->slabs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    uint64_t rows = group->halves == 2 && out->ndim > 0 ? out->shape[0] : 0;
    for (size_t i = 0; i < group->count; i++) {
        bool is_second = item_of(work, &group->entries[i])->name->half == GCMP_HALF_SECOND;
        GCMP_TRY(append(work, &group->entries[i], is_second ? rows : 0, out, error));
    }
    return group->halves == 2 ? double_rows(work, out, error) : GRADCMP_OK;
}

/* Ranks' own shards: tensor-parallel ranks hold it whole. */
static bool is_replicated(const struct gradcmp_catalogue *catalogue,
                          const struct gradcmp_parameter *parameter) {
    return catalogue->parallel.tp != 1 && parameter->copy_count > 1 &&
           parameter->slab_count == parameter->copy_count;
}

/* Whether copies are of ranks that wrote a file each: every slab tells its writer, and the first
 * ones of two copies, one behind the other, tell different ones. */
static bool is_of_ranks(const struct gradcmp_parameter *parameter) {
    const struct gradcmp_slab *first = NULL;
    for (size_t i = 0; i < parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &parameter->slabs[i];
        bool is_next = first != NULL && slab->copy != first->copy;
        if (slab->coords == NULL ||
            (is_next && memcmp(slab->coords, first->coords, sizeof *slab->coords) == 0)) {
            return false;
        }
        first = first == NULL || is_next ? slab : first;
    }
    return true;
}

/* Prove coverage. Copies within one tensor are pieces that overlap, or of ranks; over several
 * tensors they are two tensors for one parameter. */
static enum gradcmp_status prove(struct work *work, const struct group *group,
                                 struct gradcmp_parameter *out, struct gradcmp_error *error) {
    if (!gcmp_product(out->shape, out->ndim, &out->elem_count)) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: 2^63 elements or more", out->name);
    }
    GCMP_TRY(gcmp_cover(out, &work->room, error));
    if (out->copy_count > 1 && group->count > group->halves) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: stored more than once, as %s and as %s",
                  out->name, item_of(work, &group->entries[0])->stored->key,
                  item_of(work, &group->entries[group->count - 1])->stored->key);
    }
    if (out->copy_count > 1 && !work->is_local) {
        out->of_ranks = is_of_ranks(out);
        out->overlap = !out->of_ranks;
    }
    if (work->is_local) {
        out->replicated = is_replicated(work->catalogue, out);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status make_parameter(struct work *work, struct group *group,
                                          struct gradcmp_parameter *out,
                                          struct gradcmp_error *error) {
    describe(work, &group->entries[0], out);
    GCMP_TRY(check_halves(work, group, error));
    if (group->count > 1) {
        GCMP_TRY(join(work, group, out, error));
    }
    return prove(work, group, out, error);
}

static size_t same_name(const struct gcmp_plan *plan, size_t from) {
    size_t end = from + 1;
    while (end < plan->entry_count &&
           strcmp(plan->entries[from].name, plan->entries[end].name) == 0) {
        end++;
    }
    return end;
}

static enum gradcmp_status make_parameters(struct work *work, struct gradcmp_error *error) {
    struct gradcmp_model *model = work->model;
    size_t names = 0;
    for (size_t i = 0; i < work->plan.entry_count; i = same_name(&work->plan, i)) {
        names++;
    }
    model->parameters = gcmp_arena_alloc(model->arena, names, sizeof *model->parameters);
    if (model->parameters == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0, end; i < work->plan.entry_count; i = end) {
        end = same_name(&work->plan, i);
        struct group group = {.entries = &work->plan.entries[i], .count = end - i};
        GCMP_TRY(make_parameter(work, &group, &model->parameters[model->count], error));
        model->count++;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status unshard(struct work *work, const struct gcmp_unshard_options *options,
                                   struct gcmp_arena *scratch, struct gradcmp_error *error) {
    struct gradcmp_model *model = work->model;
    if (gcmp_local_has(work->catalogue, model->state)) {
        GCMP_TRY(
            gcmp_local_merge(work->catalogue, model->state, model->arena, &work->merged, error));
        work->catalogue = &work->merged;
        work->is_local = true;
    }
    struct gcmp_plan_input input = {work->catalogue, model->state, options, model->arena, scratch};
    GCMP_TRY(gcmp_plan_make(&input, &work->plan, error));
    model->layers = work->plan.layers;
    model->shown = work->plan.shown;
    model->chained = work->plan.has_towers;
    GCMP_TRY(cut_items(work, error));
    return make_parameters(work, error);
}

enum gradcmp_status gcmp_unshard(const struct gradcmp_catalogue *catalogue, const char *state,
                                 const struct gcmp_unshard_options *options,
                                 struct gradcmp_model *model, struct gradcmp_error *error) {
    struct work work = {.catalogue = catalogue, .model = model};
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    *model = (struct gradcmp_model){.arena = calloc(1, sizeof *model->arena)};
    if (model->arena == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = GRADCMP_ERROR_MEMORY;
    model->state = gcmp_arena_dup(model->arena, state);
    if (model->state != NULL) {
        status = unshard(&work, options, &scratch, error);
    } else {
        gcmp_error_set(error, status, NULL, GRADCMP_NO_OFFSET, "out of memory");
    }
    gcmp_plan_free(&work.plan);
    gcmp_cover_room_free(&work.room);
    gcmp_arena_free(&scratch);
    free(work.slots);
    if (status != GRADCMP_OK) {
        gcmp_model_free(model);
    }
    return status;
}

void gcmp_model_free(struct gradcmp_model *model) {
    if (model->arena != NULL) {
        gcmp_arena_free(model->arena);
        free(model->arena);
    }
    *model = (struct gradcmp_model){.arena = NULL};
}

const struct gradcmp_parameter *gcmp_model_find(const struct gradcmp_model *model,
                                                const char *name) {
    size_t low = 0, high = model->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(model->parameters[middle].name, name);
        if (order == 0) {
            return &model->parameters[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
