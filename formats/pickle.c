/* The pickle interpreter: its loop, the table of opcodes, and those that move values on the stack
 * and build containers. Source of the opcodes: CPython's Lib/pickletools.py; where its C and its
 * Python unpickler differ, the stricter one is followed, and where both let a stream through that
 * no pickler writes (values left at STOP, a frame that goes on behind it), it is refused, because
 * tools that read such a stream disagree on what it means.
 *
 * Limits: GCMP_PICKLE_MAX_BYTES of input; memory and work as in pickle_vm.h. */
#include "formats/pickle.h"

#include <stdlib.h>

#include "base/checked.h"
#include "formats/pickle_vm.h"

enum { MAX_PROTOCOL = 5 };

static enum gradcmp_status op_proto(struct gcmp_pickle_vm *vm) {
    uint64_t version;
    GCMP_TRY(gcmp_pickle_take_number(vm, 1, &version));
    if (version > MAX_PROTOCOL) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_UNSUPPORTED, "protocol %u; 0 to %d are read",
                                (unsigned)version, MAX_PROTOCOL);
    }
    return GRADCMP_OK;
}

/* FRAME: the bytes that follow hold whole opcodes; the loop opens and closes the window. */
static enum gradcmp_status op_frame(struct gcmp_pickle_vm *vm) {
    uint64_t count;
    bool nested = vm->in_frame;
    GCMP_TRY(gcmp_pickle_take_number(vm, 8, &count));
    if (nested) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "a frame inside a frame");
    }
    if (count > gcmp_cursor_left(&vm->in)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a frame of at most %zu bytes, found %llu",
                                gcmp_cursor_left(&vm->in), (unsigned long long)count);
    }
    if (count > 0) {
        vm->in_frame = true;
        vm->in.length_bytes = vm->in.at_bytes + (size_t)count;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status op_stop(struct gcmp_pickle_vm *vm) {
    if (vm->stack_count != 1 || vm->mark_count != 0) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected one value on the stack, found %zu and %zu marks",
                                vm->stack_count, vm->mark_count);
    }
    if (vm->in_frame && gcmp_cursor_left(&vm->in) > 0) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected the end of the frame, found %zu more bytes in it",
                                gcmp_cursor_left(&vm->in));
    }
    vm->stopped = true;
    return GRADCMP_OK;
}

static enum gradcmp_status op_unsupported(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_fail(
        vm, GRADCMP_ERROR_UNSUPPORTED,
        "its value is not in the file: it needs %s of the program that wrote it",
        vm->op->width > 0 ? "the extension registry" : "a buffer");
}

static enum gradcmp_status op_readonly_buffer(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *top;
    GCMP_TRY(gcmp_pickle_top(vm, &top));
    if (top->kind != GCMP_NODE_BYTES) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected bytes on the stack, found %s",
                                gcmp_node_kind_name(top));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status op_none(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, vm->none);
}

static enum gradcmp_status op_true(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, vm->yes);
}

static enum gradcmp_status op_false(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, vm->no);
}

static enum gradcmp_status op_mark(struct gcmp_pickle_vm *vm) {
    if (vm->mark_count == vm->mark_capacity &&
        !gcmp_pickle_grow(vm, &vm->marks, &vm->mark_capacity, 0, sizeof *vm->marks)) {
        return gcmp_pickle_fail_memory(vm);
    }
    gcmp_pickle_open_batch(vm);
    vm->marks[vm->mark_count++] = vm->stack_count;
    return GRADCMP_OK;
}

static enum gradcmp_status op_dup(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *top;
    GCMP_TRY(gcmp_pickle_top(vm, &top));
    return gcmp_pickle_push(vm, top);
}

/* POP: where the topmost thing is a mark, that goes (as in CPython). */
static enum gradcmp_status op_pop(struct gcmp_pickle_vm *vm) {
    if (vm->mark_count > 0 && vm->marks[vm->mark_count - 1] == vm->stack_count) {
        if (gcmp_pickle_is_batch_mark(vm)) {
            return gcmp_pickle_give_up(vm);
        }
        vm->mark_count--;
        return GRADCMP_OK;
    }
    struct gcmp_node *dropped;
    return gcmp_pickle_pop(vm, &dropped);
}

static enum gradcmp_status op_pop_mark(struct gcmp_pickle_vm *vm) {
    struct gcmp_node **items;
    size_t count;
    return gcmp_pickle_pop_mark(vm, &items, &count);
}

/* GET and PUT: the index is a decimal line. */
static enum gradcmp_status take_text_index(struct gcmp_pickle_vm *vm, uint64_t *index) {
    const char *text;
    size_t count;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    if (!gcmp_pickle_parse_u64(text, count, index)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a decimal index below 2^64, found \"%.*s\"",
                                count < 24 ? (int)count : 24, text);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status push_from_memo(struct gcmp_pickle_vm *vm, uint64_t index) {
    struct gcmp_node *node;
    GCMP_TRY(gcmp_pickle_memo_get(vm, index, &node));
    return gcmp_pickle_push(vm, node);
}

static enum gradcmp_status op_get(struct gcmp_pickle_vm *vm) {
    uint64_t index;
    GCMP_TRY(take_text_index(vm, &index));
    return push_from_memo(vm, index);
}

static enum gradcmp_status op_binget(struct gcmp_pickle_vm *vm) {
    uint64_t index;
    GCMP_TRY(gcmp_pickle_take_number(vm, vm->op->width, &index));
    return push_from_memo(vm, index);
}

static enum gradcmp_status op_put(struct gcmp_pickle_vm *vm) {
    uint64_t index;
    struct gcmp_node *top;
    GCMP_TRY(vm->op->width == 0 ? take_text_index(vm, &index)
                                : gcmp_pickle_take_number(vm, vm->op->width, &index));
    GCMP_TRY(gcmp_pickle_top(vm, &top));
    return gcmp_pickle_memo_put(vm, index, top);
}

/* MEMOIZE: the index is the number of entries, as in CPython, also after PUTs that left gaps. */
static enum gradcmp_status op_memoize(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *top;
    GCMP_TRY(gcmp_pickle_top(vm, &top));
    return gcmp_pickle_memo_put(vm, vm->memo_count, top);
}

static enum gradcmp_status op_empty_tuple(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, gcmp_pickle_new_tuple(vm, NULL, 0));
}

static enum gradcmp_status op_empty_list(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, gcmp_pickle_new(vm, GCMP_NODE_LIST));
}

static enum gradcmp_status op_empty_dict(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, gcmp_pickle_new(vm, GCMP_NODE_DICT));
}

static enum gradcmp_status op_empty_set(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_push(vm, gcmp_pickle_new(vm, GCMP_NODE_SET));
}

/* TUPLE1, TUPLE2, TUPLE3. */
static enum gradcmp_status op_tuple_n(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *items[3];
    for (size_t i = vm->op->width; i-- > 0;) {
        GCMP_TRY(gcmp_pickle_pop(vm, &items[i]));
    }
    return gcmp_pickle_push(vm, gcmp_pickle_new_tuple(vm, items, vm->op->width));
}

static enum gradcmp_status op_tuple(struct gcmp_pickle_vm *vm) {
    struct gcmp_node **items;
    size_t count;
    GCMP_TRY(gcmp_pickle_pop_mark(vm, &items, &count));
    return gcmp_pickle_push(vm, gcmp_pickle_new_tuple(vm, items, count));
}

/* LIST, DICT and FROZENSET: a container of all above the mark. */
static enum gradcmp_status make_container(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind) {
    struct gcmp_node **items, *node = gcmp_pickle_new(vm, kind);
    size_t count;
    GCMP_TRY(gcmp_pickle_pop_mark(vm, &items, &count));
    if (node == NULL) {
        return gcmp_pickle_fail_memory(vm);
    }
    GCMP_TRY(kind == GCMP_NODE_DICT ? gcmp_pickle_set(vm, node, items, count)
                                    : gcmp_pickle_append(vm, node, items, count));
    return gcmp_pickle_push(vm, node);
}

static enum gradcmp_status op_list(struct gcmp_pickle_vm *vm) {
    return make_container(vm, GCMP_NODE_LIST);
}

static enum gradcmp_status op_dict(struct gcmp_pickle_vm *vm) {
    return make_container(vm, GCMP_NODE_DICT);
}

static enum gradcmp_status op_frozenset(struct gcmp_pickle_vm *vm) {
    return make_container(vm, GCMP_NODE_SET);
}

/* Find what items go into: the node on top itself where it is of that kind, or the contents of an
 * object, which are made when the first item comes. */
static enum gradcmp_status find_target(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind,
                                       struct gcmp_node **out) {
    struct gcmp_node *top;
    GCMP_TRY(gcmp_pickle_top(vm, &top));
    GCMP_TRY(gcmp_pickle_check_target(vm, top));
    if (top->kind == GCMP_NODE_CALL && kind != GCMP_NODE_SET && !gcmp_pickle_is_constant(vm, top)) {
        if (top->as.call.contents == NULL) {
            top->as.call.contents = gcmp_pickle_new(vm, kind);
        }
        top = top->as.call.contents;
        if (top == NULL) {
            return gcmp_pickle_fail_memory(vm);
        }
    }
    if (top->kind != kind) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected %s to add to, found %s",
                                gcmp_node_kind_name(&(struct gcmp_node){.kind = kind}),
                                gcmp_node_kind_name(top));
    }
    *out = top;
    return GRADCMP_OK;
}

static enum gradcmp_status add_items(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind,
                                     struct gcmp_node *const *items, size_t count) {
    struct gcmp_node *target = NULL;
    bool taken = false;
    GCMP_TRY(gcmp_pickle_take_items(vm, kind, items, count, &taken));
    if (taken) {
        return GRADCMP_OK;
    }
    GCMP_TRY(find_target(vm, kind, &target));
    return kind == GCMP_NODE_DICT ? gcmp_pickle_set(vm, target, items, count)
                                  : gcmp_pickle_append(vm, target, items, count);
}

static enum gradcmp_status add_marked(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind) {
    struct gcmp_node **items;
    size_t count;
    if (gcmp_pickle_is_batch_mark(vm)) {
        return gcmp_pickle_close_batch(vm, kind);
    }
    GCMP_TRY(gcmp_pickle_pop_mark(vm, &items, &count));
    return add_items(vm, kind, items, count);
}

static enum gradcmp_status op_append(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *item;
    GCMP_TRY(gcmp_pickle_pop(vm, &item));
    return add_items(vm, GCMP_NODE_LIST, &item, 1);
}

static enum gradcmp_status op_setitem(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *pair[2];
    GCMP_TRY(gcmp_pickle_pop(vm, &pair[1]));
    GCMP_TRY(gcmp_pickle_pop(vm, &pair[0]));
    return add_items(vm, GCMP_NODE_DICT, pair, 2);
}

static enum gradcmp_status op_appends(struct gcmp_pickle_vm *vm) {
    return add_marked(vm, GCMP_NODE_LIST);
}

static enum gradcmp_status op_setitems(struct gcmp_pickle_vm *vm) {
    return add_marked(vm, GCMP_NODE_DICT);
}

static enum gradcmp_status op_additems(struct gcmp_pickle_vm *vm) {
    return add_marked(vm, GCMP_NODE_SET);
}

static const struct gcmp_pickle_opcode opcodes[256] = {
    ['('] = {"MARK", op_mark, 0},
    [')'] = {"EMPTY_TUPLE", op_empty_tuple, 0},
    ['.'] = {"STOP", op_stop, 0},
    ['0'] = {"POP", op_pop, 0},
    ['1'] = {"POP_MARK", op_pop_mark, 0},
    ['2'] = {"DUP", op_dup, 0},
    ['B'] = {"BINBYTES", gcmp_pickle_op_binbytes, 4},
    ['C'] = {"SHORT_BINBYTES", gcmp_pickle_op_binbytes, 1},
    ['F'] = {"FLOAT", gcmp_pickle_op_float, 0},
    ['G'] = {"BINFLOAT", gcmp_pickle_op_binfloat, 8},
    ['I'] = {"INT", gcmp_pickle_op_int, 0},
    ['J'] = {"BININT", gcmp_pickle_op_binint, 4},
    ['K'] = {"BININT1", gcmp_pickle_op_binint, 1},
    ['L'] = {"LONG", gcmp_pickle_op_long, 0},
    ['M'] = {"BININT2", gcmp_pickle_op_binint, 2},
    ['N'] = {"NONE", op_none, 0},
    ['P'] = {"PERSID", gcmp_pickle_op_persid, 0},
    ['Q'] = {"BINPERSID", gcmp_pickle_op_binpersid, 0},
    ['R'] = {"REDUCE", gcmp_pickle_op_reduce, 0},
    ['S'] = {"STRING", gcmp_pickle_op_string, 0},
    ['T'] = {"BINSTRING", gcmp_pickle_op_binstring, 4},
    ['U'] = {"SHORT_BINSTRING", gcmp_pickle_op_binbytes, 1},
    ['V'] = {"UNICODE", gcmp_pickle_op_unicode, 0},
    ['X'] = {"BINUNICODE", gcmp_pickle_op_binunicode, 4},
    [']'] = {"EMPTY_LIST", op_empty_list, 0},
    ['a'] = {"APPEND", op_append, 0},
    ['b'] = {"BUILD", gcmp_pickle_op_build, 0},
    ['c'] = {"GLOBAL", gcmp_pickle_op_global, 0},
    ['d'] = {"DICT", op_dict, 0},
    ['e'] = {"APPENDS", op_appends, 0},
    ['g'] = {"GET", op_get, 0},
    ['h'] = {"BINGET", op_binget, 1},
    ['i'] = {"INST", gcmp_pickle_op_inst, 0},
    ['j'] = {"LONG_BINGET", op_binget, 4},
    ['l'] = {"LIST", op_list, 0},
    ['o'] = {"OBJ", gcmp_pickle_op_obj, 0},
    ['p'] = {"PUT", op_put, 0},
    ['q'] = {"BINPUT", op_put, 1},
    ['r'] = {"LONG_BINPUT", op_put, 4},
    ['s'] = {"SETITEM", op_setitem, 0},
    ['t'] = {"TUPLE", op_tuple, 0},
    ['u'] = {"SETITEMS", op_setitems, 0},
    ['}'] = {"EMPTY_DICT", op_empty_dict, 0},
    [0x80] = {"PROTO", op_proto, 1},
    [0x81] = {"NEWOBJ", gcmp_pickle_op_reduce, 0},
    [0x82] = {"EXT1", op_unsupported, 1},
    [0x83] = {"EXT2", op_unsupported, 2},
    [0x84] = {"EXT4", op_unsupported, 4},
    [0x85] = {"TUPLE1", op_tuple_n, 1},
    [0x86] = {"TUPLE2", op_tuple_n, 2},
    [0x87] = {"TUPLE3", op_tuple_n, 3},
    [0x88] = {"NEWTRUE", op_true, 0},
    [0x89] = {"NEWFALSE", op_false, 0},
    [0x8a] = {"LONG1", gcmp_pickle_op_binlong, 1},
    [0x8b] = {"LONG4", gcmp_pickle_op_binlong, 4},
    [0x8c] = {"SHORT_BINUNICODE", gcmp_pickle_op_binunicode, 1},
    [0x8d] = {"BINUNICODE8", gcmp_pickle_op_binunicode, 8},
    [0x8e] = {"BINBYTES8", gcmp_pickle_op_binbytes, 8},
    [0x8f] = {"EMPTY_SET", op_empty_set, 0},
    [0x90] = {"ADDITEMS", op_additems, 0},
    [0x91] = {"FROZENSET", op_frozenset, 0},
    [0x92] = {"NEWOBJ_EX", gcmp_pickle_op_newobj_ex, 0},
    [0x93] = {"STACK_GLOBAL", gcmp_pickle_op_stack_global, 0},
    [0x94] = {"MEMOIZE", op_memoize, 0},
    [0x95] = {"FRAME", op_frame, 8},
    [0x96] = {"BYTEARRAY8", gcmp_pickle_op_binbytes, 8},
    [0x97] = {"NEXT_BUFFER", op_unsupported, 0},
    [0x98] = {"READONLY_BUFFER", op_readonly_buffer, 0},
};

static enum gradcmp_status run_one(struct gcmp_pickle_vm *vm) {
    static const struct gcmp_pickle_opcode end = {"end of input", NULL, 0};
    static const struct gcmp_pickle_opcode unknown = {"unknown opcode", NULL, 0};
    if (vm->in_frame && gcmp_cursor_left(&vm->in) == 0) {
        vm->in_frame = false;
        vm->in.length_bytes = vm->end_bytes;
    }
    uint8_t code;
    vm->op_at_bytes = vm->in.at_bytes;
    if (!gcmp_read_u8(&vm->in, &code)) {
        vm->op = &end;
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected STOP after %zu bytes",
                                vm->end_bytes - vm->start_bytes);
    }
    vm->op = &opcodes[code];
    if (vm->op->run == NULL) {
        vm->op = &unknown;
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "found byte 0x%02x", code);
    }
    return vm->op->run(vm);
}

static enum gradcmp_status make_constants(struct gcmp_pickle_vm *vm) {
    vm->none = gcmp_pickle_new(vm, GCMP_NODE_NONE);
    vm->yes = gcmp_pickle_new(vm, GCMP_NODE_BOOL);
    vm->no = gcmp_pickle_new(vm, GCMP_NODE_BOOL);
    vm->recycled = gcmp_pickle_new(vm, GCMP_NODE_RECYCLED);
    if (vm->recycled == NULL || vm->none == NULL || vm->yes == NULL || vm->no == NULL ||
        !gcmp_pickle_grow(vm, &vm->stack, &vm->stack_capacity, 0, sizeof(struct gcmp_node *))) {
        return gcmp_pickle_fail_memory(vm);
    }
    vm->yes->as.integer = 1;
    return GRADCMP_OK;
}

static size_t budget(size_t input_bytes, size_t per_byte) {
    size_t bytes;
    bool fits = gcmp_mul_size(input_bytes, per_byte, &bytes) &&
                gcmp_add_size(bytes, GCMP_PICKLE_BUDGET_BYTES, &bytes);
    return fits ? bytes : SIZE_MAX;
}

/* Small inputs may take much for a byte, large ones not much more than honest ones do. */
static size_t memory_budget(size_t input_bytes) {
    size_t dense = budget(input_bytes, GCMP_PICKLE_MEMORY_PER_BYTE), large;
    bool fits = gcmp_mul_size(input_bytes, GCMP_PICKLE_LARGE_PER_BYTE, &large) &&
                gcmp_add_size(large, GCMP_PICKLE_LARGE_BYTES, &large);
    return fits && large < dense ? large : dense;
}

static enum gradcmp_status run_all(struct gcmp_pickle_vm *vm) {
    static const struct gcmp_pickle_opcode start = {"start", NULL, 0};
    vm->op = &start;
    if (gcmp_cursor_left(&vm->in) > GCMP_PICKLE_MAX_BYTES) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_LIMIT, "%zu bytes, at most %zu are read",
                                gcmp_cursor_left(&vm->in), GCMP_PICKLE_MAX_BYTES);
    }
    gcmp_pickle_start_recent(vm);
    GCMP_TRY(make_constants(vm));
    while (!vm->stopped) {
        GCMP_TRY(run_one(vm));
    }
    return GRADCMP_OK;
}

static void free_vm(struct gcmp_pickle_vm *vm) {
    for (size_t i = 0; i < vm->index_count; i++) {
        free(vm->indexes[i].slots);
    }
    free(vm->indexes);
    free(vm->stack);
    free(vm->marks);
    free(vm->memo);
    free(vm->recent);
    gcmp_map_free(&vm->memo_sparse);
    gcmp_arena_free(&vm->batch.arena);
}

enum gradcmp_status gcmp_pickle_load(struct gcmp_cursor *cursor, struct gcmp_arena *arena,
                                     const char *path, struct gcmp_node **root,
                                     struct gradcmp_error *error) {
    return gcmp_pickle_load_digested(cursor, arena, path, NULL, root, error);
}

enum gradcmp_status gcmp_pickle_load_digested(struct gcmp_cursor *cursor, struct gcmp_arena *arena,
                                              const char *path,
                                              const struct gcmp_pickle_digest *digest,
                                              struct gcmp_node **root,
                                              struct gradcmp_error *error) {
    struct gcmp_pickle_vm vm = {.in = *cursor,
                                .start_bytes = cursor->at_bytes,
                                .end_bytes = cursor->length_bytes,
                                .op_at_bytes = cursor->at_bytes,
                                .arena = arena,
                                .batch.digest = digest,
                                .path = path,
                                .error = error};
    vm.memory_left_bytes = memory_budget(gcmp_cursor_left(cursor));
    vm.work_left_bytes = budget(gcmp_cursor_left(cursor), GCMP_PICKLE_WORK_PER_BYTE);
    enum gradcmp_status status = run_all(&vm);
    *root = NULL;
    if (status == GRADCMP_OK) {
        *root = vm.stack[0];
        cursor->at_bytes = vm.in.at_bytes;
    }
    free_vm(&vm);
    return status;
}
