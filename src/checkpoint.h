/* An open checkpoint: its catalogue, and its parameters by state, made when they are first asked
 * for. */
#ifndef GCMP_CHECKPOINT_H
#define GCMP_CHECKPOINT_H

#include "base/arena.h"
#include "base/dir.h"
#include "gradcmp/sys/format.h"
#include "gradcmp/sys/result.h"
#include "unshard/mapping.h"
#include "unshard/unshard.h"

/* The parameters of one state; `loaded` tells whether they were made already. */
struct gcmp_state_model {
    struct gradcmp_model model;
    bool loaded;
};

struct gradcmp_checkpoint {
    char *path; /* of the checkpoint found at or below what was given; malloced */
    struct gcmp_dir *dir;
    struct gcmp_arena arena;
    struct gradcmp_catalogue catalogue;
    const char **states; /* states with parameters, state_count entries, in the arena */
    size_t state_count;
    struct gcmp_state_model *models; /* one a state */
    uint64_t layers_option;          /* L as the caller gave it; 0: from the checkpoint */
    uint32_t bucket_layout;          /* for struct gcmp_unshard_options */
    bool frozen_told;                /* that flat buffers hold no state of some weights */
    bool buckets_proved;             /* bucket_layout was decided (bucket_proof.h) */

    struct gcmp_mapping *mapping; /* rules that every model is put through; NULL: none */
    enum gcmp_mapping_side side;  /* what the checkpoint is to them */
    bool owns_mapping;

    const struct gradcmp_parameter *
        *listed; /* of all states, sorted by name and state; NULL: not made */
    size_t listed_count;
};

/* The options of a caller of any version, complete; NULL gives the defaults. */
struct gradcmp_options gcmp_options_complete(const struct gradcmp_options *given);

/* Open a checkpoint as gradcmp_checkpoint_open does, without making any parameters yet. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_checkpoint_open(const char *path,
                                                          const struct gradcmp_options *options,
                                                          struct gradcmp_checkpoint **out,
                                                          struct gradcmp_error *error);

/* The same without a look at what lies beside the checkpoint. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_checkpoint_open_alone(const char *path, const struct gradcmp_options *options,
                           struct gradcmp_checkpoint **out, struct gradcmp_error *error);

/* Have the parameters put through rules, which the caller keeps for as long, from now on. */
void gcmp_checkpoint_set_mapping(struct gradcmp_checkpoint *checkpoint,
                                 struct gcmp_mapping *mapping, enum gcmp_mapping_side side);

/* The same with the rules that the options name, if they do, for a checkpoint that is looked at
 * alone. Errors: those of gcmp_mapping_read; USAGE for a side that is none. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_checkpoint_take_map(struct gradcmp_checkpoint *checkpoint,
                                                              const struct gradcmp_options *options,
                                                              struct gradcmp_error *error);

/* Return the parameters of a state in *out; they belong to the checkpoint. A state that the
 * checkpoint does not hold is UNSUPPORTED, and the message lists those it has, or names the way
 * out. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_checkpoint_model(struct gradcmp_checkpoint *checkpoint,
                                                           const char *state,
                                                           const struct gradcmp_model **out,
                                                           struct gradcmp_error *error);

/* True where the checkpoint holds parameters of that state. */
bool gcmp_checkpoint_has_state(const struct gradcmp_checkpoint *checkpoint, const char *state);

/* Make checkpoint->listed: the parameters of all states, sorted by name, then state. A rule of its
 * own mapping that none of them matches is CORRUPT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_checkpoint_load_all(struct gradcmp_checkpoint *checkpoint,
                                                              struct gradcmp_error *error);

/* Decide the compute type of a checkpoint whose `state` is compared; DESIGN section 5 gives the
 * order. */
void gcmp_checkpoint_precision(const struct gradcmp_checkpoint *checkpoint,
                               const struct gradcmp_model *model, enum gradcmp_dtype option,
                               enum gradcmp_dtype *dtype, enum gradcmp_dtype_source *source);

/* True for a parameter of ranks whose copies are those of a tied weight, one in each stage of a
 * pipeline that uses it. */
bool gcmp_is_of_stages(const struct gradcmp_parameter *parameter);

#endif
