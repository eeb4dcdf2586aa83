/* New nodes of the pickle interpreter, and containers that grow: lists, sets and dicts. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

#include "base/checked.h"
#include "formats/pickle_vm.h"

/* Dicts of up to this many pairs are searched linearly; larger ones get a hash index. */
enum { LINEAR_PAIRS = 16 };

static size_t node_bytes(enum gcmp_node_kind kind) {
    const struct gcmp_node *node = NULL;
    size_t head = offsetof(struct gcmp_node, as);
    switch (kind) {
    case GCMP_NODE_CALL:
    case GCMP_NODE_PERSID:
        return head + sizeof node->as.call;
    case GCMP_NODE_TEXT:
    case GCMP_NODE_BYTES:
    case GCMP_NODE_GLOBAL:
    case GCMP_NODE_BIGINT:
        return head + sizeof node->as.text;
    case GCMP_NODE_TUPLE:
        return offsetof(struct gcmp_node, as.list.room);
    case GCMP_NODE_LIST:
    case GCMP_NODE_DICT:
    case GCMP_NODE_SET:
        return head + sizeof node->as.list;
    default:
        return head + sizeof node->as.integer;
    }
}

static struct gcmp_node *set_head(const struct gcmp_pickle_vm *vm, struct gcmp_node *node,
                                  enum gcmp_node_kind kind) {
    if (node != NULL) {
        node->kind = kind;
        node->at = vm->op_at_bytes < UINT32_MAX ? (uint32_t)vm->op_at_bytes : UINT32_MAX;
    }
    return node;
}

/* Allocate a node with `extra_bytes` behind it. */
static struct gcmp_node *new_node(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind,
                                  size_t extra_bytes) {
    size_t total;
    if (!gcmp_add_size(node_bytes(kind), extra_bytes, &total)) {
        return NULL;
    }
    return set_head(vm,
                    gcmp_pickle_is_kept(kind) ? gcmp_pickle_alloc(vm, total)
                                              : gcmp_pickle_alloc_brief(vm, total),
                    kind);
}

/* A node that the interpreter itself holds until its end. */
static struct gcmp_node *new_lasting(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind) {
    return set_head(vm, gcmp_pickle_alloc(vm, node_bytes(kind)), kind);
}

struct gcmp_node *gcmp_pickle_new(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind) {
    return new_node(vm, kind, 0);
}

struct gcmp_node *gcmp_pickle_new_text(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind,
                                       const char *bytes, size_t count) {
    size_t with_nul;
    struct gcmp_node *node =
        gcmp_add_size(count, 1, &with_nul) ? new_node(vm, kind, with_nul) : NULL;
    if (node != NULL) {
        char *copy = (char *)node + node_bytes(kind);
        if (count > 0) {
            memcpy(copy, bytes, count);
        }
        node->as.text.bytes = copy;
        node->as.text.length_bytes = count;
    }
    return node;
}

/* Integers, tuples and torch.Size never change once they are made, and metadata repeats the same
 * shapes by the million, so one that was made lately is given out again, from a direct-mapped cache
 * with a slot for RECENT_BYTES of input. It is small enough to stay in the processor's cache, and a
 * node is only looked at where the whole hash agrees: what is not shared costs a few instructions.
 * Tuples are the same when they hold the same nodes. Whoever makes hashes collide loses the saving
 * only. What goes with a batch is not kept here. */
enum { RECENT_BYTES = 128, RECENT_MAX = 1 << 14 };

struct gcmp_pickle_recent {
    uint64_t hash;
    struct gcmp_node *node; /* NULL: none yet */
};

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

void gcmp_pickle_start_recent(struct gcmp_pickle_vm *vm) {
    size_t limit = (vm->end_bytes - vm->start_bytes) / RECENT_BYTES, slots = 1;
    while (slots < RECENT_MAX && slots <= limit / 2) {
        slots *= 2;
    }
    vm->recent = limit == 0 ? NULL : calloc(slots, sizeof *vm->recent); /* it is a saving only */
    vm->recent_mask = slots - 1;
}

/* The slot of a hash; NULL where there is no cache. */
static struct gcmp_pickle_recent *find_recent(const struct gcmp_pickle_vm *vm, uint64_t hash) {
    return vm->recent == NULL ? NULL : &vm->recent[hash & vm->recent_mask];
}

/* The node of a slot where it is of that hash and kind; else NULL. */
static struct gcmp_node *recall(const struct gcmp_pickle_recent *slot, uint64_t hash,
                                enum gcmp_node_kind kind) {
    bool agrees = slot != NULL && slot->hash == hash && slot->node != NULL;
    return agrees && slot->node->kind == kind ? slot->node : NULL;
}

static struct gcmp_node *keep_recent(struct gcmp_pickle_recent *slot, uint64_t hash,
                                     struct gcmp_node *node) {
    if (slot != NULL && node != NULL) {
        *slot = (struct gcmp_pickle_recent){hash, node};
    }
    return node;
}

static struct gcmp_node *set_int(struct gcmp_node *node, int64_t value) {
    if (node != NULL) {
        node->as.integer = value;
    }
    return node;
}

struct gcmp_node *gcmp_pickle_new_int(struct gcmp_pickle_vm *vm, int64_t value) {
    if (value >= 0 && value < GCMP_PICKLE_SMALL_INTS) {
        if (vm->small_ints[value] == NULL) {
            vm->small_ints[value] = set_int(new_lasting(vm, GCMP_NODE_INT), value);
        }
        return vm->small_ints[value];
    }
    if (vm->batch.open) {
        return set_int(gcmp_pickle_new(vm, GCMP_NODE_INT), value);
    }
    uint64_t hash = mix(GCMP_NODE_INT, (uint64_t)value);
    struct gcmp_pickle_recent *slot = find_recent(vm, hash);
    struct gcmp_node *known = recall(slot, hash, GCMP_NODE_INT);
    if (known != NULL && known->as.integer == value) {
        return known;
    }
    return keep_recent(slot, hash, set_int(gcmp_pickle_new(vm, GCMP_NODE_INT), value));
}

static struct gcmp_node *new_tuple(struct gcmp_pickle_vm *vm, struct gcmp_node *const *items,
                                   size_t count) {
    size_t items_bytes;
    struct gcmp_node *node = gcmp_mul_size(count, sizeof(struct gcmp_node *), &items_bytes)
                                 ? new_node(vm, GCMP_NODE_TUPLE, items_bytes)
                                 : NULL;
    if (node != NULL) {
        node->as.list.items = (void *)((char *)node + node_bytes(GCMP_NODE_TUPLE));
        memcpy(node->as.list.items, items, items_bytes);
        node->as.list.count = count;
    }
    return node;
}

struct gcmp_node *gcmp_pickle_new_tuple(struct gcmp_pickle_vm *vm, struct gcmp_node *const *items,
                                        size_t count) {
    if (count == 0) {
        if (vm->empty_tuple == NULL) {
            vm->empty_tuple = new_lasting(vm, GCMP_NODE_TUPLE);
        }
        return vm->empty_tuple;
    }
    if (vm->batch.open) {
        return new_tuple(vm, items, count);
    }
    uint64_t hash = GCMP_NODE_TUPLE;
    for (size_t i = 0; i < count; i++) {
        hash = mix(hash, items[i]->at);
    }
    struct gcmp_pickle_recent *slot = find_recent(vm, hash);
    struct gcmp_node *known = recall(slot, hash, GCMP_NODE_TUPLE);
    if (known != NULL && known->as.list.count == count &&
        memcmp(known->as.list.items, items, count * sizeof(struct gcmp_node *)) == 0) {
        return known;
    }
    return keep_recent(slot, hash, new_tuple(vm, items, count));
}

/* torch.Size is a tuple of its own class: three of them go with each piece of metadata. */
static bool makes_size(struct gcmp_pickle_vm *vm, struct gcmp_node *callee) {
    if (callee != vm->size_class && gcmp_node_is_global(callee, "torch", "Size")) {
        vm->size_class = callee;
    }
    return callee == vm->size_class;
}

bool gcmp_pickle_is_constant(struct gcmp_pickle_vm *vm, const struct gcmp_node *node) {
    return node->kind == GCMP_NODE_CALL && makes_size(vm, node->as.call.callee);
}

struct gcmp_node *gcmp_pickle_new_call(struct gcmp_pickle_vm *vm, struct gcmp_node *callee,
                                       struct gcmp_node *args) {
    uint64_t hash = mix(mix(GCMP_NODE_CALL, callee->at), args->at);
    bool shared = !vm->batch.open && makes_size(vm, callee);
    struct gcmp_pickle_recent *slot = shared ? find_recent(vm, hash) : NULL;
    struct gcmp_node *known = recall(slot, hash, GCMP_NODE_CALL);
    if (known != NULL && known->as.call.callee == callee && known->as.call.args == args) {
        return known;
    }
    struct gcmp_node *node = gcmp_pickle_new(vm, GCMP_NODE_CALL);
    if (node != NULL) {
        node->as.call.callee = callee;
        node->as.call.args = args;
    }
    return keep_recent(slot, hash, node);
}

/* Make room for `more` items. The first batch is given exactly what it needs, since most containers
 * get one batch only; later ones double. */
static enum gradcmp_status reserve(struct gcmp_pickle_vm *vm, struct gcmp_node *node, size_t more) {
    size_t count = node->as.list.count, need, bytes;
    if (!gcmp_add_size(count, more, &need) || need > UINT32_MAX / 2) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_LIMIT, "a container of over %u items",
                                UINT32_MAX / 2);
    }
    if (need <= node->as.list.room) {
        return GRADCMP_OK;
    }
    size_t room = count == 0 ? need : 2 * (size_t)node->as.list.room;
    room = room < need ? need : room;
    struct gcmp_node **items = gcmp_mul_size(room, sizeof(struct gcmp_node *), &bytes)
                                   ? gcmp_pickle_alloc_brief(vm, bytes)
                                   : NULL;
    if (items == NULL) {
        return gcmp_pickle_fail_memory(vm);
    }
    if (count > 0) {
        memcpy(items, node->as.list.items, count * sizeof(struct gcmp_node *));
    }
    node->as.list.items = items;
    node->as.list.room = (uint32_t)room;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_append(struct gcmp_pickle_vm *vm, struct gcmp_node *list,
                                       struct gcmp_node *const *items, size_t count) {
    if (count > 0) {
        GCMP_TRY(reserve(vm, list, count));
        memcpy(list->as.list.items + list->as.list.count, items, count * sizeof *items);
        list->as.list.count += count;
    }
    return GRADCMP_OK;
}

static bool is_text(const struct gcmp_node *node) {
    return node->kind == GCMP_NODE_TEXT || node->kind == GCMP_NODE_BYTES;
}

static bool is_integer(const struct gcmp_node *node) {
    return node->kind == GCMP_NODE_INT || node->kind == GCMP_NODE_BOOL;
}

static enum gradcmp_status keys_equal(struct gcmp_pickle_vm *vm, const struct gcmp_node *a,
                                      const struct gcmp_node *b, bool *equal) {
    *equal = a == b;
    if (*equal) {
        return GRADCMP_OK;
    }
    if (is_integer(a) && is_integer(b)) {
        *equal = a->as.integer == b->as.integer;
    } else if (is_text(a) && a->kind == b->kind &&
               a->as.text.length_bytes == b->as.text.length_bytes) {
        GCMP_TRY(gcmp_pickle_work(vm, a->as.text.length_bytes));
        *equal = memcmp(a->as.text.bytes, b->as.text.bytes, a->as.text.length_bytes) == 0;
    }
    return GRADCMP_OK;
}

/* Hash a text, bytes or integer key. The seed keeps a file from choosing keys that collide. */
static enum gradcmp_status hash_key(struct gcmp_pickle_vm *vm, const struct gcmp_node *key,
                                    uint32_t *hash) {
    uint64_t wide;
    if (is_integer(key)) {
        wide = XXH3_64bits_withSeed(&key->as.integer, sizeof key->as.integer, vm->seed);
    } else {
        GCMP_TRY(gcmp_pickle_work(vm, key->as.text.length_bytes));
        wide = XXH3_64bits_withSeed(key->as.text.bytes, key->as.text.length_bytes, vm->seed);
    }
    *hash = (uint32_t)(wide ^ wide >> 32);
    return GRADCMP_OK;
}

static void put_slot(struct gcmp_pickle_index *index, uint32_t hash, uint32_t pair) {
    uint32_t at = hash & (index->capacity - 1);
    while (index->slots[at].pair != 0) {
        at = (at + 1) & (index->capacity - 1);
    }
    index->slots[at].hash = hash;
    index->slots[at].pair = pair + 1;
    index->count++;
}

/* Make the index hold one more key: at most two thirds full, capacity a power of two. */
static enum gradcmp_status grow_index(struct gcmp_pickle_vm *vm, struct gcmp_pickle_index *index) {
    if (3 * ((size_t)index->count + 1) <= 2 * (size_t)index->capacity) {
        return GRADCMP_OK;
    }
    struct gcmp_pickle_index bigger = {NULL, 0, 0};
    size_t capacity = 0;
    size_t need = index->capacity == 0 ? 4 * LINEAR_PAIRS : 2 * (size_t)index->capacity;
    if (!gcmp_pickle_grow(vm, &bigger.slots, &capacity, need, sizeof *bigger.slots)) {
        return gcmp_failure(gcmp_pickle_fail_memory(vm)); /* lies too deep for analyzers */
    }
    memset(bigger.slots, 0, capacity * sizeof *bigger.slots);
    bigger.capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < index->capacity; i++) {
        if (index->slots[i].pair != 0) {
            put_slot(&bigger, index->slots[i].hash, index->slots[i].pair - 1);
        }
    }
    free(index->slots);
    *index = bigger;
    return GRADCMP_OK;
}

static enum gradcmp_status add_to_index(struct gcmp_pickle_vm *vm, const struct gcmp_node *dict,
                                        uint32_t pair) {
    struct gcmp_pickle_index *index = &vm->indexes[dict->as.list.index - 1];
    uint32_t hash;
    GCMP_TRY(hash_key(vm, dict->as.list.items[2 * (size_t)pair], &hash));
    GCMP_TRY(grow_index(vm, index));
    put_slot(index, hash, pair);
    return GRADCMP_OK;
}

static enum gradcmp_status make_index(struct gcmp_pickle_vm *vm, struct gcmp_node *dict) {
    if (vm->index_count == vm->index_capacity &&
        !gcmp_pickle_grow(vm, &vm->indexes, &vm->index_capacity, 0, sizeof *vm->indexes)) {
        return gcmp_pickle_fail_memory(vm);
    }
    if (vm->seed == 0 && getrandom(&vm->seed, sizeof vm->seed, GRND_NONBLOCK) < 0) {
        vm->seed = (uint64_t)(uintptr_t)vm; /* early boot: the address has to do */
    }
    vm->indexes[vm->index_count] = (struct gcmp_pickle_index){NULL, 0, 0};
    dict->as.list.index = (uint32_t)++vm->index_count;
    for (uint32_t pair = 0; pair < dict->as.list.count / 2; pair++) {
        const struct gcmp_node *key = dict->as.list.items[2 * (size_t)pair];
        if (is_text(key) || is_integer(key)) {
            GCMP_TRY(add_to_index(vm, dict, pair));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status find_linear(struct gcmp_pickle_vm *vm, const struct gcmp_node *dict,
                                       const struct gcmp_node *key, size_t *pair) {
    bool equal = false;
    for (*pair = 0; *pair < dict->as.list.count / 2; ++*pair) {
        GCMP_TRY(keys_equal(vm, dict->as.list.items[2 * *pair], key, &equal));
        if (equal) {
            break;
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status find_indexed(struct gcmp_pickle_vm *vm, const struct gcmp_node *dict,
                                        const struct gcmp_node *key, size_t *pair) {
    const struct gcmp_pickle_index *index = &vm->indexes[dict->as.list.index - 1];
    *pair = dict->as.list.count / 2;
    uint32_t hash;
    GCMP_TRY(hash_key(vm, key, &hash));
    if (index->capacity == 0) {
        return GRADCMP_OK;
    }
    for (uint32_t at = hash & (index->capacity - 1); index->slots[at].pair != 0;
         at = (at + 1) & (index->capacity - 1)) {
        size_t candidate = index->slots[at].pair - 1;
        bool equal = false;
        if (index->slots[at].hash == hash) {
            GCMP_TRY(keys_equal(vm, dict->as.list.items[2 * candidate], key, &equal));
        }
        if (equal) {
            *pair = candidate;
            break;
        }
    }
    return GRADCMP_OK;
}

/* Store one pair where there is room for it. */
static enum gradcmp_status set_pair(struct gcmp_pickle_vm *vm, struct gcmp_node *dict,
                                    struct gcmp_node *key, struct gcmp_node *value) {
    size_t pairs = dict->as.list.count / 2, pair = pairs;
    bool comparable = is_text(key) || is_integer(key);
    if (key->kind == GCMP_NODE_RECYCLED) {
        return gcmp_pickle_give_up(vm); /* it may be equal to another, or no key at all */
    }
    if (key->kind == GCMP_NODE_LIST || key->kind == GCMP_NODE_DICT) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "%s as a key of a dict",
                                gcmp_node_kind_name(key));
    }
    if (comparable && pairs < LINEAR_PAIRS && dict->as.list.index == 0) {
        GCMP_TRY(find_linear(vm, dict, key, &pair));
    } else if (comparable) {
        if (dict->as.list.index == 0) {
            GCMP_TRY(make_index(vm, dict));
        }
        GCMP_TRY(find_indexed(vm, dict, key, &pair));
    }
    struct gcmp_node **at = dict->as.list.items + 2 * pair;
    at[1] = value;
    if (pair == pairs) {
        at[0] = key;
        dict->as.list.count += 2;
        if (comparable && dict->as.list.index != 0) {
            GCMP_TRY(add_to_index(vm, dict, (uint32_t)pair));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_set(struct gcmp_pickle_vm *vm, struct gcmp_node *dict,
                                    struct gcmp_node *const *pairs, size_t item_count) {
    if (item_count % 2 != 0) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected pairs of key and value, found %zu items", item_count);
    }
    if (item_count > 0) {
        GCMP_TRY(reserve(vm, dict, item_count));
    }
    for (size_t i = 0; i < item_count; i += 2) {
        GCMP_TRY(set_pair(vm, dict, pairs[i], pairs[i + 1]));
    }
    return GRADCMP_OK;
}
