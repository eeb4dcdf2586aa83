/* The words for lists of layers, and the numbers behind them. */
#include "base/layer_word.h"

#include <string.h>

#include "base/word.h"

static const char *const LAYER_WORDS[] = {"layers",    "layer", "h", "blocks",
                                          "resblocks", "block", NULL};

bool gcmp_is_layer_word(const char *at, size_t bytes) {
    return gcmp_find_word(at, bytes, LAYER_WORDS) != NULL;
}

int64_t gcmp_read_index(const char *at, size_t bytes) {
    int64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return -1;
        }
        value = value > INT32_MAX ? value : 10 * value + (at[i] - '0');
    }
    return bytes == 0 ? -1 : value;
}

bool gcmp_find_layer_index(const char *name, struct gcmp_layer_index *out) {
    size_t at = 0, bytes = strcspn(name, ".");
    while (name[at + bytes] == '.') {
        size_t next = at + bytes + 1, next_bytes = strcspn(name + next, ".");
        int64_t index = gcmp_read_index(name + next, next_bytes);
        if (index >= 0 && gcmp_is_layer_word(name + at, bytes)) {
            *out = (struct gcmp_layer_index){at, next + next_bytes, index};
            return true;
        }
        at = next;
        bytes = next_bytes;
    }
    return false;
}
