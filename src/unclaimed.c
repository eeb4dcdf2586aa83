/* Counts what no reader takes for a part of the model or of an optimizer: what it keeps without a
 * state, and what it counted itself. */
#include "unclaimed.h"

#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"

/* What an optimizer keeps in another form is told by the reader of its states. A module may be
 * called so too. */
static bool is_of_optimizer(const char *key) {
    return (strncmp(key, "optimizer", 9) == 0 &&
            (strstr(key, "state") != NULL || strstr(key, "param_groups") != NULL ||
             strstr(key, "distributed") != NULL)) ||
           (strncmp(key, "optim.", 6) == 0 && strstr(key, ".state.") != NULL);
}

bool gcmp_is_unclaimed(const struct gradcmp_stored *stored, uint64_t *elems) {
    *elems = 0;
    return stored->state == NULL && gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype) &&
           !is_of_optimizer(stored->key) &&
           (!gcmp_product(stored->shape, stored->ndim, elems) || *elems > 1);
}

enum gradcmp_status gcmp_note_unclaimed(struct gradcmp_catalogue *catalogue,
                                        struct gradcmp_error *error) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        uint64_t elems;
        if (gcmp_is_unclaimed(&catalogue->stored[i], &elems) && catalogue->unclaimed_count++ == 0) {
            catalogue->unclaimed_first = catalogue->stored[i].key;
        }
    }
    size_t count = catalogue->unclaimed_count;
    return count == 0
               ? GRADCMP_OK
               : gcmp_catalogue_note(catalogue, error,
                                     "%s%zu tensor%s, such as %.160s, %s; gradcmp bits alone "
                                     "compares %s",
                                     catalogue->unclaimed_is_least ? "at least " : "", count,
                                     count == 1 ? "" : "s", catalogue->unclaimed_first,
                                     count == 1 ? "is no weight and no state that is read"
                                                : "are no weights and no states that are read",
                                     count == 1 ? "it" : "them");
}
