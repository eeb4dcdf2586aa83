/* Samples of masters against weights.
 *
 * Each parameter of a buffer begins where the one before it ends, so a wrong order or a wrong gap
 * shows at the first elements of a rank's part: a sample is WINDOW_ELEMS from there, and those at
 * the parameter's end. Of more than MAX_WINDOWS, a fixed choice is read. Values that are merely
 * near (weights that were quantized) do not contradict; a wrong place gives values that have
 * nothing to do with each other, and at least two parameters of them: of a single one the values
 * are damaged, not the layout. */
#include "bucket_proof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "engine/engine.h"

enum { WINDOW_ELEMS = 256, MAX_WINDOWS = 8192 };

/* Rounding to 2 bits of mantissa leaves an eighth; unlike values leave about 1.4. */
static const double FAR = 0.5;

/* What the samples of one layout say. */
struct evidence {
    size_t windows, exact, parameters, far;
    const char *first_far; /* a parameter */
};

struct samples {
    const struct gradcmp_checkpoint *checkpoint;
    const struct gradcmp_model *weights, *masters;
    struct gcmp_job *jobs;
    struct gcmp_side *others;
    struct gradcmp_tally *tallies;
    size_t count, capacity;
    uint64_t seen, total; /* windows there are */
};

bool gcmp_is_flat_state(const struct gradcmp_catalogue *catalogue, const char *state,
                        enum gradcmp_layout layout) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->layout == (uint8_t)layout && stored->state != NULL &&
            strcmp(stored->state, state) == 0) {
            return true;
        }
    }
    return false;
}

/* Row-major index of a slab's first element. */
static uint64_t first_elem(const struct gradcmp_parameter *parameter,
                           const struct gradcmp_slab *slab) {
    uint64_t index = 0;
    for (unsigned d = 0; d < parameter->ndim; d++) {
        index = index * parameter->shape[d] + slab->start[d];
    }
    return index;
}

/* Whether the next window is of the choice: all, or pseudo-random ones. */
static bool is_chosen(struct samples *samples) {
    uint64_t random = ++samples->seen * UINT64_C(0x9e3779b97f4a7c15);
    return samples->total <= MAX_WINDOWS ||
           random / (UINT64_MAX / samples->total) < (uint64_t)MAX_WINDOWS;
}

static enum gradcmp_status add_window(struct samples *samples,
                                      const struct gradcmp_parameter *weight,
                                      const struct gradcmp_parameter *master, uint64_t first,
                                      uint32_t copy, struct gradcmp_error *error) {
    if (!is_chosen(samples)) {
        return GRADCMP_OK;
    }
    if (samples->count == samples->capacity) {
        size_t more = samples->capacity == 0 ? 256 : 2 * samples->capacity;
        struct gcmp_job *jobs = reallocarray(samples->jobs, more, sizeof *jobs);
        samples->jobs = jobs == NULL ? samples->jobs : jobs;
        struct gcmp_side *others = reallocarray(samples->others, more, sizeof *others);
        samples->others = others == NULL ? samples->others : others;
        if (jobs == NULL || others == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        samples->capacity = more;
    }
    const struct gradcmp_catalogue *catalogue = &samples->checkpoint->catalogue;
    uint64_t left = master->elem_count - first;
    bool has_copy = weight->copy_count == master->copy_count;
    samples->jobs[samples->count] =
        (struct gcmp_job){.a = {.catalogue = catalogue,
                                .parameter = weight,
                                .first_elem = first,
                                .copy = has_copy ? copy : 0},
                          .b_count = 1,
                          .elems = left < WINDOW_ELEMS ? left : WINDOW_ELEMS};
    samples->others[samples->count++] = (struct gcmp_side){
        .catalogue = catalogue, .parameter = master, .first_elem = first, .copy = copy};
    return GRADCMP_OK;
}

/* The weight that a master belongs to; NULL where they cannot be compared. */
static const struct gradcmp_parameter *weight_of(const struct samples *samples,
                                                 const struct gradcmp_parameter *master) {
    const struct gradcmp_parameter *weight = gcmp_model_find(samples->weights, master->name);
    bool fits = weight != NULL && weight->elem_count == master->elem_count &&
                master->elem_count > 0 && gcmp_dtype_is_float((enum gradcmp_dtype)weight->dtype) &&
                gcmp_dtype_is_float((enum gradcmp_dtype)master->dtype);
    return fits ? weight : NULL;
}

static enum gradcmp_status add_windows(struct samples *samples,
                                       const struct gradcmp_parameter *master,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter *weight = weight_of(samples, master);
    for (size_t i = 0; weight != NULL && i < master->slab_count; i++) {
        const struct gradcmp_slab *slab = &master->slabs[i];
        bool is_last = i + 1 == master->slab_count || slab[1].copy != slab->copy;
        GCMP_TRY(add_window(samples, weight, master, first_elem(master, slab), slab->copy, error));
        if (is_last && master->elem_count > WINDOW_ELEMS) {
            GCMP_TRY(add_window(samples, weight, master, master->elem_count - WINDOW_ELEMS,
                                slab->copy, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status make_jobs(struct samples *samples, struct gradcmp_error *error) {
    for (size_t i = 0; i < samples->masters->count; i++) {
        const struct gradcmp_parameter *master = &samples->masters->parameters[i];
        bool has_end = master->elem_count > WINDOW_ELEMS;
        samples->total += weight_of(samples, master) == NULL
                              ? 0
                              : master->slab_count + (has_end ? master->copy_count : 0);
    }
    for (size_t i = 0; i < samples->masters->count; i++) {
        GCMP_TRY(add_windows(samples, &samples->masters->parameters[i], error));
    }
    samples->tallies = calloc(samples->count + 1, sizeof *samples->tallies);
    if (samples->tallies == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < samples->count; i++) {
        samples->jobs[i].b = &samples->others[i];
        samples->jobs[i].tallies = &samples->tallies[i];
    }
    return GRADCMP_OK;
}

static bool is_far(const struct gradcmp_tally *tally) {
    return sqrt(tally->d2) > FAR * sqrt(fmax(tally->a2, tally->b2));
}

static void weigh(const struct samples *samples, struct evidence *evidence) {
    const struct gradcmp_parameter *last = NULL;
    bool last_is_far = false;
    *evidence = (struct evidence){.windows = samples->count};
    for (size_t i = 0; i < samples->count; i++) {
        const struct gradcmp_tally *tally = &samples->tallies[i];
        if (samples->others[i].parameter != last) {
            last = samples->others[i].parameter;
            last_is_far = false;
            evidence->parameters++;
        }
        evidence->exact += tally->equal_bits == tally->elems;
        if (is_far(tally) && !last_is_far) {
            last_is_far = true;
            evidence->far++;
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): samples have a parameter */
            evidence->first_far = evidence->far == 1 ? last->name : evidence->first_far;
        }
    }
}

static enum gradcmp_status compare_samples(const struct gradcmp_checkpoint *checkpoint,
                                           const struct gradcmp_model *weights,
                                           const struct gradcmp_model *masters,
                                           struct evidence *evidence, struct gradcmp_error *error) {
    struct samples samples = {.checkpoint = checkpoint, .weights = weights, .masters = masters};
    struct gcmp_engine_options engine = {.verify =
                                             -1}; /* what is read whole later is checked then */
    struct gradcmp_error side_error = {0};
    enum gradcmp_status status = make_jobs(&samples, error);
    if (status == GRADCMP_OK && samples.count > 0) {
        status = gcmp_engine_run(samples.jobs, samples.count, &engine, &side_error, 1, error);
    }
    if (status == GRADCMP_OK) {
        weigh(&samples, evidence);
        evidence->first_far = evidence->first_far == NULL /* a name that outlives the masters */
                                  ? NULL
                                  : gcmp_model_find(weights, evidence->first_far)->name;
    }
    free(samples.jobs);
    free(samples.others);
    free(samples.tallies);
    return status;
}

static bool is_contradicted(const struct evidence *evidence) {
    return evidence->far > 1;
}

static enum gradcmp_status refuse(const struct gradcmp_checkpoint *checkpoint,
                                  const struct evidence *evidence, struct gradcmp_error *error) {
    GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
                 "the layout of the flat buffers (%s) is not proved: float32 masters in them have "
                 "nothing to do with the weights at %zu of %zu parameters, such as %s; save with "
                 "--dist-ckpt-optim-fully-reshardable",
                 checkpoint->catalogue.layout_name == NULL ? "buckets"
                                                           : checkpoint->catalogue.layout_name,
                 evidence->far, evidence->parameters, evidence->first_far);
}

static enum gradcmp_status tell(struct gradcmp_checkpoint *checkpoint,
                                const struct evidence *evidence, struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    if (evidence->far > 0) {
        GCMP_TRY(gcmp_catalogue_note(catalogue, error,
                                     "the float32 master of %s has nothing to do with its weight",
                                     evidence->first_far));
    }
    return evidence->windows == 0
               ? GRADCMP_OK
               : gcmp_catalogue_note(
                     catalogue, error,
                     "the layout of the flat buffers was checked: %zu of %zu samples of up to %d "
                     "float32 masters, at the edges of ranks' parts of %zu parameters, round to "
                     "the weights",
                     evidence->exact, evidence->windows, WINDOW_ELEMS, evidence->parameters);
}

/* Masters as one layout has them. */
static enum gradcmp_status look_at_layout(struct gradcmp_checkpoint *checkpoint, uint32_t number,
                                          const struct gradcmp_model *weights,
                                          struct evidence *evidence, struct gradcmp_error *error) {
    struct gcmp_unshard_options options = {.layers = checkpoint->layers_option,
                                           .bucket_layout = number};
    struct gradcmp_model masters;
    GCMP_TRY(gcmp_unshard_buckets(&checkpoint->catalogue, "fp32_param", &options, &masters, error));
    enum gradcmp_status status = compare_samples(checkpoint, weights, &masters, evidence, error);
    gcmp_model_free(&masters);
    return status;
}

/* Of several layouts that fit, the masters choose; those that the arguments do not deny go first.
 */
static enum gradcmp_status prove_shared(struct gradcmp_checkpoint *checkpoint,
                                        const struct gradcmp_model *weights,
                                        struct gradcmp_error *error) {
    struct gcmp_unshard_options options = {.layers = checkpoint->layers_option};
    struct gcmp_bucket_layouts layouts;
    struct evidence best = {0}, evidence;
    size_t agreeing = 0;
    GCMP_TRY(gcmp_unshard_bucket_layouts(&checkpoint->catalogue, "fp32_param", &options, &layouts,
                                         error));
    for (size_t i = 0; i < layouts.count; i++) {
        bool is_last_resort = i >= layouts.allowed && agreeing > 0;
        if (is_last_resort) {
            break;
        }
        GCMP_TRY(look_at_layout(checkpoint, layouts.numbers[i], weights, &evidence, error));
        bool agrees = !is_contradicted(&evidence);
        if (agrees && agreeing++ == 0) {
            checkpoint->bucket_layout = layouts.numbers[i];
        }
        best = i == 0 || (agrees && agreeing == 1) ? evidence : best;
    }
    if (agreeing > 1) {
        checkpoint->bucket_layout = 0; /* the sizes do not tell them apart either: refused there */
        return GRADCMP_OK;
    }
    return layouts.count == 0 ? GRADCMP_OK
           : agreeing == 0    ? refuse(checkpoint, &best, error)
                              : tell(checkpoint, &best, error);
}

static enum gradcmp_status prove_local(struct gradcmp_checkpoint *checkpoint,
                                       const struct gradcmp_model *weights,
                                       const struct gradcmp_model *masters,
                                       struct gradcmp_error *error) {
    struct evidence evidence;
    GCMP_TRY(compare_samples(checkpoint, weights, masters, &evidence, error));
    return is_contradicted(&evidence) ? refuse(checkpoint, &evidence, error)
                                      : tell(checkpoint, &evidence, error);
}

/* Unshard the weights under their own names, whatever --map makes of these, and go on with them;
 * `masters` NULL: in buckets. */
static enum gradcmp_status prove_with_weights(struct gradcmp_checkpoint *checkpoint,
                                              const struct gradcmp_model *masters,
                                              struct gradcmp_error *error) {
    struct gcmp_unshard_options options = {.layers = checkpoint->layers_option};
    struct gradcmp_model weights;
    GCMP_TRY(gcmp_unshard(&checkpoint->catalogue, "param", &options, &weights, error));
    enum gradcmp_status status = GRADCMP_OK;
    if (weights.count > 0) {
        status = masters == NULL ? prove_shared(checkpoint, &weights, error)
                                 : prove_local(checkpoint, &weights, masters, error);
    }
    gcmp_model_free(&weights);
    return status;
}

enum gradcmp_status gcmp_prove_buckets(struct gradcmp_checkpoint *checkpoint,
                                       struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    struct gcmp_unshard_options options = {.layers = checkpoint->layers_option};
    struct gradcmp_model masters;
    if (gcmp_is_flat_state(catalogue, "fp32_param", GRADCMP_LAYOUT_BUCKET)) {
        return prove_with_weights(checkpoint, NULL, error);
    }
    if (!gcmp_is_flat_state(catalogue, "fp32_param", GRADCMP_LAYOUT_LOCAL_BUFFER)) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_unshard(catalogue, "fp32_param", &options, &masters, error));
    enum gradcmp_status status = prove_with_weights(checkpoint, &masters, error);
    gcmp_model_free(&masters);
    return status;
}
