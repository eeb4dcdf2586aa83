/* From a catalogue to parameters in their logical form. */
#ifndef GCMP_UNSHARD_UNSHARD_H
#define GCMP_UNSHARD_UNSHARD_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/parameter.h"

/* What only the other side or the command line can know. */
struct gcmp_unshard_options {
    uint64_t layers;        /* L; 0: from the catalogue */
    uint32_t bucket_layout; /* of gcmp_unshard_bucket_layouts; 0: the one that fits */
};

/* Make the parameters of one state: stacked tensors are split, flattened fragments become boxes,
 * gated halves are joined, names become canonical. Every parameter's coverage is proved; a hole or
 * an overlap with an unknown content is CORRUPT and names the parameter and the range. No parameter
 * of that state is not an error here: model->count is 0. On success the caller owns model
 * (gcmp_model_free); names, shapes and coordinates may be the catalogue's, which must live longer.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_unshard(const struct gradcmp_catalogue *catalogue,
                                                  const char *state,
                                                  const struct gcmp_unshard_options *options,
                                                  struct gradcmp_model *model,
                                                  struct gradcmp_error *error);
void gcmp_model_free(struct gradcmp_model *model);

/* Make the parameters of a state that is stored in buckets (GRADCMP_LAYOUT_BUCKET), as gcmp_unshard
 * does for others: where each lies is rebuilt from the weights of the same catalogue and proved by
 * the sizes and edges of the buckets. What every tensor-parallel rank holds is kept as copies.
 * UNSUPPORTED, naming the flag that saves a readable checkpoint, where no order of the parameters
 * fits, or several do. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_unshard_buckets(const struct gradcmp_catalogue *catalogue, const char *state,
                     const struct gcmp_unshard_options *options, struct gradcmp_model *model,
                     struct gradcmp_error *error);

/* Numbers of the ways in which buckets can have been laid out. */
enum { GCMP_BUCKET_LAYOUTS = 32 };
struct gcmp_bucket_layouts {
    uint32_t numbers[GCMP_BUCKET_LAYOUTS]; /* for struct gcmp_unshard_options */
    size_t count;
    size_t allowed; /* of them, the first ones: those that the run's arguments do not deny */
};

/* List the layouts that fill the buckets of a state and place some parameter differently from each
 * other: what is not in the metadata has to tell which it is. No buckets: none. UNSUPPORTED as
 * gcmp_unshard_buckets where none fits. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_unshard_bucket_layouts(const struct gradcmp_catalogue *catalogue, const char *state,
                            const struct gcmp_unshard_options *options,
                            struct gcmp_bucket_layouts *out, struct gradcmp_error *error);

/* A parameter that has one of Adam's moments and not the other, which others have. */
struct gcmp_lost_state {
    const char *name, *stored, *absent;
};
struct gcmp_lost_states {
    struct gcmp_lost_state *items; /* malloced; the texts are the catalogue's */
    size_t count;
    size_t whole_count; /* parameters that have both */
};

/* True for a second moment that is kept as two vectors, of rows and of columns (Adafactor's), which
 * readers may list only. */
bool gcmp_is_factored(const struct gradcmp_stored *stored);

/* Find all parameters that lost a moment; free lost->items in any case. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_unshard_lost_states(const struct gradcmp_catalogue *catalogue, struct gcmp_lost_states *lost,
                         struct gradcmp_error *error);

/* Check, from the names alone, that no parameter has lost one of several states: one with only
 * `exp_avg` or only `exp_avg_sq`, where others have both, is CORRUPT and named. A parameter without
 * any state received no gradient, which is legal. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_unshard_check_states(const struct gradcmp_catalogue *catalogue, struct gradcmp_error *error);

/* Note, from the names alone, that parameters have moments and no weight, where others have both.
 * Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_unshard_note_weights(struct gradcmp_catalogue *catalogue,
                                                               struct gradcmp_error *error);

/* List the states of which the catalogue holds parameters, buckets of them included, sorted, each
 * once; the array lives in the arena. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_unshard_states(const struct gradcmp_catalogue *catalogue,
                                                         struct gcmp_arena *arena,
                                                         const char ***states, size_t *count,
                                                         struct gradcmp_error *error);

/* Find a parameter by its canonical name; NULL if absent. */
const struct gradcmp_parameter *gcmp_model_find(const struct gradcmp_model *model,
                                                const char *name);

#endif
