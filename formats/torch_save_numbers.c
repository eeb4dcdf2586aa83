/* Names for the numbers of optimizers in a torch.save checkpoint: all ranks' numbers by all
 * weights, or those of a rank by its own weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/model_names.h"
#include "formats/optimizer_ids.h"
#include "formats/torch_save_set.h"

enum { MAX_NAMED_OPTIMIZERS = 64 };

struct naming {
    struct gcmp_pt_set *set;
    struct gcmp_ids_weight *weights; /* room for all tensors */
    struct gcmp_ids_entry *entries;  /* room for all entries, as have the next two */
    size_t *positions;               /* in the set, of `entries` */
    size_t *places;                  /* in `entries`, of the set's */
    bool *is_taken;          /* of each optimizer: its entries are among `entries`, or were */
    struct gcmp_map names;   /* that entries have */
    bool has_own, has_names; /* some rank counts its own; some entries have names */
    struct gradcmp_error *error;
};

/* The bytes of this tell where a tensor's record lies. */
struct record_key {
    uint64_t offset_bytes, length_bytes, file;
};

/* A scope is what is solved at once: all tensors, for rank -1, or a rank's. Of these count those
 * that are as is_own says. */
static bool is_in(const struct gcmp_pt_run *scope, const struct gcmp_pt_tensor *tensor) {
    return tensor->is_own == (scope->rank >= 0);
}

/* --- weights that a number may mean --- */

/* Two names of the same elements are one parameter to an optimizer: tied weights. */
static bool is_same_view(const struct gcmp_pt_tensor *a, const struct gcmp_pt_tensor *b) {
    return a->file == b->file && a->view.offset_bytes == b->view.offset_bytes &&
           a->view.length_bytes == b->view.length_bytes && a->view.length_bytes > 0 &&
           a->view.offset_elems == b->view.offset_elems && gcmp_pt_same_shape(a, b) &&
           a->view.ndim == b->view.ndim &&
           memcmp(a->view.stride, b->view.stride, a->view.ndim * sizeof *a->view.stride) == 0;
}

/* Tell whether a weight was there before, under its name (another rank's piece) or another. */
static enum gradcmp_status find_earlier(const struct naming *naming,
                                        const struct gcmp_pt_tensor *weight, struct gcmp_map *names,
                                        struct gcmp_map *records, bool *found) {
    size_t index = (size_t)(weight - naming->set->tensors), first = index;
    enum gcmp_map_result named =
        gcmp_map_add(names, weight->name, strlen(weight->name), index, NULL);
    enum gcmp_map_result placed = GCMP_MAP_ADDED;
    struct record_key *key = gcmp_arena_alloc(naming->set->catalogue->arena, 1, sizeof *key);
    if (key != NULL && weight->view.length_bytes > 0) {
        *key =
            (struct record_key){weight->view.offset_bytes, weight->view.length_bytes, weight->file};
        placed = gcmp_map_add(records, key, sizeof *key, index, &first);
    }
    if (key == NULL || named == GCMP_MAP_NO_MEMORY || placed == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    *found = named == GCMP_MAP_PRESENT ||
             (placed == GCMP_MAP_PRESENT && is_same_view(&naming->set->tensors[first], weight));
    return GRADCMP_OK;
}

static enum gradcmp_status collect_weights(const struct naming *naming,
                                           const struct gcmp_pt_run *scope, size_t *count) {
    struct gcmp_map names = GCMP_MAP_INIT, records = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    *count = 0;
    for (size_t i = scope->first; i < scope->end && status == GRADCMP_OK; i++) {
        const struct gcmp_pt_tensor *tensor = &naming->set->tensors[i];
        bool is_known = false;
        size_t entry;
        if (!is_in(scope, tensor) || tensor->kind != GCMP_PT_WEIGHT ||
            !gcmp_pt_is_steppable(tensor) || gcmp_name_is_norm_buffer(tensor->name) ||
            gcmp_pt_is_extra_state(tensor->key) ||
            gcmp_map_find(&naming->names, tensor->name, strlen(tensor->name), &entry)) {
            continue;
        }
        status = find_earlier(naming, tensor, &names, &records, &is_known);
        if (status == GRADCMP_OK && !is_known) {
            naming->weights[(*count)++] =
                (struct gcmp_ids_weight){tensor->name, tensor->shape, tensor->ndim, 0};
        }
    }
    gcmp_map_free(&names);
    gcmp_map_free(&records);
    return status;
}

/* --- numbers --- */

/* Add an optimizer's entries that have no name to those of a scope; groups count from 0. */
static void take_optimizer(const struct naming *naming, size_t number, size_t *count) {
    const struct gcmp_pt_set *set = naming->set;
    const struct gcmp_pt_optimizer *optimizer = &set->optimizers[number];
    for (size_t i = optimizer->first; i < optimizer->first + optimizer->count; i++) {
        if (set->entries[i].name != NULL) {
            continue;
        }
        bool is_first = *count == 0;
        uint32_t group = is_first ? 0 : naming->entries[*count - 1].group;
        group +=
            !is_first && set->entries[i].group != set->entries[naming->positions[*count - 1]].group;
        naming->places[i] = *count;
        naming->positions[*count] = i;
        naming->entries[(*count)++] = (struct gcmp_ids_entry){.group = group};
    }
    naming->is_taken[number] = true;
}

/* Collect the numbers of a scope: of all ranks' optimizers, or of those with states in it. */
static size_t collect_entries(const struct naming *naming, const struct gcmp_pt_run *scope) {
    const struct gcmp_pt_set *set = naming->set;
    size_t count = 0;
    for (size_t i = 0; i < set->optimizer_count && scope->rank < 0; i++) {
        const struct gcmp_pt_optimizer *optimizer = &set->optimizers[i];
        if (optimizer->count > 0 && set->entries[optimizer->first].rank < 0) {
            take_optimizer(naming, i, &count);
        }
    }
    for (size_t i = scope->first; i < scope->end && scope->rank >= 0; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        if (gcmp_pt_is_numbered(tensor) &&
            !naming->is_taken[set->entries[tensor->entry].optimizer]) {
            take_optimizer(naming, set->entries[tensor->entry].optimizer, &count);
        }
    }
    return count;
}

/* Give every number the shape of one of its states. */
static void collect_shapes(const struct naming *naming, const struct gcmp_pt_run *scope) {
    for (size_t i = scope->first; i < scope->end; i++) {
        const struct gcmp_pt_tensor *tensor = &naming->set->tensors[i];
        if (is_in(scope, tensor) && gcmp_pt_is_numbered(tensor) &&
            naming->set->entries[tensor->entry].name == NULL && gcmp_pt_is_steppable(tensor) &&
            gcmp_pt_is_shaped(tensor->state)) {
            struct gcmp_ids_entry *entry = &naming->entries[naming->places[tensor->entry]];
            entry->shape = tensor->shape;
            entry->ndim = tensor->ndim;
        }
    }
}

/* --- solving --- */

/* The names of optimizers, where there are several; NULL without memory. */
static const char *name_optimizers(const struct gcmp_pt_set *set) {
    const char *names = "";
    for (size_t i = 0; i < set->optimizer_count && names != NULL; i++) {
        names =
            gcmp_arena_format(set->catalogue->arena, "%s %.256s", names, set->optimizers[i].path);
    }
    return names;
}

/* Nothing in the checkpoint names the numbers, for the reason given: they stand for themselves. */
static enum gradcmp_status keep_numbers(const struct naming *naming, const char *reason) {
    struct gcmp_pt_set *set = naming->set;
    struct gradcmp_catalogue *catalogue = set->catalogue;
    uint32_t *groups = gcmp_arena_alloc(catalogue->arena, set->entry_count, sizeof *groups);
    if (groups == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    for (size_t i = 0; i < set->entry_count; i++) {
        struct gcmp_pt_entry *entry = &set->entries[i];
        groups[i] = entry->group;
        entry->name = gcmp_arena_format(catalogue->arena, "%zu", i);
        if (entry->name == NULL) {
            GCMP_FAIL_MEMORY(naming->error);
        }
    }
    if (set->optimizer_count > 1 && set->optimizer_count <= MAX_NAMED_OPTIMIZERS) {
        catalogue->number_optimizers = name_optimizers(set);
        if (catalogue->number_optimizers == NULL) {
            GCMP_FAIL_MEMORY(naming->error);
        }
    }
    catalogue->number_groups = groups;
    catalogue->number_count = set->entry_count;
    return gcmp_catalogue_note(catalogue, naming->error, "%s", reason);
}

/* Ranks that hold stages of a pipeline number other parameters alike. */
static bool is_of_ranks(const struct gcmp_pt_set *set) {
    for (size_t i = 0; i < set->tensor_count; i++) {
        if (set->tensors[i].kind == GCMP_PT_STATE && set->tensors[i].rank > 0) {
            return true;
        }
    }
    return false;
}

/* Numbers that could mean several of the weights still stand for themselves: two checkpoints of one
 * model count alike, and weights are compared under their names. */
static enum gradcmp_status keep_unsolved(const struct naming *naming,
                                         const struct gcmp_pt_run *scope,
                                         const struct gcmp_ids *ids,
                                         const struct gradcmp_error *why) {
    struct gcmp_dir *dir = naming->set->catalogue->dir;
    bool fit = false;
    if (why->code == GRADCMP_ERROR_UNSUPPORTED && !is_of_ranks(naming->set)) {
        GCMP_TRY(gcmp_ids_fit(ids, &fit, naming->error));
    }
    if (fit && !naming->has_names) {
        return keep_numbers(naming, why->message);
    }
    const char *path = naming->has_own && scope->first < scope->end
                           ? gcmp_dir_file_path(dir, naming->set->tensors[scope->first].file)
                           : gcmp_dir_path(dir);
    return gcmp_error_set(naming->error, why->code, path, GRADCMP_NO_OFFSET, "%s", why->message);
}

/* The weights of rank 0 and of no rank, where these are as many as the numbers or more; else those
 * of all ranks, among which one optimizer's parameters are dealt. */
static enum gradcmp_status collect_shared(const struct naming *naming, struct gcmp_ids *ids) {
    const struct gcmp_pt_set *set = naming->set;
    struct gcmp_pt_run first = GCMP_PT_RUN_INIT;
    while (first.end < set->tensor_count && set->tensors[first.end].rank <= 0) {
        first.end++;
    }
    GCMP_TRY(collect_weights(naming, &first, &ids->weight_count));
    if (ids->weight_count >= ids->entry_count && !set->is_dealt) {
        return GRADCMP_OK;
    }
    ids->is_ordered = ids->is_ordered && !set->is_interleaved;
    return collect_weights(naming, &(struct gcmp_pt_run){0, set->tensor_count, -1},
                           &ids->weight_count);
}

/* Where ranks have states of other numbers and no weights tell whose these are, numbers count all
 * weights, or nobody knows what they count. */
static enum gradcmp_status check_dealt(const struct naming *naming, const struct gcmp_ids *ids) {
    if (!naming->set->is_dealt || ids->weight_count == ids->entry_count) {
        return GRADCMP_OK;
    }
    GCMP_FAIL_AT(naming->error, GRADCMP_ERROR_UNSUPPORTED,
                 gcmp_dir_path(naming->set->catalogue->dir), GRADCMP_NO_OFFSET,
                 "torch: %zu numbers of ranks' optimizers may count each rank's own parameters, or "
                 "some of all %zu weights" GCMP_IDS_WAY_OUT,
                 ids->entry_count, ids->weight_count);
}

static enum gradcmp_status solve(const struct naming *naming, const struct gcmp_pt_run *scope) {
    struct gcmp_pt_set *set = naming->set;
    struct gcmp_ids ids = {.weights = naming->weights,
                           .entries = naming->entries,
                           .entry_count = collect_entries(naming, scope),
                           .is_ordered = set->is_ordered};
    bool is_shared = scope->rank < 0;
    if (ids.entry_count == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(is_shared ? collect_shared(naming, &ids)
                       : collect_weights(naming, scope, &ids.weight_count));
    if (ids.weight_count == 0 && !naming->has_own && !naming->has_names) {
        char reason[128];
        snprintf(reason, sizeof reason,
                 "the optimizer numbers its %zu parameters, and no weights are there to name them",
                 ids.entry_count);
        return keep_numbers(naming, reason);
    }
    GCMP_TRY(is_shared ? check_dealt(naming, &ids) : GRADCMP_OK);
    collect_shapes(naming, scope);
    struct gradcmp_error why = {0};
    if (gcmp_ids_solve(&ids, &why) != GRADCMP_OK) {
        return keep_unsolved(naming, scope, &ids, &why);
    }
    for (size_t i = 0; i < ids.entry_count; i++) {
        size_t weight = naming->entries[i].weight;
        set->entries[naming->positions[i]].name =
            weight == SIZE_MAX ? NULL : naming->weights[weight].name;
    }
    return GRADCMP_OK;
}

/* Solve what all ranks count, then what ranks count of their own. Files are in the order of ranks,
 * and so are tensors. */
static enum gradcmp_status solve_scopes(const struct naming *naming) {
    const struct gcmp_pt_set *set = naming->set;
    struct gcmp_pt_run run = GCMP_PT_RUN_INIT;
    GCMP_TRY(solve(naming, &(struct gcmp_pt_run){0, set->tensor_count, -1}));
    while (gcmp_pt_next_run(set, &run)) {
        if (set->tensors[run.first].is_own) {
            GCMP_TRY(solve(naming, &run));
        }
    }
    return GRADCMP_OK;
}

static bool is_all_named(const struct gcmp_pt_set *set) {
    for (size_t i = 0; i < set->entry_count; i++) {
        if (set->entries[i].name == NULL) {
            return false;
        }
    }
    return true;
}

/* Names that entries have from the start are those of no other. */
static enum gradcmp_status note_names(struct naming *naming) {
    const struct gcmp_pt_set *set = naming->set;
    for (size_t i = 0; i < set->entry_count; i++) {
        const char *name = set->entries[i].name;
        if (name != NULL &&
            gcmp_map_add(&naming->names, name, strlen(name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(naming->error);
        }
        naming->has_names = naming->has_names || name != NULL;
    }
    for (size_t i = 0; i < set->tensor_count; i++) {
        naming->has_own = naming->has_own || set->tensors[i].is_own;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status name_entries(struct gcmp_pt_set *set, struct gradcmp_error *error) {
    struct naming naming = {.set = set, .names = GCMP_MAP_INIT, .error = error};
    enum gradcmp_status status;
    naming.weights = calloc(set->tensor_count + 1, sizeof *naming.weights);
    naming.entries = calloc(set->entry_count + 1, sizeof *naming.entries);
    naming.positions = calloc(set->entry_count + 1, sizeof *naming.positions);
    naming.places = calloc(set->entry_count + 1, sizeof *naming.places);
    naming.is_taken = calloc(set->optimizer_count + 1, sizeof *naming.is_taken);
    if (naming.weights == NULL || naming.entries == NULL || naming.positions == NULL ||
        naming.places == NULL || naming.is_taken == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    GCMP_TRY_OUT(note_names(&naming));
    GCMP_TRY_OUT(solve_scopes(&naming));
out:
    gcmp_map_free(&naming.names);
    free(naming.weights);
    free(naming.entries);
    free(naming.positions);
    free(naming.places);
    free(naming.is_taken);
    return status;
}

/* States take the names of their numbers; one of a number without a name is only listed. */
static void name_states(struct gcmp_pt_set *set) {
    for (size_t i = 0; i < set->tensor_count; i++) {
        struct gcmp_pt_tensor *tensor = &set->tensors[i];
        if (gcmp_pt_is_numbered(tensor)) {
            tensor->name = set->entries[tensor->entry].name;
            tensor->kind = tensor->name == NULL ? GCMP_PT_OTHER : GCMP_PT_STATE;
        }
    }
}

enum gradcmp_status gcmp_pt_name_numbers(struct gcmp_pt_set *set, struct gradcmp_error *error) {
    if (!is_all_named(set)) {
        GCMP_TRY(name_entries(set, error));
    }
    name_states(set);
    return GRADCMP_OK;
}
