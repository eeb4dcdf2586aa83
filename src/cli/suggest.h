/* What a mistyped word was probably meant to be. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

/* The nearest known word so far. Start with {word, NULL, 0}. */
struct cli_suggestion {
    const char *word;
    const char *nearest; /* NULL: none is near */
    size_t distance;
};

/* Weigh a known word: near is at most one edit (insert, delete, replace, swap neighbours) for each
 * three letters begun. */
void cli_suggest(struct cli_suggestion *suggestion, const char *known);

#endif
