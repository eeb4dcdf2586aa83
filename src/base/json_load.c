/* Loads with jansson's allocator taken over: during a load the blocks that it holds are kept in a
 * set, so that the load can be left from within an allocation and its blocks be freed. Outside of a
 * load, and in other threads, the allocator that was there before does all, so that values made
 * before or elsewhere can be freed here. (That is why no block can carry a header of ours.) */
#include "base/json_load.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/checked.h"

/* A set of addresses: open addressing, linear probing, at most two thirds full. What jansson frees
 * it may have made at any time, so that a list would be searched from end to end. */
struct load {
    jmp_buf out;
    void **slots; /* NULL: free */
    size_t capacity, count;
};

static pthread_once_t taken_over = PTHREAD_ONCE_INIT;
static json_malloc_t plain_malloc;
static json_free_t plain_free;
static _Thread_local struct load *load; /* under way in this thread; NULL: none */

/* Blocks of one size lie at regular distances: all bits of the address go into the high ones of
 * the product (Knuth's multiplicative hashing). */
static size_t home_of(const struct load *own, const void *block) {
    uint64_t mixed = (uint64_t)(uintptr_t)block * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) & (own->capacity - 1);
}

/* The slot that holds the block, or else the free one where it would be put. */
static size_t find_slot(const struct load *own, const void *block) {
    size_t at = home_of(own, block);
    while (own->slots[at] != NULL && own->slots[at] != block) {
        at = (at + 1) & (own->capacity - 1);
    }
    return at;
}

static bool make_room(struct load *own) {
    struct load bigger = {.capacity = 64, .count = own->count};
    if (3 * (own->count + 1) <= 2 * own->capacity) {
        return true;
    }
    if (own->capacity > 0 && !gcmp_mul_size(own->capacity, 2, &bigger.capacity)) {
        return false;
    }
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < own->capacity; i++) {
        if (own->slots[i] != NULL) {
            bigger.slots[find_slot(&bigger, own->slots[i])] = own->slots[i];
        }
    }
    free(own->slots);
    own->slots = bigger.slots;
    own->capacity = bigger.capacity;
    return true;
}

/* Take a block out: those behind it in the run that may stand in the hole move up. */
static void forget(struct load *own, const void *block) {
    size_t mask = own->capacity - 1, hole = find_slot(own, block);
    if (own->slots[hole] == NULL) {
        return; /* made before this load */
    }
    for (size_t at = (hole + 1) & mask; own->slots[at] != NULL; at = (at + 1) & mask) {
        size_t home = home_of(own, own->slots[at]);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            own->slots[hole] = own->slots[at];
            hole = at;
        }
    }
    own->slots[hole] = NULL;
    own->count--;
}

static void *allocate(size_t bytes) {
    void *block = plain_malloc(bytes);
    if (load == NULL) {
        return block;
    }
    if (block == NULL || !make_room(load)) {
        plain_free(block);
        longjmp(load->out, 1);
    }
    load->slots[find_slot(load, block)] = block;
    load->count++;
    return block;
}

static void release(void *block) {
    if (load != NULL && load->count > 0 && block != NULL) {
        forget(load, block);
    }
    plain_free(block);
}

static void take_over(void) {
    json_get_alloc_funcs(&plain_malloc, &plain_free);
    json_set_alloc_funcs(allocate, release);
}

/* False where memory ran out: then *value is NULL, and what the load held is freed. */
static bool run(struct load *own, const char *bytes, size_t count, size_t flags, json_t **value,
                json_error_t *fault) {
    *value = NULL;
    if (setjmp(own->out) != 0) {
        for (size_t i = 0; i < own->capacity; i++) {
            if (own->slots[i] != NULL) {
                plain_free(own->slots[i]);
            }
        }
        return false;
    }
    *value = json_loadb(bytes, count, flags, fault);
    return true;
}

json_t *gcmp_json_load(const char *bytes, size_t count, size_t flags, json_error_t *fault) {
    struct load own = {.slots = NULL};
    json_t *value;
    pthread_once(&taken_over, take_over);
    load = &own;
    if (!run(&own, bytes, count, flags, &value, fault)) {
        *fault = (json_error_t){.line = -1};
    }
    load = NULL;
    free(own.slots);
    return value;
}

bool gcmp_json_lacked_memory(const json_error_t *fault) {
    return fault->text[0] == '\0';
}
