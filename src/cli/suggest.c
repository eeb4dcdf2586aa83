/* Edit distances between short words. */
#include "cli/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_WORD_BYTES = 32 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment distance; both words are shorter than MAX_WORD_BYTES. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[MAX_WORD_BYTES + 1][MAX_WORD_BYTES + 1];
    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            size_t replaced = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            size_t best = least(replaced, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = least(best, rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    return rows[a_length][b_length];
}

void cli_suggest(struct cli_suggestion *suggestion, const char *known) {
    size_t given_length = strlen(suggestion->word), known_length = strlen(known);
    if (given_length >= MAX_WORD_BYTES || known_length >= MAX_WORD_BYTES) {
        return;
    }
    size_t distance = edit_distance(suggestion->word, given_length, known, known_length);
    bool is_near = distance <= (known_length + 2) / 3 && distance < given_length;
    if (is_near && (suggestion->nearest == NULL || distance < suggestion->distance)) {
        suggestion->nearest = known;
        suggestion->distance = distance;
    }
}
