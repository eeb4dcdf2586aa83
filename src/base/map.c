/* The hash map: open addressing, linear probing, at most two thirds full. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

#include "base/checked.h"

static struct gcmp_map_slot *find_slot(const struct gcmp_map *map, const void *key,
                                       size_t key_bytes, uint64_t hash) {
    size_t mask = map->capacity - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        struct gcmp_map_slot *slot = &map->slots[at];
        if (slot->key == NULL || (slot->hash == hash && slot->key_bytes == key_bytes &&
                                  memcmp(slot->key, key, key_bytes) == 0)) {
            return slot;
        }
    }
}

static bool grow(struct gcmp_map *map) {
    struct gcmp_map bigger = *map;
    if (map->capacity == 0) {
        if (getrandom(&bigger.seed, sizeof bigger.seed, GRND_NONBLOCK) < 0) {
            bigger.seed = (uint64_t)(uintptr_t)map; /* early boot: the address has to do */
        }
        bigger.capacity = 16;
    } else if (!gcmp_mul_size(map->capacity, 2, &bigger.capacity)) {
        return false;
    }
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        const struct gcmp_map_slot *slot = &map->slots[i];
        if (slot->key != NULL) {
            *find_slot(&bigger, slot->key, slot->key_bytes, slot->hash) = *slot;
        }
    }
    free(map->slots);
    *map = bigger;
    return true;
}

enum gcmp_map_result gcmp_map_add(struct gcmp_map *map, const void *key, size_t key_bytes,
                                  size_t value, size_t *value_out) {
    if (3 * (map->count + 1) > 2 * map->capacity && !grow(map)) {
        return GCMP_MAP_NO_MEMORY;
    }
    uint64_t hash = XXH3_64bits_withSeed(key, key_bytes, map->seed);
    struct gcmp_map_slot *slot = find_slot(map, key, key_bytes, hash);
    enum gcmp_map_result result = GCMP_MAP_PRESENT;
    if (slot->key == NULL) {
        *slot = (struct gcmp_map_slot){key, key_bytes, hash, value};
        map->count++;
        result = GCMP_MAP_ADDED;
    }
    if (value_out != NULL) {
        *value_out = slot->value;
    }
    return result;
}

bool gcmp_map_find(const struct gcmp_map *map, const void *key, size_t key_bytes,
                   size_t *value_out) {
    if (map->capacity == 0) {
        return false;
    }
    uint64_t hash = XXH3_64bits_withSeed(key, key_bytes, map->seed);
    const struct gcmp_map_slot *slot = find_slot(map, key, key_bytes, hash);
    if (slot->key == NULL) {
        return false;
    }
    *value_out = slot->value;
    return true;
}

void gcmp_map_free(struct gcmp_map *map) {
    free(map->slots);
    *map = (struct gcmp_map)GCMP_MAP_INIT;
}
