/* Options and counters of torch's optimizers. Flattened, each parameter has all options of its
 * group (torch.distributed.checkpoint.state_dict, flatten_optimizer_state_dict); else each group
 * has. `step` is a tensor of each parameter (torch 1.12 and later), an integer, or an option of the
 * group (Apex, Transformer Engine).
 *
 * Limits: MAX_READ items of one option, evenly spread, are looked at; MAX_ITEM_BYTES of a
 * compressed one. */
#include "formats/dcp_groups.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/catalogue.h"
#include "base/dir.h"
#include "base/dtype.h"
#include "formats/dcp_item.h"
#include "formats/mixed_betas.h"

enum { MAX_READ = 1024, MAX_ITEM_BYTES = 1 << 20 };

/* One number, or a pair of them; values that were found so far. */
struct option {
    const char *word;        /* the last one of the key */
    bool of_state;           /* also as a state of a parameter */
    const char *settings[2]; /* the second one: of a pair; else NULL */
    size_t seen, read;       /* items there are, and those looked at */
    size_t unread;           /* of those looked at, damaged or in a form that is not known */
    double values[2];
    bool is_mixed;
};

static bool ends_with(const char *text, const char *word) {
    size_t bytes = strlen(text), word_bytes = strlen(word);
    return bytes > word_bytes && text[bytes - word_bytes - 1] == '.' &&
           strcmp(text + bytes - word_bytes, word) == 0;
}

static bool is_item_of(const struct gradcmp_stored *stored, const struct option *option) {
    bool in_group = strstr(stored->key, "param_groups.") != NULL;
    bool in_state = option->of_state && (strncmp(stored->key, "state.", 6) == 0 ||
                                         strstr(stored->key, ".state.") != NULL);
    return (in_group || in_state) && stored->piece_count > 0 &&
           ends_with(stored->key, option->word);
}

/* A number of up to 8 bytes, in this machine's order. */
static bool read_number(const unsigned char *bytes, enum gradcmp_dtype dtype, double *out) {
    float single;
    int64_t integer;
    int32_t small;
    switch (dtype) {
    case GRADCMP_DTYPE_FLOAT32:
        memcpy(&single, bytes, sizeof single);
        *out = (double)single;
        return true;
    case GRADCMP_DTYPE_FLOAT64:
        memcpy(out, bytes, sizeof *out);
        return true;
    case GRADCMP_DTYPE_INT64:
        memcpy(&integer, bytes, sizeof integer);
        *out = (double)integer;
        return true;
    case GRADCMP_DTYPE_INT32:
        memcpy(&small, bytes, sizeof small);
        *out = small;
        return true;
    default:
        return false;
    }
}

/* Copy the bytes of element `elem` of a record. */
static enum gradcmp_status copy_element(const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_source *source,
                                        const struct gradcmp_extent *extent, unsigned char *out,
                                        struct gradcmp_error *error) {
    unsigned width = gcmp_dtype_bytes((enum gradcmp_dtype)extent->dtype);
    uint64_t at = extent->offset_bytes + (uint64_t)extent->offset_elems * width;
    if (extent->decoded != NULL) {
        memcpy(out, (const unsigned char *)extent->decoded + at, width);
        return GRADCMP_OK;
    }
    if (extent->decoded_in_file != 0) {
        return pread(extent->decoded_fd, out, width, (off_t)at) == (ssize_t)width
                   ? GRADCMP_OK
                   : gcmp_error_set(error, GRADCMP_ERROR_IO, NULL, GRADCMP_NO_OFFSET,
                                    "a decoded item could not be read again");
    }
    return gcmp_dir_read(catalogue->dir, source->file, at, out, width, error);
}

/* Read the only element of a tensor; *found tells whether it is a number of a known type. */
static enum gradcmp_status read_scalar(const struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_stored *stored, double *value,
                                       bool *found, struct gradcmp_error *error) {
    const struct gradcmp_piece *piece = stored->pieces;
    const struct gradcmp_source *source = &catalogue->sources[piece->source];
    struct gradcmp_extent extent = {.offset_bytes = source->offset_bytes,
                                    .offset_elems = piece->offset_elems,
                                    .big_endian = source->big_endian,
                                    .dtype = stored->dtype};
    unsigned char bytes[8];
    for (unsigned d = 0; d < stored->ndim; d++) {
        if (stored->shape[d] != 1) {
            return GRADCMP_OK;
        }
    }
    if (gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype) > sizeof bytes) {
        return GRADCMP_OK;
    }
    if (source->kind == GRADCMP_SOURCE_ITEM) {
        GCMP_TRY(catalogue->format->resolve(catalogue, piece->source, &extent, error));
    }
    enum gradcmp_status status = copy_element(catalogue, source, &extent, bytes, error);
    *found = status == GRADCMP_OK && extent.big_endian == 0 &&
             read_number(bytes, (enum gradcmp_dtype)extent.dtype, value);
    free(extent.decoded);
    if (extent.decoded_in_file != 0) {
        close(extent.decoded_fd);
    }
    return status;
}

/* Read the number or the pair of an object. */
static enum gradcmp_status read_object(const struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_stored *stored, size_t count,
                                       double *values, bool *found, struct gradcmp_error *error) {
    const struct gradcmp_source *source = &catalogue->sources[stored->pieces[0].source];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_item item;
    enum gradcmp_status status =
        gcmp_dcp_open_item(catalogue, source, MAX_ITEM_BYTES, &arena, &item, error);
    if (status == GRADCMP_OK) {
        const struct gcmp_node *root = item.torch.root;
        *found = count == 1 ? gcmp_node_number(root, &values[0])
                            : gcmp_node_count(root) == 2 &&
                                  gcmp_node_number(gcmp_node_item(root, 0), &values[0]) &&
                                  gcmp_node_number(gcmp_node_item(root, 1), &values[1]);
    }
    gcmp_dcp_close_item(&item);
    gcmp_arena_free(&arena);
    return status;
}

/* Read one item of an option and compare it with those before. */
static enum gradcmp_status look_at(const struct gradcmp_catalogue *catalogue, size_t index,
                                   struct option *option, struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = &catalogue->stored[index];
    size_t count = option->settings[1] == NULL ? 1 : 2;
    double values[2] = {0, 0};
    bool found = false;
    struct gradcmp_error item_error = {0};
    enum gradcmp_status status =
        stored->dtype != (uint8_t)GRADCMP_DTYPE_NONE
            ? count == 1 ? read_scalar(catalogue, stored, values, &found, &item_error) : GRADCMP_OK
            : read_object(catalogue, stored, count, values, &found, &item_error);
    if (status == GRADCMP_ERROR_IO || status == GRADCMP_ERROR_MEMORY) {
        if (error != NULL) {
            *error = item_error;
        }
        return status;
    }
    option->unread += status != GRADCMP_OK; /* noted: no gradient is read from it */
    for (size_t i = 0; i < count && found; i++) {
        option->is_mixed =
            option->is_mixed ||
            (option->read > 0 && (values[i] < option->values[i] || values[i] > option->values[i]));
        option->values[i] = option->read == 0 ? values[i] : option->values[i];
    }
    option->read += found;
    return GRADCMP_OK;
}

static enum gradcmp_status read_option(struct gradcmp_catalogue *catalogue, struct option *option,
                                       struct gradcmp_error *error) {
    size_t total = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        total += is_item_of(&catalogue->stored[i], option);
    }
    size_t each = total / MAX_READ + 1;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (is_item_of(&catalogue->stored[i], option) && option->seen++ % each == 0) {
            GCMP_TRY(look_at(catalogue, i, option, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status record(struct gradcmp_catalogue *catalogue, const struct option *option,
                                  struct gradcmp_error *error) {
    if (option->unread > 0) {
        return gcmp_catalogue_note(catalogue, error,
                                   "%zu items that state the optimizer's %s cannot be read",
                                   option->unread, option->word);
    }
    if (option->is_mixed && strcmp(option->word, "betas") == 0) {
        return gcmp_set_mixed_betas(catalogue, error);
    }
    if (option->is_mixed) {
        return gcmp_catalogue_note(catalogue, error,
                                   "the optimizer's parameters differ in their %s", option->word);
    }
    for (size_t i = 0; i < 2 && option->read > 0 && option->settings[i] != NULL; i++) {
        struct gradcmp_setting setting = {.name = option->settings[i],
                                          .kind = GRADCMP_SETTING_FLOAT,
                                          .number = option->values[i]};
        GCMP_TRY(gcmp_catalogue_set(catalogue, &setting, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dcp_read_groups(struct gradcmp_catalogue *catalogue,
                                         struct gradcmp_error *error) {
    struct option options[] = {
        {.word = "betas", .settings = {"adam_beta1", "adam_beta2"}},
        {.word = "step", .of_state = true, .settings = {"optimizer.step", NULL}},
        {.word = "momentum", .settings = {"sgd_momentum", NULL}},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        GCMP_TRY(read_option(catalogue, &options[i], error));
        GCMP_TRY(record(catalogue, &options[i], error));
    }
    return GRADCMP_OK;
}
