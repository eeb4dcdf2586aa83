/* Weights whose float32 master is gone. */
#include "masters.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"

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

enum gradcmp_status gcmp_find_lost_masters(const struct gradcmp_checkpoint *checkpoint,
                                           struct gcmp_lost_states *lost,
                                           struct gradcmp_error *error) {
    const struct gradcmp_model *weights = gcmp_model_of(checkpoint, WEIGHTS);
    const struct gradcmp_model *masters = gcmp_model_of(checkpoint, MASTERS);
    size_t count = weights == NULL || masters == NULL ? 0 : weights->count;
    bool has_moments = false;
    *lost = (struct gcmp_lost_states){.items = calloc(count + 1, sizeof *lost->items)};
    if (lost->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_parameter *weight = &weights->parameters[i];
        const char *state = trained_by(checkpoint, weight->name);
        bool has_master = gcmp_model_find(masters, weight->name) != NULL;
        has_moments = has_moments || (has_master && state != NULL);
        lost->whole_count += has_master && needs_master(weight);
        if (!has_master && needs_master(weight) && !is_tied_output(checkpoint, weight)) {
            lost->items[lost->count++] = (struct gcmp_lost_state){weight->name, state, MASTERS};
        }
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
