/* A tied module, or weight, under two names. */
#include "tied_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/model_names.h"
#include "base/twins.h"
#include "stand_ins.h"
#include "unshard/names.h"

/* What is under one rest of a name, that the other side does not have under the same name. */
struct rest {
    const struct gradcmp_stored *tied[2], *placed[2]; /* of the baseline, of the candidate */
    size_t tied_count, placed_count;
};

struct meeting {
    const char *state;
    struct gradcmp_catalogue *sides[2];
    struct gcmp_map names[2]; /* that have the state */
    struct gcmp_map index;    /* rest -> rests */
    struct rest *rests;
    struct gradcmp_error *error;
};

static bool has_tied(const struct gradcmp_catalogue *catalogue, const char *state) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (gcmp_is_of_state(stored, state) && gcmp_rest_of_tied(stored->name) != NULL) {
            return true;
        }
    }
    return false;
}

static enum gradcmp_status add_names(struct meeting *meeting, int side) {
    const struct gradcmp_catalogue *catalogue = meeting->sides[side];
    bool is_new;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (gcmp_is_of_state(stored, meeting->state)) {
            GCMP_TRY(gcmp_add_name(&meeting->names[side], stored->name, &is_new, meeting->error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_rest(struct meeting *meeting, int side,
                                    const struct gradcmp_stored *stored) {
    const char *tied = gcmp_rest_of_tied(stored->name);
    const char *text = tied != NULL ? tied : gcmp_rest_of_module(stored->name);
    size_t index;
    if (text == NULL ||
        gcmp_map_find(&meeting->names[1 - side], stored->name, strlen(stored->name), &index)) {
        return GRADCMP_OK;
    }
    if (gcmp_map_add(&meeting->index, text, strlen(text), meeting->index.count, &index) ==
        GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(meeting->error);
    }
    struct rest *rest = &meeting->rests[index];
    *(tied != NULL ? &rest->tied[side] : &rest->placed[side]) = stored;
    *(tied != NULL ? &rest->tied_count : &rest->placed_count) += 1;
    return GRADCMP_OK;
}

static enum gradcmp_status add_rests(struct meeting *meeting, int side) {
    const struct gradcmp_catalogue *catalogue = meeting->sides[side];
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (gcmp_is_of_state(&catalogue->stored[i], meeting->state)) {
            GCMP_TRY(add_rest(meeting, side, &catalogue->stored[i]));
        }
    }
    return GRADCMP_OK;
}

static bool same_shape(const struct gradcmp_stored *a, const struct gradcmp_stored *b) {
    unsigned ndim_a, ndim_b;
    const uint64_t *shape_a = gcmp_stored_shape(a, &ndim_a),
                   *shape_b = gcmp_stored_shape(b, &ndim_b);
    return gcmp_dims_equal(ndim_a, shape_a, ndim_b, shape_b);
}

/* What has two names: weights keep theirs where a file has them under both. */
enum tied { TIED_MODULE, TIED_WEIGHT };

static enum gradcmp_status rename_candidate(const struct meeting *meeting, enum tied tied,
                                            const char *from, const char *to) {
    struct gradcmp_catalogue *catalogue = meeting->sides[1];
    const char *name = gcmp_arena_dup(catalogue->arena, to); /* `to` may be the baseline's */
    if (name == NULL) {
        GCMP_FAIL_MEMORY(meeting->error);
    }
    GCMP_TRY(gcmp_catalogue_note(catalogue, meeting->error,
                                 "%.200s is compared as %.200s: the tied %s under the other "
                                 "side's name",
                                 from, to, tied == TIED_MODULE ? "module" : "weight"));
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        struct gradcmp_stored *stored = &catalogue->stored[i];
        bool is_renamed = gcmp_is_parameter_state(stored->state) &&
                          (tied == TIED_MODULE || strcmp(stored->state, "param") != 0);
        if (is_renamed && strcmp(stored->name, from) == 0) {
            stored->name = name;
        }
    }
    return GRADCMP_OK;
}

/* Rename what one tied name and one place's name of the two sides leave no doubt about. */
static enum gradcmp_status meet_modules(struct meeting *meeting) {
    for (int side = 0; side < 2; side++) {
        GCMP_TRY(add_rests(meeting, side));
    }
    for (size_t i = 0; i < meeting->index.count; i++) {
        const struct rest *rest = &meeting->rests[i];
        int side = rest->tied[0] != NULL ? 0 : 1;
        const struct gradcmp_stored *tied = rest->tied[side], *placed = rest->placed[1 - side];
        if (rest->tied_count == 1 && rest->placed_count == 1 && placed != NULL &&
            same_shape(tied, placed)) {
            GCMP_TRY(side == 0 ? rename_candidate(meeting, TIED_MODULE, placed->name, tied->name)
                               : rename_candidate(meeting, TIED_MODULE, tied->name, placed->name));
        }
    }
    return GRADCMP_OK;
}

static bool has_state(const struct meeting *meeting, int side, const char *name) {
    size_t ignored;
    return gcmp_map_find(&meeting->names[side], name, strlen(name), &ignored);
}

/* Of the names that a file has one weight under, those that have the state on one side alone. */
struct group {
    const char *alone[2];
    size_t counts[2];
};

static enum gradcmp_status find_groups(const struct meeting *meeting, int side,
                                       struct group *groups) {
    const struct gradcmp_catalogue *catalogue = meeting->sides[side];
    struct gcmp_twin *twins;
    GCMP_TRY(gcmp_twins_find(catalogue, 0, catalogue->stored_count, &twins, meeting->error));
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const char *name = catalogue->stored[i].name;
        if (gcmp_is_of_state(&catalogue->stored[i], "param") &&
            has_state(meeting, 0, name) != has_state(meeting, 1, name)) {
            int owner = has_state(meeting, 1, name);
            struct group *group = &groups[twins[i].first];
            group->alone[owner] = name;
            group->counts[owner]++;
        }
    }
    free(twins);
    return GRADCMP_OK;
}

/* Where a side's file shows that both sides' names are one weight's, rename what the candidate's
 * optimizer keeps of it. */
static enum gradcmp_status meet_weights(struct meeting *meeting, int side) {
    const size_t count = meeting->sides[side]->stored_count;
    struct group *groups = calloc(count + 1, sizeof *groups);
    bool is_new;
    if (groups == NULL) {
        GCMP_FAIL_MEMORY(meeting->error);
    }
    enum gradcmp_status status = find_groups(meeting, side, groups);
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        const struct group *group = &groups[i];
        if (group->counts[0] == 1 && group->counts[1] == 1) {
            status = rename_candidate(meeting, TIED_WEIGHT, group->alone[1], group->alone[0]);
            if (status == GRADCMP_OK) {
                status =
                    gcmp_add_name(&meeting->names[1], group->alone[0], &is_new, meeting->error);
            }
        }
    }
    free(groups);
    return status;
}

static enum gradcmp_status meet(struct meeting *meeting) {
    GCMP_TRY(add_names(meeting, 0));
    GCMP_TRY(add_names(meeting, 1));
    if (has_tied(meeting->sides[0], meeting->state) !=
        has_tied(meeting->sides[1], meeting->state)) {
        GCMP_TRY(meet_modules(meeting));
    }
    if (strcmp(meeting->state, "param") == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(meet_weights(meeting, 0));
    return meet_weights(meeting, 1);
}

static enum gradcmp_status meet_pair(struct gradcmp_catalogue *a, struct gradcmp_catalogue *b,
                                     const char *state, struct gradcmp_error *error) {
    struct meeting meeting = {.state = state,
                              .sides = {a, b},
                              .names = {GCMP_MAP_INIT, GCMP_MAP_INIT},
                              .index = GCMP_MAP_INIT,
                              .error = error};
    meeting.rests = calloc(a->stored_count + b->stored_count + 1, sizeof *meeting.rests);
    if (meeting.rests == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = meet(&meeting);
    gcmp_map_free(&meeting.names[0]);
    gcmp_map_free(&meeting.names[1]);
    gcmp_map_free(&meeting.index);
    free(meeting.rests);
    return status;
}

enum gradcmp_status gcmp_meet_tied_names(struct gcmp_comparison *comparison,
                                         struct gradcmp_error *error) {
    struct gradcmp_catalogue *baseline = &comparison->baseline.checkpoint->catalogue;
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        struct gradcmp_checkpoint *candidate = comparison->candidates[i].checkpoint;
        if (candidate != NULL) {
            GCMP_TRY(meet_pair(baseline, &candidate->catalogue, comparison->report->state, error));
        }
    }
    return GRADCMP_OK;
}
