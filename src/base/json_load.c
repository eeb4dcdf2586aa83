/* Loads with jansson's allocator taken over: during a load the blocks that it holds are listed, so
 * that the load can be left from within an allocation and its blocks be freed. Outside of a load,
 * and in other threads, the allocator that was there before does all, so that values made before or
 * elsewhere can be freed here. */
#include "base/json_load.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/grow.h"

struct load {
    jmp_buf out;
    void **blocks;
    size_t count, capacity;
};

static pthread_once_t taken_over = PTHREAD_ONCE_INIT;
static json_malloc_t plain_malloc;
static json_free_t plain_free;
static _Thread_local struct load *load; /* under way in this thread; NULL: none */

static void *allocate(size_t bytes) {
    void *block = plain_malloc(bytes);
    if (load == NULL) {
        return block;
    }
    if (block == NULL || !gcmp_grow(&load->blocks, load->count, &load->capacity, sizeof block)) {
        plain_free(block);
        longjmp(load->out, 1);
    }
    load->blocks[load->count++] = block;
    return block;
}

/* What is freed is mostly young: tokens, and buffers that grew. */
static void release(void *block) {
    for (size_t i = load == NULL || block == NULL ? 0 : load->count; i > 0; i--) {
        if (load->blocks[i - 1] == block) {
            load->blocks[i - 1] = load->blocks[--load->count];
            break;
        }
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
        for (size_t i = 0; i < own->count; i++) {
            plain_free(own->blocks[i]);
        }
        return false;
    }
    *value = json_loadb(bytes, count, flags, fault);
    return true;
}

json_t *gcmp_json_load(const char *bytes, size_t count, size_t flags, json_error_t *fault) {
    struct load own = {.blocks = NULL};
    json_t *value;
    pthread_once(&taken_over, take_over);
    load = &own;
    if (!run(&own, bytes, count, flags, &value, fault)) {
        *fault = (json_error_t){.line = -1};
    }
    load = NULL;
    free(own.blocks);
    return value;
}

bool gcmp_json_lacked_memory(const json_error_t *fault) {
    return fault->text[0] == '\0';
}
