/* A table from hashes to numbers: open addressing, at most half full. */
#include "trace/counter.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

static struct gcmp_counter_slot *find_slot(const struct gcmp_counter *counter, uint64_t key) {
    size_t mask = counter->capacity - 1;
    size_t at = (size_t)key & mask;
    while (counter->slots[at].key != key && counter->slots[at].key != 0) {
        at = (at + 1) & mask;
    }
    return &counter->slots[at];
}

static bool grow(struct gcmp_counter *counter) {
    struct gcmp_counter grown = {NULL, FIRST_CAPACITY, counter->count};
    if (counter->capacity > 0) {
        grown.capacity = 2 * counter->capacity;
    }
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (grown.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < counter->capacity; i++) {
        if (counter->slots[i].key != 0) {
            *find_slot(&grown, counter->slots[i].key) = counter->slots[i];
        }
    }
    free(counter->slots);
    *counter = grown;
    return true;
}

int64_t *gcmp_counter_at(struct gcmp_counter *counter, uint64_t key) {
    key += key == 0;
    if (2 * (counter->count + 1) > counter->capacity && !grow(counter)) {
        return NULL;
    }
    struct gcmp_counter_slot *slot = find_slot(counter, key);
    if (slot->key == 0) {
        slot->key = key;
        slot->value = 0;
        counter->count++;
    }
    return &slot->value;
}

const int64_t *gcmp_counter_find(const struct gcmp_counter *counter, uint64_t key) {
    key += key == 0;
    if (counter->capacity == 0) {
        return NULL;
    }
    const struct gcmp_counter_slot *slot = find_slot(counter, key);
    return slot->key == 0 ? NULL : &slot->value;
}

void gcmp_counter_clear(struct gcmp_counter *counter) {
    if (counter->count > 0) {
        memset(counter->slots, 0, counter->capacity * sizeof *counter->slots);
    }
    counter->count = 0;
}

void gcmp_counter_free(struct gcmp_counter *counter) {
    free(counter->slots);
    memset(counter, 0, sizeof *counter);
}
