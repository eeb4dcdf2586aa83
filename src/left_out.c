/* Finds what a comparison passes over: of weights, tensors for their type; of a state, weights that
 * have none. */
#include "left_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/model_names.h"
#include "base/twins.h"
#include "stand_ins.h"
#include "unshard/local.h"
#include "unshard/names.h"

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

/* Parameters of either side without the state on any. */
struct stateless {
    const char *state;
    struct gcmp_name_filter *filter;
    struct gcmp_arena arena; /* canonical names */
    struct gcmp_map names;   /* of the state, and of what was counted */
    struct gcmp_map told;    /* stored names of other states, of which the catalogue has a note */
    struct gcmp_map
        places; /* struct gcmp_place of one side's weights that have the state, or were counted */
    const char *first;
    size_t count;
    uint64_t elems;
};

/* Take the canonical names of one side's state. */
static enum gradcmp_status collect(const struct gradcmp_catalogue *catalogue,
                                   struct stateless *stateless, struct gradcmp_error *error) {
    struct gcmp_name *names;
    enum gradcmp_status status = GRADCMP_OK;
    bool is_new;
    GCMP_TRY(gcmp_names_read(catalogue, stateless->state, &stateless->arena, &names, error));
    for (size_t i = 0, at = 0; i < catalogue->stored_count && status == GRADCMP_OK; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (gcmp_is_of_state(stored, stateless->state)) {
            status = gcmp_add_name(&stateless->names, names[at++].text, &is_new, error);
        } else if (gcmp_is_optimizer_state(stored->state)) {
            status = gcmp_add_name(&stateless->told, stored->name, &is_new, error);
        }
    }
    free(names);
    return status;
}

static enum gradcmp_status add_place(struct stateless *stateless, const struct gcmp_place *place,
                                     struct gradcmp_error *error) {
    struct gcmp_place *own = gcmp_arena_alloc(&stateless->arena, 1, sizeof *own);
    if (own == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *own = *place;
    if (gcmp_map_add(&stateless->places, own, sizeof *own, 0, NULL) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Keep the place of a weight that has the state. */
static enum gradcmp_status keep_place(const struct gradcmp_catalogue *catalogue,
                                      const struct gradcmp_stored *stored, const char *name,
                                      struct stateless *stateless, struct gradcmp_error *error) {
    size_t ignored;
    struct gcmp_place place;
    return gcmp_map_find(&stateless->names, name, strlen(name), &ignored) &&
                   gcmp_stored_place(catalogue, stored, &place)
               ? add_place(stateless, &place, error)
               : GRADCMP_OK;
}

/* True for a second name of a weight that has the state under the model's own. */
static bool has_own_name(const struct stateless *stateless, const char *name) {
    const char *own = gcmp_name_of_own(name);
    size_t ignored;
    return own != NULL && gcmp_map_find(&stateless->names, own, strlen(own), &ignored);
}

static enum gradcmp_status count_weight(const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_stored *stored, const char *name,
                                        struct stateless *stateless, struct gradcmp_error *error) {
    unsigned ndim;
    const uint64_t *shape = gcmp_stored_shape(stored, &ndim);
    uint64_t elems;
    struct gcmp_place place;
    bool is_new, has_place = gcmp_stored_place(catalogue, stored, &place);
    size_t ignored;
    if (stored->layout != GRADCMP_LAYOUT_MODEL ||
        (has_place && gcmp_map_find(&stateless->places, &place, sizeof place, &ignored)) ||
        gcmp_name_is_norm_buffer(stored->name) || has_own_name(stateless, name) ||
        gcmp_map_find(&stateless->told, stored->name, strlen(stored->name), &ignored) ||
        !gcmp_name_filter_takes(stateless->filter, name)) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_add_name(&stateless->names, name, &is_new, error));
    if (is_new && gcmp_product(shape, ndim, &elems)) {
        stateless->first = stateless->count++ == 0 ? name : stateless->first;
        stateless->elems = gcmp_add_saturated(stateless->elems, elems);
    }
    return has_place && is_new ? add_place(stateless, &place, error) : GRADCMP_OK;
}

static enum gradcmp_status count_weights(const struct gradcmp_catalogue *catalogue,
                                         struct stateless *stateless, struct gradcmp_error *error) {
    struct gcmp_name *names;
    enum gradcmp_status status = GRADCMP_OK;
    GCMP_TRY(gcmp_names_read(catalogue, "param", &stateless->arena, &names, error));
    gcmp_map_free(&stateless->places);
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0, at = 0; i < catalogue->stored_count && status == GRADCMP_OK; i++) {
            const struct gradcmp_stored *stored = &catalogue->stored[i];
            if (gcmp_is_of_state(stored, "param")) {
                status = (pass == 0 ? keep_place : count_weight)(
                    catalogue, stored, names[at++].text, stateless, error);
            }
        }
    }
    free(names);
    return status;
}

/* Whether a state's parameters have names: it is in no buffers, and numbers are not compared. */
static bool has_names(const struct gradcmp_catalogue *catalogue, const char *state) {
    bool found = catalogue->number_groups == NULL;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        found = found && (stored->state == NULL || strcmp(stored->state, state) != 0 ||
                          stored->layout == GRADCMP_LAYOUT_MODEL);
    }
    return found;
}

/* A quick look, by stored names: *lack is false where every weight has the state. */
static enum gradcmp_status may_lack(const struct gradcmp_catalogue *const sides[2],
                                    const char *state, bool *lack, struct gradcmp_error *error) {
    struct gcmp_map names = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    bool is_new;
    *lack = false;
    for (size_t i = 0; i < sides[0]->stored_count && status == GRADCMP_OK; i++) {
        if (gcmp_is_of_state(&sides[0]->stored[i], state)) {
            status = gcmp_add_name(&names, sides[0]->stored[i].name, &is_new, error);
        }
    }
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < sides[side]->stored_count && !*lack; i++) {
            const struct gradcmp_stored *stored = &sides[side]->stored[i];
            size_t ignored;
            *lack = gcmp_is_of_state(stored, "param") &&
                    !gcmp_map_find(&names, stored->name, strlen(stored->name), &ignored);
        }
    }
    gcmp_map_free(&names);
    return status;
}

static enum gradcmp_status count_stateless(const struct gradcmp_catalogue *const sides[2],
                                           struct stateless *stateless,
                                           struct gradcmp_error *error) {
    bool lack;
    GCMP_TRY(may_lack(sides, stateless->state, &lack, error));
    for (size_t i = 0; i < 2 && lack; i++) {
        if (!has_names(sides[i], stateless->state)) {
            return GRADCMP_OK;
        }
        GCMP_TRY(collect(sides[i], stateless, error));
    }
    for (size_t i = 0; i < 2 && lack; i++) {
        GCMP_TRY(count_weights(sides[i], stateless, error));
    }
    return GRADCMP_OK;
}

/* True where names in the files do not tell which weights have the state: ranks keep their own
 * shards, or flat buffers leave some out. */
static bool needs_models(const struct gcmp_participant *side) {
    return gcmp_local_has(&side->checkpoint->catalogue, "param") || side->model->frozen > 0;
}

/* Count the weights of one side's model. One that cannot be put together is not counted. */
static enum gradcmp_status count_of_model(const struct gcmp_participant *side,
                                          struct stateless *stateless,
                                          struct gradcmp_error *error) {
    const struct gradcmp_model *weights;
    struct gradcmp_error refusal = {0};
    enum gradcmp_status status =
        gcmp_checkpoint_model(side->checkpoint, "param", &weights, &refusal);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; status == GRADCMP_OK && i < weights->count; i++) {
        const struct gradcmp_parameter *weight = &weights->parameters[i];
        bool is_new;
        if (!gcmp_name_is_norm_buffer(weight->name) && !has_own_name(stateless, weight->name) &&
            gcmp_name_filter_takes(stateless->filter, weight->name)) {
            GCMP_TRY(gcmp_add_name(&stateless->names, weight->name, &is_new, error));
            stateless->first = is_new && stateless->count == 0 ? weight->name : stateless->first;
            stateless->count += is_new;
            stateless->elems =
                gcmp_add_saturated(stateless->elems, is_new ? weight->elem_count : 0);
        }
    }
    return GRADCMP_OK;
}

/* The same by the models that the sides make. */
static enum gradcmp_status count_in_models(const struct gcmp_participant *const sides[2],
                                           struct stateless *stateless,
                                           struct gradcmp_error *error) {
    bool is_new;
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < sides[side]->model->count; i++) {
            GCMP_TRY(gcmp_add_name(&stateless->names, sides[side]->model->parameters[i].name,
                                   &is_new, error));
        }
    }
    GCMP_TRY(count_of_model(sides[0], stateless, error));
    return count_of_model(sides[1], stateless, error);
}

/* Say which weights have the state on neither side. */
static enum gradcmp_status note_stateless(struct gcmp_comparison *comparison,
                                          struct gradcmp_pair_report *pair,
                                          struct gcmp_name_filter *filter,
                                          struct gradcmp_error *error) {
    const struct gcmp_participant *const sides[] = {
        &comparison->baseline, &comparison->candidates[pair - comparison->report->pairs]};
    const struct gradcmp_catalogue *const catalogues[] = {comparison->report->baseline,
                                                          pair->catalogue};
    struct stateless found = {.state = comparison->report->state,
                              .filter = filter,
                              .arena = GCMP_ARENA_INIT,
                              .names = GCMP_MAP_INIT,
                              .told = GCMP_MAP_INIT,
                              .places = GCMP_MAP_INIT};
    enum gradcmp_status status = needs_models(sides[0]) || needs_models(sides[1])
                                     ? count_in_models(sides, &found, error)
                                     : count_stateless(catalogues, &found, error);
    pair->stateless = found.count;
    pair->stateless_elems = found.elems;
    if (status == GRADCMP_OK && found.count > 0) {
        status = gcmp_pair_note(comparison, pair, error,
                                "not compared: %zu tensor%s of the model (%" PRIu64
                                " elements) that %s no %.40s on either side, such as %.160s: "
                                "buffers, or weights that are frozen, tied, without a gradient, or "
                                "of an optimizer that keeps none",
                                found.count, found.count == 1 ? "" : "s", found.elems,
                                found.count == 1 ? "has" : "have", found.state, found.first);
    }
    gcmp_map_free(&found.places);
    gcmp_map_free(&found.told);
    gcmp_map_free(&found.names);
    gcmp_arena_free(&found.arena);
    return status;
}

enum gradcmp_status gcmp_note_left_out(struct gcmp_comparison *comparison,
                                       struct gradcmp_pair_report *pair,
                                       struct gcmp_name_filter *filter,
                                       struct gradcmp_error *error) {
    if (strcmp(comparison->report->state, "param") != 0) {
        return note_stateless(comparison, pair, filter, error);
    }
    GCMP_TRY(note_side(comparison, pair, filter, comparison->report->baseline, error));
    return note_side(comparison, pair, filter, pair->catalogue, error);
}
