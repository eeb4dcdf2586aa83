/* Words within a text that goes on behind them, such as the components of a name. */
#ifndef GCMP_BASE_WORD_H
#define GCMP_BASE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* True where the `bytes` bytes at `at` are that word. */
static inline bool gcmp_is_word(const char *at, size_t bytes, const char *word) {
    return strlen(word) == bytes && memcmp(word, at, bytes) == 0;
}

/* The word of a list, which NULL ends, that the `bytes` bytes at `at` are; NULL: none of them. */
static inline const char *gcmp_find_word(const char *at, size_t bytes, const char *const *words) {
    while (*words != NULL && !gcmp_is_word(at, bytes, *words)) {
        words++;
    }
    return *words;
}

#endif
