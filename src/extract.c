/* gradcmp_checkpoint_extract: unsharded tensors as one safetensors file, streamed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/text.h"
#include "checkpoint.h"
#include "engine/engine.h"
#include "kernels/convert.h"
#include "pairing.h"
#include "report/json_parts.h"

enum { CONVERT_ELEMS = 4096, HEADER_ALIGN = 8 };

/* One tensor of the file. */
struct extract_item {
    const struct gradcmp_parameter *parameter;
    enum gradcmp_dtype dtype; /* as written */
    uint64_t bytes;
};

struct extraction {
    struct gradcmp_checkpoint *checkpoint;
    struct extract_item *items;
    size_t count;
    bool as_float32;
    gradcmp_write_fn write;
    void *user;
    bool write_failed;
    const struct extract_item *current; /* the one whose elements are coming */
};

/* Names of element types in safetensors; NULL: it has none. */
static const char *safetensors_dtype(enum gradcmp_dtype dtype) {
    static const char *const names[GRADCMP_DTYPE_COUNT] = {[GRADCMP_DTYPE_FLOAT64] = "F64",
                                                           [GRADCMP_DTYPE_FLOAT32] = "F32",
                                                           [GRADCMP_DTYPE_FLOAT16] = "F16",
                                                           [GRADCMP_DTYPE_BFLOAT16] = "BF16",
                                                           [GRADCMP_DTYPE_FLOAT8_E4M3FN] =
                                                               "F8_E4M3",
                                                           [GRADCMP_DTYPE_FLOAT8_E5M2] = "F8_E5M2",
                                                           [GRADCMP_DTYPE_INT64] = "I64",
                                                           [GRADCMP_DTYPE_INT32] = "I32",
                                                           [GRADCMP_DTYPE_INT16] = "I16",
                                                           [GRADCMP_DTYPE_INT8] = "I8",
                                                           [GRADCMP_DTYPE_UINT64] = "U64",
                                                           [GRADCMP_DTYPE_UINT32] = "U32",
                                                           [GRADCMP_DTYPE_UINT16] = "U16",
                                                           [GRADCMP_DTYPE_UINT8] = "U8",
                                                           [GRADCMP_DTYPE_BOOL] = "BOOL",
                                                           [GRADCMP_DTYPE_COMPLEX64] = "C64"};
    return names[dtype];
}

static enum gradcmp_status add_item(struct extraction *extraction,
                                    const struct gradcmp_parameter *parameter,
                                    struct gradcmp_error *error) {
    struct extract_item *item = &extraction->items[extraction->count];
    item->parameter = parameter;
    item->dtype = (enum gradcmp_dtype)parameter->dtype;
    if (extraction->as_float32 && gcmp_dtype_is_float(item->dtype)) {
        item->dtype = GRADCMP_DTYPE_FLOAT32;
    }
    if (safetensors_dtype(item->dtype) == NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "%s (%s): safetensors has no type %s",
                  parameter->name, parameter->state, gradcmp_dtype_name(item->dtype));
    }
    if (!gcmp_mul_u64(parameter->elem_count, gcmp_dtype_bytes(item->dtype), &item->bytes)) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s (%s): too large", parameter->name,
                  parameter->state);
    }
    extraction->count++;
    return GRADCMP_OK;
}

static enum gradcmp_status choose_items(struct extraction *extraction,
                                        const struct gradcmp_options *options,
                                        struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = extraction->checkpoint;
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
    gcmp_name_filter_free(&filter);
    if (status == GRADCMP_OK && extraction->count == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "no tensor is left to extract");
    }
    return status;
}

/* Wide types first, so that every tensor starts at a multiple of its element size. */
static int compare_items(const void *left, const void *right) {
    const struct extract_item *a = left, *b = right;
    unsigned width_a = gcmp_dtype_bytes(a->dtype), width_b = gcmp_dtype_bytes(b->dtype);
    if (width_a != width_b) {
        return width_a > width_b ? -1 : 1;
    }
    int order = strcmp(a->parameter->state, b->parameter->state);
    return order != 0 ? order : strcmp(a->parameter->name, b->parameter->name);
}

static void put_known(struct gcmp_emitter *json, const char *key, uint64_t value) {
    char text[24];
    if (value != 0) {
        snprintf(text, sizeof text, "%" PRIu64, value);
        gcmp_emit_text(json, key, text);
    }
}

/* __metadata__ holds texts only. */
static void put_metadata(struct gcmp_emitter *json, const struct gradcmp_checkpoint *checkpoint) {
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    char iteration[24];
    snprintf(iteration, sizeof iteration, "%" PRId64, catalogue->iteration);
    gcmp_emit_open_object(json, "__metadata__", false);
    gcmp_emit_text(json, "format", "pt");
    gcmp_emit_text(json, "gradcmp.version", gradcmp_version());
    gcmp_emit_text(json, "gradcmp.origin", checkpoint->path);
    if (catalogue->iteration >= 0) {
        gcmp_emit_text(json, "gradcmp.iteration", iteration);
    }
    put_known(json, "gradcmp.layers", catalogue->layers);
    put_known(json, "gradcmp.vocab", catalogue->vocab);
    if (catalogue->compute != GRADCMP_DTYPE_NONE) {
        gcmp_emit_text(json, "gradcmp.compute", gradcmp_dtype_name(catalogue->compute));
    }
    gcmp_emit_close(json);
}

static void put_item(struct gcmp_emitter *json, const struct extract_item *item, uint64_t offset) {
    const struct gradcmp_parameter *parameter = item->parameter;
    struct gcmp_text key = GCMP_TEXT_INIT;
    if (strcmp(parameter->state, "param") != 0) {
        gcmp_text_addf(&key, "optimizer.state.%s.", parameter->state);
    }
    gcmp_text_add(&key, parameter->name);
    json->out->text.failed = json->out->text.failed || key.failed;
    gcmp_emit_open_object(json, key.failed ? "" : key.bytes, false);
    gcmp_emit_text(json, "dtype", safetensors_dtype(item->dtype));
    gcmp_emit_sizes(json, "shape", parameter->shape, parameter->ndim);
    uint64_t offsets[2] = {offset, offset + item->bytes};
    gcmp_emit_sizes(json, "data_offsets", offsets, 2);
    gcmp_emit_close(json);
    gcmp_text_free(&key);
}

static int keep(void *user, const char *bytes, size_t length_bytes) {
    gcmp_text_add_bytes(user, bytes, length_bytes);
    return 0;
}

/* Make the header's JSON, padded with spaces. */
static enum gradcmp_status make_header(const struct extraction *extraction,
                                       struct gcmp_text *header, struct gradcmp_error *error) {
    struct gcmp_out out;
    gcmp_out_begin(&out, keep, header);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_open_object(&json, NULL, false);
    put_metadata(&json, extraction->checkpoint);
    uint64_t offset = 0;
    for (size_t i = 0; i < extraction->count; i++) {
        put_item(&json, &extraction->items[i], offset);
        offset += extraction->items[i].bytes;
        gcmp_out_drain(&out);
    }
    gcmp_emit_close(&json);
    GCMP_TRY(gcmp_out_end(&out, error));
    while (header->length_bytes > 0 && header->bytes[header->length_bytes - 1] == '\n') {
        header->length_bytes--;
    }
    while (!header->failed && header->length_bytes % HEADER_ALIGN != 0) {
        gcmp_text_add(header, " ");
    }
    if (header->failed) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status write_header(struct extraction *extraction,
                                        struct gradcmp_error *error) {
    struct gcmp_text header = GCMP_TEXT_INIT;
    enum gradcmp_status status = make_header(extraction, &header, error);
    if (status == GRADCMP_OK) {
        unsigned char length[8];
        for (unsigned i = 0; i < 8; i++) {
            length[i] = (unsigned char)((uint64_t)header.length_bytes >> (8 * i));
        }
        if (extraction->write(extraction->user, (const char *)length, sizeof length) != 0 ||
            extraction->write(extraction->user, header.bytes, header.length_bytes) != 0) {
            status = gcmp_error_set(error, GRADCMP_ERROR_IO, NULL, GRADCMP_NO_OFFSET,
                                    "the extracted tensors could not be written");
        }
    }
    gcmp_text_free(&header);
    return status;
}

/* Pass elements on, converted where that was asked for. */
static int write_elems(void *user, const void *elems, size_t bytes) {
    struct extraction *extraction = user;
    const struct extract_item *item = extraction->current;
    enum gradcmp_dtype stored = (enum gradcmp_dtype)item->parameter->dtype;
    unsigned width = gcmp_dtype_bytes(stored);
    if (stored == item->dtype) {
        extraction->write_failed = extraction->write(extraction->user, elems, bytes) != 0;
        return extraction->write_failed;
    }
    float converted[CONVERT_ELEMS];
    const unsigned char *from = elems;
    for (size_t left = bytes / width; left > 0 && !extraction->write_failed;) {
        size_t count = left < CONVERT_ELEMS ? left : CONVERT_ELEMS;
        gcmp_convert_float32(from, stored, count, converted);
        extraction->write_failed = extraction->write(extraction->user, (const char *)converted,
                                                     count * sizeof converted[0]) != 0;
        from += count * width;
        left -= count;
    }
    return extraction->write_failed;
}

static enum gradcmp_status write_item(struct extraction *extraction, size_t index,
                                      const struct gcmp_engine_options *engine,
                                      struct gradcmp_error *error) {
    const struct extract_item *item = &extraction->items[index];
    struct gradcmp_tally tally = {0};
    struct gradcmp_error side_error = {0};
    struct gcmp_job job = {
        .a = {.catalogue = &extraction->checkpoint->catalogue, .parameter = item->parameter},
        .elems = item->parameter->elem_count,
        .tallies = &tally,
        .sink = write_elems,
        .sink_user = extraction};
    extraction->current = item;
    enum gradcmp_status status = gcmp_engine_run(&job, 1, engine, &side_error, 1, error);
    if (extraction->write_failed) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "the extracted tensors could not be written");
    }
    return status;
}

static enum gradcmp_status extract(struct extraction *extraction,
                                   const struct gradcmp_options *options,
                                   struct gradcmp_error *error) {
    GCMP_TRY(choose_items(extraction, options, error));
    qsort(extraction->items, extraction->count, sizeof *extraction->items, compare_items);
    GCMP_TRY(write_header(extraction, error));
    struct gcmp_engine_options engine = {.threads = 1,
                                         .buffer_bytes = options->buffer_bytes,
                                         .verify = options->verify,
                                         .progress = options->progress,
                                         .progress_user = options->progress_user};
    for (size_t i = 0; i < extraction->count; i++) {
        GCMP_TRY(write_item(extraction, i, &engine, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_checkpoint_extract(struct gradcmp_checkpoint *checkpoint,
                                               const struct gradcmp_options *options,
                                               int as_float32, gradcmp_write_fn write, void *user,
                                               struct gradcmp_error *error) {
    GCMP_TRY(gcmp_checkpoint_load_all(checkpoint, error));
    struct gradcmp_options defaults = GRADCMP_OPTIONS_INIT;
    struct extraction extraction = {
        .checkpoint = checkpoint,
        .items = calloc(checkpoint->listed_count + 1, sizeof *extraction.items),
        .as_float32 = as_float32 != 0,
        .write = write,
        .user = user};
    if (extraction.items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = extract(&extraction, options == NULL ? &defaults : options, error);
    free(extraction.items);
    if (status != GRADCMP_ERROR_IO) {
        gcmp_error_add_path(error, checkpoint->path);
    }
    return status;
}
