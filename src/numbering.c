/* Numbers of optimizers, named by the other side. */
#include "numbering.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/model_names.h"
#include "formats/optimizer_ids.h"
#include "number_names.h"

/* The two sides while one is named. */
struct naming {
    const struct gradcmp_catalogue *named;
    struct gradcmp_catalogue *numbered;
    struct gcmp_ids ids;
    struct gcmp_ids_weight *weights;
    struct gradcmp_error *error;
};

static bool has_numbers(const struct gradcmp_catalogue *catalogue) {
    return catalogue->number_groups != NULL;
}

/* A tensor that has the shape of its parameter. */
static bool is_of_state(const struct gradcmp_stored *stored, const char *state) {
    return stored->state != NULL && strcmp(stored->state, state) == 0 &&
           stored->layout == GRADCMP_LAYOUT_MODEL &&
           gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype);
}

/* Take the names and shapes of one state of the named side. */
static void take_weights(struct naming *naming, const char *state) {
    const struct gradcmp_catalogue *named = naming->named;
    naming->ids.weight_count = 0;
    for (size_t i = 0; i < named->stored_count; i++) {
        const struct gradcmp_stored *stored = &named->stored[i];
        if (is_of_state(stored, state) && !gcmp_name_is_norm_buffer(stored->name)) {
            struct gcmp_ids_weight *weight = &naming->weights[naming->ids.weight_count++];
            *weight = (struct gcmp_ids_weight){.name = stored->name};
            weight->shape = gcmp_stored_shape(stored, &weight->ndim);
        }
    }
}

/* The group of each number, and the shape of its state; `entries` has one for each number. */
static void take_numbers(const struct gradcmp_catalogue *numbered, const char *state,
                         struct gcmp_ids_entry *entries) {
    for (size_t i = 0; i < numbered->number_count; i++) {
        entries[i] = (struct gcmp_ids_entry){.group = numbered->number_groups[i]};
    }
    for (size_t i = 0; i < numbered->stored_count; i++) {
        const struct gradcmp_stored *stored = &numbered->stored[i];
        size_t number =
            is_of_state(stored, state) ? gcmp_number_of(numbered, stored->name) : SIZE_MAX;
        if (number != SIZE_MAX) {
            entries[number].shape = stored->shape;
            entries[number].ndim = stored->ndim;
        }
    }
}

static void write_names(const struct naming *naming) {
    for (size_t i = 0; i < naming->numbered->stored_count; i++) {
        struct gradcmp_stored *stored = &naming->numbered->stored[i];
        size_t number =
            stored->state == NULL ? SIZE_MAX : gcmp_number_of(naming->numbered, stored->name);
        size_t weight = number == SIZE_MAX ? SIZE_MAX : naming->ids.entries[number].weight;
        if (weight != SIZE_MAX) {
            stored->name = naming->weights[weight].name;
        }
    }
    naming->numbered->number_groups = NULL;
}

/* Whether a number may be a parameter of the list, and which weight that is: SIZE_MAX for a number
 * without a state. */
static bool fits_listed(const struct naming *naming, const struct gcmp_map *names,
                        struct gcmp_ids_entry *entry, const char *name) {
    size_t index;
    entry->weight = SIZE_MAX;
    if (entry->shape == NULL) {
        return true;
    }
    if (!gcmp_map_find(names, name, strlen(name), &index)) {
        return false;
    }
    const struct gcmp_ids_weight *weight = &naming->weights[index];
    entry->weight = index;
    return weight->ndim == entry->ndim &&
           (entry->ndim == 0 ||
            memcmp(weight->shape, entry->shape, entry->ndim * sizeof *entry->shape) == 0);
}

/* Number by number along the list, where it has as many parameters as there are numbers, or as
 * numbers with a state. Groups begin where those of the list do. */
static bool follows_list(const struct naming *naming, const struct gcmp_map *names) {
    const struct gradcmp_listed *listed = naming->named->listed;
    size_t count = naming->named->listed_count, at = 0, stateful = 0;
    struct gcmp_ids_entry *entries = naming->ids.entries;
    const struct gcmp_ids_entry *last = NULL;
    for (size_t i = 0; i < naming->ids.entry_count; i++) {
        stateful += entries[i].shape != NULL;
    }
    bool takes_all = count == naming->ids.entry_count;
    if (stateful == 0 || (!takes_all && count != stateful)) {
        return false;
    }
    for (size_t i = 0; i < naming->ids.entry_count; i++) {
        entries[i].weight = SIZE_MAX;
        if (!takes_all && entries[i].shape == NULL) {
            continue;
        }
        bool is_cut = last != NULL && last->group != entries[i].group;
        bool is_list_cut = last != NULL && listed[at].group != listed[at - 1].group;
        if ((is_cut && !is_list_cut) || (is_list_cut && !is_cut && !naming->named->is_list_cut) ||
            !fits_listed(naming, names, &entries[i], listed[at].name)) {
            return false;
        }
        last = &entries[i];
        at++;
    }
    return true;
}

/* Name the numbers by the list of the other side's optimizer; *done is false where it does not
 * fit. */
static enum gradcmp_status try_list(struct naming *naming, const char *state, bool *done) {
    struct gcmp_map names = GCMP_MAP_INIT;
    enum gcmp_map_result result = GCMP_MAP_ADDED;
    *done = false;
    if (naming->named->listed == NULL) {
        return GRADCMP_OK;
    }
    take_weights(naming, state);
    for (size_t i = 0; i < naming->ids.weight_count && result != GCMP_MAP_NO_MEMORY; i++) {
        const char *name = naming->weights[i].name;
        result = gcmp_map_add(&names, name, strlen(name), i, NULL);
    }
    *done = result != GCMP_MAP_NO_MEMORY && follows_list(naming, &names);
    gcmp_map_free(&names);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    return GRADCMP_OK;
}

/* Try the list of the named side's optimizer, the weights of the named side, then its own states; a
 * format that keeps these in the order in which they were made, which is not the weights', is not
 * ordered where it has no weights. */
static enum gradcmp_status solve(struct naming *naming, const char *state) {
    take_numbers(naming->numbered, state, naming->ids.entries);
    GCMP_TRY(try_list(naming, state, &naming->numbered->is_named_by_list));
    if (naming->numbered->is_named_by_list) {
        write_names(naming);
        return GRADCMP_OK;
    }
    take_weights(naming, "param");
    if (naming->ids.weight_count == 0) {
        take_weights(naming, state);
    }
    GCMP_TRY(gcmp_ids_solve(&naming->ids, naming->error));
    write_names(naming);
    return GRADCMP_OK;
}

/* Name one side by the other. UNSUPPORTED where that is not certain. */
static enum gradcmp_status name_by(const struct gradcmp_catalogue *named,
                                   struct gradcmp_catalogue *numbered, const char *state,
                                   struct gradcmp_error *error) {
    struct naming naming = {.named = named, .numbered = numbered, .error = error};
    naming.weights = calloc(named->stored_count + 1, sizeof *naming.weights);
    naming.ids.weights = naming.weights;
    naming.ids.is_ordered = named->is_ordered;
    naming.ids.entry_count = numbered->number_count;
    naming.ids.entries = calloc(numbered->number_count + 1, sizeof *naming.ids.entries);
    enum gradcmp_status status =
        naming.weights == NULL || naming.ids.entries == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : solve(&naming, state);
    free(naming.weights);
    free(naming.ids.entries);
    return status;
}

/* By shape; what has no state comes first. */
static int order_shapes(const void *left, const void *right) {
    const struct gcmp_ids_entry *a = left, *b = right;
    if (a->shape == NULL || b->shape == NULL) {
        return (a->shape != NULL) - (b->shape != NULL);
    }
    return gcmp_order_shapes(a->shape, a->ndim, b->shape, b->ndim);
}

/* The first of `count` entries with another shape; `count`: none. */
static size_t differ_at(const struct gcmp_ids_entry *a, const struct gcmp_ids_entry *b,
                        size_t count) {
    size_t i = 0;
    while (i < count && order_shapes(&a[i], &b[i]) == 0) {
        i++;
    }
    return i;
}

/* The same shapes in another order are no fault of the gradients: the same parameters have other
 * numbers. `a` and `b` have an entry for each number, and are sorted. */
static enum gradcmp_status check_order(struct gcmp_ids_entry *a, struct gcmp_ids_entry *b,
                                       size_t count, struct gradcmp_error *error) {
    size_t at = differ_at(a, b, count);
    if (at == count) {
        return GRADCMP_OK;
    }
    qsort(a, count, sizeof *a, order_shapes);
    qsort(b, count, sizeof *b, order_shapes);
    if (differ_at(a, b, count) < count) {
        return GRADCMP_OK; /* another model, which the shapes tell */
    }
    GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
              "both sides number their parameters and name none, but count them in another order: "
              "the shapes are the same, and from number %zu on at other places" GCMP_IDS_WAY_OUT,
              at);
}

static enum gradcmp_status check_shapes(const struct gradcmp_catalogue *a,
                                        const struct gradcmp_catalogue *b, const char *state,
                                        struct gradcmp_error *error) {
    size_t count = a->number_count;
    struct gcmp_ids_entry *entries = calloc(2 * count + 1, sizeof *entries);
    if (entries == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    take_numbers(a, state, entries);
    take_numbers(b, state, entries + count);
    for (size_t i = 0; i < count; i++) { /* a state that one side lacks is judged by itself */
        if (entries[i].shape == NULL || entries[count + i].shape == NULL) {
            entries[i].shape = entries[count + i].shape = NULL;
        }
    }
    enum gradcmp_status status = check_order(entries, entries + count, count, error);
    free(entries);
    return status;
}

/* Numbers on both sides mean the same parameters only if both count the same groups. */
static enum gradcmp_status check_groups(const struct gradcmp_catalogue *a,
                                        const struct gradcmp_catalogue *b, const char *state,
                                        struct gradcmp_error *error) {
    bool is_other = a->number_optimizers != NULL && b->number_optimizers != NULL &&
                    strcmp(a->number_optimizers, b->number_optimizers) != 0;
    if (is_other) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "both sides number their parameters and name none, but their optimizers have "
                  "other names, or stand in another order");
    }
    if (a->number_count == b->number_count &&
        memcmp(a->number_groups, b->number_groups, a->number_count * sizeof *a->number_groups) ==
            0) {
        return check_shapes(a, b, state, error);
    }
    GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
              "both sides number their parameters and name none, but their optimizers have other "
              "groups (%zu and %zu parameters)",
              a->number_count, b->number_count);
}

enum gradcmp_status gcmp_name_by(const struct gradcmp_catalogue *named,
                                 struct gradcmp_catalogue *numbered, const char *state,
                                 struct gradcmp_error *error) {
    if (!has_numbers(numbered)) {
        return GRADCMP_OK;
    }
    if (!has_numbers(named)) {
        return name_by(named, numbered, state, error);
    }
    GCMP_TRY(check_groups(named, numbered, state, error));
    gcmp_take_number_names(numbered, named->number_names);
    return GRADCMP_OK;
}

static struct gradcmp_catalogue *catalogue_of(const struct gcmp_participant *participant) {
    return participant->checkpoint == NULL ? NULL : &participant->checkpoint->catalogue;
}

/* The baseline takes the names of the first candidate that gives it some. */
static enum gradcmp_status name_baseline(const struct gcmp_comparison *comparison,
                                         struct gradcmp_error *error) {
    struct gradcmp_catalogue *baseline = catalogue_of(&comparison->baseline);
    for (size_t i = 0; i < comparison->report->pair_count && has_numbers(baseline); i++) {
        const struct gradcmp_catalogue *candidate = catalogue_of(&comparison->candidates[i]);
        if (candidate != NULL && !has_numbers(candidate) &&
            name_by(candidate, baseline, comparison->report->state, error) ==
                GRADCMP_ERROR_MEMORY) {
            return GRADCMP_ERROR_MEMORY;
        }
    }
    return GRADCMP_OK;
}

/* Settle one pair after the baseline: names, or numbers, on both sides. */
static enum gradcmp_status settle_pair(const struct gcmp_comparison *comparison, size_t index,
                                       struct gradcmp_error *error) {
    struct gradcmp_catalogue *baseline = catalogue_of(&comparison->baseline);
    struct gradcmp_catalogue *candidate = catalogue_of(&comparison->candidates[index]);
    if (has_numbers(baseline) && has_numbers(candidate)) {
        return check_groups(baseline, candidate, comparison->report->state, error);
    }
    if (has_numbers(candidate)) {
        return name_by(baseline, candidate, comparison->report->state, error);
    }
    if (!has_numbers(baseline)) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status =
        name_by(candidate, baseline, comparison->report->state, error); /* for its error */
    if (status != GRADCMP_OK) { /* it is the baseline's optimizer that counts */
        gcmp_error_add_path(error, comparison->baseline.checkpoint->path);
    }
    return status;
}

/* Both sides of a pair still have numbers: give them names to read. */
static enum gradcmp_status name_pair(struct gcmp_comparison *comparison, size_t index,
                                     struct gradcmp_error *error) {
    struct gradcmp_catalogue *baseline = catalogue_of(&comparison->baseline);
    struct gradcmp_catalogue *candidate = catalogue_of(&comparison->candidates[index]);
    const char *const *names = baseline->number_names;
    if (names == NULL) { /* the first candidate of which names are told names all */
        const char *state = comparison->report->state;
        GCMP_TRY(gcmp_number_names(baseline, baseline, state, &names, error));
        if (names == NULL) {
            GCMP_TRY(gcmp_number_names(candidate, baseline, state, &names, error));
        }
    }
    if (names == NULL) {
        return GRADCMP_OK;
    }
    gcmp_take_number_names(baseline, names);
    gcmp_take_number_names(candidate, names);
    return gcmp_pair_note(comparison, &comparison->report->pairs[index], error,
                          "both sides number their parameters, and are compared by number; names "
                          "are those of the weights of each shape, in the order embeddings, "
                          "layers, head");
}

static enum gradcmp_status name_pairs(struct gcmp_comparison *comparison,
                                      struct gradcmp_error *error) {
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        const struct gradcmp_catalogue *candidate = catalogue_of(&comparison->candidates[i]);
        if (gcmp_pair_is_open(&comparison->report->pairs[i]) && candidate != NULL &&
            has_numbers(candidate) && has_numbers(catalogue_of(&comparison->baseline))) {
            GCMP_TRY(name_pair(comparison, i, error));
        }
    }
    return GRADCMP_OK;
}

/* Numbers stand for names in some states only: not among the weights. */
static bool is_numbered_state(const struct gcmp_comparison *comparison,
                              const struct gcmp_participant *participant) {
    const struct gradcmp_catalogue *catalogue = catalogue_of(participant);
    for (size_t i = 0; catalogue != NULL && has_numbers(catalogue) && i < catalogue->stored_count;
         i++) {
        if (is_of_state(&catalogue->stored[i], comparison->report->state) &&
            gcmp_number_of(catalogue, catalogue->stored[i].name) != SIZE_MAX) {
            return true;
        }
    }
    return false;
}

static bool has_numbered_side(const struct gcmp_comparison *comparison) {
    bool found = is_numbered_state(comparison, &comparison->baseline);
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        found = found || is_numbered_state(comparison, &comparison->candidates[i]);
    }
    return found;
}

enum gradcmp_status gcmp_name_numbers(struct gcmp_comparison *comparison,
                                      struct gradcmp_error *error) {
    if (!has_numbered_side(comparison)) {
        return GRADCMP_OK;
    }
    bool baseline_had = has_numbers(catalogue_of(&comparison->baseline));
    GCMP_TRY(name_baseline(comparison, error));
    for (size_t i = 0; i < comparison->report->pair_count; i++) {
        struct gradcmp_pair_report *pair = &comparison->report->pairs[i];
        const struct gradcmp_catalogue *candidate = catalogue_of(&comparison->candidates[i]);
        struct gradcmp_error pair_error = {0};
        bool counts = baseline_had || is_numbered_state(comparison, &comparison->candidates[i]);
        if (!gcmp_pair_is_open(pair) || candidate == NULL || !counts) {
            continue; /* whatever other candidates have */
        }
        bool candidate_had = has_numbers(candidate);
        if (settle_pair(comparison, i, &pair_error) != GRADCMP_OK) {
            gcmp_error_add_path(&pair_error, pair->path);
            gcmp_pair_fail(pair, &pair_error);
        } else if (candidate_had != baseline_had) {
            const struct gradcmp_catalogue *numbered =
                candidate_had ? candidate : catalogue_of(&comparison->baseline);
            GCMP_TRY(gcmp_pair_note(comparison, pair, error,
                                    "the %s numbers its parameters and names none: the names are "
                                    "the %s's, in the order of its %s, whose shapes all fit",
                                    candidate_had ? "candidate" : "baseline",
                                    candidate_had ? "baseline" : "candidate",
                                    numbered->is_named_by_list ? "optimizer's groups" : "weights"));
        }
    }
    return name_pairs(comparison, error);
}
