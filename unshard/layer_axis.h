/* Whether axis 0 of the tensors below a `layers` without a number counts layers. */
#ifndef GCMP_UNSHARD_LAYER_AXIS_H
#define GCMP_UNSHARD_LAYER_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "unshard/names.h"

/* A tensor as it is looked at here. */
struct gcmp_layer_member {
    const struct gcmp_name *name;
    const char *key; /* in messages */
    unsigned ndim;
    const uint64_t *shape; /* of the model's tensor */
};

/* The tensors below one `layers`. */
struct gcmp_layer_family {
    uint64_t axis; /* number of layers that `first` shows; 0: none does */
    struct gcmp_layer_member first,
        other;      /* `other` disagrees with it; its name is NULL: none does */
    bool is_module; /* it has the "weight" of one, or one number for each row of its bias or norm */
    bool has_numbers;              /* numbered layers stand beside it */
    bool has_matrices, has_others; /* of tensors of two axes: some are no norm or bias */
    bool is_odd;                   /* some stand in no module, or hold a number for each layer */
};

struct gcmp_layer_axis {
    struct gcmp_map by_prefix; /* text before the layer's index -> index; texts are the names' */
    struct gcmp_layer_family *families;
    size_t count, capacity;
};

#define GCMP_LAYER_AXIS_INIT                                                                       \
    { GCMP_MAP_INIT, NULL, 0, 0 }

/* Count a tensor among those of its `layers`, if it has one. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_layer_axis_add(struct gcmp_layer_axis *axis,
                                                         const struct gcmp_layer_member *member,
                                                         struct gradcmp_error *error);

/* True where the axis counts layers: all tensors below that `layers` have the same, and it is the
 * number of layers of the model. Where that is not known (`layers` 0), or is another stack's, the
 * tensors must be what layers hold: a matrix in each, or norms and biases in modules alone, and no
 * numbered layers beside them. A dict of modules called "layers", which has the weights and biases
 * of these, is no stack. */
bool gcmp_layer_axis_holds(const struct gcmp_layer_axis *axis, const struct gcmp_name *name,
                           uint64_t layers);

/* Of two tensors of a stack that disagree, the one whose axis 0 is not the number of layers is
 * damaged: CORRUPT. Without that number they are not known to be a stack at all. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_layer_axis_check(const struct gcmp_layer_axis *axis,
                                                           uint64_t layers,
                                                           struct gradcmp_error *error);

void gcmp_layer_axis_free(struct gcmp_layer_axis *axis);

#endif
