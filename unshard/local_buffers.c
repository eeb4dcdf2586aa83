/* Cuts ranks' flat buffers into shards: which weights each buffer holds, and in which order.
 *
 * A rank has one buffer for each chunk of the model and type of weights, in the order in which they
 * first occur; with expert parallelism experts have buffers and an optimizer of their own, the last
 * one of a chain (megatron/core/distributed/distributed_data_parallel.py, optimizer/__init__.py).
 */
#include "unshard/local_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/model_names.h"
#include "base/twins.h"
#include "unshard/bucket_size.h"
#include "unshard/fragments.h"
#include "unshard/name_parse.h"

/* A flat tensor, and what its name says. */
struct part {
    const struct gradcmp_stored *stored;
    int64_t chained, buffer, bucket; /* -1: not said */
};

/* One call of gcmp_local_cut_buffers. */
struct cut {
    const struct gradcmp_catalogue *catalogue;
    struct gcmp_arena *arena;
    struct gcmp_shards *shards;
    struct part *parts; /* sorted by rank, then by what their names say */
    size_t part_count;
    struct gcmp_flat_weight *weights;     /* sorted by rank, then by order */
    size_t weight_count, weight_at;       /* weights before weight_at are of ranks that are done */
    const struct gradcmp_stored **stored; /* of the parts of one buffer */
    struct gcmp_flat_weight *chosen;      /* weights of one buffer */
    int64_t last_chained;                 /* of all ranks; -1: no optimizer is chained */
    bool experts_apart;                   /* in buffers of their own */
};

static int64_t number_behind(const char *name, const char *word) {
    const char *found = strstr(name, word);
    if (found == NULL) {
        return -1;
    }
    char *end;
    long long number = strtoll(found + strlen(word), &end, 10);
    return end == found + strlen(word) || number < 0 || number > INT32_MAX ? -1 : number;
}

static int compare_ranks(const struct gradcmp_stored *a, const struct gradcmp_stored *b) {
    const struct gradcmp_coords *x = a->pieces[0].coords, *y = b->pieces[0].coords;
    const int32_t keys_x[] = {x->pp, x->tp, x->ep}, keys_y[] = {y->pp, y->tp, y->ep};
    for (size_t i = 0; i < 3; i++) {
        if (keys_x[i] != keys_y[i]) {
            return keys_x[i] < keys_y[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_parts(const void *left, const void *right) {
    const struct part *a = left, *b = right;
    const int64_t keys_a[] = {compare_ranks(a->stored, b->stored), a->chained, a->buffer,
                              a->bucket};
    const int64_t keys_b[] = {0, b->chained, b->buffer, b->bucket};
    for (size_t i = 0; i < 4; i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int compare_weights(const void *left, const void *right) {
    const struct gcmp_flat_weight *a = left, *b = right;
    int order = compare_ranks(a->stored, b->stored);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

static bool is_usable(const struct gradcmp_stored *stored) {
    return stored->piece_count == 1 && stored->pieces[0].coords != NULL;
}

static enum gradcmp_status collect_parts(struct cut *cut, const char *state,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < cut->catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &cut->catalogue->stored[i];
        if (stored->layout != GRADCMP_LAYOUT_LOCAL_BUFFER || stored->state == NULL ||
            strcmp(stored->state, state) != 0) {
            continue;
        }
        struct part *part = &cut->parts[cut->part_count++];
        *part = (struct part){stored, number_behind(stored->name, "chained_"),
                              number_behind(stored->name, "gbuf_idx_"),
                              number_behind(stored->name, "bucket_idx_")};
        if (!is_usable(stored) || stored->ndim != 1 || stored->shape[0] > INT64_MAX ||
            stored->pieces[0].start[0] != 0 || stored->pieces[0].extent[0] != stored->shape[0] ||
            part->buffer < 0) {
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: no flat buffer of one rank", stored->key);
        }
        cut->last_chained = part->chained > cut->last_chained ? part->chained : cut->last_chained;
    }
    qsort(cut->parts, cut->part_count, sizeof *cut->parts, compare_parts);
    return GRADCMP_OK;
}

/* The run ties the output layer to the embedding, and they are on two stages: then both are apart.
 */
static bool shares_embedding(const struct gradcmp_catalogue *catalogue) {
    return catalogue->parallel.pp > 1 && gcmp_says_tied(catalogue, true);
}

/* Take one weight, which stands `order`-th in its rank's state dict. */
static enum gradcmp_status add_weight(struct cut *cut, const struct gradcmp_stored *stored,
                                      size_t order, struct gradcmp_error *error) {
    struct gcmp_flat_weight *weight = &cut->weights[cut->weight_count++];
    struct gcmp_name name;
    GCMP_TRY(gcmp_name_parse(stored->name, true, cut->arena, &name, error));
    *weight = (struct gcmp_flat_weight){.stored = stored, .order = order};
    weight->is_expert = name.is_expert;
    weight->is_shared =
        name.has_vocab_rows && stored->ndim == 2 && shares_embedding(cut->catalogue);
    if (!is_usable(stored) || !gcmp_product(stored->shape, stored->ndim, &weight->elems)) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: no whole tensor of one rank", stored->key);
    }
    bool is_apart = name.is_expert && stored->pieces[0].coords->ep > 0;
    cut->experts_apart = cut->experts_apart || is_apart;
    return GRADCMP_OK;
}

/* Take the weights, each once. */
static enum gradcmp_status collect_weights(struct cut *cut, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = cut->catalogue;
    struct gcmp_twin *twins;
    enum gradcmp_status status = GRADCMP_OK;
    GCMP_TRY(gcmp_twins_find(catalogue, 0, catalogue->stored_count, &twins, error));
    for (size_t i = 0; i < catalogue->stored_count && status == GRADCMP_OK; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->layout == GRADCMP_LAYOUT_LOCAL && stored->state != NULL &&
            strcmp(stored->state, "param") == 0 && !gcmp_name_is_buffer(stored->name) &&
            twins[i].first == i) {
            status = add_weight(cut, &catalogue->stored[twins[i].name], i, error);
        }
    }
    free(twins);
    GCMP_TRY(status);
    qsort(cut->weights, cut->weight_count, sizeof *cut->weights, compare_weights);
    return GRADCMP_OK;
}

/* Which optimizer of the chain a weight belongs to. Where the first chunk has one of its own (so
 * that gathering parameters overlaps with the step), three are chained. */
static bool belongs(const struct cut *cut, const struct gcmp_flat_weight *weight, int64_t chained) {
    if (cut->last_chained < 0) {
        return true;
    }
    int64_t dense = cut->last_chained + (cut->experts_apart ? 0 : 1);
    if (cut->experts_apart && (weight->is_expert || chained == cut->last_chained)) {
        return weight->is_expert && chained == cut->last_chained;
    }
    return dense == 1 || (chained == 0) == (weight->stored->pieces[0].coords->vp <= 0);
}

/* The next pair of chunk and type that is in no buffer yet: that of the first weight of its chunk
 * which was not chosen so far. Marks its weights by `part` and copies them. */
static size_t choose_weights(struct cut *cut, const struct gcmp_flat_weight *weights, size_t count,
                             int64_t chained, bool *is_taken) {
    const struct gcmp_flat_weight *first = NULL;
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_taken[i] && belongs(cut, &weights[i], chained) &&
            (first == NULL ||
             weights[i].stored->pieces[0].coords->vp < first->stored->pieces[0].coords->vp)) {
            first = &weights[i];
        }
    }
    for (size_t i = 0; first != NULL && i < count; i++) {
        if (!is_taken[i] && belongs(cut, &weights[i], chained) &&
            weights[i].stored->dtype == first->stored->dtype &&
            weights[i].stored->pieces[0].coords->vp == first->stored->pieces[0].coords->vp) {
            is_taken[i] = true;
            cut->chosen[chosen++] = weights[i];
        }
    }
    return chosen;
}

/* The size of buckets that the arguments state for a chunk; 0 where there is one bucket. */
static uint64_t bucket_elems(const struct gradcmp_catalogue *catalogue,
                             const struct gradcmp_coords *coords) {
    return coords->pp > 0 || coords->vp > 0 ? 0 : gcmp_bucket_elems(catalogue);
}

/* Make the shard that lies at a weight's place. */
static enum gradcmp_status add_shard(struct cut *cut, const struct gcmp_flat_weight *weight,
                                     const struct gradcmp_stored *part,
                                     struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = weight->stored;
    const struct gradcmp_piece *piece = part->pieces;
    int64_t step = piece->stride == NULL ? 1 : piece->stride[0];
    struct gcmp_shard *shard = gcmp_shards_add(cut->shards);
    if (shard == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    shard->key = gcmp_arena_format(cut->arena, "%s, %s", part->key, stored->name);
    if (shard->key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    shard->name = stored->name;
    shard->shape = stored->shape;
    shard->ndim = stored->ndim;
    shard->dtype = part->dtype;
    shard->coords = stored->pieces[0].coords;
    shard->source = piece->source;
    shard->offset_elems = piece->stride == NULL ? 0 : piece->offset_elems;
    bool ok = gcmp_advance(&shard->offset_elems, weight->start, step);
    uint64_t inner = 1;
    for (unsigned d = stored->ndim; d-- > 0 && ok;) {
        ok = gcmp_advance(&shard->stride[d], inner, step);
        inner *= weight->elems == 0 ? 1 : stored->shape[d];
    }
    if (!ok) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: strides leave the range of 64 bits",
                  part->key);
    }
    return GRADCMP_OK;
}

/* Cut one buffer: parts[0 .. count). */
static enum gradcmp_status cut_buffer(struct cut *cut, const struct part *parts, size_t count,
                                      size_t weight_count, struct gradcmp_error *error) {
    struct gcmp_flat_buffer buffer = {.weights = cut->chosen,
                                      .weight_count = weight_count,
                                      .parts = cut->stored,
                                      .part_count = count};
    for (size_t i = 0; i < count; i++) {
        cut->stored[i] = parts[i].stored;
        if (count > 1 && parts[i].bucket != (int64_t)i) {
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: expected bucket %zu of that buffer here",
                      parts[i].stored->key, i);
        }
    }
    if (weight_count > 0) {
        buffer.bucket_elems = bucket_elems(cut->catalogue, cut->chosen[0].stored->pieces[0].coords);
    }
    GCMP_TRY(gcmp_flat_buffer_fit(&buffer, error));
    for (size_t i = 0; i < weight_count; i++) {
        const struct gcmp_flat_weight *weight = &buffer.weights[i];
        GCMP_TRY(add_shard(cut, weight, buffer.parts[weight->part], error));
    }
    return GRADCMP_OK;
}

/* Cut the buffers of one rank: parts[0 .. count). */
static enum gradcmp_status cut_rank(struct cut *cut, const struct part *parts, size_t count,
                                    struct gradcmp_error *error) {
    size_t weights = 0;
    while (cut->weight_at < cut->weight_count &&
           compare_ranks(cut->weights[cut->weight_at].stored, parts[0].stored) < 0) {
        cut->weight_at++;
    }
    const struct gcmp_flat_weight *first = &cut->weights[cut->weight_at];
    while (cut->weight_at + weights < cut->weight_count &&
           compare_ranks(first[weights].stored, parts[0].stored) == 0) {
        weights++;
    }
    bool *is_taken = calloc(weights + 1, sizeof *is_taken);
    if (is_taken == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t at = 0, end; at < count && status == GRADCMP_OK; at = end) {
        for (end = at + 1; end < count && parts[end].chained == parts[at].chained &&
                           parts[end].buffer == parts[at].buffer;
             end++) {
        }
        size_t chosen = choose_weights(cut, first, weights, parts[at].chained, is_taken);
        status = cut_buffer(cut, &parts[at], end - at, chosen, error);
    }
    for (size_t i = 0; i < weights && status == GRADCMP_OK; i++) {
        if (!is_taken[i] && cut->last_chained < 0) {
            status = gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, NULL, GRADCMP_NO_OFFSET,
                                    "%s: in none of the %zu buffers of %s", first[i].stored->key,
                                    count, parts[0].stored->key);
        }
    }
    free(is_taken);
    return status;
}

static enum gradcmp_status cut_all(struct cut *cut, const char *state,
                                   struct gradcmp_error *error) {
    GCMP_TRY(collect_parts(cut, state, error));
    GCMP_TRY(collect_weights(cut, error));
    for (size_t at = 0, end; at < cut->part_count; at = end) {
        for (end = at + 1; end < cut->part_count &&
                           compare_ranks(cut->parts[at].stored, cut->parts[end].stored) == 0;
             end++) {
        }
        GCMP_TRY(cut_rank(cut, &cut->parts[at], end - at, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_local_cut_buffers(const struct gradcmp_catalogue *catalogue,
                                           const char *state, struct gcmp_arena *arena,
                                           struct gcmp_shards *shards,
                                           struct gradcmp_error *error) {
    size_t room = catalogue->stored_count + 1;
    struct cut cut = {.catalogue = catalogue, .arena = arena, .shards = shards, .last_chained = -1};
    cut.parts = calloc(room, sizeof *cut.parts);
    cut.weights = calloc(room, sizeof *cut.weights);
    cut.stored = calloc(room, sizeof *cut.stored);
    cut.chosen = calloc(room, sizeof *cut.chosen);
    enum gradcmp_status status = GRADCMP_ERROR_MEMORY;
    if (cut.parts == NULL || cut.weights == NULL || cut.stored == NULL || cut.chosen == NULL) {
        gcmp_error_set(error, status, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else {
        status = cut_all(&cut, state, error);
    }
    free(cut.parts);
    free(cut.weights);
    free(cut.stored);
    free(cut.chosen);
    return status;
}
