/* Batches of items that a digest takes: when one begins, when it ends, what may not happen
 * meanwhile. See struct gcmp_pickle_batch. */
#include <string.h>

#include "formats/pickle_vm.h"

enum gradcmp_status gcmp_pickle_give_up(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_fail(vm, GRADCMP_ERROR_UNSUPPORTED, "not to be read in batches");
}

bool gcmp_node_is_digested(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_LIST || node->kind == GCMP_NODE_DICT) &&
           node->as.list.index == GCMP_PICKLE_DIGESTED;
}

/* True where the value on top is a container that the digest wants, the value of its key. */
static bool find_wanted(const struct gcmp_pickle_vm *vm, unsigned *which) {
    size_t floor = vm->mark_count == 0 ? 0 : vm->marks[vm->mark_count - 1];
    if (vm->batch.digest == NULL || vm->stack_count - floor < 2) {
        return false;
    }
    const struct gcmp_node *container = vm->stack[vm->stack_count - 1];
    const struct gcmp_node *key = vm->stack[vm->stack_count - 2];
    if (key->kind != GCMP_NODE_TEXT ||
        (container->kind != GCMP_NODE_LIST && container->kind != GCMP_NODE_DICT) ||
        container->as.list.count > 0) {
        return false;
    }
    for (*which = 0; *which < GCMP_PICKLE_DIGEST_KEYS; ++*which) {
        if (container->kind == vm->batch.digest->of[*which].kind &&
            strcmp(key->as.text.bytes, vm->batch.digest->of[*which].key) == 0) {
            return true;
        }
    }
    return false;
}

void gcmp_pickle_open_batch(struct gcmp_pickle_vm *vm) {
    struct gcmp_pickle_batch *batch = &vm->batch;
    if (!batch->open && find_wanted(vm, &batch->which)) {
        batch->open = true;
        batch->mark = vm->mark_count;
        batch->start_at = vm->op_at_bytes;
        batch->memo_first = vm->memo_end;
    }
}

static enum gradcmp_status take(struct gcmp_pickle_vm *vm, unsigned which,
                                struct gcmp_node *container, struct gcmp_node *const *items,
                                size_t count) {
    const struct gcmp_pickle_digest *digest = vm->batch.digest;
    container->as.list.index = GCMP_PICKLE_DIGESTED;
    if ((container->kind == GCMP_NODE_DICT && count % 2 != 0) ||
        !digest->take(digest->user, which, container, items, count)) {
        return gcmp_failure(gcmp_pickle_give_up(vm));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_close_batch(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind) {
    struct gcmp_pickle_batch *batch = &vm->batch;
    size_t height = vm->marks[vm->mark_count - 1];
    struct gcmp_node *container = vm->stack[height - 1]; /* seen when the batch was opened */
    if (container->kind != kind) {
        return gcmp_failure(gcmp_pickle_give_up(vm));
    }
    GCMP_TRY(take(vm, batch->which, container, vm->stack + height, vm->stack_count - height));
    vm->mark_count--;
    vm->stack_count = height;
    gcmp_pickle_forget_memo(vm, batch->memo_first);
    gcmp_arena_recycle(&batch->arena);
    batch->pool = (struct gcmp_pickle_pool){NULL, 0};
    batch->open = false;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_take_items(struct gcmp_pickle_vm *vm, enum gcmp_node_kind kind,
                                           struct gcmp_node *const *items, size_t count,
                                           bool *taken) {
    unsigned which;
    *taken =
        !vm->batch.open && find_wanted(vm, &which) && vm->stack[vm->stack_count - 1]->kind == kind;
    return *taken ? take(vm, which, vm->stack[vm->stack_count - 1], items, count) : GRADCMP_OK;
}

/* Objects and containers that can change are made anew each time, at the opcode `at`. */
enum gradcmp_status gcmp_pickle_check_target(struct gcmp_pickle_vm *vm,
                                             const struct gcmp_node *target) {
    bool outlives = vm->batch.open && target->at < vm->batch.start_at;
    return outlives || gcmp_node_is_digested(target) ? gcmp_failure(gcmp_pickle_give_up(vm))
                                                     : GRADCMP_OK;
}
