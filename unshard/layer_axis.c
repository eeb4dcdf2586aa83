/* Whether axis 0 counts layers. */
#include "unshard/layer_axis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* The family of a name, made where it is not there; NULL without memory. */
static struct gcmp_layer_family *meet(struct gcmp_layer_axis *axis, const char *text,
                                      size_t bytes) {
    size_t index;
    enum gcmp_map_result result = gcmp_map_add(&axis->by_prefix, text, bytes, axis->count, &index);
    if (result == GCMP_MAP_NO_MEMORY) {
        return NULL;
    }
    if (result == GCMP_MAP_ADDED) {
        if (!gcmp_grow(&axis->families, axis->count, &axis->capacity, sizeof *axis->families)) {
            return NULL;
        }
        memset(&axis->families[axis->count++], 0, sizeof *axis->families);
    }
    return &axis->families[index];
}

static void count_member(struct gcmp_layer_family *family, const struct gcmp_layer_member *member) {
    const struct gcmp_name *name = member->name;
    const char *below = name->text + name->layer_at;
    bool is_vector = name->is_vector || strstr(below, "norm") != NULL;
    bool is_bare = strchr(below, '.') == NULL;
    bool is_of_module = is_bare && (strcmp(below, "weight") == 0 || strcmp(below, "bias") == 0);
    family->is_module = family->is_module || is_of_module || (member->ndim == 1 && is_vector);
    family->is_odd = family->is_odd || is_bare || member->ndim == 1;
    family->has_matrices = family->has_matrices || member->ndim > 2;
    family->has_others = family->has_others || (member->ndim == 2 && !is_vector);
    if (family->first.name == NULL) {
        family->first = *member;
        family->axis = member->shape[0];
    } else if (family->other.name == NULL && member->shape[0] != family->axis) {
        family->other = *member;
    }
}

enum gradcmp_status gcmp_layer_axis_add(struct gcmp_layer_axis *axis,
                                        const struct gcmp_layer_member *member,
                                        struct gradcmp_error *error) {
    const struct gcmp_name *name = member->name;
    bool has_number = name->layer >= 0;
    size_t before = has_number ? name->layer_digits_at : name->layer_at;
    if (before == 0 || (!has_number && member->ndim == 0)) {
        return GRADCMP_OK;
    }
    struct gcmp_layer_family *family = meet(axis, name->text, before);
    if (family == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (has_number) {
        family->has_numbers = true;
    } else {
        count_member(family, member);
    }
    return GRADCMP_OK;
}

bool gcmp_layer_axis_holds(const struct gcmp_layer_axis *axis, const struct gcmp_name *name,
                           uint64_t layers) {
    size_t index;
    if (name->layer_at == 0 ||
        !gcmp_map_find(&axis->by_prefix, name->text, name->layer_at, &index)) {
        return false;
    }
    const struct gcmp_layer_family *family = &axis->families[index];
    bool are_layers = !family->is_module && !family->has_numbers &&
                      (family->has_matrices || !(family->has_others || family->is_odd));
    return family->first.name != NULL && family->other.name == NULL &&
           (are_layers || (layers != 0 && family->axis == layers));
}

static enum gradcmp_status check_family(const struct gcmp_layer_family *family, uint64_t layers,
                                        struct gradcmp_error *error) {
    const struct gcmp_layer_member *right = &family->first, *wrong = &family->other;
    if (wrong->name == NULL || family->has_numbers) {
        return GRADCMP_OK;
    }
    if (wrong->shape[0] == layers) {
        right = &family->other;
        wrong = &family->first;
    }
    if (right->shape[0] != layers) {
        return GRADCMP_OK;
    }
    GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
              "%s: %" PRIu64 " layers on axis 0, but the model has %" PRIu64 ", as %s", wrong->key,
              wrong->shape[0], layers, right->key);
}

enum gradcmp_status gcmp_layer_axis_check(const struct gcmp_layer_axis *axis, uint64_t layers,
                                          struct gradcmp_error *error) {
    for (size_t i = 0; i < axis->count && layers != 0; i++) {
        GCMP_TRY(check_family(&axis->families[i], layers, error));
    }
    return GRADCMP_OK;
}

void gcmp_layer_axis_free(struct gcmp_layer_axis *axis) {
    free(axis->families);
    gcmp_map_free(&axis->by_prefix);
}
