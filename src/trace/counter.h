/* A table from 64-bit hashes to numbers, for keys that are hashed with a secret seed already. */
#ifndef GCMP_TRACE_COUNTER_H
#define GCMP_TRACE_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gcmp_counter_slot {
    uint64_t key; /* 0: free */
    int64_t value;
};

struct gcmp_counter {
    struct gcmp_counter_slot *slots;
    size_t capacity, count;
};

/* The number of a key, 0 when it is new; NULL without memory. Valid until the next call. */
int64_t *gcmp_counter_at(struct gcmp_counter *counter, uint64_t key);
/* The number of a key, or NULL where there is none. */
const int64_t *gcmp_counter_find(const struct gcmp_counter *counter, uint64_t key);
void gcmp_counter_clear(struct gcmp_counter *counter);
void gcmp_counter_free(struct gcmp_counter *counter);

#endif
