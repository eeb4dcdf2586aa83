/* Weights and float32 masters that are gone. */
#include "masters.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "pairing.h"

static const char WEIGHTS[] = "param", MASTERS[] = "fp32_param";

const struct gradcmp_model *gcmp_model_of(const struct gradcmp_checkpoint *checkpoint,
                                          const char *state) {
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        if (strcmp(checkpoint->states[i], state) == 0 && checkpoint->models[i].loaded) {
            return &checkpoint->models[i].model;
        }
    }
    return NULL;
}

/* A weight of float32 is its own master. */
static bool needs_master(const struct gradcmp_parameter *weight) {
    return gcmp_dtype_is_float((enum gradcmp_dtype)weight->dtype) &&
           gcmp_dtype_bytes((enum gradcmp_dtype)weight->dtype) < sizeof(float);
}

/* A state, other than a master, that shows that a weight is trained; NULL: there is none. */
static const char *trained_by(const struct gradcmp_checkpoint *checkpoint, const char *name) {
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const char *state = checkpoint->states[i];
        if (strcmp(state, WEIGHTS) != 0 && strcmp(state, MASTERS) != 0 &&
            gcmp_model_find(&checkpoint->models[i].model, name) != NULL) {
            return state;
        }
    }
    return NULL;
}

/* A tied output layer is stored beside the embedding, which has its master. */
static bool is_tied_output(const struct gradcmp_checkpoint *checkpoint,
                           const struct gradcmp_parameter *weight) {
    return weight->vocab_rows == GRADCMP_VOCAB_OUTPUT && weight->ndim == 2 &&
           gcmp_says_tied(&checkpoint->catalogue, true);
}

/* How often parameters of one type have a master, those of float32 and wider that are trained. */
struct wide_masters {
    size_t whole, lost;
};

/* A type of full precision needs no master, but where an optimizer keeps one for nearly all weights
 * of the type, one of them that has none has lost it. */
static bool is_rule(const struct wide_masters *wide) {
    return wide->lost < wide->whole;
}

static void count_wide(const struct gradcmp_checkpoint *checkpoint,
                       const struct gradcmp_model *weights, const struct gradcmp_model *masters,
                       struct wide_masters *by_type) {
    for (size_t i = 0; i < weights->count; i++) {
        const struct gradcmp_parameter *weight = &weights->parameters[i];
        if (gcmp_dtype_is_float((enum gradcmp_dtype)weight->dtype) && !needs_master(weight) &&
            trained_by(checkpoint, weight->name) != NULL) {
            bool has_master = gcmp_model_find(masters, weight->name) != NULL;
            by_type[weight->dtype].whole += has_master;
            by_type[weight->dtype].lost += !has_master && !is_tied_output(checkpoint, weight);
        }
    }
}

/* Fill in lost->items with the weights that may have lost their master; true in *has_moments where
 * some parameter with a master has moments. */
static void list_unmastered(const struct gradcmp_checkpoint *checkpoint,
                            const struct gradcmp_model *weights,
                            const struct gradcmp_model *masters, struct gcmp_lost_states *lost,
                            bool *has_moments) {
    struct wide_masters wide[UINT8_MAX + 1] = {{0}};
    count_wide(checkpoint, weights, masters, wide);
    for (size_t i = 0; i < weights->count; i++) {
        const struct gradcmp_parameter *weight = &weights->parameters[i];
        const char *state = trained_by(checkpoint, weight->name);
        bool has_master = gcmp_model_find(masters, weight->name) != NULL;
        bool wants_one = needs_master(weight) || (state != NULL && is_rule(&wide[weight->dtype]));
        *has_moments = *has_moments || (has_master && state != NULL);
        lost->whole_count += has_master && wants_one;
        if (!has_master && wants_one && !is_tied_output(checkpoint, weight)) {
            lost->items[lost->count++] = (struct gcmp_lost_state){weight->name, state, MASTERS};
        }
    }
}

enum gradcmp_status gcmp_find_lost_masters(const struct gradcmp_checkpoint *checkpoint,
                                           struct gcmp_lost_states *lost,
                                           struct gradcmp_error *error) {
    const struct gradcmp_model *weights = gcmp_model_of(checkpoint, WEIGHTS);
    const struct gradcmp_model *masters = gcmp_model_of(checkpoint, MASTERS);
    bool has_both = weights != NULL && masters != NULL, has_moments = false;
    *lost = (struct gcmp_lost_states){
        .items = calloc(has_both ? weights->count + 1 : 1, sizeof *lost->items)};
    if (lost->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (has_both) {
        list_unmastered(checkpoint, weights, masters, lost, &has_moments);
    }
    size_t kept = 0;
    bool are_few = lost->count < lost->whole_count;
    for (size_t i = 0; i < lost->count; i++) {
        struct gcmp_lost_state item = lost->items[i];
        if (lost->whole_count > 0 && (item.stored != NULL || (!has_moments && are_few))) {
            item.stored = item.stored == NULL ? WEIGHTS : item.stored;
            lost->items[kept++] = item;
        }
    }
    lost->count = kept;
    return GRADCMP_OK;
}

/* A tied output layer may have moments of its own, and no weight: the embedding has it. Where the
 * run doesn't say whether it is tied, an embedding with moments of its own tells that it is not. */
static bool may_be_tied(const struct gradcmp_checkpoint *checkpoint,
                        const struct gradcmp_model *moments) {
    bool is_trained = false;
    for (size_t i = 0; i < moments->count; i++) {
        is_trained = is_trained || moments->parameters[i].vocab_rows == GRADCMP_VOCAB_INPUT;
    }
    return gcmp_says_tied(&checkpoint->catalogue, true) ||
           (!is_trained && !gcmp_says_tied(&checkpoint->catalogue, false));
}

/* Keys that are looked at for weights in another form, at most: a hostile file has many of both. */
static const size_t MAX_KEYS = 100000000;

/* A weight that is kept in another form than a tensor of numbers: its parts, or an opaque object,
 * have names that begin with its own. What an optimizer keeps of its options is neither. */
static bool is_kept_otherwise(const struct gradcmp_checkpoint *checkpoint, const char *name) {
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    size_t bytes = strlen(name);
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        bool is_weight = stored->state == NULL || strcmp(stored->state, WEIGHTS) == 0;
        bool is_option = is_weight && strstr(stored->key, "param_groups") != NULL;
        const char *at = is_weight && !is_option ? strstr(stored->key, name) : NULL;
        if (at != NULL && (at[bytes] == '\0' || at[bytes] == '.' || at[bytes] == '_')) {
            return true;
        }
    }
    return false;
}

/* States that only trained parameters have. */
static const char *const TRAINED[] = {"exp_avg", "exp_avg_sq", MASTERS};
enum { TRAINED_COUNT = sizeof TRAINED / sizeof TRAINED[0] };

/* True where a parameter has one of the first `count` states too. */
static bool has_earlier(const struct gradcmp_checkpoint *checkpoint, size_t count,
                        const char *name) {
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_model *model = gcmp_model_of(checkpoint, TRAINED[i]);
        if (model != NULL && gcmp_model_find(model, name) != NULL) {
            return true;
        }
    }
    return false;
}

/* True for an embedding whose weight is stored as that of a tied output layer, which has no moments
 * of its own. */
static bool has_tied_head(const struct gradcmp_parameter *embedding,
                          const struct gradcmp_model *kept, const struct gradcmp_model *trained) {
    for (size_t i = 0; i < kept->count && embedding->vocab_rows == GRADCMP_VOCAB_INPUT; i++) {
        const struct gradcmp_parameter *head = &kept->parameters[i];
        if (gcmp_may_be_tied(embedding, head) && gcmp_model_find(trained, head->name) == NULL) {
            return true;
        }
    }
    return false;
}

/* Add the parameters of state number `which` that have none of the form in which weights are kept.
 */
static void list_weightless(const struct gradcmp_checkpoint *checkpoint, size_t which,
                            const char *form, struct gcmp_lost_states *lost) {
    const struct gradcmp_model *trained = gcmp_model_of(checkpoint, TRAINED[which]);
    const struct gradcmp_model *kept = gcmp_model_of(checkpoint, form);
    size_t count = trained == NULL || kept == NULL ? 0 : trained->count, whole = 0;
    size_t known = lost->count, keys = 0;
    bool may_stand = count > 0 && may_be_tied(checkpoint, trained);
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_parameter *parameter = &trained->parameters[i];
        if (gcmp_model_find(kept, parameter->name) != NULL) {
            whole++;
        } else if (!has_earlier(checkpoint, which, parameter->name) &&
                   !has_tied_head(parameter, kept, trained) &&
                   !(may_stand && parameter->vocab_rows == GRADCMP_VOCAB_OUTPUT &&
                     parameter->ndim == 2)) {
            keys += checkpoint->catalogue.stored_count;
            if (keys > MAX_KEYS || !is_kept_otherwise(checkpoint, parameter->name)) {
                lost->items[lost->count++] =
                    (struct gcmp_lost_state){parameter->name, TRAINED[which], form};
            }
        }
    }
    lost->count = whole == 0 ? known : lost->count;
    lost->whole_count = whole > lost->whole_count ? whole : lost->whole_count;
}

enum gradcmp_status gcmp_find_lost_weights(const struct gradcmp_checkpoint *checkpoint,
                                           struct gcmp_lost_states *lost,
                                           struct gradcmp_error *error) {
    const char *form = gcmp_model_of(checkpoint, WEIGHTS) != NULL &&
                               !gcmp_masters_stand_for_weights(&checkpoint->catalogue)
                           ? WEIGHTS
                           : MASTERS;
    size_t room = 1;
    for (size_t i = 0; i < TRAINED_COUNT; i++) {
        const struct gradcmp_model *model = gcmp_model_of(checkpoint, TRAINED[i]);
        room += model == NULL ? 0 : model->count;
    }
    *lost = (struct gcmp_lost_states){.items = calloc(room, sizeof *lost->items)};
    if (lost->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < TRAINED_COUNT; i++) {
        if (strcmp(TRAINED[i], form) != 0) {
            list_weightless(checkpoint, i, form, lost);
        }
    }
    return GRADCMP_OK;
}
