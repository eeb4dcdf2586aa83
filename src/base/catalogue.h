/* Building a catalogue: used by every format reader. */
#ifndef GCMP_BASE_CATALOGUE_H
#define GCMP_BASE_CATALOGUE_H

#include "base/arena.h"
#include "base/dir.h"
#include "base/error.h"
#include "gradcmp/sys/catalogue.h"
#include "gradcmp/sys/format.h"

/* Append a stored tensor with room for `piece_count` pieces and return it in *out. The pointer is
 * valid until the next addition. key, name, state must live in the arena or be literals. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_catalogue_add_stored(struct gradcmp_catalogue *catalogue, const char *key, unsigned ndim,
                          const uint64_t *shape, size_t piece_count, struct gradcmp_stored **out,
                          struct gradcmp_error *error);

/* The shape of the model's tensor that a MODEL layout is of, and its number of axes. */
static inline const uint64_t *gcmp_stored_shape(const struct gradcmp_stored *stored,
                                                unsigned *ndim) {
    bool is_stated = stored->model_shape != NULL; /* of flattened fragments */
    *ndim = is_stated ? stored->model_ndim : stored->ndim;
    return is_stated ? stored->model_shape : stored->shape;
}

/* Append a source and return its index. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_catalogue_add_source(struct gradcmp_catalogue *catalogue,
                                                               const struct gradcmp_source *source,
                                                               uint32_t *index,
                                                               struct gradcmp_error *error);

/* Copy `ndim` sizes into the arena; NULL without memory. */
uint64_t *gcmp_catalogue_dims(struct gradcmp_catalogue *catalogue, unsigned ndim,
                              const uint64_t *dims);

/* Record a setting; the first one of a name stays. Text is copied. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_catalogue_set(struct gradcmp_catalogue *catalogue,
                                                        const struct gradcmp_setting *setting,
                                                        struct gradcmp_error *error);
/* Find a setting, or NULL. */
const struct gradcmp_setting *gcmp_catalogue_setting(const struct gradcmp_catalogue *catalogue,
                                                     const char *name);
/* True where the run says that the output layer shares the embedding's weights, or, with `tied`
 * false, that it has its own; a run may say neither. */
bool gcmp_says_tied(const struct gradcmp_catalogue *catalogue, bool tied);

/* True for a universal checkpoint of DeepSpeed: it keeps masters for weights; files of weights are
 * beside them, but not those of experts. */
bool gcmp_masters_stand_for_weights(const struct gradcmp_catalogue *catalogue);

/* Add one line for the reader of the report. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_catalogue_note(struct gradcmp_catalogue *catalogue,
                                                         struct gradcmp_error *error,
                                                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a note of files of one checkpoint that contradict each other, which `check` finds fault with.
 * Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_catalogue_contradict(struct gradcmp_catalogue *catalogue,
                                                               struct gradcmp_error *error,
                                                               const char *line);

/* True where two parameters were averaged alike: the same pointer, or the same numbers. */
bool gcmp_same_adam(const struct gradcmp_adam *a, const struct gradcmp_adam *b);

void gcmp_catalogue_free(
    struct gradcmp_catalogue *catalogue); /* arrays that grow; not arena and dir */

#endif
