/* The state of one run of the pickle interpreter; private to formats/pickle*.c. */
#ifndef GCMP_FORMATS_PICKLE_VM_H
#define GCMP_FORMATS_PICKLE_VM_H

#include <endian.h>
#include <string.h>

#include "base/map.h"
#include "formats/pickle.h"

struct gcmp_pickle_vm;

struct gcmp_pickle_opcode {
    const char *name; /* as CPython's pickletools spells it; NULL: no such opcode */
    enum gradcmp_status (*run)(struct gcmp_pickle_vm *vm);
    unsigned char width; /* bytes of the argument or of its length prefix, or a count of items */
};

/* Hash index over the text, bytes and integer keys of one dict; slots hold pair number + 1. */
struct gcmp_pickle_index {
    struct gcmp_pickle_index_slot {
        uint32_t hash, pair;
    } * slots;
    uint32_t capacity, count;
};

struct gcmp_pickle_recent;

/* The rest of the chunk that small nodes are cut from. */
struct gcmp_pickle_pool {
    char *next;
    size_t bytes;
};

/* Items of a container that a digest takes, from their MARK until they are added. What is made
 * meanwhile, but for texts, goes into an arena of its own and is recycled when they were taken:
 * nothing else may hold it then. So no older object may be changed while a batch is open, and the
 * memo forgets the batch. What cannot be done so ends the run (gcmp_pickle_give_up). */
struct gcmp_pickle_batch {
    const struct gcmp_pickle_digest *digest; /* NULL: there are no batches */
    bool open;
    unsigned which;        /* of the digest's keys */
    size_t mark, start_at; /* number of its MARK; where that is in the input */
    size_t memo_first;
    struct gcmp_arena arena;
    struct gcmp_pickle_pool pool;
};

/* list.index of a container whose items were taken. */
#define GCMP_PICKLE_DIGESTED UINT32_MAX

enum {
    GCMP_PICKLE_SMALL_INTS = 256,        /* 0..255 are made once and shared */
    GCMP_PICKLE_MEMORY_PER_BYTE = 128,   /* bytes allocated for a byte of input, see pickle_vm.c */
    GCMP_PICKLE_LARGE_PER_BYTE = 16,     /* the same for large inputs, beyond ...  */
    GCMP_PICKLE_LARGE_BYTES = 24 << 20,  /* ... so many bytes */
    GCMP_PICKLE_WORK_PER_BYTE = 256,     /* bytes of keys hashed and compared for a byte of input */
    GCMP_PICKLE_BUDGET_BYTES = 64 * 1024 /* the least budget of either kind */
};

struct gcmp_pickle_vm {
    struct gcmp_cursor in;         /* its length ends at the open frame, or at the input's end */
    size_t start_bytes, end_bytes; /* of the input */
    size_t op_at_bytes;            /* where the opcode being run starts */
    const struct gcmp_pickle_opcode *op;
    bool in_frame, stopped;

    struct gcmp_arena *arena;
    const char *path;
    struct gradcmp_error *error;

    struct gcmp_node **stack;
    size_t *marks; /* heights of the stack */
    size_t stack_count, stack_capacity, mark_count, mark_capacity;

    struct gcmp_node **memo; /* by index, where indices are dense; NULL: not set */
    size_t memo_capacity, memo_end, memo_count; /* up to memo_end items are initialised */
    struct gcmp_map memo_sparse;                /* index -> struct sparse_entry, for the others */
    struct gcmp_pickle_batch batch;

    struct gcmp_pickle_index *indexes; /* of dicts: node's list.index - 1 */
    size_t index_count, index_capacity;
    uint64_t seed;

    struct gcmp_pickle_pool pool;
    size_t memory_left_bytes, work_left_bytes;
    bool over_limit; /* the last allocation failed by the budget, not by the system */

    struct gcmp_node *none, *yes, *no, *empty_tuple; /* made once, shared */
    struct gcmp_node *recycled;                      /* with a digest: stands for what is gone */
    struct gcmp_node *small_ints[GCMP_PICKLE_SMALL_INTS];
    struct gcmp_pickle_recent *recent; /* what never changes, made lately, by its content */
    size_t recent_mask;
    struct gcmp_node *size_class; /* the GLOBAL torch.Size, once it was seen */
};

/* Fail at the opcode being run; the message is "pickle: OPCODE: ...". gcmp_pickle_fail(vm, code,
 * format, ...) is what to call: compilers see that it returns a failure. */
enum gradcmp_status gcmp_pickle_fill(struct gcmp_pickle_vm *vm, enum gradcmp_status code,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));
#define gcmp_pickle_fail(...) gcmp_failure(gcmp_pickle_fill(__VA_ARGS__))
/* Fail after an allocation that gave NULL: LIMIT or MEMORY. */
static inline enum gradcmp_status gcmp_pickle_fail_memory(struct gcmp_pickle_vm *vm) {
    return vm->over_limit
               ? gcmp_pickle_fail(vm, GRADCMP_ERROR_LIMIT,
                                  "needs more memory than %zu bytes of input may ask for",
                                  vm->end_bytes - vm->start_bytes)
               : gcmp_pickle_fail(vm, GRADCMP_ERROR_MEMORY, "out of memory");
}

/* Zeroed memory in the arena, aligned to 8 bytes; NULL: gcmp_pickle_fail_memory. */
void *gcmp_pickle_alloc(struct gcmp_pickle_vm *vm, size_t bytes);
/* The same for what goes with the open batch, if there is one. */
void *gcmp_pickle_alloc_brief(struct gcmp_pickle_vm *vm, size_t bytes);
/* Grow a malloced array to hold `need` items, new ones undefined; old and new count against the
 * budget. */
GRADCMP_MUST_USE bool gcmp_pickle_grow(struct gcmp_pickle_vm *vm, void *array, size_t *capacity,
                                       size_t need, size_t item_bytes);
/* Count `bytes` of hashing and comparing of keys; LIMIT when out of proportion to the input. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_work(struct gcmp_pickle_vm *vm, size_t bytes);

/* Argument of an opcode: bytes of a known number, a little-endian number, or a line (its '\n' is
 * consumed, not counted). CORRUPT where the input or the frame ends within. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_take(struct gcmp_pickle_vm *vm, uint64_t count,
                                                      const char **out);
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_take_last_number(struct gcmp_pickle_vm *vm,
                                                                  unsigned width, uint64_t *out);
/* Inline where a whole word is left, as are the other functions that nearly every opcode calls. */
GRADCMP_MUST_USE static inline enum gradcmp_status
gcmp_pickle_take_number(struct gcmp_pickle_vm *vm, unsigned width, uint64_t *out) {
    uint64_t word;
    if (gcmp_cursor_left(&vm->in) < sizeof word) {
        return gcmp_pickle_take_last_number(vm, width, out);
    }
    memcpy(&word, vm->in.bytes + vm->in.at_bytes, sizeof word);
    *out = le64toh(word) & (UINT64_MAX >> (64 - 8 * width));
    vm->in.at_bytes += width;
    return GRADCMP_OK;
}
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_take_line(struct gcmp_pickle_vm *vm,
                                                           const char **out, size_t *count);
/* Parse a decimal number without sign, at most 20 digits, all of the text. */
bool gcmp_pickle_parse_u64(const char *text, size_t count, uint64_t *out);

/* The stack. A pop never goes below the topmost mark. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_push_growing(struct gcmp_pickle_vm *vm,
                                                              struct gcmp_node *node);
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_fail_empty(struct gcmp_pickle_vm *vm);

GRADCMP_MUST_USE static inline enum gradcmp_status gcmp_pickle_push(struct gcmp_pickle_vm *vm,
                                                                    struct gcmp_node *node) {
    if (node == NULL || vm->stack_count == vm->stack_capacity) {
        return gcmp_pickle_push_growing(vm, node);
    }
    vm->stack[vm->stack_count++] = node;
    return GRADCMP_OK;
}

GRADCMP_MUST_USE static inline enum gradcmp_status gcmp_pickle_top(struct gcmp_pickle_vm *vm,
                                                                   struct gcmp_node **out) {
    if (vm->stack_count <= (vm->mark_count == 0 ? 0 : vm->marks[vm->mark_count - 1])) {
        return gcmp_failure(gcmp_pickle_fail_empty(vm));
    }
    *out = vm->stack[vm->stack_count - 1];
    return GRADCMP_OK;
}

GRADCMP_MUST_USE static inline enum gradcmp_status gcmp_pickle_pop(struct gcmp_pickle_vm *vm,
                                                                   struct gcmp_node **out) {
    GCMP_TRY(gcmp_pickle_top(vm, out));
    vm->stack_count--;
    return GRADCMP_OK;
}

/* Take everything above the topmost mark, and the mark; *items is valid until the next push. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_pop_mark(struct gcmp_pickle_vm *vm,
                                                          struct gcmp_node ***items, size_t *count);

/* The memo. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_memo_put(struct gcmp_pickle_vm *vm, uint64_t index,
                                                          struct gcmp_node *node);
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_memo_get(struct gcmp_pickle_vm *vm, uint64_t index,
                                                          struct gcmp_node **out);

/* Batches, in pickle_batch.c. */

/* Open a batch at a MARK where the container beneath it is one that the digest wants. */
void gcmp_pickle_open_batch(struct gcmp_pickle_vm *vm);
/* True where the topmost mark is that of the open batch. */
static inline bool gcmp_pickle_is_batch_mark(const struct gcmp_pickle_vm *vm) {
    return vm->batch.open && vm->mark_count == vm->batch.mark + 1;
}
/* Have the open batch taken, whose mark is the topmost, by an opcode that adds to that kind. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_close_batch(struct gcmp_pickle_vm *vm,
                                                             enum gcmp_node_kind kind);
/* Have items taken that go into the container on top without a batch; *taken tells whether the
 * digest wants them. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_take_items(struct gcmp_pickle_vm *vm,
                                                            enum gcmp_node_kind kind,
                                                            struct gcmp_node *const *items,
                                                            size_t count, bool *taken);
/* Fail where `target`, a container or an object, must not be changed: it lives on after the open
 * batch, or its items were taken. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_check_target(struct gcmp_pickle_vm *vm,
                                                              const struct gcmp_node *target);
/* Fail since this pickle cannot be read with a digest. */
enum gradcmp_status gcmp_pickle_give_up(struct gcmp_pickle_vm *vm);
/* Let the memo forget what is no text from index `first` on: it holds vm->recycled there. */
void gcmp_pickle_forget_memo(struct gcmp_pickle_vm *vm, size_t first);
/* True for nodes that hold text: they never go with a batch. */
static inline bool gcmp_pickle_is_kept(enum gcmp_node_kind kind) {
    return kind == GCMP_NODE_TEXT || kind == GCMP_NODE_BYTES || kind == GCMP_NODE_BIGINT ||
           kind == GCMP_NODE_GLOBAL;
}

/* Make the cache of what never changes, for inputs that are large enough; without memory there is
 * none. */
void gcmp_pickle_start_recent(struct gcmp_pickle_vm *vm);

/* Nodes; NULL: gcmp_pickle_fail_memory. The text and the items are copied. */
struct gcmp_node *gcmp_pickle_new(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind);
struct gcmp_node *gcmp_pickle_new_text(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind,
                                       const char *bytes, size_t count);
struct gcmp_node *gcmp_pickle_new_int(struct gcmp_pickle_vm *vm, int64_t value);
struct gcmp_node *gcmp_pickle_new_tuple(struct gcmp_pickle_vm *vm, struct gcmp_node *const *items,
                                        size_t count);
struct gcmp_node *gcmp_pickle_new_call(struct gcmp_pickle_vm *vm, struct gcmp_node *callee,
                                       struct gcmp_node *args);

/* True for an object that can be given neither state nor items, as equal ones may be one node. */
bool gcmp_pickle_is_constant(struct gcmp_pickle_vm *vm, const struct gcmp_node *node);

/* Append to a LIST or SET; set pairs (key, value, key, value ...) in a DICT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_append(struct gcmp_pickle_vm *vm,
                                                        struct gcmp_node *list,
                                                        struct gcmp_node *const *items,
                                                        size_t count);
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_set(struct gcmp_pickle_vm *vm,
                                                     struct gcmp_node *dict,
                                                     struct gcmp_node *const *pairs,
                                                     size_t item_count);

/* Opcodes that make scalars, in pickle_scalar.c and pickle_escape.c. */
enum gradcmp_status gcmp_pickle_op_int(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binint(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_long(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binlong(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_float(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binfloat(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_string(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_unicode(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binunicode(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binbytes(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binstring(struct gcmp_pickle_vm *vm);
/* True for UTF-8 as "surrogatepass" writes it: lone surrogates are allowed, nothing else is. */
bool gcmp_pickle_is_utf8(const char *bytes, size_t count);

/* Opcodes that make globals and calls, in pickle_call.c. */
enum gradcmp_status gcmp_pickle_op_global(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_stack_global(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_reduce(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_newobj_ex(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_inst(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_obj(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_build(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_persid(struct gcmp_pickle_vm *vm);
enum gradcmp_status gcmp_pickle_op_binpersid(struct gcmp_pickle_vm *vm);

#endif
