/* A hash map from byte strings to indices; keys are borrowed, not copied. Hashing is seeded per map
 * (XXH3), so that a file cannot choose keys that collide. */
#ifndef GCMP_BASE_MAP_H
#define GCMP_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gcmp_map_slot {
    const char *key;
    size_t key_bytes;
    uint64_t hash;
    size_t value;
};

struct gcmp_map {
    struct gcmp_map_slot *slots;
    size_t capacity, count;
    uint64_t seed;
};

#define GCMP_MAP_INIT                                                                              \
    { NULL, 0, 0, 0 }

enum gcmp_map_result { GCMP_MAP_ADDED, GCMP_MAP_PRESENT, GCMP_MAP_NO_MEMORY };

/* Add key -> value unless the key is there; *value_out (NULL allowed) is the value now held. */
enum gcmp_map_result gcmp_map_add(struct gcmp_map *map, const void *key, size_t key_bytes,
                                  size_t value, size_t *value_out);

/* Find a key; false when it is not there. */
bool gcmp_map_find(const struct gcmp_map *map, const void *key, size_t key_bytes,
                   size_t *value_out);

void gcmp_map_free(struct gcmp_map *map);

#endif
