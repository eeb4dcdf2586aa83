/* The states that a catalogue's parameters have, and whether each parameter has all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/map.h"
#include "unshard/names.h"
#include "unshard/unshard.h"

static bool is_listed(const struct gradcmp_stored *stored) {
    return gcmp_is_parameter_state(stored->state);
}

static int compare_texts(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

enum gradcmp_status gcmp_unshard_states(const struct gradcmp_catalogue *catalogue,
                                        struct gcmp_arena *arena, const char ***states,
                                        size_t *count, struct gradcmp_error *error) {
    struct gcmp_map map = GCMP_MAP_INIT;
    bool has_memory = true;
    for (size_t i = 0; i < catalogue->stored_count && has_memory; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        has_memory = !is_listed(stored) || gcmp_map_add(&map, stored->state, strlen(stored->state),
                                                        0, NULL) != GCMP_MAP_NO_MEMORY;
    }
    *count = 0;
    *states = has_memory ? gcmp_arena_alloc(arena, map.count, sizeof **states) : NULL;
    for (size_t i = 0; i < map.capacity && *states != NULL; i++) {
        if (map.slots[i].key != NULL) {
            (*states)[(*count)++] = map.slots[i].key;
        }
    }
    gcmp_map_free(&map);
    if (*states == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    qsort(*states, *count, sizeof **states, compare_texts);
    return GRADCMP_OK;
}

/* What the optimizer keeps of one parameter. */
enum { NAMED_MOST = 8 };
enum {
    HAS_FIRST = 1,
    HAS_SECOND = 2,
    HAS_OTHER = 4,
    HAS_WEIGHT = 8,
    HAS_BOTH = HAS_FIRST | HAS_SECOND
};

/* Weights and gradients are no moments; a state that is not known may replace one (Adafactor's
 * exp_avg_sq_row, Muon's momentum_buffer). */
static unsigned moment_of(const char *state) {
    if (strcmp(state, "param") == 0) {
        return HAS_WEIGHT;
    }
    if (gcmp_is_weight_state(state) || strcmp(state, "main_grad") == 0) {
        return 0;
    }
    if (strcmp(state, "exp_avg") == 0) {
        return HAS_FIRST;
    }
    if (strcmp(state, "exp_avg_sq") == 0) {
        return HAS_SECOND;
    }
    return HAS_OTHER;
}

bool gcmp_is_factored(const struct gradcmp_stored *stored) {
    static const char *const words[] = {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq_r",
                                        "exp_avg_sq_c", NULL};
    const char *dot = strrchr(stored->key, '.');
    bool found = false;
    for (const char *const *word = words; dot != NULL && *word != NULL; word++) {
        found = found || strcmp(dot + 1, *word) == 0;
    }
    return found;
}

/* Moments by name; entries are numbered in the order of the catalogue. */
struct moments {
    struct gcmp_map by_name;
    unsigned char *held; /* one entry a name */
    const char **names;
};

static enum gradcmp_status gather(const struct gradcmp_catalogue *catalogue,
                                  struct moments *moments, struct gradcmp_error *error) {
    moments->held = calloc(catalogue->stored_count + 1, 1);
    moments->names = calloc(catalogue->stored_count + 1, sizeof *moments->names);
    if (moments->held == NULL || moments->names == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->layout == GRADCMP_LAYOUT_BUCKET ||
            stored->layout == GRADCMP_LAYOUT_LOCAL_BUFFER ||
            !(gcmp_is_parameter_state(stored->state) || gcmp_is_factored(stored))) {
            continue;
        }
        size_t index;
        if (gcmp_map_add(&moments->by_name, stored->name, strlen(stored->name),
                         moments->by_name.count, &index) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        moments->names[index] = stored->name;
        moments->held[index] |=
            (unsigned char)(gcmp_is_factored(stored) ? HAS_OTHER : moment_of(stored->state));
    }
    return GRADCMP_OK;
}

/* Collect the names that have one moment and not the other, where others have both. */
static enum gradcmp_status find_lost(const struct moments *moments, struct gcmp_lost_states *lost,
                                     struct gradcmp_error *error) {
    for (size_t i = 0; i < moments->by_name.count; i++) {
        lost->whole_count += (moments->held[i] & HAS_BOTH) == HAS_BOTH;
    }
    lost->items = calloc(moments->by_name.count + 1, sizeof *lost->items);
    if (lost->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < moments->by_name.count && lost->whole_count > 0; i++) {
        unsigned held = moments->held[i] & ~(unsigned)HAS_WEIGHT;
        if (held == HAS_FIRST || held == HAS_SECOND) {
            bool has_first = held == HAS_FIRST;
            lost->items[lost->count++] =
                (struct gcmp_lost_state){moments->names[i], has_first ? "exp_avg" : "exp_avg_sq",
                                         has_first ? "exp_avg_sq" : "exp_avg"};
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_unshard_lost_states(const struct gradcmp_catalogue *catalogue,
                                             struct gcmp_lost_states *lost,
                                             struct gradcmp_error *error) {
    struct moments moments = {.by_name = GCMP_MAP_INIT};
    *lost = (struct gcmp_lost_states){.items = NULL};
    enum gradcmp_status status = gather(catalogue, &moments, error);
    if (status == GRADCMP_OK) {
        status = find_lost(&moments, lost, error);
    }
    free(moments.held);
    free(moments.names);
    gcmp_map_free(&moments.by_name);
    return status;
}

/* "; 7 more lost one, such as x, y, z"; empty where one name is all. */
static void list_others(const struct gcmp_lost_states *lost, char *text, size_t bytes) {
    int end = lost->count < 2 ? 0 : snprintf(text, bytes, "; %zu more lost one: ", lost->count - 1);
    text[0] = lost->count < 2 ? '\0' : text[0];
    for (size_t i = 1; i < lost->count && (size_t)end < bytes; i++) {
        bool is_cut = i > NAMED_MOST || strlen(lost->items[i].name) + 8 > bytes - (size_t)end;
        end += snprintf(text + end, bytes - (size_t)end, "%s%s", i == 1 ? "" : ", ",
                        is_cut ? "..." : lost->items[i].name);
        if (is_cut) {
            return;
        }
    }
}

enum gradcmp_status gcmp_unshard_check_states(const struct gradcmp_catalogue *catalogue,
                                              struct gradcmp_error *error) {
    struct gcmp_lost_states lost;
    char others[200];
    enum gradcmp_status status = gcmp_unshard_lost_states(catalogue, &lost, error);
    if (status == GRADCMP_OK && lost.count > 0) {
        const struct gcmp_lost_state *first = &lost.items[0];
        list_others(&lost, others, sizeof others);
        status =
            gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, NULL, GRADCMP_NO_OFFSET,
                           "%.200s: %s is stored, but %s is not, which %zu other tensors "
                           "have%s",
                           first->name, first->stored, first->absent, lost.whole_count, others);
    }
    free(lost.items);
    return status;
}

enum gradcmp_status gcmp_unshard_note_weights(struct gradcmp_catalogue *catalogue,
                                              struct gradcmp_error *error) {
    struct moments moments = {.by_name = GCMP_MAP_INIT};
    size_t with = 0, without = 0;
    const char *first = NULL;
    if (gcmp_masters_stand_for_weights(catalogue)) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gather(catalogue, &moments, error);
    for (size_t i = 0; i < moments.by_name.count && status == GRADCMP_OK; i++) {
        bool has_moments = (moments.held[i] & HAS_BOTH) == HAS_BOTH;
        bool has_weight = (moments.held[i] & HAS_WEIGHT) != 0;
        first = has_moments && !has_weight && first == NULL ? moments.names[i] : first;
        with += has_moments && has_weight;
        without += has_moments && !has_weight;
    }
    if (status == GRADCMP_OK && without > 0 && with > 0) {
        status = gcmp_catalogue_note(catalogue, error,
                                     "moments of %zu parameter%s are stored and the weights are "
                                     "not, which %zu others have, such as %.200s",
                                     without, without == 1 ? "" : "s", with, first);
    }
    free(moments.held);
    free(moments.names);
    gcmp_map_free(&moments.by_name);
    return status;
}
