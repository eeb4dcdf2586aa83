/* Ranks that hold parameters of their own: stages of a pipeline, each with a file of its weights
 * and an optimizer that counts them from 0. */
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/grow.h"
#include "formats/optimizer_ids.h"
#include "formats/torch_save_set.h"

/* What was made of an optimizer; places are ends of runs, 0: of none yet. */
struct mark {
    size_t met_at;    /* the run that has a state of it, the last so far */
    size_t copied_at; /* the run for which it was copied last ... */
    size_t copy;      /* ... and the copy */
};

struct parting {
    struct gcmp_pt_set *set;
    struct gcmp_map names;  /* of the weights of files of rank 0 and of no rank */
    struct gcmp_map others; /* of those of the further rank that is looked at */
    size_t name_count;
    bool *is_counted;     /* of each entry: the files of rank 0 and of no rank have a state of it */
    size_t counted_count; /* of these */
    size_t *seen_at;      /* of each entry: the end of the run that has a state of it, the last */
    struct mark *marks;   /* of each optimizer */
    bool has_stages;      /* some rank has weights that rank 0 has not */
    struct gradcmp_error *error;
};

static enum gradcmp_status note_first(struct parting *parting, const struct gcmp_pt_run *run) {
    for (size_t i = run->first; i < run->end; i++) {
        const struct gcmp_pt_tensor *tensor = &parting->set->tensors[i];
        if (tensor->kind == GCMP_PT_WEIGHT) {
            enum gcmp_map_result result =
                gcmp_map_add(&parting->names, tensor->name, strlen(tensor->name), i, NULL);
            if (result == GCMP_MAP_NO_MEMORY) {
                GCMP_FAIL_MEMORY(parting->error);
            }
            parting->name_count += result == GCMP_MAP_ADDED;
        }
        if (gcmp_pt_is_numbered(tensor) && !parting->is_counted[tensor->entry]) {
            parting->is_counted[tensor->entry] = true;
            parting->counted_count++;
        }
    }
    return GRADCMP_OK;
}

/* What a further rank has. */
struct findings {
    size_t weights;   /* names of weights */
    size_t others;    /* those of them that rank 0 does not have */
    size_t numbers;   /* parameters of the numbered optimizers of which it has states */
    size_t states;    /* of them, those with a state */
    bool has_more;    /* states of numbers of which rank 0 has none */
    bool has_list;    /* numbers that rank 0 does not list in the same way */
    bool has_unnamed; /* ... and some have no name */
};

static enum gradcmp_status look_at_weight(struct parting *parting, const char *name,
                                          struct findings *found) {
    size_t index;
    enum gcmp_map_result result = gcmp_map_add(&parting->others, name, strlen(name), 0, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(parting->error);
    }
    if (result == GCMP_MAP_ADDED) {
        found->weights++;
        found->others += !gcmp_map_find(&parting->names, name, strlen(name), &index);
    }
    return GRADCMP_OK;
}

static void look_at_state(const struct parting *parting, const struct gcmp_pt_run *run,
                          size_t entry, struct findings *found) {
    const struct gcmp_pt_set *set = parting->set;
    uint32_t number = set->entries[entry].optimizer;
    struct mark *mark = &parting->marks[number];
    bool is_own = set->entries[entry].rank >= 0;
    if (parting->seen_at[entry] == run->end) {
        return;
    }
    parting->seen_at[entry] = run->end;
    found->numbers += mark->met_at != run->end ? set->optimizers[number].count : 0;
    mark->met_at = run->end;
    found->states++;
    found->has_more = found->has_more || (!is_own && !parting->is_counted[entry]);
    found->has_list = found->has_list || is_own;
    found->has_unnamed = found->has_unnamed || (is_own && set->entries[entry].name == NULL);
}

static enum gradcmp_status look_at(struct parting *parting, const struct gcmp_pt_run *run,
                                   struct findings *found) {
    *found = (struct findings){.weights = 0};
    for (size_t i = run->first; i < run->end; i++) {
        const struct gcmp_pt_tensor *tensor = &parting->set->tensors[i];
        if (tensor->kind == GCMP_PT_WEIGHT) {
            GCMP_TRY(look_at_weight(parting, tensor->name, found));
        } else if (gcmp_pt_is_numbered(tensor)) {
            look_at_state(parting, run, tensor->entry, found);
        }
    }
    return GRADCMP_OK;
}

/* Append a copy of an optimizer, whose entries are the rank's own. */
static enum gradcmp_status copy_optimizer(struct parting *parting, uint32_t number,
                                          const struct gcmp_pt_run *run) {
    struct gcmp_pt_set *set = parting->set;
    struct gcmp_pt_optimizer optimizer = set->optimizers[number];
    if (!gcmp_grow(&set->optimizers, set->optimizer_count, &set->optimizer_capacity,
                   sizeof *set->optimizers)) {
        GCMP_FAIL_MEMORY(parting->error);
    }
    set->optimizers[set->optimizer_count] =
        (struct gcmp_pt_optimizer){set->entry_count, optimizer.count, optimizer.path};
    for (size_t i = 0; i < optimizer.count; i++) {
        if (!gcmp_grow(&set->entries, set->entry_count, &set->entry_capacity,
                       sizeof *set->entries)) {
            GCMP_FAIL_MEMORY(parting->error);
        }
        struct gcmp_pt_entry entry = set->entries[optimizer.first + i];
        entry.optimizer = (uint32_t)set->optimizer_count;
        entry.rank = run->rank;
        set->entries[set->entry_count++] = entry;
    }
    parting->marks[number].copy = set->optimizer_count++;
    parting->marks[number].copied_at = run->end;
    return GRADCMP_OK;
}

/* Give a rank entries of its own. */
static enum gradcmp_status part(struct parting *parting, const struct gcmp_pt_run *run) {
    struct gcmp_pt_set *set = parting->set;
    for (size_t i = run->first; i < run->end; i++) {
        struct gcmp_pt_tensor *tensor = &set->tensors[i];
        tensor->is_own = true;
        if (!gcmp_pt_is_numbered(tensor) || set->entries[tensor->entry].rank >= 0) {
            continue;
        }
        uint32_t number = set->entries[tensor->entry].optimizer;
        if (parting->marks[number].copied_at != run->end) {
            GCMP_TRY(copy_optimizer(parting, number, run));
        }
        tensor->entry = tensor->entry - set->optimizers[number].first +
                        set->optimizers[parting->marks[number].copy].first;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status refuse(const struct parting *parting, const struct gcmp_pt_run *run,
                                  const char *what) {
    const struct gcmp_pt_set *set = parting->set;
    GCMP_FAIL_AT(parting->error, GRADCMP_ERROR_UNSUPPORTED,
                 gcmp_dir_file_path(set->catalogue->dir, set->tensors[run->first].file),
                 GRADCMP_NO_OFFSET, "torch: %s" GCMP_IDS_WAY_OUT, what);
}

/* A rank with the weights of rank 0 counts as rank 0 does. One with others counts its own where
 * they are as many as its numbers or more. */
static enum gradcmp_status part_run(struct parting *parting, const struct gcmp_pt_run *run) {
    struct findings found;
    gcmp_map_free(&parting->others);
    parting->others = (struct gcmp_map)GCMP_MAP_INIT;
    GCMP_TRY(look_at(parting, run, &found));
    bool is_alike = found.weights == parting->name_count && found.others == 0;
    parting->has_stages = parting->has_stages || found.others > 0;
    if (found.has_list && found.has_unnamed && (found.weights == 0 || is_alike)) {
        return refuse(parting, run,
                      "param_groups list other parameters than rank 0's, and no weights of other "
                      "names tell which");
    }
    bool is_stage = found.weights > 0 && !is_alike && found.numbers <= found.weights;
    if (found.has_list || (found.states > 0 && is_stage)) {
        return part(parting, run);
    }
    bool is_same = !found.has_more && found.states == parting->counted_count;
    if (found.states > 0 && (found.weights > 0 ? !is_alike : !is_same)) {
        parting->set->is_dealt = true;
    }
    return GRADCMP_OK;
}

/* What kinds of tensors a rank has. */
struct kinds {
    bool weights, states, numbers; /* numbers: states of parameters that have no name yet */
};

static struct kinds kinds_of(const struct gcmp_pt_set *set, const struct gcmp_pt_run *run) {
    struct kinds kinds = {false, false, false};
    for (size_t i = run->first; i < run->end; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        kinds.weights = kinds.weights || tensor->kind == GCMP_PT_WEIGHT;
        kinds.states = kinds.states || tensor->kind == GCMP_PT_STATE;
        kinds.numbers = kinds.numbers ||
                        (gcmp_pt_is_numbered(tensor) && set->entries[tensor->entry].name == NULL);
    }
    return kinds;
}

/* Once ranks hold different weights, numbers of a rank without any count nobody knows what, and
 * weights without an optimizer may lack a file. */
static enum gradcmp_status check_stages(const struct parting *parting) {
    struct gcmp_pt_run run = GCMP_PT_RUN_INIT;
    int32_t bare = -1;
    size_t bare_count = 0;
    bool has_states = false;
    while (parting->has_stages && gcmp_pt_next_run(parting->set, &run)) {
        struct kinds kinds = kinds_of(parting->set, &run);
        if (run.rank > 0 && kinds.numbers && !kinds.weights) {
            return refuse(parting, &run,
                          "the optimizer numbers its parameters, ranks hold different weights, and "
                          "this one's files have none");
        }
        has_states = has_states || kinds.states;
        if (run.rank >= 0 && kinds.weights && !kinds.states) {
            bare = bare_count++ == 0 ? run.rank : bare;
        }
    }
    if (!has_states || bare_count == 0) {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_note(parting->set->catalogue, parting->error,
                               "files of %zu rank%s (rank %d%s) hold weights and no state of an "
                               "optimizer; their weights have no gradients here",
                               bare_count, bare_count == 1 ? "" : "s", (int)bare,
                               bare_count == 1 ? "" : ", ...");
}

/* --- the order of the weights --- */

/* A list of layers that names tell of: the text before each number in a name is a list's. */
struct list {
    unsigned long long last; /* number in the name that was of it last ... */
    size_t next;             /* ... and 1 + that name */
};

struct lists {
    struct gcmp_map index; /* text -> list */
    struct list *items;
    size_t count, capacity;
};

/* Find the next number in a name; false at its end. */
static bool next_number(const char *name, size_t *at, size_t *digits) {
    *at += *digits;
    *at += strcspn(name + *at, "0123456789");
    *digits = strspn(name + *at, "0123456789");
    return *digits > 0;
}

static enum gradcmp_status find_list(struct lists *lists, const char *name, size_t bytes,
                                     struct list **list, bool *is_new,
                                     struct gradcmp_error *error) {
    size_t index;
    if (!gcmp_grow(&lists->items, lists->count, &lists->capacity, sizeof *lists->items)) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gcmp_map_result result = gcmp_map_add(&lists->index, name, bytes, lists->count, &index);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    *list = &lists->items[index];
    *is_new = result == GCMP_MAP_ADDED;
    lists->count += *is_new;
    return GRADCMP_OK;
}

/* Take the n-th name in. *follows is false where a list begins again that had ended, or a number
 * comes behind a larger one; *carries_on: the name is of a list of the name before. */
static enum gradcmp_status take_name(struct lists *lists, const char *name, size_t n, bool *follows,
                                     bool *carries_on, struct gradcmp_error *error) {
    size_t at = 0, digits = 0;
    *carries_on = false;
    *follows = true;
    while (next_number(name, &at, &digits) && *follows) {
        unsigned long long number = digits < 19 ? strtoull(name + at, NULL, 10) : 0;
        struct list *list;
        bool is_new;
        GCMP_TRY(find_list(lists, name, at, &list, &is_new, error));
        if (!is_new) {
            *follows = list->next == n && number >= list->last && digits < 19;
            *carries_on = *carries_on || *follows;
        }
        *list = (struct list){number, n + 1};
    }
    return GRADCMP_OK;
}

static bool is_part(const struct gcmp_pt_set *set, uint32_t file) {
    return strstr(gcmp_dir_file_name(set->catalogue->dir, file), "-of-") != NULL;
}

/* Whether names come one after another, from file to file: the first one that a file adds carries
 * on a list of layers where the file before ends, or both are parts of a series. Stages that take
 * turns (virtual ones) do not. */
static enum gradcmp_status check_order(const struct parting *parting, struct gcmp_map *names,
                                       struct lists *lists, bool *is_ordered) {
    const struct gcmp_pt_set *set = parting->set;
    const struct gcmp_pt_tensor *last = NULL;
    size_t n = 0;
    *is_ordered = true;
    for (size_t i = 0; i < set->tensor_count && *is_ordered; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        bool follows, carries_on;
        if (tensor->kind != GCMP_PT_WEIGHT) {
            continue;
        }
        enum gcmp_map_result result =
            gcmp_map_add(names, tensor->name, strlen(tensor->name), i, NULL);
        if (result == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(parting->error);
        }
        if (result == GCMP_MAP_ADDED) {
            GCMP_TRY(take_name(lists, tensor->name, n, &follows, &carries_on, parting->error));
            bool is_alone = last != NULL && last->file != tensor->file &&
                            !(is_part(set, last->file) && is_part(set, tensor->file));
            *is_ordered = follows && (carries_on || !is_alone);
            last = tensor;
            n++;
        }
    }
    return GRADCMP_OK;
}

/* Weights in one file stand in its order. In several, those of a rank still do where it has one. */
static enum gradcmp_status settle_order(struct parting *parting) {
    struct gcmp_pt_set *set = parting->set;
    struct gcmp_map names = GCMP_MAP_INIT;
    struct lists lists = {.index = GCMP_MAP_INIT};
    const struct gcmp_pt_tensor *last = NULL;
    bool has_files = false, has_files_of_rank = false, is_ordered;
    for (size_t i = 0; i < set->tensor_count; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        if (tensor->kind == GCMP_PT_WEIGHT) {
            bool is_other = last != NULL && last->file != tensor->file;
            has_files = has_files || is_other;
            has_files_of_rank = has_files_of_rank || (is_other && last->rank == tensor->rank);
            last = tensor;
        }
    }
    if (last == NULL) { /* states stand in the order in which they were made */
        set->is_ordered = false;
    }
    if (!has_files || (!parting->has_stages && !has_files_of_rank)) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = check_order(parting, &names, &lists, &is_ordered);
    gcmp_map_free(&names);
    gcmp_map_free(&lists.index);
    free(lists.items);
    if (status == GRADCMP_OK && !is_ordered) {
        set->is_interleaved = true;
        set->is_ordered = set->is_ordered && !has_files_of_rank;
    }
    return status;
}

static enum gradcmp_status part_all(struct parting *parting) {
    struct gcmp_pt_run run = GCMP_PT_RUN_INIT;
    while (gcmp_pt_next_run(parting->set, &run)) {
        GCMP_TRY(run.rank <= 0 ? note_first(parting, &run) : part_run(parting, &run));
    }
    GCMP_TRY(check_stages(parting));
    return settle_order(parting);
}

enum gradcmp_status gcmp_pt_part_stages(struct gcmp_pt_set *set, struct gradcmp_error *error) {
    struct parting parting = {
        .set = set, .names = GCMP_MAP_INIT, .others = GCMP_MAP_INIT, .error = error};
    parting.seen_at = calloc(set->entry_count + 1, sizeof *parting.seen_at);
    parting.is_counted = calloc(set->entry_count + 1, sizeof *parting.is_counted);
    parting.marks = calloc(set->optimizer_count + 1, sizeof *parting.marks);
    bool has_memory =
        parting.seen_at != NULL && parting.is_counted != NULL && parting.marks != NULL;
    enum gradcmp_status status = has_memory ? part_all(&parting)
                                            : gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                             GRADCMP_NO_OFFSET, "out of memory");
    gcmp_map_free(&parting.names);
    gcmp_map_free(&parting.others);
    free(parting.seen_at);
    free(parting.is_counted);
    free(parting.marks);
    return status;
}
