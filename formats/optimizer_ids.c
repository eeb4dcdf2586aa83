/* Numbers to names by groups, order and shapes, or a refusal. */
#include "formats/optimizer_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static bool fits(const struct gcmp_ids_entry *entry, const struct gcmp_ids_weight *weight) {
    return entry->shape == NULL ||
           (entry->ndim == weight->ndim &&
            (entry->ndim == 0 ||
             memcmp(entry->shape, weight->shape, entry->ndim * sizeof *entry->shape) == 0));
}

static size_t count_groups(const struct gcmp_ids *ids) {
    size_t groups = 0;
    for (size_t i = 0; i < ids->entry_count; i++) {
        groups = ids->entries[i].group + 1u > groups ? ids->entries[i].group + 1u : groups;
    }
    return groups;
}

static void write_shape(char *text, size_t capacity, unsigned ndim, const uint64_t *shape) {
    size_t at = (size_t)snprintf(text, capacity, "[");
    for (unsigned d = 0; d < ndim && at < capacity; d++) {
        at += (size_t)snprintf(text + at, capacity - at, "%s%llu", d == 0 ? "" : ", ",
                               (unsigned long long)shape[d]);
    }
    if (at < capacity) {
        snprintf(text + at, capacity - at, "]");
    }
}

static enum gradcmp_status fail_entry(const struct gcmp_ids *ids, size_t number,
                                      struct gradcmp_error *error, const char *what) {
    char shape[160];
    write_shape(shape, sizeof shape, ids->entries[number].ndim, ids->entries[number].shape);
    GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
              "the optimizer numbers its parameters, and number %zu, of shape %s, %s%s",
              ids->numbers == NULL ? number : ids->numbers[number], shape, what, GCMP_IDS_WAY_OUT);
}

/* One group, one number for each weight. */
static enum gradcmp_status take_all(struct gcmp_ids *ids, struct gradcmp_error *error) {
    for (size_t i = 0; i < ids->entry_count; i++) {
        if (!fits(&ids->entries[i], &ids->weights[i])) {
            return fail_entry(ids, i, error, "is not of the shape of the weight at its place");
        }
        ids->entries[i].weight = i;
    }
    return GRADCMP_OK;
}

/* One group that lacks some weights (buffers, frozen ones): match from the front and from the back;
 * where both agree on a number, no other weight is possible for it. */
static enum gradcmp_status take_part(struct gcmp_ids *ids, struct gradcmp_error *error) {
    size_t next = 0;
    for (size_t i = 0; i < ids->entry_count; i++) {
        while (next < ids->weight_count && !fits(&ids->entries[i], &ids->weights[next])) {
            next++;
        }
        if (next == ids->weight_count) {
            return fail_entry(ids, i, error, "fits no weight behind those of the numbers before");
        }
        ids->entries[i].weight = next++;
    }
    next = ids->weight_count;
    for (size_t i = ids->entry_count; i-- > 0;) {
        do {
            next--; /* ends: the numbers fit from the front */
        } while (!fits(&ids->entries[i], &ids->weights[next]));
        if (next != ids->entries[i].weight && ids->entries[i].shape != NULL) {
            return fail_entry(ids, i, error,
                              "could be several weights (there are fewer numbers than weights)");
        }
    }
    return GRADCMP_OK;
}

/* The weights and numbers of one shape. */
struct class {
    size_t weight_count, entry_count, taken;
    size_t first_weight; /* in by_class */
    uint32_t group;
    bool is_mixed; /* numbers of several groups */
    uint64_t sequence;
    bool is_scattered; /* weights of several sequences */
};

struct classes {
    struct class *items;
    size_t count;
    struct gcmp_map by_shape;
    size_t *class_of_weight, *by_class; /* by_class: weights, those of a class side by side */
};

static void free_classes(struct classes *classes) {
    free(classes->items);
    free(classes->class_of_weight);
    free(classes->by_class);
    gcmp_map_free(&classes->by_shape);
}

static void add_weight(struct class *class, const struct gcmp_ids_weight *weight) {
    class->is_scattered =
        class->is_scattered || (class->weight_count > 0 && class->sequence != weight->sequence);
    class->sequence = weight->sequence;
    class->weight_count++;
}

static enum gradcmp_status sort_weights(const struct gcmp_ids *ids, struct classes *classes,
                                        struct gradcmp_error *error) {
    size_t room = ids->weight_count + 1, first = 0;
    classes->items = calloc(room, sizeof *classes->items);
    classes->class_of_weight = calloc(room, sizeof *classes->class_of_weight);
    classes->by_class = calloc(room, sizeof *classes->by_class);
    bool has_memory =
        classes->items != NULL && classes->class_of_weight != NULL && classes->by_class != NULL;
    for (size_t i = 0; i < ids->weight_count && has_memory; i++) {
        const struct gcmp_ids_weight *weight = &ids->weights[i];
        size_t *class = &classes->class_of_weight[i];
        enum gcmp_map_result result =
            gcmp_map_add(&classes->by_shape, weight->shape, weight->ndim * sizeof *weight->shape,
                         classes->count, class);
        has_memory = result != GCMP_MAP_NO_MEMORY;
        if (has_memory) {
            classes->count += result == GCMP_MAP_ADDED;
            add_weight(&classes->items[*class], weight);
        }
    }
    if (!has_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < classes->count; i++) {
        classes->items[i].first_weight = first;
        first += classes->items[i].weight_count;
    }
    for (size_t i = 0; i < ids->weight_count; i++) {
        struct class *class = &classes->items[classes->class_of_weight[i]];
        classes->by_class[class->first_weight + class->taken++] = i;
    }
    return GRADCMP_OK;
}

/* Find the class of a number that has a state. */
static struct class *class_of(const struct gcmp_ids *ids, const struct classes *classes,
                              size_t number) {
    const struct gcmp_ids_entry *entry = &ids->entries[number];
    size_t index;
    bool found =
        gcmp_map_find(&classes->by_shape, entry->shape, entry->ndim * sizeof *entry->shape, &index);
    return found ? &classes->items[index] : NULL;
}

static enum gradcmp_status count_numbers(const struct gcmp_ids *ids, struct classes *classes,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < ids->entry_count; i++) {
        if (ids->entries[i].shape == NULL) {
            continue;
        }
        struct class *class = class_of(ids, classes, i);
        if (class == NULL) {
            return fail_entry(ids, i, error, "is not of the shape of any weight");
        }
        class->is_mixed =
            class->is_mixed || (class->entry_count > 0 && class->group != ids->entries[i].group);
        class->group = ids->entries[i].group;
        class->entry_count++;
        class->taken = 0;
    }
    return GRADCMP_OK;
}

static const char *ambiguity(const struct gcmp_ids *ids, const struct class *class) {
    if (class->entry_count != class->weight_count) {
        return "could be several weights (there are not as many numbers as weights of that shape)";
    }
    if (class->weight_count == 1) {
        return NULL;
    }
    if (!ids->is_ordered || class->is_scattered) {
        return "could be several weights (the order of the weights is not known)";
    }
    return class->is_mixed ? "could be several weights (groups share that shape)" : NULL;
}

/* Numbers of one group among the weights of one sequence. */
struct course {
    uint64_t group, sequence;
};

/* The courses that were met, and how far each has come. */
struct courses {
    struct gcmp_map index;
    struct course *items; /* keys of the map */
    size_t *next;         /* 1 more than the course's last weight */
    size_t count;
};

/* Move the course of a number on to its weight. False: *no_memory, or it was beyond already. */
static bool move_on(struct courses *courses, const struct gcmp_ids *ids,
                    const struct gcmp_ids_entry *entry, bool *no_memory) {
    struct course *course = &courses->items[courses->count];
    size_t index;
    *course = (struct course){entry->group, ids->weights[entry->weight].sequence};
    enum gcmp_map_result result =
        gcmp_map_add(&courses->index, course, sizeof *course, courses->count, &index);
    *no_memory = result == GCMP_MAP_NO_MEMORY;
    if (*no_memory || entry->weight < courses->next[index]) {
        return false;
    }
    courses->count += result == GCMP_MAP_ADDED;
    courses->next[index] = entry->weight + 1;
    return true;
}

/* Assign by shapes, in order within each; then no group may run against the model's order, or the
 * order within the shapes was a guess. */
static enum gradcmp_status assign_classes(struct gcmp_ids *ids, struct classes *classes,
                                          struct courses *courses, struct gradcmp_error *error) {
    for (size_t i = 0; i < ids->entry_count; i++) {
        struct gcmp_ids_entry *entry = &ids->entries[i];
        struct class *class = entry->shape == NULL ? NULL : class_of(ids, classes, i);
        bool no_memory;
        if (class == NULL) {
            continue;
        }
        const char *what = ambiguity(ids, class);
        if (what != NULL) {
            return fail_entry(ids, i, error, what);
        }
        entry->weight = classes->by_class[class->first_weight + class->taken++];
        if (ids->is_ordered && !move_on(courses, ids, entry, &no_memory)) {
            if (no_memory) {
                GCMP_FAIL_MEMORY(error);
            }
            return fail_entry(ids, i, error,
                              "comes too late in its group for the order of the model");
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status solve_by_shape(struct gcmp_ids *ids, struct gradcmp_error *error) {
    struct classes classes = {.by_shape = GCMP_MAP_INIT};
    struct courses courses = {.index = GCMP_MAP_INIT,
                              .items = calloc(ids->entry_count + 1, sizeof *courses.items),
                              .next = calloc(ids->entry_count + 1, sizeof *courses.next)};
    enum gradcmp_status status = GRADCMP_OK;
    if (courses.items == NULL || courses.next == NULL) {
        status = GRADCMP_ERROR_MEMORY;
        gcmp_error_set(error, status, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    GCMP_TRY_OUT(sort_weights(ids, &classes, error));
    GCMP_TRY_OUT(count_numbers(ids, &classes, error));
    GCMP_TRY_OUT(assign_classes(ids, &classes, &courses, error));
out:
    free_classes(&classes);
    gcmp_map_free(&courses.index);
    free(courses.items);
    free(courses.next);
    return status;
}

enum gradcmp_status gcmp_ids_fit(const struct gcmp_ids *ids, bool *fit,
                                 struct gradcmp_error *error) {
    struct classes classes = {.by_shape = GCMP_MAP_INIT};
    enum gradcmp_status status = sort_weights(ids, &classes, error);
    *fit = status == GRADCMP_OK;
    for (size_t i = 0; i < ids->entry_count && *fit; i++) {
        *fit = ids->entries[i].shape == NULL || class_of(ids, &classes, i) != NULL;
    }
    free_classes(&classes);
    return status;
}

static bool is_one_sequence(const struct gcmp_ids *ids) {
    for (size_t i = 1; i < ids->weight_count; i++) {
        if (ids->weights[i].sequence != ids->weights[0].sequence) {
            return false;
        }
    }
    return ids->is_ordered;
}

enum gradcmp_status gcmp_ids_solve(struct gcmp_ids *ids, struct gradcmp_error *error) {
    for (size_t i = 0; i < ids->entry_count; i++) {
        ids->entries[i].weight = SIZE_MAX;
    }
    if (ids->entry_count > ids->weight_count) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "the optimizer numbers %zu parameters, but there are only %zu weights%s",
                  ids->entry_count, ids->weight_count, GCMP_IDS_WAY_OUT);
    }
    if (count_groups(ids) <= 1 && is_one_sequence(ids)) {
        return ids->entry_count == ids->weight_count ? take_all(ids, error) : take_part(ids, error);
    }
    return solve_by_shape(ids, error);
}
