/* The bump allocator. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pages.h"

enum { FIRST_CHUNK_BYTES = 16 * 1024, MAX_CHUNK_BYTES = 16 * 1024 * 1024, ALIGN_BYTES = 16 };

struct gcmp_arena_chunk {
    struct gcmp_arena_chunk *next;
    size_t capacity_bytes, used_bytes;
    _Alignas(16) unsigned char bytes[];
};

static struct gcmp_arena_chunk *add_chunk(struct gcmp_arena *arena, size_t need_bytes) {
    size_t capacity = arena->chunks == NULL ? FIRST_CHUNK_BYTES : 2 * arena->chunks->capacity_bytes;
    if (capacity > MAX_CHUNK_BYTES) {
        capacity = MAX_CHUNK_BYTES;
    }
#ifdef GCMP_ARENA_MALLOC
    capacity = 0;
#endif
    if (capacity < need_bytes) {
        capacity = need_bytes;
    }
    size_t total;
    if (!gcmp_add_size(capacity, sizeof(struct gcmp_arena_chunk), &total)) {
        return NULL;
    }
    struct gcmp_arena_chunk *chunk = calloc(1, total);
    if (chunk != NULL) {
        gcmp_ask_for_huge_pages(chunk, total);
        chunk->next = arena->chunks;
        chunk->capacity_bytes = capacity;
        arena->chunks = chunk;
    }
    return chunk;
}

void *gcmp_arena_alloc(struct gcmp_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!gcmp_mul_size(count, size, &bytes) || !gcmp_add_size(bytes, ALIGN_BYTES - 1, &bytes)) {
        return NULL;
    }
    bytes = bytes / ALIGN_BYTES * ALIGN_BYTES;
    if (bytes == 0) {
        bytes = ALIGN_BYTES;
    }
    if (arena->limit_bytes != 0 && bytes > arena->limit_bytes - arena->used_bytes) {
        return NULL;
    }
    struct gcmp_arena_chunk *chunk = arena->chunks;
    if (chunk == NULL || chunk->capacity_bytes - chunk->used_bytes < bytes) {
        chunk = add_chunk(arena, bytes);
        if (chunk == NULL) {
            return NULL;
        }
    }
    void *memory = chunk->bytes + chunk->used_bytes;
    chunk->used_bytes += bytes;
    arena->used_bytes += bytes;
    return memory;
}

char *gcmp_arena_text(struct gcmp_arena *arena, const char *bytes, size_t length) {
    size_t total;
    char *text = gcmp_add_size(length, 1, &total) ? gcmp_arena_alloc(arena, total, 1) : NULL;
    if (text != NULL && length > 0) {
        memcpy(text, bytes, length);
    }
    return text;
}

char *gcmp_arena_dup(struct gcmp_arena *arena, const char *text) {
    return gcmp_arena_text(arena, text, strlen(text));
}

char *gcmp_arena_format(struct gcmp_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : gcmp_arena_alloc(arena, (size_t)length + 1, 1);
    if (text != NULL) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}

static void free_chunks(struct gcmp_arena_chunk *chunk) {
    while (chunk != NULL) {
        struct gcmp_arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

/* The newest chunk is the largest, or close to it. */
bool gcmp_arena_grow(struct gcmp_arena *arena, void *array, size_t count, size_t *capacity,
                     size_t item_bytes) {
    enum { LEAST_ITEMS = 8 };
    if (count < *capacity) {
        return true;
    }
    size_t bigger = *capacity == 0 ? LEAST_ITEMS : 2 * *capacity;
    void *old, *moved = gcmp_arena_alloc(arena, bigger, item_bytes);
    if (bigger <= *capacity || moved == NULL) {
        return false;
    }
    memcpy(&old, array, sizeof old);
    if (count > 0) {
        memcpy(moved, old, count * item_bytes);
    }
    memcpy(array, &moved, sizeof moved);
    *capacity = bigger;
    return true;
}

const char *gcmp_arena_keep(struct gcmp_arena *arena, const char *text, bool *failed) {
    const char *copy = text == NULL ? NULL : gcmp_arena_dup(arena, text);
    *failed = *failed || (text != NULL && copy == NULL);
    return copy;
}

void gcmp_arena_recycle(struct gcmp_arena *arena) {
#ifdef GCMP_ARENA_MALLOC
    gcmp_arena_free(arena); /* so that memory checkers see who still looks */
#else
    struct gcmp_arena_chunk *chunk = arena->chunks;
    if (chunk != NULL) {
        free_chunks(chunk->next);
        chunk->next = NULL;
        memset(chunk->bytes, 0, chunk->used_bytes);
        chunk->used_bytes = 0;
    }
    arena->used_bytes = 0;
#endif
}

void gcmp_arena_free(struct gcmp_arena *arena) {
    free_chunks(arena->chunks);
    arena->chunks = NULL;
    arena->used_bytes = 0;
}
