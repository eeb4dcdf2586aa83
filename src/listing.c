/* gradcmp_checkpoint_list: what is in a checkpoint, with figures of every tensor where asked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/sha2.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "checkpoint.h"
#include "engine/engine.h"
#include "kernels/convert.h"
#include "left_out.h"
#include "pairing.h"
#include "rescale.h"
#include "engine/little.h"
#include "report/ls.h"

enum { CONVERT_ELEMS = 4096 };

/* Takes the elements of one tensor in order: hashes them and remembers what is not finite. */
struct tensor_sink {
    struct sha256_ctx sha;
    enum gradcmp_dtype dtype;
    bool as_float32; /* hash the values as binary32 */
};

static int hash_bytes(void *user, const void *bytes, size_t count) {
    struct tensor_sink *sink = user;
    sha256_update(&sink->sha, count, bytes);
    return 0;
}

static int hash_elems(void *user, const void *elems, size_t bytes) {
    struct tensor_sink *sink = user;
    unsigned width = gcmp_dtype_bytes(sink->dtype);
    if (!sink->as_float32 || sink->dtype == GRADCMP_DTYPE_FLOAT32 ||
        !gcmp_dtype_is_float(sink->dtype)) {
        return gcmp_give_little(elems, bytes, sink->dtype, hash_bytes, sink);
    }
    float converted[CONVERT_ELEMS];
    const unsigned char *from = elems;
    for (size_t left = bytes / width; left > 0;) {
        size_t count = left < CONVERT_ELEMS ? left : CONVERT_ELEMS;
        gcmp_convert_float32(from, sink->dtype, count, converted);
        (void)gcmp_give_little(converted, count * sizeof converted[0], GRADCMP_DTYPE_FLOAT32,
                               hash_bytes, sink);
        from += count * width;
        left -= count;
    }
    return 0;
}

static void write_hex(struct sha256_ctx *sha, char out[65]) {
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = '\0';
}

/* What of the lists of a call is kept while it runs. */
struct listing {
    struct gradcmp_checkpoint *checkpoint;
    const struct gradcmp_options *options;
    const struct gradcmp_ls_options *ls;
    const struct gradcmp_parameter **chosen; /* those that are listed, sorted by name and state */
    size_t count;
    struct gcmp_ls_tensor *tensors;
    char left_out[GCMP_LEFT_OUT_BYTES]; /* what is told of tensors that no list has, or "" */
};

static struct gcmp_engine_options engine_options(const struct gradcmp_options *options) {
    struct gcmp_engine_options engine = {.threads = 1};
    if (options != NULL) {
        engine.verify = options->verify;
        engine.buffer_bytes = options->buffer_bytes;
        engine.progress = options->progress;
        engine.progress_user = options->progress_user;
    }
    return engine;
}

/* Read one side for its sums, and for its sink where it has one. */
static enum gradcmp_status tally_side(const struct listing *listing, struct gcmp_job job,
                                      struct gradcmp_tally *tally, struct gradcmp_error *error) {
    struct gcmp_engine_options engine = engine_options(listing->options);
    struct gradcmp_error side_error = {0};
    job.tallies = tally;
    return gcmp_engine_run(&job, 1, &engine, &side_error, 1, error);
}

/* Norms are told over all elements: NaN and infinities count. Where squares leave the range of
 * binary64 the values are read once more, scaled. */
static enum gradcmp_status take_norm(const struct listing *listing, struct gcmp_job job,
                                     const struct gradcmp_tally *tally,
                                     struct gcmp_ls_tensor *tensor, struct gradcmp_error *error) {
    uint8_t dtype = job.a.parameter->dtype;
    struct gradcmp_tally again = *tally;
    tensor->has_stats = true;
    tensor->norm = (double)NAN;
    tensor->max_abs = (double)NAN;
    if (!gcmp_dtype_is_float((enum gradcmp_dtype)dtype) || tally->nonfinite_a != 0) {
        return GRADCMP_OK;
    }
    job.sink = NULL;
    if (gcmp_needs_rescaling(dtype, dtype, tally)) {
        job.scale_log2 = gcmp_common_scale_log2(tally);
        GCMP_TRY(tally_side(listing, job, &again, error));
    }
    tensor->norm = ldexp(sqrt(again.a2), -job.scale_log2);
    tensor->max_abs = tally->max_a;
    return GRADCMP_OK;
}

static enum gradcmp_status measure_tensor(const struct listing *listing, size_t index,
                                          struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = listing->chosen[index];
    struct gcmp_ls_tensor *tensor = &listing->tensors[index];
    struct tensor_sink sink = {.dtype = (enum gradcmp_dtype)parameter->dtype,
                               .as_float32 = listing->ls->as_float32 != 0};
    sha256_init(&sink.sha);
    struct gradcmp_tally tally = {0};
    struct gcmp_job job = {
        .a = {.catalogue = &listing->checkpoint->catalogue, .parameter = parameter},
        .elems = parameter->elem_count,
        .sink = hash_elems,
        .sink_user = &sink};
    GCMP_TRY(tally_side(listing, job, &tally, error));
    write_hex(&sink.sha, tensor->sha256);
    return take_norm(listing, job, &tally, tensor, error);
}

/* Say what of the weights is not listed: in the list's notes, and beside JSON, which has none. */
static void tell_left_out(struct listing *listing, const struct gradcmp_options *options,
                          struct gcmp_name_filter *filter) {
    struct gcmp_left_out found = gcmp_find_left_out(&listing->checkpoint->catalogue, filter);
    if (found.count == 0 || (options->state != NULL && strcmp(options->state, "param") != 0)) {
        return;
    }
    gcmp_tell_left_out(&found, "listed", listing->left_out);
    if (listing->ls->format == GRADCMP_LS_JSON && options->warn != NULL) {
        char line[4096];
        snprintf(line, sizeof line, "%s: %s", listing->checkpoint->path, listing->left_out);
        options->warn(options->warn_user, line);
    }
}

/* Take the tensors that state, match and exclude leave. */
static enum gradcmp_status choose(struct listing *listing, struct gradcmp_error *error) {
    const struct gradcmp_options all = GRADCMP_OPTIONS_INIT;
    const struct gradcmp_options *options = listing->options == NULL ? &all : listing->options;
    struct gradcmp_checkpoint *checkpoint = listing->checkpoint;
    const struct gradcmp_model *wanted;
    if (options->state != NULL) { /* for its error, where there is no such state */
        GCMP_TRY(gcmp_checkpoint_model(checkpoint, options->state, &wanted, error));
    }
    struct gcmp_name_filter filter;
    enum gradcmp_status status = gcmp_name_filter_init(&filter, options, error);
    for (size_t i = 0; status == GRADCMP_OK && i < checkpoint->listed_count; i++) {
        const struct gradcmp_parameter *parameter = checkpoint->listed[i];
        bool of_state = options->state == NULL || strcmp(parameter->state, options->state) == 0;
        if (of_state && gcmp_name_filter_takes(&filter, parameter->name)) {
            listing->chosen[listing->count++] = parameter;
        }
    }
    if (status == GRADCMP_OK) {
        tell_left_out(listing, options, &filter);
        status = gcmp_name_filter_check(&filter, error);
    }
    gcmp_name_filter_free(&filter);
    return status;
}

static enum gradcmp_status fill_tensors(const struct listing *listing,
                                        struct gradcmp_error *error) {
    for (size_t i = 0; i < listing->count; i++) {
        const struct gradcmp_parameter *parameter = listing->chosen[i];
        struct gcmp_ls_tensor *tensor = &listing->tensors[i];
        tensor->name = parameter->name;
        tensor->state = parameter->state;
        tensor->layer = parameter->layer;
        tensor->shape = parameter->shape;
        tensor->ndim = parameter->ndim;
        tensor->dtype = parameter->dtype;
        tensor->pieces = parameter->slab_count;
        tensor->copies = parameter->copy_count;
        if (listing->ls->stats) {
            GCMP_TRY(measure_tensor(listing, i, error));
        }
    }
    return GRADCMP_OK;
}

/* L as the models know it, which have looked at the names too. */
static uint64_t known_layers(const struct gradcmp_checkpoint *checkpoint) {
    uint64_t layers = checkpoint->catalogue.layers;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gcmp_state_model *entry = &checkpoint->models[i];
        if (entry->loaded && entry->model.layers > layers) {
            layers = entry->model.layers;
        }
    }
    return layers;
}

enum gradcmp_status gradcmp_checkpoint_list(struct gradcmp_checkpoint *checkpoint,
                                            const struct gradcmp_options *options,
                                            const struct gradcmp_ls_options *ls,
                                            gradcmp_write_fn write, void *user,
                                            struct gradcmp_error *error) {
    GCMP_TRY(gcmp_checkpoint_load_all(checkpoint, error));
    struct listing listing = {.checkpoint = checkpoint, .options = options, .ls = ls};
    listing.chosen = calloc(checkpoint->listed_count + 1, sizeof *listing.chosen);
    listing.tensors = calloc(checkpoint->listed_count + 1, sizeof *listing.tensors);
    enum gradcmp_status status = GRADCMP_ERROR_MEMORY;
    if (listing.chosen == NULL || listing.tensors == NULL) {
        gcmp_error_set(error, status, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else {
        status = choose(&listing, error);
    }
    if (status == GRADCMP_OK) {
        status = fill_tensors(&listing, error);
    }
    if (status == GRADCMP_OK) {
        struct gcmp_ls content = {.path = checkpoint->path,
                                  .catalogue = &checkpoint->catalogue,
                                  .layers = known_layers(checkpoint),
                                  .states = checkpoint->states,
                                  .state_count = checkpoint->state_count,
                                  .tensors = listing.tensors,
                                  .tensor_count = listing.count,
                                  .left_out =
                                      listing.left_out[0] == '\0' ? NULL : listing.left_out};
        status = ls->format == GRADCMP_LS_JSON
                     ? gcmp_ls_write_json(&content, write, user, error)
                     : gcmp_ls_write_text(&content, ls, write, user, error);
    }
    free(listing.chosen);
    free(listing.tensors);
    gcmp_error_add_path(error, checkpoint->path);
    return status;
}
