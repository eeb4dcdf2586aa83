/* gradcmp_checkpoint_extract: unsharded tensors as one safetensors file, streamed. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/text.h"
#include "extraction.h"
#include "formats/extracted.h"
#include "report/json_parts.h"

enum { HEADER_ALIGN = 8 };

/* Where the file goes. */
struct destination {
    gradcmp_write_fn write;
    void *user;
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

static bool has_name(enum gradcmp_dtype dtype) {
    return safetensors_dtype(dtype) != NULL;
}

/* Wide types first, so that every tensor starts at a multiple of its element size. */
static int compare_items(const void *left, const void *right) {
    const struct gcmp_extract_item *a = left, *b = right;
    unsigned width_a = gcmp_dtype_bytes(a->dtype), width_b = gcmp_dtype_bytes(b->dtype);
    if (width_a != width_b) {
        return width_a > width_b ? -1 : 1;
    }
    int order = strcmp(a->parameter->state, b->parameter->state);
    return order != 0 ? order : strcmp(a->parameter->name, b->parameter->name);
}

static int keep(void *user, const char *bytes, size_t length_bytes) {
    gcmp_text_add_bytes(user, bytes, length_bytes);
    return 0;
}

/* The layers of all tensors, as the text of a JSON object. */
static void put_layers(struct gcmp_emitter *json, const struct gcmp_extraction *extraction) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    struct gcmp_out out;
    gcmp_out_begin(&out, keep, &text);
    struct gcmp_emitter inner = {.out = &out};
    gcmp_emit_open_object(&inner, NULL, false);
    for (size_t i = 0; i < extraction->count; i++) {
        const struct gcmp_extract_item *item = &extraction->items[i];
        gcmp_emit_integer(&inner, item->key, item->parameter->layer);
        gcmp_out_drain(&out);
    }
    gcmp_emit_close(&inner);
    bool good = gcmp_out_end(&out, NULL) == GRADCMP_OK && !text.failed;
    json->out->text.failed = json->out->text.failed || !good;
    gcmp_emit_text(json, GCMP_EXTRACTED_TENSOR_LAYERS, good ? text.bytes : "");
    gcmp_text_free(&text);
}

/* __metadata__ holds texts only. */
static enum gradcmp_status put_metadata(struct gcmp_emitter *json,
                                        struct gcmp_extraction *extraction,
                                        struct gradcmp_error *error) {
    struct gcmp_extract_text texts[GCMP_EXTRACT_MAX_TEXTS];
    size_t count;
    GCMP_TRY(gcmp_extraction_texts(extraction, texts, &count, error));
    gcmp_emit_open_object(json, "__metadata__", false);
    gcmp_emit_text(json, "format", "pt");
    for (size_t i = 0; i < count; i++) {
        gcmp_emit_text(json, texts[i].name, texts[i].value);
    }
    put_layers(json, extraction);
    gcmp_emit_close(json);
    return GRADCMP_OK;
}

static void put_item(struct gcmp_emitter *json, const struct gcmp_extract_item *item,
                     uint64_t offset) {
    const struct gradcmp_parameter *parameter = item->parameter;
    gcmp_emit_open_object(json, item->key, false);
    gcmp_emit_text(json, "dtype", safetensors_dtype(item->dtype));
    gcmp_emit_sizes(json, "shape", parameter->shape, parameter->ndim);
    uint64_t offsets[2] = {offset, offset + item->bytes};
    gcmp_emit_sizes(json, "data_offsets", offsets, 2);
    gcmp_emit_close(json);
}

/* Make the header's JSON, padded with spaces. */
static enum gradcmp_status make_header(struct gcmp_extraction *extraction, struct gcmp_text *header,
                                       struct gradcmp_error *error) {
    struct gcmp_out out;
    gcmp_out_begin(&out, keep, header);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_open_object(&json, NULL, false);
    enum gradcmp_status status = put_metadata(&json, extraction, error);
    uint64_t offset = 0;
    for (size_t i = 0; i < extraction->count; i++) {
        put_item(&json, &extraction->items[i], offset);
        offset += extraction->items[i].bytes;
        gcmp_out_drain(&out);
    }
    gcmp_emit_close(&json);
    enum gradcmp_status ended = gcmp_out_end(&out, status == GRADCMP_OK ? error : NULL);
    GCMP_TRY(status);
    GCMP_TRY(ended);
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

static enum gradcmp_status write_header(struct gcmp_extraction *extraction,
                                        const struct destination *to, struct gradcmp_error *error) {
    struct gcmp_text header = GCMP_TEXT_INIT;
    enum gradcmp_status status = make_header(extraction, &header, error);
    if (status == GRADCMP_OK) {
        unsigned char length[8];
        for (unsigned i = 0; i < 8; i++) {
            length[i] = (unsigned char)((uint64_t)header.length_bytes >> (8 * i));
        }
        if (to->write(to->user, (const char *)length, sizeof length) != 0 ||
            to->write(to->user, header.bytes, header.length_bytes) != 0) {
            status = gcmp_error_set(error, GRADCMP_ERROR_IO, NULL, GRADCMP_NO_OFFSET,
                                    "the extracted tensors could not be written");
        }
    }
    gcmp_text_free(&header);
    return status;
}

static int write_elements(void *user, const void *bytes, size_t count) {
    const struct destination *to = user;
    return to->write(to->user, bytes, count);
}

static enum gradcmp_status extract(struct gcmp_extraction *extraction, struct destination *to,
                                   struct gradcmp_error *error) {
    GCMP_TRY(gcmp_extraction_make(extraction, error));
    qsort(extraction->items, extraction->count, sizeof *extraction->items, compare_items);
    extraction->emit = write_elements;
    extraction->is_little = true;
    extraction->user = to;
    GCMP_TRY(write_header(extraction, to, error));
    for (size_t i = 0; i < extraction->count; i++) {
        GCMP_TRY(gcmp_extraction_stream(extraction, &extraction->items[i], error));
    }
    gcmp_extraction_end(extraction);
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_checkpoint_extract(struct gradcmp_checkpoint *checkpoint,
                                               const struct gradcmp_options *options,
                                               int as_float32, gradcmp_write_fn write, void *user,
                                               struct gradcmp_error *error) {
    struct destination to = {write, user};
    struct gcmp_extraction extraction = {.checkpoint = checkpoint,
                                         .options = gcmp_options_complete(options),
                                         .as_float32 = as_float32 != 0,
                                         .format = "safetensors",
                                         .takes = has_name};
    enum gradcmp_status status = extract(&extraction, &to, error);
    gcmp_extraction_free(&extraction);
    if (status != GRADCMP_ERROR_IO) {
        gcmp_error_add_path(error, checkpoint->path);
    }
    return status;
}
