/* Finds what a comparison passes over: of weights, tensors for their type; of a state, weights that
 * have none. */
#include "left_out.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "stateless.h"

/* Numbers, several of them, and not real ones: not a counter, and no part of an optimizer. Types
 * that nobody reads are named by the format's reader. */
static bool is_left_out(const struct gradcmp_stored *stored) {
    uint64_t elems = 0;
    return stored->state == NULL && stored->dtype != (uint8_t)GRADCMP_DTYPE_NONE &&
           !gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype) &&
           strncmp(stored->key, "optim", 5) != 0 &&
           (!gcmp_product(stored->shape, stored->ndim, &elems) || elems > 1);
}

static enum gradcmp_status note_side(struct gcmp_comparison *comparison,
                                     struct gradcmp_pair_report *pair,
                                     struct gcmp_name_filter *filter,
                                     const struct gradcmp_catalogue *catalogue,
                                     struct gradcmp_error *error) {
    const struct gradcmp_stored *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (is_left_out(stored) && gcmp_name_filter_takes(filter, stored->name)) {
            first = count++ == 0 ? stored : first;
        }
    }
    return count == 0 ? GRADCMP_OK
                      : gcmp_pair_note(comparison, pair, error,
                                       "%s: not judged: %zu tensor%s of other than real numbers, "
                                       "such as %.160s (%s); gradcmp bits compares them",
                                       catalogue == pair->catalogue ? "candidate" : "baseline",
                                       count, count == 1 ? "" : "s", first->name,
                                       gradcmp_dtype_name((enum gradcmp_dtype)first->dtype));
}

enum gradcmp_status gcmp_note_left_out(struct gcmp_comparison *comparison,
                                       struct gradcmp_pair_report *pair,
                                       struct gcmp_name_filter *filter,
                                       struct gradcmp_error *error) {
    if (strcmp(comparison->report->state, "param") != 0) {
        return gcmp_note_stateless(comparison, pair, filter, error);
    }
    GCMP_TRY(note_side(comparison, pair, filter, comparison->report->baseline, error));
    return note_side(comparison, pair, filter, pair->catalogue, error);
}
