/* Numbers of optimizers' states: whose they are, and the names that belong to them. Each optimizer
 * counts its own parameters, from 0 on. */
#include "formats/dcp_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "base/model_names.h"
#include "formats/dcp_lists.h"
#include "formats/dcp_writers.h"
#include "formats/optimizer_ids.h"

/* As torch.save's reader names them. */
enum { MAX_NAMED_OPTIMIZERS = 64 };

/* An optimizer whose states have numbers. */
struct optimizer {
    const char *path; /* path_bytes at the front of a key; not ended by 0 */
    size_t path_bytes;
    size_t first_group, group_count; /* in the lists */
    bool is_listed;                  /* all groups' lists were read */
};

/* A number that some key says. */
struct state {
    size_t optimizer, number;
    size_t key; /* index */
};

/* One parameter of an optimizer. */
struct entry {
    size_t optimizer, number;
    uint32_t group; /* counted over all optimizers */
    const char *name;
    size_t stored; /* a tensor of it that has the parameter's shape; SIZE_MAX: none seen */
    size_t place;  /* among those that have no name in their group */
};

/* How entries are found: bytes of this are the key. */
struct entry_key {
    uint64_t optimizer, number;
};

struct naming {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_dcp_key *keys;
    const struct gcmp_dcp_weights *weights;
    struct gcmp_dcp_lists lists;
    struct gcmp_map optimizer_index; /* path -> index */
    struct optimizer *optimizers;
    size_t optimizer_count, optimizer_capacity;
    struct state *states; /* by optimizer and number, once they are sorted */
    size_t state_count, state_capacity;
    struct entry *entries;
    struct entry_key *entry_keys; /* one an entry */
    size_t entry_count;
    size_t open_count; /* entries without a name in their group */
    struct gcmp_map entry_index;
    struct gcmp_map given; /* names that groups list */
    bool is_listed;        /* all optimizers are */
    bool is_scattered;     /* several ranks were first writers of weights */
    bool is_kept;          /* numbers without a name stand for themselves */
    /* What is solved: */
    struct gcmp_ids_weight *candidates;
    struct gcmp_ids_entry *open;
    size_t *open_numbers;
    struct gradcmp_error *error;
};

/* --- states --- */

/* An id is a state's name that is a number, as it is printed, and that no weight bears. */
static bool is_id(const struct naming *naming, const struct gcmp_dcp_key *key) {
    size_t ignored, digits = strspn(key->name, "0123456789");
    return key->kind == GCMP_DCP_STATE && key->state != NULL && digits > 0 && digits <= 9 &&
           key->name[digits] == '\0' && (digits == 1 || key->name[0] != '0') &&
           !gcmp_map_find(naming->weights->names, key->name, digits, &ignored);
}

static enum gradcmp_status find_optimizer(struct naming *naming, const struct gcmp_dcp_key *key,
                                          size_t *index) {
    enum gcmp_map_result result = gcmp_map_add(
        &naming->optimizer_index, key->text, key->optimizer_bytes, naming->optimizer_count, index);
    if (result == GCMP_MAP_NO_MEMORY ||
        (result == GCMP_MAP_ADDED &&
         !gcmp_grow(&naming->optimizers, naming->optimizer_count, &naming->optimizer_capacity,
                    sizeof *naming->optimizers))) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    if (result == GCMP_MAP_ADDED) {
        naming->optimizers[naming->optimizer_count++] =
            (struct optimizer){.path = key->text, .path_bytes = key->optimizer_bytes};
    }
    return GRADCMP_OK;
}

static enum gradcmp_status gather_states(struct naming *naming) {
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        const struct gcmp_dcp_key *key = &naming->keys[i];
        if (!is_id(naming, key)) {
            continue;
        }
        struct state state = {.number = strtoul(key->name, NULL, 10), .key = i};
        GCMP_TRY(find_optimizer(naming, key, &state.optimizer));
        if (!gcmp_grow(&naming->states, naming->state_count, &naming->state_capacity,
                       sizeof *naming->states)) {
            GCMP_FAIL_MEMORY(naming->error);
        }
        naming->states[naming->state_count++] = state;
    }
    return GRADCMP_OK;
}

static int compare_states(const void *left, const void *right) {
    const struct state *a = left, *b = right;
    if (a->optimizer != b->optimizer) {
        return a->optimizer < b->optimizer ? -1 : 1;
    }
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    return a->key < b->key ? -1 : a->key > b->key;
}

/* --- lists --- */

/* Tell each optimizer which groups are its own. */
static void match_groups(struct naming *naming) {
    const struct gcmp_dcp_lists *lists = &naming->lists;
    for (size_t i = 0; i < lists->group_count; i++) {
        const struct gcmp_dcp_group *group = &lists->groups[i];
        size_t index;
        if (!gcmp_map_find(&naming->optimizer_index, group->path, group->path_bytes, &index)) {
            continue;
        }
        struct optimizer *optimizer = &naming->optimizers[index];
        if (optimizer->group_count == 0) {
            optimizer->first_group = i;
            optimizer->is_listed = true;
        }
        /* Groups stand side by side, from 0 on. */
        optimizer->is_listed =
            optimizer->is_listed && group->is_read && group->number == optimizer->group_count;
        optimizer->group_count++;
    }
}

static enum gradcmp_status add_entry(struct naming *naming, struct entry entry, bool *is_new) {
    struct entry_key *key = &naming->entry_keys[naming->entry_count];
    *key = (struct entry_key){entry.optimizer, entry.number};
    enum gcmp_map_result result =
        gcmp_map_add(&naming->entry_index, key, sizeof *key, naming->entry_count, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    *is_new = result == GCMP_MAP_ADDED;
    if (*is_new) {
        entry.stored = SIZE_MAX;
        naming->entries[naming->entry_count++] = entry;
    }
    return GRADCMP_OK;
}

/* Add what the groups of an optimizer list. */
static enum gradcmp_status add_listed(struct naming *naming, size_t index, uint32_t *group_number) {
    const struct optimizer *optimizer = &naming->optimizers[index];
    for (size_t g = 0; g < optimizer->group_count; g++, (*group_number)++) {
        const struct gcmp_dcp_group *group = &naming->lists.groups[optimizer->first_group + g];
        for (size_t i = 0; i < group->count; i++) {
            const struct gcmp_dcp_param *param = &naming->lists.params[group->first + i];
            bool is_new;
            GCMP_TRY(add_entry(naming,
                               (struct entry){.optimizer = index,
                                              .number = param->number,
                                              .group = *group_number,
                                              .name = param->name},
                               &is_new));
            if (!is_new) {
                GCMP_FAIL(naming->error, GRADCMP_ERROR_CORRUPT,
                          "the groups of an optimizer list parameter %zu twice", param->number);
            }
        }
    }
    return GRADCMP_OK;
}

/* Add the numbers that have a state, `first` being the first of the optimizer's states. */
static enum gradcmp_status add_stated(struct naming *naming, size_t first, uint32_t *group_number) {
    size_t optimizer = naming->states[first].optimizer;
    bool ignored;
    for (size_t i = first; i < naming->state_count && naming->states[i].optimizer == optimizer;
         i++) {
        GCMP_TRY(add_entry(naming,
                           (struct entry){.optimizer = optimizer,
                                          .number = naming->states[i].number,
                                          .group = *group_number},
                           &ignored));
    }
    (*group_number)++;
    return GRADCMP_OK;
}

static enum gradcmp_status make_room(struct naming *naming) {
    size_t room = naming->state_count + naming->lists.param_count + 1;
    naming->entries = calloc(room, sizeof *naming->entries);
    naming->entry_keys = calloc(room, sizeof *naming->entry_keys);
    if (naming->entries == NULL || naming->entry_keys == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    return GRADCMP_OK;
}

/* Collect the parameters of all optimizers, which are numbered over their groups. */
static enum gradcmp_status collect_entries(struct naming *naming) {
    uint32_t group = 0;
    GCMP_TRY(make_room(naming));
    for (size_t i = 0; i < naming->state_count; i++) {
        size_t optimizer = naming->states[i].optimizer;
        if (i > 0 && naming->states[i - 1].optimizer == optimizer) {
            continue;
        }
        GCMP_TRY(naming->optimizers[optimizer].is_listed ? add_listed(naming, optimizer, &group)
                                                         : add_stated(naming, i, &group));
    }
    return GRADCMP_OK;
}

static struct entry *entry_of(const struct naming *naming, const struct state *state) {
    const struct entry_key key = {state->optimizer, state->number};
    size_t index;
    return gcmp_map_find(&naming->entry_index, &key, sizeof key, &index) ? &naming->entries[index]
                                                                         : NULL;
}

/* Find a state of every parameter that has its shape. */
static enum gradcmp_status find_shapes(struct naming *naming) {
    for (size_t i = 0; i < naming->state_count; i++) {
        const char *word = naming->keys[naming->states[i].key].state;
        struct entry *entry = entry_of(naming, &naming->states[i]);
        if (entry == NULL) {
            GCMP_FAIL(naming->error, GRADCMP_ERROR_UNSUPPORTED,
                      "a state of parameter %zu, which no group of the optimizer lists",
                      naming->states[i].number);
        }
        if (gcmp_dcp_is_clear_state(word, strlen(word)) ||
            (entry->stored == SIZE_MAX && strcmp(word, "step") != 0)) {
            entry->stored = naming->states[i].key;
        }
    }
    return GRADCMP_OK;
}

/* Note the names that groups list, and count the parameters that have none. */
static enum gradcmp_status note_names(struct naming *naming) {
    for (size_t i = 0; i < naming->entry_count; i++) {
        struct entry *entry = &naming->entries[i];
        if (entry->name == NULL) {
            entry->place = naming->open_count++;
        } else if (gcmp_map_add(&naming->given, entry->name, strlen(entry->name), i, NULL) ==
                   GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(naming->error);
        }
    }
    return GRADCMP_OK;
}

/* --- what the numbers may be --- */

/* Number of groups of parameters: keys "...param_groups.<i>.<option>". */
static size_t count_groups(const struct naming *naming) {
    static const char mark[] = "param_groups.";
    size_t groups = 0;
    for (size_t i = 0; i < naming->catalogue->stored_count; i++) {
        const char *at = strstr(naming->catalogue->stored[i].key, mark);
        const char *digits = at == NULL ? "" : at + sizeof mark - 1;
        size_t count = strspn(digits, "0123456789");
        if (count > 0 && count < 9 && digits[count] == '.') {
            size_t group = strtoul(digits, NULL, 10) + 1;
            groups = group > groups ? group : groups;
        }
    }
    return groups;
}

/* Weights of one writer stand in the order of the model, which is what the numbers of one group
 * count; but not if there is a number for more weights than these. Without lists there may be
 * several groups. */
static bool counts_weights(const struct naming *naming) {
    return naming->optimizer_count == 1 && count_groups(naming) == 1 &&
           naming->entries[naming->entry_count - 1].number < naming->weights->count;
}

/* The weights that a number may mean: those that no group names, and that are no buffers. */
static size_t fill_weights(struct naming *naming) {
    const struct gradcmp_catalogue *catalogue = naming->catalogue;
    size_t count = 0, ignored;
    for (size_t i = 0; i < naming->weights->count; i++) {
        size_t index = naming->weights->stored[i];
        const struct gradcmp_stored *stored = &catalogue->stored[index];
        const char *name = naming->keys[index].name;
        uint64_t writer = gcmp_dcp_first_writer(catalogue, stored);
        if (gcmp_name_is_norm_buffer(name) ||
            gcmp_map_find(&naming->given, name, strlen(name), &ignored)) {
            continue;
        }
        naming->candidates[count++] =
            (struct gcmp_ids_weight){name, stored->shape, stored->ndim, writer};
        naming->is_scattered = naming->is_scattered || writer != naming->candidates[0].sequence;
    }
    return count;
}

static enum gradcmp_status fill_open(const struct naming *naming) {
    for (size_t i = 0; i < naming->entry_count; i++) {
        const struct entry *entry = &naming->entries[i];
        if (entry->name != NULL) {
            continue;
        }
        struct gcmp_ids_entry *open = &naming->open[entry->place];
        open->group = entry->group;
        naming->open_numbers[entry->place] = entry->number;
        if (entry->stored != SIZE_MAX) {
            open->shape = naming->catalogue->stored[entry->stored].shape;
            open->ndim = naming->catalogue->stored[entry->stored].ndim;
        } else if (!naming->is_listed) {
            GCMP_FAIL(naming->error, GRADCMP_ERROR_UNSUPPORTED,
                      "the optimizer numbers its parameters, and number %zu has no state of its "
                      "parameter's shape",
                      entry->number);
        }
    }
    return GRADCMP_OK;
}

/* --- numbers that stand for themselves --- */

/* The names of optimizers, where there are several; NULL without memory. */
static const char *name_optimizers(const struct naming *naming) {
    const char *names = "";
    for (size_t i = 0; i < naming->optimizer_count && names != NULL; i++) {
        const struct optimizer *optimizer = &naming->optimizers[i];
        int bytes = (int)(optimizer->path_bytes < 256 ? optimizer->path_bytes : 256);
        names =
            gcmp_arena_format(naming->catalogue->arena, "%s %.*s", names, bytes, optimizer->path);
    }
    return names;
}

/* Without lists, numbers of one group are kept as they are. */
static enum gradcmp_status keep_numbers(struct naming *naming, const char *reason) {
    struct gradcmp_catalogue *catalogue = naming->catalogue;
    size_t count = naming->is_listed ? naming->open_count
                                     : naming->entries[naming->entry_count - 1].number + 1;
    uint32_t *groups = gcmp_arena_alloc(catalogue->arena, count, sizeof *groups);
    if (groups == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    memset(groups, 0, count * sizeof *groups);
    for (size_t i = 0; i < naming->entry_count; i++) {
        struct entry *entry = &naming->entries[i];
        entry->place = naming->is_listed ? entry->place : entry->number;
        groups[entry->place] = entry->group;
    }
    if (naming->optimizer_count > 1 && naming->optimizer_count <= MAX_NAMED_OPTIMIZERS) {
        catalogue->number_optimizers = name_optimizers(naming);
        if (catalogue->number_optimizers == NULL) {
            GCMP_FAIL_MEMORY(naming->error);
        }
    }
    catalogue->number_groups = groups;
    catalogue->number_count = count;
    naming->is_kept = true;
    return gcmp_catalogue_note(catalogue, naming->error, "%s", reason);
}

/* The numbers could mean several weights, or are of none that is there. Two checkpoints of one
 * model count alike, and weights are compared under their names. */
static enum gradcmp_status keep_unsolved(struct naming *naming, size_t weight_count,
                                         const struct gradcmp_error *why) {
    bool is_dealt = naming->is_scattered && counts_weights(naming);
    char reason[sizeof why->message];
    if (why->code != GRADCMP_ERROR_UNSUPPORTED || (!naming->is_listed && !is_dealt)) {
        if (naming->error != NULL) {
            *naming->error = *why;
        }
        return gcmp_failure(why->code);
    }
    snprintf(reason, sizeof reason, "%s", why->message);
    if (weight_count == 0) {
        snprintf(reason, sizeof reason,
                 "the optimizer numbers its %zu parameters, and no weights are there to name them",
                 naming->open_count);
    } else if (is_dealt) {
        snprintf(reason, sizeof reason,
                 "the optimizer numbers its %zu parameters, and the order of the weights, which "
                 "would name them, is not known: several ranks wrote them",
                 naming->open_count);
    }
    return keep_numbers(naming, reason);
}

/* --- naming them --- */

static enum gradcmp_status solve(struct naming *naming) {
    struct gcmp_ids ids = {.entry_count = naming->open_count};
    struct gradcmp_error why = {0};
    naming->candidates = calloc(naming->weights->count + 1, sizeof *naming->candidates);
    naming->open = calloc(naming->open_count + 1, sizeof *naming->open);
    naming->open_numbers = calloc(naming->open_count + 1, sizeof *naming->open_numbers);
    if (naming->candidates == NULL || naming->open == NULL || naming->open_numbers == NULL) {
        GCMP_FAIL_MEMORY(naming->error);
    }
    ids.weights = naming->candidates;
    ids.weight_count = fill_weights(naming);
    ids.is_ordered = naming->is_listed || counts_weights(naming);
    ids.entries = naming->open;
    ids.numbers = naming->open_numbers;
    GCMP_TRY(fill_open(naming));
    if (gcmp_ids_solve(&ids, &why) != GRADCMP_OK) {
        return keep_unsolved(naming, ids.weight_count, &why);
    }
    for (size_t i = 0; i < naming->entry_count; i++) {
        struct entry *entry = &naming->entries[i];
        if (entry->name == NULL && naming->open[entry->place].weight != SIZE_MAX) {
            entry->name = naming->candidates[naming->open[entry->place].weight].name;
        }
    }
    return GRADCMP_OK;
}

/* Give each key its name. Counters of a parameter without another state need none. */
static enum gradcmp_status write_names(const struct naming *naming) {
    for (size_t i = 0; i < naming->state_count; i++) {
        const struct entry *entry = entry_of(naming, &naming->states[i]);
        struct gcmp_dcp_key *key = &naming->keys[naming->states[i].key];
        if (entry->name != NULL) {
            key->name = entry->name;
        } else if (naming->is_kept) {
            key->name = gcmp_arena_format(naming->catalogue->arena, "%zu", entry->place);
        } else {
            key->kind = GCMP_DCP_OTHER;
            key->name = key->text;
            key->state = NULL;
        }
        if (key->name == NULL) {
            GCMP_FAIL_MEMORY(naming->error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status name_states(struct naming *naming) {
    GCMP_TRY(gather_states(naming));
    if (naming->state_count == 0) {
        return GRADCMP_OK;
    }
    qsort(naming->states, naming->state_count, sizeof *naming->states, compare_states);
    GCMP_TRY(gcmp_dcp_read_lists(naming->catalogue, &naming->lists, naming->error));
    match_groups(naming);
    naming->is_listed = true;
    for (size_t i = 0; i < naming->optimizer_count; i++) {
        naming->is_listed = naming->is_listed && naming->optimizers[i].is_listed;
    }
    GCMP_TRY(collect_entries(naming));
    GCMP_TRY(find_shapes(naming));
    GCMP_TRY(note_names(naming));
    GCMP_TRY(naming->open_count > 0 ? solve(naming) : GRADCMP_OK);
    return write_names(naming);
}

enum gradcmp_status gcmp_dcp_name_numbers(struct gradcmp_catalogue *catalogue,
                                          struct gcmp_dcp_key *keys,
                                          const struct gcmp_dcp_weights *weights,
                                          struct gradcmp_error *error) {
    struct naming naming = {
        .catalogue = catalogue, .keys = keys, .weights = weights, .error = error};
    if (catalogue->number_groups != NULL) {
        return GRADCMP_OK; /* known to be numbers, which the other side may name */
    }
    enum gradcmp_status status = name_states(&naming);
    gcmp_dcp_free_lists(&naming.lists);
    gcmp_map_free(&naming.optimizer_index);
    gcmp_map_free(&naming.entry_index);
    gcmp_map_free(&naming.given);
    free(naming.optimizers);
    free(naming.states);
    free(naming.entries);
    free(naming.entry_keys);
    free(naming.candidates);
    free(naming.open);
    free(naming.open_numbers);
    return status;
}
