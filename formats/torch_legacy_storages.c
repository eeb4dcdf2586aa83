/* Goes through the nodes of an object for the storages that they name. The sizes of elements are
 * not in the stream: they follow from the storages' classes. */
#include "formats/torch_legacy_storages.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/grow.h"

enum { ID_ITEMS = 6 }; /* of a persistent id: "storage", class, key, location, count, view */

/* A walk over all nodes, each once. */
struct walk {
    const struct gcmp_torch_file *torch;
    struct gcmp_legacy_storages *storages;
    struct gcmp_node **stack;
    size_t count, capacity;
    unsigned char *seen; /* for each byte of the pickle, a bit for each kind that holds others */
    struct gradcmp_error *error;
};

_Static_assert(GCMP_NODE_PERSID - GCMP_NODE_TUPLE < 8, "a bit of a byte for each kind");

#define NODE_FAIL(torch_, error_, code_, node_, ...)                                               \
    GCMP_FAIL_AT((error_), (code_), gcmp_dir_file_path((torch_)->dir, (torch_)->file),             \
                 (torch_)->pickle->offset_bytes + (node_)->at, "torch: " __VA_ARGS__)

/* Put a node on the stack, unless it holds nothing or was there before. */
static enum gradcmp_status push(struct walk *walk, struct gcmp_node *node) {
    if (node == NULL || node->kind < GCMP_NODE_TUPLE || node->kind == GCMP_NODE_GLOBAL) {
        return GRADCMP_OK;
    }
    unsigned char bit = (unsigned char)(1U << (node->kind - GCMP_NODE_TUPLE));
    if ((walk->seen[node->at] & bit) != 0) {
        return GRADCMP_OK;
    }
    if (!gcmp_grow(&walk->stack, walk->count, &walk->capacity, sizeof *walk->stack)) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    walk->seen[node->at] |= bit;
    walk->stack[walk->count++] = node;
    return GRADCMP_OK;
}

static enum gradcmp_status push_children(struct walk *walk, const struct gcmp_node *node) {
    if (node->kind == GCMP_NODE_CALL || node->kind == GCMP_NODE_PERSID) {
        GCMP_TRY(push(walk, node->as.call.callee));
    }
    if (node->kind == GCMP_NODE_CALL) {
        GCMP_TRY(push(walk, node->as.call.args));
        GCMP_TRY(push(walk, node->as.call.state));
        return push(walk, node->as.call.contents);
    }
    if (node->kind == GCMP_NODE_PERSID) {
        return GRADCMP_OK;
    }
    for (size_t i = 0; i < node->as.list.count; i++) {
        GCMP_TRY(push(walk, node->as.list.items[i]));
    }
    return GRADCMP_OK;
}

/* Bytes of an element of a storage class; 0: not known. Quantized types are not read as tensors,
 * but take up room. */
static unsigned element_bytes(const struct gcmp_node *class) {
    static const struct {
        const char *name;
        unsigned bytes;
    } quantized[] = {{"QInt8Storage", 1},
                     {"QUInt8Storage", 1},
                     {"QInt32Storage", 4},
                     {"QUInt4x2Storage", 1},
                     {"QUInt2x4Storage", 1}};
    for (size_t i = 0; i < sizeof quantized / sizeof *quantized; i++) {
        if (gcmp_node_is_global(class, "torch", quantized[i].name)) {
            return quantized[i].bytes;
        }
    }
    return gcmp_dtype_bytes(gcmp_torch_storage_dtype(class));
}

static enum gradcmp_status add_storage(struct walk *walk, const struct gcmp_node *id,
                                       const struct gcmp_legacy_storage *found, size_t *index) {
    struct gcmp_legacy_storages *storages = walk->storages;
    if (!gcmp_grow(&storages->items, storages->count, &storages->capacity,
                   sizeof *storages->items)) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    enum gcmp_map_result result =
        gcmp_map_add(&storages->by_key, found->key, strlen(found->key), storages->count, index);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (result == GCMP_MAP_ADDED) {
        storages->items[storages->count++] = *found;
        return GRADCMP_OK;
    }
    const struct gcmp_legacy_storage *first = &storages->items[*index];
    if (first->elem_count != found->elem_count || first->elem_bytes != found->elem_bytes) {
        NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_CORRUPT, id,
                  "storage \"%.100s\": of %llu elements here, of %llu elsewhere", found->key,
                  (unsigned long long)found->elem_count, (unsigned long long)first->elem_count);
    }
    return GRADCMP_OK;
}

/* The class of a storage in the persistent id of a holder. */
static const char *class_of(const struct gcmp_node *holder) {
    return gcmp_node_global(gcmp_node_item(holder->as.call.callee, 1));
}

/* A loader keeps storages and views by their keys, and takes the first of a key for all. */
static enum gradcmp_status note_view_key(struct walk *walk, const struct gcmp_legacy_view *view) {
    struct gcmp_legacy_storages *storages = walk->storages;
    size_t former;
    enum gcmp_map_result result = gcmp_map_add(&storages->views_by_key, view->key,
                                               strlen(view->key), storages->view_count, &former);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (result == GCMP_MAP_ADDED) {
        return GRADCMP_OK;
    }
    const struct gcmp_legacy_view *first = &storages->views[former];
    if (first->storage != view->storage || first->first != view->first ||
        first->elem_count != view->elem_count ||
        strcmp(class_of(first->holder), class_of(view->holder)) != 0) {
        NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_CORRUPT, view->holder->as.call.callee,
                  "view \"%.100s\" of two parts of storages, of which loaders take the first for "
                  "both",
                  view->key);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_view(struct walk *walk, struct gcmp_node *holder, size_t storage) {
    struct gcmp_legacy_storages *storages = walk->storages;
    const struct gcmp_node *id = holder->as.call.callee;
    const struct gcmp_node *node = gcmp_node_item(id, 5);
    struct gcmp_legacy_view view = {.holder = holder, .storage = storage};
    int64_t first, count;
    view.key = node->kind == GCMP_NODE_TUPLE ? gcmp_node_text(gcmp_node_item(node, 0)) : NULL;
    if (view.key == NULL || !gcmp_node_int(gcmp_node_item(node, 1), &first) || first < 0 ||
        !gcmp_node_int(gcmp_node_item(node, 2), &count) || count < 0) {
        NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_CORRUPT, id,
                  "expected (key, first element, number of elements) as a view of a storage");
    }
    view.first = (uint64_t)first;
    view.elem_count = (uint64_t)count;
    GCMP_TRY(note_view_key(walk, &view));
    if (!gcmp_grow(&storages->views, storages->view_count, &storages->view_capacity,
                   sizeof *storages->views)) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    storages->views[storages->view_count++] = view;
    return GRADCMP_OK;
}

static enum gradcmp_status check_view_keys(const struct walk *walk) {
    const struct gcmp_legacy_storages *storages = walk->storages;
    for (size_t i = 0; i < storages->view_count; i++) {
        const struct gcmp_legacy_view *view = &storages->views[i];
        if (gcmp_legacy_find_storage(storages, view->key) != NULL) {
            NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_CORRUPT, view->holder->as.call.callee,
                      "\"%.100s\" is both a storage and a view, of which loaders take the first "
                      "for both",
                      view->key);
        }
    }
    return GRADCMP_OK;
}

/* ("storage", class, key, location, number of elements, None or a view). */
static enum gradcmp_status take_id(struct walk *walk, struct gcmp_node *holder) {
    const struct gcmp_node *id = holder->as.call.callee;
    const char *tag = id->kind == GCMP_NODE_TUPLE ? gcmp_node_text(gcmp_node_item(id, 0)) : NULL;
    if (tag != NULL && strcmp(tag, "module") == 0) {
        NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_UNSUPPORTED, id,
                  "a whole module with its source; save its state_dict()");
    }
    const struct gcmp_node *class = gcmp_node_item(id, 1), *view = gcmp_node_item(id, 5);
    struct gcmp_legacy_storage found = {.key = gcmp_node_text(gcmp_node_item(id, 2)),
                                        .class = class};
    int64_t count;
    if (tag == NULL || strcmp(tag, "storage") != 0 || class == NULL || found.key == NULL ||
        class->kind != GCMP_NODE_GLOBAL || !gcmp_node_int(gcmp_node_item(id, 4), &count) ||
        count < 0 || gcmp_node_count(id) > ID_ITEMS) {
        NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_CORRUPT, id,
                  "expected (\"storage\", class, key, location, count, view) as persistent id");
    }
    found.elem_count = (uint64_t)count;
    found.elem_bytes = element_bytes(class);
    if (found.elem_bytes == 0) {
        NODE_FAIL(walk->torch, walk->error, GRADCMP_ERROR_UNSUPPORTED, id,
                  "storage class \"%.200s\" is not known, nor where the storages behind it lie",
                  gcmp_node_global(class));
    }
    size_t index = 0;
    GCMP_TRY(add_storage(walk, id, &found, &index));
    return view == NULL || view->kind == GCMP_NODE_NONE ? GRADCMP_OK
                                                        : add_view(walk, holder, index);
}

static enum gradcmp_status walk_all(struct walk *walk) {
    GCMP_TRY(push(walk, walk->torch->root));
    while (walk->count > 0) {
        struct gcmp_node *node = walk->stack[--walk->count];
        if (node->kind == GCMP_NODE_PERSID) {
            GCMP_TRY(take_id(walk, node));
        }
        GCMP_TRY(push_children(walk, node));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_legacy_collect(const struct gcmp_torch_file *torch,
                                        struct gcmp_legacy_storages *storages,
                                        struct gradcmp_error *error) {
    struct walk walk = {.torch = torch, .storages = storages, .error = error};
    walk.seen = calloc((size_t)torch->pickle->length_bytes + 1, 1);
    if (walk.seen == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = walk_all(&walk);
    if (status == GRADCMP_OK) {
        status = check_view_keys(&walk);
    }
    free(walk.stack);
    free(walk.seen);
    return status;
}

struct gcmp_legacy_storage *gcmp_legacy_find_storage(const struct gcmp_legacy_storages *storages,
                                                     const char *key) {
    size_t index;
    bool found = key != NULL && gcmp_map_find(&storages->by_key, key, strlen(key), &index);
    return found ? &storages->items[index] : NULL;
}

static struct gcmp_node *new_node(struct gcmp_arena *arena, enum gcmp_node_kind kind, uint32_t at) {
    struct gcmp_node *node = gcmp_arena_alloc(arena, 1, sizeof *node);
    if (node != NULL) {
        node->kind = kind;
        node->at = at;
    }
    return node;
}

/* Let the id of a view name the view's own record: key, number of elements, no view. It is a new
 * tuple: equal ids may be one node. */
static bool rewrite_id(const struct gcmp_legacy_view *view, const char *key,
                       struct gcmp_arena *arena) {
    const struct gcmp_node *former = view->holder->as.call.callee;
    struct gcmp_node *id = new_node(arena, GCMP_NODE_TUPLE, former->at);
    struct gcmp_node *name = new_node(arena, GCMP_NODE_TEXT, former->at);
    struct gcmp_node *count = new_node(arena, GCMP_NODE_INT, former->at);
    struct gcmp_node *none = new_node(arena, GCMP_NODE_NONE, former->at);
    struct gcmp_node **items = gcmp_arena_alloc(arena, ID_ITEMS, sizeof(struct gcmp_node *));
    if (id == NULL || name == NULL || count == NULL || none == NULL || items == NULL) {
        return false;
    }
    name->as.text.bytes = key;
    name->as.text.length_bytes = strlen(key);
    count->as.integer = (int64_t)view->elem_count;
    memcpy(items, former->as.list.items, ID_ITEMS * sizeof(struct gcmp_node *));
    items[2] = name;
    items[4] = count;
    items[5] = none;
    id->as.list.items = items;
    id->as.list.count = ID_ITEMS;
    view->holder->as.call.callee = id;
    return true;
}

static enum gradcmp_status add_view_record(struct gcmp_torch_file *torch,
                                           const struct gcmp_legacy_storages *storages,
                                           const struct gcmp_legacy_view *view,
                                           struct gcmp_arena *arena, struct gradcmp_error *error) {
    const struct gcmp_legacy_storage *storage = &storages->items[view->storage];
    if (view->first > storage->elem_count || view->elem_count > storage->elem_count - view->first) {
        NODE_FAIL(torch, error, GRADCMP_ERROR_CORRUPT, view->holder->as.call.callee,
                  "a view of %llu elements from %llu in storage \"%.100s\" of %llu",
                  (unsigned long long)view->elem_count, (unsigned long long)view->first,
                  storage->key, (unsigned long long)storage->elem_count);
    }
    /* One record each: two views may be the same part of a storage. */
    const char *name = gcmp_arena_format(arena, "data/%s/view/%zu", storage->key,
                                         (size_t)(view - storages->views));
    if (name == NULL || !rewrite_id(view, name + strlen("data/"), arena)) {
        GCMP_FAIL_MEMORY(error);
    }
    torch->zip.records[torch->zip.count++] = (struct gcmp_zip_record){
        .name = name,
        .offset_bytes = storage->offset_bytes + view->first * storage->elem_bytes,
        .length_bytes = view->elem_count * storage->elem_bytes};
    return GRADCMP_OK;
}

/* Records are found without regard to letter case. */
static enum gradcmp_status check_names(const struct gcmp_torch_file *torch,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < torch->zip.count; i++) {
        const char *name = torch->zip.records[i].name;
        if (gcmp_zip_find(&torch->zip, name) != &torch->zip.records[i]) {
            NODE_FAIL(torch, error, GRADCMP_ERROR_CORRUPT, torch->root,
                      "two storages have the name %.120s", name);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_legacy_add_records(struct gcmp_torch_file *torch,
                                            struct gcmp_legacy_storages *storages,
                                            struct gcmp_arena *arena, struct gradcmp_error *error) {
    torch->zip.records =
        gcmp_arena_alloc(arena, storages->count + storages->view_count, sizeof *torch->zip.records);
    if (torch->zip.records == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < storages->count; i++) {
        const struct gcmp_legacy_storage *storage = &storages->items[i];
        const char *name = gcmp_arena_format(arena, "data/%s", storage->key);
        if (name == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        torch->zip.records[torch->zip.count++] =
            (struct gcmp_zip_record){.name = name,
                                     .offset_bytes = storage->offset_bytes,
                                     .length_bytes = storage->elem_count * storage->elem_bytes};
    }
    for (size_t i = 0; i < storages->view_count; i++) {
        GCMP_TRY(add_view_record(torch, storages, &storages->views[i], arena, error));
    }
    if (!gcmp_zip_index(&torch->zip, arena)) {
        GCMP_FAIL_MEMORY(error);
    }
    return check_names(torch, error);
}

void gcmp_legacy_free_storages(struct gcmp_legacy_storages *storages) {
    free(storages->items);
    free(storages->views);
    gcmp_map_free(&storages->by_key);
    gcmp_map_free(&storages->views_by_key);
}
