/* What the two formats of extracted files have in common. */
#include "extraction.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/text.h"
#include "formats/extracted.h"
#include "kernels/convert.h"
#include "left_out.h"
#include "pairing.h"
#include "engine/little.h"
#include "report/json_parts.h"

enum { CONVERT_ELEMS = 4096 };

/* --- which tensors --- */

static enum gradcmp_status add_item(struct gcmp_extraction *extraction,
                                    const struct gradcmp_parameter *parameter,
                                    struct gradcmp_error *error) {
    struct gcmp_extract_item *item = &extraction->items[extraction->count];
    bool is_weight = strcmp(parameter->state, "param") == 0;
    item->parameter = parameter;
    item->dtype = (enum gradcmp_dtype)parameter->dtype;
    item->key = is_weight ? parameter->name
                          : gcmp_arena_format(&extraction->arena, "optimizer.state.%s.%s",
                                              parameter->state, parameter->name);
    if (item->key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (extraction->as_float32 && gcmp_dtype_is_float(item->dtype)) {
        item->dtype = GRADCMP_DTYPE_FLOAT32;
    }
    if (!extraction->takes(item->dtype)) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "%s (%s): %s has no type %s", parameter->name,
                  parameter->state, extraction->format, gradcmp_dtype_name(item->dtype));
    }
    if (!gcmp_mul_u64(parameter->elem_count, gcmp_dtype_bytes(item->dtype), &item->bytes)) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s (%s): too large", parameter->name,
                  parameter->state);
    }
    extraction->count++;
    return GRADCMP_OK;
}

static void warn(const struct gcmp_extraction *extraction, const char *text) {
    const struct gradcmp_options *options = &extraction->options;
    if (options->warn != NULL) {
        char line[4096];
        snprintf(line, sizeof line, "%s: %s", extraction->checkpoint->path, text);
        options->warn(options->warn_user, line);
    }
}

/* Of the weights, tensors that are none of real numbers. */
static void warn_left_out(const struct gcmp_extraction *extraction,
                          struct gcmp_name_filter *filter) {
    const char *state = extraction->options.state;
    struct gcmp_left_out found = gcmp_find_left_out(&extraction->checkpoint->catalogue, filter);
    if (found.count > 0 && (state == NULL || strcmp(state, "param") == 0)) {
        char text[GCMP_LEFT_OUT_BYTES];
        gcmp_tell_left_out(&found, "extracted", text);
        warn(extraction, text);
    }
}

static enum gradcmp_status choose_items(struct gcmp_extraction *extraction,
                                        struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = extraction->checkpoint;
    const struct gradcmp_options *options = &extraction->options;
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
            status = add_item(extraction, parameter, error);
        }
    }
    if (status == GRADCMP_OK) {
        warn_left_out(extraction, &filter);
        status = gcmp_name_filter_check(&filter, error);
    }
    gcmp_name_filter_free(&filter);
    if (status == GRADCMP_OK && extraction->count == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "no tensor is left to extract");
    }
    return status;
}

static int compare_items(const void *left, const void *right) {
    const struct gcmp_extract_item *a = left, *b = right;
    int order = strcmp(a->parameter->state, b->parameter->state);
    return order != 0 ? order : strcmp(a->parameter->name, b->parameter->name);
}

static void warn_unclaimed(const struct gcmp_extraction *extraction) {
    const struct gradcmp_catalogue *catalogue = &extraction->checkpoint->catalogue;
    if (catalogue->unclaimed_count > 0) {
        char text[512];
        snprintf(text, sizeof text,
                 "left out, as no weight and no state that is read: %s%zu tensor%s, such as %.160s",
                 catalogue->unclaimed_is_least ? "at least " : "", catalogue->unclaimed_count,
                 catalogue->unclaimed_count == 1 ? "" : "s", catalogue->unclaimed_first);
        warn(extraction, text);
    }
}

enum gradcmp_status gcmp_extraction_make(struct gcmp_extraction *extraction,
                                         struct gradcmp_error *error) {
    GCMP_TRY(gcmp_checkpoint_load_all(extraction->checkpoint, error));
    extraction->items = calloc(extraction->checkpoint->listed_count + 1, sizeof *extraction->items);
    if (extraction->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(choose_items(extraction, error));
    qsort(extraction->items, extraction->count, sizeof *extraction->items, compare_items);
    warn_unclaimed(extraction);
    return GRADCMP_OK;
}

void gcmp_extraction_free(struct gcmp_extraction *extraction) {
    free(extraction->items);
    gcmp_arena_free(&extraction->arena);
}

/* --- what is told of the run --- */

struct texts {
    struct gcmp_arena *arena;
    struct gcmp_extract_text *list;
    size_t count;
    bool has_failed; /* no memory */
};

static void add_text(struct texts *texts, const char *name, const char *value) {
    texts->has_failed = texts->has_failed || value == NULL;
    texts->list[texts->count++] = (struct gcmp_extract_text){name, value};
}

static void add_known(struct texts *texts, const char *name, uint64_t value) {
    if (value != 0) {
        add_text(texts, name, gcmp_arena_format(texts->arena, "%" PRIu64, value));
    }
}

/* The type of the run's arithmetic, where something but the written values' type tells it. */
static void add_compute(struct texts *texts, struct gcmp_extraction *extraction) {
    const struct gradcmp_model *model = NULL;
    const char *state = extraction->items[0].parameter->state;
    enum gradcmp_dtype dtype;
    enum gradcmp_dtype_source source;
    if (gcmp_checkpoint_has_state(extraction->checkpoint, "exp_avg") &&
        extraction->options.state == NULL) {
        state = "exp_avg";
    }
    if (gcmp_checkpoint_model(extraction->checkpoint, state, &model, NULL) != GRADCMP_OK) {
        return; /* it was loaded before */
    }
    gcmp_checkpoint_precision(extraction->checkpoint, model, GRADCMP_DTYPE_NONE, &dtype, &source);
    bool is_lost = source == GRADCMP_DTYPE_FROM_STATE && extraction->as_float32;
    if (is_lost || source < GRADCMP_DTYPE_FROM_STATE) {
        add_text(texts, GCMP_EXTRACTED_COMPUTE, gradcmp_dtype_name(dtype));
    }
}

/* Where a part of a document is written to. */
static int keep(void *user, const char *bytes, size_t length_bytes) {
    gcmp_text_add_bytes(user, bytes, length_bytes);
    return 0;
}

static const char *finish_json(struct gcmp_out *out, struct gcmp_text *text,
                               struct gcmp_arena *arena) {
    bool good = gcmp_out_end(out, NULL) == GRADCMP_OK && !text->failed;
    while (good && text->length_bytes > 0 && text->bytes[text->length_bytes - 1] == '\n') {
        text->length_bytes--;
    }
    const char *kept = good ? gcmp_arena_text(arena, text->bytes, text->length_bytes) : NULL;
    gcmp_text_free(text);
    return kept;
}

static void add_settings(struct texts *texts, const struct gradcmp_catalogue *catalogue) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    struct gcmp_out out;
    gcmp_out_begin(&out, keep, &text);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_settings(&json, NULL, catalogue);
    const char *value = finish_json(&out, &text, texts->arena);
    add_text(texts, GCMP_EXTRACTED_SETTINGS, value);
}

static void add_numbers(struct texts *texts, const struct gradcmp_catalogue *catalogue) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    if (catalogue->number_groups == NULL) {
        return;
    }
    for (size_t i = 0; i < catalogue->number_count; i++) {
        gcmp_text_addf(&text, "%c%" PRIu32, i == 0 ? '[' : ',', catalogue->number_groups[i]);
    }
    gcmp_text_add(&text, catalogue->number_count == 0 ? "[]" : "]");
    add_text(texts, GCMP_EXTRACTED_NUMBERS,
             text.failed ? NULL : gcmp_arena_dup(texts->arena, text.bytes));
    gcmp_text_free(&text);
}

static uint64_t known_layers(const struct gcmp_extraction *extraction) {
    const struct gradcmp_checkpoint *checkpoint = extraction->checkpoint;
    uint64_t layers = checkpoint->catalogue.layers;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gcmp_state_model *entry = &checkpoint->models[i];
        layers = entry->loaded && entry->model.layers > layers ? entry->model.layers : layers;
    }
    return layers;
}

enum gradcmp_status gcmp_extraction_texts(struct gcmp_extraction *extraction,
                                          struct gcmp_extract_text list[GCMP_EXTRACT_MAX_TEXTS],
                                          size_t *count, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = &extraction->checkpoint->catalogue;
    struct texts texts = {.arena = &extraction->arena, .list = list};
    add_text(&texts, GCMP_EXTRACTED_VERSION, gradcmp_version());
    add_text(&texts, "gradcmp.origin", extraction->checkpoint->path);
    add_text(&texts, "gradcmp.format", catalogue->format->name);
    if (catalogue->iteration >= 0) {
        add_text(&texts,
                 catalogue->iteration_is_count ? GCMP_EXTRACTED_COUNTED : GCMP_EXTRACTED_ITERATION,
                 gcmp_arena_format(texts.arena, "%" PRId64, catalogue->iteration));
    }
    add_known(&texts, GCMP_EXTRACTED_LAYERS, known_layers(extraction));
    add_known(&texts, GCMP_EXTRACTED_VOCAB, catalogue->vocab);
    add_known(&texts, GCMP_EXTRACTED_PADDED_VOCAB, catalogue->padded_vocab);
    add_known(&texts, GCMP_EXTRACTED_EXPERTS, catalogue->experts);
    add_known(&texts, GCMP_EXTRACTED_DUMP, catalogue->is_dump);
    add_compute(&texts, extraction);
    add_numbers(&texts, catalogue);
    if (catalogue->setting_count > 0) {
        add_settings(&texts, catalogue);
    }
    *count = texts.count;
    if (texts.has_failed) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* --- elements --- */

static int emit(struct gcmp_extraction *extraction, const void *elems, size_t bytes,
                enum gradcmp_dtype dtype) {
    return extraction->is_little
               ? gcmp_give_little(elems, bytes, dtype, extraction->emit, extraction->user)
               : extraction->emit(extraction->user, elems, bytes);
}

/* Count what binary32 has no room for: of the types that are read, float64 alone reaches beyond. */
static void count_lost(struct gcmp_extraction *extraction, const void *from, const float *converted,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const unsigned char *)from + i * sizeof value, sizeof value);
        extraction->beyond += isfinite(value) && !isfinite(converted[i]);
        if (value != 0.0 && converted[i] == 0.0F) {
            extraction->vanished++;
            extraction->vanishing = extraction->vanishing == NULL
                                        ? extraction->current->parameter->name
                                        : extraction->vanishing;
        }
    }
}

/* Pass elements on, converted where that was asked for. */
static int write_elems(void *user, const void *elems, size_t bytes) {
    struct gcmp_extraction *extraction = user;
    const struct gcmp_extract_item *item = extraction->current;
    enum gradcmp_dtype stored = (enum gradcmp_dtype)item->parameter->dtype;
    unsigned width = gcmp_dtype_bytes(stored);
    if (stored == item->dtype) {
        extraction->has_failed = emit(extraction, elems, bytes, stored) != 0;
        return extraction->has_failed;
    }
    float converted[CONVERT_ELEMS];
    const unsigned char *from = elems;
    for (size_t left = bytes / width; left > 0 && !extraction->has_failed;) {
        size_t count = left < CONVERT_ELEMS ? left : CONVERT_ELEMS;
        gcmp_convert_float32(from, stored, count, converted);
        if (stored == GRADCMP_DTYPE_FLOAT64) {
            count_lost(extraction, from, converted, count);
        }
        extraction->has_failed =
            emit(extraction, converted, count * sizeof converted[0], GRADCMP_DTYPE_FLOAT32) != 0;
        from += count * width;
        left -= count;
    }
    return extraction->has_failed;
}

static struct gcmp_engine_options engine_options(const struct gradcmp_options *options) {
    return (struct gcmp_engine_options){.threads = 1,
                                        .buffer_bytes = options->buffer_bytes,
                                        .verify = options->verify,
                                        .progress = options->progress,
                                        .progress_user = options->progress_user};
}

/* Of copies that pieces or files of ranks hold, the first is written: all must be the same, or what
 * is written is not what compare would judge. */
static enum gradcmp_status check_copies(const struct gcmp_extraction *extraction,
                                        const struct gradcmp_parameter *parameter,
                                        struct gradcmp_error *error) {
    struct gcmp_engine_options engine = engine_options(&extraction->options);
    struct gcmp_side side = {.catalogue = &extraction->checkpoint->catalogue,
                             .parameter = parameter};
    for (uint32_t copy = 1; copy < parameter->copy_count; copy++) {
        struct gradcmp_tally tally = {0};
        struct gradcmp_error side_error = {0};
        struct gcmp_side other = side;
        other.copy = copy;
        struct gcmp_job job = {.a = side,
                               .b = &other,
                               .b_count = 1,
                               .elems = parameter->elem_count,
                               .tallies = &tally};
        GCMP_TRY(gcmp_engine_run(&job, 1, &engine, &side_error, 1, error));
        if (tally.equal_bits != tally.elems) {
            bool is_of_stages = gcmp_is_of_stages(parameter);
            GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, extraction->checkpoint->path,
                         GRADCMP_NO_OFFSET,
                         "%s (%s): %s hold different values under this name (%llu of %llu "
                         "elements); %s",
                         parameter->name, parameter->state,
                         is_of_stages          ? "a pipeline's stages"
                         : parameter->of_ranks ? "files of ranks"
                                               : "chunks that overlap",
                         (unsigned long long)(tally.elems - tally.equal_bits),
                         (unsigned long long)tally.elems,
                         is_of_stages          ? "--exclude leaves it out"
                         : parameter->of_ranks ? "extract one file of a rank"
                                               : "extract one file of them");
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_extraction_stream(struct gcmp_extraction *extraction,
                                           const struct gcmp_extract_item *item,
                                           struct gradcmp_error *error) {
    struct gradcmp_tally tally = {0};
    struct gradcmp_error side_error = {0};
    struct gcmp_engine_options engine = engine_options(&extraction->options);
    if (item->parameter->of_ranks || item->parameter->overlap) {
        GCMP_TRY(check_copies(extraction, item->parameter, error));
    }
    struct gcmp_job job = {
        .a = {.catalogue = &extraction->checkpoint->catalogue, .parameter = item->parameter},
        .elems = item->parameter->elem_count,
        .tallies = &tally,
        .sink = write_elems,
        .sink_user = extraction};
    extraction->current = item;
    extraction->beyond = 0;
    enum gradcmp_status status = gcmp_engine_run(&job, 1, &engine, &side_error, 1, error);
    if (extraction->has_failed) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "the extracted tensors could not be written");
    }
    GCMP_TRY(status);
    if (extraction->beyond > 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "%s (%s): %llu of %llu elements, finite as stored, would be infinite as float32; "
                  "extract without --as float32",
                  item->parameter->name, item->parameter->state,
                  (unsigned long long)extraction->beyond,
                  (unsigned long long)item->parameter->elem_count);
    }
    return GRADCMP_OK;
}

void gcmp_extraction_end(const struct gcmp_extraction *extraction) {
    if (extraction->vanished > 0) {
        char text[512];
        snprintf(text, sizeof text,
                 "%llu element%s, such as of %.160s, %s too small for float32 and 0 as written",
                 (unsigned long long)extraction->vanished, extraction->vanished == 1 ? "" : "s",
                 extraction->vanishing, extraction->vanished == 1 ? "is" : "are");
        warn(extraction, text);
    }
}
