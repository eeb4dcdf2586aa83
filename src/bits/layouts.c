/* Checkpoints of different layouts: what tells them apart, and parameters in their unsharded form.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "bits/match.h"
#include "engine/engine.h"
#include "unshard/names.h"

/* --- telling --- */

static bool differ(uint32_t a, uint32_t b) {
    return a != 0 && b != 0 && a != b;
}

static bool parallel_differs(const struct gradcmp_parallel *a, const struct gradcmp_parallel *b) {
    return differ(a->tp, b->tp) || differ(a->pp, b->pp) || differ(a->vp, b->vp) ||
           differ(a->dp, b->dp) || differ(a->cp, b->cp) || differ(a->ep, b->ep) ||
           differ(a->etp, b->etp) || differ(a->world, b->world);
}

static bool names_differ(const char *a, const char *b) {
    return a != b && (a == NULL || b == NULL || strcmp(a, b) != 0);
}

bool gcmp_bits_settings_differ(const struct gcmp_bits_items *a, const struct gcmp_bits_items *b) {
    for (size_t i = 0; i < a->count; i++) {
        const struct gcmp_bits_item *x = &a->list[i];
        if (x->kind != GCMP_BITS_VALUE || !gcmp_bits_has_type(x, "int") ||
            !gcmp_bits_is_layout_size(x->path)) {
            continue;
        }
        const struct gcmp_bits_item *y = gcmp_bits_find_run(b, x->path).list;
        if (y != NULL && gcmp_bits_has_type(y, "int") &&
            (y->length_bytes != x->length_bytes ||
             memcmp(y->bytes, x->bytes, x->length_bytes) != 0)) {
            return true;
        }
    }
    return false;
}

void gcmp_bits_name_layouts(struct gcmp_bits_match *match, const char *const formats[2],
                            const char *const names[2]) {
    match->formats_differ = names_differ(formats[0], formats[1]);
    match->format = !match->formats_differ && names_differ(names[0], names[1]) ? formats[0] : NULL;
    match->layout_names[0] = names[0];
    match->layout_names[1] = names[1];
    match->layouts_differ = match->layouts_differ || match->formats_differ || match->format != NULL;
}

void gcmp_bits_compare_layouts(struct gcmp_bits_match *match) {
    const struct gradcmp_catalogue *a = gcmp_bits_side_catalogue(match->a);
    const struct gradcmp_catalogue *b = gcmp_bits_side_catalogue(match->b);
    match->layouts_differ = gcmp_bits_settings_differ(&match->a->items, &match->b->items);
    if (a != NULL && b != NULL) {
        const char *formats[] = {a->format->name, b->format->name};
        const char *names[] = {a->layout_name, b->layout_name};
        gcmp_bits_name_layouts(match, formats, names);
        match->layouts_differ =
            match->layouts_differ || parallel_differs(&a->parallel, &b->parallel);
        match->vocab = a->vocab > b->vocab ? a->vocab : b->vocab;
    }
}

/* --- unsharded parameters --- */

/* True where the other side stores an item of that path in the same shape, as boxes of the model's
 * tensor. */
static bool is_stored_alike(const struct gcmp_bits_item *item,
                            const struct gcmp_bits_items *others) {
    const struct gcmp_bits_item *other = gcmp_bits_find_run(others, item->path).list;
    return other != NULL && other->model_layout && item->model_layout &&
           gcmp_dims_equal(other->ndim, other->shape, item->ndim, item->shape);
}

/* True where a state of a side has tensors that the other does not store alike. */
static bool needs_model(const struct gcmp_bits_side *side, const struct gcmp_bits_side *other,
                        const char *state) {
    for (size_t i = 0; i < side->items.count; i++) {
        const struct gcmp_bits_item *item = &side->items.list[i];
        if (item->state != NULL && strcmp(item->state, state) == 0 &&
            !is_stored_alike(item, &other->items)) {
            return true;
        }
    }
    return false;
}

static bool has_state(const struct gcmp_bits_side *side, const char *state) {
    return side->checkpoint != NULL && gcmp_checkpoint_has_state(side->checkpoint, state);
}

bool gcmp_bits_by_model(const struct gcmp_bits_match *match, const struct gcmp_bits_item *item) {
    for (size_t i = 0; item->state != NULL && i < match->state_count; i++) {
        if (strcmp(match->states[i], item->state) == 0) {
            return true;
        }
    }
    return false;
}

/* Note the states of a side that are compared unsharded: those that both have as parameters, and
 * that are not stored alike. */
static enum gradcmp_status find_states(struct gcmp_bits_match *match, struct gradcmp_error *error) {
    const struct gradcmp_checkpoint *a = match->a->checkpoint;
    size_t count = a == NULL ? 0 : a->state_count;
    match->states = gcmp_arena_alloc(match->arena, count + 1, sizeof *match->states); /* steps */
    if (match->states == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const char *state = a->states[i];
        if (has_state(match->b, state) &&
            (needs_model(match->a, match->b, state) || needs_model(match->b, match->a, state))) {
            match->states[match->state_count++] = state;
        }
    }
    return GRADCMP_OK;
}

/* The item of an unsharded parameter. */
static struct gcmp_bits_item *item_of(struct gcmp_bits_match *match,
                                      const struct gcmp_bits_side *side,
                                      const struct gradcmp_parameter *parameter) {
    struct gcmp_bits_item *item = gcmp_arena_alloc(match->arena, 1, sizeof *item);
    if (item == NULL) {
        return NULL;
    }
    bool is_weight = strcmp(parameter->state, "param") == 0;
    item->kind = GCMP_BITS_TENSOR;
    item->path = is_weight ? parameter->name
                           : gcmp_arena_format(match->arena, "optimizer.state.%s.%s",
                                               parameter->state, parameter->name);
    item->type = gradcmp_dtype_name((enum gradcmp_dtype)parameter->dtype);
    item->parameter = parameter;
    item->catalogue = gcmp_bits_side_catalogue(side);
    item->shape = parameter->shape;
    item->state = parameter->state;
    item->ndim = parameter->ndim;
    item->dtype = parameter->dtype;
    item->elem_bytes = (uint8_t)gcmp_dtype_bytes((enum gradcmp_dtype)parameter->dtype);
    item->group = (uint8_t)gcmp_bits_group_of(parameter->name, parameter->state);
    return item->path == NULL ? NULL : item;
}

/* The vocabulary is padded to what divides among ranks: rows that one side lacks may be padding,
 * but where that side then has fewer of them than words. */
static bool may_be_padded(const struct gcmp_bits_match *match, const struct gradcmp_parameter *a,
                          const struct gradcmp_parameter *b) {
    return a->vocab_rows && b->vocab_rows && a->ndim == b->ndim && a->ndim > 0 &&
           a->dtype == b->dtype && a->shape[0] != b->shape[0] && a->shape[0] >= match->vocab &&
           b->shape[0] >= match->vocab &&
           memcmp(a->shape + 1, b->shape + 1, (a->ndim - 1U) * sizeof *a->shape) == 0;
}

static int look_for_bits(void *user, const void *elems, size_t bytes) {
    const unsigned char *at = elems;
    bool *has_bits = user;
    for (size_t i = 0; i < bytes && !*has_bits; i++) {
        *has_bits = at[i] != 0;
    }
    return 0;
}

/* Read one copy's elements from `first` on: *is_zero where all of them are. */
static enum gradcmp_status read_rest(const struct gcmp_bits_item *item, uint64_t first,
                                     uint32_t copy, bool *is_zero, struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = item->parameter;
    struct gradcmp_tally tally = {0};
    struct gradcmp_error side_error = {0};
    bool has_bits = false, is_float = gcmp_dtype_is_float((enum gradcmp_dtype)parameter->dtype);
    struct gcmp_job job = {.a = {.catalogue = item->catalogue,
                                 .parameter = parameter,
                                 .first_elem = first,
                                 .copy = copy},
                           .elems = parameter->elem_count - first,
                           .tallies = &tally,
                           .sink = is_float ? NULL : look_for_bits,
                           .sink_user = &has_bits};
    struct gcmp_engine_options engine = {.threads = 1, .buffer_bytes = 1};
    GCMP_TRY(gcmp_engine_run(&job, 1, &engine, &side_error, 1, error));
    *is_zero = is_float ? tally.zeros_a == job.elems : !has_bits;
    return GRADCMP_OK;
}

static enum gradcmp_status is_zero_beyond(const struct gcmp_bits_item *item, uint64_t first,
                                          bool *out, struct gradcmp_error *error) {
    *out = true;
    for (uint32_t copy = 0; copy < item->parameter->copy_count && *out; copy++) {
        GCMP_TRY(read_rest(item, first, copy, out, error));
    }
    return GRADCMP_OK;
}

/* What one side has beyond the rows of the other: padding, or, where it holds values and nothing
 * says how many words there are, words that the other side has lost. */
static enum gradcmp_status pair_rest(struct gcmp_bits_match *match,
                                     const struct gcmp_bits_item *const sides[2], uint64_t rows,
                                     uint64_t elems, struct gradcmp_error *error) {
    bool is_zero;
    struct gcmp_bits_item *rest = gcmp_arena_alloc(match->arena, 2, sizeof *rest);
    const char *path = gcmp_arena_format(match->arena, "%s/<padding>", sides[0]->path);
    if (rest == NULL || path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t side = 0; side < 2; side++) {
        rest[side] = *sides[side];
        rest[side].path = path;
    }
    if (gcmp_bits_is_ignored(match->options, &rest[0])) {
        return gcmp_bits_add_ignored(match, path, error);
    }
    GCMP_TRY(
        is_zero_beyond(sides[sides[0]->shape[0] < sides[1]->shape[0]], elems, &is_zero, error));
    if (!is_zero && match->odd_count++ == 0) {
        match->odd_rows = sides[0]->path;
        match->odd_row = rows;
    }
    if (!is_zero && match->vocab == 0) {
        return gcmp_bits_pair(match, &rest[0], &rest[1], error);
    }
    struct gcmp_bits_entry padding = {.path = path,
                                      .a = sides[0],
                                      .b = sides[1],
                                      .group = GCMP_BITS_LAYOUT,
                                      .how = GCMP_BITS_LEFT_OUT};
    return gcmp_bits_add_entry(match, &padding, error);
}

static enum gradcmp_status pair_padded(struct gcmp_bits_match *match, struct gcmp_bits_item *x,
                                       struct gcmp_bits_item *y, struct gradcmp_error *error) {
    const struct gcmp_bits_item *const sides[] = {x, y};
    if (gcmp_bits_is_ignored(match->options, x)) {
        return gcmp_bits_add_ignored(match, x->path, error);
    }
    const struct gradcmp_parameter *shorter =
        x->shape[0] < y->shape[0] ? x->parameter : y->parameter;
    struct gcmp_bits_difference *difference =
        gcmp_bits_difference_make(match->arena, shorter->ndim, shorter->shape, x->elem_bytes);
    if (difference == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_bits_entry entry = {.path = x->path,
                                    .a = x,
                                    .b = y,
                                    .group = x->group,
                                    .difference = difference,
                                    .elems = shorter->elem_count};
    GCMP_TRY(gcmp_bits_add_entry(match, &entry, error));
    return pair_rest(match, sides, shorter->shape[0], shorter->elem_count, error);
}

static enum gradcmp_status pair_parameters(struct gcmp_bits_match *match,
                                           const struct gradcmp_parameter *a,
                                           const struct gradcmp_parameter *b,
                                           struct gradcmp_error *error) {
    struct gcmp_bits_item *x = a == NULL ? NULL : item_of(match, match->a, a);
    struct gcmp_bits_item *y = b == NULL ? NULL : item_of(match, match->b, b);
    if ((a != NULL && x == NULL) || (b != NULL && y == NULL)) {
        GCMP_FAIL_MEMORY(error);
    }
    if (x == NULL || y == NULL) {
        return gcmp_bits_lone(match, x == NULL ? y : x, x == NULL ? 0 : 1, error);
    }
    return may_be_padded(match, a, b) ? pair_padded(match, x, y, error)
                                      : gcmp_bits_pair(match, x, y, error);
}

static enum gradcmp_status pair_state(struct gcmp_bits_match *match, const char *state,
                                      struct gradcmp_error *error) {
    const struct gradcmp_model *a, *b;
    GCMP_TRY(gcmp_checkpoint_model(match->a->checkpoint, state, &a, error));
    GCMP_TRY(gcmp_checkpoint_model(match->b->checkpoint, state, &b, error));
    size_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        const struct gradcmp_parameter *x = i < a->count ? &a->parameters[i] : NULL;
        const struct gradcmp_parameter *y = j < b->count ? &b->parameters[j] : NULL;
        int order = x == NULL ? 1 : y == NULL ? -1 : strcmp(x->name, y->name);
        GCMP_TRY(pair_parameters(match, order <= 0 ? x : NULL, order >= 0 ? y : NULL, error));
        i += order <= 0;
        j += order >= 0;
    }
    return GRADCMP_OK;
}

/* --- steps --- */

/* The step of one parameter, as a catalogue stores it. */
struct step {
    const char *name; /* of the parameter, canonical; NULL: of no use */
    const struct gradcmp_stored *stored;
};

struct steps {
    struct step *list; /* by name, in the match's arena */
    size_t count;
};

static int compare_steps(const void *left, const void *right) {
    const struct step *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* The steps of a side that are one number each, under the model's names. */
static enum gradcmp_status find_steps(struct gcmp_bits_match *match,
                                      const struct gradcmp_catalogue *catalogue,
                                      struct steps *steps, struct gradcmp_error *error) {
    struct gcmp_name *names;
    size_t at = 0;
    GCMP_TRY(gcmp_names_read(catalogue, "step", match->arena, &names, error));
    steps->list = gcmp_arena_alloc(match->arena, catalogue->stored_count, sizeof *steps->list);
    for (size_t i = 0; steps->list != NULL && i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        uint64_t elems = 0;
        if (gcmp_is_of_state(stored, "step")) {
            const char *name = names[at++].text;
            if (stored->piece_count > 0 && stored->dtype != GRADCMP_DTYPE_NONE &&
                gcmp_product(stored->shape, stored->ndim, &elems) && elems == 1) {
                steps->list[steps->count++] = (struct step){name, stored};
            }
        }
    }
    free(names);
    if (steps->list == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    qsort(steps->list, steps->count, sizeof *steps->list, compare_steps);
    return GRADCMP_OK;
}

/* The item of a step: its first piece, which ranks repeat. NULL without memory. */
static struct gcmp_bits_item *step_item(struct gcmp_bits_match *match,
                                        const struct gcmp_bits_side *side,
                                        const struct step *step) {
    const struct gradcmp_stored *stored = step->stored;
    struct gradcmp_parameter *parameter = gcmp_arena_alloc(match->arena, 1, sizeof *parameter);
    struct gradcmp_slab *slab = gcmp_arena_alloc(match->arena, 1, sizeof *slab);
    int64_t *stride = gcmp_arena_alloc(match->arena, stored->ndim + 1U, sizeof *stride);
    if (parameter == NULL || slab == NULL || stride == NULL) {
        return NULL;
    }
    *slab = (struct gradcmp_slab){.start = stored->pieces[0].start,
                                  .extent = stored->pieces[0].extent,
                                  .stride = stride,
                                  .offset_elems = stored->pieces[0].offset_elems,
                                  .source = stored->pieces[0].source};
    *parameter = (struct gradcmp_parameter){.name = step->name,
                                            .state = "step",
                                            .shape = stored->shape,
                                            .slabs = slab,
                                            .slab_count = 1,
                                            .copy_count = 1,
                                            .elem_count = 1,
                                            .ndim = stored->ndim,
                                            .dtype = stored->dtype};
    return item_of(match, side, parameter);
}

/* Formats keep steps in other places: compare them by parameter, where both sides have any. */
static enum gradcmp_status pair_steps(struct gcmp_bits_match *match, struct gradcmp_error *error) {
    const struct gcmp_bits_side *sides[] = {match->a, match->b};
    struct steps steps[2] = {{NULL, 0}, {NULL, 0}};
    for (size_t side = 0; side < 2; side++) {
        const struct gradcmp_catalogue *catalogue = gcmp_bits_side_catalogue(sides[side]);
        if (!match->formats_differ || catalogue == NULL) {
            return GRADCMP_OK;
        }
        GCMP_TRY(find_steps(match, catalogue, &steps[side], error));
    }
    if (steps[0].count == 0 || steps[1].count == 0) {
        return GRADCMP_OK;
    }
    match->states[match->state_count++] = "step";
    for (size_t i = 0, j = 0; i < steps[0].count || j < steps[1].count;) {
        int order = i == steps[0].count   ? 1
                    : j == steps[1].count ? -1
                                          : compare_steps(&steps[0].list[i], &steps[1].list[j]);
        struct gcmp_bits_item *a = NULL, *b = NULL;
        if ((order <= 0 && (a = step_item(match, match->a, &steps[0].list[i])) == NULL) ||
            (order >= 0 && (b = step_item(match, match->b, &steps[1].list[j])) == NULL)) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(a != NULL && b != NULL
                     ? gcmp_bits_pair(match, a, b, error)
                     : gcmp_bits_lone(match, a == NULL ? b : a, a == NULL ? 0 : 1, error));
        i += order <= 0;
        j += order >= 0;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_pair_models(struct gcmp_bits_match *match,
                                          struct gradcmp_error *error) {
    GCMP_TRY(find_states(match, error));
    for (size_t i = 0; i < match->state_count; i++) {
        GCMP_TRY(pair_state(match, match->states[i], error));
    }
    return pair_steps(match, error);
}
