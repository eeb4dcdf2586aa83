/* gradcmp_checkpoint_extract_hdf5: unsharded tensors as one HDF5 file, streamed to the helper. */
#include <stdlib.h>
#include <string.h>

#include "extraction.h"
#include "formats/hdf5_writer.h"

/* A name becomes a path of groups. Components that groups cannot have (empty ones, or "."), and
 * slashes, which would be taken for others, leave the key as the name of one dataset. */
static const char *make_path(struct gcmp_arena *arena, const char *key) {
    size_t length = strlen(key);
    bool has_odd_parts =
        length == 0 || key[0] == '.' || key[length - 1] == '.' || strstr(key, "..") != NULL;
    char *path = gcmp_arena_dup(arena, key);
    for (char *at = path; path != NULL && !has_odd_parts && *at != '\0'; at++) {
        *at = *at == '.' ? '/' : *at;
    }
    return path;
}

static int send_elements(void *user, const void *bytes, size_t count) {
    return !gcmp_h5_writer_elements(user, bytes, count);
}

/* A dataset's own name would be that of a group: "a.b" beside "a.b.c". */
static enum gradcmp_status check_paths(const struct gcmp_extraction *extraction,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < extraction->count; i++) {
        const struct gcmp_extract_item *item = &extraction->items[i];
        if (strchr(item->parameter->name, '/') != NULL) {
            GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                      "%.300s: names with slashes are paths in HDF5; extract to safetensors",
                      item->parameter->name);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status write_item(struct gcmp_extraction *extraction,
                                      struct gcmp_h5_writer *writer,
                                      const struct gcmp_extract_item *item,
                                      struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = item->parameter;
    const char *const texts[][2] = {{"gradcmp.name", parameter->name},
                                    {"gradcmp.state", parameter->state},
                                    {"gradcmp.origin", extraction->checkpoint->path},
                                    {"dtype", gradcmp_dtype_name(item->dtype)}};
    struct gcmp_h5_new dataset = {.path = make_path(&extraction->arena, item->key),
                                  .dtype = item->dtype,
                                  .ndim = parameter->ndim,
                                  .sizes = parameter->shape,
                                  .layer = (uint64_t)parameter->layer,
                                  .texts = texts,
                                  .text_count = sizeof texts / sizeof *texts};
    if (dataset.path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (!gcmp_h5_writer_dataset(writer, &dataset)) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "the extracted tensors could not be written");
    }
    return gcmp_extraction_stream(extraction, item, error);
}

static enum gradcmp_status write_all(struct gcmp_extraction *extraction,
                                     struct gcmp_h5_writer *writer, struct gradcmp_error *error) {
    struct gcmp_extract_text texts[GCMP_EXTRACT_MAX_TEXTS];
    size_t count;
    GCMP_TRY(gcmp_extraction_texts(extraction, texts, &count, error));
    for (size_t i = 0; i < count; i++) {
        (void)gcmp_h5_writer_attribute(writer, texts[i].name, texts[i].value);
    }
    for (size_t i = 0; i < extraction->count; i++) {
        GCMP_TRY(write_item(extraction, writer, &extraction->items[i], error));
    }
    gcmp_extraction_end(extraction);
    return GRADCMP_OK;
}

static enum gradcmp_status extract(struct gcmp_extraction *extraction, int descriptor,
                                   struct gradcmp_error *error) {
    struct gcmp_h5_writer *writer;
    struct gradcmp_error own = {0};
    GCMP_TRY(gcmp_extraction_make(extraction, error));
    GCMP_TRY(check_paths(extraction, error));
    GCMP_TRY(gcmp_h5_writer_start(descriptor, &writer, error));
    extraction->emit = send_elements;
    extraction->user = writer;
    enum gradcmp_status status = write_all(extraction, writer, &own);
    /* Where the helper listens no more, it says why. */
    bool asks_helper = status == GRADCMP_OK || status == GRADCMP_ERROR_IO;
    enum gradcmp_status ended = gcmp_h5_writer_end(writer, asks_helper, error);
    if (status != GRADCMP_OK && (!asks_helper || ended == GRADCMP_OK || own.path[0] != '\0')) {
        if (error != NULL) {
            *error = own;
        }
        return status;
    }
    return ended;
}

enum gradcmp_status gradcmp_checkpoint_extract_hdf5(struct gradcmp_checkpoint *checkpoint,
                                                    const struct gradcmp_options *options,
                                                    int as_float32, int descriptor,
                                                    struct gradcmp_error *error) {
    struct gcmp_extraction extraction = {.checkpoint = checkpoint,
                                         .options = gcmp_options_complete(options),
                                         .as_float32 = as_float32 != 0,
                                         .format = "hdf5",
                                         .takes = gcmp_h5_writer_takes};
    enum gradcmp_status status = extract(&extraction, descriptor, error);
    gcmp_extraction_free(&extraction);
    if (status != GRADCMP_ERROR_IO) {
        gcmp_error_add_path(error, checkpoint->path);
    }
    return status;
}
