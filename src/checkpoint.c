/* Opening checkpoints, and what the public interface tells of one. */
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/locate.h"
#include "base/search.h"
#include "base/text.h"
#include "betas.h"
#include "bucket_proof.h"
#include "engine/engine.h"
#include "sibling.h"
#include "unclaimed.h"
#include "weights_type.h"

enum { SURE = 2 }; /* the most that a probe says */

static const struct gradcmp_format *detect_format(struct gcmp_dir *dir) {
    const struct gradcmp_format *best = NULL;
    int best_strength = 0;
    for (const struct gradcmp_format *const *format = gcmp_formats();
         *format != NULL && best_strength < SURE; format++) {
        int strength = (*format)->probe(dir);
        if (strength > best_strength) {
            best = *format;
            best_strength = strength;
        }
    }
    return best;
}

static enum gradcmp_status open_catalogue(struct gradcmp_checkpoint *checkpoint,
                                          struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    catalogue->arena = &checkpoint->arena;
    catalogue->dir = checkpoint->dir;
    catalogue->iteration = -1;
    catalogue->format = detect_format(checkpoint->dir);
    GCMP_TRY(gcmp_dir_check(checkpoint->dir, error));
    if (catalogue->format == NULL) {
        GCMP_FAIL_AT(
            error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
            "not a checkpoint in a known format (see gradcmp --help for those that are read)");
    }
    enum gradcmp_status status = catalogue->format->open(catalogue, error);
    if (status != GRADCMP_ERROR_MEMORY) {
        GCMP_TRY(
            gcmp_dir_check(checkpoint->dir, error)); /* what is missing was not seen, perhaps */
    }
    GCMP_TRY(status);
    GCMP_TRY(gcmp_note_betas(catalogue, error));
    GCMP_TRY(gcmp_note_unclaimed(catalogue, error));
    GCMP_TRY(gcmp_unshard_states(catalogue, &checkpoint->arena, &checkpoint->states,
                                 &checkpoint->state_count, error));
    checkpoint->models =
        gcmp_arena_alloc(&checkpoint->arena, checkpoint->state_count, sizeof *checkpoint->models);
    if (checkpoint->models == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Refuse a checkpoint that says another iteration than the one asked for. What an optimizer counted
 * may be less, and what is named after its epoch was chosen by that. */
static enum gradcmp_status check_iteration(const struct gradcmp_checkpoint *checkpoint,
                                           int64_t wanted, struct gradcmp_error *error) {
    int64_t iteration = checkpoint->catalogue.iteration;
    if (wanted < 0 || iteration < 0 || iteration == wanted ||
        checkpoint->catalogue.iteration_is_count || gcmp_epoch_of(checkpoint->path) == wanted) {
        return GRADCMP_OK;
    }
    GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, checkpoint->path, GRADCMP_NO_OFFSET,
                 "says that it is of iteration %lld, and --iteration asks for %lld",
                 (long long)iteration, (long long)wanted);
}

enum gradcmp_status gcmp_checkpoint_open_alone(const char *path,
                                               const struct gradcmp_options *options,
                                               struct gradcmp_checkpoint **out,
                                               struct gradcmp_error *error) {
    *out = NULL;
    struct gradcmp_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (checkpoint == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status;
    int64_t iteration = options == NULL ? -1 : options->iteration;
    GCMP_TRY_OUT(gcmp_locate(path, iteration, &checkpoint->path, error));
    GCMP_TRY_OUT(gcmp_dir_open(checkpoint->path, &checkpoint->dir, error));
    checkpoint->layers_option = options == NULL ? 0 : options->layers;
    GCMP_TRY_OUT(open_catalogue(checkpoint, error));
    GCMP_TRY_OUT(check_iteration(checkpoint, iteration, error));
    *out = checkpoint;
    return GRADCMP_OK;
out:
    gcmp_error_add_path(error, checkpoint->path != NULL ? checkpoint->path : path);
    gradcmp_checkpoint_free(checkpoint);
    return status;
}

enum gradcmp_status gcmp_checkpoint_open(const char *path, const struct gradcmp_options *options,
                                         struct gradcmp_checkpoint **out,
                                         struct gradcmp_error *error) {
    GCMP_TRY(gcmp_checkpoint_open_alone(path, options, out, error));
    if ((*out)->catalogue.is_dump) {
        gcmp_sibling_look(*out);
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gcmp_sibling_note(*out, path, error);
    if (status != GRADCMP_OK) {
        gradcmp_checkpoint_free(*out);
        *out = NULL;
    }
    return status;
}

struct gradcmp_options gcmp_options_complete(const struct gradcmp_options *given) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    if (given != NULL && given->struct_size >= sizeof given->struct_size) {
        memcpy(&options, given,
               given->struct_size < sizeof options ? given->struct_size : sizeof options);
        options.struct_size = sizeof options;
    }
    return options;
}

void gcmp_checkpoint_set_mapping(struct gradcmp_checkpoint *checkpoint,
                                 struct gcmp_mapping *mapping, enum gcmp_mapping_side side) {
    checkpoint->mapping = mapping;
    checkpoint->side = side;
    if (mapping != NULL && checkpoint->layers_option == 0) {
        checkpoint->layers_option = gcmp_mapping_layers(mapping);
    }
}

enum gradcmp_status gcmp_checkpoint_take_map(struct gradcmp_checkpoint *checkpoint,
                                             const struct gradcmp_options *options,
                                             struct gradcmp_error *error) {
    static const enum gcmp_mapping_side sides[] = {GCMP_MAPPING_ALONE, GCMP_MAPPING_BASELINE,
                                                   GCMP_MAPPING_CANDIDATE};
    struct gradcmp_options complete = gcmp_options_complete(options);
    struct gcmp_mapping *mapping;
    if (complete.map_side < 0 || complete.map_side > 2) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "map_side is %d, expected 0, 1 or 2",
                  complete.map_side);
    }
    if (complete.map != NULL) {
        GCMP_TRY(gcmp_mapping_read(complete.map, &mapping, error));
        gcmp_checkpoint_set_mapping(checkpoint, mapping, sides[complete.map_side]);
        checkpoint->owns_mapping = true;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_checkpoint_open(const char *path, const struct gradcmp_options *options,
                                            struct gradcmp_checkpoint **out,
                                            struct gradcmp_error *error) {
    GCMP_TRY(gcmp_checkpoint_open(path, options, out, error));
    enum gradcmp_status status = gcmp_checkpoint_take_map(*out, options, error);
    if (status == GRADCMP_OK) {
        status = gcmp_checkpoint_load_all(*out, error);
    }
    if (status != GRADCMP_OK) {
        gradcmp_checkpoint_free(*out);
        *out = NULL;
    }
    return status;
}

void gradcmp_checkpoint_free(struct gradcmp_checkpoint *checkpoint) {
    if (checkpoint == NULL) {
        return;
    }
    for (size_t i = 0; i < checkpoint->state_count && checkpoint->models != NULL; i++) {
        if (checkpoint->models[i].loaded) {
            gcmp_model_free(&checkpoint->models[i].model);
        }
    }
    if (checkpoint->owns_mapping) {
        gcmp_mapping_free(checkpoint->mapping);
    }
    free(checkpoint->listed);
    gcmp_catalogue_free(&checkpoint->catalogue);
    gcmp_arena_free(&checkpoint->arena);
    gcmp_dir_close(checkpoint->dir);
    free(checkpoint->path);
    free(checkpoint);
}

static size_t find_state(const struct gradcmp_checkpoint *checkpoint, const char *state) {
    size_t i = 0;
    while (i < checkpoint->state_count && strcmp(checkpoint->states[i], state) != 0) {
        i++;
    }
    return i;
}

bool gcmp_checkpoint_has_state(const struct gradcmp_checkpoint *checkpoint, const char *state) {
    return find_state(checkpoint, state) < checkpoint->state_count;
}

/* True for layouts whose optimizer lies in flat buffers that are not read. */
static bool is_unread_layout(const struct gradcmp_catalogue *catalogue) {
    return catalogue->layout_name != NULL &&
           (strcmp(catalogue->layout_name, "fully_sharded_bucket_space") == 0 ||
            strcmp(catalogue->layout_name, "dp_reshardable") == 0);
}

/* Another state that tells of the gradients, where that of Adam is not there; or how to save a
 * checkpoint that has no tensors of its own. */
static const char *way_out(const struct gradcmp_checkpoint *checkpoint, const char *state) {
    if (checkpoint->state_count == 0 && checkpoint->catalogue.unclaimed_count > 0) {
        return "; the tensors there are no weights and no states that are read (gradcmp bits "
               "compares them)";
    }
    if (checkpoint->state_count == 0 &&
        strcmp(checkpoint->catalogue.format->name, "torch_dist") == 0) {
        return "; tensors in objects are not compared: save with a planner that flattens "
               "(flatten_state_dict=True)";
    }
    if (strcmp(state, "exp_avg") != 0) {
        return "";
    }
    return gcmp_checkpoint_has_state(checkpoint, "momentum_buffer")
               ? " (--state momentum_buffer compares that of SGD and Muon)"
           : gcmp_checkpoint_has_state(checkpoint, "exp_avg_sq")
               ? " (--state exp_avg_sq compares magnitudes)"
               : " (Adam and AdamW keep it, 8-bit and factored optimizers do not; save the "
                 "optimizer beside the weights)";
}

static enum gradcmp_status refuse_state(const struct gradcmp_checkpoint *checkpoint,
                                        const char *state, struct gradcmp_error *error) {
    if (is_unread_layout(&checkpoint->catalogue)) {
        GCMP_FAIL_AT(
            error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
            "state \"%s\" is stored in bucket space (%s), inside objects that are not looked into; "
            "save with --dist-ckpt-optim-fully-reshardable",
            state, checkpoint->catalogue.layout_name);
    }
    struct gcmp_text states = GCMP_TEXT_INIT;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        gcmp_text_addf(&states, "%s%s", i == 0 ? "" : ", ", checkpoint->states[i]);
    }
    if (states.failed) {
        gcmp_text_free(&states);
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_error_set(
        error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
        "no tensor of state \"%s\"; states there are: %s%s", state,
        states.length_bytes == 0 ? "none" : states.bytes, way_out(checkpoint, state));
    gcmp_text_free(&states);
    return status;
}

/* Say which weights flat buffers have no state of; that of the next state would say the same. */
static enum gradcmp_status note_frozen(struct gradcmp_checkpoint *checkpoint,
                                       const struct gradcmp_model *model,
                                       struct gradcmp_error *error) {
    if (model->frozen == 0 || checkpoint->frozen_told) {
        return GRADCMP_OK;
    }
    checkpoint->frozen_told = true;
    return gcmp_catalogue_note(&checkpoint->catalogue, error,
                               "%zu weight%s, such as %.160s: the sizes of the flat buffers show "
                               "that these hold no state of %s: frozen",
                               model->frozen, model->frozen == 1 ? "" : "s",
                               model->parameters[model->count].name,
                               model->frozen == 1 ? "it" : "them");
}

/* Make the parameters of a state, and put them through the rules; before the first ones in flat
 * buffers, prove how these are laid out. */
static enum gradcmp_status make_model(struct gradcmp_checkpoint *checkpoint, const char *state,
                                      struct gradcmp_model *model, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    bool in_buckets = gcmp_is_flat_state(catalogue, state, GRADCMP_LAYOUT_BUCKET);
    bool is_flat = in_buckets || gcmp_is_flat_state(catalogue, state, GRADCMP_LAYOUT_LOCAL_BUFFER);
    if (is_flat && !checkpoint->buckets_proved) {
        GCMP_TRY(gcmp_prove_buckets(checkpoint, error));
        checkpoint->buckets_proved = true;
    }
    struct gcmp_unshard_options options = {.layers = checkpoint->layers_option,
                                           .bucket_layout = checkpoint->bucket_layout};
    GCMP_TRY(in_buckets ? gcmp_unshard_buckets(catalogue, state, &options, model, error)
                        : gcmp_unshard(catalogue, state, &options, model, error));
    enum gradcmp_status status = note_frozen(checkpoint, model, error);
    if (status == GRADCMP_OK && checkpoint->mapping != NULL) {
        status = gcmp_mapping_apply(checkpoint->mapping, catalogue, checkpoint->side, model, error);
    }
    if (status != GRADCMP_OK) {
        gcmp_model_free(model);
    }
    return status;
}

enum gradcmp_status gcmp_checkpoint_model(struct gradcmp_checkpoint *checkpoint, const char *state,
                                          const struct gradcmp_model **out,
                                          struct gradcmp_error *error) {
    size_t index = find_state(checkpoint, state);
    if (index == checkpoint->state_count) {
        return refuse_state(checkpoint, state, error);
    }
    struct gcmp_state_model *entry = &checkpoint->models[index];
    if (!entry->loaded) {
        enum gradcmp_status status =
            make_model(checkpoint, checkpoint->states[index], &entry->model, error);
        if (status != GRADCMP_OK) {
            gcmp_error_add_path(error, checkpoint->path);
            return status;
        }
        entry->loaded = true;
    }
    *out = &entry->model;
    return GRADCMP_OK;
}

static int compare_listed(const void *left, const void *right) {
    const struct gradcmp_parameter *a = *(const struct gradcmp_parameter *const *)left;
    const struct gradcmp_parameter *b = *(const struct gradcmp_parameter *const *)right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : strcmp(a->state, b->state);
}

enum gradcmp_status gcmp_checkpoint_load_all(struct gradcmp_checkpoint *checkpoint,
                                             struct gradcmp_error *error) {
    if (checkpoint->listed != NULL) {
        return GRADCMP_OK;
    }
    size_t total = 0;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model;
        GCMP_TRY(gcmp_checkpoint_model(checkpoint, checkpoint->states[i], &model, error));
        total += model->count;
    }
    if (checkpoint->owns_mapping) {
        GCMP_TRY(gcmp_mapping_check_used(checkpoint->mapping, checkpoint->side, error));
    }
    const struct gradcmp_parameter **listed = calloc(total + 1, sizeof *listed);
    if (listed == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t count = 0;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model = &checkpoint->models[i].model;
        for (size_t j = 0; j < model->count; j++) {
            listed[count++] = &model->parameters[j];
        }
    }
    qsort(listed, count, sizeof *listed, compare_listed);
    checkpoint->listed = listed;
    checkpoint->listed_count = count;
    return GRADCMP_OK;
}

/* The coarsest type of the state that is compared. */
static enum gradcmp_dtype state_dtype(const struct gradcmp_model *model) {
    enum gradcmp_dtype coarsest = GRADCMP_DTYPE_NONE;
    for (size_t i = 0; i < model->count; i++) {
        enum gradcmp_dtype dtype = (enum gradcmp_dtype)model->parameters[i].dtype;
        if (gcmp_dtype_is_float(dtype) &&
            (coarsest == GRADCMP_DTYPE_NONE || gcmp_dtype_eps(dtype) > gcmp_dtype_eps(coarsest))) {
            coarsest = dtype;
        }
    }
    return coarsest;
}

/* The compute type where nothing states it. */
static void assume_precision(bool is_dump, enum gradcmp_dtype state, enum gradcmp_dtype *dtype,
                             enum gradcmp_dtype_source *source) {
    bool is_narrow = gcmp_dtype_eps(state) > gcmp_dtype_eps(GRADCMP_DTYPE_FLOAT32);
    *dtype = state == GRADCMP_DTYPE_NONE ? GRADCMP_DTYPE_FLOAT32 : state;
    *source = is_narrow ? GRADCMP_DTYPE_FROM_STATE : GRADCMP_DTYPE_ASSUMED_STATE;
    if (is_dump && !is_narrow) {
        *dtype = GRADCMP_DTYPE_BFLOAT16;
        *source = GRADCMP_DTYPE_ASSUMED_DUMP;
    }
}

void gcmp_checkpoint_precision(const struct gradcmp_checkpoint *checkpoint,
                               const struct gradcmp_model *model, enum gradcmp_dtype option,
                               enum gradcmp_dtype *dtype, enum gradcmp_dtype_source *source) {
    enum gradcmp_dtype weights = gcmp_weights_dtype(&checkpoint->catalogue);
    if (option != GRADCMP_DTYPE_NONE) {
        *dtype = option;
        *source = GRADCMP_DTYPE_FROM_OPTION;
    } else if (checkpoint->catalogue.compute != GRADCMP_DTYPE_NONE) {
        *dtype = checkpoint->catalogue.compute;
        *source = GRADCMP_DTYPE_FROM_ARGS;
    } else if (weights != GRADCMP_DTYPE_NONE) {
        *dtype = weights;
        *source = GRADCMP_DTYPE_FROM_WEIGHTS;
    } else if (checkpoint->catalogue.sibling_compute != GRADCMP_DTYPE_NONE) {
        *dtype = checkpoint->catalogue.sibling_compute;
        *source = GRADCMP_DTYPE_FROM_SIBLING;
    } else {
        assume_precision(checkpoint->catalogue.is_dump, state_dtype(model), dtype, source);
    }
}

size_t gradcmp_checkpoint_tensor_count(const struct gradcmp_checkpoint *checkpoint) {
    return checkpoint->listed_count;
}

void gradcmp_checkpoint_tensor(const struct gradcmp_checkpoint *checkpoint, size_t index,
                               struct gradcmp_tensor_info *out) {
    memset(out, 0, sizeof *out);
    if (index >= checkpoint->listed_count) {
        return;
    }
    const struct gradcmp_parameter *parameter = checkpoint->listed[index];
    out->name = parameter->name;
    out->state = parameter->state;
    out->layer = parameter->layer;
    out->dtype = (enum gradcmp_dtype)parameter->dtype;
    out->ndim = parameter->ndim;
    out->shape = parameter->shape;
    out->pieces = parameter->slab_count;
    out->copies = parameter->copy_count;
}

/* Where gradcmp_checkpoint_read collects the elements. */
struct read_target {
    unsigned char *bytes;
    size_t length_bytes, filled_bytes;
};

static int collect(void *user, const void *elems, size_t bytes) {
    struct read_target *target = user;
    if (bytes > target->length_bytes - target->filled_bytes) {
        return 1;
    }
    memcpy(target->bytes + target->filled_bytes, elems, bytes);
    target->filled_bytes += bytes;
    return 0;
}

enum gradcmp_status gradcmp_checkpoint_read(struct gradcmp_checkpoint *checkpoint, size_t index,
                                            void *buffer, size_t length_bytes,
                                            struct gradcmp_error *error) {
    if (index >= checkpoint->listed_count) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "tensor %zu of %zu", index, checkpoint->listed_count);
    }
    const struct gradcmp_parameter *parameter = checkpoint->listed[index];
    uint64_t expected = 0;
    if (!gcmp_mul_u64(parameter->elem_count, gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype),
                      &expected) ||
        expected != length_bytes) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "buffer of %zu bytes for a tensor of %llu",
                  length_bytes, (unsigned long long)expected);
    }
    struct read_target target = {buffer, length_bytes, 0};
    struct gradcmp_tally tally;
    struct gcmp_job job = {.a = {.catalogue = &checkpoint->catalogue, .parameter = parameter},
                           .elems = parameter->elem_count,
                           .tallies = &tally,
                           .sink = collect,
                           .sink_user = &target};
    struct gradcmp_error side_error = {0};
    struct gcmp_engine_options engine = {.threads = 1};
    if (parameter->elem_count <= GRADCMP_BLOCK_ELEMS) {
        engine.buffer_bytes = 1; /* one block needs the least of buffers and no reading ahead */
    }
    enum gradcmp_status status = gcmp_engine_run(&job, 1, &engine, &side_error, 1, error);
    gcmp_error_add_path(error, checkpoint->path);
    return status;
}

bool gcmp_is_of_stages(const struct gradcmp_parameter *parameter) {
    const struct gradcmp_slab *first = parameter->slabs;
    return parameter->of_ranks && first->coords->pp >= 0 &&
           first->coords->pp != parameter->slabs[parameter->slab_count - 1].coords->pp;
}
