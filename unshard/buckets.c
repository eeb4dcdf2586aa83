/* Parameters of a state that is stored in buckets: the weights' model with other slabs. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/grow.h"
#include "base/model_names.h"
#include "unshard/bucket_layouts.h"
#include "unshard/coverage.h"
#include "unshard/flat.h"
#include "unshard/fragments.h"
#include "unshard/unshard.h"

/* One call of gcmp_unshard_buckets. */
struct work {
    struct gcmp_arena *arena;
    struct gcmp_bucket_set set;
    struct gcmp_fit fit;
    struct gcmp_cover_room room;
    struct gradcmp_coords **coords; /* one a bucket, made when first asked for */
    struct gradcmp_slab *made;      /* of the parameter under way */
    size_t made_count, made_capacity;
};

/* One box of a weight, and where its elements lie in a bucket: one behind the other. */
struct run {
    const struct gradcmp_slab *box; /* of the weight */
    const struct gcmp_bucket *bucket;
    const struct gradcmp_piece *piece; /* of the bucket, under way */
    const struct gradcmp_coords *coords;
    uint64_t first; /* element of the bucket where the box begins */
    uint32_t copy;
    struct gcmp_flat flat; /* the box, row-major */
};

static struct gradcmp_slab *add_slab(struct work *work) {
    if (!gcmp_grow(&work->made, work->made_count, &work->made_capacity, sizeof *work->made)) {
        return NULL;
    }
    return &work->made[work->made_count++];
}

/* Make the slab of one box of the run: `box` holds start and extent within the weight's box, whose
 * first element is element `at` of the bucket. */
static enum gradcmp_status make_slab(struct work *work, const struct run *run,
                                     const struct gcmp_box *box, uint64_t at,
                                     struct gradcmp_error *error) {
    const struct gradcmp_piece *piece = run->piece;
    const struct gcmp_flat *flat = &run->flat;
    struct gradcmp_slab *slab = add_slab(work);
    uint64_t *dims = gcmp_arena_alloc(work->arena, flat->ndim, 2 * sizeof *dims);
    int64_t *stride = gcmp_arena_alloc(work->arena, flat->ndim, sizeof *stride);
    if (slab == NULL || dims == NULL || stride == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    int64_t step = piece->stride == NULL ? 1 : piece->stride[0];
    *slab = (struct gradcmp_slab){dims, dims + flat->ndim, stride, 0, 0, 0, NULL};
    slab->offset_elems = piece->stride == NULL ? 0 : piece->offset_elems;
    slab->source = piece->source;
    slab->copy = run->copy;
    slab->coords = run->coords;
    bool ok = gcmp_advance(&slab->offset_elems, at - piece->start[0], step);
    for (unsigned d = 0; d < flat->ndim && ok; d++) {
        dims[d] = run->box->start[d] + box->start[d];
        dims[flat->ndim + d] = box->extent[d];
        ok = gcmp_advance(&stride[d], flat->inner[d], step);
    }
    if (!ok) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "%s: strides of a piece leave the range of 64 bits",
                  run->bucket->stored->key);
    }
    return GRADCMP_OK;
}

/* Make the slabs of one box of a weight: a flat range of the bucket, in one piece or several. */
static enum gradcmp_status make_run(struct work *work, struct run *run, unsigned ndim,
                                    struct gradcmp_error *error) {
    run->flat.ndim = ndim;
    memcpy(run->flat.local, run->box->extent, ndim * sizeof *run->flat.local);
    uint64_t elems = gcmp_flat_init(&run->flat), from = 0;
    for (size_t i = gcmp_bucket_find(run->bucket, run->first); from < elems; i++) {
        run->piece = run->bucket->pieces[i]; /* pieces fill the bucket */
        uint64_t end = run->piece->start[0] + run->piece->extent[0] - run->first;
        uint64_t to = end < elems ? end : elems;
        while (from < to) {
            struct gcmp_box box;
            uint64_t count = gcmp_flat_box(&run->flat, from, to, box.start, box.extent);
            GCMP_TRY(make_slab(work, run, &box, run->first + from, error));
            from += count;
        }
    }
    run->first += elems;
    return GRADCMP_OK;
}

/* Say which rank a bucket belongs to; one object for all slabs of a bucket. */
static const struct gradcmp_coords *coords_of(struct work *work, const struct gcmp_placed *placed) {
    struct gradcmp_coords **coords = &work->coords[placed->bucket];
    if (*coords == NULL) {
        *coords = gcmp_arena_alloc(work->arena, 1, sizeof **coords);
        if (*coords != NULL) {
            **coords = (struct gradcmp_coords){.tp = (int32_t)placed->rank,
                                               .pp = (int32_t)placed->stage,
                                               .ep = -1,
                                               .dp = -1,
                                               .vp = -1,
                                               .etp = -1};
        }
    }
    return *coords;
}

/* Make the slabs of one placement: the boxes that its rank holds, one behind the other. */
static enum gradcmp_status make_placed(struct work *work, const struct gradcmp_parameter *weight,
                                       const struct gcmp_placed *placed, uint32_t copy,
                                       struct gradcmp_error *error) {
    const struct gcmp_cut_weight *cut = &work->fit.cuts[placed->parameter];
    struct run run = {.bucket = &work->set.buckets[placed->bucket], .first = placed->start};
    run.copy = copy;
    run.coords = coords_of(work, placed);
    if (run.coords == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (uint32_t part = 0; part < cut->parts; part++) {
        run.box = &weight->slabs[(size_t)part * cut->ranks + (cut->ranks > 1 ? placed->rank : 0)];
        GCMP_TRY(make_run(work, &run, weight->ndim, error));
    }
    return GRADCMP_OK;
}

/* Prove that each copy covers the parameter; slabs are sorted by copy. They cannot cover it more
 * than once, as the pieces of a bucket follow each other. */
static enum gradcmp_status prove_copies(struct work *work, struct gradcmp_parameter *out,
                                        struct gradcmp_error *error) {
    size_t first = 0;
    for (uint32_t copy = 0; copy < out->copy_count; copy++) {
        struct gradcmp_parameter one = *out;
        one.slabs = out->slabs + first;
        one.slab_count = 0;
        while (first + one.slab_count < out->slab_count && one.slabs[one.slab_count].copy == copy) {
            one.slab_count++;
        }
        GCMP_TRY(gcmp_cover(&one, &work->room, error));
        for (size_t i = 0; i < one.slab_count; i++) {
            one.slabs[i].copy = copy;
        }
        first += one.slab_count;
    }
    return GRADCMP_OK;
}

/* Replace a weight's slabs by those of its placements. */
static enum gradcmp_status make_parameter(struct work *work, struct gradcmp_parameter *out,
                                          const struct gcmp_placed *placed, size_t count,
                                          struct gradcmp_error *error) {
    work->made_count = 0;
    if (out->elem_count > 0 && count == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "%s: in none of the buckets", out->name);
    }
    uint32_t ranks = count == 0 ? 1 : work->fit.cuts[placed->parameter].ranks;
    for (size_t i = 0; i < count; i++) {
        GCMP_TRY(make_placed(work, out, &placed[i], (uint32_t)(i / ranks), error));
    }
    out->slabs = gcmp_arena_alloc(work->arena, work->made_count, sizeof *out->slabs);
    if (out->slabs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (work->made_count > 0) {
        memcpy(out->slabs, work->made, work->made_count * sizeof *out->slabs);
        out->dtype = work->set.buckets[placed->bucket].stored->dtype;
    }
    out->slab_count = work->made_count;
    out->copy_count = count == 0 ? 1 : (uint32_t)((count + ranks - 1) / ranks);
    out->replicated = out->copy_count > 1;
    return prove_copies(work, out, error);
}

/* Move what the buckets leave out behind what they hold. */
static enum gradcmp_status set_apart(const struct work *work, struct gradcmp_model *model,
                                     struct gradcmp_error *error) {
    struct gradcmp_parameter *sorted = calloc(model->count + 1, sizeof *sorted);
    size_t held = 0, count = model->count;
    if (sorted == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned left_out = 0; left_out < 2; left_out++) {
        for (size_t i = 0; i < count; i++) {
            if (work->fit.left_out[i] == (left_out != 0)) {
                sorted[held++] = model->parameters[i];
            }
        }
        model->count = left_out == 0 ? held : model->count;
    }
    for (size_t i = 0; i < count; i++) {
        model->parameters[i] = sorted[i];
    }
    model->frozen = count - model->count;
    free(sorted);
    return GRADCMP_OK;
}

/* Make all parameters that the buckets hold. */
static enum gradcmp_status make_parameters(struct work *work, struct gradcmp_model *model,
                                           struct gradcmp_error *error) {
    size_t at = 0;
    for (size_t i = 0; i < model->count; i++) {
        size_t first = at;
        while (at < work->fit.placed_count && work->fit.placed[at].parameter == i) {
            at++;
        }
        if (at == first && work->fit.left_out[i]) {
            continue;
        }
        model->parameters[i].state = model->state;
        const struct gcmp_placed *own = at == first ? NULL : &work->fit.placed[first];
        GCMP_TRY(make_parameter(work, &model->parameters[i], own, at - first, error));
        work->fit.left_out[i] = false;
    }
    return set_apart(work, model, error);
}

/* True for a parameter that the model has under a name of its own as well, in one shape. */
static bool is_named_twice(const struct gradcmp_model *model,
                           const struct gradcmp_parameter *parameter) {
    const char *own = gcmp_name_of_own(parameter->name);
    const struct gradcmp_parameter *other = own == NULL ? NULL : gcmp_model_find(model, own);
    return other != NULL &&
           gcmp_dims_equal(parameter->ndim, parameter->shape, other->ndim, other->shape);
}

/* Leave of the model what buckets can hold, each parameter once. */
static enum gradcmp_status keep_parameters(struct gradcmp_model *model,
                                           struct gradcmp_error *error) {
    bool *is_left = calloc(model->count + 1, sizeof *is_left);
    size_t kept = 0;
    if (is_left == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < model->count; i++) {
        is_left[i] = !gcmp_name_is_buffer(model->parameters[i].name) &&
                     !is_named_twice(model, &model->parameters[i]);
    }
    for (size_t i = 0; i < model->count; i++) {
        if (is_left[i]) {
            model->parameters[kept++] = model->parameters[i];
        }
    }
    model->count = kept;
    free(is_left);
    return GRADCMP_OK;
}

/* Read the buckets of a state, and leave of the model what they can hold: nothing without buckets.
 */
static enum gradcmp_status start(struct work *work, const struct gradcmp_catalogue *catalogue,
                                 const char *state, struct gradcmp_model *model,
                                 struct gradcmp_error *error) {
    GCMP_TRY(keep_parameters(model, error));
    GCMP_TRY(gcmp_bucket_set_read(catalogue, state, &work->set, error));
    if (work->set.bucket_count == 0) {
        model->count = 0;
        return GRADCMP_OK;
    }
    return gcmp_fit_start(catalogue, model, &work->set, &work->fit, error);
}

static enum gradcmp_status rebuild(struct work *work, const struct gradcmp_catalogue *catalogue,
                                   const struct gcmp_unshard_options *options,
                                   struct gradcmp_model *model, struct gradcmp_error *error) {
    GCMP_TRY(start(work, catalogue, model->state, model, error));
    if (work->set.bucket_count == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_layout_find(&work->fit, options == NULL ? 0 : options->bucket_layout, error));
    work->coords = calloc(work->set.bucket_count, sizeof *work->coords);
    if (work->coords == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return make_parameters(work, model, error);
}

static void free_work(struct work *work) {
    gcmp_bucket_set_free(&work->set);
    gcmp_fit_free(&work->fit);
    gcmp_cover_room_free(&work->room);
    free(work->made);
    free(work->coords);
}

enum gradcmp_status gcmp_unshard_bucket_layouts(const struct gradcmp_catalogue *catalogue,
                                                const char *state,
                                                const struct gcmp_unshard_options *options,
                                                struct gcmp_bucket_layouts *out,
                                                struct gradcmp_error *error) {
    struct gradcmp_model model;
    *out = (struct gcmp_bucket_layouts){.count = 0};
    GCMP_TRY(gcmp_unshard(catalogue, "param", options, &model, error));
    struct work work = {.arena = model.arena};
    enum gradcmp_status status = start(&work, catalogue, state, &model, error);
    if (status == GRADCMP_OK && work.set.bucket_count > 0) {
        status = gcmp_layout_list(&work.fit, out, error);
    }
    free_work(&work);
    gcmp_model_free(&model);
    return status;
}

enum gradcmp_status gcmp_unshard_buckets(const struct gradcmp_catalogue *catalogue,
                                         const char *state,
                                         const struct gcmp_unshard_options *options,
                                         struct gradcmp_model *model, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_unshard(catalogue, "param", options, model, error));
    struct work work = {.arena = model->arena};
    enum gradcmp_status status = GRADCMP_ERROR_MEMORY;
    model->state = gcmp_arena_dup(model->arena, state);
    if (model->state != NULL) {
        status = rebuild(&work, catalogue, options, model, error);
    } else {
        gcmp_error_set(error, status, NULL, GRADCMP_NO_OFFSET, "out of memory");
    }
    free_work(&work);
    if (status != GRADCMP_OK) {
        gcmp_model_free(model);
    }
    return status;
}
