/* Where parameters lie in the flat buffers of an optimizer.
 *
 * Writers fill the parameters' places alone: what aligns them holds what memory held (torch.empty),
 * and differs from run to run. Which elements those are follows from the layout that the unsharded
 * form is made with: an element that a parameter of either side takes is compared. A parameter's
 * piece with strides counts as the stretch around it, which is more. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/grow.h"
#include "bits/match.h"

/* Bytes of a file, or of an encoded source, that a parameter takes; or elements of a buffer. */
struct stretch {
    uint64_t space; /* which file or source; 0 for elements */
    uint64_t begin, end;
};

struct stretches {
    struct stretch *list;
    size_t count, capacity;
};

/* What all parameters of one side take. */
struct takings {
    const struct gcmp_bits_side *side;
    struct stretches taken;
};

static bool add_stretch(struct stretches *stretches, struct stretch stretch) {
    if (!gcmp_grow(&stretches->list, stretches->count, &stretches->capacity,
                   sizeof *stretches->list)) {
        return false;
    }
    stretches->list[stretches->count++] = stretch;
    return true;
}

static int compare_stretches(const void *left, const void *right) {
    const struct stretch *a = left, *b = right;
    if (a->space != b->space) {
        return a->space < b->space ? -1 : 1;
    }
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Sort, and join what touches. */
static void settle(struct stretches *stretches) {
    size_t kept = 0;
    if (stretches->count > 0) {
        qsort(stretches->list, stretches->count, sizeof *stretches->list, compare_stretches);
    }
    for (size_t i = 0; i < stretches->count; i++) {
        struct stretch *last = kept == 0 ? NULL : &stretches->list[kept - 1];
        const struct stretch *next = &stretches->list[i];
        if (last != NULL && last->space == next->space && next->begin <= last->end) {
            last->end = next->end > last->end ? next->end : last->end;
        } else {
            stretches->list[kept++] = *next;
        }
    }
    stretches->count = kept;
}

/* Bytes of a file are told by the file; those of an encoded source by the source. */
static uint64_t space_of(const struct gradcmp_catalogue *catalogue, uint32_t source,
                         uint64_t *begin) {
    const struct gradcmp_source *from = &catalogue->sources[source];
    bool is_range = from->kind == GRADCMP_SOURCE_RANGE;
    *begin = is_range ? from->offset_bytes : 0;
    return is_range ? from->file : (UINT64_C(1) << 32) + source;
}

/* Add the stretch around a slab's elements. */
static bool take_slab(struct takings *takings, const struct gradcmp_parameter *parameter,
                      const struct gradcmp_slab *slab) {
    uint64_t begin, width = gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype);
    uint64_t space = space_of(gcmp_bits_side_catalogue(takings->side), slab->source, &begin);
    int64_t low = slab->offset_elems, high = low;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        int64_t reach = slab->stride[d] * (int64_t)(slab->extent[d] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    return add_stretch(&takings->taken, (struct stretch){space, begin + (uint64_t)low * width,
                                                         begin + ((uint64_t)high + 1) * width});
}

static enum gradcmp_status take_model(struct takings *takings, const struct gradcmp_model *model,
                                      struct gradcmp_error *error) {
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *parameter = &model->parameters[i];
        for (size_t k = 0; k < parameter->slab_count; k++) {
            if (!take_slab(takings, parameter, &parameter->slabs[k])) {
                GCMP_FAIL_MEMORY(error);
            }
        }
    }
    return GRADCMP_OK;
}

/* Say why the layout of flat buffers is not known, and go on; a lack of memory is an error. */
static enum gradcmp_status give_up(struct gcmp_bits_match *match, const char *why,
                                   struct gradcmp_error *error) {
    match->why_whole = gcmp_arena_dup(match->arena, why);
    if (match->why_whole == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static bool has_flat(const struct gcmp_bits_side *side, const char *state) {
    for (size_t i = 0; i < side->items.count; i++) {
        const struct gcmp_bits_item *item = &side->items.list[i];
        if (item->is_flat && item->state != NULL && strcmp(item->state, state) == 0) {
            return true;
        }
    }
    return false;
}

/* Collect what parameters take in a side's flat buffers. */
static enum gradcmp_status take_side(struct gcmp_bits_match *match, struct takings *takings,
                                     struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = takings->side->checkpoint;
    for (size_t i = 0; checkpoint != NULL && i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model;
        struct gradcmp_error refusal = {0};
        if (!has_flat(takings->side, checkpoint->states[i])) {
            continue;
        }
        enum gradcmp_status status =
            gcmp_checkpoint_model(checkpoint, checkpoint->states[i], &model, &refusal);
        if (status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_CANCELLED) {
            if (error != NULL) {
                *error = refusal;
            }
            return status;
        }
        if (status != GRADCMP_OK) {
            return give_up(match, refusal.message, error);
        }
        GCMP_TRY(take_model(takings, model, error));
    }
    settle(&takings->taken);
    return GRADCMP_OK;
}

/* --- buffers --- */

static size_t taken_after(const struct stretches *takings, uint64_t space, uint64_t byte) {
    size_t low = 0, high = takings->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stretch *taken = &takings->list[middle];
        if (taken->space < space || (taken->space == space && taken->end <= byte)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Add the spans of one slab of a buffer. */
static enum gradcmp_status add_spans(const struct stretches *takings,
                                     const struct gcmp_bits_item *item,
                                     const struct gradcmp_slab *slab, struct stretches *spans,
                                     struct gradcmp_error *error) {
    uint64_t begin, width = item->elem_bytes;
    uint64_t space = space_of(item->catalogue, slab->source, &begin);
    begin += (uint64_t)slab->offset_elems * width;
    uint64_t end = begin + slab->extent[0] * width;
    for (size_t i = taken_after(takings, space, begin); i < takings->count; i++) {
        const struct stretch *taken = &takings->list[i];
        if (taken->space != space || taken->begin >= end) {
            break;
        }
        uint64_t from = taken->begin > begin ? taken->begin : begin;
        uint64_t to = taken->end < end ? taken->end : end;
        struct stretch span = {0, slab->start[0] + (from - begin) / width,
                               slab->start[0] + (to - begin + width - 1) / width};
        if (!add_stretch(spans, span)) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

/* True where parameters can be found in an item: its elements follow each other in known bytes. */
static bool is_traceable(const struct takings *takings, const struct gcmp_bits_item *item) {
    const struct gradcmp_catalogue *known = gcmp_bits_side_catalogue(takings->side);
    if (!item->is_flat || item->kind != GCMP_BITS_TENSOR || item->ndim != 1) {
        return false;
    }
    for (size_t i = 0; i < item->parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &item->parameter->slabs[i];
        bool is_range = item->catalogue->sources[slab->source].kind == GRADCMP_SOURCE_RANGE;
        if ((item->catalogue != known && !is_range) ||
            (slab->extent[0] > 1 && slab->stride[0] != 1)) {
            return false;
        }
    }
    return true;
}

/* Settle the spans, and keep them in the arena. */
static enum gradcmp_status keep_spans(struct gcmp_arena *arena, struct stretches *spans,
                                      struct gcmp_bits_owned *owned, struct gradcmp_error *error) {
    settle(spans);
    struct gcmp_bits_span *kept = gcmp_arena_alloc(arena, spans->count, sizeof *kept);
    if (kept == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < spans->count; i++) {
        kept[i] = (struct gcmp_bits_span){spans->list[i].begin, spans->list[i].end};
    }
    owned->spans = kept;
    owned->count = spans->count;
    return GRADCMP_OK;
}

/* Find what a pair of buffers holds of parameters; where either side's has none that is known, all
 * of it counts. */
static enum gradcmp_status find_in_entry(struct gcmp_bits_match *match,
                                         const struct takings takings[2], struct stretches *spans,
                                         struct gcmp_bits_entry *entry,
                                         struct gradcmp_error *error) {
    const struct gcmp_bits_item *items[] = {entry->a, entry->b};
    spans->count = 0;
    for (size_t side = 0; side < 2; side++) {
        size_t before = spans->count;
        const struct gradcmp_parameter *parameter = items[side]->parameter;
        bool is_known = is_traceable(&takings[side], items[side]);
        for (size_t i = 0; is_known && i < parameter->slab_count; i++) {
            GCMP_TRY(
                add_spans(&takings[side].taken, items[side], &parameter->slabs[i], spans, error));
        }
        if (spans->count == before) {
            return give_up(match, "where parameters lie in all of them is not known", error);
        }
    }
    struct gcmp_bits_owned *owned = gcmp_arena_alloc(match->arena, 1, sizeof *owned);
    if (owned == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const struct gcmp_bits_difference *whole = entry->difference;
    owned->gaps =
        gcmp_bits_difference_make(match->arena, whole->ndim, whole->shape, whole->elem_bytes);
    if (owned->gaps == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    entry->owned = owned;
    return keep_spans(match->arena, spans, owned, error);
}

/* True for a pair of flat buffers whose elements the engine compares. */
static bool is_flat_pair(const struct gcmp_bits_entry *entry) {
    return entry->difference != NULL && entry->how == GCMP_BITS_SAME && entry->elems > 0 &&
           entry->a->is_flat && entry->b->is_flat && entry->a->kind == GCMP_BITS_TENSOR &&
           entry->b->kind == GCMP_BITS_TENSOR;
}

static enum gradcmp_status find_owned(struct gcmp_bits_match *match, struct takings takings[2],
                                      struct stretches *spans, struct gradcmp_error *error) {
    for (size_t side = 0; side < 2; side++) {
        GCMP_TRY(take_side(match, &takings[side], error));
        if (match->why_whole != NULL) {
            return GRADCMP_OK;
        }
    }
    for (size_t i = 0; i < match->count; i++) {
        if (is_flat_pair(&match->entries[i])) {
            GCMP_TRY(find_in_entry(match, takings, spans, &match->entries[i], error));
        }
    }
    return GRADCMP_OK;
}

size_t gcmp_bits_span_after(const struct gcmp_bits_owned *owned, uint64_t elem) {
    size_t low = 0, high = owned->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (owned->spans[middle].end <= elem) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

enum gradcmp_status gcmp_bits_find_owned(struct gcmp_bits_match *match,
                                         struct gradcmp_error *error) {
    struct takings takings[2] = {{.side = match->a}, {.side = match->b}};
    struct stretches spans = {0};
    bool has_pairs = false;
    for (size_t i = 0; i < match->count && !has_pairs; i++) {
        has_pairs = is_flat_pair(&match->entries[i]);
    }
    enum gradcmp_status status = has_pairs ? find_owned(match, takings, &spans, error) : GRADCMP_OK;
    free(takings[0].taken.list);
    free(takings[1].taken.list);
    free(spans.list);
    return status;
}
