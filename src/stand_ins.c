/* A momentum in place of Adam's first moment. */
#include "stand_ins.h"

#include <string.h>

#include "base/catalogue.h"
#include "base/map.h"
#include "unshard/names.h"
#include "unshard/unshard.h"

static const char STATE[] = "exp_avg", MOMENTUM[] = "momentum_buffer";

bool gcmp_is_optimizer_state(const char *state) {
    return gcmp_is_parameter_state(state) && !gcmp_is_weight_state(state) &&
           strcmp(state, "main_grad") != 0;
}

enum gradcmp_status gcmp_add_name(struct gcmp_map *names, const char *name, bool *is_new,
                                  struct gradcmp_error *error) {
    enum gcmp_map_result result = gcmp_map_add(names, name, strlen(name), 0, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    *is_new = result == GCMP_MAP_ADDED;
    return GRADCMP_OK;
}

/* One side's names that have the compared state, or something in its place. */
struct names {
    struct gcmp_map map;
    struct gcmp_arena arena;
};

/* True for what is stored under names of parameters, of the model or of a rank's own. */
static bool has_name(const struct gradcmp_stored *stored) {
    return stored->state != NULL && stored->name != NULL &&
           (stored->layout == GRADCMP_LAYOUT_MODEL || stored->layout == GRADCMP_LAYOUT_LOCAL);
}

static bool is_named(const struct gradcmp_stored *stored, const char *state) {
    return has_name(stored) && strcmp(stored->state, state) == 0;
}

/* Add a tensor's name; where that is one of a rank's, with the rank. */
static enum gradcmp_status add(struct names *names, const struct gradcmp_stored *stored,
                               bool *is_new, struct gradcmp_error *error) {
    const char *name = stored->name;
    const struct gradcmp_coords *at =
        stored->layout == GRADCMP_LAYOUT_LOCAL && stored->piece_count > 0 ? stored->pieces[0].coords
                                                                          : NULL;
    if (at != NULL) {
        name = gcmp_arena_format(&names->arena, "%d/%d/%d/%d/%d %s", (int)at->tp, (int)at->pp,
                                 (int)at->ep, (int)at->etp, (int)at->dp, name);
    }
    if (name == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_add_name(&names->map, name, is_new, error);
}

/* Take note of the names that have the state; *has_some: there is one, if without a name. */
static enum gradcmp_status collect(struct gradcmp_catalogue *catalogue, const char *state,
                                   struct names *names, bool *has_some,
                                   struct gradcmp_error *error) {
    *has_some = false;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        bool is_new;
        *has_some = *has_some || (stored->state != NULL && strcmp(stored->state, state) == 0);
        if (is_named(stored, state)) {
            GCMP_TRY(add(names, stored, &is_new, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status replace(struct gradcmp_catalogue *catalogue, struct names *names,
                                   struct gradcmp_error *error) {
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        struct gradcmp_stored *stored = &catalogue->stored[i];
        bool is_new = false;
        if (is_named(stored, MOMENTUM)) {
            GCMP_TRY(add(names, stored, &is_new, error));
        }
        if (is_new) {
            stored->state = STATE;
            first = count++ == 0 ? stored->name : first;
        }
    }
    return count == 0 ? GRADCMP_OK
                      : gcmp_catalogue_note(catalogue, error,
                                            "%zu parameters, such as %.160s, have no %s: their "
                                            "%s (Muon's, SGD's) is compared in its place",
                                            count, first, STATE, MOMENTUM);
}

/* Name another state of a parameter without the compared one; there may be more. */
static enum gradcmp_status note_others(struct gradcmp_catalogue *catalogue, const char *state,
                                       struct names *names, struct gradcmp_error *error) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        bool is_new = false;
        if (has_name(stored) && gcmp_is_optimizer_state(stored->state)) {
            GCMP_TRY(add(names, stored, &is_new, error));
        }
        if (is_new) {
            return gcmp_catalogue_note(catalogue, error,
                                       "of parameters that have no %.40s the optimizer keeps "
                                       "other states, such as %.40s of %.160s (--state)",
                                       state, stored->state, stored->name);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status stand_in(struct gcmp_participant *side, const char *state,
                                    bool is_default, struct gradcmp_error *error) {
    struct names names = {GCMP_MAP_INIT, GCMP_ARENA_INIT};
    bool has_some;
    if (side->checkpoint == NULL) {
        return GRADCMP_OK;
    }
    struct gradcmp_catalogue *catalogue = &side->checkpoint->catalogue;
    enum gradcmp_status status = collect(catalogue, state, &names, &has_some, error);
    if (status == GRADCMP_OK && has_some && is_default) {
        status = replace(catalogue, &names, error);
    }
    if (status == GRADCMP_OK && has_some) {
        status = note_others(catalogue, state, &names, error);
    }
    gcmp_map_free(&names.map);
    gcmp_arena_free(&names.arena);
    return status;
}

enum gradcmp_status gcmp_stand_in(struct gcmp_comparison *comparison, struct gradcmp_error *error) {
    const char *state = comparison->report->state;
    bool is_default = comparison->options->state == NULL && strcmp(state, STATE) == 0;
    if (strcmp(state, "param") == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(stand_in(&comparison->baseline, state, is_default, error));
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        GCMP_TRY(stand_in(&comparison->candidates[i], state, is_default, error));
    }
    return GRADCMP_OK;
}

/* Bytes of a key in front of its last word. */
static size_t bytes_before(const char *key) {
    const char *dot = strrchr(key, '.');
    return dot == NULL ? 0 : (size_t)(dot - key);
}

static bool ends_with(const char *key, const char *word) {
    const char *dot = strrchr(key, '.');
    return dot != NULL && strcmp(dot + 1, word) == 0;
}

static enum gradcmp_status find_beside(const struct gradcmp_catalogue *catalogue,
                                       struct gcmp_map *parameters, const char **key,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const char *own = catalogue->stored[i].key;
        if (ends_with(own, STATE) &&
            gcmp_map_add(parameters, own, bytes_before(own), 0, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    for (size_t i = 0; i < catalogue->stored_count && *key == NULL; i++) {
        const char *own = catalogue->stored[i].key;
        size_t ignored;
        bool is_sign = gcmp_is_factored(&catalogue->stored[i]) || ends_with(own, "exp_avg_lr_2");
        *key = is_sign && gcmp_map_find(parameters, own, bytes_before(own), &ignored) ? own : NULL;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_find_averaged_update(const struct gradcmp_catalogue *catalogue,
                                              const char **key, struct gradcmp_error *error) {
    struct gcmp_map parameters = GCMP_MAP_INIT;
    *key = NULL;
    enum gradcmp_status status = find_beside(catalogue, &parameters, key, error);
    gcmp_map_free(&parameters);
    return status;
}
