/* The walk over a graph of nodes. It is a graph, not a tree: what is shared is visited in each
 * place, so the number of visits is bounded by the pickle's length; what holds itself is told by
 * its distance. */
#include "bits/walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "bits/parts.h"
#include "bits/side.h"

/* Limits: nested containers; bytes of a path; archives within archives; visits for each byte of the
 * pickle, and at least; bytes of items for each byte of the pickle, and at least; numbers of a list
 * that are kept together; bytes of a tensor that is taken into memory although its file stays. */
enum {
    MAX_DEPTH = 200,
    MAX_PATH_BYTES = 8192,
    MAX_ARCHIVES = 3,
    VISITS_PER_BYTE = 16,
    LEAST_VISITS = 1 << 16,
    MEMORY_PER_BYTE = 16,
    LEAST_MEMORY = 24 << 20,
    VECTOR_NUMBERS = 16,
    SMALL_BYTES = 64 * 1024
};

/* A container under way. */
struct frame {
    const struct gcmp_node *node;
    size_t next, path_bytes;
};

struct walk {
    struct gcmp_bits_side *side;
    const struct gcmp_bits_archive *archive;
    struct gcmp_rank_reader reader;
    struct frame frames[MAX_DEPTH];
    size_t depth;
    uint64_t visits_left;
    uint64_t memory_left; /* bytes of items that may still be made */
    char path[MAX_PATH_BYTES];
    size_t path_bytes;
    struct gradcmp_error *error;
};

#define WALK_FAIL(walk, node, code, ...)                                                           \
    return gcmp_error_set(                                                                         \
        (walk)->error, (code),                                                                     \
        gcmp_dir_file_path((walk)->archive->torch->dir, (walk)->archive->torch->file),             \
        (walk)->archive->torch->pickle->offset_bytes + ((node) == NULL ? 0 : (node)->at),          \
        __VA_ARGS__)

/* --- paths --- */

static void add_to_path(struct walk *walk, const char *bytes, size_t count) {
    size_t room = sizeof walk->path - 1 - walk->path_bytes;
    count = count < room ? count : room;
    memcpy(walk->path + walk->path_bytes, bytes, count);
    walk->path_bytes += count;
    walk->path[walk->path_bytes] = '\0';
}

static enum gradcmp_status add_key(struct walk *walk, const struct gcmp_node *key) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    bool ok = gcmp_bits_key_text(&text, key);
    if (ok) {
        add_to_path(walk, text.bytes, text.length_bytes);
    }
    bool lacks_memory = text.failed;
    gcmp_text_free(&text);
    if (lacks_memory) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (!ok) {
        WALK_FAIL(walk, key, GRADCMP_ERROR_LIMIT, "pickle: a key that is nested too deeply");
    }
    return GRADCMP_OK;
}

/* Go on in the path by a part's name. */
static enum gradcmp_status enter_path(struct walk *walk, const struct gcmp_bits_part *part) {
    char number[48];
    if (walk->path_bytes > 0) {
        add_to_path(walk, "/", 1);
    }
    if (part->key == NULL) {
        bool is_word = part->name[0] == '<';
        int length = is_word ? snprintf(number, sizeof number, "%s", part->name)
                             : snprintf(number, sizeof number, "%s%zu",
                                        part->name[0] == '#' ? "#" : "", part->number);
        add_to_path(walk, number, (size_t)length);
    } else {
        add_to_path(walk, "<items>/", part->is_item ? strlen("<items>/") : 0);
        GCMP_TRY(add_key(walk, part->key));
    }
    if (walk->path_bytes == sizeof walk->path - 1) {
        WALK_FAIL(walk, part->value, GRADCMP_ERROR_LIMIT,
                  "pickle: keys nested so deeply that they "
                  "take more than %d bytes",
                  MAX_PATH_BYTES);
    }
    return GRADCMP_OK;
}

/* --- adding items --- */

/* Count work: what is shared is copied into each place where it stands. */
static enum gradcmp_status charge(struct walk *walk, size_t bytes) {
    uint64_t cost = 1 + bytes / 16;
    if (walk->visits_left < cost) {
        WALK_FAIL(walk, walk->archive->torch->root, GRADCMP_ERROR_LIMIT,
                  "pickle: the same objects stand in too many places");
    }
    walk->visits_left -= cost;
    return GRADCMP_OK;
}

/* Count what an item takes in memory. */
static enum gradcmp_status charge_memory(struct walk *walk, size_t bytes) {
    if (walk->memory_left < bytes) {
        WALK_FAIL(
            walk, walk->archive->torch->root, GRADCMP_ERROR_LIMIT,
            "pickle: %zu bytes make more items than memory is set aside for: the same objects "
            "stand in too many places",
            walk->archive->torch->pickle->length_bytes);
    }
    walk->memory_left -= bytes;
    return GRADCMP_OK;
}

/* Add an item under the path as it stands, with a copy of its value's `count` bytes before the copy
 * of the path: most items are small, and an allocation is not. */
static enum gradcmp_status add_with_value(struct walk *walk, struct gcmp_bits_item *item,
                                          const void *value, size_t count) {
    size_t total = 0;
    GCMP_TRY(charge(walk, walk->path_bytes + count));
    char *copy = gcmp_add_size(count, walk->path_bytes + 2, &total)
                     ? gcmp_arena_alloc(&walk->side->arena, total, 1)
                     : NULL;
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    GCMP_TRY(charge_memory(walk, sizeof *item + total));
    if (value != NULL) {
        memcpy(copy, value, count);
        item->bytes = (const unsigned char *)copy;
        item->length_bytes = count;
    }
    item->path = memcpy(copy + count + 1, walk->path, walk->path_bytes);
    item->group = (uint8_t)gcmp_bits_group_of(item->path, item->state);
    item->by_rank = gcmp_bits_is_by_rank(item->path);
    return gcmp_bits_add(&walk->side->items, item, walk->error);
}

static enum gradcmp_status add_item(struct walk *walk, struct gcmp_bits_item *item) {
    GCMP_TRY(charge_memory(walk, item->kind == GCMP_BITS_TENSOR ? 0 : item->length_bytes));
    return add_with_value(walk, item, NULL, 0);
}

static enum gradcmp_status add_value(struct walk *walk, const char *type, const void *bytes,
                                     size_t count) {
    struct gcmp_bits_item item = {.kind = GCMP_BITS_VALUE, .type = type};
    return add_with_value(walk, &item, bytes, count);
}

static enum gradcmp_status add_formatted(struct walk *walk, const char *type, const char *format,
                                         ...) __attribute__((format(printf, 3, 4)));
static enum gradcmp_status add_formatted(struct walk *walk, const char *type, const char *format,
                                         ...) {
    char text[64];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add_value(walk, type, text, (size_t)length);
}

/* --- tensors --- */

/* A tensor whose file goes away, or a small one that is no parameter, is taken into memory: then
 * it can be compared with itself over ranks, and however it was stored elsewhere. */
static enum gradcmp_status maybe_fetch(struct walk *walk, const struct gcmp_node *node,
                                       struct gcmp_bits_item *item) {
    uint64_t bytes = item->parameter->elem_count * item->elem_bytes;
    bool is_small = item->state == NULL && bytes <= SMALL_BYTES && bytes <= walk->memory_left / 2;
    if (!walk->archive->passing && (!is_small || bytes > walk->side->memory_left)) {
        return GRADCMP_OK;
    }
    if (bytes > walk->side->memory_left) {
        WALK_FAIL(walk, node, GRADCMP_ERROR_LIMIT,
                  "objects inside of compressed items hold more tensors than are taken into memory "
                  "(256 MiB)");
    }
    walk->side->memory_left -= bytes;
    walk->memory_left -= walk->archive->passing ? 0 : bytes;
    return gcmp_bits_fetch(&walk->side->arena, item, walk->error);
}

/* Axes along which one element stands many times are read once. */
static void drop_repeats(struct gradcmp_parameter *parameter, uint64_t *shape,
                         const int64_t *stride, uint64_t source_bytes) {
    uint64_t elems = 1, width = gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype);
    bool fits = gcmp_product(shape, parameter->ndim, &elems) &&
                elems <= (16 * source_bytes + (1 << 20)) / width;
    for (unsigned d = 0; !fits && d < parameter->ndim; d++) {
        shape[d] = stride[d] == 0 ? 1 : shape[d];
    }
    (void)gcmp_product(shape, parameter->ndim, &parameter->elem_count);
}

/* The parameter of one stored tensor of one piece, which begins at its source's start. */
static enum gradcmp_status whole_parameter(struct walk *walk, const struct gradcmp_stored *stored,
                                           struct gcmp_bits_item *item) {
    struct gcmp_arena *arena = &walk->side->arena;
    const struct gradcmp_piece *piece = &stored->pieces[0];
    struct gradcmp_parameter *parameter = gcmp_arena_alloc(arena, 1, sizeof *parameter);
    struct gradcmp_slab *slab = gcmp_arena_alloc(arena, 1, sizeof *slab);
    uint64_t *shape = gcmp_arena_alloc(arena, stored->ndim + 1U, sizeof *shape);
    if (parameter == NULL || slab == NULL || shape == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    memcpy(shape, stored->shape, stored->ndim * sizeof *shape);
    *parameter = (struct gradcmp_parameter){.name = stored->key,
                                            .state = stored->state,
                                            .shape = shape,
                                            .slabs = slab,
                                            .copy_count = 1,
                                            .ndim = stored->ndim,
                                            .dtype = stored->dtype};
    drop_repeats(parameter, shape, piece->stride,
                 walk->side->extra.sources[piece->source].length_bytes);
    parameter->slab_count = parameter->elem_count > 0;
    *slab = (struct gradcmp_slab){.start = piece->start,
                                  .extent = shape,
                                  .stride = piece->stride,
                                  .offset_elems = piece->offset_elems,
                                  .source = piece->source};
    item->parameter = parameter;
    item->catalogue = &walk->side->extra;
    item->shape = stored->shape;
    item->ndim = stored->ndim;
    item->dtype = stored->dtype;
    item->elem_bytes = (uint8_t)gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype);
    return GRADCMP_OK;
}

static enum gradcmp_status add_stored(struct walk *walk, const struct gcmp_node *node,
                                      const struct gradcmp_stored *stored, const char *type) {
    struct gcmp_bits_item item = {.kind = GCMP_BITS_TENSOR, .type = type};
    GCMP_TRY(whole_parameter(walk, stored, &item));
    const struct gradcmp_source *source = &walk->side->extra.sources[stored->pieces[0].source];
    if (!walk->archive->passing) {
        const struct gradcmp_stored *known =
            gcmp_bits_stored_at(walk->side, source->file, source->offset_bytes,
                                source->offset_bytes + source->length_bytes);
        item.state = known == NULL ? NULL : known->state;
        item.is_flat =
            known != NULL && gcmp_bits_is_flat(gcmp_bits_side_catalogue(walk->side), known);
    }
    GCMP_TRY(maybe_fetch(walk, node, &item));
    return add_item(walk, &item);
}

/* Add the tensor of a node; *is_read false where its form is not known, so that its structure has
 * to speak. */
static enum gradcmp_status add_tensor(struct walk *walk, const struct gcmp_node *node,
                                      bool *is_read) {
    struct gcmp_rank_tensor about = {
        .key = gcmp_arena_text(&walk->side->arena, walk->path, walk->path_bytes)};
    struct gradcmp_stored *stored;
    if (about.key == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    about.name = about.key;
    struct gradcmp_error refusal = {0};
    enum gradcmp_status status =
        gcmp_rank_reader_add(&walk->reader, &about, node, &stored, &refusal);
    *is_read = status != GRADCMP_ERROR_UNSUPPORTED;
    if (status != GRADCMP_OK) {
        if (*is_read && walk->error != NULL) {
            *walk->error = refusal;
        }
        return *is_read ? status : GRADCMP_OK;
    }
    return add_stored(walk, node, stored, gradcmp_dtype_name((enum gradcmp_dtype)stored->dtype));
}

/* Find the record of a storage whose type is not known; NULL: there is none. */
static const struct gcmp_zip_record *storage_record(const struct walk *walk,
                                                    const struct gcmp_node *node) {
    char name[256];
    const char *key = gcmp_node_text(gcmp_node_item(node->as.call.callee, 2));
    if (key == NULL || snprintf(name, sizeof name, "data/%s", key) >= (int)sizeof name) {
        return NULL;
    }
    return gcmp_zip_find(&walk->archive->torch->zip, name);
}

/* A storage that stands for itself: all its bytes. */
static enum gradcmp_status add_storage(struct walk *walk, const struct gcmp_node *node) {
    const struct gcmp_zip_record *record = storage_record(walk, node);
    struct gradcmp_catalogue *extra = &walk->side->extra;
    struct gradcmp_stored *stored;
    if (record == NULL) {
        WALK_FAIL(walk, node, GRADCMP_ERROR_CORRUPT, "torch: a storage without a record");
    }
    struct gradcmp_source source = {.offset_bytes = record->offset_bytes,
                                    .length_bytes = record->length_bytes,
                                    .file = walk->archive->torch->file,
                                    .crc32 = record->crc32,
                                    .kind = GRADCMP_SOURCE_RANGE};
    uint32_t index;
    GCMP_TRY(gcmp_catalogue_add_source(extra, &source, &index, walk->error));
    GCMP_TRY(
        gcmp_catalogue_add_stored(extra, "", 1, &record->length_bytes, 1, &stored, walk->error));
    uint64_t *start = gcmp_arena_alloc(&walk->side->arena, 1, sizeof *start);
    int64_t *stride = gcmp_arena_alloc(&walk->side->arena, 1, sizeof *stride);
    if (start == NULL || stride == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    *stride = 1;
    stored->dtype = GRADCMP_DTYPE_UINT8;
    stored->pieces[0] = (struct gradcmp_piece){
        .start = start, .extent = stored->shape, .stride = stride, .source = index};
    const char *class =
        gcmp_bits_class_name(&walk->side->arena, gcmp_node_item(node->as.call.callee, 1));
    if (class == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    return add_stored(walk, node, stored, class);
}

/* --- bytes --- */

/* Walk an archive that lies in memory, as if it were a file. */
static enum gradcmp_status walk_inner(struct walk *walk, const unsigned char *bytes, size_t count,
                                      bool *is_archive) {
    struct gcmp_bits_side *side = walk->side;
    struct gcmp_dir *dir = NULL, *outer = side->extra.dir;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    const char *name = "";
    uint32_t file;
    enum gradcmp_status status;
    int fd = memfd_create("gradcmp-object", MFD_CLOEXEC);
    *is_archive = false;
    for (size_t put = 0; fd >= 0 && put < count;) {
        ssize_t done = write(fd, bytes + put, count - put);
        if (done <= 0) {
            close(fd);
            fd = -1;
        }
        put += done > 0 ? (size_t)done : 0;
    }
    if (fd < 0) {
        GCMP_FAIL(walk->error, GRADCMP_ERROR_IO, "no room for an object inside of an object");
    }
    GCMP_TRY(gcmp_dir_adopt(fd, "object", &dir, walk->error));
    (void)gcmp_dir_is_file(dir, &name);
    GCMP_TRY_OUT(gcmp_dir_add(dir, name, strlen(name), &file, walk->error));
    status = gcmp_torch_open(dir, file, 0, count, &arena, &torch, walk->error);
    if (status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_IO) {
        goto out; /* else it is no archive, and compared as the bytes that it is */
    }
    if (status == GRADCMP_OK) {
        struct gcmp_bits_archive inner = {.torch = &torch,
                                          .arena = &arena,
                                          .prefix = walk->path,
                                          .passing = true,
                                          .depth = walk->archive->depth + 1};
        *is_archive = true;
        side->extra.dir = dir;
        status = gcmp_bits_walk(side, &inner, walk->error);
        side->extra.dir = outer;
    } else {
        status = GRADCMP_OK;
    }
out:
    gcmp_dir_close(dir);
    gcmp_arena_free(&arena);
    return status;
}

/* Bytes may be a pickle of their own, as data loaders keep their state, or an archive. */
static enum gradcmp_status visit_bytes(struct walk *walk, const struct gcmp_node *node,
                                       const struct gcmp_node **inner) {
    const unsigned char *bytes;
    size_t count, used = walk->archive->arena->used_bytes;
    GCMP_TRY(gcmp_node_bytes(node, walk->archive->arena, &bytes, &count, walk->error));
    GCMP_TRY(charge(walk, count));
    if (count > 3 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5 &&
        bytes[count - 1] == '.') {
        struct gcmp_cursor cursor = gcmp_cursor_make(bytes, count, 0);
        struct gcmp_node *root;
        enum gradcmp_status status =
            gcmp_pickle_load(&cursor, walk->archive->arena, "", &root, NULL);
        if (status == GRADCMP_ERROR_MEMORY) {
            GCMP_FAIL_MEMORY(walk->error); /* else it is no pickle, but the bytes that it is */
        }
        *inner = status == GRADCMP_OK && gcmp_cursor_left(&cursor) == 0 ? root : NULL;
    }
    /* Bytes that stand in many places are read in each. */
    GCMP_TRY(charge_memory(walk, walk->archive->arena->used_bytes - used));
    if (*inner != NULL) {
        return GRADCMP_OK;
    }
    if (count > 4 && memcmp(bytes, "PK\3\4", 4) == 0 && walk->archive->depth < MAX_ARCHIVES) {
        bool is_archive;
        enum gradcmp_status status = walk_inner(walk, bytes, count, &is_archive);
        if (status != GRADCMP_OK || is_archive) {
            return status;
        }
    }
    return add_value(walk, "bytes", bytes, count);
}

/* --- visiting --- */

/* Many numbers in a list are one array: Python's generator has 625. */
static enum gradcmp_status visit_numbers(struct walk *walk, const struct gcmp_node *list,
                                         bool *is_vector) {
    size_t count = list->as.list.count;
    enum gcmp_node_kind kind = count == 0 ? GCMP_NODE_NONE : list->as.list.items[0]->kind;
    *is_vector = count >= VECTOR_NUMBERS && (kind == GCMP_NODE_INT || kind == GCMP_NODE_FLOAT);
    for (size_t i = 1; *is_vector && i < count; i++) {
        *is_vector = list->as.list.items[i]->kind == kind;
    }
    if (!*is_vector) {
        return GRADCMP_OK;
    }
    bool is_int = kind == GCMP_NODE_INT, is_tuple = list->kind == GCMP_NODE_TUPLE;
    uint64_t *elements = gcmp_arena_alloc(&walk->side->arena, count, sizeof *elements);
    uint64_t *shape = gcmp_arena_alloc(&walk->side->arena, 1, sizeof *shape);
    if (elements == NULL || shape == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *number = list->as.list.items[i];
        memcpy(&elements[i],
               is_int ? (const void *)&number->as.integer : (const void *)&number->as.number, 8);
    }
    *shape = count;
    struct gcmp_bits_item item = {.kind = GCMP_BITS_ARRAY,
                                  .type = is_int ? (is_tuple ? "tuple of int" : "list of int")
                                                 : (is_tuple ? "tuple of float" : "list of float"),
                                  .bytes = (const unsigned char *)elements,
                                  .length_bytes = count * sizeof *elements,
                                  .shape = shape,
                                  .ndim = 1,
                                  .elem_bytes = 8,
                                  .dtype = is_int ? GRADCMP_DTYPE_INT64 : GRADCMP_DTYPE_FLOAT64,
                                  .python = true};
    return add_item(walk, &item);
}

static enum gradcmp_status push(struct walk *walk, const struct gcmp_node *node) {
    for (size_t i = walk->depth; i-- > 0;) {
        if (walk->frames[i].node == node) {
            return add_formatted(walk, "itself", "%zu levels up", walk->depth - i);
        }
    }
    if (walk->depth == MAX_DEPTH) {
        WALK_FAIL(walk, node, GRADCMP_ERROR_LIMIT, "pickle: objects nested more than %d deep",
                  MAX_DEPTH);
    }
    walk->frames[walk->depth++] = (struct frame){node, 0, walk->path_bytes};
    return GRADCMP_OK;
}

static enum gradcmp_status visit_sequence(struct walk *walk, const struct gcmp_node *node) {
    bool is_vector;
    GCMP_TRY(visit_numbers(walk, node, &is_vector));
    if (is_vector) {
        return GRADCMP_OK;
    }
    GCMP_TRY(add_formatted(walk, node->kind == GCMP_NODE_TUPLE ? "tuple" : "list", "of %zu",
                           node->as.list.count));
    return push(walk, node);
}

static enum gradcmp_status visit_set(struct walk *walk, const struct gcmp_node *set) {
    struct gcmp_node *copy = gcmp_arena_alloc(walk->archive->arena, 1, sizeof *copy);
    struct gcmp_text text = GCMP_TEXT_INIT;
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    copy->kind = GCMP_NODE_SET;
    copy->as.list.items = set->as.list.items;
    copy->as.list.count = set->as.list.count;
    bool is_fine = gcmp_bits_node_text(&text, copy);
    if (text.failed) {
        gcmp_text_free(&text);
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (!is_fine) {
        gcmp_text_free(&text);
        WALK_FAIL(walk, set, GRADCMP_ERROR_LIMIT,
                  "pickle: a set of objects that are nested too "
                  "deeply");
    }
    enum gradcmp_status status = add_value(walk, "set", text.bytes, text.length_bytes);
    gcmp_text_free(&text);
    return status;
}

static enum gradcmp_status visit_object(struct walk *walk, const struct gcmp_node *node) {
    const struct gcmp_node *class = gcmp_bits_class_of(node);
    const char *name = class != NULL && class->kind == GCMP_NODE_GLOBAL
                           ? gcmp_bits_class_name(&walk->side->arena, class)
                           : "made by a call";
    if (name == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    GCMP_TRY(add_value(walk, "object", name, strlen(name)));
    return push(walk, node);
}

static enum gradcmp_status visit_call(struct walk *walk, const struct gcmp_node *node) {
    bool is_done = false;
    if (gcmp_torch_is_tensor(node) && gcmp_torch_local_tensor(node) == NULL) {
        GCMP_TRY(add_tensor(walk, node, &is_done));
    }
    if (!is_done) {
        struct gcmp_bits_item item = {0};
        GCMP_TRY(gcmp_bits_numpy(node, &walk->side->arena, &item, &is_done, walk->error));
        if (is_done) {
            return add_item(walk, &item);
        }
    }
    return is_done ? GRADCMP_OK : visit_object(walk, node);
}

static enum gradcmp_status visit_scalar(struct walk *walk, const struct gcmp_node *node) {
    switch (node->kind) {
    case GCMP_NODE_NONE:
        return add_value(walk, "None", "", 0);
    case GCMP_NODE_BOOL:
        return add_formatted(walk, "bool", "%s", node->as.integer != 0 ? "True" : "False");
    case GCMP_NODE_INT:
        return add_formatted(walk, "int", "%lld", (long long)node->as.integer);
    case GCMP_NODE_FLOAT:
        return add_value(walk, "float", &node->as.number, sizeof node->as.number);
    case GCMP_NODE_BIGINT:
        return add_value(walk, "long int", node->as.text.bytes, node->as.text.length_bytes);
    case GCMP_NODE_TEXT:
        return add_value(walk, "str", node->as.text.bytes, node->as.text.length_bytes);
    default: {
        const char *name = gcmp_bits_class_name(&walk->side->arena, node);
        if (name == NULL) {
            GCMP_FAIL_MEMORY(walk->error);
        }
        return add_value(walk, "class", name, strlen(name));
    }
    }
}

/* Add a node under the path as it stands, or push it. */
static enum gradcmp_status visit(struct walk *walk, const struct gcmp_node *node) {
    node = gcmp_bits_without_size(node);
    GCMP_TRY(charge(walk, 0));
    if (gcmp_node_is_bytes(node)) {
        const struct gcmp_node *inner = NULL;
        GCMP_TRY(visit_bytes(walk, node, &inner));
        if (inner == NULL) {
            return GRADCMP_OK;
        }
        static const struct gcmp_bits_part pickle = {.name = "<pickle>"};
        GCMP_TRY(enter_path(walk, &pickle));
        return visit(walk, inner); /* bytes within bytes get shorter, and the path longer */
    }
    if (gcmp_bits_is_dict(node)) {
        return gcmp_node_count(node) == 0 ? add_value(walk, "dict", "", 0) : push(walk, node);
    }
    if (gcmp_bits_set_of(node) != NULL) {
        return visit_set(walk, gcmp_bits_set_of(node));
    }
    switch (node->kind) {
    case GCMP_NODE_TUPLE:
    case GCMP_NODE_LIST:
        return visit_sequence(walk, node);
    case GCMP_NODE_CALL:
        return visit_call(walk, node);
    case GCMP_NODE_PERSID:
        if (gcmp_bits_is_storage(node)) {
            return add_storage(walk, node);
        }
        return push(walk, node);
    default:
        return visit_scalar(walk, node);
    }
}

static enum gradcmp_status run(struct walk *walk) {
    GCMP_TRY(visit(walk, walk->archive->torch->root));
    while (walk->depth > 0) {
        struct frame *frame = &walk->frames[walk->depth - 1];
        struct gcmp_bits_part part;
        walk->path_bytes = frame->path_bytes;
        walk->path[walk->path_bytes] = '\0';
        if (!gcmp_bits_part_of(frame->node, frame->next++, &part)) {
            walk->depth--;
            continue;
        }
        GCMP_TRY(enter_path(walk, &part));
        GCMP_TRY(visit(walk, part.value));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_walk(struct gcmp_bits_side *side,
                                   const struct gcmp_bits_archive *archive,
                                   struct gradcmp_error *error) {
    struct walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    walk->side = side;
    walk->archive = archive;
    walk->error = error;
    walk->visits_left = VISITS_PER_BYTE * archive->torch->pickle->length_bytes + LEAST_VISITS;
    walk->memory_left = MEMORY_PER_BYTE * (uint64_t)archive->torch->pickle->length_bytes;
    walk->memory_left += LEAST_MEMORY;
    walk->reader.catalogue = &side->extra;
    walk->reader.arrays = side->arrays;
    walk->reader.torch = *archive->torch;
    snprintf(walk->path, sizeof walk->path, "%s", archive->prefix);
    walk->path_bytes = strlen(walk->path);
    enum gradcmp_status status = run(walk);
    gcmp_map_free(&walk->reader.sources);
    gcmp_arena_free(&walk->reader.arena);
    free(walk);
    return status;
}
