/* From the nodes of a rank's file to stored tensors and sources.
 *
 * Limits: MAX_DEPTH dicts within dicts; MAX_NAME_BYTES in a name; NAME_BYTES_PER_BYTE bytes of
 * names for each byte of the pickle. */
#include "formats/rank_tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"

enum {
    MAX_DEPTH = 16,
    MAX_NAME_BYTES = 2048,
    NODE_BYTES = 16, /* what a value costs beside its name */
    NAME_BYTES_PER_BYTE = 16,
    LEAST_NAME_BYTES = 1 << 20
};

enum gradcmp_status gcmp_rank_arrays_make(struct gradcmp_catalogue *catalogue,
                                          struct gcmp_rank_arrays **out,
                                          struct gradcmp_error *error) {
    *out = gcmp_arena_alloc(catalogue->arena, 1, sizeof **out);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    catalogue->format_data = *out;
    return GRADCMP_OK;
}

/* Remember an array; the list moves to twice its room when it is full. */
static enum gradcmp_status keep_array(struct gcmp_rank_reader *reader, uint32_t source,
                                      const struct gcmp_torch_array *array,
                                      struct gradcmp_error *error) {
    struct gcmp_rank_arrays *arrays = reader->arrays;
    if (!gcmp_arena_grow(reader->catalogue->arena, &arrays->list, arrays->count, &arrays->capacity,
                         sizeof *arrays->list)) {
        GCMP_FAIL_MEMORY(error);
    }
    arrays->list[arrays->count++] = (struct gcmp_rank_array){source, *array};
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_rank_reader_open(struct gcmp_rank_reader *reader,
                                          struct gradcmp_catalogue *catalogue,
                                          struct gcmp_rank_arrays *arrays, const char *name,
                                          struct gradcmp_error *error) {
    *reader = (struct gcmp_rank_reader){.catalogue = catalogue, .arrays = arrays};
    uint32_t file;
    GCMP_TRY(gcmp_dir_add(catalogue->dir, name, strlen(name), &file, error));
    return gcmp_torch_open(catalogue->dir, file, 0, gcmp_dir_file_bytes(catalogue->dir, file),
                           &reader->arena, &reader->torch, error);
}

enum gradcmp_status gcmp_rank_reader_open_range(struct gcmp_rank_reader *reader,
                                                struct gradcmp_catalogue *catalogue,
                                                const struct gradcmp_source *range,
                                                struct gradcmp_error *error) {
    *reader = (struct gcmp_rank_reader){.catalogue = catalogue};
    return gcmp_torch_open(catalogue->dir, range->file, range->offset_bytes, range->length_bytes,
                           &reader->arena, &reader->torch, error);
}

void gcmp_rank_reader_close(struct gcmp_rank_reader *reader) {
    gcmp_map_free(&reader->sources);
    gcmp_arena_free(&reader->arena);
    *reader = (struct gcmp_rank_reader){.catalogue = NULL};
}

/* The source of a record that is viewed as elements of one type. */
static enum gradcmp_status find_source(struct gcmp_rank_reader *reader,
                                       const struct gradcmp_extent *view, uint32_t *index,
                                       struct gradcmp_error *error) {
    uint64_t *key = gcmp_arena_alloc(&reader->arena, 2, sizeof *key);
    size_t found;
    if (key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    key[0] = view->offset_bytes;
    key[1] = view->dtype;
    enum gcmp_map_result result = gcmp_map_add(&reader->sources, key, 2 * sizeof *key,
                                               reader->catalogue->source_count, &found);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    *index = (uint32_t)found;
    if (result == GCMP_MAP_PRESENT) {
        return GRADCMP_OK;
    }
    struct gradcmp_source source = {.offset_bytes = view->offset_bytes,
                                    .length_bytes = view->length_bytes,
                                    .file = reader->torch.file,
                                    .crc32 = view->crc32,
                                    .stored = (uint32_t)reader->catalogue->stored_count,
                                    .kind = GRADCMP_SOURCE_RANGE,
                                    .big_endian = view->big_endian};
    return gcmp_catalogue_add_source(reader->catalogue, &source, index, error);
}

/* Add a stored tensor with its one piece; `stride` NULL: row-major from the source's start. */
static enum gradcmp_status add_stored(struct gcmp_rank_reader *reader,
                                      const struct gcmp_rank_tensor *tensor,
                                      const struct gradcmp_extent *view, uint32_t source,
                                      struct gradcmp_stored **out, struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = reader->catalogue;
    struct gradcmp_stored *stored;
    GCMP_TRY(gcmp_catalogue_add_stored(catalogue, tensor->key, view->ndim, view->shape, 1, &stored,
                                       error));
    stored->name = tensor->name;
    stored->state = tensor->state;
    stored->dtype = view->dtype;
    stored->layout = tensor->layout;
    uint64_t *start = gcmp_arena_alloc(catalogue->arena, view->ndim, sizeof *start);
    int64_t *stride = gcmp_arena_alloc(catalogue->arena, view->ndim, sizeof *stride);
    if (start == NULL || stride == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(stride, view->stride, view->ndim * sizeof *stride);
    stored->pieces[0] = (struct gradcmp_piece){.start = start,
                                               .extent = stored->shape,
                                               .stride = stride,
                                               .offset_elems = view->offset_elems,
                                               .source = source,
                                               .coords = tensor->coords};
    if (out != NULL) {
        *out = stored;
    }
    return GRADCMP_OK;
}

/* A source's elements are those of the decoded tensor, in row-major order. */
static void view_of_array(const struct gcmp_torch_array *array, struct gradcmp_extent *view) {
    *view = (struct gradcmp_extent){.dtype = array->dtype, .ndim = array->ndim};
    int64_t step = 1;
    for (unsigned d = array->ndim; d-- > 0;) {
        view->shape[d] = array->shape[d];
        view->stride[d] = step;
        step *= array->shape[d] > 0 ? (int64_t)array->shape[d] : 1;
    }
}

static enum gradcmp_status add_array(struct gcmp_rank_reader *reader,
                                     const struct gcmp_rank_tensor *tensor,
                                     const struct gcmp_node *node, struct gradcmp_stored **out,
                                     struct gradcmp_error *error) {
    struct gcmp_torch_array array = {.ndim = 0};
    struct gradcmp_extent view;
    uint32_t index;
    GCMP_TRY(gcmp_torch_array(&reader->torch, node, &array, error));
    view_of_array(&array, &view);
    struct gradcmp_source source = {.offset_bytes = array.offset_bytes,
                                    .length_bytes = array.length_bytes,
                                    .file = reader->torch.file,
                                    .stored = (uint32_t)reader->catalogue->stored_count,
                                    .kind = GRADCMP_SOURCE_ITEM,
                                    .big_endian = array.big_endian};
    GCMP_TRY(gcmp_catalogue_add_source(reader->catalogue, &source, &index, error));
    GCMP_TRY(keep_array(reader, index, &array, error));
    return add_stored(reader, tensor, &view, index, out, error);
}

static enum gradcmp_status add_view(struct gcmp_rank_reader *reader,
                                    const struct gcmp_rank_tensor *tensor,
                                    const struct gcmp_node *node, struct gradcmp_stored **out,
                                    struct gradcmp_error *error) {
    struct gradcmp_extent view;
    uint32_t source;
    GCMP_TRY(gcmp_torch_tensor(&reader->torch, node, &view, error));
    GCMP_TRY(find_source(reader, &view, &source, error));
    return add_stored(reader, tensor, &view, source, out, error);
}

/* Say which tensor it is that failed. */
static enum gradcmp_status name_failure(enum gradcmp_status status, const char *key,
                                        struct gradcmp_error *error) {
    if (status != GRADCMP_OK && status != GRADCMP_ERROR_MEMORY && error != NULL) {
        char message[sizeof error->message];
        memcpy(message, error->message, sizeof message);
        size_t at = (size_t)snprintf(error->message, sizeof error->message, "%.160s: ", key);
        snprintf(error->message + at, sizeof error->message - at, "%.*s",
                 (int)(sizeof error->message - at - 1), message);
    }
    return status;
}

enum gradcmp_status gcmp_rank_reader_add(struct gcmp_rank_reader *reader,
                                         const struct gcmp_rank_tensor *tensor,
                                         const struct gcmp_node *node, struct gradcmp_stored **out,
                                         struct gradcmp_error *error) {
    enum gradcmp_status status = gcmp_torch_array_args(node) != NULL
                                     ? add_array(reader, tensor, node, out, error)
                                     : add_view(reader, tensor, node, out, error);
    return name_failure(status, tensor->key, error);
}

enum gradcmp_status gcmp_rank_resolve(const struct gradcmp_catalogue *catalogue, uint32_t source,
                                      struct gradcmp_extent *out, struct gradcmp_error *error) {
    const struct gcmp_rank_arrays *arrays = catalogue->format_data;
    size_t low = 0, high = arrays->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (arrays->list[middle].source < source) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == arrays->count || arrays->list[low].source != source) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "source %u is no encoded tensor", source);
    }
    return gcmp_torch_array_decode(catalogue->dir, catalogue->sources[source].file,
                                   &arrays->list[low].array, out, error);
}

/* A dict that is being gone through, and what its keys begin with. */
struct level {
    const struct gcmp_node *dict;
    size_t next;
    const char *prefix;
};

static bool is_dict(const struct gcmp_node *node) {
    return node != NULL &&
           (node->kind == GCMP_NODE_DICT || gcmp_node_is_call(node, "collections", "OrderedDict"));
}

/* A walk over nested dicts. */
struct walk {
    struct gcmp_rank_reader *reader;
    struct level levels[MAX_DEPTH];
    size_t depth;
    uint64_t bytes_left; /* of names: dicts may be shared, so the pickle alone bounds no walk */
};

/* The dotted name of a key; numbers are names too. */
static enum gradcmp_status name_of(struct walk *walk, const struct gcmp_node *key, const char **out,
                                   struct gradcmp_error *error) {
    const char *prefix = walk->levels[walk->depth - 1].prefix, *text = gcmp_node_text(key);
    char digits[24];
    int64_t number;
    if (text == NULL) {
        snprintf(digits, sizeof digits, "%lld",
                 gcmp_node_int(key, &number) ? (long long)number : -1LL);
        text = digits;
    }
    size_t bytes = strlen(prefix) + strlen(text) + NODE_BYTES;
    if (bytes > MAX_NAME_BYTES || bytes > walk->bytes_left) {
        GCMP_RANK_FAIL(walk->reader, key, error, GRADCMP_ERROR_LIMIT,
                       "a state dict with names longer than %d bytes, or with the same dicts in "
                       "many places",
                       MAX_NAME_BYTES);
    }
    walk->bytes_left -= bytes;
    *out = gcmp_arena_format(walk->reader->catalogue->arena, "%s%s", prefix, text);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status enter(struct walk *walk, const struct gcmp_node *dict, const char *name,
                                 struct gradcmp_error *error) {
    const char *prefix = gcmp_arena_format(&walk->reader->arena, "%s.", name);
    if (prefix == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (walk->depth == MAX_DEPTH) {
        GCMP_RANK_FAIL(walk->reader, dict, error, GRADCMP_ERROR_LIMIT,
                       "%.160s: dicts nested more than %d deep", name, MAX_DEPTH);
    }
    walk->levels[walk->depth++] = (struct level){dict, 0, prefix};
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_rank_walk(struct gcmp_rank_reader *reader, const struct gcmp_node *dict,
                                   gcmp_rank_visit_fn visit, void *user,
                                   struct gradcmp_error *error) {
    if (!is_dict(dict)) {
        GCMP_RANK_FAIL(reader, dict, error, GRADCMP_ERROR_CORRUPT,
                       "expected a dict of tensors, found %s", gcmp_node_kind_name(dict));
    }
    struct walk walk = {.reader = reader, .levels = {{dict, 0, ""}}, .depth = 1};
    walk.bytes_left = NAME_BYTES_PER_BYTE * reader->torch.pickle->length_bytes + LEAST_NAME_BYTES;
    while (walk.depth > 0) {
        struct level *level = &walk.levels[walk.depth - 1];
        const struct gcmp_node *key, *value;
        const char *name;
        if (!gcmp_node_pair(level->dict, level->next++, &key, &value)) {
            walk.depth--;
            continue;
        }
        GCMP_TRY(name_of(&walk, key, &name, error));
        GCMP_TRY(is_dict(value) ? enter(&walk, value, name, error)
                                : visit(user, name, value, error));
    }
    return GRADCMP_OK;
}
