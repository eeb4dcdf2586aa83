/* Finds what a comparison passes over: of weights, tensors for their type; of a state, weights that
 * have none. */
#include "left_out.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/word.h"
#include "stateless.h"
#include "unclaimed.h"

/* What trainers keep of torch's generators beside the model: bytes in a row, named after them or
 * after the device that they draw for ("cpu" in rng_state.pth of transformers). */
static bool is_of_generator(const struct gradcmp_stored *stored) {
    static const char *const words[] = {"rng", "seed", "cpu", "cuda", "npu", "xpu", "mps", NULL};
    bool found = false;
    for (const char *at = stored->key; *at != '\0' && !found;) {
        size_t count = strcspn(at, "._/");
        found = gcmp_find_word(at, count, words) != NULL;
        at += count + (at[count] != '\0');
    }
    return found && stored->dtype == (uint8_t)GRADCMP_DTYPE_UINT8 && stored->ndim == 1;
}

/* Numbers, several of them, and not real ones: not a counter, and no part of an optimizer. Types
 * that nobody reads are named by the format's reader. */
static bool is_left_out(const struct gradcmp_stored *stored) {
    uint64_t elems = 0;
    return stored->state == NULL && stored->dtype != (uint8_t)GRADCMP_DTYPE_NONE &&
           !gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype) &&
           strncmp(stored->key, "optim", 5) != 0 && !is_of_generator(stored) &&
           (!gcmp_product(stored->shape, stored->ndim, &elems) || elems > 1);
}

struct gcmp_left_out gcmp_find_left_out(const struct gradcmp_catalogue *catalogue,
                                        struct gcmp_name_filter *filter) {
    struct gcmp_left_out found = {0};
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (is_left_out(stored) && gcmp_name_filter_takes(filter, stored->name)) {
            found.first = found.count++ == 0 ? stored : found.first;
        }
    }
    return found;
}

void gcmp_tell_left_out(const struct gcmp_left_out *found, const char *done,
                        char out[GCMP_LEFT_OUT_BYTES]) {
    snprintf(out, GCMP_LEFT_OUT_BYTES,
             "not %s: %zu tensor%s of other than real numbers, such as %.160s (%s); gradcmp bits "
             "compares them",
             done, found->count, found->count == 1 ? "" : "s", found->first->name,
             gradcmp_dtype_name((enum gradcmp_dtype)found->first->dtype));
}

static enum gradcmp_status note_side(struct gcmp_comparison *comparison,
                                     struct gradcmp_pair_report *pair,
                                     struct gcmp_name_filter *filter,
                                     const struct gradcmp_catalogue *catalogue,
                                     struct gradcmp_error *error) {
    struct gcmp_left_out found = gcmp_find_left_out(catalogue, filter);
    char text[GCMP_LEFT_OUT_BYTES];
    if (found.count == 0) {
        return GRADCMP_OK;
    }
    gcmp_tell_left_out(&found, "judged", text);
    return gcmp_pair_note(comparison, pair, error, "%s: %s",
                          catalogue == pair->catalogue ? "candidate" : "baseline", text);
}

/* A tensor of no state, of complex numbers or of a type that no reader reads; *elems is how many
 * elements it has. What is no tensor has no shape. */
static bool is_unread(const struct gradcmp_stored *stored, uint64_t *elems) {
    bool is_complex = stored->dtype == (uint8_t)GRADCMP_DTYPE_COMPLEX64 ||
                      stored->dtype == (uint8_t)GRADCMP_DTYPE_COMPLEX128;
    *elems = 0;
    return stored->state == NULL && stored->unread_state == NULL &&
           (is_complex || stored->dtype == (uint8_t)GRADCMP_DTYPE_NONE) &&
           strncmp(stored->key, "optim", 5) != 0 &&
           gcmp_product(stored->shape, stored->ndim, elems) && *elems > 1;
}

/* Count what is not read as a weight on a side, where it is more than on the other. */
static void count_beside(struct gradcmp_pair_report *pair, struct gcmp_name_filter *filter,
                         const struct gradcmp_catalogue *catalogue) {
    size_t count = 0, passed = catalogue->unclaimed_count;
    uint64_t sum = 0, elems = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        bool is_unclaimed = gcmp_is_unclaimed(stored, &elems);
        passed -= is_unclaimed;
        if ((is_unclaimed || is_unread(stored, &elems)) &&
            gcmp_name_filter_takes(filter, stored->name)) {
            sum = gcmp_add_saturated(sum, elems);
            count++;
        }
    }
    if (passed > 0 && gcmp_name_filter_takes(filter, catalogue->unclaimed_first)) {
        sum = gcmp_add_saturated(sum, catalogue->passed_elems);
        count += passed;
    }
    if (sum > pair->beside_elems) {
        pair->beside = count;
        pair->beside_elems = sum;
    }
}

/* What of the compared state is there and not read must not look as if it had been judged. */
static enum gradcmp_status refuse_unread(const struct gradcmp_catalogue *catalogue,
                                         const char *path, const char *state,
                                         struct gcmp_name_filter *filter,
                                         struct gradcmp_error *error) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->unread_state != NULL && strcmp(stored->unread_state, state) == 0 &&
            gcmp_name_filter_takes(filter, stored->name)) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                         "%.160s: its %.40s is not of real numbers: %.200s (--exclude leaves a "
                         "parameter out)",
                         stored->name, state, stored->unread_why);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_note_left_out(struct gcmp_comparison *comparison,
                                       struct gradcmp_pair_report *pair,
                                       struct gcmp_name_filter *filter,
                                       struct gradcmp_error *error) {
    const char *state = comparison->report->state;
    GCMP_TRY(refuse_unread(comparison->report->baseline, comparison->baseline.checkpoint->path,
                           state, filter, error));
    GCMP_TRY(refuse_unread(pair->catalogue, pair->path, state, filter, error));
    if (strcmp(state, "param") != 0) {
        return gcmp_note_stateless(comparison, pair, filter, error);
    }
    count_beside(pair, filter, comparison->report->baseline);
    count_beside(pair, filter, pair->catalogue);
    GCMP_TRY(note_side(comparison, pair, filter, comparison->report->baseline, error));
    return note_side(comparison, pair, filter, pair->catalogue, error);
}
