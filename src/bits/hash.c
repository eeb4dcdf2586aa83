/* Fingerprints in place of a twin: parameters in their unsharded form, so that any sharding gives
 * the same; of objects what all ranks have alike; apart from these what belongs to one layout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/dtype.h"
#include "base/grow.h"
#include "bits/hash_file.h"
#include "bits/runs.h"
#include "engine/engine.h"
#include "engine/little.h"
#include "report/page.h"
#include "report/printable.h"

enum { DIGITS = 32 };

/* A tensor to be hashed: each copy by itself. */
struct hash_job {
    struct hasher *hasher;
    struct gcmp_bits_item item; /* of the fingerprint, without bytes */
    struct gcmp_side side;
    uint64_t elems, bytes_left;
    char digits[DIGITS + 1];
    bool to_layout;
};

/* One checkpoint under way. */
struct hasher {
    struct gcmp_arena *arena;
    struct gcmp_bits_side side;
    struct gcmp_bits_match match; /* for reducing: a is the side */
    struct gcmp_bits_options bits;
    bool by_model; /* parameters are hashed unsharded */
    struct gcmp_bits_hashes *out;
    struct hash_job *jobs;
    size_t count, capacity;
    const struct hash_job *current;
    XXH3_state_t *state;
};

static void write_digits(XXH128_hash_t hash, char out[DIGITS + 1]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    for (size_t i = 0; i < sizeof canonical.digest; i++) {
        snprintf(out + 2 * i, 3, "%02x", canonical.digest[i]);
    }
}

/* JSON holds UTF-8 alone: other bytes of a path are spelled out. */
static const char *valid_path(struct gcmp_arena *arena, const char *path) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    for (size_t left = strlen(path), bytes; left > 0; path += bytes, left -= bytes) {
        bytes = gcmp_utf8_decode(path, left, NULL);
        if (bytes == 0) {
            gcmp_text_addf(&text, "\\x%02x", (unsigned char)*path);
            bytes = 1;
        } else {
            gcmp_text_add_bytes(&text, path, bytes);
        }
    }
    const char *out = text.failed ? NULL : gcmp_arena_text(arena, text.bytes, text.length_bytes);
    gcmp_text_free(&text);
    return out;
}

static enum gradcmp_status add_digits(struct hasher *hasher, struct gcmp_bits_item *item,
                                      const char *digits, bool to_layout,
                                      struct gradcmp_error *error) {
    item->kind = GCMP_BITS_VALUE;
    item->path = valid_path(hasher->arena, item->path);
    item->type =
        item->type == NULL ? NULL : gcmp_arena_format(hasher->arena, "%s xxh3", item->type);
    item->bytes = (const unsigned char *)gcmp_arena_dup(hasher->arena, digits);
    item->length_bytes = DIGITS;
    if (item->path == NULL || item->bytes == NULL || item->type == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_bits_add(to_layout ? &hasher->out->of_layout : &hasher->out->items, item, error);
}

/* --- tensors --- */

static int hash_bytes(void *user, const void *bytes, size_t count) {
    XXH3_128bits_update(user, bytes, count);
    return 0;
}

static int hash_elements(void *user, const void *elems, size_t bytes) {
    struct hash_job *job = user;
    struct hasher *hasher = job->hasher;
    if (hasher->current != job) {
        XXH3_128bits_reset(hasher->state);
        hasher->current = job;
    }
    (void)gcmp_give_little(elems, bytes, (enum gradcmp_dtype)job->side.parameter->dtype, hash_bytes,
                           hasher->state);
    job->bytes_left -= bytes < job->bytes_left ? bytes : job->bytes_left;
    if (job->bytes_left == 0) {
        write_digits(XXH3_128bits_digest(hasher->state), job->digits);
    }
    return 0;
}

/* What lies in memory is in the host's byte order: elements, and Python's floats. A fingerprint is
 * the same on every host. */
static void write_value_digits(const struct hasher *hasher, const struct gcmp_bits_item *item,
                               char out[DIGITS + 1]) {
    enum gradcmp_dtype dtype = GRADCMP_DTYPE_NONE; /* bytes, in no order */
    if (item->kind == GCMP_BITS_ARRAY) {
        dtype = (enum gradcmp_dtype)item->dtype;
    } else if (strcmp(item->type, "float") == 0) {
        dtype = GRADCMP_DTYPE_FLOAT64;
    }
    XXH3_128bits_reset(hasher->state);
    (void)gcmp_give_little(item->bytes, item->length_bytes, dtype, hash_bytes, hasher->state);
    write_digits(XXH3_128bits_digest(hasher->state), out);
}

static const char *type_of(struct gcmp_arena *arena, const char *type, unsigned ndim,
                           const uint64_t *shape) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_addf(&text, "%s ", type);
    gcmp_text_add_shape(&text, ndim, shape);
    const char *out = text.failed ? NULL : gcmp_arena_text(arena, text.bytes, text.length_bytes);
    gcmp_text_free(&text);
    return out;
}

static enum gradcmp_status add_job(struct hasher *hasher, const struct hash_job *job,
                                   struct gradcmp_error *error) {
    if (!gcmp_grow(&hasher->jobs, hasher->count, &hasher->capacity, sizeof *hasher->jobs)) {
        GCMP_FAIL_MEMORY(error);
    }
    hasher->jobs[hasher->count] = *job;
    struct hash_job *added = &hasher->jobs[hasher->count++];
    added->bytes_left =
        job->elems * gcmp_dtype_bytes((enum gradcmp_dtype)job->side.parameter->dtype);
    write_digits(XXH3_128bits("", 0), added->digits);
    return GRADCMP_OK;
}

/* The rows of the true vocabulary, where they are known: what is behind depends on the layout. */
static uint64_t true_rows(const struct hasher *hasher, const struct gradcmp_parameter *parameter) {
    uint64_t vocab = hasher->side.checkpoint->catalogue.vocab;
    bool is_padded = parameter->vocab_rows && vocab > 0 && parameter->shape[0] > vocab;
    return is_padded ? vocab : parameter->ndim > 0 ? parameter->shape[0] : 1;
}

static enum gradcmp_status add_parameter(struct hasher *hasher,
                                         const struct gradcmp_parameter *parameter,
                                         struct gradcmp_error *error) {
    uint64_t rows = true_rows(hasher, parameter);
    uint64_t *shape = gcmp_arena_alloc(hasher->arena, parameter->ndim + 1U, sizeof *shape);
    if (shape == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(shape, parameter->shape, parameter->ndim * sizeof *shape);
    shape[0] = parameter->ndim > 0 ? rows : 0;
    struct hash_job job = {
        .hasher = hasher,
        .side = {.catalogue = &hasher->side.checkpoint->catalogue, .parameter = parameter},
        .elems = parameter->ndim == 0 || parameter->shape[0] == 0
                     ? parameter->elem_count
                     : parameter->elem_count / parameter->shape[0] * rows};
    job.item.path = strcmp(parameter->state, "param") == 0
                        ? parameter->name
                        : gcmp_arena_format(hasher->arena, "optimizer.state.%s.%s",
                                            parameter->state, parameter->name);
    job.item.type = type_of(hasher->arena, gradcmp_dtype_name((enum gradcmp_dtype)parameter->dtype),
                            parameter->ndim, shape);
    job.item.group = (uint8_t)gcmp_bits_group_of(parameter->name, parameter->state);
    if (job.item.path == NULL || job.item.type == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (uint32_t copy = 0; copy < parameter->copy_count; copy++) {
        job.side.copy = copy;
        GCMP_TRY(add_job(hasher, &job, error));
    }
    return GRADCMP_OK;
}

/* A file of torch.save that no ranks share is hashed as it is stored: its optimizer has numbers,
 * and names for them follow from the order of keys, which is no part of the state. */
static bool is_by_model(const struct gcmp_bits_side *side) {
    bool by_rank = false;
    for (size_t i = 0; i < side->items.count && !by_rank; i++) {
        by_rank = side->items.list[i].state != NULL && side->items.list[i].by_rank;
    }
    return side->checkpoint != NULL &&
           (by_rank || strcmp(side->checkpoint->catalogue.format->name, "torch.save") != 0);
}

static enum gradcmp_status add_models(struct hasher *hasher, struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = hasher->side.checkpoint;
    hasher->by_model = is_by_model(&hasher->side);
    for (size_t i = 0; hasher->by_model && i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model;
        GCMP_TRY(gcmp_checkpoint_model(checkpoint, checkpoint->states[i], &model, error));
        for (size_t k = 0; k < model->count; k++) {
            GCMP_TRY(add_parameter(hasher, &model->parameters[k], error));
        }
    }
    return GRADCMP_OK;
}

/* --- objects --- */

static bool is_in_model(const struct hasher *hasher, const struct gcmp_bits_item *item) {
    return item->state != NULL && hasher->by_model &&
           gcmp_checkpoint_has_state(hasher->side.checkpoint, item->state);
}

static enum gradcmp_status add_object(struct hasher *hasher, const struct gcmp_bits_item *item,
                                      bool to_layout, struct gradcmp_error *error) {
    struct gcmp_bits_item out = {.path = item->path, .type = item->type, .group = item->group};
    if (is_in_model(hasher, item) || gcmp_bits_is_ignored(&hasher->bits, item)) {
        return GRADCMP_OK;
    }
    if (item->kind != GCMP_BITS_VALUE) {
        out.type = type_of(hasher->arena, item->type, item->ndim, item->shape);
    }
    if (item->kind == GCMP_BITS_TENSOR) {
        struct hash_job job = {.hasher = hasher,
                               .item = out,
                               .side = {.catalogue = item->catalogue, .parameter = item->parameter},
                               .elems = item->parameter->elem_count,
                               .to_layout = to_layout};
        for (uint32_t copy = 0; copy < item->parameter->copy_count; copy++) {
            job.side.copy = copy;
            GCMP_TRY(add_job(hasher, &job, error));
        }
        return GRADCMP_OK;
    }
    char digits[DIGITS + 1];
    write_value_digits(hasher, item, digits);
    return add_digits(hasher, &out, digits, to_layout, error);
}

/* What all ranks have alike and that says nothing of the layout is the same for any sharding. */
static enum gradcmp_status add_objects(struct hasher *hasher, struct gradcmp_error *error) {
    hasher->match = (struct gcmp_bits_match){
        .arena = hasher->arena, .a = &hasher->side, .b = &hasher->side, .options = &hasher->bits};
    GCMP_TRY(gcmp_bits_reduce(&hasher->match, 0, error));
    const struct gcmp_bits_items *common = &hasher->match.reduced[0];
    for (size_t i = 0; i < common->count; i++) {
        const struct gcmp_bits_item *item = &common->list[i];
        bool to_layout = item->group == GCMP_BITS_RNG ||
                         (item->kind == GCMP_BITS_VALUE && gcmp_bits_is_layout_setting(item->path));
        GCMP_TRY(add_object(hasher, item, to_layout, error));
    }
    /* Ranks' own objects keep the whole paths: those without ranks are not unique. */
    const struct gcmp_bits_items *all = &hasher->side.items;
    for (size_t i = 0; i < all->count; i++) {
        const struct gcmp_bits_item *item = &all->list[i];
        if (item->by_rank && item->state == NULL) {
            GCMP_TRY(add_object(hasher, item, true, error));
        }
    }
    return GRADCMP_OK;
}

/* --- the whole --- */

static enum gradcmp_status run_jobs(struct hasher *hasher, const struct gradcmp_options *options,
                                    struct gradcmp_error *error) {
    struct gcmp_job *jobs = calloc(hasher->count + 1, sizeof *jobs);
    struct gradcmp_tally *tallies = calloc(hasher->count + 1, sizeof *tallies);
    struct gradcmp_error side_error = {0};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; jobs != NULL && tallies != NULL && i < hasher->count; i++) {
        jobs[i] = (struct gcmp_job){.a = hasher->jobs[i].side,
                                    .elems = hasher->jobs[i].elems,
                                    .tallies = &tallies[i],
                                    .sink = hash_elements,
                                    .sink_user = &hasher->jobs[i]};
    }
    if (jobs == NULL || tallies == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else if (hasher->count > 0) {
        struct gcmp_engine_options engine = gcmp_engine_options_of(options);
        status = gcmp_engine_run(jobs, hasher->count, &engine, &side_error, 1, error);
    }
    free(jobs);
    free(tallies);
    return status;
}

/* Copies must be the same: then they are one fingerprint. */
static enum gradcmp_status take_jobs(struct hasher *hasher, struct gradcmp_error *error) {
    for (size_t i = 0; i < hasher->count; i++) {
        struct hash_job *job = &hasher->jobs[i];
        if (job->side.copy > 0) {
            const struct hash_job *first = &hasher->jobs[i - job->side.copy];
            if (strcmp(first->digits, job->digits) != 0) {
                GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, hasher->side.path, GRADCMP_NO_OFFSET,
                             "copies of %.200s differ, so it has no one fingerprint (gradcmp check "
                             "tells more)",
                             job->item.path);
            }
            continue;
        }
        GCMP_TRY(add_digits(hasher, &job->item, job->digits, job->to_layout, error));
    }
    return GRADCMP_OK;
}

/* Sizes of the layout as one text. */
static const char *layout_of(struct gcmp_arena *arena, const struct gcmp_bits_side *side) {
    const struct gradcmp_catalogue *catalogue = gcmp_bits_side_catalogue(side);
    if (catalogue == NULL) {
        return "objects";
    }
    const struct gradcmp_parallel *p = &catalogue->parallel;
    return gcmp_arena_format(arena, "%s %s tp=%u pp=%u vp=%u dp=%u cp=%u ep=%u etp=%u world=%u",
                             catalogue->format->name,
                             catalogue->layout_name == NULL ? "-" : catalogue->layout_name, p->tp,
                             p->pp, p->vp, p->dp, p->cp, p->ep, p->etp, p->world);
}

static enum gradcmp_status fill(struct hasher *hasher, const char *path,
                                const struct gradcmp_options *options,
                                struct gradcmp_error *error) {
    hasher->state = XXH3_createState();
    if (hasher->state == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_bits_side_open(&hasher->side, path, options, error));
    hasher->out->layout = layout_of(hasher->arena, &hasher->side);
    if (hasher->out->layout == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(add_models(hasher, error));
    GCMP_TRY(add_objects(hasher, error));
    GCMP_TRY(run_jobs(hasher, options, error));
    GCMP_TRY(take_jobs(hasher, error));
    gcmp_bits_sort(&hasher->out->items);
    gcmp_bits_sort(&hasher->out->of_layout);
    return GRADCMP_OK;
}

/* Hash a checkpoint. What may differ is left out. */
static enum gradcmp_status hash_checkpoint(struct gcmp_arena *arena, const char *path,
                                           const struct gradcmp_options *options,
                                           struct gcmp_bits_hashes *out,
                                           struct gradcmp_error *error) {
    struct hasher hasher = {.arena = arena, .out = out};
    enum gradcmp_status status = fill(&hasher, path, options, error);
    gcmp_bits_match_free(&hasher.match);
    gcmp_bits_side_close(&hasher.side);
    XXH3_freeState(hasher.state);
    free(hasher.jobs);
    return status;
}

/* Paths of ranks' own objects, without ranks. */
static enum gradcmp_status list_ranked(struct gcmp_arena *arena,
                                       const struct gcmp_bits_hashes *hashes,
                                       struct gcmp_bits_items *out, struct gradcmp_error *error) {
    for (size_t i = 0; i < hashes->of_layout.count; i++) {
        struct gcmp_bits_item item = hashes->of_layout.list[i];
        item.whole = item.path;
        item.path = gcmp_bits_without_ranks(arena, item.path);
        if (item.path == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_bits_add(out, &item, error));
    }
    gcmp_bits_sort(out);
    return GRADCMP_OK;
}

/* The format of a text that layout_of made, and the name of the layout in it. */
static bool parse_layout(struct gcmp_arena *arena, const char *layout, const char **format,
                         const char **name) {
    size_t bytes = strcspn(layout, " ");
    const char *rest = layout[bytes] == '\0' ? "" : layout + bytes + 1;
    const char *sizes = strstr(rest, " tp=");
    *format = gcmp_arena_text(arena, layout, bytes);
    *name = sizes == NULL ? NULL : gcmp_arena_text(arena, rest, (size_t)(sizes - rest));
    return *format != NULL && (sizes == NULL || *name != NULL);
}

/* Mark fingerprints of the model's and the optimizer's tensors: those no layout or format may lack.
 */
static void mark_states(struct gcmp_bits_items *items) {
    for (size_t i = 0; i < items->count; i++) {
        struct gcmp_bits_item *item = &items->list[i];
        if (item->group <= GCMP_BITS_EXP_AVG_SQ && strchr(item->type, '[') != NULL &&
            !gcmp_bits_is_extra_state(item->path)) {
            item->state = gcmp_bits_group_name((enum gcmp_bits_group)item->group);
        }
    }
}

/* The fingerprints that any sharding shares; what one side has for each rank is left out. */
static enum gradcmp_status check_across(struct gcmp_bits_match *match,
                                        const struct gcmp_bits_hashes *const sides[2],
                                        struct gradcmp_error *error) {
    const char *formats[2], *names[2];
    match->layouts_differ = true;
    for (size_t side = 0; side < 2; side++) {
        if (!parse_layout(match->arena, sides[side]->layout, &formats[side], &names[side])) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    gcmp_bits_name_layouts(match, formats, names);
    for (size_t side = 0; side < 2; side++) {
        match->reduced[side] = sides[side]->items;
        GCMP_TRY(list_ranked(match->arena, sides[side], &match->ranked[side], error));
        GCMP_TRY(gcmp_bits_mark_ranks(match->arena, &sides[side]->of_layout, &match->ranked[side],
                                      &match->reduced[side], error));
        mark_states(&match->reduced[side]);
    }
    GCMP_TRY(gcmp_bits_merge_lists(match, error));
    return gcmp_bits_leave_out(match, error);
}

/* All fingerprints, those of the layout too. */
static enum gradcmp_status check_alike(struct gcmp_bits_match *match,
                                       const struct gcmp_bits_hashes *const sides[2],
                                       struct gradcmp_error *error) {
    match->a->items = sides[0]->items;
    match->b->items = sides[1]->items;
    GCMP_TRY(gcmp_bits_merge_lists(match, error));
    match->a->items = sides[0]->of_layout;
    match->b->items = sides[1]->of_layout;
    match->told[0] = match->told[1] = (struct gcmp_bits_told){NULL, NULL};
    return gcmp_bits_merge_lists(match, error);
}

/* Compare fingerprints as if they were items of two checkpoints. */
static enum gradcmp_status check(struct gcmp_arena *arena,
                                 const struct gcmp_bits_hashes *const sides[2],
                                 const struct gcmp_bits_options *bits,
                                 struct gcmp_bits_result *result, struct gradcmp_error *error) {
    struct gcmp_bits_side a = {.path = result->a}, b = {.path = result->b};
    struct gcmp_bits_options options = *bits;
    options.no_default_ignores = true; /* they were left out before */
    struct gcmp_bits_match match = {.arena = arena, .a = &a, .b = &b, .options = &options};
    bool is_same_layout = strcmp(sides[0]->layout, sides[1]->layout) == 0 &&
                          !gcmp_bits_settings_differ(&sides[0]->of_layout, &sides[1]->of_layout);
    enum gradcmp_status status =
        is_same_layout ? check_alike(&match, sides, error) : check_across(&match, sides, error);
    if (status == GRADCMP_OK) {
        status = gcmp_bits_judge(&match, arena, result, error);
    }
    memset(match.reduced, 0, sizeof match.reduced); /* they are the caller's */
    gcmp_bits_match_free(&match);
    return status;
}

static void free_hashes(struct gcmp_bits_hashes *hashes) {
    free(hashes->items.list);
    free(hashes->of_layout.list);
}

/* What one call needs. */
struct hash_call {
    struct gradcmp_evidence *evidence;
    const char *file;
    const struct gradcmp_options *options;
    const struct gcmp_bits_options *bits;
    struct gcmp_bits_hashes wanted;
};

static enum gradcmp_status check_path(struct hash_call *call, size_t index,
                                      struct gradcmp_error *error) {
    struct gcmp_arena *arena = call->evidence->arena;
    struct gcmp_bits_findings *content = call->evidence->content;
    struct gcmp_bits_result *result = &content->results[content->count++];
    struct gcmp_bits_hashes found = {0};
    *result = (struct gcmp_bits_result){
        .a = call->file, .b = call->evidence->paths[index], .iteration = -1, .verdict = "error"};
    enum gradcmp_status status =
        hash_checkpoint(arena, result->b, call->options, &found, &result->error);
    if (status == GRADCMP_OK) {
        const struct gcmp_bits_hashes *const sides[] = {&call->wanted, &found};
        status = check(arena, sides, call->bits, result, &result->error);
    }
    free_hashes(&found);
    result->error.code = status;
    bool is_fatal = status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_CANCELLED;
    if (is_fatal && error != NULL) {
        *error = result->error;
    }
    return is_fatal ? status : GRADCMP_OK;
}

static enum gradcmp_status write_first(struct hash_call *call, struct gradcmp_error *error) {
    struct gcmp_arena *arena = call->evidence->arena;
    struct gcmp_bits_findings *content = call->evidence->content;
    GCMP_TRY(hash_checkpoint(arena, call->evidence->paths[0], call->options, &call->wanted, error));
    GCMP_TRY(gcmp_bits_hashes_write(call->file, &call->wanted, error));
    content->hash_written = true;
    call->evidence->summary = gcmp_arena_format(
        arena, "%s: fingerprints of %zu items of %s written", call->file,
        call->wanted.items.count + call->wanted.of_layout.count, call->evidence->paths[0]);
    if (call->evidence->summary == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status run(struct hash_call *call, struct gradcmp_error *error) {
    struct gcmp_bits_findings *content = call->evidence->content;
    size_t count = call->evidence->path_count, first = 0;
    content->hash_file = gcmp_arena_dup(call->evidence->arena, call->file);
    content->results = gcmp_arena_alloc(call->evidence->arena, count, sizeof *content->results);
    if (content->hash_file == NULL || content->results == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (access(call->file, F_OK) != 0) {
        GCMP_TRY(write_first(call, error));
        first = 1;
    } else {
        GCMP_TRY(gcmp_bits_hashes_read(call->file, call->evidence->arena, &call->wanted, error));
    }
    content->hash_entries = call->wanted.items.count + call->wanted.of_layout.count;
    for (size_t i = first; i < count; i++) {
        call->evidence->summary = NULL;
        GCMP_TRY(check_path(call, i, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_hash(struct gradcmp_evidence *evidence, const char *file,
                                   const struct gradcmp_options *options,
                                   const struct gcmp_bits_options *bits,
                                   struct gradcmp_error *error) {
    struct hash_call call = {evidence, file, options, bits, {0}};
    enum gradcmp_status status = run(&call, error);
    free_hashes(&call.wanted);
    return status;
}
