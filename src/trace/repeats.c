/* Whether an identity comes twice. */
#include "trace/repeats.h"

#include <string.h>

#include <xxhash.h>

static void free_one(struct gcmp_repeats_of *of) {
    gcmp_counter_free(&of->next);
    gcmp_counter_free(&of->odd);
}

static struct gcmp_repeats_of *find(struct gcmp_repeats *repeats, int64_t iteration) {
    if (iteration < 0) {
        return &repeats->timeless;
    }
    if (!repeats->is_started || iteration > repeats->now.iteration) {
        free_one(&repeats->before);
        repeats->before = repeats->now;
        memset(&repeats->now, 0, sizeof repeats->now);
        repeats->now.iteration = iteration;
        repeats->before.iteration = repeats->is_started ? repeats->before.iteration : -1;
        repeats->is_started = true;
    }
    return iteration == repeats->now.iteration      ? &repeats->now
           : iteration == repeats->before.iteration ? &repeats->before
                                                    : NULL;
}

static uint64_t odd_key(uint64_t key, int64_t occurrence) {
    return XXH3_64bits_withSeed(&occurrence, sizeof occurrence, key);
}

/* Keep an occurrence that is ahead of its turn. */
static enum gradcmp_status keep(struct gcmp_repeats_of *of, uint64_t key, int64_t occurrence,
                                bool *repeated, struct gradcmp_error *error) {
    if (of->odd.count >= GCMP_REPEATS_MAX_ODD) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT,
                  "more than %d records of one iteration whose occurrences are not in order",
                  GCMP_REPEATS_MAX_ODD);
    }
    int64_t *seen = gcmp_counter_at(&of->odd, odd_key(key, occurrence));
    if (seen == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *repeated = *seen != 0;
    *seen = 1;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_repeats_add(struct gcmp_repeats *repeats, uint64_t key, int64_t iteration,
                                     int64_t occurrence, bool *repeated,
                                     struct gradcmp_error *error) {
    struct gcmp_repeats_of *of = find(repeats, iteration);
    *repeated = false;
    if (of == NULL) {
        return GRADCMP_OK;
    }
    int64_t *next = gcmp_counter_at(&of->next, key);
    if (next == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (occurrence > *next) {
        return keep(of, key, occurrence, repeated, error);
    }
    *repeated = occurrence < *next;
    if (!*repeated) {
        do {
            ++*next;
        } while (gcmp_counter_find(&of->odd, odd_key(key, *next)) != NULL);
    }
    return GRADCMP_OK;
}

void gcmp_repeats_clear(struct gcmp_repeats *repeats) {
    gcmp_repeats_free(repeats);
}

void gcmp_repeats_free(struct gcmp_repeats *repeats) {
    free_one(&repeats->now);
    free_one(&repeats->before);
    free_one(&repeats->timeless);
    memset(repeats, 0, sizeof *repeats);
}
