/* Collects ranks' shards of a state and joins them. */
#include "unshard/local.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/model_names.h"
#include "base/twins.h"
#include "unshard/dims.h"
#include "unshard/fragments.h"
#include "unshard/local_shards.h"

/* One call of gcmp_local_merge. */
struct merge {
    const struct gradcmp_catalogue *catalogue;
    const char *state;
    struct gcmp_arena *arena;
    struct gcmp_shards shards; /* of the state, shard_count of them; then, where that is another
                                  state, those of the weights */
    size_t shard_count;
    struct gcmp_local_sizes sizes;
    struct gcmp_local_parameter *parameters;
    size_t parameter_count;
    bool from_buffers;
};

static bool is_of_state(const struct gradcmp_stored *stored, const char *state, uint8_t layout) {
    return stored->layout == layout && stored->state != NULL && strcmp(stored->state, state) == 0;
}

bool gcmp_local_has(const struct gradcmp_catalogue *catalogue, const char *state) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (is_of_state(&catalogue->stored[i], state, GRADCMP_LAYOUT_LOCAL) ||
            is_of_state(&catalogue->stored[i], state, GRADCMP_LAYOUT_LOCAL_BUFFER)) {
            return true;
        }
    }
    return false;
}

struct gcmp_shard *gcmp_shards_add(struct gcmp_shards *shards) {
    if (!gcmp_grow(&shards->list, shards->count, &shards->capacity, sizeof *shards->list)) {
        return NULL;
    }
    struct gcmp_shard *shard = &shards->list[shards->count];
    *shard = (struct gcmp_shard){.order = shards->count++};
    return shard;
}

/* Longest axis of a shard: so that sizes times ranks, and sums of sizes, stay below 2^63. */
static const uint64_t MAX_AXIS = (uint64_t)1 << 40;

static bool is_whole_piece(const struct gradcmp_stored *stored) {
    const struct gradcmp_piece *piece = stored->pieces;
    if (stored->piece_count != 1 || piece->coords == NULL || piece->coords->tp < 0 ||
        piece->coords->pp < 0 || piece->coords->ep < 0 || piece->coords->etp < 0) {
        return false;
    }
    for (unsigned d = 0; d < stored->ndim; d++) {
        if (piece->start[d] != 0 || piece->extent[d] != stored->shape[d] ||
            stored->shape[d] > MAX_AXIS) {
            return false;
        }
    }
    return true;
}

enum gradcmp_status gcmp_shards_add_stored(struct gcmp_shards *shards,
                                           const struct gradcmp_stored *stored,
                                           struct gradcmp_error *error) {
    uint64_t elems;
    if (!is_whole_piece(stored) || !gcmp_product(stored->shape, stored->ndim, &elems)) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: no whole tensor of one rank", stored->key);
    }
    struct gcmp_shard *shard = gcmp_shards_add(shards);
    if (shard == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const struct gradcmp_piece *piece = stored->pieces;
    shard->key = stored->key;
    shard->name = stored->name;
    shard->shape = stored->shape;
    shard->source = piece->source;
    shard->ndim = stored->ndim;
    shard->dtype = stored->dtype;
    shard->coords = piece->coords;
    shard->offset_elems = piece->stride == NULL ? 0 : piece->offset_elems;
    int64_t step = 1;
    for (unsigned d = stored->ndim; d-- > 0;) {
        shard->stride[d] = piece->stride == NULL ? step : piece->stride[d];
        step *= elems == 0 ? 1 : (int64_t)stored->shape[d];
    }
    return GRADCMP_OK;
}

static enum gradcmp_status collect(struct merge *merge, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = merge->catalogue;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (is_of_state(stored, merge->state, GRADCMP_LAYOUT_LOCAL)) {
            GCMP_TRY(gcmp_shards_add_stored(&merge->shards, stored, error));
        }
        merge->from_buffers =
            merge->from_buffers || is_of_state(stored, merge->state, GRADCMP_LAYOUT_LOCAL_BUFFER);
    }
    if (merge->from_buffers) {
        GCMP_TRY(
            gcmp_local_cut_buffers(catalogue, merge->state, merge->arena, &merge->shards, error));
    }
    return GRADCMP_OK;
}

/* The sizes that the coordinates of the first `count` shards show. */
static struct gcmp_local_sizes measure(const struct merge *merge, size_t count) {
    struct gcmp_local_sizes sizes = {1, 1, 1, 0};
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_coords *coords = merge->shards.list[i].coords;
        uint32_t tp = (uint32_t)coords->tp + 1, etp = (uint32_t)coords->etp + 1;
        uint32_t ep = (uint32_t)coords->ep + 1;
        sizes.tp = tp > sizes.tp ? tp : sizes.tp;
        sizes.etp = etp > sizes.etp ? etp : sizes.etp;
        sizes.ep = ep > sizes.ep ? ep : sizes.ep;
    }
    return sizes;
}

/* Of a run that had more tensor-parallel ranks than hold the state, parts are missing. */
static enum gradcmp_status check_ranks(const struct merge *merge, struct gradcmp_error *error) {
    uint32_t stated = merge->catalogue->parallel.tp;
    uint32_t found = measure(merge, merge->shard_count).tp;
    if (stated > found && merge->shard_count > 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "incomplete: %s of %" PRIu32 " tensor-parallel ranks, but the run had %" PRIu32,
                  merge->state, found, stated);
    }
    return GRADCMP_OK;
}

static int compare_coords(const struct gradcmp_coords *a, const struct gradcmp_coords *b) {
    const int32_t keys_a[] = {a->vp, a->pp, a->tp, a->ep}, keys_b[] = {b->vp, b->pp, b->tp, b->ep};
    for (size_t i = 0; i < 4; i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_shards(const void *left, const void *right) {
    const struct gcmp_shard *a = left, *b = right;
    int order = strcmp(a->text, b->text);
    order = order != 0 ? order : compare_coords(a->coords, b->coords);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

/* Shards of one parameter must be of one type and shape, each rank's once. */
static enum gradcmp_status check_alike(const struct gcmp_shard *first,
                                       const struct gcmp_shard *shard,
                                       struct gradcmp_error *error) {
    if (!gcmp_dims_equal(first->ndim, first->shape, shard->ndim, shard->shape)) {
        char a[GCMP_DIMS_BYTES], b[GCMP_DIMS_BYTES];
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: shape %s, but %s has %s", shard->key,
                  gcmp_dims_text(b, shard->ndim, shard->shape), first->key,
                  gcmp_dims_text(a, first->ndim, first->shape));
    }
    if (first->dtype != shard->dtype) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: %s, but %s is %s", shard->key,
                  gradcmp_dtype_name((enum gradcmp_dtype)shard->dtype), first->key,
                  gradcmp_dtype_name((enum gradcmp_dtype)first->dtype));
    }
    if (shard != first && compare_coords(shard[-1].coords, shard->coords) == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s and %s are the same shard of %s", shard[-1].key,
                  shard->key, shard->text);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status group(struct merge *merge, struct gradcmp_error *error) {
    const struct gcmp_shard *list = merge->shards.list;
    size_t count = merge->shard_count;
    merge->parameters = calloc(count + 1, sizeof *merge->parameters);
    if (merge->parameters == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (count > 0) {
        qsort(merge->shards.list, count, sizeof *list, compare_shards);
    }
    for (size_t first = 0, end; first < count; first = end) {
        struct gcmp_local_parameter *parameter = &merge->parameters[merge->parameter_count++];
        for (end = first; end < count && strcmp(list[first].text, list[end].text) == 0; end++) {
            GCMP_TRY(check_alike(&list[first], &list[end], error));
        }
        parameter->shards = &list[first];
        parameter->count = end - first;
        parameter->ranks = list[first].local.is_expert ? merge->sizes.etp : merge->sizes.tp;
    }
    return GRADCMP_OK;
}

/* Where one shard's rows or columns lie in the model's tensor. */
struct range {
    uint64_t start, extent;
    uint64_t skip; /* rows of the shard before these */
};

/* Make one piece of a shard: all of it along every axis but `axis`. */
static bool make_piece(const struct merge *merge, const struct gcmp_shard *shard, unsigned axis,
                       struct range range, struct gradcmp_piece *out) {
    uint64_t *dims = gcmp_arena_alloc(merge->arena, shard->ndim, 2 * sizeof *dims);
    int64_t *stride = gcmp_arena_alloc(merge->arena, shard->ndim, sizeof *stride);
    if (dims == NULL || stride == NULL) {
        return false;
    }
    for (unsigned d = 0; d < shard->ndim; d++) {
        dims[d] = d == axis ? range.start : 0;
        dims[shard->ndim + d] = d == axis ? range.extent : shard->shape[d];
        stride[d] = shard->stride[d];
    }
    int64_t offset = shard->offset_elems;
    if (shard->ndim > 0 && !gcmp_advance(&offset, range.skip, shard->stride[axis])) {
        return false; /* no view of a record is so far apart */
    }
    *out = (struct gradcmp_piece){.start = dims,
                                  .extent = dims + shard->ndim,
                                  .stride = stride,
                                  .offset_elems = offset,
                                  .source = shard->source,
                                  .coords = shard->coords};
    return true;
}

/* Make the pieces of a shard: one, or of a gated weight one a half. */
static bool make_pieces(const struct merge *merge, const struct gcmp_local_parameter *parameter,
                        const struct gcmp_shard *shard, struct gradcmp_stored *out) {
    unsigned axis = parameter->split == GCMP_SPLIT_COLUMNS ? 1 : 0;
    unsigned halves = parameter->is_gated ? 2 : 1;
    uint64_t own = shard->ndim == 0 ? 1 : shard->shape[axis] / halves;
    int32_t rank = shard->local.is_expert ? shard->coords->etp : shard->coords->tp;
    for (unsigned half = 0; half < halves; half++) {
        struct range range = {half * own * parameter->ranks, own, half * own};
        if (parameter->split == GCMP_SPLIT_NONE) {
            range.start = 0;
        } else {
            range.start += own * (uint64_t)rank;
        }
        if (!make_piece(merge, shard, axis, range, &out->pieces[out->piece_count++])) {
            return false;
        }
    }
    return true;
}

static enum gradcmp_status join(const struct merge *merge,
                                const struct gcmp_local_parameter *parameter,
                                struct gradcmp_stored *out, struct gradcmp_error *error) {
    const struct gcmp_shard *first = parameter->shards;
    uint64_t *shape = gcmp_arena_alloc(merge->arena, first->ndim, sizeof *shape), elems;
    size_t pieces = parameter->count * (parameter->is_gated ? 2 : 1);
    *out = (struct gradcmp_stored){.key = first->key,
                                   .name = first->text,
                                   .state = merge->state,
                                   .shape = shape,
                                   .ndim = first->ndim,
                                   .dtype = first->dtype,
                                   .layout = GRADCMP_LAYOUT_MODEL};
    out->pieces = gcmp_arena_alloc(merge->arena, pieces, sizeof *out->pieces);
    if (shape == NULL || out->pieces == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(shape, first->shape, first->ndim * sizeof *shape);
    unsigned axis = parameter->split == GCMP_SPLIT_COLUMNS ? 1 : 0;
    if ((parameter->split != GCMP_SPLIT_NONE &&
         !gcmp_mul_u64(shape[axis], parameter->ranks, &shape[axis])) ||
        !gcmp_product(shape, first->ndim, &elems)) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: 2^63 elements or more", first->key);
    }
    for (size_t i = 0; i < parameter->count; i++) {
        if (!make_pieces(merge, parameter, &parameter->shards[i], out)) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

/* Find a parameter by its global name. */
static bool has_parameter(const struct merge *merge, const char *text) {
    size_t low = 0, high = merge->parameter_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a parameter has a shard */
        int order = strcmp(merge->parameters[middle].shards->text, text);
        if (order == 0) {
            return true;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return false;
}

/* An optimizer's buffers hold a state of every weight: where the buffers of a rank are missing,
 * some weight has none. */
static enum gradcmp_status check_all_weights(const struct merge *merge,
                                             struct gradcmp_error *error) {
    for (size_t i = merge->shard_count; merge->from_buffers && i < merge->shards.count; i++) {
        const struct gcmp_shard *weight = &merge->shards.list[i];
        if (!gcmp_name_is_buffer(weight->name) && !has_parameter(merge, weight->text)) {
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: no %s is stored of it, but of %zu others",
                      weight->key, merge->state, merge->parameter_count);
        }
    }
    return GRADCMP_OK;
}

/* Where another state than that of the weights is merged, add their shards, those of two names
 * once: a state need not be there of all parameters, and how many layers a rank has, and what a
 * name means, is seen in all. */
static enum gradcmp_status collect_weights(struct merge *merge, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = merge->catalogue;
    struct gcmp_twin *twins;
    enum gradcmp_status status = GRADCMP_OK;
    merge->shard_count = merge->shards.count;
    if (strcmp(merge->state, "param") == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_twins_find(catalogue, 0, catalogue->stored_count, &twins, error));
    for (size_t i = 0; i < catalogue->stored_count && status == GRADCMP_OK; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (is_of_state(stored, "param", GRADCMP_LAYOUT_LOCAL) && twins[i].name == i) {
            status = gcmp_shards_add_stored(&merge->shards, stored, error);
        }
    }
    free(twins);
    return status;
}

/* Join the parameters; behind them the weights stand by name. */
static enum gradcmp_status join_all(const struct merge *merge, struct gradcmp_catalogue *merged,
                                    struct gradcmp_error *error) {
    size_t weights = merge->shards.count - merge->shard_count;
    merged->stored =
        gcmp_arena_alloc(merge->arena, merge->parameter_count + weights, sizeof *merged->stored);
    if (merged->stored == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < merge->parameter_count; i++) {
        GCMP_TRY(join(merge, &merge->parameters[i], &merged->stored[i], error));
        merged->stored_count++;
    }
    for (size_t i = 0; i < weights; i++) {
        const struct gcmp_shard *weight = &merge->shards.list[merge->shard_count + i];
        merged->stored[merged->stored_count++] =
            (struct gradcmp_stored){.key = weight->key,
                                    .name = weight->text,
                                    .state = "param",
                                    .shape = weight->shape,
                                    .ndim = weight->ndim,
                                    .dtype = weight->dtype,
                                    .layout = GRADCMP_LAYOUT_LOCAL};
    }
    return GRADCMP_OK;
}

static enum gradcmp_status merge_state(struct merge *merge, struct gradcmp_catalogue *merged,
                                       struct gradcmp_error *error) {
    GCMP_TRY(collect(merge, error));
    GCMP_TRY(collect_weights(merge, error));
    merge->sizes = measure(merge, merge->shards.count);
    GCMP_TRY(check_ranks(merge, error));
    GCMP_TRY(gcmp_local_name(merge->catalogue, &merge->shards, &merge->sizes, merge->arena, error));
    GCMP_TRY(group(merge, error));
    GCMP_TRY(check_all_weights(merge, error));
    GCMP_TRY(gcmp_local_split(merge->catalogue, &merge->sizes, merge->parameters,
                              merge->parameter_count, error));
    return join_all(merge, merged, error);
}

enum gradcmp_status gcmp_local_merge(const struct gradcmp_catalogue *catalogue, const char *state,
                                     struct gcmp_arena *arena, struct gradcmp_catalogue *merged,
                                     struct gradcmp_error *error) {
    struct merge merge = {.catalogue = catalogue, .state = state, .arena = arena};
    *merged = *catalogue;
    merged->stored_count = merged->stored_capacity = 0;
    enum gradcmp_status status = merge_state(&merge, merged, error);
    free(merge.shards.list);
    free(merge.parameters);
    return status;
}
