/* Fits parameters into buckets.
 *
 * Megatron lays a chunk's parameters out in reverse order of registration, each at the next
 * multiple of 64 elements, and closes a bucket behind a parameter (or, before a shared embedding,
 * at the next multiple of 64); megatron-core, distributed/param_and_grad_buffer.py. Pieces are made
 * for each parameter and each gap, so all their ends are edges of pieces. */
#include "unshard/bucket_fit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "unshard/bucket_frozen.h"
#include "unshard/bucket_size.h"

/* Buffers that hold the same parameters: of one optimizer and type of weights. They are sorted by
 * chunk, then group; groups count tensor-parallel ranks first, then expert-parallel ranks (of
 * experts only), then stages of the pipeline. */
struct stream {
    const struct gcmp_buffer *buffers;
    size_t buffer_count;
    enum gradcmp_dtype dtype; /* of its parameters; NONE: any */
    bool has_dense, has_experts;
    uint32_t ranks, expert_ranks, stages; /* groups = ranks * expert_ranks * stages */
};

static uint32_t at_least_one(uint32_t degree) {
    return degree == 0 ? 1 : degree;
}

/* Boxes of a weight must be rows of it, or columns, or the like: cut along one axis. */
static bool cut_axis(const struct gradcmp_parameter *weight, unsigned *axis) {
    unsigned cut = 0, count = 0;
    for (unsigned d = 0; d < weight->ndim; d++) {
        bool is_cut = false;
        for (size_t i = 0; i < weight->slab_count; i++) {
            is_cut = is_cut || weight->slabs[i].extent[d] != weight->shape[d];
        }
        cut = is_cut ? d : cut;
        count += is_cut;
    }
    *axis = cut;
    return count <= 1;
}

/* True where boxes that follow each other along an axis follow each other in memory as well. */
static bool is_outermost(const struct gradcmp_parameter *weight, unsigned axis) {
    unsigned d = 0;
    while (d < axis && weight->shape[d] == 1) {
        d++;
    }
    return d == axis;
}

/* Read from the boxes of a weight how `ranks` hold it: one box is on all; of k * ranks boxes, rank
 * r has boxes r, r + ranks, ... (the halves of a gated weight are cut each for itself). */
static bool read_cut(const struct gradcmp_parameter *weight, uint32_t ranks,
                     struct gcmp_cut_weight *cut) {
    unsigned axis;
    *cut = (struct gcmp_cut_weight){1, (uint32_t)weight->slab_count};
    if (weight->copy_count != 1 || !cut_axis(weight, &axis)) {
        return false;
    }
    if (weight->slab_count > 1) {
        *cut = (struct gcmp_cut_weight){ranks, (uint32_t)weight->slab_count / ranks};
    }
    return weight->slab_count % cut->ranks == 0 && (cut->parts <= 1 || is_outermost(weight, axis));
}

/* Elements of a parameter that one rank holds. */
static uint64_t local_elems(const struct gcmp_fit *fit, const struct gcmp_registered *entry,
                            uint32_t rank) {
    const struct gradcmp_parameter *weight = entry->parameter;
    const struct gcmp_cut_weight *cut = &fit->cuts[entry->index];
    uint64_t elems = 0;
    for (uint32_t part = 0; part < cut->parts; part++) {
        size_t box = (size_t)part * cut->ranks + (cut->ranks > 1 ? rank : 0);
        uint64_t box_elems = 1;
        for (unsigned d = 0; d < weight->ndim; d++) {
            box_elems *= weight->slabs[box].extent[d];
        }
        elems += box_elems;
    }
    return elems;
}

/* A walk through the buckets of one buffer. */
struct cursor {
    const struct gcmp_buffer *buffer;
    size_t bucket;
    uint64_t reached; /* end of the parameter before */
    uint64_t base;    /* gathered: where the bucket began that the writer cut */
    uint64_t align;
    uint64_t bucket_elems; /* gathered: as long a bucket is closed; 0: it is not */
};

static uint64_t align_up(uint64_t elem, uint64_t align) {
    return (elem + align - 1) / align * align;
}

/* True where nothing but padding is left of the bucket; gathered buffers end without. */
static bool is_full(const struct cursor *cursor) {
    const struct gcmp_bucket *bucket = &cursor->buffer->buckets[cursor->bucket];
    uint64_t size = bucket->stored->shape[0];
    return cursor->reached == size ||
           (!bucket->is_gathered && align_up(cursor->reached, cursor->align) == size);
}

/* A parameter to be placed, or a part of one. */
struct step {
    uint64_t elems;
    bool joins, goes_on; /* the part of a tensor before it or behind it is in the same buffer */
    bool apart;          /* gathered: it has a bucket of its own */
};

/* Find the place of the next parameter in a gathered buffer, where buckets follow each other
 * without what padded their ends. */
static bool advance_gathered(struct cursor *cursor, const struct step *step, uint64_t *start) {
    uint64_t size = cursor->buffer->buckets->stored->shape[0];
    uint64_t align = step->joins ? 1 : cursor->align;
    *start = cursor->base + align_up(cursor->reached - cursor->base, align);
    if (*start > size || step->elems > size - *start) {
        return false;
    }
    cursor->base = step->apart ? *start : cursor->base;
    cursor->reached = *start + step->elems;
    bool closes = !step->goes_on && cursor->bucket_elems != 0 &&
                  cursor->reached - cursor->base >= cursor->bucket_elems;
    cursor->base = step->apart || closes ? cursor->reached : cursor->base;
    return true;
}

/* Find the place of the next parameter. */
static bool advance(struct cursor *cursor, const struct step *step, uint64_t *start) {
    const struct gcmp_bucket *bucket = &cursor->buffer->buckets[cursor->bucket];
    *start = align_up(cursor->reached, step->joins ? 1 : cursor->align);
    if (*start + step->elems > bucket->stored->shape[0] && !step->joins) {
        if (!is_full(cursor) || ++cursor->bucket == cursor->buffer->count) {
            return false;
        }
        bucket++;
        cursor->reached = *start = 0;
    }
    bool fits = *start <= bucket->stored->shape[0] &&
                step->elems <= bucket->stored->shape[0] - *start &&
                (step->joins || gcmp_bucket_has_edge(bucket, *start)) &&
                (step->goes_on || gcmp_bucket_has_edge(bucket, *start + step->elems));
    cursor->reached = *start + step->elems;
    return fits;
}

/* What one buffer is to hold: entries order[from .. to) that belong to its stream and experts. */
struct share {
    const struct stream *stream;
    size_t from, to;
    int64_t first_expert, last_expert; /* of the share, the last one excluded */
    uint32_t rank, stage;
    size_t chunk;               /* of the model */
    bool has_output, has_words; /* the embedding once more, as a tied output layer; as the embedding
                                   that multi-token prediction needs, in front of the others */
};

static bool belongs(const struct share *share, const struct gcmp_registered *entry) {
    const struct stream *stream = share->stream;
    if (stream->dtype != GRADCMP_DTYPE_NONE &&
        (enum gradcmp_dtype)entry->parameter->dtype != stream->dtype) {
        return false;
    }
    return entry->expert < 0 ? stream->has_dense
                             : stream->has_experts && entry->expert >= share->first_expert &&
                                   entry->expert < share->last_expert;
}

/* False without memory. There is an element of a bucket for each placement. */
static bool record(struct gcmp_fit *fit, const struct share *share, struct gcmp_placed placed) {
    if (!gcmp_grow(&fit->placed, fit->placed_count, &fit->placed_capacity, sizeof *fit->placed)) {
        fit->lacks_memory = true;
        return false;
    }
    placed.rank = share->rank;
    placed.stage = share->stage;
    fit->placed[fit->placed_count++] = placed;
    return true;
}

static struct cursor start_cursor(const struct gcmp_fit *fit, const struct gcmp_buffer *buffer,
                                  const struct share *share) {
    struct cursor cursor = {.buffer = buffer, .align = fit->layout.align};
    if (fit->layout.cuts_buckets && share->stage == 0 && share->chunk == 0) {
        cursor.bucket_elems = gcmp_bucket_elems(fit->catalogue);
    }
    return cursor;
}

/* A buffer that a share is laid out in. */
struct laying {
    struct gcmp_fit *fit;
    const struct gcmp_buffer *buffer;
    const struct share *share;
    struct cursor cursor;
    const struct gcmp_registered *before; /* placed last; NULL: none */
    bool keep;                            /* record where each is */
};

/* Place one entry; `repeat` as in struct gcmp_placed. */
static bool place(struct laying *laying, const struct gcmp_registered *entry, uint32_t repeat) {
    struct gcmp_fit *fit = laying->fit;
    const struct share *share = laying->share;
    struct step step = {.elems = local_elems(fit, entry, share->rank)};
    if (step.elems == 0) {
        return true;
    }
    step.joins = laying->before != NULL && gcmp_registered_together(laying->before, entry);
    step.goes_on = entry > fit->order && gcmp_registered_together(entry, entry - 1);
    step.apart =
        fit->layout.splits_shared && share->stream->stages > 1 && entry->index == fit->tied;
    uint64_t start;
    bool fits = laying->buffer->buckets->is_gathered
                    ? advance_gathered(&laying->cursor, &step, &start)
                    : advance(&laying->cursor, &step, &start);
    size_t first_bucket = (size_t)(laying->buffer->buckets - fit->set->buckets);
    struct gcmp_placed placed = {.start = start,
                                 .parameter = (uint32_t)entry->index,
                                 .bucket = (uint32_t)(first_bucket + laying->cursor.bucket),
                                 .repeat = repeat};
    laying->before = entry;
    return fits && (!laying->keep || record(fit, share, placed));
}

static bool is_here(const struct share *share, const struct gcmp_registered *entry) {
    return entry->is_output ? share->has_output : belongs(share, entry);
}

/* Put what a buffer may hold into items, the parts of a tensor into one; item_of[i] is that of
 * entry i, SIZE_MAX for what is not in it. Returns how many there are. */
static size_t list_items(const struct gcmp_fit *fit, const struct share *share,
                         struct gcmp_frozen_item *items, size_t *item_of) {
    size_t count = 0;
    const struct gcmp_registered *before = NULL;
    for (size_t i = share->to; i-- > share->from;) {
        const struct gcmp_registered *entry = &fit->order[i];
        uint64_t elems = is_here(share, entry) ? local_elems(fit, entry, share->rank) : 0;
        item_of[i] = SIZE_MAX;
        if (elems == 0) {
            continue;
        }
        if (before == NULL || !gcmp_registered_together(before, entry)) {
            items[count++].elems = 0;
        }
        items[count - 1].elems += elems;
        item_of[i] = count - 1;
        before = entry;
    }
    return count;
}

/* Find which entries a buffer leaves out, where it cannot hold all; false where sizes do not tell.
 */
static bool find_frozen(struct gcmp_fit *fit, const struct gcmp_buffer *buffer,
                        const struct share *share) {
    struct gcmp_frozen_item *items = calloc(fit->order_count + 1, sizeof *items);
    size_t *item_of = calloc(fit->order_count + 1, sizeof *item_of);
    enum gcmp_frozen found = GCMP_FROZEN_NO_MEMORY;
    if (items != NULL && item_of != NULL) {
        size_t count = list_items(fit, share, items, item_of);
        found = gcmp_frozen_choose(buffer, fit->layout.align, items, count);
    }
    for (size_t i = share->from; i < share->to && found == GCMP_FROZEN_ONE; i++) {
        fit->skips[i] = item_of[i] != SIZE_MAX && !items[item_of[i]].is_held;
        fit->left_out[fit->order[i].index] = fit->left_out[fit->order[i].index] || fit->skips[i];
    }
    fit->lacks_memory = fit->lacks_memory || found == GCMP_FROZEN_NO_MEMORY;
    fit->is_open = fit->is_open || found == GCMP_FROZEN_SEVERAL;
    free(items);
    free(item_of);
    return found == GCMP_FROZEN_ONE;
}

/* Lay a share out in a buffer, last entry first; with `keep`, record where each is. */
static bool lay_out(struct gcmp_fit *fit, const struct gcmp_buffer *buffer,
                    const struct share *share, bool keep) {
    struct laying laying = {.fit = fit, .buffer = buffer, .share = share, .keep = keep};
    laying.cursor = start_cursor(fit, buffer, share);
    if (fit->layout.leaves_out && !find_frozen(fit, buffer, share)) {
        return false;
    }
    for (size_t i = share->to; i-- > share->from;) {
        const struct gcmp_registered *entry = &fit->order[i];
        if (is_here(share, entry) && !fit->skips[i] && !place(&laying, entry, entry->is_output)) {
            return false;
        }
    }
    for (size_t i = share->has_words ? fit->order_count : 0; i-- > 0;) {
        if (gcmp_registered_embedding(&fit->order[i]) && !place(&laying, &fit->order[i], 2)) {
            return false;
        }
    }
    return laying.cursor.bucket + 1 == buffer->count && is_full(&laying.cursor);
}

/* Stages of a stream, the model's chunks one after another. */
static size_t stage_count(const struct stream *stream) {
    size_t groups = (size_t)stream->ranks * stream->expert_ranks * stream->stages;
    return stream->buffer_count / groups * stream->stages;
}

/* Experts are spread evenly over their ranks, in order. */
static void share_experts(const struct gcmp_fit *fit, uint32_t expert_rank, struct share *share) {
    int64_t experts = 0;
    for (size_t i = 0; i < fit->order_count; i++) {
        experts = fit->order[i].expert >= experts ? fit->order[i].expert + 1 : experts;
    }
    int64_t each = experts / share->stream->expert_ranks;
    share->first_expert = each * expert_rank;
    share->last_expert = share->first_expert + each;
}

/* Lay entries order[from .. to) out in all buffers of a stage. `probe`: only the first, keep
 * nothing.
 */
static bool lay_out_stage(struct gcmp_fit *fit, struct share share, size_t stage, bool probe) {
    const struct stream *stream = share.stream;
    size_t groups = (size_t)stream->ranks * stream->expert_ranks * stream->stages;
    const struct gcmp_buffer *chunk = stream->buffers + stage / stream->stages * groups;
    share.stage = (uint32_t)(stage % stream->stages);
    share.chunk = stage / stream->stages;
    for (uint32_t expert_rank = 0; expert_rank < stream->expert_ranks; expert_rank++) {
        share_experts(fit, expert_rank, &share);
        for (share.rank = 0; share.rank < stream->ranks; share.rank++) {
            size_t group =
                ((size_t)share.stage * stream->expert_ranks + expert_rank) * stream->ranks +
                share.rank;
            if (!lay_out(fit, &chunk[group], &share, !probe)) {
                fit->where = chunk[group].buckets[0].stored->key;
                return false;
            }
            if (probe) {
                return true;
            }
        }
    }
    return true;
}

/* True for a model that predicts several tokens: one stage, the last one, has that. */
static bool has_prediction(const struct gcmp_fit *fit) {
    bool is_found = false;
    for (size_t i = 0; i < fit->order_count && !is_found; i++) {
        is_found = strncmp(fit->order[i].parameter->name, "mtp.", 4) == 0;
    }
    return is_found;
}

/* Whether the last of several stages is filled, with the embedding once more or twice. */
static bool fits_last(struct gcmp_fit *fit, struct share *share, size_t stage) {
    bool predicts = has_prediction(fit), found = false;
    for (unsigned bits = 1; bits < 4 && share->stream->has_dense && !found; bits++) {
        share->has_output = (bits & 1) != 0;
        share->has_words = (bits & 2) != 0;
        found = (predicts || !share->has_words) && lay_out_stage(fit, *share, stage, true);
    }
    return found;
}

/* Give each stage the next run of layers that fills its buffers. */
static bool fit_stream(struct gcmp_fit *fit, const struct stream *stream) {
    size_t from = 0, stages = stage_count(stream), count = fit->order_count;
    for (size_t stage = 0; stage < stages; stage++) {
        struct share share = {.stream = stream, .from = from};
        bool is_last = stage + 1 == stages, found = false;
        for (share.to = is_last ? count : from + 1; share.to <= count && !found; share.to++) {
            if (share.to < count &&
                !gcmp_registered_apart(&fit->order[share.to - 1], &fit->order[share.to])) {
                continue;
            }
            found = lay_out_stage(fit, share, stage, true) ||
                    (is_last && stages > 1 && fits_last(fit, &share, stage));
            from = share.to;
        }
        share.to = from;
        if (!found || !lay_out_stage(fit, share, stage, false)) {
            return false;
        }
    }
    return true;
}

/* Streams of a set: one for each optimizer, or one for each type of weights in it. */
struct gcmp_streams {
    struct stream list[8];
    size_t count, chains;
};

static bool starts_stream(const struct gcmp_buffer *buffers, size_t i) {
    return i == 0 || buffers[i - 1].buckets->chain != buffers[i].buckets->chain ||
           buffers[i - 1].buckets->dtype != buffers[i].buckets->dtype;
}

static bool collect_streams(const struct gcmp_bucket_set *set, struct gcmp_streams *streams) {
    *streams = (struct gcmp_streams){.count = 0};
    for (size_t i = 0; i < set->buffer_count; i++) {
        if (starts_stream(set->buffers, i)) {
            if (streams->count == sizeof streams->list / sizeof streams->list[0]) {
                return false;
            }
            struct stream *stream = &streams->list[streams->count++];
            *stream = (struct stream){.buffers = &set->buffers[i]};
            stream->dtype = set->buffers[i].buckets->dtype;
            streams->chains +=
                i == 0 || set->buffers[i - 1].buckets->chain != set->buffers[i].buckets->chain;
        }
        streams->list[streams->count - 1].buffer_count++;
    }
    return streams->count > 0 && streams->chains <= 2;
}

/* Each chunk must have every group once. */
static bool has_all_groups(const struct stream *stream) {
    size_t groups = (size_t)stream->ranks * stream->expert_ranks * stream->stages;
    bool complete = stream->buffer_count % groups == 0;
    for (size_t i = 0; i < stream->buffer_count && complete; i++) {
        complete = stream->buffers[i].buckets->group == (int64_t)(i % groups) &&
                   stream->buffers[i].buckets->chunk ==
                       stream->buffers[i / groups * groups].buckets->chunk;
    }
    return complete;
}

/* Of two chained optimizers the first has the dense weights, the second the experts; one has both.
 */
static bool describe_streams(const struct gcmp_fit *fit, struct gcmp_streams *streams) {
    const struct gradcmp_parallel *parallel = &fit->catalogue->parallel;
    int64_t first_chain = streams->list[0].buffers->buckets->chain;
    bool complete = true;
    for (size_t i = 0; i < streams->count; i++) {
        struct stream *stream = &streams->list[i];
        bool is_first = stream->buffers->buckets->chain == first_chain;
        bool is_only = streams->chains == 1;
        bool is_expert = !is_first;
        stream->has_dense = is_first;
        stream->has_experts = is_only || is_expert;
        stream->stages = at_least_one(parallel->pp);
        stream->expert_ranks = is_expert ? at_least_one(parallel->ep) : 1;
        stream->ranks =
            is_expert && parallel->etp != 0 ? parallel->etp : at_least_one(parallel->tp);
        complete = complete && has_all_groups(stream);
    }
    if (streams->count == streams->chains) { /* one type each: no weight is of another's */
        for (size_t i = 0; i < streams->count; i++) {
            streams->list[i].dtype = GRADCMP_DTYPE_NONE;
        }
    }
    return complete;
}

static bool read_cuts(struct gcmp_fit *fit, struct gradcmp_error *error) {
    const struct gradcmp_parallel *parallel = &fit->catalogue->parallel;
    uint32_t tp = at_least_one(parallel->tp), etp = parallel->etp == 0 ? tp : parallel->etp;
    for (size_t i = 0; i < fit->weights->count; i++) {
        const struct gradcmp_parameter *weight = &fit->weights->parameters[i];
        bool is_expert = strstr(weight->name, ".experts.") != NULL;
        if (!read_cut(weight, is_expert ? etp : tp, &fit->cuts[i])) {
            gcmp_error_set(error, GRADCMP_ERROR_UNSUPPORTED, NULL, GRADCMP_NO_OFFSET,
                           "%s: its %zu pieces do not tell how %u ranks hold it", weight->name,
                           weight->slab_count, is_expert ? etp : tp);
            return false;
        }
    }
    return true;
}

static enum gradcmp_status make_room(struct gcmp_fit *fit, struct gradcmp_error *error) {
    fit->cuts = calloc(fit->weights->count + 1, sizeof *fit->cuts);
    fit->order = calloc(fit->weights->count + 2, sizeof *fit->order);
    fit->skips = calloc(fit->weights->count + 2, sizeof *fit->skips);
    fit->left_out = calloc(fit->weights->count + 1, sizeof *fit->left_out);
    fit->streams = calloc(1, sizeof *fit->streams);
    if (fit->cuts == NULL || fit->order == NULL || fit->skips == NULL || fit->left_out == NULL ||
        fit->streams == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_fit_refuse(const struct gcmp_fit *fit, const char *why,
                                    struct gradcmp_error *error) {
    const struct gcmp_bucket *first = fit->set->buckets;
    GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
              "%s: %s; save with --dist-ckpt-optim-fully-reshardable",
              fit->where != NULL ? fit->where : first->stored->key, why);
}

enum gradcmp_status gcmp_fit_start(const struct gradcmp_catalogue *catalogue,
                                   const struct gradcmp_model *weights,
                                   const struct gcmp_bucket_set *set, struct gcmp_fit *fit,
                                   struct gradcmp_error *error) {
    *fit = (struct gcmp_fit){.catalogue = catalogue, .weights = weights, .set = set};
    GCMP_TRY(make_room(fit, error));
    if (catalogue->parallel.tp == 0 || catalogue->parallel.pp == 0) {
        return gcmp_fit_refuse(fit, "the sizes of the parallel groups are not known", error);
    }
    if (!collect_streams(set, fit->streams) || !describe_streams(fit, fit->streams)) {
        return gcmp_fit_refuse(fit, "the buckets are not one set for each parallel rank", error);
    }
    return read_cuts(fit, error) ? GRADCMP_OK : GRADCMP_ERROR_UNSUPPORTED;
}

/* The embedding that is tied to an output layer; SIZE_MAX without. */
static size_t find_tied(const struct gcmp_fit *fit) {
    size_t i = 0;
    while (i < fit->order_count && !fit->order[i].is_output) {
        i++;
    }
    return i == fit->order_count ? SIZE_MAX : fit->order[i].index;
}

bool gcmp_fit_may_leave_out(const struct gcmp_fit *fit) {
    bool may = true;
    for (size_t i = 0; i < fit->streams->count; i++) {
        may = may && stage_count(&fit->streams->list[i]) == 1;
    }
    for (size_t i = 0; i < fit->set->bucket_count; i++) {
        may = may && !fit->set->buckets[i].is_gathered;
    }
    return may;
}

bool gcmp_fit_lay_out(struct gcmp_fit *fit, struct gcmp_bucket_layout layout) {
    bool fits = true;
    fit->layout = layout;
    fit->placed_count = 0;
    fit->is_open = false;
    memset(fit->skips, 0, (fit->weights->count + 2) * sizeof *fit->skips);
    memset(fit->left_out, 0, (fit->weights->count + 1) * sizeof *fit->left_out);
    fit->order_count =
        gcmp_registration_order(fit->weights, layout.modules, fit->order, &fit->unknown);
    fit->tied = find_tied(fit);
    for (size_t i = 0; i < fit->streams->count && fits; i++) {
        fits = fit_stream(fit, &fit->streams->list[i]);
    }
    return fits;
}

void gcmp_fit_free(struct gcmp_fit *fit) {
    free(fit->cuts);
    free(fit->order);
    free(fit->skips);
    free(fit->left_out);
    free(fit->placed);
    free(fit->streams);
    *fit = (struct gcmp_fit){.catalogue = NULL};
}
