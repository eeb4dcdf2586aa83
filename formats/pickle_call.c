/* Opcodes of the pickle interpreter that make globals, calls, objects and persistent ids. Each only
 * puts a node together: there is nothing here, or anywhere below, that could look a name up. */
#include <string.h>

#include "formats/pickle_vm.h"

/* Longest "module name"; also bounds what STACK_GLOBAL copies for a few bytes of input. */
enum { MAX_GLOBAL_BYTES = 1024 };

/* A space or a control character would make "module name" ambiguous, or a message ragged. */
static bool is_name(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if ((unsigned char)bytes[i] <= ' ' || bytes[i] == 0x7f) {
            return false;
        }
    }
    return count > 0 && gcmp_pickle_is_utf8(bytes, count);
}

struct name {
    const char *bytes;
    size_t count;
};

static enum gradcmp_status make_global(struct gcmp_pickle_vm *vm, struct name module,
                                       struct name name, struct gcmp_node **out) {
    char text[MAX_GLOBAL_BYTES];
    if (module.count >= sizeof text || name.count >= sizeof text - module.count) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_LIMIT, "a global whose name is over %zu bytes",
                                sizeof text);
    }
    if (!is_name(module.bytes, module.count) || !is_name(name.bytes, name.count)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a module and a name without spaces");
    }
    memcpy(text, module.bytes, module.count);
    text[module.count] = ' ';
    memcpy(text + module.count + 1, name.bytes, name.count);
    *out = gcmp_pickle_new_text(vm, GCMP_NODE_GLOBAL, text, module.count + 1 + name.count);
    return *out == NULL ? gcmp_pickle_fail_memory(vm) : GRADCMP_OK;
}

static enum gradcmp_status take_global(struct gcmp_pickle_vm *vm, struct gcmp_node **out) {
    struct name module, name;
    GCMP_TRY(gcmp_pickle_take_line(vm, &module.bytes, &module.count));
    GCMP_TRY(gcmp_pickle_take_line(vm, &name.bytes, &name.count));
    return make_global(vm, module, name, out);
}

enum gradcmp_status gcmp_pickle_op_global(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *global;
    GCMP_TRY(take_global(vm, &global));
    return gcmp_pickle_push(vm, global);
}

enum gradcmp_status gcmp_pickle_op_stack_global(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *module, *name, *global;
    GCMP_TRY(gcmp_pickle_pop(vm, &name));
    GCMP_TRY(gcmp_pickle_pop(vm, &module));
    if (module->kind != GCMP_NODE_TEXT || name->kind != GCMP_NODE_TEXT) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected two texts on the stack, found %s and %s",
                                gcmp_node_kind_name(module), gcmp_node_kind_name(name));
    }
    GCMP_TRY(make_global(vm, (struct name){module->as.text.bytes, module->as.text.length_bytes},
                         (struct name){name->as.text.bytes, name->as.text.length_bytes}, &global));
    return gcmp_pickle_push(vm, global);
}

static enum gradcmp_status push_call(struct gcmp_pickle_vm *vm, struct gcmp_node *callee,
                                     struct gcmp_node *args) {
    if (args == NULL) {
        return gcmp_pickle_fail_memory(vm);
    }
    /* An object may be callable (functools.partial, a persistent id); plain data is not. */
    if (callee->kind != GCMP_NODE_GLOBAL && callee->kind != GCMP_NODE_CALL &&
        callee->kind != GCMP_NODE_PERSID) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected something to call, found %s",
                                gcmp_node_kind_name(callee));
    }
    if (args->kind != GCMP_NODE_TUPLE) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a tuple of arguments, found %s",
                                gcmp_node_kind_name(args));
    }
    return gcmp_pickle_push(vm, gcmp_pickle_new_call(vm, callee, args));
}

/* REDUCE and NEWOBJ. */
enum gradcmp_status gcmp_pickle_op_reduce(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *callee, *args;
    GCMP_TRY(gcmp_pickle_pop(vm, &args));
    GCMP_TRY(gcmp_pickle_pop(vm, &callee));
    return push_call(vm, callee, args);
}

enum gradcmp_status gcmp_pickle_op_newobj_ex(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *callee, *args, *keywords;
    GCMP_TRY(gcmp_pickle_pop(vm, &keywords));
    GCMP_TRY(gcmp_pickle_pop(vm, &args));
    GCMP_TRY(gcmp_pickle_pop(vm, &callee));
    if (keywords->kind != GCMP_NODE_DICT) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a dict of keyword arguments, found %s",
                                gcmp_node_kind_name(keywords));
    }
    if (args->kind == GCMP_NODE_TUPLE && keywords->as.list.count > 0) {
        size_t count = args->as.list.count;
        struct gcmp_node *both = gcmp_pickle_new(vm, GCMP_NODE_LIST);
        if (both == NULL) {
            return gcmp_pickle_fail_memory(vm);
        }
        GCMP_TRY(gcmp_pickle_append(vm, both, args->as.list.items, count));
        GCMP_TRY(gcmp_pickle_append(vm, both, &keywords, 1));
        args = gcmp_pickle_new_tuple(vm, both->as.list.items, count + 1);
    }
    return push_call(vm, callee, args);
}

/* INST: the class is named in the opcode, its arguments lie above a mark. */
enum gradcmp_status gcmp_pickle_op_inst(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *global, **items;
    size_t count;
    GCMP_TRY(take_global(vm, &global));
    GCMP_TRY(gcmp_pickle_pop_mark(vm, &items, &count));
    return push_call(vm, global, gcmp_pickle_new_tuple(vm, items, count));
}

/* OBJ: the class and its arguments lie above a mark. */
enum gradcmp_status gcmp_pickle_op_obj(struct gcmp_pickle_vm *vm) {
    struct gcmp_node **items;
    size_t count;
    GCMP_TRY(gcmp_pickle_pop_mark(vm, &items, &count));
    if (count == 0) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected a class above the mark");
    }
    return push_call(vm, items[0], gcmp_pickle_new_tuple(vm, items + 1, count - 1));
}

enum gradcmp_status gcmp_pickle_op_build(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *state, *target;
    GCMP_TRY(gcmp_pickle_pop(vm, &state));
    GCMP_TRY(gcmp_pickle_top(vm, &target));
    GCMP_TRY(gcmp_pickle_check_target(vm, target));
    if (target->kind != GCMP_NODE_CALL || gcmp_pickle_is_constant(vm, target)) {
        return gcmp_pickle_fail(
            vm, GRADCMP_ERROR_CORRUPT, "expected an object to give a state to, found %s",
            target->kind == GCMP_NODE_CALL ? "a torch.Size" : gcmp_node_kind_name(target));
    }
    target->as.call.state = state;
    return GRADCMP_OK;
}

static enum gradcmp_status push_persid(struct gcmp_pickle_vm *vm, struct gcmp_node *id) {
    struct gcmp_node *node = id == NULL ? NULL : gcmp_pickle_new(vm, GCMP_NODE_PERSID);
    if (node != NULL) {
        node->as.call.callee = id;
    }
    return gcmp_pickle_push(vm, node);
}

/* PERSID: the id is the text of a line, ASCII by definition. */
enum gradcmp_status gcmp_pickle_op_persid(struct gcmp_pickle_vm *vm) {
    const char *text;
    size_t count;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    for (size_t i = 0; i < count; i++) {
        if ((unsigned char)text[i] > 0x7f) {
            return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected an id in ASCII");
        }
    }
    return push_persid(vm, gcmp_pickle_new_text(vm, GCMP_NODE_TEXT, text, count));
}

enum gradcmp_status gcmp_pickle_op_binpersid(struct gcmp_pickle_vm *vm) {
    struct gcmp_node *id;
    GCMP_TRY(gcmp_pickle_pop(vm, &id));
    return push_persid(vm, id);
}
