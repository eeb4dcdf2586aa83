/* Tensors of one checkpoint that are the same bytes of one file. */
#include "shared_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/map.h"
#include "engine/engine.h"
#include "unshard/names.h"

/* Bytes [first, end) of a file, which a piece of a stored tensor takes up. */
struct taken {
    uint64_t first, end;
    uint32_t file, stored;
    uint32_t piece;
};

struct taken_list {
    const struct gradcmp_catalogue *catalogue;
    struct taken *items;
    size_t count;
    struct gcmp_map weights; /* by name: index of what is stored */
};

static bool is_state(const struct gradcmp_stored *stored, const char *state) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): asked only where there is one */
    return strcmp(stored->state, state) == 0;
}

/* Tied weights are one storage of a torch file, and gradients are kept in buffers that are used
 * again: a RANGE tells of the optimizer's states alone. */
static bool is_own(const struct gradcmp_stored *stored, const struct gradcmp_source *source) {
    bool is_range = source->kind == GRADCMP_SOURCE_RANGE;
    return gcmp_is_parameter_state(stored->state) && stored->dtype != GRADCMP_DTYPE_NONE &&
           stored->layout != GRADCMP_LAYOUT_BUCKET &&
           stored->layout != GRADCMP_LAYOUT_LOCAL_BUFFER &&
           (!is_range || (!is_state(stored, "param") && !is_state(stored, "main_grad")));
}

/* The elements [*first, *first + *count) of its source that a piece fills; false for a view that
 * leaves some of them out, or has some twice. */
static bool is_dense(const struct gradcmp_stored *stored, const struct gradcmp_piece *piece,
                     uint64_t *first, uint64_t *count) {
    uint64_t last = 0, steps;
    *first = piece->stride == NULL ? 0 : (uint64_t)piece->offset_elems;
    if (!gcmp_product(piece->extent, stored->ndim, count) || *count == 0 ||
        (piece->stride != NULL && piece->offset_elems < 0)) {
        return false;
    }
    for (unsigned d = 0; d < stored->ndim && piece->stride != NULL; d++) {
        if (piece->stride[d] < 0 ||
            !gcmp_mul_u64(piece->extent[d] - 1, (uint64_t)piece->stride[d], &steps) ||
            !gcmp_add_u64(last, steps, &last)) {
            return false;
        }
    }
    return piece->stride == NULL || last == *count - 1;
}

/* An item of other formats may be a place in a file that its library alone knows. */
static bool has_items(const struct gradcmp_catalogue *catalogue) {
    return strcmp(catalogue->format->name, "torch_dist") == 0;
}

/* Fill in which bytes a piece takes up; false where that is not known. */
static bool take_bytes(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_stored *stored, const struct gradcmp_piece *piece,
                       struct taken *out) {
    const struct gradcmp_source *source = &catalogue->sources[piece->source];
    uint64_t width = gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype), first, count;
    out->file = source->file;
    out->first = source->offset_bytes;
    if (source->kind == GRADCMP_SOURCE_ITEM) {
        return has_items(catalogue) && source->length_bytes > 0 &&
               gcmp_add_u64(out->first, source->length_bytes, &out->end);
    }
    return is_dense(stored, piece, &first, &count) && gcmp_mul_u64(first, width, &first) &&
           gcmp_mul_u64(count, width, &count) && gcmp_add_u64(out->first, first, &out->first) &&
           gcmp_add_u64(out->first, count, &out->end);
}

static int compare_taken(const void *left, const void *right) {
    const struct taken *a = left, *b = right;
    if (a->file != b->file) {
        return a->file < b->file ? -1 : 1;
    }
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    if (a->stored != b->stored) {
        return a->stored < b->stored ? -1 : 1;
    }
    return a->piece < b->piece ? -1 : a->piece > b->piece;
}

static enum gradcmp_status list_taken(const struct gradcmp_catalogue *catalogue,
                                      struct taken_list *list, struct gradcmp_error *error) {
    size_t room = 1;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        room += catalogue->stored[i].piece_count;
    }
    list->catalogue = catalogue;
    list->items = calloc(room, sizeof *list->items);
    if (list->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->state != NULL && is_state(stored, "param") &&
            gcmp_map_add(&list->weights, stored->name, strlen(stored->name), i, NULL) ==
                GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        for (size_t p = 0; p < stored->piece_count; p++) {
            const struct gradcmp_piece *piece = &stored->pieces[p];
            struct taken *taken = &list->items[list->count];
            *taken = (struct taken){.stored = (uint32_t)i, .piece = (uint32_t)p};
            list->count += is_own(stored, &catalogue->sources[piece->source]) &&
                           take_bytes(catalogue, stored, piece, taken);
        }
    }
    qsort(list->items, list->count, sizeof *list->items, compare_taken);
    return GRADCMP_OK;
}

/* The weight of a parameter, as it is stored; NULL: there is none. */
static const struct gradcmp_stored *find_weight(const struct taken_list *list, const char *name) {
    size_t index;
    return gcmp_map_find(&list->weights, name, strlen(name), &index)
               ? &list->catalogue->stored[index]
               : NULL;
}

/* True for the states of two names of one weight. */
static bool are_tied(const struct taken_list *list, const struct gradcmp_stored *a,
                     const struct gradcmp_stored *b) {
    if (strcmp(a->state, b->state) != 0 || strcmp(a->name, b->name) == 0 || is_state(a, "param")) {
        return false;
    }
    const struct gradcmp_stored *weight = find_weight(list, a->name);
    const struct gradcmp_stored *other = find_weight(list, b->name);
    struct taken first, second;
    return weight != NULL && other != NULL && weight->piece_count > 0 && other->piece_count > 0 &&
           take_bytes(list->catalogue, weight, &weight->pieces[0], &first) &&
           take_bytes(list->catalogue, other, &other->pieces[0], &second) &&
           first.file == second.file && first.first == second.first && first.end == second.end;
}

static enum gradcmp_status tell_shared(const struct gcmp_finding_sink *sink,
                                       const struct gradcmp_catalogue *catalogue,
                                       const struct taken *taken, const struct taken *earlier,
                                       struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = &catalogue->stored[taken->stored];
    const struct gradcmp_stored *other = &catalogue->stored[earlier->stored];
    uint64_t end = taken->end < earlier->end ? taken->end : earlier->end;
    struct gradcmp_finding *finding;
    GCMP_TRY(gcmp_finding_add(sink, "shared_bytes", NULL, &finding, error));
    finding->name = gcmp_arena_dup(sink->arena, stored->name);
    finding->state = gcmp_arena_dup(sink->arena, stored->state);
    if (finding->name == NULL || finding->state == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    gcmp_finding_figure(finding, "bytes", (double)(end - taken->first));
    if (other == stored) {
        return gcmp_finding_say(sink, finding, error,
                                "pieces %u and %u are the same %llu bytes of %.200s",
                                (unsigned)earlier->piece, (unsigned)taken->piece,
                                (unsigned long long)(end - taken->first),
                                gcmp_dir_file_name(catalogue->dir, taken->file));
    }
    return gcmp_finding_say(
        sink, finding, error, "%llu bytes of %.100s are those of %.200s (%.40s) too",
        (unsigned long long)(end - taken->first), gcmp_dir_file_name(catalogue->dir, taken->file),
        other->name, other->state);
}

/* Tell what begins before the bytes in front of it end. */
static enum gradcmp_status sweep_taken(const struct gcmp_finding_sink *sink,
                                       const struct taken_list *list, struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = list->catalogue->stored;
    const struct taken *longest = NULL;
    size_t shared = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct taken *taken = &list->items[i];
        bool is_shared =
            longest != NULL && longest->file == taken->file && taken->first < longest->end;
        if (is_shared && (shared >= GCMP_MAX_LISTED ||
                          !are_tied(list, &stored[taken->stored], &stored[longest->stored]))) {
            GCMP_TRY(shared >= GCMP_MAX_LISTED
                         ? GRADCMP_OK
                         : tell_shared(sink, list->catalogue, taken, longest, error));
            shared++;
        }
        longest = !is_shared || taken->end > longest->end ? taken : longest;
    }
    if (shared <= GCMP_MAX_LISTED) {
        return GRADCMP_OK;
    }
    struct gradcmp_finding *finding;
    GCMP_TRY(gcmp_finding_add(sink, "shared_bytes", NULL, &finding, error));
    gcmp_finding_figure(finding, "pieces", (double)shared);
    return gcmp_finding_say(sink, finding, error,
                            "%zu pieces share bytes with others, of which %d are listed", shared,
                            GCMP_MAX_LISTED);
}

enum gradcmp_status gcmp_find_shared_bytes(const struct gcmp_finding_sink *sink,
                                           const struct gradcmp_checkpoint *checkpoint,
                                           struct gradcmp_error *error) {
    struct taken_list list = {.weights = GCMP_MAP_INIT};
    enum gradcmp_status status = list_taken(&checkpoint->catalogue, &list, error);
    if (status == GRADCMP_OK) {
        status = sweep_taken(sink, &list, error);
    }
    gcmp_map_free(&list.weights);
    free(list.items);
    return status;
}
