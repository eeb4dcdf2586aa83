/* Names for numbers, by the layer that each shape's weights are of. */
#include "number_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "unshard/name_parse.h"

/* A weight, or a number. */
struct item {
    const uint64_t *shape;
    unsigned ndim;
    uint64_t place;   /* of a weight: 0 embeddings, 1 + layer, UINT64_MAX what has no layer */
    size_t index;     /* of a number: itself; of a weight: in the catalogue */
    const char *name; /* of a weight */
    size_t stack;     /* bytes in front of the layer's digits; 0: no layer */
};

struct naming {
    const struct gradcmp_catalogue *weights, *numbered;
    const char *state;
    struct item *items, *numbers;
    size_t item_count, number_count;
    const char **names;
    uint64_t *places; /* of each number, 1 more; 0: not known */
    struct gcmp_arena scratch;
    struct gradcmp_error *error;
};

size_t gcmp_number_of(const struct gradcmp_catalogue *numbered, const char *name) {
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9 || name[digits] != '\0') {
        return SIZE_MAX;
    }
    size_t number = strtoul(name, NULL, 10);
    return number < numbered->number_count ? number : SIZE_MAX;
}

static bool is_of_state(const struct gradcmp_stored *stored, const char *state) {
    return gcmp_is_of_state(stored, state) && stored->model_shape == NULL &&
           gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype);
}

static enum gradcmp_status add_weight(struct naming *naming, size_t index) {
    const struct gradcmp_stored *stored = &naming->weights->stored[index];
    struct gcmp_name name;
    GCMP_TRY(gcmp_name_parse(stored->name, false, &naming->scratch, &name, naming->error));
    bool is_layer = name.layer >= 0;
    naming->items[naming->item_count++] = (struct item){stored->shape,
                                                        stored->ndim,
                                                        is_layer ? 1u + (uint64_t)name.layer
                                                        : name.is_embedding ? 0
                                                                            : UINT64_MAX,
                                                        index,
                                                        stored->name,
                                                        is_layer ? name.layer_digits_at : 0};
    return GRADCMP_OK;
}

static enum gradcmp_status collect(struct naming *naming) {
    for (size_t i = 0; i < naming->weights->stored_count; i++) {
        if (is_of_state(&naming->weights->stored[i], "param") &&
            gcmp_number_of(naming->weights, naming->weights->stored[i].name) == SIZE_MAX) {
            GCMP_TRY(add_weight(naming, i));
        }
    }
    for (size_t i = 0; i < naming->numbered->stored_count; i++) {
        const struct gradcmp_stored *stored = &naming->numbered->stored[i];
        size_t number = gcmp_number_of(naming->numbered, stored->name);
        if (number != SIZE_MAX && is_of_state(stored, naming->state)) {
            naming->numbers[naming->number_count++] =
                (struct item){stored->shape, stored->ndim, 0, number, NULL, 0};
        }
    }
    return GRADCMP_OK;
}

static int compare_shapes(const struct item *a, const struct item *b) {
    return gcmp_order_shapes(a->shape, a->ndim, b->shape, b->ndim);
}

static int compare_items(const void *left, const void *right) {
    const struct item *a = left, *b = right;
    int order = compare_shapes(a, b);
    if (order != 0) {
        return order;
    }
    if (a->place != b->place) {
        return a->place < b->place ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

/* How many items from the first on have its shape. */
static size_t run_of(const struct item *items, size_t count) {
    size_t run = 1;
    while (run < count && compare_shapes(items, &items[run]) == 0) {
        run++;
    }
    return run;
}

/* Layers of two stacks (an encoder, a decoder) are not in one order. */
static bool is_one_stack(const struct item *items, size_t count) {
    const struct item *layered = NULL;
    for (size_t i = 0; i < count; i++) {
        if (items[i].stack == 0) {
            continue;
        }
        layered = layered == NULL ? &items[i] : layered;
        if (items[i].stack != layered->stack ||
            strncmp(items[i].name, layered->name, layered->stack) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_one_group(const struct naming *naming, const struct item *numbers, size_t count) {
    const uint32_t *groups = naming->numbered->number_groups;
    for (size_t i = 1; i < count; i++) {
        if (groups[numbers[i].index] != groups[numbers[0].index]) {
            return false;
        }
    }
    return true;
}

/* Bytes that the names of items have in common, up to the last dot among them. */
static size_t common_bytes(const struct item *items, size_t count) {
    size_t bytes = strlen(items[0].name);
    for (size_t i = 1; i < count; i++) {
        size_t same = 0;
        while (same < bytes && items[i].name[same] == items[0].name[same]) {
            same++;
        }
        bytes = same;
    }
    while (bytes > 0 && items[0].name[bytes - 1] != '.') {
        bytes--;
    }
    return bytes;
}

/* Name the numbers of one place. */
static enum gradcmp_status name_place(struct naming *naming, const struct item *items,
                                      const struct item *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t number = numbers[i].index;
        naming->places[number] = items[0].place == UINT64_MAX ? UINT64_MAX : items[0].place + 1;
        naming->names[number] =
            count == 1 ? items[0].name
                       : gcmp_arena_format(naming->numbered->arena, "%.*snumber_%zu",
                                           (int)common_bytes(items, count), items[0].name, number);
        if (naming->names[number] == NULL) {
            GCMP_FAIL_MEMORY(naming->error);
        }
    }
    return GRADCMP_OK;
}

/* Name the numbers of one shape. */
static enum gradcmp_status name_shape(struct naming *naming, const struct item *items,
                                      const struct item *numbers, size_t count) {
    if (!is_one_stack(items, count) || !is_one_group(naming, numbers, count)) {
        return GRADCMP_OK;
    }
    for (size_t i = 0, run; i < count; i += run) {
        run = 1;
        while (i + run < count && items[i + run].place == items[i].place) {
            run++;
        }
        GCMP_TRY(name_place(naming, &items[i], &numbers[i], run));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status name_shapes(struct naming *naming) {
    size_t i = 0, k = 0;
    while (i < naming->item_count && k < naming->number_count) {
        size_t items = run_of(&naming->items[i], naming->item_count - i);
        size_t numbers = run_of(&naming->numbers[k], naming->number_count - k);
        int order = compare_shapes(&naming->items[i], &naming->numbers[k]);
        if (order == 0 && items == numbers) {
            GCMP_TRY(name_shape(naming, &naming->items[i], &naming->numbers[k], items));
        }
        i += order <= 0 ? items : 0;
        k += order >= 0 ? numbers : 0;
    }
    return GRADCMP_OK;
}

/* A group that jumps back and forth between layers has an order of its own. */
static bool is_in_order(const struct naming *naming) {
    const uint32_t *groups = naming->numbered->number_groups;
    uint64_t last = 0;
    for (size_t i = 0; i < naming->numbered->number_count; i++) {
        last = i > 0 && groups[i] != groups[i - 1] ? 0 : last;
        if (naming->places[i] != 0 && naming->places[i] < last) {
            return false;
        }
        last = naming->places[i] != 0 ? naming->places[i] : last;
    }
    return true;
}

static enum gradcmp_status name_all(struct naming *naming, const char *const **names) {
    GCMP_TRY(collect(naming));
    if (naming->item_count == 0 || naming->number_count == 0) {
        return GRADCMP_OK;
    }
    qsort(naming->items, naming->item_count, sizeof *naming->items, compare_items);
    qsort(naming->numbers, naming->number_count, sizeof *naming->numbers, compare_items);
    GCMP_TRY(name_shapes(naming));
    *names = is_in_order(naming) ? (const char *const *)naming->names : NULL;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_number_names(const struct gradcmp_catalogue *weights,
                                      const struct gradcmp_catalogue *numbered, const char *state,
                                      const char *const **names, struct gradcmp_error *error) {
    struct naming naming = {.weights = weights,
                            .numbered = numbered,
                            .state = state,
                            .scratch = GCMP_ARENA_INIT,
                            .error = error};
    size_t count = numbered->number_count;
    *names = NULL;
    naming.items = calloc(weights->stored_count + 1, sizeof *naming.items);
    naming.numbers = calloc(numbered->stored_count + 1, sizeof *naming.numbers);
    naming.places = calloc(count + 1, sizeof *naming.places);
    naming.names = gcmp_arena_alloc(numbered->arena, count + 1, sizeof *naming.names);
    enum gradcmp_status status =
        naming.items == NULL || naming.numbers == NULL || naming.places == NULL ||
                naming.names == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : name_all(&naming, names);
    free(naming.items);
    free(naming.numbers);
    free(naming.places);
    gcmp_arena_free(&naming.scratch);
    return status;
}

void gcmp_take_number_names(struct gradcmp_catalogue *numbered, const char *const *names) {
    for (size_t i = 0; i < numbered->stored_count && names != NULL; i++) {
        struct gradcmp_stored *stored = &numbered->stored[i];
        size_t number = stored->state == NULL ? SIZE_MAX : gcmp_number_of(numbered, stored->name);
        if (number != SIZE_MAX && names[number] != NULL) {
            stored->name = names[number];
        }
    }
    numbered->number_names = names;
}
