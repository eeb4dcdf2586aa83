/* Finds weights that have the compared state on neither side, by the models that both sides make,
 * and where these number their parameters, by shapes. */
#include "stateless.h"

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
#include "unshard/names.h"

/* What was found of one pair. */
struct stateless {
    struct gcmp_comparison *comparison;
    struct gradcmp_pair_report *pair;
    struct gcmp_name_filter *filter;
    const char *state;
    struct gcmp_arena arena; /* places */
    struct gcmp_map names;   /* of the state on either side, and of what was counted */
    struct gcmp_map places;  /* struct gcmp_place of one side's weights among these */
    const char *first;       /* NULL: the count is one of shapes */
    size_t count;
    uint64_t elems;
    struct gradcmp_error *error;
};

static const char *side_name(const struct stateless *found, const struct gcmp_participant *side) {
    return side == &found->comparison->baseline ? "baseline" : "candidate";
}

/* --- a quick look --- */

/* By stored names: *lack is false where whatever has a state has the compared one. */
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
            *lack = gcmp_is_parameter_state(stored->state) &&
                    (stored->layout != GRADCMP_LAYOUT_MODEL ||
                     !gcmp_map_find(&names, stored->name, strlen(stored->name), &ignored));
        }
    }
    gcmp_map_free(&names);
    return status;
}

/* --- the models --- */

/* Get the model of one state of a side, or NULL where there is none. Weights that cannot be put
 * together are told; of a state that nobody asked for, another may tell the same. */
static enum gradcmp_status find_model(const struct stateless *found,
                                      const struct gcmp_participant *side, const char *state,
                                      const struct gradcmp_model **model) {
    struct gradcmp_error refusal = {0};
    *model = NULL;
    if (!gcmp_checkpoint_has_state(side->checkpoint, state)) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gcmp_checkpoint_model(side->checkpoint, state, model, &refusal);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(found->error);
    }
    if (status != GRADCMP_OK) {
        *model = NULL;
    }
    return status == GRADCMP_OK || strcmp(state, "param") != 0
               ? GRADCMP_OK
               : gcmp_pair_note(found->comparison, found->pair, found->error,
                                "%s: which weights have no %.40s is not quite known, since "
                                "weights cannot be put together: %.200s",
                                side_name(found, side), found->state, refusal.message);
}

/* Find where a parameter lies; false where that is in several places, or it is decoded first. */
static bool find_place(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_parameter *parameter, struct gcmp_place *place) {
    if (parameter->slab_count != 1 || parameter->elem_count == 0) {
        return false;
    }
    const struct gradcmp_slab *slab = &parameter->slabs[0];
    const struct gradcmp_source *source = &catalogue->sources[slab->source];
    uint64_t offset = (uint64_t)slab->offset_elems;
    place->file = source->file;
    place->elems = parameter->elem_count;
    return source->kind == GRADCMP_SOURCE_RANGE &&
           gcmp_mul_u64(offset, gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype), &offset) &&
           gcmp_add_u64(source->offset_bytes, offset, &place->first_byte);
}

static enum gradcmp_status add_place(struct stateless *found, const struct gcmp_place *place) {
    struct gcmp_place *own = gcmp_arena_alloc(&found->arena, 1, sizeof *own);
    if (own == NULL) {
        GCMP_FAIL_MEMORY(found->error);
    }
    *own = *place;
    if (gcmp_map_add(&found->places, own, sizeof *own, 0, NULL) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(found->error);
    }
    return GRADCMP_OK;
}

static bool has_name(const struct stateless *found, const char *name) {
    size_t ignored;
    return name != NULL && gcmp_map_find(&found->names, name, strlen(name), &ignored);
}

/* True for what is no weight of its own: a buffer, or a second name of a weight. */
static bool is_other(const struct stateless *found, const char *name) {
    return gcmp_name_is_norm_buffer(name) || has_name(found, gcmp_name_of_own(name));
}

/* Count what has a name that neither side's state has, once. */
static enum gradcmp_status count_name(struct stateless *found, const char *name, uint64_t elems) {
    bool is_new;
    if (is_other(found, name) || !gcmp_name_filter_takes(found->filter, name)) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_add_name(&found->names, name, &is_new, found->error));
    if (is_new) {
        found->first = found->count++ == 0 ? name : found->first;
        found->elems = gcmp_add_saturated(found->elems, elems);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status count_weight(struct stateless *found,
                                        const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_parameter *weight) {
    struct gcmp_place place;
    bool has_place = find_place(catalogue, weight, &place);
    size_t ignored;
    if (has_place && gcmp_map_find(&found->places, &place, sizeof place, &ignored)) {
        return GRADCMP_OK;
    }
    GCMP_TRY(count_name(found, weight->name, weight->elem_count));
    return has_place ? add_place(found, &place) : GRADCMP_OK;
}

/* Count weights that cannot be put together, as they are stored under the model's names. */
static enum gradcmp_status count_stored(struct stateless *found,
                                        const struct gradcmp_catalogue *catalogue) {
    struct gcmp_name *names;
    enum gradcmp_status status = GRADCMP_OK;
    GCMP_TRY(gcmp_names_read(catalogue, "param", &found->arena, &names, found->error));
    for (size_t i = 0, at = 0; i < catalogue->stored_count && status == GRADCMP_OK; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        unsigned ndim;
        const uint64_t *shape = gcmp_stored_shape(stored, &ndim);
        uint64_t elems;
        if (gcmp_is_of_state(stored, "param") && gcmp_product(shape, ndim, &elems)) {
            status = count_name(found, names[at].text, elems);
        }
        at += gcmp_is_of_state(stored, "param");
    }
    free(names);
    return status;
}

/* Count what one model of a side has, and neither side's state. */
static enum gradcmp_status count_model(struct stateless *found, const struct gcmp_participant *side,
                                       const struct gradcmp_model *model) {
    const struct gradcmp_catalogue *catalogue = &side->checkpoint->catalogue;
    struct gcmp_place place;
    gcmp_map_free(&found->places); /* files are numbered on each side */
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *weight = &model->parameters[i];
        if (has_name(found, weight->name) && find_place(catalogue, weight, &place)) {
            GCMP_TRY(add_place(found, &place));
        }
    }
    for (size_t i = 0; i < model->count; i++) {
        GCMP_TRY(count_weight(found, catalogue, &model->parameters[i]));
    }
    return GRADCMP_OK;
}

/* Count by a side's weights; where it has none, by the other states that it keeps. */
static enum gradcmp_status count_side(struct stateless *found,
                                      const struct gcmp_participant *side) {
    const struct gradcmp_checkpoint *checkpoint = side->checkpoint;
    const struct gradcmp_model *model;
    GCMP_TRY(find_model(found, side, "param", &model));
    if (gcmp_checkpoint_has_state(checkpoint, "param")) {
        return model != NULL ? count_model(found, side, model)
                             : count_stored(found, &checkpoint->catalogue);
    }
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const char *state = checkpoint->states[i];
        if (strcmp(state, found->state) != 0) {
            GCMP_TRY(find_model(found, side, state, &model));
            GCMP_TRY(model == NULL ? GRADCMP_OK : count_model(found, side, model));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status count_by_name(struct stateless *found,
                                         const struct gcmp_participant *const sides[2]) {
    bool is_new;
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < sides[side]->model->count; i++) {
            GCMP_TRY(gcmp_add_name(&found->names, sides[side]->model->parameters[i].name, &is_new,
                                   found->error));
        }
    }
    GCMP_TRY(count_side(found, sides[0]));
    return count_side(found, sides[1]);
}

/* --- numbers: shapes tell how many weights there are beside the numbered ones --- */

/* A weight, or a number that has the state. */
struct shaped {
    const struct gradcmp_parameter *parameter;
    bool is_number, is_taken; /* by the filter */
};

/* Those of one shape, and of all. */
struct shapes {
    size_t weights, taken, numbers;
};

static int compare_shaped(const void *left, const void *right) {
    const struct gradcmp_parameter *a = ((const struct shaped *)left)->parameter,
                                   *b = ((const struct shaped *)right)->parameter;
    return gcmp_order_shapes(a->shape, a->ndim, b->shape, b->ndim);
}

/* Gather a side's weights, each place once, behind the numbers. */
static enum gradcmp_status gather(struct stateless *found, const struct gcmp_participant *side,
                                  const struct gradcmp_model *weights, struct shaped *all,
                                  size_t *count) {
    struct gcmp_place place;
    size_t ignored;
    for (size_t i = 0; i < side->model->count; i++) {
        all[(*count)++] = (struct shaped){&side->model->parameters[i], true, false};
    }
    gcmp_map_free(&found->places);
    for (size_t i = 0; i < weights->count; i++) {
        const struct gradcmp_parameter *weight = &weights->parameters[i];
        bool has_place = find_place(&side->checkpoint->catalogue, weight, &place);
        if (gcmp_name_is_norm_buffer(weight->name) ||
            (has_place && gcmp_map_find(&found->places, &place, sizeof place, &ignored))) {
            continue;
        }
        GCMP_TRY(has_place ? add_place(found, &place) : GRADCMP_OK);
        all[(*count)++] =
            (struct shaped){weight, false, gcmp_name_filter_takes(found->filter, weight->name)};
    }
    qsort(all, *count, sizeof *all, compare_shaped);
    return GRADCMP_OK;
}

static struct shapes count_run(const struct shaped *all, size_t count, size_t *run) {
    struct shapes shapes = {0, 0, 0};
    *run = 0;
    while (*run < count && compare_shaped(all, &all[*run]) == 0) {
        shapes.numbers += all[*run].is_number;
        shapes.weights += !all[*run].is_number;
        shapes.taken += all[*run].is_taken;
        ++*run;
    }
    return shapes;
}

/* Count, of each shape, the weights that are more than the numbers. Both sides have the same
 * numbers: of what each tells, more counts. */
static void count_shapes(struct stateless *found, const struct shaped *all, size_t count) {
    size_t lacking = 0, run;
    uint64_t elems = 0;
    for (size_t i = 0; i < count; i += run) {
        struct shapes shapes = count_run(&all[i], count - i, &run);
        size_t more = shapes.weights > shapes.numbers ? shapes.weights - shapes.numbers : 0;
        more = more < shapes.taken ? more : shapes.taken;
        lacking += more;
        for (size_t j = 0; j < more; j++) {
            elems = gcmp_add_saturated(elems, all[i].parameter->elem_count);
        }
    }
    if (elems > found->elems) {
        found->count = lacking;
        found->elems = elems;
    }
}

static enum gradcmp_status count_by_shape(struct stateless *found,
                                          const struct gcmp_participant *side) {
    const struct gradcmp_model *weights;
    size_t count = 0;
    GCMP_TRY(find_model(found, side, "param", &weights));
    if (weights == NULL) {
        return GRADCMP_OK;
    }
    struct shaped *all = calloc(side->model->count + weights->count + 1, sizeof *all);
    if (all == NULL) {
        GCMP_FAIL_MEMORY(found->error);
    }
    enum gradcmp_status status = gather(found, side, weights, all, &count);
    if (status == GRADCMP_OK) {
        count_shapes(found, all, count);
    }
    free(all);
    return status;
}

/* --- what is told --- */

static enum gradcmp_status tell(const struct stateless *found) {
    if (found->count == 0) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(
        found->comparison, found->pair, found->error,
        "not compared: %zu tensor%s of the model (%" PRIu64
        " elements) that %s no %.40s on either side, %s%.160s: buffers, or weights that are "
        "frozen, tied, without a gradient, or of an optimizer that keeps none",
        found->count, found->count == 1 ? "" : "s", found->elems,
        found->count == 1 ? "has" : "have", found->state,
        found->first == NULL ? "by the shapes of what has one" : "such as ",
        found->first == NULL ? "" : found->first);
}

static enum gradcmp_status count_stateless(struct stateless *found,
                                           const struct gcmp_participant *const sides[2]) {
    const struct gradcmp_catalogue *const catalogues[] = {&sides[0]->checkpoint->catalogue,
                                                          &sides[1]->checkpoint->catalogue};
    bool lack;
    GCMP_TRY(may_lack(catalogues, found->state, &lack, found->error));
    if (!lack) {
        return GRADCMP_OK;
    }
    if (catalogues[0]->number_groups == NULL || catalogues[1]->number_groups == NULL) {
        return count_by_name(found, sides);
    }
    GCMP_TRY(count_by_shape(found, sides[0]));
    return count_by_shape(found, sides[1]);
}

enum gradcmp_status gcmp_note_stateless(struct gcmp_comparison *comparison,
                                        struct gradcmp_pair_report *pair,
                                        struct gcmp_name_filter *filter,
                                        struct gradcmp_error *error) {
    const struct gcmp_participant *const sides[] = {
        &comparison->baseline, &comparison->candidates[pair - comparison->report->pairs]};
    struct stateless found = {.comparison = comparison,
                              .pair = pair,
                              .filter = filter,
                              .state = comparison->report->state,
                              .arena = GCMP_ARENA_INIT,
                              .names = GCMP_MAP_INIT,
                              .places = GCMP_MAP_INIT,
                              .error = error};
    enum gradcmp_status status = count_stateless(&found, sides);
    pair->stateless = found.count;
    pair->stateless_elems = found.elems;
    if (status == GRADCMP_OK) {
        status = tell(&found);
    }
    gcmp_map_free(&found.places);
    gcmp_map_free(&found.names);
    gcmp_arena_free(&found.arena);
    return status;
}
