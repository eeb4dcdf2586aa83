/* What the opcodes of the pickle interpreter work on: budget, arguments, stack, memo, new nodes.
 *
 * Every allocation of a run, those that growing replaces included, is charged to a budget of
 * GCMP_PICKLE_MEMORY_PER_BYTE times the input, or of GCMP_PICKLE_LARGE_PER_BYTE times the input and
 * GCMP_PICKLE_LARGE_BYTES, whichever is less; so a pickle cannot claim more than its size pays for.
 * Checkpoint metadata takes 5 to 8 bytes a byte, dicts of short keys and integers 9, dicts in lists
 * 11, a list of None 16; the densest opcodes (a stream of EMPTY_LIST) under 70. Only tricks reach
 * the limit, such as globals whose long names are put together from the memo. */
#include "formats/pickle_vm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pages.h"

enum {
    POOL_CHUNK_BYTES = 64 * 1024, /* small nodes are cut from chunks of at most this */
    POOL_FIRST_BYTES = 512,
    DENSE_MEMO_SLACK = 1024 /* see memo_is_dense */
};

enum gradcmp_status gcmp_pickle_fill(struct gcmp_pickle_vm *vm, enum gradcmp_status code,
                                     const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return gcmp_error_set(vm->error, code, vm->path, vm->in.base_bytes + vm->op_at_bytes,
                          "pickle: %s: %s", vm->op->name, text);
}

static bool charge_memory(struct gcmp_pickle_vm *vm, size_t bytes) {
    vm->over_limit = bytes > vm->memory_left_bytes;
    if (!vm->over_limit) {
        vm->memory_left_bytes -= bytes;
    }
    return !vm->over_limit;
}

/* The arena aligns to 16 bytes and, in test builds, makes each allocation a malloc; nodes are often
 * 24 bytes and number millions, so they are cut from chunks, except where the checkers watch. */
static void *alloc_in(struct gcmp_pickle_vm *vm, struct gcmp_arena *arena,
                      struct gcmp_pickle_pool *pool, size_t bytes) {
    size_t rounded;
    if (!gcmp_add_size(bytes, 7, &rounded) || !charge_memory(vm, rounded / 8 * 8)) {
        return NULL;
    }
    rounded = rounded / 8 * 8;
#ifdef GCMP_ARENA_MALLOC
    (void)pool;
    return gcmp_arena_alloc(arena, 1, bytes);
#else
    if (rounded > pool->bytes) {
        size_t chunk = 4 * vm->end_bytes + POOL_FIRST_BYTES;
        chunk = chunk < POOL_CHUNK_BYTES ? chunk : POOL_CHUNK_BYTES;
        if (rounded > chunk / 8) {
            return gcmp_arena_alloc(arena, 1, rounded);
        }
        pool->next = gcmp_arena_alloc(arena, 1, chunk);
        pool->bytes = pool->next == NULL ? 0 : chunk;
        if (pool->next == NULL) {
            return NULL;
        }
    }
    void *memory = pool->next;
    pool->next += rounded;
    pool->bytes -= rounded;
    return memory;
#endif
}

void *gcmp_pickle_alloc(struct gcmp_pickle_vm *vm, size_t bytes) {
    return alloc_in(vm, vm->arena, &vm->pool, bytes);
}

void *gcmp_pickle_alloc_brief(struct gcmp_pickle_vm *vm, size_t bytes) {
    return vm->batch.open ? alloc_in(vm, &vm->batch.arena, &vm->batch.pool, bytes)
                          : gcmp_pickle_alloc(vm, bytes);
}

bool gcmp_pickle_grow(struct gcmp_pickle_vm *vm, void *array, size_t *capacity, size_t need,
                      size_t item_bytes) {
    size_t target = *capacity < 16 ? 16 : 2 * *capacity, bytes;
    target = target < need ? need : target;
    if (!gcmp_mul_size(target, item_bytes, &bytes) || !charge_memory(vm, bytes)) {
        return false;
    }
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, bytes);
    if (grown == NULL) {
        return false;
    }
    gcmp_ask_for_huge_pages(grown, bytes);
    memcpy(array, &grown, sizeof grown);
    *capacity = target;
    return true;
}

enum gradcmp_status gcmp_pickle_work(struct gcmp_pickle_vm *vm, size_t bytes) {
    if (bytes > vm->work_left_bytes) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_LIMIT,
                                "needs more comparing of keys than %zu bytes of input may ask for",
                                vm->end_bytes - vm->start_bytes);
    }
    vm->work_left_bytes -= bytes;
    return GRADCMP_OK;
}

static enum gradcmp_status fail_short(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                            "the argument runs past the end of the %s at byte %llu",
                            vm->in_frame ? "frame" : "input",
                            (unsigned long long)(vm->in.base_bytes + vm->in.length_bytes));
}

enum gradcmp_status gcmp_pickle_take(struct gcmp_pickle_vm *vm, uint64_t count, const char **out) {
    const unsigned char *bytes;
    if (!gcmp_read_bytes(&vm->in, count, &bytes)) {
        return fail_short(vm);
    }
    *out = (const char *)bytes;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_take_last_number(struct gcmp_pickle_vm *vm, unsigned width,
                                                 uint64_t *out) {
    return gcmp_read_le(&vm->in, width, out) ? GRADCMP_OK : fail_short(vm);
}

enum gradcmp_status gcmp_pickle_take_line(struct gcmp_pickle_vm *vm, const char **out,
                                          size_t *count) {
    const char *start = (const char *)vm->in.bytes + vm->in.at_bytes;
    const char *end = memchr(start, '\n', gcmp_cursor_left(&vm->in));
    if (end == NULL) {
        return fail_short(vm);
    }
    *out = start;
    *count = (size_t)(end - start);
    vm->in.at_bytes += *count + 1;
    return GRADCMP_OK;
}

bool gcmp_pickle_parse_u64(const char *text, size_t count, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9' || !gcmp_mul_u64(value, 10, &value) ||
            !gcmp_add_u64(value, (uint64_t)(text[i] - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    return count > 0;
}

enum gradcmp_status gcmp_pickle_push_growing(struct gcmp_pickle_vm *vm, struct gcmp_node *node) {
    if (node == NULL ||
        (vm->stack_count == vm->stack_capacity &&
         !gcmp_pickle_grow(vm, &vm->stack, &vm->stack_capacity, 0, sizeof(struct gcmp_node *)))) {
        return gcmp_pickle_fail_memory(vm);
    }
    vm->stack[vm->stack_count++] = node;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_fail_empty(struct gcmp_pickle_vm *vm) {
    return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected a value on the stack, found %s",
                            vm->mark_count == 0 ? "none" : "a mark");
}

enum gradcmp_status gcmp_pickle_pop_mark(struct gcmp_pickle_vm *vm, struct gcmp_node ***items,
                                         size_t *count) {
    if (vm->mark_count == 0) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected a mark, found none");
    }
    if (gcmp_pickle_is_batch_mark(vm)) {
        return gcmp_pickle_give_up(vm);
    }
    size_t height = vm->marks[--vm->mark_count];
    *items = vm->stack + height;
    *count = vm->stack_count - height;
    vm->stack_count = height;
    return GRADCMP_OK;
}

/* Real picklers number the memo 0, 1, 2 ...; an index far beyond the number of entries goes to a
 * hash map, so that PUT 2147483647 costs one entry. An index stays where it was first put. */
static bool memo_is_dense(const struct gcmp_pickle_vm *vm, uint64_t index) {
    return index < 2 * (uint64_t)vm->memo_count + DENSE_MEMO_SLACK;
}

struct sparse_entry {
    uint64_t index;
    struct gcmp_node *node;
};

static struct gcmp_node **find_memo(const struct gcmp_pickle_vm *vm, uint64_t index) {
    if (index < vm->memo_end && vm->memo[index] != NULL) {
        return &vm->memo[index];
    }
    size_t value;
    if (!gcmp_map_find(&vm->memo_sparse, &index, sizeof index, &value)) {
        return NULL;
    }
    return &((struct sparse_entry *)(uintptr_t)value)->node;
}

static enum gradcmp_status put_sparse(struct gcmp_pickle_vm *vm, uint64_t index,
                                      struct gcmp_node *node) {
    struct sparse_entry *entry = gcmp_pickle_alloc(vm, sizeof *entry);
    /* The map doubles when two thirds full: at most 3 slots, old and new, for an entry. */
    if (entry == NULL || !charge_memory(vm, 3 * sizeof(struct gcmp_map_slot))) {
        return gcmp_pickle_fail_memory(vm);
    }
    *entry = (struct sparse_entry){index, node};
    if (gcmp_map_add(&vm->memo_sparse, &entry->index, sizeof entry->index, (size_t)(uintptr_t)entry,
                     NULL) == GCMP_MAP_NO_MEMORY) {
        return gcmp_pickle_fail_memory(vm);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_memo_put(struct gcmp_pickle_vm *vm, uint64_t index,
                                         struct gcmp_node *node) {
    bool next = index == vm->memo_end && memo_is_dense(vm, index);
    if (next && index < vm->memo_capacity && vm->memo_sparse.count == 0) {
        vm->memo[vm->memo_end++] = node; /* as nearly always */
        vm->memo_count++;
        return GRADCMP_OK;
    }
    if (vm->batch.open && !next) {
        return gcmp_pickle_give_up(vm); /* forget_memo would not find it */
    }
    struct gcmp_node **held = find_memo(vm, index);
    if (held != NULL) {
        *held = node;
        return GRADCMP_OK;
    }
    if (!memo_is_dense(vm, index)) {
        GCMP_TRY(put_sparse(vm, index, node));
    } else {
        if (index >= vm->memo_capacity &&
            !gcmp_pickle_grow(vm, &vm->memo, &vm->memo_capacity, (size_t)index + 1,
                              sizeof(struct gcmp_node *))) {
            return gcmp_pickle_fail_memory(vm);
        }
        if (index >= vm->memo_end) {
            size_t skipped = (size_t)index - vm->memo_end;
            memset(vm->memo + vm->memo_end, 0, skipped * sizeof(struct gcmp_node *));
            vm->memo_end = (size_t)index + 1;
        }
        vm->memo[index] = node;
    }
    vm->memo_count++;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pickle_memo_get(struct gcmp_pickle_vm *vm, uint64_t index,
                                         struct gcmp_node **out) {
    struct gcmp_node **held = find_memo(vm, index);
    if (held == NULL) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "memo entry %llu was never set; %zu entries were",
                                (unsigned long long)index, vm->memo_count);
    }
    *out = *held;
    return GRADCMP_OK;
}

/* Also what was older and only memoised again: that is seldom, and costs a run without batches at
 * worst. */
void gcmp_pickle_forget_memo(struct gcmp_pickle_vm *vm, size_t first) {
    for (size_t i = first; i < vm->memo_end; i++) {
        if (!gcmp_pickle_is_kept(vm->memo[i]->kind)) {
            vm->memo[i] = vm->recycled;
        }
    }
}
