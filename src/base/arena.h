/* A bump allocator: one arena owns the metadata of one checkpoint and is freed at once.
 * In test builds (GCMP_ARENA_MALLOC) each allocation is a real malloc, so that memory checkers see
 * it. */
#ifndef GCMP_BASE_ARENA_H
#define GCMP_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct gcmp_arena_chunk;

struct gcmp_arena {
    struct gcmp_arena_chunk *chunks;
    size_t used_bytes;  /* handed out */
    size_t limit_bytes; /* 0: none; an allocation past it fails like one without memory */
};

#define GCMP_ARENA_INIT                                                                            \
    { NULL, 0, 0 }

/* Return zeroed memory for `count` items of `size` bytes, aligned for any type; NULL when there is
 * none or the product overflows. A count of 0 gives a valid pointer. */
void *gcmp_arena_alloc(struct gcmp_arena *arena, size_t count, size_t size);

/* Copy `length` bytes and append a NUL; NULL when there is no memory. */
char *gcmp_arena_text(struct gcmp_arena *arena, const char *bytes, size_t length);

/* Copy a NUL-terminated string. */
char *gcmp_arena_dup(struct gcmp_arena *arena, const char *text);

/* Format into the arena. */
char *gcmp_arena_format(struct gcmp_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Make room for one more item in an array of the arena: `array` is the address of its pointer,
 * which may be NULL, `count` the items in it, *capacity the items that it has room for. The array
 * moves when it is full; new items are zero. False without memory; then nothing has changed. */
bool gcmp_arena_grow(struct gcmp_arena *arena, void *array, size_t count, size_t *capacity,
                     size_t item_bytes);
/* A text that may be NULL, copied; *failed becomes true without memory. */
const char *gcmp_arena_keep(struct gcmp_arena *arena, const char *text, bool *failed);

/* Forget all allocations, as gcmp_arena_free does, but keep memory for those that follow. */
void gcmp_arena_recycle(struct gcmp_arena *arena);

void gcmp_arena_free(struct gcmp_arena *arena);

#endif
